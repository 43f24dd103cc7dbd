// Which operands of concatenations are written in their places on a device, and that they are.
#include "runtime/concat_in_place.h"

#include <algorithm>
#include <array>

#include "runtime/access.h"
#include "support/random.h"
#include "tests/runtime/backend.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

using Names = std::vector<std::string>;
using Source = LoweredTensor::Source;

bool writes_all(const KernelRequest&) { return true; }
bool writes_no_copies(const KernelRequest& request) { return !request.fused; }
bool writes_no_convolution(const KernelRequest& request) { return request.op != "conv2d"; }

/// The steps of a graph, each with where its outputs lie in a whole: "conv2d 0+64/256" begins at byte 0 and lies within
/// an axis of 64 of the result's elements; "conv2d" lies by itself.
Names placed(const std::string& text, bool (*writes)(const KernelRequest&) = writes_all) {
  const LoweredGraph lowered = concat_in_place(value_of(lower(graph_of(text), registry())), writes);
  Names names;
  for (const LoweredStep& step : lowered.steps) {
    const KernelRequest& request = step.kernel->request;
    EXPECT_EQ(request.inputs.size(), step.inputs.size());
    EXPECT_EQ(request.outputs.size(), step.outputs.size());
    EXPECT_EQ(step.kernel->key, request.key());
    std::string name = request.fused ? "copy" : request.op;
    for (std::size_t i = 0; i < step.outputs.size(); ++i) {
      const LoweredTensor& output = lowered.tensors[step.outputs[i]];
      EXPECT_EQ(&lowered.steps[output.step], &step);
      if (output.source == Source::piece) name += " at " + std::to_string(output.offset);
      if (const Within& within = request.outputs[i].within) name += " of " + std::to_string(within.extent);
    }
    names.push_back(name);
  }
  return names;
}

/// Two convolutions of an image of 8 channels: a with 16 channels, b with 8.
const std::string branches = R"(
input x f32[2, 8, 6, 6]
weight w f32[16, 8, 1, 1]
weight v f32[8, 8, 3, 3]
a = conv2d(x, w; strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1])
b = conv2d(x, v; strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1])
)";

TEST(ConcatInPlace, OfConvolutionsAndPoolings) {
  const std::string text = branches +
                           "p = max_pool2d(x; kernel=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1])\n" +
                           "output concat(a, b, p; axis=-3)\n";
  // The input comes in rows and is converted, as is the result.
  EXPECT_EQ(placed(text),
            (Names{"reorder", "conv2d at 0 of 32", "conv2d at 64 of 32", "max_pool2d at 96 of 32", "reorder"}));
}

TEST(ConcatInPlace, CopiesInOneKernelWhatCannotBe) {
  const std::string text = branches + "c = relu(a)\noutput tanh(concat(x, a, c, x, b; axis=-3))\n";
  EXPECT_EQ(placed(text), (Names{"reorder", "conv2d", "relu at 96 of 56", "conv2d at 192 of 56",
                                 "copy at 0 of 56 at 32 of 56 at 160 of 56", "tanh", "reorder"}));
  EXPECT_EQ(placed(text, writes_no_copies),
            (Names{"reorder", "conv2d", "relu", "conv2d", "concat", "tanh", "reorder"}));
}

TEST(ConcatInPlace, NothingWhereNoKernelCan) {
  EXPECT_EQ(placed(branches + "output concat(a, b; axis=-3)\n", writes_no_convolution),
            (Names{"reorder", "conv2d", "conv2d", "concat", "reorder"}));
}

TEST(ConcatInPlace, OfConcatenationsInConcatenations) {
  const std::string text =
      branches + "c = relu(concat(b, x; axis=-3))\noutput concat(a, concat(b, tanh(b); axis=-3), c; axis=-3)\n";
  // b is read by others.
  EXPECT_EQ(placed(text), (Names{"reorder", "conv2d at 0 of 48", "conv2d", "tanh at 96 of 48", "copy at 64 of 48",
                                 "concat", "relu at 128 of 48", "reorder"}));
}

