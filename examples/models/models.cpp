#include "examples/models/models.h"

#include <array>

namespace taso::examples {
namespace {

const std::array<ExampleModel, 5> models = {{
    {"bert_base",
     "BERT-base encoder (Devlin et al. 2018): 12 layers, 768 features, 12 heads, 128 tokens",
     build_bert_base,
     {.extent = 16, .narrower = 6, .depth = 2}},
    {"inception_v3",
     "Inception-v3 (Szegedy et al. 2015), 299 x 299",
     build_inception_v3,
     {.extent = 107, .narrower = 8, .depth = 1}},
    {"nasrnn",
     "five steps of the recurrent cell of Zoph and Le (2016), 512 features",
     build_nasrnn,
     {.narrower = 8, .depth = 2}},
    {"resnet50",
     "ResNet-50 (He et al. 2015), stride in the 3 x 3 convolutions, 224 x 224",
     build_resnet50,
     {.extent = 64, .narrower = 8, .depth = 2}},
    {"squeezenet1_1",
     "SqueezeNet 1.1 (Iandola et al. 2016), 224 x 224",
     build_squeezenet1_1,
     {.extent = 64, .narrower = 4}},
}};

}  // namespace

std::span<const ExampleModel> example_models() { return models; }

const ExampleModel* find_example_model(std::string_view name) {
  for (const ExampleModel& model : models)
    if (model.name == name) return &model;
  return nullptr;
}

}  // namespace taso::examples
