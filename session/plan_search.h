/// The search of substitutions and plans for several devices together.
///
/// What is cheapest on one device need not be cut best: a product of merged weights whose columns are split afterwards
/// has no cut that fits the parts, and a product with its bias cannot be cut along what it sums up. So graphs are
/// searched by what their best plans cost. The search starts from the graphs that competed for one device, and applies
/// rules, those that merge and fuse and those that take apart, at all places that look alike at once: what pays in one
/// block of a network pays in the others. Each graph has a first price, its plan on a mesh of one axis (PlanPrices::
/// coarse), by which the search goes best first; those that are best by it are priced on the mesh itself.
///
/// The first start, which is the result for one device, always has an exact price, and only what is cheaper takes its
/// place. The outcome depends on inputs and options alone, unless a stop signal ends the search.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/rewrite.h"
#include "optimizer/optimize.h"
#include "optimizer/trace.h"
#include "support/status.h"
#include "support/stop_signal.h"

namespace taso {

/// What plans of graphs cost. An error of code not_proved or cost_missing: this graph has no price.
struct PlanPrices {
  std::function<Expected<double>(const Graph&)> coarse;
  std::function<Expected<double>(const Graph&)> exact;
};

struct PlanSearchOptions {
  double alpha = 1.02;             ///< Graphs costlier than this times the best are not rewritten further. At least 1.
  std::size_t most_graphs = 240;   ///< Coarse prices at most.
  std::size_t most_nodes = 40000;  ///< Nodes of graphs with a coarse price, together, at most.
  std::size_t finalists = 8;       ///< Exact prices besides that of the first start.
  StopSignal stop;                 ///< Once raised, what was found is the result.
  RewriteFilter writable;          ///< As in OptimizeOptions.
  MatchFilter applicable;
  std::function<OptimizeOptions::AtAllSizes(const std::vector<RuleApplication>&)> at_all_sizes;
};

struct PlanSearchResult {
  struct Priced {
    ReachedGraph reached;
    double cost = 0;  ///< Exact.
  };
  std::size_t graphs = 0;                ///< So many had a coarse price.
  double first_cost = 0, best_cost = 0;  ///< Exact, of the first start and of the best graph.
  std::optional<ReachedGraph> better;    ///< The best graph; nothing: no graph is better than the first start.
  std::vector<Priced> priced;            ///< All graphs with an exact price, the cheapest first.
  bool stopped = false;
};

/// Searches from `starts`, of which there is at least one (TASO_CHECK). Fails with what the exact price of the first
/// start fails with, unless another graph has one; and with errors of prices that are not about one graph.
[[nodiscard]] Expected<PlanSearchResult> search_plans(const std::vector<ReachedGraph>& starts, const RuleIndex& rules,
                                                      const PlanPrices& prices, const PlanSearchOptions& options);

}  // namespace taso
