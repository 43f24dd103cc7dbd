// ONNX operators that become several of ours, where ONNX's own tests (node_data_test.cpp) have none: later opsets,
// attributes in other combinations, parameters that are constant. Values are worked out here from ONNX's definition.
#include <gmock/gmock.h>

#include <cmath>

#include "operators/evaluate.h"
#include "tests/onnx_io/fixture.h"

namespace taso {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Model load(const ModelBuilder& builder) {
  auto model = Model::parse(builder.serialize(), "composed.onnx", test::registry());
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().to_string());
  return *model;
}

/// The first output for one input.
std::vector<double> run(const Model& model, const Shape& shape, const std::vector<float>& values) {
  DoubleRing ring;
  RingTensor<double> input;
  input.shape = shape;
  input.elements.assign(values.begin(), values.end());
  const auto outputs = evaluate(model.graph(), test::registry(), ring, {input});
  EXPECT_TRUE(outputs.ok()) << (outputs.ok() ? "" : outputs.error().to_string());
  return outputs.ok() ? (*outputs)[0].elements : std::vector<double>{};
}

/// A model of one node that reads x.
ModelBuilder node(int opset, const std::string& op_type, const Shape& x, const Shape& y,
                  const std::vector<OnnxAttribute>& attributes,
                  const std::function<std::vector<std::string>(ModelBuilder&)>& parameters = {}) {
  ModelBuilder builder(opset, "composed");
  builder.add_input("x", x);
  std::vector<std::string> inputs = {"x"};
  if (parameters)
    for (const std::string& name : parameters(builder)) inputs.push_back(name);
  builder.add_node(op_type, inputs, {"y"}, attributes, "node");
  builder.add_output("y", y);
  return builder;
}

TEST(Composed, GroupNormalizationBeforeAndSinceOpset21) {
  const Shape shape = {2, 4, 3};
  const std::vector<float> x = test::numbers(24, -1, 0.37F);
  const std::vector<float> per_group = {2, -1}, shifts = {0.5F, 3};
  std::vector<double> expected;
  for (std::size_t row = 0; row < 4; ++row) {  // 2 images of 2 groups of 2 channels of 3
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < 6; ++i) mean += static_cast<double>(x[row * 6 + i]) / 6;
    for (std::size_t i = 0; i < 6; ++i) variance += std::pow(static_cast<double>(x[row * 6 + i]) - mean, 2) / 6;
    for (std::size_t i = 0; i < 6; ++i)
      expected.push_back((static_cast<double>(x[row * 6 + i]) - mean) / std::sqrt(variance + 0.01) *
                             static_cast<double>(per_group[row % 2]) +
                         static_cast<double>(shifts[row % 2]));
  }
  for (const int opset : {18, 21}) {
    const Model model = load(node(opset, "GroupNormalization", shape, shape, {{"num_groups", 2}, {"epsilon", 0.01}},
                                  [&](ModelBuilder& builder) {
                                    const std::int64_t repeat = opset < 21 ? 1 : 2;
                                    std::vector<float> scale, bias;
                                    for (std::int64_t i = 0; i < 2 * repeat; ++i) {
                                      scale.push_back(per_group[static_cast<std::size_t>(i / repeat)]);
                                      bias.push_back(shifts[static_cast<std::size_t>(i / repeat)]);
                                    }
                                    builder.add_initializer("scale", {2 * repeat}, scale);
                                    builder.add_initializer("bias", {2 * repeat}, bias);
                                    return std::vector<std::string>{"scale", "bias"};
                                  }));
    EXPECT_TRUE(model.opaque_operators().empty());
    const std::vector<double> actual = run(model, shape, x);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-6) << i;
  }
}

/// Resize with scales of 1, 1, and `scale` twice.
ModelBuilder resize(float scale, const std::vector<OnnxAttribute>& attributes) {
  const auto length = static_cast<std::int64_t>(2 * scale);
  return node(13, "Resize", {1, 1, 2, 2}, {1, 1, length, length}, attributes, [&](ModelBuilder& builder) {
    builder.add_initializer("scales", {4}, std::vector<float>{1, 1, scale, scale});
    return std::vector<std::string>{"", "scales"};
  });
}