/// A piece, by the lowering, of one along the outermost axis.
const std::string outermost = R"(
input x f32[4, 4]
c = concat(tanh(x), relu(x); axis=-1)
output concat(c, concat(relu(x), exp(x); axis=-1); axis=-2)
)";

TEST(ConcatInPlace, OfConcatenationsThatAreViews) {
  EXPECT_EQ(placed(outermost), (Names{"tanh at 0 of 8", "relu at 16 of 8", "relu at 128 of 8", "exp at 144 of 8"}));
  // What others read as well has to be there by itself.
  EXPECT_EQ(placed(outermost + "output sqrt(c)\n"),
            (Names{"tanh", "relu", "concat at 0", "relu at 128 of 8", "exp at 144 of 8", "sqrt"}));
}

/// Branches whose results are written in place, one of them through a concatenation of its own, and what is copied.
const std::string module_text = R"(
input x f32[2, 8, 7, 7]
weight w1 f32[16, 8, 1, 1]
weight w2 f32[8, 8, 3, 3]
weight w3 f32[8, 16, 1, 3]
weight w4 f32[24, 16, 3, 1]
weight w5 f32[5, 8, 1, 1]
a = conv2d(x, w1; strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1])
b = conv2d(x, w2; strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1])
r = conv2d(x, w1; strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1])
c = conv2d(r, w3; strides=[1, 1], pads=[0, 1, 0, 1], dilations=[1, 1])
d = conv2d(r, w4; strides=[1, 1], pads=[1, 0, 1, 0], dilations=[1, 1])
p = max_pool2d(x; kernel=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1])
q = conv2d(x, w5; strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1])
all = concat(a, b, concat(c, d; axis=-3), x, p, q; axis=-3)
output max_pool2d(all; kernel=[3, 3], strides=[2, 2], pads=[0, 0, 0, 0], dilations=[1, 1])
output tanh(b)
)";

