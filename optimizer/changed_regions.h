/// Where an optimization has changed a graph, and what became of each place.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/pattern.h"
#include "optimizer/trace.h"
#include "support/status.h"

namespace taso {

/// A place that rules have changed: what applications that build upon each other took away and put there.
struct ChangedRegion {
  std::vector<NodeId> before;             ///< Nodes that only the original has; ascending.
  std::vector<NodeId> after;              ///< Nodes that only the result has; ascending.
  std::vector<NodeId> around;             ///< Nodes of both that were matched, or read something else now; ascending.
  std::vector<std::size_t> applications;  ///< By their numbers; ascending.
  /// Values of the original, and the values of the result that stand for them: what the region gives to the rest of the
  /// graph. Ascending.
  std::vector<std::pair<Value, Value>> outputs = {};
};

/// The regions of a result, by their first applications. Two applications belong to one region if a node that one of
/// them has made or removed was made by the other; weights, which many places share, do not count. Repeats the
/// applications, which begin at `original`, in normal form; an error of code internal if they do not lead to `result`,
/// with equal ids. `rules` has the rules that were applied.
[[nodiscard]] Expected<std::vector<ChangedRegion>> changed_regions(const Graph& original, const Graph& result,
                                                                   const std::vector<Substitution>& rules,
                                                                   const std::vector<RuleApplication>& applications,
                                                                   const OperatorCatalog& catalog);

}  // namespace taso
