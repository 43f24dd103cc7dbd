// Attention as one kernel of the processor (runtime/cpu/attention.cpp), against the operators' definitions one after
// the other in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "graph/graph_text.h"
#include "runtime/cpu/kernels.h"
#include "runtime/fused_kernel.h"
#include "runtime/fusion.h"
#include "support/random.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

struct AttentionExample {
  std::string graph;
  Shape masked = {};  ///< The shape of an input with elements that are -inf, every third and all of the first row.
};

/// Steps of a graph where attention of any size is one kernel.
LoweredGraph steps_with_attention(const std::string& graph, int threads = 1) {
  const auto fuses = [](const KernelRequest& request) {
    return cpu::attention_by_blocks(request, registry(), 4).kernel != nullptr ||
           cpu::fused_elements(request, registry()).kernel != nullptr ||
           cpu::fused_moves(request, registry()).kernel != nullptr;
  };
  return fuse_steps(value_of(lower(graph_of(graph), registry(), {.channels_last = false, .threads = threads})),
                    {.fuses = fuses});
}

std::vector<AlignedBuffer> attention_inputs(const KernelRequest& request, const Shape& masked) {
  Random random(5, request.key());
  std::vector<AlignedBuffer> inputs;
  for (const Operand& input : request.inputs) {
    inputs.emplace_back(static_cast<std::size_t>(input.type.bytes()));
    auto* const elements = reinterpret_cast<float*>(inputs.back().data());
    for (std::int64_t i = 0; i < input.type.elements(); ++i) {
      elements[i] = static_cast<float>(random.normal());
      if (!masked.empty() && input.type.shape == masked && (i % 3 == 1 || i < masked.back()))
        elements[i] = -std::numeric_limits<float>::infinity();
    }
  }
  return inputs;
}

std::vector<float> result_of(const Kernel& kernel, const KernelRequest& request,
                             const std::vector<AlignedBuffer>& inputs) {
  std::vector<const std::byte*> from;
  for (const AlignedBuffer& input : inputs) from.push_back(input.data());
  std::vector<float> result(static_cast<std::size_t>(request.outputs[0].type.elements()), -1.0F);
  auto* to = reinterpret_cast<std::byte*>(result.data());
  AlignedBuffer workspace(kernel.workspace_bytes());
  std::memset(workspace.data(), 0xff, kernel.workspace_bytes());  // NaN where nothing is written
  EXPECT_TRUE(kernel.execute({from, std::span(&to, 1), workspace.data()})) << request.key();
  return result;
}

