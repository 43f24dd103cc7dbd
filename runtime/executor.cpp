#include "runtime/executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <set>

#include "graph/reals.h"
#include "runtime/access.h"
#include "runtime/backend.h"
#include "runtime/concat_in_place.h"
#include "runtime/device_program.h"
#include "runtime/fusion.h"
#include "runtime/horizontal_fusion.h"
#include "runtime/independent_requests.h"
#include "runtime/input_bounds.h"
#include "runtime/measure.h"
#include "runtime/request_estimate.h"
#include "runtime/storage.h"
#include "runtime/streamed_graph.h"
#include "runtime/strides.h"

namespace taso {
namespace {

/// Where a tensor lies: at an offset in the arena or in a graph input, or at a fixed address.
struct Location {
  enum class Base : std::uint8_t { arena, input, fixed } base = Base::arena;
  std::uint32_t input = 0;
  std::size_t offset = 0;
  const std::byte* address = nullptr;
};

struct ExecutorStep {
  std::unique_ptr<Kernel> kernel;
  std::vector<Location> inputs, outputs;
};

HostTensor random_input(const TensorType& type, const std::string& name, std::int64_t bound, std::uint64_t seed) {
  HostTensor tensor;
  if (type.known && size_of(type.element) > 0) {
    tensor = HostTensor(type);
    fill_random(tensor, seed, name, bound);
  }
  return tensor;
}

/// A weight packed by a kernel without all of it being there in another form; nothing where that cannot be.
AlignedBuffer packed_by_parts(const ConstantPart& weight, const TensorType& type, const Kernel& kernel,
                              std::size_t position) {
  const std::int64_t rows = kernel.rows_of_part(position);
  if (rows == 0) return {};
  const std::int64_t all = type.shape[0];
  AlignedBuffer packed(kernel.packed_bytes(position));
  AlignedBuffer part(static_cast<std::size_t>(type.bytes() / all * std::min(rows, all)));
  for (std::int64_t first = 0; first < all; first += rows) {
    const std::int64_t count = std::min(rows, all - first);
    weight.copy_rows(first, count, part.data());
    kernel.pack_part(position, first, count, part.data(), packed.data());
  }
  return packed;
}

AlignedBuffer aligned_copy(const ConstantData& constant) {
  AlignedBuffer copy(static_cast<std::size_t>(constant.type().bytes()));
  if (constant.is_dense()) {
    constexpr std::size_t read_at_a_time = std::size_t{4} << 20;
    const std::span<const std::byte> bytes = constant.dense_bytes();
    for (std::size_t at = 0; at < bytes.size(); at += read_at_a_time) {
      const auto part = bytes.subspan(at, std::min(read_at_a_time, bytes.size() - at));
      std::memcpy(copy.data() + at, part.data(), part.size());
      constant.release_pages(part);
    }
    return copy;
  }
  const std::span<const std::byte> element = constant.splat_element();
  for (std::size_t at = 0; at < copy.size(); at += element.size())
    std::memcpy(copy.data() + at, element.data(), element.size());
  return copy;
}

bool is_aligned(std::span<const std::byte> bytes, std::size_t width) {
  return reinterpret_cast<std::uintptr_t>(bytes.data()) % std::max<std::size_t>(width, 1) == 0;
}

/// "conv2d"; of a fused kernel its operators: "matmul+softmax+matmul"; of several in one launch: "conv2d | abs+tanh".
std::string name_of(const KernelRequest& request) {
  if (!request.fused) return request.op;
  if (const std::vector<IndependentRequest> several = independent_requests(request); several.size() > 1) {
    std::string names;
    for (const IndependentRequest& one : several) names += (names.empty() ? "" : " | ") + name_of(one.request);
    return names;
  }
  std::string name;
  for (const FusedPart& part : request.fused->parts) name += (name.empty() ? "" : "+") + part.request.op;
  return name;
}

/// What an executor runs.
Expected<LoweredGraph> lower_for(const Graph& graph, const KernelLibrary& library, const ExecutorOptions& options,
                                 FusionStatistics* statistics = nullptr) {
  TASO_ASSIGN(LoweredGraph lowered,
              lower(graph, library.registry(), lowering_options(library, options), options.layouts.get()));
  if (!options.groups) return lowered;
  return fused_for(std::move(lowered), library, options.more_kernels, nullptr, statistics);
}

/// The kernel of a step, on the device or, where that declines, on the host.
struct PlacedKernel {
  std::unique_ptr<Kernel> kernel;
  bool on_device = false;
};

/// `more_kernels`: null, or asked first: what it does on the host stays there, even where the device would have nothing
/// to compute.
Expected<PlacedKernel> place_kernel(const KernelRequest& request, const KernelLibrary& library, ElementType storage,
                                    KernelSource* more_kernels) {
  KernelRequest on_host = request;
  replace_floats(on_host, storage, ElementType::f32);
  PlacedKernel placed;
  if (more_kernels != nullptr) placed.kernel = more_kernels->create(on_host);
  if (placed.kernel != nullptr) return placed;
  if (more_kernels != nullptr) placed.kernel = more_kernels->create_on_device(request);
  if (placed.kernel == nullptr) placed.kernel = library.create_on_device(request).kernel;
  placed.on_device = placed.kernel != nullptr;
  if (placed.kernel == nullptr) {
    TASO_ASSIGN(placed.kernel, library.create(on_host));
  }
  return placed;
}

/// A lowered graph on the streams of a device.
struct StreamPlan {
  LoweredGraph lowered;               ///< In the order of the schedule.
  std::vector<PlacedKernel> kernels;  ///< Of its steps.
  StreamSchedule schedule;
  double seconds_on_one_stream = 0;
  std::size_t measured = 0;  ///< Device steps with costs that were measured.
};

/// A lowered graph with its kernels.
struct PlacedGraph {
  LoweredGraph lowered;
  std::vector<PlacedKernel> kernels;  ///< Of its steps.

