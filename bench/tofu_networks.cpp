#include "bench/tofu_networks.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph_text.h"

namespace taso {
namespace {

/// Writes a graph forwards, and then the gradients of all that was written, last first.
class Tape {
 public:
  std::string input(const std::string& shape) {
    const std::string name = next();
    inputs_ += fmt::format("input {} f32[{}]\n", name, shape);
    return name;
  }
  std::string weight(const std::string& shape) {
    weights_.push_back(input(shape));
    return weights_.back();
  }
  /// A result, whose gradient `backward` hands on, given its name.
  std::string apply(const std::string& term, std::function<void(const std::string& gradient)> backward) {
    const std::string name = line(term);
    steps_.emplace_back(name, std::move(backward));
    return name;
  }
  /// Adds to the gradient of a value.
  void gradient(const std::string& of, const std::string& term) {
    const std::string part = line(term);
    std::string& all = gradients_[of];
    all = all.empty() ? part : line(fmt::format("add({}, {})", all, part));
  }

  /// With gradients and updated weights.
  Expected<TofuNetwork> finish(const OperatorRegistry& registry) {
    for (; !steps_.empty(); steps_.pop_back())
      if (const auto at = gradients_.find(steps_.back().first); at != gradients_.end())
        steps_.back().second(at->second);
    const std::string rate = next();
    inputs_ += fmt::format("input {} f32[]\n", rate);
    for (const std::string& weight : weights_)
      lines_ += fmt::format("output sub({}, smul({}, {}))\n", weight, gradients_.at(weight), rate);
    TofuNetwork network;
    TASO_ASSIGN(network.graph, parse_graph(inputs_ + lines_, "network", registry));
    std::map<std::string, NodeId> named;
    for (const NodeId id : network.graph.inputs()) named[network.graph.node(id).name] = id;
    for (const std::string& weight : weights_) {
      network.groups.weights.push_back({named.at(weight), 0});
      network.weights += static_cast<double>(network.graph.type({named.at(weight), 0}).elements());
    }
    return network;
  }

 private:
  std::string next() { return fmt::format("v{}", count_++); }
  std::string line(const std::string& term) {
    const std::string name = next();
    lines_ += fmt::format("{} = {}\n", name, term);
    return name;
  }

