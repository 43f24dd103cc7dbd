// Operators of a user's specifications in ONNX files: nodes of the domain "taso".
#include <gmock/gmock.h>

#include "graph/graph_text.h"
#include "tests/onnx_io/fixture.h"

namespace taso {
namespace {

using ::testing::HasSubstr;

const OperatorRegistry& extended() {
  static const OperatorRegistry registry = [] {
    Expected<OperatorRegistry> result = OperatorRegistry::parse(
        R"(operator every_kind(x[D..], y[D..]; count: int, factor: real = 0.5, list: int[], act: function = identity) -> [D..]
             "One attribute of each kind."
             require count >= 0 "count must not be negative"
             out[I..] = act(x[I..]) * factor + y[I..] * sum(list) * count
           operator halves(x[A.., n]) -> [A.., n // 2] for k < 2
             "Two outputs."
             require n % 2 == 0 "the extent must be even"
             out.k[I.., j] = x[I.., k * (n // 2) + j]
           operator pick(x[n], integer index[m]) -> [m]
             "An input of integers."
             out[j] = x[index[j]])",
        "user.op", &test::registry());
    TASO_CHECK(result.ok(), result.ok() ? "" : result.error().to_string());
    return std::move(result).value();
  }();
  return registry;
}

class SpecifiedTest : public test::FolderTest {
 protected:
  /// A graph, saved in a model with its inputs and outputs, and read again.
  Expected<Model> round_trip(const std::string& text) {
    TASO_ASSIGN(const Graph graph, parse_graph(text, "graph", extended()));
    ModelBuilder frame(17, "frame");
    frame.add_opset("frame", 1);
    std::vector<std::string> inputs, outputs;
    for (const NodeId id : graph.inputs()) {
      const Node& input = graph.node(id);
      frame.add_input(input.name, input.outputs[0].shape, input.outputs[0].element);
      inputs.push_back(input.name);
    }
    for (const Value& output : graph.outputs()) {
      outputs.push_back("out" + std::to_string(outputs.size()));
      frame.add_output(outputs.back(), graph.type(output).shape);
    }
    frame.add_node("Frame", inputs, outputs, {}, "frame", "frame");
    TASO_ASSIGN(const Model model, Model::parse(frame.serialize(), "frame.onnx", extended()));
    TASO_ASSIGN([[maybe_unused]] const SaveReport report, model.save(graph, path("model.onnx")));
    return Model::load(path("model.onnx"), extended());
  }
};

TEST_F(SpecifiedTest, ComeBackAsTheyWere) {
  for (const char* text : {"input x f32[2, 3]\ninput y f32[2, 3]\n"
                           "output every_kind(x, y; count=3, factor=0.25, list=[1, -2, 3], act=tanh)\n",
                           "input x f32[2, 3]\noutput every_kind(x, relu(x); count=0, list=[7])\n",
                           "input x f32[2, 6]\na, b = halves(x)\noutput neg(b), a\n",
                           "input x f32[5]\ninput i i64[3]\noutput pick(x, i)\n"}) {
    const auto model = round_trip(text);
    ASSERT_TRUE(model.ok()) << text << model.error().to_string();
    EXPECT_TRUE(model->carried_nodes().empty()) << text;
    const auto graph = parse_graph(text, "graph", extended());
    EXPECT_EQ(to_text(model->graph()), to_text(*graph));
  }
}

TEST_F(SpecifiedTest, UnchangedNodesGoBackAndOthersAreImportedOnce) {
  ASSERT_TRUE(round_trip("input x f32[2, 6]\na, b = halves(x)\noutput relu(a), b\n").ok());
  const auto model = Model::load(path("model.onnx"), extended());
  ASSERT_TRUE(model.ok());
  const auto report = model->save(model->graph(), path("again.onnx"));
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  EXPECT_EQ(report->verbatim_nodes, 2);
  EXPECT_EQ(*read_file(path("again.onnx")), *read_file(path("model.onnx")));
}

TEST_F(SpecifiedTest, WithoutTheSpecificationTheyAreTheirFunctions) {
  ASSERT_TRUE(round_trip("input x f32[2, 6]\na, b = halves(x)\noutput relu(a), b\n").ok());
  const auto model = Model::load(path("model.onnx"), test::registry());
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  EXPECT_TRUE(model->carried_nodes().empty());
  ASSERT_TRUE(model->save(model->graph(), path("again.onnx")).ok());
  EXPECT_EQ(*read_file(path("again.onnx")), *read_file(path("model.onnx")));
}

TEST_F(SpecifiedTest, WrongNodesAreNamed) {
  struct Case {
    std::string op;
    std::vector<OnnxAttribute> attributes;
    std::size_t inputs, outputs;
    std::string message;
    bool carried;
  };
  for (const Case& c : {Case{"every_kind", {{"list", {1}}}, 2, 1, "attribute count is missing", false},
                        Case{"every_kind", {{"list", {1}}, {"count", 1}}, 1, 1, "every_kind reads 2", false},
                        Case{"halves", {}, 1, 3, "it has 3 outputs, halves has 2", false},
                        Case{"halves", {{"axis", 1}}, 1, 2, "axis", true},
                        Case{"every_kind", {{"list", {1}}, {"count", -1}}, 2, 1, "count must not be negative", true}}) {
    ModelBuilder builder(17, "wrong");
    builder.add_opset("taso", 1);
    std::vector<std::string> inputs, outputs;
    for (std::size_t i = 0; i < c.inputs; ++i) {
      inputs.push_back("x" + std::to_string(i));
      builder.add_input(inputs.back(), {2, 4});
    }
    for (std::size_t i = 0; i < c.outputs; ++i) {
      outputs.push_back("y" + std::to_string(i));
      builder.add_output(outputs.back(), {2, c.op == "halves" ? 2 : 4});
    }
    builder.add_node(c.op, inputs, outputs, c.attributes, "node", "taso");
    const auto model = Model::parse(builder.serialize(), "wrong.onnx", extended());
    ASSERT_EQ(model.ok(), c.carried) << c.message;
    if (!c.carried) {
      EXPECT_THAT(model.error().to_string(), HasSubstr(c.message));
    } else {
      ASSERT_EQ(model->carried_nodes().size(), 1U) << c.message;
      EXPECT_THAT(model->carried_nodes()[0].reason, HasSubstr(c.message));
    }
  }
}

}  // namespace
}  // namespace taso
