// Every step of the example models has a plan on a GPU that is only described: as published and after folding and
// fusing, in both layouts, in each arithmetic. Convolutions are planned with cuDNN's engines, by themselves and with
// their results within wider tensors; products are described for cuBLASLt, which names its algorithms where the device
// is. What `--cost memory` prices there is the plan of a device. Skipped where the CUDA backend was not built.
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

/// An example model as its file has it, and as it is run.
struct ExampleGraphs {
  explicit ExampleGraphs(const std::string& name) {
    const fs::path file = fs::path(testing::TempDir()) / ("taso-cuda-" + name + ".onnx");
    examples::ModelOptions options;
    if (name == "transformer") options.depth = 1;  // its layers are alike
    EXPECT_TRUE(examples::find_example_model(name)->build(options).save(file.string()));
    const Model model = value_of(Model::load(file.string(), registry()));
    fs::remove(file);
    const RuleIndex rules(value_of(load_rules(TASO_SOURCE_DIR "/specs/rules/default.rules", registry())), registry());
    original = model.graph();
    fused = value_of(make_baseline(original, rules, registry())).graph;
  }

  Graph original, fused;
};

std::string described_gpu() { return value_of(read_file(TASO_SOURCE_DIR "/tests/data/cuda/h200_by_hand.json")); }

bool is_convolution(const KernelRequest& request) { return !request.fused && request.op.rfind("conv2d", 0) == 0; }
bool is_product(const KernelRequest& request) { return !request.fused && request.op.rfind("matmul", 0) == 0; }

class CudaPlans : public testing::TestWithParam<std::string> {};

TEST_P(CudaPlans, EveryStepHasOne) {
#ifndef TASO_CUDA_MODULE
  GTEST_SKIP() << "built without the CUDA backend";
#endif
  const ExampleGraphs model(GetParam());
  struct Way {
    MathMode math;
    ElementType storage;
  };
  for (const Way& way : {Way{MathMode::strict, ElementType::f32}, Way{MathMode::tf32, ElementType::f32},
                         Way{MathMode::strict, ElementType::f16}, Way{MathMode::strict, ElementType::bf16}}) {
    const auto backend = value_of(load_backend("cuda", {way.math, 0, described_gpu()}));
    const KernelLibrary library(registry(), backend);
    std::set<std::string> seen;
    for (const bool channels_last : {false, true}) {
      for (const Graph* graph : {&model.original, &model.fused}) {
        const LoweredGraph lowered =
            value_of(lower(*graph, registry(), {.channels_last = channels_last, .float_storage = way.storage}));
        const LoweredGraph as_run = fused_for(lowered, library);
        if (way.math == MathMode::tf32) {
          const RuntimeTarget target(library,
                                     {.row_major = !channels_last, .float_storage = way.storage, .cancelled = {}});
          EXPECT_EQ(value_of(target.peak_bytes(*graph, nullptr)), plan_memory(as_run, MemoryOf::device).bytes);
        }
        std::vector<LoweredStep> steps = lowered.steps;
        steps.insert(steps.end(), as_run.steps.begin(), as_run.steps.end());
        for (const LoweredStep& step : steps) {
          const KernelRequest& request = step.kernel->request;
          if (!seen.insert(step.kernel->key).second) continue;
          const KernelOffer offer = backend->create(request, registry());
          ASSERT_NE(offer.kernel, nullptr) << step.kernel->key << ": " << offer.reason;
          const std::string how = offer.kernel->implementation();
          const std::string library_of = is_convolution(request) ? "cudnn engine "
                                         : is_product(request)   ? "cublasLt"
                                                                 : "";
          EXPECT_EQ(how.rfind(library_of, 0), 0U) << step.kernel->key << ": " << how;
        }
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
  const ExampleGraphs model(name);
  for (const ElementType storage : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    const KernelLibrary library(registry(), value_of(load_backend("cuda", {MathMode::tf32, 0, described_gpu()})));
    ExecutorOptions options;
    options.float_storage = storage;
    options.streams = 4;
    std::size_t launches = 0;
    const PlannedRun run = value_of(plan_launches(model.fused, library, options));
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
                                         std::pair("squeezenet1_1", 31), std::pair("inception_v3", 110),
                                         std::pair("nasnet_a_mobile", 303)),
                         [](const auto& one) { return one.param.first; });

/// Those of moderate size, but for the deeper and wider ones of a family, whose steps are of the same kinds.
std::vector<std::string> planned() {
  return {"alexnet",         "bert_base",   "densenet121", "gpt2_block", "inception_resnet_v2", "inception_v3",
          "llama_block",     "lstm",        "nasrnn",      "resnet50",   "resnext50_32x4d",     "squeezenet1_1",
          "nasnet_a_mobile", "transformer", "unet",        "unet_resize"};
}

INSTANTIATE_TEST_SUITE_P(Examples, CudaPlans, testing::ValuesIn(planned()), [](const auto& one) { return one.param; });

}  // namespace
}  // namespace taso::acceptance
