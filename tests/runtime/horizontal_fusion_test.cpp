// Steps that do not wait for each other in one launch: which, in what order, and that they compute the same.
#include "runtime/horizontal_fusion.h"

#include <algorithm>
#include <set>

#include "runtime/independent_requests.h"
#include "tests/runtime/backend.h"
#include "tests/runtime/fixtures.h"
#include "tests/runtime/fused_requests.h"
#include "tests/runtime/random_graph.h"

namespace taso::testing {
namespace {

using Names = std::vector<std::string>;

bool all_but_products(const KernelRequest& request) {
  if (!request.fused) return request.op != "matmul";
  return std::none_of(request.fused->parts.begin(), request.fused->parts.end(),
                      [](const FusedPart& part) { return part.request.op == "matmul"; });
}

/// The launches of a graph, by the names of what they compute.
Names launches_of(const std::string& text, HorizontalFusion how = {.stands_beside = all_but_products}) {
  const LoweredGraph joined = fuse_horizontally(value_of(lower(graph_of(text), registry())), how);
  Names names;
  std::set<TensorIndex> written;
  for (const LoweredStep& step : joined.steps) {
    const KernelRequest& request = step.kernel->request;
    EXPECT_EQ(request.inputs.size(), step.inputs.size());
    EXPECT_EQ(request.outputs.size(), step.outputs.size());
    EXPECT_EQ(step.kernel->key, request.key());
    for (const TensorIndex input : step.inputs)
      EXPECT_TRUE(joined.tensors[input].source != LoweredTensor::Source::kernel || written.contains(input));
    written.insert(step.outputs.begin(), step.outputs.end());
    for (const TensorIndex output : step.outputs) EXPECT_EQ(&joined.steps[joined.tensors[output].step], &step);
    std::string name = request.fused ? "" : request.op;
    if (request.fused) {
      EXPECT_EQ(step.fused.size(), request.fused->parts.size());
      for (const FusedPart& part : request.fused->parts) name += (name.empty() ? "" : " | ") + part.request.op;
    }
    names.push_back(name);
  }
  return names;
}

/// Two branches of unequal length, each a product between functions.
const std::string branches = R"(
input x f32[4, 4]
weight w f32[4, 4]
weight v f32[4, 4]
a = relu(matmul(tanh(x), w))
b = exp(matmul(abs(x), v))
c = sqrt(b)
)";

TEST(HorizontalFusion, JoinsWhatIsReadyAtTheSameTime) {
  EXPECT_EQ(launches_of(branches + "output a\noutput c\n"),
            (Names{"tanh | abs", "matmul", "matmul", "relu | exp", "sqrt"}));
}

TEST(HorizontalFusion, WaitsForAllThatIsReadAndJoinsNothingThatReadsTheOther) {
  EXPECT_EQ(launches_of(branches + "output add(a, c)\n"),
            (Names{"tanh | abs", "matmul", "matmul", "relu | exp", "sqrt", "add"}));
  EXPECT_EQ(launches_of("input x f32[4]\noutput tanh(abs(relu(x)))\n"), (Names{"relu", "abs", "tanh"}));
}

TEST(HorizontalFusion, HasSoManyStepsOfALaunchAtMost) {
  const std::string text =
      "input x f32[4]\noutput tanh(x)\noutput abs(x)\noutput relu(x)\noutput exp(x)\noutput sin(x)\n";
  EXPECT_EQ(launches_of(text), (Names{"tanh | abs | relu | exp | sin"}));
  EXPECT_EQ(launches_of(text, {.stands_beside = all_but_products, .most = 2}),
            (Names{"tanh | abs", "relu | exp", "sin"}));
}

TEST(HorizontalFusion, WaitsForNoStepsFarBehind) {
  const std::string text = branches + "output a\noutput c\n";
  // tanh, product, relu, abs, product, exp, sqrt are steps 0 to 6.
  EXPECT_EQ(launches_of(text, {.stands_beside = all_but_products, .reach = 2}),
            (Names{"tanh", "matmul", "relu | abs", "matmul", "exp", "sqrt"}));
  EXPECT_EQ(launches_of(text, {.stands_beside = all_but_products, .reach = 3}),
            (Names{"tanh | abs", "matmul", "matmul", "relu | exp", "sqrt"}));
}

// A product that could begin at once is step 3: what comes first waits for it only where it is within reach.
TEST(HorizontalFusion, LetsNoStepFarBehindGoFirst) {
  const std::string text =
      "input x f32[4, 4]\nweight w f32[4, 4]\noutput relu(abs(tanh(x)))\noutput matmul(x, w)\noutput exp(x)\n";
  EXPECT_EQ(launches_of(text, {.stands_beside = all_but_products, .reach = 2}),
            (Names{"tanh", "matmul", "abs", "relu | exp"}));
  EXPECT_EQ(launches_of(text), (Names{"matmul", "tanh | exp", "abs", "relu"}));
}

TEST(HorizontalFusion, HalvesWhatNoKernelComputes) {
  const auto no_more = [](std::size_t most) {
    return [most](const KernelRequest& request) {
      return all_but_products(request) && (!request.fused || request.fused->parts.size() <= most);
    };
  };
  const std::string text = "input x f32[4]\noutput tanh(x)\noutput abs(x)\noutput relu(x)\n";
  EXPECT_EQ(launches_of(text, {.stands_beside = no_more(2)}), (Names{"tanh", "abs | relu"}));
  EXPECT_EQ(launches_of(text, {.stands_beside = no_more(1)}), (Names{"tanh", "abs", "relu"}));
}

// What is read by several is one input; requests come out as they went in.
TEST(IndependentRequests, AreWhatWasJoined) {
  FusedMaker maker(61);
  RequestMaker operators(62);
  Random random(63, "joined");
  std::size_t shared = 0;
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    std::vector<KernelRequest> requests;
    while (requests.size() < 2 + static_cast<std::size_t>(round % 3)) {
      if (random.below(2) == 0) {
        // Parts that hang together.
        KernelRequest chain = maker.chain(ElementType::f32, random.below(2) == 0);
        if (independent_requests(chain).size() == 1 && chain.fused->parts.size() > 1) requests.push_back(chain);
      } else if (auto one = operators.make(random.below(2) == 0 ? "split" : "max_pool2d")) {
        requests.push_back(*one);
      }
    }
    // An input that is that of an earlier request, where it can be.
    std::vector<std::vector<std::uint32_t>> names;
    std::vector<Operand> operands;
    for (const KernelRequest& request : requests) {
      names.emplace_back();
      for (const Operand& input : request.inputs) {
        const auto same = std::find(operands.begin(), operands.end(), input);
        shared += same != operands.end() ? 1 : 0;
        names.back().push_back(static_cast<std::uint32_t>(same - operands.begin()));
        if (same == operands.end()) operands.push_back(input);
      }
    }
    std::vector<NamedRequest> named;
    for (std::size_t i = 0; i < requests.size(); ++i) named.push_back({&requests[i], names[i]});
    const JoinedRequest joined = join_requests(named);
    EXPECT_EQ(joined.names.size(), operands.size());
    for (std::size_t i = 0; i < joined.names.size(); ++i)
      EXPECT_EQ(joined.request.inputs[i], operands[joined.names[i]]);
    const std::vector<IndependentRequest> again = independent_requests(joined.request);
    ASSERT_EQ(again.size(), requests.size());
    std::size_t output = 0;
    for (std::size_t i = 0; i < again.size(); ++i) {
      ASSERT_EQ(again[i].inputs.size(), again[i].request.inputs.size());
      // Inputs may come in another order, and once where they are one tensor.
      for (std::size_t k = 0; k < again[i].inputs.size(); ++k) {
        EXPECT_EQ(again[i].request.inputs[k], joined.request.inputs[again[i].inputs[k]]);
        const std::uint32_t name = joined.names[again[i].inputs[k]];
        EXPECT_NE(std::find(names[i].begin(), names[i].end(), name), names[i].end());
      }
      for (const std::uint32_t number : again[i].outputs) EXPECT_EQ(number, output++);
      EXPECT_EQ(again[i].request.outputs, requests[i].outputs);
      const KernelRequest& before = requests[i];
      EXPECT_TRUE(before.fused ? again[i].request.fused->parts.size() == before.fused->parts.size()
                               : again[i].request == before);
    }
    EXPECT_EQ(output, joined.request.outputs.size());
  }
  EXPECT_GT(shared, 20U);
}

