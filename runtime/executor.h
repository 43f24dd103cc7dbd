/// Runs graphs: kernels in order, temporaries in one planned arena, constants pre-laid-out once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "runtime/kernel.h"
#include "runtime/lowering.h"
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
};

/// Time of one kernel over the profiled runs.
struct KernelProfile {
  std::string op;              ///< Operator name, "reorder" for layout conversions.
  std::string implementation;  ///< Kernel::implementation().
  std::string key;             ///< KernelRequest::key().
  NodeId node = 0;
  double median_us = 0;
  double minimum_us = 0;
};

/// An executable graph. Not thread-safe: one run at a time. Results depend on graph, inputs, thread
/// count and layouts only.
class Executor {
 public:
  /// Builds kernels, folds and packs weights, plans memory. Fails where lowering fails, and on operators without
  /// kernel; the message names node and operator. The library must outlive the executor, the graph need not.
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
  [[nodiscard]] Expected<std::vector<HostTensor>> run(std::span<const HostTensor> inputs);
  /// The same into tensors of the right types (no allocation: what is timed).
  [[nodiscard]] Status run_into(std::span<const HostTensor> inputs, std::span<HostTensor> outputs);
  /// Runs `repeat` times and reports per kernel, in execution order.
  [[nodiscard]] Expected<std::vector<KernelProfile>> profile(std::span<const HostTensor> inputs, int repeat);

  /// Random inputs for this executor (fill_random by input name). Integer inputs that index a `gather` stay in its
  /// range.
  [[nodiscard]] std::vector<HostTensor> random_inputs(std::uint64_t seed) const;

  [[nodiscard]] std::size_t launches() const;
  [[nodiscard]] std::size_t arena_bytes() const;
  [[nodiscard]] std::size_t weight_bytes() const;
  [[nodiscard]] const LoweredGraph& lowered() const;

 private:
  struct State;
  explicit Executor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace taso
