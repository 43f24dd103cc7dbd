#include "partition/tofu_coarsening.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>

namespace taso {
namespace {

class UnionFind {
 public:
  explicit UnionFind(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  [[nodiscard]] std::size_t find(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  /// The smaller number stands for both. False if they were one already.
  bool unite(std::size_t a, std::size_t b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
    return a != b;
  }

 private:
  std::vector<std::size_t> parent_;
};

/// Values and operators in topological order get numbers; classes are sets of numbers.
class Coarsener {
 public:
  Coarsener(const Graph& graph, const OperatorRegistry& registry, const TofuGroups& groups)
      : graph_(graph), registry_(registry), groups_(groups), order_(graph.topological_order()), values_(0), nodes_(0) {
    std::map<std::string, std::size_t> kinds;
    for (const NodeId id : order_) {
      const Node& node = graph.node(id);
      for (std::uint32_t port = 0; port < node.outputs.size(); ++port) {
        value_number_.emplace(Value{id, port}, value_number_.size());
        value_of_number_.push_back({id, port});
      }
      node_number_.emplace(id, node_number_.size());
      std::string kind = node.op + to_string(node.attributes);
      for (const Value& input : node.inputs) kind += " " + to_string(graph.type(input));
      kind_.push_back(is_operator(id) ? kinds.try_emplace(kind, kinds.size()).first->second : 0);
    }
    values_ = UnionFind(value_number_.size());
    nodes_ = UnionFind(node_number_.size());
  }

  Expected<TofuCoarsening> run() {
    TASO_RETURN_IF_ERROR(unite_groups());
    unite_readers_of_weights();
    while (unite_equal_applications() || unite_makers()) {
    }
    TASO_RETURN_IF_ERROR(unite_placements());
    unite_elementwise();
    return result();
  }

 private:
  [[nodiscard]] bool is_operator(NodeId id) const {
    const NodeKind kind = graph_.node(id).kind;
    return kind == NodeKind::op || kind == NodeKind::opaque;
  }
  [[nodiscard]] std::size_t number(NodeId id) const { return node_number_.at(id); }
  [[nodiscard]] std::size_t number(Value value) const { return value_number_.at(value); }
  [[nodiscard]] bool exists(Value value) const { return value_number_.contains(value); }

  /// Of equal kind: with them their operands and results.
  bool unite(NodeId a, NodeId b) {
    bool changed = nodes_.unite(number(a), number(b));
    const Node &one = graph_.node(a), &other = graph_.node(b);
    for (std::size_t i = 0; i < one.inputs.size(); ++i)
      changed = values_.unite(number(one.inputs[i]), number(other.inputs[i])) || changed;
    for (std::uint32_t port = 0; port < one.outputs.size(); ++port)
      changed = values_.unite(number(Value{a, port}), number(Value{b, port})) || changed;
    return changed;
  }

  [[nodiscard]] bool equal_kind(NodeId a, NodeId b) const {
    return graph_.node(a).kind == NodeKind::op && graph_.node(b).kind == NodeKind::op &&
           kind_[number(a)] == kind_[number(b)];
  }

  [[nodiscard]] Status unite_groups() {
    for (const std::vector<NodeId>& group : groups_.together)
      for (const NodeId id : group) {
        if (!node_number_.contains(id) || !node_number_.contains(group[0]) || !equal_kind(id, group[0]))
          return bad_input("operators that are decided together differ: node " + std::to_string(group[0]) + " and " +
                           std::to_string(id));
        unite(group[0], id);
      }
    return {};
  }

  /// What depends on weights alone is a weight, too; what follows from attributes alone (ones) is none.
  void unite_readers_of_weights() {
    std::set<Value> weights(groups_.weights.begin(), groups_.weights.end()), made;
    std::map<std::tuple<std::size_t, std::size_t, std::size_t>, NodeId> readers;
    for (const NodeId id : order_) {
      const Node& node = graph_.node(id);
      const auto is_weight = [&](const Value& value) { return weights.contains(value); };
      const auto is_known = [&](const Value& value) { return weights.contains(value) || made.contains(value); };
      if (node.kind == NodeKind::constant ||
          (node.kind == NodeKind::op && std::all_of(node.inputs.begin(), node.inputs.end(), is_known))) {
        const bool weight =
            node.kind == NodeKind::constant || std::any_of(node.inputs.begin(), node.inputs.end(), is_weight);
        for (std::uint32_t port = 0; port < node.outputs.size(); ++port) (weight ? weights : made).insert({id, port});
        continue;
      }
      if (node.kind != NodeKind::op) continue;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        // A number that many operators read makes no time steps of them.
        if (!is_weight(node.inputs[i]) || graph_.type(node.inputs[i]).shape.empty()) continue;
        const auto [at, fresh] = readers.try_emplace({kind_[number(id)], i, number(node.inputs[i])}, id);
        if (!fresh) unite(at->second, id);
      }
    }
  }

  /// Of equal kind, with operands of the same classes.
  bool unite_equal_applications() {
    bool changed = false;
    std::map<std::pair<std::size_t, std::vector<std::size_t>>, NodeId> known;
    for (const NodeId id : order_) {
      const Node& node = graph_.node(id);
      if (node.kind != NodeKind::op || node.inputs.empty()) continue;
      std::vector<std::size_t> classes;
      for (const Value& input : node.inputs) classes.push_back(values_.find(number(input)));
      const auto [at, fresh] = known.try_emplace({kind_[number(id)], std::move(classes)}, id);
      if (!fresh) changed = unite(at->second, id) || changed;
    }
    return changed;
  }

  /// Of equal kind, whose results are of one class.
  bool unite_makers() {
    bool changed = false;
    std::map<std::tuple<std::size_t, std::uint32_t, std::size_t>, NodeId> known;
    for (std::size_t value = 0; value < value_of_number_.size(); ++value) {
      const auto [id, port] = value_of_number_[value];
      if (graph_.node(id).kind != NodeKind::op) continue;
      const auto [at, fresh] = known.try_emplace({kind_[number(id)], port, values_.find(value)}, id);
      if (!fresh) changed = unite(at->second, id) || changed;
    }
    return changed;
  }

  [[nodiscard]] Status unite_placements() {
    for (const auto& [a, b] : groups_.placed_alike) {
      if (!exists(a) || !exists(b) || graph_.type(a) != graph_.type(b))
        return bad_input("tensors that are kept in one placement differ in type: output " + std::to_string(a.port) +
                         " of node " + std::to_string(a.node) + " and output " + std::to_string(b.port) + " of node " +
                         std::to_string(b.node));
      values_.unite(number(a), number(b));
    }
    return {};
  }

  void unite_elementwise() {
    for (const NodeId id : order_) {
      const Node& node = graph_.node(id);
      if (node.kind != NodeKind::op || node.outputs.size() != 1 || node.inputs.empty()) continue;
      const OperatorDefinition* definition = registry_.find(node.op);
      if (definition == nullptr || !definition->elementwise || !node.outputs[0].known) continue;
      for (const Value& input : node.inputs)
        if (graph_.type(input).known && graph_.type(input).shape == node.outputs[0].shape)
          values_.unite(number(input), number(Value{id, 0}));
      merged_.insert(id);
    }
  }

  [[nodiscard]] TofuCoarsening result() {
    TofuCoarsening coarsening;
    coarsening.merged = merged_.size();
    std::map<std::size_t, std::size_t> tensor_class, operator_class;
    for (std::size_t value = 0; value < value_of_number_.size(); ++value) {
      const Value tensor = value_of_number_[value];
      ++coarsening.values;
      if (!graph_.type(tensor).known) continue;
      const auto [at, fresh] = tensor_class.try_emplace(values_.find(value), tensor_class.size());
      if (fresh) coarsening.first.push_back(tensor);
      coarsening.tensors.emplace(tensor, at->second);
    }
    for (const NodeId id : order_) {
      if (!is_operator(id)) continue;
      ++coarsening.nodes;
      if (merged_.contains(id)) continue;
      const auto [at, fresh] = operator_class.try_emplace(nodes_.find(number(id)), operator_class.size());
      if (fresh) coarsening.classes.push_back({id, 0});
      ++coarsening.classes[at->second].count;
      coarsening.operators.emplace(id, at->second);
    }
    return coarsening;
  }

  const Graph& graph_;
  const OperatorRegistry& registry_;
  const TofuGroups& groups_;
  std::vector<NodeId> order_;
  std::map<Value, std::size_t> value_number_;
  std::vector<Value> value_of_number_;
  std::map<NodeId, std::size_t> node_number_;
  std::vector<std::size_t> kind_;  ///< Per node: equal of equal operators, attributes and types of operands.
  UnionFind values_, nodes_;
  std::set<NodeId> merged_;
};

}  // namespace

Expected<TofuCoarsening> coarsen(const Graph& graph, const OperatorRegistry& registry, const TofuGroups& groups) {
  return Coarsener(graph, registry, groups).run();
}

}  // namespace taso
