// NASNet-A (Zoph et al. 2017) for ImageNet: "large" 6@4032 and "mobile" 4@1056. A cell reads the outputs of the last
// two; its five blocks add a pair of separable convolutions, poolings or inputs, and its output is a concatenation.
// Where the older of the two inputs is larger, it is reduced by two 1 x 1 convolutions of stride 2, one of them a pixel
// off.
#include <algorithm>
#include <string>
#include <vector>

#include "examples/models/models.h"
#include "examples/models/network.h"

namespace taso::examples {
namespace {

struct Size {
  std::string name;
  std::int64_t side;      // of the image
  std::int64_t stem;      // channels of the first convolution
  std::int64_t channels;  // of the first normal cells
  std::int64_t normal;    // normal cells between reductions
};

class NasNet {
 public:
  NasNet(const Size& size, const ModelOptions& options)
      : size_(size),
        side_(options.extent > 0 ? options.extent : size.side),
        narrower_(options.narrower > 0 ? options.narrower : 1),
        // The first of a row of normal cells is another: it reduces its older input.
        cells_(options.depth > 0 ? std::min(options.depth, size.normal) : size.normal),
        net_(size.name, options.seed, options.batch) {}

  ModelBuilder build() {
    const std::int64_t channels = size_.channels / narrower_;
    const Activation image = net_.input("image", {3, side_, side_});
    Activation older = net_.conv_bn("conv0", image, size_.stem / narrower_, square(3, 2));
    // Two reductions make the stem. The first has no older input: its raw input stands in for that.
    Activation newer = reduction("stem0", {}, older, channels / 4);
    Activation next = reduction("stem1", older, newer, channels / 2);
    older = newer;
    newer = next;
    for (std::int64_t row = 0; row < 3; ++row) {
      const std::string name = "row" + std::to_string(row);
      if (row > 0) {
        next = reduction(name + ".reduction", older, newer, channels << row);
        older = newer;
        newer = next;
      }
      for (std::int64_t i = 0; i < cells_; ++i) {
        next = normal(name + ".cell" + std::to_string(i), older, newer, channels << row);
        older = newer;
        newer = next;
      }
    }
    net_.output(net_.gemm("classifier", net_.global_average(net_.relu(newer)), 1000 / narrower_));
    return net_.take();
  }

 private:
  // ReLU, separable convolution, normalization, twice; the first has the stride. The scales of the normalizations undo
  // the gain of the pointwise filters, which no ReLU precedes.
  Activation separable(const std::string& name, const Activation& x, std::int64_t channels, std::int64_t extent,
                       std::int64_t stride = 1) {
    constexpr double scale = 0.58;
    Activation y = x;
    for (int i = 0; i < 2; ++i) {
      const std::string part = name + (i == 0 ? ".first" : ".second");
      y = net_.separable_conv(part, net_.relu(y), channels, square(extent, i == 0 ? stride : 1, extent / 2));
      y = net_.batch_norm(part + ".bn", y, scale);
    }
    return y;
  }

  Activation average(const Activation& x, std::int64_t stride = 1) {
    return net_.average_pool(x, square(3, stride, 1), false);
  }
  Activation maximum(const Activation& x) { return net_.max_pool(x, square(3, 2, 1)); }
  Activation add(const Activation& x, const Activation& y) { return net_.binary("Add", x, y); }

  Activation projection(const std::string& name, const Activation& x, std::int64_t channels) {
    return net_.conv_bn(name, net_.relu(x), channels, square(1));
  }

  // The older input with as many channels as, and the extents of, the newer.
  Activation adjusted(const std::string& name, const Activation& older, const Activation& newer,
                      std::int64_t channels) {
    if (older.shape[1] == newer.shape[1]) return projection(name + ".older", older, channels);
    const Activation x = net_.relu(older);
    const Activation first =
        net_.bare_conv(name + ".path1", net_.average_pool(x, square(1, 2), false), channels / 2, square(1));
    // A row and a column of zeros behind, a row and a column off in front.
    const Shape& s = x.shape;
    const Activation padded = net_.node("Pad", {x.name, net_.integers({0, 0, 0, 0, 0, 0, 1, 1})},
                                        {s[0], s[1] + 1, s[2] + 1}, {{"mode", "constant"}});
    const Activation moved = net_.slice(net_.slice(padded, 2, 1, s[1] + 1), 3, 1, s[2] + 1);
    const Activation second = net_.bare_conv(name + ".path2", net_.average_pool(moved, square(1, 2), false),
                                             channels - channels / 2, square(1));
    return net_.batch_norm(name + ".path.bn", net_.concat({first, second}));
  }

  Activation normal(const std::string& name, const Activation& older, const Activation& newer, std::int64_t channels) {
    const Activation left = adjusted(name, older, newer, channels);
    const Activation right = projection(name + ".newer", newer, channels);
    const auto branch = [&](const std::string& part, const Activation& x, std::int64_t extent) {
      return separable(name + part, x, channels, extent);
    };
    return net_.concat({left, add(branch(".0.left", right, 5), branch(".0.right", left, 3)),
                        add(branch(".1.left", left, 5), branch(".1.right", left, 3)), add(average(right), left),
                        add(average(left), average(left)), add(branch(".4.left", right, 3), right)});
  }

  Activation reduction(const std::string& name, const Activation& older, const Activation& newer,
                       std::int64_t channels) {
    const Activation left = older.name.empty() ? newer : adjusted(name, older, newer, channels);
    const Activation right = projection(name + ".newer", newer, channels);
    const auto branch = [&](const std::string& part, const Activation& x, std::int64_t extent) {
      return separable(name + part, x, channels, extent, 2);
    };
    const Activation first = add(branch(".0.left", right, 5), branch(".0.right", left, 7));
    const Activation second = add(maximum(right), branch(".1.right", left, 7));
    const Activation third = add(average(right, 2), branch(".2.right", left, 5));
    const Activation fourth = add(average(first), second);
    const Activation fifth = add(separable(name + ".4.left", first, channels, 3), maximum(right));
    return net_.concat({second, third, fourth, fifth});
  }

  const Size& size_;
  std::int64_t side_, narrower_, cells_;
  Network net_;
};

}  // namespace

ModelBuilder build_nasnet_a_large(const ModelOptions& options) {
  return NasNet({"nasnet_a_large", 331, 96, 168, 6}, options).build();
}

ModelBuilder build_nasnet_a_mobile(const ModelOptions& options) {
  return NasNet({"nasnet_a_mobile", 224, 32, 44, 4}, options).build();
}

}  // namespace taso::examples
