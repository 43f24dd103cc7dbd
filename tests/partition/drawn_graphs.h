/// Random graphs for tests of plans, over all operators that have strategies.
///
/// Graph number n has an application of operator number n (modulo how many have strategies), among others before and
/// behind it, so that as many graphs as there are operators apply each of them. Extents are drawn from a few per graph,
/// mostly such that no mesh divides them, sometimes fewer than devices, and rarely 1 or 0; operands, attributes (pads,
/// strides, dilations, axes, groups by shapes), weights, values that several read and outputs are drawn as
/// tests/optimizer/random_graph.h says. The same for the same number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "operators/evaluate.h"
#include "operators/ring.h"

namespace taso::test {

/// How many graphs tests draw: fewer where sanitizers make all slow.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::uint64_t drawn_graphs = 24;
#else
inline constexpr std::uint64_t drawn_graphs = 200;
#endif

struct DrawnGraph {
  Graph graph;
  std::vector<RingTensor<double>> inputs;  ///< At which all values are finite; in the order of Graph::inputs.
  std::string op;                          ///< The operator of which draw_graph gave it an application.
};

/// The shipped operators that have inputs and strategies.
[[nodiscard]] const std::vector<std::string>& cut_operators();

[[nodiscard]] DrawnGraph draw_graph(std::uint64_t number);

/// A graph of eight operators at most, of all, with extents of at least 1; the same for the same seed.
[[nodiscard]] DrawnGraph draw_small_graph(std::uint64_t seed);

/// Random elements of a ring for the inputs of a drawn graph; integers stay as they are.
[[nodiscard]] std::vector<RingTensor<Mod61>> random_elements(const DrawnGraph& drawn, const FieldRing& ring,
                                                             std::uint64_t seed);

}  // namespace taso::test
