// What a device cannot execute, though it has offered to, is computed in another way.
#include <gmock/gmock.h>

#include <map>

#include "runtime/executor.h"
#include "runtime/measure.h"
#include "tests/runtime/backend.h"

namespace taso::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A device whose fused kernels fail, and the first engine of each product.
KernelLibrary failing_library(MathMode math = MathMode::strict) {
  return {registry(), value_of(load_test_backend({math, 0, ""}, "failing"))};
}

struct RepeatedRun {
  std::vector<HostTensor> outputs, again;
  std::vector<std::string> fallbacks;
  std::size_t kernels = 0;
  std::vector<std::string> on_host;
};

RepeatedRun run_twice(const KernelLibrary& device, const Graph& graph) {
  ExecutorOptions options;
  options.fallbacks = std::make_shared<std::vector<std::string>>();
  Executor executor = value_of(Executor::create(graph, device, options));
  RepeatedRun run;
  const std::vector<HostTensor> inputs = executor.random_inputs(1);
  run.outputs = value_of(executor.run(inputs));
  run.again = value_of(executor.run(inputs));
  run.fallbacks = *options.fallbacks;
  run.kernels = executor.launches();
  run.on_host = executor.declined();
  return run;
}

/// The outputs are those of the host, at the first run and when it is repeated.
void expect_right(const RepeatedRun& run, const Graph& graph, double rtol) {
  Executor host = value_of(Executor::create(graph, library()));
  const std::vector<HostTensor> right = value_of(host.run(host.random_inputs(1)));
  ASSERT_EQ(run.outputs.size(), right.size());
  for (const std::vector<HostTensor>* outputs : {&run.outputs, &run.again})
    for (std::size_t i = 0; i < right.size(); ++i)
      EXPECT_EQ(compare((*outputs)[i], right[i], rtol, rtol).violations, 0U);
}

TEST(Fallback, OfAFusedKernelToItsOperators) {
  const Graph graph = graph_of("input x f32[4, 64]\noutput relu(add(tanh(x), x))\n");
  const RepeatedRun run = run_twice(failing_library(), graph);
  expect_right(run, graph, 1e-5);
  ASSERT_FALSE(run.fallbacks.empty());
  EXPECT_EQ(run.fallbacks[0],
            "tanh+add+relu failed when it ran (the test device cannot execute fused): it is computed in another way");
  EXPECT_EQ(run.kernels, 3U);
  EXPECT_THAT(run.on_host, IsEmpty());
}

TEST(Fallback, OfAProductToAnotherEngine) {
  const Graph graph = graph_of("input x f32[4, 8]\nweight w f32[8, 2]\noutput matmul(x, w)\n");
  const RepeatedRun run = run_twice(failing_library(), graph);
  expect_right(run, graph, 1e-5);
  EXPECT_THAT(run.fallbacks, ElementsAre(HasSubstr("matmul failed when it ran (")));
  EXPECT_THAT(run.on_host, IsEmpty());
}

/// Its operators are launches of their own then; the test device leaves the softmax to the host.
TEST(Fallback, OfAttention) {
  const Graph graph = graph_of(R"(
input q f16[1, 2, 16, 64]
input k f16[1, 2, 16, 64]
input v f16[1, 2, 16, 64]
output matmul(softmax(matmul(q, transpose(k; perm=[0, 1, 3, 2])); axis=-1), v)
)");
  const RepeatedRun run = run_twice(failing_library(), graph);
  expect_right(run, graph, 1e-2);
  EXPECT_THAT(run.fallbacks[0], HasSubstr("matmul+softmax+matmul failed when it ran ("));
  EXPECT_EQ(run.kernels, 4U);
}

/// The next executor on the device knows what failed.
TEST(Fallback, IsRemembered) {
  const KernelLibrary device = failing_library();
  const Graph graph = graph_of("input x f32[4, 64]\noutput relu(add(tanh(x), x))\n");
  EXPECT_THAT(run_twice(device, graph).fallbacks, ::testing::Not(IsEmpty()));
  EXPECT_THAT(run_twice(device, graph).fallbacks, IsEmpty());
}

/// Choices that count how often a kernel of each request was made.
class CountingChoices final : public EngineChoices {
 public:
  std::optional<std::string> find(const std::string& key) override {
    ++made[key];
    return std::nullopt;
  }
  Status record(const std::string&, const EngineChoice&) override { return {}; }
  Status withdraw(const std::string&) override { return {}; }
  std::map<std::string, int> made;
};

