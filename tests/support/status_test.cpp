#include "support/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace taso {
namespace {

TEST(Error, SaysWhere) {
  EXPECT_EQ(bad_input("wrong").to_string(), "wrong");
  EXPECT_EQ(bad_input("wrong", {"f", 0, 0}).to_string(), "f: wrong");
  EXPECT_EQ(bad_input("wrong", {"f", 3, 0}).to_string(), "f:3: wrong");
  EXPECT_EQ(bad_input("wrong", {"f", 3, 4}).to_string(), "f:3:4: wrong");
  EXPECT_EQ(bad_input("no \"a\nb\x7f\"").to_string(), "no \"a?b?\"");
  EXPECT_EQ(bad_input("wrong").exit_code(), 3);
  EXPECT_EQ(internal_error("ours").exit_code(), 1);
}

Expected<std::unique_ptr<int>> make(bool succeed) {
  if (!succeed) return bad_input("no");
  return std::make_unique<int>(7);
}

Expected<int> use(bool succeed) {
  TASO_ASSIGN(const std::unique_ptr<int> made, make(succeed));
  return *made;
}

Status check(bool succeed) {
  TASO_RETURN_IF_ERROR(use(succeed).ok() ? Status() : Status(bad_input("checked")));
  return {};
}

TEST(Expected, PropagatesValuesAndErrors) {
  EXPECT_EQ(use(true).value(), 7);
  EXPECT_EQ(use(false).error().message, "no");
  EXPECT_TRUE(check(true).ok());
  EXPECT_EQ(check(false).error().message, "checked");
}

TEST(ExpectedDeathTest, ReadingTheWrongSideAborts) {
  EXPECT_DEATH((void)use(false).value(), "value of a failed Expected read: no");
  EXPECT_DEATH(TASO_CHECK(1 == 2, "arithmetic"), "arithmetic");
}

}  // namespace
}  // namespace taso
