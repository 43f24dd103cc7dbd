/// The step of variable elimination that costs time: the minimum over a variable of a sum of tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace taso {

/// Tables that are added up over a common index space: the axes of the result, and the variable that is minimised over
/// as the last axis.
struct SumOfTables {
  std::span<const std::uint32_t> sizes;   ///< Of the axes, the variable's last.
  std::span<const double* const> tables;  ///< Entries at index zero.
  std::span<const std::size_t> strides;   ///< Per table, per axis: how far on its entry is; 0: the axis is not its own.
  [[nodiscard]] std::size_t rank() const { return sizes.size() - 1; }  ///< Of the result.
};

/// Writes result[i...] = min over v of tables[0][i..., v] + tables[1][i..., v] + ..., the last axis of the result
/// fastest. Sums are added in the order of the tables, from zero, whatever way is taken: vectors along the result's
/// last axis where that pays, and several threads (`parallel`), each with entries of its own. So the result is always
/// the same, to the last bit.
void minimum_of_sum(const SumOfTables& sum, std::span<double> result, bool parallel);

}  // namespace taso
