#include "partition/soybean_baselines.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace taso {
namespace {

using Operands = std::vector<std::optional<std::size_t>>;

bool is_cut_along(const BasicTiling& tiling, std::size_t axis) {
  return tiling == BasicTiling{BasicTiling::Kind::cut, axis};
}

/// The axes of a node's operands.
Operands axes_of(const ExampleAxes& axes, const std::vector<Value>& inputs) {
  Operands operands;
  for (const Value& input : inputs) {
    const auto at = axes.find(input);
    operands.push_back(at == axes.end() ? std::nullopt : std::optional(at->second));
  }
  return operands;
}

bool has_examples(const Operands& operands) {
  return std::any_of(operands.begin(), operands.end(), [](const auto& axis) { return axis.has_value(); });
}

/// Whether a form cuts examples. Other operands it may read whole (weights), or cut as well (a bias that was broadcast
/// to all examples).
bool cuts_examples(const AlignedForm& form, const Operands& operands) {
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i] && !is_cut_along(form.inputs[i], *operands[i])) return false;
  return true;
}

/// The operands of all operators that read examples.
std::shared_ptr<std::map<NodeId, Operands>> readers_of(const Graph& graph, const ExampleAxes& axes) {
  auto readers = std::make_shared<std::map<NodeId, Operands>>();
  for (const NodeId id : graph.topological_order()) {
    Operands operands = axes_of(axes, graph.node(id).inputs);
    if (has_examples(operands)) readers->emplace(id, std::move(operands));
  }
  return readers;
}

}  // namespace

ExampleAxes example_axes(const Graph& graph, StrategyTable& strategies, const std::vector<Value>& inputs) {
  ExampleAxes axes;
  for (const Value& input : inputs) axes[input] = 0;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    const Operands operands = axes_of(axes, node.inputs);
    if (node.kind != NodeKind::op || !has_examples(operands) || !types_known(graph, node)) continue;
    for (const AlignedForm& form : aligned_forms(all_of(graph, id), strategies)) {
      if (!cuts_examples(form, operands)) continue;
      for (std::uint32_t port = 0; port < form.outputs.size(); ++port)
        if (form.outputs[port].kind == BasicTiling::Kind::cut) axes[{id, port}] = form.outputs[port].axis;
      break;
    }
  }
  return axes;
}

SoybeanOptions data_parallelism(const Graph& graph, const ExampleAxes& axes, SoybeanOptions options) {
  std::set<Value> weights;
  for (const auto& [weight, after] : options.same) weights.insert({weight, after});
  options.allowed = [axes, weights](Value value, const Tiling& tiling) {
    const auto all = [&](const auto& is) { return std::all_of(tiling.begin(), tiling.end(), is); };
    if (weights.contains(value)) return all([](const BasicTiling& basic) { return basic == BasicTiling{}; });
    const auto at = axes.find(value);
    return at == axes.end() || all([&](const BasicTiling& basic) { return is_cut_along(basic, at->second); });
  };
  options.allowed_forms = [readers = readers_of(graph, axes)](NodeId id, const AlignedForm& form) {
    const auto at = readers->find(id);
    return at == readers->end() || cuts_examples(form, at->second);
  };
  return options;
}

SoybeanOptions model_parallelism(const Graph& graph, const ExampleAxes& axes, SoybeanOptions options) {
  options.allowed = [axes](Value value, const Tiling& tiling) {
    const auto at = axes.find(value);
    return at == axes.end() || std::none_of(tiling.begin(), tiling.end(),
                                            [&](const BasicTiling& basic) { return is_cut_along(basic, at->second); });
  };
  options.allowed_forms = [readers = readers_of(graph, axes)](NodeId id, const AlignedForm& form) {
    const auto at = readers->find(id);
    if (at == readers->end()) return true;
    for (std::size_t i = 0; i < form.inputs.size(); ++i)
      if (at->second[i] && is_cut_along(form.inputs[i], *at->second[i])) return false;
    return true;
  };
  return options;
}

}  // namespace taso
