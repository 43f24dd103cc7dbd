#include "examples/models/models.h"

#include <array>

namespace taso::examples {
namespace {

const std::array<ExampleModel, 14> models = {{
    {"bert_base",
     "BERT-base encoder (Devlin et al. 2018): 12 layers, 768 features, 12 heads, 128 tokens",
     build_bert_base,
     {.extent = 16, .narrower = 6, .depth = 2}},
    {"densenet121",
     "DenseNet-121 (Huang et al. 2016), 224 x 224",
     build_densenet121,
     {.extent = 64, .narrower = 4, .depth = 2}},
    {"gpt2_block",
     "a block of GPT-2 small (Radford et al. 2019): 768 features, 12 heads, 128 tokens, causal mask by Where",
     build_gpt2_block,
     {.extent = 16, .narrower = 6}},
    {"inception_resnet_v2",
     "Inception-ResNet-v2 (Szegedy et al. 2016), 299 x 299",
     build_inception_resnet_v2,
     {.extent = 107, .narrower = 8, .depth = 1}},
    {"inception_v3",
     "Inception-v3 (Szegedy et al. 2015), 299 x 299",
     build_inception_v3,
     {.extent = 107, .narrower = 8, .depth = 1}},
    {"llama_block",
     "a block of LLaMA 3.2 1B (2024): 2048 features, 32 heads on 8 heads of keys and values, 128 tokens",
     build_llama_block,
     {.extent = 16, .narrower = 16}},
    {"nasnet_a_large",
     "NASNet-A 6@4032 for ImageNet (Zoph et al. 2017), 331 x 331",
     build_nasnet_a_large,
     {.extent = 79, .narrower = 12, .depth = 1}},
    {"nasnet_a_mobile",
     "NASNet-A 4@1056 for ImageNet (Zoph et al. 2017), 224 x 224",
     build_nasnet_a_mobile,
     {.extent = 63, .narrower = 4, .depth = 1}},
    {"nasrnn",
     "five steps of the recurrent cell of Zoph and Le (2016), 512 features",
     build_nasrnn,
     {.narrower = 8, .depth = 2}},
    {"resnet50",
     "ResNet-50 (He et al. 2015), stride in the 3 x 3 convolutions, 224 x 224",
     build_resnet50,
     {.extent = 64, .narrower = 8, .depth = 2}},
    {"resnext50_32x4d",
     "ResNeXt-50 with 32 groups of width 4 (Xie et al. 2016), 224 x 224",
     build_resnext50_32x4d,
     {.extent = 64, .narrower = 8, .depth = 2}},
    {"squeezenet1_1",
     "SqueezeNet 1.1 (Iandola et al. 2016), 224 x 224",
     build_squeezenet1_1,
     {.extent = 64, .narrower = 4}},
    {"unet",
     "U-Net (Ronneberger et al. 2015) with transposed convolutions, four levels, 128 x 128",
     build_unet,
     {.extent = 32, .narrower = 8, .depth = 2}},
    {"unet_resize",
     "a U-Net as in diffusion models: group normalization, SiLU, repeated pixels, two levels, 64 x 64",
     build_unet_resize,
     {.extent = 16, .narrower = 8, .depth = 1}},
}};

}  // namespace

std::span<const ExampleModel> example_models() { return models; }

const ExampleModel* find_example_model(std::string_view name) {
  for (const ExampleModel& model : models)
    if (model.name == name) return &model;
  return nullptr;
}

}  // namespace taso::examples
