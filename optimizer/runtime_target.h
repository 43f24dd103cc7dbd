/// The kernels of a library of runtime/ as a Target: this machine's processor, or a device with a backend.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "operators/registry.h"
#include "optimizer/target.h"
#include "runtime/kernel.h"
#include "runtime/step_cost.h"

namespace taso {

struct RuntimeTargetOptions {
  int threads = 1;
  /// Plans in which launches are counted, not timed: all tensors are row-major, and a concatenation is one kernel
  /// (which execution may avoid by writing its operands in place).
  bool counting = false;
  /// So many other ranks of the machine run kernels at the same time, while kernels are measured
  /// (MeasureOptions::companions): their times are costs of another device.
  int companions = 0;
  /// The rule's layouts are row-major throughout: what a file says.
  bool row_major = false;
  /// The type in which a device keeps what is f32 in the graph; f32 without one.
  ElementType float_storage = ElementType::f32;
  /// On so many streams of a device graphs are timed whole at most, as far as it has so many.
  std::size_t streams = 1;
  /// Asked while kernels are measured and whole graphs timed; true ends that with an error of code interrupted.
  std::function<bool()> cancelled;
};

/// Bytes of the weights that a run of a graph reads, equal ones once: an unrolled model reads the same at every
/// step. What is computed of weights alone counts in the place of these, but for broadcasts.
[[nodiscard]] double weight_bytes(const Graph& graph);
/// What a model that is run over and over goes through each time, in bytes: its weights and what it needs for
/// intermediate tensors at one time.
[[nodiscard]] double working_set_bytes(const Graph& graph, const Target& target);

/// One launch of a kernel within a run of a graph.
struct TimedLaunch {
  NodeId node = 0;      ///< The node computed, or for a change of layout the producer of the tensor.
  std::string op;       ///< As in KernelInfo.
  std::string layouts;  ///< As layouts_of says.
  std::string implementation;
  double seconds = 0;              ///< Median.
  std::vector<NodeId> fused = {};  ///< Where several launches of a plan run as one: the nodes of all, `node` last.
};

class RuntimeTarget final : public Target {
 public:
  /// The library (and its registry) must outlive the target.
  RuntimeTarget(const KernelLibrary& library, RuntimeTargetOptions options);
  ~RuntimeTarget() override;

  [[nodiscard]] const std::string& identity() const override;
  [[nodiscard]] Expected<KernelPlan> plan(const Graph& graph) const override;
  /// Fixed in counting mode.
  [[nodiscard]] Expected<KernelPlan> open_plan(const Graph& graph) const override;
  /// On a device, which may still fuse nothing, and on the processor with its own kernels. Not where launches are
  /// counted on the processor: there they stand for the operators of the file.
  [[nodiscard]] bool fuses() const override;
  [[nodiscard]] Status fuse(const Graph& graph, KernelPlan& plan) const override;
  [[nodiscard]] bool may_cost_nothing(const KernelInfo& kernel) const override;
  /// Executor::arena_bytes() of measure_graphs on one stream and with no steps side by side: also in counting mode,
  /// concatenations may be written in place.
  [[nodiscard]] Expected<double> peak_bytes(const Graph& graph, const LayoutAssignment* layouts) const override;
  [[nodiscard]] Expected<double> measure(const KernelInfo& kernel) override;
  [[nodiscard]] Expected<double> least_seconds(const KernelInfo& kernel) override;
  [[nodiscard]] std::vector<std::string> declined(const KernelPlan& plan) const override;
  [[nodiscard]] int cached_tenths(double bytes) override;
  /// From now on kernels are planned and measured as if so many tenths of the model stayed in the last-level cache
  /// (KernelRequest::cached_tenths); 0 at first. Not while anything is planned.
  void set_cached_tenths(int tenths);
  /// What steps cost on several streams: from now on it is measured before graphs are timed, and kept there. Without it
  /// streams are chosen as the device estimates.
  void set_step_costs(std::shared_ptr<StepCosts> costs);
  [[nodiscard]] Expected<std::map<std::string, double>> profile(const TimedGraph& graph) override;
  /// "streams=4" on a device with several.
  [[nodiscard]] std::string conditions() const override;
  /// Of all runs so far.
  [[nodiscard]] std::vector<std::string> fallbacks() const override;
  [[nodiscard]] Expected<GraphTimes> measure_graphs(std::span<const TimedGraph> graphs) override;

  /// The layouts of a kernel's operands and results, of a kernel that a plan has named: "nhwc, row:weight -> nhwc".
  [[nodiscard]] std::string layouts_of(const KernelInfo& kernel) const;
  /// How much of the arena that peak_bytes measures is in use while each kernel runs, in order; bytes.
  [[nodiscard]] Expected<std::vector<double>> memory_in_use(const Graph& graph, const LayoutAssignment* layouts) const;
  /// Runs the graph, cut at its opaque nodes, so often on random inputs, and times each kernel; in order of execution.
  /// An error of code interrupted: the user wants to stop.
  [[nodiscard]] Expected<std::vector<TimedLaunch>> time_launches(const Graph& graph,
                                                                 std::shared_ptr<const LayoutAssignment> layouts,
                                                                 int runs) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace taso
