/// A network under construction: the layers of the example models over ModelBuilder, with seeded weights.
///
/// Weights depend on (seed, weight name) only, so a model does not change when another layer is added. Filters are
/// He-scaled with zero mean per output channel: a random ReLU network with plain He weights maps all inputs to nearly
/// the same output after some fifty layers, because the positive mean of the activations takes over; a filter of zero
/// mean does not see it. Outputs then depend on inputs and on every weight, which makes them worth comparing.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "onnx_io/builder.h"

namespace taso::examples {

/// A tensor of the network: its name, and its extents without the batch: [c, h, w] or [tokens, features].
struct Activation {
  std::string name;
  Shape shape;
};

/// A window of a convolution or pooling: extents, strides and symmetric padding along height and width.
struct Window {
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t stride = 1;
  std::int64_t pad_height = 0;
  std::int64_t pad_width = 0;
  /// Groups of channels of a convolution.
  std::int64_t groups = 1;
};

/// A square window.
[[nodiscard]] Window square(std::int64_t extent, std::int64_t stride = 1, std::int64_t pad = 0,
                            std::int64_t groups = 1);

class Network {
 public:
  /// `batch`: extent of every activation's first axis; 0 is 1. `without_weights`: weights have no data, which are said
  /// to lie in "NAME.weights".
  Network(const std::string& name, std::uint64_t seed, std::int64_t batch = 1, bool without_weights = false);

  /// A graph input of shape [batch, shape...].
  Activation input(const std::string& name, const Shape& shape);
  /// A graph input of integers, of shape [batch, shape...].
  Activation tokens(const std::string& name, const Shape& shape);
  /// A graph output.
  void output(const Activation& x);

  /// Convolution with bias.
  Activation conv(const std::string& name, const Activation& x, std::int64_t channels, const Window& window);
  /// Convolution without bias, then inference batch normalization whose scales have the given mean.
  Activation conv_bn(const std::string& name, const Activation& x, std::int64_t channels, const Window& window,
                     double scale = 1.0);
  /// Convolution without bias.
  Activation bare_conv(const std::string& name, const Activation& x, std::int64_t channels, const Window& window);
  /// Convolution of every channel by itself, then of 1 x 1 across channels: no bias, nothing in between.
  Activation separable_conv(const std::string& name, const Activation& x, std::int64_t channels, const Window& window);
  /// ConvTranspose with bias: windows that do not overlap, each `factor` on a side.
  Activation conv_transpose(const std::string& name, const Activation& x, std::int64_t channels, std::int64_t factor);
  /// Inference batch normalization whose scales have the given mean.
  Activation batch_norm(const std::string& name, const Activation& x, double scale = 1.0);
  /// Normalization of groups of channels, as exporters wrote it before ONNX had it.
  Activation group_norm(const std::string& name, const Activation& x, std::int64_t groups);
  Activation relu(const Activation& x);
  Activation max_pool(const Activation& x, const Window& window, bool ceil_mode = false);
  /// Average that counts the padding, or leaves it out.
  Activation average_pool(const Activation& x, const Window& window, bool count_padding = true);
  /// Every pixel `factor` times along height and width: Resize by the nearest.
  Activation repeat_pixels(const Activation& x, std::int64_t factor);
  /// All channels, rows and columns as one axis.
  Activation flatten(const Activation& x);
  /// Average over height and width, then flattened: [c].
  Activation global_average(const Activation& x);
  /// Concatenation of channels.
  Activation concat(const std::vector<Activation>& parts);
  /// Gemm with bias on a flattened activation.
  Activation gemm(const std::string& name, const Activation& x, std::int64_t features);

  /// Gemm with bias on rows [tokens, features], between reshapes, the weight not transposed (GPT-2's Conv1D).
  Activation gemm_of_rows(const std::string& name, const Activation& x, std::int64_t features);
  /// x * w without bias; equal names share the weight.
  Activation matmul(const std::string& weight, const Activation& x, std::int64_t features);
  /// Rows of a table [entries, features], by number.
  Activation embedding(const std::string& table, const Activation& numbers, std::int64_t entries,
                       std::int64_t features);
  /// MatMul and Add, as exporters write a linear layer.
  Activation linear(const std::string& name, const Activation& x, std::int64_t features);
  Activation layer_norm(const std::string& name, const Activation& x, float epsilon = 1e-12F);
  /// x * 0.5 * (1 + erf(x / sqrt(2))), spelled out as exporters do.
  Activation gelu(const Activation& x);
  /// x divided by the root of its mean square, times a weight: Pow, ReduceMean, Add, Sqrt, Reciprocal, Mul, Mul.
  Activation rms_norm(const std::string& name, const Activation& x);
  /// Multi-head self-attention without mask.
  Activation attention(const std::string& name, const Activation& x, std::int64_t heads);

  Activation unary(const std::string& op, const Activation& x);
  Activation binary(const std::string& op, const Activation& x, const Activation& y);
  /// op(x, number).
  Activation with_number(const std::string& op, const Activation& x, float number);
  Activation reshape(const Activation& x, const Shape& shape);
  /// The batch is axis 0 of the permutation.
  Activation transpose(const Activation& x, const std::vector<std::int64_t>& perm);
  /// Elements begin, begin + 1, .., end - 1 along an axis, which counts the batch.
  Activation slice(const Activation& x, std::int64_t axis, std::int64_t begin, std::int64_t end);
  /// Equal parts along the last axis.
  std::vector<Activation> split(const Activation& x, std::int64_t parts);
  /// Along the last axis.
  Activation softmax(const Activation& x);
  /// Any one node with one output of shape [1, shape...].
  Activation node(const std::string& op, const std::vector<std::string>& inputs, const Shape& shape,
                  const std::vector<OnnxAttribute>& attributes = {}, const std::string& name = "");

  /// A weight of any shape; the name.
  std::string weight(const std::string& name, const Shape& shape) { return filters(name, shape); }
  /// Names of initializers that are no weights.
  std::string integers(const std::vector<std::int64_t>& values);
  std::string integers(const std::string& name, const std::vector<std::int64_t>& values);
  std::string constant(const std::string& name, const Shape& shape, const std::vector<float>& values);
  /// One byte for each element.
  std::string booleans(const std::string& name, const Shape& shape, const std::vector<std::uint8_t>& values);

  /// The finished model; the network is empty afterwards.
  [[nodiscard]] ModelBuilder take() { return std::move(model_); }

 private:
  std::string fresh(const std::string& op);
  /// A weight without data, if the network has such; false otherwise.
  bool absent(const std::string& name, const Shape& shape);
  /// Names of initializers; each is added once.
  std::string filters(const std::string& name, const Shape& shape);
  std::string matrix(const std::string& name, std::int64_t rows, std::int64_t columns);
  std::string vector(const std::string& name, std::int64_t size, double mean, double deviation);
  std::string scalar(float value);
  bool is_new(const std::string& name);

  ModelBuilder model_;
  [[nodiscard]] Shape with_batch(const Shape& shape) const;
  std::uint64_t seed_;
  std::int64_t batch_;
  std::string weights_;  ///< The file that data are said to lie in; empty: they are in the model.
  int nodes_ = 0;
  std::unordered_set<std::string> initializers_;
};

}  // namespace taso::examples
