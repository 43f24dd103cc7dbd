// Subgraphs of control flow as models: what they read from outside, their types, and the way back.
#include <gmock/gmock.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/rewrite.h"
#include "tests/onnx_io/fixture.h"
#include "tests/onnx_io/onnx_text.h"

namespace taso {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

class BodyTest : public test::FolderTest {
 protected:
  Model read(const std::string& text, std::int64_t ir_version = 8) {
    onnx::ModelProto model;
    model.set_ir_version(ir_version);
    model.add_opset_import()->set_version(13);
    const auto graph = test::parse_onnx_graph(text, "body_test");
    EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().to_string());
    if (graph) *model.mutable_graph() = *graph;
    auto read = Model::parse(model.SerializeAsString(), path("in.onnx"), test::registry());
    EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().to_string());
    return *read;
  }
  Model body(const Model& model, const BodyPlace& place) {
    auto inside = model.body(place);
    EXPECT_TRUE(inside.ok()) << (inside.ok() ? "" : inside.error().to_string());
    test::expect_well_typed(*inside);
    return *inside;
  }
  onnx::ModelProto save(const Model& model) {
    const auto saved = model.save(model.graph(), path("out.onnx"));
    EXPECT_TRUE(saved.ok()) << (saved.ok() ? "" : saved.error().to_string());
    return test::read_message(path("out.onnx"));
  }
};

std::map<std::string, std::string> types_of_inputs(const Model& model) {
  std::map<std::string, std::string> types;
  for (const TensorDeclaration& input : model.inputs())
    types[input.name] = input.type.known ? to_string(input.type) : std::string("?");
  return types;
}

/// The graph with every `add` a `sub`.
Graph subtracting(Graph graph) {
  for (const NodeId id : graph.topological_order()) {
    Node node = graph.node(id);
    if (node.op != "add") continue;
    const NodeId other = *add_op(graph, test::registry(), "sub", {}, node.inputs);
    graph.replace_uses({id, 0}, {other, 0});
  }
  graph.remove_dead();
  return graph;
}

const onnx::GraphProto& subgraph(const onnx::ModelProto& model, const std::string& op_type, int attribute) {
  const auto& nodes = model.graph().node();
  const auto found =
      std::find_if(nodes.begin(), nodes.end(), [&](const auto& node) { return node.op_type() == op_type; });
  EXPECT_NE(found, nodes.end());
  return found->attribute(attribute).g();
}

const char* const choice = R"(
g (float[2, 4] x, bool c) => (float[2, 3] y)
<float[4, 3] w, float[4, 3] v>
{
  h = Relu (x)
  [choose] z = If (c) <
    then_branch = a () => (float[M, N] s) {
      p = MatMul (h, w)
      q = MatMul (h, v)
      s = Add (p, q)
    },
    else_branch = b () => (float[M, N] t) {
      t = MatMul (h, w)
    }
  >
  y = Neg (z)
}
)";

TEST_F(BodyTest, WhatIsConstantOutsideIsConstantInside) {
  const Model model = read(choice);
  EXPECT_THAT(model.bodies(), ElementsAre(BodyPlace{"z", "then_branch"}, BodyPlace{"z", "else_branch"}));
  EXPECT_EQ(model.describe_body({"z", "then_branch"}), "then_branch of node \"choose\" (If)");
  const Model inside = body(model, {"z", "then_branch"});
  EXPECT_THAT(types_of_inputs(inside), UnorderedElementsAre(std::pair("h", "f32[2, 4]")));
  EXPECT_TRUE(inside.carried_nodes().empty());
  EXPECT_EQ(to_string(inside.outputs()[0].type), "f32[2, 3]");
}

TEST_F(BodyTest, ARewrittenBodyTakesThePlaceOfTheSubgraph) {
  const Model model = read(choice);
  const onnx::ModelProto before = save(model);
  const Model inside = body(model, {"z", "then_branch"});
  const auto changed = model.with_body({"z", "then_branch"}, inside, subtracting(inside.graph()));
  ASSERT_TRUE(changed.ok()) << changed.error().to_string();
  ASSERT_TRUE(changed->has_value());
  const onnx::ModelProto after = save(**changed);
  const onnx::GraphProto& branch = subgraph(after, "If", 0);
  EXPECT_EQ(branch.input_size(), 0);
  EXPECT_EQ(branch.initializer_size(), 0);
  EXPECT_EQ(branch.output(0).SerializeAsString(), subgraph(before, "If", 0).output(0).SerializeAsString());
  std::vector<std::string> types;
  for (const auto& node : branch.node()) types.push_back(node.op_type());
  EXPECT_THAT(types, ElementsAre("MatMul", "MatMul", "Sub"));
  // All else is as it was.
  EXPECT_EQ(subgraph(after, "If", 1).SerializeAsString(), subgraph(before, "If", 1).SerializeAsString());
  EXPECT_EQ(after.graph().initializer_size(), 2);
  EXPECT_EQ(after.graph().node_size(), 3);
}

// A subgraph that was traced at one size says numbers of what it makes of tensors of any.
TEST_F(BodyTest, WhatIsSaidOfTensorsOfAnyExtentsIsNotBelieved) {
  const char* const traced = R"(
g (float[N, 4] x, int64 k) => (float[A, B] y, int64[C] z)
<int64 zero = {0}>
{
  y, z = Loop (k, "", x) <body = b (int64 i, bool more, float[3, 4] s) => (bool co, float[3, 4] t, int64 rows) {
    co = Identity (more)
    t = Sigmoid (x)
    shape = Shape (t)
    rows = Gather (shape, zero)
  }>
}
)";
  const Model inside = body(read(traced), {"y", "body"});
  ASSERT_EQ(inside.outputs().size(), 3U);
  EXPECT_FALSE(inside.outputs()[1].type.known);
  EXPECT_FALSE(inside.carried_nodes().empty());
}

