/// Networks in training as graphs for searches: Tofu's two (Wang, Huang, Li 2019, section 7) and SoyBean's (Wang,
/// Huang, Li 2018, section 6). Gradients read and make what those of the layers do; their values are not those of a
/// training: a function's gradient is a product, that of a pooling has zeros, Wide ResNet's pooling adds up, its batch
/// normalization has known statistics, and SoyBean's have no biases.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "operators/registry.h"
#include "partition/tofu_coarsening.h"

namespace taso {

struct TofuNetwork {
  Graph graph;
  TofuGroups groups;
  double weights = 0;  ///< Elements of all weights together. The graph's outputs are what they are after the step.
};

/// WResNet-152-10 has 152 layers (50, 101, 152) and all numbers of channels times 10 (width). Images of 224 by 224. The
/// registry has the operators of tests/partition/products.
[[nodiscard]] Expected<TofuNetwork> wide_resnet_in_training(std::int64_t layers, std::int64_t width, std::int64_t batch,
                                                            const OperatorRegistry& registry);

/// RNN-10-8K has 10 LSTM layers of 8,192 units; unrolled for so many time steps.
[[nodiscard]] Expected<TofuNetwork> lstm_in_training(std::int64_t layers, std::int64_t units, std::int64_t batch,
                                                     std::int64_t steps, const OperatorRegistry& registry);

/// Fully connected layers of units[0] to units.back() neurons, with ReLU between.
[[nodiscard]] Expected<TofuNetwork> mlp_in_training(std::int64_t batch, const std::vector<std::int64_t>& units,
                                                    const OperatorRegistry& registry);

/// Convolutions of 3 by 3 with ReLU; images and filters as many as said.
[[nodiscard]] Expected<TofuNetwork> convolutions_in_training(std::int64_t layers, std::int64_t filters,
                                                             std::int64_t size, std::int64_t batch,
                                                             const OperatorRegistry& registry);

/// AlexNet as one device computes it, and VGG-19; numbers of channels and neurons times `width`, but for the image and
/// the 1,000 classes. The layers are those of the example models.
[[nodiscard]] Expected<TofuNetwork> alexnet_in_training(std::int64_t batch, std::int64_t width,
                                                        const OperatorRegistry& registry);
[[nodiscard]] Expected<TofuNetwork> vgg19_in_training(std::int64_t batch, std::int64_t width,
                                                      const OperatorRegistry& registry);

}  // namespace taso
