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
/// was computed from them: of nodes of the file that read them (ReadNode). That the model exists at a size is a fact,
/// too: what is added or concatenated there has equal extents.
///
/// Free extents. Where integers of the file follow from an extent of which nothing is known (a table is cut by a length
/// that it may not have), its values at the samples would say that it is a formula that holds at these only. The model
/// is read again then, with that extent as a symbol of its own (ImportOptions::free_extents), which has other values at
/// the samples than the formula. What is read is the model with the tensor as one more input: a model that exists
/// wherever the user's does, as the tensor may be what it is there. So all that holds for it at all sizes holds for the
/// user's, and no formula for the extent is needed.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "onnx_io/model.h"
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

/// What is not known at all sizes, but would not be in the way if the model were read in another way.
struct NotKnown {
  /// First outputs of nodes that compute integers, and what is not known of these (ImportOptions::unfolded).
  std::map<std::string, std::string> integers;
  /// Extents from which such integers follow (ImportOptions::free_extents),
  FreeExtents extents;
  /// and all of which no formula is known.
  FreeExtents all_extents;
};

/// The graph, node by node, that is each of `samples` at the samples of `sizes`; these have the same nodes up to
/// numbers, none of which reads a later one. Constants that differ are stand-ins from `constants`. Nodes that no step
/// may touch are named in `untouched`, with the reason. Where it fails only because nodes of the file compute integers
/// that are not known at all sizes, `not_known` says which. The last of the symbols given to `sizes` are the free
/// extents.
[[nodiscard]] Expected<Graph> graph_for_all_sizes(std::span<const SampledGraph> samples, SymbolicSizes& sizes,
                                                  const SymbolicCatalog& catalog,
                                                  std::shared_ptr<SymbolicConstants>& constants,
                                                  std::vector<std::string>& untouched, NotKnown& not_known);

}  // namespace taso
