// The example models have as many parameters as the published networks: a layer that is missing, or of another width,
// shows.
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <string_view>

#include "examples/models/models.h"

namespace taso::acceptance {
namespace {

// Elements of the f32 initializers that training would change: all but the statistics of batch normalizations and the
// constants of formulas, which are scalars.
std::int64_t parameters(std::string_view name, const examples::ModelOptions& options = {}) {
  const examples::ExampleModel* example = examples::find_example_model(name);
  if (example == nullptr) return -1;
  onnx::ModelProto model;
  if (!model.ParseFromString(example->build(options).serialize())) return -1;
  std::int64_t count = 0;
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    if (tensor.data_type() != onnx::TensorProto::FLOAT || tensor.dims_size() == 0 ||
        tensor.name().find(".running_") != std::string::npos)
      continue;
    std::int64_t elements = 1;
    for (const std::int64_t extent : tensor.dims()) elements *= extent;
    count += elements;
  }
  return count;
}

// Networks of up to some ten million parameters, which take a second; torchvision and timm state these numbers.
TEST(Parameters, AreThoseOfThePublishedNetworks) {
  EXPECT_EQ(parameters("densenet121"), 7'978'856);
  EXPECT_EQ(parameters("nasnet_a_mobile"), 5'289'978);
  EXPECT_EQ(parameters("regnet_y_400mf"), 4'344'144);
  EXPECT_EQ(parameters("resnet50"), 25'557'032);
  EXPECT_EQ(parameters("resnext50_32x4d"), 25'028'904);
  EXPECT_EQ(parameters("squeezenet1_1"), 1'235'496);
  EXPECT_EQ(parameters("whisper_encoder"), 8'208'384);
  // A block of GPT-2 small: 124,439,808 less 768 * (50,257 + 1,024 + 2), by 12.
  EXPECT_EQ(parameters("gpt2_block"), 7'087'872);
}

// Networks that are too large to be written with weights: these are counted by their shapes.
TEST(Parameters, AreThoseOfThePapersLargeNetworks) {
  const auto resnet = [](std::string_view name, std::int64_t wider) {
    return parameters(name, {.wider = wider, .without_weights = true});
  };
  EXPECT_EQ(resnet("resnet101", 1), 44'549'160);
  EXPECT_EQ(resnet("resnet152", 1), 60'192'808);
  EXPECT_EQ(resnet("resnet50", 4), 383'571'176);
  EXPECT_EQ(resnet("resnet101", 4), 686'818'536);
  EXPECT_EQ(resnet("resnet152", 4), 936'563'944);
  EXPECT_EQ(resnet("resnet50", 6), 856'702'312);
  EXPECT_EQ(resnet("resnet101", 6), 1'538'852'200);
  EXPECT_EQ(resnet("resnet152", 6), 2'100'641'128);
  EXPECT_EQ(resnet("resnet50", 8), 1'517'397'480);
  EXPECT_EQ(resnet("resnet101", 8), 2'729'969'128);
  EXPECT_EQ(resnet("resnet152", 8), 3'728'582'120);
  EXPECT_EQ(resnet("resnet50", 10), 2'365'656'680);
  EXPECT_EQ(resnet("resnet101", 10), 4'260'169'320);
  EXPECT_EQ(resnet("resnet152", 10), 5'820'386'920);
  EXPECT_EQ(parameters("vgg19", {.without_weights = true}), 143'667'240);
  // Eight matrices of H x H per layer of LSTM, but for the first, which reads little: about (8 L - 4) H^2.
  for (const std::int64_t layers : {6, 8, 10}) {
    constexpr std::int64_t square = std::int64_t{4096} * 4096;
    const std::int64_t count = parameters("lstm", {.depth = layers, .wider = 4, .without_weights = true});
    EXPECT_GE(count, (8 * layers - 4) * square);
    EXPECT_LT(count, (8 * layers - 4) * square * 101 / 100);
  }
}

// The decoders; what is no scalar and no weight besides (the masks, the tables of angles) is left out.
TEST(Parameters, AreThoseOfThePublishedDecoders) {
  EXPECT_EQ(parameters("gpt2_xl", {.without_weights = true}), 1'557'611'200);
  // Mask of 2048 x 2048, sines and cosines of 2048 x 128.
  EXPECT_EQ(parameters("llama_7b", {.without_weights = true}) - 2048 * 2048 - 2 * 2048 * 128, 6'738'415'616);
}

}  // namespace
}  // namespace taso::acceptance
