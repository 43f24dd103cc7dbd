// Values of normal forms at points: what differs there is not equal, and what is equal never differs.

#include "verifier/unbounded/refute.h"

#include <gtest/gtest.h>

#include "tests/verifier/fixture.h"

namespace taso::unbounded {
namespace {

class Refute : public ::testing::Test {
 protected:
  Polynomial bounded(const std::string& name, std::int64_t least) {
    Polynomial p = Polynomial::symbol(symbols.named(Symbol::Kind::extent, name, name));
    EXPECT_TRUE(facts.add(at_least(p, least)));
    return p;
  }
  NormalForm read(std::uint32_t tensor, const Polynomial& index) {
    Factor factor;
    factor.tensor = tensor;
    factor.indices = {index};
    return builder.factor(factor);
  }
  // The sum or the family of what `body` makes of a new variable, from 0 to extent - 1.
  template <class Body>
  Element family(const Polynomial& extent, const Body& body) {
    const SymbolId variable = symbols.bound();
    const Polynomial k = Polynomial::symbol(variable);
    return {{variable}, {at_least(k, 0), less_than(k, extent)}, body(k)};
  }
  template <class Body>
  NormalForm sum(const Polynomial& extent, const Body& body) {
    const Element element = family(extent, body);
    return builder.summed(element.value, element.bound, element.guards);
  }
  template <class Body>
  NormalForm maximum(const Polynomial& extent, const Body& body) {
    return builder.extremum(true, {family(extent, body)});
  }
  template <class... Arguments>
  NormalForm call(const std::string& name, Arguments... arguments) {
    const auto& functions = testing::registry().functions();
    const auto function = functions.find(name);
    EXPECT_NE(function, functions.end()) << name;
    return builder.call(&function->second, name, {std::move(arguments)...});
  }
  bool differ(const NormalForm& a, const NormalForm& b) { return differ_at_points(a, b, facts, 4); }

  Symbols symbols;
  IntegerSolver solver{symbols, 50'000, 0};
  Facts facts{symbols, solver};
  FormBuilder builder{facts};
};

TEST_F(Refute, SumsOfOtherElementsOrLengths) {
  const Polynomial n = bounded("n", 1), m = bounded("m", 1);
  const auto element = [&](const Polynomial& k) { return read(0, k); };
  const NormalForm whole = sum(n, element);
  EXPECT_FALSE(differ(whole, sum(n, element)));
  EXPECT_TRUE(differ(whole, sum(n, [&](const Polynomial& k) { return read(1, k); })));
  EXPECT_TRUE(differ(whole, sum(n, [&](const Polynomial& k) { return read(0, k + 1); })));
  EXPECT_TRUE(differ(whole, sum(n + 1, element)));
  EXPECT_TRUE(differ(whole, sum(m, element)));
  EXPECT_TRUE(differ(whole, {}));
}

TEST_F(Refute, HypothesesCount) {
  const Polynomial n = bounded("n", 1), m = bounded("m", 1);
  const auto element = [&](const Polynomial& k) { return read(0, k); };
  const NormalForm a = sum(n, element), b = sum(m, element);
  ASSERT_TRUE(differ(a, b));
  ASSERT_TRUE(facts.add(equal_to(n, m)));
  EXPECT_FALSE(differ(a, b));
}

TEST_F(Refute, ContradictingHypothesesRefuteNothing) {
  const Polynomial n = bounded("n", 1), m = bounded("m", 1);
  (void)facts.add(at_least(n * n, m + 1));
  (void)facts.add(at_least(m, n * n));
  EXPECT_FALSE(differ(read(0, n), read(1, n)));
}

TEST_F(Refute, OrderAndNamesOfVariablesDoNot) {
  const Polynomial n = bounded("n", 1), m = bounded("m", 1);
  const auto product = [&](const Polynomial& i, const Polynomial& j) {
    return builder.multiply(read(0, i), builder.multiply(read(1, j), read(0, i + j)));
  };
  const NormalForm rows =
      sum(n, [&](const Polynomial& i) { return sum(m, [&](const Polynomial& j) { return product(i, j); }); });
  const NormalForm columns =
      sum(m, [&](const Polynomial& j) { return sum(n, [&](const Polynomial& i) { return product(i, j); }); });
  EXPECT_FALSE(differ(rows, columns));
  EXPECT_TRUE(differ(
      rows, sum(m, [&](const Polynomial& i) { return sum(n, [&](const Polynomial& j) { return product(i, j); }); })));
}

TEST_F(Refute, FunctionsHaveTheirLawsAndNoOthers) {
  const Polynomial n = bounded("n", 2);
  const auto element = [&](const Polynomial& k) { return read(0, k); };
  const auto each = [&](const Polynomial& k) { return call("relu", read(0, k)); };
  // Monotone, idempotent, 0 at 0 - and not linear.
  EXPECT_FALSE(differ(call("relu", maximum(n, element)), maximum(n, each)));
  EXPECT_FALSE(differ(call("relu", each(n)), each(n)));
  EXPECT_FALSE(differ(call("relu", NormalForm()), {}));
  EXPECT_TRUE(differ(call("relu", sum(n, element)), sum(n, each)));
  EXPECT_TRUE(differ(each(n), element(n)));
  // Of powers nothing is declared.
  EXPECT_TRUE(differ(call("pow", read(0, n), read(1, n)), call("pow", read(1, n), read(0, n))));
  EXPECT_FALSE(differ(call("pow", read(0, n), read(1, n)), call("pow", read(0, n), read(1, n))));
}

TEST_F(Refute, LargestElementsAreNotSums) {
  const Polynomial n = bounded("n", 2);
  const auto element = [&](const Polynomial& k) { return read(0, k); };
  EXPECT_TRUE(differ(maximum(n, element), sum(n, element)));
  EXPECT_TRUE(differ(maximum(n, element), maximum(n, [&](const Polynomial& k) { return read(1, k); })));
  EXPECT_FALSE(differ(maximum(n, element), maximum(n, element)));
}

TEST_F(Refute, WhatIsNotKnownRefutesNothing) {
  const Polynomial n = bounded("n", 1);
  // An endless sum, and a divisor that is 0.
  const SymbolId variable = symbols.bound();
  const Polynomial k = Polynomial::symbol(variable);
  const NormalForm endless = builder.summed(read(0, k), {variable}, {at_least(k, 0)});
  EXPECT_FALSE(differ(endless, read(0, n)));
  const NormalForm nothing = builder.add(read(0, n), builder.negate(read(0, n)));
  ASSERT_TRUE(nothing.empty());
  const NormalForm hidden = sum(
      n - n + 1, [&](const Polynomial& i) { return builder.add(read(0, i), builder.negate(read(0, Polynomial(0)))); });
  EXPECT_FALSE(differ(builder.divide(read(1, n), hidden), read(1, n)));
}

}  // namespace
}  // namespace taso::unbounded
