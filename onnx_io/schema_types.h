/// Types of what an operator of ONNX makes that is not understood, as ONNX's own operator schemas infer them. Internal
/// to onnx_io.
#pragma once

#include "onnx_io/import.h"

namespace taso {

/// The types of a node's outputs: the ones that the schema of its operator, in the version of the model's operator set,
/// infers from the types of the inputs and from inputs that are small constants. None where there is no such schema,
/// where it does not tell, and where it says that the node is wrong. At some sizes of symbolic extents only those of
/// operators whose extents are sums and products of those that they read, by which they are known at all sizes.
///
/// The linked library may be older than the model's operator set. A node is then inferred as the newest version that is
/// known only if it could be one of that version: by the number of its inputs, their types and its attributes, which is
/// how later versions of an operator differ.
[[nodiscard]] CarriedTypes types_by_schema(const Document& document, int node,
                                           const std::vector<NodeContext::Input>& inputs, NodeContext::Sizes sizes);

/// Whether an operator of ONNX's own may make elements of a type in an operator set, as far as the linked library
/// knows: in the newest version that it has, where that is older; of operators unknown to it, true.
[[nodiscard]] bool makes_elements(const std::string& op_type, std::int64_t opset, ElementType element);

}  // namespace taso
