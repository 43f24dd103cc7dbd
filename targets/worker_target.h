/// A runtime that a worker process drives, as a Target: the runtime that a model is deployed on.
///
/// A graph's launches are its parts (targets/runtime_parts.h). A part costs what it takes by itself, as a small model
/// of it; whole graphs are written and run whole. Nothing of the runtime is linked in.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "onnx_io/model.h"
#include "optimizer/runtime_target.h"
#include "optimizer/target.h"
#include "support/status.h"
#include "targets/worker.h"

namespace taso {

struct WorkerTargetOptions {
  WorkerOptions worker;
  std::string processor;  ///< Of this machine, for the identity.
  /// Bytes of its last-level cache; 0: not known. Parts of graphs that read more weights than stay in it are measured
  /// with cold ones.
  double cache_bytes = 0;
};

class WorkerTarget final : public Target {
 public:
  /// Starts the worker. `model` is what graphs are rewritten from, `host` places tensors for
  /// peak_bytes(), and is for_launches(); both, and the registry, must outlive the target. Fails as Worker::open does.
  [[nodiscard]] static Expected<std::unique_ptr<WorkerTarget>> open(WorkerTargetOptions options, const Model& model,
                                                                    const OperatorRegistry& registry,
                                                                    const RuntimeTarget& host);
  ~WorkerTarget() override;

  /// Runtime, version, provider and what it runs on, number of threads, and the way of measuring.
  [[nodiscard]] const std::string& identity() const override;
  [[nodiscard]] Expected<KernelPlan> plan(const Graph& graph) const override;
  /// Of this program's own executor: runtimes do not tell theirs.
  [[nodiscard]] Expected<double> peak_bytes(const Graph& graph, const LayoutAssignment* layouts) const override;
  /// That executor: it splits and joins in place.
  [[nodiscard]] const Target& for_launches() const override;
  /// Together with the kernel it measures others of the same plan that are not known yet. device_unavailable where the
  /// runtime does not run the part, or the worker is given up.
  [[nodiscard]] Expected<double> measure(const KernelInfo& kernel) override;
  /// Of each kernel what it takes by itself, as now measured, times what the piece around it takes over what the parts
  /// of the piece take by themselves (targets/runtime_parts.h). Without those that the runtime does not run.
  /// device_unavailable if the worker is given up.
  [[nodiscard]] Expected<std::map<std::string, double>> profile(const TimedGraph& graph) override;
  /// Of the graphs as files. device_unavailable where the runtime does not run one of them.
  [[nodiscard]] Expected<GraphTimes> measure_graphs(std::span<const TimedGraph> graphs) override;
  [[nodiscard]] Expected<std::optional<GraphRefusal>> refusal(const TimedGraph& graph) override;
  /// What the gauge (targets/gauge.h) took at least in other runs, in microseconds, 0 if nothing is known; and who is
  /// told when that changes.
  void set_gauge(double least_us, std::function<void(double)> save);
  /// Says whether the cost of a part is recorded already, so that it is not measured along with others.
  void set_recorded(std::function<bool(const KernelInfo&)> is_recorded);

 private:
  struct State;
  explicit WorkerTarget(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace taso
