// Every *.profile file in tests/generator/bad must be rejected with the message on its first line ("# error: ...").
#include "generator/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/file.h"

namespace taso {
namespace {

const OperatorRegistry& registry() {
  static const auto loaded = OperatorRegistry::load(TASO_SOURCE_DIR "/specs/operators");
  return loaded.value();
}

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
  for (const char* name : {"default", "table21"}) {
    const auto profile = load_profile(std::string(TASO_SOURCE_DIR "/specs/profiles/") + name + ".profile", registry());
    ASSERT_TRUE(profile.ok()) << profile.error().to_string();
    EXPECT_EQ(profile->name, name);
  }
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
