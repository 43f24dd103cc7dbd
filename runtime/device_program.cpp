#include "runtime/device_program.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "graph/reals.h"
#include "runtime/storage.h"

namespace taso {
namespace {

std::size_t bytes_of(const TensorType& type) { return static_cast<std::size_t>(type.bytes()); }
std::size_t elements_of(const TensorType& type) { return static_cast<std::size_t>(type.elements()); }

}  // namespace

Expected<DeviceProgram> DeviceProgram::create(std::shared_ptr<Backend> backend, std::vector<DeviceStep> steps,
                                              std::size_t arena_bytes, ElementType float_storage) {
  DeviceProgram program;
  program.backend_ = std::move(backend);
  program.storage_ = float_storage;
  std::size_t workspace_bytes = 0, host_workspace_bytes = 0;
  for (const DeviceStep& step : steps) {
    std::size_t& bytes = step.on_device ? workspace_bytes : host_workspace_bytes;
    bytes = std::max(bytes, step.kernel->workspace_bytes());
  }
  TASO_ASSIGN(program.arena_, DeviceBuffer::create(program.backend_, std::max<std::size_t>(arena_bytes, 1)));
  TASO_ASSIGN(program.workspace_, DeviceBuffer::create(program.backend_, std::max<std::size_t>(workspace_bytes, 1)));
  program.host_workspace_ = AlignedBuffer(host_workspace_bytes);
  for (DeviceStep& step : steps) {
    const std::size_t index = program.steps_.size();
    const bool joins = step.on_device && !program.parts_.empty() && program.on_device(program.parts_.back());
    program.steps_.emplace_back();
    program.steps_.back().step = std::move(step);
    TASO_RETURN_IF_ERROR(program.prepare(program.steps_.back()));
    if (joins)
      program.parts_.back().last = index + 1;
    else
      program.parts_.push_back({index, index + 1, nullptr});
  }
  return program;
}

/// Fixes the addresses that the kernel gets at every execution.
Status DeviceProgram::prepare(Step& step) {
  const auto stage = [&](const TensorType& type) {
    Staging staging;
    staging.stored = AlignedBuffer(bytes_of(type));
    if (storage_ != ElementType::f32 && type.element == storage_)
      staging.widened = AlignedBuffer(elements_of(type) * sizeof(float));
    return staging;
  };
  for (const DeviceTensor& tensor : step.step.inputs) {
    const std::byte* address = tensor.weight != nullptr ? tensor.weight : arena_.data() + tensor.offset;
    if (!step.step.on_device) {
      step.staged_inputs.push_back(tensor.weight != nullptr ? Staging{} : stage(tensor.type));
      if (tensor.weight == nullptr) address = step.staged_inputs.back().kernel_side();
    }
    step.inputs.push_back(address);
  }
  for (const DeviceTensor& tensor : step.step.outputs) {
    std::byte* address = arena_.data() + tensor.offset;
    if (!step.step.on_device) {
      step.staged_outputs.push_back(stage(tensor.type));
      address = step.staged_outputs.back().kernel_side();
    }
    step.outputs.push_back(address);
  }
  return {};
}

Status DeviceProgram::upload(const HostTensor& tensor, const DeviceTensor& place) {
  if (tensor.type().element == place.type.element)
    return backend_->upload(tensor.bytes(), arena_.data() + place.offset);
  const std::size_t bytes = bytes_of(place.type);
  if (transfer_.size() < bytes) transfer_ = AlignedBuffer(bytes);
  convert_reals(tensor.bytes().data(), tensor.type().element, transfer_.data(), place.type.element,
                elements_of(place.type));
  return backend_->upload({transfer_.data(), bytes}, arena_.data() + place.offset);
}

Status DeviceProgram::download(const DeviceTensor& place, HostTensor& tensor) {
  if (tensor.type().element == place.type.element)
    return backend_->download(arena_.data() + place.offset, tensor.bytes());
  const std::size_t bytes = bytes_of(place.type);
  if (transfer_.size() < bytes) transfer_ = AlignedBuffer(bytes);
  TASO_RETURN_IF_ERROR(backend_->download(arena_.data() + place.offset, {transfer_.data(), bytes}));
  convert_reals(transfer_.data(), place.type.element, tensor.bytes().data(), tensor.type().element,
                elements_of(place.type));
  return {};
}

Status DeviceProgram::launch(Step& step) {
  return step.step.kernel->execute({step.inputs, step.outputs, workspace_.data()});
}

Status DeviceProgram::run_on_host(Step& step) {
  TASO_RETURN_IF_ERROR(backend_->synchronize());  // an error of a device step is not to be read on
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    const DeviceTensor& tensor = step.step.inputs[i];
    if (tensor.weight != nullptr) continue;
    Staging& staging = step.staged_inputs[i];
    TASO_RETURN_IF_ERROR(
        backend_->download(arena_.data() + tensor.offset, {staging.stored.data(), staging.stored.size()}));
    if (staging.widened.size() > 0)
      convert_reals(staging.stored.data(), storage_, staging.widened.data(), ElementType::f32,
                    elements_of(tensor.type));
  }
  TASO_RETURN_IF_ERROR(step.step.kernel->execute({step.inputs, step.outputs, host_workspace_.data()}));
  for (std::size_t i = 0; i < step.outputs.size(); ++i) {
    const DeviceTensor& tensor = step.step.outputs[i];
    Staging& staging = step.staged_outputs[i];
    if (staging.widened.size() > 0)
      convert_reals(staging.widened.data(), ElementType::f32, staging.stored.data(), storage_,
                    elements_of(tensor.type));
    TASO_RETURN_IF_ERROR(
        backend_->upload({staging.stored.data(), staging.stored.size()}, arena_.data() + tensor.offset));
  }
  return {};
}

