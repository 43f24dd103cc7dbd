/// What random inputs of a graph may be.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "operators/registry.h"

namespace taso {

/// Per graph input: random integers are below this. It is the least extent of the axes that the input, or part of it,
/// is an index of, moved before or not (reshape, slice, concat, ...); 2 where it is none.
[[nodiscard]] std::vector<std::int64_t> input_bounds_of(const Graph& graph, const OperatorRegistry& registry);

}  // namespace taso
