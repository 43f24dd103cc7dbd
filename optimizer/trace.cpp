#include "optimizer/trace.h"

#include <algorithm>

namespace taso {

RuleApplication describe_application(const Graph& graph, const Substitution& rule, const Match& match) {
  RuleApplication application;
  application.rule = rule.name;
  application.match = match;
  for (const NodeId id : match.nodes) {
    const Node& node = graph.node(id);
    application.operators.push_back(node.op);
    if (node.origin >= 0) application.origins.push_back(node.origin);
  }
  auto& origins = application.origins;
  std::sort(origins.begin(), origins.end());
  origins.erase(std::unique(origins.begin(), origins.end()), origins.end());
  return application;
}

bool still_matches(const Graph& found_in, const Graph& graph, const Match& match) {
  const auto same = [&](NodeId id) {
    return graph.contains(id) && &graph.node(id) == &found_in.node(id);  // copies of a graph share their nodes
  };
  return std::all_of(match.nodes.begin(), match.nodes.end(), same) &&
         std::all_of(match.variables.begin(), match.variables.end(),
                     [&](const Value& value) { return graph.contains(value.node); });
}

}  // namespace taso
