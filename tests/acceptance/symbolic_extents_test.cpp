// Models with symbolic extents, through the programs: one file for all sizes (taso-run --compare at some), and steps
// that do not hold at all sizes are not done.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

#include "tests/acceptance/symbolic.h"

namespace taso::acceptance {
namespace {

using testing::HasSubstr;
using testing::Not;

onnx::ModelProto with_symbolic_batch() {
  ModelBuilder builder(17, "dynamic");
  builder.add_symbolic_input("x", {"batch", "6"});
  add_siblings(builder, "x", 6);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {"batch", "4"});
  return message(builder.serialize());
}

TEST_F(Symbolic, ABatchIsKept) {
  const onnx::ModelProto after = optimize_for_all(with_symbolic_batch(), {{"x:1,6"}, {"x:2,6"}, {"x:64,6"}});
  EXPECT_EQ(counts(after)["MatMul"], 1);
  EXPECT_THAT(report_,
              HasSubstr("symbolic extents are kept: the result is for all sizes; costs are those at batch=2\n"));
  EXPECT_THAT(report_, HasSubstr("check at batch="));
  EXPECT_THAT(verify().output, HasSubstr("byte for byte, for all sizes of its symbolic extents"));
  EXPECT_EQ(warnings_, "");
}

TEST_F(Symbolic, CostsAreThoseOfAnAssumedSize) {
  const onnx::ModelProto after =
      optimize_for_all(with_symbolic_batch(), {{"x:1,6"}, {"x:3,6"}}, {"--assume", "batch=64"});
  EXPECT_EQ(counts(after)["MatMul"], 1);
  EXPECT_THAT(report_, HasSubstr("costs are those at batch=64\n"));
}

TEST_F(Symbolic, ABatchIsSpecialised) {
  const onnx::ModelProto after = optimize(with_symbolic_batch(), {"--input-shape", "x:5,6"});
  EXPECT_EQ(counts(after)["MatMul"], 1);
  EXPECT_EQ(after.graph().input(0).type().tensor_type().shape().dim(0).dim_value(), 5);
  EXPECT_EQ(after.graph().output(0).type().tensor_type().shape().dim(0).dim_value(), 5);
}

TEST_F(Symbolic, AnExtentWithoutAName) {
  ModelBuilder builder(17, "nameless");
  builder.add_symbolic_input("x", {"", "6"});
  add_siblings(builder, "x", 6);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {"", "4"});
  const onnx::ModelProto after = optimize_for_all(message(builder.serialize()), {{"x:1,6"}, {"x:7,6"}});
  EXPECT_EQ(counts(after)["MatMul"], 1);
  EXPECT_THAT(report_, HasSubstr("costs are those at x[0]=2"));
}

// The numbers [batch, sequence, tail...] as PyTorch exports them: each read from the shape of `x`, then concatenated.
void add_shape(ModelBuilder& model, const std::string& name, const std::vector<std::int64_t>& tail) {
  std::vector<std::string> parts;
  for (const std::string axis : {"0", "1"}) {
    const std::string part = name + "_" + axis;
    model.add_node("Shape", {"x"}, {part + "_shape"});
    model.add_initializer(part + "_index", {}, std::vector<std::int64_t>{axis == "0" ? 0 : 1});
    model.add_node("Gather", {part + "_shape", part + "_index"}, {part + "_scalar"}, {{"axis", 0}});
    model.add_initializer(part + "_axes", {1}, std::vector<std::int64_t>{0});
    model.add_node("Unsqueeze", {part + "_scalar", part + "_axes"}, {part});
    parts.push_back(part);
  }
  model.add_initializer(name + "_tail", {static_cast<std::int64_t>(tail.size())}, tail);
  parts.push_back(name + "_tail");
  model.add_node("Concat", parts, {name}, {{"axis", 0}});
}

TEST_F(Symbolic, AttentionOfAnyBatchAndLength) {
  ModelBuilder builder(17, "attention");
  builder.add_symbolic_input("x", {"batch", "sequence", "8"});
  for (const std::string part : {"q", "k", "v"}) {
    builder.add_initializer("w" + part, {8, 8}, numbers(64, part == "q" ? -0.4F : part == "k" ? -0.3F : 0.1F));
    builder.add_initializer("b" + part, {8}, numbers(8));
    builder.add_node("MatMul", {"x", "w" + part}, {part + "p"}, {}, part + "_product");
    builder.add_node("Add", {part + "p", "b" + part}, {part + "b"}, {}, part + "_bias");
    add_shape(builder, part + "_heads", {2, 4});
    builder.add_node("Reshape", {part + "b", part + "_heads"}, {part + "r"}, {}, part + "_split");
    const Shape perm = part == "k" ? Shape{0, 2, 3, 1} : Shape{0, 2, 1, 3};
    builder.add_node("Transpose", {part + "r"}, {part}, {{"perm", perm}}, part + "_transpose");
  }
  builder.add_node("MatMul", {"q", "k"}, {"scores"}, {}, "scores");
  builder.add_node("Softmax", {"scores"}, {"weights"}, {{"axis", -1}}, "softmax");
  builder.add_node("MatMul", {"weights", "v"}, {"mixed"}, {}, "mix");
  builder.add_node("Transpose", {"mixed"}, {"moved"}, {{"perm", {0, 2, 1, 3}}}, "back");
  add_shape(builder, "joined", {8});
  builder.add_node("Reshape", {"moved", "joined"}, {"y"}, {}, "join");
  builder.add_symbolic_output("y", {"batch", "sequence", "8"});
  const onnx::ModelProto after =
      optimize_for_all(message(builder.serialize()), {{"x:1,1,8"}, {"x:1,16,8"}, {"x:3,5,8"}});
  EXPECT_EQ(counts(after)["Shape"], 0);
  EXPECT_EQ(counts(after)["MatMul"] + counts(after)["Gemm"], 3);  // the three products of x are one
}

// Reshapes, slices and transposes in a row are one each, a mask that is true everywhere is none, and the scale of
// scores is part of the weights of queries: whatever the batch.
TEST_F(Symbolic, WhatNeedNotBeWritten) {
  ModelBuilder builder(17, "tidy");
  builder.add_symbolic_input("x", {"batch", "6", "10"});
  builder.add_symbolic_input("mask", {"batch", "3", "3"}, ElementType::boolean);
  builder.add_initializer("wq", {8, 8}, numbers(64, -0.4F));
  builder.add_initializer("scale", {}, std::vector<float>{0.7F});
  for (const auto& [name, value] : {std::pair{"zero", 0}, {"one", 1}, {"two", 2}, {"three", 3}, {"eight", 8}})
    builder.add_initializer(name, {1}, std::vector<std::int64_t>{value});
  builder.add_node("Slice", {"x", "zero", "three", "one"}, {"rows"}, {}, "rows");
  builder.add_node("Slice", {"rows", "zero", "eight", "two"}, {"part"}, {}, "part");
  builder.add_initializer("heads", {4}, std::vector<std::int64_t>{0, 3, 2, 4});
  builder.add_initializer("whole", {3}, std::vector<std::int64_t>{-1, 3, 8});
  builder.add_initializer("long", {2}, std::vector<std::int64_t>{0, -1});
  builder.add_node("MatMul", {"part", "wq"}, {"product"}, {}, "product");
  builder.add_node("Reshape", {"product", "long"}, {"f"}, {}, "flatten");
  builder.add_node("Reshape", {"f", "whole"}, {"g"}, {}, "unflatten");
  builder.add_node("Reshape", {"g", "heads"}, {"h"}, {}, "heads");
  builder.add_node("Transpose", {"h"}, {"q"}, {{"perm", {0, 2, 1, 3}}}, "queries");
  builder.add_node("Reshape", {"part", "heads"}, {"i"}, {}, "key_heads");
  builder.add_node("Transpose", {"i"}, {"j"}, {{"perm", {0, 2, 1, 3}}}, "keys");
  builder.add_node("Transpose", {"j"}, {"k"}, {{"perm", {0, 1, 3, 2}}}, "turned");
  builder.add_node("MatMul", {"q", "k"}, {"scores"}, {}, "scores");
  builder.add_node("Mul", {"scores", "scale"}, {"scaled"}, {}, "scale");
  builder.add_node("And", {"mask", "true"}, {"allowed"}, {}, "allowed");
  builder.add_node("Not", {"allowed"}, {"hidden"}, {}, "hidden");
  builder.add_node("Softmax", {"scaled"}, {"y"}, {{"axis", -1}}, "softmax");
  builder.add_symbolic_output("y", {"batch", "2", "3", "3"});
  builder.add_symbolic_output("hidden", {"batch", "3", "3"}, ElementType::boolean);
  onnx::ModelProto model = message(builder.serialize());
  auto& always = *model.mutable_graph()->add_initializer();
  always.set_name("true");
  always.set_data_type(onnx::TensorProto::BOOL);
  always.set_raw_data(std::string("\x01", 1));
  std::map<std::string, int> after =
      counts(optimize_for_all(model, {{"x:1,6,10", "mask:1,3,3"}, {"x:5,6,10", "mask:5,3,3"}}));
  EXPECT_EQ(after["Slice"], 1);
  EXPECT_EQ(after["Reshape"], 2);
  EXPECT_EQ(after["Transpose"], 2);
  EXPECT_EQ(after["Mul"], 0);
  EXPECT_EQ(after["And"], 0);
  EXPECT_EQ(after["Shape"], 0);
}

