// Random graphs of shipped operators: every way to run them agrees with the definitions. Layout propagation, views and
// the arena meet here in combinations nobody has thought of.
#include "tests/runtime/random_graph.h"

#include "tests/runtime/backend.h"

namespace taso::testing {
namespace {

class RandomGraphs : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomGraphs, RunAsDefined) {
  for (std::uint64_t i = 0; i < 25; ++i) {
    const std::uint64_t seed = GetParam() * 25 + i;
    const Graph graph = RandomGraph(seed).build(4 + static_cast<int>(seed % 20));
    const std::vector<HostTensor> inputs = inputs_for(graph, seed);
    const auto expected = reference_outputs(graph, inputs);
    for (const bool channels_last : {true, false})
      for (const int threads : {1, 2}) {
        Executor executor = value_of(Executor::create(graph, library(), {threads, channels_last, nullptr}));
        expect_near(
            value_of(executor.run(inputs)), expected, 1e-4,
            "seed " + std::to_string(seed) + (channels_last ? ", channels last" : ", rows") + "\n" + to_text(graph));
        if (HasFatalFailure()) return;
      }
  }
}

// The same on a device that fuses: the fused steps, their order, and the programs of the CUDA backend for them.
TEST_P(RandomGraphs, RunFusedAsDefined) {
  std::size_t steps = 0, fused = 0;
  for (const ElementType storage : {ElementType::f32, ElementType::f16}) {
    const KernelLibrary device(registry(), value_of(load_test_backend({MathMode::strict, 0, ""}, "fusing")));
    for (std::uint64_t i = 0; i < 25; ++i) {
      const std::uint64_t seed = GetParam() * 25 + i;
      const Graph graph = RandomGraph(seed).build(4 + static_cast<int>(seed % 20));
      const std::vector<HostTensor> inputs = inputs_for(graph, seed);
      ExecutorOptions options;
      options.float_storage = storage;
      Executor executor = value_of(Executor::create(graph, device, options));
      expect_near(value_of(executor.run(inputs)), reference_outputs(graph, inputs),
                  storage == ElementType::f32 ? 1e-4 : 5e-2, "seed " + std::to_string(seed) + "\n" + to_text(graph));
      if (HasFatalFailure()) return;
      for (const LoweredStep& step : executor.lowered().steps) fused += step.kernel->request.fused ? 1 : 0;
      steps += executor.launches();
    }
  }
  EXPECT_GT(fused, steps / 10);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraphs, ::testing::Range<std::uint64_t>(0, 8));

}  // namespace
}  // namespace taso::testing
