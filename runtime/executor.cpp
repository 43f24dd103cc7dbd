#include "runtime/executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/arena.h"
#include "runtime/measure.h"
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

struct Step {
  std::unique_ptr<Kernel> kernel;
  std::vector<Location> inputs, outputs;
};

/// The tensor whose memory holds `tensor`, and where in it.
std::pair<TensorIndex, std::size_t> root_of(const LoweredGraph& lowered, TensorIndex tensor) {
  std::size_t offset = 0;
  for (;;) {
    const LoweredTensor& entry = lowered.tensors[tensor];
    switch (entry.source) {
      case LoweredTensor::Source::view:
      case LoweredTensor::Source::piece:
        offset += static_cast<std::size_t>(entry.offset);
        tensor = entry.index;
        continue;
      case LoweredTensor::Source::input:
      case LoweredTensor::Source::weight:
      case LoweredTensor::Source::kernel:
      case LoweredTensor::Source::pieces:
        return {tensor, offset};
    }
  }
}

bool is_aligned(std::span<const std::byte> bytes, std::size_t width) {
  return reinterpret_cast<std::uintptr_t>(bytes.data()) % std::max<std::size_t>(width, 1) == 0;
}

}  // namespace

struct Executor::State {
  LoweredGraph lowered;
  int threads = 1;
  std::vector<TensorType> input_types, output_types;
  std::vector<std::string> input_names;
  std::vector<char> input_used;
  std::vector<std::int64_t> input_bounds;  ///< Of random integers.
  std::vector<Step> steps;
  std::vector<Location> outputs;
  std::vector<std::shared_ptr<const PackedWeight>> weights;
  std::size_t weight_bytes = 0;
  AlignedBuffer arena, workspace;

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
    Step& step = steps[index];
    step_inputs.clear();
    step_outputs.clear();
    for (const Location& location : step.inputs) step_inputs.push_back(read(location));
    for (const Location& location : step.outputs) step_outputs.push_back(arena.data() + location.offset);
    return step.kernel->execute({step_inputs, step_outputs, workspace.data()});
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

  /// The weight that step input `position` reads, as its kernel wants it.
  Expected<std::shared_ptr<const PackedWeight>> weight(const Graph& graph, const std::vector<Hash128>& hashes,
                                                       const KernelLibrary& library, WeightStore& store,
                                                       const LoweredTensor& tensor, const Kernel* kernel,
                                                       std::size_t position) const {
    const std::string format = kernel != nullptr ? kernel->packed_format(position) : "";
    Hasher key;
    key.add(hashes[tensor.value.node]).add(tensor.value.port);
    key.add(static_cast<std::uint64_t>(tensor.layout)).add(format);
    for (const std::int64_t extent : tensor.type.shape) key.add(extent);
    return store.get(key.finish(), [&]() -> Expected<std::shared_ptr<const PackedWeight>> {
      TASO_ASSIGN(const auto constants, evaluate_weights(graph, std::span(&tensor.value, 1), library, threads));
      const std::shared_ptr<const ConstantData>& constant = constants[0];
      auto packed = std::make_shared<PackedWeight>();
      const bool moves = !same_bytes(tensor.type.shape, tensor.layout, Layout::row_major);
      if (format.empty() && !moves && constant->is_dense() &&
          is_aligned(constant->dense_bytes(), size_of(tensor.type.element))) {
        packed->constant = constant;
        return std::shared_ptr<const PackedWeight>(packed);
      }
      AlignedBuffer plain;
      const std::byte* bytes = nullptr;
      if (constant->is_dense() && is_aligned(constant->dense_bytes(), size_of(tensor.type.element))) {
        bytes = constant->dense_bytes().data();
      } else {
        const std::vector<std::byte> copy = constant->to_bytes();
        plain = AlignedBuffer(copy.size());
        if (!copy.empty()) std::memcpy(plain.data(), copy.data(), copy.size());
        bytes = plain.data();
      }
      if (moves) {
        KernelRequest request;
        request.op = reorder_op;
        request.inputs = {{tensor.type, Layout::row_major, false}};
        request.outputs = {{tensor.type, tensor.layout, false}};
        TASO_ASSIGN(const std::unique_ptr<Kernel> reorder, library.create(request));
        AlignedBuffer moved(static_cast<std::size_t>(tensor.type.bytes()));
        AlignedBuffer scratch(reorder->workspace_bytes());
        std::byte* target = moved.data();
        TASO_RETURN_IF_ERROR(reorder->execute({std::span(&bytes, 1), std::span(&target, 1), scratch.data()}));
        plain = std::move(moved);
        bytes = plain.data();
      }
      if (format.empty()) {
        packed->buffer = std::move(plain);
      } else {
        packed->buffer = AlignedBuffer(kernel->packed_bytes(position));
        kernel->pack(position, bytes, packed->buffer.data());
      }
      return std::shared_ptr<const PackedWeight>(packed);
    });
  }