  /// What the steps cost: as `costs` knows, if it is not null, else as the device estimates.
  [[nodiscard]] std::vector<StreamTask> tasks(const Backend& backend, StepCosts* costs, std::size_t* known_of) const {
    std::vector<PlacedStep> placed;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      placed.push_back({{}, kernels[i].on_device});
      if (!kernels[i].on_device) continue;
      const PlannedKernel& planned = *lowered.steps[i].kernel;
      const std::optional<StepCost> known = costs != nullptr ? costs->find(planned.key) : std::nullopt;
      placed.back().cost = known ? *known : backend.estimate(planned.request, kernels[i].kernel->launches());
      if (known_of != nullptr) *known_of += known ? 1 : 0;
    }
    return stream_tasks(lowered, placed);
  }
};

std::size_t most_streams_of(const Backend& backend, std::size_t wanted) {
  return std::clamp<std::size_t>(std::min(wanted, backend.streams()), 1, most_streams);
}

/// A placed graph with steps side by side in one launch.
struct JoinedGraph {
  LoweredGraph lowered;
  /// Per step: which one made its first result before; it is the same where it has the same kernel.
  std::vector<std::size_t> step_before;
  std::vector<std::unique_ptr<Kernel>> made;  ///< Per step: its kernel; null where it has that of the step before.
};

/// Whether a run with steps side by side is at most a twentieth longer, as the device estimates: what launches cost
/// besides, on the host and where they wait for their turn, is in no estimate. It is the same for any number of streams
/// and whatever is known of costs, as numbers may be rounded differently.
bool pays(const JoinedGraph& joined, const PlacedGraph& plan, const Backend& backend) {
  constexpr double as_good = 1.05;
  std::vector<PlacedStep> placed;
  for (std::size_t i = 0; i < joined.lowered.steps.size(); ++i) {
    const LoweredStep& step = joined.lowered.steps[i];
    const PlacedKernel& before = plan.kernels[joined.step_before[i]];
    const bool is_joined = step.kernel != plan.lowered.steps[joined.step_before[i]].kernel;
    placed.push_back({{}, is_joined || before.on_device});
    if (placed.back().on_device)
      placed.back().cost = backend.estimate(step.kernel->request, is_joined ? 1 : before.kernel->launches());
  }
  const auto seconds = [&](const std::vector<StreamTask>& tasks) {
    return choose_streams(tasks, most_streams_of(backend, default_streams), backend.estimated_wait_seconds()).seconds;
  };
  return seconds(stream_tasks(joined.lowered, placed)) <= as_good * seconds(plan.tasks(backend, nullptr, nullptr));
}

/// Puts steps side by side (runtime/horizontal_fusion.h) where that pays and the arena is at most half as large again.
void put_side_by_side(PlacedGraph& plan, const KernelLibrary& library, const ExecutorOptions& options) {
  constexpr double most_memory = 1.5;
  constexpr int most_rounds = 4;
  // What waits for others may not wait for messages of ranks besides.
  if (options.more_kernels != nullptr || !options.side_by_side) return;
  std::set<std::string> without;  // launches for which it turned out that there is no kernel
  for (int round = 0; round < most_rounds; ++round) {
    const auto stands_beside = [&](const KernelRequest& request) {
      return library.stands_beside(request) && (without.empty() || !without.contains(request.key()));
    };
    JoinedGraph joined{fuse_horizontally(plan.lowered, {.stands_beside = stands_beside}), {}, {}};
    if (joined.lowered.steps.size() == plan.lowered.steps.size()) return;
    for (const LoweredStep& step : joined.lowered.steps)
      joined.step_before.push_back(plan.lowered.tensors[step.outputs[0]].step);
    const auto bytes = [](const LoweredGraph& of) {
      return static_cast<double>(plan_memory(of, MemoryOf::device).bytes);
    };
    if (!pays(joined, plan, *library.backend()) || bytes(joined.lowered) > most_memory * bytes(plan.lowered)) return;
    const std::size_t failed_before = without.size();
    for (std::size_t i = 0; i < joined.step_before.size(); ++i) {
      const PlannedKernel& kernel = *joined.lowered.steps[i].kernel;
      const bool is_joined = &kernel != plan.lowered.steps[joined.step_before[i]].kernel.get();
      joined.made.push_back(is_joined ? library.create_on_device(kernel.request).kernel : nullptr);
      if (is_joined && (!joined.made.back() || joined.made.back()->launches() > 1)) without.insert(kernel.key);
    }
    if (without.size() > failed_before) continue;
    PlacedGraph placed{std::move(joined.lowered), {}};
    for (std::size_t i = 0; i < joined.made.size(); ++i)
      placed.kernels.push_back(joined.made[i] ? PlacedKernel{std::move(joined.made[i]), true}
                                              : std::move(plan.kernels[joined.step_before[i]]));
    plan = std::move(placed);
    return;
  }
}

Expected<StreamPlan> plan_streams(LoweredGraph lowered, const KernelLibrary& library, const ExecutorOptions& options) {
  const Backend& backend = *library.backend();
  StepCosts* costs = options.step_costs.get();
  PlacedGraph kernels{std::move(lowered), {}};
  for (const LoweredStep& step : kernels.lowered.steps) {
    TASO_ASSIGN(PlacedKernel kernel,
                place_kernel(step.kernel->request, library, options.float_storage, options.more_kernels));
    kernels.kernels.push_back(std::move(kernel));
  }
  put_side_by_side(kernels, library, options);
  StreamPlan plan;
  const std::vector<StreamTask> tasks = kernels.tasks(backend, costs, &plan.measured);
  const std::optional<double> known_wait = costs != nullptr ? costs->wait_seconds() : std::nullopt;
  const double wait_seconds = known_wait ? *known_wait : backend.estimated_wait_seconds();
  plan.schedule = choose_streams(tasks, most_streams_of(backend, options.streams), wait_seconds);
  for (const StreamTask& task : tasks) plan.seconds_on_one_stream += task.cost.seconds;
  plan.lowered = std::move(kernels.lowered);
  order_steps(plan.lowered, plan.schedule);
  for (const ScheduledStep& step : plan.schedule.steps) plan.kernels.push_back(std::move(kernels.kernels[step.task]));
  return plan;
}

}  // namespace

