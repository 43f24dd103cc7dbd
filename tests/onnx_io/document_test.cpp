// The user's file is the document: what is not rewritten goes back as it was.
#include <gmock/gmock.h>

#include <algorithm>

#include "graph/rewrite.h"
#include "onnx_io/tensor_file.h"
#include "tests/onnx_io/fixture.h"

namespace taso {
namespace {

using test::message;
using test::numbers;
using test::op_types;
using test::read_message;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

class DocumentTest : public test::FolderTest {
 protected:
  Model load(const std::string& bytes, const ImportOptions& options = {}) {
    auto model = Model::parse(bytes, path("in.onnx"), test::registry(), options);
    EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().to_string());
    test::expect_well_typed(*model);
    return *model;
  }

  onnx::ModelProto save(const Model& model, const Graph& graph, const SaveOptions& options = {}) {
    const auto saved = model.save(graph, path("out.onnx"), options);
    EXPECT_TRUE(saved.ok()) << (saved.ok() ? "" : saved.error().to_string());
    return read_message(path("out.onnx"));
  }

  /// Reads and writes a model in normal form, as every program does.
  onnx::ModelProto round_trip(const std::string& bytes) {
    const Model model = load(bytes);
    Graph graph = model.graph();
    normalize(graph, test::registry());
    return save(model, graph);
  }
};

std::string small(
    const std::function<void(onnx::ModelProto&)>& edit = [](onnx::ModelProto&) {}, int opset = 13) {
  ModelBuilder builder(opset, "g");
  builder.add_symbolic_input("x", {"1", "2", "5", "5"});
  builder.add_initializer("w", {4, 2, 3, 3}, numbers(72));
  builder.add_initializer("b", {4}, numbers(4));
  builder.add_node("Conv", {"x", "w", "b"}, {"c"}, {{"pads", {1, 1, 1, 1}}}, "conv");
  builder.add_node("Relu", {"c"}, {"y"}, {}, "relu");
  builder.add_output("y", {1, 4, 5, 5});
  onnx::ModelProto proto = message(builder.serialize());
  edit(proto);
  return proto.SerializeAsString();
}

template <class Message>
void add_unknown_field(Message& target, int number, const std::string& text) {
  target.GetReflection()->MutableUnknownFields(&target)->AddLengthDelimited(number, text);
}

TEST_F(DocumentTest, EveryFieldSurvives) {
  const std::string before = small([](onnx::ModelProto& m) {
    m.set_ir_version(11);
    m.set_doc_string("model doc");
    m.set_domain("acme.models");
    m.set_model_version(7);
    m.set_producer_version("1.2");
    auto& entry = *m.add_metadata_props();
    entry.set_key("author");
    entry.set_value("someone");
    auto& opset = *m.add_opset_import();
    opset.set_domain("acme");
    opset.set_version(3);
    auto& function = *m.add_functions();
    function.set_name("F");
    function.set_domain("acme");
    function.add_input("a");
    function.add_output("o");
    add_unknown_field(m, 26, "configuration");
    auto& graph = *m.mutable_graph();
    graph.set_doc_string("graph doc");
    auto& info = *graph.add_value_info();
    info.set_name("c");
    info.set_doc_string("before relu");
    info.mutable_type()->mutable_tensor_type()->set_elem_type(1);
    add_unknown_field(graph, 16, "graph metadata");
    auto& annotation = *graph.add_quantization_annotation();
    annotation.set_tensor_name("w");
    graph.mutable_node(0)->set_doc_string("node doc");
    add_unknown_field(*graph.mutable_node(0), 9, "metadata");
    add_unknown_field(*graph.mutable_node(1), 10, "devices");
    graph.mutable_initializer(0)->set_doc_string("weights");
    add_unknown_field(*graph.mutable_initializer(0), 16, "tensor metadata");
    graph.mutable_input(0)->set_doc_string("image");
  });
  EXPECT_EQ(round_trip(before).SerializeAsString(), message(before).SerializeAsString());
}

TEST_F(DocumentTest, EqualCallsGiveEqualBytes) {
  const Model model = load(small());
  SaveOptions lowered;
  lowered.verbatim = false;
  for (const SaveOptions& options : {SaveOptions{}, lowered}) {
    ASSERT_TRUE(model.save(model.graph(), path("one.onnx"), options).ok());
    ASSERT_TRUE(load(small()).save(model.graph(), path("two.onnx"), options).ok());
    EXPECT_EQ(*read_file(path("one.onnx")), *read_file(path("two.onnx")));
  }
}

TEST_F(DocumentTest, MetadataIsAddedOrReplaced) {
  const Model model = load(small([](onnx::ModelProto& m) {
    auto& entry = *m.add_metadata_props();
    entry.set_key("taso.version");
    entry.set_value("old");
  }));
  SaveOptions options;
  options.metadata = {{"taso.version", "new"}, {"taso.seed", "1"}};
  const onnx::ModelProto after = save(model, model.graph(), options);
  ASSERT_EQ(after.metadata_props_size(), 2);
  EXPECT_EQ(after.metadata_props(0).value(), "new");
  EXPECT_EQ(after.metadata_props(1).key(), "taso.seed");
}

TEST_F(DocumentTest, SymbolicExtentsKeepTheirNames) {
  ModelBuilder builder(13, "g");
  builder.add_symbolic_input("x", {"batch", "3"});
  builder.add_node("Relu", {"x"}, {"y"});
  builder.add_symbolic_output("y", {"batch", "3"});
  const onnx::ModelProto after = round_trip(builder.serialize());
  EXPECT_EQ(after.SerializeAsString(), message(builder.serialize()).SerializeAsString());
  EXPECT_EQ(after.graph().input(0).type().tensor_type().shape().dim(0).dim_param(), "batch");
}

TEST_F(DocumentTest, GivenInputShapesAreDeclared) {
  ModelBuilder builder(13, "g");
  builder.add_symbolic_input("x", {"batch", "3"});
  builder.add_node("Relu", {"x"}, {"y"});
  builder.add_symbolic_output("y", {"batch", "3"});
  ImportOptions options;
  options.input_shapes["x"] = {8, 3};
  const Model model = load(builder.serialize(), options);
  EXPECT_EQ(model.graph().type(model.graph().outputs()[0]).shape, (Shape{8, 3}));
  const onnx::ModelProto after = save(model, model.graph());
  EXPECT_EQ(after.graph().input(0).type().tensor_type().shape().dim(0).dim_value(), 8);
  EXPECT_EQ(after.graph().output(0).type().tensor_type().shape().dim(0).dim_value(), 8);
}

TEST_F(DocumentTest, UnknownOperatorsAreCarriedAndFence) {
  ModelBuilder builder(13, "g");
  builder.add_opset("acme", 1);
  builder.add_input("x", {1, 4});
  builder.add_node("Relu", {"x"}, {"a"}, {}, "before");
  builder.add_node("Twist", {"a", "", "a"}, {"b", "", "c"}, {{"angle", 0.5}}, "twist", "acme");
  builder.add_node("Twist", {"a", "", "a"}, {"d", "", "e"}, {{"angle", 0.5}}, "again", "acme");
  builder.add_node("Det", {"b"}, {"f"}, {}, "det");
  builder.add_node("Add", {"f", "d"}, {"y"}, {}, "after");
  builder.add_symbolic_output("y", {"n"});
  const Model model = load(builder.serialize());
  const std::vector<CarriedNode> carried = model.carried_nodes();
  ASSERT_EQ(carried.size(), 4U);
  EXPECT_EQ(carried[0].op, "acme::Twist");
  EXPECT_EQ(carried[0].node, 1);
  EXPECT_EQ(carried[1].op, "acme::Twist");
  EXPECT_EQ(carried[2].reason, "the operator is not modelled");
  EXPECT_EQ(carried[3].op, "Add");
  EXPECT_EQ(carried[3].reason, "behind node \"again\" (acme::Twist) and 1 more");
  EXPECT_EQ(carried[3].behind, (std::vector<std::int32_t>{2, 3}));
  EXPECT_EQ(round_trip(builder.serialize()).SerializeAsString(), message(builder.serialize()).SerializeAsString());
}

/// If(flag) with branches that read `v` and `w` of the main graph; v = Relu(x) is read by nothing else.
std::string with_branches() {
  ModelBuilder builder(13, "g");
  builder.add_input("x", {2, 2});
  builder.add_input("flag", {}, ElementType::boolean);
  builder.add_initializer("w", {2, 2}, numbers(4));
  builder.add_node("Relu", {"x"}, {"v"}, {}, "relu");
  builder.add_node("Identity", {"w"}, {"alias"}, {}, "id");
  builder.add_node("If", {"flag"}, {"y"}, {}, "if");
  builder.add_output("y", {2, 2});
  onnx::ModelProto proto = message(builder.serialize());
  auto& node = *proto.mutable_graph()->mutable_node(2);
  for (const auto& [branch, captured] : {std::pair{"then_branch", "v"}, {"else_branch", "alias"}}) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(branch);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    auto& body = *attribute.mutable_g();
    body.set_name(branch);
    auto& inner = *body.add_node();
    inner.set_op_type("Neg");
    inner.add_input(captured);
    inner.add_output(std::string(branch) + "_out");
    body.add_output()->set_name(std::string(branch) + "_out");
  }
  return proto.SerializeAsString();
}

