// Polynomials over sizes and indices, and what follows from hypotheses on them.

#include <gtest/gtest.h>

#include "verifier/unbounded/facts.h"

namespace taso::unbounded {
namespace {

class Index : public ::testing::Test {
 protected:
  Polynomial symbol(const std::string& name, Symbol::Kind kind = Symbol::Kind::extent) {
    return Polynomial::symbol(symbols.named(kind, name, name));
  }
  // A symbol that is at least `least`.
  Polynomial bounded(const std::string& name, std::int64_t least, Symbol::Kind kind = Symbol::Kind::extent) {
    Polynomial p = symbol(name, kind);
    EXPECT_TRUE(facts.add(at_least(p, least)));
    return p;
  }

  Symbols symbols;
  IntegerSolver solver{symbols, 50'000, 0};  // never asks Z3: what is tested here needs none
  Facts facts{symbols, solver};
};

TEST_F(Index, EqualPolynomialsHaveEqualRepresentations) {
  const Polynomial x = symbol("x"), y = symbol("y");
  EXPECT_EQ((x + y) * (x - y), x * x - y * y);
  EXPECT_EQ((x + 1) * (x + 1), x * x + x * 2 + 1);
  EXPECT_TRUE((x - x).is_zero());
  EXPECT_NE(x * y, x + y);
  EXPECT_EQ(symbols.to_string(x * y * 2 - x + 3), "-x + 2 * x * y + 3");
}

TEST_F(Index, OverflowIsNeverAValue) {
  const Polynomial x = symbol("x");
  const Polynomial huge = x * INT64_MAX;
  EXPECT_FALSE((huge + huge).valid());
  EXPECT_FALSE((huge * Polynomial(2)).valid());
  EXPECT_FALSE(huge + huge == huge + huge);
  EXPECT_FALSE((huge + huge - huge).valid());
  Polynomial power = x;
  for (int i = 0; i < 12; ++i) power = power * x;
  EXPECT_FALSE(power.valid());
  EXPECT_FALSE(facts.entails({Atom::Relation::nonnegative, power}));
}

TEST_F(Index, ExactQuotients) {
  const Polynomial x = symbol("x"), y = symbol("y");
  EXPECT_EQ(Polynomial::exact_quotient(x * y + y, y), x + 1);
  EXPECT_EQ(Polynomial::exact_quotient((x + y) * (x + 2), x + y), x + 2);
  EXPECT_FALSE(Polynomial::exact_quotient(x * y + 1, y));
  EXPECT_FALSE(Polynomial::exact_quotient(x, Polynomial(0)));
}

TEST_F(Index, DivisionFindsDigits) {
  const Polynomial q = bounded("q", 0), i = bounded("i", 0), c = bounded("c", 1);
  ASSERT_TRUE(facts.add(less_than(i, c)));
  EXPECT_EQ(facts.divide(q * c + i, c), q);
  EXPECT_EQ(facts.divide(i, c), Polynomial(0));
  EXPECT_EQ(facts.divide(q * c + c + i, c), q + 1);
  EXPECT_EQ(facts.divide(q * 6 + 4, Polynomial(3)), q * 2 + 1);
  EXPECT_EQ(facts.divide(c - 1, c), Polynomial(0));
  EXPECT_EQ(facts.divide(Polynomial(7), Polynomial(-2)), Polynomial(-4));
}

TEST_F(Index, DivisionByAProductTakesItsFactorsOneByOne) {
  const Polynomial a = bounded("a", 0), i = bounded("i", 0), j = bounded("j", 0);
  const Polynomial c = bounded("c", 1), w = bounded("w", 1), h = bounded("h", 1);
  ASSERT_TRUE(facts.add(less_than(i, w)));
  const auto coarse = facts.divide(a, c);
  ASSERT_TRUE(coarse);
  EXPECT_EQ(facts.divide(a * w + i, c * w), coarse);
  EXPECT_NE(facts.divide(a * w + i + w, c * w), coarse);
  // Of j, which may be h or more, nothing is said.
  EXPECT_NE(facts.divide(a * h + j, c * h), coarse);
  ASSERT_TRUE(facts.add(less_than(j, h)));
  EXPECT_EQ(facts.divide(a * h * w + j * w + i, c * h * w), coarse);
  // g * c // g is c.
  const Polynomial g = bounded("g", 1);
  EXPECT_EQ(facts.divide(g * c, g), c);
}

TEST_F(Index, WhatDoesNotDivideIsOneSymbol) {
  const Polynomial n = bounded("n", 0), c = bounded("c", 1);
  const auto a = facts.divide(n, c), b = facts.divide(n + c, c);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(*a + 1, *b);
  // Its definition is known: c * (n // c) <= n.
  EXPECT_TRUE(facts.entails(at_least(n, c * *a)));
  EXPECT_TRUE(facts.entails(less_than(n, c * *a + c)));
  EXPECT_FALSE(facts.entails(at_least(c * *a, n)));
}

TEST_F(Index, DivisorsMustBePositive) {
  const Polynomial n = bounded("n", 0), d = symbol("d");
  EXPECT_FALSE(facts.divide(n, d));
}

TEST_F(Index, EquationsAreSolved) {
  const Polynomial g = bounded("g", 1), c = bounded("c", 1), n = bounded("n", 1);
  ASSERT_TRUE(facts.add(equal_to(n, g * c)));
  EXPECT_EQ(facts.reduce(n), facts.reduce(g * c));
  // g * c = c with c >= 1: one group.
  ASSERT_TRUE(facts.add(equal_to(n, c)));
  EXPECT_EQ(facts.reduce(g), Polynomial(1));
  EXPECT_FALSE(facts.add(equal_to(c, c + 1)));
  EXPECT_TRUE(facts.contradictory());
}

TEST_F(Index, CommonFactorsAreSums) {
  const Polynomial g = bounded("g", 1), a = bounded("a", 1), b = bounded("b", 1);
  ASSERT_TRUE(facts.add(equal_to(g * a + g * b, a + b)));
  EXPECT_EQ(facts.reduce(g), Polynomial(1));
}

TEST_F(Index, FactorsOfPositiveProductsArePositive) {
  const Polynomial a = bounded("a", 0), b = bounded("b", 0), n = bounded("n", 1);
  EXPECT_FALSE(facts.entails(at_least(a, 1)));
  ASSERT_TRUE(facts.add(equal_to(a * b, n * n)));
  EXPECT_TRUE(facts.entails(at_least(a, 1)));
}

TEST_F(Index, LinearConsequences) {
  const Polynomial x = symbol("x"), y = symbol("y"), z = symbol("z");
  const Atom context[] = {at_least(x, y + 1), at_least(y, z), at_least(z, 0)};
  EXPECT_TRUE(facts.entails(at_least(x, 1), context));
  EXPECT_FALSE(facts.entails(at_least(x, 2), context));
  EXPECT_FALSE(facts.entails(at_least(y, x), context));
  // Over integers: 2x >= 1 means x >= 1.
  const Atom odd[] = {at_least(x * 2, 1)};
  EXPECT_TRUE(facts.entails(at_least(x, 1), odd));
  const Atom none[] = {at_least(x * 2, 1), at_least(Polynomial(1), x * 2)};
  EXPECT_TRUE(facts.contradictory(none));
}

TEST_F(Index, ProductsAreBounded) {
  const Polynomial y = bounded("y", 0), n = bounded("n", 0), s = bounded("s", 1), u = bounded("u", 0),
                   k = bounded("k", 1), h = bounded("h", 1);
  // y <= n, s * n <= h - k, u < k: y * s + u < h, as a window without padding needs.
  ASSERT_TRUE(facts.add(at_least(n, y)));
  ASSERT_TRUE(facts.add(at_least(h - k, s * n)));
  ASSERT_TRUE(facts.add(less_than(u, k)));
  EXPECT_TRUE(facts.entails(less_than(y * s + u, h)));
  EXPECT_FALSE(facts.entails(less_than(y * s + u + 1, h)));
}

TEST_F(Index, GroupsOfJoinedChannels) {
  // An output channel of the first of two joined convolutions reads channels of the first image only.
  const Polynomial g = bounded("g", 1), o = bounded("o", 1), c = bounded("c", 1), f = bounded("f", 0);
  ASSERT_TRUE(facts.add(less_than(f, g * o)));
  const auto q = facts.divide(f, o);
  ASSERT_TRUE(q);
  EXPECT_TRUE(facts.entails(less_than(*q, g)));
  const Polynomial t = bounded("t", 0, Symbol::Kind::bound);
  ASSERT_TRUE(facts.add(less_than(t, c)));
  EXPECT_TRUE(facts.entails(less_than(*q * c + t, g * c)));
  EXPECT_FALSE(facts.entails(less_than(*q * c + t + c, g * c)));
}

TEST_F(Index, MaximaHaveBounds) {
  const Polynomial a = symbol("a"), b = symbol("b");
  const Polynomial m = facts.larger(a, b);
  EXPECT_EQ(m, facts.larger(b, a));
  EXPECT_TRUE(facts.entails(at_least(m, a)));
  EXPECT_FALSE(facts.entails(at_least(a, m)));
  ASSERT_TRUE(facts.add(at_least(a, b)));
  EXPECT_EQ(facts.larger(a, b), a);
}

}  // namespace
}  // namespace taso::unbounded