struct Executor::State {
  LoweredGraph lowered;
  MemoryPlan memory;
  StreamSchedule schedule;  ///< On a device.
  int threads = 1;
  KernelSource* more_kernels = nullptr;
  /// Of which it was made, on a device that may have to compute it in another way.
  struct Origin {
    Graph graph;
    const KernelLibrary* library = nullptr;
    ExecutorOptions options;
  };
  std::optional<Origin> origin;
  std::vector<TensorType> input_types, output_types;
  std::vector<std::string> input_names;
  std::vector<char> input_used;
  std::vector<std::int64_t> input_bounds;  ///< Of random integers.
  std::vector<ExecutorStep> steps;
  std::vector<Location> outputs;
  std::vector<std::shared_ptr<const PackedWeight>> weights;
  std::size_t weight_bytes = 0;
  AlignedBuffer arena, workspace;

  // On a device; the steps, arena and workspace above are then empty.
  std::optional<DeviceProgram> program;
  std::vector<DeviceTensor> device_inputs, device_outputs;  ///< Weights among the outputs are those of the host.

  // Of one run.
  std::vector<const std::byte*> inputs;
  std::vector<const std::byte*> step_inputs;
  std::vector<std::byte*> step_outputs;

  [[nodiscard]] const std::byte* read(const Location& location) const {
    switch (location.base) {
      case Location::Base::arena:
        return arena.data() + location.offset;
      case Location::Base::input:
        return inputs[location.input] + location.offset;
      case Location::Base::fixed:
        return location.address;
    }
    return nullptr;
  }

  Status execute(std::size_t index) {
    ExecutorStep& step = steps[index];
    step_inputs.clear();
    step_outputs.clear();
    for (const Location& location : step.inputs) step_inputs.push_back(read(location));
    for (const Location& location : step.outputs) step_outputs.push_back(arena.data() + location.offset);
    return step.kernel->execute({step_inputs, step_outputs, workspace.data()});
  }

