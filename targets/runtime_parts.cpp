#include "targets/runtime_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace taso {
namespace {

/// A chain is cut after so many operators: what a rewrite changes is measured anew with the chain round it.
constexpr std::size_t longest_chain = 8;
/// Weights of fewer elements may be numbers that a runtime looks at (an exponent, an epsilon): they are kept.
constexpr std::int64_t fewest_elements = 16;

/// Files hold no such node where one is free or can be folded into its readers.
bool is_reshape(const Node& node) { return node.is_op("reshape"); }
bool is_broadcast(const Node& node) { return node.is_op("broadcast"); }
bool is_transpose(const Node& node) { return node.is_op("transpose"); }

bool is_computed(const Node& node) { return node.kind == NodeKind::op && !node.weight_only; }

/// The nodes of a graph with the numbers of those that read them.
class Chains {
 public:
  Chains(const Graph& graph, const OperatorRegistry& registry)
      : graph_(graph),
        registry_(registry),
        consumers_(graph),
        readers_(graph.id_bound(), 0),
        only_reader_(graph.id_bound(), 0),
        place_(graph.id_bound(), nowhere) {
    for (NodeId id = 0; id < graph.id_bound(); ++id) {
      if (!graph.contains(id)) continue;
      NodeId last = id;
      for (const auto& [reader, position] : consumers_.of(id)) {
        if (readers_[id] == 0 || reader != last) ++readers_[id];
        last = reader;
      }
      only_reader_[id] = last;
    }
    for (const Value& output : graph.outputs()) readers_[output.node] += 2;
  }

  std::vector<RuntimePart> find() {
    for (const NodeId id : graph_.topological_order()) {
      const Node& node = graph_.node(id);
      if (!is_computed(node) || is_reshape(node) || is_folded(id)) continue;
      const std::size_t part = part_for(id);
      for (const Value& input : node.inputs) add_folded(input, parts_[part].part);
      parts_[part].part.nodes.push_back(id);
      ++parts_[part].length;
      place_[id] = part;
    }
    std::vector<RuntimePart> found;
    for (Growing& growing : parts_)
      if (growing.length > 0) found.push_back(std::move(growing.part));
    return found;
  }

 private:
  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

  /// Whether a node belongs to whatever reads it.
  [[nodiscard]] bool is_folded(NodeId id) const {
    const Node& node = graph_.node(id);
    if (!is_computed(node) || readers_[id] == 0) return false;
    if (is_broadcast(node)) return all_are_parts(id);
    return is_transpose(node) && readers_[id] == 1 && is_part(only_reader_[id]) &&
           !is_transpose(graph_.node(only_reader_[id])) && !is_broadcast(graph_.node(only_reader_[id]));
  }
  [[nodiscard]] bool is_part(NodeId id) const {
    const Node& node = graph_.node(id);
    return is_computed(node) && !is_reshape(node);
  }
  [[nodiscard]] bool all_are_parts(NodeId id) const {
    return std::all_of(consumers_.of(id).begin(), consumers_.of(id).end(),
                       [&](const auto& use) { return is_part(use.first); }) &&
           std::none_of(graph_.outputs().begin(), graph_.outputs().end(),
                        [&](const Value& output) { return output.node == id; });
  }

  /// Adds what is folded into a reader of `value`, once each.
  void add_folded(Value value, RuntimePart& part) const {
    if (!is_folded(value.node) || std::find(part.nodes.begin(), part.nodes.end(), value.node) != part.nodes.end())
      return;
    for (const Value& input : graph_.node(value.node).inputs) add_folded(input, part);
    part.nodes.push_back(value.node);
  }