TEST_F(DocumentTest, CapturesOfSubgraphsAreUses) {
  const std::string before = with_branches();
  const onnx::ModelProto after = round_trip(before);
  // The Identity of a weight stays: a branch knows the weight by that name.
  EXPECT_EQ(after.SerializeAsString(), message(before).SerializeAsString());
}

TEST_F(DocumentTest, CapturedNameFollowsItsValue) {
  // Two equal nodes become one; the branch still finds its name.
  onnx::ModelProto proto = message(with_branches());
  auto& twin = *proto.mutable_graph()->add_node();
  twin.set_op_type("Relu");
  twin.set_name("twin");
  twin.add_input("x");
  twin.add_output("t");
  proto.mutable_graph()->add_output()->CopyFrom(proto.graph().output(0));
  proto.mutable_graph()->mutable_output(1)->set_name("t");
  const onnx::ModelProto after = round_trip(proto.SerializeAsString());
  EXPECT_THAT(op_types(after), UnorderedElementsAre("Relu", "Identity", "If", "Identity"));
}

TEST_F(DocumentTest, OutputsThatAreInputsAndWeights) {
  ModelBuilder builder(13, "g");
  builder.add_input("x", {2});
  builder.add_initializer("w", {2}, numbers(2));
  builder.add_node("Relu", {"x"}, {"a"}, {}, "relu");
  builder.add_node("Neg", {"a"}, {"b"}, {}, "neg");
  for (const char* name : {"a", "x", "w", "b"}) builder.add_output(name, {2});
  const std::string before = builder.serialize();
  EXPECT_EQ(round_trip(before).SerializeAsString(), message(before).SerializeAsString());
}