TEST_F(BodyTest, WhatIsNotRewrittenIsNotChanged) {
  const Model model = read(choice);
  const Model inside = body(model, {"z", "else_branch"});
  const auto same = model.with_body({"z", "else_branch"}, inside, inside.graph());
  ASSERT_TRUE(same.ok()) << same.error().to_string();
  EXPECT_FALSE(same->has_value());
}

TEST_F(BodyTest, NewNamesAreNamesOfNothingElse) {
  const Model model = read(R"(
g (float[2, 4] x, bool c) => (float[2, 4] y)
<float[4] taso_sub_0, float[4] taso_constant_0>
{
  taso_Sub_0 = Add (x, taso_sub_0)
  y = If (c) <
    then_branch = a () => (float[2, 4] s) {
      p = Add (x, taso_constant_0)
      s = Add (p, taso_Sub_0)
    },
    else_branch = b () => (float[2, 4] t) {
      t = Neg (x)
    }
  >
}
)");
  const Model inside = body(model, {"y", "then_branch"});
  const auto changed = model.with_body({"y", "then_branch"}, inside, subtracting(inside.graph()));
  ASSERT_TRUE(changed.ok()) << changed.error().to_string();
  const onnx::ModelProto after = save(**changed);
  std::vector<std::string> names = {"x", "c", "taso_sub_0", "taso_constant_0", "taso_Sub_0", "y"};
  for (const auto& node : subgraph(after, "If", 0).node())
    names.insert(names.end(), node.output().begin(), node.output().end());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST_F(BodyTest, ALoopKeepsTheTypesOfWhatItKeeps) {
  const Model model = read(R"(
g (int64 n, bool c, float[2, 3] x, float[1, 3] l) => (float[2, 3] y, float[M, 3] z)
{
  y, z = Loop (n, c, x, l) <
    body = b (int64 i, bool k, float[] h, float[] list) => (bool m, float[] o, float[] longer) {
      m = Identity (k)
      o = Relu (h)
      longer = Concat <axis = 0> (list, list)
    }
  >
}
)");
  const Model inside = body(model, {"y", "body"});
  EXPECT_THAT(types_of_inputs(inside), UnorderedElementsAre(std::pair("i", "i64[]"), std::pair("k", "bool[]"),
                                                            std::pair("h", "f32[2, 3]"), std::pair("list", "?")));
}

TEST_F(BodyTest, AScanReadsPartsOfWhatItsNodeReads) {
  const Model model = read(R"(
g (float[3] x, float[5, 3] s) => (float[3] y, float[5, 3] z)
{
  y, z = Scan <num_scan_inputs = 1,
    body = b (float[] h, float[] e) => (float[] o, float[] p) {
      o = Add (h, e)
      p = Relu (o)
    }
  > (x, s)
}
)");
  const Model inside = body(model, {"y", "body"});
  EXPECT_THAT(types_of_inputs(inside), UnorderedElementsAre(std::pair("h", "f32[3]"), std::pair("e", "f32[3]")));
}

TEST_F(BodyTest, BodiesOfBodies) {
  const Model model = read(R"(
g (int64 n, bool c, float[2, 3] x) => (float[2, 3] y)
<float[3] w>
{
  y = Loop (n, c, x) <
    body = b (int64 i, bool k, float[2, 3] h) => (bool m, float[] o) {
      m = Identity (k)
      o = If (k) <
        then_branch = t () => (float[] a) {
          a = Add (h, w)
        },
        else_branch = e () => (float[] d) {
          d = Neg (h)
        }
      >
    }
  >
}
)");
  const BodyPlace outer{"y", "body"}, inner{"o", "then_branch"};
  const Model loop = body(model, outer);
  EXPECT_THAT(loop.bodies(), ElementsAre(inner, BodyPlace{"o", "else_branch"}));
  const Model branch = body(loop, inner);
  const auto changed = loop.with_body(inner, branch, subtracting(branch.graph()));
  ASSERT_TRUE(changed.ok() && changed->has_value());
  const auto whole = model.with_body(outer, **changed, (*changed)->graph());
  ASSERT_TRUE(whole.ok() && whole->has_value());
  const onnx::ModelProto after = save(**whole);
  const onnx::GraphProto& now = subgraph(after, "Loop", 0);
  EXPECT_EQ(now.initializer_size(), 0);
  const auto& nodes = now.node();
  const auto found = std::find_if(nodes.begin(), nodes.end(), [](const auto& node) { return node.op_type() == "If"; });
  ASSERT_NE(found, nodes.end());
  EXPECT_EQ(found->attribute(0).g().node(0).op_type(), "Sub");
  EXPECT_EQ(found->attribute(1).g().node(0).op_type(), "Neg");
}

TEST_F(BodyTest, PlacesThatAreNone) {
  const Model model = read(choice);
  const auto none = model.body({"z", "body"});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, "no node that makes \"z\" has a subgraph \"body\"");
  EXPECT_THAT(read(choice, 3).bodies(), ElementsAre());
}

}  // namespace
}  // namespace taso
