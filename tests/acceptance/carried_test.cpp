// Models of which taso understands a part, through the programs: half precision, quantisation, control flow that
// captures values; and one network at every opset. What is not understood stays as it was, what is understood is
// optimized around it, and the parts between carried nodes compute the same (taso-run --compare).
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/acceptance/partly_understood.h"

namespace taso::acceptance {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(Carried, HalfPrecision) {
  ModelBuilder builder(17, "half");
  builder.add_input("x", {2, 6});
  builder.add_initializer("scale", {6}, numbers(6));
  builder.add_node("Cast", {"x"}, {"x16"}, {{"to", 10}}, "to_half");
  builder.add_node("Mul", {"x16", "scale16"}, {"m16"}, {}, "half_mul");
  builder.add_node("Softmax", {"m16"}, {"s16"}, {{"axis", -1}}, "half_softmax");
  builder.add_node("Cast", {"s16"}, {"s"}, {{"to", 1}}, "to_float");
  add_siblings(builder, "s", 6);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_output("y", {2, 4});
  builder.add_output("s16", {2, 6}, ElementType::f16);
  onnx::ModelProto model = message(builder.serialize());
  auto& half = *model.mutable_graph()->mutable_initializer(0);
  half.set_name("scale16");
  half.set_data_type(onnx::TensorProto::FLOAT16);
  half.set_raw_data(std::string("\x00\x3c\x00\x38\x00\x34\x00\xbc\x00\x40\x66\x2e", 12));
  const onnx::ModelProto after = optimize(model);
  const std::vector<std::string> kept = {"Cast", "Mul", "Softmax"};
  EXPECT_EQ(nodes(after, kept), nodes(model, kept));
  EXPECT_EQ(nodes(after, kept).size(), 4U);
  EXPECT_EQ(counts(after)["MatMul"], 1);
  const auto place = std::find_if(after.graph().initializer().begin(), after.graph().initializer().end(),
                                  [](const auto& tensor) { return tensor.name() == "scale16"; });
  ASSERT_NE(place, after.graph().initializer().end());
  EXPECT_EQ(place->SerializeAsString(), half.SerializeAsString());
}

TEST_F(Carried, WhatIsInHalfPrecisionStaysInIt) {
  ModelBuilder builder(17, "half");
  builder.add_input("x", {2, 6}, ElementType::f16);
  builder.add_input("w", {6, 6}, ElementType::f16);
  builder.add_node("MatMul", {"x", "w"}, {"a"}, {}, "a");
  builder.add_node("Relu", {"a"}, {"b"}, {}, "b");
  builder.add_node("Transpose", {"b"}, {"y"}, {{"perm", {1, 0}}}, "c");
  builder.add_output("y", {6, 2}, ElementType::f16);
  const onnx::ModelProto model = message(builder.serialize());
  const onnx::ModelProto after = optimize(model);
  EXPECT_EQ(after.graph().output(0).SerializeAsString(), model.graph().output(0).SerializeAsString());
  for (const auto& tensor : after.graph().initializer()) EXPECT_EQ(tensor.data_type(), onnx::TensorProto::FLOAT16);
}

// A Where that takes all elements from one side needs the other one no more: the node cannot stay as it was.
TEST_F(Carried, WhatAConstantConditionHides) {
  ModelBuilder builder(17, "hidden");
  builder.add_input("x", {3, 6});
  builder.add_input("z", {1});
  builder.add_boolean_initializer("always", {4}, std::vector<std::uint8_t>{1, 1, 1, 1});
  add_siblings(builder, "x", 6);
  builder.add_node("Mul", {"l", "r"}, {"hidden"}, {}, "hidden");
  builder.add_node("Where", {"always", "z", "hidden"}, {"y"}, {}, "where");
  builder.add_output("y", {3, 4});
  const onnx::ModelProto after = optimize(message(builder.serialize()));
  EXPECT_EQ(counts(after)["MatMul"], 0);
  EXPECT_EQ(counts(after)["Where"], 0);
}

TEST_F(Carried, QuantizeAndDequantize) {
  ModelBuilder builder(17, "qdq");
  builder.add_input("x", {2, 6});
  for (const char* name : {"sx", "sw"}) builder.add_initializer(name, {}, std::vector<float>{0.05F});
  builder.add_node("QuantizeLinear", {"x", "sx", "zx"}, {"xq"}, {}, "q");
  builder.add_node("DequantizeLinear", {"xq", "sx", "zx"}, {"xd"}, {}, "dq");
  builder.add_node("DequantizeLinear", {"wq", "sw"}, {"wd"}, {{"axis", 1}}, "dqw");
  builder.add_node("MatMul", {"xd", "wd"}, {"p"}, {}, "quantized_product");
  builder.add_node("Relu", {"p"}, {"pr"}, {}, "relu");
  add_siblings(builder, "xd", 6);
  builder.add_node("QuantizeLinear", {"pr", "sx", "zx"}, {"prq"}, {}, "q2");
  builder.add_node("DequantizeLinear", {"prq", "sx", "zx"}, {"prd"}, {}, "dq2");
  builder.add_node("Add", {"l", "r"}, {"s"}, {}, "sum");
  builder.add_node("Concat", {"prd", "s"}, {"y"}, {{"axis", 1}}, "concat");
  builder.add_output("y", {2, 8});
  onnx::ModelProto model = message(builder.serialize());
  auto& zero = *model.mutable_graph()->add_initializer();
  zero.set_name("zx");
  zero.set_data_type(onnx::TensorProto::UINT8);
  zero.set_raw_data("\x80");
  auto& weights = *model.mutable_graph()->add_initializer();
  weights.set_name("wq");
  weights.set_data_type(onnx::TensorProto::INT8);
  weights.add_dims(6);
  weights.add_dims(4);
  std::string bytes;
  for (int i = 0; i < 24; ++i) bytes += static_cast<char>(i * 11 - 120);
  weights.set_raw_data(bytes);
  const onnx::ModelProto after = optimize(model);
  const std::vector<std::string> kept = {"QuantizeLinear", "DequantizeLinear"};
  EXPECT_EQ(nodes(after, kept), nodes(model, kept));
  EXPECT_EQ(nodes(after, kept).size(), 5U);
  // The products by constants became one; no rule is about that by dequantised weights, which stay integers.
  EXPECT_EQ(counts(after)["MatMul"], 2);
  EXPECT_EQ(std::count_if(after.graph().initializer().begin(), after.graph().initializer().end(),
                          [](const auto& tensor) { return tensor.data_type() == onnx::TensorProto::INT8; }),
            1);
}

// Nor is one about dequantised weights that are transposed before they are read.
TEST_F(Carried, TransposedDequantizedWeights) {
  ModelBuilder builder(17, "transposed");
  builder.add_input("x", {4, 16});
  builder.add_initializer("scale", {}, std::vector<float>{0.05F});
  builder.add_initializer("bias", {16}, std::vector<float>(16, 0.5F));
  for (const std::string which : {"1", "2"}) {
    builder.add_node("DequantizeLinear", {"q" + which, "scale"}, {"w" + which}, {}, "dq" + which);
    builder.add_node("Gemm", {"x", "w" + which, "bias"}, {"p" + which}, {{"transB", 1}}, "product" + which);
    builder.add_node("Relu", {"p" + which}, {"r" + which}, {}, "relu" + which);
  }
  builder.add_node("Add", {"r1", "r2"}, {"y"}, {}, "sum");
  builder.add_output("y", {4, 16});
  onnx::ModelProto model = message(builder.serialize());
  for (const int which : {1, 2}) {
    auto& weights = *model.mutable_graph()->add_initializer();
    weights.set_name("q" + std::to_string(which));
    weights.set_data_type(onnx::TensorProto::INT8);
    for (int axis = 0; axis < 2; ++axis) weights.add_dims(16);
    std::string bytes;
    for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i * which * 11 % 255 - 127);
    weights.set_raw_data(bytes);
  }
  const std::vector<std::string> kept = {"DequantizeLinear", "Gemm"};
  const onnx::ModelProto after = optimize(model);
  EXPECT_EQ(nodes(after, kept), nodes(model, kept));
  EXPECT_EQ(counts(after)["Gemm"], 2);
  EXPECT_EQ(counts(after)["Transpose"], 0);
  EXPECT_EQ(counts(after)["Concat"], 0);
}

