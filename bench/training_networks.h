/// Networks in training, as graphs without weights' data: example models, a loss, gradients by the shipped table, and
/// one step of gradient descent for all weights (gradients/gradient_descent.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "examples/models/models.h"
#include "gradients/gradient_descent.h"
#include "partition/tofu_coarsening.h"

namespace taso {

/// A network in training.
struct TrainingNetwork {
  GradientDescentStep step;
  TofuGroups groups;        ///< Its weights.
  double weights = 0;       ///< Elements of all weights together.
  std::size_t forward = 0;  ///< Operators of the network and its loss.
};

/// What gradients are made with.
struct GradientSpecifications {
  OperatorRegistry registry;
  GradientTable table;              ///< Of the registry.
  std::vector<Substitution> rules;  ///< That prepare graphs (trainable).

  /// Those of a folder `gradients` (specs/gradients) over operators that are loaded already.
  [[nodiscard]] static Expected<std::unique_ptr<const GradientSpecifications>> load(const std::string& folder,
                                                                                    const OperatorRegistry& base);
};

/// What is made less: the cross-entropy of the softmax of the only output, or the squares of its differences from a
/// target.
enum class Loss : std::uint8_t { cross_entropy, squared_error };

/// An example model in training: batch normalizations with statistics of the batch, all weights trained. The registry
/// has the operators of specs/gradients, the table is of it.
[[nodiscard]] Expected<TrainingNetwork> example_in_training(std::string_view name, examples::ModelOptions options,
                                                            Loss loss, const GradientSpecifications& specifications);

/// WResNet-152-10 (Wang, Huang, Li 2019, section 7) has 152 layers (50, 101, 152) and all numbers of channels times 10
/// (width).
[[nodiscard]] Expected<TrainingNetwork> wide_resnet_in_training(std::int64_t layers, std::int64_t width,
                                                                std::int64_t batch,
                                                                const GradientSpecifications& specifications);

/// RNN-10-8K has 10 LSTM layers of 8,192 units (a multiple of 1,024); unrolled for so many time steps.
[[nodiscard]] Expected<TrainingNetwork> lstm_in_training(std::int64_t layers, std::int64_t units, std::int64_t batch,
                                                         std::int64_t steps,
                                                         const GradientSpecifications& specifications);

/// Layers of units[0] to units.back() neurons with biases and ReLU in between, and the cross-entropy.
[[nodiscard]] Expected<TrainingNetwork> perceptron_in_training(std::int64_t batch,
                                                               const std::vector<std::int64_t>& units,
                                                               const GradientSpecifications& specifications);

/// Layers of so many convolutions of 3 by 3 with ReLU; images have as many channels as there are filters, and the same
/// size after every layer. Squared error.
[[nodiscard]] Expected<TrainingNetwork> convolutions_in_training(std::int64_t layers, std::int64_t filters,
                                                                 std::int64_t size, std::int64_t batch,
                                                                 const GradientSpecifications& specifications);

}  // namespace taso
