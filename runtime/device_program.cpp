#include "runtime/device_program.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "graph/reals.h"
#include "runtime/measure.h"
#include "runtime/storage.h"
#include "runtime/stream_schedule.h"

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
  std::size_t host_workspace_bytes = 0;
  std::vector<std::size_t> workspace_bytes(1, 1);
  for (const DeviceStep& step : steps) {
    TASO_CHECK(step.stream < program.backend_->streams(), "a stream that the device does not have");
    if (step.on_device && step.stream >= workspace_bytes.size()) workspace_bytes.resize(step.stream + 1, 1);
    std::size_t& bytes = step.on_device ? workspace_bytes[step.stream] : host_workspace_bytes;
    bytes = std::max(bytes, step.kernel->workspace_bytes());
  }
  TASO_ASSIGN(program.arena_, DeviceBuffer::create(program.backend_, std::max<std::size_t>(arena_bytes, 1)));
  for (const std::size_t bytes : workspace_bytes) {
    TASO_ASSIGN(DeviceBuffer workspace, DeviceBuffer::create(program.backend_, bytes));
    program.workspaces_.push_back(std::move(workspace));
  }
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
    for (const std::uint32_t awaited : program.steps_.back().step.waits) {
      TASO_CHECK(awaited >= program.parts_.back().first && awaited < index,
                 "a wait for what is no earlier step of the run");
      program.steps_[awaited].is_awaited = true;
    }
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

Status DeviceProgram::launch(Step& step) { return launch(step, step.inputs, 0); }

Status DeviceProgram::launch(Step& step, std::span<const std::byte* const> inputs, std::size_t stream) {
  return step.step.kernel->execute({inputs, step.outputs, workspaces_[step.step.stream].data(), stream});
}

