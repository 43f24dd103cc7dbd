// ONNX operators that become several of ours, where ONNX's own tests (node_data_test.cpp) have none: later opsets,
// attributes in other combinations, parameters that are constant. Values are worked out here from ONNX's definition.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <optional>

#include "operators/evaluate.h"
#include "tests/onnx_io/fixture.h"

namespace taso {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Model load(const ModelBuilder& builder) {
  auto model = Model::parse(builder.serialize(), "composed.onnx", test::registry());
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().to_string());
  test::expect_well_typed(*model);
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
    EXPECT_TRUE(model.carried_nodes().empty());
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
    ASSERT_TRUE(model.carried_nodes().empty()) << model.carried_nodes()[0].reason;
    EXPECT_EQ(run(model, {1, 1, 2, 2}, {1, 2, 3, 4}), twice);
  }
}

TEST(Composed, UpsampleOfOldOpsets) {
  const Model model =
      load(node(7, "Upsample", {1, 1, 1, 2}, {1, 1, 2, 6}, {{"scales", std::vector<float>{1, 1, 2, 3}}}));
  ASSERT_TRUE(model.carried_nodes().empty()) << model.carried_nodes()[0].reason;
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
}

TEST(Composed, WholeExponents) {
  ModelBuilder builder(13, "composed");
  builder.add_input("x", {3});
  builder.add_initializer("e", {3}, std::vector<std::int64_t>{2, 3, -1});
  builder.add_node("Pow", {"x", "e"}, {"y"}, {}, "node");
  builder.add_output("y", {3});
  const Model model = load(builder);
  EXPECT_TRUE(model.carried_nodes().empty());
  EXPECT_THAT(run(model, {3}, {-3, -2, 4}), ElementsAre(9, -8, 0.25));
}

TEST(Composed, LogSoftmaxDoesNotUnderflow) {
  for (const int opset : {11, 13}) {
    const Model model = load(node(opset, "LogSoftmax", {1, 3}, {1, 3}, {{"axis", 1}}));
    EXPECT_TRUE(model.carried_nodes().empty());
    const std::vector<double> actual = run(model, {1, 3}, {1000, 0, -1000});
    ASSERT_EQ(actual.size(), 3U);
    EXPECT_NEAR(actual[0], 0, 1e-9);
    EXPECT_NEAR(actual[1], -1000, 1e-9);
    EXPECT_NEAR(actual[2], -2000, 1e-9);
  }
}

TEST(Composed, LogarithmsOfSumsOfExponentials) {
  const Model model = load(node(13, "ReduceLogSumExp", {2, 2}, {2}, {{"axes", {1}}, {"keepdims", 0}}));
  EXPECT_TRUE(model.carried_nodes().empty());
  const std::vector<double> actual = run(model, {2, 2}, {1000, 1000, -1, 2});
  ASSERT_EQ(actual.size(), 2U);
  EXPECT_NEAR(actual[0], 1000 + std::log(2), 1e-9);
  EXPECT_NEAR(actual[1], std::log(std::exp(-1) + std::exp(2)), 1e-9);
}

