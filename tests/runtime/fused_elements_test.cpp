// Element-wise operators that follow each other, and among them those computed row by row, are one kernel on the
// processor (runtime/cpu/fused_elements.cpp), which computes what their kernels one by one do, to the bit.
#include <gtest/gtest.h>

#include <cstring>

#include "graph/graph_text.h"
#include "runtime/cpu/kernels.h"
#include "runtime/fused_kernel.h"
#include "runtime/fusion.h"
#include "support/random.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

constexpr const char* gates_and_blends = R"(
operator gate(x[D..], y[D..]) -> [D..]
  out[I..] = x[I..] * sigmoid(y[I..]) + x[I..]
operator blend(x[D..], y[D..], s[]) -> [D..]
  out[I..] = x[I..] + (y[I..] - x[I..]) * s[]
)";

const OperatorRegistry& gating() {
  static const OperatorRegistry operators = value_of(OperatorRegistry::parse(gates_and_blends, "own.op", &registry()));
  return operators;
}

/// The steps of a graph as an executor runs them: "exp+add", "matmul".
std::vector<std::string> names_of_steps(const LoweredGraph& lowered) {
  std::vector<std::string> names;
  for (const LoweredStep& step : lowered.steps) {
    const KernelRequest& request = step.kernel->request;
    std::string name = request.fused ? "" : request.op;
    if (request.fused)
      for (const FusedPart& part : request.fused->parts) name += (name.empty() ? "" : "+") + part.request.op;
    names.push_back(name);
  }
  return names;
}

std::vector<AlignedBuffer> made_by(const Kernel& kernel, const KernelRequest& request) {
  Random random(3, request.key());
  std::vector<AlignedBuffer> inputs, outputs;
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (const Operand& input : request.inputs) {
    inputs.emplace_back(static_cast<std::size_t>(input.type.bytes()));
    auto* const elements = reinterpret_cast<float*>(inputs.back().data());
    for (std::int64_t i = 0; i < input.type.elements(); ++i) elements[i] = static_cast<float>(random.uniform()) + 0.1F;
  }
  for (const AlignedBuffer& input : inputs) from.push_back(input.data());
  for (const Operand& output : request.outputs) outputs.emplace_back(static_cast<std::size_t>(output.type.bytes()));
  for (AlignedBuffer& output : outputs) to.push_back(output.data());
  AlignedBuffer workspace(kernel.workspace_bytes());
  const Status done = kernel.execute({from, to, workspace.data()});
  EXPECT_TRUE(done) << request.key();
  return outputs;
}

struct FusedExample {
  std::string graph;
  std::vector<std::string> steps;
  bool channels_last = false;
};