TEST_F(Symbolic, ATokenIsRepeatedForEveryImage) {
  ModelBuilder builder(17, "token");
  builder.add_symbolic_input("x", {"batch", "5", "8"});
  builder.add_initializer("token", {1, 1, 8}, numbers(8));
  builder.add_initializer("first", {1}, std::vector<std::int64_t>{0});
  builder.add_initializer("tail", {2}, std::vector<std::int64_t>{1, 8});
  builder.add_node("Shape", {"x"}, {"shape"}, {}, "shape");
  builder.add_node("Gather", {"shape", "first"}, {"size"}, {{"axis", 0}}, "size");
  builder.add_node("Concat", {"size", "tail"}, {"target"}, {{"axis", 0}}, "target");
  builder.add_node("Expand", {"token", "target"}, {"tokens"}, {}, "expand");
  builder.add_node("Concat", {"tokens", "x"}, {"both"}, {{"axis", 1}}, "concat");
  add_siblings(builder, "both", 8);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {"batch", "6", "4"});
  const onnx::ModelProto after = optimize_for_all(message(builder.serialize()), {{"x:1,5,8"}, {"x:4,5,8"}});
  EXPECT_EQ(counts(after)["MatMul"], 1);
  EXPECT_EQ(counts(after)["Expand"], 1);
  EXPECT_EQ(counts(after)["Shape"], 1);  // of the input: the extent is known nowhere else
}

TEST_F(Symbolic, AStateOfZerosForEveryBatch) {
  ModelBuilder builder(17, "state");
  builder.add_symbolic_input("x", {"batch", "6"});
  builder.add_initializer("first", {1}, std::vector<std::int64_t>{0});
  builder.add_initializer("tail", {1}, std::vector<std::int64_t>{6});
  builder.add_node("Shape", {"x"}, {"shape"}, {}, "shape");
  builder.add_node("Gather", {"shape", "first"}, {"size"}, {{"axis", 0}}, "size");
  builder.add_node("Concat", {"size", "tail"}, {"target"}, {{"axis", 0}}, "target");
  builder.add_node("ConstantOfShape", {"target"}, {"zeros"}, {}, "zeros");
  builder.add_node("Concat", {"x", "zeros"}, {"both"}, {{"axis", 1}}, "concat");
  add_siblings(builder, "both", 12);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {"batch", "4"});
  const onnx::ModelProto after = optimize_for_all(message(builder.serialize()), {{"x:1,6"}, {"x:9,6"}});
  EXPECT_EQ(counts(after)["MatMul"], 1);
  EXPECT_EQ(counts(after)["ConstantOfShape"], 1);
}

// At the far sizes at which the model is imported they are more than there is memory for.
TEST_F(Symbolic, EqualIntegersForEveryElement) {
  ModelBuilder builder(17, "equal");
  builder.add_symbolic_input("x", {"batch", "6"});
  builder.add_symbolic_input("z", {"rows", "columns"});
  builder.add_initializer("first", {1}, std::vector<std::int64_t>{0});
  add_siblings(builder, "x", 6);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_node("Shape", {"z"}, {"shape"}, {}, "shape");
  builder.add_node("Gather", {"shape", "first"}, {"rows"}, {{"axis", 0}}, "rows");
  builder.add_node("Concat", {"shape", "rows"}, {"target"}, {{"axis", 0}}, "target");
  builder.add_node("ConstantOfShape", {"target"}, {"threes"}, {}, "threes");
  builder.add_symbolic_output("y", {"batch", "4"});
  builder.add_symbolic_output("threes", {"rows", "columns", "rows"}, ElementType::i64);
  onnx::ModelProto model = message(builder.serialize());
  auto& value = *model.mutable_graph()->mutable_node(model.graph().node_size() - 1)->add_attribute();
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  value.mutable_t()->set_data_type(onnx::TensorProto::INT64);
  value.mutable_t()->add_dims(1);
  value.mutable_t()->add_int64_data(3);
  const onnx::ModelProto after = optimize_for_all(model, {{"x:1,6", "z:2,3"}});
  EXPECT_EQ(counts(after)["MatMul"], 1);
}

// Nothing is understood at all sizes here, so that the shape of `d` is not known when the result is checked.
TEST_F(Symbolic, DoublesOfUnknownShape) {
  ModelBuilder builder(17, "doubles");
  builder.add_input("x", {1});
  builder.add_symbolic_input("d", {"rows"}, ElementType::f64);
  builder.add_node("ReduceL1", {"x"}, {"m"}, {{"axes", {-1}}}, "magnitude");
  builder.add_node("IsNaN", {"d"}, {"z"}, {}, "numbers");
  builder.add_node("ArgMin", {"m"}, {"i"}, {{"axis", 0}}, "place");
  builder.add_output("m", {1});
  builder.add_symbolic_output("z", {"rows"}, ElementType::boolean);
  builder.add_output("i", {1}, ElementType::i64);
  const onnx::ModelProto after = run_optimizer(message(builder.serialize()), {});
  EXPECT_EQ(counts(after)["ReduceL1"], 0);
  EXPECT_EQ(counts(after)["IsNaN"], 1);
  EXPECT_EQ(warnings_, "");
}

TEST_F(Symbolic, ImagesOfAnySize) {
  ModelBuilder builder(17, "images");
  builder.add_symbolic_input("x", {"batch", "3", "height", "width"});
  for (const std::string side : {"l", "r"}) {
    builder.add_initializer("k" + side, {4, 3, 3, 3}, numbers(108, side == "l" ? -0.4F : 0.1F));
    builder.add_node("Conv", {"x", "k" + side}, {"c" + side}, {{"pads", {1, 1, 1, 1}}, {"strides", {2, 2}}},
                     "conv_" + side);
    builder.add_node("Relu", {"c" + side}, {"a" + side}, {}, "relu_" + side);
  }
  builder.add_node("Concat", {"al", "ar"}, {"both"}, {{"axis", 1}}, "concat");
  builder.add_node("GlobalAveragePool", {"both"}, {"pooled"}, {}, "pool");
  builder.add_node("Flatten", {"pooled"}, {"y"}, {{"axis", 1}}, "flatten");
  builder.add_symbolic_output("y", {"batch", "8"});
  const onnx::ModelProto after =
      optimize_for_all(message(builder.serialize()), {{"x:1,3,32,32"}, {"x:2,3,17,40"}, {"x:5,3,8,9"}});
  EXPECT_EQ(counts(after)["Conv"], 1);
  EXPECT_THAT(report_, HasSubstr("costs are those at batch=2, height=128, width=96"));
}

