#include "verifier/definitions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/shipped.h"

namespace taso {
namespace {

using ::testing::HasSubstr;

/// Why the definition of f in a text does not work; empty if it does, at some applications.
std::string failure(const std::string& text) {
  const auto registry = OperatorRegistry::parse(text, "f.op", &test::registry());
  if (!registry) return registry.error().to_string();
  const Expected<std::size_t> tried = try_definition(*registry, "f");
  if (!tried) return tried.error().to_string();
  return *tried > 0 ? "" : "nothing was tried";
}

TEST(Definitions, AreTriedAtSmallExtents) {
  EXPECT_EQ(failure("operator f(x[D..]) -> [D..]\n  out[I..] = relu(x[I..])\n"), "");
  EXPECT_EQ(failure("operator f(x[n]) -> [n]\n  out[i] = x[i + 1] or 0\n"), "");
  EXPECT_THAT(failure("operator f(x[n]) -> [n]\n  out[i] = x[i + 1]\n"),
              HasSubstr("f.op:2:16: the definition of f does not work for inputs (["));
  EXPECT_THAT(failure("operator f(x[n]) -> [n + 1]\n  out[i] = x[i] where i < n\n"),
              HasSubstr("f.op:1:10: the definition of f does not work for inputs (["));
  // Only where the extents are larger than one, and only of some attributes.
  EXPECT_THAT(failure("operator f(x[n]; k: int) -> [n]\n  require k >= 0 \"not negative\"\n"
                      "  out[i] = x[i * k]\n"),
              HasSubstr("f.op:3:16: the definition of f does not work for inputs ("));
}

// No signature promises what the definition does not keep.
TEST(Definitions, OfTheShippedOperatorsWork) {
  std::vector<std::string> untried;
  for (const std::string& op : test::registry().names()) {
    const Expected<std::size_t> tried = try_definition(test::registry(), op, {.max_instances = 200});
    ASSERT_TRUE(tried) << tried.error().to_string();
    if (*tried == 0) untried.push_back(op);
  }
  // Of truth values, and of any type.
  EXPECT_THAT(untried, ::testing::UnorderedElementsAre("cast", "logical_and", "logical_equal", "logical_not",
                                                       "logical_or", "logical_xor", "select"));
}

}  // namespace
}  // namespace taso