// A condition, and branches that read names of the main graph.
void add_condition(onnx::ModelProto& model, const std::string& op_type, const std::vector<std::string>& captured) {
  auto& node = *model.mutable_graph()->add_node();
  node.set_op_type("If");
  node.set_name("choice");
  node.add_input("flag");
  node.add_output("chosen");
  for (std::size_t i = 0; i < 2; ++i) {
    auto& branch = *node.add_attribute();
    branch.set_name(i == 0 ? "then_branch" : "else_branch");
    branch.set_type(onnx::AttributeProto::GRAPH);
    branch.mutable_g()->set_name(branch.name());
    auto& inner = *branch.mutable_g()->add_node();
    inner.set_op_type(op_type);
    inner.add_input(captured[i]);
    inner.add_output("inner" + std::to_string(i));
    branch.mutable_g()->add_output()->set_name("inner" + std::to_string(i));
  }
}

TEST_F(Carried, BranchesReadRewrittenValues) {
  ModelBuilder builder(17, "captures");
  builder.add_input("x", {2, 6});
  builder.add_input("flag", {}, ElementType::boolean);
  add_siblings(builder, "x", 6);
  builder.add_node("Add", {"l", "r"}, {"s"}, {}, "sum");
  builder.add_node("Neg", {"s"}, {"y"}, {}, "minus");
  builder.add_output("y", {2, 4});
  builder.add_symbolic_output("chosen", {"n", "m"});
  onnx::ModelProto model = message(builder.serialize());
  add_condition(model, "Relu", {"s", "y"});
  const onnx::ModelProto after = optimize(model);
  EXPECT_EQ(nodes(after, {"If"}), nodes(model, {"If"}));
  EXPECT_EQ(counts(after)["MatMul"], 1);
}