  Status build(const Graph& graph, const KernelLibrary& library, const ExecutorOptions& options) {
    const bool channels_last = options.channels_last && library.set() == KernelSet::cpu;
    TASO_ASSIGN(lowered, lower(graph, library.registry(), {.channels_last = channels_last, .threads = options.threads},
                               options.layouts.get()));
    threads = options.threads;
    for (const NodeId id : graph.inputs()) {
      input_types.push_back(graph.node(id).outputs[0]);
      input_names.push_back(graph.node(id).name);
    }
    input_used.assign(input_types.size(), 0);
    input_bounds.assign(input_types.size(), 2);
    const std::shared_ptr<WeightStore> store = options.weights ? options.weights : std::make_shared<WeightStore>();
    const std::vector<Hash128> hashes = weight_hashes(graph);

    // Lifetimes of the tensors that need memory of their own.
    constexpr std::uint32_t never = ~std::uint32_t{0};
    std::vector<BufferLifetime> lifetimes(lowered.tensors.size(), {0, never, 0});
    const auto touch = [&](TensorIndex tensor, std::uint32_t when) {
      const TensorIndex root = root_of(lowered, tensor).first;
      const LoweredTensor& entry = lowered.tensors[root];
      if (entry.source == LoweredTensor::Source::input) input_used[entry.index] = 1;
      if (entry.source != LoweredTensor::Source::kernel && entry.source != LoweredTensor::Source::pieces) return;
      lifetimes[root].first = std::min(lifetimes[root].first, when);
      lifetimes[root].last = std::max(lifetimes[root].last, when);
    };
    for (std::uint32_t i = 0; i < lowered.steps.size(); ++i) {
      for (const TensorIndex tensor : lowered.steps[i].inputs) touch(tensor, i);
      for (const TensorIndex tensor : lowered.steps[i].outputs) touch(tensor, i);
    }
    for (const TensorIndex tensor : lowered.outputs) touch(tensor, static_cast<std::uint32_t>(lowered.steps.size()));
    std::vector<BufferLifetime> buffers;
    std::vector<std::size_t> buffer_of(lowered.tensors.size(), 0);
    for (TensorIndex i = 0; i < lowered.tensors.size(); ++i) {
      if (lifetimes[i].first == never) continue;
      lifetimes[i].bytes = static_cast<std::size_t>(lowered.tensors[i].type.bytes());
      buffer_of[i] = buffers.size();
      buffers.push_back(lifetimes[i]);
    }
    const ArenaPlan plan = plan_arena(buffers);
    arena = AlignedBuffer(plan.bytes);

    const auto locate = [&](TensorIndex tensor) {
      const auto [root, offset] = root_of(lowered, tensor);
      const LoweredTensor& entry = lowered.tensors[root];
      if (entry.source == LoweredTensor::Source::input)
        return Location{Location::Base::input, entry.index, offset, nullptr};
      return Location{Location::Base::arena, 0, plan.offsets[buffer_of[root]] + offset, nullptr};
    };
    const auto locate_weight = [&](const LoweredTensor& tensor, const Kernel* kernel,
                                   std::size_t position) -> Expected<Location> {
      TASO_ASSIGN(std::shared_ptr<const PackedWeight> packed,
                  weight(graph, hashes, library, *store, tensor, kernel, position));
      if (std::find(weights.begin(), weights.end(), packed) == weights.end()) {
        weights.push_back(packed);
        weight_bytes += packed->constant ? packed->constant->dense_bytes().size() : packed->buffer.size();
      }
      return Location{Location::Base::fixed, 0, 0, packed->data()};
    };
    std::size_t workspace_bytes = 0;
    for (const LoweredStep& planned : lowered.steps) {
      Step step;
      TASO_ASSIGN(step.kernel, library.create(planned.kernel->request));
      workspace_bytes = std::max(workspace_bytes, step.kernel->workspace_bytes());
      for (std::size_t i = 0; i < planned.inputs.size(); ++i) {
        const LoweredTensor& tensor = lowered.tensors[planned.inputs[i]];
        if (tensor.source == LoweredTensor::Source::weight) {
          TASO_ASSIGN(const Location location, locate_weight(tensor, step.kernel.get(), i));
          step.inputs.push_back(location);
        } else {
          step.inputs.push_back(locate(planned.inputs[i]));
        }
      }
      for (const TensorIndex tensor : planned.outputs) step.outputs.push_back(locate(tensor));
      if (planned.kernel->request.op == "gather") note_index(planned);
      steps.push_back(std::move(step));
    }
    workspace = AlignedBuffer(workspace_bytes);
    for (std::size_t i = 0; i < lowered.outputs.size(); ++i) {
      const LoweredTensor& tensor = lowered.tensors[lowered.outputs[i]];
      output_types.push_back(graph.type(graph.outputs()[i]));
      if (tensor.source == LoweredTensor::Source::weight) {
        TASO_ASSIGN(const Location location, locate_weight(tensor, nullptr, 0));
        outputs.push_back(location);
      } else {
        outputs.push_back(locate(lowered.outputs[i]));
      }
    }
    return {};
  }

