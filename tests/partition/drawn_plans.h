/// Plans that are drawn, for tests of what is made of plans.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "partition/planner.h"
#include "support/hash.h"

namespace taso::test {

/// Devices that are slow, and links that are fast: it pays to cut.
inline Mesh mesh_of_sizes(const std::vector<std::int64_t>& sizes) {
  Mesh mesh;
  mesh.device = {std::int64_t{1} << 30, 1e6, 1e9};
  for (const std::int64_t size : sizes) mesh.axes.push_back({size, "link", 1e12, 0});
  return mesh;
}

/// One in `of` configurations, drawn by node. Those that read parts of sums only if all are allowed: nobody might make
/// what they read.
inline ConfigurationFilter drawn(std::uint64_t seed, std::uint64_t of) {
  return [=](NodeId id, const NodeConfiguration& configuration) {
    const bool passes = std::any_of(configuration.axes.begin(), configuration.axes.end(),
                                    [](const AxisUse& use) { return use.kind == AxisUse::Kind::partial; });
    if (passes && of > 1) return false;
    Hasher hasher;
    hasher.add(seed).add(static_cast<std::uint64_t>(id)).add(configuration.to_string());
    return hasher.finish().low % of == 0;
  };
}

/// What its operators use the mesh for.
inline PlannedUses uses_of(const PartitionPlan& plan) {
  PlannedUses uses;
  for (const PlannedNode& node : plan.nodes) uses[node.node] = node.configuration.axes;
  return uses;
}

}  // namespace taso::test