TEST_F(Carried, LoopBodiesReadRewrittenValues) {
  ModelBuilder builder(17, "loop");
  builder.add_input("x", {2, 6});
  add_siblings(builder, "x", 6);
  const std::vector<std::int64_t> three = {3};
  builder.add_initializer("trips", {}, std::span<const std::int64_t>(three));
  builder.add_node("Add", {"l", "r"}, {"start"}, {}, "sum");
  builder.add_node("Loop", {"trips", "", "start"}, {"y"}, {}, "loop");
  builder.add_output("y", {2, 4});
  onnx::ModelProto model = message(builder.serialize());
  auto& loop = *model.mutable_graph()->mutable_node(model.graph().node_size() - 1);
  auto& body = *loop.add_attribute();
  body.set_name("body");
  body.set_type(onnx::AttributeProto::GRAPH);
  onnx::GraphProto& inner = *body.mutable_g();
  inner.set_name("body");
  for (const char* name : {"i", "go", "state"}) inner.add_input()->set_name(name);
  auto& same = *inner.add_node();
  same.set_op_type("Identity");
  same.add_input("go");
  same.add_output("go_on");
  auto& add = *inner.add_node();
  add.set_op_type("Add");
  add.add_input("state");
  add.add_input("start");
  add.add_output("next");
  for (const char* name : {"go_on", "next"}) inner.add_output()->set_name(name);
  const onnx::ModelProto after = optimize(model);
  EXPECT_EQ(counts(after)["Loop"], 1);
  EXPECT_EQ(counts(after)["MatMul"], 1);
  for (const auto& node : after.graph().node())
    if (node.op_type() == "Loop") {
      EXPECT_EQ(node.attribute(0).SerializeAsString(), body.SerializeAsString());
    }
}

class Opset : public Carried, public testing::WithParamInterface<int> {};

TEST_P(Opset, OneNetworkAtEveryOpset) {
  const int opset = GetParam();
  ModelBuilder builder(opset, "opsets");
  builder.add_input("x", {1, 3, 8, 8});
  for (const char* side : {"l", "r"}) {
    const std::string name = side;
    builder.add_initializer("k" + name, {4, 3, 3, 3}, numbers(108, side[0] == 'l' ? -0.4F : 0.1F));
    builder.add_initializer("b" + name, {4}, numbers(4));
    builder.add_node("Conv", {"x", "k" + name, "b" + name}, {"c" + name}, {{"pads", {1, 1, 1, 1}}}, "conv_" + name);
    builder.add_node("Relu", {"c" + name}, {"a" + name}, {}, "relu_" + name);
  }
  builder.add_node("Concat", {"al", "ar"}, {"both"}, {{"axis", 1}}, "concat");
  builder.add_node("MaxPool", {"both"}, {"pooled"}, {{"kernel_shape", {2, 2}}, {"strides", {2, 2}}}, "pool");
  builder.add_node("Flatten", {"pooled"}, {"flat"}, {{"axis", 1}}, "flatten");
  add_siblings(builder, "flat", 128);
  builder.add_node("Add", {"l", "r"}, {"sum"}, {}, "sum");
  builder.add_node("Softmax", {"sum"}, {"y"}, {{"axis", 1}}, "softmax");
  builder.add_output("y", {1, 4});
  const onnx::ModelProto model = message(builder.serialize());
  const onnx::ModelProto after = optimize(model);
  EXPECT_EQ(after.opset_import(0).version(), opset);
  EXPECT_EQ(counts(after)["Conv"], 1);
  EXPECT_EQ(counts(after)["MatMul"] + counts(after)["Gemm"], 1);
  EXPECT_THAT(warnings_, Not(HasSubstr("opset")));
}

INSTANTIATE_TEST_SUITE_P(SevenToCurrent, Opset, testing::Range(7, 25));

}  // namespace
}  // namespace taso::acceptance
