// Operators that one kernel computes from their definitions together (runtime/joined_body.h,
// runtime/cpu/definition.cpp).
#include <gtest/gtest.h>

#include "graph/graph_text.h"
#include "runtime/cpu/kernels.h"
#include "runtime/fusion.h"
#include "runtime/joined_body.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

constexpr const char* joined_operators = R"(
operator soft(x[A.., n]) -> [A.., n]
  let top[I.. < A] = max(t < n) x[I.., t]
  let power[I.. < A, t < n] = exp(x[I.., t] - top[I..])
  let total[I.. < A] = sum(t < n) power[I.., t]
  out[I.., i] = power[I.., i] / total[I..]
operator centred(x[A.., n]) -> [A.., n]
  let mean[I.. < A] = (sum(t < n) x[I.., t]) / n
  out[I.., i] = x[I.., i] - mean[I..]
operator swish(x[D..], s[]) -> [D..]
  out[I..] = x[I..] * sigmoid(s[] * x[I..])
operator shifted(x[n, m]) -> [n, m]
  out[i, j] = x[i, j] + (x[i - 1, j] or 0)
operator flat(x[n, m]) -> [n]
  out[i] = x.flat[i]
)";

const OperatorRegistry& joined_registry() {
  static const OperatorRegistry operators = value_of(OperatorRegistry::parse(joined_operators, "own.op", &registry()));
  return operators;
}

std::string names_of_kernels(const LoweredGraph& lowered) {
  std::string names;
  for (const LoweredStep& step : lowered.steps) {
    const KernelRequest& request = step.kernel->request;
    std::string name = request.fused ? "" : request.op;
    if (request.fused)
      for (const FusedPart& part : request.fused->parts) name += (name.empty() ? "" : "+") + part.request.op;
    names += (names.empty() ? "" : " ") + name;
  }
  return names;
}

struct JoinedExample {
  std::string graph, kernels;
};

TEST(JoinedDefinitions, ComputeWhatTheGraphDoes) {
  const KernelLibrary library(joined_registry());
  const std::vector<JoinedExample> examples = {
      {"input x f32[70, 300]\ninput s f32[300]\n"
       "output mul(soft(x), broadcast(s; shape=[70, 300]))\n",
       "soft+mul"},
      {"input x f32[2, 30, 50, 40]\ninput m f32[2, 1, 1, 40]\n"
       "output soft(add(x, broadcast(m; shape=[2, 30, 50, 40])))\n",
       "add+soft"},
      {"input x f32[400, 90]\ninput y f32[400, 90]\nz = add(x, y)\noutput z\noutput soft(z)\n", "add soft"},
      {"input x f32[400, 60]\na, b = split(x; axis=-1, sizes=[30, 30])\noutput mul(silu(a), b)\n", "split+silu+mul"},
      {"input x f32[400, 60]\noutput div(x, broadcast(sqrt(reduce_sum(mul(x, x); axes=[-1])); shape=[400, 60]))\n",
       "mul+reduce_sum+sqrt+div"},
      {"input x f32[40, 2, 700]\noutput reduce_sum(mul(x, x); axes=[-2])\n", "mul+reduce_sum"},
      {"input x f32[400, 60]\ny = slice(x; starts=[0, 10], sizes=[400, 40], steps=[1, 1])\noutput soft(y)\n",
       "slice+soft"},
      {"input x f32[40, 1]\noutput softmax(exp(broadcast(x; shape=[40, 330])); axis=-1)\n", "broadcast exp+softmax"},
      {"input x f32[30, 40, 40]\noutput soft(transpose(centred(x); perm=[1, 0, 2]))\n", "centred transpose+soft"},
      {"input x f32[400, 40]\ninput y f32[400, 25]\noutput soft(concat(x, tanh(y); axis=-1))\n", "tanh concat soft"},
      {"input x f32[300, 40]\noutput soft(relu(shifted(x)))\n", "shifted+relu+soft"},
      {"input x f32[300, 40]\noutput soft(shifted(relu(x)))\n", "relu shifted+soft"},
      {"input x f32[30, 40, 40]\noutput exp(flat(reshape(relu(x); shape=[1200, 40])))\n", "relu flat exp"},
      {"input x f32[4000, 19]\ninput s f32[]\noutput soft(swish(centred(x), s))\n", "centred+swish+soft"},
      // Rows are too short.
      {"input x f32[4000, 9]\ninput s f32[]\noutput soft(swish(centred(x), s))\n", "centred swish soft"},
      // Little is passed on.
      {"input x f32[30, 40]\noutput soft(relu(x))\n", "relu soft"},
      // A row does not stay in the cache.
      {"input x f32[3, 200000]\noutput soft(relu(x))\n", "relu soft"},
      // Operators of several parts are divided exactly: the greatest element of a row by itself is 1.
      {"input x f32[200, 300]\noutput floor(div(x, broadcast(reduce_max(x; axes=[-1]); shape=[200, 300])))\n",
       "reduce_max+div+floor"},
  };
  for (const JoinedExample& example : examples) {
    const Graph graph = value_of(parse_graph(example.graph, "test", joined_registry()));
    for (const int threads : {1, 3}) {
      ExecutorOptions options;
      options.threads = threads;
      Executor executor = value_of(Executor::create(graph, library, options));
      EXPECT_EQ(names_of_kernels(executor.lowered()), example.kernels) << example.graph;
      const std::vector<HostTensor> inputs = executor.random_inputs(7);
      expect_near(value_of(executor.run(inputs)), reference_outputs(graph, inputs, joined_registry()), 1e-5,
                  example.graph);
    }
  }
}

// What stages pass on is kept for one slice, however many rows a stage could take at once.
TEST(JoinedDefinitions, KeepASlice) {
  const Graph graph = graph_of(
      "input x f32[4, 100000]\n"
      "output div(x, broadcast(sqrt(reduce_sum(mul(x, x); axes=[-1])); shape=[4, 100000]))\n");
  for (const int threads : {1, 2, 16}) {
    const LoweredGraph lowered = fused_for(value_of(lower(graph, registry(), {.threads = threads})), library());
    const std::size_t kernels = lowered.steps.size();
    EXPECT_EQ(kernels, threads == 16 ? 4U : 1U) << "fewer rows than threads";
    if (kernels != 1) continue;
    const auto kernel = value_of(library().create(lowered.steps[0].kernel->request));
    EXPECT_GE(kernel->workspace_bytes(), 400000U);
    EXPECT_LE(kernel->workspace_bytes(), static_cast<std::size_t>(threads) * 500000U);
  }
}

}  // namespace
}  // namespace taso::testing
