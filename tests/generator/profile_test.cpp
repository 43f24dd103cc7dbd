// Every *.profile file in tests/generator/bad must be rejected with the message on its first line ("# error: ...").
#include "generator/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/file.h"
#include "tests/generator/shipped.h"

namespace taso {
namespace {

TEST(Profile, BadProfilesAreRejectedWithAReason) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TASO_SOURCE_DIR "/tests/generator/bad")) {
    SCOPED_TRACE(entry.path().filename().string());
    const std::string text = read_file(entry.path().string()).value();
    const std::string marker = "# error: ";
    ASSERT_EQ(text.rfind(marker, 0), 0u) << "the first line must be '# error: MESSAGE'";
    const std::string expected = text.substr(marker.size(), text.find('\n') - marker.size());
    const auto profile = parse_profile(text, "file", registry());
    ASSERT_FALSE(profile.ok());
    EXPECT_EQ(profile.error().to_string(), expected);
    ++files;
  }
  EXPECT_GE(files, 10);
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
