// Random graphs of shipped operators: every way to run them agrees with the definitions. Layout propagation, views and
// the arena meet here in combinations nobody has thought of.
#include "tests/runtime/random_graph.h"

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

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraphs, ::testing::Range<std::uint64_t>(0, 8));

}  // namespace
}  // namespace taso::testing
