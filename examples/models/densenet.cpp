// DenseNet-121. Every layer reads the concatenation of all before it in its block; normalization and ReLU stand before
// the convolutions, so that those that follow a concatenation cannot be folded into what made it.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "examples/models/models.h"
#include "examples/models/network.h"

namespace taso::examples {

ModelBuilder build_densenet121(const ModelOptions& options) {
  const std::int64_t side = options.extent > 0 ? options.extent : 224;
  const std::int64_t narrower = options.narrower > 0 ? options.narrower : 1;
  const std::int64_t growth = 32 / narrower;
  Network net("densenet121", options.seed, options.batch, options.without_weights);

  const auto normal = [&](const std::string& name, const Activation& x) { return net.relu(net.batch_norm(name, x)); };

  Activation x = net.input("image", {3, side, side});
  x = net.relu(net.conv_bn("stem", x, 2 * growth, square(7, 2, 3)));
  x = net.max_pool(x, square(3, 2, 1));
  constexpr std::array<std::int64_t, 4> layers = {6, 12, 24, 16};
  for (std::size_t block = 0; block < layers.size(); ++block) {
    const std::string name = "block" + std::to_string(block + 1);
    std::vector<Activation> features = {x};
    const std::int64_t count = options.depth > 0 ? std::min(options.depth, layers[block]) : layers[block];
    for (std::int64_t i = 0; i < count; ++i) {
      const std::string layer = name + "." + std::to_string(i);
      const Activation all = features.size() == 1 ? x : net.concat(features);
      const Activation narrow = net.bare_conv(layer + ".conv1", normal(layer + ".norm1", all), 4 * growth, square(1));
      features.push_back(net.bare_conv(layer + ".conv2", normal(layer + ".norm2", narrow), growth, square(3, 1, 1)));
    }
    x = net.concat(features);
    if (block + 1 == layers.size()) break;
    x = net.bare_conv(name + ".transition.conv", normal(name + ".transition.norm", x), x.shape[0] / 2, square(1));
    x = net.average_pool(x, square(2, 2));
  }
  net.output(net.gemm("classifier", net.global_average(normal("norm", x)), 1000 / narrower));
  return net.take();
}

}  // namespace taso::examples
