// The plan of memory, by what it must not do: graphs "run" in it with numbers in the place of bytes, and every tensor
// that is read must hold what LoweredTensor says, whatever was written since.
#include "runtime/lifetimes.h"

#include <numeric>

#include "runtime/streamed_graph.h"
#include "support/random.h"
#include "tests/runtime/random_graph.h"

namespace taso::testing {
namespace {

using Source = LoweredTensor::Source;
using Bytes = std::vector<std::uint64_t>;  // a number in the place of each

std::size_t bytes_of(const LoweredTensor& tensor) { return static_cast<std::size_t>(tensor.type.bytes()); }

/// What each tensor of the graph holds.
std::vector<Bytes> contents_of(const LoweredGraph& lowered) {
  std::vector<Bytes> contents;
  for (const LoweredTensor& tensor : lowered.tensors) {
    Bytes& bytes = contents.emplace_back(bytes_of(tensor));
    std::iota(bytes.begin(), bytes.end(), contents.size() << 32);
    if (tensor.source == Source::view)
      std::copy_n(contents[tensor.index].begin() + tensor.offset, bytes.size(), bytes.begin());
    for (std::size_t i = 0; tensor.source == Source::pieces && i + 1 < contents.size(); ++i)
      if (lowered.tensors[i].source == Source::piece && lowered.tensors[i].index + 1 == contents.size())
        std::copy(contents[i].begin(), contents[i].end(), bytes.begin() + lowered.tensors[i].offset);
  }
  return contents;
}

/// Runs a graph in the memory that was planned for it.
class PlannedRun {
 public:
  PlannedRun(const LoweredGraph& lowered, MemoryOf memory)
      : PlannedRun(lowered, memory, plan_memory(lowered, memory)) {}
  PlannedRun(const LoweredGraph& lowered, MemoryOf memory, MemoryPlan plan)
      : lowered_(lowered),
        memory_(memory),
        plan_(std::move(plan)),
        contents_(contents_of(lowered)),
        arena_(plan_.bytes, 0) {}

  [[nodiscard]] const MemoryPlan& plan() const { return plan_; }
  /// Results that lie over their residuals.
  [[nodiscard]] int over_residuals() const { return over_residuals_; }

  void run() {
    std::vector<std::size_t> in_order(lowered_.steps.size());
    std::iota(in_order.begin(), in_order.end(), std::size_t{0});
    run(in_order);
  }
  void run(const std::vector<std::size_t>& order) {
    for (TensorIndex i = 0; i < lowered_.tensors.size(); ++i) {
      if (plan_.places[i].root == i && plan_.is_used(i) && in_arena(i)) {
        ASSERT_EQ(plan_.places[i].offset % arena_alignment(memory_), 0u);
        ASSERT_LE(plan_.places[i].offset + bytes_of(lowered_.tensors[i]), plan_.bytes);
      }
      if (lowered_.tensors[i].source == Source::input && in_arena(i) && plan_.is_used(i)) write(i);
    }
    for (int repeated = 0; repeated < (memory_ == MemoryOf::device ? 2 : 1); ++repeated) {
      for (const std::size_t number : order) {
        const LoweredStep& step = lowered_.steps[number];
        for (const TensorIndex input : step.inputs) expect_there(input);
        for (const TensorIndex output : step.outputs) expect_apart(step, output);
        if (::testing::Test::HasFailure()) return;
        for (const TensorIndex output : step.outputs) write(output);
      }
      for (const TensorIndex output : lowered_.outputs) expect_there(output);
    }
  }

 private:
  [[nodiscard]] bool in_arena(TensorIndex tensor) const {
    const Source source = lowered_.tensors[plan_.places[tensor].root].source;
    return source != Source::weight && (source != Source::input || memory_ == MemoryOf::device);
  }
  [[nodiscard]] Bytes::iterator place(TensorIndex tensor) {
    return arena_.begin() + static_cast<std::ptrdiff_t>(plan_.places[tensor].offset);
  }
  void write(TensorIndex tensor) { std::copy(contents_[tensor].begin(), contents_[tensor].end(), place(tensor)); }