TEST_F(DocumentTest, IdentityAndDropoutVanishButOutputsKeepTheirNames) {
  ModelBuilder builder(13, "g");
  builder.add_input("x", {2});
  builder.add_initializer("w", {2}, numbers(2));
  builder.add_node("Identity", {"w"}, {"w2"}, {}, "id");
  builder.add_node("Dropout", {"x"}, {"d", "mask"}, {}, "drop");
  builder.add_node("Mul", {"d", "w2"}, {"m"}, {}, "mul");
  builder.add_node("Identity", {"m"}, {"y"}, {}, "out");
  builder.add_node("Dropout", {"m"}, {"z"}, {}, "drop2");
  for (const char* name : {"y", "z"}) builder.add_output(name, {2});
  const onnx::ModelProto after = round_trip(builder.serialize());
  EXPECT_THAT(op_types(after), ElementsAre("Mul", "Identity"));
  EXPECT_THAT(after.graph().node(0).input(), ElementsAre("x", "w"));
  EXPECT_EQ(after.graph().node(0).output(0), "y");
  EXPECT_EQ(after.graph().node(1).output(0), "z");
}

TEST_F(DocumentTest, ConstantsOfEveryKind) {
  ModelBuilder builder(13, "g");
  builder.add_input("x", {2, 3});
  builder.add_node("Constant", {}, {"f"}, {{"value_float", 2.0}});
  builder.add_node("Constant", {}, {"fs"}, {{"value_floats", std::vector<float>{1, 2, 3}}});
  builder.add_node("Constant", {}, {"i"}, {{"value_ints", {3, 2}}});
  builder.add_node("Constant", {}, {"axis"}, {{"value_int", 0}});
  builder.add_node("Constant", {}, {"text"}, {{"value_string", "unused"}});
  builder.add_node("Constant", {}, {"shape"}, {{"value_ints", {2, 3}}});
  builder.add_node("ConstantOfShape", {"shape"}, {"zeros"});
  builder.add_node("Mul", {"x", "f"}, {"a"});
  builder.add_node("Add", {"a", "fs"}, {"b"});
  builder.add_node("Add", {"b", "zeros"}, {"c"});
  builder.add_node("Reshape", {"c", "i"}, {"d"});
  builder.add_node("Neg", {"d"}, {"e"});
  builder.add_node("Unsqueeze", {"e", "axis"}, {"y"});
  builder.add_output("y", {1, 3, 2});
  const Model model = load(builder.serialize());
  EXPECT_EQ(model.carried_nodes().size(), 1U);  // The string.
  EXPECT_EQ(round_trip(builder.serialize()).SerializeAsString(), message(builder.serialize()).SerializeAsString());
}

