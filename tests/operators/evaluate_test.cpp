/// Evaluation beyond single cases: graphs, rings of other element types, lowering that merges and clips loops.

#include "operators/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "operators/element_evaluator.h"
#include "operators/lowered_body.h"
#include "operators/unfold.h"
#include "support/random.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

using Doubles = RingTensor<double>;

TensorType f32(Shape shape) { return {ElementType::f32, std::move(shape), true}; }

/// A ring of expressions as text, whose elements are neither trivially copyable nor numbers.
class TextRing {
 public:
  using Element = std::string;
  static std::string number(double value) { return to_string(AttributeValue(value)); }
  static std::string add(const std::string& a, const std::string& b) { return "(" + a + "+" + b + ")"; }
  static std::string subtract(const std::string& a, const std::string& b) { return "(" + a + "-" + b + ")"; }
  static std::string multiply(const std::string& a, const std::string& b) { return a + "*" + b; }
  static std::string divide(const std::string& a, const std::string& b) { return a + "/" + b; }
  static std::string call(const FunctionDefinition& f, const std::string& x) { return f.name + "(" + x + ")"; }
  static std::string call(const FunctionDefinition& f, const std::string& x, const std::string& y) {
    return f.name + "(" + x + "," + y + ")";
  }
  static std::string extremum(bool maximum, std::span<const std::string> values) {
    std::string text = maximum ? "max{" : "min{";
    for (const std::string& value : values) text += value + ";";
    return text + "}";
  }
  static std::string infinity(bool negative) { return negative ? "-inf" : "inf"; }
  static Status status() { return {}; }
};

TEST(Evaluate, ElementsNeedNotBeNumbers) {
  const std::vector<TensorType> types = {f32({1, 1, 2, 2})};
  const OperatorInstance pool =
      OperatorInstance::create(
          test::registry(), "max_pool2d",
          {{"kernel", std::vector<std::int64_t>{2, 2}}, {"pads", std::vector<std::int64_t>{1, 0, 0, 0}}}, types)
          .value();
  const RingTensor<std::string> x{{1, 1, 2, 2}, {"a", "b", "c", "d"}, {}};
  const RingTensor<std::string>* inputs[] = {&x};
  TextRing ring;
  const auto out = evaluate(pool, ring, std::span<const RingTensor<std::string>* const>(inputs)).value();
  EXPECT_EQ(out[0].elements, (std::vector<std::string>{"max{a;b;}", "max{a;b;c;d;}"}))
      << "cells outside are left out of the set";
}

TEST(Evaluate, AnArgumentOfAnExpandedFunctionIsComputedOnce) {
  const OperatorInstance gelu =
      OperatorInstance::create(test::registry(), "matmul_bias_act", {{"act", SymbolValue{"gelu"}}},
                               std::vector<TensorType>{f32({4, 8}), f32({8, 4}), f32({4})})
          .value();
  // 2 * 8 for the product, 1 for the bias, 5 for gelu.
  EXPECT_EQ(gelu.work().flops, 16.0 * (16 + 1 + 5));
}

TEST(Evaluate, LoopsThatMakeOneAreOne) {
  const std::vector<TensorType> types = {f32({2, 3, 4, 5}), f32({2, 3, 4, 5})};
  const OperatorInstance add = OperatorInstance::create(test::registry(), "add", {}, types).value();
  ASSERT_EQ(add.body().stages.size(), 1U);
  EXPECT_EQ(add.body().stages[0].outer.size(), 1U);
  EXPECT_EQ(add.body().stages[0].extents[add.body().stages[0].outer[0]], 120);
}

TEST(Evaluate, OnlyAxesThatCanLeaveTheTensorAreGuarded) {
  auto guards = [](std::vector<std::int64_t> pads) {
    const OperatorInstance conv =
        OperatorInstance::create(test::registry(), "conv2d", {{"pads", std::move(pads)}},
                                 std::vector<TensorType>{f32({1, 4, 5, 5}), f32({2, 4, 3, 3})})
            .value();
    std::size_t count = 0;
    for (const LoweredAccess& access : conv.body().stages[0].accesses) count += access.guards.size();
    return count;
  };
  EXPECT_EQ(guards({0, 0, 0, 0}), 0U);
  EXPECT_EQ(guards({0, 1, 0, 0}), 1U);
  EXPECT_EQ(guards({1, 1, 1, 1}), 2U);
}

