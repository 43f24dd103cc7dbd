/// Nodes that maps describe (operators/node_maps.h): read as the operator that they stand for, and written again where
/// the model's runtime is known to have them. Internal to onnx_io.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onnx_io/export.h"
#include "onnx_io/import.h"

namespace taso {

/// Imports a node by the first line that applies; declines with the reason if none does.
void import_mapped(NodeContext& context, const OperatorRegistry& registry);

/// Whether all lines of a type broadcast: then a node is wrong that has another number of inputs, or inputs that
/// differ in type or do not broadcast.
[[nodiscard]] bool all_broadcast(const NodeMaps::Mappings& mappings);

/// The lines of ONNX's own domain as documented: one entry for each type of node, sorted.
[[nodiscard]] std::vector<ImportedOperator> mapped_operators(const OperatorRegistry& registry);

/// Whether a mapped node of the document has extents that are rounded (operators/definition.h: quotients).
[[nodiscard]] bool maps_round_extents(const Document& document, const OperatorRegistry& registry);

/// Writes applications by lines of the maps. A model must not gain an operator that its runtime may lack: a line of
/// another domain than ONNX's own is used only if the document has a node of its type, or the maps allow the domain.
class MapWriter {
 public:
  MapWriter(const Document& document, const OperatorRegistry& registry) : document_(&document), registry_(&registry) {}

  /// Lines to try.
  enum class Lines : std::uint8_t {
    origin,   ///< Of the type of the document's node that the graph's node comes from.
    onnx,     ///< Of ONNX's own domain.
    foreign,  ///< Of other domains.
  };
  /// Appends the node for the operator node that `context` is at, if a line has one.
  [[nodiscard]] bool write(LoweringContext& context, Lines lines) const;
  /// The same for a scalar function of a tensor of the node's output type: by the lines of the operator that applies it
  /// to every element.
  [[nodiscard]] bool write_function(LoweringContext& context, const std::string& function, TensorRef input,
                                    TensorRef output, Lines lines) const;
  /// Why the lines of ONNX's own domain do not write an operator, "Erf is not in opset 8"; empty if there are none.
  [[nodiscard]] std::string why_not(std::string_view op) const;

 private:
  [[nodiscard]] bool may_write(const NodeMapping& mapping, const LoweringContext& context, Lines lines) const;
  /// Version of a domain as the written file imports it.
  [[nodiscard]] std::int64_t version_of(const std::string& domain) const;

  const Document* document_;
  const OperatorRegistry* registry_;
};

}  // namespace taso