TEST(Composed, NearestNeighboursThatRepeat) {
  const std::vector<double> twice = {1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4};
  for (const std::vector<OnnxAttribute>& attributes : std::vector<std::vector<OnnxAttribute>>{
           {},
           {{"mode", "nearest"}, {"coordinate_transformation_mode", "asymmetric"}, {"nearest_mode", "floor"}},
           {{"coordinate_transformation_mode", "asymmetric"}},  // rounds a half down
           {{"coordinate_transformation_mode", "pytorch_half_pixel"}, {"nearest_mode", "round_prefer_ceil"}}}) {
    const Model model = load(resize(2, attributes));
    ASSERT_TRUE(model.opaque_operators().empty()) << model.opaque_operators()[0].reason;
    EXPECT_EQ(run(model, {1, 1, 2, 2}, {1, 2, 3, 4}), twice);
  }
}

TEST(Composed, ResizingThatDoesMoreIsCarried) {
  const auto reason = [](const ModelBuilder& builder) {
    const Model model = load(builder);
    return model.opaque_operators().empty() ? "" : model.opaque_operators()[0].reason;
  };
  const std::string rounded = "coordinates are not rounded to repetition";
  EXPECT_EQ(reason(resize(2, {{"nearest_mode", "floor"}})), rounded);
  EXPECT_EQ(reason(resize(2, {{"nearest_mode", "ceil"}, {"coordinate_transformation_mode", "asymmetric"}})), rounded);
  EXPECT_EQ(reason(resize(4, {{"coordinate_transformation_mode", "asymmetric"}})), rounded);
  EXPECT_EQ(reason(resize(2, {{"coordinate_transformation_mode", "align_corners"}})),
            "coordinate_transformation_mode align_corners is not modelled");
  EXPECT_EQ(reason(resize(2, {{"mode", "linear"}})), "only mode nearest is modelled");
  EXPECT_EQ(reason(resize(1.5F, {})), "an axis is not repeated a whole number of times");
  EXPECT_EQ(reason(resize(2, {{"coordinate_transformation_mode", "tf_crop_and_resize"}})),
            "coordinate_transformation_mode tf_crop_and_resize is not modelled");
}

TEST(Composed, UpsampleOfOldOpsets) {
  const Model model =
      load(node(7, "Upsample", {1, 1, 1, 2}, {1, 1, 2, 6}, {{"scales", std::vector<float>{1, 1, 2, 3}}}));
  ASSERT_TRUE(model.opaque_operators().empty()) << model.opaque_operators()[0].reason;
  EXPECT_THAT(run(model, {1, 1, 1, 2}, {5, 7}), ElementsAre(5, 5, 5, 7, 7, 7, 5, 5, 5, 7, 7, 7));
}

TEST(Composed, ExtremaWithANumber) {
  const auto with = [](const std::string& op_type, const Shape& shape, float bound, bool first) {
    ModelBuilder builder(13, "composed");
    builder.add_input("x", {4});
    std::vector<float> values(static_cast<std::size_t>(volume(shape)), bound);
    builder.add_initializer("b", shape, values);
    builder.add_node(op_type, first ? std::vector<std::string>{"b", "x"} : std::vector<std::string>{"x", "b"}, {"y"},
                     {}, "node");
    builder.add_output("y", {4});
    return load(builder);
  };
  const std::vector<float> x = {-2, -0.5F, 0, 3};
  EXPECT_THAT(run(with("Max", {}, 0, false), {4}, x), ElementsAre(0, 0, 0, 3));
  EXPECT_THAT(run(with("Max", {1}, -1, true), {4}, x), ElementsAre(-1, -0.5, 0, 3));
  EXPECT_THAT(run(with("Min", {}, 0.25F, false), {4}, x), ElementsAre(-2, -0.5, 0, 0.25));
  EXPECT_THAT(run(with("Min", {}, -0.0F, true), {4}, x), ElementsAre(-2, -0.5, 0, 0));
  EXPECT_EQ(with("Max", {4}, 1, false).opaque_operators()[0].reason, "neither operand is a constant number");
  EXPECT_EQ(with("Max", {}, NAN, false).opaque_operators()[0].reason, "its bound is not a number");
}

TEST(Composed, WholeExponents) {
  ModelBuilder builder(13, "composed");
  builder.add_input("x", {3});
  builder.add_initializer("e", {3}, std::vector<std::int64_t>{2, 3, -1});
  builder.add_node("Pow", {"x", "e"}, {"y"}, {}, "node");
  builder.add_output("y", {3});
  const Model model = load(builder);
  EXPECT_TRUE(model.opaque_operators().empty());
  EXPECT_THAT(run(model, {3}, {-3, -2, 4}), ElementsAre(9, -8, 0.25));
}

