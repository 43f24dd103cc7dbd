#include "runtime/input_bounds.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace taso {

std::vector<std::int64_t> input_bounds_of(const Graph& graph, const OperatorRegistry& registry) {
  static const std::set<std::string_view> moving = {"broadcast", "cast",  "concat", "gather",   "gather_elements",
                                                    "reshape",   "slice", "split",  "transpose"};
  std::map<NodeId, std::int64_t> least;  // Of what a node computes that is an index, or part of one.
  const auto limit = [&](const Value& value, std::int64_t bound) {
    const auto [place, is_new] = least.emplace(value.node, bound);
    if (!is_new) place->second = std::min(place->second, bound);
  };
  const std::vector<NodeId> order = graph.topological_order();
  for (std::size_t place = order.size(); place-- > 0;) {
    const Node& node = graph.node(order[place]);
    if (node.kind != NodeKind::op || node.weight_only || !registry.defines(node.op)) continue;
    std::vector<TensorType> types;
    bool integers = false;
    for (const Value& input : node.inputs) {
      types.push_back(graph.type(input));
      const ElementType element = types.back().element;
      integers = integers || element == ElementType::i32 || element == ElementType::i64;
    }
    if (!integers) continue;
    const std::vector<std::int64_t> bounds = registry.index_bounds(node.op, node.attributes, types);
    for (std::size_t i = 0; i < bounds.size(); ++i)
      if (bounds[i] > 0) limit(node.inputs[i], bounds[i]);
    const auto bound = least.find(order[place]);
    if (bound == least.end() || !moving.contains(node.op)) continue;
    const std::size_t moved = node.op == "concat" ? node.inputs.size() : 1;
    for (std::size_t i = 0; i < moved; ++i) limit(node.inputs[i], bound->second);
  }
  std::vector<std::int64_t> bounds;
  for (const NodeId input : graph.inputs()) {
    const auto bound = least.find(input);
    bounds.push_back(bound == least.end() ? 2 : bound->second);
  }
  return bounds;
}

}  // namespace taso