// Against the definition: every input element adds its window to the output.
TEST(Composed, TransposedConvolutions) {
  struct Case {
    Shape x, kernel, strides, pads, more;
    std::int64_t group = 1, outputs = 1;  // of each group
    bool bias = false;
  };
  const std::vector<Case> cases = {
      {{1, 2, 3, 4}, {2, 2}, {2, 2}, {0, 0, 0, 0}, {0, 0}, 1, 3, true},   // windows side by side
      {{2, 4, 3, 2}, {3, 4}, {2, 3}, {1, 0, 0, 2}, {1, 0}, 2, 2, true},   // overlapping, cut, groups
      {{1, 1, 4, 4}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {0, 0}},               // no stride: a convolution
      {{1, 2, 2, 3}, {1, 2}, {3, 3}, {0, 0, 0, 0}, {2, 1}, 1, 2, false},  // windows apart
      {{1, 3, 2, 2}, {5, 4}, {2, 2}, {2, 1, 2, 1}, {1, 1}},
      {{1, 2, 2, 1}, {2, 2}, {1, 2}, {0, 0, 0, 0}, {0, 1}, 1, 1, true},  // more than the window reaches
      {{1, 2, 5}, {4}, {3}, {1, 2}, {2}, 1, 2, true},                    // one axis
  };
  for (const Case& t : cases) {
    SCOPED_TRACE(testing::PrintToString(t.x) + " * " + testing::PrintToString(t.kernel));
    const std::size_t n = t.kernel.size();
    Shape weights = {t.x[1], t.outputs};
    weights.insert(weights.end(), t.kernel.begin(), t.kernel.end());
    Shape y = {t.x[0], t.group * t.outputs};
    for (std::size_t i = 0; i < n; ++i)
      y.push_back(t.strides[i] * (t.x[i + 2] - 1) + t.kernel[i] + t.more[i] - t.pads[i] - t.pads[n + i]);
    const std::vector<float> x = test::numbers(volume(t.x), -1, 0.37F), w = test::numbers(volume(weights), 2, -0.23F);
    const std::vector<float> b = test::numbers(t.bias ? y[1] : 0, 5, 1);
    const Model model =
        load(node(13, "ConvTranspose", t.x, y,
                  {{"strides", t.strides}, {"pads", t.pads}, {"output_padding", t.more}, {"group", t.group}},
                  [&](ModelBuilder& builder) {
                    builder.add_initializer("w", weights, w);
                    if (t.bias) builder.add_initializer("b", {y[1]}, b);
                    return t.bias ? std::vector<std::string>{"w", "b"} : std::vector<std::string>{"w"};
                  }));
    ASSERT_TRUE(model.carried_nodes().empty()) << model.carried_nodes()[0].reason;
    // With one axis, a first one of extent 1.
    const auto two = [](const Shape& shape, std::size_t i) {
      return shape.size() == 1 ? (i == 0 ? 1 : shape[0]) : shape[i];
    };
    const auto begin = [&](std::size_t i) { return n == 1 ? (i == 0 ? 0 : t.pads[0]) : t.pads[i]; };
    const Shape x2 = n == 1 ? Shape{t.x[0], t.x[1], 1, t.x[2]} : t.x, y2 = n == 1 ? Shape{y[0], y[1], 1, y[2]} : y;
    std::vector<double> expected(static_cast<std::size_t>(volume(y)));
    const auto place = [](const Shape& s, std::int64_t a, std::int64_t c, std::int64_t h, std::int64_t v) {
      return static_cast<std::size_t>(((a * s[1] + c) * s[2] + h) * s[3] + v);
    };
    for (std::int64_t a = 0; a < y2[0]; ++a)
      for (std::int64_t o = 0; o < y2[1]; ++o)
        for (std::int64_t h = 0; h < y2[2]; ++h)
          for (std::int64_t v = 0; v < y2[3]; ++v)
            expected[place(y2, a, o, h, v)] = t.bias ? static_cast<double>(b[static_cast<std::size_t>(o)]) : 0;
    const Shape k2 = {t.x[1], t.outputs, two(t.kernel, 0), two(t.kernel, 1)};
    for (std::int64_t a = 0; a < x2[0]; ++a)
      for (std::int64_t c = 0; c < x2[1]; ++c)
        for (std::int64_t h = 0; h < x2[2]; ++h)
          for (std::int64_t v = 0; v < x2[3]; ++v)
            for (std::int64_t o = 0; o < t.outputs; ++o)
              for (std::int64_t i = 0; i < k2[2]; ++i)
                for (std::int64_t j = 0; j < k2[3]; ++j) {
                  const std::int64_t row = h * two(t.strides, 0) + i - begin(0),
                                     column = v * two(t.strides, 1) + j - begin(1);
                  if (row < 0 || row >= y2[2] || column < 0 || column >= y2[3]) continue;
                  const std::int64_t channel = c / (x2[1] / t.group) * t.outputs + o;
                  expected[place(y2, a, channel, row, column)] +=
                      static_cast<double>(x[place(x2, a, c, h, v)]) * static_cast<double>(w[place(k2, c, o, i, j)]);
                }
    const std::vector<double> actual = run(model, t.x, x);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-4) << i;
  }
}

