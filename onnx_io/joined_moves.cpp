#include "onnx_io/joined_moves.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace taso {
namespace {

/// Whether a node is written as a node that moves elements, and as nothing else.
bool is_move(const Document& document, const Node& node) {
  static const std::set<std::string_view> types = {"Expand",  "Flatten",   "Reshape",  "Slice",
                                                   "Squeeze", "Transpose", "Unsqueeze"};
  if (node.weight_only || node.device >= 0 ||
      !(node.is_op("reshape") || node.is_op("transpose") || node.is_op("slice")))
    return false;
  if (node.origin < 0 || node.origin >= document.graph().node_size()) return true;
  const onnx::NodeProto& original = document.node(node.origin);
  return is_default_domain(original.domain()) && types.contains(original.op_type());
}

/// Whether elements stay in their order: a reshape, or a transpose that only moves axes of extent 1.
bool keeps_order(const Graph& graph, const Node& node) {
  if (node.op != "transpose") return node.op == "reshape";
  std::int64_t last = -1;
  for (const std::int64_t axis : node.attributes.integers("perm")) {
    if (graph.type(node.inputs[0]).shape[static_cast<std::size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

/// `second`, which reads what `first` makes, as a move of what that one reads; nothing if it is no such move.
std::optional<Node> both_in_one(const Graph& graph, const Node& first, const Node& second) {
  Node both = second;
  both.inputs = first.inputs;
  if (first.op == "transpose" && second.op == "transpose") {
    Shape perm;
    for (const std::int64_t axis : second.attributes.integers("perm"))
      perm.push_back(first.attributes.integers("perm")[static_cast<std::size_t>(axis)]);
    both.attributes.set("perm", std::move(perm));
  } else if (keeps_order(graph, first) && keeps_order(graph, second)) {
    both.op = "reshape";
    both.attributes = {{"shape", second.outputs[0].shape}};
  } else if (first.op == "slice" && second.op == "slice") {
    const Shape &whole = graph.type(first.inputs[0]).shape, &middle = first.outputs[0].shape;
    const auto takes_all = [](const Node& node, const Shape& shape, std::size_t axis) {
      return node.attributes.integers("starts")[axis] == 0 && node.attributes.integers("steps")[axis] == 1 &&
             node.attributes.integers("sizes")[axis] == shape[axis];
    };
    for (const char* const name : {"starts", "sizes", "steps"}) {
      Shape list = second.attributes.integers(name);
      for (std::size_t axis = 0; axis < whole.size(); ++axis) {
        if (takes_all(first, whole, axis)) continue;
        if (!takes_all(second, middle, axis)) return std::nullopt;
        list[axis] = first.attributes.integers(name)[axis];
      }
      both.attributes.set(name, std::move(list));
    }
  } else {
    return std::nullopt;
  }
  return both;
}

/// Whether a move leaves everything in its place.
bool moves_nothing(const Graph& graph, const Node& node) {
  if (node.op == "transpose") {
    const Shape& perm = node.attributes.integers("perm");
    Shape same(perm.size());
    std::iota(same.begin(), same.end(), std::int64_t{0});
    return perm == same;
  }
  return node.op == "reshape" && graph.type(node.inputs[0]) == node.outputs[0];
}

/// What reads a node, each once.
std::vector<NodeId> readers_of(const Consumers& consumers, NodeId id) {
  std::vector<NodeId> readers;
  for (const auto& [reader, position] : consumers.of(id))
    if (std::find(readers.begin(), readers.end(), reader) == readers.end()) readers.push_back(reader);
  return readers;
}

/// Lets the readers of a node read what it reads, if all of them can; whether they do.
bool take_out(Graph& graph, NodeId id, const std::vector<NodeId>& readers) {
  const Node first = graph.node(id);
  std::vector<Node> all;
  for (const NodeId reader : readers) {
    std::optional<Node> both = both_in_one(graph, first, graph.node(reader));
    if (!both) return false;
    all.push_back(std::move(*both));
  }
  for (std::size_t i = 0; i < readers.size(); ++i) graph.replace_node(readers[i], std::move(all[i]));
  return !readers.empty();
}

}  // namespace

JoinedMoves moves_to_join(const Document& document, const Graph& graph) {
  const Consumers consumers(graph);
  const auto is_output = [&](NodeId id) {
    return std::find(graph.outputs().begin(), graph.outputs().end(), Value{id, 0}) != graph.outputs().end();
  };
  Graph rest = graph;
  JoinedMoves moves;
  std::set<NodeId> changed;
  for (const NodeId id : graph.topological_order()) {
    if (!is_move(document, rest.node(id)) || is_output(id)) continue;
    const std::vector<NodeId> readers = readers_of(consumers, id);
    if (!std::all_of(readers.begin(), readers.end(),
                     [&](NodeId reader) { return is_move(document, rest.node(reader)); }) ||
        !take_out(rest, id, readers))
      continue;
    moves.joined.push_back(id);
    changed.erase(id);
    changed.insert(readers.begin(), readers.end());
  }
  for (const NodeId id : changed)
    if (moves_nothing(rest, rest.node(id)) && !is_output(id)) moves.nothing.push_back(id);
  return moves;
}

Graph with_joined_moves(const Graph& graph, const JoinedMoves& moves) {
  if (moves.joined.empty()) return graph;
  const Consumers consumers(graph);
  Graph rest = graph;
  for (const NodeId id : moves.joined)
    if (rest.contains(id)) take_out(rest, id, readers_of(consumers, id));
  for (const NodeId id : moves.nothing)
    if (rest.contains(id) && moves_nothing(rest, rest.node(id))) rest.replace_uses({id, 0}, rest.node(id).inputs[0]);
  return rest;
}

}  // namespace taso
