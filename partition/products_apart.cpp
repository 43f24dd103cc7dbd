#include "partition/products_apart.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "operators/definition.h"
#include "operators/unfold.h"

namespace taso {
namespace {

bool has_product(std::string_view op, StrategyTable& strategies) {
  const auto& all = strategies.of(op);
  return std::any_of(all.begin(), all.end(), [](const auto& strategy) {
    std::set<std::size_t> operands;
    for (const InputCut& input : strategy->inputs) operands.insert(input.input);
    return strategy->reducer == "sum" && operands.size() > 1;
  });
}

/// A definition that applies a product, whose sum then stands below other operations.
bool hides_product(std::string_view op, StrategyTable& strategies) {
  const OperatorDefinition* const definition = strategies.registry().find(op);
  if (definition == nullptr || definition->written == nullptr || has_product(op, strategies)) return false;
  const auto& applied = definition->written->applications;
  return std::any_of(applied.begin(), applied.end(),
                     [&](const Application& application) { return has_product(application.op, strategies); });
}

/// Takes the products below one split apart.
class SplitProduct {
 public:
  SplitProduct(Graph& graph, StrategyTable& strategies, const Consumers& consumers)
      : graph_(graph), strategies_(strategies), consumers_(consumers) {}

  /// The parts of a value in these ranges of an axis, counted from the front: what is made of slices of weights.
  /// Nothing where that is not possible; nodes that nothing uses may be left then.
  std::optional<std::vector<Value>> parts_of(Value value, std::size_t axis, const std::vector<IndexRange>& ranges) {
    const Node node = graph_.node(value.node);
    if (value.node >= consumers_.id_bound()) return std::nullopt;  // it came from another split
    if (node.weight_only) return slices_of(value, axis, ranges);
    if (node.kind != NodeKind::op || node.outputs.size() != 1 || consumers_.of(value.node).size() != 1 ||
        !types_known(graph_, node))
      return std::nullopt;
    std::vector<OperatorPiece> pieces;
    for (const IndexRange& range : ranges) {
      std::optional<OperatorPiece> piece = piece_of(all_of(graph_, value.node), axis, range);
      if (!piece) return std::nullopt;
      pieces.push_back(std::move(*piece));
    }
    std::vector<std::vector<Value>> operands(ranges.size());
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const std::optional<std::vector<Value>> parts = operands_of(node.inputs[i], i, pieces);
      if (!parts) return std::nullopt;
      for (std::size_t part = 0; part < ranges.size(); ++part) operands[part].push_back((*parts)[part]);
    }
    std::vector<Value> made;
    for (std::size_t part = 0; part < ranges.size(); ++part) {
      Node piece = node;
      piece.attributes = pieces[part].attributes;
      piece.inputs = operands[part];
      piece.outputs = pieces[part].outputs;
      made.push_back({graph_.add(std::move(piece)), 0});
    }
    return made;
  }

 private:
  [[nodiscard]] std::optional<OperatorPiece> piece_of(OperatorPiece piece, std::size_t axis, IndexRange range) {
    const auto cut_at = [&](std::int64_t point, bool second) {
      for (const PieceCut& cut : cuts_of(piece, strategies_)) {
        if (cut.output_axis != axis || cut.extent != piece.outputs[0].shape[axis]) continue;
        Expected<OperatorPiece> part = part_of(piece, cut, point, second, strategies_.registry());
        if (!part) continue;
        piece = std::move(*part);
        return true;
      }
      return false;
    };
    if (range.end < piece.outputs[0].shape[axis] && !cut_at(range.end, false)) return std::nullopt;
    if (range.begin > 0 && !cut_at(range.begin, true)) return std::nullopt;
    return piece;
  }

