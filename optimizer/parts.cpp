#include "optimizer/parts.h"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_set>
#include <utility>

#include "support/hash.h"

namespace taso {
namespace {

/// A node as it is told in a graph in normal form.
Hash128 appearance(const Node& node, std::span<const Value> inputs) {
  Hasher hasher;
  hasher.add(node.label);
  for (const Value& input : inputs) hasher.add(std::uint64_t{input.node}).add(std::uint64_t{input.port});
  return hasher.finish();
}

/// Makes the graph of a part, node by node.
class PartMaker {
 public:
  PartMaker(const Graph& whole, GraphPart& part) : whole_(whole), part_(part) {}

  /// Adds a node of the part, whose inputs inside the part were added before.
  void add(NodeId id) {
    // Inputs and weights come first: nodes of the part only ever read smaller ids.
    const Node& node = whole_.node(id);
    std::vector<Value> inputs;
    inputs.reserve(node.inputs.size());
    for (const Value& input : node.inputs) inputs.push_back(operand(input));
    copy(id, std::move(inputs));
  }

  void finish() { part_.signature = signature_.finish(); }

  [[nodiscard]] Value place(Value value) const { return {places_.at(value.node), value.port}; }

 private:
  /// A value that a node of the part reads.
  Value operand(Value value) {
    if (places_.contains(value.node)) return place(value);
    if (whole_.node(value.node).weight_only) {
      add(value.node);
      return place(value);
    }
    const auto place = inputs_.find(key(value));
    if (place != inputs_.end()) return {place->second, 0};
    const TensorType& type = whole_.type(value);
    const NodeId id = part_.graph.add_input("in" + std::to_string(part_.inputs.size()), type);
    part_.inputs.push_back(value);
    inputs_.emplace(key(value), id);
    signature_.add("input").add(to_string(type));
    return {id, 0};
  }

  void copy(NodeId id, std::vector<Value> inputs) {
    Node node = whole_.node(id);
    node.inputs = std::move(inputs);
    if (node.kind == NodeKind::constant)
      signature_.add("constant").add(to_string(node.outputs[0]));
    else
      signature_.add(appearance(node, node.inputs));
    places_.emplace(id, part_.graph.add(std::move(node)));
  }

  static std::uint64_t key(Value value) { return (static_cast<std::uint64_t>(value.node) << 32) | value.port; }

