#include <array>

#include "partition/pase_graph.h"
#include "partition/pase_graph_builder.h"

namespace taso {
namespace {

constexpr std::int64_t tile = 4;       ///< The cutoff of convolutional networks: no piece of an axis is smaller.
constexpr std::int64_t no_cutoff = 1;  ///< Layers and heads may be split as far as they go.

/// A convolution and its batch normalisation.
PaseValue normalised(PaseGraphBuilder& net, const PaseValue& image, std::int64_t filters,
                     std::array<std::int64_t, 2> size, const PaseWindow& window = {}) {
  return net.batch_norm(net.convolution(image, filters, size, window));
}

/// A residual block with a narrow middle. The identity is projected where its shape changes.
PaseValue bottleneck(PaseGraphBuilder& net, const PaseValue& image, std::int64_t planes, std::int64_t stride) {
  constexpr std::int64_t expansion = 4;
  PaseValue value = normalised(net, image, planes, {1, 1});
  value = normalised(net, value, planes, {3, 3}, {stride, {1, 1}});
  value = normalised(net, value, planes * expansion, {1, 1});
  const bool changes = stride != 1 || image.shape[1] != planes * expansion;
  const PaseValue identity = changes ? normalised(net, image, planes * expansion, {1, 1}, {stride}) : image;
  return net.elementwise(value, identity, 1);
}

/// Multi-head attention of one value, or of queries, keys and values; the residual and its norm.
PaseValue attention(PaseGraphBuilder& net, const std::vector<PaseValue>& values, std::int64_t heads) {
  const std::int64_t units = values[0].shape[2], depth = units / heads;
  const PaseValue weights = PaseGraphBuilder::outside({3, heads, units, depth});
  const PaseValue projected = values.size() == 1 ? net.einsum("ble,shek->sbhlk", values[0], weights)
                                                 : net.einsum("sble,shek->sbhlk", net.stack(values), weights);
  const std::vector<PaseValue> parts = net.unstack(projected);
  const PaseValue logits = net.einsum("bhlk,bhmk->bhlm", parts[0], parts[1]);
  const PaseValue shares = net.softmax(logits, 3);
  const PaseValue read = net.einsum("bhlm,bhmk->bhlk", shares, parts[2]);
  const PaseValue joined = net.einsum("bhlk,hek->ble", read, PaseGraphBuilder::outside({heads, units, depth}));
  return net.norm(net.elementwise(values[0], joined), 2);
}

/// Two products, the residual and its norm.
PaseValue feed_forward(PaseGraphBuilder& net, const PaseValue& input, std::int64_t width) {
  const std::int64_t units = input.shape[2];
  const PaseValue wide = net.einsum("ble,ef->blf", input, PaseGraphBuilder::outside({units, width}), 2);
  const PaseValue narrow = net.einsum("blf,fe->ble", wide, PaseGraphBuilder::outside({width, units}));
  return net.norm(net.elementwise(input, narrow), 2);
}

}  // namespace

PaseGraph pase_alexnet(std::int64_t batch) { return pase_alexnet_with_classes(batch, 1024); }

PaseGraph pase_alexnet_with_classes(std::int64_t batch, std::int64_t classes) {
  PaseGraphBuilder net("AlexNet", tile);
  PaseValue value = net.convolution(PaseGraphBuilder::outside({batch, 3, 227, 227}), 96, {11, 11}, {4}, 1);
  value = net.pooling(value, {3, 3}, {2});
  value = net.convolution(value, 256, {5, 5}, {1, {2, 2}}, 1);
  value = net.pooling(value, {3, 3}, {2});
  for (const std::int64_t filters : {384, 384, 256}) value = net.convolution(value, filters, {3, 3}, {1, {1, 1}}, 1);
  value = net.pooling(value, {3, 3}, {2});
  value = net.reshape(value, {batch, 256 * 6 * 6});
  value = net.fully_connected(value, 4096, 1);
  value = net.fully_connected(value, 4096, 1);
  net.cross_entropy(net.fully_connected(value, classes));
  return std::move(net).finish();
}

PaseGraph pase_resnet101(std::int64_t batch) {
  PaseGraphBuilder net("ResNet-101", tile);
  PaseValue value = normalised(net, PaseGraphBuilder::outside({batch, 3, 227, 227}), 64, {7, 7}, {2, {3, 3}});
  value = net.pooling(value, {3, 3}, {2, {1, 1}});
  std::int64_t planes = 64, stride = 1;
  for (const int blocks : {3, 4, 23, 3}) {
    for (int block = 0; block < blocks; ++block) value = bottleneck(net, value, planes, block == 0 ? stride : 1);
    planes *= 2;
    stride = 2;
  }
  net.cross_entropy(net.fully_connected(net.mean(value, {2, 3}), 1000));
  return std::move(net).finish();
}

PaseGraph pase_rnnlm(std::int64_t batch) {
  constexpr std::int64_t words = 100'000, units = 2048, steps = 256;
  PaseGraphBuilder net("RNNLM", no_cutoff);
  const PaseValue embedded = net.embedding(PaseGraphBuilder::outside({batch, steps}), words, units);
  net.cross_entropy(net.fully_connected(net.lstm(embedded, 2), words));
  return std::move(net).finish();
}

PaseGraph pase_transformer(std::int64_t batch) {
  constexpr std::int64_t words = 50'000, positions = 256, units = 512, heads = 8, width = 2048;
  constexpr int depth = 6;
  PaseGraphBuilder net("Transformer", no_cutoff);
  const PaseValue sentence = PaseGraphBuilder::outside({batch, positions});
  const PaseValue encoding = PaseGraphBuilder::outside({batch, positions, units});
  PaseValue encoded = net.elementwise(net.embedding(sentence, words, units), encoding);
  for (int i = 0; i < depth; ++i) encoded = feed_forward(net, attention(net, {encoded}, heads), width);
  PaseValue decoded = net.elementwise(net.embedding(sentence, words, units), encoding);
  for (int i = 0; i < depth; ++i) {
    decoded = attention(net, {decoded}, heads);
    decoded = feed_forward(net, attention(net, {decoded, encoded, encoded}, heads), width);
  }
  net.cross_entropy(net.einsum("ble,ev->blv", decoded, PaseGraphBuilder::outside({units, words})));
  return std::move(net).finish();
}

}  // namespace taso
