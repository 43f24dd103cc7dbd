// Generalised parameters, and identities that the axioms lack.

#include "verifier/missing.h"

#include <algorithm>

#include "tests/verifier/fixture.h"
#include "verifier/generalise.h"
#include "verifier/identities.h"
#include "verifier/theory/theory.h"

namespace taso {
namespace {

using testing::load;
using testing::parse;
using testing::registry;

std::string text(const Substitution& rule) {
  Substitution plain = canonical(rule, registry());
  plain.name = "r";
  return to_string(plain, registry());
}

// generalise.rules holds pairs: a rule, and what becomes of it.
TEST(Generalise, ParametersBecomeVariablesAsFarAsTheProofGoes) {
  const std::vector<Substitution> rules = load("generalise.rules");
  ASSERT_EQ(rules.size() % 2, 0U);
  ASSERT_GE(rules.size(), 10U);
  for (std::size_t i = 0; i + 1 < rules.size(); i += 2) {
    ASSERT_EQ(rules[i + 1].name, rules[i].name + "_general");
    const Generalisation found = generalise(registry(), rules[i]);
    EXPECT_TRUE(found.proved) << found.reason;
    EXPECT_EQ(text(found.rule), text(rules[i + 1])) << rules[i].name;
    EXPECT_EQ(found.steps.empty(), text(rules[i]) == text(rules[i + 1])) << rules[i].name;
    // Nothing is left to generalise.
    EXPECT_EQ(text(generalise(registry(), found.rule).rule), text(found.rule)) << rules[i].name;
  }
}

TEST(Generalise, WhatIsNotProvedStaysAsItIs) {
  const std::vector<Substitution> rules = parse("rule wrong: concat(x, y; axis=-1) => concat(y, x; axis=-1)");
  ASSERT_EQ(rules.size(), 1U);
  const Generalisation found = generalise(registry(), rules[0]);
  EXPECT_FALSE(found.proved);
  EXPECT_FALSE(found.reason.empty());
  EXPECT_EQ(text(found.rule), text(rules[0]));
}

TEST(Identities, CommonPartsBecomeVariables) {
  const std::vector<Substitution> axioms = parse("axiom right: matmul(x, add(y, z)) = add(matmul(x, y), matmul(x, z))");
  const std::vector<Substitution> rules =
      parse("rule r: matmul(relu(x), add(y, neg(z))) => add(matmul(relu(x), y), neg(matmul(relu(x), z)))");
  std::vector<std::string> found;
  for (const Substitution& identity : identities_within(registry(), rules[0], axioms)) found.push_back(text(identity));
  EXPECT_THAT(found, ::testing::Contains(text(parse("axiom r: matmul(x, neg(y)) = neg(matmul(x, y))")[0])));
}

class Missing : public ::testing::Test {
 protected:
  static MissingReport find(const std::vector<Substitution>& axioms, const std::vector<Substitution>& rules,
                            unsigned threads) {
    MissingOptions options;
    options.threads = threads;
    options.rlimit = 500'000;
    return find_missing_axioms(registry(), axioms, rules, options);
  }
};

TEST_F(Missing, TheSmallestIdentitiesAreProposed) {
  const std::vector<Substitution> axioms = load("missing.axioms"), rules = load("missing.rules"),
                                  expected = load("missing_identities.axioms");
  // What is asked for is missing indeed.
  Theory before(registry(), axioms, 500'000);
  for (const Substitution& rule : rules) EXPECT_FALSE(before.entails(rule).proved) << rule.name;
  const MissingReport report = find(axioms, rules, 2);
  ASSERT_EQ(report.identities.size(), expected.size());
  std::vector<Substitution> completed = axioms;
  std::size_t added = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const MissingIdentity& identity = report.identities[i];
    EXPECT_EQ(text(identity.axiom), text(expected[i]));
    EXPECT_EQ(identity.axiom.name, expected[i].name);
    EXPECT_TRUE(prove_unbounded(registry(), identity.axiom).proved) << identity.axiom.name;
    completed.push_back(identity.axiom);
    added += identity.adds;
  }
  EXPECT_EQ(report.identities[0].adds, 3U);
  EXPECT_TRUE(std::any_of(report.identities.begin(), report.identities.end(),
                          [](const MissingIdentity& identity) { return identity.generalises == "add_columns"; }));
  EXPECT_EQ(added, rules.size());
  Theory after(registry(), completed, 500'000);
  for (const Substitution& rule : rules) EXPECT_TRUE(after.entails(rule).proved) << rule.name;
  // The number of threads changes nothing.
  const MissingReport alone = find(axioms, rules, 1);
  ASSERT_EQ(alone.identities.size(), report.identities.size());
  for (std::size_t i = 0; i < alone.identities.size(); ++i) {
    EXPECT_EQ(to_string(alone.identities[i].axiom, registry()), to_string(report.identities[i].axiom, registry()));
    EXPECT_EQ(alone.identities[i].rules, report.identities[i].rules);
  }
}

TEST_F(Missing, WithoutAxiomsTheRuleItselfIsWhatIsMissing) {
  const std::vector<Substitution> rules = parse("rule r: neg(sub(x, y)) => sub(y, x)");
  const MissingReport report = find({}, rules, 1);
  ASSERT_EQ(report.identities.size(), 1U);
  EXPECT_EQ(text(report.identities[0].axiom), text(parse("axiom r: neg(sub(x, y)) = sub(y, x)")[0]));
  EXPECT_EQ(report.rules[0].identities, std::vector<std::size_t>{0});
}

// A piece of a split is what was concatenated there only if all pieces have the right sizes: the general form of the
// axiom, taken one output at a time, must not say more.
TEST_F(Missing, AxiomsOfSeveralOutputsSpeakOfAllOfThem) {
  const std::vector<Substitution> axioms = load("missing_identities.axioms");
  Theory theory(registry(), axioms, 500'000);
  const std::vector<Substitution> rules = parse(
      "rule second: split(concat(x, y; axis=a); axis=a, sizes=s).1 => y\n"
      "rule both: s.0, s.1 => x, y where s = split(concat(x, y; axis=a); axis=a, sizes=n)");
  EXPECT_FALSE(theory.entails(rules[0]).proved);
  EXPECT_TRUE(theory.entails(rules[1]).proved);
}

// strides=s stands on one side only, and both sides may be well-typed with different shapes.
TEST_F(Missing, AxiomsWithAnAttributeOnOneSideHoldForEqualShapes) {
  const std::vector<Substitution> axioms = parse(
      "axiom any_axis: concat(conv2d(x, k), conv2d(x, l); axis=a) = conv2d(x, concat(k, l; axis=-4))\n"
      "  if dim(x, -3) == dim(k, -3)");
  Theory theory(registry(), axioms, 500'000);
  const std::vector<Substitution> rules = parse(
      "rule axes: concat(conv2d(x, k), conv2d(x, l); axis=-1) => concat(conv2d(x, k), conv2d(x, l); axis=-2)\n"
      "  if dim(x, -3) == dim(k, -3)");
  EXPECT_FALSE(theory.entails(rules[0]).proved);
}

}  // namespace
}  // namespace taso
