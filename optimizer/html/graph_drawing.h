/// Where the nodes of a graph are drawn.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/graph.h"

namespace taso {

/// A graph as boxes in layers, producers above consumers, and lines. Inputs, operators and opaque nodes are drawn; what
/// is computed from weights alone is not. Lengths are in the units of the drawing, which are pixels at scale 1.
struct GraphDrawing {
  static constexpr int box_width = 148, box_height = 38, layer_height = 66;

  /// A node.
  struct Box {
    NodeId node = 0;
    std::size_t layer = 0;
    int left = 0;                    ///< From 0.
    std::vector<std::size_t> reads;  ///< The boxes of what it reads, ascending, without repetition.
    /// Where its line to readers more than one layer below crosses the layers below its own, one after the other; all
    /// such readers share it. Empty: there is none, or it is drawn straight.
    std::vector<int> lane;
  };
  std::vector<Box> boxes;  ///< From top to bottom, then from left to right.
  int width = 0;
  std::size_t layers = 0;
};

/// Draws a graph: layers by the longest way from an input, nodes then moved down towards their readers where that makes
/// lines shorter; the order within layers by the mean place of neighbours, in sweeps of which the one with the fewest
/// crossings is kept (Sugiyama, Tagawa, Toda 1981); horizontal places by least squares. Deterministic.
[[nodiscard]] GraphDrawing draw_graph(const Graph& graph);

}  // namespace taso
