#include "partition/collective_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "partition/strategy.h"

namespace taso {
namespace {

constexpr Collective::Kind operations[] = {Collective::Kind::all_reduce, Collective::Kind::reduce_scatter,
                                           Collective::Kind::all_gather, Collective::Kind::all_to_all};

std::vector<Value> outputs_of_rank(const Graph& whole, std::size_t rank, std::size_t devices) {
  const std::size_t count = whole.outputs().size() / devices;
  const auto first = whole.outputs().begin() + static_cast<std::ptrdiff_t>(rank * count);
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

/// The extents of what a device gets.
Shape result_shape(const Collective& collective, Shape shape, std::int64_t group) {
  switch (collective.kind) {
    case Collective::Kind::all_reduce:
    case Collective::Kind::gather_parts:
      break;
    case Collective::Kind::reduce_scatter:
      shape[collective.axis] /= group;
      break;
    case Collective::Kind::all_gather:
      shape[collective.axis] *= group;
      break;
    case Collective::Kind::all_to_all:
      shape[collective.axis] *= group;
      shape[collective.split_axis] /= group;
      break;
  }
  return shape;
}

class CollectiveRemover {
 public:
  CollectiveRemover(const Graph& whole, const OperatorRegistry& registry) : whole_(whole), registry_(registry) {}

  Expected<Graph> run(const std::vector<Value>& outputs) {
    // Producers have smaller numbers, and so have the tensors of the group of a collective.
    for (NodeId id = 0; id < whole_.id_bound(); ++id) {
      if (!whole_.contains(id)) continue;
      const Node& node = whole_.node(id);
      if (is_collective(node)) tensors_[{node.attributes.integer("number"), node.device}] = node.inputs[0];
    }
    for (NodeId id = 0; id < whole_.id_bound(); ++id)
      if (whole_.contains(id)) TASO_RETURN_IF_ERROR(copy(id));
    for (const Value& output : outputs) made_.add_output(here_.at(output));
    made_.remove_dead();
    return std::move(made_);
  }

 private:
  Status copy(NodeId id) {
    Node node = whole_.node(id);
    if (is_collective(node)) {
      TASO_ASSIGN(const Value value, compute(node));
      here_[{id, 0}] = value;
      return {};
    }
    for (Value& input : node.inputs) input = here_.at(input);
    const auto ports = static_cast<std::uint32_t>(node.outputs.size());
    const bool is_input = node.kind == NodeKind::input;
    const NodeId added = is_input ? made_.add_input(node.name, node.outputs[0]) : made_.add(std::move(node));
    for (std::uint32_t port = 0; port < ports; ++port) here_[{id, port}] = {added, port};
    return {};
  }

  /// What a device gets.
  Expected<Value> compute(const Node& node) {
    std::vector<Value> group;
    std::size_t place = 0;
    for (const std::int64_t rank : node.attributes.integers("ranks")) {
      if (rank == node.device) place = group.size();
      group.push_back(here_.at(tensors_.at({node.attributes.integer("number"), static_cast<std::int32_t>(rank)})));
    }
    const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
    if (node.op == name_of(Collective::Kind::all_gather)) return joined(group, axis, node.device);
    if (node.op == name_of(Collective::Kind::all_to_all)) {
      const auto split_axis = static_cast<std::size_t>(node.attributes.integer("split_axis"));
      std::vector<Value> pieces;
      for (const Value& tensor : group) {
        TASO_ASSIGN(const Value piece, piece_of(tensor, split_axis, place, group.size(), node.device));
        pieces.push_back(piece);
      }
      return joined(pieces, axis, node.device);
    }
    Value sum = group[0];
    const std::string op = combining_operator(registry_, node.attributes.symbol("reducer"));
    for (std::size_t i = 1; i < group.size(); ++i) {
      TASO_ASSIGN(const NodeId both, add_op(made_, registry_, op, {}, {sum, group[i]}, {-1, node.device}));
      sum = {both, 0};
    }
    if (node.op == name_of(Collective::Kind::all_reduce)) return sum;
    return piece_of(sum, axis, place, group.size(), node.device);
  }

  Expected<Value> joined(const std::vector<Value>& tensors, std::size_t axis, std::int32_t device) {
    if (tensors.size() == 1) return tensors[0];
    Attributes attributes;
    attributes.set("axis",
                   static_cast<std::int64_t>(axis) - static_cast<std::int64_t>(made_.type(tensors[0]).shape.size()));
    TASO_ASSIGN(const NodeId added, add_op(made_, registry_, "concat", attributes, tensors, {-1, device}));
    return Value{added, 0};
  }

  Expected<Value> piece_of(Value tensor, std::size_t axis, std::size_t place, std::size_t pieces, std::int32_t device) {
    Shape sizes = made_.type(tensor).shape;
    std::vector<std::int64_t> starts(sizes.size(), 0);
    sizes[axis] /= static_cast<std::int64_t>(pieces);
    starts[axis] = static_cast<std::int64_t>(place) * sizes[axis];
    Attributes attributes;
    attributes.set("starts", starts);
    attributes.set("steps", std::vector<std::int64_t>(sizes.size(), 1));
    attributes.set("sizes", std::move(sizes));
    TASO_ASSIGN(const NodeId added, add_op(made_, registry_, "slice", attributes, {tensor}, {-1, device}));
    return Value{added, 0};
  }

  const Graph& whole_;
  const OperatorRegistry& registry_;
  std::map<std::pair<std::int64_t, std::int32_t>, Value> tensors_;  ///< Of collectives, by number and device.
  Graph made_;
  std::map<Value, Value> here_;
};

}  // namespace

bool is_collective(const Node& node) {
  return node.kind == NodeKind::op && std::any_of(std::begin(operations), std::end(operations),
                                                  [&](Collective::Kind kind) { return node.op == name_of(kind); });
}

Node collective_node(const Collective& collective, std::int64_t number, Value input, const TensorType& type,
                     std::size_t device, const Mesh& mesh) {
  TASO_CHECK(collective.kind != Collective::Kind::gather_parts, "parts of different sizes");
  std::vector<std::int64_t> ranks, mesh_axes;
  for (const std::size_t rank : group_of(device, collective.mesh_axes, mesh))
    ranks.push_back(static_cast<std::int64_t>(rank));
  for (const std::size_t axis : collective.mesh_axes) mesh_axes.push_back(static_cast<std::int64_t>(axis));
  Node node;
  node.op = name_of(collective.kind);
  node.inputs = {input};
  node.outputs = {{type.element, result_shape(collective, type.shape, static_cast<std::int64_t>(ranks.size())), true}};
  node.attributes.set("number", number);
  node.attributes.set("mesh_axes", std::move(mesh_axes));
  node.attributes.set("ranks", std::move(ranks));
  node.attributes.set("axis", static_cast<std::int64_t>(collective.axis));
  node.attributes.set("split_axis", static_cast<std::int64_t>(collective.split_axis));
  node.attributes.set("reducer", SymbolValue{collective.reducer});
  node.device = static_cast<std::int32_t>(device);
  return node;
}

Graph graph_of_rank(const Graph& whole, std::size_t rank, std::size_t devices) {
  Graph graph = whole;
  graph.set_outputs(outputs_of_rank(whole, rank, devices));
  graph.remove_dead();
  for (NodeId id = 0; id < graph.id_bound(); ++id) {
    if (!graph.contains(id) || graph.node(id).device < 0) continue;
    Node node = graph.node(id);
    node.device = -1;
    graph.replace_node(id, std::move(node));
  }
  return graph;
}

std::optional<std::int64_t> collective_that_not_all_need(const std::vector<Graph>& ranks) {
  std::map<std::int64_t, std::set<std::int64_t>> taking_part;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (const NodeId id : ranks[rank].topological_order())
      if (is_collective(ranks[rank].node(id)))
        taking_part[ranks[rank].node(id).attributes.integer("number")].insert(static_cast<std::int64_t>(rank));
  for (const Graph& graph : ranks)
    for (const NodeId id : graph.topological_order()) {
      if (!is_collective(graph.node(id))) continue;
      const Attributes& attributes = graph.node(id).attributes;
      for (const std::int64_t rank : attributes.integers("ranks"))
        if (!taking_part[attributes.integer("number")].contains(rank)) return attributes.integer("number");
    }
  return std::nullopt;
}

Expected<Graph> without_collectives(const Graph& whole, std::size_t rank, std::size_t devices,
                                    const OperatorRegistry& registry) {
  return CollectiveRemover(whole, registry).run(outputs_of_rank(whole, rank, devices));
}

}  // namespace taso