TEST_F(DocumentTest, IdentitiesOfShapesAreConstants) {
  ModelBuilder builder(13, "g");
  builder.add_input("x", {2, 3});
  builder.add_initializer("shape", {2}, std::vector<std::int64_t>{3, 2});
  builder.add_node("Identity", {"shape"}, {"same"}, {}, "id");
  builder.add_node("Reshape", {"x", "same"}, {"y"}, {}, "reshape");
  builder.add_output("y", {3, 2});
  EXPECT_TRUE(load(builder.serialize()).carried_nodes().empty());
  const onnx::ModelProto after = round_trip(builder.serialize());
  ASSERT_THAT(op_types(after), ElementsAre("Reshape"));
  EXPECT_EQ(after.graph().node(0).input(1), "shape");
}

TEST_F(DocumentTest, ShapeArithmeticIsFolded) {
  ModelBuilder builder(13, "g");
  builder.add_input("x", {2, 3, 4});
  builder.add_initializer("zero", {}, std::vector<std::int64_t>{0});
  builder.add_initializer("minus_one", {1}, std::vector<std::int64_t>{-1});
  builder.add_initializer("axes", {1}, std::vector<std::int64_t>{0});
  builder.add_node("Shape", {"x"}, {"s"});
  builder.add_node("Gather", {"s", "zero"}, {"n"});
  builder.add_node("Unsqueeze", {"n", "axes"}, {"n1"});
  builder.add_node("Concat", {"n1", "minus_one"}, {"target"}, {{"axis", 0}});
  builder.add_node("Reshape", {"x", "target"}, {"y"}, {}, "reshape");
  builder.add_output("y", {2, 12});
  const Model model = load(builder.serialize());
  EXPECT_TRUE(model.carried_nodes().empty());
  const onnx::ModelProto after = round_trip(builder.serialize());
  ASSERT_THAT(op_types(after), ElementsAre("Reshape"));
  // The node is as it was; what it reads is stored under the name it knows.
  EXPECT_EQ(after.graph().node(0).SerializeAsString(),
            message(builder.serialize()).graph().node(4).SerializeAsString());
}

TEST_F(DocumentTest, InitializersThatAreInputsStay) {
  const std::string before = small([](onnx::ModelProto& m) {
    m.set_ir_version(3);
    for (const char* name : {"w", "b"}) {
      auto& input = *m.mutable_graph()->add_input();
      input.set_name(name);
      input.mutable_type()->mutable_tensor_type()->set_elem_type(1);
    }
  });
  const Model model = load(before);
  ASSERT_EQ(model.inputs().size(), 1U);
  EXPECT_EQ(model.inputs()[0].name, "x");
  EXPECT_EQ(round_trip(before).SerializeAsString(), message(before).SerializeAsString());
  // New initializers are possible from version 4 on; inputs are the same.
  SaveOptions lowered;
  lowered.verbatim = false;
  ModelBuilder builder(13, "g");
  const onnx::ModelProto after = save(model, model.graph(), lowered);
  EXPECT_EQ(after.graph().input_size(), 3);
  EXPECT_EQ(after.graph().initializer_size(), 2);
}