  /// The part that a node belongs to: a new one, or one that it continues, into which others are merged that it
  /// continues and that work element by element alone.
  std::size_t part_for(NodeId id) {
    const Node& node = graph_.node(id);
    const bool joins = continues(node);
    std::vector<std::size_t> before;
    for (const Value& input : node.inputs)
      if (joins && ends_in(input, node) && std::find(before.begin(), before.end(), place_[input.node]) == before.end())
        before.push_back(place_[input.node]);
    if (before.empty()) {
      parts_.push_back({{{}, id}, 0, joins});
      return parts_.size() - 1;
    }
    const auto heavy =
        std::find_if(before.begin(), before.end(), [&](std::size_t part) { return !parts_[part].elementwise; });
    const std::size_t part = heavy == before.end() ? before.front() : *heavy;
    for (const std::size_t other : before)
      if (other != part && parts_[other].elementwise && parts_[part].length + parts_[other].length < longest_chain)
        merge(other, part);
    return part;
  }

  /// Whether a value that a node reads is the end of a part that the node may continue.
  [[nodiscard]] bool ends_in(Value value, const Node& node) const {
    const std::size_t part = place_[value.node];
    return part != nowhere && readers_[value.node] == 1 && parts_[part].length < longest_chain &&
           parts_[part].part.nodes.back() == value.node && node.outputs.size() == 1 &&
           graph_.node(value.node).outputs.size() == 1 && graph_.type(value).shape == node.outputs[0].shape;
  }

  /// Moves the nodes of a part in front of those of another one.
  void merge(std::size_t from, std::size_t to) {
    std::vector<NodeId> nodes = std::move(parts_[from].part.nodes);
    for (const NodeId id : nodes)
      if (place_[id] == from) place_[id] = to;
    std::vector<NodeId>& all = parts_[to].part.nodes;
    // What is folded into both stands there once.
    std::erase_if(all, [&](NodeId id) { return std::find(nodes.begin(), nodes.end(), id) != nodes.end(); });
    all.insert(all.begin(), nodes.begin(), nodes.end());
    parts_[to].length += parts_[from].length;
    parts_[from] = {};
  }

  /// Whether a node works element by element, or reads besides one tensor of the result's shape only scalars and
  /// vectors that are weights, as normalizations do.
  [[nodiscard]] bool continues(const Node& node) const {
    const OperatorDefinition* const definition = registry_.find(node.op);
    if (definition == nullptr || is_transpose(node)) return false;
    if (definition->elementwise) return true;
    std::size_t tensors = 0;
    for (const Value& input : node.inputs) {
      if (graph_.node(input.node).weight_only && graph_.type(input).shape.size() <= 1) continue;
      if (graph_.type(input).shape != node.outputs[0].shape) return false;
      ++tensors;
    }
    return tensors == 1;
  }

  const Graph& graph_;
  const OperatorRegistry& registry_;
  Consumers consumers_;
  std::vector<std::size_t> readers_;  ///< Nodes that read an output; of what the graph gives, at least 2.
  std::vector<NodeId> only_reader_;   ///< Where there is one.
  std::vector<std::size_t> place_;    ///< The part of a chain's node.
  /// A part to which nodes may be added yet; none any more once it has no nodes.
  struct Growing {
    RuntimePart part;
    std::size_t length = 0;    ///< Its nodes without what is folded into them.
    bool elementwise = false;  ///< All of them continue others, or might.
  };
  std::vector<Growing> parts_;
};

/// Of a piece, so many parts before the one that it is made for at most, and so many after it.
constexpr std::size_t most_neighbours = 3;

/// Which parts read what other parts make, directly or through reshapes.
class Neighbours {
 public:
  Neighbours(const Graph& graph, std::span<const RuntimePart> parts)
      : graph_(graph), parts_(parts), consumers_(graph), places_(graph.id_bound(), 0), parts_of_(graph.id_bound()) {
    std::size_t place = 0;
    for (const NodeId id : graph.topological_order()) places_[id] = place++;
    for (std::size_t i = 0; i < parts.size(); ++i)
      for (const NodeId id : parts[i].nodes) parts_of_[id].push_back(i);
  }

  [[nodiscard]] std::vector<RuntimePiece> pieces() const {
    std::vector<RuntimePiece> pieces;
    for (std::size_t part = 0; part < parts_.size(); ++part) pieces.push_back(around(part));
    return pieces;
  }

