#include "support/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

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

TEST(Hash, InPartsIsThatOfTheWhole) {
  std::vector<std::byte> bytes(1000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i);
  for (const std::size_t part : {1U, 7U, 256U, 999U, 1000U, 5000U}) {
    std::size_t read = 0;
    EXPECT_EQ(hash_in_parts(bytes, part,
                            [&](std::span<const std::byte> one) {
                              EXPECT_EQ(one.data(), bytes.data() + read);
                              EXPECT_LE(one.size(), part);
                              read += one.size();
                            }),
              hash_bytes(bytes));
    EXPECT_EQ(read, bytes.size());
  }
  EXPECT_EQ(hash_in_parts({}, 1, [](std::span<const std::byte>) { ADD_FAILURE(); }), hash_text(""));
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