TEST_F(DocumentTest, UnusedInitializersStayButUnneededOnesGo) {
  ModelBuilder builder(13, "g");
  builder.add_input("x", {2, 3});
  builder.add_initializer("w", {4, 3}, numbers(12));
  builder.add_initializer("unused", {2}, numbers(2));
  builder.add_initializer("perm_source", {2}, std::vector<std::int64_t>{1, 0});
  builder.add_node("Transpose", {"w"}, {"wt"});
  builder.add_node("MatMul", {"x", "wt"}, {"y"});
  builder.add_output("y", {2, 4});
  const onnx::ModelProto after = round_trip(builder.serialize());
  EXPECT_THAT(op_types(after), ElementsAre("MatMul"));
  std::vector<std::string> names;
  for (const auto& tensor : after.graph().initializer()) names.push_back(tensor.name());
  EXPECT_THAT(names, ElementsAre("unused", "perm_source", "wt"));
}

TEST_F(DocumentTest, RepeatedWeightsStayRepeated) {
  // A weight of one repeated element is never expanded, in memory or in the file.
  ModelBuilder builder(13, "g");
  builder.add_input("x", {1, 60000});
  builder.add_node("Constant", {}, {"shape"}, {{"value_ints", {50000, 60000}}});
  builder.add_node("ConstantOfShape", {"shape"}, {"w"});
  builder.add_node("Transpose", {"w"}, {"wt"});
  builder.add_node("MatMul", {"x", "wt"}, {"y"});
  builder.add_output("y", {1, 50000});
  const Model model = load(builder.serialize());
  const onnx::ModelProto after = save(model, model.graph());
  EXPECT_THAT(op_types(after), ElementsAre("ConstantOfShape", "MatMul"));
  EXPECT_LT(after.ByteSizeLong(), 1000U);
}

TEST_F(DocumentTest, OutputMayReplaceTheInput) {
  ASSERT_TRUE(write_file_atomically(path("m.onnx"), small()).ok());
  const auto model = Model::load(path("m.onnx"), test::registry());
  ASSERT_TRUE(model.ok());
  SaveOptions options;
  options.external_data = true;
  options.external_minimum = 1;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(model->save(model->graph(), path("m.onnx"), options).ok());
  const auto again = Model::load(path("m.onnx"), test::registry());
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_TRUE(again->graph().equals(model->graph()));
  // And from external data to itself.
  ASSERT_TRUE(again->save(again->graph(), path("m.onnx")).ok());
  EXPECT_TRUE(Model::load(path("m.onnx"), test::registry())->graph().equals(model->graph()));
}

TEST_F(DocumentTest, ExternalDataBothWays) {
  const Model model = load(small());
  SaveOptions options;
  options.external_data = true;
  options.external_minimum = 100;
  const auto report = model.save(model.graph(), path("out.onnx"), options);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->external_data);
  EXPECT_EQ(report->weight_bytes, 288 + 16);
  const onnx::ModelProto stored = read_message(path("out.onnx"));
  EXPECT_EQ(stored.graph().initializer(0).data_location(), onnx::TensorProto::EXTERNAL);
  EXPECT_EQ(stored.graph().initializer(0).external_data(0).value(), "out.onnx.data");
  EXPECT_FALSE(stored.graph().initializer(0).has_raw_data());
  EXPECT_EQ(stored.graph().initializer(1).data_location(), onnx::TensorProto::DEFAULT);
  EXPECT_EQ(read_file(path("out.onnx.data"))->size(), 288U);

  const auto again = Model::load(path("out.onnx"), test::registry());
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_TRUE(again->graph().equals(model.graph()));
  // A model with external data is written with external data, beside the new file.
  std::filesystem::create_directory(path("elsewhere"));
  ASSERT_TRUE(again->save(again->graph(), path("elsewhere/copy.onnx")).ok());
  std::filesystem::remove(path("out.onnx.data"));
  const auto copy = Model::load(path("elsewhere/copy.onnx"), test::registry());
  EXPECT_TRUE(copy.ok());
  const auto lost = Model::load(path("out.onnx"), test::registry());
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().message,
            "initializer \"w\": cannot open external data \"out.onnx.data\": No such file or directory");
}

