#include "examples/models/network.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "support/random.h"

namespace taso::examples {
namespace {

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

std::vector<OnnxAttribute> conv_attributes(const Window& window) {
  std::vector<OnnxAttribute> all = attributes(window);
  if (window.groups != 1) all.emplace_back("group", window.groups);
  return all;
}

std::size_t size_of(std::int64_t count) { return static_cast<std::size_t>(count); }

}  // namespace

Window square(std::int64_t extent, std::int64_t stride, std::int64_t pad, std::int64_t groups) {
  return {extent, extent, stride, pad, pad, groups};
}

Network::Network(const std::string& name, std::uint64_t seed, std::int64_t batch, bool without_weights)
    : model_(17, name),
      seed_(seed),
      batch_(std::max<std::int64_t>(batch, 1)),
      weights_(without_weights ? name + ".weights" : "") {}

Shape Network::with_batch(const Shape& shape) const {
  Shape full = {batch_};
  full.insert(full.end(), shape.begin(), shape.end());
  return full;
}

std::string Network::fresh(const std::string& op) { return op + "_" + std::to_string(nodes_++); }

bool Network::is_new(const std::string& name) { return initializers_.insert(name).second; }

bool Network::absent(const std::string& name, const Shape& shape) {
  if (weights_.empty()) return false;
  model_.add_absent_initializer(name, shape, weights_);
  return true;
}

std::string Network::filters(const std::string& name, const Shape& shape) {
  if (!is_new(name) || absent(name, shape)) return name;
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
  if (!is_new(name) || absent(name, {rows, columns})) return name;
  std::vector<float> values = normal(seed_, name, rows * columns);
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(rows)));
  for (float& value : values) value *= scale;
  model_.add_initializer(name, {rows, columns}, values);
  return name;
}