  void copy_outputs(std::span<HostTensor> targets) const {
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const std::span<std::byte> target = targets[i].bytes();
      TASO_CHECK(targets[i].type() == output_types[i], "an output does not fit the graph");
      if (!target.empty()) std::memcpy(target.data(), read(outputs[i]), target.size());
    }
  }

  Status bind(std::span<const HostTensor> tensors) {
    if (tensors.size() != input_types.size())
      return bad_input("the model takes " + std::to_string(input_types.size()) + " inputs, " +
                       std::to_string(tensors.size()) + " were given");
    inputs.clear();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (input_used[i] != 0 && !(tensors[i].type() == input_types[i]))
        return bad_input("input '" + input_names[i] + "' is " + to_string(input_types[i]) + ", a tensor " +
                         to_string(tensors[i].type()) + " was given");
      inputs.push_back(tensors[i].bytes().data());
    }
    return {};
  }

  /// The weight that step input `position` reads, as its kernel wants it: laid out on the host, in the storage of
  /// `device` and uploaded unless that is null.
  Expected<std::shared_ptr<const PackedWeight>> weight(const Graph& graph, const std::vector<Hash128>& hashes,
                                                       const KernelLibrary& library, WeightStore& store,
                                                       const LoweredTensor& tensor, const Kernel* kernel,
                                                       std::size_t position,
                                                       const std::shared_ptr<Backend>& device) const {
    const TensorType& type = graph.type(tensor.value);
    const ElementType element = device ? tensor.type.element : type.element;
    const std::string format = kernel != nullptr ? kernel->packed_format(position) : "";
    Hasher key;
    key.add(hashes[tensor.value.node]).add(tensor.value.port);
    key.add(static_cast<std::uint64_t>(tensor.layout)).add(format);
    for (const std::int64_t extent : type.shape) key.add(extent);
    if (device) key.add(device->identity()).add(static_cast<std::uint64_t>(element));
    return store.get(key.finish(), [&]() -> Expected<std::shared_ptr<const PackedWeight>> {
      auto packed = std::make_shared<PackedWeight>();
      const bool moves = !same_bytes(type.shape, tensor.layout, Layout::row_major);
      if (!format.empty() && !moves && !device)
        if (const auto stored = ConstantPart::of(graph, tensor.value)) {
          packed->buffer = packed_by_parts(*stored, type, *kernel, position);
          if (packed->buffer.size() > 0) return std::shared_ptr<const PackedWeight>(packed);
        }
      TASO_ASSIGN(const auto constants, evaluate_weights(graph, std::span(&tensor.value, 1), library, threads));
      const std::shared_ptr<const ConstantData>& constant = constants[0];
      const bool usable = constant->is_dense() && is_aligned(constant->dense_bytes(), size_of(type.element));
      if (format.empty() && !moves && !device && usable) {
        packed->constant = constant;
        return std::shared_ptr<const PackedWeight>(packed);
      }
      AlignedBuffer plain;
      const std::byte* bytes = nullptr;
      if (usable) {
        bytes = constant->dense_bytes().data();
      } else {
        plain = aligned_copy(*constant);
        bytes = plain.data();
      }
      if (moves) {
        KernelRequest request;
        request.op = reorder_op;
        request.inputs = {{type, Layout::row_major, false}};
        request.outputs = {{type, tensor.layout, false}};
        TASO_ASSIGN(const std::unique_ptr<Kernel> reorder, library.create(request));
        AlignedBuffer moved(static_cast<std::size_t>(type.bytes()));
        AlignedBuffer scratch(reorder->workspace_bytes());
        std::byte* target = moved.data();
        TASO_RETURN_IF_ERROR(reorder->execute({std::span(&bytes, 1), std::span(&target, 1), scratch.data()}));
        constant->release_pages();
        plain = std::move(moved);
        bytes = plain.data();
      }
      if (element != type.element) {
        const auto count = static_cast<std::size_t>(type.elements());
        AlignedBuffer converted(count * size_of(element));
        convert_reals(bytes, type.element, converted.data(), element, count);
        plain = std::move(converted);
        bytes = plain.data();
      }
      std::size_t size = static_cast<std::size_t>(type.elements()) * size_of(element);
      if (!format.empty()) {
        size = kernel->packed_bytes(position);
        AlignedBuffer ready(size);
        kernel->pack(position, bytes, ready.data());
        plain = std::move(ready);
        bytes = plain.data();
      }
      if (device) {
        TASO_ASSIGN(DeviceBuffer uploaded, DeviceBuffer::create(device, std::max<std::size_t>(size, 1)));
        TASO_RETURN_IF_ERROR(device->upload({bytes, size}, uploaded.data()));
        packed->device = std::make_shared<const DeviceBuffer>(std::move(uploaded));
      } else {
        packed->buffer = std::move(plain);
      }
      constant->release_pages();
      return std::shared_ptr<const PackedWeight>(packed);
    });
  }

  Status build(const Graph& graph, const KernelLibrary& library, const ExecutorOptions& options) {
    const std::shared_ptr<Backend>& backend = library.backend();
    TASO_CHECK(backend || options.float_storage == ElementType::f32, "floats of the host are f32");
    if (backend && !backend->can_run())
      return Error{ErrorCode::device_unavailable,
                   "device '" + backend->name() + "' is only described by its properties: nothing can run",
                   {}};
    TASO_ASSIGN(lowered, lower_for(graph, library, options));
    std::vector<PlacedKernel> kernels;
    if (backend) {
      TASO_ASSIGN(StreamPlan plan, plan_streams(std::move(lowered), library, options));
      lowered = std::move(plan.lowered);
      kernels = std::move(plan.kernels);
      schedule = std::move(plan.schedule);
    }
    threads = options.threads;
    for (const NodeId id : graph.inputs()) {
      input_types.push_back(graph.node(id).outputs[0]);
      input_names.push_back(graph.node(id).name);
    }
    for (const Value& output : graph.outputs()) output_types.push_back(graph.type(output));
    input_used.assign(input_types.size(), 0);
    memory = schedule.streams > 1 ? plan_memory(lowered, StepOrder(schedule.predecessors()))
                                  : plan_memory(lowered, backend ? MemoryOf::device : MemoryOf::host);
    for (TensorIndex i = 0; i < lowered.tensors.size(); ++i)
      if (lowered.tensors[i].source == LoweredTensor::Source::input && memory.is_used(i))
        input_used[lowered.tensors[i].index] = 1;
    const std::shared_ptr<WeightStore> store = options.weights ? options.weights : std::make_shared<WeightStore>();
    const std::vector<Hash128> hashes = weight_hashes(graph);
    const auto weight_of = [&](TensorIndex tensor, const Kernel* kernel, std::size_t position,
                               const std::shared_ptr<Backend>& device) -> Expected<const std::byte*> {
      TASO_ASSIGN(std::shared_ptr<const PackedWeight> packed,
                  weight(graph, hashes, library, *store, lowered.tensors[tensor], kernel, position, device));
      if (std::find(weights.begin(), weights.end(), packed) == weights.end()) {
        weights.push_back(packed);
        weight_bytes += packed->bytes();
      }
      return packed->data();
    };
    input_bounds = input_bounds_of(graph, library.registry());
    if (backend && options.more_kernels == nullptr) {
      origin = Origin{graph, &library, options};
      origin->options.weights = store;  // they need not be laid out again
    }
    if (backend) return build_on_device(backend, std::move(kernels), options.float_storage, weight_of);
    more_kernels = options.more_kernels;
    return build_on_host(library, weight_of);
  }

  /// Makes the weights of all steps, the largest first: what making one takes besides is then freed before there is
  /// much else.
  template <class WeightOf>
  Status lay_out_weights(const WeightOf& weight_of) {
    struct Use {
      std::size_t step, position;
      std::int64_t bytes;
    };
    std::vector<Use> uses;
    for (std::size_t step = 0; step < steps.size(); ++step)
      for (std::size_t i = 0; i < lowered.steps[step].inputs.size(); ++i) {
        const LoweredTensor& tensor = lowered.tensors[lowered.steps[step].inputs[i]];
        if (tensor.source == LoweredTensor::Source::weight) uses.push_back({step, i, tensor.type.bytes()});
      }
    std::stable_sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.bytes > b.bytes; });
    for (const Use& use : uses) {
      const TensorIndex tensor = lowered.steps[use.step].inputs[use.position];
      const auto made = weight_of(tensor, steps[use.step].kernel.get(), use.position, nullptr);
      if (!made) return made.error();
    }
    return {};
  }

  template <class WeightOf>
  Status build_on_host(const KernelLibrary& library, const WeightOf& weight_of) {
    arena = AlignedBuffer(memory.bytes);
    const auto locate = [&](TensorIndex tensor, const Kernel* kernel, std::size_t position) -> Expected<Location> {
      if (lowered.tensors[tensor].source == LoweredTensor::Source::weight) {
        TASO_ASSIGN(const std::byte* address, weight_of(tensor, kernel, position, nullptr));
        return Location{Location::Base::fixed, 0, 0, address};
      }
      const auto [root, offset] = memory.places[tensor];
      const LoweredTensor& entry = lowered.tensors[root];
      if (entry.source == LoweredTensor::Source::input)
        return Location{Location::Base::input, entry.index, offset, nullptr};
      return Location{Location::Base::arena, 0, offset, nullptr};
    };
    std::size_t workspace_bytes = 0;
    for (const LoweredStep& planned : lowered.steps) {
      ExecutorStep& step = steps.emplace_back();
      const KernelRequest& request = planned.kernel->request;
      if (more_kernels != nullptr) step.kernel = more_kernels->create(request);
      if (step.kernel == nullptr) {
        TASO_ASSIGN(step.kernel, library.create(request));
      }
      workspace_bytes = std::max(workspace_bytes, step.kernel->workspace_bytes());
    }
    TASO_RETURN_IF_ERROR(lay_out_weights(weight_of));
    for (std::size_t at = 0; at < steps.size(); ++at) {
      const LoweredStep& planned = lowered.steps[at];
      ExecutorStep& step = steps[at];
      for (std::size_t i = 0; i < planned.inputs.size(); ++i) {
        TASO_ASSIGN(const Location location, locate(planned.inputs[i], step.kernel.get(), i));
        step.inputs.push_back(location);
      }
      for (const TensorIndex tensor : planned.outputs) {
        TASO_ASSIGN(const Location location, locate(tensor, nullptr, 0));
        step.outputs.push_back(location);
      }
    }
    workspace = AlignedBuffer(workspace_bytes);
    for (const TensorIndex tensor : lowered.outputs) {
      TASO_ASSIGN(const Location location, locate(tensor, nullptr, 0));
      outputs.push_back(location);
    }
    return {};
  }

  /// `kernels`: of the steps.
  template <class WeightOf>
  Status build_on_device(const std::shared_ptr<Backend>& backend, std::vector<PlacedKernel> kernels,
                         ElementType storage, const WeightOf& weight_of) {
    const auto locate = [&](TensorIndex tensor, const Kernel* kernel, std::size_t position,
                            bool on_device) -> Expected<DeviceTensor> {
      const LoweredTensor& entry = lowered.tensors[tensor];
      DeviceTensor place{entry.type, memory.places[tensor].offset, nullptr};
      if (entry.source == LoweredTensor::Source::weight) {
        TASO_ASSIGN(place.weight, weight_of(tensor, kernel, position, on_device ? backend : nullptr));
      }
      return place;
    };
    std::vector<DeviceStep> device_steps;
    for (std::size_t at = 0; at < kernels.size(); ++at) {
      const LoweredStep& planned = lowered.steps[at];
      DeviceStep step;
      step.kernel = std::move(kernels[at].kernel);
      step.on_device = kernels[at].on_device;
      step.stream = schedule.steps[at].stream;
      step.waits = schedule.steps[at].waits;
      for (std::size_t i = 0; i < planned.inputs.size(); ++i) {
        TASO_ASSIGN(DeviceTensor place, locate(planned.inputs[i], step.kernel.get(), i, step.on_device));
        step.inputs.push_back(std::move(place));
      }
      for (const TensorIndex tensor : planned.outputs) {
        TASO_ASSIGN(DeviceTensor place, locate(tensor, nullptr, 0, true));
        const Operand& output = planned.kernel->request.outputs[step.outputs.size()];
        place.spanned_bytes = static_cast<std::size_t>(spanned_bytes(output));
        step.outputs.push_back(std::move(place));
      }
      device_steps.push_back(std::move(step));
    }
    for (const TensorIndex tensor : lowered.outputs) {
      TASO_ASSIGN(DeviceTensor place, locate(tensor, nullptr, 0, false));
      device_outputs.push_back(std::move(place));
    }
    device_inputs.resize(input_types.size());
    for (TensorIndex i = 0; i < lowered.tensors.size(); ++i) {
      const LoweredTensor& entry = lowered.tensors[i];
      if (entry.source == LoweredTensor::Source::input && memory.is_used(i))
        device_inputs[entry.index] = {entry.type, memory.places[i].offset, nullptr};
    }
    TASO_ASSIGN(DeviceProgram made, DeviceProgram::create(backend, std::move(device_steps), memory.bytes, storage));
    program.emplace(std::move(made));
    return {};
  }

  /// `times`: of the steps, unless null.
  Status run_on_device(std::span<const HostTensor> tensors, std::span<HostTensor> results,
                       std::vector<StepTime>* times = nullptr) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (input_used[i] != 0) TASO_RETURN_IF_ERROR(program->upload(tensors[i], device_inputs[i]));
    const bool can_be_made_anew = origin.has_value();
    TASO_RETURN_IF_ERROR(times != nullptr ? program->run_timed(*times) : program->run(can_be_made_anew));
    for (std::size_t i = 0; i < results.size(); ++i) {
      TASO_CHECK(results[i].type() == output_types[i], "an output does not fit the graph");
      const std::span<std::byte> target = results[i].bytes();
      if (device_outputs[i].weight == nullptr)
        TASO_RETURN_IF_ERROR(program->download(device_outputs[i], results[i]));
      else if (!target.empty())
        std::memcpy(target.data(), device_outputs[i].weight, target.size());
    }
    return {};
  }
};

