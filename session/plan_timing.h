/// Plans run whole on this machine, their ranks as threads of one process, in turn with one device.
///
/// What plans cost by kernels and links leaves out what ranks do to each other: they share caches and memory, and wait
/// for each other. So the plans of least cost run, each on random inputs, one of them twice (the A/A pair), beside the
/// graph that is best on one device: with the threads of a rank, and with those of all ranks.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/rewrite.h"
#include "optimizer/cost_model.h"
#include "optimizer/report.h"
#include "partition/planner.h"
#include "partition/proved_strategies.h"
#include "runtime/executor.h"
#include "runtime/kernel.h"
#include "support/status.h"

namespace taso {

/// A plan that competes.
struct CompetingPlan {
  std::string name;  ///< As PlanTimes::Plan has it.
  Graph graph;       ///< As it is read from the file that would be written, in normal form.
  PartitionPlan plan;
};

/// How they run.
struct PlanTiming {
  const KernelLibrary& library;     ///< Of the processor.
  const ProvedStrategies& proved;   ///< Those of the plans.
  const RuleIndex& fusing;          ///< With which programs are fused before they run, as taso-run does.
  ExecutorOptions executor;         ///< Of a rank.
  std::size_t most_plans = 2;       ///< So many different ones run.
  double most_seconds = 10;         ///< Of rounds, or a little longer.
  std::function<bool()> cancelled;  ///< Asked between runs; true ends the timing with an error of code interrupted.
};

/// Times of plans of one model on as many devices, of which there is at least one, and of `one_device`, a graph of the
/// same inputs. Times are those that `measured` has recorded of the same, if it has. The first plans run, of those
/// that are written out equal the first one. Fails where a plan cannot run, as rank_graph() does, and as
/// MeasuredCosts::seconds_together does.
[[nodiscard]] Expected<PlanTimes> time_plans(const std::vector<CompetingPlan>& plans, const Graph& one_device,
                                             const PlanTiming& timing, MeasuredCosts& measured);

/// What a plan takes, as far as is known without running it.
[[nodiscard]] double predicted_seconds(const PartitionPlan& plan);

/// The number of the fastest plan: the first one, unless another is faster by more than the noise.
[[nodiscard]] std::size_t fastest_plan(const PlanTimes& times);

/// So many threads can run at the same time on this machine, by what the system lets this process use.
[[nodiscard]] int usable_processors();

}  // namespace taso