// Pads that keep ceil(extent / stride) depend on what is left over: a kernel that is made anew cannot have them.
TEST_F(Symbolic, PadsThatDependOnTheSizeStay) {
  for (const std::string extent : {"height", "64"}) {
    ModelBuilder builder(17, "same");
    builder.add_symbolic_input("x", {"batch", "3", extent, extent});
    for (const std::string side : {"l", "r"}) {
      builder.add_initializer("k" + side, {4, 3, 3, 3}, numbers(108, side == "l" ? -0.4F : 0.1F));
      builder.add_node("Conv", {"x", "k" + side}, {"c" + side}, {{"auto_pad", "SAME_UPPER"}, {"strides", {2, 2}}},
                       "conv_" + side);
    }
    builder.add_node("Concat", {"cl", "cr"}, {"both"}, {{"axis", 1}}, "concat");
    builder.add_node("GlobalAveragePool", {"both"}, {"y"}, {}, "pool");
    builder.add_symbolic_output("y", {"batch", "8", "1", "1"});
    const bool any = extent == "height";
    std::vector<std::vector<std::string>> shapes = {{"x:1,3,64,64"}};
    if (any) shapes = {{"x:1,3,7,7"}, {"x:2,3,8,8"}};
    const onnx::ModelProto after = optimize_for_all(message(builder.serialize()), shapes);
    EXPECT_EQ(counts(after)["Conv"], any ? 2 : 1);
  }
}

// A rule with a condition on extents is used where it follows, for all sizes or in the range given.
TEST_F(Symbolic, ConditionsMustFollow) {
  const std::string rules = folder_ / "some.rules";
  ASSERT_TRUE(write_file_atomically(rules,
                                    "rule add_of_some:\n"
                                    "  add(matmul(x, w1), matmul(x, w2)) => matmul(x, add(w1, w2))\n"
                                    "  if dim(x, -2) >= 2\n"
                                    "  class distribution\n")
                  .ok());
  const onnx::ModelProto kept =
      optimize_for_all(with_symbolic_batch(), {{"x:1,6"}}, {"--rules", rules, "--fp", "fast"});
  EXPECT_EQ(counts(kept)["MatMul"], 2);
  EXPECT_THAT(report_,
              HasSubstr("not done, as it does not hold at all sizes: add_of_some: the condition 2 <= dim(x, -2) "
                        "of add_of_some does not follow for all sizes"));
  const onnx::ModelProto some = optimize_for_all(with_symbolic_batch(), {{"x:2,6"}, {"x:9,6"}},
                                                 {"--rules", rules, "--fp", "fast", "--range", "batch=2:"});
  EXPECT_EQ(counts(some)["MatMul"], 1);
  EXPECT_THAT(report_, HasSubstr("the result is for batch=2:;"));
  EXPECT_THAT(verify().output, HasSubstr("byte for byte, for batch=2:\n"));
  ASSERT_EQ(some.metadata_props_size(), 1);
  EXPECT_EQ(some.metadata_props(0).key() + " " + some.metadata_props(0).value(), "taso.ranges batch=2:");
}

// Types that agree up to some height only: one row of windows of 256.
onnx::ModelProto with_symbolic_height() {
  ModelBuilder builder(17, "high");
  builder.add_symbolic_input("x", {"batch", "3", "height", "8"});
  builder.add_node("ReduceMax", {"x"}, {"largest"}, {{"axes", {2}}, {"keepdims", 1}}, "largest");
  builder.add_node("Neg", {"largest"}, {"negative"}, {}, "first");
  builder.add_node("Neg", {"negative"}, {"y"}, {}, "second");
  builder.add_symbolic_output("y", {"batch", "3", "1", "8"});
  return message(builder.serialize());
}

class Heights : public Symbolic {
 protected:
  onnx::ModelProto optimize_heights(const std::vector<std::string>& shapes, std::vector<std::string> options = {}) {
    const std::string rules = folder_ / "heights.rules";
    EXPECT_TRUE(write_file_atomically(rules,
                                      "rule pool:\n"
                                      "  neg(neg(reduce_max(x; axes=[-2])))\n"
                                      "    => max_pool2d(x; kernel=[256, 1], strides=[256, 1], pads=[0, 0, 255, 0])\n"
                                      "  class exact\n")
                    .ok());
    options.insert(options.end(), {"--rules", rules});
    std::vector<std::vector<std::string>> inputs;
    for (const std::string& shape : shapes) inputs.push_back({shape});
    return optimize_for_all(with_symbolic_height(), inputs, options);
  }
  // The certificate with another text somewhere.
  ProcessResult forged(const std::string& from, const std::string& to) {
    const std::string file = folder_ / "out.taso.json", good = read_file(file).value();
    std::string text = good;
    EXPECT_NE(text.find(from), std::string::npos) << text;
    if (text.find(from) != std::string::npos) text.replace(text.find(from), from.size(), to);
    EXPECT_TRUE(write_file_atomically(file, text).ok());
    ProcessResult result = verify();
    EXPECT_TRUE(write_file_atomically(file, good).ok());
    return result;
  }
};

TEST_F(Heights, AreAllHeights) {
  const onnx::ModelProto kept = optimize_heights({"x:1,3,300,8", "x:2,3,5,8"});
  EXPECT_EQ(counts(kept)["MaxPool"], 0);
  EXPECT_THAT(report_, HasSubstr("not done, as it does not hold at all sizes: pool: pool would change the type"));
}

TEST_F(Heights, OrThoseOfARange) {
  const onnx::ModelProto after = optimize_heights({"x:1,3,256,8", "x:2,3,1,8"}, {"--range", "height=1:256"});
  EXPECT_EQ(counts(after)["MaxPool"], 1);
  EXPECT_THAT(verify().output, HasSubstr("byte for byte, for height=1:256\n"));
  // Nothing of it can be changed.
  const std::string range = "\"height\": [\n      1,\n      256\n    ]";
  for (const std::string wider : {"\"height\": [1, 257]", "\"height\": [1, null]"}) {
    const ProcessResult result = forged(range, wider);
    EXPECT_EQ(result.exit_code, 5);
    EXPECT_THAT(result.errors, HasSubstr("step 0: pool would change the type of an output"));
  }
  const ProcessResult narrower = forged(range, "\"height\": [1, 255]");
  EXPECT_EQ(narrower.exit_code, 5);
  EXPECT_THAT(narrower.errors, HasSubstr("the steps lead to another file: it differs in metadata \"taso.ranges\""));
  const ProcessResult without = forged(",\n    " + range, "");
  EXPECT_EQ(without.exit_code, 5);
  EXPECT_THAT(without.errors, HasSubstr("the certificate names the symbolic extents batch, the model has batch, "
                                        "height"));
  const ProcessResult renamed = forged("\"height\"", "\"depth\"");
  EXPECT_EQ(renamed.exit_code, 5);
  EXPECT_THAT(renamed.errors, HasSubstr("no symbolic extent 'depth'"));
  const ProcessResult none = forged("\"symbols\": {", "\"symbols\": null, \"others\": {");
  EXPECT_EQ(none.exit_code, 5);
  const ProcessResult elsewhere = forged("\"nodes\":[1,2,3]", "\"nodes\":[1,3,2]");
  EXPECT_EQ(elsewhere.exit_code, 5);
  EXPECT_THAT(elsewhere.errors, HasSubstr("step 0: pool: node 3 (neg) has other operands"));
}

// A model that is for a range stays so: no further optimization widens it.
TEST_F(Heights, StayInTheRange) {
  optimize_heights({}, {"--range", "height=1:256"});
  const onnx::ModelProto once = message(read_file(folder_ / "out.onnx").value());
  const onnx::ModelProto twice = optimize_for_all(once, {}, {"--range", "height=2:400"});
  ASSERT_EQ(twice.metadata_props_size(), 1);
  EXPECT_EQ(twice.metadata_props(0).value(), "height=2:256");
  const ProcessResult outside = run_process({program("taso-opt"), folder_ / "out.onnx", "-o", folder_ / "more.onnx",
                                             "--cost", "launches", "--range", "height=300:"});
  EXPECT_EQ(outside.exit_code, 2);
  EXPECT_THAT(outside.errors, HasSubstr("the model was optimized for another range, and no size is in both"));
}