LoweredGraph fused_for(LoweredGraph lowered, const KernelLibrary& library, const KernelSource* more_kernels,
                       FusionCache* cache, FusionStatistics* statistics) {
  if (library.set() == KernelSet::reference) return lowered;
  const auto fuses = [&](const KernelRequest& request) {
    // What leaves a kernel before its last part would wait for all that the kernel reads: a message for others, for
    // which ranks may wait in turn.
    const std::vector<FusedPart::Source>& results = request.fused->results;
    const bool ends_with_its_result = results.size() == 1 && results[0].index + 1 == request.fused->parts.size();
    return (more_kernels == nullptr || ends_with_its_result) && library.fuses(request);
  };
  const auto is_ours = [&](const KernelRequest& one) {
    return more_kernels == nullptr || !more_kernels->knows(one.op);
  };
  RequestEstimate estimate(library.registry(), library.backend() ? device_rates : host_rates);
  FusionRules rules;
  rules.fuses = fuses;
  rules.joins = [&](const KernelRequest& part) { return is_ours(part) && library.may_fuse(part); };
  rules.cost = [&](const KernelRequest& request) { return estimate.cost(request); };
  rules.repeats = [&](const KernelRequest& part) { return estimate.is_cheap(part); };
  lowered = fuse_steps(std::move(lowered), rules, cache, statistics);
  if (!library.backend()) return lowered;
  const auto writes = [&](const KernelRequest& request) { return library.writes_within(request); };
  return concat_in_place(std::move(lowered), writes, is_ours);
}

