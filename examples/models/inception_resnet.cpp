// Inception-ResNet-v2: inception modules whose concatenation is projected by a 1 x 1 convolution, scaled, and added to
// the module's input. The branches of a module start with 1 x 1 convolutions that read one tensor.
#include <algorithm>
#include <string>

#include "examples/models/models.h"
#include "examples/models/network.h"

namespace taso::examples {
namespace {

class InceptionResNet {
 public:
  explicit InceptionResNet(const ModelOptions& options)
      : options_(options),
        narrower_(options.narrower > 0 ? options.narrower : 1),
        net_("inception_resnet_v2", options.seed, options.batch) {}

  ModelBuilder build() {
    const std::int64_t side = options_.extent > 0 ? options_.extent : 299;
    Activation x = net_.input("image", {3, side, side});
    x = conv("conv1a", x, 32, square(3, 2));
    x = conv("conv2a", x, 32, square(3));
    x = net_.max_pool(conv("conv2b", x, 64, square(3, 1, 1)), square(3, 2));
    x = conv("conv3b", x, 80, square(1));
    x = net_.max_pool(conv("conv4a", x, 192, square(3)), square(3, 2));
    x = net_.concat({conv("mixed5b.0", x, 96, square(1)),
                     conv("mixed5b.1b", conv("mixed5b.1a", x, 48, square(1)), 64, square(5, 1, 2)),
                     conv("mixed5b.2c", conv("mixed5b.2b", conv("mixed5b.2a", x, 64, square(1)), 96, square(3, 1, 1)),
                          96, square(3, 1, 1)),
                     conv("mixed5b.3", net_.average_pool(x, square(3, 1, 1), false), 64, square(1))});
    for (std::int64_t i = 0; i < blocks(10); ++i) x = block35("a" + std::to_string(i), x);
    x = net_.concat({conv("mixed6a.0", x, 384, square(3, 2)),
                     conv("mixed6a.1c", conv("mixed6a.1b", conv("mixed6a.1a", x, 256, square(1)), 256, square(3, 1, 1)),
                          384, square(3, 2)),
                     net_.max_pool(x, square(3, 2))});
    for (std::int64_t i = 0; i < blocks(20); ++i) x = block17("b" + std::to_string(i), x);
    x = net_.concat({conv("mixed7a.0b", conv("mixed7a.0a", x, 256, square(1)), 384, square(3, 2)),
                     conv("mixed7a.1b", conv("mixed7a.1a", x, 256, square(1)), 288, square(3, 2)),
                     conv("mixed7a.2c", conv("mixed7a.2b", conv("mixed7a.2a", x, 256, square(1)), 288, square(3, 1, 1)),
                          320, square(3, 2)),
                     net_.max_pool(x, square(3, 2))});
    for (std::int64_t i = 0; i < blocks(9); ++i) x = net_.relu(block8("c" + std::to_string(i), x, 0.2F));
    x = block8("last", x, 1.0F);
    x = conv("conv7b", x, 1536, square(1));
    net_.output(net_.gemm("classifier", net_.global_average(x), 1000 / narrower_));
    return net_.take();
  }

 private:
  [[nodiscard]] std::int64_t blocks(std::int64_t published) const {
    return options_.depth > 0 ? std::min(options_.depth, published) : published;
  }

  Activation conv(const std::string& name, const Activation& x, std::int64_t channels, const Window& window) {
    return net_.relu(net_.conv_bn(name, x, std::max<std::int64_t>(1, channels / narrower_), window));
  }

  // x + scale * projection of the branches.
  Activation residual(const std::string& name, const Activation& x, const Activation& branches, float scale) {
    const Activation projected = net_.conv(name + ".project", branches, x.shape[0], square(1));
    return net_.binary("Add", scale == 1.0F ? projected : net_.with_number("Mul", projected, scale), x);
  }

  Activation block35(const std::string& name, const Activation& x) {
    const Activation first = conv(name + ".0", x, 32, square(1));
    const Activation second = conv(name + ".1b", conv(name + ".1a", x, 32, square(1)), 32, square(3, 1, 1));
    const Activation third =
        conv(name + ".2c", conv(name + ".2b", conv(name + ".2a", x, 32, square(1)), 48, square(3, 1, 1)), 64,
             square(3, 1, 1));
    return net_.relu(residual(name, x, net_.concat({first, second, third}), 0.17F));
  }

  Activation block17(const std::string& name, const Activation& x) {
    const Activation first = conv(name + ".0", x, 192, square(1));
    const Activation wide = conv(name + ".1b", conv(name + ".1a", x, 128, square(1)), 160, {1, 7, 1, 0, 3});
    return net_.relu(residual(name, x, net_.concat({first, conv(name + ".1c", wide, 192, {7, 1, 1, 3, 0})}), 0.1F));
  }

  Activation block8(const std::string& name, const Activation& x, float scale) {
    const Activation first = conv(name + ".0", x, 192, square(1));
    const Activation wide = conv(name + ".1b", conv(name + ".1a", x, 192, square(1)), 224, {1, 3, 1, 0, 1});
    return residual(name, x, net_.concat({first, conv(name + ".1c", wide, 256, {3, 1, 1, 1, 0})}), scale);
  }

  const ModelOptions& options_;
  std::int64_t narrower_;
  Network net_;
};

}  // namespace

ModelBuilder build_inception_resnet_v2(const ModelOptions& options) { return InceptionResNet(options).build(); }

}  // namespace taso::examples
