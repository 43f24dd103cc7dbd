// AlexNet as one device computes it, without its normalization, and VGG-19: convolutions with ReLU, pooling, and three
// fully connected layers, which hold most of the weights.
#include <array>
#include <string>

#include "examples/models/models.h"
#include "examples/models/network.h"

namespace taso::examples {
namespace {

/// Numbers of channels and neurons as the options change them.
class Width {
 public:
  explicit Width(const ModelOptions& options)
      : wider_(options.wider > 0 ? options.wider : 1), narrower_(options.narrower > 0 ? options.narrower : 1) {}
  [[nodiscard]] std::int64_t operator()(std::int64_t count) const { return count * wider_ / narrower_; }
  [[nodiscard]] std::int64_t classes(std::int64_t count) const { return count / narrower_; }

 private:
  std::int64_t wider_, narrower_;
};

// fc, relu, fc, relu, fc.
void classify(Network& net, const Activation& x, const Width& width) {
  const Activation first = net.relu(net.gemm("fc1", net.flatten(x), width(4096)));
  net.output(net.gemm("fc3", net.relu(net.gemm("fc2", first, width(4096))), width.classes(1000)));
}

}  // namespace

ModelBuilder build_alexnet(const ModelOptions& options) {
  const std::int64_t side = options.extent > 0 ? options.extent : 227;
  const Width width(options);
  Network net("alexnet", options.seed, options.batch, options.without_weights);
  Activation x = net.input("image", {3, side, side});
  x = net.max_pool(net.relu(net.conv("conv1", x, width(96), square(11, 4))), square(3, 2));
  x = net.max_pool(net.relu(net.conv("conv2", x, width(256), square(5, 1, 2))), square(3, 2));
  x = net.relu(net.conv("conv3", x, width(384), square(3, 1, 1)));
  x = net.relu(net.conv("conv4", x, width(384), square(3, 1, 1)));
  x = net.max_pool(net.relu(net.conv("conv5", x, width(256), square(3, 1, 1))), square(3, 2));
  classify(net, x, width);
  return net.take();
}

ModelBuilder build_vgg19(const ModelOptions& options) {
  const std::int64_t side = options.extent > 0 ? options.extent : 224;
  const Width width(options);
  Network net("vgg19", options.seed, options.batch, options.without_weights);
  Activation x = net.input("image", {3, side, side});
  struct Stage {
    std::int64_t layers, channels;
  };
  constexpr std::array<Stage, 5> stages = {{{2, 64}, {2, 128}, {4, 256}, {4, 512}, {4, 512}}};
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (std::int64_t i = 0; i < stages[s].layers; ++i)
      x = net.relu(net.conv("conv" + std::to_string(s + 1) + "_" + std::to_string(i + 1), x, width(stages[s].channels),
                            square(3, 1, 1)));
    x = net.max_pool(x, square(2, 2));
  }
  classify(net, x, width);
  return net.take();
}

}  // namespace taso::examples
