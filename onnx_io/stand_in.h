/// What a carried node would become if its elements were f32: its shapes, and its arithmetic. Internal to onnx_io:
/// includes protobuf.
#pragma once

#include <optional>
#include <vector>

#include "onnx_io/import.h"
#include "operators/registry.h"

namespace taso {

/// A node and what is known of its inputs.
struct CarriedInputs {
  const Document* document = nullptr;
  int node = 0;
  std::vector<NodeContext::Input> inputs;
};

/// Types by running the handler of an operator that only moves elements on stand-ins; none where it declines.
[[nodiscard]] CarriedTypes types_of_moved(const CarriedInputs& carried, const ImportRow& row,
                                          const OperatorRegistry& registry, NodeContext::Sizes sizes);
/// The arithmetic of a node whose outputs have these types, as Work counts it: what it becomes if its elements are
/// taken for f32, or about one operation for each element of an operator that works element by element. Nothing where
/// types or meaning are not known.
[[nodiscard]] std::optional<double> estimated_flops(const CarriedInputs& carried, const OperatorRegistry& registry,
                                                    const std::vector<TensorType>& outputs);

/// The arithmetic of the operators of a graph that do not depend on constants alone, as Work counts it.
[[nodiscard]] double total_flops(const Graph& graph, const OperatorRegistry& registry);

/// Whether a node that makes another name of what it reads does so at all sizes.
[[nodiscard]] bool only_renames(const onnx::NodeProto& node);

}  // namespace taso
