// ONNX graphs and what they become: import/*.cases.
//
//   opset N ...             the version of the default operator set; the case holds at each
//   onnx:                   the model's graph (tests/onnx_io/onnx_text.h); other operator sets have version 1
//   sizes N=4, M=2          what symbolic extents stand for
//   free y 0 3              extent 0 of the tensor y is free, and 3 more than it is
//   graph:                  the graph that is imported (graph/graph_text.h), in normal form; an opaque node has the
//                           name of its first output, and the operator com.acme::Scale is written com_acme_Scale
//   carried OP: REASON      nodes of an operator are carried, and why; all that are, and no other
//   open SHARE              the part of the model that rules can rewrite: "50.0 % of the model's arithmetic"
//   cause CAUSE             a line of the causes (to_string(CarriedCause)), the first one first; all of them
//   ill_typed NODE: REASON  a handler made a graph that is ill-typed; all that did, and no other
//   error MESSAGE           the model is refused
//
// A case has `graph` or `error`, or `carried` alone where the graph does not matter.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "graph/rewrite.h"
#include "tests/onnx_io/fixture.h"
#include "tests/onnx_io/onnx_text.h"
#include "tests/support/graphs.h"

namespace taso {
namespace {

using test::CaseCount;
using test::CaseValue;

const std::vector<test::TextCase>& import_cases() {
  static const std::vector<test::TextCase> cases =
      test::load_cases("tests/onnx_io/import", {{"opset", CaseValue::words, CaseCount::once},
                                                {"onnx", CaseValue::section, CaseCount::once},
                                                {"sizes", CaseValue::words, CaseCount::optional},
                                                {"free", CaseValue::words, CaseCount::repeated},
                                                {"pieces", CaseValue::none, CaseCount::optional},
                                                {"graph", CaseValue::section, CaseCount::optional},
                                                {"carried", CaseValue::words, CaseCount::repeated},
                                                {"open", CaseValue::words, CaseCount::optional},
                                                {"cause", CaseValue::words, CaseCount::repeated},
                                                {"ill_typed", CaseValue::words, CaseCount::repeated},
                                                {"warns", CaseValue::words, CaseCount::repeated},
                                                {"error", CaseValue::words, CaseCount::optional}});
  return cases;
}

/// "N=4, M=2".
SymbolSizes sizes_of(const std::string& text) {
  SymbolSizes sizes;
  for (std::string word : test::words_of(text)) {
    if (word.ends_with(',')) word.pop_back();
    const std::size_t equals = word.find('=');
    EXPECT_NE(equals, std::string::npos) << "expected NAME=SIZE: " << word;
    if (equals != std::string::npos) sizes[word.substr(0, equals)] = std::stoll(word.substr(equals + 1));
  }
  return sizes;
}

/// The model of a graph, with the operator sets that its nodes name.
std::string model_of(const onnx::GraphProto& graph, std::int64_t opset) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  onnx::OperatorSetIdProto& main_set = *model.add_opset_import();
  main_set.set_domain("");
  main_set.set_version(opset);
  std::set<std::string> domains;
  for (const onnx::NodeProto& node : graph.node())
    if (!node.domain().empty()) domains.insert(node.domain());
  for (const std::string& domain : domains) {
    onnx::OperatorSetIdProto& set = *model.add_opset_import();
    set.set_domain(domain);
    set.set_version(1);
  }
  *model.mutable_graph() = graph;
  return model.SerializeAsString();
}

/// In normal form, and with names that the text of a graph can give to opaque nodes.
Graph comparable(Graph graph) {
  for (const NodeId id : graph.topological_order()) {
    if (graph.node(id).kind != NodeKind::opaque) continue;
    Node node = graph.node(id);
    if (node.name.starts_with("node:")) node.name.erase(0, 5);
    for (std::size_t at; (at = node.op.find_first_of(":.")) != std::string::npos;)
      node.op.replace(at, node.op.substr(at).starts_with("::") ? 2 : 1, "_");
    graph.replace_node(id, std::move(node));
  }
  normalize(graph, test::registry());
  return graph;
}

class ImportCases : public ::testing::TestWithParam<test::TextCase> {};

TEST_P(ImportCases, BecomeWhatTheySay) {
  const test::TextCase& one = GetParam();
  const Expected<onnx::GraphProto> graph = test::parse_onnx_graph(one.placed("onnx"), one.file);
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  ASSERT_NE(one.has("error"), one.has("graph") || one.has("carried")) << one.place() << ": a graph or an error";
  ImportOptions options;
  options.symbol_sizes = sizes_of(one.text("sizes"));
  options.pieces = one.has("pieces");
  for (const std::string& text : one.all("free")) {
    const std::vector<std::string> words = test::words_of(text);
    ASSERT_EQ(words.size(), 3U) << one.place() << ": free TENSOR AXIS MORE";
    options.free_extents[words[0]][std::stoul(words[1])] = std::stoll(words[2]);
  }
  for (const std::string& opset : test::words_of(one.text("opset"))) {
    SCOPED_TRACE(one.place() + " at opset " + opset);
    const Expected<Model> model =
        Model::parse(model_of(*graph, std::stoll(opset)), "case.onnx", test::registry(), options);
    if (one.has("error")) {
      ASSERT_FALSE(model.ok());
      EXPECT_EQ(model.error().message, one.text("error"));
      EXPECT_EQ(model.error().code, ErrorCode::bad_input);
      EXPECT_EQ(model.error().where.file, "case.onnx");
      continue;
    }
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    std::set<std::string> carried;
    for (const CarriedNode& node : model->carried_nodes()) carried.insert(node.op + ": " + node.reason);
    EXPECT_THAT(carried, ::testing::UnorderedElementsAreArray(one.all("carried")));
    if (one.has("open")) {
      EXPECT_EQ(open_share_text(model->coverage()), one.text("open"));
    }
    if (one.has("cause")) {
      std::vector<std::string> causes;
      for (const CarriedCause& cause : model->coverage().causes) causes.push_back(to_string(cause));
      EXPECT_THAT(causes, ::testing::ElementsAreArray(one.all("cause")));
    }
    std::vector<std::string> ill_typed;
    for (const IllTypedNode& node : model->ill_typed_nodes()) ill_typed.push_back(node.node + ": " + node.reason);
    EXPECT_THAT(ill_typed, ::testing::UnorderedElementsAreArray(one.all("ill_typed")));
    for (const std::string& warning : one.all("warns"))
      EXPECT_THAT(model->warnings(), ::testing::Contains(::testing::HasSubstr(warning)));
    if (!one.has("graph")) continue;
    const Graph expected = comparable(test::graph_of(one)), actual = comparable(model->graph());
    EXPECT_TRUE(actual.equals(expected)) << "expected\n" << to_text(expected) << "imported\n" << to_text(actual);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, ImportCases, ::testing::ValuesIn(import_cases()), test::case_name);

/// An operator of the table has a case that begins with its name and has a graph in which it is not carried. (Elsewhere
/// it may be folded away as arithmetic of shapes.)
TEST(ImportTable, EveryOperatorHasACase) {
  std::set<std::string> seen;
  for (const test::TextCase& one : import_cases()) {
    if (!one.has("graph")) continue;
    const Expected<onnx::GraphProto> graph = test::parse_onnx_graph(one.placed("onnx"), one.file);
    ASSERT_TRUE(graph.ok()) << graph.error().to_string();
    const std::vector<std::string> carried = one.all("carried");
    for (const onnx::NodeProto& node : graph->node()) {
      const bool is_carried = std::any_of(carried.begin(), carried.end(), [&](const std::string& text) {
        return text.starts_with(node.op_type() + ": ");
      });
      if (node.domain().empty() && !is_carried && test::words_of(one.name + " ?").front() == node.op_type())
        seen.insert(node.op_type());
    }
  }
  for (const ImportedOperator& row : imported_operators(test::registry()))
    EXPECT_TRUE(seen.contains(row.op_type)) << "tests/onnx_io/import has no case of " << row.op_type;
}

TEST(OnnxText, IsRefusedWithPlaceAndCause) {
  const auto error = [](const std::string& text) {
    const auto graph = test::parse_onnx_graph(text, "f");
    return graph.ok() ? "" : graph.error().to_string();
  };
  EXPECT_EQ(error("g (float[2] x) => (float[2] y)\n{\n  y = Relu (x\n}"),
            "f:4:1: expected ',' or ')' after an input, found '}'");
  EXPECT_EQ(error("g (floats[2] x) => () {}"), "f:1:4: expected an element type of ONNX, found 'floats'");
  EXPECT_EQ(error("g () => ()\n<float[3] w = {1, 2}>\n{}"), "f:2:11: tensor 'w' has 3 elements, not 2");
  EXPECT_EQ(error("g () => ()\n<float[N] w = {1, 2}>\n{}"), "f:2:11: the extents of a tensor with values are numbers");
  EXPECT_EQ(error("g () => ()\n<int64[1] w = {1.5}>\n{}"), "f:2:11: a value of tensor 'w' is not of its type");
  EXPECT_EQ(error("g () => ()\n<bool[1] w>\n{}"),
            "f:2:10: 'w' needs values: only those of float and int64 can follow from its name");
  EXPECT_EQ(error("g () => () { = F <a = []> () }"), "f:1:23: an empty list needs a type: NAME : ints = []");
}

TEST(OnnxText, SaysWhatTheStandardSays) {
  const auto graph = test::parse_onnx_graph(
      "g (float[N, 3, ?] x, float s, float[] u) => (float[2] \"a/b\")\n"
      "<int64[2] i = {-1, 2}, float[4] r = {0.5}, double[1] d = {-inf}, bool[1] b = {1}, string[1] t = {\"t\"},\n"
      " float[2] m>\n"
      "{\n"
      "  [first] m, , k = com.acme.F <a = 1, b = -0.5, c = \"t\", d = [1, 2], e = [1, 0.5], f : ints = [], g = "
      "[\"u\"],\n"
      "    h = int64[2] {3, 4}, j : float = 2> (x, , s)\n"
      "  \"a/b\" = If (u) <then_branch = t () => (float z) { z = Neg (k) }>\n"
      "}\n",
      "f");
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const auto& x = graph->input(0).type().tensor_type();
  EXPECT_EQ(x.elem_type(), onnx::TensorProto::FLOAT);
  ASSERT_EQ(x.shape().dim_size(), 3);
  EXPECT_EQ(x.shape().dim(0).dim_param(), "N");
  EXPECT_EQ(x.shape().dim(1).dim_value(), 3);
  EXPECT_EQ(x.shape().dim(2).value_case(), onnx::TensorShapeProto::Dimension::VALUE_NOT_SET);
  EXPECT_TRUE(graph->input(1).type().tensor_type().has_shape());
  EXPECT_FALSE(graph->input(2).type().tensor_type().has_shape());
  ASSERT_EQ(graph->initializer_size(), 5);
  EXPECT_THAT(graph->initializer(0).int64_data(), ::testing::ElementsAre(-1, 2));
  EXPECT_THAT(graph->initializer(1).float_data(), ::testing::ElementsAre(0.5F, 0.5F, 0.5F, 0.5F));
  EXPECT_THAT(graph->initializer(2).double_data(), ::testing::ElementsAre(-INFINITY));
  EXPECT_THAT(graph->initializer(3).int32_data(), ::testing::ElementsAre(1));
  EXPECT_THAT(graph->initializer(4).string_data(), ::testing::ElementsAre("t"));
  ASSERT_EQ(graph->value_info_size(), 1);
  EXPECT_EQ(graph->value_info(0).name(), "m");
  const onnx::NodeProto& node = graph->node(0);
  EXPECT_EQ(node.name(), "first");
  EXPECT_EQ(node.domain(), "com.acme");
  EXPECT_EQ(node.op_type(), "F");
  EXPECT_THAT(node.output(), ::testing::ElementsAre("m", "", "k"));
  EXPECT_THAT(node.input(), ::testing::ElementsAre("x", "", "s"));
  using Type = onnx::AttributeProto;
  std::vector<Type::AttributeType> types;
  for (const Type& attribute : node.attribute()) types.push_back(attribute.type());
  EXPECT_THAT(types, ::testing::ElementsAre(Type::INT, Type::FLOAT, Type::STRING, Type::INTS, Type::FLOATS, Type::INTS,
                                            Type::STRINGS, Type::TENSOR, Type::FLOAT));
  EXPECT_THAT(node.attribute(7).t().int64_data(), ::testing::ElementsAre(3, 4));
  EXPECT_EQ(graph->node(1).output(0), "a/b");
  EXPECT_EQ(graph->node(1).attribute(0).g().node(0).op_type(), "Neg");
}

}  // namespace
}  // namespace taso