/// Convolution written out as seven loops.
std::vector<double> plain_convolution(const Doubles& x, const Doubles& k, const Shape& out,
                                      const std::vector<std::int64_t>& strides, const std::vector<std::int64_t>& pads,
                                      const std::vector<std::int64_t>& dilations) {
  std::vector<double> result;
  const std::int64_t c = k.shape[1], groups = x.shape[1] / c, per_group = k.shape[0] / groups;
  for (std::int64_t b = 0; b < out[0]; ++b)
    for (std::int64_t f = 0; f < out[1]; ++f)
      for (std::int64_t y = 0; y < out[2]; ++y)
        for (std::int64_t z = 0; z < out[3]; ++z) {
          double sum = 0;
          for (std::int64_t i = 0; i < c; ++i)
            for (std::int64_t u = 0; u < k.shape[2]; ++u)
              for (std::int64_t v = 0; v < k.shape[3]; ++v) {
                const std::int64_t row = y * strides[0] + u * dilations[0] - pads[0];
                const std::int64_t column = z * strides[1] + v * dilations[1] - pads[1];
                if (row < 0 || column < 0 || row >= x.shape[2] || column >= x.shape[3]) continue;
                const std::int64_t channel = f / per_group * c + i;
                sum += x.elements[static_cast<std::size_t>(
                           ((b * x.shape[1] + channel) * x.shape[2] + row) * x.shape[3] + column)] *
                       k.elements[static_cast<std::size_t>(((f * c + i) * k.shape[2] + u) * k.shape[3] + v)];
              }
          result.push_back(sum);
        }
  return result;
}

TEST(Evaluate, ConvolutionsOfManyShapes) {
  Random random(5);
  int checked = 0;
  for (int round = 0; round < 400; ++round) {
    auto small = [&](std::uint64_t bound) { return 1 + static_cast<std::int64_t>(random.below(bound)); };
    auto fill = [&](Shape shape) {
      Doubles tensor{std::move(shape), {}, {}};
      for (std::int64_t i = 0; i < volume(tensor.shape); ++i)
        tensor.elements.push_back(static_cast<double>(random.below(9)) - 4);
      return tensor;
    };
    const std::int64_t groups = small(3), c = small(2), o = small(2);
    const Doubles x = fill({small(2), groups * c, small(6), small(6)}), k = fill({groups * o, c, small(3), small(3)});
    const std::vector<std::int64_t> strides = {small(3), small(3)}, dilations = {small(2), small(2)},
                                    pads = {small(4) - 1, small(4) - 1, small(4) - 1, small(4) - 1};
    const Expected<OperatorInstance> conv = OperatorInstance::create(
        test::registry(), "conv2d", {{"strides", strides}, {"pads", pads}, {"dilations", dilations}},
        std::vector<TensorType>{f32(x.shape), f32(k.shape)});
    if (!conv) continue;
    ++checked;
    DoubleRing ring;
    const Doubles* inputs[] = {&x, &k};
    const auto out = evaluate(*conv, ring, std::span<const Doubles* const>(inputs)).value();
    EXPECT_EQ(out[0].elements, plain_convolution(x, k, out[0].shape, strides, pads, dilations)) << "round " << round;
  }
  EXPECT_GT(checked, 200);
}

TEST(Evaluate, WrongInputsAreRefused) {
  const OperatorInstance relu =
      OperatorInstance::create(test::registry(), "relu", {}, std::vector<TensorType>{f32({2})}).value();
  DoubleRing ring;
  const Doubles other{{3}, {1, 2, 3}, {}}, short_one{{2}, {1}, {}};
  const Doubles* inputs[] = {&other};
  EXPECT_EQ(evaluate(relu, ring, std::span<const Doubles* const>(inputs)).error().message,
            "relu: input 0 is [3], expected [2] with all elements");
  inputs[0] = &short_one;
  EXPECT_EQ(evaluate(relu, ring, std::span<const Doubles* const>(inputs)).error().message,
            "relu: input 0 is [2], expected [2] with all elements");
  EXPECT_EQ(evaluate(relu, ring, std::span<const Doubles* const>()).error().message,
            "relu: evaluated with 0 inputs, expected 1");
}

TEST(Evaluate, IntegersWhereRealsAreExpected) {
  const OperatorInstance relu =
      OperatorInstance::create(test::registry(), "relu", {}, std::vector<TensorType>{f32({2})}).value();
  DoubleRing ring;
  const Doubles integers{{2}, {}, {1, 2}};
  const Doubles* inputs[] = {&integers};
  EXPECT_EQ(evaluate(relu, ring, std::span<const Doubles* const>(inputs)).error().message,
            "relu: input 0 is [2], expected [2] with all elements");
}

