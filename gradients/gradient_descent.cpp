#include "gradients/gradient_descent.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "gradients/node_adder.h"
#include "gradients/node_gradients.h"

namespace taso {
namespace {

/// Goes backwards through a graph, from its loss to its weights.
class Backward {
 public:
  Backward(Graph& graph, const OperatorRegistry& registry, const GradientTable& table)
      : graph_(graph), registry_(registry), table_(table), adder_(graph, registry) {}

  /// Gradients of all values that depend on the weights and on which the loss depends.
  Status run(Value loss, const std::vector<Value>& weights) {
    const std::vector<NodeId> order = graph_.topological_order();
    mark(order, weights);
    TASO_ASSIGN(const NodeId ones, adder_.add("ones", {{"shape", graph_.type(loss).shape}}, {}));
    gradients_[loss] = Value{ones, 0};
    note(loss.node);
    for (auto id = order.rbegin(); id != order.rend(); ++id) TASO_RETURN_IF_ERROR(node(*id));
    return {};
  }

  [[nodiscard]] NodeAdder& adder() { return adder_; }
  [[nodiscard]] const std::map<Value, Value>& gradients() const { return gradients_; }
  [[nodiscard]] const std::map<NodeId, std::vector<NodeId>>& groups() const { return backward_; }

 private:
  /// Finds the nodes that depend on weights.
  void mark(const std::vector<NodeId>& order, const std::vector<Value>& weights) {
    trained_.insert(weights.begin(), weights.end());
    for (const NodeId id : order) {
      const Node& node = graph_.node(id);
      if (std::none_of(node.inputs.begin(), node.inputs.end(), [&](Value value) { return trained_.contains(value); }))
        continue;
      for (std::uint32_t port = 0; port < node.outputs.size(); ++port) trained_.insert({id, port});
    }
  }

  Status node(NodeId id) {
    const Node node = graph_.node(id);  // a copy: the graph grows
    std::vector<std::optional<Value>> of_outputs(node.outputs.size());
    bool any = false;
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port)
      if (const auto found = gradients_.find({id, port}); found != gradients_.end()) {
        of_outputs[port] = found->second;
        any = true;
      }
    if (!any || node.inputs.empty()) return {};
    if (node.kind != NodeKind::op) return bad_input("'" + node.op + "' is not understood: it has no gradient");
    NodeGradients gradients(adder_, registry_, table_, id, std::move(of_outputs));
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!trained_.contains(node.inputs[i])) continue;
      TASO_ASSIGN(const Value gradient, gradients.of(i));
      TASO_RETURN_IF_ERROR(add(node.inputs[i], gradient, id));
    }
    note(id);
    return {};
  }

  /// One more gradient of a value; its sum with those before is with the node that made the value.
  Status add(Value value, Value gradient, NodeId reader) {
    const auto [known, is_new] = gradients_.emplace(value, gradient);
    if (is_new) return {};
    note(reader);
    TASO_ASSIGN(const NodeId sum, adder_.add("add", {}, {known->second, gradient}));
    known->second = {sum, 0};
    note(value.node);
    return {};
  }

  /// What was added since the last time belongs to a forward node.
  void note(NodeId forward) {
    const std::vector<NodeId>& added = adder_.added();
    if (noted_ == added.size()) return;
    std::vector<NodeId>& group = backward_[forward];
    group.insert(group.end(), added.begin() + static_cast<std::ptrdiff_t>(noted_), added.end());
    noted_ = added.size();
  }

  Graph& graph_;
  const OperatorRegistry& registry_;
  const GradientTable& table_;
  NodeAdder adder_;
  std::set<Value> trained_;           // Values that depend on weights.
  std::map<Value, Value> gradients_;  // So far.
  std::map<NodeId, std::vector<NodeId>> backward_;
  std::size_t noted_ = 0;  // So many of what was added are in `backward_`.
};

Status check_weights(const Graph& graph, const std::vector<Value>& weights) {
  std::set<Value> seen;
  for (const Value weight : weights) {
    if (!graph.contains(weight.node) || graph.node(weight.node).kind != NodeKind::input)
      return bad_input("a weight that is trained must be an input of the graph");
    if (!seen.insert(weight).second) return bad_input("weight '" + graph.node(weight.node).name + "' is given twice");
  }
  return {};
}

}  // namespace

Expected<GradientDescentStep> gradient_descent_step(const Graph& forward, Value loss, const std::vector<Value>& weights,
                                                    const OperatorRegistry& registry, const GradientTable& table) {
  TASO_RETURN_IF_ERROR(check_weights(forward, weights));
  GradientDescentStep step;
  step.graph = forward;
  step.graph.set_outputs({loss});
  Backward backward(step.graph, registry, table);
  TASO_RETURN_IF_ERROR(backward.run(loss, weights));
  const NodeId rate = step.graph.add_input("learning_rate", {step.graph.type(loss).element, {}, true});
  for (const Value weight : weights) {
    const auto gradient = backward.gradients().find(weight);
    if (gradient == backward.gradients().end())
      return bad_input("the loss does not depend on weight '" + step.graph.node(weight.node).name + "'");
    TASO_ASSIGN(const NodeId change, backward.adder().add("smul", {}, {gradient->second, {rate, 0}}));
    TASO_ASSIGN(const NodeId updated, backward.adder().add("sub", {}, {weight, {change, 0}}));
    step.weights.emplace_back(weight, Value{updated, 0});
    step.graph.add_output({updated, 0});
  }
  step.gradients = backward.gradients();
  step.backward = backward.groups();
  return step;
}

Expected<Value> add_cross_entropy(Graph& graph, const OperatorRegistry& registry, Value scores) {
  const NodeId target = graph.add_input("target", graph.type(scores));
  TASO_ASSIGN(const NodeId loss, add_op(graph, registry, "softmax_cross_entropy", {}, {scores, {target, 0}}));
  return Value{loss, 0};
}

Expected<Value> add_squared_error(Graph& graph, const OperatorRegistry& registry, Value value,
                                  const std::string& target) {
  const NodeId wanted = graph.add_input(target, graph.type(value));
  TASO_ASSIGN(const NodeId difference, add_op(graph, registry, "sub", {}, {value, {wanted, 0}}));
  TASO_ASSIGN(const NodeId square, add_op(graph, registry, "mul", {}, {{difference, 0}, {difference, 0}}));
  return Value{square, 0};
}

}  // namespace taso
