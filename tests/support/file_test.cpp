#include "support/file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace taso {
namespace {

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("taso_file_test_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(Files, WriteAndReadBack) {
  const std::string contents("a\0b\n", 4);
  ASSERT_TRUE(write_file_atomically(path("f"), contents).ok());
  EXPECT_EQ(read_file(path("f")).value(), contents);
  ASSERT_TRUE(write_file_atomically(path("f"), "").ok());
  EXPECT_EQ(read_file(path("f")).value(), "");
  EXPECT_EQ(entries(), 1U) << "no temporary file stays";
}

TEST_F(Files, FailedReplacementLeavesTheFile) {
  ASSERT_TRUE(write_file_atomically(path("f"), "old").ok());
  const Status status = replace_file(path("f"), [](const std::string& temporary) -> Status {
    std::ofstream(temporary) << "half";
    return bad_input("stopped");
  });
  EXPECT_EQ(status.error().message, "stopped");
  EXPECT_EQ(read_file(path("f")).value(), "old");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(Files, AbsentFilesAreErrorsThatNameThem) {
  const Error error = read_file(path("absent")).error();
  EXPECT_EQ(error.code, ErrorCode::bad_input);
  EXPECT_NE(error.to_string().find(path("absent")), std::string::npos);
  EXPECT_NE(error.to_string().find("No such file"), std::string::npos) << error.to_string();
  EXPECT_FALSE(write_file_atomically(path("no/folder/f"), "x").ok());
  EXPECT_FALSE(MappedFile::open(path("absent")).ok());
}

TEST_F(Files, Mapping) {
  ASSERT_TRUE(write_file_atomically(path("f"), "mapped").ok());
  const auto file = MappedFile::open(path("f")).value();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()), "mapped");
  ASSERT_TRUE(write_file_atomically(path("empty"), "").ok());
  EXPECT_EQ(MappedFile::open(path("empty")).value()->bytes().size(), 0U);
}

}  // namespace
}  // namespace taso
