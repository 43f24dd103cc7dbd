#include "graph/graph.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "graph/reals.h"
#include "graph/words.h"

namespace taso {
namespace {

Hash128 label_of(const Node& node) {
  Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(node.kind)).add(node.op).add(node.name);
  hasher.add(static_cast<std::uint64_t>(node.attributes.entries().size()));
  for (const auto& [name, value] : node.attributes.entries()) {
    hasher.add(name);
    add_to_hash(hasher, value);
  }
  hasher.add(static_cast<std::uint64_t>(node.outputs.size()));
  for (const TensorType& type : node.outputs) {
    hasher.add(static_cast<std::uint64_t>(type.element)).add(static_cast<std::uint64_t>(type.known ? 1 : 0));
    hasher.add(static_cast<std::uint64_t>(type.shape.size()));
    for (std::int64_t extent : type.shape) hasher.add(extent);
  }
  if (node.constant) hasher.add(node.constant->identity());
  if (node.device >= 0) hasher.add("device").add(static_cast<std::uint64_t>(node.device));
  return hasher.finish();
}

bool same_label(const Node& a, const Node& b) {
  return a.label == b.label && a.kind == b.kind && a.op == b.op && a.name == b.name && a.device == b.device &&
         a.attributes == b.attributes && a.outputs == b.outputs && a.inputs.size() == b.inputs.size();
}

/// Whether a node makes reals of integers and a scale of reals: weights that are kept so are a few bits each, and
/// runtimes know them by this form. Such a node is no weight.
template <class TypeOf>
bool unpacks(const Node& node, const TypeOf& type_of) {
  return node.kind == NodeKind::op && node.inputs.size() > 1 && is_real(node.outputs[0].element) &&
         is_integer(type_of(node.inputs[0]).element) && is_real(type_of(node.inputs[1]).element);
}

}  // namespace

NodeId Graph::add(Node node) {
  bool weights = node.kind == NodeKind::constant || node.kind == NodeKind::op;
  for (const Value& input : node.inputs) {
    TASO_CHECK(contains(input.node) && input.port < slots_[input.node]->outputs.size(), "input of a node is missing");
    weights = weights && slots_[input.node]->weight_only;
  }
  node.weight_only = weights && !unpacks(node, [&](Value value) -> const TensorType& { return type(value); });
  node.label = label_of(node);
  const auto id = static_cast<NodeId>(slots_.size());
  if (node.kind == NodeKind::input) inputs_.push_back(id);
  slots_.push_back(std::make_shared<const Node>(std::move(node)));
  return id;
}

NodeId Graph::add_input(std::string name, TensorType type) {
  Node node;
  node.kind = NodeKind::input;
  node.name = std::move(name);
  node.outputs = {std::move(type)};
  return add(std::move(node));
}

NodeId Graph::add_constant(std::shared_ptr<const ConstantData> constant) {
  Node node;
  node.kind = NodeKind::constant;
  node.outputs = {constant->type()};
  node.constant = std::move(constant);
  return add(std::move(node));
}

std::size_t Graph::size() const {
  return static_cast<std::size_t>(
      std::count_if(slots_.begin(), slots_.end(), [](const auto& slot) { return slot != nullptr; }));
}

void Graph::replace_uses(Value from, Value to) { replace_uses({{from, to}}); }

void Graph::replace_uses(const std::vector<std::pair<Value, Value>>& replacements) {
  auto replaced = [&](Value value) {
    for (const auto& [from, to] : replacements)
      if (from == value) return to;
    return value;
  };
  bool weights_differ = false;
  for (NodeId id = 0; id < slots_.size(); ++id) {
    if (!slots_[id]) continue;
    std::vector<Value> inputs = slots_[id]->inputs;
    for (Value& input : inputs) input = replaced(input);
    if (inputs == slots_[id]->inputs) continue;
    const bool before = slots_[id]->weight_only;
    set_inputs(id, std::move(inputs));
    weights_differ = weights_differ || slots_[id]->weight_only != before;
  }
  for (Value& output : outputs_) output = replaced(output);
  // Whether a node is weight-only shows in its consumers; repeat until nothing changes (orders of ids may not help).
  while (weights_differ) {
    weights_differ = false;
    for (NodeId id = 0; id < slots_.size(); ++id) {
      if (!slots_[id] || slots_[id]->kind != NodeKind::op) continue;
      const bool before = slots_[id]->weight_only;
      const bool weights = std::all_of(slots_[id]->inputs.begin(), slots_[id]->inputs.end(),
                                       [&](Value input) { return slots_[input.node]->weight_only; });
      if (weights == before) continue;
      set_inputs(id, slots_[id]->inputs);
      weights_differ = weights_differ || slots_[id]->weight_only != before;
    }
  }
}

