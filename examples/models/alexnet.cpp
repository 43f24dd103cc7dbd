// AlexNet as one device computes it, without its normalization, and VGG-19: convolutions with ReLU, pooling, and three
// fully connected layers, which hold most of the weights.
#include <array>
#include <string>

#include "examples/models/models.h"
#include "examples/models/network.h"

namespace taso::examples {
namespace {

// fc, relu, fc, relu, fc.
void classify(Network& net, const Activation& x, std::int64_t narrower) {
  const Activation first = net.relu(net.gemm("fc1", net.flatten(x), 4096 / narrower));
  net.output(net.gemm("fc3", net.relu(net.gemm("fc2", first, 4096 / narrower)), 1000 / narrower));
}

}  // namespace

ModelBuilder build_alexnet(const ModelOptions& options) {
  const std::int64_t side = options.extent > 0 ? options.extent : 227;
  const std::int64_t narrower = options.narrower > 0 ? options.narrower : 1;
  Network net("alexnet", options.seed, options.batch, options.without_weights);
  Activation x = net.input("image", {3, side, side});
  x = net.max_pool(net.relu(net.conv("conv1", x, 96 / narrower, square(11, 4))), square(3, 2));
  x = net.max_pool(net.relu(net.conv("conv2", x, 256 / narrower, square(5, 1, 2))), square(3, 2));
  x = net.relu(net.conv("conv3", x, 384 / narrower, square(3, 1, 1)));
  x = net.relu(net.conv("conv4", x, 384 / narrower, square(3, 1, 1)));
  x = net.max_pool(net.relu(net.conv("conv5", x, 256 / narrower, square(3, 1, 1))), square(3, 2));
  classify(net, x, narrower);
  return net.take();
}

ModelBuilder build_vgg19(const ModelOptions& options) {
  const std::int64_t side = options.extent > 0 ? options.extent : 224;
  const std::int64_t narrower = options.narrower > 0 ? options.narrower : 1;
  Network net("vgg19", options.seed, options.batch, options.without_weights);
  Activation x = net.input("image", {3, side, side});
  struct Stage {
    std::int64_t layers, channels;
  };
  constexpr std::array<Stage, 5> stages = {{{2, 64}, {2, 128}, {4, 256}, {4, 512}, {4, 512}}};
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (std::int64_t i = 0; i < stages[s].layers; ++i)
      x = net.relu(net.conv("conv" + std::to_string(s + 1) + "_" + std::to_string(i + 1), x,
                            stages[s].channels / narrower, square(3, 1, 1)));
    x = net.max_pool(x, square(2, 2));
  }
  classify(net, x, narrower);
  return net.take();
}

}  // namespace taso::examples