// Names of symbols are any text, that of another entry, too.
TEST_F(Symbolic, ARangeOfANameWithPunctuation) {
  const std::string name = "n=1:, \"m\"";
  ModelBuilder builder(17, "dynamic");
  builder.add_symbolic_input("x", {name, "6"});
  add_siblings(builder, "x", 6);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {name, "4"});
  const onnx::ModelProto once = optimize_for_all(message(builder.serialize()), {{"x:3,6"}}, {"--range", name + "=2:8"});
  ASSERT_EQ(once.metadata_props_size(), 1);
  EXPECT_EQ(once.metadata_props(0).value(), R"("n=1:, \"m\""=2:8)");
  const onnx::ModelProto twice = optimize_for_all(once, {{"x:3,6"}}, {"--range", name + "=3:"});
  ASSERT_EQ(twice.metadata_props_size(), 1);
  EXPECT_EQ(twice.metadata_props(0).value(), R"("n=1:, \"m\""=3:8)");
}

TEST_F(Symbolic, WrongRanges) {
  const std::string before = folder_ / "model.onnx", after = folder_ / "out.onnx";
  ASSERT_TRUE(write_file_atomically(before, with_symbolic_batch().SerializeAsString()).ok());
  const auto refused = [&](const std::vector<std::string>& options) {
    std::vector<std::string> arguments = {program("taso-opt"), before, "-o", after, "--cost", "launches"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const ProcessResult result = run_process(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_FALSE(std::filesystem::exists(after));
    return result.errors;
  };
  const std::string form = " is not SYMBOL=LEAST:MOST with sizes of at least 1 (either may be left out)\n";
  EXPECT_EQ(refused({"--range", "batch"}), "taso-opt: --range: \"batch\"" + form);
  EXPECT_EQ(refused({"--range", "batch=0:3"}), "taso-opt: --range: \"batch=0:3\"" + form);
  EXPECT_EQ(refused({"--range", "batch=4:3"}), "taso-opt: --range: \"batch=4:3\"" + form);
  EXPECT_EQ(refused({"--range", "batch=4:", "--range", "batch=:9"}),
            "taso-opt: --range batch=:9: the symbol has a range already\n");
  EXPECT_EQ(refused({"--range", "N=4:"}), "taso-opt: " + before +
                                              ": --range N=4:: the model's inputs have no symbolic extent 'N'; they "
                                              "have batch\n");
  EXPECT_EQ(refused({"--range", "batch=4:", "--assume", "batch=2"}),
            "taso-opt: " + before + ": --assume batch=2: --range batch=4: leaves this size out\n");
}

// The baseline is held to the same; and relu of relu may become relu, behind which nothing needs to be equal.
TEST_F(Symbolic, ABaselineThatHoldsAtAllSizes) {
  ModelBuilder builder(17, "relus");
  builder.add_symbolic_input("x", {"batch", "6"});
  builder.add_node("Relu", {"x"}, {"once"}, {}, "first");
  builder.add_node("Relu", {"once"}, {"y"}, {}, "second");
  builder.add_symbolic_output("y", {"batch", "6"});
  const onnx::ModelProto model = message(builder.serialize());
  const std::string rules = folder_ / "some.rules";
  for (const bool at_all : {false, true}) {
    const std::string rule = "rule relu_once:\n  relu(relu(x)) => relu(x)\n";
    ASSERT_TRUE(write_file_atomically(rules, rule + (at_all ? "" : "  if dim(x, -2) >= 2\n") + "  class exact\n").ok());
    const onnx::ModelProto after = optimize_for_all(model, {{"x:1,6"}, {"x:4,6"}}, {"--rules", rules});
    EXPECT_EQ(counts(after)["Relu"], at_all ? 1 : 2);
    const auto note =
        HasSubstr("not done, as it does not hold at all sizes: relu_once: the condition 2 <= dim(x, -2) of relu_once");
    if (at_all)
      EXPECT_THAT(report_, Not(note));
    else
      EXPECT_THAT(report_, note);
  }
  // A certificate with a rule that is for some extents only does not hold.
  const std::string file = folder_ / "out.taso.json";
  std::string text = read_file(file).value();
  const std::string source = "relu(relu(x)) => relu(x)";
  ASSERT_NE(text.find(source), std::string::npos);
  text.insert(text.find(source) + source.size(), "\\n  if dim(x, -2) >= 2");
  ASSERT_TRUE(write_file_atomically(file, text).ok());
  const ProcessResult result = verify();
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_THAT(result.errors,
              HasSubstr("step 0: the condition 2 <= dim(x, -2) of relu_once does not follow for all sizes"));
}

// Positions of a sequence: a row of a table for each, as shape arithmetic makes them, and what is shaped like them.
void add_positions(ModelBuilder& builder, bool as_row) {
  builder.add_symbolic_input("x", {"1", "length", "6"});
  builder.add_initializer("zero", {}, std::vector<std::int64_t>{0});
  builder.add_initializer("one", {}, std::vector<std::int64_t>{1});
  builder.add_initializer("table", {512, 6}, numbers(512 * 6));
  builder.add_node("Shape", {"x"}, {"shape"}, {}, "shape");
  builder.add_node("Gather", {"shape", "one"}, {"length"}, {{"axis", 0}}, "length");
  builder.add_node("Range", {"zero", "length", "one"}, {"positions"}, {}, "range");
  std::string index = "positions";
  if (as_row) {
    builder.add_initializer("front", {1}, std::vector<std::int64_t>{0});
    builder.add_node("Unsqueeze", {index, "front"}, {"row"}, {}, "row");
    index = "row";
  }
  builder.add_node("Gather", {"table", index}, {"embedded"}, {{"axis", 0}}, "embedding");
  builder.add_node("Add", {"x", "embedded"}, {"sum"}, {}, "add");
  add_siblings(builder, "sum", 6);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {"1", "length", "4"});
}

TEST_F(Symbolic, PositionsOfAnyNumber) {
  for (const bool as_row : {false, true}) {
    ModelBuilder builder(17, "positions");
    add_positions(builder, as_row);
    const onnx::ModelProto after =
        optimize_for_all(message(builder.serialize()), {{"x:1,2,6"}, {"x:1,9,6"}, {"x:1,512,6"}});
    EXPECT_EQ(counts(after)["MatMul"], 1);
    EXPECT_EQ(counts(after)["Range"], 1);
  }
}

// A model of at most 77 positions does not exist at 128.
TEST_F(Symbolic, FewPositions) {
  ModelBuilder builder(17, "few");
  builder.add_symbolic_input("x", {"1", "length", "6"});
  builder.add_initializer("zero", {1}, std::vector<std::int64_t>{0});
  builder.add_initializer("one", {1}, std::vector<std::int64_t>{1});
  builder.add_initializer("table", {1, 77, 6}, numbers(77 * 6));
  builder.add_node("Shape", {"x"}, {"shape"}, {}, "shape");
  builder.add_node("Gather", {"shape", "one"}, {"length"}, {{"axis", 0}}, "length");
  builder.add_node("Slice", {"table", "zero", "length", "one"}, {"positions"}, {}, "positions");
  builder.add_node("Add", {"x", "positions"}, {"sum"}, {}, "add");
  add_siblings(builder, "sum", 6);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {"1", "length", "4"});
  const onnx::ModelProto after = optimize_for_all(message(builder.serialize()), {{"x:1,2,6"}, {"x:1,77,6"}});
  EXPECT_EQ(counts(after)["MatMul"], 1);
  EXPECT_THAT(report_, HasSubstr("costs are those at length=32"));
}

TEST_F(Symbolic, ConstantsThatRepeat) {
  ModelBuilder builder(17, "repeat");
  builder.add_symbolic_input("x", {"batch", "6"});
  builder.add_initializer("first", {1}, std::vector<std::int64_t>{0});
  builder.add_initializer("two", {1}, std::vector<std::int64_t>{2});
  builder.add_initializer("index", {}, std::vector<std::int64_t>{3});
  builder.add_initializer("table", {8, 6}, numbers(8 * 6));
  builder.add_node("Shape", {"x"}, {"shape"}, {}, "shape");
  builder.add_node("Gather", {"shape", "first"}, {"size"}, {{"axis", 0}}, "size");
  builder.add_node("Mul", {"size", "two"}, {"double"}, {}, "double");
  builder.add_node("Expand", {"index", "double"}, {"indices"}, {}, "indices");  // 3, 3, ...
  builder.add_node("Gather", {"table", "indices"}, {"rows"}, {{"axis", 0}}, "rows");
  builder.add_node("Concat", {"x", "rows"}, {"both"}, {{"axis", 0}}, "concat");
  add_siblings(builder, "both", 6);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {"triple", "4"});
  const onnx::ModelProto after = optimize_for_all(message(builder.serialize()), {{"x:1,6"}, {"x:4,6"}});
  EXPECT_EQ(counts(after)["MatMul"], 1);
}

