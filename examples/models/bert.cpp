// The encoder of BERT-base as an exporter writes it: linear layers are MatMul and Add, gelu is spelled out with Erf.
// The projections to queries, keys and values read one tensor and can become one product.
#include <algorithm>

#include "examples/models/models.h"
#include "examples/models/network.h"

namespace taso::examples {

ModelBuilder build_bert_base(const ModelOptions& options) {
  const std::int64_t tokens = options.extent > 0 ? options.extent : 128;
  const std::int64_t features = 768 / (options.narrower > 0 ? options.narrower : 1);
  const std::int64_t layers = options.depth > 0 ? options.depth : 12;
  const std::int64_t heads = std::max<std::int64_t>(1, features / 64);
  Network net("bert_base", options.seed, options.batch, options.without_weights);

  Activation x = net.input("embeddings", {tokens, features});
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string name = "layer." + std::to_string(layer);
    x = net.layer_norm(name + ".norm1", net.binary("Add", x, net.attention(name + ".attention", x, heads)));
    const Activation hidden = net.gelu(net.linear(name + ".up", x, 4 * features));
    x = net.layer_norm(name + ".norm2", net.binary("Add", x, net.linear(name + ".down", hidden, features)));
  }
  net.output(x);
  return net.take();
}

}  // namespace taso::examples