 private:
  [[nodiscard]] RuntimePiece around(std::size_t part) const {
    const std::vector<NodeId>& own = parts_[part].nodes;
    std::set<std::size_t> before, after, all{part};
    for (const NodeId id : own)
      for (const Value& input : graph_.node(id).inputs)
        if (std::find(own.begin(), own.end(), input.node) == own.end()) add_before(part, input.node, before);
    add_after(part, own.back(), after);
    all.insert(before.begin(), before.end());
    all.insert(after.begin(), after.end());
    std::set<NodeId> nodes;
    for (const std::size_t one : all) nodes.insert(parts_[one].nodes.begin(), parts_[one].nodes.end());
    add_reshapes_between(nodes);
    RuntimePiece piece{{all.begin(), all.end()}, {nodes.begin(), nodes.end()}, outputs_of(nodes)};
    std::sort(piece.nodes.begin(), piece.nodes.end(), [&](NodeId a, NodeId b) { return places_[a] < places_[b]; });
    return piece;
  }

  /// Whether a node is a reshape that belongs to no part.
  [[nodiscard]] bool is_between(NodeId id) const {
    return is_computed(graph_.node(id)) && is_reshape(graph_.node(id)) && parts_of_[id].empty();
  }
  /// What makes the elements that a node gives: itself, or what its reshapes read.
  [[nodiscard]] NodeId source_of(NodeId id) const {
    while (is_between(id)) id = graph_.node(id).inputs[0].node;
    return id;
  }

  static void add(std::size_t neighbour, std::size_t part, std::set<std::size_t>& found) {
    if (neighbour != part && found.size() < most_neighbours) found.insert(neighbour);
  }
  /// The part that makes what a node gives.
  void add_before(std::size_t part, NodeId id, std::set<std::size_t>& found) const {
    const NodeId source = source_of(id);
    if (!parts_of_[source].empty()) add(parts_of_[source].front(), part, found);
  }
  /// The parts that read what a node gives.
  void add_after(std::size_t part, NodeId id, std::set<std::size_t>& found) const {
    for (const auto& [reader, position] : consumers_.of(id)) {
      if (is_between(reader)) add_after(part, reader, found);
      for (const std::size_t neighbour : parts_of_[reader]) add(neighbour, part, found);
    }
  }
  /// The reshapes through which nodes read others of them.
  void add_reshapes_between(std::set<NodeId>& nodes) const {
    std::set<NodeId> between;
    for (const NodeId id : nodes)
      for (const Value& input : graph_.node(id).inputs)
        if (nodes.contains(source_of(input.node)))
          for (NodeId reshape = input.node; is_between(reshape); reshape = graph_.node(reshape).inputs[0].node)
            between.insert(reshape);
    nodes.merge(between);
  }

  [[nodiscard]] std::vector<Value> outputs_of(const std::set<NodeId>& nodes) const {
    std::set<Value> outputs;
    for (const NodeId id : nodes)
      for (const auto& [reader, position] : consumers_.of(id))
        if (!nodes.contains(reader) && !folds(reader, id)) outputs.insert(graph_.node(reader).inputs[position]);
    for (const Value& output : graph_.outputs())
      if (nodes.contains(output.node)) outputs.insert(output);
    return {outputs.begin(), outputs.end()};
  }
  /// Whether the part of a reader has a node of its own that it reads, as it has broadcasts.
  [[nodiscard]] bool folds(NodeId reader, NodeId id) const {
    return std::any_of(parts_of_[reader].begin(), parts_of_[reader].end(), [&](std::size_t part) {
      return std::find(parts_of_[id].begin(), parts_of_[id].end(), part) != parts_of_[id].end();
    });
  }

