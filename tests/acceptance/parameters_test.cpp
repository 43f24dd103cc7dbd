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
std::int64_t parameters(std::string_view name) {
  const examples::ExampleModel* example = examples::find_example_model(name);
  if (example == nullptr) return -1;
  onnx::ModelProto model;
  if (!model.ParseFromString(example->build({}).serialize())) return -1;
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
  EXPECT_EQ(parameters("resnet50"), 25'557'032);
  EXPECT_EQ(parameters("resnext50_32x4d"), 25'028'904);
  EXPECT_EQ(parameters("squeezenet1_1"), 1'235'496);
  // A block of GPT-2 small: 124,439,808 less 768 * (50,257 + 1,024 + 2), by 12.
  EXPECT_EQ(parameters("gpt2_block"), 7'087'872);
}

}  // namespace
}  // namespace taso::acceptance
