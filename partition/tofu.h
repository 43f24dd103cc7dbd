/// Tofu's search (Wang, Huang, Li 2019, section 5): partitions of a graph in its space and at its cost
/// (partition/tofu_problem.h), decided step by step, and for comparison all steps at once.
#pragma once

#include <cstddef>
#include <vector>

#include "partition/solve_exact.h"
#include "partition/tofu_problem.h"

namespace taso {

struct TofuOptions {
  /// Tensors may also be kept whole along a step, as SoyBean's r. Tofu cuts every tensor in every step.
  bool replicate = false;
  ExactOptions solver;
};

struct TofuPlan {
  TofuDecisions decisions;    ///< Per class of the coarsening.
  double bytes = 0;           ///< Received by all devices together.
  std::vector<double> steps;  ///< Tofu's delta of each step: how many more bytes than without it. Of the recursion.
  double lower_bound = 0;     ///< No partition of the space costs less; 0 where that is not known.
  bool exact = false;         ///< No partition of the space costs less.
  bool complete = true;       ///< All configurations of operators were looked at.
  std::size_t decided = 0;    ///< Classes of tensors and operators.
  std::size_t ways = 0;       ///< Of all decisions, all steps together.
  EliminationOrder order;     ///< Of the last step.
  std::vector<std::uint32_t> choice;  ///< As TofuProblem numbers decisions and ways.
};

/// Each step decided with those before it fixed; the steps as recursion_steps gives them, or others.
[[nodiscard]] TofuPlan tofu_recursive(const Graph& graph, const TofuCoarsening& coarsening, const TilingSteps& steps,
                                      StrategyTable& strategies, const TofuOptions& options = {});

/// All steps decided together. Where tables would be too large, the best that was found and a bound; `known` (of
/// tofu_recursive, with the same options) is improved, too.
[[nodiscard]] TofuPlan tofu_exact(const Graph& graph, const TofuCoarsening& coarsening, const TilingSteps& steps,
                                  StrategyTable& strategies, const TofuOptions& options = {},
                                  const TofuDecisions& known = {});

}  // namespace taso