  const Graph& graph_;
  std::span<const RuntimePart> parts_;
  Consumers consumers_;
  std::vector<std::size_t> places_;                 ///< In the topological order.
  std::vector<std::vector<std::size_t>> parts_of_;  ///< Per node: those that it belongs to, or is folded into.
};

/// What a part reads is an activation, a weight whose contents do not matter, or a weight that is kept with what it is
/// computed from.
enum class Reading : std::uint8_t { activation, any_weight, kept_weight };

Reading reading_of(const Graph& graph, Value value) {
  const Node& node = graph.node(value.node);
  const TensorType& type = graph.type(value);
  if (!node.weight_only) return Reading::activation;
  if (type.element != ElementType::f32 || type.elements() < fewest_elements) return Reading::kept_weight;
  // What only moves the elements of a weight is written into the file as it is, or folded into what reads it.
  const bool moved = is_broadcast(node) || is_transpose(node) || is_reshape(node);
  return moved ? Reading::kept_weight : Reading::any_weight;
}

void add_type(Hasher& hasher, const TensorType& type) {
  hasher.add(static_cast<int>(type.element)).add(static_cast<std::uint64_t>(type.shape.size()));
  for (const std::int64_t extent : type.shape) hasher.add(extent);
}

/// What a kept weight is computed from.
void add_weight(Hasher& hasher, const Graph& graph, Value value) {
  hasher.add(static_cast<int>(reading_of(graph, value))).add(value.port);
  if (reading_of(graph, value) == Reading::any_weight) return add_type(hasher, graph.type(value));
  const Node& node = graph.node(value.node);
  hasher.add(node.label);
  for (const Value& input : node.inputs) add_weight(hasher, graph, input);
}

/// Makes a part a graph of its own.
class Extraction {
 public:
  Extraction(const Graph& graph, const OperatorRegistry& registry) : graph_(graph), registry_(registry) {}

  /// Of nodes in an order in which each is after those that it reads. `op`: of the node that they are named after.
  Expected<StandalonePart> run(const std::vector<NodeId>& nodes, const std::vector<Value>& outputs, std::string op) {
    result_.op = std::move(op);
    std::string text;
    for (const NodeId id : nodes) {
      TASO_ASSIGN(const std::string line, add_node(id));
      text += (text.empty() ? "" : " ; ") + line;
    }
    for (const Value& output : outputs) {
      result_.graph.add_output({nodes_.at(output.node), output.port});
      result_.bytes += static_cast<double>(graph_.type(output).bytes());
    }
    for (std::int64_t& bound : result_.bounds) bound = bound == 0 ? 2 : bound;
    result_.text = std::move(text);
    return std::move(result_);
  }

 private:
  /// Adds a node with all that it reads; how it reads in the text.
  Expected<std::string> add_node(NodeId id) {
    const Node& node = graph_.node(id);
    Node copy = node;
    copy.origin = copy.device = -1;
    std::vector<TensorType> types;
    std::string operands;
    for (Value& input : copy.inputs) {
      types.push_back(graph_.type(input));
      const auto [value, text] = read(input);
      input = value;
      operands += (operands.empty() ? "" : ", ") + text;
    }
    TASO_ASSIGN(const Work work, registry_.work(node.op, node.attributes, types));
    if (!is_broadcast(node)) result_.flops += work.flops;
    const std::vector<std::int64_t> bounds = registry_.index_bounds(node.op, node.attributes, types);
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      const auto input = input_numbers_.find(copy.inputs[i].node);
      if (bounds[i] == 0 || input == input_numbers_.end()) continue;
      std::int64_t& least = result_.bounds[input->second];
      least = least == 0 ? bounds[i] : std::min(least, bounds[i]);
    }
    const std::string attributes = node.attributes.empty() ? "" : "; " + to_string(node.attributes);
    nodes_[id] = result_.graph.add(std::move(copy));
    return fmt::format("%{} = {}({}{})", names_.emplace(id, names_.size()).first->second, node.op, operands,
                       attributes);
  }

  /// The value in the part that stands for one that a node of it reads, and its text.
  std::pair<Value, std::string> read(Value value) {
    if (const auto inside = nodes_.find(value.node); inside != nodes_.end())
      return {{inside->second, value.port},
              fmt::format("%{}{}", names_.at(value.node), value.port == 0 ? "" : "." + std::to_string(value.port))};
    const TensorType& type = graph_.type(value);
    const std::string shape = std::string(taso::to_string(type.element)) + taso::to_string(type.shape);
    switch (reading_of(graph_, value)) {
      case Reading::activation:
        return {add_input(value, StandalonePart::Role::activation), fmt::format("x{} {}", number_, shape)};
      case Reading::any_weight:
        return {add_input(value, StandalonePart::Role::weight), fmt::format("w{} {}", number_, shape)};
      case Reading::kept_weight: {
        Hasher hasher;
        add_weight(hasher, graph_, value);
        result_.bytes += static_cast<double>(type.bytes());
        return {keep(value), fmt::format("c{} {}", hasher.finish().to_string().substr(0, 16), shape)};
      }
    }
    return {};
  }