std::string Network::vector(const std::string& name, std::int64_t size, double mean, double deviation) {
  if (!is_new(name) || absent(name, {size})) return name;
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

std::string Network::integers(const std::vector<std::int64_t>& values) {
  std::string name = "integers";
  for (std::int64_t value : values) name += "_" + std::to_string(value);
  return integers(name, values);
}

std::string Network::integers(const std::string& name, const std::vector<std::int64_t>& values) {
  if (is_new(name)) model_.add_initializer(name, {static_cast<std::int64_t>(values.size())}, values);
  return name;
}

std::string Network::constant(const std::string& name, const Shape& shape, const std::vector<float>& values) {
  if (is_new(name)) model_.add_initializer(name, shape, values);
  return name;
}

std::string Network::booleans(const std::string& name, const Shape& shape, const std::vector<std::uint8_t>& values) {
  if (is_new(name)) model_.add_boolean_initializer(name, shape, values);
  return name;
}

Activation Network::node(const std::string& op, const std::vector<std::string>& inputs, const Shape& shape,
                         const std::vector<OnnxAttribute>& attributes, const std::string& name) {
  Activation y = {fresh(op), shape};
  model_.add_node(op, inputs, {y.name}, attributes, name.empty() ? y.name : name);
  return y;
}

Activation Network::tokens(const std::string& name, const Shape& shape) {
  model_.add_input(name, with_batch(shape), ElementType::i64);
  return {name, shape};
}

Activation Network::input(const std::string& name, const Shape& shape) {
  model_.add_input(name, with_batch(shape));
  return {name, shape};
}

void Network::output(const Activation& x) { model_.add_output(x.name, with_batch(x.shape)); }

Activation Network::conv(const std::string& name, const Activation& x, std::int64_t channels, const Window& window) {
  const std::string weight =
      filters(name + ".weight", {channels, x.shape[0] / window.groups, window.height, window.width});
  return node("Conv", {x.name, weight, vector(name + ".bias", channels, 0.0, 0.1)}, pooled(x.shape, channels, window),
              conv_attributes(window), name);
}

Activation Network::bare_conv(const std::string& name, const Activation& x, std::int64_t channels,
                              const Window& window) {
  const std::string weight =
      filters(name + ".weight", {channels, x.shape[0] / window.groups, window.height, window.width});
  return node("Conv", {x.name, weight}, pooled(x.shape, channels, window), conv_attributes(window), name);
}

Activation Network::separable_conv(const std::string& name, const Activation& x, std::int64_t channels,
                                   const Window& window) {
  Window each = window;
  each.groups = x.shape[0];
  return bare_conv(name + ".pointwise", bare_conv(name + ".depthwise", x, x.shape[0], each), channels, square(1));
}

Activation Network::conv_transpose(const std::string& name, const Activation& x, std::int64_t channels,
                                   std::int64_t factor) {
  // One window covers every output, so that as many weights as there are inputs add up to it.
  const std::string weight = filters(name + ".weight", {x.shape[0], channels, factor, factor});
  return node("ConvTranspose", {x.name, weight, vector(name + ".bias", channels, 0.0, 0.1)},
              {channels, factor * x.shape[1], factor * x.shape[2]},
              {{"dilations", {1, 1}},
               {"group", 1},
               {"kernel_shape", {factor, factor}},
               {"pads", {0, 0, 0, 0}},
               {"strides", {factor, factor}}},
              name);
}

Activation Network::batch_norm(const std::string& name, const Activation& x, double scale) {
  const std::int64_t channels = x.shape[0];
  return node(
      "BatchNormalization",
      {x.name, vector(name + ".weight", channels, scale, 0.1 * scale), vector(name + ".bias", channels, 0.0, 0.1),
       vector(name + ".running_mean", channels, 0.0, 0.1), vector(name + ".running_var", channels, 1.0, 0.15)},
      x.shape, {{"epsilon", 1e-3}}, name);
}

Activation Network::conv_bn(const std::string& name, const Activation& x, std::int64_t channels, const Window& window,
                            double scale) {
  return batch_norm(name + ".bn", bare_conv(name + ".conv", x, channels, window), scale);
}

Activation Network::group_norm(const std::string& name, const Activation& x, std::int64_t groups) {
  const std::int64_t channels = x.shape[0];
  const Activation rows = reshape(x, {groups, x.shape[0] / groups * x.shape[1] * x.shape[2]});
  const Activation normal =
      node("InstanceNormalization",
           {rows.name, constant("ones_" + std::to_string(groups), {groups}, std::vector<float>(size_of(groups), 1.0F)),
            constant("zeros_" + std::to_string(groups), {groups}, std::vector<float>(size_of(groups), 0.0F))},
           rows.shape, {{"epsilon", 1e-5}}, name);
  const auto parameter = [&](const std::string& part, double mean) {
    return node("Unsqueeze", {vector(name + part, channels, mean, 0.1), integers({1, 2})}, {1, 1}).name;
  };
  const Activation scaled = binary("Mul", reshape(normal, x.shape), {parameter(".weight", 1.0), {}});
  return binary("Add", scaled, {parameter(".bias", 0.0), {}});
}

Activation Network::unary(const std::string& op, const Activation& x) { return node(op, {x.name}, x.shape); }

Activation Network::binary(const std::string& op, const Activation& x, const Activation& y) {
  return node(op, {x.name, y.name}, x.shape);
}

Activation Network::with_number(const std::string& op, const Activation& x, float number) {
  return node(op, {x.name, scalar(number)}, x.shape);
}

Activation Network::reshape(const Activation& x, const Shape& shape) {
  return node("Reshape", {x.name, integers(with_batch(shape))}, shape);
}

Activation Network::transpose(const Activation& x, const std::vector<std::int64_t>& perm) {
  Shape shape;
  for (std::size_t i = 1; i < perm.size(); ++i) shape.push_back(x.shape[size_of(perm[i] - 1)]);
  return node("Transpose", {x.name}, shape, {{"perm", perm}});
}

Activation Network::slice(const Activation& x, std::int64_t axis, std::int64_t begin, std::int64_t end) {
  Shape shape = x.shape;
  shape[size_of(axis - 1)] = end - begin;
  return node("Slice", {x.name, integers({begin}), integers({end}), integers({axis}), integers({1})}, shape);
}

std::vector<Activation> Network::split(const Activation& x, std::int64_t parts) {
  Shape shape = x.shape;
  shape.back() /= parts;
  std::vector<Activation> result;
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < parts; ++i) {
    result.push_back({fresh("Split"), shape});
    names.push_back(result.back().name);
  }
  const std::vector<std::int64_t> sizes(size_of(parts), shape.back());
  model_.add_node("Split", {x.name, integers(sizes)}, names, {{"axis", -1}}, names.front());
  return result;
}

Activation Network::softmax(const Activation& x) { return node("Softmax", {x.name}, x.shape, {{"axis", -1}}); }

Activation Network::relu(const Activation& x) { return unary("Relu", x); }

Activation Network::max_pool(const Activation& x, const Window& window, bool ceil_mode) {
  std::vector<OnnxAttribute> all = attributes(window);
  if (ceil_mode) all.emplace_back("ceil_mode", 1);
  return node("MaxPool", {x.name}, pooled(x.shape, x.shape[0], window, ceil_mode), all);
}

Activation Network::average_pool(const Activation& x, const Window& window, bool count_padding) {
  std::vector<OnnxAttribute> all = attributes(window);
  all.emplace_back("count_include_pad", count_padding ? 1 : 0);
  return node("AveragePool", {x.name}, pooled(x.shape, x.shape[0], window), all);
}

Activation Network::repeat_pixels(const Activation& x, std::int64_t factor) {
  const auto scale = static_cast<float>(factor);
  const std::string scales = constant("scales_" + std::to_string(factor), {4}, {1.0F, 1.0F, scale, scale});
  return node("Resize", {x.name, "", scales}, {x.shape[0], factor * x.shape[1], factor * x.shape[2]},
              {{"coordinate_transformation_mode", "asymmetric"}, {"mode", "nearest"}, {"nearest_mode", "floor"}});
}

