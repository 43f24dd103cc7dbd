/// A plan from its file: the uses of the mesh that the file states, and what follows from them by proved strategies.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "partition/operator_piece.h"
#include "partition/plan_document.h"
#include "partition/planner.h"
#include "support/status.h"

namespace taso {

/// The plan that a document states of a graph: as the planner gives it (PartitionPlan), with all figures counted anew
/// (partition/plan_recount.h); only times of kernels (PlanCost::time), the bound, and how good the plan is are those of
/// the document. `graph` is read from the model's file at the document's sizes, in normal form (graph/rewrite.h);
/// `node_names` are those of the file's nodes, by Node::origin. The table gives the strategies that are proved.
///
/// Errors of code not_proved, with the line and the place in the file, what it states and what would be right: other
/// operators than those of the graph; uses that do not follow from proved strategies; cut points that do not follow
/// from the uses; a value that is kept where it cannot be, or for which the file says nothing; what is read and nobody
/// has. Stated figures are not looked at (partition/plan_check.h).
[[nodiscard]] Expected<PartitionPlan> restore_plan(const PlanDocument& document, const Graph& graph,
                                                   const std::vector<std::string>& node_names,
                                                   StrategyTable& strategies);

}  // namespace taso
