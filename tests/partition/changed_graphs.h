/// Graphs changed in one place, and whether they compute the same, for tests of what checks graphs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "operators/evaluate.h"
#include "operators/ring.h"
#include "support/random.h"
#include "tests/support/shipped.h"

namespace taso::test {

inline std::vector<RingTensor<double>> outputs_of(const Graph& graph, const std::vector<RingTensor<double>>& inputs) {
  DoubleRing ring;
  return value_of(evaluate(graph, registry(), ring, inputs));
}

/// Whether results are equal within `tolerance` of 1 and their size. What is not finite equals what is not finite.
inline bool equal(const std::vector<RingTensor<double>>& a, const std::vector<RingTensor<double>>& b,
                  double tolerance = 1e-9) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].shape != b[i].shape || a[i].integers != b[i].integers) return false;
    for (std::size_t at = 0; at < a[i].elements.size(); ++at) {
      const double x = a[i].elements[at], y = b[i].elements[at];
      if (!(std::abs(x - y) <= tolerance * (1 + std::abs(x))) && (std::isfinite(x) || std::isfinite(y))) return false;
    }
  }
  return true;
}

/// The graph with one operand of one operator in the place of another one of its type; nothing if none can be.
inline std::optional<Graph> with_other_operand(const Graph& graph, Random& random) {
  std::vector<NodeId> order;
  for (const NodeId id : graph.topological_order())
    if (graph.node(id).kind == NodeKind::op && !graph.node(id).weight_only) order.push_back(id);
  if (order.empty()) return std::nullopt;
  const NodeId id = order[random.below(order.size())];
  std::vector<Value> inputs = graph.node(id).inputs;
  Value& input = inputs[random.below(inputs.size())];
  std::vector<Value> others;
  for (const NodeId other : graph.topological_order()) {
    if (other == id) break;
    for (std::uint32_t port = 0; port < graph.node(other).outputs.size(); ++port)
      if (const Value value{other, port}; value != input && graph.type(value) == graph.type(input))
        others.push_back(value);
  }
  if (others.empty()) return std::nullopt;
  input = others[random.below(others.size())];
  Graph changed = graph;
  changed.set_inputs(id, inputs);
  return changed;
}

/// The graph with another number in one place of a weight of f32; nothing if it has none.
inline std::optional<Graph> with_other_weight(const Graph& graph, Random& random) {
  std::vector<NodeId> weights;
  for (const NodeId id : graph.topological_order())
    if (const Node& node = graph.node(id); node.kind == NodeKind::constant &&
                                           node.constant->type().element == ElementType::f32 &&
                                           node.constant->type().elements() > 0)
      weights.push_back(id);
  if (weights.empty()) return std::nullopt;
  const NodeId id = weights[random.below(weights.size())];
  const ConstantData& weight = *graph.node(id).constant;
  std::vector<float> elements = weight.to_floats();
  float& element = elements[random.below(elements.size())];
  element = 1.5F * element + 0.25F;
  Graph changed = graph;
  const Value other = {changed.add_constant(ConstantData::of_floats(weight.type().shape, elements)), 0};
  const std::vector<std::pair<Value, Value>> replacements = {{{id, 0}, other}};
  changed.replace_uses(replacements);
  return changed;
}

}  // namespace taso::test