TEST(Composed, FunctionsWithABend) {
  const std::vector<float> x = {-200, -2, -0.5F, 0, 0.5F, 200};
  const auto expect = [&](const std::string& op, int opset, const std::vector<OnnxAttribute>& attributes,
                          const std::function<double(double)>& function) {
    SCOPED_TRACE(op);
    const Model model = load(node(opset, op, {6}, {6}, attributes));
    ASSERT_TRUE(model.carried_nodes().empty()) << model.carried_nodes()[0].reason;
    const std::vector<double> actual = run(model, {6}, x);
    ASSERT_EQ(actual.size(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double expected = function(static_cast<double>(x[i]));
      EXPECT_NEAR(actual[i], expected, 1e-6 * (1 + std::abs(expected))) << x[i];
    }
  };
  const auto below = [](double v, double value) { return v < 0 ? value : v; };
  expect("LeakyRelu", 13, {}, [&](double v) { return below(v, 0.01 * v); });
  expect("LeakyRelu", 13, {{"alpha", 1.5}}, [&](double v) { return below(v, 1.5 * v); });
  expect("LeakyRelu", 13, {{"alpha", 0.0}}, [&](double v) { return below(v, 0); });
  expect("Elu", 13, {{"alpha", 2.0}}, [&](double v) { return below(v, 2 * std::expm1(v)); });
  expect("Celu", 13, {{"alpha", 2.0}}, [&](double v) { return below(v, 2 * std::expm1(v / 2)); });
  expect("Selu", 13, {}, [&](double v) { return 1.0507010 * below(v, 1.6732632 * std::expm1(v)); });
  const auto softplus = [](double v) { return v > 30 ? v : std::log1p(std::exp(v)); };
  expect("Softplus", 13, {}, softplus);
  expect("Mish", 18, {}, [&](double v) { return v * std::tanh(softplus(v)); });
  expect("Softsign", 13, {}, [](double v) { return v / (1 + std::abs(v)); });
  expect("Swish", 24, {{"alpha", 0.5}}, [](double v) { return v / (1 + std::exp(-0.5 * v)); });
  expect("Gelu", 20, {{"approximate", "tanh"}}, [](double v) {
    return 0.5 * v * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v)));
  });
}

TEST(Composed, ParametricReluWithASlopePerChannel) {
  const Model model = load(node(13, "PRelu", {1, 2, 2}, {1, 2, 2}, {}, [](ModelBuilder& builder) {
    builder.add_initializer("slope", {2, 1}, std::vector<float>{0.25F, -3});
    return std::vector<std::string>{"slope"};
  }));
  EXPECT_TRUE(model.carried_nodes().empty());
  EXPECT_THAT(run(model, {1, 2, 2}, {-4, 4, -4, 4}), ElementsAre(-1, 4, 12, 4));
}

TEST(Composed, RootMeanSquareNormalization) {
  const Model model = load(node(23, "RMSNormalization", {2, 2}, {2, 2}, {{"epsilon", 1.0}}, [](ModelBuilder& builder) {
    builder.add_initializer("scale", {2}, std::vector<float>{1, 10});
    return std::vector<std::string>{"scale"};
  }));
  ASSERT_TRUE(model.carried_nodes().empty()) << model.carried_nodes()[0].reason;
  const std::vector<double> actual = run(model, {2, 2}, {3, 4, 0, 1});
  ASSERT_EQ(actual.size(), 4U);
  EXPECT_NEAR(actual[0], 3 / std::sqrt(13.5), 1e-6);
  EXPECT_NEAR(actual[1], 40 / std::sqrt(13.5), 1e-6);
  EXPECT_NEAR(actual[2], 0, 1e-6);
  EXPECT_NEAR(actual[3], 10 / std::sqrt(1.5), 1e-6);
}