// Rows of a token, as many as a target that is made of "size" says, after those of x.
onnx::ModelProto with_tokens(const std::function<void(ModelBuilder&)>& add_target) {
  ModelBuilder builder(17, "tokens");
  builder.add_symbolic_input("x", {"batch", "6"});
  builder.add_initializer("first", {1}, std::vector<std::int64_t>{0});
  builder.add_initializer("one", {1}, std::vector<std::int64_t>{1});
  builder.add_initializer("token", {1, 6}, numbers(6));
  builder.add_node("Shape", {"x"}, {"shape"}, {}, "shape");
  builder.add_node("Gather", {"shape", "first"}, {"size"}, {{"axis", 0}}, "size");
  add_target(builder);
  builder.add_node("Expand", {"token", "target"}, {"rows"}, {}, "expand");
  builder.add_node("Concat", {"x", "rows"}, {"both"}, {{"axis", 0}}, "concat");
  add_siblings(builder, "both", 6);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {"all", "4"});
  return message(builder.serialize());
}

TEST_F(Symbolic, SumsOfProducts) {
  const onnx::ModelProto model = with_tokens([](ModelBuilder& builder) {
    builder.add_initializer("five", {1}, std::vector<std::int64_t>{5});
    builder.add_node("Mul", {"size", "size"}, {"square"}, {}, "square");
    builder.add_node("Mul", {"size", "five"}, {"linear"}, {}, "linear");
    builder.add_node("Add", {"square", "linear"}, {"sum_of_both"}, {}, "sum_of_both");
    builder.add_node("Add", {"sum_of_both", "one"}, {"count"}, {}, "count");
    builder.add_node("Concat", {"count", "one"}, {"target"}, {{"axis", 0}}, "target");
  });
  const onnx::ModelProto after = optimize_for_all(model, {{"x:1,6"}, {"x:3,6"}});
  EXPECT_EQ(counts(after)["MatMul"], 1);
  EXPECT_EQ(counts(after)["Shape"], 1);
  EXPECT_EQ(counts(after)["Gather"], 1);
}

TEST_F(Symbolic, AProductInTwoListsIsComputedOnce) {
  ModelBuilder builder(17, "lists");
  builder.add_symbolic_input("x", {"batch", "6"});
  for (const auto& [name, value] : {std::pair{"first", 0}, {"two", 2}, {"three", 3}, {"four", 4}})
    builder.add_initializer(name, {1}, std::vector<std::int64_t>{value});
  builder.add_node("Shape", {"x"}, {"shape"}, {}, "shape");
  builder.add_node("Gather", {"shape", "first"}, {"size"}, {{"axis", 0}}, "size");
  builder.add_node("Mul", {"size", "two"}, {"double"}, {}, "double");
  for (const std::string name : {"three", "four"}) {
    builder.add_initializer("row_" + name, {1, name == "three" ? 3 : 4}, numbers(name == "three" ? 3 : 4));
    builder.add_node("Concat", {"double", name}, {"target_" + name}, {{"axis", 0}}, "target_" + name);
    builder.add_node("Expand", {"row_" + name, "target_" + name}, {"rows_" + name}, {}, "expand_" + name);
  }
  const std::vector<std::int64_t> halves = {-1, 3};
  builder.add_initializer("halves", {2}, halves);
  builder.add_node("Reshape", {"x", "halves"}, {"half"}, {}, "halves");
  builder.add_node("Concat", {"half", "rows_three", "rows_four"}, {"both"}, {{"axis", 1}}, "concat");
  add_siblings(builder, "both", 10);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {"twice", "4"});
  std::map<std::string, int> after = counts(optimize_for_all(message(builder.serialize()), {{"x:1,6"}, {"x:3,6"}}));
  EXPECT_EQ(after["MatMul"], 1);
  EXPECT_EQ(after["Expand"], 2);
  EXPECT_EQ(after["Mul"], 1);
  EXPECT_EQ(after["Shape"], 1);
}

TEST_F(Symbolic, PiecesOfAnySize) {
  ModelBuilder builder(17, "pieces");
  builder.add_symbolic_input("x", {"n", "6"});
  builder.add_symbolic_input("y", {"m", "6"});
  builder.add_initializer("w", {6, 4}, numbers(24));
  for (const std::string side : {"x", "y"}) {
    builder.add_node("MatMul", {side, "w"}, {side + "0"}, {}, "product_" + side);
    for (int i = 0; i < 4; ++i)
      builder.add_node("Neg", {side + std::to_string(i)}, {side + std::to_string(i + 1)}, {},
                       "negative_" + side + std::to_string(i));
  }
  builder.add_symbolic_output("x4", {"n", "4"});
  builder.add_symbolic_output("y4", {"m", "4"});
  const std::string rules = folder_ / "own.rules";
  ASSERT_TRUE(write_file_atomically(rules,
                                    "rule r: neg(neg(neg(neg(matmul(x, w))))), neg(neg(neg(neg(matmul(y, w))))) => "
                                    "s.0, s.1 where s = split(matmul(concat(x, y; axis=-2), w); axis=-2, "
                                    "sizes=[dim(x, -2), dim(y, -2)]) if rank(x) == 2\n")
                  .ok());
  const onnx::ModelProto after = optimize_for_all(
      message(builder.serialize()), {{"x:1,6", "y:1,6"}, {"x:2,6", "y:7,6"}, {"x:300,6", "y:1,6"}}, {"--rules", rules});
  EXPECT_EQ(counts(after)["MatMul"], 1);
  EXPECT_EQ(counts(after)["Split"], 1);
}

// A node that is not understood (it clips) has the type that ONNX's schema gives it, at all sizes: what stands behind
// it is open.
TEST_F(Symbolic, ARecurrenceHidesNothing) {
  ModelBuilder builder(17, "recurrence");
  builder.add_symbolic_input("x", {"length", "batch", "3"});
  builder.add_initializer("weights", {1, 8, 3}, numbers(24));
  builder.add_initializer("again", {1, 8, 2}, numbers(16, 0.2F));
  builder.add_node("LSTM", {"x", "weights", "again"}, {"h"}, {{"hidden_size", 2}, {"clip", 9.0}},
                   "rnn");  // [length, 1, batch, 2]
  add_siblings(builder, "h", 2);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {"length", "1", "batch", "4"});
  const onnx::ModelProto after = run_optimizer(message(builder.serialize()), {});
  EXPECT_EQ(counts(after)["MatMul"], 1);
  EXPECT_EQ(counts(after)["LSTM"], 1);
  EXPECT_THAT(report_, HasSubstr("the result is for all sizes"));
}

// As exporters write a layer without an initial state: zeros whose extents are counted from the input, of which each
// layer takes its part. The layer has none then.
TEST_F(Symbolic, InitialStatesOfZerosAreLeftOut) {
  ModelBuilder builder(17, "zeros");
  builder.add_symbolic_input("x", {"length", "batch", "3"});
  builder.add_initializer("one", {}, std::vector<std::int64_t>{1});
  builder.add_initializer("first", {1}, std::vector<std::int64_t>{0});
  builder.add_initializer("second", {1}, std::vector<std::int64_t>{2});
  builder.add_initializer("layers", {1}, std::vector<std::int64_t>{4});
  builder.add_initializer("hidden", {1}, std::vector<std::int64_t>{2});
  builder.add_node("Shape", {"x"}, {"shape"}, {}, "shape");
  builder.add_node("Gather", {"shape", "one"}, {"batch"}, {{"axis", 0}}, "batch");
  builder.add_node("Unsqueeze", {"batch", "first"}, {"samples"}, {}, "samples");
  builder.add_node("Concat", {"layers", "samples", "hidden"}, {"extents"}, {{"axis", 0}}, "extents");
  builder.add_node("ConstantOfShape", {"extents"}, {"zeros"}, {}, "zeros");
  builder.add_node("Slice", {"zeros", "second", "layers", "first"}, {"state"}, {}, "state");
  builder.add_initializer("w", {2, 6, 3}, numbers(36));
  builder.add_initializer("r", {2, 6, 2}, numbers(24, 0.2F));
  builder.add_initializer("b", {2, 12}, numbers(24, 0.1F));
  builder.add_node("GRU", {"x", "w", "r", "b", "", "state"}, {"h", "last"},
                   {{"hidden_size", 2}, {"direction", "bidirectional"}}, "gru");
  builder.add_node("Relu", {"last"}, {"z"}, {}, "relu");
  builder.add_symbolic_output("h", {"length", "2", "batch", "2"});
  builder.add_symbolic_output("z", {"2", "batch", "2"});
  const onnx::ModelProto after =
      optimize_for_all(message(builder.serialize()), {{"x:1,1,3"}, {"x:9,2,3"}, {"x:4,7,3"}});
  EXPECT_EQ(after.graph().node_size(), 2);
  EXPECT_EQ(counts(after)["GRU"], 1);
  EXPECT_EQ(after.graph().node(0).input_size(), 4);
  EXPECT_EQ(after.graph().node(0).output_size(), 2);
}