/// split(concat(x, y)) of a graph with a constant, two outputs of one node and an input that is used twice.
TEST(EvaluateGraph, SharedValuesConstantsAndPorts) {
  const OperatorRegistry& registry = test::registry();
  Graph graph;
  const NodeId x = graph.add_input("x", f32({1, 2}));
  const float numbers[] = {10, 20};
  const NodeId c = graph.add_constant(ConstantData::of_floats({1, 2}, numbers));
  const NodeId both = add_op(graph, registry, "concat", {{"axis", std::int64_t{-1}}}, {{x, 0}, {c, 0}}).value();
  const NodeId pieces = add_op(graph, registry, "split",
                               {{"axis", std::int64_t{-1}}, {"sizes", std::vector<std::int64_t>{1, 3}}}, {{both, 0}})
                            .value();
  const NodeId square = add_op(graph, registry, "mul", {}, {{x, 0}, {x, 0}}).value();
  graph.add_output({pieces, 1});
  graph.add_output({square, 0});
  graph.add_output({pieces, 0});
  DoubleRing ring;
  const auto out = evaluate(graph, registry, ring, {Doubles{{1, 2}, {3, 4}, {}}}).value();
  EXPECT_EQ(out[0].elements, (std::vector<double>{4, 10, 20}));
  EXPECT_EQ(out[1].elements, (std::vector<double>{9, 16}));
  EXPECT_EQ(out[2].elements, (std::vector<double>{3}));
  EXPECT_EQ(evaluate(graph, registry, ring, {}).error().message, "the graph has 1 inputs, not 0");
  Graph shape_only;
  shape_only.add_output({shape_only.add_constant(ConstantData::shape_only({ElementType::f32, {2}, true}, "w")), 0});
  EXPECT_EQ(evaluate(shape_only, registry, ring, {}).error().message,
            "constant 'w' f32[2] is only a shape: its elements are not known");
  EXPECT_EQ(evaluate(graph, registry, ring, {Doubles{{2}, {3, 4}, {}}}).error().message,
            "input 'x' is [2], expected [1, 2]");
}

TEST(EvaluateGraph, IntegerConstantsAreIndices) {
  const OperatorRegistry& registry = test::registry();
  Graph graph;
  const NodeId x = graph.add_input("x", f32({3}));
  const std::int64_t indices[] = {2, -3};
  const NodeId i = graph.add_constant(ConstantData::of_integers({2}, indices));
  const NodeId picked = add_op(graph, registry, "gather", {{"axis", std::int64_t{-1}}}, {{x, 0}, {i, 0}}).value();
  graph.add_output({picked, 0});
  IntegerRing ring;
  const auto out = evaluate(graph, registry, ring, {RingTensor<WideInteger>{{3}, {5, 6, 7}, {}}}).value();
  EXPECT_TRUE(out[0].elements[0] == 7 && out[0].elements[1] == 5);
}

/// Operators of tests/data/recurrences.
const OperatorRegistry& recurrences() {
  static const OperatorRegistry registry =
      OperatorRegistry::load(std::string(TASO_SOURCE_DIR) + "/tests/data/recurrences/operators", &test::registry())
          .value();
  return registry;
}

Doubles random_tensor(Shape shape, Random& random) {
  Doubles tensor{std::move(shape), {}, {}};
  const std::int64_t count = volume(tensor.shape);
  for (std::int64_t i = 0; i < count; ++i) tensor.elements.push_back(random.uniform() - 0.5);
  return tensor;
}

std::vector<double> run(const std::string& op, const std::vector<Doubles>& inputs, double* flops = nullptr) {
  std::vector<TensorType> types;
  std::vector<const Doubles*> pointers;
  for (const Doubles& input : inputs) {
    types.push_back(f32(input.shape));
    pointers.push_back(&input);
  }
  const OperatorInstance instance = OperatorInstance::create(recurrences(), op, {}, types).value();
  if (flops != nullptr) *flops = instance.work().flops;
  DoubleRing ring;
  return evaluate(instance, ring, std::span<const Doubles* const>(pointers)).value()[0].elements;
}

TEST(Recurrences, SumsAreTheSameOverEveryRing) {
  const std::vector<TensorType> types = {f32({3})};
  const RingTensor<std::string> x{{3}, {"a", "b", "c"}, {}};
  const RingTensor<std::string>* inputs[] = {&x};
  TextRing ring;
  const OperatorInstance sum = OperatorInstance::create(recurrences(), "cumsum", {}, types).value();
  EXPECT_EQ(evaluate(sum, ring, std::span<const RingTensor<std::string>* const>(inputs)).value()[0].elements,
            (std::vector<std::string>{"(0.0+a)", "((0.0+a)+b)", "(((0.0+a)+b)+c)"}));
  const OperatorInstance backwards = OperatorInstance::create(recurrences(), "cumsum_backwards", {}, types).value();
  EXPECT_EQ(evaluate(backwards, ring, std::span<const RingTensor<std::string>* const>(inputs)).value()[0].elements,
            (std::vector<std::string>{"(((0.0+c)+b)+a)", "((0.0+c)+b)", "(0.0+c)"}));
}

