#include "optimizer/run_profile.h"

#include <algorithm>
#include <map>
#include <utility>

#include "optimizer/planned_graph.h"

namespace taso {
namespace {

/// Enters what was measured. A launch is told by its node and operator, of several by its layouts, of equal ones by the
/// order. A run of a graph that is cut at opaque nodes has other layouts there, and more conversions, which are left
/// out.
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
}

}  // namespace

Expected<RunProfile> profile_run(const Graph& graph, const RuntimeTarget& target, MeasuredCosts& measured,
                                 CostModel& model, const ProfileOptions& options) {
  TASO_ASSIGN(const PlannedGraph planned, GraphPlanner(measured, model, options.choose_layouts).plan(graph));
  RunProfile run;
  for (const Launch& launch : planned.plan.launches) {
    ProfiledLaunch profiled;
    profiled.node = launch.node;
    profiled.op = launch.kernel->op;
    profiled.layouts = target.layouts_of(*launch.kernel);
    profiled.flops = launch.kernel->flops;
    profiled.bytes = launch.kernel->bytes;
    if (model.uses_time()) {
      TASO_ASSIGN(profiled.predicted, measured.seconds(*launch.kernel));
    }
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
