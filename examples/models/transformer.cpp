// The Transformer of Vaswani et al. (2017): an encoder and a decoder, which reads the encoder's output in every layer.
// Without masks, as systems that plan it have it (Elango 2021).
#include <cmath>
#include <string>

#include "examples/models/models.h"
#include "examples/models/network.h"

namespace taso::examples {
namespace {

// Attention of the rows of x to those of `memory`.
Activation attend(Network& net, const std::string& name, const Activation& x, const Activation& memory,
                  std::int64_t heads) {
  const std::int64_t features = x.shape[1], depth = features / heads;
  const auto project = [&](const std::string& part, const Activation& from, const std::vector<std::int64_t>& perm) {
    return net.transpose(net.reshape(net.linear(name + "." + part, from, features), {from.shape[0], heads, depth}),
                         perm);
  };
  const Activation query = project("query", x, {0, 2, 1, 3});
  const Activation key = project("key", memory, {0, 2, 3, 1});
  const Activation value = project("value", memory, {0, 2, 1, 3});
  const Activation scores = net.node("MatMul", {query.name, key.name}, {heads, x.shape[0], memory.shape[0]});
  const Activation weights = net.softmax(net.with_number("Div", scores, std::sqrt(static_cast<float>(depth))));
  const Activation context = net.node("MatMul", {weights.name, value.name}, {heads, x.shape[0], depth});
  return net.linear(name + ".output", net.reshape(net.transpose(context, {0, 2, 1, 3}), {x.shape[0], features}),
                    features);
}

Activation add_and_norm(Network& net, const std::string& name, const Activation& x, const Activation& y) {
  return net.layer_norm(name, net.binary("Add", x, y), 1e-5F);
}

Activation feed_forward(Network& net, const std::string& name, const Activation& x) {
  const std::int64_t features = x.shape[1];
  const Activation hidden = net.relu(net.linear(name + ".up", x, 4 * features));
  return add_and_norm(net, name + ".norm", x, net.linear(name + ".down", hidden, features));
}

}  // namespace

ModelBuilder build_transformer(const ModelOptions& options) {
  const std::int64_t narrower = options.narrower > 0 ? options.narrower : 1;
  const std::int64_t tokens = options.extent > 0 ? options.extent : 256;
  const std::int64_t layers = options.depth > 0 ? options.depth : 6;
  const std::int64_t features = 512 / narrower, words = 50'000 / narrower, heads = 8;
  Network net("transformer", options.seed, options.batch, options.without_weights);
  Activation memory = net.embedding("source.weight", net.tokens("source", {tokens}), words, features);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string name = "encoder." + std::to_string(i);
    memory = add_and_norm(net, name + ".norm", memory, attend(net, name + ".self", memory, memory, heads));
    memory = feed_forward(net, name + ".ff", memory);
  }
  Activation x = net.embedding("target.weight", net.tokens("target", {tokens}), words, features);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string name = "decoder." + std::to_string(i);
    x = add_and_norm(net, name + ".norm1", x, attend(net, name + ".self", x, x, heads));
    x = add_and_norm(net, name + ".norm2", x, attend(net, name + ".cross", x, memory, heads));
    x = feed_forward(net, name + ".ff", x);
  }
  net.output(net.softmax(net.linear("classifier", x, words)));
  return net.take();
}

}  // namespace taso::examples