TEST_F(DocumentTest, WeightsThatAreNotThereAreOnlyShapes) {
  ModelBuilder model(17, "absent");
  model.add_input("x", {2, 4});
  model.add_absent_initializer("w", {4, 8}, "absent.weights");
  model.add_absent_initializer("low", {}, "absent.weights");
  model.add_node("MatMul", {"x", "w"}, {"y"});
  model.add_node("Clip", {"y", "low"}, {"z"});
  model.add_output("z", {2, 8});
  const ImportOptions import{.input_shapes = {}, .symbol_sizes = {}, .absent_weights = true};
  const Model read = load(model.serialize(), import);
  bool found = false;
  for (const NodeId id : read.graph().topological_order()) {
    const Node& node = read.graph().node(id);
    if (node.kind == NodeKind::constant && !node.constant->has_data() && node.constant->name() == "w") found = true;
  }
  EXPECT_TRUE(found);
  // What needs a number is carried.
  ASSERT_EQ(read.carried_nodes().size(), 1U);
  EXPECT_EQ(read.carried_nodes()[0].reason, "input 1 is only a shape: its data is not there");
  const auto saved = read.save(read.graph(), path("out.onnx"));
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(saved.error().message, "initializer \"w\" is only a shape: without its data the model cannot be written");
}

TEST_F(DocumentTest, LargeModelsGetExternalData) {
  const Model model = load(small());
  SaveOptions options;
  options.inline_limit = 400;
  options.external_minimum = 100;
  const auto report = model.save(model.graph(), path("out.onnx"), options);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->external_data);
  options.inline_limit = 4000;
  EXPECT_FALSE(model.save(model.graph(), path("out.onnx"), options)->external_data);
}

TEST_F(DocumentTest, ExternalTensorsInAttributesAndSubgraphsComeAlong) {
  const std::string values(400, 'v');
  ASSERT_TRUE(write_file_atomically(path("in.bin"), values).ok());
  onnx::ModelProto proto = message(with_branches());
  auto make_external = [](onnx::TensorProto& tensor) {
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_dims(100);
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    auto& entry = *tensor.add_external_data();
    entry.set_key("location");
    entry.set_value("in.bin");
  };
  auto& constant = *proto.mutable_graph()->add_node();
  constant.set_op_type("Constant");
  constant.add_output("k");
  constant.add_attribute()->set_name("value");
  constant.mutable_attribute(0)->set_type(onnx::AttributeProto::TENSOR);
  make_external(*constant.mutable_attribute(0)->mutable_t());
  proto.mutable_graph()->add_output()->set_name("k");
  auto& inner = *proto.mutable_graph()->mutable_node(2)->mutable_attribute(0)->mutable_g()->add_initializer();
  inner.set_name("inner");
  make_external(inner);
  ASSERT_TRUE(write_file_atomically(path("in.onnx"), proto.SerializeAsString()).ok());
  const auto model = Model::load(path("in.onnx"), test::registry());
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  std::filesystem::create_directory(path("elsewhere"));
  ASSERT_TRUE(model->save(model->graph(), path("elsewhere/out.onnx")).ok());
  const onnx::ModelProto after = read_message(path("elsewhere/out.onnx"));
  for (const auto& node : after.graph().node()) {
    if (node.op_type() == "Constant") {
      EXPECT_EQ(node.attribute(0).t().raw_data(), values);
    }
    if (node.op_type() == "If") {
      EXPECT_EQ(node.attribute(0).g().initializer(0).raw_data(), values);
    }
  }
}

TEST_F(DocumentTest, LargeTensorsInAttributesSurvive) {
  // Larger than what the parser leaves in the message: taken from the file and put back.
  ModelBuilder builder(13, "g");
  builder.add_input("x", {300});
  builder.add_node("Relu", {"x"}, {"r"});
  builder.add_node("Add", {"r", "k"}, {"y"}, {}, "add");
  builder.add_output("y", {300});
  onnx::ModelProto proto = message(builder.serialize());
  auto& constant = *proto.mutable_graph()->add_node();
  constant.set_op_type("Constant");
  constant.set_name("big");
  constant.add_output("k");
  constant.add_attribute()->set_name("value");
  constant.mutable_attribute(0)->set_type(onnx::AttributeProto::TENSOR);
  auto& tensor = *constant.mutable_attribute(0)->mutable_t();
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(300);
  for (int i = 0; i < 300; ++i) tensor.add_float_data(static_cast<float>(i));
  const Model model = load(proto.SerializeAsString());
  EXPECT_TRUE(model.carried_nodes().empty());
  // The file's nodes were not in order: the constant is written where it can be read.
  const onnx::ModelProto after = save(model, model.graph());
  EXPECT_THAT(op_types(after), ElementsAre("Relu", "Constant", "Add"));
  EXPECT_EQ(after.graph().node(1).SerializeAsString(), proto.graph().node(2).SerializeAsString());
}

