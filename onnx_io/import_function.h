/// Nodes that call a function of the model (ModelProto.functions): where the operator is otherwise unknown, the
/// function's nodes take its place. They are the node's expansion: as long as they stay as they are, the call is
/// written back. Internal to onnx_io.
#pragma once

#include <memory>

#include "graph/constant.h"
#include "onnx_io/import.h"
#include "operators/registry.h"

namespace taso {

/// The function of the document that a node calls; nullptr if there is none.
[[nodiscard]] const onnx::FunctionProto* called_function(const Document& document, const onnx::NodeProto& node);

/// Puts the nodes of the function that `context` is at a call of into the graph. Declines, with the reason, where a
/// node of it is not understood, one of several outputs is constant, it is very large, or extents are symbolic. The
/// value is what the only output is, if that is constant; then nothing was added.
std::shared_ptr<const ConstantData> import_function(NodeContext& context, const Document& document,
                                                    const onnx::FunctionProto& function,
                                                    const OperatorRegistry& registry);

}  // namespace taso