/// Where(mask, x, y) with x of shape [2, 2] as an input and constants as given.
ModelBuilder selection(const Shape& mask_shape, const std::vector<std::uint8_t>& mask, const Shape& other_shape,
                       const std::vector<float>& other, bool swapped = false) {
  ModelBuilder builder(13, "selection");
  builder.add_input("x", {2, 2});
  builder.add_boolean_initializer("mask", mask_shape, mask);
  builder.add_initializer("other", other_shape, other);
  builder.add_node("Where", {"mask", swapped ? "other" : "x", swapped ? "x" : "other"}, {"y"}, {}, "node");
  builder.add_output("y", {2, 2});
  return builder;
}

TEST(Composed, SelectionByAConstantMask) {
  const auto value = [](const ModelBuilder& builder) {
    const Model model = load(builder);
    EXPECT_TRUE(model.carried_nodes().empty());
    return run(model, {2, 2}, {1, 2, 3, 4});
  };
  const float lowest = std::numeric_limits<float>::lowest();
  EXPECT_THAT(value(selection({2, 2}, {1, 0, 1, 1}, {}, {lowest})), ElementsAre(1, static_cast<double>(lowest), 3, 4));
  EXPECT_THAT(value(selection({2, 2}, {1, 0, 1, 1}, {}, {-7}, true)), ElementsAre(-7, 2, -7, -7));
  EXPECT_THAT(value(selection({2, 1}, {0, 1}, {1, 2}, {8, 9})), ElementsAre(8, 9, 3, 4));
  EXPECT_THAT(value(selection({1}, {1}, {2}, {8, 9})), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(value(selection({2}, {0, 0}, {2}, {8, INFINITY})), ElementsAre(8, INFINITY, 8, INFINITY));
  EXPECT_THAT(value(selection({2}, {0, 1}, {}, {-INFINITY})), ElementsAre(-INFINITY, 2, -INFINITY, 4));
}

// The masks of decoders as exporters spell them: each ends in Where, which is understood as the mask is constant.
TEST(Composed, MasksThatAreComputedFromConstants) {
  constexpr std::int64_t tokens = 100;  // 10,000 elements: more than lists of numbers may have
  const auto check = [&](const std::string& what, const std::function<void(ModelBuilder&)>& fill) {
    SCOPED_TRACE(what);
    ModelBuilder builder(14, "mask");
    builder.add_input("x", {tokens, tokens});
    builder.add_initializer("zero", {}, std::vector<std::int64_t>{0});
    builder.add_initializer("one", {}, std::vector<std::int64_t>{1});
    builder.add_initializer("n", {}, std::vector<std::int64_t>{tokens});
    builder.add_initializer("low", {}, std::vector<float>{-9});
    fill(builder);
    builder.add_node("Where", {"mask", "x", "low"}, {"y"}, {}, "select");
    builder.add_output("y", {tokens, tokens});
    const Model model = load(builder);
    ASSERT_TRUE(model.carried_nodes().empty())
        << model.carried_nodes()[0].op << ": " << model.carried_nodes()[0].reason;
    const std::vector<double> y = run(model, {tokens, tokens}, std::vector<float>(tokens * tokens, 5));
    ASSERT_EQ(y.size(), static_cast<std::size_t>(tokens * tokens));
    for (std::int64_t i = 0; i < tokens; ++i)
      for (std::int64_t j = 0; j < tokens; ++j)
        ASSERT_EQ(y[static_cast<std::size_t>(i * tokens + j)], j <= i ? 5 : -9) << i << ", " << j;
  };
  check("positions compared", [](ModelBuilder& builder) {
    builder.add_initializer("last", {1}, std::vector<std::int64_t>{1});
    builder.add_node("Range", {"zero", "n", "one"}, {"j"});
    builder.add_node("Unsqueeze", {"j", "last"}, {"i"});
    builder.add_node("LessOrEqual", {"j", "i"}, {"mask"});
  });
  check("a slice of a larger triangle", [](ModelBuilder& builder) {
    constexpr std::int64_t most = 256;
    std::vector<std::uint8_t> all;
    for (std::int64_t i = 0; i < most; ++i)
      for (std::int64_t j = 0; j < most; ++j) all.push_back(j <= i ? 1 : 0);
    builder.add_boolean_initializer("bias", {1, 1, most, most}, all);
    builder.add_initializer("from", {2}, std::vector<std::int64_t>{most - tokens, most - tokens});
    builder.add_initializer("to", {2}, std::vector<std::int64_t>{most, std::numeric_limits<std::int64_t>::max()});
    builder.add_initializer("axes", {2}, std::vector<std::int64_t>{-2, 3});
    builder.add_initializer("leading", {2}, std::vector<std::int64_t>{0, 1});
    builder.add_node("Slice", {"bias", "from", "to", "axes"}, {"part"});
    builder.add_node("Squeeze", {"part", "leading"}, {"mask"});
  });
  check("Trilu of what Expand makes", [](ModelBuilder& builder) {
    builder.add_boolean_initializer("true", {1}, std::vector<std::uint8_t>{1});
    builder.add_initializer("shape", {2}, std::vector<std::int64_t>{tokens, tokens});
    builder.add_node("Expand", {"true", "shape"}, {"all"});
    builder.add_node("Trilu", {"all", "one"}, {"later"}, {{"upper", 1}});
    builder.add_node("Not", {"later"}, {"mask"});
  });
}

/// What a node that is not carried computes of x.
void expect_values(const ModelBuilder& builder, const Shape& shape, const std::vector<float>& x,
                   const std::vector<double>& expected) {
  const Model model = load(builder);
  ASSERT_TRUE(model.carried_nodes().empty()) << model.carried_nodes()[0].op << ": " << model.carried_nodes()[0].reason;
  const std::vector<double> actual = run(model, shape, x);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-6) << i;
}

