/// Values that a problem can do without: another value of the same variable is never worse.
#pragma once

#include <cstdint>
#include <vector>

#include "elimination/elimination.h"

namespace taso {

/// A problem with fewer values.
struct ReducedProblem {
  EliminationProblem problem;
  /// Per variable, ascending: the values of the given problem that remain. Value i of `problem` is kept[variable][i].
  std::vector<std::vector<std::uint32_t>> kept;

  /// An assignment of the reduced problem as one of the given.
  [[nodiscard]] std::vector<std::uint32_t> expand(const std::vector<std::uint32_t>& assignment) const;
};

/// Drops every value that another value of its variable dominates: one whose costs are in every factor, for every
/// combination of values of the other variables that remain, at most as large (the first of equal ones stays). Sums of
/// costs are monotone, rounding included, so the least total cost stays the same to the last bit. Variables are looked
/// at one after the other until nothing changes. (Goldstein's criterion for the sum of all factors drops more, but
/// needs a margin for rounding.)
[[nodiscard]] ReducedProblem without_dominated_values(const EliminationProblem& problem);

}  // namespace taso
