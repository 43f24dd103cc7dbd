#include "partition/plan_baselines.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "graph/reals.h"

namespace taso {
namespace {

bool cut_along(const AxisUse& use, const std::string& axis) {
  return use.kind == AxisUse::Kind::cut && use.variable.ends_with(axis);
}

/// All mesh axes cut that axis of the first output, counted from the front (0) or, negative, from the end.
bool all_cut(const Graph& graph, NodeId id, const NodeConfiguration& configuration, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(graph.node(id).outputs[0].shape.size());
  const std::string name = "@" + std::to_string(axis < 0 ? axis : axis - rank);
  return std::all_of(configuration.axes.begin(), configuration.axes.end(),
                     [&](const AxisUse& use) { return cut_along(use, name); });
}

bool all_repeat(const NodeConfiguration& configuration) {
  return std::all_of(configuration.axes.begin(), configuration.axes.end(),
                     [](const AxisUse& use) { return use.kind == AxisUse::Kind::repeat; });
}

bool is_whole(const Placement& placement, const Shape& shape) {
  const IndexBox whole = whole_box(shape);
  return placement.partial.empty() &&
         std::all_of(placement.boxes.begin(), placement.boxes.end(), [&](const IndexBox& box) { return box == whole; });
}

/// In how many of its axes devices have different parts.
std::size_t axes_cut(const Placement& placement) {
  if (placement.boxes.empty()) return 0;
  std::size_t count = 0;
  for (std::size_t axis = 0; axis < placement.boxes[0].size(); ++axis)
    count += std::any_of(placement.boxes.begin(), placement.boxes.end(),
                         [&](const IndexBox& box) { return box[axis] != placement.boxes[0][axis]; });
  return count;
}

/// What products with weights are cut along.
enum class ProductCut : std::uint8_t {
  columns,  ///< Weights are cut, everything else is read whole, results lie side by side.
  rows,     ///< Weights are cut, and so is what they are multiplied with; results are added.
};

/// What the structure of a graph says.
class Structure {
 public:
  Structure(const Graph& graph, Planner& planner, StrategyTable& strategies)
      : graph_(graph), planner_(planner), strategies_(strategies) {
    for (const NodeId id : graph.topological_order()) {
      const Node& node = graph.node(id);
      if (node.kind != NodeKind::op || node.weight_only) continue;
      nodes_.push_back(id);
      const std::vector<NodeConfiguration>& all = planner_.configurations(id);
      if (std::any_of(all.begin(), all.end(), [&](const auto& one) { return is(id, one, ProductCut::columns); }))
        products_.insert(id);
    }
  }

  [[nodiscard]] bool is_product(NodeId id) const { return products_.contains(id); }
  [[nodiscard]] const std::set<NodeId>& products() const { return products_; }

  /// Some axis of the output needs more of an operand than its own part: a window.
  [[nodiscard]] bool has_windows(NodeId id) {
    const auto& strategies = strategies_.of(graph_.node(id).op);
    return std::any_of(strategies.begin(), strategies.end(), [](const auto& strategy) {
      return strategy->concatenates() &&
             std::any_of(strategy->inputs.begin(), strategy->inputs.end(),
                         [](const InputCut& cut) { return cut.first_end != cut.second_begin; });
    });
  }

  /// All mesh axes cut the product so. Weights are operands of two axes or more.
  [[nodiscard]] bool is(NodeId id, const NodeConfiguration& configuration, ProductCut cut) const {
    const Node& node = graph_.node(id);
    for (const AxisUse& use : configuration.axes)
      if (use.kind != AxisUse::Kind::cut || (use.reducer == "sum") != (cut == ProductCut::rows)) return false;
    bool cuts_weights = false, reads = false;
    for (std::size_t i = 0; i < node.inputs.size() && i < configuration.reads.size(); ++i) {
      const TensorType& type = graph_.type(node.inputs[i]);
      if (!type.known) return false;
      const bool whole = is_whole(configuration.reads[i], type.shape);
      if (graph_.node(node.inputs[i].node).weight_only) {
        cuts_weights = cuts_weights || (type.shape.size() >= 2 && is_real(type.element) && !whole);
      } else {
        if (!is_real(type.element) || whole != (cut == ProductCut::columns)) return false;
        reads = true;
      }
    }
    return cuts_weights && reads;
  }

  /// Which products are cut by rows, as a product cut by columns is read; and what lies between the two.
  void follow(std::set<NodeId>& rows, std::set<NodeId>& between) const {
    std::set<NodeId> inside;  // What has columns only.
    for (const NodeId id : nodes_) {
      const std::vector<Value>& inputs = graph_.node(id).inputs;
      const bool reads_inside =
          std::any_of(inputs.begin(), inputs.end(), [&](const Value& value) { return inside.contains(value.node); });
      if (is_product(id)) {
        (reads_inside ? rows : inside).insert(id);
      } else if (reads_inside) {
        inside.insert(id);
        between.insert(id);
      }
    }
  }

