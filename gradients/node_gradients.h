/// The gradients of what one node of a graph reads, as nodes.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "gradients/node_adder.h"
#include "gradients/table.h"
#include "graph/graph.h"
#include "operators/registry.h"
#include "support/status.h"

namespace taso {

/// Adds to a graph what a table says of the gradients of one node, which is an application of an operator.
class NodeGradients {
 public:
  /// `output_gradients`: per output of the node, where there is one; a missing one counts as zeros. All references must
  /// outlive this.
  NodeGradients(NodeAdder& adder, const OperatorRegistry& registry, const GradientTable& table, NodeId node,
                std::vector<std::optional<Value>> output_gradients);

  /// The entry that counts for an input, by its position; null if there is none.
  [[nodiscard]] const GradientEntry* entry(std::size_t position) const;
  /// The gradient of an input, by its position; an error says what the table lacks.
  [[nodiscard]] Expected<Value> of(std::size_t position);

 private:
  [[nodiscard]] Expected<Value> value(const GradientOperand& operand, std::size_t position);
  [[nodiscard]] Status add_values(const GradientOperand& operand, std::size_t position, std::vector<Value>& values);
  [[nodiscard]] Expected<Value> apply(const GradientTerm& term, std::size_t position);
  [[nodiscard]] Expected<Attributes> attributes_of(const GradientTerm& term) const;
  [[nodiscard]] Expected<Value> output_gradient(std::size_t output);

  NodeAdder& adder_;
  const OperatorDefinition& definition_;
  const GradientTable& table_;
  const NodeId id_;
  const Node node_;  // A copy: the graph grows.
  std::vector<TensorType> types_;
  std::vector<std::optional<Value>> output_gradients_;
};

}  // namespace taso