LoweringOptions lowering_options(const KernelLibrary& library, const ExecutorOptions& options) {
  return {.channels_last = options.channels_last && library.set() == KernelSet::cpu,
          .threads = options.threads,
          .float_storage = options.float_storage};
}

namespace {

PlannedLaunches planned_kernel(const LoweredStep& step, const PlacedKernel& placed, bool has_device) {
  const bool is_declined = has_device && !placed.on_device;
  return {step.kernel->request.op,
          (is_declined ? "host: " : "") + placed.kernel->implementation(),
          step.kernel->key,
          step.node,
          is_declined ? 0 : placed.kernel->launches(),
          0,
          0,
          0,
          placed.kernel->code()};
}

}  // namespace

Expected<PlannedRun> plan_launches(const Graph& graph, const KernelLibrary& library, const ExecutorOptions& options) {
  PlannedRun run;
  if (options.groups && library.set() != KernelSet::reference) run.groups.emplace();
  TASO_ASSIGN(LoweredGraph lowered, lower_for(graph, library, options, run.groups ? &*run.groups : nullptr));
  if (!library.backend()) {
    for (const LoweredStep& step : lowered.steps) {
      TASO_ASSIGN(const PlacedKernel kernel,
                  place_kernel(step.kernel->request, library, options.float_storage, nullptr));
      run.kernels.push_back(planned_kernel(step, kernel, false));
    }
    return run;
  }
  TASO_ASSIGN(const StreamPlan plan, plan_streams(std::move(lowered), library, options));
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    const ScheduledStep& scheduled = plan.schedule.steps[i];
    PlannedLaunches& kernel = run.kernels.emplace_back(planned_kernel(plan.lowered.steps[i], plan.kernels[i], true));
    kernel.stream = scheduled.stream;
    kernel.begin_s = scheduled.begin_s;
    kernel.end_s = scheduled.end_s;
  }
  run.streams = plan.schedule.streams;
  run.seconds = plan.schedule.seconds;
  run.seconds_on_one_stream = plan.seconds_on_one_stream;
  run.measured = plan.measured;
  return run;
}

