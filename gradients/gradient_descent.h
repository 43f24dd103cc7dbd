/// Training steps as graphs: forward, gradients, and weights after one step of gradient descent.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gradients/table.h"
#include "graph/graph.h"
#include "graph/pattern.h"
#include "operators/registry.h"
#include "support/status.h"

namespace taso {

/// A training step. Ids of forward nodes are those of the graph that it was made from.
struct GradientDescentStep {
  Graph graph;  ///< Its outputs: the loss, then the updated weights.
  /// Each weight and its value after the step.
  std::vector<std::pair<Value, Value>> weights;
  std::map<Value, Value> gradients;  ///< Of values that the weights reach and that reach the loss.
  /// Per forward node, ascending, the nodes of the gradients of what it reads; sums of gradients of a value that
  /// several nodes read are with the node that made it.
  std::map<NodeId, std::vector<NodeId>> backward;
};

/// The step w - learning_rate * gradient for each weight, `learning_rate` being a new input. The gradient is that of
/// the sum of all elements of `loss`: by a table, backwards from it; gradients of a value that is read more than once
/// are added. `weights`: values without a producer in which the loss is to become less, inputs of the graph. Fails
/// where a node between them and the loss is not understood or has no gradient in the table.
[[nodiscard]] Expected<GradientDescentStep> gradient_descent_step(const Graph& forward, Value loss,
                                                                  const std::vector<Value>& weights,
                                                                  const OperatorRegistry& registry,
                                                                  const GradientTable& table);

/// The cross-entropy of the softmax of scores with a new input `target` of their type, for every row.
[[nodiscard]] Expected<Value> add_cross_entropy(Graph& graph, const OperatorRegistry& registry, Value scores);
/// The squares of the differences between a value and a new input of its type.
[[nodiscard]] Expected<Value> add_squared_error(Graph& graph, const OperatorRegistry& registry, Value value,
                                                const std::string& target);

/// A graph in which weights are inputs.
struct TrainableGraph {
  Graph graph;
  std::vector<Value> weights;  ///< Inputs, after those of the graph.
};

/// The graph with all constants of floating-point numbers that have more than one element as inputs, named as the
/// constants are (`weight0`, ... where they have no name). Before that, the rules are applied, in this order, as long
/// as one occurs; each must carry a proof. Operators that the table does not know are taken apart by their definitions
/// (operators/unfold.h), where these have such a form. Recorded statistics of batch_norm are replaced by those of the
/// batch, which are computed: mean and variance over all but the channels.
[[nodiscard]] Expected<TrainableGraph> trainable(Graph graph, const OperatorRegistry& registry,
                                                 const GradientTable& table,
                                                 const std::vector<Substitution>& rules = {});

}  // namespace taso