TEST(Recurrences, WorkAndCodeAreLinearInTheNumberOfSteps) {
  for (const std::int64_t steps : {1, 2, 3, 1000}) {
    const std::vector<TensorType> types = {f32({steps, 2})};
    const OperatorInstance sum = OperatorInstance::create(recurrences(), "cumsum", {}, types).value();
    EXPECT_EQ(sum.work().flops, static_cast<double>(2 * steps));
    EXPECT_EQ(sum.body().stages.size(), steps == 1 ? 2U : 3U) << "the first step, the others, the output";
  }
}

TEST(Recurrences, LstmIsALoop) {
  const std::int64_t t = 5, b = 2, c = 3, n = 2;
  Random random(7);
  const std::vector<Doubles> in = {random_tensor({t, b, c}, random), random_tensor({c, 4 * n}, random),
                                   random_tensor({n, 4 * n}, random), random_tensor({b, n}, random),
                                   random_tensor({b, n}, random)};
  std::vector<double> h = in[3].elements, m = in[4].elements, expected;
  auto at = [](const std::vector<double>& list, std::int64_t i) { return list[static_cast<std::size_t>(i)]; };
  auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  for (std::int64_t s = 0; s < t; ++s) {
    std::vector<double> next_h, next_m;
    for (std::int64_t i = 0; i < b; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double gates[4];
        for (std::int64_t g = 0; g < 4; ++g) {
          gates[g] = 0;
          for (std::int64_t k = 0; k < c; ++k)
            gates[g] += at(in[0].elements, (s * b + i) * c + k) * at(in[1].elements, k * 4 * n + g * n + j);
          for (std::int64_t k = 0; k < n; ++k) gates[g] += at(h, i * n + k) * at(in[2].elements, k * 4 * n + g * n + j);
        }
        next_m.push_back(sigmoid(gates[1]) * at(m, i * n + j) + sigmoid(gates[0]) * std::tanh(gates[2]));
        next_h.push_back(sigmoid(gates[3]) * std::tanh(next_m.back()));
      }
    h = next_h;
    m = next_m;
    expected.insert(expected.end(), h.begin(), h.end());
  }
  const std::vector<double> result = run("simple_lstm", in);
  ASSERT_EQ(result.size(), expected.size());
  for (std::size_t i = 0; i < result.size(); ++i) EXPECT_NEAR(result[i], expected[i], 1e-12) << i;
}

// No ring but that of machine numbers has functions of other elements than reals: nothing is proved or generated of
// them.
TEST(MachineNumbers, AreInNoRingOfReals) {
  const TensorType type = f32({2});
  const OperatorInstance instance =
      OperatorInstance::create(test::registry(), "is_nan", {}, std::span(&type, 1)).value();
  IntegerRing integers;
  const RingTensor<WideInteger> whole{{2}, {1, 2}, {}};
  const RingTensor<WideInteger>* const given = &whole;
  const auto refused = evaluate(instance, integers, std::span<const RingTensor<WideInteger>* const>(&given, 1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "is_nan computes with integers or truth values, not in a ring of reals");
  const auto unfolded =
      unfold(test::registry(), "is_nan", {}, std::span(&type, 1), [](std::string_view) { return true; });
  ASSERT_FALSE(unfolded.ok());
  EXPECT_EQ(unfolded.error().message, "it computes with integers or truth values");
}

// What moves elements moves words in any ring, and indices may be computed where numbers are machine numbers.
TEST(MachineNumbers, AreMovedAndMadeInGraphs) {
  Graph graph;
  const NodeId x = graph.add_input("x", f32({2, 3}));
  const NodeId place = add_op(graph, test::registry(), "arg_max", {{"axis", std::int64_t{-1}}}, {{x, 0}}).value();
  const NodeId picked =
      add_op(graph, test::registry(), "gather_elements", {{"axis", std::int64_t{-1}}}, {{x, 0}, {place, 0}}).value();
  graph.add_output({picked, 0});
  DoubleRing ring;
  const std::vector<double> elements = {1, 5, 2, 9, 7, 8};
  const std::vector<Doubles> inputs = {{{2, 3}, elements, {}}};
  EXPECT_EQ(evaluate(graph, test::registry(), ring, inputs).value()[0].elements, (std::vector<double>{5, 9}));
  const TensorElements tensor{{ElementType::f64, {2, 3}, true}, std::as_bytes(std::span(elements)), false};
  ElementEvaluator<DoubleRing> evaluator(graph, test::registry(), ring, std::span(&tensor, 1));
  const Expected<double> element = evaluator.at(graph.outputs()[0], 0);
  ASSERT_FALSE(element.ok());
  EXPECT_EQ(element.error().message, "arg_max makes i64 of reals");
}

}  // namespace
}  // namespace taso
