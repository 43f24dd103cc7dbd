// What a device cannot execute, though it has offered to, is computed in another way.
#include <gmock/gmock.h>

#include "runtime/executor.h"
#include "tests/runtime/backend.h"

namespace taso::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A device whose fused kernels fail, and the first engine of each product.
KernelLibrary failing_library() { return {registry(), value_of(load_test_backend({}, "failing"))}; }

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