void Graph::replace_node(NodeId id, Node replacement) {
  const Node& old = node(id);
  TASO_CHECK(old.outputs == replacement.outputs, "replace_node changes the types of outputs");
  bool weights = replacement.kind == NodeKind::constant || replacement.kind == NodeKind::op;
  for (const Value& input : replacement.inputs) weights = weights && node(input.node).weight_only;
  replacement.weight_only =
      weights && !unpacks(replacement, [&](Value value) -> const TensorType& { return type(value); });
  replacement.label = label_of(replacement);
  slots_[id] = std::make_shared<const Node>(std::move(replacement));
}

Graph Graph::in_working_types() const {
  Graph result = *this;
  for (std::shared_ptr<const Node>& slot : result.slots_) {
    if (!slot || std::all_of(slot->outputs.begin(), slot->outputs.end(),
                             [](const TensorType& type) { return working_type(type.element) == type.element; }))
      continue;
    Node wide = *slot;
    for (TensorType& type : wide.outputs) type.element = working_type(type.element);
    if (wide.constant) wide.constant = converted(wide.constant, wide.outputs[0].element);
    wide.label = label_of(wide);
    slot = std::make_shared<const Node>(std::move(wide));
  }
  return result;
}

std::optional<ElementType> Graph::narrowest_type() const {
  std::optional<ElementType> narrowest;
  for (const std::shared_ptr<const Node>& slot : slots_) {
    if (!slot) continue;
    for (const TensorType& type : slot->outputs)
      if (is_real(type.element) && (!narrowest || unit_roundoff(type.element) > unit_roundoff(*narrowest)))
        narrowest = type.element;
  }
  return narrowest;
}

void Graph::set_inputs(NodeId id, std::vector<Value> inputs) {
  Node copy = node(id);
  bool weights = copy.kind == NodeKind::constant || copy.kind == NodeKind::op;
  for (const Value& input : inputs) {
    TASO_CHECK(contains(input.node) && input.port < slots_[input.node]->outputs.size(), "input of a node is missing");
    weights = weights && slots_[input.node]->weight_only;
  }
  copy.inputs = std::move(inputs);
  copy.weight_only = weights && !unpacks(copy, [&](Value value) -> const TensorType& { return type(value); });
  slots_[id] = std::make_shared<const Node>(std::move(copy));
}

void Graph::erase(NodeId id) {
  TASO_CHECK(contains(id) && slots_[id]->kind != NodeKind::input, "only nodes that are no graph inputs are erased");
  slots_[id] = nullptr;
}

void Graph::remove_dead(bool keep_opaque) {
  std::vector<char> live(slots_.size(), 0);
  std::vector<NodeId> stack;
  auto visit = [&](NodeId id) {
    if (live[id] == 0) {
      live[id] = 1;
      stack.push_back(id);
    }
  };
  for (const Value& output : outputs_) visit(output.node);
  for (NodeId id : inputs_) visit(id);
  if (keep_opaque)
    for (NodeId id = 0; id < slots_.size(); ++id)
      if (slots_[id] && slots_[id]->kind == NodeKind::opaque) visit(id);
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    for (const Value& input : slots_[id]->inputs) visit(input.node);
  }
  for (NodeId id = 0; id < slots_.size(); ++id)
    if (live[id] == 0) slots_[id] = nullptr;
}

std::vector<NodeId> Graph::topological_order() const {
  struct Open {
    NodeId id;
    const Value* next;
    const Value* end;
  };
  std::vector<NodeId> order;
  order.reserve(slots_.size());
  std::vector<char> state(slots_.size(), 0);  // 0 new, 1 open, 2 done
  std::vector<Open> stack;
  auto open = [&](NodeId id) {
    const auto& inputs = slots_[id]->inputs;
    state[id] = 1;
    stack.push_back({id, inputs.data(), inputs.data() + inputs.size()});
  };
  auto visit = [&](NodeId root) {
    if (state[root] != 0) return;
    open(root);
    while (!stack.empty()) {
      Open& top = stack.back();
      if (top.next == top.end) {
        state[top.id] = 2;
        order.push_back(top.id);
        stack.pop_back();
        continue;
      }
      const NodeId input = (top.next++)->node;
      TASO_CHECK(state[input] != 1, "the graph has a cycle");
      if (state[input] == 0) open(input);
    }
  };
  for (NodeId id : inputs_) visit(id);
  for (const Value& output : outputs_) visit(output.node);
  for (NodeId id = 0; id < slots_.size(); ++id)
    if (slots_[id]) visit(id);
  return order;
}

