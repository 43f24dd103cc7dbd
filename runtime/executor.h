/// Runs graphs: kernels in order, or on several streams of a device, temporaries in one arena (runtime/lifetimes.h),
/// constants pre-laid-out once. On the host, or on the device of a library that has a backend
/// (runtime/device_program.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "runtime/fusion.h"
#include "runtime/kernel.h"
#include "runtime/lifetimes.h"
#include "runtime/lowering.h"
#include "runtime/step_cost.h"
#include "runtime/step_time.h"
#include "runtime/stream_schedule.h"
#include "runtime/tensor.h"
#include "runtime/weights.h"
#include "support/status.h"

namespace taso {

struct ExecutorOptions {
  int threads = 1;
  bool channels_last = true;
  /// Where pre-laid-out weights are shared with other executors; null: a store of its own.
  std::shared_ptr<WeightStore> weights;
  /// How each node is computed; null: by the rule of runtime/lowering.h.
  std::shared_ptr<const LayoutAssignment> layouts = nullptr;
  /// The type in which a device keeps what is f32 in the graph: f32, f16 or bf16. Inputs and outputs stay f32: they
  /// are converted on the host. Executors of the host know f32 only (TASO_CHECK).
  ElementType float_storage = ElementType::f32;
  /// Kernels that the library does not have; asked first. They must outlive the executor.
  KernelSource* more_kernels = nullptr;
  /// On how many streams of a device steps are placed at most (choose_streams), as far as it has so many.
  std::size_t streams = 1;
  /// Whether steps of a device that do not wait for each other may be one launch (runtime/horizontal_fusion.h). Not so
  /// where the times of the single steps are wanted.
  bool side_by_side = true;
  /// Whether steps may be together in one kernel (fused_for). Not so where each operator is wanted by itself.
  bool groups = true;
  /// What steps cost there; null, or where it does not know: as the device estimates.
  std::shared_ptr<StepCosts> step_costs = nullptr;
  /// Where a line is added for each kernel that failed when it ran and is computed in another way since
  /// (Executor::run): "matmul+softmax+matmul failed when it ran (...): it is computed in another way"; null: nowhere.
  std::shared_ptr<std::vector<std::string>> fallbacks = nullptr;
};

/// A lowered graph as executors run it: with its steps fused (runtime/fusion.h) where the library wants that, and on a
/// device concatenations written in place (runtime/concat_in_place.h), but for steps whose kernels are of
/// `more_kernels`. `cache`: of this library, and for graphs without others' kernels. `statistics`, unless null:
/// what choosing groups took, by estimated costs; stays as it is where nothing is fused.
[[nodiscard]] LoweredGraph fused_for(LoweredGraph lowered, const KernelLibrary& library,
                                     const KernelSource* more_kernels = nullptr, FusionCache* cache = nullptr,
                                     FusionStatistics* statistics = nullptr);

/// How an executor with these options lowers its graph.
[[nodiscard]] LoweringOptions lowering_options(const KernelLibrary& library, const ExecutorOptions& options);

/// Time of one kernel over the profiled runs.
struct KernelProfile {
  std::string op;              ///< Operator name, "reorder" for layout conversions.
  std::string implementation;  ///< Kernel::implementation(); "host: " before it if a device's executor runs it there.
  std::string key;             ///< KernelRequest::key().
  NodeId node = 0;
  double median_us = 0;
  double minimum_us = 0;
  std::uint32_t stream = 0;
  std::vector<NodeId> fused = {};  ///< LoweredStep::fused.
};

/// What one kernel of a graph will be, planned without running anything.
struct PlannedLaunches {
  std::string op;              ///< As in KernelProfile.
  std::string implementation;  ///< As in KernelProfile.
  std::string key;             ///< KernelRequest::key().
  NodeId node = 0;
  std::size_t launches = 0;  ///< On the device (Kernel::launches); 0 for a kernel that runs on the host instead.
  std::uint32_t stream = 0;
  double begin_s = 0, end_s = 0;  ///< As the model of streams has it (StreamSchedule), from the beginning of a run.
  std::string code = {};          ///< Kernel::code().
};
/// What a run will be.
struct PlannedRun {
  std::vector<PlannedLaunches> kernels;  ///< In execution order.
  std::size_t streams = 1;
  /// As the model has it: of a run, and on one stream. 0 where nothing is known of any step.
  double seconds = 0, seconds_on_one_stream = 0;
  std::size_t measured = 0;  ///< Device steps whose cost was measured on the device; the others' are estimates.
  /// What choosing the groups of steps took (runtime/fusion.h); empty where nothing is fused.
  std::optional<FusionStatistics> groups;
};
/// The kernels that an executor of the graph would have, with their launches on the device if the library has one,
/// which may be only described. Fails where Executor::create fails, but for that.
[[nodiscard]] Expected<PlannedRun> plan_launches(const Graph& graph, const KernelLibrary& library,
                                                 const ExecutorOptions& options = {});

/// Measures, on the device, what of the costs of a graph's steps options.step_costs does not know, if several streams
/// could pay at all. How many costs that were.
[[nodiscard]] Expected<std::size_t> measure_step_costs(const Graph& graph, const KernelLibrary& library,
                                                       const ExecutorOptions& options);

/// An executable graph. Not thread-safe: one run at a time. Results depend on graph, inputs, thread
/// count and layouts only, and on a device on whether steps may be side by side.
class Executor {
 public:
  /// Builds kernels, folds and packs weights, plans memory. Fails where lowering fails, and on operators without
  /// kernel; the message names node and operator; with code device_unavailable where the library's device is only
  /// described. The library must outlive the executor, the graph need not.
  [[nodiscard]] static Expected<Executor> create(const Graph& graph, const KernelLibrary& library,
                                                 const ExecutorOptions& options = {});
  ~Executor();
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;

