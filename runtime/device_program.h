/// A lowered graph in the memory of a backend: what Executor runs there.
///
/// Temporaries, graph inputs and outputs lie in one arena of device memory; the device's kernels of each stream share
/// one workspace.
/// Steps that the backend declines run on the host: their operands are downloaded, widened to f32 where the device
/// keeps floats narrower, and their results uploaded. The first run queues every kernel (which is also when libraries
/// load what they need) and waits for it, one after the other, so that one that fails is known; then each maximal run
/// of device steps is recorded once, on the streams that the steps name, and later runs replay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph/tensor_type.h"
#include "runtime/backend.h"
#include "runtime/kernel.h"
#include "runtime/step_cost.h"
#include "runtime/step_time.h"
#include "runtime/tensor.h"
#include "support/status.h"

namespace taso {

/// A tensor that a step reads or writes.
struct DeviceTensor {
  TensorType type;         ///< As stored in the arena.
  std::size_t offset = 0;  ///< In the arena.
  /// Not null: it is a weight, at this address, of the device or, if a host step reads it, of the host.
  const std::byte* weight = nullptr;
  /// Of an output: from its first byte to its last, those between that are of other tensors included.
  std::size_t spanned_bytes = 0;
};

struct DeviceStep {
  std::unique_ptr<Kernel> kernel;
  bool on_device = true;
  std::vector<DeviceTensor> inputs, outputs;
  std::uint32_t stream = 0;
  /// Earlier steps of the same run of device steps that it waits for on other streams (ScheduledStep::waits).
  std::vector<std::uint32_t> waits;
};

class DeviceProgram {
 public:
  /// `float_storage`: f32, or the type that host steps widen. What weights point to must outlive the program. Tensors
  /// of steps that may run at the same time do not overlap where one of them is written.
  [[nodiscard]] static Expected<DeviceProgram> create(std::shared_ptr<Backend> backend, std::vector<DeviceStep> steps,
                                                      std::size_t arena_bytes, ElementType float_storage);

  /// Copies a tensor of the same shape into the arena, or out of it, converting f32 to the storage and back.
  [[nodiscard]] Status upload(const HostTensor& tensor, const DeviceTensor& place);
  [[nodiscard]] Status download(const DeviceTensor& place, HostTensor& tensor);

  /// All steps, on what was uploaded last; waits for their end. With `seeks_failures`, a first run that fails goes on
  /// after the steps that the device could not execute, for failures() to know all of them: not for programs with steps
  /// that reach beyond the device.
  [[nodiscard]] Status run(bool seeks_failures = false);
  /// The same, one step after the other, with the times of each by the host's clock: every step is waited for.
  [[nodiscard]] Status run_timed(std::vector<StepTime>& times);
  /// Seconds on the device of one of `runs` runs, one after the other, without transfer of graph inputs and outputs
  /// (those round host steps count). Only after run().
  [[nodiscard]] Expected<double> time(int runs);
  /// Seconds of each step alone, so many samples of each, in order. Of a device step: a replay of twenty launches or,
  /// if they take long, fewer, divided by their number, so that what a replay costs besides does not count; weights
  /// come from the memory where they would in a run of the whole. Of a host step: wall time with the transfers round
  /// it. Only after run().
  [[nodiscard]] Expected<std::vector<std::vector<double>>> time_steps(int samples);

  /// What device steps cost, by replays of several launches of one: one after the other, and on several streams at a
  /// time, with memory of their own each, which shows how much of the device a step leaves to others (at best that it
  /// takes one part in default_streams). Only after run().
  [[nodiscard]] Expected<std::vector<StepCost>> measure_costs(std::span<const std::size_t> steps);
  /// By how much launches of a device step take longer where each waits for one of another stream. Only after run().
  [[nodiscard]] Expected<double> measure_wait(std::size_t step);

  /// A device step that the device, or a library for it, could not execute though it had offered to.
  struct Failure {
    std::size_t step = 0;
    Error error;  ///< Of code device_unavailable.
  };
  /// Those because of which run() or run_timed() failed, in order. Of a device on which nothing runs any more, the
  /// first.
  [[nodiscard]] const std::vector<Failure>& failures() const { return failures_; }
  [[nodiscard]] const DeviceStep& step(std::size_t index) const { return steps_[index].step; }

 private:
  /// Host memory for an operand of a host step, as the device has it and as the kernel wants it (empty if the same).
  struct Staging {
    AlignedBuffer stored, widened;
    [[nodiscard]] std::byte* kernel_side() { return widened.size() > 0 ? widened.data() : stored.data(); }
  };
  struct Step {
    DeviceStep step;
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
    std::vector<Staging> staged_inputs, staged_outputs;  ///< Host steps only.
    bool is_awaited = false;                             ///< By steps of other streams.
  };
  class WeightPool;
  class StepCopies;
  /// A maximal run of device steps, or one host step (no recording).
  struct Part {
    std::size_t first = 0, last = 0;
    std::unique_ptr<Recording> recording;
  };

  DeviceProgram() = default;
  [[nodiscard]] Status prepare(Step& step);
  /// Queues a device step on stream 0.
  [[nodiscard]] Status launch(Step& step);
  /// The same on a stream, with inputs in the place of its own.
  [[nodiscard]] Status launch(Step& step, std::span<const std::byte* const> inputs, std::size_t stream);
  /// Queues the steps of a part on their streams, from stream 0 and back to it.
  [[nodiscard]] Status launch_on_streams(const Part& part);
  [[nodiscard]] Status run_on_host(Step& step);
  /// Executes a step and waits for it.
  [[nodiscard]] Status run_alone(Step& step);
  [[nodiscard]] Status replay();
  /// The steps one after the other, each awaited.
  [[nodiscard]] Status run_each(bool seeks_failures);
  void note_run() const;
  [[nodiscard]] Expected<std::vector<double>> time_on_device(Step& step, WeightPool& pool, int samples);
  [[nodiscard]] Expected<std::vector<double>> time_on_host(Step& step, int samples);
  [[nodiscard]] Expected<double> time_recorded(const std::function<Status()>& launches);
  /// StepCost::share of a device step that takes so many seconds.
  [[nodiscard]] Expected<double> measure_share(Step& step, double once_s);
  [[nodiscard]] bool on_device(const Part& part) const { return steps_[part.first].step.on_device; }

  std::shared_ptr<Backend> backend_;
  ElementType storage_ = ElementType::f32;
  DeviceBuffer arena_;
  std::vector<DeviceBuffer> workspaces_;  ///< Per stream.
  AlignedBuffer host_workspace_, transfer_;
  std::vector<Step> steps_;
  std::vector<Part> parts_;
  bool recorded_ = false;
  std::vector<Failure> failures_;
};

}  // namespace taso