TEST(Composed, SumsAlongAnAxis) {
  const auto sums = [](std::int64_t axis, const std::vector<OnnxAttribute>& attributes) {
    return node(14, "CumSum", {2, 3}, {2, 3}, attributes, [&](ModelBuilder& builder) {
      builder.add_initializer("axis", {}, std::vector<std::int64_t>{axis});
      return std::vector<std::string>{"axis"};
    });
  };
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  expect_values(sums(1, {}), {2, 3}, x, {1, 3, 6, 4, 9, 15});
  expect_values(sums(-2, {}), {2, 3}, x, {1, 2, 3, 5, 7, 9});
  expect_values(sums(1, {{"exclusive", 1}}), {2, 3}, x, {0, 1, 3, 0, 4, 9});
  expect_values(sums(1, {{"reverse", 1}}), {2, 3}, x, {6, 5, 3, 15, 11, 6});
  expect_values(sums(1, {{"reverse", 1}, {"exclusive", 1}}), {2, 3}, x, {5, 3, 0, 11, 6, 0});
}

TEST(Composed, Einsum) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const auto with = [](const std::string& equation, const Shape& y, const Shape& z) {
    return node(13, "Einsum", {2, 3}, y, {{"equation", equation}}, [&](ModelBuilder& builder) {
      builder.add_initializer("z", z, std::vector<float>{1, 0, 2, -1, 1, 3});
      return std::vector<std::string>{"z"};
    });
  };
  expect_values(with("ij,jk", {2, 2}, {3, 2}), {2, 3}, x, {8, 7, 20, 13});
  expect_values(with("ij , kj -> ki", {2, 2}, {2, 3}), {2, 3}, x, {7, 16, 10, 19});
  expect_values(with("ij,ij->", {}, {2, 3}), {2, 3}, x, {26});
  expect_values(with("ij,ij->ij", {2, 3}, {2, 3}), {2, 3}, x, {1, 0, 6, -4, 5, 18});
  expect_values(with("i...,j...->ij", {2, 2}, {2, 3}), {2, 3}, x, {7, 10, 16, 19});
  expect_values(node(13, "Einsum", {2, 3}, {3}, {{"equation", "ij->j"}}), {2, 3}, x, {5, 7, 9});
  EXPECT_EQ(load(node(13, "Einsum", {2, 2}, {2}, {{"equation", "ii->i"}})).carried_nodes().at(0).reason,
            "it takes a diagonal");
}

