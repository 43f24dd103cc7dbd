/// Evaluation of operator instances and of whole graphs over any ring (operators/ring.h).
#pragma once

#include <map>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "operators/instance.h"
#include "operators/ring.h"

namespace taso {

/// A tensor of ring elements in row-major order; tensors of integers (indices) carry `integers` instead.
template <class Element>
struct RingTensor {
  Shape shape;
  std::vector<Element> elements;
  std::vector<std::int64_t> integers;
};

/// The outputs of one operator application.
template <class Ring>
[[nodiscard]] Expected<std::vector<RingTensor<typename Ring::Element>>> evaluate(
    const OperatorInstance& instance, Ring& ring, std::span<const RingTensor<typename Ring::Element>* const> inputs);

/// Whether the operator only copies elements (OperatorSignature::copies) and they are integers.
[[nodiscard]] bool copies_integers(const OperatorInstance& instance);

/// The outputs of such an operator, whatever the ring; evaluate() does this. Fails where inputs do not have all
/// elements.
[[nodiscard]] Expected<std::vector<std::vector<std::int64_t>>> copy_integers(
    const OperatorInstance& instance, std::span<const std::span<const std::int64_t>> inputs);

/// The outputs of a graph of ops (no opaque nodes); `inputs` in the order of graph.inputs(). Float constants enter by
/// Ring::number.
template <class Ring>
[[nodiscard]] Expected<std::vector<RingTensor<typename Ring::Element>>> evaluate(
    const Graph& graph, const OperatorRegistry& registry, Ring& ring,
    const std::vector<RingTensor<typename Ring::Element>>& inputs);

}  // namespace taso

#include "operators/evaluate_inline.h"
