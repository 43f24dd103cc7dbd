#include "onnx_io/joined_moves.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>

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

/// What a move of the result of another one of its kind does to what that one reads; nothing if it is no such move.
std::optional<Attributes> joined(const Graph& graph, const Node& first, const Node& second) {
  if (second.op != first.op) return std::nullopt;
  Attributes attributes = second.attributes;
  if (first.op == "transpose") {
    Shape perm;
    for (const std::int64_t axis : second.attributes.integers("perm"))
      perm.push_back(first.attributes.integers("perm")[static_cast<std::size_t>(axis)]);
    attributes.set("perm", std::move(perm));
  } else if (first.op == "slice") {
    const Shape &whole = graph.type(first.inputs[0]).shape, &middle = first.outputs[0].shape;
    const auto takes_all = [](const Node& node, const Shape& shape, std::size_t axis) {
      return node.attributes.integers("starts")[axis] == 0 && node.attributes.integers("steps")[axis] == 1 &&
             node.attributes.integers("sizes")[axis] == shape[axis];
    };
    Shape starts = second.attributes.integers("starts"), sizes = second.attributes.integers("sizes"),
          steps = second.attributes.integers("steps");
    for (std::size_t axis = 0; axis < whole.size(); ++axis) {
      if (takes_all(first, whole, axis)) continue;
      if (!takes_all(second, middle, axis)) return std::nullopt;
      starts[axis] = first.attributes.integers("starts")[axis];
      sizes[axis] = first.attributes.integers("sizes")[axis];
      steps[axis] = first.attributes.integers("steps")[axis];
    }
    attributes.set("starts", std::move(starts));
    attributes.set("sizes", std::move(sizes));
    attributes.set("steps", std::move(steps));
  }
  return attributes;
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

/// Takes one node out of the graph.
void take_out(Graph& graph, NodeId id, const std::vector<NodeId>& readers) {
  const Node first = graph.node(id);
  for (const NodeId reader : readers) {
    Node second = graph.node(reader);
    const std::optional<Attributes> both = joined(graph, first, second);
    TASO_CHECK(both.has_value(), "moves are joined that are no such");
    second.attributes = *both;
    second.inputs = first.inputs;
    graph.replace_node(reader, std::move(second));
  }
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
    const Node& node = rest.node(id);
    if (!is_move(document, node)) continue;
    const std::vector<NodeId> readers = readers_of(consumers, id);
    const auto can_do_both = [&](NodeId reader) {
      return is_move(document, rest.node(reader)) && joined(rest, node, rest.node(reader));
    };
    if (readers.empty() || is_output(id) || !std::all_of(readers.begin(), readers.end(), can_do_both)) continue;
    take_out(rest, id, readers);
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
  for (const NodeId id : moves.joined) take_out(rest, id, readers_of(consumers, id));
  for (const NodeId id : moves.nothing) rest.replace_uses({id, 0}, rest.node(id).inputs[0]);
  return rest;
}

}  // namespace taso
