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

/// Drops every value that another value of its variable dominates (Goldstein 1994, "dead-end elimination"): exchanging
/// the one for the other changes no factor, at whatever remaining values of its other variables, by more than amounts
/// whose sum is at most zero. Of values with the same costs everywhere the first stays. Variables are looked at one
/// after the other, again where a neighbour has lost values, until nothing changes.
///
/// An optimal assignment remains. Because sums are rounded, an exchange must gain more than 2^-40 of the largest cost
/// involved, or else be no worse in every single factor: that rounding cannot change.
[[nodiscard]] ReducedProblem without_dominated_values(const EliminationProblem& problem);

}  // namespace taso