  const Graph& whole_;
  GraphPart& part_;
  Hasher signature_;
  std::unordered_map<NodeId, NodeId> places_;
  std::unordered_map<std::uint64_t, NodeId> inputs_;
};

bool works(const Node& node) { return node.kind != NodeKind::input && !node.weight_only; }

}  // namespace

std::size_t working_nodes(const Graph& graph) {
  std::size_t count = 0;
  for (NodeId id = 0; id < graph.id_bound(); ++id)
    if (graph.contains(id) && works(graph.node(id))) ++count;
  return count;
}

std::vector<std::vector<NodeId>> cut_into_ranges(const Graph& graph, std::size_t size, bool shifted) {
  TASO_CHECK(size >= 2, "parts of fewer than two nodes");
  std::vector<NodeId> order = graph.topological_order();
  std::erase_if(order, [&](NodeId id) { return !works(graph.node(id)); });
  // crossing[i]: bytes that are made before position i and read from there on.
  std::vector<double> crossing(order.size() + 1, 0);
  {
    std::vector<std::size_t> position(graph.id_bound(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
    std::vector<std::vector<std::size_t>> last(order.size());  // Per port: the last position that reads it.
    for (std::size_t i = 0; i < order.size(); ++i) last[i].assign(graph.node(order[i]).outputs.size(), i);
    for (std::size_t i = 0; i < order.size(); ++i)
      for (const Value& input : graph.node(order[i]).inputs)
        if (works(graph.node(input.node))) {
          std::size_t& reader = last[position[input.node]].at(input.port);
          reader = std::max(reader, i);
        }
    // A tensor of unknown size counts as one of a megabyte.
    const auto bytes = [&](const TensorType& type) { return type.known ? static_cast<double>(type.bytes()) + 1 : 1e6; };
    std::vector<double> change(order.size() + 2, 0);
    for (std::size_t i = 0; i < order.size(); ++i)
      for (std::size_t port = 0; port < last[i].size(); ++port)
        if (last[i][port] > i) {
          const double crossed = bytes(graph.node(order[i]).outputs[port]);
          change[i + 1] += crossed;
          change[last[i][port] + 1] -= crossed;
        }
    double now = 0;
    for (std::size_t i = 0; i <= order.size(); ++i) crossing[i] = now += change[i];
  }
  std::vector<std::vector<NodeId>> ranges;
  std::size_t begin = 0;
  std::size_t wanted = shifted ? std::max<std::size_t>(1, size / 2) : size;
  while (begin < order.size()) {
    std::size_t end = order.size();
    if (order.size() - begin > wanted + wanted / 2) {
      const std::size_t first = begin + std::max<std::size_t>(1, wanted / 2);
      const auto off = [&](std::size_t at) { return at > begin + wanted ? at - begin - wanted : begin + wanted - at; };
      end = first;
      for (std::size_t at = first; at <= begin + wanted + wanted / 2; ++at)
        if (crossing[at] < crossing[end] || (crossing[at] == crossing[end] && off(at) < off(end))) end = at;
    }
    ranges.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(begin),
                        order.begin() + static_cast<std::ptrdiff_t>(end));
    begin = end;
    wanted = size;
  }
  return ranges;
}

GraphPart extract_part(const Graph& graph, std::span<const NodeId> range) {
  GraphPart part;
  // The order in the graph as it is now: what stood there before may have been rewritten.
  std::unordered_set<NodeId> inside;
  for (const NodeId id : range)
    if (graph.contains(id) && works(graph.node(id))) inside.insert(id);
  PartMaker maker(graph, part);
  std::vector<NodeId> order;
  for (const NodeId id : graph.topological_order())
    if (inside.contains(id)) {
      maker.add(id);
      order.push_back(id);
    }
  const auto consumers = graph.consumers();
  for (const NodeId id : order)
    for (std::uint32_t port = 0; port < graph.node(id).outputs.size(); ++port) {
      const Value value{id, port};
      bool leaves = std::find(graph.outputs().begin(), graph.outputs().end(), value) != graph.outputs().end();
      for (const auto& [consumer, position] : consumers[id])
        leaves = leaves || (graph.node(consumer).inputs[position] == value && !inside.contains(consumer));
      if (leaves) part.graph.add_output(maker.place(value));
    }
  maker.finish();
  Hasher hasher;
  hasher.add(part.signature);
  for (const Value& output : part.graph.outputs())
    hasher.add(std::uint64_t{output.node}).add(std::uint64_t{output.port});
  part.signature = hasher.finish();
  return part;
}

Value PartPlace::translate(Value value) const {
  const Value place = places_[value.node];
  return {place.node, place.port + value.port};  // an input has one port, and stands for any one of the whole
}

std::optional<PartPlace> PartPlace::find(const Graph& part, const std::vector<Value>& inputs, const Graph& whole,
                                         const OperatorCatalog& catalog) {
  std::unordered_map<Hash128, NodeId> nodes;
  for (NodeId id = 0; id < whole.id_bound(); ++id)
    if (whole.contains(id) && whole.node(id).kind != NodeKind::input)
      nodes.emplace(appearance(whole.node(id), whole.node(id).inputs), id);
  PartPlace place;
  place.places_.assign(part.id_bound(), Value{});
  TASO_CHECK(part.inputs().size() == inputs.size(), "a part with other inputs");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!whole.contains(inputs[i].node)) return std::nullopt;
    place.places_[part.inputs()[i]] = inputs[i];
  }
  for (const NodeId id : part.topological_order()) {
    const Node& node = part.node(id);
    if (node.kind == NodeKind::input) continue;
    std::vector<Value> read;
    read.reserve(node.inputs.size());
    for (const Value& input : node.inputs) read.push_back(place.translate(input));
    auto found = nodes.find(appearance(node, read));
    if (found == nodes.end() && read.size() == 2 && node.kind == NodeKind::op && catalog.is_commutative(node.op)) {
      std::swap(read[0], read[1]);
      found = nodes.find(appearance(node, read));
    }
    if (found == nodes.end()) return std::nullopt;
    place.places_[id] = {found->second, 0};
  }
  return place;
}

Match PartPlace::translate(const Match& match) const {
  Match result = match;
  for (Value& value : result.variables) value = translate(value);
  for (NodeId& id : result.nodes) id = places_[id].node;
  return result;
}

PartReplay replay_in_whole(const Graph& whole, const GraphPart& part, std::span<const RuleApplication> steps,
                           const RuleIndex& rules, const RewriteFilter& writable, const MatchFilter& applicable) {
  std::unordered_map<std::string_view, const Substitution*> by_name;
  for (const Substitution& rule : rules.rules()) by_name.emplace(rule.name, &rule);
  PartReplay replay;
  replay.graph = whole;
  Graph inside = part.graph;
  normalize(inside, rules.catalog());
  for (const RuleApplication& step : steps) {
    replay.complete = false;
    const auto rule = by_name.find(step.rule);
    TASO_CHECK(rule != by_name.end(), "a step by a rule that is not there");
    const std::optional<PartPlace> place = PartPlace::find(inside, part.inputs, replay.graph, rules.catalog());
    if (!place) return replay;
    const Match match = place->translate(step.match);
    if (applicable && !applicable(replay.graph, *rule->second, match)) return replay;
    Expected<RewriteResult> outside = apply_with_changes(replay.graph, *rule->second, match, rules.catalog());
    if (!outside || (writable && !writable(*outside))) return replay;
    Expected<Graph> rewritten = apply(inside, *rule->second, step.match, rules.catalog());
    if (!rewritten) return replay;
    replay.applications.push_back(describe_application(replay.graph, *rule->second, match));
    replay.graph = std::move(outside->graph);
    inside = std::move(rewritten).value();
    replay.complete = true;
  }
  return replay;
}

}  // namespace taso
