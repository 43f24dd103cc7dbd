/// Parts of weights.
///
/// A slice of a tensor that is computed from weights alone is the same computation on slices of these, if the operator
/// moves elements or works on each by itself. So who reads a part of a transposed, reshaped, broadcast or scaled weight
/// needs a part of the constant only, and a broadcast stays one that a kernel can read through, or a rule recognise.
#pragma once

#include "graph/graph.h"
#include "operators/registry.h"

namespace taso {

/// Moves slices of weights, of steps of 1, towards the constants as far as they go, and removes what nothing needs
/// then. Values of outputs stay the same, bit by bit.
void slice_weights_first(Graph& graph, const OperatorRegistry& registry);

}  // namespace taso
