/// One file for all sizes of a model's symbolic extents. Internal to onnx_io: includes protobuf.
///
/// A model whose inputs have symbolic extents is imported, rewritten and exported at several sizes, each time in the
/// same way. What depends on the sizes is then told by comparing the exports: they must be equal node by node and
/// weight by weight, but for lists of extents that an ONNX node reads. Those are replaced where the node can find the
/// extent by itself:
///
///   Reshape  0 where the input has the same extents at the same axes, or -1 for one extent (both would be wrong
///            where the copied extent is 0)
///   Expand   1 where the input has the extent already
///   Slice    the largest integer for an end that is the end of the axis
///
/// Any other list is computed when the model runs, by a few nodes, if each of its entries is a * extent + b for an
/// extent of a graph input; so are constants that repeat one element (ConstantOfShape) or count up (Range), if their
/// shapes are such lists. That numbers which are no sums and products of the symbols do not come here is for the
/// importer (onnx_io/symbol_flow.h), and that the rewrites hold is for certificate/symbolic_model.h, which also chooses
/// the sizes: so many that no list of sums and products agrees at all of them by chance.
#pragma once

#include <span>

#include "onnx_io/export.h"

namespace taso {

/// A graph to be exported at one size.
struct SizedExport {
  const ImportedModel* imported = nullptr;
  const Graph* graph = nullptr;
  const SymbolSizes* sizes = nullptr;
};

/// The export for all sizes. An error of code not_proved names what has no form for all of them. With `fold` false,
/// weights are not computed (see export_graph).
[[nodiscard]] Expected<ExportedGraph> export_at_all_sizes(const Document& document, std::span<const SizedExport> sized,
                                                          const OperatorRegistry& registry, bool verbatim, bool fold);

/// For each size a hash of the export's nodes and of the names of its constants: what must be equal at all sizes.
[[nodiscard]] Expected<std::vector<Hash128>> export_forms(const Document& document, std::span<const SizedExport> sized,
                                                          const OperatorRegistry& registry);

}  // namespace taso
