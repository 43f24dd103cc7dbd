/// Tofu's two networks in training (Wang, Huang, Li 2019, section 7), as graphs for its search. Gradients read and make
/// what those of the layers do; their values are not those of a training: a function's gradient is a product, pooling
/// adds up, batch normalization has known statistics.
#pragma once

#include <cstdint>

#include "graph/graph.h"
#include "operators/registry.h"
#include "partition/tofu_coarsening.h"

namespace taso {

struct TofuNetwork {
  Graph graph;
  TofuGroups groups;
  double weights = 0;  ///< Elements of all weights together.
};

/// WResNet-152-10 has 152 layers (50, 101, 152) and all numbers of channels times 10 (width). Images of 224 by 224. The
/// registry has the operators of tests/partition/products.
[[nodiscard]] Expected<TofuNetwork> wide_resnet_in_training(std::int64_t layers, std::int64_t width, std::int64_t batch,
                                                            const OperatorRegistry& registry);

/// RNN-10-8K has 10 LSTM layers of 8,192 units; unrolled for so many time steps.
[[nodiscard]] Expected<TofuNetwork> lstm_in_training(std::int64_t layers, std::int64_t units, std::int64_t batch,
                                                     std::int64_t steps, const OperatorRegistry& registry);

}  // namespace taso