TEST(FusedElements, ComputeWhatTheirPartsDo) {
  const KernelLibrary library(gating());
  const std::vector<FusedExample> examples = {
      {"input x f32[3, 700]\noutput mul(x, sigmoid(x))\n", {"sigmoid+mul"}},
      {"input x f32[]\noutput exp(sqrt(x))\n", {"sqrt+exp"}},
      {"input x f32[5000]\ninput y f32[5000]\na = add(x, y)\noutput tanh(a)\noutput clip(exp(a); min=0.5, max=1.5)\n",
       {"add+tanh+exp+clip"}},
      {"input x f32[4, 3, 50]\ninput s f32[3, 1]\ninput t f32[50]\n"
       "output div(mul(x, broadcast(s; shape=[4, 3, 50])), add(sqrt(x), broadcast(t; shape=[4, 3, 50])))\n",
       {"mul+sqrt+add+div"}},
      {"input x f32[6, 1100]\ninput y f32[1]\noutput neg(pow(broadcast(y; shape=[6, 1100]), x))\n", {"pow+neg"}},
      {"input x f32[70, 30]\ninput y f32[]\noutput blend(gate(x, exp(x)), tanh(x), y)\n", {"exp+gate+tanh+blend"}},
      {"input x f32[9, 9]\na = exp(x)\noutput relu(matmul(tanh(a), a))\n", {"exp+tanh", "matmul", "relu"}},
      {"input x f32[8, 4]\na = exp(x)\noutput matmul(a, transpose(sigmoid(relu(a)); perm=[1, 0]))\n",
       {"exp+relu+sigmoid", "transpose", "matmul"}},
      {"input x f32[5, 70]\ninput s f32[70]\ninput b f32[70]\ninput y f32[5, 70]\nz = add(x, y)\noutput z\n"
       "output layer_norm(z, s, b; epsilon=0.00001)\n",
       {"add+layer_norm"}},
      {"input x f32[300, 16]\ninput s f32[16]\ninput b f32[16]\n"
       "output layer_norm(layer_norm(x, s, b; epsilon=0.00001), b, s; epsilon=0.001)\n",
       {"layer_norm+layer_norm"}},
      {"input x f32[41, 2, 7]\ninput s f32[7]\nz = rms_norm(x, s; epsilon=0.001)\n"
       "output mul(z, broadcast(s; shape=[41, 2, 7]))\n",
       {"rms_norm+mul"}},
      {"input x f32[2000, 1]\ninput s f32[1]\noutput layer_norm(exp(x), s, s; epsilon=0.001)\n", {"exp+layer_norm"}},
      {"input x f32[40]\ninput s f32[40]\noutput rms_norm(x, exp(s); epsilon=0.001)\n", {"exp+rms_norm"}},
      {"input x f32[2, 3, 40, 24]\ninput m f32[2, 1, 1, 24]\ninput c f32[]\n"
       "output softmax(add(mul(x, broadcast(c; shape=[2, 3, 40, 24])), broadcast(m; shape=[2, 3, 40, 24])); axis=-1)\n",
       {"mul+add+softmax"}},
      {"input x f32[3000, 7]\noutput exp(softmax(neg(x); axis=-1))\n", {"neg+softmax+exp"}},
      {"input x f32[5000]\noutput tanh(softmax(x; axis=-1))\n", {"softmax+tanh"}},
      {"input x f32[2, 9000]\noutput tanh(softmax(sqrt(x); axis=-1))\n", {"sqrt", "softmax", "tanh"}},
      {"input x f32[3, 1500]\ninput s f32[1500]\ninput y f32[]\noutput rms_norm(blend(gate(x, exp(x)), x, y), s; "
       "epsilon=0.001)\n",
       {"exp+gate+blend+rms_norm"}},
      {"input x f32[4, 6, 1]\noutput softmax(exp(softmax(x; axis=-1)); axis=-2)\n", {"softmax+exp+softmax"}},
      {"input x f32[4, 6, 1]\noutput softmax(exp(softmax(x; axis=-2)); axis=-1)\n", {"softmax+exp+softmax"}},
      {"input x f32[4, 6, 5]\noutput exp(softmax(neg(x); axis=-2))\n", {"neg", "softmax", "exp"}},
      {"input x f32[4, 1]\ninput y f32[]\noutput softmax(add(broadcast(x; shape=[4, 33]), broadcast(y; shape=[4, "
       "33])); axis=-1)\n",
       {"add+softmax"}},
      {"input x f32[1, 8, 5, 5]\nweight w f32[8, 8, 1, 1]\nb = conv2d(x, w)\noutput conv2d(mul(b, sigmoid(b)), w)\n",
       {"reorder", "conv2d", "sigmoid+mul", "conv2d", "reorder"},
       true},
  };
  for (const FusedExample& example : examples) {
    const Graph graph = value_of(parse_graph(example.graph, "test", gating()));
    for (const int threads : {1, 3}) {
      const LoweredGraph lowered = fused_for(
          value_of(lower(graph, gating(), {.channels_last = example.channels_last, .threads = threads})), library);
      EXPECT_EQ(names_of_steps(lowered), example.steps) << example.graph;
      for (const LoweredStep& step : lowered.steps) {
        const KernelRequest& request = step.kernel->request;
        if (!request.fused) continue;
        const auto together = value_of(library.create(request));
        EXPECT_TRUE(together->implementation().starts_with("own fused elementwise ")) << together->implementation();
        const auto apart = value_of(fused_kernel(request, library));
        EXPECT_EQ(apart->implementation(), "parts one by one");
        const auto actual = made_by(*together, request), expected = made_by(*apart, request);
        for (std::size_t i = 0; i < actual.size(); ++i)
          EXPECT_EQ(std::memcmp(actual[i].data(), expected[i].data(), actual[i].size()), 0) << example.graph << i;
      }
    }
  }
}

TEST(FusedElements, DeclineWhatIsMore) {
  const auto reason = [](const std::string& graph, const std::function<bool(const KernelRequest&)>& fuses) {
    const LoweredGraph lowered =
        fuse_steps(value_of(lower(graph_of(graph), registry(), {.channels_last = false})), {.fuses = fuses});
    return cpu::fused_elements(lowered.steps.back().kernel->request, registry()).reason;
  };
  const auto all = [](const KernelRequest&) { return true; };
  EXPECT_EQ(reason("input x f32[3, 5]\noutput relu(x)\n", all), "nothing is fused");
  EXPECT_EQ(reason("input x f32[3, 5]\noutput softmax(relu(x); axis=-1)\n", all), "");
  EXPECT_EQ(reason("input x f32[3, 5]\noutput softmax(relu(x); axis=-2)\n", all),
            "softmax is neither element-wise nor computed row by row");
  EXPECT_EQ(reason("input x f32[3, 9000]\noutput softmax(relu(x); axis=-1)\n", all), "rows are too long");
  EXPECT_EQ(reason("input x f32[1, 5]\noutput exp(broadcast(relu(x); shape=[3, 5]))\n", all),
            "the results have several shapes or layouts");
  EXPECT_EQ(reason("input x f64[3, 5]\noutput relu(exp(x))\n", all), "only f32");
}

TEST(FusedElements, AreNotForTheReference) {
  const Graph graph = graph_of("input x f32[3, 5]\noutput relu(exp(x))\n");
  const LoweredGraph lowered = value_of(lower(graph, registry()));
  EXPECT_EQ(names_of_steps(fused_for(lowered, library(KernelSet::reference))),
            (std::vector<std::string>{"exp", "relu"}));
  EXPECT_EQ(names_of_steps(fused_for(lowered, library())), (std::vector<std::string>{"exp+relu"}));
}

}  // namespace
}  // namespace taso::testing
