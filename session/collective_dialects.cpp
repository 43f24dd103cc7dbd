#include "session/collective_dialects.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partition/collective_graph.h"

namespace taso {
namespace {

bool is_kind(const Node& node, Collective::Kind kind) { return node.op == name_of(kind); }

std::int64_t group_size(const Node& node) {
  return static_cast<std::int64_t>(node.attributes.integers("ranks").size());
}

/// Builds what stands before and behind an operator that works along the first axis.
class AxisMover {
 public:
  AxisMover(Graph& graph, const OperatorRegistry& registry) : graph_(graph), registry_(registry) {}

  Expected<Value> reshape(Value value, const Shape& shape) {
    if (graph_.type(value).shape == shape) return value;
    Attributes attributes;
    attributes.set("shape", shape);
    return add("reshape", attributes, value);
  }

  /// Axis `from` becomes axis `to`; the others keep their order.
  Expected<Value> move_axis(Value value, std::size_t from, std::size_t to) {
    if (from == to) return value;
    std::vector<std::int64_t> perm(graph_.type(value).shape.size());
    std::iota(perm.begin(), perm.end(), 0);
    perm.erase(perm.begin() + static_cast<std::ptrdiff_t>(from));
    perm.insert(perm.begin() + static_cast<std::ptrdiff_t>(to), static_cast<std::int64_t>(from));
    Attributes attributes;
    attributes.set("perm", std::move(perm));
    return add("transpose", attributes, value);
  }

  /// An axis in `pieces`, whose number becomes the first axis.
  Expected<Value> pieces_first(Value value, std::size_t axis, std::int64_t pieces) {
    Shape shape = graph_.type(value).shape;
    shape[axis] /= pieces;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), pieces);
    TASO_ASSIGN(const Value apart, reshape(value, shape));
    return move_axis(apart, axis, 0);
  }

  /// The first axis numbers pieces that become one along an axis of the others.
  Expected<Value> join_pieces(Value value, std::size_t axis) {
    TASO_ASSIGN(const Value beside, move_axis(value, 0, axis));
    Shape shape = graph_.type(beside).shape;
    shape[axis + 1] *= shape[axis];
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    return reshape(beside, shape);
  }

  /// The first two axes become one.
  Expected<Value> flatten_first(Value value) {
    Shape shape = graph_.type(value).shape;
    shape[1] *= shape[0];
    shape.erase(shape.begin());
    return reshape(value, shape);
  }

  /// An operator of another program.
  Value call(std::string op, Attributes attributes, Value input, Shape result) {
    Node node;
    node.op = std::move(op);
    node.attributes = std::move(attributes);
    node.inputs = {input};
    node.outputs = {{graph_.type(input).element, std::move(result), true}};
    return {graph_.add(std::move(node)), 0};
  }

  [[nodiscard]] const Shape& shape(Value value) const { return graph_.type(value).shape; }

 private:
  Expected<Value> add(std::string_view op, const Attributes& attributes, Value input) {
    TASO_ASSIGN(const NodeId added, add_op(graph_, registry_, op, attributes, {input}));
    return Value{added, 0};
  }
  Graph& graph_;
  const OperatorRegistry& registry_;
};

Status check_element(const Node& node, const std::vector<ElementType>& known, const char* program) {
  const ElementType element = node.outputs[0].element;
  if (std::find(known.begin(), known.end(), element) != known.end()) return {};
  return bad_input(std::string(program) + " has no " + node.op + " for tensors of type " + to_string(element));
}

