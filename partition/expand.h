/// A plan written out: one graph in which every device computes its pieces, and moves stand as operators.
///
/// Every operator of the plan becomes one application per device, of its piece of the whole. What a piece reads is
/// sliced from what devices have, joined by concatenation where several devices have parts of it, and where results are
/// partial combined element by element by the reducer, in the order of devices. A value that is kept in a placement of
/// its own is brought there once. Weights and inputs of the graph are sliced where they are read. An operator that the
/// plan does not understand stands once, on the first device, and reads and makes everything. Outputs are put together
/// on the first device. Tofu (Wang et al. 2019, section 6) writes partitioned graphs in the same way.
///
/// The device is part of a node's identity (Node::device), so that equal pieces on different devices stay apart.
#pragma once

#include "graph/graph.h"
#include "partition/operator_piece.h"
#include "partition/planner.h"
#include "support/status.h"

namespace taso {

/// The graph of a plan, with the inputs and the types of outputs of the graph that the plan is of. Fails where the plan
/// is not one of this graph: a piece cannot be made, or nobody has what a piece reads.
[[nodiscard]] Expected<Graph> expand(const Graph& graph, const PartitionPlan& plan, StrategyTable& strategies);

}  // namespace taso
