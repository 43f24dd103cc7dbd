#include "optimizer/trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

std::string place_of(const RuleApplication& application, const std::vector<std::string>& node_names) {
  std::vector<std::string> names;
  for (const std::int32_t origin : application.origins)
    if (static_cast<std::size_t>(origin) < node_names.size() && !node_names[static_cast<std::size_t>(origin)].empty())
      names.push_back(node_names[static_cast<std::size_t>(origin)]);
  constexpr std::size_t shown_names = 6;
  const std::size_t more = names.size() > shown_names ? names.size() - shown_names : 0;
  names.resize(names.size() - more);
  std::string text = fmt::format("{}", fmt::join(application.operators, ", "));
  if (!names.empty()) text += fmt::format(" of {}", fmt::join(names, ", "));
  if (more > 0) text += fmt::format(" and {} more", more);
  return text;
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
