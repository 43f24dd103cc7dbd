/// An application of an operator as a graph of other operators that compute the same: what its definition says, for
/// programs that do not know the operator.
///
/// Operators that a definition applies are taken as they are, equations are translated from their loops
/// (operators/lowered_body.h): every loop variable is an axis, a read is a view of its tensor (reshape, slice,
/// transpose), scalar operations are element-wise operators of broadcasts, sums of products are matrix products, other
/// sums and maxima are reductions. What has no such form is not unfolded: recurrences, reads that may leave a tensor or
/// use a read index, windows (an index that is the sum of two variables), several equations for one tensor, choices.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "graph/graph.h"
#include "operators/registry.h"
#include "support/status.h"

namespace taso {

/// The definition of `op` at these attributes and types of inputs as a graph; its inputs have the definition's names
/// (of a variadic one "x.0", "x.1", ...). Operators for which `keep` is false are unfolded in turn. Fails, with what
/// stands in the way, where the definition has no such form or does not apply.
[[nodiscard]] Expected<Graph> unfold(const OperatorRegistry& registry, std::string_view op,
                                     const Attributes& attributes, std::span<const TensorType> inputs,
                                     const std::function<bool(std::string_view)>& keep);

}  // namespace taso
