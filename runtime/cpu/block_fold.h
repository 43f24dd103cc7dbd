/// Reductions of blocks (cpu/block.h): of a block to one number, and of many blocks element by element.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "operators/lowered_body.h"
#include "runtime/cpu/block.h"

namespace taso::cpu {

using Fold = LoweredNode::Reduction;

/// Sums of so many elements are added up by themselves before they go into the total: rounding grows more slowly.
inline constexpr int sums_at_once = 64;

/// The result for no elements.
[[nodiscard]] inline double neutral(Fold fold) {
  switch (fold) {
    case Fold::sum:
      return 0;
    case Fold::product:
      return 1;
    case Fold::maximum:
      return -std::numeric_limits<double>::infinity();
    case Fold::minimum:
      return std::numeric_limits<double>::infinity();
  }
  return 0;
}

[[nodiscard]] inline double combine(Fold fold, double a, double b) {
  switch (fold) {
    case Fold::sum:
      return a + b;
    case Fold::product:
      return a * b;
    case Fold::maximum:
      return a > b || std::isnan(a) ? a : b;
    case Fold::minimum:
      return a < b || std::isnan(a) ? a : b;
  }
  return 0;
}

/// Of the elements of a block.
[[nodiscard]] inline double fold_block(Fold fold, Block block, std::int64_t count) {
  switch (fold) {
    case Fold::sum:
      return block.uniform ? static_cast<double>(count) * static_cast<double>(*block.data)
                           : static_cast<double>(loops().sum(block.data, count));
    case Fold::product: {
      double product = 1;
      for (std::int64_t i = 0; i < count; ++i) product *= static_cast<double>(block.data[block.uniform ? 0 : i]);
      return product;
    }
    case Fold::maximum:
      return static_cast<double>(loops().greatest(block.data, block.uniform ? 1 : count));
    case Fold::minimum:
      return static_cast<double>(loops().least(block.data, block.uniform ? 1 : count));
  }
  return 0;
}

/// The sum of a * b.
[[nodiscard]] inline double sum_of_products(Block a, Block b, std::int64_t count) {
  if (!a.uniform && !b.uniform) return static_cast<double>(loops().dot(a.data, b.data, count));
  const double factor = static_cast<double>(a.uniform ? *a.data : *b.data);
  return factor * fold_block(Fold::sum, a.uniform ? b : a, count);
}

/// The larger (or smaller) of two elements; NaN if one is.
[[nodiscard]] inline const BinaryEntry* extremum_loop(bool maximum) { return find_binary(maximum ? "max" : "min"); }

/// totals[i] = fold(totals[i], block[i]).
inline void fold_into(Fold fold, float* totals, Block block, std::int64_t count) {
  const BinaryEntry* const combine = fold == Fold::sum       ? find_binary("add")
                                     : fold == Fold::product ? find_binary("mul")
                                                             : extremum_loop(fold == Fold::maximum);
  (block.uniform ? combine->second_scalar : combine->both)(totals, block.data, totals, count);
}

/// totals[i] += a[i] * b[i].
inline void add_products(float* totals, Block a, Block b, std::int64_t count) {
  if (a.uniform && b.uniform) {
    const float product = *a.data * *b.data;
    for (std::int64_t i = 0; i < count; ++i) totals[i] += product;
  } else if (a.uniform || b.uniform) {
    loops().accumulate_scaled(a.uniform ? b.data : a.data, totals, count, a.uniform ? *a.data : *b.data);
  } else {
    loops().accumulate_products(a.data, b.data, totals, count);
  }
}

/// The reciprocal of a divisor that is one number, if both are normal numbers.
[[nodiscard]] inline std::optional<float> reciprocal(float divisor) {
  const float inverse = 1.0F / divisor;
  if (!std::isnormal(inverse) || !std::isnormal(divisor)) return std::nullopt;
  return inverse;
}

}  // namespace taso::cpu