// A layer in both directions, as exporters write it that know one: two nodes, side by side. It becomes one node.
TEST_F(Symbolic, TwoDirectionsAreOneLayer) {
  ModelBuilder builder(17, "directions");
  builder.add_symbolic_input("x", {"length", "batch", "3"});
  builder.add_initializer("axis", {1}, std::vector<std::int64_t>{1});
  for (const std::string direction : {"forward", "reverse"}) {
    builder.add_initializer(direction + "_w", {1, 8, 3}, numbers(24, 0.1F));
    builder.add_initializer(direction + "_r", {1, 8, 2}, numbers(16, 0.2F));
    builder.add_initializer(direction + "_b", {1, 16}, numbers(16, 0.3F));
    builder.add_node("LSTM", {"x", direction + "_w", direction + "_r", direction + "_b"}, {direction + "_h"},
                     {{"hidden_size", 2}, {"direction", direction}}, direction);
    builder.add_node("Squeeze", {direction + "_h", "axis"}, {direction}, {}, direction + "_squeeze");
  }
  builder.add_node("Concat", {"forward", "reverse"}, {"y"}, {{"axis", -1}}, "beside");
  builder.add_symbolic_output("y", {"length", "batch", "4"});
  const onnx::ModelProto after =
      optimize_for_all(message(builder.serialize()), {{"x:1,1,3"}, {"x:9,2,3"}, {"x:4,7,3"}});
  EXPECT_EQ(counts(after)["LSTM"], 1);
  EXPECT_EQ(counts(after)["Concat"], 0);
  EXPECT_EQ(after.graph().node_size(), 3);
}

// As rotary embeddings are exported: the width of a head is read from a shape.
TEST_F(Symbolic, HalvesOfExtentsThatAreNumbers) {
  ModelBuilder builder(17, "halves");
  builder.add_symbolic_input("x", {"batch", "6"});
  builder.add_initializer("zero", {1}, std::vector<std::int64_t>{0});
  builder.add_initializer("last", {1}, std::vector<std::int64_t>{1});
  builder.add_initializer("two", {}, std::vector<std::int64_t>{2});
  builder.add_node("Relu", {"x"}, {"head"}, {}, "head");
  builder.add_node("Shape", {"head"}, {"shape"}, {}, "shape");
  builder.add_node("Gather", {"shape", "last"}, {"width"}, {{"axis", 0}}, "width");
  builder.add_node("Div", {"width", "two"}, {"half"}, {}, "half");
  builder.add_node("Slice", {"head", "zero", "half", "last"}, {"part"}, {}, "part");
  add_siblings(builder, "part", 3);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {"batch", "4"});
  const onnx::ModelProto after = optimize_for_all(message(builder.serialize()), {{"x:1,6"}, {"x:9,6"}});
  EXPECT_EQ(counts(after)["MatMul"], 1);
  EXPECT_EQ(counts(after)["Div"], 0);
}

// As exporters spell an expansion to a shape that may have entries -1: the shape is asked for these first.
TEST_F(Symbolic, ExpansionsToShapesThatMayBeLeftOpen) {
  ModelBuilder builder(17, "expansion");
  builder.add_symbolic_input("x", {"batch", "6"});
  builder.add_initializer("first", {1}, std::vector<std::int64_t>{0});
  builder.add_initializer("tail", {1}, std::vector<std::int64_t>{-1});
  builder.add_initializer("row", {1, 6}, numbers(6));
  builder.add_initializer("minus", {}, std::vector<std::int64_t>{-1});
  builder.add_node("Shape", {"x"}, {"shape"}, {}, "shape");
  builder.add_node("Gather", {"shape", "first"}, {"size"}, {{"axis", 0}}, "size");
  builder.add_node("Concat", {"size", "tail"}, {"target"}, {{"axis", 0}}, "target");
  builder.add_node("Shape", {"target"}, {"rank"}, {}, "rank");
  builder.add_node("ConstantOfShape", {"rank"}, {"zeros"}, {}, "zeros");
  builder.add_node("Cast", {"zeros"}, {"integers"}, {{"to", 7}}, "integers");
  builder.add_initializer("one", {}, std::vector<std::int64_t>{1});
  builder.add_node("Add", {"integers", "one"}, {"ones"}, {}, "ones");
  builder.add_node("Mul", {"ones", "minus"}, {"open"}, {}, "open");
  builder.add_node("Equal", {"target", "open"}, {"is_open"}, {}, "is_open");
  builder.add_node("Where", {"is_open", "ones", "target"}, {"closed"}, {}, "closed");
  builder.add_node("Expand", {"row", "closed"}, {"rows"}, {}, "expand");
  builder.add_node("Add", {"x", "rows"}, {"both"}, {}, "both");
  add_siblings(builder, "both", 6);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {"batch", "4"});
  const onnx::ModelProto after = optimize_for_all(message(builder.serialize()), {{"x:1,6"}, {"x:9,6"}});
  EXPECT_EQ(counts(after)["MatMul"], 1);
  EXPECT_EQ(counts(after)["Where"], 0);
}

// What has no form for all sizes is carried as ever, with the reason.
TEST_F(Symbolic, PatternsOfPositionsAreCarriedAlone) {
  ModelBuilder builder(17, "patterns");
  builder.add_symbolic_input("x", {"batch", "6"});
  builder.add_initializer("first", {1}, std::vector<std::int64_t>{0});
  builder.add_initializer("places", {2}, std::vector<std::int64_t>{4, 1});
  builder.add_initializer("two", {1}, std::vector<std::int64_t>{2});
  builder.add_initializer("table", {5, 6}, numbers(30));
  builder.add_initializer("flat", {2}, std::vector<std::int64_t>{-1, 6});
  builder.add_node("Shape", {"x"}, {"shape"}, {}, "shape");
  builder.add_node("Gather", {"shape", "first"}, {"size"}, {{"axis", 0}}, "size");
  builder.add_node("Concat", {"size", "two"}, {"target"}, {{"axis", 0}}, "target");
  builder.add_node("Expand", {"places", "target"}, {"indices"}, {}, "expand");  // 4, 1, 4, 1, ...
  builder.add_node("Gather", {"table", "indices"}, {"pairs"}, {{"axis", 0}}, "pairs");
  builder.add_node("Reshape", {"pairs", "flat"}, {"rows"}, {}, "rows");
  builder.add_node("Concat", {"x", "rows"}, {"both"}, {{"axis", 0}}, "concat");
  add_siblings(builder, "both", 6);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {"all", "4"});
  const onnx::ModelProto model = message(builder.serialize());
  const onnx::ModelProto after = optimize_for_all(model, {{"x:3,6"}, {"x:1,6"}});
  const auto count = [&](const std::string& type) {
    return std::ranges::count_if(after.graph().node(), [&](const auto& node) { return node.op_type() == type; });
  };
  EXPECT_EQ(count("Expand"), 1);
  EXPECT_EQ(count("MatMul"), 1);
}