  std::string inputs_, lines_;
  std::vector<std::string> weights_;
  std::vector<std::pair<std::string, std::function<void(const std::string&)>>> steps_;
  std::map<std::string, std::string> gradients_;
  std::int64_t count_ = 0;
};

std::string product(Tape& tape, const std::string& x, const std::string& w) {
  return tape.apply(fmt::format("matmul({}, {})", x, w), [=, &tape](const std::string& d) {
    tape.gradient(x, fmt::format("product_of_rows({}, {})", d, w));
    tape.gradient(w, fmt::format("product_of_columns({}, {})", x, d));
  });
}

std::string sum(Tape& tape, const std::string& x, const std::string& y) {
  return tape.apply(fmt::format("add({}, {})", x, y), [=, &tape](const std::string& d) {
    tape.gradient(x, fmt::format("neg({})", d));
    tape.gradient(y, fmt::format("neg({})", d));
  });
}

std::string elementwise_product(Tape& tape, const std::string& x, const std::string& y) {
  return tape.apply(fmt::format("mul({}, {})", x, y), [=, &tape](const std::string& d) {
    tape.gradient(x, fmt::format("mul({}, {})", d, y));
    tape.gradient(y, fmt::format("mul({}, {})", d, x));
  });
}

std::string through(Tape& tape, const char* function, const std::string& x) {
  return tape.apply(fmt::format("{}({})", function, x),
                    [=, &tape](const std::string& d) { tape.gradient(x, fmt::format("mul({}, {})", d, x)); });
}

std::string convolution(Tape& tape, const std::string& x, std::int64_t inputs, std::int64_t outputs,
                        std::int64_t kernel, std::int64_t stride) {
  const std::string w = tape.weight(fmt::format("{}, {}, {}, {}", outputs, inputs, kernel, kernel));
  const std::int64_t pad = kernel / 2, behind = stride == 2 && kernel > 1 ? pad - 1 : (stride == 2 ? 0 : pad);
  const std::string term = fmt::format("conv2d({}, {}; strides=[{}, {}], pads=[{}, {}, {}, {}])", x, w, stride, stride,
                                       pad, pad, behind, behind);
  const std::string y = tape.apply(term, [=, &tape](const std::string& d) {
    tape.gradient(w, fmt::format("kernel_gradient({}, {}; kernel={}, stride={}, pad={})", x, d, kernel, stride, pad));
    const std::string spread = stride == 2 ? fmt::format("spread_out({})", d) : d;
    tape.gradient(x, fmt::format("image_gradient({}, {}; pad={})", spread, w, pad));
  });
  const std::string g = tape.weight(std::to_string(outputs)), s = tape.weight(std::to_string(outputs));
  return tape.apply(fmt::format("scale_channels({}, {}, {})", y, g, s), [=, &tape](const std::string& d) {
    tape.gradient(y, fmt::format("scale_gradient({}, {})", d, g));
    tape.gradient(g, fmt::format("channel_products({}, {})", y, d));
    tape.gradient(s, fmt::format("channel_sums({})", d));
  });
}

/// 1 by 1, 3 by 3, 1 by 1 to four times the channels, and around them what was read.
std::string bottleneck(Tape& tape, const std::string& x, std::int64_t inputs, std::int64_t channels,
                       std::int64_t stride) {
  std::string y = through(tape, "relu", convolution(tape, x, inputs, channels, 1, 1));
  y = through(tape, "relu", convolution(tape, y, channels, channels, 3, stride));
  y = convolution(tape, y, channels, 4 * channels, 1, 1);
  const bool same = inputs == 4 * channels && stride == 1;
  return through(tape, "relu", sum(tape, y, same ? x : convolution(tape, x, inputs, 4 * channels, 1, stride)));
}

std::string classified(Tape& tape, const std::string& x, std::int64_t channels, std::int64_t size) {
  const std::string pooled = tape.apply(fmt::format("image_sums({})", x), [=, &tape](const std::string& d) {
    tape.gradient(x, fmt::format("image_sums_gradient({}; h={}, w={})", d, size, size));
  });
  const std::string scores = product(tape, pooled, tape.weight(fmt::format("{}, 1000", channels)));
  const std::string bias = tape.weight("1000");
  return tape.apply(fmt::format("add_row({}, {})", scores, bias), [=, &tape](const std::string& d) {
    tape.gradient(scores, fmt::format("neg({})", d));
    tape.gradient(bias, fmt::format("row_sums({})", d));
  });
}

/// A layer of an LSTM for all time steps: what it reads at each becomes its state.
void lstm_layer(Tape& tape, std::vector<std::string>& sequence, std::int64_t inputs, std::int64_t units,
                std::int64_t batch) {
  std::vector<std::string> of_input, of_state;
  for (int gate = 0; gate < 4; ++gate) {
    of_input.push_back(tape.weight(fmt::format("{}, {}", inputs, units)));
    of_state.push_back(tape.weight(fmt::format("{}, {}", units, units)));
  }
  std::string state = tape.input(fmt::format("{}, {}", batch, units)),
              cell = tape.input(fmt::format("{}, {}", batch, units));
  for (std::string& read : sequence) {
    std::vector<std::string> gates;
    for (std::size_t gate = 0; gate < 4; ++gate)
      gates.push_back(through(tape, gate == 3 ? "tanh" : "sigmoid",
                              sum(tape, product(tape, read, of_input[gate]), product(tape, state, of_state[gate]))));
    cell = sum(tape, elementwise_product(tape, gates[0], cell), elementwise_product(tape, gates[1], gates[3]));
    state = elementwise_product(tape, gates[2], through(tape, "tanh", cell));
    read = state;
  }
}

/// A convolution without bias; where nothing reads the gradient of images it is not computed.
std::string plain_convolution(Tape& tape, const std::string& x, std::int64_t inputs, std::int64_t outputs,
                              std::int64_t kernel, std::int64_t stride, std::int64_t pad, bool of_data) {
  const std::string w = tape.weight(fmt::format("{}, {}, {}, {}", outputs, inputs, kernel, kernel));
  const std::string term =
      fmt::format("conv2d({}, {}; strides=[{}, {}], pads=[{}, {}, {}, {}])", x, w, stride, stride, pad, pad, pad, pad);
  return tape.apply(term, [=, &tape](const std::string& d) {
    tape.gradient(w, fmt::format("kernel_gradient({}, {}; kernel={}, stride={}, pad={})", x, d, kernel, stride, pad));
    if (!of_data) tape.gradient(x, fmt::format("image_gradient({}, {}; pad={})", d, w, pad));
  });
}

/// Images and filters of a layer.
struct Images {
  std::string name;
  std::int64_t channels = 0, size = 0;
};

Images filtered(Tape& tape, const Images& x, std::int64_t filters, std::int64_t kernel, std::int64_t stride,
                std::int64_t pad, bool of_data = false) {
  const std::string y = plain_convolution(tape, x.name, x.channels, filters, kernel, stride, pad, of_data);
  return {through(tape, "relu", y), filters, (x.size + 2 * pad - kernel) / stride + 1};
}

Images max_pooled(Tape& tape, const Images& x, std::int64_t kernel) {
  const std::string y =
      tape.apply(fmt::format("max_pool2d({}; kernel=[{}, {}], strides=[2, 2])", x.name, kernel, kernel),
                 [name = x.name, size = x.size, &tape](const std::string& d) {
                   tape.gradient(name, fmt::format("pool_gradient({}; size={})", d, size));
                 });
  return {y, x.channels, (x.size - kernel) / 2 + 1};
}

/// Two layers of 4,096 neurons, and one of 1,000.
std::string three_layers(Tape& tape, const Images& x, std::int64_t batch, std::int64_t width) {
  std::int64_t units = x.channels * x.size * x.size;
  std::string y =
      tape.apply(fmt::format("reshape({}; shape=[{}, {}])", x.name, batch, units), [=, &tape](const auto& d) {
        tape.gradient(x.name, fmt::format("reshape({}; shape=[{}, {}, {}, {}])", d, batch, x.channels, x.size, x.size));
      });
  for (int layer = 0; layer < 2; ++layer) {
    y = through(tape, "relu", product(tape, y, tape.weight(fmt::format("{}, {}", units, 4096 * width))));
    units = 4096 * width;
  }
  return product(tape, y, tape.weight(fmt::format("{}, 1000", units)));
}

Expected<TofuNetwork> against_wanted(Tape& tape, const std::string& made, const std::string& shape,
                                     const OperatorRegistry& registry) {
  tape.gradient(made, fmt::format("sub({}, {})", made, tape.input(shape)));
  return tape.finish(registry);
}

}  // namespace

Expected<TofuNetwork> wide_resnet_in_training(std::int64_t layers, std::int64_t width, std::int64_t batch,
                                              const OperatorRegistry& registry) {
  const std::map<std::int64_t, std::vector<int>> blocks{{50, {3, 4, 6, 3}}, {101, {3, 4, 23, 3}}, {152, {3, 8, 36, 3}}};
  Tape tape;
  std::int64_t channels = 64 * width, size = 56;
  std::string x = convolution(tape, tape.input(fmt::format("{}, 3, 224, 224", batch)), 3, channels, 7, 2);
  x = tape.apply(fmt::format("halve({})", through(tape, "relu", x)), [&tape, below = x](const std::string& d) {
    tape.gradient(below, fmt::format("halve_gradient({})", d));
  });
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const std::int64_t inner = (64 * width) << stage;
    for (int block = 0; block < blocks.at(layers)[stage]; ++block) {
      x = bottleneck(tape, x, channels, inner, block == 0 && stage > 0 ? 2 : 1);
      channels = 4 * inner;
    }
    if (stage > 0) size /= 2;
  }
  const std::string scores = classified(tape, x, channels, size);
  tape.gradient(scores, fmt::format("sub({}, {})", scores, tape.input(fmt::format("{}, 1000", batch))));
  return tape.finish(registry);
}

