#include "tests/partition/ways_to_plan.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "partition/plan_baselines.h"
#include "partition/recursive.h"
#include "partition/restore_plan.h"
#include "support/random.h"
#include "tests/partition/stated_plans.h"
#include "tests/support/shipped.h"

namespace taso::test {
namespace {

bool passes_on(const NodeConfiguration& configuration) {
  return std::any_of(configuration.axes.begin(), configuration.axes.end(),
                     [](const AxisUse& use) { return use.kind == AxisUse::Kind::partial; });
}

/// Has partial results of its own.
bool reduces(const NodeConfiguration& configuration) {
  return std::any_of(configuration.axes.begin(), configuration.axes.end(),
                     [](const AxisUse& use) { return use.kind == AxisUse::Kind::cut && !use.reducer.empty(); });
}

/// Draws the configurations of nodes one after the other, each among those that can read what nodes before make. Often
/// a node that could do so passes on partial results of these, or has partial ones of its own.
class DrawnConfigurations {
 public:
  DrawnConfigurations(const Graph& graph, const Mesh& mesh, const Planner& planner, std::uint64_t seed)
      : graph_(graph), mesh_(mesh), random_(seed, "configurations") {
    for (const NodeId id : planned_nodes(graph)) {
      Several possible, passing, reducing;
      for (const NodeConfiguration& configuration : planner.configurations(id)) {
        if (!can_read(id, configuration)) continue;
        possible.push_back(&configuration);
        if (passes_on(configuration)) passing.push_back(&configuration);
        if (reduces(configuration)) reducing.push_back(&configuration);
      }
      drawn_[id] = often(passing) ? one_of(passing) : often(reducing) ? one_of(reducing) : one_of(possible);
    }
  }
  [[nodiscard]] bool contains(NodeId id, const NodeConfiguration& configuration) const {
    return drawn_.at(id)->axes == configuration.axes;
  }

 private:
  using Several = std::vector<const NodeConfiguration*>;
  [[nodiscard]] bool is_output(Value value) const {
    return std::find(graph_.outputs().begin(), graph_.outputs().end(), value) != graph_.outputs().end();
  }
  [[nodiscard]] bool often(const Several& some) { return !some.empty() && random_.below(3) > 0; }
  [[nodiscard]] const NodeConfiguration* one_of(const Several& some) { return some[random_.below(some.size())]; }
  [[nodiscard]] bool can_read(NodeId id, const NodeConfiguration& configuration) const {
    const std::vector<Value>& inputs = graph_.node(id).inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      // Of an output of the graph all is kept.
      if (!configuration.reads[i].partial.empty() && is_output(inputs[i])) return false;
      const TensorType& type = graph_.type(inputs[i]);
      const auto maker = drawn_.find(inputs[i].node);
      const Placement have =
          maker == drawn_.end() ? everywhere(type.shape, mesh_) : maker->second->makes[inputs[i].port];
      if (!transfer(have, configuration.reads[i], 4, mesh_).possible) return false;
    }
    return true;
  }

  const Graph& graph_;
  const Mesh& mesh_;
  Random random_;
  std::map<NodeId, const NodeConfiguration*> drawn_;
};

/// Of operators that can use the mesh in many ways only so many are looked at: all take long.
PlannerOptions of_at_most(std::size_t ways) {
  PlannerOptions options;
  options.configurations.most = ways;
  return options;
}

PartitionPlan drawn_plan(const Graph& graph, const Mesh& mesh, StrategyTable& strategies, std::uint64_t seed) {
  Planner planner(graph, mesh, strategies, of_at_most(512));
  const DrawnConfigurations drawn(graph, mesh, planner, seed);
  return value_of(planner.plan(
      [&](NodeId id, const NodeConfiguration& configuration) { return drawn.contains(id, configuration); }));
}

/// The plan with values kept in other placements, where that is a plan.
PartitionPlan kept_elsewhere(const Graph& graph, PartitionPlan plan, StrategyTable& strategies, std::uint64_t seed) {
  Random random(seed, "kept elsewhere");
  PlanDocument document = stated(graph, plan.mesh, plan, strategies);
  const std::vector<NodeId> nodes = planned_nodes(graph);
  for (StatedKept& kept : document.kept) {
    const StatedKept before = kept;
    std::vector<StatedKept> others(2, before);
    others[0].as = KeptAs::Kind::made;
    others[1].as = KeptAs::Kind::everywhere;
    const Value value{nodes[kept.node], kept.output};
    for (std::size_t reader = 0; reader < nodes.size(); ++reader)
      for (std::size_t operand = 0; operand < graph.node(nodes[reader]).inputs.size(); ++operand)
        if (graph.node(nodes[reader]).inputs[operand] == value) {
          StatedKept& other = others.emplace_back(before);
          other.as = KeptAs::Kind::read;
          other.reader = reader;
          other.operand = operand;
        }
    kept = others[random.below(others.size())];
    kept.axes.reset();
    if (Expected<PartitionPlan> other = restore_plan(document, graph, {}, strategies))
      plan = std::move(*other);
    else
      kept = before;
  }
  return plan;
}

std::optional<PartitionPlan> plan_by_hand(const Graph& graph, const Mesh& mesh, StrategyTable& strategies,
                                          std::uint64_t seed) {
  Planner planner(graph, mesh, strategies, of_at_most(64));
  const std::vector<PlanBaseline> baselines =
      plan_baselines(graph, mesh, planner, roofline(registry(), mesh.device), strategies);
  const PlanBaseline& baseline = baselines[seed % baselines.size()];
  if (!baseline.impossible.empty()) return std::nullopt;
  return value_of(planner.plan(baseline.allowed));
}

/// Within nine tenths of the memory that the exact plan takes; that plan where nothing fits.
std::optional<PartitionPlan> plan_within_memory(const Graph& graph, const Mesh& mesh, StrategyTable& strategies) {
  if (mesh.axes.size() > 1) return std::nullopt;
  PlannerOptions options = of_at_most(6);
  PartitionPlan plan = value_of(Planner(graph, mesh, strategies, options).plan());
  options.memory = plan.memory * 0.9;
  Expected<PartitionPlan> smaller = Planner(graph, mesh, strategies, options).plan();
  return smaller ? std::move(*smaller) : plan;
}

}  // namespace

const std::vector<std::string>& ways_to_plan() {
  static const std::vector<std::string> names = {"drawn",        "drawn, kept elsewhere", "exact",
                                                 "axis by axis", "within memory",         "by hand"};
  return names;
}

std::optional<PartitionPlan> plan_in_way(const std::string& way, const Graph& graph, const Mesh& mesh,
                                         StrategyTable& strategies, std::uint64_t seed) {
  if (way == "drawn") return drawn_plan(graph, mesh, strategies, seed);
  if (way == "drawn, kept elsewhere")
    return kept_elsewhere(graph, drawn_plan(graph, mesh, strategies, seed), strategies, seed);
  if (way == "axis by axis") return value_of(plan_recursively(graph, mesh, strategies, of_at_most(64)));
  if (way == "within memory") return plan_within_memory(graph, mesh, strategies);
  if (way == "by hand") return plan_by_hand(graph, mesh, strategies, seed);
  return value_of(Planner(graph, mesh, strategies, of_at_most(64)).plan());
}

}  // namespace taso::test
