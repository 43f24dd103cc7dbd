// The minimum of a sum of tables against its definition, to the last bit, on tables small and large.
#include "elimination/table_minimum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "support/random.h"

namespace taso::testing {
namespace {

struct Example {
  std::vector<std::uint32_t> sizes;
  std::vector<std::vector<double>> entries;
  std::vector<const double*> tables;
  std::vector<std::size_t> strides;
  [[nodiscard]] SumOfTables sum() const { return {sizes, tables, strides}; }
};

/// Tables over random axes in random order; real numbers, so that another order of additions shows.
Example random_example(Random& random, std::vector<std::uint32_t> sizes, std::size_t tables) {
  Example made;
  made.sizes = std::move(sizes);
  const std::size_t axes = made.sizes.size();
  made.strides.assign(tables * axes, 0);
  for (std::size_t t = 0; t < tables; ++t) {
    std::vector<std::size_t> own;
    for (std::size_t axis = 0; axis < axes; ++axis)
      if (random.below(3) > 0)
        own.insert(own.begin() + static_cast<std::ptrdiff_t>(random.below(own.size() + 1)), axis);
    std::size_t stride = 1;
    for (std::size_t i = own.size(); i-- > 0; stride *= made.sizes[own[i]]) made.strides[t * axes + own[i]] = stride;
    std::vector<double> entries(stride);
    for (double& entry : entries)
      entry = random.below(20) == 0 ? std::numeric_limits<double>::infinity() : random.normal();
    made.entries.push_back(std::move(entries));
  }
  for (const std::vector<double>& entries : made.entries) made.tables.push_back(entries.data());
  return made;
}

std::vector<double> by_definition(const Example& example) {
  const std::size_t axes = example.sizes.size();
  std::size_t all = 1;
  for (const std::uint32_t size : example.sizes) all *= size;
  std::vector<double> result(all / example.sizes.back(), std::numeric_limits<double>::infinity());
  for (std::size_t point = 0; point < all; ++point) {
    double total = 0;
    for (std::size_t t = 0; t < example.tables.size(); ++t) {
      std::size_t at = 0, rest = point;
      for (std::size_t axis = axes; axis-- > 0; rest /= example.sizes[axis])
        at += example.strides[t * axes + axis] * (rest % example.sizes[axis]);
      total += example.tables[t][at];
    }
    double& entry = result[point / example.sizes.back()];
    entry = std::min(entry, total);
  }
  return result;
}

TEST(TableMinimum, IsItsDefinitionToTheLastBit) {
  Random random(1, "tables");
  for (int i = 0; i < 300; ++i) {
    std::vector<std::uint32_t> sizes;
    for (std::size_t axis = 1 + random.below(4); axis > 0; --axis)
      sizes.push_back(1 + static_cast<std::uint32_t>(random.below(axis > 1 ? 12 : 40)));
    if (random.below(2) == 0) std::reverse(sizes.begin(), sizes.end());
    const Example example = random_example(random, sizes, random.below(6));
    const std::vector<double> expected = by_definition(example);
    for (const bool parallel : {false, true}) {
      std::vector<double> result(expected.size(), -1);
      minimum_of_sum(example.sum(), result, parallel);
      ASSERT_EQ(result, expected) << "example " << i;
    }
  }
}

/// Large enough for several tasks, with rows that are no multiple of a vector, and with a last axis shorter than one.
TEST(TableMinimum, OfLargeTablesByThreads) {
  Random random(2, "tables");
  for (const std::vector<std::uint32_t>& sizes :
       {std::vector<std::uint32_t>{53, 47, 39, 61}, std::vector<std::uint32_t>{31, 90, 2, 3, 61}}) {
    const Example example = random_example(random, sizes, 5);
    const std::vector<double> expected = by_definition(example);
    for (const bool parallel : {false, true}) {
      std::vector<double> result(expected.size(), -1);
      minimum_of_sum(example.sum(), result, parallel);
      ASSERT_EQ(result, expected);
    }
  }
}

}  // namespace
}  // namespace taso::testing