Expected<std::size_t> measure_step_costs(const Graph& graph, const KernelLibrary& library,
                                         const ExecutorOptions& options) {
  constexpr std::uint64_t input_seed = 1;
  TASO_CHECK(options.step_costs, "costs are measured and kept nowhere");
  if (options.streams == 1 || !library.backend() || library.backend()->streams() == 1) return std::size_t{0};
  ExecutorOptions of_one = options;
  of_one.streams = 1;
  TASO_ASSIGN(Executor executor, Executor::create(graph, library, of_one));
  // If steps took no part of the device, and waits no time, and several streams were no better even so?
  std::vector<PlacedStep> free_steps;
  for (const ScheduledStep& step : executor.schedule().steps)
    free_steps.push_back({{1, 1.0 / static_cast<double>(most_streams)}, step.on_device});
  if (choose_streams(stream_tasks(executor.lowered(), free_steps), options.streams, 0).streams == 1)
    return std::size_t{0};
  const Expected<std::vector<HostTensor>> outputs = executor.run(executor.random_inputs(input_seed));
  if (!outputs) return outputs.error();
  return executor.measure_step_costs(*options.step_costs);
}

Executor::Executor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Executor::~Executor() = default;
Executor::Executor(Executor&&) noexcept = default;
Executor& Executor::operator=(Executor&&) noexcept = default;

Expected<Executor> Executor::create(const Graph& graph, const KernelLibrary& library, const ExecutorOptions& options) {
  auto state = std::make_unique<State>();
  TASO_RETURN_IF_ERROR(state->build(graph, library, options));
  return Executor(std::move(state));
}

const std::vector<TensorType>& Executor::input_types() const { return state_->input_types; }
const std::vector<std::string>& Executor::input_names() const { return state_->input_names; }
const std::vector<TensorType>& Executor::output_types() const { return state_->output_types; }
std::size_t Executor::launches() const { return state_->lowered.launches(); }
bool Executor::on_device() const { return state_->program.has_value(); }
std::vector<std::string> Executor::declined() const {
  std::vector<std::string> operators;
  for (std::size_t i = 0; on_device() && i < state_->lowered.steps.size(); ++i)
    if (!state_->program->step(i).on_device) operators.push_back(state_->lowered.steps[i].kernel->request.op);
  return operators;
}
std::size_t Executor::arena_bytes() const { return state_->memory.bytes; }
std::size_t Executor::weight_bytes() const { return state_->weight_bytes; }
const LoweredGraph& Executor::lowered() const { return state_->lowered; }
const MemoryPlan& Executor::memory() const { return state_->memory; }
const StreamSchedule& Executor::schedule() const { return state_->schedule; }

Status Executor::run_on_device(std::span<const HostTensor> inputs, std::span<HostTensor> outputs,
                               std::vector<StepTime>* times) {
  for (;;) {
    if (times != nullptr) times->clear();
    Status done = state_->run_on_device(inputs, outputs, times);
    if (done || !build_another()) return done;
  }
}

bool Executor::build_another() {
  if (!state_->origin) return false;
  Backend& backend = *state_->origin->library->backend();
  bool has_another_way = false;
  std::vector<std::string> fallbacks;
  for (const DeviceProgram::Failure& failure : state_->program->failures()) {
    const KernelRequest& request = state_->lowered.steps[failure.step].kernel->request;
    if (!backend.reject(request)) continue;
    has_another_way = true;
    fallbacks.push_back(name_of(request) + " failed when it ran (" + failure.error.message +
                        "): it is computed in another way");
  }
  if (!has_another_way) return false;
  auto state = std::make_unique<State>();
  // A device that is lost fails here, too: then the first failure is the one to tell.
  if (!state->build(state_->origin->graph, *state_->origin->library, state_->origin->options)) return false;
  if (const auto& told = state_->origin->options.fallbacks)
    told->insert(told->end(), fallbacks.begin(), fallbacks.end());
  state_ = std::move(state);
  return true;
}

Expected<std::vector<HostTensor>> Executor::run(std::span<const HostTensor> inputs) {
  std::vector<HostTensor> outputs;
  for (const TensorType& type : state_->output_types) outputs.emplace_back(type);
  TASO_RETURN_IF_ERROR(run_into(inputs, outputs));
  return outputs;
}

Status Executor::run_into(std::span<const HostTensor> inputs, std::span<HostTensor> outputs) {
  TASO_RETURN_IF_ERROR(state_->bind(inputs));
  TASO_CHECK(outputs.size() == state_->output_types.size(), "outputs do not fit the graph");
  if (on_device()) return run_on_device(inputs, outputs);
  for (std::size_t i = 0; i < state_->steps.size(); ++i) TASO_RETURN_IF_ERROR(state_->execute(i));
  state_->copy_outputs(outputs);
  return {};
}

