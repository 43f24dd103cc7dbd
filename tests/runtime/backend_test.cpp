// Executors, measuring and weights on a device, shown by the backend of tests.
#include "tests/runtime/backend.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "runtime/device_program.h"
#include "runtime/layout_space.h"
#include "runtime/measure.h"
#include "runtime/weights.h"
#include "support/random.h"
#include "tests/runtime/random_graph.h"

namespace taso::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

BackendOptions described(const std::string& properties) { return {MathMode::strict, 0, properties}; }

TEST(LoadBackend, SaysWhyThereIsNone) {
  const auto absent = load_test_backend({}, "nosuch");
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, ErrorCode::device_unavailable);
  EXPECT_THAT(absent.error().message,
              AllOf(StartsWith("device 'nosuch' is not available: there is no taso_nosuch.so in "),
                    HasSubstr("this build has no such backend")));
  const auto refused = load_test_backend({MathMode::strict, 1, ""});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "device 'host' is not available: there is no device 1");
  EXPECT_EQ(load_test_backend(described("[]")).error().message,
            "device 'host' is not available: the device's properties are not a JSON object with a name");
}

TEST(LoadBackend, FilesThatAreNoModules) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "taso_no_modules";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "taso_text.so") << "text";
  EXPECT_THAT(load_test_backend({}, "text", folder.string()).error().message,
              AllOf(StartsWith("device 'text' is not available: "), HasSubstr("taso_text.so")));
  // A library, but no backend.
  std::filesystem::create_symlink("/proc/self/exe", folder / "taso_program.so");
  EXPECT_THAT(load_test_backend({}, "program", folder.string()).error().message,
              StartsWith("device 'program' is not available: "));
  std::filesystem::remove_all(folder);
}

TEST(Backend, TellsWhatKernelsItHas) {
  const KernelLibrary library = device_library();
  EXPECT_THAT(library.device(), StartsWith("host test device; driver 1.0; fp32"));
  EXPECT_EQ(library.blocks(), std::nullopt);
  KernelRequest request{"relu", {}, {{{ElementType::f32, {8}, true}}}, {{{ElementType::f32, {8}, true}}}, 1};
  EXPECT_NE(library.create_on_device(request).kernel, nullptr);
  EXPECT_EQ(library.offers(request).front().first, "host");
  request.op = "softmax";
  EXPECT_EQ(library.create_on_device(request).reason, "the test device has no softmax");
  EXPECT_EQ(testing::library().create_on_device(request).reason, "there is no device");
}

// What the other tests rely on: the test device notices what a real one would.
TEST(Backend, OfTestsSeesFaults) {
  const auto backend = value_of(load_test_backend());
  const KernelRequest request{"relu", {}, {{{ElementType::f32, {8}, true}}}, {{{ElementType::f32, {8}, true}}}, 1};
  const auto kernel = std::move(backend->create(request, registry()).kernel);
  const DeviceBuffer x = value_of(DeviceBuffer::create(backend, 32)), y = value_of(DeviceBuffer::create(backend, 32));
  std::vector<float> values(8, 2), results(8, 0);
  const auto bytes = std::as_writable_bytes(std::span(values)),
             result_bytes = std::as_writable_bytes(std::span(results));
  const auto launch = [&](const std::byte* from, std::byte* to) {
    return kernel->execute({std::span(&from, 1), std::span(&to, 1), nullptr});
  };
  ASSERT_TRUE(launch(bytes.data(), y.data()).ok());
  EXPECT_EQ(backend->synchronize().error().message, "relu reads outside the device's memory");
  ASSERT_TRUE(launch(x.data() + 4, y.data()).ok());
  EXPECT_EQ(backend->synchronize().error().message, "relu reads outside the device's memory");
  ASSERT_TRUE(launch(x.data(), result_bytes.data()).ok());
  EXPECT_EQ(backend->synchronize().error().message, "relu writes outside the device's memory");
  EXPECT_EQ(backend->download(bytes.data(), result_bytes).error().message, "a transfer outside the device's memory");
  ASSERT_TRUE(backend->download(x.data(), result_bytes).ok());
  EXPECT_TRUE(std::isnan(results[0]));
  // What is recorded runs when it is replayed, not before.
  ASSERT_TRUE(backend->upload(bytes, x.data()).ok());
  const auto recording = value_of(backend->record([&] { return launch(x.data(), y.data()); }));
  ASSERT_TRUE(backend->download(y.data(), result_bytes).ok());
  EXPECT_TRUE(std::isnan(results[0]));
  ASSERT_TRUE(recording->replay().ok());
  ASSERT_TRUE(backend->copy(y.data(), x.data() + 16, 16).ok());
  ASSERT_TRUE(backend->download(x.data(), result_bytes).ok());
  EXPECT_EQ(results, values);
  EXPECT_EQ(backend->record([&] { return backend->upload(bytes, x.data()); }).error().message,
            "a transfer while launches are recorded");
}