TEST(Composed, NormsOfWindowsAndAxes) {
  const std::vector<float> x = {1, -2, 3, -4};
  expect_values(node(13, "GlobalLpPool", {1, 1, 2, 2}, {1, 1, 1, 1}, {{"p", 3}}), {1, 1, 2, 2}, x,
                {std::cbrt(1 + 8 + 27 + 64)});
  expect_values(node(13, "GlobalLpPool", {1, 1, 2, 2}, {1, 1, 1, 1}, {}), {1, 1, 2, 2}, x, {std::sqrt(30)});
  const std::vector<std::int64_t> kernel = {2, 1}, pads = {1, 0, 0, 0};
  expect_values(node(13, "LpPool", {1, 1, 2, 2}, {1, 1, 2, 2}, {{"kernel_shape", kernel}, {"pads", pads}}),
                {1, 1, 2, 2}, x, {1, 2, std::sqrt(10), std::sqrt(20)});
  expect_values(node(13, "LpPool", {1, 1, 2, 2}, {1, 1, 1, 2}, {{"kernel_shape", kernel}, {"p", 1}}), {1, 1, 2, 2}, x,
                {4, 6});
  // A norm of 0 divides nothing.
  expect_values(node(13, "LpNormalization", {2, 2}, {2, 2}, {{"p", 1}}), {2, 2}, {1, -3, 0, 0}, {0.25, -0.75, 0, 0});
  expect_values(node(13, "LpNormalization", {2, 2}, {2, 2}, {{"axis", 0}}), {2, 2}, {3, 0, -4, 0}, {0.6, 0, -0.8, 0});
}

TEST(Composed, OneOfTwoValues) {
  const ModelBuilder builder = [] {
    ModelBuilder model(13, "composed");
    model.add_input("x", {2});
    model.add_initializer("i", {2}, std::vector<std::int64_t>{1, -1});
    model.add_initializer("depth", {}, std::vector<std::int64_t>{3});
    model.add_node("OneHot", {"i", "depth", "x"}, {"y"}, {{"axis", 0}}, "node");
    model.add_output("y", {3, 2});
    return model;
  }();
  expect_values(builder, {2}, {-1, 7}, {-1, -1, 7, -1, -1, 7});
}

TEST(Composed, SimplifiedLayerNormalization) {
  const ModelBuilder builder =
      node(17, "SimplifiedLayerNormalization", {2, 2}, {2, 2}, {{"epsilon", 0.0}}, [](ModelBuilder& model) {
        model.add_initializer("scale", {2}, std::vector<float>{1, 2});
        return std::vector<std::string>{"scale"};
      });
  expect_values(builder, {2, 2}, {1, 7, 3, 4}, {0.2, 2.8, 3 / std::sqrt(12.5), 8 / std::sqrt(12.5)});
}

