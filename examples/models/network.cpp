#include "examples/models/network.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "support/random.h"

namespace taso::examples {
namespace {

Shape with_batch(const Shape& shape) {
  Shape full = {1};
  full.insert(full.end(), shape.begin(), shape.end());
  return full;
}

std::vector<float> normal(std::uint64_t seed, const std::string& name, std::int64_t count) {
  Random random(seed, name);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

// Gain that keeps the variance of pre-activations through a ReLU, for filters that do not see the mean: the variance
// of relu(z) for standard normal z is 1/2 - 1/(2 pi).
const double relu_gain = std::sqrt(1.0 / (0.5 - 0.5 / std::numbers::pi));

std::int64_t pooled(std::int64_t extent, std::int64_t window, std::int64_t stride, std::int64_t pad, bool up) {
  const std::int64_t room = extent + 2 * pad - window;
  return (up ? (room + stride - 1) / stride : room / stride) + 1;
}

Shape pooled(const Shape& shape, std::int64_t channels, const Window& window, bool up = false) {
  return {channels, pooled(shape[1], window.height, window.stride, window.pad_height, up),
          pooled(shape[2], window.width, window.stride, window.pad_width, up)};
}

std::vector<OnnxAttribute> attributes(const Window& window) {
  return {{"kernel_shape", {window.height, window.width}},
          {"pads", {window.pad_height, window.pad_width, window.pad_height, window.pad_width}},
          {"strides", {window.stride, window.stride}}};
}

}  // namespace

Window square(std::int64_t extent, std::int64_t stride, std::int64_t pad) { return {extent, extent, stride, pad, pad}; }

Network::Network(const std::string& name, std::uint64_t seed) : model_(17, name), seed_(seed) {}

std::string Network::fresh(const std::string& op) { return op + "_" + std::to_string(nodes_++); }

bool Network::is_new(const std::string& name) {
  if (std::find(initializers_.begin(), initializers_.end(), name) != initializers_.end()) return false;
  initializers_.push_back(name);
  return true;
}

std::string Network::filters(const std::string& name, const Shape& shape) {
  if (!is_new(name)) return name;
  std::vector<float> values = normal(seed_, name, volume(shape));
  const std::size_t fan_in = values.size() / static_cast<std::size_t>(shape[0]);
  const double scale = relu_gain / std::sqrt(static_cast<double>(fan_in));
  for (std::size_t first = 0; first < values.size(); first += fan_in) {
    double mean = 0;
    for (std::size_t i = 0; i < fan_in; ++i) mean += values[first + i];
    mean /= static_cast<double>(fan_in);
    for (std::size_t i = 0; i < fan_in; ++i) values[first + i] = static_cast<float>((values[first + i] - mean) * scale);
  }
  model_.add_initializer(name, shape, values);
  return name;
}

std::string Network::matrix(const std::string& name, std::int64_t rows, std::int64_t columns) {
  if (!is_new(name)) return name;
  std::vector<float> values = normal(seed_, name, rows * columns);
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(rows)));
  for (float& value : values) value *= scale;
  model_.add_initializer(name, {rows, columns}, values);
  return name;
}

std::string Network::vector(const std::string& name, std::int64_t size, double mean, double deviation) {
  if (!is_new(name)) return name;
  std::vector<float> values = normal(seed_, name, size);
  // Bounded at two deviations, so that scales and variances stay positive.
  for (float& value : values)
    value = static_cast<float>(mean + deviation * std::clamp(static_cast<double>(value), -2.0, 2.0));
  model_.add_initializer(name, {size}, values);
  return name;
}

std::string Network::scalar(float value) {
  std::string name = "scalar_" + std::to_string(value);
  if (is_new(name)) model_.add_initializer(name, {}, std::vector<float>{value});
  return name;
}

std::string Network::extents(const Shape& shape) {
  std::string name = "shape";
  for (std::int64_t extent : shape) name += "_" + std::to_string(extent);
  if (is_new(name)) model_.add_initializer(name, {static_cast<std::int64_t>(shape.size())}, shape);
  return name;
}

Activation Network::input(const std::string& name, const Shape& shape) {
  model_.add_input(name, with_batch(shape));
  return {name, shape};
}

void Network::output(const Activation& x) { model_.add_output(x.name, with_batch(x.shape)); }

Activation Network::conv(const std::string& name, const Activation& x, std::int64_t channels, const Window& window) {
  const std::string weight = filters(name + ".weight", {channels, x.shape[0], window.height, window.width});
  const std::string bias = vector(name + ".bias", channels, 0.0, 0.1);
  Activation y = {fresh("Conv"), pooled(x.shape, channels, window)};
  model_.add_node("Conv", {x.name, weight, bias}, {y.name}, attributes(window), name);
  return y;
}

Activation Network::conv_bn(const std::string& name, const Activation& x, std::int64_t channels, const Window& window,
                            double scale) {
  const std::string weight = filters(name + ".conv.weight", {channels, x.shape[0], window.height, window.width});
  Activation product = {fresh("Conv"), pooled(x.shape, channels, window)};
  model_.add_node("Conv", {x.name, weight}, {product.name}, attributes(window), name + ".conv");
  Activation y = {fresh("BatchNormalization"), product.shape};
  model_.add_node("BatchNormalization",
                  {product.name, vector(name + ".bn.weight", channels, scale, 0.1 * scale),
                   vector(name + ".bn.bias", channels, 0.0, 0.1), vector(name + ".bn.running_mean", channels, 0.0, 0.1),
                   vector(name + ".bn.running_var", channels, 1.0, 0.15)},
                  {y.name}, {{"epsilon", 1e-3}}, name + ".bn");
  return y;
}

