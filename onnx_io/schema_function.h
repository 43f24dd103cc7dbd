/// Operators that ONNX itself defines by others: its schemas have function bodies. Internal to onnx_io.
#pragma once

#include <optional>

#include "onnx_io/import.h"

namespace taso {

/// The function that the schema of a node's operator says it is, at the version of the model's operator set, with the
/// schema's defaults for attributes that the node lacks, and as many outputs as the node reads. Nothing where the
/// linked ONNX has no such function.
[[nodiscard]] std::optional<onnx::FunctionProto> function_of_schema(const Document& document, int node,
                                                                    const NodeContext& context);

}  // namespace taso
