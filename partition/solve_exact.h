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
  /// Drops ways that are never better than another before tables are made (elimination/dominance.h).
  bool dominance = true;
  /// Most entries of a table; where one would be larger, the solution may not be optimal, and its gap is known.
  std::size_t maximum_table = std::size_t{1} << 26;
  bool parallel = true;  ///< Several threads; the solution is the same.
};

struct PartitionSolution {
  std::vector<std::uint32_t> choice;    ///< A way per decision.
  double cost = 0;                      ///< Its cost; EliminationProblem::forbidden_cost if it is not allowed.
  double lower_bound = 0;               ///< No choice costs less. Up to rounding equal to `cost` if exact.
  bool exact = true;                    ///< `choice` is optimal.
  EliminationOrder order;               ///< Over all ways: M and K^(M+1) of PaSE.
  std::size_t ways = 0, kept_ways = 0;  ///< Of all decisions, before and after dominance.
  std::size_t largest_table = 0;        ///< Entries of the largest table that was made.
  /// How much dearer the choice may be than the best one, as a share of its cost.
  [[nodiscard]] double gap() const { return exact || cost <= 0 ? 0 : (cost - lower_bound) / cost; }
};

/// Solves; never fails. Where tables were too large, decisions are then improved one by one until none gets better.
[[nodiscard]] PartitionSolution solve_exact(const PartitionProblem& problem, const ExactOptions& options = {});

}  // namespace taso