std::vector<std::vector<std::pair<NodeId, std::uint32_t>>> Graph::consumers() const {
  std::vector<std::vector<std::pair<NodeId, std::uint32_t>>> result(slots_.size());
  for (NodeId id = 0; id < slots_.size(); ++id)
    if (slots_[id])
      for (std::uint32_t i = 0; i < slots_[id]->inputs.size(); ++i)
        result[slots_[id]->inputs[i].node].emplace_back(id, i);
  return result;
}

Consumers::Consumers(const Graph& graph) : bound_(graph.id_bound()), begin_(graph.id_bound() + 1, 0) {
  for (NodeId id = 0; id < bound_; ++id)
    if (graph.contains(id))
      for (const Value& input : graph.node(id).inputs) ++begin_[input.node + 1];
  for (NodeId id = 0; id < bound_; ++id) begin_[id + 1] += begin_[id];
  uses_.resize(begin_[bound_]);
  std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
  for (NodeId id = 0; id < bound_; ++id) {
    if (!graph.contains(id)) continue;
    const auto& inputs = graph.node(id).inputs;
    for (std::uint32_t i = 0; i < inputs.size(); ++i) uses_[next[inputs[i].node]++] = {id, i};
  }
}

std::size_t Consumers::bytes() const {
  return begin_.capacity() * sizeof(begin_[0]) + uses_.capacity() * sizeof(uses_[0]);
}

bool Graph::reaches(NodeId from, NodeId to) const {
  std::vector<char> seen(slots_.size(), 0);
  std::vector<NodeId> stack{to};
  seen[to] = 1;
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (id == from) return true;
    for (const Value& input : node(id).inputs)
      if (seen[input.node] == 0) {
        seen[input.node] = 1;
        stack.push_back(input.node);
      }
  }
  return false;
}

std::vector<NodeId> Graph::opaque_nodes() const {
  std::vector<NodeId> result;
  for (NodeId id = 0; id < slots_.size(); ++id)
    if (slots_[id] && slots_[id]->kind == NodeKind::opaque) result.push_back(id);
  std::sort(result.begin(), result.end(), [&](NodeId a, NodeId b) { return slots_[a]->name < slots_[b]->name; });
  return result;
}

Hash128 Graph::structural_hash() const {
  // Bottom up: a node's hash covers its label and its inputs' hashes and ports.
  std::vector<Hash128> hashes(slots_.size());
  std::vector<std::uint64_t> words;
  auto finish = [&] { return hash_bytes(std::as_bytes(std::span(words))); };
  auto add = [&](const Hash128& hash, std::uint64_t port) {
    words.push_back(hash.high);
    words.push_back(hash.low);
    words.push_back(port);
  };
  for (NodeId id : topological_order()) {
    const Node& n = *slots_[id];
    words.clear();
    add(n.label, n.inputs.size());
    for (const Value& input : n.inputs) add(hashes[input.node], input.port);
    hashes[id] = finish();
  }
  words.clear();
  for (NodeId id : inputs_) add(hashes[id], 0);
  const std::vector<NodeId> opaque = opaque_nodes();
  add({opaque.size(), outputs_.size()}, inputs_.size());
  for (NodeId id : opaque) add(hashes[id], 0);
  for (const Value& output : outputs_) add(hashes[output.node], output.port);
  return finish();
}

