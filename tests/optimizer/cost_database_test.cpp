#include "optimizer/cost_database.h"

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "support/file.h"
#include "tests/optimizer/fixtures.h"

namespace taso::testing {
namespace {

using Mode = CostDatabase::Mode;

TEST(CostDatabase, RemembersAcrossOpenings) {
  const TemporaryFolder folder;
  const std::string path = folder / "a/b/costs.sqlite";  // folders are made
  {
    CostDatabase database = value_of(CostDatabase::open(path, "device", Mode::read_write));
    EXPECT_EQ(database.find("kernel", "k"), std::nullopt);
    EXPECT_EQ(value_of(database.record("kernel", "k", 1.5)), 1.5);
    EXPECT_EQ(value_of(database.record("graph", "k", 2.5)), 2.5);
  }
  CostDatabase database = value_of(CostDatabase::open(path, "device", Mode::read_only));
  EXPECT_EQ(database.find("kernel", "k"), 1.5);
  EXPECT_EQ(database.find("graph", "k"), 2.5);
  EXPECT_EQ(database.entries().size(), 2U);
}

TEST(CostDatabase, KeepsDevicesApart) {
  const TemporaryFolder folder;
  const std::string path = folder / "costs.sqlite";
  CostDatabase one = value_of(CostDatabase::open(path, "one", Mode::read_write));
  (void)value_of(one.record("kernel", "k", 1));
  CostDatabase two = value_of(CostDatabase::open(path, "two", Mode::read_write));
  EXPECT_EQ(two.find("kernel", "k"), std::nullopt);
}

TEST(CostDatabase, FirstValueStands) {
  const TemporaryFolder folder;
  const std::string path = folder / "costs.sqlite";
  CostDatabase one = value_of(CostDatabase::open(path, "device", Mode::read_write));
  CostDatabase two = value_of(CostDatabase::open(path, "device", Mode::read_write));
  EXPECT_EQ(value_of(one.record("kernel", "k", 1)), 1);
  EXPECT_EQ(value_of(two.record("kernel", "k", 2)), 1);
}

TEST(CostDatabase, ReadOnlyRecordsInMemoryOnly) {
  const TemporaryFolder folder;
  const std::string path = folder / "costs.sqlite";
  (void)value_of(value_of(CostDatabase::open(path, "device", Mode::read_write)).record("kernel", "k", 1));
  {
    CostDatabase database = value_of(CostDatabase::open(path, "device", Mode::read_only));
    EXPECT_EQ(value_of(database.record("kernel", "new", 2)), 2);
  }
  EXPECT_EQ(value_of(CostDatabase::open(path, "device", Mode::read_only)).find("kernel", "new"), std::nullopt);
}

TEST(CostDatabase, SurvivesManyProcesses) {
  const TemporaryFolder folder;
  const std::string path = folder / "costs.sqlite";
  constexpr int processes = 6, cache_keys = 40;
  std::vector<pid_t> children;
  for (int process = 0; process < processes; ++process) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Expected<CostDatabase> database = CostDatabase::open(path, "device", Mode::read_write);
      bool good = database.ok();
      for (int key = 0; good && key < cache_keys; ++key)
        good = database->record("kernel", std::to_string(key), process + 1).ok();
      if (!database.ok()) fprintf(stderr, "%s\n", database.error().to_string().c_str());
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(value_of(CostDatabase::open(path, "device", Mode::read_only)).entries().size(), std::size_t{cache_keys});
}

/// Opening the file fails with exactly this message.
void expect_failure(const std::string& path, Mode mode, const std::string& message) {
  const auto database = CostDatabase::open(path, "device", mode);
  ASSERT_FALSE(database.ok()) << path;
  EXPECT_EQ(database.error().code, ErrorCode::bad_input);
  EXPECT_EQ(database.error().message, message);
  EXPECT_EQ(database.error().where.file, path);
}

TEST(CostDatabase, SaysWhatIsWrongWithAFile) {
  const TemporaryFolder folder;
  expect_failure(folder / "absent", Mode::read_only, "there is no cost database of this name");
  expect_failure(folder / "", Mode::read_write, "not a file; expected a cost database");
  write_file(folder / "foreign", "PK\x03\x04 something else entirely");
  expect_failure(folder / "foreign", Mode::read_write,
                 "not a cost database (neither SQLite nor exported text); give another file with --costs");
  write_file(folder / "empty", "");
  expect_failure(folder / "empty", Mode::read_only, "the cost database is empty");
  write_file(folder / "in_the_way", "x");
  const auto database = CostDatabase::open(folder / "in_the_way/costs", "device", Mode::read_write);
  ASSERT_FALSE(database.ok());
  EXPECT_EQ(database.error().message.rfind("cannot create its folder: ", 0), 0U) << database.error().message;
}

TEST(CostDatabase, RefusesFilesOfOtherPrograms) {
  const TemporaryFolder folder;
  const std::string path = folder / "other.sqlite";
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(handle, "CREATE TABLE bookmarks (url TEXT)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(handle);
  for (const Mode mode : {Mode::read_only, Mode::read_write})
    expect_failure(path, mode, "a SQLite file of another program, not a cost database; give another file with --costs");
}

TEST(CostDatabase, RefusesOtherVersions) {
  const TemporaryFolder folder;
  const std::string path = folder / "costs.sqlite";
  { (void)value_of(CostDatabase::open(path, "device", Mode::read_write)); }
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(handle, "PRAGMA user_version = 99", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(handle);
  expect_failure(path, Mode::read_write, "cost database of version 99; this program reads version 1");
}

TEST(CostDatabase, NoticesDamage) {
  const TemporaryFolder folder;
  const std::string path = folder / "costs.sqlite";
  {
    CostDatabase database = value_of(CostDatabase::open(path, "device", Mode::read_write));
    for (int i = 0; i < 2000; ++i) (void)value_of(database.record("kernel", std::to_string(i), i));
  }
  const auto size = std::filesystem::file_size(path);
  ASSERT_GT(size, 16384U);
  std::string bytes = value_of(read_file(path));
  const std::string intact = bytes;
  for (std::size_t i = 4096; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31);
  write_file(path, bytes);
  expect_failure(path, Mode::read_write, "the cost database is damaged; delete it, the costs will be measured again");
  bytes = intact;
  for (std::size_t i = 20; i < 100; ++i) bytes[i] = '\x7f';
  write_file(path, bytes);
  EXPECT_FALSE(CostDatabase::open(path, "device", Mode::read_write).ok());
}

TEST(CostDatabase, NoticesValuesThatAreNoCosts) {
  const TemporaryFolder folder;
  const std::string path = folder / "costs.sqlite";
  { (void)value_of(value_of(CostDatabase::open(path, "device", Mode::read_write)).record("kernel", "k", 1)); }
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(handle, "UPDATE costs SET value = -1.0", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(handle);
  expect_failure(path, Mode::read_write, "the cost database is damaged; delete it, the costs will be measured again");
}

TEST(CostText, RoundTrips) {
  const std::vector<CostDatabase::Entry> entries{{"AMD; oneDNN 2.6.3", "kernel", "matmul; f32[1, 2]", 1.0 / 3},
                                                 {"tab\there", "graph", "back\\slash\nline", 0}};
  EXPECT_EQ(value_of(import_text(export_text(entries), "file")), entries);
}

TEST(CostText, OpensAsADatabase) {
  const TemporaryFolder folder;
  write_file(folder / "costs.txt", export_text({{"device", "kernel", "k", 3}, {"other", "kernel", "k", 4}}));
  CostDatabase database = value_of(CostDatabase::open(folder / "costs.txt", "device", Mode::read_write));
  EXPECT_EQ(database.find("kernel", "k"), 3);
  EXPECT_EQ(database.entries().size(), 1U);
}

TEST(CostText, NamesFileAndLineOfAnError) {
  const std::string head = "# taso costs 1\n";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "f: expected the header '# taso costs 1', found an empty file"},
      {"costs\n", "f:1: expected the header '# taso costs 1', found 'costs'"},
      {head + "a\tb\n", "f:2: expected device, kind, key and value separated by tabs, found 2 fields"},
      {head + "abc\n", "f:2: expected device, kind, key and value separated by tabs, found 1 field"},
      {head + "# fine\n\nd\tk\tx\t1e\n", "f:4: expected a cost of at least 0, found '1e'"},
      {head + "d\tk\tx\t-1\n", "f:2: expected a cost of at least 0, found '-1'"},
      {head + "d\tk\tx\tinf\n", "f:2: expected a cost of at least 0, found 'inf'"}};
  for (const auto& [text, message] : cases) {
    const auto entries = import_text(text, "f");
    ASSERT_FALSE(entries.ok()) << text;
    EXPECT_EQ(entries.error().to_string(), message);
    EXPECT_EQ(entries.error().code, ErrorCode::bad_input);
  }
}

}  // namespace
}  // namespace taso::testing
