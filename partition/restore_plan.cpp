#include "partition/restore_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "partition/piece_costs.h"
#include "partition/placement.h"
#include "partition/plan_recount.h"

namespace taso {
namespace {

class Restoring {
 public:
  Restoring(const PlanDocument& document, const Graph& graph, const std::vector<std::string>& node_names,
            StrategyTable& strategies)
      : document_(document),
        graph_(graph),
        node_names_(node_names),
        strategies_(strategies),
        order_(planned_nodes(graph)),
        cost_(cost_of(document, strategies.registry())) {
    for (std::size_t at = 0; at < order_.size(); ++at) numbers_[order_[at]] = at;
  }

  Expected<PartitionPlan> run() {
    plan_.mesh = in_unit(document_.mesh, unit_of(document_.cost));
    if (document_.nodes.size() != order_.size())
      return refused("nodes", 0,
                     fmt::format("{} operators, but the model has {}", document_.nodes.size(), order_.size()));
    for (std::size_t at = 0; at < order_.size(); ++at) TASO_RETURN_IF_ERROR(restore_node(at));
    TASO_RETURN_IF_ERROR(restore_kept());
    if (const Status counted = recount(graph_, plan_); !counted) return refused("nodes", 0, counted.error().message);
    plan_.lower_bound = document_.lower_bound;
    plan_.exact = document_.exact;
    plan_.complete = document_.complete;
    plan_.stopped = document_.stopped;
    return std::move(plan_);
  }

 private:
  static PieceCost cost_of(const PlanDocument& document, const OperatorRegistry& registry) {
    switch (document.cost) {
      case PlanCost::roofline:
        return roofline(registry, document.mesh.device);
      case PlanCost::flops:
        return flops_of_pieces(registry);
      case PlanCost::bytes:
        return bytes_of_pieces(registry);
      case PlanCost::time:
        break;
    }
    return {};
  }

  [[nodiscard]] Error refused(const std::string& place, int line, const std::string& message) const {
    return {ErrorCode::not_proved, place + ": " + message, {document_.file, line}};
  }

  [[nodiscard]] Status restore_node(std::size_t at) {
    const StatedNode& stated = document_.nodes[at];
    const NodeId id = order_[at];
    const Node& node = graph_.node(id);
    const std::string place = fmt::format("nodes[{}]", at);
    if (stated.op != json_spelling(node.op))
      return refused(place + ".op", stated.line, fmt::format("{}, but the model has {} there", stated.op, node.op));
    if (const std::string name = json_spelling(planned_name(graph_, node_names_, id)); stated.name != name)
      return refused(place + ".name", stated.line,
                     fmt::format("'{}', but the model has '{}' there", stated.name, name));
    PlannedNode planned;
    planned.node = id;
    if (node.kind != NodeKind::op || !types_known(graph_, node)) {
      TASO_ASSIGN(planned.configuration, carried(node, stated, place));
    } else {
      TASO_ASSIGN(planned.configuration, configuration(id, stated.axes, place + ".axes", stated.line));
      TASO_RETURN_IF_ERROR(check_cuts(id, stated, place));
      planned.compute_seconds = stated.cost;
      if (cost_) {
        std::vector<bool> weights;
        for (const Value& input : node.inputs) weights.push_back(graph_.node(input.node).weight_only);
        TASO_ASSIGN(planned.compute_seconds, cost_(planned.configuration.largest, weights));
      }
    }
    plan_.nodes.push_back(std::move(planned));
    return {};
  }

  /// An operator that is not understood reads and makes everything on the first device.
  [[nodiscard]] Expected<NodeConfiguration> carried(const Node& node, const StatedNode& stated,
                                                    const std::string& place) const {
    for (std::size_t axis = 0; axis < stated.axes.size(); ++axis)
      if (stated.axes[axis] != AxisUse())
        return refused(fmt::format("{}.axes[{}]", place, axis), stated.line,
                       fmt::format("{} is not understood: it can only repeat", node.op));
    if (!stated.cuts.empty()) return refused(place + ".cuts", stated.line, "an operator that repeats is not cut");
    NodeConfiguration configuration;
    configuration.axes = stated.axes;
    const auto whole = [&](const TensorType& type) {
      return type.known ? on_first(type.shape, document_.mesh) : Placement{};
    };
    for (const Value& input : node.inputs) configuration.reads.push_back(whole(graph_.type(input)));
    for (const TensorType& type : node.outputs) configuration.makes.push_back(whole(type));
    return configuration;
  }

  [[nodiscard]] Expected<NodeConfiguration> configuration(NodeId id, const std::vector<AxisUse>& axes,
                                                          const std::string& place, int line) {
    // Equal applications in equal use are many.
    const Node& node = graph_.node(id);
    std::vector<TensorType> types;
    for (const Value& input : node.inputs) types.push_back(graph_.type(input));
    std::string key = node.op + to_string(node.attributes);
    for (const TensorType& type : types) key += " " + to_string(type);
    auto known = configurations_.find({key, axes});
    if (known == configurations_.end()) {
      Expected<NodeConfiguration> made = configuration_of(graph_, id, document_.mesh, axes, strategies_);
      if (!made) return refused(place, line, made.error().message);
      known = configurations_.emplace(std::pair(key, axes), std::move(*made)).first;
    }
    for (std::size_t input = 0; input < node.inputs.size(); ++input)
      if (!known->second.reads[input].partial.empty() && !numbers_.contains(node.inputs[input].node))
        return refused(place, line, fmt::format("operand {} is whole, not partial: no operator makes it", input));
    return known->second;
  }

