/// Plans as their files state them, for tests of reading them.
#pragma once

#include <string>
#include <vector>

#include "partition/plan_document.h"
#include "partition/plan_statement.h"
#include "partition/planner.h"
#include "support/hash.h"

namespace taso::test {

/// A plan of a graph by the rates of a mesh, as a file states it.
inline PlanDocument stated(const Graph& graph, const Mesh& mesh, const PartitionPlan& plan, StrategyTable& strategies,
                           const std::vector<std::string>& node_names = {}) {
  PlanDocument document;
  document.model = {"model.onnx", 12, hash_text("model")};
  document.topology = "drawn";
  document.mesh = mesh;
  std::vector<std::vector<CutPoints>> cuts;
  for (const PlannedNode& node : plan.nodes)
    cuts.push_back(cut_points(graph, node.node, mesh, node.configuration.axes, strategies));
  state_plan(graph, node_names, plan, cuts, document);
  return document;
}

}  // namespace taso::test