Expected<TofuNetwork> lstm_in_training(std::int64_t layers, std::int64_t units, std::int64_t batch, std::int64_t steps,
                                       const OperatorRegistry& registry) {
  constexpr std::int64_t inputs = 128;  // few, as in the published sizes
  Tape tape;
  std::vector<std::string> sequence;
  for (std::int64_t step = 0; step < steps; ++step)
    sequence.push_back(tape.input(fmt::format("{}, {}", batch, inputs)));
  for (std::int64_t layer = 0; layer < layers; ++layer)
    lstm_layer(tape, sequence, layer == 0 ? inputs : units, units, batch);
  for (const std::string& state : sequence)
    tape.gradient(state, fmt::format("sub({}, {})", state, tape.input(fmt::format("{}, {}", batch, units))));
  return tape.finish(registry);
}

Expected<TofuNetwork> mlp_in_training(std::int64_t batch, const std::vector<std::int64_t>& units,
                                      const OperatorRegistry& registry) {
  Tape tape;
  const std::string data = tape.input(fmt::format("{}, {}", batch, units[0]));
  std::string x = data;
  for (std::size_t layer = 0; layer + 1 < units.size(); ++layer) {
    const std::string read = x, w = tape.weight(fmt::format("{}, {}", units[layer], units[layer + 1]));
    x = tape.apply(fmt::format("matmul({}, {})", read, w), [=, &tape](const std::string& d) {
      if (read != data) tape.gradient(read, fmt::format("product_of_rows({}, {})", d, w));
      tape.gradient(w, fmt::format("product_of_columns({}, {})", read, d));
    });
    if (layer + 2 < units.size()) x = through(tape, "relu", x);
  }
  return against_wanted(tape, x, fmt::format("{}, {}", batch, units.back()), registry);
}

