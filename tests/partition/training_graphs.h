/// Training graphs of layers, written by hand, for tests of Tofu's search.
#pragma once

#include <string>
#include <vector>

#include "graph/graph_text.h"
#include "partition/operator_piece.h"
#include "partition/tofu_coarsening.h"
#include "tests/support/cases.h"
#include "tests/support/shipped.h"

namespace taso::test {

/// The shipped operators and products with a transposed operand.
inline const OperatorRegistry& product_registry() {
  static const OperatorRegistry loaded =
      value_of(OperatorRegistry::load(std::string(TASO_SOURCE_DIR) + "/tests/partition/products", &registry()));
  return loaded;
}

inline StrategyTable product_strategies() {
  return StrategyTable(
      product_registry(), [](std::string_view op) { return derive_strategies(product_registry(), op).strategies; },
      [](std::string_view) { return std::vector<PartialPassage>(); });
}

struct TrainingGraph {
  Graph graph;
  TofuGroups groups;
};

/// Layers without activation functions for a batch: forward products, gradients of what layers read but for the first,
/// gradients of weights, which are kept as the weights are. dims: what each layer reads, and what the last one makes.
/// The gradient of the result is the result.
inline TrainingGraph layers_in_training(std::int64_t batch, const std::vector<std::int64_t>& dims) {
  const std::size_t layers = dims.size() - 1;
  const auto name = [](const char* what, std::size_t layer) { return what + std::to_string(layer); };
  std::string text = "input x0 f32[" + std::to_string(batch) + ", " + std::to_string(dims[0]) + "]\n";
  for (std::size_t l = 1; l <= layers; ++l)
    text += "input " + name("w", l) + " f32[" + std::to_string(dims[l - 1]) + ", " + std::to_string(dims[l]) + "]\n";
  for (std::size_t l = 1; l <= layers; ++l)
    text += name("x", l) + " = matmul(" + name("x", l - 1) + ", " + name("w", l) + ")\n";
  for (std::size_t l = layers; l >= 1; --l) {
    const std::string above = l == layers ? name("x", l) : name("d", l);
    if (l > 1) text += name("d", l - 1) + " = product_of_rows(" + above + ", " + name("w", l) + ")\n";
    text +=
        name("g", l) + " = product_of_columns(" + name("x", l - 1) + ", " + above + ")\noutput " + name("g", l) + "\n";
  }
  TrainingGraph made{value_of(parse_graph(text, "layers", product_registry())), {}};
  const std::vector<NodeId>& inputs = made.graph.inputs();
  for (std::size_t l = 1; l <= layers; ++l) {
    made.groups.weights.push_back({inputs[l], 0});
    made.groups.placed_alike.emplace_back(Value{inputs[l], 0}, made.graph.outputs()[layers - l]);
  }
  return made;
}

}  // namespace taso::test
