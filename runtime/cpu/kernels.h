/// The candidates of runtime/cpu, one creator per family; each declines with a reason what it cannot do.
#pragma once

#include <string>
#include <vector>

#include "runtime/kernel.h"

namespace taso::cpu {

// Own loops.
[[nodiscard]] KernelOffer elementwise(const KernelRequest& request, const OperatorRegistry& registry);
[[nodiscard]] KernelOffer copying(const KernelRequest& request, const OperatorRegistry& registry);
[[nodiscard]] KernelOffer gathering(const KernelRequest& request, const OperatorRegistry& registry);
[[nodiscard]] KernelOffer pooling(const KernelRequest& request, const OperatorRegistry& registry);
[[nodiscard]] KernelOffer reduction(const KernelRequest& request, const OperatorRegistry& registry);
/// What RowLoop computes.
[[nodiscard]] KernelOffer row_by_row(const KernelRequest& request, const OperatorRegistry& registry);
[[nodiscard]] KernelOffer column_softmax(const KernelRequest& request, const OperatorRegistry& registry);
[[nodiscard]] KernelOffer batch_norm(const KernelRequest& request, const OperatorRegistry& registry);
[[nodiscard]] KernelOffer group_norm(const KernelRequest& request, const OperatorRegistry& registry);
[[nodiscard]] KernelOffer lrn(const KernelRequest& request, const OperatorRegistry& registry);
[[nodiscard]] KernelOffer rotary_embedding(const KernelRequest& request, const OperatorRegistry& registry);
/// Recurrent layers, with products of oneDNN.
[[nodiscard]] KernelOffer recurrent_layer(const KernelRequest& request, const OperatorRegistry& registry);
/// Any operator that a specification defines, from its definition; row-major, or element-wise in any layout.
[[nodiscard]] KernelOffer definition(const KernelRequest& request, const OperatorRegistry& registry);
/// An element-wise operator on integers and truth values, or one that makes them of reals or chooses by them.
[[nodiscard]] KernelOffer machine_elements(const KernelRequest& request, const OperatorRegistry& registry);
/// A fused request of element-wise operators, and of those of RowLoop, on elements of one shape.
[[nodiscard]] KernelOffer fused_elements(const KernelRequest& request, const OperatorRegistry& registry);
/// Whether a request can be a part of such a one.
[[nodiscard]] bool is_fusable_element(const KernelRequest& part, const OperatorRegistry& registry);
/// A fused request of operators by their definitions (runtime/joined_body.h), where all of their stages go together row
/// by row.
[[nodiscard]] KernelOffer joined_definitions(const KernelRequest& request, const OperatorRegistry& registry);
/// The same of any operators with definitions, whether it pays or not.
[[nodiscard]] KernelOffer any_joined_definitions(const KernelRequest& request, const OperatorRegistry& registry);
/// Whether a request can be a part of such a one.
[[nodiscard]] bool is_joinable(const KernelRequest& part, const OperatorRegistry& registry);
/// A fused request of nothing but moves (runtime/moves.h) that come to one copy between strided tensors.
[[nodiscard]] KernelOffer fused_moves(const KernelRequest& request, const OperatorRegistry& registry);
/// Whether a request can be a part of such a one.
[[nodiscard]] bool is_fusable_move(const KernelRequest& part);
/// A fused request of two products and what is computed row by row of the first one's result for the second, with
/// operators that move what is read and the result.
[[nodiscard]] KernelOffer attention(const KernelRequest& request, const OperatorRegistry& registry);
/// The same by blocks of so many rows, whether it pays or not; 0: as many as the cache holds, where it pays.
[[nodiscard]] KernelOffer attention_by_blocks(const KernelRequest& request, const OperatorRegistry& registry,
                                              std::int64_t rows);
/// Whether a request can be one of the products.
[[nodiscard]] bool is_fusable_product(const KernelRequest& part);
/// Outputs without elements: nothing to compute, whatever the operator.
[[nodiscard]] KernelOffer empty_outputs(const KernelRequest& request, const OperatorRegistry& registry);

/// A convolution by windows of 3 x 3 in steps of one, by fewer multiplications, where that pays.
[[nodiscard]] KernelOffer winograd_convolution(const KernelRequest& request, const OperatorRegistry& registry);
/// The same by blocks of so many tiles, whether it pays or not; 0: as many as the cache holds, where it pays.
[[nodiscard]] KernelOffer winograd_by_blocks(const KernelRequest& request, const OperatorRegistry& registry,
                                             std::int64_t tiles);

// oneDNN (declines with "built without oneDNN" where it is absent).
[[nodiscard]] KernelOffer onednn_convolution(const KernelRequest& request, const OperatorRegistry& registry);
/// A convolution whose residual is added by a loop over its result, for primitives that are slow to add.
[[nodiscard]] KernelOffer onednn_convolution_and_sum(const KernelRequest& request, const OperatorRegistry& registry);
/// A fused request of a convolution and a clip of its result (as relu6), which no activation of an attribute is.
[[nodiscard]] KernelOffer onednn_clipped_convolution(const KernelRequest& request, const OperatorRegistry& registry);
/// Whether a request can be the convolution.
[[nodiscard]] bool is_clippable(const KernelRequest& part);
[[nodiscard]] KernelOffer onednn_matmul(const KernelRequest& request, const OperatorRegistry& registry);
/// The same, and what oneDNN has only as "ref": slow, but faster than the definitions.
[[nodiscard]] KernelOffer onednn_slow_convolution(const KernelRequest& request, const OperatorRegistry& registry);
[[nodiscard]] KernelOffer onednn_slow_matmul(const KernelRequest& request, const OperatorRegistry& registry);
[[nodiscard]] KernelOffer onednn_pooling(const KernelRequest& request, const OperatorRegistry& registry);

/// "oneDNN 2.6.3", or empty.
[[nodiscard]] std::string onednn_version();

/// The candidates for an operator, in the order of preference, without the reference.
[[nodiscard]] std::vector<KernelCandidate> candidates_for(std::string_view op, const OperatorRegistry& registry);

// For candidates.

/// Whether kernels of a library, or written by hand, are for this operator: not only its definition.
[[nodiscard]] bool has_own_kernel(std::string_view op);
/// A declined offer.
[[nodiscard]] KernelOffer decline(std::string reason);
/// True if every input and output is f32.
[[nodiscard]] bool is_all_floats(const KernelRequest& request);
/// Strides of an operand in elements.
[[nodiscard]] std::vector<std::int64_t> strides_of(const Operand& operand);
/// The position of a negative axis in a tensor of this rank.
[[nodiscard]] inline std::size_t axis_position(std::int64_t axis, std::size_t rank) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

}  // namespace taso::cpu