// A table that is cut to the length and expanded to the input's shape says that the length is at most its own.
TEST_F(Symbolic, ATableIsCutAndExpandedToTheLength) {
  ModelBuilder builder(17, "cut_table");
  builder.add_symbolic_input("x", {"batch", "length"});
  builder.add_initializer("zero", {1}, std::vector<std::int64_t>{0});
  builder.add_initializer("one", {1}, std::vector<std::int64_t>{1});
  std::vector<std::int64_t> places(300);
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::int64_t>(i % 5);
  builder.add_initializer("places", {1, 300}, places);
  builder.add_initializer("table", {5, 6}, numbers(30));
  builder.add_initializer("axes", {1}, std::vector<std::int64_t>{2});
  builder.add_node("Shape", {"x"}, {"shape"}, {}, "shape");
  builder.add_node("Gather", {"shape", "one"}, {"length"}, {{"axis", 0}}, "length");
  builder.add_node("Slice", {"places", "zero", "length", "one"}, {"part"}, {}, "part");
  builder.add_node("Expand", {"part", "shape"}, {"indices"}, {}, "expand");
  builder.add_node("Gather", {"table", "indices"}, {"rows"}, {{"axis", 0}}, "rows");
  builder.add_node("Unsqueeze", {"x", "axes"}, {"column"}, {}, "column");
  builder.add_node("Mul", {"rows", "column"}, {"both"}, {}, "both");
  add_siblings(builder, "both", 6);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {"batch", "length", "4"});
  const onnx::ModelProto after = optimize_for_all(message(builder.serialize()), {{"x:3,6"}, {"x:1,1"}, {"x:2,300"}});
  EXPECT_EQ(std::ranges::count_if(after.graph().node(), [](const auto& node) { return node.op_type() == "MatMul"; }),
            1);
}

// Positions behind those of the past: a count that starts at an extent.
TEST_F(Symbolic, PositionsBehindThePast) {
  ModelBuilder builder(17, "past");
  builder.add_symbolic_input("x", {"length", "6"});
  builder.add_symbolic_input("past", {"before", "6"});
  builder.add_initializer("zero", {1}, std::vector<std::int64_t>{0});
  builder.add_initializer("from", {}, std::vector<std::int64_t>{0});
  builder.add_initializer("step", {}, std::vector<std::int64_t>{1});
  builder.add_initializer("table", {900, 6}, numbers(5400));
  builder.add_node("Shape", {"x"}, {"shape"}, {}, "shape");
  builder.add_node("Gather", {"shape", "from"}, {"length"}, {{"axis", 0}}, "length");
  builder.add_node("Shape", {"past"}, {"shape_of_past"}, {}, "shape_of_past");
  builder.add_node("Gather", {"shape_of_past", "zero"}, {"before"}, {{"axis", 0}}, "before");
  builder.add_node("Range", {"from", "length", "step"}, {"range"}, {}, "range");
  builder.add_node("Add", {"range", "before"}, {"positions"}, {}, "positions");
  builder.add_node("Gather", {"table", "positions"}, {"rows"}, {{"axis", 0}}, "rows");
  builder.add_node("Add", {"x", "rows"}, {"new"}, {}, "new");
  builder.add_node("Concat", {"past", "new"}, {"both"}, {{"axis", 0}}, "concat");
  add_siblings(builder, "both", 6);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {"all", "4"});
  const onnx::ModelProto after =
      optimize_for_all(message(builder.serialize()), {{"x:3,6", "past:5,6"}, {"x:1,6", "past:1,6"}});
  EXPECT_EQ(std::ranges::count_if(after.graph().node(), [](const auto& node) { return node.op_type() == "MatMul"; }),
            1);
}

void add_size_of_batch(ModelBuilder& builder) {
  builder.add_initializer("first", {1}, std::vector<std::int64_t>{0});
  builder.add_node("Shape", {"x"}, {"shape"}, {}, "shape");
  builder.add_node("Gather", {"shape", "first"}, {"size"}, {{"axis", 0}}, "size");
}

// What is right at the sizes that are looked at, and not at others, is not done: each of these makes "rows" of "x"
// ([batch, 8]) by a node that must stay. Beside it, everything is optimized.
TEST_F(Symbolic, ThresholdsStay) {
  const std::vector<std::pair<const char*, std::function<void(ModelBuilder&)>>> cases = {
      {"Slice",
       [](ModelBuilder& b) {
         b.add_node("Slice", {"x", "zero", "eight", "zero"}, {"rows"}, {}, "first_eight");
       }},
      {"Min",
       [](ModelBuilder& b) {
         b.add_node("Min", {"size", "eight"}, {"end"}, {}, "least");
         b.add_node("Slice", {"x", "zero", "end", "zero"}, {"rows"}, {}, "slice");
       }},
      {"Div",
       [](ModelBuilder& b) {
         b.add_node("Div", {"size", "eight"}, {"begin"}, {}, "quotient");
         b.add_node("Slice", {"x", "begin", "size", "zero"}, {"rows"}, {}, "slice");
       }},
      {"Squeeze", [](ModelBuilder& b) {
         b.add_node("Squeeze", {"x"}, {"thin"}, {}, "squeeze");
         b.add_initializer("matrix", {2}, std::vector<std::int64_t>{-1, 8});
         b.add_node("Reshape", {"thin", "matrix"}, {"rows"}, {}, "again");
       }}};
  for (const auto& [stays, add_rows] : cases) {
    ModelBuilder builder(17, "threshold");
    builder.add_symbolic_input("x", {"batch", "8"});
    builder.add_initializer("zero", {1}, std::vector<std::int64_t>{0});
    builder.add_initializer("eight", {1}, std::vector<std::int64_t>{8});
    add_size_of_batch(builder);
    add_rows(builder);
    add_siblings(builder, "x", 8, "x");
    builder.add_node("Add", {"lx", "rx"}, {"y"}, {}, "sum");
    builder.add_symbolic_output("y", {"batch", "4"});
    builder.add_node("Relu", {"rows"}, {"z"}, {}, "relu");
    builder.add_symbolic_output("z", {"some", "8"});
    const onnx::ModelProto after = optimize_for_all(message(builder.serialize()), {});
    EXPECT_EQ(counts(after)[stays], 1) << stays;
    EXPECT_EQ(counts(after)["MatMul"], 1) << stays;
  }
}

TEST_F(Symbolic, ShapesThatAreOutputsAreComputed) {
  ModelBuilder builder(17, "output");
  builder.add_symbolic_input("x", {"batch", "6"});
  add_siblings(builder, "x", 6);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {"batch", "4"});
  builder.add_node("Shape", {"x"}, {"extents"}, {}, "shape");
  builder.add_symbolic_output("extents", {"2"}, ElementType::i64);
  const onnx::ModelProto after = optimize_for_all(message(builder.serialize()), {{"x:3,6"}});
  EXPECT_EQ(counts(after)["MatMul"], 1);
  EXPECT_EQ(after.graph().output(1).name(), "extents");
}

// A batch of 2 beside a constant of 2: equal nodes at one size only.
TEST_F(Symbolic, EqualByChanceIsNoFailure) {
  ModelBuilder builder(17, "chance");
  builder.add_symbolic_input("x", {"batch", "6"});
  add_size_of_batch(builder);
  builder.add_initializer("row", {1, 6}, numbers(6));
  builder.add_initializer("six", {1}, std::vector<std::int64_t>{6});
  builder.add_initializer("pair", {2}, std::vector<std::int64_t>{2, 6});
  builder.add_node("Concat", {"size", "six"}, {"target"}, {{"axis", 0}}, "target");
  builder.add_node("Relu", {"row"}, {"positive"}, {}, "positive");
  builder.add_node("Expand", {"positive", "target"}, {"many"}, {}, "many");
  builder.add_node("Expand", {"positive", "pair"}, {"two"}, {}, "two");
  builder.add_node("Concat", {"x", "many", "two"}, {"both"}, {{"axis", 0}}, "concat");
  add_siblings(builder, "both", 6);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {"all", "4"});
  optimize_for_all(message(builder.serialize()), {{"x:1,6"}, {"x:2,6"}, {"x:9,6"}});
}

