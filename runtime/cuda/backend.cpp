// The backend: memory, launches and timing, and which kernel computes what.
#include "runtime/backend.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "runtime/access.h"
#include "runtime/cuda/attention.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/device_kernel.h"
#include "runtime/cuda/estimate.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/nccl.h"
#include "runtime/cuda/products.h"
#include "runtime/cuda/program.h"
#include "runtime/independent_requests.h"
#include "runtime/stream_schedule.h"
#include "support/random.h"

namespace taso::cuda {
namespace {

/// Outputs without elements: nothing to compute, whatever the operator.
class Nothing final : public Kernel {
 public:
  Nothing() : Kernel("nothing") {}
  std::size_t launches() const override { return 0; }
  Status execute(const KernelArguments&) const override { return {}; }
};

class GraphRecording final : public Recording {
 public:
  GraphRecording(std::shared_ptr<Context> context, LaunchGraph graph)
      : context_(std::move(context)), graph_(std::move(graph)) {}
  Status replay() override {
    TASO_RETURN_IF_ERROR(context_->enter());
    return graph_.launch(context_->stream);
  }

 private:
  std::shared_ptr<Context> context_;
  LaunchGraph graph_;
};

bool is_float(ElementType element) {
  return element == ElementType::f32 || element == ElementType::f16 || element == ElementType::bf16;
}

bool is_convolution(const KernelRequest& request) {
  return request.op == "conv2d" || request.op == "conv2d_bias_act" || request.op == "conv2d_bias_add_act";
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  std::string name() const override { return "cuda"; }
  std::string identity() const override { return context_->identity; }
  std::string remarks() const override { return context_->remarks(); }
  bool can_run() const override { return context_->can_run; }
  Expected<std::string> device_properties() const override {
    if (!context_->can_run) return context_->properties;
    return json_of_device(context_->device);
  }

  KernelOffer create(const KernelRequest& request, const Operators& operators) override {
    if (request.outputs.empty()) return decline("no outputs");
    if (context_->can_run)
      if (const Status entered = context_->enter(); !entered) return decline(entered.error().message);
    if (is_given_up(request)) return decline("its kernels failed when they ran");
    const auto empty = [](const Operand& operand) { return operand.type.known && operand.type.elements() == 0; };
    if (std::all_of(request.outputs.begin(), request.outputs.end(), empty)) return {std::make_unique<Nothing>(), ""};
    if (is_convolution(request)) return convolution(context_, request);
    if (product_in(request) != nullptr) return product(context_, request);
    if (has_two_products(request)) return attention(context_, request);
    return own_kernel(context_, request, operators);
  }

  bool reject(const KernelRequest& request) override { return context_->reject(tuning_key(request)); }
  bool fuses(const KernelRequest& request, const Operators& operators) const override {
    if (is_given_up(request)) return false;
    if (has_two_products(request)) return plans_attention(*context_, request);
    if (product_in(request) != nullptr) return is_one_product(request);
    return plan_fused(request).program.has_value() || fuses_definitions(*context_, request, operators);
  }
  bool stands_beside(const KernelRequest& request) const override {
    // Precompiled kernels are a launch each.
    if (!context_->builder || is_given_up(request) || product_in(request) != nullptr || has_two_products(request))
      return false;
    constexpr double half = 0.5;
    const std::vector<IndependentRequest> requests = independent_requests(request);
    return std::all_of(requests.begin(), requests.end(), [&](const IndependentRequest& one) {
      return can_stand_beside(one.request) && estimate_cost(one.request, 1, context_->processors).share < half;
    });
  }
  bool writes_within(const KernelRequest& request) const override {
    if (is_given_up(request)) return false;
    if (is_convolution(request)) return plans_convolution(context_, request);
    if (product_in(request) != nullptr) return is_as_good_within(request);
    if (has_two_products(request)) return plans_attention(*context_, request);
    return (request.fused ? plan_fused(request) : plan_program(request)).program.has_value();
  }
  void use_choices(std::shared_ptr<EngineChoices> choices) override {
    const std::scoped_lock lock(context_->mutex);
    context_->choices = std::move(choices);
  }
  std::size_t cache_bytes() const override { return context_->cache_bytes; }

  std::size_t streams() const override { return most_streams; }
  Status mark(std::size_t stream, std::size_t mark) override {
    TASO_RETURN_IF_ERROR(ready());
    return context_->mark(stream, mark);
  }
  Status wait(std::size_t stream, std::size_t mark) override {
    TASO_RETURN_IF_ERROR(ready());
    return context_->wait(stream, mark);
  }
  StepCost estimate(const KernelRequest& request, std::size_t launches) const override {
    return estimate_cost(request, launches, context_->processors);
  }
  double estimated_wait_seconds() const override { return assumed_wait_seconds; }

  Expected<std::byte*> allocate(std::size_t bytes) override {
    TASO_RETURN_IF_ERROR(ready());
    void* memory = nullptr;
    const cudaError_t allocated = cudaMalloc(&memory, std::max<std::size_t>(bytes, 1));
    if (allocated != cudaSuccess) {
      (void)cudaGetLastError();  // reported here, and not the next launch's
      return Error{
          ErrorCode::device_unavailable,
          "the device cannot give " + std::to_string(bytes) + " bytes of memory: " + cudaGetErrorString(allocated),
          {}};
    }
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory) override {
    if (context_->can_run && context_->enter()) cudaFree(memory);
  }
  Status upload(std::span<const std::byte> host, std::byte* device) override {
    TASO_RETURN_IF_ERROR(ready());
    if (!host.empty())
      TASO_RETURN_IF_ERROR(
          check(cudaMemcpyAsync(device, host.data(), host.size(), cudaMemcpyHostToDevice, context_->stream),
                "CUDA cannot copy to the device"));
    return context_->synchronize();
  }
  Status download(const std::byte* device, std::span<std::byte> host) override {
    TASO_RETURN_IF_ERROR(ready());
    if (!host.empty())
      TASO_RETURN_IF_ERROR(
          check(cudaMemcpyAsync(host.data(), device, host.size(), cudaMemcpyDeviceToHost, context_->stream),
                "CUDA cannot copy from the device"));
    return context_->synchronize();
  }
  Status copy(const std::byte* from, std::byte* to, std::size_t bytes) override {
    TASO_RETURN_IF_ERROR(ready());
    if (bytes == 0) return {};
    return check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, context_->stream),
                 "CUDA cannot copy on the device");
  }

