// U-Nets: a way down by pooling, a way up by transposed convolutions or repeated pixels, and on every level a
// concatenation with what the way down left there.
#include <algorithm>
#include <string>
#include <vector>

#include "examples/models/models.h"
#include "examples/models/network.h"

namespace taso::examples {
namespace {

// Down by pooling `levels` times, then up; the channels double on every level.
template <typename Double, typename Up>
Activation u_shape(Network& net, Activation x, std::int64_t channels, std::int64_t levels, const Double& twice,
                   const Up& up) {
  std::vector<Activation> left;
  for (std::int64_t level = 0; level < levels; ++level) {
    x = twice("down" + std::to_string(level), x, channels << level);
    left.push_back(x);
    x = net.max_pool(x, square(2, 2));
  }
  x = twice("bottom", x, channels << levels);
  for (std::int64_t level = levels - 1; level >= 0; --level) {
    const std::string name = "up" + std::to_string(level);
    x = net.concat({left[static_cast<std::size_t>(level)], up(name, x, channels << level)});
    x = twice(name, x, channels << level);
  }
  return x;
}

struct Sizes {
  std::int64_t side, channels, levels;
};

Sizes sizes_of(const ModelOptions& options, std::int64_t side, std::int64_t levels) {
  return {options.extent > 0 ? options.extent : side, 64 / (options.narrower > 0 ? options.narrower : 1),
          options.depth > 0 ? std::min(options.depth, levels) : levels};
}

}  // namespace

// Ronneberger et al. 2015 with padded convolutions and batch normalization.
ModelBuilder build_unet(const ModelOptions& options) {
  const Sizes sizes = sizes_of(options, 128, 4);
  Network net("unet", options.seed, options.batch, options.without_weights);
  const auto twice = [&](const std::string& name, const Activation& x, std::int64_t channels) {
    const Activation y = net.relu(net.conv_bn(name + ".1", x, channels, square(3, 1, 1)));
    return net.relu(net.conv_bn(name + ".2", y, channels, square(3, 1, 1)));
  };
  const auto up = [&](const std::string& name, const Activation& x, std::int64_t channels) {
    return net.conv_transpose(name + ".up", x, channels, 2);
  };
  const Activation image = net.input("image", {3, sizes.side, sizes.side});
  net.output(net.conv("classifier", u_shape(net, image, sizes.channels, sizes.levels, twice, up), 2, square(1)));
  return net.take();
}

// As in diffusion models: group normalization and SiLU before convolutions, pixels repeated by Resize.
ModelBuilder build_unet_resize(const ModelOptions& options) {
  const Sizes sizes = sizes_of(options, 64, 2);
  Network net("unet_resize", options.seed, options.batch, options.without_weights);
  const auto silu = [&](const Activation& x) { return net.binary("Mul", x, net.unary("Sigmoid", x)); };
  const auto half = [&](const std::string& name, const Activation& x, std::int64_t channels) {
    const std::int64_t groups = std::min<std::int64_t>(32, x.shape[0] / 2);
    return net.conv(name + ".conv", silu(net.group_norm(name + ".norm", x, groups)), channels, square(3, 1, 1));
  };
  // A residual block; the shortcut is a convolution where the number of channels changes.
  const auto twice = [&](const std::string& name, const Activation& x, std::int64_t channels) {
    const Activation y = half(name + ".2", half(name + ".1", x, channels), channels);
    const Activation shortcut = x.shape[0] == channels ? x : net.conv(name + ".shortcut", x, channels, square(1));
    return net.binary("Add", shortcut, y);
  };
  const auto up = [&](const std::string& name, const Activation& x, std::int64_t channels) {
    return net.conv(name + ".up", net.repeat_pixels(x, 2), channels, square(3, 1, 1));
  };
  const Activation latent = net.input("latent", {4, sizes.side, sizes.side});
  const Activation x = net.conv("conv_in", latent, sizes.channels, square(3, 1, 1));
  net.output(half("out", u_shape(net, x, sizes.channels, sizes.levels, twice, up), 4));
  return net.take();
}

}  // namespace taso::examples