/// One first run finds all kernels that fail; the model is built anew once, not once for each of them.
TEST(Fallback, OfManyKernelsAtOnce) {
  const KernelLibrary device = failing_library(MathMode::tf32);
  const auto choices = std::make_shared<CountingChoices>();
  device.backend()->use_choices(choices);
  std::string text = "input x f32[4, 8]\nt0 = tanh(exp(x))\n";
  for (int i = 0; i < 5; ++i) {
    const std::string number = std::to_string(i), width = std::to_string(9 + i);
    text += "weight w" + number + " f32[" + std::to_string(8 + i) + ", " + width + "]\nt" + std::to_string(i + 1) +
            " = matmul(t" + number + ", w" + number + ")\n";
  }
  const Graph graph = graph_of(text + "output t5\n");
  const RepeatedRun run = run_twice(device, graph);
  expect_right(run, graph, 1e-2);
  EXPECT_EQ(run.fallbacks.size(), 6U);
  EXPECT_EQ(choices->made.size(), 5U);
  for (const auto& [key, times] : choices->made) EXPECT_EQ(times, 2) << key;
}

/// What is left where convolutions cannot write their channels of a concatenation: a copy.
TEST(Fallback, OfConcatenationsInPlace) {
  const Graph graph = graph_of(R"(
input x f32[2, 8, 6, 6]
weight w f32[16, 8, 1, 1]
weight v f32[8, 8, 3, 3]
a = conv2d(x, w; strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1])
b = conv2d(x, v; strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1])
output concat(a, b; axis=-3)
)");
  const KernelLibrary device = failing_library(MathMode::tf32);
  Executor in_place = value_of(Executor::create(graph, device));
  EXPECT_EQ(in_place.launches(), 4U);
  const RepeatedRun run = run_twice(device, graph);
  expect_right(run, graph, 1e-2);
  EXPECT_EQ(run.kernels, 5U);
  EXPECT_THAT(run.fallbacks, ::testing::Contains(HasSubstr("conv2d failed when it ran (")));
}

/// Of a kernel that fails while it is timed, what takes its place is timed.
TEST(Fallback, WhenKernelsArePriced) {
  const KernelLibrary device = failing_library();
  const Graph graph = graph_of("input x f32[4, 64]\noutput relu(add(tanh(x), x))\n");
  const LoweredGraph lowered = fused_for(value_of(lower(graph, registry())), device);
  ASSERT_EQ(lowered.steps.size(), 1U);
  KernelTimer timer(device);
  const Measurement fused = value_of(timer.measure(lowered.steps[0].kernel->request));
  EXPECT_THAT(fused.implementation, ::testing::MatchesRegex("test: [^,]*, then test: [^,]*, then test: [^,]*"));
  EXPECT_GT(fused_for(value_of(lower(graph, registry())), device).steps.size(), 1U);
  // A piece of a concatenation is then made by itself, and copied.
  KernelRequest product =
      value_of(lower(graph_of("input x f32[4, 8]\nweight w f32[8, 4]\noutput matmul(x, w)\n"), registry()))
          .steps[0]
          .kernel->request;
  product.outputs[0].within = {1, 12};
  EXPECT_THAT(value_of(timer.measure(product)).implementation,
              ::testing::MatchesRegex("test: [^,]*, then test: [^,]*"));
}

/// Where a kernel may have sent other ranks something, nothing is run again.
TEST(Fallback, NotWithKernelsOfOthers) {
  class NoKernels final : public KernelSource {
   public:
    [[nodiscard]] std::unique_ptr<Kernel> create(const KernelRequest&) override { return nullptr; }
    [[nodiscard]] bool knows(std::string_view) const override { return false; }
  };
  NoKernels none;
  ExecutorOptions options;
  options.more_kernels = &none;
  const KernelLibrary device = failing_library();
  Executor executor =
      value_of(Executor::create(graph_of("input x f32[4, 64]\noutput relu(add(tanh(x), x))\n"), device, options));
  const auto outputs = executor.run(executor.random_inputs(1));
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().message, "the test device cannot execute fused");
  EXPECT_EQ(outputs.error().code, ErrorCode::device_unavailable);
}

}  // namespace
}  // namespace taso::testing