  Expected<std::string> message_endpoint() const override {
    TASO_RETURN_IF_ERROR(ready());
    TASO_ASSIGN([[maybe_unused]] const std::string version, nccl_version());
    std::array<char, 256> host{};
    std::array<char, 32> bus{};
    gethostname(host.data(), host.size() - 1);
    TASO_RETURN_IF_ERROR(check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), context_->device),
                               "CUDA does not name the device"));
    return std::string(host.data()) + " " + bus.data();
  }
  Expected<std::string> message_group() const override { return nccl_group(); }
  Expected<std::unique_ptr<DeviceMessages>> join_messages(const std::string& group, int rank, int size) override {
    TASO_RETURN_IF_ERROR(ready());
    return join_by_nccl(group, rank, size, context_->stream);
  }

  Status synchronize() override {
    TASO_RETURN_IF_ERROR(ready());
    return context_->synchronize();
  }
  Expected<std::unique_ptr<Recording>> record(const std::function<Status()>& launches) override {
    TASO_RETURN_IF_ERROR(ready());
    TASO_ASSIGN(LaunchGraph graph, LaunchGraph::capture(context_->stream, launches));
    return std::unique_ptr<Recording>(std::make_unique<GraphRecording>(context_, std::move(graph)));
  }
  Expected<double> time(const std::function<Status()>& launches) override {
    TASO_RETURN_IF_ERROR(ready());
    TASO_ASSIGN(const Stopwatch watch, Stopwatch::create());
    TASO_RETURN_IF_ERROR(context_->wake(context_->stream));
    return context_->time(watch, context_->stream, launches);
  }
  Expected<Measurement> measure(const KernelRequest& request, const Operators& operators,
                                std::span<const std::int64_t> bounds, const MeasureOptions& options) override;

 private:
  /// Whether kernels of the request failed, and no engine is left to be tried: our own kernels have none but that those
  /// which are generated have precompiled ones behind them, or, by definitions, those of the parts or the host's.
  [[nodiscard]] bool is_given_up(const KernelRequest& request) const {
    if (!context_->has_rejections()) return false;
    const bool has_engines = is_convolution(request) || product_in(request) != nullptr || has_two_products(request) ||
                             context_->builder != nullptr;
    return context_->rejections(tuning_key(request)) >= (has_engines ? Context::most_rejections : 1);
  }
  [[nodiscard]] Status ready() const {
    if (!context_->can_run)
      return Error{ErrorCode::device_unavailable, "nothing runs on the description of a device", {}};
    return context_->enter();
  }
  /// Device memory with values for an input: numbers between 0.1 and 1.1, indices below `bound`.
  [[nodiscard]] Expected<DeviceMemory> operand(const KernelRequest& request, std::size_t index, std::int64_t bound,
                                               std::uint64_t seed, const Kernel& kernel);

  std::shared_ptr<Context> context_;
};

