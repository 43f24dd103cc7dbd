/// Builds networks layer by layer (pase_graph.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partition/pase_graph.h"

namespace taso {

/// A tensor while a network is built: an output of a layer, or what comes from outside.
struct PaseValue {
  static constexpr std::uint32_t from_outside = ~std::uint32_t{0};
  std::vector<std::int64_t> shape;
  std::uint32_t layer = from_outside;
  std::uint32_t output = 0;
};

/// How a window moves over an image: rows, columns.
struct PaseWindow {
  std::int64_t stride = 1;
  std::array<std::int64_t, 2> padding = {0, 0};
};

/// One function per operator of PaSE's prototype. Shapes that do not fit are a fault of ours (TASO_CHECK). All numbers
/// of axes are of the tensor that is read, from 0.
class PaseGraphBuilder {
 public:
  PaseGraphBuilder(std::string name, std::int64_t cutoff) { graph_.name = std::move(name), graph_.cutoff = cutoff; }
  [[nodiscard]] static PaseValue outside(std::vector<std::int64_t> shape) { return {std::move(shape)}; }

  /// Of an image [b, c, h, w] with `filters` filters [c, rows, columns]. Domain (b, c, h', w', rows, columns, filters).
  PaseValue convolution(const PaseValue& image, std::int64_t filters, std::array<std::int64_t, 2> size,
                        const PaseWindow& window = {}, int pointwise = 0);
  /// Domain: the output.
  PaseValue pooling(const PaseValue& image, std::array<std::int64_t, 2> size, const PaseWindow& window = {});
  /// [x..., k] to [x..., units]. Domain (x..., units, k).
  PaseValue fully_connected(const PaseValue& input, std::int64_t units, int pointwise = 0);
  /// A product of two tensors, one letter per axis: "ble,ef->blf". Domain: the output's axes, then those summed over,
  /// in the order of the first operand.
  PaseValue einsum(std::string_view equation, const PaseValue& first, const PaseValue& second, int pointwise = 0);
  /// Rows of a table [words, units] for words [x...], as a product with their one-hot encoding.
  PaseValue embedding(const PaseValue& words, std::int64_t vocabulary, std::int64_t units);
  /// `layers` layers of cells with as many units as inputs over [batch, steps, units].
  PaseValue lstm(const PaseValue& input, std::int64_t layers);
  PaseValue elementwise(const PaseValue& first, const PaseValue& second, int pointwise = 0);
  PaseValue norm(const PaseValue& input, std::size_t axis);
  /// PaSE normalises along the batch.
  PaseValue batch_norm(const PaseValue& input) { return norm(input, 0); }
  /// The axes go.
  PaseValue mean(const PaseValue& input, const PaseAxes& axes);
  PaseValue softmax(const PaseValue& input, std::size_t axis);
  PaseValue cross_entropy(const PaseValue& input);
  PaseValue concat(const std::vector<PaseValue>& inputs, std::size_t axis);
  /// A new first axis.
  PaseValue stack(const std::vector<PaseValue>& inputs);
  /// One value per index of the first axis.
  std::vector<PaseValue> unstack(const PaseValue& input);
  /// Through a flat tensor: two layers.
  PaseValue reshape(const PaseValue& input, const std::vector<std::int64_t>& shape);

  [[nodiscard]] PaseGraph finish() && { return std::move(graph_); }

 private:
  /// Adds a layer without tensors so far, and its edges; the layer's outputs follow.
  PaseLayer& add(std::string type, std::vector<std::int64_t> domain, const std::vector<const PaseValue*>& inputs,
                 PaseWork work);
  /// The next output of the last layer.
  PaseValue output(std::vector<std::int64_t> shape, std::vector<PaseAxes> axes);
  PaseGraph graph_;
};

}  // namespace taso
