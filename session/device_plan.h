/// A plan for several devices of an optimized graph (partition/planner.h): as text, and as the file beside the model
/// (docs/partitioning.md).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "certificate/certificate.h"
#include "graph/graph.h"
#include "operators/registry.h"
#include "partition/mesh.h"
#include "partition/planner.h"
#include "support/status.h"

namespace taso {

/// For which devices a plan is wanted.
struct PlanRequest {
  Mesh mesh;
  std::string topology;                     ///< Its name.
  std::vector<std::string> strategy_files;  ///< Rules: strategies that are proved.
};

/// A plan, and what others would take.
struct DevicePlan {
  Graph graph;
  std::string topology;
  PartitionPlan plan;
  /// Plans of one kind: everything repeated on all devices, and the first axis of everything cut.
  std::vector<std::pair<std::string, PartitionPlan>> others;
};

/// Plans `graph`, by the rates that the topology states. Fails where a file of strategies cannot be read.
[[nodiscard]] Expected<DevicePlan> plan_for_devices(const Graph& graph, const PlanRequest& request,
                                                    const OperatorRegistry& registry);

/// A table: per operator that is cut or after which something moves its use of the mesh, time and bytes; the sums; the
/// other plans. `node_names` are those of the user's nodes, by origin.
[[nodiscard]] std::string plan_text(const DevicePlan& plan, const std::vector<std::string>& node_names);
/// The plan file. `model` is the file that the plan is of.
[[nodiscard]] std::string plan_json(const DevicePlan& plan, const FileIdentity& model,
                                    const std::vector<std::string>& node_names);
/// The file of the plan beside a model: out.plan.json of out.onnx.
[[nodiscard]] std::string plan_path(const std::string& model);

}  // namespace taso
