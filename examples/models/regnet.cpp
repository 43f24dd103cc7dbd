// RegNetY-400MF. Residual blocks 1x1, grouped 3x3 with groups of eight channels, 1x1; between the last two, channels
// are scaled by what squeeze-and-excitation makes of their averages.
#include <algorithm>
#include <array>
#include <string>

#include "examples/models/models.h"
#include "examples/models/network.h"

namespace taso::examples {

ModelBuilder build_regnet_y_400mf(const ModelOptions& options) {
  constexpr std::int64_t group_width = 8;
  constexpr std::array<std::int64_t, 4> widths = {48, 104, 208, 440}, depths = {1, 3, 6, 6};
  constexpr double residual_scale = 0.3;
  const std::int64_t side = options.extent > 0 ? options.extent : 224;
  const std::int64_t narrower = options.narrower > 0 ? options.narrower : 1;
  Network net("regnet_y_400mf", options.seed, options.batch, options.without_weights);

  const auto excite = [&](const std::string& name, const Activation& x, std::int64_t squeezed) {
    const Activation average = net.node("GlobalAveragePool", {x.name}, {x.shape[0], 1, 1});
    const Activation hidden = net.relu(net.conv(name + ".1", average, squeezed, square(1)));
    const Activation gate = net.unary("Sigmoid", net.conv(name + ".2", hidden, x.shape[0], square(1)));
    return net.node("Mul", {x.name, gate.name}, x.shape);
  };
  const auto block = [&](const std::string& name, const Activation& x, std::int64_t channels, std::int64_t stride) {
    Activation y = net.relu(net.conv_bn(name + ".a", x, channels, square(1)));
    y = net.relu(net.conv_bn(name + ".b", y, channels, square(3, stride, 1, channels / group_width)));
    y = excite(name + ".se", y, std::max<std::int64_t>(1, x.shape[0] / 4));
    y = net.conv_bn(name + ".c", y, channels, square(1), residual_scale);
    const bool same = stride == 1 && x.shape[0] == channels;
    return net.relu(net.binary("Add", y, same ? x : net.conv_bn(name + ".shortcut", x, channels, square(1, stride))));
  };

  Activation x = net.input("image", {3, side, side});
  x = net.relu(net.conv_bn("stem", x, 32 / narrower, square(3, 2, 1)));
  for (std::size_t stage = 0; stage < widths.size(); ++stage) {
    // A narrower network has fewer groups of the same width.
    const std::int64_t channels = std::max(group_width, widths[stage] / narrower / group_width * group_width);
    const std::int64_t count = options.depth > 0 ? std::min(options.depth, depths[stage]) : depths[stage];
    for (std::int64_t i = 0; i < count; ++i)
      x = block("stage" + std::to_string(stage + 1) + "." + std::to_string(i), x, channels, i == 0 ? 2 : 1);
  }
  net.output(net.gemm("classifier", net.global_average(x), 1000 / narrower));
  return net.take();
}

}  // namespace taso::examples
