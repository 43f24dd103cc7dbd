// ResNets of 50, 101 and 152 layers, and ResNeXt-50. Bottleneck blocks 1x1, 3x3, 1x1 around a shortcut; the stride
// stands at the 3x3 convolution, which ResNeXt has twice as wide, in 32 groups.
#include <algorithm>
#include <array>
#include <string>

#include "examples/models/models.h"
#include "examples/models/network.h"

namespace taso::examples {

namespace {

using Stages = std::array<std::int64_t, 4>;
constexpr Stages of_50_layers = {3, 4, 6, 3};

ModelBuilder build(const std::string& title, const ModelOptions& options, const Stages& blocks, std::int64_t groups = 1,
                   std::int64_t inner = 1) {
  const std::int64_t side = options.extent > 0 ? options.extent : 224;
  const std::int64_t narrower = options.narrower > 0 ? options.narrower : 1;
  const std::int64_t stem = 64 * (options.wider > 0 ? options.wider : 1);
  Network net(title, options.seed, options.batch, options.without_weights);

  // The last scale of a block is small, as it is in a trained network: sixteen blocks then add up to activations of
  // the size of the first.
  constexpr double residual_scale = 0.3;
  const auto block = [&](const std::string& name, const Activation& x, std::int64_t channels, std::int64_t stride) {
    Activation y = net.relu(net.conv_bn(name + ".1", x, inner * channels, square(1)));
    y = net.relu(net.conv_bn(name + ".2", y, inner * channels, square(3, stride, 1, groups)));
    y = net.conv_bn(name + ".3", y, 4 * channels, square(1), residual_scale);
    const bool same = stride == 1 && x.shape[0] == 4 * channels;
    const Activation shortcut = same ? x : net.conv_bn(name + ".shortcut", x, 4 * channels, square(1, stride));
    return net.relu(net.binary("Add", y, shortcut));
  };

  Activation x = net.input("image", {3, side, side});
  x = net.relu(net.conv_bn("stem", x, stem / narrower, square(7, 2, 3)));
  x = net.max_pool(x, square(3, 2, 1));
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    const std::int64_t count = options.depth > 0 ? std::min(options.depth, blocks[stage]) : blocks[stage];
    for (std::int64_t i = 0; i < count; ++i)
      x = block("stage" + std::to_string(stage + 1) + "." + std::to_string(i), x, (stem << stage) / narrower,
                stage > 0 && i == 0 ? 2 : 1);
  }
  net.output(net.gemm("classifier", net.global_average(x), 1000 / narrower));
  return net.take();
}

}  // namespace

ModelBuilder build_resnet50(const ModelOptions& options) { return build("resnet50", options, of_50_layers); }
ModelBuilder build_resnet101(const ModelOptions& options) { return build("resnet101", options, {3, 4, 23, 3}); }
ModelBuilder build_resnet152(const ModelOptions& options) { return build("resnet152", options, {3, 8, 36, 3}); }

ModelBuilder build_resnext50_32x4d(const ModelOptions& options) {
  // A narrower network has fewer groups of the same width.
  return build("resnext50_32x4d", options, of_50_layers,
               std::max<std::int64_t>(1, 32 / std::max<std::int64_t>(1, options.narrower)), 2);
}

}  // namespace taso::examples
