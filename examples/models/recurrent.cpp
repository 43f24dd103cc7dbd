// Layers of LSTM: spelled out over their steps, as training systems unroll them, and as ONNX's own operator between an
// embedding and a product with the vocabulary.
#include <algorithm>
#include <string>
#include <vector>

#include "examples/models/models.h"
#include "examples/models/network.h"

namespace taso::examples {
namespace {

struct CellState {
  Activation hidden, cell;
};

// One step: all gates as one product with the input and one with the state, split.
CellState step(Network& net, const std::string& name, const Activation& x, const CellState& before) {
  const std::int64_t features = before.hidden.shape.back();
  const Activation gates = net.binary("Add", net.linear(name + ".input", x, 4 * features),
                                      net.matmul(name + ".state.weight", before.hidden, 4 * features));
  const std::vector<Activation> parts = net.split(gates, 4);
  const Activation kept = net.binary("Mul", net.unary("Sigmoid", parts[1]), before.cell);
  const Activation added = net.binary("Mul", net.unary("Sigmoid", parts[0]), net.unary("Tanh", parts[2]));
  const Activation cell = net.binary("Add", kept, added);
  return {net.binary("Mul", net.unary("Sigmoid", parts[3]), net.unary("Tanh", cell)), cell};
}

}  // namespace

ModelBuilder build_lstm(const ModelOptions& options) {
  const std::int64_t steps = options.extent > 0 ? options.extent : 20;
  const std::int64_t layers = options.depth > 0 ? options.depth : 6;
  const std::int64_t features =
      1024 * (options.wider > 0 ? options.wider : 1) / (options.narrower > 0 ? options.narrower : 1);
  Network net("lstm", options.seed, options.batch, options.without_weights);
  std::vector<Activation> sequence;
  // What the first layer reads is small beside its state.
  const std::int64_t read = std::min<std::int64_t>(features, 64);
  for (std::int64_t t = 0; t < steps; ++t) sequence.push_back(net.input("x" + std::to_string(t), {read}));
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string name = "layer" + std::to_string(layer);
    CellState state = {net.input(name + ".h", {features}), net.input(name + ".c", {features})};
    for (Activation& x : sequence) {
      state = step(net, name, x, state);
      x = state.hidden;
    }
  }
  net.output(sequence.back());
  return net.take();
}

ModelBuilder build_rnnlm(const ModelOptions& options) {
  const std::int64_t narrower = options.narrower > 0 ? options.narrower : 1;
  const std::int64_t steps = options.extent > 0 ? options.extent : 256;
  const std::int64_t layers = options.depth > 0 ? options.depth : 2;
  const std::int64_t features = 2048 / narrower, words = 100'000 / narrower;
  Network net("rnnlm", options.seed, options.batch, options.without_weights);
  // ONNX's LSTM has the steps first: [batch, steps, ...] is turned before it, and its one direction is left out after.
  Activation x = net.embedding("embedding.weight", net.tokens("words", {steps}), words, features);
  const std::int64_t batch = options.batch > 0 ? options.batch : 1;
  x = net.node("Transpose", {x.name}, {}, {{"perm", {1, 0, 2}}});
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string name = "lstm" + std::to_string(layer);
    const Activation all =
        net.node("LSTM",
                 {x.name, net.weight(name + ".W", {1, 4 * features, features}),
                  net.weight(name + ".R", {1, 4 * features, features}), net.weight(name + ".B", {1, 8 * features})},
                 {}, {{"hidden_size", features}}, name);
    x = net.node("Reshape", {all.name, net.integers({steps, batch, features})}, {});
  }
  x = net.node("Transpose", {x.name}, {steps, features}, {{"perm", {1, 0, 2}}});
  net.output(net.linear("classifier", x, words));
  return net.take();
}

}  // namespace taso::examples
