/// What a graph will run on: it says which kernels it would launch, measures them one by one, and times whole
/// graphs. The search knows a device only through this interface.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "support/hash.h"
#include "support/status.h"

namespace taso {

/// A kernel as costs see it; shared between all launches of it.
struct KernelInfo {
  /// One line that determines what is measured: operator, attributes, types, layouts, threads. Launches of equal key
  /// cost the same.
  std::string key;
  Hash128 hash;      ///< Of the key.
  std::string op;    ///< Operator name, or "reorder" for a change of layout.
  double flops = 0;  ///< Scalar operations, from the operator's definition.
  double bytes = 0;  ///< Bytes read and written, each operand once.
};

/// One launch of a planned graph.
struct Launch {
  std::shared_ptr<const KernelInfo> kernel;
  NodeId node = 0;  ///< The node computed, or for a reorder the producer of the tensor.
};

/// The launches of a graph in execution order. Views, weight-only and opaque nodes launch nothing.
struct KernelPlan {
  std::vector<Launch> launches;
};

/// Times of several graphs run whole, in turn, in one process.
struct GraphTimes {
  std::vector<double> seconds;  ///< Median of each graph, in the order given.
  /// Relative difference of two medians that may be noise: from two copies of one graph (an A/A pair) and from the
  /// spread of the samples.
  double noise = 0;
};

class Target {
 public:
  virtual ~Target() = default;

  /// Device, library versions and number of threads: costs measured under another identity do not apply.
  [[nodiscard]] virtual const std::string& identity() const = 0;
  /// The kernels this target would launch. Deterministic; safe to call from several threads.
  [[nodiscard]] virtual Expected<KernelPlan> plan(const Graph& graph) const = 0;
  /// Bytes of the memory in which intermediate tensors are placed.
  [[nodiscard]] virtual Expected<double> peak_bytes(const Graph& graph) const = 0;
  /// Seconds of one launch of a kernel that plan() has named. Called by one thread at a time, with nothing else
  /// running. An error of code interrupted: the user wants to stop.
  [[nodiscard]] virtual Expected<double> measure(const KernelInfo& kernel) = 0;
  /// Runs whole graphs interleaved; the first one enters twice (the A/A pair that gives the noise).
  [[nodiscard]] virtual Expected<GraphTimes> measure_graphs(std::span<const Graph* const> graphs) = 0;
};

}  // namespace taso