const std::vector<AttentionExample>& attention_examples() {
  static const std::vector<AttentionExample> examples = {
      {"input q f32[2, 3, 10, 4]\ninput k f32[2, 3, 4, 7]\ninput v f32[2, 3, 7, 5]\n"
       "output matmul(softmax(matmul(q, k); axis=-1), v)\n"},
      // One matrix, rows of one element, one query, one key.
      {"input q f32[9, 4]\ninput k f32[4, 70]\ninput v f32[70, 3]\noutput matmul(softmax(matmul(q, k); axis=-1), v)\n"},
      {"input q f32[2, 9, 1]\ninput k f32[2, 1, 6]\ninput v f32[2, 6, 1]\n"
       "output matmul(softmax(matmul(q, k); axis=-1), v)\n"},
      {"input q f32[3, 1, 8]\ninput k f32[3, 8, 33]\ninput v f32[3, 33, 8]\n"
       "output matmul(softmax(matmul(q, k); axis=-1), v)\n"},
      {"input q f32[3, 5, 8]\ninput k f32[3, 8, 1]\ninput v f32[3, 1, 8]\n"
       "output matmul(softmax(matmul(q, k); axis=-1), v)\n"},
      // Heads in the middle, as models have them; a scale and a mask of keys.
      {"input q f32[2, 11, 3, 8]\ninput k f32[2, 17, 3, 8]\ninput v f32[2, 17, 3, 6]\ninput c f32[]\n"
       "input m f32[2, 1, 1, 17]\n"
       "s = div(matmul(transpose(q; perm=[0, 2, 1, 3]), transpose(k; perm=[0, 2, 3, 1])), broadcast(c; shape=[2, 3, "
       "11, "
       "17]))\n"
       "p = softmax(add(s, broadcast(m; shape=[2, 3, 11, 17])); axis=-1)\n"
       "output transpose(matmul(p, transpose(v; perm=[0, 2, 1, 3])); perm=[0, 2, 1, 3])\n"},
      // Of queries and keys, of heads; rows of which all is hidden.
      {"input q f32[2, 3, 9, 8]\ninput k f32[2, 3, 8, 16]\ninput v f32[2, 3, 16, 8]\ninput m f32[9, 16]\n"
       "output matmul(softmax(add(matmul(q, k), broadcast(m; shape=[2, 3, 9, 16])); axis=-1), v)\n",
       {9, 16}},
      {"input q f32[2, 3, 9, 8]\ninput k f32[2, 3, 8, 16]\ninput v f32[2, 3, 16, 8]\ninput m f32[3, 9, 16]\n"
       "input n f32[2, 1, 9, 1]\ns = add(matmul(q, k), broadcast(m; shape=[2, 3, 9, 16]))\n"
       "output matmul(softmax(mul(s, broadcast(n; shape=[2, 3, 9, 16])); axis=-1), v)\n"},
      {"input q f32[2, 9, 8]\ninput k f32[2, 8, 16]\ninput v f32[2, 16, 8]\ninput m f32[2, 16, 9]\n"
       "output matmul(softmax(add(transpose(m; perm=[0, 2, 1]), matmul(q, k)); axis=-1), v)\n"},
      // Keys and values that several queries share.
      {"input q f32[2, 5, 3, 9, 8]\ninput k f32[3, 8, 12]\ninput v f32[3, 12, 4]\n"
       "output matmul(softmax(matmul(q, k); axis=-1), v)\n"},
      {"input q f32[4, 3, 9, 8]\ninput k f32[3, 8, 12]\ninput v f32[4, 3, 12, 4]\n"
       "output matmul(softmax(matmul(q, k); axis=-1), v)\n"},
      {"input q f32[2, 4, 9, 8]\ninput k f32[2, 1, 12, 8]\ninput v f32[2, 1, 12, 4]\n"
       "output matmul(softmax(matmul(q, transpose(broadcast(k; shape=[2, 4, 12, 8]); perm=[0, 1, 3, 2])); axis=-1), "
       "broadcast(v; shape=[2, 4, 12, 4]))\n"},
      // Queries, keys and values that lie in one tensor.
      {"input x f32[2, 13, 48]\na, b, c = split(x; axis=-1, sizes=[16, 16, 16])\n"
       "q = transpose(reshape(a; shape=[2, 13, 4, 4]); perm=[0, 2, 1, 3])\n"
       "k = transpose(reshape(b; shape=[2, 13, 4, 4]); perm=[0, 2, 3, 1])\n"
       "v = transpose(reshape(c; shape=[2, 13, 4, 4]); perm=[0, 2, 1, 3])\n"
       "y = matmul(softmax(matmul(q, k); axis=-1), v)\n"
       "output reshape(transpose(y; perm=[0, 2, 1, 3]); shape=[2, 13, 16])\n"},
      // Something else between the products.
      {"input q f32[2, 9, 8]\ninput k f32[2, 8, 16]\ninput v f32[2, 16, 8]\n"
       "output matmul(relu(tanh(matmul(q, k))), v)\n"},
      {"input q f32[2, 9, 8]\ninput k f32[2, 8, 16]\ninput v f32[2, 16, 8]\ninput m f32[2, 9, 16]\n"
       "s = matmul(q, k)\noutput matmul(mul(softmax(add(s, tanh(s)); axis=-1), m), v)\n"},
  };
  return examples;
}