  /// Remembers the range of indices if a graph input is one.
  void note_index(const LoweredStep& gather) {
    const LoweredTensor& index = lowered.tensors[root_of(lowered, gather.inputs[1]).first];
    if (index.source != LoweredTensor::Source::input) return;
    const KernelRequest& request = gather.kernel->request;
    const Shape& shape = request.inputs[0].type.shape;
    std::int64_t axis = request.attributes.integer("axis");
    if (axis < 0) axis += static_cast<std::int64_t>(shape.size());
    const std::int64_t extent = shape[static_cast<std::size_t>(axis)];
    std::int64_t& bound = input_bounds[index.index];
    bound = index_inputs_.size() > index.index && index_inputs_[index.index] != 0 ? std::min(bound, extent) : extent;
    index_inputs_.resize(input_types.size(), 0);
    index_inputs_[index.index] = 1;
  }
  std::vector<char> index_inputs_;
};

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
std::size_t Executor::arena_bytes() const { return state_->arena.size(); }
std::size_t Executor::weight_bytes() const { return state_->weight_bytes; }
const LoweredGraph& Executor::lowered() const { return state_->lowered; }

Expected<std::vector<HostTensor>> Executor::run(std::span<const HostTensor> inputs) {
  std::vector<HostTensor> outputs;
  for (const TensorType& type : state_->output_types) outputs.emplace_back(type);
  TASO_RETURN_IF_ERROR(run_into(inputs, outputs));
  return outputs;
}

Status Executor::run_into(std::span<const HostTensor> inputs, std::span<HostTensor> outputs) {
  TASO_RETURN_IF_ERROR(state_->bind(inputs));
  TASO_CHECK(outputs.size() == state_->outputs.size(), "outputs do not fit the graph");
  for (std::size_t i = 0; i < state_->steps.size(); ++i) TASO_RETURN_IF_ERROR(state_->execute(i));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::span<std::byte> target = outputs[i].bytes();
    TASO_CHECK(outputs[i].type() == state_->output_types[i], "an output does not fit the graph");
    if (!target.empty()) std::memcpy(target.data(), state_->read(state_->outputs[i]), target.size());
  }
  return {};
}

Expected<std::vector<KernelProfile>> Executor::profile(std::span<const HostTensor> inputs, int repeat) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::vector<double>> samples(state_->steps.size());
  TASO_RETURN_IF_ERROR(state_->bind(inputs));
  for (int round = 0; round <= std::max(repeat, 1); ++round) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto start = Clock::now();
      TASO_RETURN_IF_ERROR(state_->execute(i));
      const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
      if (round > 0) samples[i].push_back(us);  // the first round warms up
    }
  }
  std::vector<KernelProfile> profiles;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const LoweredStep& step = state_->lowered.steps[i];
    const Measurement measurement = summarize(std::move(samples[i]));
    profiles.push_back({step.kernel->request.op, state_->steps[i].kernel->implementation(), step.kernel->key, step.node,
                        measurement.median_us, measurement.minimum_us});
  }
  return profiles;
}

std::vector<HostTensor> Executor::random_inputs(std::uint64_t seed) const {
  std::vector<HostTensor> tensors;
  for (std::size_t i = 0; i < state_->input_types.size(); ++i) {
    const TensorType& type = state_->input_types[i];
    HostTensor tensor;
    if (type.known && size_of(type.element) > 0) {
      tensor = HostTensor(type);
      fill_random(tensor, seed, state_->input_names[i], state_->input_bounds[i]);
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace taso
