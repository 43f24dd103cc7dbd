/// What a plan's file states of a plan.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "partition/placement.h"
#include "partition/plan_document.h"
#include "partition/planner.h"

namespace taso {

/// What moves for one operator.
struct MovedForNode {
  Transfer in;   ///< To what it reads.
  Transfer out;  ///< From where it makes its results to where they are kept.
};
/// In the order of the plan's nodes.
[[nodiscard]] std::vector<MovedForNode> moved_by_node(const PartitionPlan& plan);

/// The sums of a plan.
[[nodiscard]] StatedSums stated_sums(const PartitionPlan& plan);

/// Fills a document with all that is known of a plan of `graph`: sums and bounds, nodes, what is kept where, transfers.
/// `node_names` are those of the model's file, by Node::origin; `cuts` the cut points of the plan's nodes, in their
/// order (cut_points). A plan without state (PlannerOptions::state), of which files do not speak (TASO_CHECK).
void state_plan(const Graph& graph, const std::vector<std::string>& node_names, const PartitionPlan& plan,
                const std::vector<std::vector<CutPoints>>& cuts, PlanDocument& document);

}  // namespace taso
