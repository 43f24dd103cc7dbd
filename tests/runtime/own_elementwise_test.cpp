// Element-wise operators of a user, of two and three operands, between convolutions: they have the layout of these, a
// broadcast operand is not expanded, and their values are those of their definitions.
#include <gtest/gtest.h>

#include "graph/graph_text.h"
#include "runtime/lowering.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

constexpr const char* operators = R"(
operator gate(x[D..], y[D..]) -> [D..]
  out[I..] = x[I..] * sigmoid(y[I..]) + x[I..]
operator blend(x[D..], y[D..], z[D..]) -> [D..]
  out[I..] = x[I..] + (y[I..] - x[I..]) * tanh(z[I..])
)";

constexpr const char* network = R"(
input x f32[2, 4, 9, 7]
weight k f32[8, 4, 3, 3]
weight l f32[8, 8, 3, 3]
weight m f32[4, 8, 1, 1]
weight scale f32[8, 1, 1]
weight shift f32[1, 8, 1, 1]
a = conv2d(x, k; pads=[1, 1, 1, 1])
b = gate(a, broadcast(scale; shape=[2, 8, 9, 7]))
c = conv2d(b, l; pads=[1, 1, 1, 1])
d = blend(c, b, broadcast(shift; shape=[2, 8, 9, 7]))
output conv2d(d, m)
)";

TEST(OwnElementwiseOperators, HaveTheLayoutOfConvolutions) {
  const OperatorRegistry own = value_of(OperatorRegistry::parse(operators, "own.op", &registry()));
  const Graph graph = value_of(parse_graph(network, "network", own));
  int seen = 0;
  for (const LoweredStep& step : value_of(lower(graph, own, {.channels_last = true})).steps) {
    const KernelRequest& request = step.kernel->request;
    EXPECT_NE(request.op, "broadcast");
    if (request.op != "gate" && request.op != "blend") continue;
    ++seen;
    EXPECT_EQ(request.outputs[0].layout, Layout::channels_last) << step.kernel->key;
    for (std::size_t i = 0; i + 1 < request.inputs.size(); ++i)
      EXPECT_EQ(request.inputs[i].layout, Layout::channels_last) << step.kernel->key;
    EXPECT_EQ(request.inputs.back().type.elements(), 8) << "the broadcast is expanded: " << step.kernel->key;
  }
  EXPECT_EQ(seen, 2);
}

TEST(OwnElementwiseOperators, ComputeWhatTheyAreDefinedAs) {
  const OperatorRegistry own = value_of(OperatorRegistry::parse(operators, "own.op", &registry()));
  const Graph graph = value_of(parse_graph(network, "network", own));
  const KernelLibrary kernels(own, KernelSet::cpu);
  const std::vector<HostTensor> inputs = value_of(Executor::create(graph, kernels)).random_inputs(5);
  DoubleRing ring;
  const std::vector<RingTensor<double>> exact_inputs = {{inputs[0].type().shape, inputs[0].to_doubles(), {}}};
  const auto exact = value_of(evaluate(graph, own, ring, exact_inputs));
  for (const bool channels_last : {true, false})
    for (const int threads : {1, 2}) {
      Executor executor = value_of(Executor::create(graph, kernels, {threads, channels_last, nullptr}));
      expect_near(value_of(executor.run(inputs)), {exact[0].elements}, 1e-5, channels_last ? "nhwc" : "nchw");
    }
}

}  // namespace
}  // namespace taso::testing
