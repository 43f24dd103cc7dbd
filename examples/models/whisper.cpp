// The encoder of Whisper (tiny) as an exporter writes it: two convolutions along time with spelled-out gelu, learned
// positions, layers that normalize first. Queries are scaled before the product with the keys, which have no bias.
#include <algorithm>
#include <cmath>

#include "examples/models/models.h"
#include "examples/models/network.h"

namespace taso::examples {

ModelBuilder build_whisper_encoder(const ModelOptions& options) {
  constexpr std::int64_t bands = 80, kernel = 3;
  const std::int64_t frames = options.extent > 0 ? options.extent : 3000;
  const std::int64_t features = 384 / (options.narrower > 0 ? options.narrower : 1);
  const std::int64_t layers = options.depth > 0 ? options.depth : 4;
  const std::int64_t heads = std::max<std::int64_t>(1, features / 64);
  const std::int64_t tokens = (frames + 1) / 2, depth = features / heads;
  Network net("whisper_encoder", options.seed, options.batch, options.without_weights);

  const auto conv = [&](const std::string& name, const Activation& x, std::int64_t stride, std::int64_t length) {
    return net.gelu(net.node(
        "Conv",
        {x.name, net.weight(name + ".weight", {features, x.shape[0], kernel}), net.weight(name + ".bias", {features})},
        {features, length},
        {{"kernel_shape", std::vector<std::int64_t>{kernel}},
         {"strides", std::vector<std::int64_t>{stride}},
         {"pads", std::vector<std::int64_t>{1, 1}}},
        name));
  };
  const auto attention = [&](const std::string& name, const Activation& x) {
    const auto heads_of = [&](const Activation& y, const std::vector<std::int64_t>& perm) {
      return net.transpose(net.reshape(y, {tokens, heads, depth}), perm);
    };
    const Activation query = heads_of(
        net.with_number("Mul", net.linear(name + ".query", x, features), 1.0F / std::sqrt(static_cast<float>(depth))),
        {0, 2, 1, 3});
    const Activation key = heads_of(net.matmul(name + ".key.weight", x, features), {0, 2, 3, 1});
    const Activation value = heads_of(net.linear(name + ".value", x, features), {0, 2, 1, 3});
    const Activation weights = net.softmax(net.node("MatMul", {query.name, key.name}, {heads, tokens, tokens}));
    const Activation context = net.node("MatMul", {weights.name, value.name}, {heads, tokens, depth});
    return net.linear(name + ".output", net.reshape(net.transpose(context, {0, 2, 1, 3}), {tokens, features}),
                      features);
  };

  Activation x = net.input("mel", {bands, frames});
  x = conv("conv2", conv("conv1", x, 1, frames), 2, tokens);
  x = net.transpose(x, {0, 2, 1});
  x = net.node("Add", {x.name, net.weight("positions", {tokens, features})}, x.shape);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string name = "layer." + std::to_string(layer);
    x = net.binary("Add", x, attention(name + ".attention", net.layer_norm(name + ".norm1", x, 1e-5F)));
    const Activation normal = net.layer_norm(name + ".norm2", x, 1e-5F);
    x = net.binary("Add", x,
                   net.linear(name + ".down", net.gelu(net.linear(name + ".up", normal, 4 * features)), features));
  }
  net.output(net.layer_norm("norm", x, 1e-5F));
  return net.take();
}

}  // namespace taso::examples
