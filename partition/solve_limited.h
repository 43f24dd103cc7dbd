/// The partition of least cost that keeps to a limit of memory.
///
/// What a choice takes must not exceed the limit at any place (while any operator runs). At each place it is at least a
/// sum of tables over the decisions of the problem, so that with a price per unit at some places the problem stays one
/// for variable elimination: a Lagrangian relaxation, whose value less price times limit is a lower bound (Geoffrion
/// 1974; Fisher 1981). The price at one place that gives the best bound lies where the lower envelope of the lines
/// "cost
/// + price * amount" of all choices turns; it is found by secants between a choice that takes too much and one that
/// does not (Handler and Zang 1980, for one constraint). Places are treated one after the other, as found choices
/// exceed the limit there.
///
/// The gap that is left is closed by branch and bound where that takes little (LimitedOptions::work): a node of the
/// tree is a restriction of the decisions, its bound the relaxation at the prices that were found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "partition/partition_problem.h"
#include "partition/solve_exact.h"
#include "support/stop_signal.h"

namespace taso {

/// A limit and what choices take.
struct ResourceLimit {
  using Choice = std::vector<std::uint32_t>;
  struct Use {
    double amount = 0;
    std::size_t place = 0;
  };
  double most = 0;
  std::function<Use(const Choice&)> used;  ///< At the place where the choice takes most.
  /// Tables whose sum is never more than what a choice takes at a place.
  std::function<std::vector<PartitionProblem::Cost>(std::size_t place)> at_least;
};

struct LimitedOptions {
  ExactOptions exact;
  std::size_t secants = 24;  ///< Most solutions at one place,
  std::size_t places = 4;    ///< and most places.
  /// Branch and bound looks at as many restrictions as take so many combinations (EliminationOrder::combinations).
  double work = 3e8;
  std::size_t most_nodes = 20'000;  ///< And at no more than so many.
  StopSignal stop;                  ///< Once raised, what is found is the result.
};

struct LimitedSolution {
  /// The cheapest choice that was found to keep to the limit, its bound and whether it is optimal among those that do.
  PartitionSolution solution;
  bool found = false;  ///< Else `solution` is that without a limit.
  /// Where nothing was found: how much any choice takes at some place; more than the limit if none can keep to it.
  double needs_at_least = 0;
  bool stopped = false;                                ///< By LimitedOptions::stop.
  std::vector<std::pair<std::size_t, double>> prices;  ///< Of places: cost per unit.
};

/// Solves; never fails. Deterministic unless stopped.
[[nodiscard]] LimitedSolution solve_limited(const PartitionProblem& problem, const ResourceLimit& limit,
                                            const LimitedOptions& options = {});

}  // namespace taso