Status DeviceProgram::run() {
  if (recorded_) {
    TASO_RETURN_IF_ERROR(replay());
    return backend_->synchronize();
  }
  for (Step& step : steps_) TASO_RETURN_IF_ERROR(step.step.on_device ? launch(step) : run_on_host(step));
  TASO_RETURN_IF_ERROR(backend_->synchronize());
  for (Part& part : parts_) {
    if (!on_device(part)) continue;
    TASO_ASSIGN(part.recording, backend_->record([&]() -> Status {
      for (std::size_t i = part.first; i < part.last; ++i) TASO_RETURN_IF_ERROR(launch(steps_[i]));
      return {};
    }));
  }
  recorded_ = true;
  return {};
}

Status DeviceProgram::run_timed(std::vector<StepTime>& times) {
  for (Step& step : steps_) {
    StepTime& time = times.emplace_back();
    time.start = std::chrono::steady_clock::now();
    TASO_RETURN_IF_ERROR(step.step.on_device ? launch(step) : run_on_host(step));
    TASO_RETURN_IF_ERROR(backend_->synchronize());
    time.end = std::chrono::steady_clock::now();
  }
  return {};
}

Status DeviceProgram::replay() {
  for (Part& part : parts_)
    TASO_RETURN_IF_ERROR(part.recording ? part.recording->replay() : run_on_host(steps_[part.first]));
  return {};
}

Expected<double> DeviceProgram::time(int runs) {
  TASO_CHECK(recorded_, "a program is timed before it was run");
  runs = std::max(runs, 1);
  TASO_ASSIGN(const double seconds, backend_->time([&]() -> Status {
    for (int i = 0; i < runs; ++i) TASO_RETURN_IF_ERROR(replay());
    return {};
  }));
  return seconds / runs;
}

/// Memory out of which the launches of one step get other weights each time, of more bytes than the last-level cache
/// has, where weights do not stay there from run to run. Its contents are the program's weights, over and over: what
/// launches compute with them is of no use.
class DeviceProgram::WeightPool {
 public:
  static Expected<WeightPool> create(const DeviceProgram& program) {
    WeightPool pool;
    std::map<const std::byte*, std::size_t> weights;
    for (const Step& step : program.steps_)
      for (std::size_t i = 0; i < step.inputs.size(); ++i)
        if (const std::size_t bytes = exchangeable_bytes(step.step, i); bytes > 0) weights[step.inputs[i]] = bytes;
    std::size_t sum = 0, largest = 0;
    for (const auto& [address, bytes] : weights) {
      sum += bytes;
      largest = std::max(largest, bytes);
    }
    Backend& backend = *program.backend_;
    if (sum == 0 || cached_tenths(backend, static_cast<double>(sum + program.arena_.size())) == 10) return pool;
    const std::size_t size = 2 * backend.cache_bytes() + largest;
    TASO_ASSIGN(pool.memory_, DeviceBuffer::create(program.backend_, size));
    for (std::size_t filled = 0; filled < size;)
      for (const auto& [address, bytes] : weights) {
        const std::size_t part = std::min(bytes, size - filled);
        TASO_RETURN_IF_ERROR(backend.copy(address, pool.memory_.data() + filled, part));
        filled += part;
      }
    TASO_RETURN_IF_ERROR(backend.synchronize());
    return pool;
  }

