/// What a graph will run on: it says which kernels it would launch, measures them one by one, and times whole
/// graphs. The search knows a device only through this interface.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "support/status.h"

namespace taso {

/// One kernel launch of a planned graph.
struct PlannedKernel {
  /// One line that determines what is measured: operator, attributes, types, layouts. Two launches of equal key
  /// cost the same.
  std::string key;
  /// Operator name, or "reorder" for a change of layout.
  std::string op;
  /// The node whose value the kernel computes.
  NodeId node = 0;
  double flops = 0;  ///< Scalar operations, from the operator's definition.
  double bytes = 0;  ///< Bytes read and written, each operand once.
};

/// The launches of a graph in execution order. Views and weight-only nodes launch nothing.
struct KernelPlan {
  std::vector<PlannedKernel> kernels;
  double peak_bytes = 0;  ///< Largest number of bytes of intermediate tensors alive at once.
};

/// Times of several graphs run whole, in turn, in one process.
struct GraphTimes {
  std::vector<double> seconds;  ///< Median of each graph, in the order given.
  /// Relative difference of two medians that is not above the noise: from the two copies of one graph (an A/A
  /// pair) and from the spread of the samples.
  double noise = 0;
};

class Target {
 public:
  virtual ~Target() = default;

  /// Device, library versions and number of threads: costs measured under another identity do not apply.
  [[nodiscard]] virtual const std::string& identity() const = 0;
  /// The kernels this target would launch. Deterministic; safe to call from several threads.
  [[nodiscard]] virtual Expected<KernelPlan> plan(const Graph& graph) const = 0;
  /// Seconds of the kernel `plan.kernels[index]` of `graph`. Never called concurrently.
  [[nodiscard]] virtual Expected<double> measure(const Graph& graph, const KernelPlan& plan, std::size_t index) = 0;
  /// Runs whole graphs interleaved; the first one enters twice (the A/A pair that gives the noise).
  [[nodiscard]] virtual Expected<GraphTimes> measure_graphs(std::span<const Graph* const> graphs) = 0;
};

}  // namespace taso
