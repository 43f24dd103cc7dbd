/// What a plan moves, costs and stores, counted anew from what its operators read and make and where values are kept:
/// by the definitions of partition/planner.h and partition/plan_memory.h, and nothing of the planner, so that figures
/// which the planner states can be checked.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "partition/planner.h"
#include "support/status.h"

namespace taso {

/// The values that a plan keeps in a placement of their own, which is a decision: those of known types that operators
/// of the plan make and that several operands read, or that are outputs of the graph. In the order in which they are
/// made.
[[nodiscard]] std::vector<Value> kept_values(const Graph& graph);

/// Of a plan whose nodes have their configurations and what computing costs, in the order of planned_nodes, with a
/// placement in `kept` for each of kept_values: the transfers, memory, weights, and all sums. `plan.mesh` is that of
/// in_unit(). not_proved where an operator reads what nobody has.
[[nodiscard]] Status recount(const Graph& graph, PartitionPlan& plan);

}  // namespace taso
