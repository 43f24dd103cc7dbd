// SqueezeNet 1.1. A fire module squeezes to few channels, then expands with 1 x 1 and 3 x 3 filters side by side. Both
// read the same tensor: a convolution whose 1 x 1 filters are enlarged to 3 x 3 could do the work of both, for fewer
// kernel launches and more arithmetic. Whether that pays is what measuring decides.
#include "examples/models/models.h"
#include "examples/models/network.h"

namespace taso::examples {

ModelBuilder build_squeezenet1_1(const ModelOptions& options) {
  const std::int64_t side = options.extent > 0 ? options.extent : 224;
  const std::int64_t narrower = options.narrower > 0 ? options.narrower : 1;
  Network net("squeezenet1_1", options.seed, options.batch, options.without_weights);

  int module = 0;
  const auto fire = [&](const Activation& x, std::int64_t squeezed, std::int64_t expanded) {
    const std::string name = "fire" + std::to_string(++module);
    const Activation s = net.relu(net.conv(name + ".squeeze", x, squeezed / narrower, square(1)));
    return net.concat({net.relu(net.conv(name + ".expand1x1", s, expanded / narrower, square(1))),
                       net.relu(net.conv(name + ".expand3x3", s, expanded / narrower, square(3, 1, 1)))});
  };
  const auto pool = [&](const Activation& x) { return net.max_pool(x, square(3, 2), true); };

  Activation x = net.input("image", {3, side, side});
  x = pool(net.relu(net.conv("conv1", x, 64 / narrower, square(3, 2))));
  x = pool(fire(fire(x, 16, 64), 16, 64));
  x = pool(fire(fire(x, 32, 128), 32, 128));
  x = fire(fire(fire(fire(x, 48, 192), 48, 192), 64, 256), 64, 256);
  x = net.relu(net.conv("classifier", x, 1000 / narrower, square(1)));
  net.output(net.global_average(x));
  return net.take();
}

}  // namespace taso::examples
