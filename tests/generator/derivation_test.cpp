// No rule is lost by pruning: for every rule that was left out, the rules that were kept derive it, and the derivation
// is replayed by other means than it was found.
#include <gtest/gtest.h>

#include "generator/generator.h"
#include "tests/generator/replay.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

using test::registry;

class PrunedRules : public testing::TestWithParam<const char*> {};

TEST_P(PrunedRules, AreDerivedFromTheRemainingOnes) {
  const auto profile =
      load_profile(std::string(TASO_SOURCE_DIR "/tests/generator/") + GetParam() + ".profile", registry());
  ASSERT_TRUE(profile.ok()) << profile.error().to_string();
  GeneratorOptions options;
  options.explain_skipped = true;
  options.max_ops = 4;  // the groups say how many
  std::string lost;
  options.dropped = [&](const std::string& rule, const std::string& why) { lost += rule + why + "\n"; };
  const auto result = generate(*profile, registry(), options);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  std::vector<std::string> rules;
  for (const GeneralRule& rule : result->rules) rules.push_back(to_string(rule.rule, registry()));
  std::size_t steps = 0;
  for (const PrunedRule& pruned : result->pruned) {
    const Substitution& rule = pruned.rule.rule;
    SCOPED_TRACE(to_string(rule, registry()));
    const auto source =
        instantiate(rule, rule.source, pruned.rule.example_types, pruned.rule.example_attributes, registry());
    const auto target =
        instantiate(rule, rule.target, pruned.rule.example_types, pruned.rule.example_attributes, registry());
    ASSERT_TRUE(source.ok() && target.ok());
    replay(pruned.derivation, *source, *target, rules, registry(), must_stand(pruned.rule));
    steps += pruned.derivation.steps.size();
  }
  EXPECT_GT(steps, 0u) << "nothing was pruned: the test shows nothing";
  std::uint64_t underived = 0, not_general = 0;
  for (const GroupStatistics& group : result->groups) {
    underived += group.skipped_underived;
    not_general += group.not_general;
  }
  EXPECT_EQ(underived, 0u) << lost;
  EXPECT_EQ(not_general, 0u) << lost;
}

INSTANTIATE_TEST_SUITE_P(Profiles, PrunedRules,
                         testing::Values("cases/elementwise", "pruned/arithmetic", "pruned/products",
                                         "pruned/concatenations", "pruned/sharing"),
                         [](const auto& one) {
                           const std::string name = one.param;
                           return name.substr(name.find('/') + 1);
                         });

// A derivation that is not one is told from one that is.
TEST(Derivation, EndsWhereItShould) {
  const auto rules = parse_rules(
      "rule distribute: add(mul(x, z), mul(y, z)) => mul(add(x, y), z)\n"
      "rule associate: add(add(x, y), z) => add(x, add(y, z))\n"
      "rule wanted: add(mul(x, w), add(mul(y, w), z)) => add(mul(add(x, y), w), z)\n"
      "rule other: add(mul(x, w), add(mul(y, w), z)) => add(mul(add(x, z), w), y)\n"
      "rule product: matmul(matmul(x, y), z) => matmul(x, matmul(y, z))\n"
      "rule back: matmul(x, matmul(y, matmul(z, w))) => matmul(matmul(matmul(x, y), z), w)\n",
      "text", registry());
  ASSERT_TRUE(rules.ok()) << rules.error().to_string();
  const RuleBasis basis(registry(), {(*rules)[0], (*rules)[1], (*rules)[4]});
  const std::vector<TensorType> types(4, TensorType{ElementType::f32, {3, 3}, true});
  auto derive = [&](std::size_t number, DerivationLimits limits) {
    const Substitution& rule = (*rules)[number];
    return basis.derive(instantiate(rule, rule.source, types, {}, registry()).value(),
                        instantiate(rule, rule.target, types, {}, registry()).value(), {}, limits);
  };
  DerivationLimits limits;
  limits.max_steps = 4;
  const auto found = derive(2, limits);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->steps.size(), 2u);
  EXPECT_FALSE(derive(3, limits).has_value());
  limits.max_steps = 1;
  EXPECT_FALSE(derive(2, limits).has_value()) << "one step is not enough";
  limits.max_steps = 4;
  limits.without = 0;
  EXPECT_FALSE(derive(2, limits).has_value()) << "it needs the rule that is not to be used";
  limits.without.reset();
  EXPECT_TRUE(derive(5, limits).has_value());
  limits.directions = Directions::as_they_stand;
  EXPECT_TRUE(derive(2, limits).has_value()) << "operands of add have no order";
  EXPECT_FALSE(derive(5, limits).has_value()) << "product is needed backwards";
}

TEST(Derivation, ARuleIsReversedOnlyIfItsTargetBindsEverything) {
  const auto rules = parse_rules(
      "rule split: concat(s.0, s.1; axis=a) => x where s = split(x; axis=a, sizes=z)\n"
      "rule merge: matmul(x, w), matmul(x, v) => s.0, s.1\n"
      "  where s = split(matmul(x, concat(w, v; axis=-1)); axis=-1, sizes=[dim(w, -1), dim(v, -1)])\n"
      "rule unit: mul(x, ones(; shape=s)) => x\n"
      "rule forgets: add(x, sub(y, y)) => mul(x, ones(; shape=[dim(x, -1)]))\n",
      "text", registry());
  ASSERT_TRUE(rules.ok()) << rules.error().to_string();
  EXPECT_FALSE(reversed((*rules)[0]).has_value());
  const auto back = reversed((*rules)[1]);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->source.outputs.size(), 2u);
  EXPECT_EQ(back->target.nodes.size(), 2u);
  EXPECT_FALSE(reversed((*rules)[2]).has_value());
  EXPECT_FALSE(reversed((*rules)[3]).has_value()) << "y would not be bound";
}

}  // namespace
}  // namespace taso
