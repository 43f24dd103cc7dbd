#include "support/file_place.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/file.h"

namespace taso {
namespace {

namespace fs = std::filesystem;

class FilePlaces : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ("taso_file_place_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "sub" / "deep");
    std::ofstream(folder_ / "f") << "f";
    std::ofstream(folder_ / "g") << "g";
  }
  void TearDown() override { fs::remove_all(folder_); }
  FilePlace at(const std::string& name) const { return place_of((folder_ / name).string()); }
  fs::path folder_;
};

TEST_F(FilePlaces, SpellingAndLinksMakeNoDifference) {
  fs::create_symlink("f", folder_ / "link");
  fs::create_hard_link(folder_ / "f", folder_ / "hard");
  fs::create_symlink("sub/deep", folder_ / "folder");
  for (const char* name : {"./f", "sub/../f", "link", "hard", "sub//..//f", "sub/deep/../../f"})
    EXPECT_EQ(at(name), at("f")) << name;
  EXPECT_NE(at("folder/../f"), at("f")) << "the folder above a linked one is that of its target";
  EXPECT_EQ(at("folder/../f"), at("sub/f"));
  EXPECT_NE(at("f"), at("g"));
}

TEST_F(FilePlaces, OfFilesThatAreNotThere) {
  fs::create_symlink("new", folder_ / "link");
  fs::create_symlink("sub", folder_ / "folder");
  for (const char* name : {"./new", "sub/../new", "link", "new/", "gone/../new"})
    EXPECT_EQ(at(name), at("new")) << name;
  EXPECT_EQ(at("folder/a/b"), at("sub/a/b"));
  EXPECT_EQ(at("folder/a/../b"), at("sub/b"));
  EXPECT_NE(at("new"), at("sub/new"));
  EXPECT_NE(at("new"), at("other"));
  EXPECT_NE(at("new"), at("."));
  EXPECT_EQ(place_of("no_such_file"), place_of("./no_such_file"));
}

TEST_F(FilePlaces, OfDevicesAndDescriptors) {
  EXPECT_EQ(place_of("/dev/null"), place_of("/dev/../dev/null"));
  EXPECT_NE(place_of("/dev/null"), place_of("/dev/zero"));
  const int descriptor = ::open((folder_ / "f").c_str(), O_RDONLY);
  EXPECT_EQ(place_of_descriptor(descriptor), at("f"));
  ::close(descriptor);
  EXPECT_EQ(place_of_descriptor(descriptor), std::nullopt);
}

/// What an open descriptor names is written from where it stands: neither from its beginning, nor by another file.
TEST_F(FilePlaces, OpenDescriptorsAreWrittenThrough) {
  const int descriptor = ::open((folder_ / "log").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(descriptor, 0);
  ASSERT_EQ(::write(descriptor, "before ", 7), 7);
  const std::string path = "/dev/fd/" + std::to_string(descriptor);
  const FilePlace before = at("log");
  ASSERT_TRUE(find_output(path)->written_through);
  const Status written = write_file_atomically(path, "through");
  ASSERT_TRUE(written) << written.error().to_string();
  ASSERT_EQ(::write(descriptor, " after", 6), 6);
  ::close(descriptor);
  EXPECT_EQ(read_file((folder_ / "log").string()).value(), "before through after");
  EXPECT_EQ(at("log"), before);
  EXPECT_FALSE(find_output(path));
}

}  // namespace
}  // namespace taso