  /// What each piece reads of operand number `input`: all of it, or a part along one axis, which lie side by side.
  [[nodiscard]] std::optional<std::vector<Value>> operands_of(Value value, std::size_t input,
                                                              const std::vector<OperatorPiece>& pieces) {
    const IndexBox whole = whole_box(graph_.type(value).shape);
    std::optional<std::size_t> axis;
    for (const OperatorPiece& piece : pieces)
      for (std::size_t i = 0; i < whole.size(); ++i) {
        if (piece.reads[input][i] == whole[i]) continue;
        if (axis.value_or(i) != i) return std::nullopt;
        axis = i;
      }
    if (!axis) return std::vector<Value>(pieces.size(), value);
    std::vector<IndexRange> ranges;
    std::int64_t end = 0;
    for (const OperatorPiece& piece : pieces) {
      ranges.push_back(piece.reads[input][*axis]);
      if (ranges.back().begin != end) return std::nullopt;
      end = ranges.back().end;
    }
    return end == whole[*axis].end ? parts_of(value, *axis, ranges) : std::nullopt;
  }

  [[nodiscard]] std::optional<std::vector<Value>> slices_of(Value value, std::size_t axis,
                                                            const std::vector<IndexRange>& ranges) {
    std::vector<Value> slices;
    for (const IndexRange& range : ranges) {
      Shape starts(graph_.type(value).shape.size(), 0), sizes = graph_.type(value).shape, steps(sizes.size(), 1);
      starts[axis] = range.begin;
      sizes[axis] = range.size();
      const Expected<NodeId> slice = add_op(graph_, strategies_.registry(), "slice",
                                            {{"starts", starts}, {"sizes", sizes}, {"steps", steps}}, {value});
      if (!slice) return std::nullopt;
      slices.push_back({*slice, 0});
    }
    return slices;
  }

  Graph& graph_;
  StrategyTable& strategies_;
  const Consumers& consumers_;
};

}  // namespace

Expected<Graph> products_apart(const Graph& graph, StrategyTable& strategies) {
  Graph made;
  std::map<Value, Value> values;
  const auto copy = [&](const Graph& from, NodeId id, std::map<Value, Value>& known, std::int32_t origin) {
    Node node = from.node(id);
    node.origin = origin;
    for (Value& input : node.inputs) input = known.at(input);
    const std::size_t outputs = node.outputs.size();
    const NodeId copied = node.kind == NodeKind::input ? made.add_input(node.name, node.outputs[0]) : made.add(node);
    for (std::uint32_t port = 0; port < outputs; ++port) known[{id, port}] = {copied, port};
  };
  for (const NodeId id : graph.inputs()) copy(graph, id, values, graph.node(id).origin);
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.kind == NodeKind::input) continue;
    if (node.kind != NodeKind::op || !types_known(graph, node) || !hides_product(node.op, strategies)) {
      copy(graph, id, values, graph.node(id).origin);
      continue;
    }
    std::vector<TensorType> types;
    for (const Value& input : node.inputs) types.push_back(graph.type(input));
    TASO_ASSIGN(const Graph apart,
                unfold(strategies.registry(), node.op, node.attributes, types, [](std::string_view) { return true; }));
    std::map<Value, Value> parts;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) parts[{apart.inputs()[i], 0}] = values.at(node.inputs[i]);
    for (const NodeId part : apart.topological_order())
      if (apart.node(part).kind != NodeKind::input) copy(apart, part, parts, node.origin);
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port)
      values[{id, port}] = parts.at(apart.outputs()[port]);
  }
  for (const Value& output : graph.outputs()) made.add_output(values.at(output));
  return made;
}

Graph split_products_apart(const Graph& graph, StrategyTable& strategies) {
  Graph made = graph;
  const Consumers consumers(graph);
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (!node.is_op("split") || node.weight_only || !types_known(graph, node)) continue;
    const Value read = node.inputs[0];
    const auto rank = static_cast<std::int64_t>(graph.type(read).shape.size());
    std::vector<IndexRange> ranges;
    std::int64_t begin = 0;
    for (const std::int64_t size : node.attributes.integers("sizes")) {
      ranges.push_back({begin, begin + size});
      begin += size;
    }
    const auto axis = static_cast<std::size_t>(rank + node.attributes.integer("axis"));
    const auto parts = SplitProduct(made, strategies, consumers).parts_of(read, axis, ranges);
    if (!parts) continue;
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port) made.replace_uses({id, port}, (*parts)[port]);
  }
  made.remove_dead();
  return made;
}

}  // namespace taso
