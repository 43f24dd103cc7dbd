/// Elements of weights, in double precision, and how far off they may be where they were computed in single precision.
/// Private to the folder.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "operators/evaluate.h"
#include "operators/registry.h"
#include "operators/ring.h"
#include "partition/operator_piece.h"
#include "support/status.h"

namespace taso {

/// Elements of a tensor.
struct WeightElements {
  RingTensor<double> exact;
  /// Of the error of each real element if it was computed in f32, as operators/rounding_ring.h has it; empty: nothing
  /// is computed, so that every element is what it is.
  std::vector<double> variances = {};
  /// By how much an element may be off.
  [[nodiscard]] double tolerance(std::size_t element) const;
};

/// Elements of weights of a graph, each computed once.
class Weights {
 public:
  /// Both are referred to.
  Weights(const Graph& graph, const OperatorRegistry& registry) : graph_(graph), registry_(registry) {}
  /// Of a value that depends on constants alone, through operators. The elements stay where they are. bad_input where a
  /// constant has no data.
  [[nodiscard]] Expected<const WeightElements*> of(Value value);

 private:
  [[nodiscard]] bool is_computed(NodeId id) const;
  void copy(NodeId id, Graph& cone, std::map<NodeId, NodeId>& copies) const;

  const Graph& graph_;
  const OperatorRegistry& registry_;
  std::map<Value, WeightElements> known_;
};

/// The results of an operator that is applied to weights of these types.
[[nodiscard]] Expected<std::vector<WeightElements>> apply_to_weights(const OperatorRegistry& registry,
                                                                     std::string_view op, const Attributes& attributes,
                                                                     const std::vector<TensorType>& types,
                                                                     std::span<const WeightElements> operands);

/// The elements in a box, which lies in the tensor.
[[nodiscard]] WeightElements elements_in(const WeightElements& weight, const IndexBox& box);

/// Writes elements to a box of a tensor, which has room for elements of their kind.
void write_elements(WeightElements& weight, const IndexBox& box, const WeightElements& elements);

/// A tensor for elements of the same kind, all 0.
[[nodiscard]] WeightElements room_for(const Shape& shape, const WeightElements& kind);

/// Whether a tensor, as a file may have it, is the part `box` of a weight, which lies in it. What is computed may be as
/// far off as it can be.
[[nodiscard]] bool is_part(const RingTensor<double>& part, const WeightElements& weight, const IndexBox& box);

}  // namespace taso
