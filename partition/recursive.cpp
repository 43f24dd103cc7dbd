#include "partition/recursive.h"

#include <map>
#include <utility>

namespace taso {

std::vector<std::int64_t> recursion_steps(std::int64_t devices) {
  TASO_CHECK(devices >= 1, "no devices");
  std::vector<std::int64_t> steps;
  for (std::int64_t factor = 2; devices > 1; ++factor) {
    if (factor * factor > devices) factor = devices;
    for (; devices % factor == 0; devices /= factor) steps.insert(steps.begin(), factor);
  }
  return steps;
}

Mesh with_prime_axes(const Mesh& mesh) {
  Mesh fine{{}, mesh.device};
  for (const MeshAxis& axis : mesh.axes)
    for (const std::int64_t size : recursion_steps(axis.size)) {
      fine.axes.push_back(axis);
      fine.axes.back().size = size;
    }
  return fine;
}

Expected<PartitionPlan> plan_recursively(const Graph& graph, const Mesh& mesh, StrategyTable& strategies,
                                         const PlannerOptions& options) {
  TASO_CHECK(options.decided.empty(), "a recursion decides itself");
  PlannerOptions step = options;
  std::size_t decisions = 0, ways = 0;
  bool complete = true;
  Mesh part{{}, mesh.device};
  for (std::size_t axis = 0;; ++axis) {
    if (axis < mesh.axes.size()) part.axes.push_back(mesh.axes[axis]);
    // Pieces of an early step are not yet what a device holds.
    step.memory = axis + 1 < mesh.axes.size() ? std::nullopt : options.memory;
    Planner planner(graph, part, strategies, step);
    TASO_ASSIGN(PartitionPlan plan, planner.plan());
    decisions += plan.decisions;
    ways += plan.ways;
    complete = complete && plan.complete;
    if (axis + 1 < mesh.axes.size()) {
      for (PlannedNode& node : plan.nodes) step.decided[node.node] = std::move(node.configuration.axes);
      continue;
    }
    plan.decisions = decisions;
    plan.ways = ways;
    plan.complete = complete;
    if (mesh.axes.size() > 1) {
      plan.lower_bound = 0;
      plan.exact = false;
    }
    return plan;
  }
}

}  // namespace taso