  /// Types of the inputs, in the graph's order, and their names.
  [[nodiscard]] const std::vector<TensorType>& input_types() const;
  [[nodiscard]] const std::vector<std::string>& input_names() const;
  [[nodiscard]] const std::vector<TensorType>& output_types() const;

  /// One execution. Fails (bad_input) if number or types of the inputs are wrong, or an index is out of range.
  /// Where a device cannot execute kernels that it has offered, at the first run, what they compute is computed in
  /// another way, if the device has one (Backend::reject): by another engine, by its operators one by one, or on the
  /// host. lowered() and what belongs to it are then others. Not so with `more_kernels`, which may have been run.
  [[nodiscard]] Expected<std::vector<HostTensor>> run(std::span<const HostTensor> inputs);
  /// The same into tensors of the right types (no allocation: what is timed).
  [[nodiscard]] Status run_into(std::span<const HostTensor> inputs, std::span<HostTensor> outputs);
  /// The same, and when each step of lowered() began and ended. On a device every step is waited for.
  [[nodiscard]] Expected<std::vector<StepTime>> run_timed(std::span<const HostTensor> inputs,
                                                          std::span<HostTensor> outputs);
  /// Seconds on the device of one of `runs` runs on the inputs of the last run(), which there must have been, without
  /// the transfer of inputs and outputs. For executors on a device only.
  [[nodiscard]] Expected<double> time_on_device(int runs);
  /// Runs `repeat` times and reports per kernel, in execution order. On a device each is timed there, alone.
  [[nodiscard]] Expected<std::vector<KernelProfile>> profile(std::span<const HostTensor> inputs, int repeat);

  /// Random inputs for this executor (fill_random by input name). Integer inputs that index a `gather` stay in its
  /// range.
  [[nodiscard]] std::vector<HostTensor> random_inputs(std::uint64_t seed) const;

  /// What computes a step of lowered(): Kernel::implementation().
  [[nodiscard]] const std::string& implementation(std::size_t step) const;
  [[nodiscard]] bool on_device() const;
  /// Operators of kernels that the device declined and the host runs, in execution order; empty for executors of the
  /// host.
  [[nodiscard]] std::vector<std::string> declined() const;
  [[nodiscard]] std::size_t launches() const;
  [[nodiscard]] std::size_t arena_bytes() const;  ///< memory().bytes
  [[nodiscard]] std::size_t weight_bytes() const;
  [[nodiscard]] const LoweredGraph& lowered() const;
  [[nodiscard]] const MemoryPlan& memory() const;  ///< Of lowered()'s tensors.
  /// Where the steps of lowered() run; of an executor of the host: nothing.
  [[nodiscard]] const StreamSchedule& schedule() const;
  /// Costs of the device steps that have none in `costs`, and of waits, measured and put there: how many. For executors
  /// on a device only, after a run().
  [[nodiscard]] Expected<std::size_t> measure_step_costs(StepCosts& costs);

 private:
  struct State;
  explicit Executor(std::unique_ptr<State> state);
  /// A run on a device, in another way where a kernel fails.
  [[nodiscard]] Status run_on_device(std::span<const HostTensor> inputs, std::span<HostTensor> outputs,
                                     std::vector<StepTime>* times = nullptr);
  /// Builds the executor anew, without the kernels that failed. False if there is no other way.
  [[nodiscard]] bool build_another();
  std::unique_ptr<State> state_;
};

/// Random inputs of a graph, without an executor: those that Executor::random_inputs gives.
[[nodiscard]] Expected<std::vector<HostTensor>> random_inputs(const Graph& graph, const OperatorRegistry& registry,
                                                              std::uint64_t seed);

}  // namespace taso