/// On one stream and on several, where the test device refuses steps that share memory and may run at the same time.
TEST(ConcatInPlace, ComputesTheSameOnADevice) {
  const Graph graph = graph_of(module_text);
  // The device that fuses makes the two concatenations one.
  for (const auto& [name, expected_within] : {std::pair("host", 7U), {"fusing", 6U}}) {
    const KernelLibrary device(registry(), value_of(load_test_backend({MathMode::tf32, 0, ""}, name)));
    for (const auto& [storage, streams] : {std::pair(ElementType::f32, std::size_t{1}),
                                           {ElementType::f32, 4},
                                           {ElementType::f16, 4},
                                           {ElementType::bf16, 4}}) {
      ExecutorOptions options;
      options.float_storage = storage;
      options.streams = streams;
      Executor executor = value_of(Executor::create(graph, device, options));
      EXPECT_EQ(executor.schedule().streams > 1, streams > 1);
      std::size_t within = 0;
      for (const LoweredStep& step : executor.lowered().steps) {
        EXPECT_NE(step.kernel->request.op, "concat");
        for (const Operand& output : step.kernel->request.outputs) within += output.within ? 1 : 0;
      }
      EXPECT_EQ(within, expected_within) << name;
      for (std::uint64_t run = 0; run < 4; ++run) {
        const std::vector<HostTensor> inputs = inputs_for(graph, run);
        expect_near(value_of(executor.run(inputs)), reference_outputs(graph, inputs),
                    storage == ElementType::bf16 ? 8e-2 : 1e-2, std::string(to_string(storage)));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(ConcatInPlace, LeavesWhatOthersReadWhereItIs) {
  const KernelLibrary device(registry(), value_of(load_test_backend({}, "host")));
  for (const std::string& text : {outermost, outermost + "output abs(c)\n"}) {
    const Graph graph = graph_of(text);
    Executor executor = value_of(Executor::create(graph, device));
    const std::vector<HostTensor> inputs = inputs_for(graph, 1);
    expect_near(value_of(executor.run(inputs)), reference_outputs(graph, inputs), 1e-5, text);
  }
}

/// A graph of functions of elements and concatenations along any axis, some of whose values are outputs.
std::string random_concatenations(Random& random) {
  struct Made {
    std::string name;
    Shape shape;
  };
  std::vector<Made> values = {{"x", {1 + static_cast<std::int64_t>(random.below(2)), 4, 2, 4}}};
  std::string text = "input x " + to_string(TensorType(ElementType::f32, values[0].shape)) + "\n", outputs;
  for (int i = 0; i < 14; ++i) {
    const Made& first = values[random.below(values.size())];
    Made next{"v" + std::to_string(i), first.shape};
    if (random.below(2) == 0) {
      text += next.name + " = " + std::array{"relu", "tanh", "abs"}[random.below(3)] + "(" + first.name + ")\n";
    } else {
      const std::size_t axis = random.below(4);
      text += next.name + " = concat(" + first.name;
      for (std::uint64_t more = 1 + random.below(3); more > 0; --more) {
        const Made& other = values[random.below(values.size())];
        Shape fits = other.shape;
        fits[axis] = first.shape[axis];
        if (fits != first.shape || next.shape[axis] + other.shape[axis] > 24) continue;
        text += ", " + other.name;
        next.shape[axis] += other.shape[axis];
      }
      if (next.shape == first.shape) text += ", " + first.name, next.shape[axis] *= 2;
      text += "; axis=" + std::to_string(static_cast<int>(axis) - 4) + ")\n";
    }
    if (random.below(4) == 0) outputs += "output " + next.name + "\n";
    values.push_back(std::move(next));
  }
  return text + outputs + "output abs(" + values.back().name + ")\n";
}

TEST(ConcatInPlace, OfRandomConcatenations) {
  const KernelLibrary device(registry(), value_of(load_test_backend({}, "host")));
  std::size_t within = 0, copies = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    Random random(seed, "concatenations");
    const std::string text = random_concatenations(random);
    const Graph graph = graph_of(text);
    ExecutorOptions options;
    options.streams = 1 + seed % 4;
    Executor executor = value_of(Executor::create(graph, device, options));
    for (const LoweredStep& step : executor.lowered().steps) {
      copies += step.kernel->request.fused ? 1 : 0;
      for (const Operand& output : step.kernel->request.outputs) within += output.within ? 1 : 0;
    }
    for (std::uint64_t run = 0; run < 3; ++run) {
      const std::vector<HostTensor> inputs = inputs_for(graph, seed + run);
      expect_near(value_of(executor.run(inputs)), reference_outputs(graph, inputs), 1e-5,
                  "seed " + std::to_string(seed) + "\n" + text);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(within, 300U);
  EXPECT_GT(copies, 60U);
}

TEST(ConcatInPlace, RequestsSayWhereTheirResultsLie) {
  Operand y{{ElementType::f16, {2, 8, 3, 5}}, Layout::channels_last, false, {1, 24}};
  KernelRequest request;
  request.op = "relu";
  request.inputs = {{y.type, y.layout, false}};
  request.outputs = {y};
  EXPECT_EQ(request.key(), "relu; ; f16[2, 8, 3, 5]:nhwc -> f16[2, 8, 3, 5]:nhwc:within 24 of axis 1; threads=1");
  EXPECT_EQ(spanned_bytes(y), 2 * ((2 * 3 * 5 - 1) * 24 + 8));
  EXPECT_EQ(runs_of(y).count, 30U);
  EXPECT_EQ(runs_of(y).bytes, 16U);
  EXPECT_EQ(runs_of(y).distance, 48U);
  // Along another axis: rows of an image.
  y.within = {2, 4};
  EXPECT_EQ(runs_of(y).count, 2U);
  EXPECT_EQ(runs_of(y).bytes, 2U * 3 * 5 * 8);
  EXPECT_EQ(runs_of(y).distance, 2U * 4 * 5 * 8);
  const auto offer = library().create(request);
  ASSERT_FALSE(offer.ok());
  EXPECT_EQ(offer.error().message, "the host writes no result within a wider tensor: " + request.key());
}

}  // namespace
}  // namespace taso::testing