  void expect_there(TensorIndex tensor) {
    const Bytes& expected = contents_[tensor];
    const auto [root, offset] = plan_.places[tensor];
    ASSERT_TRUE(plan_.is_used(tensor));
    if (in_arena(tensor)) {
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), place(tensor))) << "tensor " << tensor;
    } else {
      EXPECT_EQ(plan_.lifetimes[root].bytes, 0u);
      EXPECT_TRUE(
          std::equal(expected.begin(), expected.end(), contents_[root].begin() + static_cast<std::ptrdiff_t>(offset)))
          << "tensor " << tensor << " outside the arena";
    }
  }

  /// No output lies over an input or another output, but over the residual that its kernel adds on the host.
  void expect_apart(const LoweredStep& step, TensorIndex output) {
    ASSERT_TRUE(in_arena(output));
    const std::size_t residual = residual_of(step.kernel->request.op);
    const auto meets = [&](TensorIndex other) {
      const std::size_t a = plan_.places[output].offset, b = plan_.places[other].offset;
      return in_arena(other) && a < b + contents_[other].size() && b < a + contents_[output].size();
    };
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      if (!meets(step.inputs[i])) continue;
      EXPECT_TRUE(residual != 0 && i == residual && memory_ == MemoryOf::host &&
                  plan_.places[output].offset == plan_.places[step.inputs[i]].offset)
          << step.kernel->request.op;
      ++over_residuals_;
    }
    for (const TensorIndex other : step.outputs) EXPECT_TRUE(other == output || !meets(other));
  }

  const LoweredGraph& lowered_;
  MemoryOf memory_;
  MemoryPlan plan_;
  std::vector<Bytes> contents_;
  Bytes arena_;
  int over_residuals_ = 0;
};

TEST(Lifetimes, NothingIsOverwrittenThatIsRead) {
  int over_residuals = 0, views_of_inputs = 0, pieces = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Graph graph = RandomGraph(seed).build(4 + static_cast<int>(seed % 30));
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(graph));
    for (const bool channels_last : {true, false})
      for (const auto& [memory, storage] : {std::pair(MemoryOf::host, ElementType::f32),
                                            {MemoryOf::device, ElementType::f32},
                                            {MemoryOf::device, ElementType::f16}}) {
        const LoweredGraph lowered =
            value_of(lower(graph, registry(), {.channels_last = channels_last, .float_storage = storage}));
        PlannedRun run(lowered, memory);
        run.run();
        if (HasFailure()) return;
        if (memory == MemoryOf::host) over_residuals += run.over_residuals();
        for (const LoweredTensor& tensor : lowered.tensors) pieces += tensor.source == Source::piece ? 1 : 0;
        for (const TensorIndex output : lowered.outputs)
          views_of_inputs += lowered.tensors[run.plan().places[output].root].source == Source::input ? 1 : 0;
      }
  }
  EXPECT_GT(over_residuals, 50);
  EXPECT_GT(views_of_inputs, 50);
  EXPECT_GT(pieces, 50);
}

/// An order of steps that the partial order allows.
std::vector<std::size_t> random_extension(const StepOrder& order, Random& random) {
  std::vector<std::size_t> left(order.size()), extension;
  std::iota(left.begin(), left.end(), std::size_t{0});
  while (!left.empty()) {
    std::vector<std::size_t> next;
    for (const std::size_t step : left)
      if (std::none_of(left.begin(), left.end(), [&](std::size_t other) { return order.is_before(other, step); }))
        next.push_back(step);
    extension.push_back(next[random.below(next.size())]);
    left.erase(std::find(left.begin(), left.end(), extension.back()));
  }
  return extension;
}

// On several streams: whatever order of execution the waits allow.
TEST(Lifetimes, NothingIsOverwrittenByStepsThatMayRunAtTheSameTime) {
  std::size_t larger = 0, on_several = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const Graph graph = RandomGraph(seed).build(6 + static_cast<int>(seed % 30));
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(graph));
    Random random(seed, "costs");
    LoweredGraph lowered = value_of(lower(graph, registry()));
    std::vector<PlacedStep> placed;
    for (std::size_t i = 0; i < lowered.steps.size(); ++i)
      placed.push_back({{random.uniform(), 0.25}, random.below(10) != 0});
    const StreamSchedule schedule = schedule_streams(stream_tasks(lowered, placed), 3, 0);
    const std::size_t bytes_in_sequence = plan_memory(lowered, MemoryOf::device).bytes;
    order_steps(lowered, schedule);
    const StepOrder order(schedule.predecessors());
    const MemoryPlan plan = plan_memory(lowered, order);
    on_several += schedule.streams > 1 ? 1 : 0;
    larger += plan.bytes > bytes_in_sequence ? 1 : 0;
    for (int tried = 0; tried < 4; ++tried) {
      PlannedRun run(lowered, MemoryOf::device, plan);
      run.run(random_extension(order, random));
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(on_several, 50u);
  EXPECT_GT(larger, 20u);
}

// The plan of a sequence is that of the order in which every step waits for the one before.
TEST(Lifetimes, AnOrderThatIsASequenceTakesNoMoreMemory) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Graph graph = RandomGraph(seed).build(20);
    const LoweredGraph lowered = value_of(lower(graph, registry()));
    std::vector<std::vector<std::uint32_t>> waits(lowered.steps.size());
    for (std::uint32_t i = 1; i < waits.size(); ++i) waits[i] = {i - 1};
    EXPECT_EQ(plan_memory(lowered, StepOrder(waits)).bytes, plan_memory(lowered, MemoryOf::device).bytes) << seed;
  }
}

