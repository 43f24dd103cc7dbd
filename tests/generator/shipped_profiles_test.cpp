// The shipped profiles, at one operator.
#include <gtest/gtest.h>

#include "generator/generator.h"
#include "generator/profile.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

using test::registry;

// `full` includes all the others but one.
class ShippedProfiles : public testing::TestWithParam<const char*> {};

TEST_P(ShippedProfiles, LoadAndGenerateRulesThatCanBeRead) {
  const std::string path = std::string(TASO_SOURCE_DIR "/specs/profiles/") + GetParam() + ".profile";
  const auto profile = load_profile(path, registry());
  ASSERT_TRUE(profile.ok()) << profile.error().to_string();
  EXPECT_EQ(profile->name, GetParam());
  GeneratorOptions options;
  options.max_ops = 1;
  const auto result = generate(*profile, registry(), options);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(result->groups.size(), profile->groups.size());
  EXPECT_FALSE(result->rules.empty());
  const std::string text = rule_file(*result, *profile, options, "command", registry());
  const auto rules = parse_rules(text, "generated", registry());
  ASSERT_TRUE(rules.ok()) << rules.error().to_string();
  EXPECT_EQ(rules->size(), result->rules.size());
}

INSTANTIATE_TEST_SUITE_P(Names, ShippedProfiles, testing::Values("full", "sosp19"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace taso
