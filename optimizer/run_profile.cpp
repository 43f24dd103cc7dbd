#include "optimizer/run_profile.h"

#include <algorithm>
#include <map>
#include <utility>

#include "optimizer/planned_graph.h"

namespace taso {
namespace {

/// Enters what was measured. A launch is told by its node and operator, of several by its layouts, of equal ones by the
/// order. A run of a graph that is cut at opaque nodes has other layouts there, and more conversions, which are left
/// out. Where several run as one, the time is that of the last of them, and that of the others 0.
void enter_times(const std::vector<TimedLaunch>& times, std::vector<ProfiledLaunch>& launches) {
  std::map<std::pair<NodeId, std::string>, std::vector<const TimedLaunch*>> by_node;
  for (const TimedLaunch& timed : times) by_node[{timed.node, timed.op}].push_back(&timed);
  for (const bool same_layouts : {true, false})
    for (ProfiledLaunch& launch : launches) {
      if (launch.measured) continue;
      std::vector<const TimedLaunch*>& timed = by_node[{launch.node, launch.op}];
      const auto place = std::find_if(timed.begin(), timed.end(), [&](const TimedLaunch* one) {
        return !same_layouts || one->layouts == launch.layouts;
      });
      if (place == timed.end()) continue;
      launch.implementation = (*place)->implementation;
      launch.measured = (*place)->seconds;
      timed.erase(place);
    }
  for (ProfiledLaunch& launch : launches) {
    std::vector<const TimedLaunch*>& fused = by_node[{launch.node, std::string(fused_op)}];
    if (launch.measured || fused.empty()) continue;
    launch.implementation = fused[0]->implementation;
    launch.measured = fused[0]->seconds;
    fused.clear();
  }
  for (const TimedLaunch& timed : times)
    for (const NodeId part : timed.fused)
      for (ProfiledLaunch& launch : launches) {
        if (launch.measured || launch.node != part) continue;
        launch.implementation = timed.implementation;
        launch.measured = 0;
      }
}

/// There was no time to measure what the graph costs, or that may not be.
bool is_unpriced(const Error& error) {
  return error.code == ErrorCode::interrupted || error.code == ErrorCode::cost_missing;
}

}  // namespace

Expected<RunProfile> profile_run(const Graph& graph, const RuntimeTarget& target, MeasuredCosts& measured,
                                 CostModel& model, const ProfileOptions& options) {
  Expected<PlannedGraph> planned_or = GraphPlanner(measured, model, options.choose_layouts).plan(graph);
  if (!planned_or && is_unpriced(planned_or.error())) {
    planned_or = PlannedGraph{graph, {}, 0, {}};
    TASO_ASSIGN(planned_or->plan, target.plan(graph));
  }
  TASO_ASSIGN(const PlannedGraph planned, planned_or);
  RunProfile run;
  for (const Launch& launch : planned.plan.launches) {
    ProfiledLaunch profiled;
    profiled.node = launch.node;
    profiled.op = launch.kernel->op;
    profiled.layouts = target.layouts_of(*launch.kernel);
    profiled.flops = launch.kernel->flops;
    profiled.bytes = launch.kernel->bytes;
    if (model.uses_time()) profiled.predicted = measured.recorded(*launch.kernel);
    run.launches.push_back(std::move(profiled));
  }
  TASO_ASSIGN(run.memory, target.memory_in_use(graph, planned.plan.layouts.get()));
  if (options.runs == 0) return run;
  const Expected<std::vector<TimedLaunch>> times = target.time_launches(graph, planned.plan.layouts, options.runs);
  if (times)
    enter_times(*times, run.launches);
  else
    run.problem = times.error().message;
  return run;
}

}  // namespace taso