Activation Network::unary(const std::string& op, const Activation& x) {
  Activation y = {fresh(op), x.shape};
  model_.add_node(op, {x.name}, {y.name}, {}, y.name);
  return y;
}

Activation Network::binary(const std::string& op, const Activation& x, const Activation& y) {
  Activation z = {fresh(op), x.shape};
  model_.add_node(op, {x.name, y.name}, {z.name}, {}, z.name);
  return z;
}

Activation Network::relu(const Activation& x) { return unary("Relu", x); }

Activation Network::max_pool(const Activation& x, const Window& window, bool ceil_mode) {
  Activation y = {fresh("MaxPool"), pooled(x.shape, x.shape[0], window, ceil_mode)};
  std::vector<OnnxAttribute> all = attributes(window);
  if (ceil_mode) all.emplace_back("ceil_mode", 1);
  model_.add_node("MaxPool", {x.name}, {y.name}, all, y.name);
  return y;
}

Activation Network::average_pool(const Activation& x, const Window& window) {
  Activation y = {fresh("AveragePool"), pooled(x.shape, x.shape[0], window)};
  std::vector<OnnxAttribute> all = attributes(window);
  all.emplace_back("count_include_pad", 1);
  model_.add_node("AveragePool", {x.name}, {y.name}, all, y.name);
  return y;
}

Activation Network::global_average(const Activation& x) {
  const std::string pool = fresh("GlobalAveragePool");
  model_.add_node("GlobalAveragePool", {x.name}, {pool}, {}, pool);
  Activation y = {fresh("Flatten"), {x.shape[0]}};
  model_.add_node("Flatten", {pool}, {y.name}, {{"axis", 1}}, y.name);
  return y;
}

Activation Network::concat(const std::vector<Activation>& parts) {
  Activation y = {fresh("Concat"), parts.front().shape};
  y.shape[0] = 0;
  std::vector<std::string> names;
  for (const Activation& part : parts) {
    names.push_back(part.name);
    y.shape[0] += part.shape[0];
  }
  model_.add_node("Concat", names, {y.name}, {{"axis", 1}}, y.name);
  return y;
}

Activation Network::gemm(const std::string& name, const Activation& x, std::int64_t features) {
  Activation y = {fresh("Gemm"), {features}};
  model_.add_node(
      "Gemm", {x.name, filters(name + ".weight", {features, x.shape[0]}), vector(name + ".bias", features, 0.0, 0.1)},
      {y.name}, {{"transB", 1}}, name);
  return y;
}

Activation Network::matmul(const std::string& weight, const Activation& x, std::int64_t features) {
  Activation y = {fresh("MatMul"), x.shape};
  y.shape.back() = features;
  model_.add_node("MatMul", {x.name, matrix(weight, x.shape.back(), features)}, {y.name}, {}, y.name);
  return y;
}

Activation Network::linear(const std::string& name, const Activation& x, std::int64_t features) {
  const Activation product = matmul(name + ".weight", x, features);
  Activation y = {fresh("Add"), product.shape};
  model_.add_node("Add", {vector(name + ".bias", features, 0.0, 0.1), product.name}, {y.name}, {}, name);
  return y;
}

Activation Network::layer_norm(const std::string& name, const Activation& x) {
  Activation y = {fresh("LayerNormalization"), x.shape};
  const std::int64_t features = x.shape.back();
  model_.add_node("LayerNormalization",
                  {x.name, vector(name + ".weight", features, 1.0, 0.1), vector(name + ".bias", features, 0.0, 0.1)},
                  {y.name}, {{"axis", -1}, {"epsilon", 1e-12}}, name);
  return y;
}

Activation Network::gelu(const Activation& x) {
  const auto with = [&](const std::string& op, const Activation& left, float right) {
    return binary(op, left, {scalar(right), {}});
  };
  const Activation sign = with("Add", unary("Erf", with("Div", x, std::numbers::sqrt2_v<float>)), 1.0F);
  return with("Mul", binary("Mul", x, sign), 0.5F);
}

Activation Network::attention(const std::string& name, const Activation& x, std::int64_t heads) {
  const std::int64_t tokens = x.shape[0];
  const std::int64_t features = x.shape[1];
  const std::int64_t depth = features / heads;
  const auto project = [&](const std::string& part, const std::vector<std::int64_t>& perm, const Shape& shape) {
    const Activation flat = linear(name + "." + part, x, features);
    const std::string split = fresh("Reshape");
    model_.add_node("Reshape", {flat.name, extents({1, tokens, heads, depth})}, {split}, {}, split);
    Activation y = {fresh("Transpose"), shape};
    model_.add_node("Transpose", {split}, {y.name}, {{"perm", perm}}, y.name);
    return y;
  };
  const Activation query = project("query", {0, 2, 1, 3}, {heads, tokens, depth});
  const Activation key = project("key", {0, 2, 3, 1}, {heads, depth, tokens});
  const Activation value = project("value", {0, 2, 1, 3}, {heads, tokens, depth});
  Activation scores = binary("MatMul", query, key);
  scores.shape = {heads, tokens, tokens};
  const Activation scaled = binary("Div", scores, {scalar(std::sqrt(static_cast<float>(depth))), {}});
  const std::string weights = fresh("Softmax");
  model_.add_node("Softmax", {scaled.name}, {weights}, {{"axis", -1}}, weights);
  const Activation context = binary("MatMul", {weights, query.shape}, value);
  const std::string back = fresh("Transpose");
  model_.add_node("Transpose", {context.name}, {back}, {{"perm", {0, 2, 1, 3}}}, back);
  Activation joined = {fresh("Reshape"), x.shape};
  model_.add_node("Reshape", {back, extents({1, tokens, features})}, {joined.name}, {}, joined.name);
  return linear(name + ".output", joined, features);
}

}  // namespace taso::examples