  /// An input of the part, made once; number_ is its number.
  Value add_input(Value value, StandalonePart::Role role) {
    const auto [place, fresh] = inputs_.emplace(value, Value());
    if (fresh) {
      const TensorType& type = graph_.type(value);
      const std::size_t number = result_.roles.size();
      place->second = {result_.graph.add_input("x" + std::to_string(number), type), 0};
      input_numbers_[place->second.node] = number;
      result_.roles.push_back(role);
      result_.bounds.push_back(0);
      result_.bytes += static_cast<double>(type.bytes());
    }
    number_ = input_numbers_.at(place->second.node);
    return place->second;
  }

  /// A copy of a weight with all that it is computed from; parts of it whose contents do not matter are inputs.
  Value keep(Value value) {
    if (reading_of(graph_, value) == Reading::any_weight) return add_input(value, StandalonePart::Role::weight);
    const auto [place, fresh] = kept_.emplace(value.node, 0);
    if (fresh) {
      Node copy = graph_.node(value.node);
      copy.origin = copy.device = -1;
      for (Value& input : copy.inputs) input = keep(input);
      place->second = result_.graph.add(std::move(copy));
    }
    return {place->second, value.port};
  }

  const Graph& graph_;
  const OperatorRegistry& registry_;
  StandalonePart result_;
  std::map<NodeId, NodeId> nodes_, kept_;
  std::map<NodeId, std::size_t> names_;  ///< Numbers of the part's nodes, in its text.
  std::map<Value, Value> inputs_;
  std::map<NodeId, std::size_t> input_numbers_;
  std::size_t number_ = 0;
};

}  // namespace

std::vector<RuntimePart> parts_of(const Graph& graph, const OperatorRegistry& registry) {
  return Chains(graph, registry).find();
}

Hash128 signature_of(const Graph& graph, const RuntimePart& part) {
  Hasher hasher;
  std::map<Value, std::size_t> inputs;
  for (const NodeId id : part.nodes) {
    const Node& node = graph.node(id);
    hasher.add(node.label).add(static_cast<std::uint64_t>(node.inputs.size()));
    for (const Value& input : node.inputs) {
      const auto inside = std::find(part.nodes.begin(), part.nodes.end(), input.node);
      if (inside != part.nodes.end()) {
        hasher.add(-1).add(static_cast<std::int64_t>(inside - part.nodes.begin())).add(input.port);
        continue;
      }
      const Reading reading = reading_of(graph, input);
      if (reading == Reading::kept_weight) {
        add_weight(hasher, graph, input);
        continue;
      }
      const auto [place, fresh] = inputs.emplace(input, inputs.size());
      hasher.add(static_cast<int>(reading)).add(static_cast<std::uint64_t>(place->second));
      if (fresh) add_type(hasher, graph.type(input));
    }
  }
  return hasher.finish();
}

Expected<StandalonePart> standalone(const Graph& graph, const RuntimePart& part, const OperatorRegistry& registry) {
  std::vector<Value> outputs;
  const NodeId last = part.nodes.back();
  for (std::uint32_t port = 0; port < graph.node(last).outputs.size(); ++port) outputs.push_back({last, port});
  return Extraction(graph, registry).run(part.nodes, outputs, graph.node(part.main).op);
}

std::vector<RuntimePiece> pieces_of(const Graph& graph, std::span<const RuntimePart> parts) {
  return Neighbours(graph, parts).pieces();
}

Expected<StandalonePart> standalone(const Graph& graph, const RuntimePiece& piece, const OperatorRegistry& registry) {
  return Extraction(graph, registry).run(piece.nodes, piece.outputs, "piece");
}

}  // namespace taso