Expected<DeviceMemory> CudaBackend::operand(const KernelRequest& request, std::size_t index, std::int64_t bound,
                                            std::uint64_t seed, const Kernel& kernel) {
  const Operand& operand = request.inputs[index];
  const std::int64_t count = operand.type.elements();
  // Packed or not, floats are floats: which lies where does not matter for numbers that are random.
  if (is_float(operand.type.element)) {
    const std::size_t bytes = std::max(kernel.packed_format(index).empty() ? 0 : kernel.packed_bytes(index),
                                       static_cast<std::size_t>(operand.type.bytes()));
    return random_operand(operand.type.element, static_cast<std::int64_t>(bytes / size_of(operand.type.element)), seed,
                          context_->stream);
  }
  std::vector<std::byte> values(static_cast<std::size_t>(operand.type.bytes()), std::byte{0});
  const auto extent = static_cast<std::uint64_t>(std::max<std::int64_t>(1, bound));
  Random random(seed, "measure");
  for (std::int64_t i = 0; i < count; ++i) {
    const auto place = static_cast<std::size_t>(i);
    if (operand.type.element == ElementType::i64) {
      const auto value = static_cast<std::int64_t>(random.below(extent));
      std::memcpy(values.data() + place * sizeof(value), &value, sizeof(value));
    } else if (operand.type.element == ElementType::i32) {
      const auto value = static_cast<std::int32_t>(random.below(extent));
      std::memcpy(values.data() + place * sizeof(value), &value, sizeof(value));
    } else {  // only moved
      const std::size_t width = size_of(operand.type.element);
      values[place * width] = static_cast<std::byte>(random.below(2));
    }
  }
  TASO_ASSIGN(DeviceMemory memory, DeviceMemory::create(values.size()));
  TASO_RETURN_IF_ERROR(upload(values, memory.data()));
  return memory;
}

