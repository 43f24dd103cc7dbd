/// Runs the program of one rank (runtime/rank_graph.h) together with the other ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/communication.h"
#include "runtime/executor.h"
#include "runtime/kernel.h"
#include "runtime/rank_graph.h"
#include "runtime/tensor.h"
#include "runtime/transport.h"
#include "support/status.h"

namespace taso {

/// Messages of ranks from device to device, or why there are none.
struct ConnectedDevices {
  std::shared_ptr<DeviceMessages> messages;
  std::string reason;  ///< On one line; the same on all ranks.
};
/// On every rank, at the same place: connects the devices of their libraries, if all have messages and no device is
/// that of two ranks. An error of one is that of all. Where the transport fails later, messages are aborted.
[[nodiscard]] Expected<ConnectedDevices> connect_devices(Transport& transport, const KernelLibrary& library);

/// Memory of a rank's program, in bytes.
struct RankMemory {
  std::size_t weights = 0;      ///< Laid out for their kernels.
  std::size_t arena = 0;        ///< Of temporaries; what is not needed any more makes room for what comes later.
  std::size_t temporaries = 0;  ///< The same if every temporary had memory of its own.
};

/// Not thread-safe.
class RankExecutor {
 public:
  /// `graph` is rank_graph() for the transport's rank, perhaps with rules applied. All that is referred to must outlive
  /// the executor. `device`: messages go from device to device (connect_devices, on all ranks alike); without it they
  /// go through the host. Fails as Executor::create does.
  [[nodiscard]] static Expected<RankExecutor> create(const RankGraph& graph, Transport& transport,
                                                     const KernelLibrary& library, ExecutorOptions options = {},
                                                     DeviceMessages* device = nullptr);

  /// The inputs of the runs that follow: those of the whole graph.
  [[nodiscard]] Status set_inputs(std::vector<HostTensor> inputs);
  [[nodiscard]] std::span<const HostTensor> inputs() const {
    return std::span(inputs_).first(inputs_.empty() ? 0 : inputs_.size() - 1);
  }
  /// One step, which all ranks make together. Gives the outputs of the whole graph at rank 0, none elsewhere, until the
  /// next run. An error of one rank does not reach the others by itself (see Transport).
  [[nodiscard]] Expected<std::span<const HostTensor>> run();
  /// The same; `times` are those of the steps of executor().lowered().
  [[nodiscard]] Expected<std::span<const HostTensor>> run_timed(std::vector<StepTime>& times);

  /// What the rank's program moves in one step, by transfer: so much it counts in every run.
  [[nodiscard]] const MovedPayload& planned() const { return planned_; }
  /// What the last run moved.
  [[nodiscard]] const MovedPayload& moved() const { return communication_->moved(); }
  [[nodiscard]] RankMemory memory() const;
  [[nodiscard]] const Executor& executor() const { return *executor_; }

 private:
  RankExecutor() = default;
  MovedPayload planned_;
  std::size_t first_ = 0, results_ = 0;  ///< Of the executor's outputs, which are results.
  std::unique_ptr<Communication> communication_;
  std::unique_ptr<Executor> executor_;
  std::vector<HostTensor> inputs_, outputs_;  ///< Of the executor.
};

}  // namespace taso
