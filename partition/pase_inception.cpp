// Inception-v3 (Szegedy et al. 2016), modules A to E, without the auxiliary classifier.
#include <array>

#include "partition/pase_graph.h"
#include "partition/pase_graph_builder.h"

namespace taso {
namespace {

using Size = std::array<std::int64_t, 2>;
constexpr PaseWindow halve = {2, {0, 0}};

/// Convolutions with batch normalisation, one after the other.
class Branch {
 public:
  Branch(PaseGraphBuilder& net, PaseValue value) : net_(net), value_(std::move(value)) {}
  Branch& conv(std::int64_t filters, Size size, const PaseWindow& window) {
    value_ = net_.batch_norm(net_.convolution(value_, filters, size, window));
    return *this;
  }
  /// Keeps height and width.
  Branch& conv(std::int64_t filters, Size size) { return conv(filters, size, {1, {size[0] / 2, size[1] / 2}}); }
  Branch& pool(const PaseWindow& window) {
    value_ = net_.pooling(value_, {3, 3}, window);
    return *this;
  }
  [[nodiscard]] const PaseValue& value() const { return value_; }

 private:
  PaseGraphBuilder& net_;
  PaseValue value_;
};

constexpr PaseWindow same = {1, {1, 1}};

PaseValue module_a(PaseGraphBuilder& net, const PaseValue& image, std::int64_t pooled) {
  const PaseValue one = Branch(net, image).conv(64, {1, 1}).value();
  const PaseValue five = Branch(net, image).conv(48, {1, 1}).conv(64, {5, 5}).value();
  const PaseValue three = Branch(net, image).conv(64, {1, 1}).conv(96, {3, 3}).conv(96, {3, 3}).value();
  const PaseValue pool = Branch(net, image).pool(same).conv(pooled, {1, 1}).value();
  return net.concat({one, five, three, pool}, 1);
}

PaseValue module_b(PaseGraphBuilder& net, const PaseValue& image) {
  const PaseValue three = Branch(net, image).conv(384, {3, 3}, halve).value();
  const PaseValue twice = Branch(net, image).conv(64, {1, 1}).conv(96, {3, 3}).conv(96, {3, 3}, halve).value();
  return net.concat({three, twice, Branch(net, image).pool(halve).value()}, 1);
}

PaseValue module_c(PaseGraphBuilder& net, const PaseValue& image, std::int64_t middle) {
  const PaseValue one = Branch(net, image).conv(192, {1, 1}).value();
  const PaseValue seven = Branch(net, image).conv(middle, {1, 1}).conv(middle, {1, 7}).conv(192, {7, 1}).value();
  const PaseValue twice = Branch(net, image)
                              .conv(middle, {1, 1})
                              .conv(middle, {7, 1})
                              .conv(middle, {1, 7})
                              .conv(middle, {7, 1})
                              .conv(192, {1, 7})
                              .value();
  const PaseValue pool = Branch(net, image).pool(same).conv(192, {1, 1}).value();
  return net.concat({one, seven, twice, pool}, 1);
}

PaseValue module_d(PaseGraphBuilder& net, const PaseValue& image) {
  const PaseValue three = Branch(net, image).conv(192, {1, 1}).conv(320, {3, 3}, halve).value();
  const PaseValue seven =
      Branch(net, image).conv(192, {1, 1}).conv(192, {1, 7}).conv(192, {7, 1}).conv(192, {3, 3}, halve).value();
  return net.concat({three, seven, Branch(net, image).pool(halve).value()}, 1);
}

/// A row and a column of filters side by side.
PaseValue fork(PaseGraphBuilder& net, const PaseValue& image) {
  const PaseValue row = Branch(net, image).conv(384, {1, 3}).value();
  return net.concat({row, Branch(net, image).conv(384, {3, 1}).value()}, 1);
}

PaseValue module_e(PaseGraphBuilder& net, const PaseValue& image) {
  const PaseValue one = Branch(net, image).conv(320, {1, 1}).value();
  const PaseValue three = fork(net, Branch(net, image).conv(384, {1, 1}).value());
  const PaseValue twice = fork(net, Branch(net, image).conv(448, {1, 1}).conv(384, {3, 3}).value());
  const PaseValue pool = Branch(net, image).pool(same).conv(192, {1, 1}).value();
  return net.concat({one, three, twice, pool}, 1);
}

}  // namespace

PaseGraph pase_inception_v3(std::int64_t batch) {
  PaseGraphBuilder net("Inception-v3", 4);
  Branch stem(net, PaseGraphBuilder::outside({batch, 3, 299, 299}));
  stem.conv(32, {3, 3}, halve).conv(32, {3, 3}, {}).conv(64, {3, 3}).pool(halve);
  stem.conv(80, {1, 1}).conv(192, {3, 3}, {}).pool(halve);
  PaseValue value = stem.value();
  for (const std::int64_t pooled : {32, 64, 64}) value = module_a(net, value, pooled);
  value = module_b(net, value);
  for (const std::int64_t middle : {128, 160, 160, 192}) value = module_c(net, value, middle);
  value = module_d(net, value);
  value = module_e(net, module_e(net, value));
  net.cross_entropy(net.fully_connected(net.mean(value, {2, 3}), 1000));
  return std::move(net).finish();
}

}  // namespace taso
