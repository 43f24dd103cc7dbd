/// The rings themselves: oracles, exactness, and what each ring refuses.

#include "operators/ring.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "support/random.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

const FunctionDefinition& function(const char* name) { return *test::registry().find_function(name); }

TEST(DoubleRing, Extremum) {
  const std::vector<double> values = {1, 3, -2};
  EXPECT_EQ(DoubleRing::extremum(true, values), 3);
  EXPECT_EQ(DoubleRing::extremum(false, values), -2);
  EXPECT_EQ(DoubleRing::infinity(true), -std::numeric_limits<double>::infinity());
  const std::vector<double> with_nan = {1, std::nan(""), 2};
  EXPECT_TRUE(std::isnan(DoubleRing::extremum(true, with_nan))) << "NaN is not lost";
}

TEST(FieldRing, NumbersAreExactDyadics) {
  const FieldRing field(1);
  EXPECT_EQ(field.number(0), Mod61());
  EXPECT_EQ(field.number(-3), Mod61(std::int64_t{-3}));
  EXPECT_EQ(field.number(0x1p61), Mod61(std::int64_t{1}));
  EXPECT_EQ(field.number(0.5) * Mod61(std::int64_t{2}), Mod61(std::int64_t{1}));
  EXPECT_EQ(field.number(0.1) * Mod61(std::int64_t{1} << 56), Mod61(static_cast<std::int64_t>(std::ldexp(0.1, 56))))
      << "0.1 as a double is m / 2^56";
  // A ring homomorphism on doubles whose sum and product are exact.
  Random random(4);
  for (int i = 0; i < 1000; ++i) {
    const double a = std::ldexp(static_cast<double>(static_cast<std::int64_t>(random.below(2000000)) - 1000000),
                                static_cast<int>(random.below(200)) - 100);
    const double b = std::ldexp(static_cast<double>(random.below(1000)), static_cast<int>(random.below(200)) - 100);
    EXPECT_EQ(field.number(a * b), field.number(a) * field.number(b));
    EXPECT_EQ(field.number(-a), -field.number(a));
  }
}

TEST(FieldRing, OraclesAreFunctionsOfSeedNameAndArgument) {
  const FieldRing one(1), again(1), two(2);
  const Mod61 x(std::int64_t{12345}), y(std::int64_t{6789});
  EXPECT_EQ(one.call(function("exp"), x), again.call(function("exp"), x));
  EXPECT_NE(one.call(function("exp"), x), one.call(function("exp"), y));
  EXPECT_NE(one.call(function("exp"), x), one.call(function("tanh"), x));
  EXPECT_NE(one.call(function("exp"), x), two.call(function("exp"), x));
  EXPECT_EQ(one.call(function("tanh"), Mod61()), Mod61()) << "declared: tanh(0) = 0";
  EXPECT_NE(one.call(function("exp"), Mod61()), Mod61());
  EXPECT_NE(one.call(function("pow"), x, y), one.call(function("pow"), y, x));
}

TEST(FieldRing, ExtremumIsAnOracleOfTheSet) {
  const FieldRing field(1);
  const Mod61 a(std::int64_t{5}), b(std::int64_t{7}), c(std::int64_t{9});
  auto maximum = [&](std::vector<Mod61> values) { return field.extremum(true, values); };
  EXPECT_EQ(maximum({a}), a);
  EXPECT_EQ(maximum({a, a, a}), a);
  EXPECT_EQ(maximum({a, b}), maximum({b, a}));
  EXPECT_EQ(maximum({a, b, b}), maximum({b, a}));
  EXPECT_NE(maximum({a, b}), maximum({a, c}));
  EXPECT_NE(maximum({a, b}), field.extremum(false, std::vector<Mod61>{a, b}));
}

TEST(FieldRing, DivisionByZeroIsRemembered) {
  FieldRing field(1);
  const Mod61 six(std::int64_t{6}), three(std::int64_t{3});
  EXPECT_EQ(field.divide(six, three), Mod61(std::int64_t{2}));
  EXPECT_TRUE(field.status().ok());
  field.divide(six, Mod61());
  EXPECT_EQ(field.status().error().message, "division by zero in GF(2^61-1)");
}

TEST(IntegerRing, ExactOrRefused) {
  IntegerRing ring;
  EXPECT_TRUE(ring.number(-7) == -7);
  EXPECT_TRUE(ring.call(function("relu"), -7) == 0);
  EXPECT_TRUE(ring.call(function("abs"), -7) == 7);
  EXPECT_TRUE(ring.divide(-6, 3) == -2);
  EXPECT_TRUE(ring.divide(6, -1) == -6);
  EXPECT_TRUE(ring.status().ok());
}

template <class Operation>
std::string failure(Operation operation) {
  IntegerRing ring;
  operation(ring);
  operation(ring);  // The first failure stays.
  return ring.status().ok() ? "" : ring.status().error().message;
}

TEST(IntegerRing, FailuresSayWhat) {
  const IntegerRing::Element large = IntegerRing::Element{1} << 126;
  EXPECT_EQ(failure([](IntegerRing& r) { r.number(0.5); }), "the number 0.500000 is not an exact integer below 2^126");
  EXPECT_NE(failure([](IntegerRing& r) { r.number(std::numeric_limits<double>::infinity()); }), "");
  EXPECT_EQ(failure([&](IntegerRing& r) { r.add(large, large); }), "a sum is beyond 128 bits");
  EXPECT_EQ(failure([&](IntegerRing& r) { r.subtract(-large, large + 1); }), "a difference is beyond 128 bits");
  EXPECT_EQ(failure([&](IntegerRing& r) { r.multiply(large, 4); }), "a product is beyond 128 bits");
  EXPECT_EQ(failure([](IntegerRing& r) { r.divide(7, 2); }), "a division is not exact");
  EXPECT_EQ(failure([](IntegerRing& r) { r.divide(7, 0); }), "division by zero");
  EXPECT_EQ(failure([](IntegerRing& r) { r.call(function("exp"), 0); }), "'exp' leaves the integers");
  EXPECT_EQ(failure([](IntegerRing& r) { r.call(function("pow"), 2, 3); }), "'pow' leaves the integers");
  EXPECT_EQ(failure([](IntegerRing& r) { r.infinity(true); }), "an empty max or min is not an integer");
}

}  // namespace
}  // namespace taso