/// Replays of a graph of unrolled copies. The last-level cache is overwritten before each, and every copy has weights
/// of its own, which are thus cold, as in a network where other layers' weights pass between two uses; activations are
/// warm from the second copy on, as the kernel before has just written them. Of a model that stays in the cache
/// altogether, weights are warm too.
Expected<Measurement> CudaBackend::measure(const KernelRequest& request, const Operators& operators,
                                           std::span<const std::int64_t> bounds, const MeasureOptions& options) {
  constexpr double aim_s = 1e-3;  ///< Of one replay: the events' resolution is half a microsecond.
  constexpr std::size_t fewest_copies = 4, most_copies = 64;
  constexpr std::size_t most_weight_bytes = std::size_t{1} << 30;
  TASO_RETURN_IF_ERROR(ready());
  const KernelOffer offer = create(request, operators);
  if (!offer.kernel) return bad_input("no kernel of the device computes " + request.key() + ": " + offer.reason);
  const Kernel& kernel = *offer.kernel;

  std::vector<DeviceMemory> memory;
  std::vector<std::vector<const std::byte*>> inputs;  // by set of weights
  std::vector<std::byte*> outputs;
  const auto add_set = [&]() -> Status {
    const std::size_t set = inputs.size();
    std::vector<const std::byte*> pointers;
    for (std::size_t i = 0; i < request.inputs.size(); ++i) {
      if (set > 0 && !request.inputs[i].weight) {
        pointers.push_back(inputs[0][i]);
        continue;
      }
      const std::uint64_t seed = options.seed + set * request.inputs.size() + i;
      TASO_ASSIGN(DeviceMemory one, operand(request, i, i < bounds.size() ? bounds[i] : 0, seed, kernel));
      pointers.push_back(one.data());
      memory.push_back(std::move(one));
    }
    inputs.push_back(std::move(pointers));
    return {};
  };
  TASO_RETURN_IF_ERROR(add_set());
  for (const Operand& output : request.outputs) {
    TASO_ASSIGN(DeviceMemory one, DeviceMemory::create(static_cast<std::size_t>(spanned_bytes(output))));
    outputs.push_back(one.data());
    memory.push_back(std::move(one));
  }
  TASO_ASSIGN(const DeviceMemory workspace, DeviceMemory::create(kernel.workspace_bytes()));
  const auto launch_copies = [&](std::size_t copies) -> Status {
    for (std::size_t i = 0; i < copies; ++i)
      TASO_RETURN_IF_ERROR(kernel.execute({inputs[i % inputs.size()], outputs, workspace.data()}));
    return {};
  };

  // Outside of the recording: code is loaded, and the time of one copy is known about.
  TASO_RETURN_IF_ERROR(context_->wake(context_->stream));
  TASO_RETURN_IF_ERROR(launch_copies(1));
  TASO_RETURN_IF_ERROR(context_->synchronize());
  TASO_ASSIGN(const Stopwatch watch, Stopwatch::create());
  TASO_ASSIGN(const double once, context_->time(watch, context_->stream, [&] { return launch_copies(1); }));
  const std::size_t copies =
      std::clamp(static_cast<std::size_t>(aim_s / std::max(once, 1e-7)), fewest_copies, most_copies);
  const bool stays_cached = request.cached_tenths >= 10;
  std::size_t weight_bytes = 0;
  for (const Operand& operand : request.inputs)
    if (operand.weight) weight_bytes += static_cast<std::size_t>(operand.type.bytes());
  if (weight_bytes > 0 && !stays_cached)
    while (inputs.size() < copies && (inputs.size() + 1) * weight_bytes <= most_weight_bytes)
      TASO_RETURN_IF_ERROR(add_set());
  const std::size_t evicted = stays_cached ? 0 : 2 * context_->cache_bytes;
  TASO_ASSIGN(const DeviceMemory eviction, DeviceMemory::create(evicted));
  TASO_ASSIGN(const LaunchGraph graph, LaunchGraph::capture(context_->stream, [&] { return launch_copies(copies); }));
  const auto replay = [&]() -> Expected<double> {
    if (evicted > 0)
      TASO_RETURN_IF_ERROR(
          check(cudaMemsetAsync(eviction.data(), 0, evicted, context_->stream), "CUDA cannot write to the device"));
    return context_->time(watch, context_->stream, [&] { return graph.launch(context_->stream); });
  };
  TASO_ASSIGN([[maybe_unused]] const double warm, replay());

  std::vector<double> samples;
  Measurement measurement;
  for (int round = 0; round < std::max(options.rounds, 1); ++round) {
    for (int i = 0; i < std::max(options.samples, 1); ++i) {
      if (options.cancelled && options.cancelled())
        return Error{ErrorCode::interrupted, "interrupted while a kernel was measured", {}};
      TASO_ASSIGN(const double seconds, replay());
      samples.push_back(seconds * 1e6 / static_cast<double>(copies));
    }
    measurement = summarize(samples);
    // The median of n samples is uncertain by about spread / sqrt(n).
    measurement.steady = measurement.spread <= options.max_spread * std::sqrt(static_cast<double>(round + 1));
    if (measurement.steady) break;
  }
  TASO_RETURN_IF_ERROR(context_->synchronize());
  measurement.implementation = kernel.implementation();
  return measurement;
}

}  // namespace
}  // namespace taso::cuda

extern "C" __attribute__((visibility("default"))) taso::Backend* taso_open_backend(int abi,
                                                                                   const taso::BackendOptions& options,
                                                                                   std::string* error) {
  if (abi != taso::backend_abi) {
    *error = "the module's interface has number " + std::to_string(taso::backend_abi) + ", the program's " +
             std::to_string(abi) + ": they are of different builds";
    return nullptr;
  }
  auto context = taso::cuda::Context::create(options);
  if (!context) {
    *error = context.error().message;
    return nullptr;
  }
  return new taso::cuda::CudaBackend(std::move(*context));
}