TEST(Lifetimes, InputsLieInTheArenaOfADeviceOnly) {
  const LoweredGraph lowered = value_of(lower(graph_of(R"(
    input x f32[3]
    input y f32[3]
    input unused f32[1000]
    weight w f32[1000]
    output reshape(x; shape=[3, 1]), y, w, tanh(y))"),
                                              registry()));
  const MemoryPlan host = plan_memory(lowered, MemoryOf::host), device = plan_memory(lowered, MemoryOf::device);
  EXPECT_EQ(host.bytes, 64u);
  EXPECT_EQ(device.bytes, 3 * 256u);
  const TensorIndex x = host.places[lowered.outputs[0]].root, y = lowered.outputs[1], w = lowered.outputs[2];
  EXPECT_EQ(lowered.tensors[x].source, Source::input);
  EXPECT_NE(x, lowered.outputs[0]);
  for (const TensorIndex input : {x, y}) {
    EXPECT_EQ(host.lifetimes[input].bytes, 0u);
    EXPECT_EQ(device.lifetimes[input].bytes, 12u);
    EXPECT_EQ(device.lifetimes[input].first, 0u);  // also of x, which only an output reads
    EXPECT_EQ(device.lifetimes[input].last, lowered.steps.size());
  }
  EXPECT_TRUE(host.is_used(w));
  EXPECT_EQ(device.lifetimes[w].bytes, 0u);
  for (TensorIndex i = 0; i < lowered.tensors.size(); ++i)
    EXPECT_NE(device.is_used(i), lowered.tensors[i].source == Source::input && lowered.tensors[i].index == 2) << i;
}

/// Whether the last convolution of the graph, which adds `y`, writes over it.
bool writes_over_residual(const std::string& text, MemoryOf memory = MemoryOf::host) {
  const LoweredGraph lowered = value_of(lower(graph_of(R"(
    input x f32[1, 4, 5, 5]
    weight k f32[4, 4, 1, 1]
    weight b f32[4])" + text),
                                              registry(), {.channels_last = false}));
  const LoweredStep* last = nullptr;
  for (const LoweredStep& step : lowered.steps)
    if (step.kernel->request.op == "conv2d_bias_add_act") last = &step;
  EXPECT_NE(last, nullptr);
  const MemoryPlan plan = plan_memory(lowered, memory);
  const auto &output = plan.places[last->outputs[0]], &residual = plan.places[last->inputs[3]];
  if (output.root != residual.root) return false;
  EXPECT_EQ(output.offset, residual.offset);
  return true;
}

TEST(Lifetimes, AResultIsWrittenOverAResidualThatNothingReadsAfterwards) {
  const std::string one = R"(
    y = relu(x)
    output conv2d_bias_add_act(x, k, b, y))";
  EXPECT_TRUE(writes_over_residual(one));
  EXPECT_FALSE(writes_over_residual(one, MemoryOf::device));
  // Seen through a view, or the result of another one.
  EXPECT_TRUE(writes_over_residual(R"(
    y = reshape(relu(reshape(x; shape=[4, 25])); shape=[1, 4, 5, 5])
    output conv2d_bias_add_act(x, k, b, y))"));
  EXPECT_TRUE(writes_over_residual(R"(
    y = conv2d_bias_add_act(x, k, b, relu(x))
    output conv2d_bias_add_act(tanh(y), k, b, y))"));
}

TEST(Lifetimes, NoResultIsWrittenOverWhatIsRead) {
  for (const char* text : {
           // a graph input, a weight
           "\noutput conv2d_bias_add_act(relu(x), k, b, x)",
           "\nweight y f32[1, 4, 5, 5]\noutput conv2d_bias_add_act(x, k, b, y)",
           // the image itself, also through a view
           "\ny = relu(x)\noutput conv2d_bias_add_act(y, k, b, y)",
           "\ny = relu(x)\noutput conv2d_bias_add_act(reshape(y; shape=[1, 4, 5, 5]), k, b, y)",
           // read by a later step, also through a view; an output
           "\ny = relu(x)\nz = conv2d_bias_add_act(x, k, b, y)\noutput add(z, y)",
           "\ny = relu(x)\nz = conv2d_bias_add_act(x, k, b, y)\noutput tanh(add(reshape(z; shape=[100]), reshape(y; "
           "shape=[100])))",
           "\ny = relu(x)\noutput y, conv2d_bias_add_act(x, k, b, y)",
           // a part of a larger tensor
           "\ns = split(concat(relu(x), tanh(x); axis=-3); axis=-3, sizes=[4, 4])\noutput conv2d_bias_add_act(x, k, b, "
           "s.0)",
       })
    EXPECT_FALSE(writes_over_residual(text)) << text;
}

}  // namespace
}  // namespace taso::testing