Status DeviceProgram::launch_on_streams(const Part& part) {
  constexpr std::size_t beginning = 0;  // a mark, as are the numbers of steps in the part, from 1 on
  const auto mark_of = [&](std::size_t step) { return step - part.first + 1; };
  std::vector<std::size_t> last(workspaces_.size(), part.last);  // of each stream
  for (std::size_t i = part.first; i < part.last; ++i) last[steps_[i].step.stream] = i;
  const auto is_joined = [&](std::size_t stream) { return stream != 0 && last[stream] != part.last; };
  std::vector<char> takes_part(workspaces_.size(), 0);
  takes_part[0] = 1;
  const bool forks = std::any_of(last.begin() + 1, last.end(), [&](std::size_t step) { return step != part.last; });
  if (forks) TASO_RETURN_IF_ERROR(backend_->mark(0, beginning));
  for (std::size_t i = part.first; i < part.last; ++i) {
    Step& step = steps_[i];
    const std::size_t stream = step.step.stream;
    if (takes_part[stream] == 0 && step.step.waits.empty()) TASO_RETURN_IF_ERROR(backend_->wait(stream, beginning));
    takes_part[stream] = 1;
    for (const std::uint32_t awaited : step.step.waits) TASO_RETURN_IF_ERROR(backend_->wait(stream, mark_of(awaited)));
    TASO_RETURN_IF_ERROR(launch(step, step.inputs, stream));
    const bool is_end = is_joined(stream) && last[stream] == i;
    if (step.is_awaited || is_end) TASO_RETURN_IF_ERROR(backend_->mark(stream, mark_of(i)));
  }
  for (std::size_t stream = 1; stream < last.size(); ++stream)
    if (is_joined(stream)) TASO_RETURN_IF_ERROR(backend_->wait(0, mark_of(last[stream])));
  return {};
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

Status DeviceProgram::run_alone(Step& step) {
  Status done = step.step.on_device ? launch(step) : run_on_host(step);
  if (done) done = backend_->synchronize();
  if (!done && step.step.on_device && done.error().code == ErrorCode::device_unavailable)
    failures_.push_back({static_cast<std::size_t>(&step - steps_.data()), done.error()});
  return done;
}

void DeviceProgram::note_run() const {
  for (const Step& step : steps_)
    if (step.step.on_device) step.step.kernel->note_run();
}

Status DeviceProgram::run_each(bool seeks_failures) {
  Status first;
  for (Step& step : steps_) {
    const std::size_t known = failures_.size();
    const Status done = run_alone(step);
    if (done) continue;
    if (first) first = done;
    // After the first failure steps work on what was not computed: only what the device cannot execute counts. A device
    // on which nothing runs any more says so whenever it is waited for.
    const bool goes_on = !failures_.empty() && (failures_.size() == known || backend_->synchronize());
    if (!seeks_failures || !goes_on) return first;
  }
  return first;
}

Status DeviceProgram::run(bool seeks_failures) {
  if (recorded_) {
    TASO_RETURN_IF_ERROR(replay());
    TASO_RETURN_IF_ERROR(backend_->synchronize());
    note_run();
    return {};
  }
  failures_.clear();
  TASO_RETURN_IF_ERROR(run_each(seeks_failures));
  note_run();
  for (Part& part : parts_) {
    if (!on_device(part)) continue;
    TASO_ASSIGN(part.recording, backend_->record([&] { return launch_on_streams(part); }));
  }
  recorded_ = true;
  return {};
}

Status DeviceProgram::run_timed(std::vector<StepTime>& times) {
  failures_.clear();
  for (Step& step : steps_) {
    StepTime& time = times.emplace_back();
    time.start = std::chrono::steady_clock::now();
    TASO_RETURN_IF_ERROR(run_alone(step));
    time.end = std::chrono::steady_clock::now();
  }
  note_run();
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
    for (const std::vector<const std::byte*>& of_launch : inputs) TASO_RETURN_IF_ERROR(launch(step, of_launch, 0));
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

/// Launches of one step that may run at the same time: each writes to memory of its own.
class DeviceProgram::StepCopies {
 public:
  static Expected<StepCopies> create(const DeviceProgram& program, const Step& step, std::size_t count) {
    StepCopies copies(step);
    for (std::size_t i = 0; i < count; ++i) {
      Copy& copy = copies.copies_.emplace_back();
      for (const DeviceTensor& output : step.step.outputs) {
        TASO_ASSIGN(DeviceBuffer memory,
                    DeviceBuffer::create(program.backend_, std::max<std::size_t>(output.spanned_bytes, 1)));
        copy.outputs.push_back(memory.data());
        copy.memory.push_back(std::move(memory));
      }
      const std::size_t workspace_bytes = std::max<std::size_t>(step.step.kernel->workspace_bytes(), 1);
      TASO_ASSIGN(copy.workspace, DeviceBuffer::create(program.backend_, workspace_bytes));
    }
    return copies;
  }

  Status launch(std::size_t copy, std::size_t stream) const {
    return step_->step.kernel->execute({step_->inputs, copies_[copy].outputs, copies_[copy].workspace.data(), stream});
  }

 private:
  struct Copy {
    std::vector<DeviceBuffer> memory;
    std::vector<std::byte*> outputs;
    DeviceBuffer workspace;
  };
  explicit StepCopies(const Step& step) : step_(&step) {}
  const Step* step_;
  std::vector<Copy> copies_;
};

/// The median of some replays of what `launches` queues.
Expected<double> DeviceProgram::time_recorded(const std::function<Status()>& launches) {
  constexpr int samples = 5;
  TASO_ASSIGN(const std::unique_ptr<Recording> recording, backend_->record(launches));
  std::vector<double> seconds;
  for (int i = 0; i <= samples; ++i) {  // the first warms up
    TASO_ASSIGN(const double one, backend_->time([&] { return recording->replay(); }));
    if (i > 0) seconds.push_back(one);
  }
  return summarize(std::move(seconds)).median_us;  // in the unit of the samples
}

Expected<double> DeviceProgram::measure_share(Step& step, double once_s) {
  constexpr double aim_s = 1e-3;
  constexpr std::size_t most_rounds = 16;
  const std::size_t streams = std::min(backend_->streams(), default_streams);
  if (streams == 1) return 1.0;
  TASO_ASSIGN(const StepCopies copies, StepCopies::create(*this, step, streams));
  const std::size_t rounds =
      std::clamp<std::size_t>(static_cast<std::size_t>(aim_s / std::max(once_s, 1e-9)) / streams, 1, most_rounds);
  TASO_ASSIGN(const double in_sequence, time_recorded([&]() -> Status {
                for (std::size_t round = 0; round < rounds; ++round)
                  for (std::size_t copy = 0; copy < streams; ++copy) TASO_RETURN_IF_ERROR(copies.launch(copy, 0));
                return {};
              }));
  TASO_ASSIGN(const double at_once, time_recorded([&]() -> Status {
                TASO_RETURN_IF_ERROR(backend_->mark(0, 0));
                for (std::size_t stream = 1; stream < streams; ++stream)
                  TASO_RETURN_IF_ERROR(backend_->wait(stream, 0));
                for (std::size_t round = 0; round < rounds; ++round)
                  for (std::size_t stream = 0; stream < streams; ++stream)
                    TASO_RETURN_IF_ERROR(copies.launch(stream, stream));
                for (std::size_t stream = 1; stream < streams; ++stream) {
                  TASO_RETURN_IF_ERROR(backend_->mark(stream, stream));
                  TASO_RETURN_IF_ERROR(backend_->wait(0, stream));
                }
                return {};
              }));
  return std::clamp(at_once / std::max(in_sequence, 1e-12), 1.0 / static_cast<double>(streams), 1.0);
}

Expected<std::vector<StepCost>> DeviceProgram::measure_costs(std::span<const std::size_t> steps) {
  constexpr int samples = 5;
  TASO_CHECK(recorded_, "a program is timed before it was run");
  TASO_ASSIGN(WeightPool pool, WeightPool::create(*this));
  std::vector<StepCost> costs;
  for (const std::size_t index : steps) {
    Step& step = steps_[index];
    TASO_CHECK(step.step.on_device, "the cost of a host step to the device");
    TASO_ASSIGN(std::vector<double> seconds, time_on_device(step, pool, samples));
    StepCost& cost = costs.emplace_back();
    cost.seconds = summarize(std::move(seconds)).median_us;  // in the unit of the samples
    TASO_ASSIGN(cost.share, measure_share(step, cost.seconds));
  }
  return costs;
}

Expected<double> DeviceProgram::measure_wait(std::size_t index) {
  constexpr std::size_t launches = 32;
  TASO_CHECK(recorded_, "a program is timed before it was run");
  if (backend_->streams() == 1) return 0.0;
  TASO_ASSIGN(const StepCopies copies, StepCopies::create(*this, steps_[index], 2));
  TASO_ASSIGN(const double without, time_recorded([&]() -> Status {
                for (std::size_t i = 0; i < launches; ++i) TASO_RETURN_IF_ERROR(copies.launch(i % 2, 0));
                return {};
              }));
  TASO_ASSIGN(const double with, time_recorded([&]() -> Status {
                for (std::size_t i = 0; i < launches; ++i) {
                  TASO_RETURN_IF_ERROR(copies.launch(i % 2, i % 2));
                  TASO_RETURN_IF_ERROR(backend_->mark(i % 2, i % 2));
                  TASO_RETURN_IF_ERROR(backend_->wait((i + 1) % 2, i % 2));
                }
                return {};
              }));
  return std::max(with - without, 0.0) / static_cast<double>(launches);
}

}  // namespace taso
