/// The second step of an optimization: searching for graphs that are better than the baseline, at all sizes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "optimizer/optimize.h"
#include "optimizer/planned_graph.h"
#include "optimizer/prepare.h"
#include "optimizer/search.h"
#include "support/status.h"

namespace taso {

/// What was found.
struct Findings {
  /// Cheaper than the baseline, cheapest first; then the one of fewest launches, and cheaper ones that lack a rule of
  /// the cheapest.
  std::vector<Competitor> graphs;
  SearchResult search;  ///< Statistics; its graphs are moved out.
};

/// What a search for the fewest launches has found from a graph. Costs do not matter to it: it is the same after they
/// were corrected.
struct FewestLaunches {
  Graph start;
  Candidate best;
  double start_launches = 0;
};

/// Searches as the strategy says, again as long as steps of what was found are newly refused at some size, and, where
/// graphs are timed whole, for the fewest launches and without some of the rules. After an interrupt: what was found
/// until then. `fewest` is used, and made, if that search comes to an end.
[[nodiscard]] Expected<Findings> find_contenders(const Prepared& prepared, const GraphPlanner& planner,
                                                 const OptimizeOptions& options, std::optional<FewestLaunches>& fewest,
                                                 std::vector<std::string>& notes);

/// Whether the contenders are timed whole: not if their costs, which have no time in them, decide.
[[nodiscard]] bool times_graphs(const GraphPlanner& planner, const OptimizeOptions& options);

}  // namespace taso
