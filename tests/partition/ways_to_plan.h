/// Ways to find plans, for tests of what is made of plans.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "partition/mesh.h"
#include "partition/operator_piece.h"
#include "partition/planner.h"

namespace taso::test {

/// Their names:
/// - "drawn": every operator uses the mesh in any way that can read what is made before it;
/// - "drawn, kept elsewhere": the same, and of what several read, one after the other is kept in a drawn placement;
/// - "exact", "axis by axis": what taso-opt --partition finds;
/// - "within memory": keeping to nine tenths of what the exact plan takes, if there is such a plan; on meshes of
///   one axis, since it takes long on others;
/// - "by hand": one of the plans of partition/plan_baselines.h.
[[nodiscard]] const std::vector<std::string>& ways_to_plan();

/// A plan found in the way of that name. Nothing where there is none: "by hand" is impossible for the graph, or
/// the mesh has several axes.
[[nodiscard]] std::optional<PartitionPlan> plan_in_way(const std::string& way, const Graph& graph, const Mesh& mesh,
                                                       StrategyTable& strategies, std::uint64_t seed);

}  // namespace taso::test