Expected<TofuNetwork> convolutions_in_training(std::int64_t layers, std::int64_t filters, std::int64_t size,
                                               std::int64_t batch, const OperatorRegistry& registry) {
  Tape tape;
  const std::string shape = fmt::format("{}, {}, {}, {}", batch, filters, size, size);
  Images x{tape.input(shape), filters, size};
  for (std::int64_t layer = 0; layer < layers; ++layer) x = filtered(tape, x, filters, 3, 1, 1, layer == 0);
  return against_wanted(tape, x.name, shape, registry);
}

Expected<TofuNetwork> alexnet_in_training(std::int64_t batch, std::int64_t width, const OperatorRegistry& registry) {
  Tape tape;
  Images x{tape.input(fmt::format("{}, 3, 227, 227", batch)), 3, 227};
  x = max_pooled(tape, filtered(tape, x, 96 * width, 11, 4, 0, true), 3);
  x = max_pooled(tape, filtered(tape, x, 256 * width, 5, 1, 2), 3);
  x = filtered(tape, x, 384 * width, 3, 1, 1);
  x = filtered(tape, x, 384 * width, 3, 1, 1);
  x = max_pooled(tape, filtered(tape, x, 256 * width, 3, 1, 1), 3);
  return against_wanted(tape, three_layers(tape, x, batch, width), fmt::format("{}, 1000", batch), registry);
}

Expected<TofuNetwork> vgg19_in_training(std::int64_t batch, std::int64_t width, const OperatorRegistry& registry) {
  constexpr std::pair<int, std::int64_t> stages[] = {{2, 64}, {2, 128}, {4, 256}, {4, 512}, {4, 512}};
  Tape tape;
  Images x{tape.input(fmt::format("{}, 3, 224, 224", batch)), 3, 224};
  for (const auto& [layers, filters] : stages) {
    for (int layer = 0; layer < layers; ++layer) x = filtered(tape, x, filters * width, 3, 1, 1, x.channels == 3);
    x = max_pooled(tape, x, 2);
  }
  return against_wanted(tape, three_layers(tape, x, batch, width), fmt::format("{}, 1000", batch), registry);
}

}  // namespace taso
