/// Values of weight-only subgraphs, computed when a model is saved.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "operators/registry.h"
#include "support/status.h"

namespace taso {

/// The values of weight-only outputs, in the order asked for. Every operator is computed as its definition says, in
/// double, and rounded to the type of the value; what is kept in 16 bits is f32 until the values asked for are rounded
/// to it, once. Operators that move elements, and arithmetic, have direct loops. A constant with one repeated element
/// stays one through operators that keep it so. Where a tensor of more than `most_elements` would have to be computed
/// element by element: bad_input.
[[nodiscard]] Expected<std::vector<std::shared_ptr<const ConstantData>>> fold_weights(
    const Graph& graph, std::span<const Value> values, const OperatorRegistry& registry,
    std::int64_t most_elements = std::numeric_limits<std::int64_t>::max());

}  // namespace taso