 private:
  const Graph& graph_;
  Planner& planner_;
  StrategyTable& strategies_;
  std::vector<NodeId> nodes_;
  std::set<NodeId> products_;
};

PlanBaseline one_weird_trick(const Graph& graph, Structure& structure) {
  auto windows = std::make_shared<std::set<NodeId>>(), neurons = std::make_shared<std::set<NodeId>>();
  for (const NodeId id : structure.products()) (structure.has_windows(id) ? windows : neurons)->insert(id);
  PlanBaseline baseline{"one weird trick", {}, {}};
  if (windows->empty()) baseline.impossible = "no convolution can be cut among all devices";
  if (neurons->empty()) baseline.impossible = "no other product with weights can be cut among all devices";
  baseline.allowed = [&graph, windows, neurons, structure](NodeId id, const NodeConfiguration& configuration) {
    if (windows->contains(id)) return all_cut(graph, id, configuration, 0);
    if (neurons->contains(id)) return structure.is(id, configuration, ProductCut::columns);
    return all_cut(graph, id, configuration, 0) || all_cut(graph, id, configuration, -1) || all_repeat(configuration);
  };
  return baseline;
}

PlanBaseline megatron(const Structure& structure) {
  auto rows = std::make_shared<std::set<NodeId>>(), between = std::make_shared<std::set<NodeId>>();
  structure.follow(*rows, *between);
  PlanBaseline baseline{"Megatron", {}, {}};
  if (rows->empty())
    baseline.impossible = "no two products with weights, one behind the other, can be cut among all devices";
  baseline.allowed = [rows, between, structure](NodeId id, const NodeConfiguration& configuration) {
    if (structure.is_product(id))
      return structure.is(id, configuration, rows->contains(id) ? ProductCut::rows : ProductCut::columns);
    return between->contains(id) || all_repeat(configuration);
  };
  return baseline;
}

/// All mesh axes cut the first axis.
Placement first_axis_cut(const Shape& shape, const Mesh& mesh) {
  Placement placement = everywhere(shape, mesh);
  if (!shape.empty())
    for (std::size_t device = 0; device < placement.boxes.size(); ++device)
      placement.boxes[device][0] = RangePiece{shape[0], static_cast<std::int64_t>(device), mesh.devices()}.range();
  return placement;
}

/// Seconds of a way to spread a node, from values cut along their first axes to such.
double seconds_between_rows(const Graph& graph, const Mesh& mesh, NodeId id, const NodeConfiguration& configuration) {
  const Node& node = graph.node(id);
  double sum = 0;
  const auto add = [&](const Placement& have, const Placement& need, const TensorType& type) {
    const Transfer moved = transfer(have, need, static_cast<std::int64_t>(size_of(type.element)), mesh);
    sum += moved.possible ? moved.seconds : std::numeric_limits<double>::infinity();
  };
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const TensorType& type = graph.type(node.inputs[i]);
    if (!graph.node(node.inputs[i].node).weight_only)
      add(first_axis_cut(type.shape, mesh), configuration.reads[i], type);
  }
  for (std::size_t port = 0; port < node.outputs.size(); ++port)
    add(configuration.makes[port], first_axis_cut(node.outputs[port].shape, mesh), node.outputs[port]);
  return sum;
}

PlanBaseline all_row_greedy(const Graph& graph, const Mesh& mesh, Planner& planner, const PieceCost& cost) {
  auto chosen = std::make_shared<std::map<NodeId, std::vector<AxisUse>>>();
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::op || node.weight_only || planner.configurations(id).size() == 1) continue;
    std::vector<bool> weights;
    for (const Value& input : node.inputs) weights.push_back(graph.node(input.node).weight_only);
    double best = std::numeric_limits<double>::infinity();
    for (const NodeConfiguration& configuration : planner.configurations(id)) {
      const Expected<double> computing = cost(configuration.largest, weights);
      const double all = computing ? *computing + seconds_between_rows(graph, mesh, id, configuration) : best;
      if (all >= best) continue;
      best = all;
      (*chosen)[id] = configuration.axes;
    }
  }
  return {"all row, greedy",
          [chosen](NodeId id, const NodeConfiguration& configuration) {
            const auto found = chosen->find(id);
            return found != chosen->end() && found->second == configuration.axes;
          },
          {}};
}

}  // namespace

ConfigurationFilter only_repeat() {
  return [](NodeId, const NodeConfiguration& configuration) { return all_repeat(configuration); };
}

ConfigurationFilter only_data_parallel(const Graph& graph) {
  return [&graph](NodeId id, const NodeConfiguration& configuration) {
    return all_repeat(configuration) || all_cut(graph, id, configuration, 0);
  };
}

std::vector<PlanBaseline> plan_baselines(const Graph& graph, const Mesh& mesh, Planner& planner, const PieceCost& cost,
                                         StrategyTable& strategies) {
  Structure structure(graph, planner, strategies);
  const auto equal_chop = [](NodeId, const NodeConfiguration& configuration) {
    const auto fits = [](const Placement& placement) { return axes_cut(placement) <= 1; };
    return std::all_of(configuration.reads.begin(), configuration.reads.end(), fits) &&
           std::all_of(configuration.makes.begin(), configuration.makes.end(), fits);
  };
  return {{"all repeated", only_repeat(), {}},        {"data parallel", only_data_parallel(graph), {}},
          one_weird_trick(graph, structure),          megatron(structure),
          all_row_greedy(graph, mesh, planner, cost), {"equal chop", equal_chop, {}}};
}

}  // namespace taso
