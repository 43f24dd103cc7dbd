// A convolution and the clip of its result (relu6) are one kernel where oneDNN is (runtime/cpu/onednn.cpp).
#include <gtest/gtest.h>

#include "graph/graph_text.h"
#include "runtime/cpu/kernels.h"
#include "runtime/executor.h"
#include "runtime/fused_kernel.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

struct ClipExample {
  std::string graph;
  bool is_one_kernel = true;
};

TEST(ClippedConvolution, ComputesWhatItsPartsDo) {
  if (cpu::onednn_version().empty()) GTEST_SKIP() << "built without oneDNN";
  const std::string operands = "input x f32[2, 16, 9, 7]\nweight w f32[24, 16, 3, 3]\nweight b f32[24]\n";
  const std::vector<ClipExample> examples = {
      {operands + "output clip(conv2d(x, w; pads=[1, 1, 1, 1]); min=0.0, max=0.6)\n"},
      {operands + "output clip(conv2d_bias_act(x, w, b; pads=[1, 1, 1, 1]); min=-0.25, max=0.5)\n"},
      {"input x f32[1, 32, 8, 8]\nweight w f32[32, 1, 3, 3]\nweight b f32[32]\n"
       "output clip(conv2d_bias_act(x, w, b; strides=[2, 2], pads=[1, 1, 1, 1]); min=0.0, max=0.25)\n"},
      {operands + "output clip(conv2d_bias_act(x, w, b; act=relu); min=0.1, max=0.6)\n", false},
      {operands + "y = conv2d(x, w)\noutput y\noutput clip(y; min=0.0, max=0.6)\n", false},
  };
  for (const ClipExample& example : examples)
    for (const bool channels_last : {false, true}) {
      const Graph graph = graph_of(example.graph);
      const LoweredGraph lowered =
          fused_for(value_of(lower(graph, registry(), {.channels_last = channels_last})), library());
      bool is_one_kernel = false;
      for (const LoweredStep& step : lowered.steps) {
        const KernelRequest& request = step.kernel->request;
        if (!request.fused || request.fused->parts.back().request.op != "clip") continue;
        is_one_kernel = true;
        const auto together = value_of(library().create(request));
        EXPECT_EQ(together->implementation().substr(0, 7), "onednn ") << together->implementation();
      }
      EXPECT_EQ(is_one_kernel, example.is_one_kernel) << example.graph;
      ExecutorOptions options;
      options.channels_last = channels_last;
      Executor executor = value_of(Executor::create(graph, library(), options));
      const std::vector<HostTensor> inputs = executor.random_inputs(5);
      expect_near(value_of(executor.run(inputs)), reference_outputs(graph, inputs), 1e-5, example.graph);
    }
}

// Groups whose channels are no whole blocks oneDNN computes as products of matrices, activations by themselves.
TEST(ConvolutionByGemm, AppliesWhatFollows) {
  if (cpu::onednn_version().empty()) GTEST_SKIP() << "built without oneDNN";
  const std::string operands =
      "input x f32[2, 12, 11, 9]\ninput r f32[2, 20, 11, 9]\nweight w f32[20, 6, 1, 1]\nweight b f32[20]\n";
  std::vector<std::string> graphs = {operands + "output clip(conv2d(x, w); min=-0.1, max=0.6)\n",
                                     operands + "output clip(conv2d_bias_act(x, w, b); min=0.2, max=0.5)\n"};
  for (const char* act : {"relu", "sigmoid", "tanh", "gelu", "hard_swish", "silu", "identity"}) {
    const std::string attribute = std::string("act=") + act + ")\n";
    graphs.push_back(operands + "output conv2d_bias_act(x, w, b; " + attribute);
    graphs.push_back(operands + "output conv2d_bias_add_act(x, w, b, r; " + attribute);
  }
  std::size_t by_gemm = 0;
  for (const std::string& text : graphs)
    for (const int threads : {1, 3}) {
      const Graph graph = graph_of(text);
      ExecutorOptions options;
      options.threads = threads;
      options.channels_last = false;
      Executor executor = value_of(Executor::create(graph, library(), options));
      for (const LoweredStep& step : executor.lowered().steps)
        if (step.kernel->request.op != "reorder" &&
            value_of(library().create(step.kernel->request))->implementation().find("gemm") != std::string::npos)
          ++by_gemm;
      const std::vector<HostTensor> inputs = executor.random_inputs(5);
      expect_near(value_of(executor.run(inputs)), reference_outputs(graph, inputs), 1e-5, text);
    }
  if (by_gemm == 0) GTEST_SKIP() << "no convolution is computed by products of matrices on this processor";
}

TEST(ClippedConvolution, DeclinesWhatIsMore) {
  if (cpu::onednn_version().empty()) GTEST_SKIP() << "built without oneDNN";
  const auto reason = [](const std::string& graph) {
    const LoweredGraph lowered = fuse_steps(value_of(lower(graph_of(graph), registry(), {.channels_last = false})),
                                            {.fuses = [](const KernelRequest&) { return true; }});
    return cpu::onednn_clipped_convolution(lowered.steps.back().kernel->request, registry()).reason;
  };
  const std::string operands = "input x f32[1, 8, 5, 5]\nweight w f32[8, 8, 1, 1]\n";
  EXPECT_EQ(reason(operands + "output clip(conv2d(x, w); min=0.0, max=0.6)\n"), "");
  EXPECT_EQ(reason(operands + "output relu(conv2d(x, w))\n"), "not a convolution and a clip");
  EXPECT_EQ(reason(operands + "output exp(clip(conv2d(x, w); min=0.0, max=0.6))\n"), "not two parts");
  EXPECT_EQ(reason("input x f32[4, 4, 1, 1]\noutput clip(conv2d(x, x); min=0.0, max=0.6)\n"),
            "an operand is read twice");
}

TEST(ClippedConvolution, LeavesToTilesWhatTheyComputeFaster) {
  if (cpu::onednn_version().empty()) GTEST_SKIP() << "built without oneDNN";
  const Graph graph = graph_of(
      "input x f32[1, 64, 56, 56]\nweight w f32[64, 64, 3, 3]\n"
      "output clip(conv2d(x, w; pads=[1, 1, 1, 1]); min=0.0, max=6.0)\n");
  const LoweredGraph lowered = fuse_steps(
      value_of(lower(graph, registry(), {.channels_last = true})), {.fuses = [](const KernelRequest& request) {
        const std::vector<FusedPart>& parts = request.fused->parts;
        return parts.size() == 2 && parts[0].request.op == "conv2d" && parts[1].request.op == "clip";
      }});
  const auto fused = std::find_if(lowered.steps.begin(), lowered.steps.end(),
                                  [](const LoweredStep& step) { return step.kernel->request.fused != nullptr; });
  ASSERT_NE(fused, lowered.steps.end());
  const KernelRequest& request = fused->kernel->request;
  if (!cpu::winograd_convolution(request.fused->parts[0].request, registry()).kernel)
    GTEST_SKIP() << "no tiles on this processor";
  EXPECT_EQ(cpu::onednn_clipped_convolution(request, registry()).reason,
            "by tiles and with a clip of its own it is faster");
}

}  // namespace
}  // namespace taso::testing
