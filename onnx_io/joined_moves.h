/// Operators that only move elements and follow each other, written as one. Internal to onnx_io: includes protobuf.
///
/// To the search they cost nothing, or what they cost; in a file each is a node that a runtime takes a look at.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "onnx_io/document.h"

namespace taso {

/// Nodes of a graph that need not be written.
struct JoinedMoves {
  std::vector<NodeId> joined;   ///< Producers first. What reads them reads what they read, and does both.
  std::vector<NodeId> nothing;  ///< Readers of these that move nothing then.
};

/// The reshapes, transposes and slices of a graph all of whose readers are one more node of their kind, which can do
/// both. Slices are joined where on every axis one of the two takes all; a transpose that only moves axes of extent 1
/// is a reshape, too. What stands in a document as part of another operator is left alone.
[[nodiscard]] JoinedMoves moves_to_join(const Document& document, const Graph& graph);

/// The graph without these, as far as they can be done without: it may be one at other sizes.
[[nodiscard]] Graph with_joined_moves(const Graph& graph, const JoinedMoves& moves);

}  // namespace taso
