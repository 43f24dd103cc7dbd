/// PaSE's problem: a configuration per layer, of least total cost (equation (1) of the paper).
#pragma once

#include <cstdint>
#include <vector>

#include "partition/partition_problem.h"
#include "partition/pase_costs.h"
#include "partition/pase_graph.h"

namespace taso {

/// What two tensors between the same two layers cost.
enum class PaseParallelEdges {
  last,  ///< Only the last counts, as in the prototype, whose graphs have one edge per pair of layers.
  all,   ///< Each counts: what equation (1) says.
};

/// Decision i is the configuration of layer i.
struct PaseProblem {
  std::vector<PaseConfigurations> configurations;  ///< Per layer.
  PartitionProblem problem;                        ///< Costs of layers, then of edges.
  std::size_t edges = 0;                           ///< Pairs of layers with a tensor between them, or tensors (`all`).
};

/// The problem of a network on so many devices (at least 1).
[[nodiscard]] PaseProblem pase_problem(const PaseGraph& graph, std::int64_t devices, const PaseMachine& machine = {},
                                       PaseParallelEdges parallel = PaseParallelEdges::last);

/// Data parallelism: every layer splits its batch as far as its configurations allow, and nothing else.
[[nodiscard]] std::vector<std::uint32_t> pase_data_parallel(const PaseGraph& graph, const PaseProblem& problem);

}  // namespace taso
