#include "verifier/declarations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace taso
