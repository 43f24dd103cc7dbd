// Profiles: what is refused (profile_errors.cases: a profile, and the error that it must give), what shipped ones are.
#include "generator/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/cases.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

using test::registry;

TEST(Profile, BadProfilesAreRejectedWithAReason) {
  using test::CaseCount;
  using test::CaseValue;
  const std::vector<test::TextCase> cases = test::load_cases(
      "tests/generator/profile_errors.cases",
      {{"error", CaseValue::words, CaseCount::once}, {"profile", CaseValue::section, CaseCount::once}});
  for (const test::TextCase& one : cases) {
    SCOPED_TRACE(one.place() + " " + one.name);
    const auto profile = parse_profile(one.text("profile"), "file", registry());
    ASSERT_FALSE(profile.ok());
    EXPECT_EQ(profile.error().to_string(), one.text("error"));
  }
  EXPECT_GE(cases.size(), 17U);
}

TEST(Profile, RulesAreMadeOfOperatorsOnReals) {
  const auto profile = parse_profile(
      "profile p\ngroup g\n  extent a: 2, 3\n  activation x [a]\n  apply is_nan(activation)\n", "file", registry());
  ASSERT_FALSE(profile.ok());
  EXPECT_EQ(profile.error().to_string(),
            "file:5:9: 'is_nan' computes with integers or truth values; rules are made of operators on reals");
}

TEST(Profile, ShippedProfilesLoad) {
  for (const char* name : {"default", "full", "sosp19", "table21", "transformer"}) {
    const auto profile = load_profile(std::string(TASO_SOURCE_DIR "/specs/profiles/") + name + ".profile", registry());
    ASSERT_TRUE(profile.ok()) << profile.error().to_string();
    EXPECT_EQ(profile->name, name);
  }
}

TEST(Profile, IncludesProfilesOfItsFolder) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "taso_profile_test";
  std::filesystem::create_directories(folder);
  auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder / (name + ".profile")) << text;
    return (folder / (name + ".profile")).string();
  };
  const std::string group = "  extent a: 2, 3\n  activation x [a]\n  apply relu(activation)\n";
  write("one", "profile one\ngroup first\n" + group);
  const auto two = load_profile(write("two", "profile two\ninclude one\ngroup second\n" + group), registry());
  ASSERT_TRUE(two.ok()) << two.error().to_string();
  ASSERT_EQ(two->groups.size(), 2u);
  EXPECT_EQ(two->groups[0].name, "first");
  EXPECT_EQ(two->groups[1].name, "second");
  const auto again = load_profile(write("again", "profile again\ngroup first\n" + group + "include one\n"), registry());
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().to_string(),
              testing::HasSubstr("again.profile:6:1: group 'first' of 'one' is defined already"));
  const auto cycle = load_profile(write("cycle", "profile cycle\ninclude cycle\n"), registry());
  ASSERT_FALSE(cycle.ok());
  EXPECT_THAT(cycle.error().to_string(), testing::HasSubstr("profiles include each other, or more than 8 deep"));
  std::filesystem::remove_all(folder);
}

TEST(Profile, DerivedSymbolsAreComputedPerWorld) {
  const auto profile = parse_profile(
      "profile p\n"
      "group g\n"
      "  extent h: 5, 4\n"
      "  param p: [1, 2], [0, 1]\n"
      "  extent h1 = (h + p[0] + p[1]) // 2\n"
      "  activation x [h, h1]\n"
      "  apply relu(activation)\n",
      "file", registry());
  ASSERT_TRUE(profile.ok()) << profile.error().to_string();
  const ProfileGroup& group = profile->groups[0];
  EXPECT_EQ(group.worlds, 2u);
  EXPECT_EQ(group.symbols[2].values[0], AttributeValue(std::int64_t{4}));
  EXPECT_EQ(group.symbols[2].values[1], AttributeValue(std::int64_t{2}));
}

}  // namespace
}  // namespace taso
