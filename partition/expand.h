/// A plan written out: one graph in which every device computes its pieces, and moves stand as operators.
///
/// Every operator of the plan becomes one application per device, of its piece of the whole. Between placements values
/// go by the schedule that the plan's costs are of (partition/transfer_schedule.h): summands are combined element by
/// element, stage by stage, what is received is joined by concatenation. A value that is kept in a placement of its own
/// is brought there once. Weights and inputs of the graph are sliced where they are read. An operator that the plan
/// does not understand stands once, on the first device. Outputs are put together on the first device. Tofu (Wang et
/// al. 2019, section 6) writes partitioned graphs in the same way.
///
/// The device is part of a node's identity (Node::device), so that equal pieces on different devices stay apart. What
/// every device has from the start, weights, inputs and slices of weights, is on none (-1), and reads only what is on
/// none. Every edge from one device to another ends in a slice, of the whole if need be: a message.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "graph/graph.h"
#include "partition/operator_piece.h"
#include "partition/planner.h"
#include "partition/transfer_collectives.h"
#include "support/status.h"

namespace taso {

/// What moves of a value from one placement to another.
struct ExpandedTransfer {
  enum class Purpose : std::uint8_t {
    keep,    ///< From where it is made to where it is kept.
    read,    ///< From there to where `reader` needs it.
    output,  ///< To the first device, to be an output of the graph.
    share,   ///< A scalar that an operator on the first device makes, to all others.
  };
  Value value;  ///< Of the graph that the plan is of.
  Purpose purpose = Purpose::keep;
  std::optional<NodeId> reader;  ///< Of purpose read.
  std::int64_t bytes = 0;        ///< Received, by all devices together.
};

struct Expansion {
  /// With the inputs and the types of outputs of the graph that the plan is of. Nodes are numbered in an order in which
  /// they can run. Those that no output needs are there, too (Graph::topological_order passes them by), since the plan
  /// has devices compute and send them.
  Graph graph;
  /// First those of PartitionPlan::transfers, in their order; then what else moves, of the purposes output and share.
  std::vector<ExpandedTransfer> transfers;
  /// The nodes that are messages: slices on another device than what they read, and the transfer that each belongs to.
  /// The elements of those of a transfer are its bytes. Transfers share no messages.
  std::map<NodeId, std::uint32_t> moves;
};

/// A plan of a graph, written out. Fails where the plan is not one of this graph: a piece cannot be made, or what moves
/// is not what the plan says.
[[nodiscard]] Expected<Expansion> expand(const Graph& graph, const PartitionPlan& plan, StrategyTable& strategies);

/// What moves of a value, and the collectives that move it.
struct CollectiveMove {
  ExpandedTransfer transfer;  ///< With the bytes that the plan states, or that an output takes to the first device.
  CollectiveTransfer by;
  std::int64_t bytes = 0;  ///< Received, by all devices together, where everybody sends directly to everybody.
};

/// A plan written out for programs that all run the same collectives (partition/collective_graph.h).
struct CollectiveExpansion {
  /// As Expansion::graph, but no device reads from another one, and outputs are on every device: those of the first one
  /// come first, then those of the next one.
  Graph graph;
  /// First those of PartitionPlan::transfers, in their order; then those of outputs.
  std::vector<CollectiveMove> moves;
  std::vector<std::size_t> move_of;  ///< Of each collective, by its number, the place in `moves`.
};

/// The same with collectives in place of messages. Fails (bad_input) on operators that are not understood, too, since
/// these stand on the first device alone, and where a collective's result is of use to some of its group only.
[[nodiscard]] Expected<CollectiveExpansion> expand_with_collectives(const Graph& graph, const PartitionPlan& plan,
                                                                    StrategyTable& strategies,
                                                                    const CollectiveVocabulary& vocabulary);

/// The same as a graph for one device: without slices that take all, and without what no output needs.
[[nodiscard]] Graph on_one_device(const Expansion& expansion);

}  // namespace taso
