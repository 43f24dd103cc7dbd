#include "verifier/declarations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/shipped.h"

namespace taso {
namespace {

using ::testing::HasSubstr;

// Why the laws of a text are not believed; empty if they are.
std::string doubts(const std::string& text) {
  const auto registry = OperatorRegistry::parse(text, "f.op", &test::registry());
  if (!registry) return registry.error().to_string();
  const Status proved = prove_declared_laws(*registry, test::registry());
  return proved ? "" : proved.error().to_string();
}

TEST(DeclaredLaws, AreProvedOrRefused) {
  EXPECT_EQ(doubts("operator f(x[D..], y[D..]) -> [D..]\n  law commutative\n  out[I..] = max(x[I..], y[I..])\n"), "");
  EXPECT_THAT(doubts("operator f(x[D..], y[D..]) -> [D..]\n  law commutative\n  out[I..] = x[I..] + 2 * y[I..]\n"),
              HasSubstr("f.op:1:10: the declared law f.commutative is false: "));
  // Small numbers do not tell, nor do small shapes.
  EXPECT_THAT(doubts("operator f(x[D..], y[D..]) -> [D..]\n  law commutative\n"
                     "  out[I..] = x[I..] + y[I..] + max(0, x[I..] - y[I..] - 1000000)\n"),
              HasSubstr("the declared law f.commutative is "));
  EXPECT_THAT(doubts("operator f(x[n], y[n]) -> [n]\n  law commutative\n  let far = (n * n * n * n) // 10000000\n"
                     "  out[i] = x[i] + y[i] + far * x[i]\n"),
              HasSubstr("the declared law f.commutative is "));
  EXPECT_EQ(
      doubts("operator f(x[D..], y[D..]) -> [D..]\n  law commutative\n  out[I..] = x[I..] - 2 * y[I..]\n").find('\n'),
      std::string::npos);
}

// Normal forms leave out a concatenation of one tensor, and a split into one piece.
TEST(DeclaredLaws, SpeakOfOneTensorToo) {
  EXPECT_EQ(doubts("operator f(x.k[n.k]) -> [sum(n)]\n  law associative\n"
                   "  out[before(n, k) + j] = x.k[j] where j < n.k\n"),
            "");
  EXPECT_THAT(doubts("operator f(x.k[n.k]) -> [sum(n)]\n  law associative\n"
                     "  out[before(n, k) + j] = relu(x.k[j]) where j < n.k\n"),
              HasSubstr("the declared law f.associative.one is false: "));
  const std::string head =
      "operator f(x[n]; sizes: int[]) -> [sizes[k]] for k < length(sizes)\n  law coassociative(sizes)\n"
      "  require sizes >= 0 \"not negative\"\n  require sum(sizes) == n \"all\"\n";
  EXPECT_EQ(doubts(head + "  out.k[j] = x[before(sizes, k) + j]\n"), "");
  EXPECT_THAT(doubts(head + "  out.k[j] = relu(x[before(sizes, k) + j])\n"),
              HasSubstr("the declared law f.coassociative.one is false: "));
}

TEST(AddedAxioms, AreUsedWhereTheyAreProved) {
  const auto registry = OperatorRegistry::parse(
      "operator f(x[n]) -> [n]\n  let far = (n * n * n * n) // 10000000\n  out[i] = x[i] * (1 + far)\n", "f.op",
      &test::registry());
  ASSERT_TRUE(registry) << registry.error().to_string();
  const auto axioms = parse_rules("axiom right: f(neg(x)) = neg(f(x))\naxiom wrong: f(x) = x\n", "f.axioms", *registry);
  ASSERT_TRUE(axioms) << axioms.error().to_string();
  const BelievedAxioms believed = proved_axioms(*registry, *axioms);
  ASSERT_EQ(believed.axioms.size(), 1);
  EXPECT_EQ(believed.axioms[0].name, "right");
  ASSERT_EQ(believed.not_proved.size(), 1);
  EXPECT_THAT(believed.not_proved[0].why.to_string(), HasSubstr("f.axioms:2:1: axiom wrong is not proved: "));
}

// What the false axiom would give: no instance that is examined contradicts it.
TEST(AddedAxioms, WhatFollowsFromAFalseOneIsNotProvedByIt) {
  const auto registry = OperatorRegistry::parse(
      "operator f(x[n]) -> [n]\n  let far = (n * n * n * n) // 10000000\n  out[i] = x[i] * (1 + far)\n", "f.op",
      &test::registry());
  ASSERT_TRUE(registry);
  const std::vector<Substitution> axioms = parse_rules("axiom wrong: f(x) = x\n", "f.axioms", *registry).value();
  const std::vector<Substitution> rules = parse_rules("rule r: relu(f(x)) => relu(x)\n", "r.rules", *registry).value();
  EXPECT_EQ(Verifier(*registry, axioms).verify(rules[0]).kind, VerdictKind::proved) << "the test of the test";
  EXPECT_NE(Verifier(*registry, proved_axioms(*registry, axioms).axioms).verify(rules[0]).kind, VerdictKind::proved);
}

// Everything is declared of f, and nothing is true: below 0 it falls and has values. Trials that fail to find this
// would do no harm. Of the primitive of which the same is declared what follows is believed, and said to be.
TEST(AddedFunctions, OfAnAbbreviationOnlyTheDefinitionIsUsed) {
  const std::string facts = "monotone, positive, zero_at_zero, idempotent, on_positive\n";
  const auto registry =
      OperatorRegistry::parse("function made(x) = x - 3 * relu(x) + 1: " + facts + "function cbrt(x): " + facts +
                                  "operator f(x[D..]) -> [D..]\n  out[I..] = made(x[I..])\n"
                                  "operator g(x[D..]) -> [D..]\n  out[I..] = cbrt(x[I..])\n",
                              "f.op", &test::registry(), Trials::omitted);
  ASSERT_TRUE(registry) << registry.error().to_string();
  const std::string statements[] = {"relu(OP(x)) => OP(x)", "OP(OP(x)) => OP(x)",
                                    "OP(reduce_max(x; axes=[-1])) => reduce_max(OP(x); axes=[-1])",
                                    "OP(sub(x, x)) => sub(x, x)", "sub(OP(x), OP(x)) => sub(log(x), log(x))"};
  Verifier verifier(*registry, {});
  std::size_t followed = 0;
  for (const std::string& statement : statements)
    for (const char* const op : {"f", "g"}) {
      std::string text = statement;
      for (std::size_t at; (at = text.find("OP")) != std::string::npos;) text.replace(at, 2, op);
      const auto rules = parse_rules("rule r: " + text + "\n", "r.rules", *registry);
      ASSERT_TRUE(rules) << rules.error().to_string();
      const Verdict verdict = verifier.verify((*rules)[0]);
      // A condition that is added says what the declaration would have supplied.
      const bool proved = verdict.kind == VerdictKind::proved &&
                          std::none_of(verdict.added.begin(), verdict.added.end(),
                                       [](const Condition& condition) { return condition.of_elements(); });
      if (*op == 'g')
        followed += proved ? 1 : 0;
      else
        EXPECT_FALSE(proved) << text;
    }
  EXPECT_GT(followed, 0) << "the test of the test";
  const auto trusted = trusted_functions(*registry, test::registry());
  ASSERT_EQ(trusted.size(), 1);
  EXPECT_EQ(trusted[0]->name, "cbrt");
}

}  // namespace
}  // namespace taso
