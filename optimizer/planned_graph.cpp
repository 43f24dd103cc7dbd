#include "optimizer/planned_graph.h"

#include <utility>

#include "optimizer/equal_costs.h"

namespace taso {

TimedGraph to_be_timed(const PlannedGraph& planned) {
  TimedGraph timed{&planned.graph, planned.plan.layouts, {}, false};
  if (timed.layouts) {
    Hasher hasher;
    for (const Launch& launch : planned.plan.launches) hasher.add(launch.kernel->hash);
    timed.kernels = hasher.finish();
  }
  return timed;
}

Expected<PlannedGraph> GraphPlanner::plan(Graph graph, double limit) const {
  PlannedGraph planned{std::move(graph), {}, 0, std::nullopt};
  TASO_ASSIGN(planned.plan, choose_layouts_ ? target().open_plan(planned.graph) : target().plan(planned.graph));
  TASO_ASSIGN(planned.cost, model_->cost(planned.graph, planned.plan, limit));
  return planned;
}

Status GraphPlanner::improve(PlannedGraph& planned) const {
  if (!choose_layouts_) return {};
  TASO_ASSIGN(const double cost, model_->improve(planned.graph, planned.plan, planned.cost));
  if (cost < planned.cost) planned.summary.reset();
  planned.cost = cost;
  return {};
}

Expected<GraphSummary> summary_of(const PlannedGraph& planned, const Target& target) {
  const Graph& graph = planned.graph;
  const KernelPlan& plan = planned.plan;
  GraphSummary summary;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.weight_only || (node.kind != NodeKind::op && node.kind != NodeKind::opaque)) continue;
    ++summary.operators[node.op];
    ++(node.kind == NodeKind::op ? summary.operator_count : summary.opaque_count);
  }
  summary.cost = planned.cost;
  summary.kernels = plan.launches.size();
  for (const Launch& launch : plan.launches) {
    summary.flops += launch.kernel->flops;
    summary.bytes += launch.kernel->bytes;
    summary.conversions += launch.kernel->op == reorder_op ? 1 : 0;
  }
  TASO_ASSIGN(summary.peak_bytes, target.peak_bytes(graph, plan.layouts.get()));
  return summary;
}

Status GraphPlanner::summarize(PlannedGraph& planned) const {
  if (planned.summary) return {};
  TASO_ASSIGN(GraphSummary summary, summary_of(planned, target()));
  summary.rule_cost = planned.cost;
  if (planned.plan.layouts) {
    TASO_ASSIGN(KernelPlan by_rule, target().plan(planned.graph));
    const Expected<double> rule_cost = model_->cost(planned.graph, by_rule);
    if (!rule_cost && rule_cost.error().code != ErrorCode::cost_missing) return rule_cost.error();
    summary.rule_cost = rule_cost ? std::optional<double>(*rule_cost) : std::nullopt;
  }
  if (model_->uses_time()) {
    TASO_ASSIGN(summary.predicted_seconds, measured_->seconds(planned.plan));
  }
  planned.summary = std::move(summary);
  return {};
}

Expected<std::optional<double>> GraphPlanner::least_cost(const PlannedGraph& planned) const {
  if (!choose_layouts_) return std::optional<double>();
  TASO_ASSIGN(std::optional<double> least, model_->least(planned.graph));
  if (least && is_less(planned.cost, *least)) least.reset();
  return least;
}

}  // namespace taso