TEST(Backend, OfTestsSeesWaitsThatAreMissing) {
  const auto backend = value_of(load_test_backend());
  const KernelRequest request{"relu", {}, {{{ElementType::f32, {8}, true}}}, {{{ElementType::f32, {8}, true}}}, 1};
  const auto kernel = std::move(backend->create(request, registry()).kernel);
  const DeviceBuffer x = value_of(DeviceBuffer::create(backend, 32)), y = value_of(DeviceBuffer::create(backend, 32)),
                     z = value_of(DeviceBuffer::create(backend, 32));
  const auto launch = [&](const DeviceBuffer& from, const DeviceBuffer& to, std::size_t stream) {
    const std::byte* input = from.data();
    std::byte* output = to.data();
    return kernel->execute({std::span(&input, 1), std::span(&output, 1), nullptr, stream});
  };
  const auto error_of = [&](const std::function<Status()>& launches) {
    const auto recorded = backend->record(launches);
    return recorded ? std::string() : recorded.error().message;
  };
  EXPECT_EQ(backend->streams(), 4u);
  EXPECT_EQ(launch(x, y, 1).error().message, "a launch on stream 1 outside of recordings");
  EXPECT_EQ(launch(x, y, 4).error().message, "a launch on a stream that the test device has not");
  EXPECT_EQ(backend->mark(0, 0).error().message, "a mark outside of recordings");
  EXPECT_EQ(backend->wait(1, 0).error().message, "a wait for a mark outside of recordings");
  EXPECT_EQ(error_of([&] { return launch(x, y, 1); }), "a launch on stream 1, which takes no part in the recording");
  EXPECT_EQ(error_of([&] { return backend->mark(2, 0); }), "a mark on stream 2, which takes no part in the recording");
  EXPECT_EQ(error_of([&] { return backend->wait(1, 7); }), "a wait for a mark that was not set in the recording");
  // Both from x, at the same time; the second of them is not waited for, or both write to one place.
  const auto fork = [&](const DeviceBuffer& second, bool joins) -> Status {
    TASO_RETURN_IF_ERROR(backend->mark(0, 0));
    TASO_RETURN_IF_ERROR(backend->wait(1, 0));
    TASO_RETURN_IF_ERROR(launch(x, y, 0));
    TASO_RETURN_IF_ERROR(launch(x, second, 1));
    TASO_RETURN_IF_ERROR(backend->mark(1, 1));
    return joins ? backend->wait(0, 1) : Status{};
  };
  EXPECT_EQ(error_of([&] { return fork(z, true); }), "");
  EXPECT_EQ(error_of([&] { return fork(z, false); }), "stream 0 does not wait for stream 1 in the end");
  EXPECT_EQ(error_of([&] { return fork(y, true); }),
            "relu and relu may run at the same time and share memory that one of them writes");
}

