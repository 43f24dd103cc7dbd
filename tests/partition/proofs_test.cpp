// Strategies are theorems: those of operators of a user are proved when they are asked for, false cuts and changed
// strategies are refuted.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "partition/strategy.h"
#include "support/random.h"
#include "tests/partition/strategy_mutations.h"
#include "tests/support/shipped.h"
#include "verifier/verify.h"

namespace taso {
namespace {

const std::string source_dir = TASO_SOURCE_DIR;

VerifierOptions options() {
  VerifierOptions result;
  result.axioms = false;
  return result;
}

const OperatorRegistry& own() {
  static const OperatorRegistry loaded =
      test::value_of(OperatorRegistry::load(source_dir + "/tests/partition/operators", &test::registry()));
  return loaded;
}

TEST(StrategyProofs, OwnOperatorsAreProved) {
  Verifier verifier(own(), {}, options());
  std::size_t count = 0;
  std::vector<std::string> unknown;
  for (const std::string& op : own().names()) {
    if (test::registry().find(op) != nullptr) continue;
    for (const PartitionStrategy& strategy : derive_strategies(own(), op).strategies) {
      const Verdict verdict = verifier.verify(strategy.rule);
      EXPECT_NE(verdict.kind, VerdictKind::refuted) << to_string(strategy.rule, own()) << verdict.reason;
      if (verdict.kind == VerdictKind::unknown) unknown.push_back(strategy.rule.name);
      ++count;
    }
    for (const PartialPassage& passage : derive_passages(own(), op)) {
      const Verdict verdict = verifier.verify(passage.rule);
      EXPECT_EQ(verdict.kind, VerdictKind::proved) << to_string(passage.rule, own()) << verdict.reason;
    }
  }
  EXPECT_GE(count, 17u);
  EXPECT_THAT(unknown, testing::IsEmpty());
}

// A mark of proof is given for all sizes only.
TEST(StrategyProofs, AreUnbounded) {
  Verifier verifier(test::registry(), {}, options());
  for (const char* op : {"matmul", "conv2d", "reduce_max", "transpose"})
    for (const PartitionStrategy& strategy : derive_strategies(test::registry(), op).strategies)
      EXPECT_TRUE(verifier.verify(strategy.rule).by_unbounded) << strategy.rule.name;
}

// Wherever the conditions of a derived strategy hold, its pieces are well-typed: what is not is no such strategy
// (is_refuted_by_types).
TEST(StrategyProofs, PiecesAreWellTyped) {
  Verifier verifier(test::registry(), {}, options());
  for (const char* op : {"concat", "conv2d", "gather", "matmul", "pad_channels", "reduce_max", "slice"})
    for (const PartitionStrategy& strategy : derive_strategies(test::registry(), op).strategies) {
      const Verdict verdict = verifier.verify(strategy.rule);
      EXPECT_EQ(verdict.kind, VerdictKind::proved) << strategy.rule.name << verdict.reason;
      EXPECT_EQ(verdict.ill_typed_target, 0u) << strategy.rule.name;
    }
}

TEST(StrategyProofs, FalseCutsAreRefuted) {
  const auto rules = test::value_of(load_rules(source_dir + "/tests/partition/false.rules", test::registry()));
  Verifier verifier(test::registry(), {}, options());
  for (const Substitution& rule : rules) {
    const Verdict verdict = verifier.verify(rule);
    EXPECT_EQ(*rule.expect, to_string(verdict.kind)) << rule.name << ": " << verdict.reason;
  }
}

// Of strategies that are changed in one place none is unknown, and those that are proved are true: they cut at another
// place of a plain axis, or their types leave no other cut than the right one. (check_strategies examines more.)
TEST(StrategyProofs, ChangedStrategiesAreRefutedOrTrue) {
  std::vector<test::StrategyMutation> all;
  for (const char* op :
       {"add", "conv2d", "layer_norm", "matmul", "max_pool2d", "reduce_max", "reduce_sum", "transpose"})
    for (const PartitionStrategy& strategy : derive_strategies(test::registry(), op).strategies)
      for (test::StrategyMutation& mutation : test::strategy_mutations(strategy.rule, test::registry()))
        all.push_back(std::move(mutation));
  ASSERT_GT(all.size(), 100u);
  Random random(1, "changed strategies");
  for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
  Verifier verifier(test::registry(), {}, options());
  std::size_t refuted = 0;
  for (std::size_t i = 0; i < 20; ++i) {
    const Verdict verdict = verifier.verify(all[i].rule);
    const bool by_types = test::is_refuted_by_types(verdict);
    EXPECT_TRUE(by_types || verdict.kind != VerdictKind::unknown)
        << all[i].what << "\n"
        << to_string(all[i].rule, test::registry()) << verdict.reason;
    refuted += by_types || verdict.kind == VerdictKind::refuted ? 1 : 0;
  }
  EXPECT_GE(refuted, 13u);
}

// The regions of the example that Tofu gives: B = shift_two(A), 12 elements, halves of 5.
TEST(StrategyRegions, AreThoseOfTofu) {
  const std::vector<PartitionStrategy> strategies = derive_strategies(own(), "shift_two").strategies;
  ASSERT_EQ(strategies.size(), 1u);
  const PartitionStrategy& strategy = strategies[0];
  ASSERT_EQ(strategy.inputs.size(), 1u);
  const TensorType type{ElementType::f32, {12}, true};
  Bindings bindings;
  bindings.tensors = {&type};
  bindings.attributes.assign(strategy.rule.attribute_variables.size(), std::nullopt);
  bindings.attributes[strategy.cut] = std::int64_t{5};
  const auto at = [&](const AttributeExpression& e) {
    return std::get<std::int64_t>(test::value_of(evaluate(e, bindings)));
  };
  const InputCut& input = strategy.inputs[0];
  EXPECT_EQ(at(strategy.extent), 10);
  EXPECT_EQ(at(input.read_begin[0]), 2);
  EXPECT_EQ(at(input.read_end[0]), 7);
  EXPECT_EQ(at(input.read_begin[1]), 7);
  EXPECT_EQ(at(input.read_end[1]), 12);
}

// The same of conv1d: x of 32 in halves (data 34), and dx of 3 in 2 and 1.
TEST(StrategyRegions, OfTheConvolutionAreThoseOfTofu) {
  const TensorType data{ElementType::f32, {8, 4, 34}, true}, filters{ElementType::f32, {4, 16, 3}, true};
  std::vector<std::string> found;
  for (const PartitionStrategy& strategy : derive_strategies(own(), "conv1d").strategies) {
    Bindings bindings;
    bindings.tensors = {&data, &filters};
    bindings.attributes.assign(strategy.rule.attribute_variables.size(), std::nullopt);
    const auto at = [&](const AttributeExpression& e) {
      return std::get<std::int64_t>(test::value_of(evaluate(e, bindings)));
    };
    const std::int64_t extent = at(strategy.extent);
    bindings.attributes[strategy.cut] = (extent + 1) / 2;
    std::string text = strategy.variable + (strategy.concatenates() ? " concat" : " " + strategy.reducer);
    for (const InputCut& input : strategy.inputs)
      text += "; " + strategy.rule.tensor_variables[input.input] + " " + std::to_string(at(input.axis)) + " [" +
              std::to_string(at(input.read_begin[0])) + "," + std::to_string(at(input.read_end[0])) + ") [" +
              std::to_string(at(input.read_begin[1])) + "," + std::to_string(at(input.read_end[1])) + ")";
    found.push_back(text);
  }
  EXPECT_THAT(found, testing::ElementsAre("n concat; data -3 [0,4) [4,8)", "o concat; filters -2 [0,8) [8,16)",
                                          "x concat; data -1 [0,18) [16,34)",
                                          "i sum; data -2 [0,2) [2,4); filters -3 [0,2) [2,4)",
                                          "d sum; data -1 [0,33) [2,34); filters -1 [0,2) [2,3)"));
}

}  // namespace
}  // namespace taso
