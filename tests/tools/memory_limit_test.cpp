#include "tools/memory_limit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace taso::tools {
namespace {

TEST(MemoryLimit, IsTheLeastOfAllGroupsAround) {
  const std::filesystem::path root = std::filesystem::path(::testing::TempDir()) / "taso_memory_limit_test";
  std::filesystem::remove_all(root);
  const auto write = [&](const std::string& group, const std::string& text) {
    std::filesystem::create_directories((root / group).parent_path());
    std::ofstream(root / group) << text << "\n";
  };
  const auto limit = [&](const std::string& membership) { return group_memory_limit(membership, root.string()); };
  write("a/memory.max", "3000000000");
  write("a/b/memory.max", "max");
  write("a/b/c/memory.max", "4000000000");
  EXPECT_EQ(limit("0::/a/b/c\n"), 3000000000U);
  EXPECT_EQ(limit("0::/a/b\n"), 3000000000U);
  EXPECT_EQ(limit("0::/none\n"), std::nullopt);
  EXPECT_EQ(limit("0::/\n"), std::nullopt);
  write("memory.max", "1000000000");
  EXPECT_EQ(limit("0::/a/b/c"), 1000000000U);
  EXPECT_EQ(limit("0::/"), 1000000000U);
  write("memory/x/memory.limit_in_bytes", "2000000000");
  write("memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(limit("5:cpu:/x\n4:memory:/x\n"), 2000000000U);
  EXPECT_EQ(limit("4:memory:/\n"), std::nullopt);
  EXPECT_EQ(limit("4:memory:/x\n0::/\n"), 1000000000U);
  EXPECT_EQ(limit("no group\n"), std::nullopt);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace taso::tools
