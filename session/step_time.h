/// How long ranks take for one step of a plan, by recorded times of what their programs do.
///
/// The costs of a plan are sums over operators, each by itself: so they can be searched. What ranks run is the plan
/// written out, with operators fused in each rank's part, conversions between layouts, and messages that are waited
/// for. Here these programs are made, as taso-run makes them, and played through: a kernel takes its measured time; to
/// send a message takes the sender's part of what a message was measured to take; it can be received from then on,
/// which takes the receiver's part. The step ends when the last rank does.
#pragma once

#include "graph/graph.h"
#include "graph/rewrite.h"
#include "partition/operator_piece.h"
#include "partition/planner.h"
#include "session/plan_costs.h"
#include "support/status.h"

namespace taso {

/// Seconds of a step of a plan of `graph`, whose mesh is in seconds; measures what is not recorded. `fusing`: the rules
/// by which programs are fused. Fails where the plan cannot be written out or run by ranks (it carries operators), and
/// where a time is not to be had.
[[nodiscard]] Expected<double> step_seconds(const Graph& graph, const PartitionPlan& plan, StrategyTable& strategies,
                                            const RuleIndex& fusing, PieceTimes& times);

}  // namespace taso
