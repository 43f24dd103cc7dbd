/// The example models, by name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "onnx_io/builder.h"

namespace taso::examples {

/// What may differ from the published network. Zero means: as published.
struct ModelOptions {
  std::uint64_t seed = 0;
  /// Side of the square image, or number of tokens.
  std::int64_t extent = 0;
  /// Divides all channel or feature counts.
  std::int64_t narrower = 0;
  /// Blocks, layers or cells per stage at most; encoder or decoder layers; recurrent steps; levels of a U-Net.
  std::int64_t depth = 0;
  /// Images or sequences at a time (1 as published).
  std::int64_t batch = 0;
  /// Multiplies all channel or feature counts (ResNets: "Wide" ones of Zagoruyko and Komodakis 2016; AlexNet, VGG;
  /// lstm).
  std::int64_t wider = 0;
  /// Of weights only the types: the model is a file without data.
  bool without_weights = false;
};

struct ExampleModel {
  std::string_view name;
  std::string_view description;
  ModelBuilder (*build)(const ModelOptions& options);
  /// A variant of the same structure that runs in milliseconds, for tests.
  ModelOptions small;
  /// About how many megabytes (10^6 bytes) its weights take as published, where they are more than 200.
  std::int64_t megabytes = 0;
  /// More than a model file holds: as published it is built without weights.
  [[nodiscard]] bool is_large() const { return megabytes > 1800; }
};

/// All of them, in alphabetical order.
[[nodiscard]] std::span<const ExampleModel> example_models();
/// The one of that name, or null.
[[nodiscard]] const ExampleModel* find_example_model(std::string_view name);

ModelBuilder build_alexnet(const ModelOptions& options);
ModelBuilder build_bert_base(const ModelOptions& options);
ModelBuilder build_densenet121(const ModelOptions& options);
ModelBuilder build_gpt2_block(const ModelOptions& options);
ModelBuilder build_gpt2_xl(const ModelOptions& options);
ModelBuilder build_inception_resnet_v2(const ModelOptions& options);
ModelBuilder build_inception_v3(const ModelOptions& options);
ModelBuilder build_llama_7b(const ModelOptions& options);
ModelBuilder build_llama_block(const ModelOptions& options);
ModelBuilder build_lstm(const ModelOptions& options);
ModelBuilder build_nasnet_a_large(const ModelOptions& options);
ModelBuilder build_nasnet_a_mobile(const ModelOptions& options);
ModelBuilder build_nasrnn(const ModelOptions& options);
ModelBuilder build_regnet_y_400mf(const ModelOptions& options);
ModelBuilder build_resnet101(const ModelOptions& options);
ModelBuilder build_resnet152(const ModelOptions& options);
ModelBuilder build_resnet50(const ModelOptions& options);
ModelBuilder build_resnext50_32x4d(const ModelOptions& options);
ModelBuilder build_rnnlm(const ModelOptions& options);
ModelBuilder build_squeezenet1_1(const ModelOptions& options);
ModelBuilder build_transformer(const ModelOptions& options);
ModelBuilder build_unet(const ModelOptions& options);
ModelBuilder build_unet_resize(const ModelOptions& options);
ModelBuilder build_vgg19(const ModelOptions& options);
ModelBuilder build_whisper_encoder(const ModelOptions& options);

}  // namespace taso::examples
