#include "optimizer/region_pieces.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "graph/reals.h"
#include "operators/element_evaluator.h"

namespace taso {
namespace {

/// Whether a piece can be evaluated at all.
bool is_numeric(const GraphPiece& piece) {
  const auto readable = [](const TensorType& type) {
    return type.known && TensorElements{type, {}, false}.is_readable();
  };
  for (const NodeId id : piece.graph.topological_order()) {
    const Node& node = piece.graph.node(id);
    if (!std::all_of(node.outputs.begin(), node.outputs.end(), readable)) return false;
    const auto has_reals = [](const TensorType& type) { return is_real(type.element); };
    if (node.kind == NodeKind::op && !std::all_of(node.outputs.begin(), node.outputs.end(), has_reals)) return false;
  }
  return true;
}

std::unordered_set<NodeId> nodes_of(const std::vector<NodeId>& own, const std::vector<NodeId>& around) {
  std::unordered_set<NodeId> nodes(own.begin(), own.end());
  nodes.insert(around.begin(), around.end());
  return nodes;
}

}  // namespace

GraphCutter::GraphCutter(const Graph& graph) : graph_(graph), places_(graph.id_bound(), 0) {
  std::size_t place = 0;
  for (const NodeId id : graph.topological_order()) places_[id] = place++;
}

GraphPiece GraphCutter::cut(const std::function<bool(NodeId)>& inside, const std::vector<Value>& outputs) const {
  const auto is_inside = [&](NodeId id) {
    const Node& node = graph_.node(id);
    return node.weight_only || (node.kind == NodeKind::op && inside(id));
  };
  std::unordered_set<NodeId> seen;
  std::vector<NodeId> open, nodes;
  std::set<Value> leaves;
  const auto visit = [&](Value value) {
    if (!is_inside(value.node))
      leaves.insert(value);
    else if (seen.insert(value.node).second)
      open.push_back(value.node);
  };
  for (const Value output : outputs) visit(output);
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    nodes.push_back(id);
    for (const Value input : graph_.node(id).inputs) visit(input);
  }
  std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) { return places_[a] < places_[b]; });
  return copy(nodes, leaves, outputs);
}

GraphPiece GraphCutter::copy(const std::vector<NodeId>& nodes, const std::set<Value>& leaves,
                             const std::vector<Value>& outputs) const {
  GraphPiece piece;
  std::map<Value, Value> inputs;
  for (const Value leaf : leaves) {
    const NodeId input = piece.graph.add_input("in" + std::to_string(piece.leaves.size()), graph_.type(leaf));
    inputs.emplace(leaf, Value{input, 0});
    piece.leaves.push_back(leaf);
  }
  const auto copied = [&](Value value) {
    const auto input = inputs.find(value);
    return input != inputs.end() ? input->second : Value{piece.copies.at(value.node), value.port};
  };
  for (const NodeId id : nodes) {
    Node node = graph_.node(id);
    for (Value& input : node.inputs) input = copied(input);
    piece.copies.emplace(id, piece.graph.add(std::move(node)));
  }
  for (const Value output : outputs) piece.graph.add_output(copied(output));
  return piece;
}

RegionPreparation::RegionPreparation(const Graph& original, const Graph& result, std::span<const ChangedRegion> regions)
    : original_(original), before_(original), after_(result) {
  for (const ChangedRegion& region : regions)
    for (const auto& [value, now] : region.outputs) originals_[now].push_back(value);
}

std::optional<PreparedRegion> RegionPreparation::prepare(const ChangedRegion& region, std::size_t number) const {
  PreparedRegion prepared;
  prepared.number = number;
  std::vector<Value> now;
  for (const auto& [value, standing] : region.outputs) {
    if (!original_.type(value).known) continue;
    prepared.values.push_back(value);
    now.push_back(standing);
  }
  if (now.empty()) return std::nullopt;
  prepared.place = before_.place(prepared.values.front().node);
  for (const Value value : prepared.values) prepared.place = std::min(prepared.place, before_.place(value.node));
  const std::unordered_set<NodeId> before = nodes_of(region.before, region.around);
  const std::unordered_set<NodeId> after = nodes_of(region.after, region.around);
  prepared.before = before_.cut([&](NodeId id) { return before.contains(id); }, prepared.values);
  // Another region may have made what this one reads, and the original has nothing like it.
  prepared.after = after_.cut([&](NodeId id) { return after.contains(id) || is_new(id); }, now);
  const std::set<Value> known(prepared.before.leaves.begin(), prepared.before.leaves.end());
  for (const Value leaf : prepared.after.leaves) {
    const std::optional<Value> value = original_of(leaf, known);
    if (!value) return std::nullopt;
    prepared.after_leaves.push_back(*value);
    prepared.reads_rounded = prepared.reads_rounded || !known.contains(*value);
  }
  if (!is_numeric(prepared.before) || !is_numeric(prepared.after)) return std::nullopt;
  return prepared;
}

bool RegionPreparation::is_new(NodeId id) const {
  if (original_.contains(id)) return false;
  const auto known = originals_.lower_bound(Value{id, 0});
  return known == originals_.end() || known->first.node != id;
}

std::optional<Value> RegionPreparation::original_of(Value value, const std::set<Value>& wanted) const {
  const auto known = originals_.find(value);
  const bool itself = original_.contains(value.node);
  if (known != originals_.end() && !(itself && wanted.contains(value)))
    for (const Value candidate : known->second)
      if (wanted.contains(candidate)) return candidate;
  if (itself) return value;
  return known == originals_.end() ? std::nullopt : std::optional(known->second.front());
}

}  // namespace taso
