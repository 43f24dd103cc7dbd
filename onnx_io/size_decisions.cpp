#include "onnx_io/size_decisions.h"

#include <algorithm>

namespace taso {

CarriedShape shape_of_one_operator(const Graph& graph, const std::vector<std::optional<Value>>& outputs,
                                   const std::map<NodeId, std::size_t>& places) {
  CarriedShape shape;
  if (outputs.empty() || !outputs[0]) return {};
  if (const auto place = places.find(outputs[0]->node); place != places.end()) {
    shape.rule = CarriedShape::Rule::same;
    shape.input = place->second;
    return shape;
  }
  const Node& node = graph.node(outputs[0]->node);
  if (node.kind != NodeKind::op) return {};
  shape.rule = CarriedShape::Rule::op;
  shape.op = node.op;
  shape.attributes = node.attributes;
  for (const Value& input : node.inputs) {
    const auto place = places.find(input.node);
    if (place == places.end()) return {};
    shape.operands.emplace_back(place->second, graph.type(input).element);
  }
  return shape;
}

const ReadNode* SizeDecisions::reading_of(NodeId id) const {
  const auto place = std::ranges::upper_bound(readings, id, {}, &ReadNode::end);
  return place == readings.end() || id < place->begin ? nullptr : &*place;
}

void note_equal_extents(const Graph& graph, NodeId reader, const std::vector<Value>& values,
                        std::optional<std::int64_t> along, std::vector<EqualExtents>& equal) {
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = i + 1; j < values.size(); ++j) {
      const Shape &a = graph.type(values[i]).shape, &b = graph.type(values[j]).shape;
      const auto rank = static_cast<std::int64_t>(a.size());
      for (std::size_t axis = 1; axis <= std::min(a.size(), b.size()); ++axis) {
        if (along && rank - static_cast<std::int64_t>(axis) == (*along < 0 ? *along + rank : *along)) continue;
        if (const std::int64_t extent = a[a.size() - axis]; extent > 1 && extent == b[b.size() - axis])
          equal.push_back({reader, values[i], values[j], {}, axis, !along});
      }
    }
}

}  // namespace taso