  [[nodiscard]] Status check_cuts(NodeId id, const StatedNode& stated, const std::string& place) const {
    const std::vector<CutPoints> cuts = cut_points(graph_, id, document_.mesh, stated.axes, strategies_);
    const auto names = [](const std::vector<CutPoints>& list) {
      std::vector<std::string> all;
      for (const CutPoints& cut : list) all.push_back(cut.variable);
      return fmt::format("{}", fmt::join(all, ", "));
    };
    if (names(cuts) != names(stated.cuts))
      return refused(place + ".cuts", stated.line,
                     fmt::format("of [{}], but the uses cut [{}]", names(stated.cuts), names(cuts)));
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      const CutPoints &right = cuts[i], &given = stated.cuts[i];
      const std::string where = fmt::format("{}.cuts[{}]", place, i);
      if (given.extent != right.extent)
        return refused(where + ".extent", stated.line,
                       fmt::format("{}, but {} has {} values", given.extent, right.variable, right.extent));
      if (given.points.size() != right.points.size())
        return refused(where + ".points", stated.line,
                       fmt::format("{}, but it takes {} to make {} pieces", given.points.size(), right.points.size(),
                                   right.points.size() + 1));
      for (std::size_t point = 0; point < right.points.size(); ++point)
        if (given.points[point] != right.points[point])
          return refused(fmt::format("{}.points[{}]", where, point), stated.line,
                         fmt::format("{}, but piece {} of {} begins at {}", given.points[point], point + 1,
                                     right.points.size() + 1, right.points[point]));
    }
    return {};
  }

  [[nodiscard]] std::string describe(Value value) const {
    return fmt::format("output {} of '{}' (node {})", value.port, planned_name(graph_, node_names_, value.node),
                       numbers_.at(value.node));
  }

  /// Exactly the values that need it, in the order of who makes them.
  [[nodiscard]] Status restore_kept() {
    const std::vector<Value> values = kept_values(graph_);
    for (std::size_t i = 0; i < std::max(values.size(), document_.kept.size()); ++i) {
      if (i >= document_.kept.size())
        return refused("kept", 0, fmt::format("nothing is said of {}, which is kept apart", describe(values[i])));
      const StatedKept& stated = document_.kept[i];
      const std::string place = fmt::format("kept[{}]", i);
      const Value named{order_[stated.node], stated.output};
      if (i >= values.size() || named != values[i])
        return refused(place, stated.line,
                       fmt::format("output {} of node {}, but {}", stated.output, stated.node,
                                   i >= values.size() ? "all values that are kept apart are named before"
                                                      : "the next value that is kept apart is " + describe(values[i])));
      TASO_ASSIGN(Placement placement, placement_of(stated, named, place));
      const auto& outputs = graph_.outputs();
      if (std::find(outputs.begin(), outputs.end(), named) != outputs.end() &&
          (!placement.partial.empty() || !covers(placement, graph_.type(named).shape)))
        return refused(place, stated.line, "an output of the model is kept so that not all of it is there");
      KeptAs as{stated.as, 0, stated.operand, stated.axes};
      if (stated.as == KeptAs::Kind::read) as.reader = order_[stated.reader];
      plan_.kept.emplace(named, std::move(placement));
      plan_.kept_as.emplace(named, std::move(as));
    }
    return {};
  }

  [[nodiscard]] Expected<Placement> placement_of(const StatedKept& stated, Value value, const std::string& place) {
    if (stated.as == KeptAs::Kind::everywhere) return everywhere(graph_.type(value).shape, document_.mesh);
    const bool made = stated.as == KeptAs::Kind::made;
    const std::size_t at = made ? stated.node : stated.reader;
    const Node& node = graph_.node(order_[at]);
    if (!made && (stated.operand >= node.inputs.size() || node.inputs[stated.operand] != value))
      return refused(place + ".operand", stated.line,
                     fmt::format("operand {} of '{}' (node {}) is not {}", stated.operand,
                                 planned_name(graph_, node_names_, order_[at]), at, describe(value)));
    NodeConfiguration configured;
    if (!stated.axes) {
      configured = plan_.nodes[at].configuration;
    } else if (node.kind != NodeKind::op || !types_known(graph_, node)) {
      return refused(place + ".axes", stated.line, fmt::format("{} is not understood: it has no other uses", node.op));
    } else {
      TASO_ASSIGN(configured, configuration(order_[at], *stated.axes, place + ".axes", stated.line));
    }
    return made ? configured.makes[value.port] : configured.reads[stated.operand];
  }

  const PlanDocument& document_;
  const Graph& graph_;
  const std::vector<std::string>& node_names_;
  StrategyTable& strategies_;
  std::vector<NodeId> order_;
  std::map<NodeId, std::size_t> numbers_;
  PieceCost cost_;
  std::map<std::pair<std::string, std::vector<AxisUse>>, NodeConfiguration> configurations_;
  PartitionPlan plan_;
};

}  // namespace

Expected<PartitionPlan> restore_plan(const PlanDocument& document, const Graph& graph,
                                     const std::vector<std::string>& node_names, StrategyTable& strategies) {
  return Restoring(document, graph, node_names, strategies).run();
}

}  // namespace taso