TEST(Composed, RotaryEmbedding) {
  const auto rotated = [](const std::vector<OnnxAttribute>& attributes) {
    return node(23, "RotaryEmbedding", {1, 1, 1, 4}, {1, 1, 1, 4}, attributes, [](ModelBuilder& builder) {
      builder.add_initializer("cosines", {1, 1, 2}, std::vector<float>{0.5F, 2});
      builder.add_initializer("sines", {1, 1, 2}, std::vector<float>{-1, 3});
      return std::vector<std::string>{"cosines", "sines"};
    });
  };
  const std::vector<float> x = {1, 2, 3, 4};
  expect_values(rotated({}), {1, 1, 1, 4}, x, {0.5 + 3, 4 - 12, -1 + 1.5, 6 + 8});
  expect_values(rotated({{"interleaved", 1}}), {1, 1, 1, 4}, x, {0.5 + 2, -1 + 1, 6 - 12, 9 + 8});
  // Two heads side by side, of each of which one element stays.
  const ModelBuilder flat = node(23, "RotaryEmbedding", {1, 1, 6}, {1, 1, 6},
                                 {{"num_heads", 2}, {"rotary_embedding_dim", 2}}, [](ModelBuilder& builder) {
                                   builder.add_initializer("cosines", {1, 1, 1}, std::vector<float>{2});
                                   builder.add_initializer("sines", {1, 1, 1}, std::vector<float>{3});
                                   return std::vector<std::string>{"cosines", "sines"};
                                 });
  expect_values(flat, {1, 1, 6}, {1, 2, 3, 4, 5, 6}, {2 - 6, 4 + 3, 3, 8 - 15, 10 + 12, 6});
}

TEST(Composed, Attention) {
  // Two queries of one element, which is key and value as well.
  const auto attended = [](const std::vector<OnnxAttribute>& attributes) {
    ModelBuilder model(23, "composed");
    model.add_input("x", {1, 1, 2, 1});
    model.add_node("Attention", {"x", "x", "x"}, {"y"}, attributes, "node");
    model.add_output("y", {1, 1, 2, 1});
    return model;
  };
  const auto mean = [](double a, double b) { return (std::exp(a) + 2 * std::exp(b)) / (std::exp(a) + std::exp(b)); };
  expect_values(attended({}), {1, 1, 2, 1}, {1, 2}, {mean(1, 2), mean(2, 4)});
  expect_values(attended({{"scale", 0.5}}), {1, 1, 2, 1}, {1, 2}, {mean(0.5, 1), mean(1, 2)});
  expect_values(attended({{"is_causal", 1}}), {1, 1, 2, 1}, {1, 2}, {1, mean(2, 4)});
  expect_values(attended({{"softcap", 2.0}}), {1, 1, 2, 1}, {1, 2},
                {mean(2 * std::tanh(0.5), 2 * std::tanh(1)), mean(2 * std::tanh(1), 2 * std::tanh(2))});
}

/// A list that ConstantOfShape makes is equal to the computed one that it reads.
TEST(Composed, AListThatIsEqualToItsShape) {
  ModelBuilder builder(18, "composed");
  builder.add_input("x", {2, 3});
  builder.add_initializer("minus", {1}, std::vector<std::int64_t>{-1});
  builder.add_node("Neg", {"minus"}, {"shape"});
  builder.add_node("ConstantOfShape", {"shape"}, {"list"});
  builder.add_node("ReduceMean", {"x", "list"}, {"y"}, {}, "node");
  builder.add_output("y", {2, 1});
  onnx::ModelProto file = test::message(builder.serialize());
  onnx::AttributeProto& value = *file.mutable_graph()->mutable_node(1)->add_attribute();
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  value.mutable_t()->set_data_type(onnx::TensorProto::INT64);
  value.mutable_t()->add_dims(1);
  value.mutable_t()->add_int64_data(1);
  const Model model = test::value_of(Model::parse(file.SerializeAsString(), "composed.onnx", test::registry()));
  const std::string path = testing::TempDir() + "/taso_composed_test.onnx";
  SaveOptions options;
  options.verbatim = false;
  const auto saved = model.save(model.graph(), path, options);
  ASSERT_TRUE(saved.ok()) << saved.error().to_string();
  const Model again = test::value_of(Model::load(path, test::registry()));
  EXPECT_EQ(run(again, {2, 3}, {1, 2, 3, 4, 5, 6}), (std::vector<double>{2, 5}));
}

}  // namespace
}  // namespace taso