TEST(IndependentRequests, AreOneWhereNothingFallsApart) {
  FusedMaker maker(64);
  for (const KernelRequest& request : {maker.product(ElementType::f32), *RequestMaker(65).make("tanh")}) {
    const std::vector<IndependentRequest> only = independent_requests(request);
    ASSERT_EQ(only.size(), 1U);
    EXPECT_EQ(only[0].request, request);
    EXPECT_EQ(only[0].inputs.size(), request.inputs.size());
    EXPECT_EQ(only[0].outputs.size(), request.outputs.size());
  }
}

/// How many steps of an executor's are launches of operators of these names, one beside the other.
std::size_t launches_with(const Executor& executor, const std::set<std::string>& operators) {
  std::size_t launches = 0;
  for (const LoweredStep& step : executor.lowered().steps) {
    std::set<std::string> found;
    const std::vector<IndependentRequest> requests = independent_requests(step.kernel->request);
    for (const IndependentRequest& one : requests)
      if (operators.contains(one.request.op)) found.insert(one.request.op);
    launches += requests.size() > 1 && found == operators ? 1 : 0;
  }
  return launches;
}

/// Branches as cells of NASNet have them: convolutions of every channel by itself and poolings between products.
const std::string cell = R"(
input x f32[2, 8, 9, 9]
input y f32[6, 5]
input z f32[40]
weight d1 f32[8, 1, 3, 3]
weight d2 f32[8, 1, 5, 5]
weight p1 f32[8, 8, 1, 1]
weight p2 f32[8, 8, 1, 1]
a = conv2d(conv2d(relu(x), d1; strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1]), p1; strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1])
b = conv2d(conv2d(relu(x), d2; strides=[1, 1], pads=[2, 2, 2, 2], dilations=[1, 1]), p2; strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1])
m = max_pool2d(x; kernel=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1])
g = avg_pool2d_exclude(x; kernel=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1])
output concat(add(a, b), add(m, x), g; axis=-3)
output tanh(y)
output reduce_sum(z; axes=[-1])
)";