/// Root mean square of the difference over that of the reference, over all outputs.
double relative_error(const std::vector<HostTensor>& actual, const std::vector<std::vector<double>>& expected) {
  double difference = 0, reference = 0;
  for (std::size_t output = 0; output < actual.size(); ++output) {
    const std::vector<double> values = actual[output].to_doubles();
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference += (values[i] - expected[output][i]) * (values[i] - expected[output][i]);
      reference += expected[output][i] * expected[output][i];
    }
  }
  return std::sqrt(difference) / std::max(std::sqrt(reference), 1e-30);
}

ExecutorOptions options_of(bool channels_last, ElementType float_storage, std::shared_ptr<WeightStore> store = {}) {
  return {.threads = 1,
          .channels_last = channels_last,
          .weights = std::move(store),
          .layouts = nullptr,
          .float_storage = float_storage};
}

/// Costs that are drawn, or that were recorded.
class DrawnCosts final : public StepCosts {
 public:
  explicit DrawnCosts(std::uint64_t seed) : random_(seed, "costs") {}
  std::optional<StepCost> find(const std::string& key) override {
    return costs_.try_emplace(key, StepCost{random_.uniform() * 1e-5, 0.05 + 0.3 * random_.uniform()}).first->second;
  }
  Status record(const std::string& key, const StepCost& cost) override {
    costs_[key] = cost;
    return {};
  }
  std::optional<double> wait_seconds() override { return 1e-7; }
  Status record_wait(double /*seconds*/) override { return {}; }

 private:
  Random random_;
  std::map<std::string, StepCost> costs_;
};

