#include "support/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace taso {
namespace {

TEST(Hash, IsTheSameOnEveryMachine) {
  // The published value of XXH3-128 of the empty input.
  EXPECT_EQ(hash_text("").to_string(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash_text("taso").to_string().size(), 32U);
  EXPECT_EQ(hash_text("taso"), hash_text("taso"));
  EXPECT_NE(hash_text("taso"), hash_text("taso", 1));
  EXPECT_NE(hash_text("taso"), hash_text("tasp"));
}

TEST(Hasher, FieldsDoNotRunTogether) {
  auto of = [](auto... fields) {
    Hasher hasher;
    (hasher.add(fields), ...);
    return hasher.finish();
  };
  using Text = std::string_view;
  EXPECT_NE(of(Text("ab"), Text("c")), of(Text("a"), Text("bc")));
  EXPECT_NE(of(Text("ab")), of(Text("ab"), Text("")));
  EXPECT_NE(of(std::int64_t{1}, std::int64_t{2}), of(std::int64_t{2}, std::int64_t{1}));
  EXPECT_EQ(of(-1), of(std::int64_t{-1}));
  EXPECT_NE(of(0.0), of(1.0));
}

}  // namespace
}  // namespace taso
