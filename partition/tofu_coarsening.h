/// Coarser graphs for Tofu's search (Wang, Huang, Li 2019, section 5.1): which operators are decided together, and
/// which tensors.
///
/// - Element-wise operators are not decided: all their operands and results are cut alike, so chains of them, gradient
///   sums and updates of weights among them, are one tensor class. An operand of another shape stays what it is.
/// - Time steps of a recurrent network: applications with equal attributes and types that read the same weight are
///   decided together, their operands and results likewise; and so on: equal applications that make tensors of one
///   class, and those that read tensors of the same classes.
/// - Forward and backward operators of a layer need not be put together: variable elimination does not ask for a linear
///   graph, and tries together what meets in the order of elimination.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "operators/registry.h"
#include "support/status.h"

namespace taso {

/// What is known of a graph and cannot be seen in it.
struct TofuGroups {
  /// Values that are weights, beside the constants: readers of one are time steps.
  std::vector<Value> weights;
  /// Applications that are decided together, of equal attributes and types: as steps that were unrolled.
  std::vector<std::vector<NodeId>> together;
  /// Tensors that are kept in one placement: a weight and its updated value or its gradient.
  std::vector<std::pair<Value, Value>> placed_alike;
};

struct TofuCoarsening {
  struct OperatorClass {
    NodeId first = 0;       ///< A member.
    std::size_t count = 0;  ///< Members.
  };
  std::map<Value, std::size_t> tensors;           ///< The class of each tensor of a known type.
  std::vector<Value> first;                       ///< Per class of tensors, a member.
  std::map<NodeId, std::size_t> operators;        ///< The class of each operator that is decided.
  std::vector<OperatorClass> classes;             ///< In topological order of their first members.
  std::size_t nodes = 0, values = 0, merged = 0;  ///< Before; and element-wise operators that are not decided.
};

/// Where groups do not fit the graph: bad_input.
[[nodiscard]] Expected<TofuCoarsening> coarsen(const Graph& graph, const OperatorRegistry& registry,
                                               const TofuGroups& groups = {});

}  // namespace taso
