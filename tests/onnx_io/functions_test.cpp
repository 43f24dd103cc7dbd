// Functions of models. Operators of a user's specifications are written as such: functions.cases,
//
//   operators:       definitions in addition to the shipped ones
//   graph:           what is written into a model
//   functions NAME.. the functions that the model then has, in the domain taso
//   reads:           the graph that is read without the definitions
//   without TEXT     or: "OPERATOR: why it has no function"
//
// and calls of any functions are read as what stands in them.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>

#include "graph/graph_text.h"
#include "graph/rewrite.h"
#include "operators/evaluate.h"
#include "tests/onnx_io/fixture.h"
#include "tests/support/cases.h"

namespace taso {
namespace {

using test::CaseCount;
using test::CaseValue;
using test::TextCase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A model whose only node has the inputs and outputs of a graph, IR version 7.
Model frame_of(const Graph& graph, const OperatorRegistry& registry) {
  ModelBuilder frame(17, "frame");
  frame.set_ir_version(7);
  frame.add_opset("frame", 1);
  std::vector<std::string> inputs, outputs;
  for (const NodeId id : graph.inputs()) {
    inputs.push_back(graph.node(id).name);
    frame.add_input(inputs.back(), graph.node(id).outputs[0].shape);
  }
  for (const Value& output : graph.outputs()) {
    outputs.push_back("out" + std::to_string(outputs.size()));
    frame.add_output(outputs.back(), graph.type(output).shape);
  }
  frame.add_node("Frame", inputs, outputs, {}, "frame", "frame");
  return Model::parse(frame.serialize(), "frame.onnx", registry).value();
}

/// Outputs for inputs that follow from the names of the graph's inputs.
std::vector<double> values_of(const Graph& graph, const OperatorRegistry& registry) {
  DoubleRing ring;
  std::vector<RingTensor<double>> inputs;
  for (const NodeId id : graph.inputs()) {
    RingTensor<double> input;
    input.shape = graph.node(id).outputs[0].shape;
    const auto numbers = test::numbers(graph.node(id).outputs[0].elements(), -0.7F, 0.13F);
    input.elements.assign(numbers.begin(), numbers.end());
    inputs.push_back(std::move(input));
  }
  std::vector<double> all;
  const auto outputs = evaluate(graph, registry, ring, inputs);
  EXPECT_TRUE(outputs.ok()) << (outputs ? "" : outputs.error().to_string());
  if (outputs)
    for (const auto& output : *outputs) all.insert(all.end(), output.elements.begin(), output.elements.end());
  return all;
}

class FunctionCases : public ::testing::TestWithParam<TextCase> {};

TEST_P(FunctionCases, AreWrittenAndRead) {
  const TextCase& c = GetParam();
  const std::string file = ::testing::TempDir() + "/taso_functions_" + std::to_string(::getpid()) + ".onnx";
  const OperatorRegistry registry = OperatorRegistry::parse(c.placed("operators"), c.file, &test::registry()).value();
  const Graph graph = parse_graph(c.placed("graph"), c.file, registry).value();
  const Expected<SaveReport> report = frame_of(graph, registry).save(graph, file);
  ASSERT_TRUE(report.ok()) << report.error().to_string();
  std::vector<std::string> without, functions;
  for (const auto& [op, reason] : report->without_function) without.push_back(op.substr(6) + ": " + reason);
  for (const std::string& function : report->functions) functions.push_back(function.substr(6));
  EXPECT_EQ(without, c.has("without") ? std::vector{c.text("without")} : std::vector<std::string>());
  EXPECT_EQ(functions, test::words_of(c.text("functions")));
  const onnx::ModelProto message = test::read_message(file);
  EXPECT_EQ(message.functions_size(), static_cast<int>(functions.size()));
  EXPECT_EQ(message.ir_version(), functions.empty() ? 7 : 8);
  EXPECT_EQ(report->raised_ir_version, functions.empty() ? 0 : 7);

  // With the definitions the operators are there again, and the file goes back as it is.
  const Expected<Model> known = Model::load(file, registry);
  ASSERT_TRUE(known.ok()) << known.error().to_string();
  EXPECT_TRUE(known->graph().equals(graph)) << to_text(known->graph());
  const std::string before = read_file(file).value();
  ASSERT_TRUE(known->save(known->graph(), file).ok());
  EXPECT_EQ(read_file(file).value(), before);
  if (!c.has("reads")) return;

  // Without them the calls are what stands in the functions, and go back as they are.
  const Expected<Model> unknown = Model::load(file, test::registry());
  ASSERT_TRUE(unknown.ok()) << unknown.error().to_string();
  EXPECT_TRUE(unknown->carried_nodes().empty()) << to_text(unknown->graph());
  Graph expected = parse_graph(c.placed("reads"), c.file, registry).value(), is = unknown->graph();
  for (Graph* one : {&expected, &is}) normalize(*one, registry);
  EXPECT_TRUE(is.equals(expected)) << to_text(is) << "expected\n" << to_text(expected);
  ASSERT_TRUE(unknown->save(unknown->graph(), file).ok());
  EXPECT_EQ(read_file(file).value(), before);
  const std::vector<double> defined = values_of(graph, registry), read = values_of(unknown->graph(), registry);
  ASSERT_EQ(read.size(), defined.size());
  for (std::size_t i = 0; i < read.size(); ++i) EXPECT_NEAR(read[i], defined[i], 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Files, FunctionCases,
                         ::testing::ValuesIn(test::load_cases("tests/onnx_io/functions.cases",
                                                              {{"operators", CaseValue::section, CaseCount::once},
                                                               {"graph", CaseValue::section, CaseCount::once},
                                                               {"functions", CaseValue::words, CaseCount::optional},
                                                               {"reads", CaseValue::section, CaseCount::optional},
                                                               {"without", CaseValue::words, CaseCount::optional}})),
                         test::case_name);

// ---- functions of any model ----

/// A node of a function: "Op a, b -> y", attributes given or taken from the call ("alpha=@slope").
void add_node(onnx::FunctionProto& function, const std::string& op, const std::vector<std::string>& inputs,
              const std::string& output, const std::string& attribute = "", const std::string& of_call = "",
              const std::string& domain = "") {
  onnx::NodeProto& node = *function.add_node();
  node.set_op_type(op);
  node.set_domain(domain);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  if (attribute.empty()) return;
  onnx::AttributeProto& reference = *node.add_attribute();
  reference.set_name(attribute);
  reference.set_type(onnx::AttributeProto::FLOAT);
  reference.set_ref_attr_name(of_call);
}

onnx::FunctionProto& add_function(onnx::ModelProto& model, const std::string& name,
                                  const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  onnx::FunctionProto& function = *model.add_functions();
  function.set_name(name);
  function.set_domain("mine");
  for (const std::string& input : inputs) function.add_input(input);
  for (const std::string& output : outputs) function.add_output(output);
  function.add_opset_import()->set_version(17);
  auto& own = *function.add_opset_import();
  own.set_domain("mine");
  own.set_version(1);
  return function;
}

/// A model y = relu(f(x, ...)), x of [2, 3].
onnx::ModelProto caller(const std::string& function, const std::vector<std::string>& inputs,
                        const std::vector<OnnxAttribute>& attributes = {}) {
  ModelBuilder builder(17, "caller");
  builder.set_ir_version(8);
  builder.add_opset("mine", 1);
  builder.add_input("x", {2, 3});
  const std::vector<std::int64_t> shape = {3, 2};
  builder.add_initializer("shape", {2}, shape);
  builder.add_node(function, inputs, {"t"}, attributes, "call", "mine");
  builder.add_node("Relu", {"t"}, {"y"}, {}, "relu");
  builder.add_output("y", {2, 3});
  return test::message(builder.serialize());
}

/// The graph, or what is carried and why; written back, the model is the same.
std::string read(const onnx::ModelProto& message) {
  const std::string bytes = message.SerializeAsString();
  const Expected<Model> model = Model::parse(bytes, "caller.onnx", test::registry());
  if (!model) return model.error().to_string();
  const std::string file = ::testing::TempDir() + "/taso_calls_" + std::to_string(::getpid()) + ".onnx";
  EXPECT_TRUE(model->save(model->graph(), file).ok());
  onnx::ModelProto saved = test::read_message(file);
  EXPECT_EQ(saved.graph().node_size(), message.graph().node_size());
  EXPECT_EQ(saved.functions_size(), message.functions_size());
  for (const CarriedNode& carried : model->carried_nodes())
    if (carried.op.starts_with("mine::")) return carried.op + ": " + carried.reason;
  return to_text(model->graph());
}

TEST(FunctionCalls, AreReadWithTheirAttributes) {
  onnx::ModelProto model = caller("Leaky", {"x"}, {{"slope", 0.375}});
  add_node(add_function(model, "Leaky", {"a"}, {"b"}), "Elu", {"a"}, "b", "alpha", "slope");
  const std::string with = read(model);
  EXPECT_THAT(with, HasSubstr("0.75"));
  model.mutable_graph()->mutable_node(0)->clear_attribute();
  const std::string without = read(model);
  EXPECT_THAT(without, ::testing::Not(HasSubstr("0.75"))) << "an attribute that the call does not give is not there";
  EXPECT_THAT(without, HasSubstr("tanh("));
}

TEST(FunctionCalls, AreReadInFunctions) {
  onnx::ModelProto model = caller("Outer", {"x"});
  onnx::FunctionProto& outer = add_function(model, "Outer", {"a"}, {"b"});
  add_node(outer, "Inner", {"a"}, "t", "", "", "mine");
  add_node(outer, "Inner", {"t"}, "b", "", "", "mine");
  add_node(add_function(model, "Inner", {"a"}, {"b"}), "Tanh", {"a"}, "b");
  EXPECT_EQ(read(model), "input x f32[2, 3]\nt0 = tanh(x)\nt1 = tanh(t0)\nt2 = relu(t1)\noutput t2\n");
}

TEST(FunctionCalls, ThatCallThemselvesAreCarried) {
  onnx::ModelProto model = caller("Loop", {"x"});
  add_node(add_function(model, "Loop", {"a"}, {"b"}), "Loop", {"a"}, "b", "", "", "mine");
  EXPECT_EQ(read(model), "mine::Loop: its function calls itself, or is more than 10000 nodes");
}

TEST(FunctionCalls, OfVeryManyNodesAreCarried) {
  onnx::ModelProto model = caller("F0", {"x"});
  for (int i = 0; i < 30; ++i) {
    onnx::FunctionProto& function = add_function(model, "F" + std::to_string(i), {"a"}, {"c"});
    const std::string next = i == 29 ? "" : "mine";
    const std::string op = i == 29 ? "Tanh" : "F" + std::to_string(i + 1);
    add_node(function, op, {"a"}, "b", "", "", next);
    add_node(function, op, {"b"}, "c", "", "", next);
  }
  EXPECT_EQ(read(model), "mine::F0: its function calls itself, or is more than 10000 nodes");
}

TEST(FunctionCalls, ReadConstantsOfTheCaller) {
  onnx::ModelProto model = caller("Shaped", {"x", "shape"});
  add_node(add_function(model, "Shaped", {"a", "s"}, {"b"}), "Reshape", {"a", "s"}, "b");
  model.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  EXPECT_EQ(read(model), "input x f32[2, 3]\nt0 = reshape(x; shape=[3, 2])\nt1 = relu(t0)\noutput t1\n");
}

TEST(FunctionCalls, MayLeaveOutInputs) {
  onnx::ModelProto model = caller("Clipped", {"x"});
  add_node(add_function(model, "Clipped", {"a", "low"}, {"b"}), "Clip", {"t", "low"}, "b");
  onnx::FunctionProto& function = *model.mutable_functions(0);
  add_node(function, "Tanh", {"a"}, "t");
  EXPECT_EQ(read(model), "input x f32[2, 3]\nt0 = tanh(x)\nt1 = relu(t0)\noutput t1\n");
}

TEST(FunctionCalls, AreCarriedWithWhatIsNotUnderstoodInThem) {
  onnx::ModelProto model = caller("Odd", {"x"});
  add_node(add_function(model, "Odd", {"a"}, {"b"}), "Det", {"a"}, "b");
  EXPECT_THAT(read(model), HasSubstr("mine::Odd: its function: Det: "));
}

TEST(FunctionCalls, MayHaveOutputsOfSeveralNodes) {
  onnx::ModelProto model = caller("Two", {"x"});
  model.mutable_graph()->mutable_node(0)->add_output("u");
  onnx::NodeProto& reader = *model.mutable_graph()->add_node();
  reader.set_op_type("Relu");
  reader.add_input("u");
  reader.add_output("v");
  *model.mutable_graph()->add_output() = model.graph().output(0);
  model.mutable_graph()->mutable_output(1)->set_name("v");
  onnx::FunctionProto& function = add_function(model, "Two", {"a"}, {"b", "c"});
  add_node(function, "Tanh", {"a"}, "b");
  add_node(function, "Exp", {"a"}, "c");
  EXPECT_EQ(read(model),
            "input x f32[2, 3]\nt0 = tanh(x)\nt1 = relu(t0)\nt2 = exp(x)\nt3 = relu(t2)\noutput t1\noutput t3\n");
  const Model before = test::value_of(Model::parse(model.SerializeAsString(), "calls.onnx", test::registry()));
  const std::string path = testing::TempDir() + "/taso_calls.onnx";
  // As long as all of it is as it was it is the call, whatever reads it.
  Graph after = before.graph();
  const Value exponential = after.node(after.outputs()[1].node).inputs[0];
  const NodeId absolute = test::value_of(add_op(after, test::registry(), "abs", {}, {exponential}));
  after.set_outputs({after.outputs()[0], {absolute, 0}});
  after.remove_dead();
  test::value_of(before.save(after, path));
  EXPECT_THAT(test::op_types(test::read_message(path)), testing::UnorderedElementsAre("Two", "Relu", "Abs"));
  // Else what is left of it is lowered.
  after.set_outputs({after.outputs()[0], after.outputs()[0]});
  after.remove_dead();
  test::value_of(before.save(after, path));
  EXPECT_THAT(test::op_types(test::read_message(path)), testing::UnorderedElementsAre("Tanh", "Relu", "Identity"));
  // Nor is it the call where what it would read follows from what it makes.
  Graph turned = before.graph();
  const NodeId of_exponential = turned.outputs()[1].node;
  Node tanh = turned.node(turned.node(turned.outputs()[0].node).inputs[0].node);
  const NodeId first = turned.node(turned.outputs()[0].node).inputs[0].node;
  tanh.inputs[0] = {of_exponential, 0};
  turned.replace_node(first, tanh);
  test::value_of(before.save(turned, path));
  EXPECT_THAT(test::op_types(test::read_message(path)), testing::UnorderedElementsAre("Exp", "Relu", "Tanh", "Relu"));
}

TEST(FunctionCalls, WithAConstantAmongSeveralOutputsAreCarried) {
  onnx::ModelProto model = caller("Two", {"x"});
  model.mutable_graph()->mutable_node(0)->add_output("u");
  onnx::FunctionProto& function = add_function(model, "Two", {"a"}, {"b", "c"});
  add_node(function, "Tanh", {"a"}, "b");
  onnx::NodeProto& constant = *function.add_node();
  constant.set_op_type("Constant");
  constant.add_output("c");
  onnx::AttributeProto& value = *constant.add_attribute();
  value.set_name("value_float");
  value.set_type(onnx::AttributeProto::FLOAT);
  value.set_f(1);
  EXPECT_EQ(read(model), "mine::Two: its function: one of its outputs is constant");
}

TEST(FunctionCalls, AreNotReadWhereExtentsAreSymbolic) {
  onnx::ModelProto model = caller("Inner", {"x"});
  add_node(add_function(model, "Inner", {"a"}, {"b"}), "Tanh", {"a"}, "b");
  model.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_param("batch");
  ImportOptions options;
  options.symbol_sizes["batch"] = 2;
  const Model sized = Model::parse(model.SerializeAsString(), "caller.onnx", test::registry(), options).value();
  const auto carried = sized.carried_nodes();
  EXPECT_TRUE(std::any_of(carried.begin(), carried.end(), [](const CarriedNode& one) {
    return one.op == "mine::Inner" && one.reason == "it calls a function of the model, and extents are symbolic";
  }));
}

// What rewriting has changed in a call is written node by node; the function stays, as it is the user's.
TEST(FunctionCalls, ThatAreRewrittenAreWrittenAsTheirNodes) {
  onnx::ModelProto message = caller("Twice", {"x"});
  onnx::FunctionProto& function = add_function(message, "Twice", {"a"}, {"b"});
  add_node(function, "Neg", {"a"}, "t");
  add_node(function, "Tanh", {"t"}, "b");
  const Model model = Model::parse(message.SerializeAsString(), "caller.onnx", test::registry()).value();
  const Graph graph = parse_graph("input x f32[2, 3]\noutput relu(tanh(abs(x)))\n", "graph", test::registry()).value();
  const std::string file = ::testing::TempDir() + "/taso_rewritten_" + std::to_string(::getpid()) + ".onnx";
  ASSERT_TRUE(model.save(graph, file).ok());
  const onnx::ModelProto saved = test::read_message(file);
  EXPECT_THAT(test::op_types(saved), ElementsAre("Abs", "Tanh", "Relu"));
  EXPECT_EQ(saved.functions_size(), 1);
}

}  // namespace
}  // namespace taso