Activation Network::flatten(const Activation& x) { return node("Flatten", {x.name}, {volume(x.shape)}, {{"axis", 1}}); }

Activation Network::global_average(const Activation& x) {
  const Activation pool = node("GlobalAveragePool", {x.name}, {x.shape[0], 1, 1});
  return node("Flatten", {pool.name}, {x.shape[0]}, {{"axis", 1}});
}

Activation Network::concat(const std::vector<Activation>& parts) {
  Shape shape = parts.front().shape;
  shape[0] = 0;
  std::vector<std::string> names;
  for (const Activation& part : parts) {
    names.push_back(part.name);
    shape[0] += part.shape[0];
  }
  return node("Concat", names, shape, {{"axis", 1}});
}

Activation Network::gemm(const std::string& name, const Activation& x, std::int64_t features) {
  return node("Gemm",
              {x.name, filters(name + ".weight", {features, x.shape[0]}), vector(name + ".bias", features, 0.0, 0.1)},
              {features}, {{"transB", 1}}, name);
}

Activation Network::gemm_of_rows(const std::string& name, const Activation& x, std::int64_t features) {
  const std::int64_t tokens = x.shape[0], depth = x.shape[1];
  // Axis 0 of these is the tokens: no batch.
  const Activation rows = node("Reshape", {x.name, integers({-1, depth})}, {});
  const Activation product =
      node("Gemm", {rows.name, matrix(name + ".weight", depth, features), vector(name + ".bias", features, 0.0, 0.1)},
           {}, {{"alpha", 1.0}, {"beta", 1.0}}, name);
  return reshape(product, {tokens, features});
}

Activation Network::matmul(const std::string& weight, const Activation& x, std::int64_t features) {
  Shape shape = x.shape;
  shape.back() = features;
  return node("MatMul", {x.name, matrix(weight, x.shape.back(), features)}, shape);
}

Activation Network::embedding(const std::string& table, const Activation& numbers, std::int64_t entries,
                              std::int64_t features) {
  Shape shape = numbers.shape;
  shape.push_back(features);
  return node("Gather", {matrix(table, entries, features), numbers.name}, shape, {{"axis", 0}});
}

Activation Network::linear(const std::string& name, const Activation& x, std::int64_t features) {
  const Activation product = matmul(name + ".weight", x, features);
  const bool again = initializers_.contains(name + ".bias");  // The weights of a node before: it has the name.
  return node("Add", {vector(name + ".bias", features, 0.0, 0.1), product.name}, product.shape, {}, again ? "" : name);
}

Activation Network::layer_norm(const std::string& name, const Activation& x, float epsilon) {
  const std::int64_t features = x.shape.back();
  return node("LayerNormalization",
              {x.name, vector(name + ".weight", features, 1.0, 0.1), vector(name + ".bias", features, 0.0, 0.1)},
              x.shape, {{"axis", -1}, {"epsilon", epsilon}}, name);
}

Activation Network::rms_norm(const std::string& name, const Activation& x) {
  Shape reduced = x.shape;
  reduced.back() = 1;
  const Activation square = with_number("Pow", x, 2.0F);
  const Activation mean = node("ReduceMean", {square.name}, reduced, {{"axes", {-1}}, {"keepdims", 1}});
  const Activation root = unary("Sqrt", node("Add", {mean.name, constant("epsilon", {}, {1e-5F})}, reduced));
  const Activation normal = binary("Mul", x, unary("Reciprocal", root));
  return node("Mul", {vector(name + ".weight", x.shape.back(), 1.0, 0.1), normal.name}, x.shape, {}, name);
}

Activation Network::gelu(const Activation& x) {
  const Activation sign = with_number("Add", unary("Erf", with_number("Div", x, std::numbers::sqrt2_v<float>)), 1.0F);
  return with_number("Mul", binary("Mul", x, sign), 0.5F);
}

Activation Network::attention(const std::string& name, const Activation& x, std::int64_t heads) {
  const std::int64_t tokens = x.shape[0];
  const std::int64_t features = x.shape[1];
  const std::int64_t depth = features / heads;
  const auto project = [&](const std::string& part, const std::vector<std::int64_t>& perm) {
    return transpose(reshape(linear(name + "." + part, x, features), {tokens, heads, depth}), perm);
  };
  const Activation query = project("query", {0, 2, 1, 3});
  const Activation key = project("key", {0, 2, 3, 1});
  const Activation value = project("value", {0, 2, 1, 3});
  Activation scores = node("MatMul", {query.name, key.name}, {heads, tokens, tokens});
  const Activation weights = softmax(with_number("Div", scores, std::sqrt(static_cast<float>(depth))));
  const Activation context = node("MatMul", {weights.name, value.name}, {heads, tokens, depth});
  return linear(name + ".output", reshape(transpose(context, {0, 2, 1, 3}), {tokens, features}), features);
}

}  // namespace taso::examples