TEST(Composed, LogSoftmaxDoesNotUnderflow) {
  for (const int opset : {11, 13}) {
    const Model model = load(node(opset, "LogSoftmax", {1, 3}, {1, 3}, {{"axis", 1}}));
    EXPECT_TRUE(model.opaque_operators().empty());
    const std::vector<double> actual = run(model, {1, 3}, {1000, 0, -1000});
    ASSERT_EQ(actual.size(), 3U);
    EXPECT_NEAR(actual[0], 0, 1e-9);
    EXPECT_NEAR(actual[1], -1000, 1e-9);
    EXPECT_NEAR(actual[2], -2000, 1e-9);
  }
}

TEST(Composed, LogarithmsOfSumsOfExponentials) {
  const Model model = load(node(13, "ReduceLogSumExp", {2, 2}, {2}, {{"axes", {1}}, {"keepdims", 0}}));
  EXPECT_TRUE(model.opaque_operators().empty());
  const std::vector<double> actual = run(model, {2, 2}, {1000, 1000, -1, 2});
  ASSERT_EQ(actual.size(), 2U);
  EXPECT_NEAR(actual[0], 1000 + std::log(2), 1e-9);
  EXPECT_NEAR(actual[1], std::log(std::exp(-1) + std::exp(2)), 1e-9);
}

TEST(Composed, ReductionsOverNoAxisAreCarried) {
  const auto builder = node(18, "ReduceL1", {2, 2}, {2, 2}, {{"noop_with_empty_axes", 1}});
  EXPECT_THAT(load(builder).opaque_operators()[0].reason, HasSubstr("there is no axis"));
}

// What follows a carried operator is understood where its type follows from those of its inputs.
TEST(Carried, TypesOfWhatIsNotModelled) {
  const auto carried = [](const std::function<void(ModelBuilder&)>& fill) {
    ModelBuilder builder(13, "carried");
    builder.add_input("x", {1, 2, 3, 4});
    fill(builder);
    std::string names;
    const Model model = load(builder);
    for (const OpaqueSummary& opaque : model.opaque_operators()) names += (names.empty() ? "" : " ") + opaque.op;
    return names;
  };
  const auto parameter = [](ModelBuilder& builder, const std::string& name, const Shape& shape) {
    builder.add_initializer(name, shape, std::vector<float>(static_cast<std::size_t>(volume(shape)), 1.5F));
  };
  EXPECT_EQ(carried([&](ModelBuilder& builder) {
              parameter(builder, "s", {});
              builder.add_node("QuantizeLinear", {"x", "s"}, {"q"}, {}, "q");
              builder.add_node("DequantizeLinear", {"q", "s"}, {"d"}, {}, "d");
              builder.add_node("Relu", {"d"}, {"y"}, {}, "r");
              builder.add_output("y", {1, 2, 3, 4});
            }),
            "DequantizeLinear QuantizeLinear");
  EXPECT_EQ(carried([&](ModelBuilder& builder) {
              parameter(builder, "w", {2, 3, 2, 3});
              builder.add_node("ConvTranspose", {"x", "w"}, {"t"},
                               {{"strides", {2, 2}}, {"pads", {0, 1, 1, 0}}, {"output_padding", {1, 0}}, {"group", 2}},
                               "t");
              builder.add_node("Relu", {"t"}, {"y"}, {}, "r");
              builder.add_output("y", {1, 6, 6, 8});  // 2 * 2 + 2 - 1 + 1, 2 * 3 + 3 - 1
            }),
            "ConvTranspose");
  EXPECT_EQ(carried([&](ModelBuilder& builder) {
              builder.add_initializer("scales", {4}, std::vector<float>{1, 1, 1.5F, 2});
              builder.add_node("Resize", {"x", "", "scales"}, {"t"}, {{"mode", "linear"}}, "t");
              builder.add_node("Relu", {"t"}, {"y"}, {}, "r");
              builder.add_output("y", {1, 2, 4, 8});
            }),
            "Resize");
  EXPECT_EQ(carried([&](ModelBuilder& builder) {
              builder.add_initializer("table", {4, 5}, test::numbers(20));
              builder.add_node("ArgMax", {"x"}, {"i"}, {{"axis", -1}, {"keepdims", 0}}, "i");
              builder.add_node("Gather", {"table", "i"}, {"y"}, {}, "g");
              builder.add_output("y", {1, 2, 3, 5});
            }),
            "ArgMax");
}

}  // namespace
}  // namespace taso
