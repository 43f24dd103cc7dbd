/// Graphs of tests as ONNX models.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "onnx_io/builder.h"
#include "onnx_io/model.h"
#include "tests/support/shipped.h"

namespace taso::test {

/// A model whose inputs and outputs are those of a graph, made by one operator that nobody knows: Model::save writes
/// the graph in its place.
inline Model carrier(const Graph& graph, int opset) {
  ModelBuilder builder(opset, "carrier");
  builder.add_opset("carrier", 1);
  std::vector<std::string> inputs, outputs;
  for (const NodeId id : graph.inputs()) {
    const Node& input = graph.node(id);
    builder.add_input(input.name, input.outputs[0].shape, input.outputs[0].element);
    inputs.push_back(input.name);
  }
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    outputs.push_back("out" + std::to_string(i));
    const TensorType& type = graph.type(graph.outputs()[i]);
    builder.add_output(outputs.back(), type.shape, type.element);
  }
  builder.add_node("Make", inputs, outputs, {}, "make", "carrier");
  return value_of(Model::parse(builder.serialize(), "carrier.onnx", registry()));
}

}  // namespace taso::test
