#include "support/nearest_word.h"

#include <gtest/gtest.h>

namespace taso {
namespace {

TEST(NearestWord, CountsLettersPutInLeftOutReplacedAndExchanged) {
  EXPECT_EQ(letters_apart("width", "width"), 0U);
  EXPECT_EQ(letters_apart("widht", "width"), 1U);
  EXPECT_EQ(letters_apart("width", "with"), 1U);
  EXPECT_EQ(letters_apart("wodth", "width"), 1U);
  EXPECT_EQ(letters_apart("", "abc"), 3U);
  EXPECT_EQ(letters_apart("abc", "xyz"), 3U);
}

TEST(NearestWord, IsTheFirstOfTheNearestOrNone) {
  EXPECT_EQ(nearest_word("fuse_rleu", {"fuse_tanh", "fuse_relu", "fuse_relu_1"}), "fuse_relu");
  EXPECT_EQ(nearest_word("merge", {"split", "fuse_relu"}), "");
  EXPECT_EQ(nearest_word("abcd", {"abce", "abcf"}), "abce");
  EXPECT_EQ(nearest_word("relu", {}), "");
}

}  // namespace
}  // namespace taso
