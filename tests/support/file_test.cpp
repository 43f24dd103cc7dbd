#include "support/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/process_memory.h"

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

// What is given back is read again, and what lies beside it in the same pages, too.
TEST_F(Files, ReleasedPagesComeBack) {
  std::string text(std::size_t{40} << 20, ' ');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 + i / 4096);
  ASSERT_TRUE(write_file_atomically(path("f"), text).ok());
  const auto file = MappedFile::open(path("f")).value();
  const auto is_the_file = [&] { return std::memcmp(file->bytes().data(), text.data(), text.size()) == 0; };
  EXPECT_TRUE(is_the_file());
  const std::int64_t before = process_memory().resident;
  release_pages(file->bytes());
  const std::int64_t after = process_memory().resident;
  EXPECT_LT(after, before - (std::int64_t{30} << 20));
  EXPECT_TRUE(is_the_file());
  release_pages(file->bytes().subspan(1000, 5000));
  release_pages(file->bytes().subspan(text.size() - 1));
  release_pages({});
  EXPECT_TRUE(is_the_file());
  EXPECT_GE(process_memory().peak, before);
}

TEST_F(Files, LinksAreFollowed) {
  std::filesystem::create_directory(path("folder"));
  ASSERT_TRUE(write_file_atomically(path("folder/target"), "old").ok());
  std::filesystem::create_symlink("folder/target", path("link"));
  std::filesystem::create_symlink("link", path("link2"));
  ASSERT_TRUE(write_file_atomically(path("link2"), "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_TRUE(std::filesystem::is_symlink(path("link2")));
  EXPECT_EQ(read_file(path("folder/target")).value(), "new");
  std::filesystem::create_symlink("folder/later", path("dangling"));
  ASSERT_TRUE(write_file_atomically(path("dangling"), "made").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(path("dangling")));
  EXPECT_EQ(read_file(path("folder/later")).value(), "made");
  std::filesystem::create_symlink("circle", path("circle"));
  EXPECT_NE(write_file_atomically(path("circle"), "x").error().message.find("too many links"), std::string::npos);
}

TEST_F(Files, PipesAreWrittenThroughAndNeverReplaced) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  std::filesystem::create_symlink("pipe", path("link"));
  for (const char* name : {"pipe", "link"}) {
    ASSERT_TRUE(write_file_atomically(path(name), "through").ok());
    char text[16] = {};
    ASSERT_EQ(::read(reader, text, sizeof text), 7);
    EXPECT_STREQ(text, "through");
  }
  EXPECT_FALSE(replace_file(path("pipe"), [](const std::string&) -> Status { return bad_input("stopped"); }).ok());
  EXPECT_TRUE(std::filesystem::is_fifo(path("pipe"))) << "an error does not remove it either";
  ::close(reader);
  EXPECT_EQ(entries(), 2U) << "no temporary file is made";
}

TEST_F(Files, WhatCannotBeWrittenIsSeenBeforehand) {
  EXPECT_NE(find_output("").error().message.find("the file name is empty"), std::string::npos);
  EXPECT_NE(find_output(path("")).error().message.find("it is a folder; expected a file name"), std::string::npos);
  EXPECT_NE(find_output(path("no/f")).error().message.find("does not exist"), std::string::npos);
  EXPECT_EQ(find_output(path("f")).value().path, path("f"));
  EXPECT_EQ(entries(), 0U) << "looking makes nothing";
}

TEST_F(Files, PipesAreRefusedForReadingNotWaitedFor) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_NE(read_file(path("pipe")).error().message.find("not a regular file"), std::string::npos);
  EXPECT_NE(read_file(path("")).error().message.find("it is a folder"), std::string::npos);
}

TEST_F(Files, PermissionsStay) {
  ASSERT_TRUE(write_file_atomically(path("f"), "old").ok());
  std::filesystem::permissions(path("f"), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  ASSERT_TRUE(write_file_atomically(path("f"), "new").ok());
  EXPECT_EQ(std::filesystem::status(path("f")).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(Files, AFolderIsFilledAtOnceOrNotAtAll) {
  const auto two_files = [](const std::string& folder) -> Status {
    TASO_RETURN_IF_ERROR(write_file_atomically(folder + "/a", "new"));
    return write_file_atomically(folder + "/b", "new");
  };
  ASSERT_TRUE(fill_folder(path("made/"), two_files).ok());
  EXPECT_EQ(read_file(path("made/a")).value(), "new");
  ASSERT_TRUE(write_file_atomically(path("made/a"), "old").ok());
  ASSERT_TRUE(write_file_atomically(path("made/other"), "stays").ok());
  const Status failed = fill_folder(path("made"), [](const std::string& folder) -> Status {
    TASO_RETURN_IF_ERROR(write_file_atomically(folder + "/a", "half"));
    return bad_input("stopped");
  });
  EXPECT_EQ(failed.error().message, "stopped");
  EXPECT_EQ(read_file(path("made/a")).value(), "old");
  ASSERT_TRUE(fill_folder(path("made"), two_files).ok());
  EXPECT_EQ(read_file(path("made/a")).value(), "new");
  EXPECT_EQ(read_file(path("made/other")).value(), "stays");
  EXPECT_EQ(entries(), 1U) << "no temporary folder is left";
  ASSERT_TRUE(write_file_atomically(path("file"), "").ok());
  EXPECT_NE(fill_folder(path("file"), two_files).error().message.find("cannot write"), std::string::npos);
  EXPECT_NE(fill_folder(path("no/where"), two_files).error().message.find("cannot write"), std::string::npos);
}

}  // namespace
}  // namespace taso