/// AllReduce, AllGather(axis, group_size) and AllToAll(group_size), which exchanges pieces of the first axis.
Expected<Value> write_for_onnx_runtime(Graph& graph, const Node& node, const OperatorRegistry& registry) {
  using enum ElementType;
  const bool sums = is_kind(node, Collective::Kind::all_reduce);
  TASO_RETURN_IF_ERROR(check_element(node, sums ? std::vector{f16, f32, f64} : std::vector{f16, f32, f64, i64, boolean},
                                     "ONNX Runtime"));
  AxisMover mover(graph, registry);
  const Value input = node.inputs[0];
  Attributes attributes;
  if (sums) return mover.call("com.microsoft::AllReduce", attributes, input, mover.shape(input));
  attributes.set("group_size", group_size(node));
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  if (is_kind(node, Collective::Kind::all_gather)) {
    attributes.set("axis", node.attributes.integer("axis"));
    return mover.call("com.microsoft::AllGather", attributes, input, node.outputs[0].shape);
  }
  const auto split_axis = static_cast<std::size_t>(node.attributes.integer("split_axis"));
  TASO_ASSIGN(const Value pieces, mover.pieces_first(input, split_axis, group_size(node)));
  return mover.join_pieces(mover.call("com.microsoft::AllToAll", attributes, pieces, mover.shape(pieces)), axis);
}

/// DistCollective, whose gathers and scatters are along the first axis.
Expected<Value> write_for_tensorrt(Graph& graph, const Node& node, const OperatorRegistry& registry) {
  AxisMover mover(graph, registry);
  const std::int64_t size = group_size(node);
  const bool gathers = is_kind(node, Collective::Kind::all_gather);
  Attributes attributes;
  attributes.set("collective_operation", SymbolValue{node.op});
  attributes.set("reduce_op", SymbolValue{gathers ? "none" : node.attributes.symbol("reducer")});
  attributes.set("root", std::int64_t{-1});
  attributes.set("group_size", size);
  attributes.set("nb_rank", size);
  attributes.set("groups", node.attributes.integers("ranks"));
  const auto call = [&](Value input, Shape result) {
    return mover.call("::DistCollective", attributes, input, std::move(result));
  };
  const Value input = node.inputs[0];
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  if (is_kind(node, Collective::Kind::all_reduce)) return call(input, mover.shape(input));
  if (axis == 0) return call(input, node.outputs[0].shape);
  if (gathers) {
    Shape pieces = mover.shape(input);
    pieces[0] *= size;
    const Value gathered = call(input, pieces);
    pieces[0] /= size;
    pieces.insert(pieces.begin(), size);
    TASO_ASSIGN(const Value apart, mover.reshape(gathered, pieces));
    return mover.join_pieces(apart, axis);
  }
  TASO_ASSIGN(const Value pieces, mover.pieces_first(input, axis, size));
  TASO_ASSIGN(const Value flat, mover.flatten_first(pieces));
  return call(flat, node.outputs[0].shape);
}

}  // namespace

const CollectiveDialect& onnx_runtime_collectives() {
  static const CollectiveDialect dialect = {"ONNX Runtime", {{"sum"}, {}, true, false}, write_for_onnx_runtime};
  return dialect;
}

const CollectiveDialect& tensorrt_collectives() {
  static const CollectiveDialect dialect = {
      "TensorRT", {{"sum", "max"}, {"sum", "max"}, false, true}, write_for_tensorrt};
  return dialect;
}

Expected<Graph> in_dialect(const Graph& rank, const CollectiveDialect& dialect, const OperatorRegistry& registry) {
  Graph made;
  std::map<Value, Value> here;
  for (NodeId id = 0; id < rank.id_bound(); ++id) {
    if (!rank.contains(id)) continue;
    Node node = rank.node(id);
    for (Value& input : node.inputs) input = here.at(input);
    if (is_collective(node)) {
      TASO_ASSIGN(here[(Value{id, 0})], dialect.write(made, node, registry));
      continue;
    }
    const auto ports = static_cast<std::uint32_t>(node.outputs.size());
    const NodeId added =
        node.kind == NodeKind::input ? made.add_input(node.name, node.outputs[0]) : made.add(std::move(node));
    for (std::uint32_t port = 0; port < ports; ++port) here[{id, port}] = {added, port};
  }
  for (const Value& output : rank.outputs()) made.add_output(here.at(output));
  return made;
}

}  // namespace taso