TEST(CpuAttention, ComputesWhatItsPartsDo) {
  if (cpu::onednn_version().empty()) GTEST_SKIP() << "built without oneDNN";
  for (const AttentionExample& example : attention_examples()) {
    const LoweredGraph lowered = steps_with_attention(example.graph);
    ASSERT_EQ(lowered.steps.size(), 1U) << example.graph;
    KernelRequest request = lowered.steps[0].kernel->request;
    const std::vector<AlignedBuffer> inputs = attention_inputs(request, example.masked);
    const auto definitions = value_of(fused_kernel(request, library(KernelSet::reference)));
    const std::vector<float> expected = result_of(*definitions, request, inputs);
    for (const std::int64_t rows : {1, 4, 5, 100}) {
      std::vector<float> first;
      for (const int threads : {1, 2, 5}) {
        request.threads = threads;
        const KernelOffer offer = cpu::attention_by_blocks(request, registry(), rows);
        ASSERT_TRUE(offer.kernel) << offer.reason << "\n" << example.graph;
        EXPECT_TRUE(offer.kernel->implementation().starts_with("own attention, onednn "));
        const std::vector<float> actual = result_of(*offer.kernel, request, inputs);
        if (first.empty()) first = actual;
        EXPECT_EQ(std::memcmp(first.data(), actual.data(), actual.size() * sizeof(float)), 0) << example.graph;
        EXPECT_EQ(
            std::memcmp(actual.data(), result_of(*offer.kernel, request, inputs).data(), actual.size() * sizeof(float)),
            0)
            << "a second execution: " << example.graph;
        for (std::size_t i = 0; i < actual.size(); ++i) {
          if (std::isnan(expected[i]))
            EXPECT_TRUE(std::isnan(actual[i])) << example.graph << i;
          else
            ASSERT_NEAR(actual[i], expected[i], 1e-5 * std::max(1.0F, std::abs(expected[i])))
                << example.graph << "element " << i << ", blocks of " << rows;
        }
      }
    }
  }
}

TEST(CpuAttention, HidesRowsAsTheKernelsOfItsPartsDo) {
  if (cpu::onednn_version().empty()) GTEST_SKIP() << "built without oneDNN";
  const AttentionExample& example = attention_examples()[6];
  const KernelRequest request = steps_with_attention(example.graph).steps[0].kernel->request;
  const std::vector<AlignedBuffer> inputs = attention_inputs(request, example.masked);
  const std::vector<float> apart = result_of(*value_of(fused_kernel(request, library())), request, inputs);
  const std::vector<float> together =
      result_of(*cpu::attention_by_blocks(request, registry(), 4).kernel, request, inputs);
  std::size_t hidden = 0;
  for (std::size_t i = 0; i < apart.size(); ++i) {
    EXPECT_EQ(std::isnan(apart[i]), std::isnan(together[i]));
    hidden += static_cast<std::size_t>(std::isnan(apart[i]));
  }
  EXPECT_EQ(hidden, 2U * 3U * 8U);  // the first row of each matrix
}

TEST(CpuAttention, IsOneStepWhereItPays) {
  if (cpu::onednn_version().empty()) GTEST_SKIP() << "built without oneDNN";
  const std::string text =
      "input q f32[1, 300, 12, 16]\ninput k f32[1, 520, 12, 16]\ninput v f32[1, 520, 12, 8]\ninput m f32[1, 1, 1, "
      "520]\n"
      "s = matmul(transpose(q; perm=[0, 2, 1, 3]), transpose(k; perm=[0, 2, 3, 1]))\n"
      "p = softmax(add(s, broadcast(m; shape=[1, 12, 300, 520])); axis=-1)\n"
      "output transpose(matmul(p, transpose(v; perm=[0, 2, 1, 3])); perm=[0, 2, 1, 3])\n";
  const Graph graph = graph_of(text);
  const std::vector<HostTensor> inputs = inputs_for(graph, 7);
  const std::vector<std::vector<double>> expected = reference_outputs(graph, inputs);
  for (const int threads : {1, 3}) {
    ExecutorOptions options;
    options.threads = threads;
    const PlannedRun run = value_of(plan_launches(graph, library(), options));
    ASSERT_EQ(run.kernels.size(), 1U);
    EXPECT_TRUE(run.kernels[0].implementation.starts_with("own attention, onednn ")) << run.kernels[0].implementation;
    EXPECT_NE(run.kernels[0].code.find("for 12 matrices, blocks of "), std::string::npos) << run.kernels[0].code;
    Executor executor = value_of(Executor::create(graph, library(), options));
    expect_near(value_of(executor.run(inputs)), expected, 1e-5, text);
  }
  // Scores that stay in the cache.
  const PlannedRun small =
      value_of(plan_launches(graph_of("input q f32[40, 16]\ninput k f32[16, 40]\ninput v f32[40, 16]\n"
                                      "output matmul(softmax(matmul(q, k); axis=-1), v)\n"),
                             library(), {}));
  EXPECT_EQ(small.kernels.size(), 3U);
}

