// Every convolution of the example models has a plan on a GPU that is only described: as published and after folding
// and fusing, in both layouts, in each arithmetic. What `--cost memory` prices there is the plan of a device. Skipped
// where the CUDA backend was not built.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "examples/models/models.h"
#include "onnx_io/model.h"
#include "optimizer/baseline.h"
#include "optimizer/runtime_target.h"
#include "runtime/backend.h"
#include "runtime/executor.h"
#include "runtime/lifetimes.h"
#include "support/file.h"
#include "tests/support/shipped.h"

namespace taso::acceptance {
namespace {

namespace fs = std::filesystem;

using test::registry;
using test::value_of;

class CudaPlans : public testing::TestWithParam<std::string> {};

TEST_P(CudaPlans, EveryConvolutionHasOne) {
#ifndef TASO_CUDA_MODULE
  GTEST_SKIP() << "built without the CUDA backend";
#endif
  const fs::path file = fs::path(testing::TempDir()) / ("taso-cuda-" + GetParam() + ".onnx");
  ASSERT_TRUE(examples::find_example_model(GetParam())->build({}).save(file.string()));
  const Model model = value_of(Model::load(file.string(), registry()));
  fs::remove(file);
  const RuleIndex rules(value_of(load_rules(TASO_SOURCE_DIR "/specs/rules/default.rules", registry())), registry());
  const Graph fused = value_of(make_baseline(model.graph(), rules, registry())).graph;
  const std::string device = value_of(read_file(TASO_SOURCE_DIR "/tests/data/cuda/h200_by_hand.json"));
  struct Way {
    MathMode math;
    ElementType storage;
    bool channels_last;
  };
  for (const Way& way : {Way{MathMode::strict, ElementType::f32, false}, Way{MathMode::tf32, ElementType::f32, true},
                         Way{MathMode::tf32, ElementType::f16, true}}) {
    const auto backend = value_of(load_backend("cuda", {way.math, 0, device}));
    const KernelLibrary library(registry(), backend);
    const RuntimeTarget target(library,
                               {.row_major = !way.channels_last, .float_storage = way.storage, .cancelled = {}});
    std::set<std::string> seen;
    for (const Graph* graph : {&model.graph(), &fused}) {
      const LoweredGraph lowered =
          value_of(lower(*graph, registry(), {.channels_last = way.channels_last, .float_storage = way.storage}));
      const LoweredGraph as_run = fused_for(lowered, library);
      EXPECT_EQ(value_of(target.peak_bytes(*graph, nullptr)), plan_memory(as_run, MemoryOf::device).bytes);
      // By themselves, and with their results within wider tensors.
      std::vector<LoweredStep> steps = lowered.steps;
      steps.insert(steps.end(), as_run.steps.begin(), as_run.steps.end());
      for (const LoweredStep& step : steps) {
        const KernelRequest& request = step.kernel->request;
        if (request.op.rfind("conv2d", 0) != 0 || !seen.insert(step.kernel->key).second) continue;
        const KernelOffer offer = backend->create(request, registry());
        ASSERT_NE(offer.kernel, nullptr) << step.kernel->key << ": " << offer.reason;
        EXPECT_EQ(offer.kernel->implementation().rfind("cudnn engine ", 0), 0U) << offer.kernel->implementation();
      }
    }
    EXPECT_GT(seen.size(), 2U);
  }
}

/// A model as it is run, and how many launches it may be: what is gained by fusing is not lost again.
class CudaLaunches : public testing::TestWithParam<std::pair<std::string, std::size_t>> {};

TEST_P(CudaLaunches, AreFew) {
#ifndef TASO_CUDA_MODULE
  GTEST_SKIP() << "built without the CUDA backend";
#endif
  const auto& [name, most] = GetParam();
  const fs::path file = fs::path(testing::TempDir()) / ("taso-launches-" + name + ".onnx");
  ASSERT_TRUE(examples::find_example_model(name)->build({}).save(file.string()));
  const Model model = value_of(Model::load(file.string(), registry()));
  fs::remove(file);
  const RuleIndex rules(value_of(load_rules(TASO_SOURCE_DIR "/specs/rules/default.rules", registry())), registry());
  const Graph graph = value_of(make_baseline(model.graph(), rules, registry())).graph;
  const std::string device = value_of(read_file(TASO_SOURCE_DIR "/tests/data/cuda/h200_by_hand.json"));
  for (const ElementType storage : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    const KernelLibrary library(registry(), value_of(load_backend("cuda", {MathMode::tf32, 0, device})));
    ExecutorOptions options;
    options.float_storage = storage;
    options.streams = 4;
    std::size_t launches = 0;
    const PlannedRun run = value_of(plan_launches(graph, library, options));
    EXPECT_GT(run.streams, 1U) << "all of these have branches";
    for (const PlannedLaunches& kernel : run.kernels) {
      EXPECT_NE(kernel.implementation.rfind("host: ", 0), 0U) << kernel.key;
      launches += kernel.launches;
    }
    EXPECT_LE(launches, most);
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, CudaLaunches,
                         testing::Values(std::pair("nasrnn", 85), std::pair("bert_base", 144),
                                         std::pair("squeezenet1_1", 31), std::pair("inception_v3", 110)),
                         [](const auto& one) { return one.param.first; });

std::vector<std::string> convolutional() {
  return {"densenet121", "inception_resnet_v2", "inception_v3",  "nasnet_a_large", "nasnet_a_mobile",
          "resnet50",    "resnext50_32x4d",     "squeezenet1_1", "unet",           "unet_resize"};
}

INSTANTIATE_TEST_SUITE_P(Examples, CudaPlans, testing::ValuesIn(convolutional()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace taso::acceptance
