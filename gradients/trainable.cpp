#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "gradients/gradient_descent.h"
#include "gradients/node_adder.h"
#include "graph/rewrite.h"
#include "operators/unfold.h"

namespace taso {
namespace {

/// Copies a graph node by node.
class Rewriter {
 public:
  Rewriter(const Graph& from, const OperatorRegistry& registry, const GradientTable& table)
      : from_(from), registry_(registry), table_(table), adder_(result_.graph, registry) {}

  Expected<TrainableGraph> run() {
    for (const NodeId id : from_.inputs()) {
      const Node& node = from_.node(id);
      names_.insert(node.name);
      values_[{id, 0}] = {result_.graph.add_input(node.name, node.outputs[0]), 0};
    }
    for (const NodeId id : from_.topological_order()) copy(id);
    TASO_RETURN_IF_ERROR(status_);
    for (const Value output : from_.outputs()) result_.graph.add_output(copy_of(output));
    return std::move(result_);
  }

 private:
  void copy(NodeId id) {
    const Node& node = from_.node(id);
    if (node.kind == NodeKind::input || node.kind == NodeKind::constant || !status_) return;
    Node copied = node;
    // Recorded statistics are no weights: they are not copied.
    const std::size_t kept = node.is_op("batch_norm") ? 3 : node.inputs.size();
    for (std::size_t i = 0; i < kept; ++i) copied.inputs[i] = copy_of(node.inputs[i]);
    if (kept < node.inputs.size()) status_ = use_batch_statistics(copied);
    if (!status_ || take_apart(id, copied)) return;
    const NodeId added = result_.graph.add(std::move(copied));
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port) values_[{id, port}] = {added, port};
  }

  [[nodiscard]] bool has_gradients(std::string_view op) const {
    return table_.find(op) != nullptr || registry_.find(op)->inputs.empty();
  }

  /// Adds an operator that the table does not know as what its definition is made of; false where that has no such
  /// form.
  bool take_apart(NodeId id, const Node& node) {
    if (node.kind != NodeKind::op || has_gradients(node.op)) return false;
    std::vector<TensorType> types;
    for (const Value input : node.inputs) types.push_back(result_.graph.type(input));
    const Expected<Graph> parts =
        unfold(registry_, node.op, node.attributes, types, [&](std::string_view op) { return has_gradients(op); });
    if (!parts) return false;
    std::map<Value, Value> placed;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) placed[{parts->inputs()[i], 0}] = node.inputs[i];
    for (const NodeId part : parts->topological_order()) {
      Node copied = parts->node(part);
      if (copied.kind == NodeKind::input) continue;
      for (Value& input : copied.inputs) input = placed.at(input);
      copied.origin = node.origin;
      const auto ports = static_cast<std::uint32_t>(copied.outputs.size());
      const NodeId added = result_.graph.add(std::move(copied));
      for (std::uint32_t port = 0; port < ports; ++port) placed[{part, port}] = {added, port};
    }
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port)
      values_[{id, port}] = placed.at(parts->outputs()[port]);
    return true;
  }

  /// What stands for a value; a constant is copied where it is first read.
  Value copy_of(Value value) {
    if (const auto known = values_.find(value); known != values_.end()) return known->second;
    const ConstantData& constant = *from_.node(value.node).constant;
    const Value copied = is_weight(constant) ? weight(constant) : Value{result_.graph.add(from_.node(value.node)), 0};
    return values_[value] = copied;
  }

  static bool is_weight(const ConstantData& constant) {
    switch (constant.type().element) {
      case ElementType::f32:
      case ElementType::f64:
      case ElementType::f16:
      case ElementType::bf16:
        return constant.type().elements() > 1;
      default:
        return false;
    }
  }

  Value weight(const ConstantData& constant) {
    std::string name = constant.has_data() ? "" : constant.name();
    if (name.empty()) name = "weight" + std::to_string(result_.weights.size());
    while (!names_.insert(name).second) name += "_";
    result_.weights.push_back({result_.graph.add_input(name, constant.type()), 0});
    return result_.weights.back();
  }

  Expected<Value> add(std::string_view op, const Attributes& attributes, std::vector<Value> inputs) {
    TASO_ASSIGN(const NodeId id, adder_.add(op, attributes, std::move(inputs)));
    return Value{id, 0};
  }

  /// Inputs 3 and 4 of a batch_norm become mean and variance of its first.
  Status use_batch_statistics(Node& node) {
    const Value x = node.inputs[0];
    const Shape shape = result_.graph.type(x).shape;
    const Shape channels{shape[1]};
    std::vector<std::int64_t> axes;
    for (auto axis = -static_cast<std::int64_t>(shape.size()); axis < 0; ++axis)
      if (axis != 1 - static_cast<std::int64_t>(shape.size())) axes.push_back(axis);
    const double count = static_cast<double>(result_.graph.type(x).elements()) / static_cast<double>(shape[1]);
    TASO_ASSIGN(const Value number, add("fill", {{"shape", channels}, {"value", count}}, {}));
    TASO_ASSIGN(const Value sum, add("reduce_sum", {{"axes", axes}}, {x}));
    TASO_ASSIGN(const Value sums, add("reshape", {{"shape", channels}}, {sum}));
    TASO_ASSIGN(const Value mean, add("div", {}, {sums, number}));
    TASO_ASSIGN(const Value squares, add("channel_squares", {}, {x, mean}));
    TASO_ASSIGN(const Value variance, add("div", {}, {squares, number}));
    node.inputs[3] = mean;
    node.inputs[4] = variance;
    return {};
  }

  const Graph& from_;
  const OperatorRegistry& registry_;
  const GradientTable& table_;
  TrainableGraph result_;
  NodeAdder adder_;                // Of its graph.
  std::map<Value, Value> values_;  // Of the graph that is copied, in the copy.
  std::set<std::string> names_;
  Status status_;
};

}  // namespace

Expected<TrainableGraph> trainable(Graph graph, const OperatorRegistry& registry, const GradientTable& table,
                                   const std::vector<Substitution>& rules) {
  normalize(graph, registry);
  const RuleIndex index(rules, registry);
  for (const Substitution& rule : rules)
    if (!carries_proof(rule, registry)) return bad_input("rule '" + rule.name + "' carries no proof", rule.where);
  for (auto matches = index.find_all(graph); !matches.empty(); matches = index.find_all(graph)) {
    TASO_ASSIGN(graph, apply(graph, rules[matches[0].first], matches[0].second, registry));
  }
  return Rewriter(graph, registry, table).run();
}

}  // namespace taso