Expected<std::vector<StepTime>> Executor::run_timed(std::span<const HostTensor> inputs, std::span<HostTensor> outputs) {
  TASO_RETURN_IF_ERROR(state_->bind(inputs));
  TASO_CHECK(outputs.size() == state_->output_types.size(), "outputs do not fit the graph");
  std::vector<StepTime> times;
  times.reserve(state_->lowered.steps.size());
  if (on_device()) {
    TASO_RETURN_IF_ERROR(run_on_device(inputs, outputs, &times));
    return times;
  }
  for (std::size_t i = 0; i < state_->steps.size(); ++i) {
    StepTime& time = times.emplace_back();
    time.start = std::chrono::steady_clock::now();
    TASO_RETURN_IF_ERROR(state_->execute(i));
    time.end = std::chrono::steady_clock::now();
  }
  state_->copy_outputs(outputs);
  return times;
}

const std::string& Executor::implementation(std::size_t step) const {
  return on_device() ? state_->program->step(step).kernel->implementation()
                     : state_->steps[step].kernel->implementation();
}

Expected<double> Executor::time_on_device(int runs) {
  TASO_CHECK(on_device(), "device time of an executor of the host");
  return state_->program->time(runs);
}

Expected<std::size_t> Executor::measure_step_costs(StepCosts& costs) {
  TASO_CHECK(on_device(), "costs for streams of an executor of the host");
  std::vector<std::size_t> unknown, on_device;
  std::set<std::string> met;
  for (std::size_t i = 0; i < state_->lowered.steps.size(); ++i) {
    const std::string& key = state_->lowered.steps[i].kernel->key;
    if (!state_->program->step(i).on_device) continue;
    on_device.push_back(i);
    if (!costs.find(key) && met.insert(key).second) unknown.push_back(i);
  }
  TASO_ASSIGN(const std::vector<StepCost> measured, state_->program->measure_costs(unknown));
  std::size_t least = 0;  // the step that takes the least time shows best what a wait takes
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    TASO_RETURN_IF_ERROR(costs.record(state_->lowered.steps[unknown[i]].kernel->key, measured[i]));
    if (measured[i].seconds < measured[least].seconds) least = i;
  }
  if (on_device.empty() || costs.wait_seconds()) return unknown.size();
  TASO_ASSIGN(const double wait_s, state_->program->measure_wait(unknown.empty() ? on_device.front() : unknown[least]));
  TASO_RETURN_IF_ERROR(costs.record_wait(wait_s));
  return unknown.size() + 1;
}

Expected<std::vector<KernelProfile>> Executor::profile(std::span<const HostTensor> inputs, int repeat) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::vector<double>> samples;
  TASO_RETURN_IF_ERROR(state_->bind(inputs));
  if (on_device()) {
    std::vector<HostTensor> results;
    for (const TensorType& type : state_->output_types) results.emplace_back(type);
    TASO_RETURN_IF_ERROR(run_on_device(inputs, results));
    samples.resize(state_->lowered.steps.size());
    TASO_ASSIGN(const std::vector<std::vector<double>> seconds, state_->program->time_steps(std::max(repeat, 1)));
    for (std::size_t i = 0; i < samples.size(); ++i)
      for (const double one : seconds[i]) samples[i].push_back(one * 1e6);
  }
  samples.resize(state_->lowered.steps.size());
  for (int round = 0; !on_device() && round <= std::max(repeat, 1); ++round)
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto start = Clock::now();
      TASO_RETURN_IF_ERROR(state_->execute(i));
      const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
      if (round > 0) samples[i].push_back(us);  // the first round warms up
    }
  std::vector<KernelProfile> profiles;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const LoweredStep& step = state_->lowered.steps[i];
    const Measurement measurement = summarize(std::move(samples[i]));
    const DeviceStep* placed = on_device() ? &state_->program->step(i) : nullptr;
    const Kernel& kernel = placed != nullptr ? *placed->kernel : *state_->steps[i].kernel;
    const std::string where = placed != nullptr && !placed->on_device ? "host: " : "";
    profiles.push_back({step.kernel->request.op, where + kernel.implementation(), step.kernel->key, step.node,
                        measurement.median_us, measurement.minimum_us, placed != nullptr ? placed->stream : 0,
                        step.fused});
  }
  return profiles;
}

std::vector<HostTensor> Executor::random_inputs(std::uint64_t seed) const {
  std::vector<HostTensor> tensors;
  for (std::size_t i = 0; i < state_->input_types.size(); ++i)
    tensors.push_back(random_input(state_->input_types[i], state_->input_names[i], state_->input_bounds[i], seed));
  return tensors;
}

Expected<std::vector<HostTensor>> random_inputs(const Graph& graph, const OperatorRegistry& registry,
                                                std::uint64_t seed) {
  const std::vector<std::int64_t> bounds = input_bounds_of(graph, registry);
  std::vector<HostTensor> tensors;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const Node& input = graph.node(graph.inputs()[i]);
    tensors.push_back(random_input(input.outputs[0], input.name, bounds[i], seed));
  }
  return tensors;
}

}  // namespace taso
