/// The graph for all sizes of symbolic extents, from graphs at samples of them.
///
/// Polynomials of attributes. The model is imported at sample sizes, and an attribute that differs is the polynomial of
/// low degree, in the symbols and in what its node reads, that it is at all samples: they determine it, with three to
/// spare. The importer makes no other numbers from extents than sums and products (onnx_io/symbol_flow.h refuses
/// minima, quotients and comparisons; what handlers compute are extents, products of extents, and differences), so that
/// two that agree at random sizes are equal but for a negligible chance. The samples follow from the file's hash, and
/// not from anyone who writes a certificate. Samples may have something in common that other sizes do not have (even
/// heights, where the model exists at no others): where two sizes that are not equal agree at all of them, neither is
/// taken.
///
/// Integers that the file computes from extents are known exactly (SymbolicInteger in onnx_io/size_decisions.h), and
/// must be what their values at the samples tell: attributes are made of them.
///
/// What the importer decides by sizes (onnx_io/size_decisions.h) must be decided alike at all sizes. Extents of carried
/// nodes follow from those of their inputs by a rule, or nothing is known of them; then nothing is concluded of what
/// may have been computed from them. That the model exists at a size is a fact, too: what is added or concatenated
/// there has equal extents.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "onnx_io/size_decisions.h"
#include "onnx_io/symbolic_constants.h"
#include "support/status.h"
#include "verifier/symbolic_sizes.h"

namespace taso {

/// Why two graphs are not the same nodes up to extents; empty if they are.
[[nodiscard]] std::string structural_difference(const Graph& a, const Graph& b);

/// A graph at a sample, and what its import decided by sizes (null: nothing).
struct SampledGraph {
  const Graph* graph = nullptr;
  const SizeDecisions* decisions = nullptr;
};

/// The graph, node by node, that is each of `samples` at the samples of `sizes`; these have the same nodes up to
/// numbers, none of which reads a later one. Constants that differ are stand-ins from `constants`. Nodes that no step
/// may touch are named in `untouched`, with the reason. Where it fails only because nodes of the file compute integers
/// that are not known at all sizes, `inexact` gets the first outputs of these, and what is not known
/// (ImportOptions::unfolded).
[[nodiscard]] Expected<Graph> graph_for_all_sizes(std::span<const SampledGraph> samples, SymbolicSizes& sizes,
                                                  const SymbolicCatalog& catalog,
                                                  std::shared_ptr<SymbolicConstants>& constants,
                                                  std::vector<std::string>& untouched,
                                                  std::map<std::string, std::string>& inexact);

}  // namespace taso