class RandomGraphsOnDevice : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomGraphsOnDevice, RunAsDefined) {
  const KernelLibrary device = device_library();
  std::size_t declined = 0;
  for (std::uint64_t i = 0; i < 25; ++i) {
    const std::uint64_t seed = GetParam() * 25 + i;
    const Graph graph = RandomGraph(seed).build(4 + static_cast<int>(seed % 20));
    for (const bool channels_last : {true, false}) {
      Executor executor = value_of(Executor::create(graph, device, options_of(channels_last, ElementType::f32)));
      declined += executor.declined().size();
      // The first run queues kernels, the second and third replay, on other inputs.
      for (std::uint64_t run = 0; run < 3; ++run) {
        const std::vector<HostTensor> inputs = inputs_for(graph, seed + run);
        expect_near(value_of(executor.run(inputs)), reference_outputs(graph, inputs), 1e-4,
                    "seed " + std::to_string(seed) + ", run " + std::to_string(run) + "\n" + to_text(graph));
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(declined, 0u);
}

// Whatever order of execution the waits allow, another one at each replay; the test device refuses steps that may run
// at the same time and share memory.
TEST_P(RandomGraphsOnDevice, RunOnSeveralStreams) {
  std::size_t on_several = 0, waits = 0;
  for (const char* name : {"host", "fusing"}) {
    const KernelLibrary device(registry(), value_of(load_test_backend({}, name)));
    for (std::uint64_t i = 0; i < 25; ++i) {
      const std::uint64_t seed = GetParam() * 25 + i;
      const Graph graph = RandomGraph(seed).build(8 + static_cast<int>(seed % 20));
      ExecutorOptions options = options_of(seed % 2 == 0, ElementType::f32);
      options.streams = 2 + seed % 3;
      options.step_costs = std::make_shared<DrawnCosts>(seed);
      Executor executor = value_of(Executor::create(graph, device, options));
      ASSERT_LE(executor.schedule().streams, options.streams);
      on_several += executor.schedule().streams > 1 ? 1 : 0;
      for (const ScheduledStep& step : executor.schedule().steps) waits += step.waits.size();
      for (std::uint64_t run = 0; run < 4; ++run) {
        const std::vector<HostTensor> inputs = inputs_for(graph, seed + run);
        expect_near(value_of(executor.run(inputs)), reference_outputs(graph, inputs), 1e-4,
                    "seed " + std::to_string(seed) + ", run " + std::to_string(run) + "\n" + to_text(graph));
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(on_several, 15u);
  EXPECT_GT(waits, 10u);
}

// Offsets of views and pieces are those of the storage; a factor of two would show as garbage.
TEST_P(RandomGraphsOnDevice, RunOnNarrowFloats) {
  const KernelLibrary device = device_library();
  for (std::uint64_t i = 0; i < 25; ++i) {
    const std::uint64_t seed = GetParam() * 25 + i;
    const Graph graph = RandomGraph(seed).build(4 + static_cast<int>(seed % 20));
    const std::vector<HostTensor> inputs = inputs_for(graph, seed);
    const auto expected = reference_outputs(graph, inputs);
    for (const auto& [storage, tolerance] : {std::pair(ElementType::f16, 1e-2), std::pair(ElementType::bf16, 8e-2)}) {
      Executor executor = value_of(Executor::create(graph, device, options_of(true, storage)));
      EXPECT_LT(relative_error(value_of(executor.run(inputs)), expected), tolerance)
          << "seed " << seed << ", " << to_string(storage) << "\n"
          << to_text(graph);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraphsOnDevice, ::testing::Range<std::uint64_t>(0, 4));

const char* const convolutions = R"(
  input x f32[1, 8, 9, 9]
  weight w f32[16, 8, 3, 3]
  weight v f32[4, 16, 1, 1]
  a = conv2d(x, w; strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1])
  output softmax(conv2d(relu(a), v; strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1]); axis=-1))";

TEST(DeviceExecutor, MathModesDiffer) {
  const Graph graph = graph_of(convolutions);
  const std::vector<HostTensor> inputs = inputs_for(graph, 1);
  const auto expected = reference_outputs(graph, inputs);
  std::vector<double> errors;
  for (const MathMode math : {MathMode::strict, MathMode::tf32}) {
    const KernelLibrary device = device_library(math);
    Executor executor = value_of(Executor::create(graph, device));
    errors.push_back(relative_error(value_of(executor.run(inputs)), expected));
  }
  EXPECT_LT(errors[0], 1e-5);
  EXPECT_GT(errors[1], 1e-5);
  EXPECT_LT(errors[1], 2e-3);
}

TEST(DeviceExecutor, ProfilesWhatRunsWhere) {
  const KernelLibrary device = device_library();
  Executor executor = value_of(Executor::create(graph_of(convolutions), device));
  EXPECT_TRUE(executor.on_device());
  EXPECT_EQ(executor.declined(), std::vector<std::string>{"softmax"});
  const std::vector<HostTensor> inputs = executor.random_inputs(1);
  const auto profile = value_of(executor.profile(inputs, 2));
  ASSERT_EQ(profile.size(), executor.launches());
  for (const KernelProfile& kernel : profile) {
    EXPECT_THAT(kernel.implementation, StartsWith(kernel.op == "softmax" ? "host: " : "test: "));
    EXPECT_GT(kernel.median_us, 0) << kernel.op;
  }
  EXPECT_GT(value_of(executor.time_on_device(2)), 0);
  // Timing has not changed what the inputs are.
  const auto expected = reference_outputs(graph_of(convolutions), inputs);
  expect_near(value_of(executor.run(inputs)), expected, 1e-5, "after timing");
}

const char* const two_branches = R"(
  input x f32[1, 8, 9, 9]
  weight w f32[16, 8, 3, 3]
  weight v f32[16, 8, 1, 1]
  a = conv2d(x, w; strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1])
  b = conv2d(x, v; strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1])
  output add(tanh(a), sigmoid(b)))";

/// Costs of which none is known at first.
class NotedCosts final : public StepCosts {
 public:
  std::optional<StepCost> find(const std::string& key) override {
    const auto known = costs.find(key);
    return known == costs.end() ? std::nullopt : std::optional(known->second);
  }
  Status record(const std::string& key, const StepCost& cost) override {
    costs[key] = cost;
    return {};
  }
  std::optional<double> wait_seconds() override { return wait; }
  Status record_wait(double seconds) override {
    wait = seconds;
    return {};
  }
  std::map<std::string, StepCost> costs;
  std::optional<double> wait;
};

TEST(DeviceExecutor, StreamsAreChosenByWhatStepsCost) {
  const KernelLibrary device = device_library();
  const Graph graph = graph_of(two_branches);
  const auto costs = std::make_shared<NotedCosts>();
  ExecutorOptions options;
  const auto streams = [&] { return value_of(Executor::create(graph, device, options)).schedule().streams; };
  EXPECT_EQ(streams(), 1u) << "unless several are asked for";
  options.streams = 4;
  EXPECT_EQ(streams(), 2u) << "as the device estimates";
  options.step_costs = costs;
  EXPECT_EQ(streams(), 2u) << "nothing else is known";
  EXPECT_EQ(value_of(plan_launches(graph, device, options)).measured, 0u);
  // The test device runs one kernel at a time.
  const std::size_t measured = value_of(measure_step_costs(graph, device, options));
  EXPECT_EQ(measured, costs->costs.size() + 1) << "all steps, and a wait";
  EXPECT_EQ(value_of(measure_step_costs(graph, device, options)), 0u) << "all is known";
  EXPECT_GE(costs->costs.size(), 5u);
  for (const auto& [key, cost] : costs->costs) {
    EXPECT_GT(cost.seconds, 0) << key;
    EXPECT_GE(cost.share, 0.25) << key;
    EXPECT_LE(cost.share, 1) << key;
  }
  EXPECT_EQ(value_of(plan_launches(graph, device, options)).measured, costs->costs.size());
  for (auto& [key, cost] : costs->costs) cost = {1e-5, 1};
  EXPECT_EQ(streams(), 1u) << "every step fills the device";
  for (auto& [key, cost] : costs->costs) cost.share = 0.5;
  costs->wait = 0;
  EXPECT_EQ(streams(), 2u);
  costs->wait = 1;
  EXPECT_EQ(streams(), 1u) << "waits take too long";
  // A chain has nothing to run beside anything.
  options.step_costs = std::make_shared<NotedCosts>();
  EXPECT_EQ(value_of(measure_step_costs(graph_of(convolutions), device, options)), 0u);
}

TEST(DeviceExecutor, ReportsIndices) {
  const KernelLibrary device = device_library();
  Executor executor = value_of(
      Executor::create(graph_of("weight t f32[3, 2]\ninput i i64[2]\noutput relu(gather(t, i; axis=-2))"), device));
  const auto run = [&](std::vector<std::int64_t> indices) {
    std::vector<HostTensor> inputs;
    inputs.push_back(HostTensor::of_integers({2}, indices));
    return executor.run(inputs);
  };
  for (int round = 0; round < 2; ++round) {  // queued, then replayed
    EXPECT_EQ(run({0, 3}).error().message, "gather: index 3 at position 1 is outside an axis of 3");
    EXPECT_TRUE(run({2, 1}).ok());
  }
}

TEST(DeviceExecutor, WeightsAreUploadedOnce) {
  const KernelLibrary device = device_library();
  const Graph graph = graph_of(convolutions);
  const auto store = std::make_shared<WeightStore>();
  const auto make = [&](const KernelLibrary& kernels, ElementType storage) {
    return value_of(Executor::create(graph, kernels, options_of(true, storage, store)));
  };
  // Executors of the host and of the device, of either storage, share a store and nothing else.
  Executor host = make(library(), ElementType::f32), first = make(device, ElementType::f32),
           half = make(device, ElementType::f16), second = make(device, ElementType::f32);
  const std::vector<HostTensor> inputs = host.random_inputs(3);
  const auto expected = reference_outputs(graph, inputs);
  for (Executor* executor : {&host, &first, &second})
    expect_near(value_of(executor->run(inputs)), expected, 1e-5, "shared");
  EXPECT_LT(relative_error(value_of(half.run(inputs)), expected), 1e-2);
  EXPECT_EQ(first.weight_bytes(), second.weight_bytes());
}

TEST(DeviceExecutor, OutputsThatAreInputsOrWeights) {
  const KernelLibrary device = device_library();
  const Graph graph = graph_of("input x f32[2, 3]\nweight w f32[3]\noutput x, w, reshape(x; shape=[3, 2])");
  Executor executor = value_of(Executor::create(graph, device));
  const std::vector<HostTensor> inputs = executor.random_inputs(1);
  expect_near(value_of(executor.run(inputs)), reference_outputs(graph, inputs), 0, "copies");
}

TEST(DeviceExecutor, InTurnWithOneOfTheHost) {
  const KernelLibrary device = device_library();
  const Graph graph = graph_of(convolutions);
  Executor on_device = value_of(Executor::create(graph, device)),
           on_host = value_of(Executor::create(graph, library()));
  const std::vector<HostTensor> inputs = on_host.random_inputs(1);
  const std::vector<Executor*> executors = {&on_device, &on_host};
  const std::vector<std::span<const HostTensor>> spans = {inputs, inputs};
  WholeOptions options;
  options.minimum_rounds = options.maximum_rounds = 3;
  options.warm_up = 0;
  const auto times = value_of(time_interleaved(executors, spans, options));
  EXPECT_EQ(times[0].samples, 3);
  EXPECT_GT(times[0].median_us, 0);
}

// More weights than the test device's cache of 1 MiB holds: each launch that is timed has others, and what comes of it
// serves nobody, not even as indices.
TEST(DeviceExecutor, ProfilesWithWeightsFromMemory) {
  const KernelLibrary device = device_library();
  const Graph graph = graph_of(
      "input x f32[4, 512]\nweight w f32[512, 512]\nweight v f32[512, 6]\nweight i i64[3]\n"
      "output gather(matmul(matmul(x, w), v), i; axis=-1)");
  EXPECT_EQ(cached_tenths(*device.backend(), 700e3), 10);
  EXPECT_EQ(cached_tenths(*device.backend(), 800e3), 0);
  Executor executor = value_of(Executor::create(graph, device));
  const std::vector<HostTensor> inputs = executor.random_inputs(1);
  const auto profile = value_of(executor.profile(inputs, 2));
  ASSERT_EQ(profile.size(), executor.launches());
  for (const KernelProfile& kernel : profile) EXPECT_GT(kernel.median_us, 0) << kernel.op;
  expect_near(value_of(executor.run(inputs)), reference_outputs(graph, inputs), 1e-5, "after the profile");
}

TEST(DeviceExecutor, ADescribedDeviceRunsNothing) {
  const KernelLibrary device(registry(), value_of(load_test_backend(described(R"({"name": "some GPU"})"))));
  EXPECT_THAT(device.device(), StartsWith("some GPU (from a description); driver 2.0; fp32"));
  const auto executor = Executor::create(graph_of(convolutions), device);
  ASSERT_FALSE(executor.ok());
  EXPECT_EQ(executor.error().code, ErrorCode::device_unavailable);
  EXPECT_EQ(executor.error().message, "device 'host' is only described by its properties: nothing can run");
  KernelTimer timer(device);
  const KernelRequest request{"relu", {}, {{{ElementType::f32, {8}, true}}}, {{{ElementType::f32, {8}, true}}}, 1};
  EXPECT_EQ(timer.measure(request).error().message,
            "device 'host' is only described by its properties: no kernel can be measured");
}

TEST(DeviceTimer, MeasuresThereAndOnTheHost) {
  const KernelLibrary device = device_library();
  MeasureOptions options;
  options.samples = 3;
  options.rounds = 1;
  KernelTimer timer(device, options);
  const TensorType type{ElementType::f16, {4, 8}, true};
  KernelRequest request{"relu", {}, {{type}}, {{type}}, 1};
  EXPECT_THAT(value_of(timer.measure(request)).implementation, StartsWith("test: "));
  request.op = "softmax";
  request.attributes = graph_of("input x f32[4, 8]\noutput softmax(x; axis=-1)").node(1).attributes;
  const Measurement declined = value_of(timer.measure(request));
  EXPECT_THAT(declined.implementation, StartsWith("host: "));
  EXPECT_GT(declined.median_us, 0);
}

}  // namespace
}  // namespace taso::testing