bool Graph::equals(const Graph& other) const {
  if (inputs_.size() != other.inputs_.size() || outputs_.size() != other.outputs_.size()) return false;
  std::unordered_map<NodeId, NodeId> image, origin;
  std::vector<std::pair<NodeId, NodeId>> stack;
  auto pair_up = [&](NodeId a, NodeId b) {
    const auto [place, added] = image.emplace(a, b);
    if (!added) return place->second == b;
    if (!origin.emplace(b, a).second || !same_label(*slots_[a], *other.slots_[b])) return false;
    stack.emplace_back(a, b);
    return true;
  };
  const std::vector<NodeId> opaque = opaque_nodes(), other_opaque = other.opaque_nodes();
  if (opaque.size() != other_opaque.size()) return false;
  for (std::size_t i = 0; i < opaque.size(); ++i)
    if (!pair_up(opaque[i], other_opaque[i])) return false;
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (!pair_up(inputs_[i], other.inputs_[i])) return false;
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i].port != other.outputs_[i].port || !pair_up(outputs_[i].node, other.outputs_[i].node)) return false;
  while (!stack.empty()) {
    const auto [a, b] = stack.back();
    stack.pop_back();
    const auto& left = slots_[a]->inputs;
    const auto& right = other.slots_[b]->inputs;
    for (std::size_t i = 0; i < left.size(); ++i)
      if (left[i].port != right[i].port || !pair_up(left[i].node, right[i].node)) return false;
  }
  return true;
}

Status Graph::validate() const {
  for (NodeId id = 0; id < slots_.size(); ++id) {
    if (!slots_[id]) continue;
    for (const Value& input : slots_[id]->inputs)
      if (!contains(input.node) || input.port >= slots_[input.node]->outputs.size())
        return internal_error("node " + std::to_string(id) + " reads a value that does not exist");
  }
  for (const Value& output : outputs_)
    if (!contains(output.node) || output.port >= slots_[output.node]->outputs.size())
      return internal_error("a graph output does not exist");
  std::vector<int> pending(slots_.size(), 0);
  std::vector<NodeId> ready;
  std::size_t live = 0, done = 0;
  for (NodeId id = 0; id < slots_.size(); ++id) {
    if (!slots_[id]) continue;
    ++live;
    pending[id] = static_cast<int>(slots_[id]->inputs.size());
    if (pending[id] == 0) ready.push_back(id);
  }
  const auto users = consumers();
  while (!ready.empty()) {
    const NodeId id = ready.back();
    ready.pop_back();
    ++done;
    for (const auto& [user, position] : users[id])
      if (--pending[user] == 0) ready.push_back(user);
  }
  if (done != live) return internal_error("the graph has a cycle");
  return {};
}

std::string to_string(const Graph& graph) {
  std::string text;
  auto value = [](Value v) { return "%" + std::to_string(v.node) + (v.port == 0 ? "" : "." + std::to_string(v.port)); };
  for (NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    text += "%" + std::to_string(id) + " = ";
    switch (node.kind) {
      case NodeKind::input:
        text += "input \"" + node.name + "\"";
        break;
      case NodeKind::constant:
        text += "constant";
        break;
      case NodeKind::op:
      case NodeKind::opaque: {
        text += node.op + "(";
        for (std::size_t i = 0; i < node.inputs.size(); ++i) text += (i == 0 ? "" : ", ") + value(node.inputs[i]);
        if (!node.attributes.empty()) text += "; " + to_string(node.attributes);
        text += ")";
        break;
      }
    }
    text += " :";
    for (const TensorType& type : node.outputs) text += " " + to_string(type);
    text += "\n";
  }
  text += "outputs";
  for (const Value& output : graph.outputs()) text += " " + value(output);
  return text + "\n";
}

Expected<std::vector<TensorType>> infer_types(const OperatorCatalog& catalog, std::string_view op,
                                              const Attributes& attributes, std::span<const TensorType> inputs,
                                              ElementType element) {
  TASO_ASSIGN(std::vector<TensorType> outputs, catalog.infer(op, attributes, inputs));
  if (inputs.empty())
    for (TensorType& output : outputs) output.element = element;
  return outputs;
}

Expected<NodeId> add_op(Graph& graph, const OperatorCatalog& catalog, std::string_view op, const Attributes& attributes,
                        std::vector<Value> inputs, const NodePlace& place) {
  TASO_ASSIGN(Attributes complete, catalog.complete(op, attributes));
  std::vector<TensorType> types;
  types.reserve(inputs.size());
  for (const Value& input : inputs) types.push_back(graph.type(input));
  TASO_ASSIGN(std::vector<TensorType> outputs, infer_types(catalog, op, complete, types, place.element));
  Node node;
  node.op = op;
  node.attributes = std::move(complete);
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.origin = place.origin;
  node.device = place.device;
  return graph.add(std::move(node));
}

}  // namespace taso
