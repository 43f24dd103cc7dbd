// What rounding makes of equal values is no counterexample.
#include "verifier/running_error.h"

#include "tests/verifier/fixture.h"
#include "verifier/bounded.h"

namespace taso {
namespace {

using testing::parse;
using testing::registry;

// Whether numbers are found at which the sides differ, of those given and small ones.
bool is_refuted(const std::string& text, const std::vector<double>& reals) {
  const std::vector<Substitution> rules = parse("rule r: " + text);
  Instance instance;
  for (std::size_t i = 0; i < rules.at(0).tensor_variables.size(); ++i)
    instance.variables.push_back({ElementType::f32, Shape{2}});
  TypeCheck check = check_types(registry(), rules[0], instance);
  EXPECT_TRUE(check.typed.has_value());
  return find_counterexample(registry(), rules[0], *check.typed, {.seed = 1, .trials = 24, .reals = reals}).has_value();
}

TEST(RunningError, ExplainsWhatRoundingMakesOfEqualValues) {
  // exp(-744.8) is one of the least numbers that a double holds, whose logarithm is -744.44.
  EXPECT_FALSE(is_refuted("log(exp(x)) => x", {-744.8, -744.6}));
  EXPECT_FALSE(is_refuted("div(exp(x), exp(y)) => exp(sub(x, y))", {-744.8, -744.6}));
  EXPECT_FALSE(is_refuted("log(mul(exp(x), exp(y))) => add(x, y)", {-400.3, -344.5}));
  const std::string sum = "mul(add(x, y), add(x, y))";
  EXPECT_FALSE(is_refuted("sub(sqrt(" + sum + "), x) => y if positive(x), positive(y)", {1e17, 3e16}));
}

TEST(RunningError, HidesNoDifference) {
  EXPECT_TRUE(is_refuted("log(exp(x)) => neg(x)", {}));
  EXPECT_TRUE(is_refuted("sqrt(mul(x, x)) => x", {}));
  EXPECT_TRUE(is_refuted("exp(add(x, y)) => add(exp(x), exp(y))", {-744.8, -30.0}));
  EXPECT_TRUE(is_refuted("tanh(x) => erf(x)", {0.3}));
}

TEST(RunningError, GrowsWithEveryOperation) {
  const Rounded tenth = RunningErrorRing::number(0.1), large = RunningErrorRing::number(1e17);
  EXPECT_EQ(tenth.error, 0);
  const Rounded sum = RunningErrorRing::add(tenth, large);
  EXPECT_GE(sum.error, 0.1);
  const Rounded rest = RunningErrorRing::subtract(sum, large);
  EXPECT_GE(rest.error, std::abs(rest.value - 0.1));
  EXPECT_FALSE(differ(rest, tenth));
  EXPECT_TRUE(differ(tenth, RunningErrorRing::number(0.11)));
  // A divisor that may be 0, and what is infinite, say nothing.
  EXPECT_FALSE(differ(RunningErrorRing::divide(tenth, rest), tenth));
  EXPECT_FALSE(differ(RunningErrorRing::infinity(false), tenth));
}

}  // namespace
}  // namespace taso
