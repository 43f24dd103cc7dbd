/// Plans as people write them by hand, and as other planners make them, to be compared with: told from the structure of
/// a graph, never from names of models.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "partition/planner.h"

namespace taso {

/// Every operator repeats: as on one device.
[[nodiscard]] ConfigurationFilter only_repeat();
/// Every operator is cut along its first output's first axis by all mesh axes, or repeats, whichever takes less.
[[nodiscard]] ConfigurationFilter only_data_parallel(const Graph& graph);

/// A way to plan that others are compared with.
struct PlanBaseline {
  std::string name;
  ConfigurationFilter allowed;
  std::string impossible;  ///< Why the graph cannot be planned so; else empty.
};

/// In this order:
/// - "all repeated", "data parallel": as above.
/// - "one weird trick" (Krizhevsky 2014): products with weights over windows (convolutions) are cut along the first
/// axis
///   of their output, other products with weights along what their weights have and what they read otherwise has not
///   (neurons); all else along its first axis, its last one, or not at all.
/// - "Megatron" (Shoeybi et al. 2019): of products with weights that follow each other the first one is cut by columns
///   of its weights, the next one by rows, its results added up; what lies between may be cut in any way, all else
///   repeats.
/// - "all row, greedy" (Tofu, Wang et al. 2019, section 7.3): every operator is cut as is cheapest by itself, if every
///   value is cut along its first axis before and after.
/// - "equal chop" (there, too): the best plan in which no tensor is cut along more than one of its axes.
/// The planner and the strategies are referred to.
[[nodiscard]] std::vector<PlanBaseline> plan_baselines(const Graph& graph, const Mesh& mesh, Planner& planner,
                                                       const PieceCost& cost, StrategyTable& strategies);

}  // namespace taso
