/// One file for all sizes of a model's symbolic extents. Internal to onnx_io: includes protobuf.
///
/// The graph for all sizes is exported like any other (onnx_io/export.h); its integers are names of sizes
/// (graph/size_arithmetic.h), and so are those of the lists that new nodes read. In the file, such a list is what the
/// node that reads it can find by itself:
///
///   Reshape  0 where the input has the same extents at the same axes, or -1 for one extent (both would be wrong
///            where the copied extent is 0)
///   Expand   1 where the input has the extent already
///   Slice    the largest integer for an end that is the end of the axis
///
/// Any other list is computed when the model runs, by a few nodes, if its entries are sums of products of extents of
/// graph inputs; so are constants that repeat one element (ConstantOfShape) or count up (Range), if their extents are.
///
/// As a second check the same graph is exported at several sizes: what is written there must be what is written for
/// all sizes, with the numbers of that size.
#pragma once

#include <span>

#include "onnx_io/export.h"
#include "onnx_io/symbolic_constants.h"

namespace taso {

/// A graph at a sample of the sizes.
struct SizedExport {
  const ImportedModel* imported = nullptr;
  const Graph* graph = nullptr;
  std::size_t sample = 0;
};

/// A graph for all sizes.
struct SymbolicExport {
  const ImportedModel* imported = nullptr;  ///< The model, its constants stand-ins.
  const Graph* graph = nullptr;
  SymbolicIntegers integers;
};

/// The model for all sizes: `samples[0]` with `graph`, which is the graph of each at its sample, and with stand-ins for
/// the constants that differ.
[[nodiscard]] ImportedModel import_at_all_sizes(std::span<const ImportedModel* const> samples, const Graph& graph,
                                                SymbolicConstants& constants);

/// The export for all sizes. An error of code not_proved names what has no form for all of them, or is something else
/// at most of `samples`: at some, different nodes may be equal by chance. With `fold` false, weights are not computed
/// (see export_graph).
[[nodiscard]] Expected<ExportedGraph> export_at_all_sizes(const Document& document, const SymbolicExport& all,
                                                          std::span<const SizedExport> samples,
                                                          const OperatorRegistry& registry, bool verbatim, bool fold);

}  // namespace taso
