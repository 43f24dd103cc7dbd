// Decoders as exporters write them: GPT-2 and LLaMA, as blocks without embeddings and as whole models, for one pass
// over all tokens (no cache).
//
// GPT-2: queries, keys and values are one product, split; the causal mask selects by Where; gelu is the approximation
// by tanh, spelled out. LLaMA: root mean square norms, rotary position embedding of queries and keys, keys and values
// of fewer heads repeated by Expand, a mask that is added, and a gated feed-forward network.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "examples/models/models.h"
#include "examples/models/network.h"

namespace taso::examples {
namespace {

constexpr float masked = std::numeric_limits<float>::lowest();

// x in heads: [heads, tokens, depth].
Activation in_heads(Network& net, const Activation& x, std::int64_t heads) {
  return net.transpose(net.reshape(x, {x.shape[0], heads, x.shape[1] / heads}), {0, 2, 1, 3});
}

// [heads, tokens, depth] back to rows.
Activation in_rows(Network& net, const Activation& x) {
  return net.reshape(net.transpose(x, {0, 2, 1, 3}), {x.shape[1], x.shape[0] * x.shape[2]});
}

Activation product(Network& net, const Activation& x, const Activation& y) {
  return net.node("MatMul", {x.name, y.name}, {x.shape[0], x.shape[1], y.shape[2]});
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
Activation gelu_by_tanh(Network& net, const Activation& x) {
  const Activation cubic = net.with_number("Mul", net.with_number("Pow", x, 3.0F), 0.044715F);
  const auto factor = static_cast<float>(std::sqrt(2.0 / std::numbers::pi));
  const Activation bend = net.unary("Tanh", net.with_number("Mul", net.binary("Add", x, cubic), factor));
  return net.binary("Mul", net.with_number("Mul", x, 0.5F), net.with_number("Add", bend, 1.0F));
}

Activation gpt2_block(Network& net, const std::string& name, const Activation& x, std::int64_t heads) {
  const std::int64_t tokens = x.shape[0], features = x.shape[1];
  const Activation normal = net.layer_norm(name + ".ln_1", x, 1e-5F);
  const std::vector<Activation> parts = net.split(net.gemm_of_rows(name + ".attn.c_attn", normal, 3 * features), 3);
  const Activation query = in_heads(net, parts[0], heads), value = in_heads(net, parts[2], heads);
  const Activation key = net.transpose(net.reshape(parts[1], {tokens, heads, features / heads}), {0, 2, 3, 1});
  std::vector<std::uint8_t> seen;
  for (std::int64_t i = 0; i < tokens; ++i)
    for (std::int64_t j = 0; j < tokens; ++j) seen.push_back(j <= i ? 1 : 0);
  const std::string mask = net.booleans("causal_mask", {1, 1, tokens, tokens}, seen);
  const Activation scores =
      net.with_number("Div", product(net, query, key), std::sqrt(static_cast<float>(features / heads)));
  const Activation weights =
      net.softmax(net.node("Where", {mask, scores.name, net.constant("masked", {}, {masked})}, scores.shape));
  const Activation context = in_rows(net, product(net, weights, value));
  const Activation y = net.binary("Add", net.gemm_of_rows(name + ".attn.c_proj", context, features), x);
  const Activation hidden =
      net.gemm_of_rows(name + ".mlp.c_fc", net.layer_norm(name + ".ln_2", y, 1e-5F), 4 * features);
  return net.binary("Add", y, net.gemm_of_rows(name + ".mlp.c_proj", gelu_by_tanh(net, hidden), features));
}

// x cos + rotated(x) sin, where the halves of a head are rotated against each other.
Activation rotary(Network& net, const Activation& x, double base) {
  const std::int64_t tokens = x.shape[1], depth = x.shape[2];
  std::vector<float> cosines, sines;
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t i = 0; i < depth; ++i) {
      const double exponent = static_cast<double>(2 * (i % (depth / 2))) / static_cast<double>(depth);
      const double angle = static_cast<double>(t) * std::pow(base, -exponent);
      cosines.push_back(static_cast<float>(std::cos(angle)));
      sines.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  const Activation rotated =
      net.node("Concat", {net.unary("Neg", net.slice(x, 3, depth / 2, depth)).name, net.slice(x, 3, 0, depth / 2).name},
               x.shape, {{"axis", -1}});
  return net.binary("Add", net.binary("Mul", x, {net.constant("cos", {1, 1, tokens, depth}, cosines), {}}),
                    net.binary("Mul", rotated, {net.constant("sin", {1, 1, tokens, depth}, sines), {}}));
}

// Every head `times` times, one after the other.
Activation repeat_heads(Network& net, const Activation& x, std::int64_t times) {
  if (times == 1) return x;
  const std::int64_t heads = x.shape[0], tokens = x.shape[1], depth = x.shape[2];
  const Activation apart = net.node("Unsqueeze", {x.name, net.integers({2})}, {heads, 1, tokens, depth});
  const Activation repeated =
      net.node("Expand", {apart.name, net.integers({1, heads, times, tokens, depth})}, {heads, times, tokens, depth});
  return net.reshape(repeated, {heads * times, tokens, depth});
}

Activation llama_block(Network& net, const std::string& name, const Activation& x, std::int64_t heads,
                       std::int64_t key_heads, std::int64_t hidden, double base) {
  const std::int64_t tokens = x.shape[0], features = x.shape[1], depth = features / heads;
  const Activation normal = net.rms_norm(name + ".input_layernorm", x);
  const auto project = [&](const std::string& part, std::int64_t count) {
    return in_heads(net, net.matmul(name + ".self_attn." + part, normal, count * depth), count);
  };
  const Activation query = rotary(net, project("q_proj", heads), base);
  const Activation key = repeat_heads(net, rotary(net, project("k_proj", key_heads), base), heads / key_heads);
  const Activation value = repeat_heads(net, project("v_proj", key_heads), heads / key_heads);
  std::vector<float> mask;
  for (std::int64_t i = 0; i < tokens; ++i)
    for (std::int64_t j = 0; j < tokens; ++j) mask.push_back(j <= i ? 0.0F : masked);
  const Activation scores = net.with_number("Div", product(net, query, net.transpose(key, {0, 1, 3, 2})),
                                            std::sqrt(static_cast<float>(depth)));
  const Activation weights =
      net.softmax(net.binary("Add", scores, {net.constant("causal_mask", {1, 1, tokens, tokens}, mask), {}}));
  const Activation context = in_rows(net, product(net, weights, value));
  const Activation y = net.binary("Add", x, net.matmul(name + ".self_attn.o_proj", context, features));
  const Activation inner = net.rms_norm(name + ".post_attention_layernorm", y);
  const Activation gate = net.matmul(name + ".mlp.gate_proj", inner, hidden);
  const Activation silu = net.binary("Mul", gate, net.unary("Sigmoid", gate));
  const Activation gated = net.binary("Mul", silu, net.matmul(name + ".mlp.up_proj", inner, hidden));
  return net.binary("Add", y, net.matmul(name + ".mlp.down_proj", gated, features));
}

}  // namespace

ModelBuilder build_gpt2_block(const ModelOptions& options) {
  const std::int64_t tokens = options.extent > 0 ? options.extent : 128;
  const std::int64_t features = 768 / (options.narrower > 0 ? options.narrower : 1);
  Network net("gpt2_block", options.seed, options.batch, options.without_weights);
  Activation x = net.input("hidden_states", {tokens, features});
  for (std::int64_t i = 0; i < std::max<std::int64_t>(1, options.depth); ++i)
    x = gpt2_block(net, "h." + std::to_string(i), x, std::max<std::int64_t>(1, features / 64));
  net.output(x);
  return net.take();
}

ModelBuilder build_llama_block(const ModelOptions& options) {
  const std::int64_t tokens = options.extent > 0 ? options.extent : 128;
  const std::int64_t narrower = options.narrower > 0 ? options.narrower : 1;
  // Narrower: shallower heads, as many of them as there are features for, at most 32.
  const std::int64_t features = 2048 / narrower,
                     key_heads = std::min<std::int64_t>(8, std::max<std::int64_t>(1, features / 32));
  Network net("llama_block", options.seed, options.batch, options.without_weights);
  Activation x = net.input("hidden_states", {tokens, features});
  for (std::int64_t i = 0; i < std::max<std::int64_t>(1, options.depth); ++i)
    x = llama_block(net, "layers." + std::to_string(i), x, 4 * key_heads, key_heads, 8192 / narrower, 500000.0);
  net.output(x);
  return net.take();
}

ModelBuilder build_gpt2_xl(const ModelOptions& options) {
  const std::int64_t tokens = options.extent > 0 ? options.extent : 1024;
  const std::int64_t narrower = options.narrower > 0 ? options.narrower : 1;
  const std::int64_t features = 1600 / narrower, words = 50257 / narrower, positions = 1024;
  Network net("gpt2_xl", options.seed, options.batch, options.without_weights);
  const Activation embedded = net.embedding("wte", net.tokens("input_ids", {tokens}), words, features);
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < tokens; ++i) numbers.push_back(i);
  const Activation place = {net.integers("positions", numbers), {tokens}};
  Activation x = net.binary("Add", embedded, net.embedding("wpe", place, positions, features));
  const std::int64_t layers = options.depth > 0 ? options.depth : 48;
  for (std::int64_t i = 0; i < layers; ++i)
    x = gpt2_block(net, "h." + std::to_string(i), x, std::max<std::int64_t>(1, features / 64));
  x = net.layer_norm("ln_f", x, 1e-5F);
  // The table of the embedding once more.
  const Activation table = net.node("Transpose", {"wte"}, {}, {{"perm", {1, 0}}});
  net.output(net.node("MatMul", {x.name, table.name}, {tokens, words}));
  return net.take();
}

ModelBuilder build_llama_7b(const ModelOptions& options) {
  const std::int64_t tokens = options.extent > 0 ? options.extent : 2048;
  const std::int64_t narrower = options.narrower > 0 ? options.narrower : 1;
  const std::int64_t features = 4096 / narrower, words = 32000 / narrower, hidden = 11008 / narrower;
  const std::int64_t heads = std::min<std::int64_t>(32, std::max<std::int64_t>(1, features / 16));
  Network net("llama_7b", options.seed, options.batch, options.without_weights);
  Activation x = net.embedding("embed_tokens", net.tokens("input_ids", {tokens}), words, features);
  const std::int64_t layers = options.depth > 0 ? options.depth : 32;
  for (std::int64_t i = 0; i < layers; ++i)
    x = llama_block(net, "layers." + std::to_string(i), x, heads, heads, hidden, 10000.0);
  net.output(net.matmul("lm_head", net.rms_norm("norm", x), words));
  return net.take();
}

}  // namespace taso::examples
