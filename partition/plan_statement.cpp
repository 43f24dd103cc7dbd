#include "partition/plan_statement.h"

#include <algorithm>
#include <map>
#include <utility>

namespace taso {
namespace {

/// States what the operators of a plan do, with their places in it.
class PlanStatement {
 public:
  PlanStatement(const Graph& graph, const std::vector<std::string>& node_names, const PartitionPlan& plan,
                PlanDocument& document)
      : graph_(graph), node_names_(node_names), plan_(plan), document_(document) {
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) numbers_[plan_.nodes[i].node] = i;
  }

  void run(const std::vector<std::vector<CutPoints>>& cuts) {
    const std::vector<MovedForNode> moved = moved_by_node(plan_);
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlannedNode& node = plan_.nodes[i];
      document_.nodes.push_back({name_of(node.node), graph_.node(node.node).op, node.configuration.axes, cuts[i],
                                 node.compute_seconds, moved[i].in.bytes, moved[i].out.bytes, node.memory, 0});
    }
    TASO_CHECK(plan_.kept_as.size() == plan_.kept.size(), "a file of a plan with state");
    for (const auto& [value, as] : plan_.kept_as) keep(value, as);
    std::sort(document_.kept.begin(), document_.kept.end(), [](const StatedKept& a, const StatedKept& b) {
      return std::pair(a.node, a.output) < std::pair(b.node, b.output);
    });
    for (const PlannedTransfer& one : plan_.transfers) {
      StatedTransfer& stated = document_.transfers.emplace_back();
      stated.from = numbers_.at(one.value.node);
      stated.from_name = name_of(one.value.node);
      stated.output = one.value.port;
      if (one.reader) {
        stated.to = numbers_.at(*one.reader);
        stated.to_name = name_of(*one.reader);
      }
      stated.bytes = one.transfer.bytes;
      stated.cost = one.transfer.seconds;
    }
  }

 private:
  [[nodiscard]] std::string name_of(NodeId id) const { return planned_name(graph_, node_names_, id); }

  void keep(Value value, const KeptAs& as) {
    StatedKept& stated = document_.kept.emplace_back();
    stated.node = numbers_.at(value.node);
    stated.output = value.port;
    stated.as = as.kind;
    stated.axes = as.axes;
    if (as.kind != KeptAs::Kind::read) return;
    stated.reader = numbers_.at(as.reader);
    stated.operand = as.operand;
  }

  const Graph& graph_;
  const std::vector<std::string>& node_names_;
  const PartitionPlan& plan_;
  PlanDocument& document_;
  std::map<NodeId, std::size_t> numbers_;
};

}  // namespace

std::vector<MovedForNode> moved_by_node(const PartitionPlan& plan) {
  std::map<NodeId, MovedForNode> sums;
  for (const PlannedTransfer& moved : plan.transfers)
    (moved.reader ? sums[*moved.reader].in : sums[moved.value.node].out) += moved.transfer;
  std::vector<MovedForNode> list;
  list.reserve(plan.nodes.size());
  for (const PlannedNode& node : plan.nodes) list.push_back(sums[node.node]);
  return list;
}

StatedSums stated_sums(const PartitionPlan& plan) {
  return {plan.seconds,      plan.compute_seconds, plan.transfer_seconds, plan.transfer_bytes,
          plan.weight_bytes, plan.memory,          plan.step_seconds};
}

void state_plan(const Graph& graph, const std::vector<std::string>& node_names, const PartitionPlan& plan,
                const std::vector<std::vector<CutPoints>>& cuts, PlanDocument& document) {
  TASO_CHECK(cuts.size() == plan.nodes.size(), "cut points of another plan");
  document.sums = stated_sums(plan);
  document.lower_bound = plan.lower_bound;
  document.exact = plan.exact;
  document.complete = plan.complete;
  document.stopped = plan.stopped;
  PlanStatement(graph, node_names, plan, document).run(cuts);
}

}  // namespace taso
