// Inception-v3 with the channel counts of torchvision, without the auxiliary classifier. Every mixed block starts with
// several 1 x 1 convolutions of one tensor, which can become one convolution and a split.
#include <algorithm>
#include <vector>

#include "examples/models/models.h"
#include "examples/models/network.h"

namespace taso::examples {
namespace {

class Inception {
 public:
  explicit Inception(const ModelOptions& options)
      : side_(options.extent > 0 ? options.extent : 299),
        narrower_(options.narrower > 0 ? options.narrower : 1),
        depth_(options.depth),
        net_("inception_v3", options.seed, options.batch) {}

  ModelBuilder build() {
    Activation x = net_.input("image", {3, side_, side_});
    x = unit("stem.1", x, 32, square(3, 2));
    x = unit("stem.2", x, 32, square(3));
    x = unit("stem.3", x, 64, square(3, 1, 1));
    x = net_.max_pool(x, square(3, 2));
    x = unit("stem.4", x, 80, square(1));
    x = unit("stem.5", x, 192, square(3));
    x = net_.max_pool(x, square(3, 2));
    stage({32, 64, 64}, x, "a", [this](auto&... a) { return block_a(a...); });
    x = reduce_a("reduce_a", x);
    stage({128, 160, 160, 192}, x, "b", [this](auto&... a) { return block_b(a...); });
    x = reduce_b("reduce_b", x);
    stage({0, 0}, x, "c", [this](auto&... a) { return block_c(a...); });
    net_.output(net_.gemm("classifier", net_.global_average(x), 1000 / narrower_));
    return net_.take();
  }

 private:
  // The blocks of one stage, of which a shallow variant keeps the first few.
  template <class Block>
  void stage(const std::vector<std::int64_t>& parameters, Activation& x, const std::string& name, Block block) {
    const auto all = static_cast<std::int64_t>(parameters.size());
    const std::int64_t count = depth_ > 0 ? std::min(depth_, all) : all;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::string full = name + std::to_string(i);
      const std::int64_t parameter = parameters[static_cast<std::size_t>(i)];
      x = block(full, x, parameter);
    }
  }

  Activation unit(const std::string& name, const Activation& x, std::int64_t channels, const Window& window) {
    return net_.relu(net_.conv_bn(name, x, std::max<std::int64_t>(1, channels / narrower_), window));
  }
  Activation pooled(const std::string& name, const Activation& x, std::int64_t channels) {
    return unit(name, net_.average_pool(x, square(3, 1, 1)), channels, square(1));
  }

  Activation block_a(const std::string& name, const Activation& x, std::int64_t pool_channels) {
    const Activation one = unit(name + ".1x1", x, 64, square(1));
    const Activation five = unit(name + ".5x5.2", unit(name + ".5x5.1", x, 48, square(1)), 64, square(5, 1, 2));
    Activation twice = unit(name + ".3x3dbl.1", x, 64, square(1));
    twice = unit(name + ".3x3dbl.2", twice, 96, square(3, 1, 1));
    twice = unit(name + ".3x3dbl.3", twice, 96, square(3, 1, 1));
    return net_.concat({one, five, twice, pooled(name + ".pool", x, pool_channels)});
  }

  Activation reduce_a(const std::string& name, const Activation& x) {
    const Activation three = unit(name + ".3x3", x, 384, square(3, 2));
    Activation twice = unit(name + ".3x3dbl.1", x, 64, square(1));
    twice = unit(name + ".3x3dbl.2", twice, 96, square(3, 1, 1));
    twice = unit(name + ".3x3dbl.3", twice, 96, square(3, 2));
    return net_.concat({three, twice, net_.max_pool(x, square(3, 2))});
  }

  Activation block_b(const std::string& name, const Activation& x, std::int64_t c) {
    const Window row = {1, 7, 1, 0, 3};
    const Window column = {7, 1, 1, 3, 0};
    const Activation one = unit(name + ".1x1", x, 192, square(1));
    Activation seven = unit(name + ".7x7.1", x, c, square(1));
    seven = unit(name + ".7x7.2", seven, c, row);
    seven = unit(name + ".7x7.3", seven, 192, column);
    Activation twice = unit(name + ".7x7dbl.1", x, c, square(1));
    twice = unit(name + ".7x7dbl.2", twice, c, column);
    twice = unit(name + ".7x7dbl.3", twice, c, row);
    twice = unit(name + ".7x7dbl.4", twice, c, column);
    twice = unit(name + ".7x7dbl.5", twice, 192, row);
    return net_.concat({one, seven, twice, pooled(name + ".pool", x, 192)});
  }

  Activation reduce_b(const std::string& name, const Activation& x) {
    const Activation three = unit(name + ".3x3.2", unit(name + ".3x3.1", x, 192, square(1)), 320, square(3, 2));
    Activation seven = unit(name + ".7x7x3.1", x, 192, square(1));
    seven = unit(name + ".7x7x3.2", seven, 192, {1, 7, 1, 0, 3});
    seven = unit(name + ".7x7x3.3", seven, 192, {7, 1, 1, 3, 0});
    seven = unit(name + ".7x7x3.4", seven, 192, square(3, 2));
    return net_.concat({three, seven, net_.max_pool(x, square(3, 2))});
  }

  Activation block_c(const std::string& name, const Activation& x, std::int64_t /*unused*/) {
    const Window row = {1, 3, 1, 0, 1};
    const Window column = {3, 1, 1, 1, 0};
    const Activation one = unit(name + ".1x1", x, 320, square(1));
    const Activation three = unit(name + ".3x3.1", x, 384, square(1));
    Activation twice = unit(name + ".3x3dbl.1", x, 448, square(1));
    twice = unit(name + ".3x3dbl.2", twice, 384, square(3, 1, 1));
    return net_.concat({one, unit(name + ".3x3.2a", three, 384, row), unit(name + ".3x3.2b", three, 384, column),
                        unit(name + ".3x3dbl.3a", twice, 384, row), unit(name + ".3x3dbl.3b", twice, 384, column),
                        pooled(name + ".pool", x, 192)});
  }

  std::int64_t side_;
  std::int64_t narrower_;
  std::int64_t depth_;
  Network net_;
};

}  // namespace

ModelBuilder build_inception_v3(const ModelOptions& options) { return Inception(options).build(); }

}  // namespace taso::examples