TEST_F(DocumentTest, WeightsOfOtherTypesAreCarried) {
  onnx::ModelProto proto = message(small());
  auto& half = *proto.mutable_graph()->add_initializer();
  half.set_name("half");
  half.set_data_type(onnx::TensorProto::FLOAT16);
  half.add_dims(2);
  half.add_int32_data(15360);
  half.add_int32_data(16384);
  auto& tiny = *proto.mutable_graph()->add_initializer();
  tiny.set_name("tiny");
  tiny.set_data_type(22);  // INT4, two to a byte.
  tiny.add_dims(3);
  tiny.set_raw_data("ab");
  auto& words = *proto.mutable_graph()->add_initializer();
  words.set_name("words");
  words.set_data_type(onnx::TensorProto::STRING);
  words.add_dims(1);
  words.add_string_data("hello");
  auto& sparse = *proto.mutable_graph()->add_sparse_initializer();
  sparse.mutable_values()->set_name("sparse");
  auto& node = *proto.mutable_graph()->add_node();
  node.set_op_type("Mystery");
  node.add_output("z");
  for (const char* name : {"half", "tiny", "words", "sparse"}) node.add_input(name);
  proto.mutable_graph()->add_output()->set_name("z");
  EXPECT_EQ(round_trip(proto.SerializeAsString()).SerializeAsString(), proto.SerializeAsString());
}

TEST_F(DocumentTest, NodesOutOfOrderAreSorted) {
  const onnx::ModelProto after =
      round_trip(small([](onnx::ModelProto& m) { m.mutable_graph()->mutable_node()->SwapElements(0, 1); }));
  EXPECT_THAT(op_types(after), ElementsAre("Conv", "Relu"));
}

TEST_F(DocumentTest, OldOpsetsOfTheSameOperatorsAreReadAsOneThatIsUnderstood) {
  const std::string bytes = small([](onnx::ModelProto&) {}, 6);
  const Model model = load(bytes);
  EXPECT_TRUE(model.warnings().empty());
  EXPECT_TRUE(model.carried_nodes().empty());
  EXPECT_EQ(model.opset(), 10);
  EXPECT_EQ(round_trip(bytes).opset_import(0).version(), 6) << "nothing was rewritten";
  SaveOptions anew;
  anew.verbatim = false;
  EXPECT_EQ(save(model, model.graph(), anew).opset_import(0).version(), 10);
}

TEST_F(DocumentTest, OldOpsetsAreCarriedWithAWarning) {
  const Model model = load(small([](onnx::ModelProto&) {}, 5));
  ASSERT_EQ(model.warnings().size(), 1U);
  EXPECT_EQ(model.warnings()[0],
            "opset 5 is older than 7, the oldest that is understood; every node is carried as it is");
  EXPECT_EQ(model.carried_nodes().size(), 2U);
  const Model newer = load(small([](onnx::ModelProto&) {}, 99));
  ASSERT_EQ(newer.warnings().size(), 1U);
  EXPECT_EQ(newer.warnings()[0],
            "opset 99 is newer than 24, the newest that is known here; operators are read as of that one");
}

TEST_F(DocumentTest, RewrittenValueKeepsItsNameForItsReaders) {
  // y = Neg(Relu(x)): Relu replaced by clip; Neg goes back byte for byte.
  ModelBuilder builder(13, "g");
  builder.add_input("x", {4});
  builder.add_node("Relu", {"x"}, {"r"}, {}, "relu");
  builder.add_node("Neg", {"r"}, {"y"}, {}, "neg");
  builder.add_output("y", {4});
  const Model model = load(builder.serialize());
  Graph graph = model.graph();
  Value relu;
  for (NodeId id = 0; id < graph.id_bound(); ++id)
    if (graph.contains(id) && graph.node(id).is_op("relu")) relu = {id, 0};
  const auto clip =
      add_op(graph, test::registry(), "clip", {{"min", 0.0}, {"max", 6.0}}, {Value{graph.inputs()[0], 0}});
  ASSERT_TRUE(clip.ok());
  graph.replace_uses(relu, {*clip, 0});
  graph.remove_dead();
  const onnx::ModelProto after = save(model, graph);
  EXPECT_THAT(op_types(after), ElementsAre("Clip", "Neg"));
  EXPECT_EQ(after.graph().node(0).output(0), "r");
  EXPECT_EQ(after.graph().node(1).SerializeAsString(),
            message(builder.serialize()).graph().node(1).SerializeAsString());
}