TEST(HorizontalFusion, ComputesTheSameOnADevice) {
  const Graph graph = graph_of(cell);
  const KernelLibrary device(registry(), value_of(load_test_backend({}, "fusing")));
  for (const ElementType storage : {ElementType::f32, ElementType::f16})
    for (const std::size_t streams : {std::size_t{1}, std::size_t{4}}) {
      ExecutorOptions options;
      options.float_storage = storage;
      options.streams = streams;
      Executor executor = value_of(Executor::create(graph, device, options));
      EXPECT_EQ(launches_with(executor, {"tanh", "reduce_sum"}), 1U);
      // In f32 this device fuses convolutions with what is before them.
      EXPECT_EQ(launches_with(executor, {"conv2d", "tanh"}), storage == ElementType::f16 ? 1U : 0U);
      for (std::uint64_t run = 0; run < 3; ++run) {
        const std::vector<HostTensor> inputs = inputs_for(graph, run);
        expect_near(value_of(executor.run(inputs)), reference_outputs(graph, inputs),
                    storage == ElementType::f32 ? 1e-4 : 2e-2, std::string(to_string(storage)));
      }
    }
}

// Only where it may be.
TEST(HorizontalFusion, IsNotDoneWhereStepsAreWantedAlone) {
  const KernelLibrary device(registry(), value_of(load_test_backend({}, "fusing")));
  ExecutorOptions options;
  options.side_by_side = false;
  const Executor executor = value_of(Executor::create(graph_of(cell), device, options));
  EXPECT_EQ(launches_with(executor, {"tanh", "reduce_sum"}), 0U);
}

// A launch of several steps that fails when it runs is several launches.
TEST(HorizontalFusion, IsUndoneWhereALaunchFails) {
  const Graph graph = graph_of("input x f32[64]\ninput y f32[3, 5]\noutput reduce_sum(x; axes=[-1])\noutput sin(y)\n");
  const KernelLibrary device(registry(), value_of(load_test_backend({}, "failing")));
  ExecutorOptions options;
  options.fallbacks = std::make_shared<std::vector<std::string>>();
  Executor executor = value_of(Executor::create(graph, device, options));
  EXPECT_EQ(executor.launches(), 1U);
  const std::vector<HostTensor> inputs = inputs_for(graph, 3);
  expect_near(value_of(executor.run(inputs)), reference_outputs(graph, inputs), 1e-5, "");
  ASSERT_EQ(options.fallbacks->size(), 1U);
  EXPECT_EQ((*options.fallbacks)[0].rfind("reduce_sum | sin failed when it ran", 0), 0U) << (*options.fallbacks)[0];
  EXPECT_EQ(executor.launches(), 2U);
}

}  // namespace
}  // namespace taso::testing
