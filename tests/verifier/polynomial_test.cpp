// Canonical forms: what is equal, what is not, what is undefined.

#include "verifier/polynomial.h"

#include "tests/verifier/fixture.h"

namespace taso {
namespace {

class PolynomialTest : public ::testing::Test {
 protected:
  using Element = PolynomialRing::Element;
  const FunctionDefinition& function(const char* name) { return *testing::registry().find_function(name); }
  Element call(const char* name, const Element& argument) { return ring.call(function(name), argument); }
  Element maximum(const std::vector<Element>& values) { return ring.extremum(true, values); }
  bool same(const Element& a, const Element& b) { return ring.equal(a, b); }

  PolynomialRing ring;
  Element x = ring.variable(), y = ring.variable(), z = ring.variable();
};

TEST_F(PolynomialTest, PolynomialsAreExpanded) {
  const Element sum = ring.add(x, y), difference = ring.subtract(x, y);
  EXPECT_TRUE(same(ring.multiply(sum, difference), ring.subtract(ring.multiply(x, x), ring.multiply(y, y))));
  EXPECT_FALSE(same(ring.multiply(sum, sum), ring.add(ring.multiply(x, x), ring.multiply(y, y))));
  EXPECT_TRUE(same(ring.subtract(sum, sum), ring.number(0)));
}

TEST_F(PolynomialTest, CoefficientsAreExactFractions) {
  const Element ninth = ring.divide(ring.number(1), ring.number(9));
  Element sum = ring.number(0);
  for (int i = 0; i < 9; ++i) sum = ring.add(sum, ring.multiply(ninth, x));
  EXPECT_TRUE(same(sum, x));
  EXPECT_FALSE(same(ring.multiply(ninth, x), ring.multiply(ring.number(0.111), x)));
}

TEST_F(PolynomialTest, LiteralsThatAreNotSmallStandForAnyNumber) {
  const Element epsilon = ring.number(1e-5);
  EXPECT_TRUE(same(ring.add(x, epsilon), ring.add(epsilon, x)));
  EXPECT_FALSE(same(epsilon, ring.number(2e-5)));
  EXPECT_TRUE(same(ring.add(epsilon, ring.number(-1e-5)), ring.number(0)));
}

TEST_F(PolynomialTest, CoefficientsThatLeaveTheRangeAreReported) {
  Element big = ring.number(1 << 19);
  for (int i = 0; i < 5; ++i) big = ring.multiply(big, big);
  ASSERT_FALSE(ring.status());
  EXPECT_EQ(ring.status().error().message, "a coefficient leaves 64 bits");
}

TEST_F(PolynomialTest, QuotientsCancel) {
  EXPECT_TRUE(same(ring.divide(ring.multiply(x, y), y), x));
  EXPECT_TRUE(same(ring.multiply(ring.divide(x, y), y), x));
  const Element sum = ring.add(x, y);
  EXPECT_TRUE(same(ring.add(ring.divide(x, sum), ring.divide(y, sum)), ring.number(1)));
  EXPECT_TRUE(same(ring.divide(ring.multiply(x, z), ring.multiply(sum, z)), ring.divide(x, sum)));
  EXPECT_FALSE(same(ring.divide(x, sum), ring.divide(y, sum)));
  EXPECT_TRUE(ring.divided());
}

TEST_F(PolynomialTest, ConstantDivisorsAreNoCondition) {
  (void)ring.divide(x, call("sqrt", ring.number(2)));
  EXPECT_FALSE(ring.divided());
}

TEST_F(PolynomialTest, DeclaredFactsOfFunctions) {
  const Element zero = ring.number(0);
  EXPECT_TRUE(same(call("relu", zero), zero));
  EXPECT_FALSE(same(call("sigmoid", zero), zero));
  EXPECT_TRUE(same(call("relu", call("relu", x)), call("relu", x)));
  EXPECT_FALSE(same(call("tanh", call("tanh", x)), call("tanh", x)));
  EXPECT_TRUE(same(call("exp", ring.add(x, y)), call("exp", ring.add(y, x))));
  EXPECT_FALSE(same(call("exp", x), call("exp", y)));
  EXPECT_FALSE(same(call("exp", x), call("relu", x)));
  // monotone functions pass a maximum, others do not
  EXPECT_TRUE(same(call("relu", maximum({x, y})), maximum({call("relu", x), call("relu", y)})));
  EXPECT_FALSE(same(call("abs", maximum({x, y})), maximum({call("abs", x), call("abs", y)})));
}

TEST_F(PolynomialTest, MaximaAreSets) {
  EXPECT_TRUE(same(maximum({x, y, x}), maximum({y, x})));
  EXPECT_TRUE(same(maximum({maximum({x, y}), z}), maximum({x, maximum({y, z})})));
  EXPECT_TRUE(same(maximum({x}), x));
  EXPECT_FALSE(same(maximum({x, y}), maximum({x, z})));
  EXPECT_TRUE(same(maximum({x, ring.infinity(true)}), x));
}

TEST_F(PolynomialTest, PowersWithSmallExponentsAreProducts) {
  EXPECT_TRUE(same(ring.call(function("pow"), x, ring.number(2)), ring.multiply(x, x)));
  EXPECT_FALSE(same(ring.call(function("pow"), x, y), ring.call(function("pow"), y, x)));
}

TEST_F(PolynomialTest, WhatIsUndefinedIsMarked) {
  EXPECT_TRUE(ring.is_special(ring.divide(x, ring.number(0))));
  EXPECT_TRUE(ring.is_special(maximum({ring.infinity(true)})));
  EXPECT_TRUE(ring.is_special(ring.add(ring.infinity(true), x)));
  EXPECT_FALSE(ring.is_special(x));
}

}  // namespace
}  // namespace taso
