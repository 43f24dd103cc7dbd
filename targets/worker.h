/// A runtime that a worker process drives: started when it is needed, killed and started again when it fails.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "optimizer/target.h"
#include "support/status.h"
#include "targets/worker_protocol.h"

namespace taso {

struct WorkerOptions {
  std::string device;                ///< As --device names it, for messages.
  std::vector<std::string> command;  ///< The program and its arguments.
  std::string provider;              ///< Empty: the worker's default.
  int threads = 1;
  double timeout_s = 300;  ///< In which a worker must answer a request, and say hello.
  int most_restarts = 6;   ///< A worker that fails once more is given up.
  std::string log = {};    ///< A file to which all lines are added, for those who write a worker; empty: none.
  /// Asked while a worker works; true ends that with an error of code interrupted.
  std::function<bool()> cancelled;
  /// Is told, in one line each, of the worker's failures; may be empty.
  std::function<void(const std::string&)> report;
};

/// Not for several threads at once. An answer that is late, no answer to the request, or of times that cannot be, is a
/// failure of the worker, and so is another runtime, version, provider or device than before: it is killed, a line is
/// reported, and it is started anew, up to WorkerOptions::most_restarts times in all. Then every call fails with code
/// device_unavailable.
class Worker {
 public:
  /// Starts and configures it. device_unavailable where it fails at once, or has no such provider.
  [[nodiscard]] static Expected<Worker> open(WorkerOptions options);
  Worker(Worker&&) noexcept;
  Worker& operator=(Worker&&) noexcept;
  ~Worker();

  [[nodiscard]] const WorkerHello& hello() const;
  [[nodiscard]] const WorkerSetting& setting() const;
  [[nodiscard]] const WorkerOptions& options() const;

  /// Runs models one after the other; their times in order. If the worker fails at several, each is asked for alone;
  /// one at which it fails alone, too, is a refusal. Times that differ wildly (an interquartile range of three medians)
  /// are taken again, and are a refusal if they do so four times.
  [[nodiscard]] Expected<std::vector<ModelTimes>> measure(std::span<const ModelRun> models,
                                                          const MeasureRequest& request);
  /// Runs models in turn; tried twice. `seconds`: what it took, with opening the models.
  [[nodiscard]] Expected<std::vector<ModelTimes>> interleave(std::span<const ModelRun> models,
                                                             const InterleaveRequest& request);
  /// Why a model does not run, once; nothing if it does. That the worker fails at it is a reason, too.
  [[nodiscard]] Expected<std::optional<GraphRefusal>> refusal(const ModelRun& model);

 private:
  struct State;
  explicit Worker(std::unique_ptr<State> state);
  [[nodiscard]] Expected<std::vector<ModelTimes>> measure_apart(std::span<const ModelRun> models,
                                                                const MeasureRequest& request);
  std::unique_ptr<State> state_;
};

}  // namespace taso
