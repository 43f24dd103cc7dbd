/// What a run of a graph does, kernel by kernel, for reports.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "optimizer/cost_model.h"
#include "optimizer/runtime_target.h"
#include "support/status.h"

namespace taso {

/// One launch of a kernel.
struct ProfiledLaunch {
  NodeId node = 0;             ///< The node computed, or for a change of layout the producer of the tensor.
  std::string op;              ///< Operator, or "reorder" for a change of layout.
  std::string layouts;         ///< Of operands and results: "nhwc, row:weight -> nhwc".
  std::string implementation;  ///< What computes it; empty if it was not run.
  double flops = 0, bytes = 0;
  std::optional<double> predicted;  ///< Seconds of the kernel alone, where costs use time and that is known.
  std::optional<double> measured;   ///< Seconds within a run of the graph, if it was run.
};

/// A run of a graph.
struct RunProfile {
  std::vector<ProfiledLaunch> launches;
  /// Bytes of the arena that are in use while each kernel of an executor runs (runtime/lifetimes.h), in order.
  std::vector<double> memory;
  std::string problem;  ///< Why the graph was not run though it should have been; else empty.
};

/// How a graph is profiled.
struct ProfileOptions {
  bool choose_layouts = true;  ///< Layouts are chosen by the cost model; else they follow the target's rule.
  int runs = 0;                ///< So often it is run for its times; 0: it is not.
};

/// Plans a graph, prices its kernels, and runs it if asked. Where there is no time to find out its costs it is planned
/// by the target's rule. Fails where GraphPlanner::plan does otherwise; that a graph cannot be run is no failure.
[[nodiscard]] Expected<RunProfile> profile_run(const Graph& graph, const RuntimeTarget& target, MeasuredCosts& measured,
                                               CostModel& model, const ProfileOptions& options);

}  // namespace taso
