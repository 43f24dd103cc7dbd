/// Evaluation of operator instances and of whole graphs over any ring (operators/ring.h).
#pragma once

#include <map>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "operators/instance.h"
#include "operators/ring.h"

namespace taso {

/// A tensor of ring elements in row-major order; tensors of integers and truth values carry words (graph/words.h), in
/// `integers`, instead.
template <class Element>
struct RingTensor {
  Shape shape;
  std::vector<Element> elements;
  std::vector<std::int64_t> integers;
};

/// The outputs of one operator application. One that computes with integers or truth values is evaluated over doubles
/// (DoubleRing) alone, one that only moves them over any ring.
template <class Ring>
[[nodiscard]] Expected<std::vector<RingTensor<typename Ring::Element>>> evaluate(
    const OperatorInstance& instance, Ring& ring, std::span<const RingTensor<typename Ring::Element>* const> inputs);

/// Whether an application computes with elements, or moves some, that are not real.
[[nodiscard]] bool has_machine_numbers(const OperatorInstance& instance);
/// The outputs of such an application; evaluate() does this. Tensors of words have `integers`, others `elements`.
/// Fails where inputs do not have all elements.
[[nodiscard]] Expected<std::vector<RingTensor<double>>> evaluate_machine_numbers(
    const OperatorInstance& instance, std::span<const RingTensor<double>* const> inputs);

/// The outputs of a graph of ops (no opaque nodes); `inputs` in the order of graph.inputs(). Float constants enter by
/// Ring::number.
template <class Ring>
[[nodiscard]] Expected<std::vector<RingTensor<typename Ring::Element>>> evaluate(
    const Graph& graph, const OperatorRegistry& registry, Ring& ring,
    const std::vector<RingTensor<typename Ring::Element>>& inputs);

}  // namespace taso

#include "operators/evaluate_inline.h"
