/// Large graphs in parts: cut where few tensors cross, and put together again.
///
/// A part is a contiguous range of a topological order, so whatever replaces it inside, the whole stays acyclic: all
/// that a part reads is made before it, all that reads it stands behind it. As a graph of its own, what it reads are
/// inputs and what is read of it are outputs; the weights that it uses come with it.
///
/// A step found in a part is taken over into the whole by names, not by ids: in normal form equal nodes are one node,
/// so a node is told by its label and by what it reads.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "graph/rewrite.h"
#include "optimizer/trace.h"
#include "support/hash.h"

namespace taso {

/// A piece of a graph as a graph.
struct GraphPart {
  Graph graph;                ///< Ids ascend in topological order, without gaps, until it is rewritten.
  std::vector<Value> inputs;  ///< What its inputs are in the whole, in order; no two are equal.
  /// Parts with equal signatures are equal node for node, with equal ids, but for the contents of their weights.
  Hash128 signature;
};

/// Number of nodes that compute something at run time.
[[nodiscard]] std::size_t working_nodes(const Graph& graph);

/// Divides the nodes that are not weight-only (inputs left out) into ranges of a topological order, of about `size`
/// nodes each (half as many to half as many again, chosen such that the fewest bytes cross); the first range has about
/// half of that if `shifted`, so that the cuts of the two ways fall far from each other. `size` is at least 2.
[[nodiscard]] std::vector<std::vector<NodeId>> cut_into_ranges(const Graph& graph, std::size_t size, bool shifted);

/// The nodes of one range; those that the graph does not have any more are left out.
[[nodiscard]] GraphPart extract_part(const Graph& graph, std::span<const NodeId> range);

/// Which nodes of a graph are those of a part.
class PartPlace {
 public:
  /// Empty if `whole` does not have all nodes of `part` (a part's graph, rewritten or not, over the inputs `inputs`).
  /// Both in normal form.
  [[nodiscard]] static std::optional<PartPlace> find(const Graph& part, const std::vector<Value>& inputs,
                                                     const Graph& whole, const OperatorCatalog& catalog);
  /// A match in the part as one in the whole.
  [[nodiscard]] Match translate(const Match& match) const;

 private:
  [[nodiscard]] Value translate(Value value) const;
  std::vector<Value> places_;  ///< Per id of the part: its port 0 in the whole.
};

/// A whole in which steps of a part were done.
struct PartReplay {
  Graph graph;
  std::vector<RuleApplication> applications;  ///< In the whole; costs are left at 0.
  bool complete = true;                       ///< False: a step does not apply there; those before it were done.
};

/// Does `steps`, which were found on part.graph, in the whole. `writable`, `applicable`: see optimizer/trace.h.
[[nodiscard]] PartReplay replay_in_whole(const Graph& whole, const GraphPart& part,
                                         std::span<const RuleApplication> steps, const RuleIndex& rules,
                                         const RewriteFilter& writable, const MatchFilter& applicable = {});

}  // namespace taso
