/// The ranks of a plan as threads of one process, which stay and run together over and over: to time plans.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/executor.h"
#include "runtime/kernel.h"
#include "runtime/rank_graph.h"
#include "runtime/tensor.h"
#include "support/status.h"

namespace taso {

/// Calls come from one thread.
class RankTeam {
 public:
  /// `ranks`: the graph of every rank (rank_graph()), by rank, perhaps with rules applied. The library must outlive the
  /// team. Fails as RankExecutor::create does.
  [[nodiscard]] static Expected<std::unique_ptr<RankTeam>> create(const std::vector<RankGraph>& ranks,
                                                                  const KernelLibrary& library,
                                                                  const ExecutorOptions& options);
  RankTeam(const RankTeam&) = delete;
  RankTeam& operator=(const RankTeam&) = delete;
  ~RankTeam();

  /// The inputs of the runs that follow: those of the whole graph.
  [[nodiscard]] Status set_inputs(std::span<const HostTensor> inputs);
  /// So many runs, each begun by all ranks at the same time, and the microseconds of one: of the rank that takes
  /// longest, the mean. An error of a rank is that of all; nothing runs any more after one.
  [[nodiscard]] Expected<double> run(int runs = 1);
  /// The outputs of the whole graph, of the last run.
  [[nodiscard]] std::span<const HostTensor> outputs() const;

 private:
  struct State;
  explicit RankTeam(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace taso
