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

constexpr const char* own_operators = R"(
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

const OperatorRegistry& own() {
  static const OperatorRegistry operators = value_of(OperatorRegistry::parse(own_operators, "own.op", &registry()));
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
  const KernelLibrary library(own());
  const std::vector<JoinedExample> examples = {
      {"input x f32[70, 300]\ninput s f32[300]\n"
       "output mul(soft(x), broadcast(s; shape=[70, 300]))\n",
       "soft+mul"},
      {"input x f32[2, 3, 5, 40]\ninput m f32[2, 1, 1, 40]\n"
       "output soft(add(x, broadcast(m; shape=[2, 3, 5, 40])))\n",
       "add+soft"},
      {"input x f32[40, 9]\ninput s f32[]\noutput soft(swish(centred(x), s))\n", "centred+swish+soft"},
  };
  for (const JoinedExample& example : examples) {
    const Graph graph = value_of(parse_graph(example.graph, "test", own()));
    for (const int threads : {1, 3}) {
      Executor executor = value_of(Executor::create(graph, library, {.threads = threads}));
      EXPECT_EQ(names_of_kernels(executor.lowered()), example.kernels) << example.graph;
      const std::vector<HostTensor> inputs = executor.random_inputs(7);
      expect_near(value_of(executor.run(inputs)), reference_outputs(graph, inputs, own()), 1e-5, example.graph);
    }
  }
}

}  // namespace
}  // namespace taso::testing
