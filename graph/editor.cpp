#include "graph/editor.h"

#include <algorithm>

namespace taso {
namespace {

using Sizes = std::vector<std::int64_t>;

}  // namespace

GraphEditor::GraphEditor(Graph& graph, const OperatorCatalog& catalog, const Consumers* consumers)
    : graph_(graph),
      catalog_(catalog),
      old_bound_(graph.id_bound()),
      own_(consumers == nullptr ? Consumers(graph) : Consumers()),
      old_users_(consumers == nullptr ? own_ : *consumers) {
  TASO_CHECK(old_users_.id_bound() == old_bound_, "consumers of another graph");
}

std::vector<NodeId> GraphEditor::users(NodeId id) const {
  std::vector<NodeId> result;
  auto take = [&](NodeId user) {
    if (!graph_.contains(user)) return;
    for (const Value& input : graph_.node(user).inputs)
      if (input.node == id) {
        result.push_back(user);
        return;
      }
  };
  if (id < old_bound_)
    for (const auto& [user, position] : old_users_.of(id)) take(user);
  if (const auto more = extra_.find(id); more != extra_.end())
    for (const NodeId user : more->second) take(user);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

bool GraphEditor::is_output(Value value) const {
  return std::find(graph_.outputs().begin(), graph_.outputs().end(), value) != graph_.outputs().end();
}

bool GraphEditor::same_application(const Node& a, const Node& b) const {
  if (a.kind != b.kind || a.kind == NodeKind::input || a.kind == NodeKind::opaque) return false;
  if (a.kind == NodeKind::constant) return a.label == b.label;
  if (a.inputs.size() != b.inputs.size() || a.device != b.device || a.op != b.op || a.attributes != b.attributes)
    return false;
  if (a.inputs == b.inputs) return true;
  return a.inputs.size() == 2 && a.inputs[0] == b.inputs[1] && a.inputs[1] == b.inputs[0] &&
         catalog_.is_commutative(a.op);
}

std::optional<NodeId> GraphEditor::find_equal(const Node& node, NodeId self) const {
  if (node.inputs.empty()) {
    if (!leaves_known_) {
      leaves_known_ = true;
      for (NodeId id = 0; id < graph_.id_bound(); ++id)
        if (graph_.contains(id) && graph_.node(id).inputs.empty() &&
            (graph_.node(id).kind == NodeKind::constant || graph_.node(id).kind == NodeKind::op))
          leaves_.emplace(graph_.node(id).label, id);
    }
    const auto leaf = leaves_.find(node.label);
    if (leaf == leaves_.end() || leaf->second == self || !graph_.contains(leaf->second)) return std::nullopt;
    return leaf->second;
  }
  // An equal node reads the same values: look among the users of the one with the fewest.
  auto count = [&](Value value) {
    const auto more = extra_.find(value.node);
    return (value.node < old_bound_ ? old_users_.of(value.node).size() : 0) +
           (more == extra_.end() ? 0 : more->second.size());
  };
  Value rarest = node.inputs[0];
  std::size_t fewest = count(rarest);
  for (const Value& input : node.inputs)
    if (const std::size_t uses = count(input); uses < fewest) {
      fewest = uses;
      rarest = input;
    }
  std::optional<NodeId> best;
  auto consider = [&](NodeId user) {
    if (user == self || !graph_.contains(user) || (best && *best <= user)) return;
    if (same_application(graph_.node(user), node)) best = user;
  };
  if (rarest.node < old_bound_)
    for (const auto& [user, position] : old_users_.of(rarest.node)) consider(user);
  if (const auto more = extra_.find(rarest.node); more != extra_.end())
    for (const NodeId user : more->second) consider(user);
  return best;
}

Expected<NodeId> GraphEditor::add_op(std::string_view op, const Attributes& attributes, std::vector<Value> inputs,
                                     const NodePlace& place) {
  TASO_ASSIGN(Attributes complete, catalog_.complete(op, attributes));
  Node node;
  node.op = op;
  node.attributes = std::move(complete);
  node.inputs = std::move(inputs);
  node.origin = place.origin;
  node.device = place.device;
  if (!node.inputs.empty())
    if (const auto equal = find_equal(node, static_cast<NodeId>(-1))) return *equal;
  std::vector<TensorType> types;
  types.reserve(node.inputs.size());
  for (const Value& input : node.inputs) types.push_back(graph_.type(input));
  TASO_ASSIGN(node.outputs, infer_types(catalog_, op, node.attributes, types, place.element));
  const NodeId id = graph_.add(std::move(node));
  const Node& added = graph_.node(id);
  if (added.inputs.empty()) {
    // The label of a node without inputs is known only now.
    if (const auto equal = find_equal(added, id)) {
      graph_.erase(id);
      return *equal;
    }
    leaves_[added.label] = id;
  }
  for (const Value& input : added.inputs) extra_[input.node].push_back(id);
  return id;
}

void GraphEditor::touch(NodeId id) { pending_.push_back(id); }

void GraphEditor::change_inputs(NodeId id, std::vector<Value> inputs) {
  const bool weight_only = graph_.node(id).weight_only;
  for (const Value& input : graph_.node(id).inputs) suspects_.push_back(input.node);
  graph_.set_inputs(id, std::move(inputs));
  for (const Value& input : graph_.node(id).inputs) extra_[input.node].push_back(id);
  if (id < old_bound_) changed_.push_back(id);
  if (graph_.node(id).weight_only != weight_only) propagate_weight_only(id);
  touch(id);
}

void GraphEditor::propagate_weight_only(NodeId id) {
  std::vector<NodeId> stack{id};
  while (!stack.empty()) {
    const NodeId top = stack.back();
    stack.pop_back();
    for (const NodeId user : users(top)) {
      const bool before = graph_.node(user).weight_only;
      graph_.set_inputs(user, graph_.node(user).inputs);
      if (graph_.node(user).weight_only == before) continue;
      if (user < old_bound_) changed_.push_back(user);
      touch(user);
      stack.push_back(user);
    }
  }
}

void GraphEditor::replace(const std::vector<std::pair<Value, Value>>& replacements, const std::vector<NodeId>& except) {
  auto replaced = [&](Value value) {
    for (const auto& [from, to] : replacements)
      if (from == value) return to;
    return value;
  };
  replaced_.insert(replaced_.end(), replacements.begin(), replacements.end());
  std::vector<NodeId> affected;
  for (const auto& [from, to] : replacements) {
    const std::vector<NodeId> readers = users(from.node);
    affected.insert(affected.end(), readers.begin(), readers.end());
    suspects_.push_back(from.node);
  }
  std::sort(affected.begin(), affected.end());
  affected.erase(std::unique(affected.begin(), affected.end()), affected.end());
  for (const NodeId id : affected) {
    if (std::find(except.begin(), except.end(), id) != except.end()) continue;
    std::vector<Value> inputs = graph_.node(id).inputs;
    bool differs = false;
    for (Value& input : inputs) {
      const Value now = replaced(input);
      differs = differs || now != input;
      input = now;
    }
    if (differs) change_inputs(id, std::move(inputs));
  }
  std::vector<Value> outputs = graph_.outputs();
  for (Value& output : outputs) output = replaced(output);
  if (outputs != graph_.outputs()) graph_.set_outputs(std::move(outputs));
}

bool GraphEditor::has_cycle_above(const std::vector<NodeId>& nodes) const {
  std::vector<char> state(graph_.id_bound(), 0);  // 0 new, 1 open, 2 done
  std::vector<std::pair<NodeId, std::size_t>> stack;
  for (const NodeId root : nodes) {
    if (state[root] != 0) continue;
    state[root] = 1;
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [id, position] = stack.back();
      const auto& inputs = graph_.node(id).inputs;
      if (position == inputs.size()) {
        state[id] = 2;
        stack.pop_back();
        continue;
      }
      const NodeId input = inputs[position++].node;
      if (state[input] == 1) return true;
      if (state[input] == 0) {
        state[input] = 1;
        stack.emplace_back(input, 0);
      }
    }
  }
  return false;
}

void GraphEditor::merge(NodeId from, NodeId to) {
  std::vector<std::pair<Value, Value>> replacements;
  for (std::uint32_t port = 0; port < graph_.node(from).outputs.size(); ++port)
    replacements.push_back({{from, port}, {to, port}});
  replace(replacements, {});
}

bool GraphEditor::flatten_associative(NodeId id) {
  const Node& node = graph_.node(id);
  if (node.inputs.size() == 1) {
    replace({{Value{id, 0}, node.inputs[0]}}, {});
    return true;
  }
  std::vector<Value> inputs;
  bool differs = false;
  for (const Value& input : node.inputs) {
    const Node& inner = graph_.node(input.node);
    if (can_absorb(node, input.node)) {
      inputs.insert(inputs.end(), inner.inputs.begin(), inner.inputs.end());
      differs = true;
    } else {
      inputs.push_back(input);
    }
  }
  if (differs) change_inputs(id, std::move(inputs));
  return differs;
}

bool GraphEditor::flattens_into(NodeId id, NodeId outer_id) const {
  const Node& node = graph_.node(id);
  const Node& outer = graph_.node(outer_id);
  if (node.inputs.size() != 1 || node.inputs[0].node != outer_id || !outer.is_op(node.op) ||
      outer.device != node.device)
    return false;
  const Value input = node.inputs[0];
  if (is_output(input)) return false;
  for (const NodeId user : users(outer_id)) {
    const auto& reads = graph_.node(user).inputs;
    if (user != id && std::find(reads.begin(), reads.end(), input) != reads.end()) return false;
  }
  const std::string& list = catalog_.pieces(node.op)->sizes;
  const AttributeValue* mine = node.attributes.find(list);
  const AttributeValue* theirs = outer.attributes.find(list);
  if (mine == nullptr || theirs == nullptr || !std::holds_alternative<Sizes>(*mine) ||
      !std::holds_alternative<Sizes>(*theirs) || input.port >= std::get<Sizes>(*theirs).size())
    return false;
  Attributes expected = outer.attributes;
  expected.set(list, *mine);
  return expected == node.attributes;
}

bool GraphEditor::flatten_coassociative(NodeId id) {
  const Node& node = graph_.node(id);
  const Value input = node.inputs[0];
  if (node.outputs.size() == 1 && node.outputs[0] == graph_.type(input)) {
    replace({{Value{id, 0}, input}}, {});
    return true;
  }
  if (!flattens_into(id, input.node)) return false;
  const NodeId outer_id = input.node;
  const Node& outer = graph_.node(outer_id);
  const auto inner_count = static_cast<std::uint32_t>(node.outputs.size());
  const auto outer_count = static_cast<std::uint32_t>(outer.outputs.size());
  const std::string& list = catalog_.pieces(node.op)->sizes;
  const Sizes& inner_sizes = node.attributes.integers(list);
  Sizes sizes = outer.attributes.integers(list);
  sizes.erase(sizes.begin() + input.port);
  sizes.insert(sizes.begin() + input.port, inner_sizes.begin(), inner_sizes.end());
  Attributes attributes = outer.attributes;
  attributes.set(list, std::move(sizes));
  const Expected<NodeId> flat = add_op(node.op, attributes, outer.inputs, {outer.origin, outer.device});
  if (!flat) return false;
  std::vector<std::pair<Value, Value>> replacements;
  for (std::uint32_t port = 0; port < outer_count; ++port)
    if (port != input.port)
      replacements.push_back({{outer_id, port}, {*flat, port < input.port ? port : port + inner_count - 1}});
  for (std::uint32_t port = 0; port < inner_count; ++port)
    replacements.push_back({{id, port}, {*flat, input.port + port}});
  replace(replacements, {});
  touch(*flat);
  return true;
}

bool GraphEditor::can_absorb(const Node& user, NodeId id) const {
  const Node& inner = graph_.node(id);
  return inner.is_op(user.op) && inner.device == user.device && inner.attributes == user.attributes &&
         (inner.weight_only || (!is_output({id, 0}) && users(id).size() == 1));
}

void GraphEditor::erase_dead() {
  while (!suspects_.empty()) {
    const NodeId id = suspects_.back();
    suspects_.pop_back();
    if (!graph_.contains(id)) continue;
    const Node& node = graph_.node(id);
    if (node.kind != NodeKind::op && node.kind != NodeKind::constant) continue;
    const bool used = std::any_of(graph_.outputs().begin(), graph_.outputs().end(),
                                  [&](Value output) { return output.node == id; }) ||
                      !users(id).empty();
    if (used) {
      // With fewer users it may now be absorbed by one that is left.
      if (node.kind == NodeKind::op && (catalog_.is_associative(node.op) || catalog_.pieces(node.op) != nullptr))
        touch(id);
      continue;
    }
    for (const Value& input : node.inputs) suspects_.push_back(input.node);
    if (id < old_bound_) removed_.push_back(id);
    graph_.erase(id);
  }
}

void GraphEditor::normalize() {
  while (true) {
    erase_dead();
    if (pending_.empty()) return;
    const NodeId id = pending_.front();
    pending_.pop_front();
    if (!graph_.contains(id)) continue;
    const Node& node = graph_.node(id);
    if (node.kind != NodeKind::op && node.kind != NodeKind::constant) continue;
    if (const auto equal = find_equal(node, id)) {
      const NodeId kept = std::min(id, *equal);
      merge(std::max(id, *equal), kept);
      touch(kept);
      continue;
    }
    if (node.kind != NodeKind::op) continue;
    if (catalog_.is_associative(node.op)) {
      if (node.inputs.empty() || flatten_associative(id)) continue;
      for (const NodeId user : users(id))
        if (can_absorb(graph_.node(user), id)) touch(user);
    } else if (catalog_.pieces(node.op) != nullptr) {
      if (node.inputs.size() != 1 || flatten_coassociative(id)) continue;
      for (const NodeId user : users(id))
        if (graph_.node(user).is_op(node.op) && flattens_into(user, id)) touch(user);
    }
  }
}

}  // namespace taso
