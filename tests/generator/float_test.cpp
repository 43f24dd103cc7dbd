// The test in single precision: exact rules do not differ, sums in another order do a little, and what is false is
// told.
#include <gtest/gtest.h>

#include <cmath>

#include "generator/generator.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

using test::registry;

double difference(const std::string& text, const std::vector<Shape>& shapes) {
  const auto rules = parse_rules("rule r: " + text + "\n", "text", registry());
  GeneralRule rule;
  rule.rule = rules.value().front();
  for (const Shape& shape : shapes) rule.example_types.push_back({ElementType::f32, shape, true});
  rule.example_attributes.resize(rule.rule.attribute_variables.size());
  return float_difference(rule, registry(), 1);
}

TEST(FloatTest, TellsRoundingFromEquality) {
  EXPECT_EQ(difference("add(x, y) => add(y, x)", {{5}, {5}}), 0);
  EXPECT_EQ(difference("relu(relu(x)) => relu(x)", {{5}}), 0);
  const double sum = difference("add(matmul(x, w), matmul(x, v)) => matmul(x, add(w, v))", {{4, 64}, {64, 4}, {64, 4}});
  EXPECT_GT(sum, 0);
  EXPECT_LT(sum, float_threshold);
  EXPECT_GT(difference("exp(add(x, y)) => mul(exp(x), sub(exp(y), y))", {{9}, {9}}), 0.01);
}

TEST(FloatTest, OneSideThatIsNoNumberIsAnOutlier) {
  // At 0 elements of x the quotient is none; x itself is one.
  const auto rules = parse_rules("rule r: mul(x, div(y, sub(y, y))) => x\n", "text", registry());
  GeneralRule rule;
  rule.rule = rules.value().front();
  rule.example_types = {{ElementType::f32, {3}, true}, {ElementType::f32, {3}, true}};
  const auto outliers = float_outliers({rule, rule}, registry(), 1);
  ASSERT_EQ(outliers.size(), 2u);
  EXPECT_EQ(outliers[1].rule, 1u);
  EXPECT_TRUE(std::isinf(outliers[0].difference));
}

TEST(FloatTest, RunsOverGeneratedRules) {
  const auto profile = load_profile(TASO_SOURCE_DIR "/tests/generator/pruned/products.profile", registry());
  ASSERT_TRUE(profile.ok()) << profile.error().to_string();
  const auto result = generate(*profile, registry(), {});
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  double most = 0;
  for (const GeneralRule& rule : result->rules) most = std::max(most, float_difference(rule, registry(), 1));
  EXPECT_GT(most, 0) << "products in another order round differently";
  EXPECT_TRUE(result->outliers.empty());
}

}  // namespace
}  // namespace taso
