/// Nodes of which no two are equal.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "support/status.h"

namespace taso {

/// Adds applications of operators to a graph; one that this object added before is not added again.
class NodeAdder {
 public:
  NodeAdder(Graph& graph, const OperatorCatalog& catalog) : graph_(graph), catalog_(catalog) {}
  [[nodiscard]] Expected<NodeId> add(std::string_view op, const Attributes& attributes, std::vector<Value> inputs);
  [[nodiscard]] const Graph& graph() const { return graph_; }
  /// Ids of what was added, in order.
  [[nodiscard]] const std::vector<NodeId>& added() const { return added_; }

 private:
  Graph& graph_;
  const OperatorCatalog& catalog_;
  std::unordered_map<std::string, NodeId> known_;  // By operator, attributes and inputs as text.
  std::vector<NodeId> added_;
};

}  // namespace taso