  /// The step's inputs, with weights from where none was read lately.
  std::vector<const std::byte*> inputs_of(const Step& step) {
    std::vector<const std::byte*> inputs = step.inputs;
    for (std::size_t i = 0; i < inputs.size() && memory_.size() > 0; ++i) {
      const std::size_t bytes = exchangeable_bytes(step.step, i);
      if (bytes == 0) continue;
      if (next_ + bytes > memory_.size()) next_ = 0;
      inputs[i] = memory_.data() + next_;
      next_ += (bytes + 255) / 256 * 256;
    }
    return inputs;
  }

 private:
  /// The size of an input that is a weight of floats, in whose place there may be any others; 0 if it is none.
  static std::size_t exchangeable_bytes(const DeviceStep& step, std::size_t input) {
    const DeviceTensor& tensor = step.inputs[input];
    const ElementType element = tensor.type.element;
    if (!step.on_device || tensor.weight == nullptr ||
        (element != ElementType::f32 && element != ElementType::f16 && element != ElementType::bf16))
      return 0;
    return step.kernel->packed_format(input).empty() ? bytes_of(tensor.type) : step.kernel->packed_bytes(input);
  }

  DeviceBuffer memory_;  ///< Empty where weights stay in the cache.
  std::size_t next_ = 0;
};

Expected<std::vector<double>> DeviceProgram::time_on_device(Step& step, WeightPool& pool, int samples) {
  constexpr double aim_s = 2e-3;
  constexpr int most_launches = 20;
  TASO_ASSIGN(const double once, backend_->time([&] { return launch(step); }));
  const int launches = std::clamp(static_cast<int>(aim_s / std::max(once, 1e-9)), 1, most_launches);
  std::vector<std::vector<const std::byte*>> inputs;
  for (int i = 1; i < launches; ++i) inputs.push_back(pool.inputs_of(step));
  inputs.push_back(step.inputs);  // in the end the results are right: steps that follow may read indices
  TASO_ASSIGN(const std::unique_ptr<Recording> recording, backend_->record([&]() -> Status {
    for (const std::vector<const std::byte*>& of_launch : inputs)
      TASO_RETURN_IF_ERROR(step.step.kernel->execute({of_launch, step.outputs, workspace_.data()}));
    return {};
  }));
  std::vector<double> seconds;
  for (int i = 0; i <= samples; ++i) {  // the first warms up
    TASO_ASSIGN(const double all, backend_->time([&] { return recording->replay(); }));
    if (i > 0) seconds.push_back(all / launches);
  }
  return seconds;
}

Expected<std::vector<double>> DeviceProgram::time_on_host(Step& step, int samples) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  for (int i = 0; i <= samples; ++i) {  // the first warms up
    TASO_RETURN_IF_ERROR(backend_->synchronize());
    const auto start = Clock::now();
    TASO_RETURN_IF_ERROR(run_on_host(step));
    if (i > 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  return seconds;
}

Expected<std::vector<std::vector<double>>> DeviceProgram::time_steps(int samples) {
  TASO_CHECK(recorded_, "a program is timed before it was run");
  TASO_ASSIGN(WeightPool pool, WeightPool::create(*this));
  std::vector<std::vector<double>> seconds;
  for (Step& step : steps_) {
    TASO_ASSIGN(std::vector<double> of_step,
                step.step.on_device ? time_on_device(step, pool, samples) : time_on_host(step, samples));
    seconds.push_back(std::move(of_step));
  }
  return seconds;
}

}  // namespace taso
