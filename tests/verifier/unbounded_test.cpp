// The unbounded prover alone: corpora of statements, conditions, mutations of axioms.

#include <algorithm>
#include <map>

#include "tests/verifier/fixture.h"
#include "tests/verifier/mutations.h"
#include "verifier/bounded.h"
#include "verifier/unbounded/prove.h"

namespace taso {
namespace {

using testing::axioms;
using testing::parse;
using testing::registry;

UnboundedOutcome prove(const Substitution& rule) { return prove_unbounded(registry(), rule); }
UnboundedOutcome prove(const std::string& text) {
  const std::vector<Substitution> rules = parse(text);
  return rules.size() == 1 ? prove(rules[0]) : UnboundedOutcome{};
}

// unbounded.rules says of every statement what the prover makes of it, without axioms and without small instances.
TEST(Unbounded, StatementsAreProvedOrNotAsExpected) {
  for (const Substitution& rule : testing::load("unbounded.rules")) {
    ASSERT_TRUE(rule.expect) << rule.name << " says nothing about its verdict";
    const UnboundedOutcome outcome = prove(rule);
    EXPECT_EQ(outcome.proved, *rule.expect == "proved") << rule.name << ": " << outcome.reason;
    EXPECT_EQ(outcome.proved, outcome.reason.empty()) << rule.name << ": " << outcome.reason;
  }
}

TEST(Unbounded, NothingFalseIsProved) {
  for (const Substitution& rule : testing::load("false.rules")) EXPECT_FALSE(prove(rule).proved) << rule.name;
}

TEST(Unbounded, TrueRulesAreProved) {
  for (const Substitution& rule : testing::load("true.rules")) {
    const UnboundedOutcome outcome = prove(rule);
    EXPECT_TRUE(outcome.proved) << rule.name << ": " << outcome.reason;
  }
}

TEST(Unbounded, AxiomsHoldForAllSizes) {
  for (const Substitution& axiom : axioms()) {
    const UnboundedOutcome outcome = prove(axiom);
    EXPECT_TRUE(outcome.proved) << axiom.name << ": " << outcome.reason;
  }
}

TEST(Unbounded, DeclaredLawsHoldForAllSizes) {
  const std::vector<Substitution> laws = Verifier::declared_laws(registry());
  EXPECT_GE(laws.size(), 5U);
  for (const Substitution& law : laws) {
    const UnboundedOutcome outcome = prove(law);
    EXPECT_TRUE(outcome.proved) << law.name << ": " << outcome.reason;
  }
}

// Groups are inferred from shapes; what must hold of them is found, and numbers refute the rule without it.
TEST(Unbounded, MissingConditionsAreFound) {
  const std::map<std::string, std::string> expected = {
      {"output_channels_of_grouped", "if dim(x, -3) == dim(k, -3)"},
      {"grouped_merge", "if dim(a, -4) // (dim(x, -3) // dim(a, -3)) == dim(b, -4) // (dim(y, -3) // dim(b, -3))"},
      {"split_of_grouped", "if dim(x, -3) == dim(k, -3)"},
      {"pools_are_the_same", ""},
      {"relu_is_linear", ""}};
  std::size_t seen = 0;
  for (const Substitution& rule : testing::load("false.rules")) {
    const auto it = expected.find(rule.name);
    if (it == expected.end()) continue;
    ++seen;
    const UnboundedOutcome outcome = prove_unbounded(registry(), rule, {.infer = true});
    EXPECT_FALSE(outcome.proved) << rule.name;
    EXPECT_EQ(outcome.inferred.empty(), it->second.empty()) << rule.name;
    if (outcome.inferred.empty()) continue;
    Substitution narrowed = rule;
    narrowed.conditions = outcome.inferred;
    EXPECT_THAT(to_string(narrowed, registry()), ::testing::HasSubstr(it->second)) << rule.name;
    EXPECT_NE(validate_bounded(registry(), narrowed, {.max_instances = 40, .rare = false}).kind,
              BoundedOutcome::Kind::differs)
        << rule.name;
    // Without it the rule is refuted, and the verdict says what it lacks.
    VerifierOptions options;
    options.axioms = false;
    options.infer = true;
    const Verdict verdict = Verifier(registry(), {}, options).verify(rule);
    EXPECT_EQ(verdict.kind, VerdictKind::refuted) << rule.name;
    EXPECT_EQ(verdict.needs, outcome.inferred) << rule.name;
  }
  EXPECT_EQ(seen, expected.size());
}

TEST(Unbounded, WhatTheTargetAsksForIsSaid) {
  const UnboundedOutcome outcome = prove("rule r: matmul(x, add(v, w)) => add(matmul(x, v), matmul(x, w))");
  EXPECT_TRUE(outcome.proved) << outcome.reason;
  EXPECT_THAT(outcome.conditions, ::testing::IsEmpty());
  const UnboundedOutcome merged = prove(
      "rule r: conv2d(x, k), conv2d(x, l) => s.0, s.1\n"
      "where s = split(conv2d(x, concat(k, l; axis=-4)); axis=-3, sizes=[dim(k, -4), dim(l, -4)])\n"
      "if dim(x, -3) == dim(k, -3)");
  EXPECT_TRUE(merged.proved) << merged.reason;
  EXPECT_THAT(merged.conditions,
              ::testing::Contains(ImplicitCondition{ImplicitCondition::Kind::of_target, "dim(l, -2) == dim(k, -2)"}));
}

TEST(Unbounded, OpenRanksAreNamed) {
  const UnboundedOutcome any = prove("rule r: conv2d(neg(x), k) => neg(conv2d(x, k))");
  EXPECT_TRUE(any.proved) << any.reason;
  EXPECT_FALSE(any.max_rank);
  const UnboundedOutcome some = prove("rule r: neg(neg(x)) => relu(neg(neg(x)))");
  EXPECT_FALSE(some.proved);
  const UnboundedOutcome open = prove("rule r: neg(neg(x)) => x");
  EXPECT_TRUE(open.proved) << open.reason;
  ASSERT_TRUE(open.max_rank);
  EXPECT_GE(*open.max_rank, 4U);
}

TEST(Unbounded, NothingIsSaidOfNothing) {
  EXPECT_THAT(prove("rule r: mul(x, ones(; shape=[2])) => mul(x, ones(; shape=[3]))").reason,
              ::testing::HasSubstr("vacuous"));
}

// The sides are products of ten sums, multiplied out differently: 2^10 summands each.
TEST(Unbounded, WhatTakesTooManyStepsIsNotProvedAndSaysSo) {
  std::string left = "add(x0, y0)", right = "add(y1, x1)";
  for (int i = 1; i < 10; ++i) {
    const std::string x = "x" + std::to_string(i), y = "y" + std::to_string(i);
    left = "mul(" + left + ", add(" + x + ", " + y + "))";
    if (i > 1) right = "mul(add(" + y + ", " + x + "), " + right + ")";
  }
  const Substitution rule =
      parse("rule r: " + left + " => add(mul(" + right + ", x0), mul(" + right + ", y0)) if rank(x0) == 1")[0];
  UnboundedOptions options;
  options.max_work = 20'000;
  const UnboundedOutcome outcome = prove_unbounded(registry(), rule, options);
  EXPECT_FALSE(outcome.proved);
  EXPECT_EQ(outcome.reason, "the limit on steps of a proof is reached");
  options.max_work = 4'000'000'000;
  EXPECT_TRUE(prove_unbounded(registry(), rule, options).proved);
}

// An operator of tomorrow: nothing about operators is known by name.
TEST(Unbounded, OperatorsAreKnownByDefinitionOnly) {
  const auto extended = OperatorRegistry::parse(
      "operator conv1d(x[n, (g*c), l], k[(g*o), c, r]; stride: int = 1, dilation: int = 1) -> [n, (g*o), m]\n"
      "  \"Convolution along the last axis, without padding.\"\n"
      "  require stride >= 1 \"the stride must be positive\"\n"
      "  require dilation >= 1 \"the dilation must be positive\"\n"
      "  let m = window(l, r, stride, dilation, 0, 0)\n"
      "  require m >= 1 \"the kernel must fit\"\n"
      "  out[b, (q, f), y] = sum(i < c, u < r) x[b, (q, i), y*stride + u*dilation] * k[(q, f), i, u]\n"
      "operator reverse(x[A.., n]) -> [A.., n]\n  \"The last axis backwards.\"\n  out[I.., i] = x[I.., n - 1 - i]\n"
      "operator total(x[A.., n]) -> [A..]\n  \"Sum over the last axis.\"\n  out[I..] = sum(t < n) x[I.., t]\n",
      "test.op", &registry());
  ASSERT_TRUE(extended) << extended.error().to_string();
  const auto rules = parse_rules(
      "rule linear: conv1d(add(x, y), k; stride=s, dilation=d) => add(conv1d(x, k; stride=s, dilation=d), conv1d(y, k; "
      "stride=s, dilation=d))\n"
      "rule backwards: reverse(conv1d(x, k)) => conv1d(reverse(x), reverse(k))\n"
      "rule twice: reverse(reverse(x)) => x\n"
      "rule same_sum: total(reverse(x)) => total(x)\n"
      "rule wrong: reverse(x) => x\n"
      "rule strided: reverse(conv1d(x, k; stride=2)) => conv1d(reverse(x), reverse(k); stride=2)\n",
      "test.rules", *extended);
  ASSERT_TRUE(rules) << rules.error().to_string();
  for (const Substitution& rule : *rules) {
    const UnboundedOutcome outcome = prove_unbounded(*extended, rule);
    EXPECT_EQ(outcome.proved, rule.name != "wrong" && rule.name != "strided") << rule.name << ": " << outcome.reason;
  }
}

TEST(Unbounded, ContradictingProofsAreNotBelieved) {
  // The two provers agree on the corpora; what verify() says of a rule that one proves and numbers refute is tested by
  // never being said.
  VerifierOptions options;
  options.axioms = false;
  options.max_instances = 20;
  options.rare = false;
  Verifier verifier(registry(), {}, options);
  for (const char* file : {"true.rules", "false.rules", "unbounded.rules"})
    for (const Substitution& rule : testing::load(file))
      EXPECT_THAT(verifier.verify(rule).reason, ::testing::Not(::testing::HasSubstr("internal error"))) << rule.name;
}

// --- mutations: an axiom changed in one place; what is still proved must be confirmed by numbers

class AxiomMutations : public ::testing::TestWithParam<int> {};

TEST_P(AxiomMutations, WhatIsStillProvedHolds) {
  constexpr int parts = 4;
  std::size_t total = 0, proved = 0, confirmed = 0;
  for (std::size_t i = 0; i < axioms().size(); ++i) {
    if (static_cast<int>(i % parts) != GetParam()) continue;
    for (const testing::Mutation& changed : testing::some_mutations(axioms()[i], registry(), 3, 1)) {
      const Substitution& mutation = changed.rule;
      ++total;
      UnboundedOptions options;
      options.max_rank = 4;
      options.max_queries = 0;
      if (!prove_unbounded(registry(), mutation, options).proved) continue;
      ++proved;
      const BoundedOutcome outcome =
          validate_bounded(registry(), mutation, {.seed = 77, .max_instances = 20, .rare = false});
      // Nothing is said of instances whose types differ.
      EXPECT_TRUE(outcome.kind != BoundedOutcome::Kind::differs || outcome.counterexample->of_types())
          << to_string(mutation, registry()) << (outcome.counterexample ? outcome.counterexample->text : "");
      confirmed += outcome.kind == BoundedOutcome::Kind::agrees ? 1 : 0;
    }
  }
  // Most mutations are false; some, as exchanged operands of a sum, are true.
  EXPECT_GT(total, 48U);
  EXPECT_GT(proved, 0U);
  EXPECT_LT(proved, total / 2);
  RecordProperty("mutations", static_cast<int>(total));
  RecordProperty("proved", static_cast<int>(proved));
  RecordProperty("confirmed", static_cast<int>(confirmed));
}
INSTANTIATE_TEST_SUITE_P(Unbounded, AxiomMutations, ::testing::Range(0, 4));

}  // namespace
}  // namespace taso
