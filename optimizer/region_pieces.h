/// The regions of a result as graphs of their own: what the original computes there, and what the result does.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "optimizer/changed_regions.h"

namespace taso {

/// A part of a graph as a graph of its own.
struct GraphPiece {
  Graph graph;
  std::vector<Value> leaves;                  ///< Per input of `graph`: the value of the whole graph.
  std::unordered_map<NodeId, NodeId> copies;  ///< Of nodes of the whole graph.
};

/// Makes pieces of one graph, which it refers to.
class GraphCutter {
 public:
  explicit GraphCutter(const Graph& graph);
  /// Of a node in the graph's topological order.
  [[nodiscard]] std::size_t place(NodeId id) const { return places_[id]; }
  /// What computes `outputs` from the values that operators for which `inside` does not hold make; weights are
  /// computed.
  [[nodiscard]] GraphPiece cut(const std::function<bool(NodeId)>& inside, const std::vector<Value>& outputs) const;

 private:
  [[nodiscard]] GraphPiece copy(const std::vector<NodeId>& nodes, const std::set<Value>& leaves,
                                const std::vector<Value>& outputs) const;
  const Graph& graph_;
  std::vector<std::size_t> places_;
};

/// A region, ready to be computed on both sides. Outputs of the pieces correspond.
struct PreparedRegion {
  std::size_t number = 0;     ///< Of the region.
  std::size_t place = 0;      ///< Of its first output, in the original's order.
  std::vector<Value> values;  ///< Per output: of the original.
  GraphPiece before, after;
  std::vector<Value> after_leaves;  ///< Of `after`, as values of the original.
  bool reads_rounded = false;       ///< `after` reads what `before` computes.
};

/// Makes pieces of both graphs for regions.
class RegionPreparation {
 public:
  /// The graphs are referred to.
  RegionPreparation(const Graph& original, const Graph& result, std::span<const ChangedRegion> regions);
  /// Nothing if the region cannot be computed by itself: types are not known, numbers are not real, or it reads what is
  /// no value of the original.
  [[nodiscard]] std::optional<PreparedRegion> prepare(const ChangedRegion& region, std::size_t number) const;

 private:
  /// Whether no output of a node of the result is known to be a value of the original.
  [[nodiscard]] bool is_new(NodeId id) const;
  /// The value of the original that one of the result stands for: one that the original's side reads, if there is any.
  /// What stands for several is, in the original, each with another rounding.
  [[nodiscard]] std::optional<Value> original_of(Value value, const std::set<Value>& wanted) const;

  const Graph& original_;
  GraphCutter before_, after_;
  std::map<Value, std::vector<Value>> originals_;  ///< Of values of the result, what they stand for.
};

}  // namespace taso