TEST(CpuAttention, DeclinesWhatIsNone) {
  if (cpu::onednn_version().empty()) GTEST_SKIP() << "built without oneDNN";
  const auto reason = [](const std::string& graph) {
    const auto all = [](const KernelRequest&) { return true; };
    const LoweredGraph lowered =
        fuse_steps(value_of(lower(graph_of(graph), registry(), {.channels_last = false})), {.fuses = all});
    EXPECT_EQ(lowered.steps.size(), 1U);
    return cpu::attention_by_blocks(lowered.steps.back().kernel->request, registry(), 4).reason;
  };
  const std::string operands = "input q f32[2, 9, 8]\ninput k f32[2, 8, 16]\ninput v f32[2, 16, 8]\n";
  EXPECT_EQ(reason(operands + "output matmul(softmax(matmul(q, k); axis=-1), v)\n"), "");
  EXPECT_EQ(reason(operands + "output softmax(relu(matmul(q, k)); axis=-1)\n"), "two products are needed");
  EXPECT_EQ(reason(operands + "output matmul(matmul(q, k), v)\n"), "nothing is between the products");
  EXPECT_EQ(reason(operands + "output matmul(softmax(matmul(q, k); axis=-2), v)\n"),
            "softmax is neither element-wise nor computed row by row");
  EXPECT_EQ(reason(operands + "output relu(matmul(softmax(matmul(q, k); axis=-1), v))\n"), "more than attention");
  EXPECT_EQ(reason(operands + "p = softmax(matmul(q, k); axis=-1)\noutput p\noutput matmul(p, v)\n"),
            "one result is needed");
  EXPECT_EQ(reason("input q f32[2, 9, 8]\nweight k f32[8, 16]\ninput v f32[2, 16, 8]\n"
                   "output matmul(softmax(matmul(q, k); axis=-1), v)\n"),
            "products of weights");
  EXPECT_EQ(reason("input q f16[9, 8]\ninput k f16[8, 16]\ninput v f16[16, 8]\n"
                   "output matmul(softmax(matmul(q, k); axis=-1), v)\n"),
            "only f32");
  EXPECT_EQ(reason("input q f32[2, 9, 8]\ninput k f32[2, 8, 16]\ninput v f32[2, 9, 8]\n"
                   "output matmul(transpose(softmax(matmul(q, k); axis=-1); perm=[0, 2, 1]), v)\n"),
            "scores of two shapes or layouts");
}

TEST(CpuAttention, OfNothingIsLeftToOthers) {
  for (const std::string graph : {"input q f32[2, 0, 8]\ninput k f32[2, 8, 16]\ninput v f32[2, 16, 8]\n"
                                  "output matmul(softmax(matmul(q, k); axis=-1), v)\n",
                                  "input q f32[2, 9, 0]\ninput k f32[2, 0, 16]\ninput v f32[2, 16, 8]\n"
                                  "output matmul(softmax(matmul(q, k); axis=-1), v)\n"}) {
    const LoweredGraph lowered = steps_with_attention(graph);
    EXPECT_GT(lowered.steps.size(), 1U) << graph;
    const std::vector<HostTensor> inputs = inputs_for(graph_of(graph), 7);
    Executor executor = value_of(Executor::create(graph_of(graph), library()));
    expect_near(value_of(executor.run(inputs)), reference_outputs(graph_of(graph), inputs), 1e-5, graph);
  }
}

}  // namespace
}  // namespace taso::testing
