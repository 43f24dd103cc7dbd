// A recurrent network whose cell was found by search (Zoph and Le 2016, "Neural architecture search with reinforcement
// learning"), in the form that TASO evaluated. Each step multiplies its input by eight weights and the hidden state
// by eight others: sixteen products, of which eight share one operand and eight the other, so that two remain. All
// steps use the same weights.
#include <array>
#include <vector>

#include "examples/models/models.h"
#include "examples/models/network.h"

namespace taso::examples {

ModelBuilder build_nasrnn(const ModelOptions& options) {
  const std::int64_t features = 512 / (options.narrower > 0 ? options.narrower : 1);
  const std::int64_t steps = options.depth > 0 ? options.depth : 5;
  Network net("nasrnn", options.seed, options.batch, options.without_weights);

  std::vector<Activation> inputs;
  for (std::int64_t step = 0; step < steps; ++step) inputs.push_back(net.input("x" + std::to_string(step), {features}));
  Activation h = net.input("h0", {features});
  for (const Activation& x : inputs) {
    std::array<Activation, 8> gate;
    for (std::size_t i = 0; i < gate.size(); ++i)
      gate[i] = net.binary("Add", net.matmul("wx." + std::to_string(i), x, features),
                           net.matmul("wh." + std::to_string(i), h, features));
    const auto relu = [&](const Activation& a) { return net.unary("Relu", a); };
    const auto sigmoid = [&](const Activation& a) { return net.unary("Sigmoid", a); };
    const auto tanh = [&](const Activation& a) { return net.unary("Tanh", a); };
    const Activation first = net.binary("Add", relu(gate[0]), sigmoid(gate[3]));
    const Activation second = net.binary("Mul", sigmoid(gate[1]), tanh(gate[2]));
    const Activation third = net.binary("Add", sigmoid(gate[4]), relu(gate[5]));
    const Activation fourth = net.binary("Mul", tanh(gate[6]), sigmoid(gate[7]));
    h = tanh(net.binary("Add", net.binary("Mul", sigmoid(first), tanh(second)),
                        net.binary("Mul", tanh(third), sigmoid(fourth))));
  }
  net.output(h);
  return net.take();
}

}  // namespace taso::examples