TEST_F(DocumentTest, NodesThatWouldReadAnotherShapeAreLowered) {
  // y = f x, f the elements of w in a row, where that reshape merges with the one that makes a matrix of the vector f:
  // what the product's expansion reads now is [3, 5], which MatMul does not take.
  ModelBuilder builder(13, "g");
  builder.add_input("x", {15, 2});
  builder.add_input("w", {3, 5});
  const std::vector<std::int64_t> row = {15};
  builder.add_initializer("row", {1}, row);
  builder.add_node("Reshape", {"w", "row"}, {"f"}, {}, "reshape");
  builder.add_node("MatMul", {"f", "x"}, {"y"}, {}, "product");
  builder.add_output("y", {2});
  const Model model = load(builder.serialize());
  Graph graph = model.graph();
  for (NodeId id = 0; id < graph.id_bound(); ++id)
    if (graph.contains(id) && graph.node(id).is_op("reshape") &&
        graph.node(graph.node(id).inputs[0].node).is_op("reshape"))
      graph.set_inputs(id, {Value{graph.inputs()[1], 0}});
  graph.remove_dead();
  const onnx::ModelProto after = save(model, graph);
  EXPECT_THAT(op_types(after), ElementsAre("Reshape", "MatMul", "Reshape"));
  EXPECT_TRUE(Model::load(path("out.onnx"), test::registry()).ok());
}

TEST_F(DocumentTest, OnlyGraphsOfTheModelAreSaved) {
  const Model model = load(small());
  Graph other;
  other.add_input("x", {ElementType::f32, {1, 2, 5, 5}, true});
  other.add_output({other.inputs()[0], 0});
  EXPECT_EQ(model.save(other, path("out.onnx")).error().message, "the graph to be saved has another type of output 0");
  Graph renamed;
  renamed.add_input("z", {ElementType::f32, {1, 2, 5, 5}, true});
  renamed.add_output({renamed.inputs()[0], 0});
  EXPECT_EQ(model.save(renamed, path("out.onnx")).error().message,
            "the graph to be saved has another input than \"x\"");
  EXPECT_EQ(model.save(Graph{}, path("out.onnx")).error().message,
            "the graph to be saved has other inputs or outputs than the model");
  EXPECT_FALSE(std::filesystem::exists(path("out.onnx")));
}

TEST_F(DocumentTest, UnwritablePlaces) {
  const Model model = load(small());
  const auto saved = model.save(model.graph(), path("absent/out.onnx"));
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(saved.error().to_string(),
            path("absent/out.onnx") + ": cannot write: the folder '" + path("absent") + "' does not exist");
}

class TensorFileTest : public test::FolderTest {};

TEST_F(TensorFileTest, RoundTrip) {
  const std::vector<float> values = {1, -2, 0.5F};
  ASSERT_TRUE(save_tensor(path("t.pb"), "t", *ConstantData::of_floats({3, 1}, values)).ok());
  const auto loaded = load_tensor(path("t.pb"));
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ((*loaded)->type().shape, (Shape{3, 1}));
  EXPECT_EQ((*loaded)->to_floats(), values);
}

TEST_F(TensorFileTest, Errors) {
  ASSERT_TRUE(write_file_atomically(path("bad.pb"), "\xff\xff").ok());
  EXPECT_EQ(load_tensor(path("bad.pb")).error().to_string(), path("bad.pb") + ": not an ONNX tensor");
  onnx::TensorProto tensor;
  tensor.set_data_type(1);
  tensor.add_dims(3);
  ASSERT_TRUE(write_file_atomically(path("short.pb"), tensor.SerializeAsString()).ok());
  EXPECT_EQ(load_tensor(path("short.pb")).error().message,
            "not an ONNX tensor: shape [3] of type FLOAT needs 3 values, float_data has 0");
  tensor.set_data_type(onnx::TensorProto::STRING);
  for (int i = 0; i < 3; ++i) tensor.add_string_data("s");
  ASSERT_TRUE(write_file_atomically(path("s.pb"), tensor.SerializeAsString()).ok());
  EXPECT_EQ(load_tensor(path("s.pb")).error().message, "tensors of STRING cannot be read");
}

}  // namespace
}  // namespace taso
