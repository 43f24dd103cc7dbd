/// The partition of least cost, by variable elimination (elimination/elimination.h): PaSE's FindBestStrategy, with
/// other orders beside its own, without configurations that cannot be part of a best strategy, and with a bound and a
/// gap where tables would be too large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "elimination/order.h"
#include "partition/partition_problem.h"

namespace taso {

struct ExactOptions {
  OrderRule order = OrderRule::min_degree;
  /// From so many combinations on, over all decisions (EliminationOrder::combinations), and where a table would be too
  /// large, ways that are never better than another are dropped first (elimination/dominance.h): below, to find them
  /// takes longer than what they would cost. 0: always.
  double dominance_from = 1e10;
  /// Most entries (eight bytes each) of a table and, roughly, of all together; where they would be more, the solution
  /// may not be optimal, and its gap is known.
  std::size_t maximum_table = std::size_t{1} << 24;
  std::size_t maximum_entries = std::size_t{1} << 27;
  /// Choices that are known: where tables are too large, each is improved, too, and the best of all is the solution.
  /// All decisions but some with many neighbours are improved at once, then each by itself.
  std::vector<std::vector<std::uint32_t>> known = {};
  bool parallel = true;  ///< Several threads; the solution is the same.
};

struct PartitionSolution {
  std::vector<std::uint32_t> choice;  ///< A way per decision.
  double cost = 0;                    ///< Its cost; EliminationProblem::forbidden_cost if it is not allowed.
  double lower_bound = 0;             ///< No choice costs less. Up to rounding equal to `cost` if exact.
  bool exact = true;       ///< `choice` is optimal: no table was too large, or it costs as much as the bound.
  EliminationOrder order;  ///< Over all ways: M and K^(M+1) of PaSE.
  std::size_t ways = 0, kept_ways = 0;  ///< Of all decisions, all, and those left by dominance.
  std::size_t largest_table = 0;        ///< Entries of the largest table that was made.
  /// How much dearer the choice may be than the best one, as a share of its cost.
  [[nodiscard]] double gap() const { return exact || cost <= 0 ? 0 : (cost - lower_bound) / cost; }
};

/// Solves; never fails. Where tables were too large, the choice is improved as known ones are.
[[nodiscard]] PartitionSolution solve_exact(const PartitionProblem& problem, const ExactOptions& options = {});

}  // namespace taso