// Names of new nodes are new: ONNX Runtime refuses two nodes of one name.
TEST_F(Symbolic, NodesHaveDifferentNames) {
  ModelBuilder builder(17, "names");
  builder.add_symbolic_input("x", {"batch", "6"});
  add_size_of_batch(builder);
  builder.add_initializer("six", {1}, std::vector<std::int64_t>{6});
  builder.add_node("Concat", {"size", "six"}, {"target"}, {{"axis", 0}}, "target");
  builder.add_node("ConstantOfShape", {"target"}, {"zeros"}, {}, "zeros");
  add_siblings(builder, "x", 6);
  builder.add_node("Concat", {"l", "r"}, {"both"}, {{"axis", 1}}, "concat");
  builder.add_node("Concat", {"both", "zeros"}, {"y"}, {{"axis", 1}}, "concat_zeros");
  builder.add_symbolic_output("y", {"batch", "14"});
  const onnx::ModelProto after = optimize_for_all(message(builder.serialize()), {{"x:1,6"}, {"x:3,6"}});
  std::map<std::string, int> names;
  for (const auto& node : after.graph().node()) EXPECT_EQ(++names[node.name()], 1) << node.name();
}

// A cache that is empty at first: where one extent is 0, -1 says nothing.
TEST_F(Symbolic, ListsOfExtentsThatMayBeZero) {
  ModelBuilder builder(17, "past");
  builder.add_symbolic_input("x", {"past", "batch", "2", "4"});
  builder.add_node("Shape", {"x"}, {"shape"}, {}, "shape");
  for (const std::int64_t axis : {0, 1}) {
    const std::string name = axis == 0 ? "past" : "batch";
    builder.add_initializer(name + "_index", {1}, std::vector<std::int64_t>{axis});
    builder.add_node("Gather", {"shape", name + "_index"}, {name}, {{"axis", 0}}, name);
  }
  builder.add_initializer("two", {1}, std::vector<std::int64_t>{2});
  builder.add_initializer("four", {1}, std::vector<std::int64_t>{4});
  builder.add_node("Mul", {"batch", "two"}, {"heads"}, {}, "heads");
  builder.add_node("Concat", {"past", "heads", "four"}, {"target"}, {{"axis", 0}}, "target");
  builder.add_node("Reshape", {"x", "target"}, {"merged"}, {}, "merge");
  add_siblings(builder, "merged", 4);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {"past", "heads", "4"});
  const onnx::ModelProto after = optimize_for_all(message(builder.serialize()), {{"x:1,1,2,4"}, {"x:5,3,2,4"}});
  EXPECT_EQ(counts(after)["MatMul"], 1);
  for (const auto& tensor : after.graph().initializer()) {
    if (tensor.data_type() != onnx::TensorProto::INT64 || tensor.dims_size() != 1) continue;
    const auto* list = reinterpret_cast<const std::int64_t*>(tensor.raw_data().data());
    const std::vector<std::int64_t> all(list, list + tensor.dims(0));
    EXPECT_FALSE(std::count(all.begin(), all.end(), 0) > 0 && std::count(all.begin(), all.end(), -1) > 0);
  }
}

TEST_F(Symbolic, AnotherFormAtTheAssumedSize) {
  ModelBuilder builder(17, "forms");
  builder.add_symbolic_input("x", {"batch", "6"});
  builder.add_input("z", {1, 6});
  builder.add_node("Add", {"x", "z"}, {"sum"}, {}, "add");
  add_siblings(builder, "sum", 6);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {"batch", "4"});
  const onnx::ModelProto model = message(builder.serialize());
  const onnx::ModelProto kept = optimize_for_all(model, {{"x:3,6"}}, {"--assume", "batch=1"});
  EXPECT_EQ(kept.SerializeAsString(), model.SerializeAsString());
  EXPECT_THAT(warnings_, HasSubstr("the model has another form at batch=1 than at batch="));
  const onnx::ModelProto after = optimize_for_all(model, {{"x:1,6"}, {"x:3,6"}});
  EXPECT_EQ(counts(after)["MatMul"], 1);
}

// A reshape that exists at some sizes only: what it makes has an extent of its own.
TEST_F(Symbolic, SizesThatDoNotFit) {
  ModelBuilder builder(17, "divisible");
  builder.add_symbolic_input("x", {"batch", "6"});
  builder.add_initializer("shape", {2}, std::vector<std::int64_t>{-1, 24});
  builder.add_node("Reshape", {"x", "shape"}, {"rows"}, {}, "rows");
  add_siblings(builder, "rows", 24);
  builder.add_node("Add", {"l", "r"}, {"y"}, {}, "sum");
  builder.add_symbolic_output("y", {"quarter", "4"});
  const onnx::ModelProto model = message(builder.serialize());
  for (const std::vector<std::string>& options : {std::vector<std::string>{}, {"--assume", "batch=8"}}) {
    const onnx::ModelProto after = optimize_for_all(model, {{"x:4,6"}, {"x:12,6"}}, options);
    EXPECT_EQ(counts(after)["MatMul"], 1);
    EXPECT_EQ(counts(after)["Reshape"], 1);
  }
  const onnx::ModelProto kept = optimize_for_all(model, {{"x:4,6"}}, {"--assume", "batch=2"});
  EXPECT_EQ(kept.SerializeAsString(), model.SerializeAsString());
  EXPECT_THAT(warnings_, HasSubstr("; at batch=2: node \"rows\" (Reshape)"));
}

TEST_F(Symbolic, WrongAssumptions) {
  const std::string before = folder_ / "model.onnx", after = folder_ / "out.onnx";
  ASSERT_TRUE(write_file_atomically(before, with_symbolic_batch().SerializeAsString()).ok());
  const auto refused = [&](const std::string& assumption) {
    const ProcessResult result =
        run_process({program("taso-opt"), before, "-o", after, "--cost", "launches", "--assume", assumption});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_FALSE(std::filesystem::exists(after));
    return result.errors;
  };
  EXPECT_EQ(refused("batch"), "taso-opt: --assume: \"batch\" is not SYMBOL=N with N at least 1\n");
  EXPECT_EQ(refused("batch=0"), "taso-opt: --assume: \"batch=0\" is not SYMBOL=N with N at least 1\n");
  EXPECT_EQ(refused("N=4"), "taso-opt: " + before +
                                ": --assume N=4: the model's inputs have no symbolic extent 'N'; they have batch\n");
}

TEST_F(Symbolic, ACertificateOfOtherExtentsDoesNotHold) {
  optimize_for_all(with_symbolic_batch(), {});
  const std::string file = folder_ / "out.taso.json";
  const std::string text = read_file(file).value();
  const std::string symbols = "\"symbols\": {\n    \"batch\": [\n      1,\n      null\n    ]\n  }";
  const auto with = [&](const std::string& to) {
    std::string changed = text;
    EXPECT_NE(changed.find(symbols), std::string::npos) << text;
    if (changed.find(symbols) != std::string::npos) changed.replace(changed.find(symbols), symbols.size(), to);
    EXPECT_TRUE(write_file_atomically(file, changed).ok());
    return verify();
  };
  const ProcessResult unknown = with("\"symbols\": {\"other\": [1, null]}");
  EXPECT_EQ(unknown.exit_code, 5);
  EXPECT_THAT(unknown.errors, HasSubstr("no symbolic extent 'other'; they have batch"));
  const ProcessResult missing = with("\"symbols\": {}");
  EXPECT_EQ(missing.exit_code, 5);
  EXPECT_THAT(missing.errors, HasSubstr("the certificate names the symbolic extents none, the model has batch"));
  const ProcessResult malformed = with("\"symbols\": {\"batch\": [0, null]}");
  EXPECT_EQ(malformed.exit_code, 3);
  EXPECT_THAT(malformed.errors, HasSubstr("symbols.batch: expected an integer from 1"));
  const ProcessResult upside_down = with("\"symbols\": {\"batch\": [3, 2]}");
  EXPECT_EQ(upside_down.exit_code, 3);
  EXPECT_THAT(upside_down.errors, HasSubstr("symbols.batch: expected an integer from 3"));
  // One size is not all sizes: the file would say so.
  const ProcessResult one = with("\"symbols\": {\"batch\": [2, 2]}");
  EXPECT_EQ(one.exit_code, 5);
  // Symbols left out: nothing of the model is understood then, and the first step has no place.
  const ProcessResult without = with("\"symbols\": null");
  EXPECT_EQ(without.exit_code, 5);
  EXPECT_THAT(without.errors, HasSubstr("step 0"));
}

}  // namespace
}  // namespace taso::acceptance
