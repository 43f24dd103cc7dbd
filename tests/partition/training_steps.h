/// Training steps of small networks as graphs, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/graphs.h"

namespace taso::test {

/// A graph, and which of its inputs become which of its outputs.
struct TrainingStep {
  Graph graph;
  std::vector<std::pair<Value, Value>> weights;
};

/// Fully connected layers of units[0] to units.back() neurons without activation, squared error: products forward, of
/// gradients and of weights' gradients, and the update.
inline TrainingStep linear_layers(std::int64_t batch, const std::vector<std::int64_t>& units) {
  const auto matrix = [](std::int64_t rows, std::int64_t columns) {
    return " f32[" + std::to_string(rows) + ", " + std::to_string(columns) + "]\n";
  };
  const std::size_t layers = units.size() - 1;
  const auto name = [](const char* letter, std::size_t number) { return letter + std::to_string(number); };
  std::string text = "input target" + matrix(batch, units.back()) + "input x0" + matrix(batch, units[0]);
  text += "weight rate f32[] = 0.125\n";
  for (std::size_t l = 0; l < layers; ++l) text += "input " + name("w", l) + matrix(units[l], units[l + 1]);
  for (std::size_t l = 0; l < layers; ++l)
    text += name("x", l + 1) + " = matmul(" + name("x", l) + ", " + name("w", l) + ")\n";
  text += name("g", layers) + " = sub(" + name("x", layers) + ", target)\n";
  std::string outputs;
  for (std::size_t l = layers; l-- > 0;) {
    text += name("d", l) + " = matmul(transpose(" + name("x", l) + "; perm=[1, 0]), " + name("g", l + 1) + ")\n";
    text += name("n", l) + " = sub(" + name("w", l) + ", smul(" + name("d", l) + ", rate))\n";
    if (l > 0)
      text += name("g", l) + " = matmul(" + name("g", l + 1) + ", transpose(" + name("w", l) + "; perm=[1, 0]))\n";
    outputs = (outputs.empty() ? name("n", l) : name("n", l) + ", " + outputs);
  }
  TrainingStep step{graph_of(text + "output " + outputs + "\n"), {}};
  for (std::size_t l = 0; l < layers; ++l)
    step.weights.emplace_back(Value{step.graph.inputs().at(2 + l), 0}, step.graph.outputs().at(l));
  return step;
}

}  // namespace taso::test
