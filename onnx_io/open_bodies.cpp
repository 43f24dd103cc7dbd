#include "onnx_io/open_bodies.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "onnx_io/body.h"

namespace taso {
namespace {

/// Larger subgraphs would be read again and again at the samples of a model.
constexpr int most_nodes_of_body = 2000;

/// Where the extents of a subgraph's tensors come from: numbers, extents of its inputs, or nothing that is known.
///
/// Only what holds at all sizes: operators of one shape, products, and what carried nodes state. Where tensors are
/// broadcast against each other, an extent that may be 1 says nothing.
class ExtentOrigins {
 public:
  ExtentOrigins(const ImportedModel& imported, const Document& document, const OperatorRegistry& registry)
      : imported_(imported), graph_(imported.graph), registry_(registry) {
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) inputs_.emplace(graph_.inputs()[i], i);
    // Others may be what they are at these sizes alone.
    for (std::size_t i = 0; i < document.tensors().size(); ++i) {
      const DocumentTensor& tensor = document.tensors()[i];
      const bool constant =
          tensor.source == TensorSource::initializer || (tensor.source == TensorSource::node && tensor.index >= 0 &&
                                                         document.node(tensor.index).op_type() == "Constant" &&
                                                         is_default_domain(document.node(tensor.index).domain()));
      if (const auto& value = imported.values[i]; constant && value && graph_.contains(value->node))
        constants_.insert(value->node);
    }
  }

  /// `of_input`: a position among the graph's inputs, and an axis.
  [[nodiscard]] StatedExtent of(Value value, std::size_t axis) { return origin(value, axis, 0).value_or(unknown()); }

 private:
  /// Nothing: it is 1 wherever it is broadcast, so that another operand says what the extent is.
  using Origin = std::optional<StatedExtent>;
  static StatedExtent unknown() { return {}; }

  Origin origin(Value value, std::size_t axis, int depth) {
    constexpr int deepest = 200;
    const Node& node = graph_.node(value.node);
    const TensorType& type = node.outputs[value.port];
    if (depth > deepest || !type.known || axis >= type.shape.size()) return unknown();
    const auto key = std::tuple(value.node, value.port, axis);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    const Origin found = find(value, axis, depth);
    known_.emplace(key, found);
    return found;
  }

  Origin find(Value value, std::size_t axis, int depth) {
    const Node& node = graph_.node(value.node);
    const Shape& shape = node.outputs[value.port].shape;
    const StatedExtent number{shape[axis], std::nullopt};
    switch (node.kind) {
      case NodeKind::input: {
        const std::size_t place = inputs_.at(value.node);
        const std::vector<DeclaredExtent>& declared = imported_.inputs[place].extents;
        if (axis >= declared.size()) return unknown();
        return declared[axis].value ? number : StatedExtent{std::nullopt, std::pair(place, axis)};
      }
      case NodeKind::constant:
        return constants_.contains(value.node) ? number : unknown();
      case NodeKind::opaque:
        return of_carried(value, axis, depth);
      case NodeKind::op:
        return of_operator(node, shape, axis, depth);
    }
    return unknown();
  }

  Origin of_carried(Value value, std::size_t axis, int depth) {
    const Node& node = graph_.node(value.node);
    const auto place = imported_.decisions.carried.find(value.node);
    if (place == imported_.decisions.carried.end()) return unknown();
    const CarriedShape& rule = place->second;
    if (rule.rule == CarriedShape::Rule::stated && value.port < rule.stated.size() &&
        axis < rule.stated[value.port].size()) {
      const StatedExtent& stated = rule.stated[value.port][axis];
      if (stated.of_input && stated.of_input->first < node.inputs.size())
        return origin(node.inputs[stated.of_input->first], stated.of_input->second, depth + 1);
      return stated;
    }
    if (value.port != 0) return unknown();
    if (rule.rule == CarriedShape::Rule::same && rule.input < node.inputs.size() && !rule.changed.contains(axis))
      return origin(node.inputs[rule.input], axis, depth + 1);
    if (rule.rule == CarriedShape::Rule::broadcast) return in_common(node, axis, depth);
    return unknown();
  }

  Origin of_operator(const Node& node, const Shape& shape, std::size_t axis, int depth) {
    const std::size_t from_end = shape.size() - axis;
    if (node.op == "broadcast") {
      // To the shape of another operand, or to numbers of which nothing is known.
      const Shape& before = graph_.type(node.inputs[0]).shape;
      if (from_end > before.size()) return std::nullopt;
      const Origin read = origin(node.inputs[0], before.size() - from_end, depth + 1);
      if (read && read->number == 1) return std::nullopt;
      return before[before.size() - from_end] == shape[axis] ? read : unknown();
    }
    if (node.op == "transpose") {
      const std::int64_t place = node.attributes.integers("perm").at(axis);
      return origin(node.inputs[0], static_cast<std::size_t>(place), depth + 1);
    }
    if (node.op == "matmul" && from_end <= 2) {
      const Value& operand = node.inputs[from_end == 1 ? 1 : 0];
      const std::size_t rank = graph_.type(operand).shape.size();
      return rank < from_end ? unknown() : origin(operand, rank - from_end, depth + 1);
    }
    if (node.op == "gather") {
      const std::size_t rank = graph_.type(node.inputs[0]).shape.size(),
                        places = graph_.type(node.inputs[1]).shape.size(),
                        along = rank - static_cast<std::size_t>(-node.attributes.integer("axis"));
      if (axis >= along && axis < along + places) return origin(node.inputs[1], axis - along, depth + 1);
      return origin(node.inputs[0], axis < along ? axis : axis + 1 - places, depth + 1);
    }
    if (node.op == "concat") {
      if (node.attributes.integer("axis") == -static_cast<std::int64_t>(from_end)) return unknown();
      return origin(node.inputs[0], axis, depth + 1);
    }
    const OperatorDefinition* const definition = registry_.find(node.op);
    return definition != nullptr && is_elementwise(*definition) ? in_common(node, axis, depth) : unknown();
  }

  /// Of operands that are aligned at their last axes: what they all are, or a number that is not 1 of one of them, as
  /// others are that number or 1.
  Origin in_common(const Node& node, std::size_t axis, int depth) {
    const std::size_t from_end = node.outputs[0].shape.size() - axis;
    std::vector<StatedExtent> all;
    for (const Value& input : node.inputs) {
      const TensorType& type = graph_.type(input);
      if (!type.known) return unknown();
      if (type.shape.size() < from_end) continue;
      const Origin read = origin(input, type.shape.size() - from_end, depth + 1);
      if (read && read->number && *read->number != 1) return read;
      if (read && read->number != 1) all.push_back(*read);
    }
    if (all.empty()) return unknown();
    return std::ranges::all_of(all, [&](const StatedExtent& one) { return one == all[0] && !one.open(); }) ? all[0]
                                                                                                           : unknown();
  }

  const ImportedModel& imported_;
  const Graph& graph_;
  const OperatorRegistry& registry_;
  std::map<NodeId, std::size_t> inputs_;
  std::set<NodeId> constants_;
  std::map<std::tuple<NodeId, std::uint32_t, std::size_t>, Origin> known_;
};

/// An output of a subgraph.
struct Made {
  TensorType type;
  std::vector<StatedExtent> extents;  ///< `of_input`: of the subgraph's graph.
};

class OpenBodies {
 public:
  OpenBodies(const Document& document, const ImportedModel& imported, const OperatorRegistry& registry,
             const ImportOptions& options, int node, const std::function<bool(const std::string&)>& follows)
      : document_(document),
        imported_(imported),
        registry_(registry),
        options_(options),
        node_(node),
        proto_(document.node(node)),
        follows_(follows) {
    for (const auto& name : proto_.input())
      if (!name.empty()) reads_.push_back(name);
    for (const auto& name : document.captures(node)) reads_.push_back(name);
  }

  std::vector<OpenOutput> run() {
    std::vector<SubgraphPlace> places = bodies_of(document_);
    std::erase_if(places, [&](const SubgraphPlace& place) { return place.node != node_; });
    for (const SubgraphPlace& place : places)
      if (proto_.attribute(place.attribute).g().node_size() > most_nodes_of_body) return {};
    const bool branches = proto_.op_type() == "If";
    if (places.size() != (branches ? 2 : 1)) return {};
    return branches ? of_branches(places[0], places[1]) : of_iteration(places[0]);
  }

 private:
  [[nodiscard]] std::optional<std::vector<Made>> make(SubgraphPlace place, BodyExtents extents) const {
    // Outside, too, numbers may be known whatever is open beside them.
    ExtentOrigins outside(imported_, document_, registry_);
    extents.varies = [&](const std::string& name, std::size_t axis) {
      const int tensor = document_.find(name);
      if (tensor < 0) return true;
      const auto& value = imported_.values[static_cast<std::size_t>(tensor)];
      return !value || !outside.of(*value, axis).number;
    };
    Expected<Body> body = read_open_body(document_, imported_, registry_, options_, place, extents);
    // Where not all extents may differ, ranks may be known whatever is read.
    if (!body || !knows_outputs(body->imported)) {
      BodyExtents untyped = extents;
      untyped.untyped = true;
      Expected<Body> other = read_open_body(document_, imported_, registry_, options_, place, untyped);
      if (other && (!body || knows_outputs(other->imported))) body = std::move(other);
    }
    if (!body) return std::nullopt;
    ExtentOrigins origins(body->imported, *body->document, registry_);
    const Graph& graph = body->imported.graph;
    std::vector<Made> made;
    for (const Value& output : graph.outputs()) {
      made.push_back({graph.type(output), {}});
      for (std::size_t axis = 0; made.back().type.known && axis < made.back().type.shape.size(); ++axis)
        made.back().extents.push_back(origins.of(output, axis));
    }
    // By the names of what stands for the outside.
    for (Made& one : made)
      for (StatedExtent& extent : one.extents)
        if (extent.of_input) {
          const std::string& name = body->imported.inputs[extent.of_input->first].name;
          if (!extents.inputs.empty()) continue;  // of an iteration: by position
          const auto read = std::ranges::find(reads_, name);
          if (read == reads_.end())
            extent = {};
          else
            extent.of_input->first = static_cast<std::size_t>(read - reads_.begin());
        }
    return made;
  }

  static bool knows_outputs(const ImportedModel& imported) {
    return std::ranges::all_of(imported.graph.outputs(),
                               [&](const Value& output) { return imported.graph.type(output).known; });
  }

  [[nodiscard]] std::vector<OpenOutput> of_branches(SubgraphPlace one, SubgraphPlace other) const {
    const BodyExtents extents{follows_};
    const std::optional<std::vector<Made>> a = make(one, extents), b = a ? make(other, extents) : std::nullopt;
    if (!a || !b) return {};
    std::vector<OpenOutput> outputs(std::min({a->size(), b->size(), static_cast<std::size_t>(proto_.output_size())}));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Made &x = (*a)[i], &y = (*b)[i];
      if (!x.type.known || !y.type.known || x.type.element != y.type.element || x.extents.size() != y.extents.size())
        continue;
      outputs[i].element = x.type.element;
      for (std::size_t axis = 0; axis < x.extents.size(); ++axis)
        outputs[i].extents.push_back(x.extents[axis] == y.extents[axis] ? x.extents[axis] : StatedExtent{});
    }
    return outputs;
  }

  /// States keep what each iteration keeps of what the first one reads; of how often a loop runs nothing is known.
  [[nodiscard]] std::vector<OpenOutput> of_iteration(SubgraphPlace place) const {
    BodyExtents extents{follows_};
    const IterationInputs given = inputs_of_iteration(document_, imported_, node_);
    for (std::size_t i = 0; i < given.types.size(); ++i) {
      BodyExtents::Input input{given.types[i], {}};
      const bool follows =
          i >= static_cast<std::size_t>(given.first_state) && follows_(proto_.input(static_cast<int>(i)));
      for (std::size_t axis = 0; input.type.known && axis < input.type.shape.size(); ++axis) {
        // One row, or none, is where states begin that grow.
        const bool is_state = given.is_state(i);
        if (follows || (is_state && input.type.shape[axis] < 2)) input.open.insert(axis);
      }
      extents.inputs.push_back(std::move(input));
    }
    if (extents.inputs.empty()) return {};
    std::optional<std::vector<Made>> made;
    // Extents of which an iteration makes others are open, and what is not of one rank is not known.
    for (bool changed = true; changed;) {
      changed = false;
      made = make(place, extents);
      if (!made) return {};
      for (int state = 0; state < given.states; ++state) {
        BodyExtents::Input& input = extents.inputs[static_cast<std::size_t>(given.first_state + state)];
        const auto output = static_cast<std::size_t>(given.first_output + state);
        if (!input.type.known) continue;
        if (output >= made->size() || !(*made)[output].type.known ||
            (*made)[output].type.element != input.type.element ||
            (*made)[output].extents.size() != input.type.shape.size()) {
          input.type = {ElementType::other, {}, false};
          changed = true;
          continue;
        }
        for (std::size_t axis = 0; axis < input.type.shape.size(); ++axis)
          if ((*made)[output].extents[axis].number != input.type.shape[axis] && input.open.insert(axis).second)
            changed = true;
      }
    }
    std::vector<OpenOutput> outputs(static_cast<std::size_t>(proto_.output_size()));
    for (int i = 0; i < proto_.output_size(); ++i) {
      const auto output = static_cast<std::size_t>(given.first_output + i);
      if (output >= made->size()) break;
      const Made& one = (*made)[output];
      OpenOutput& result = outputs[static_cast<std::size_t>(i)];
      if (!one.type.known) continue;
      if (i >= given.states) {
        result = {one.type.element, std::vector<StatedExtent>(one.extents.size() + 1)};
        continue;
      }
      const auto position = static_cast<std::size_t>(given.first_state + i);
      const BodyExtents::Input& input = extents.inputs[position];
      if (!input.type.known) continue;
      const std::optional<std::size_t> read = position_of(static_cast<int>(position));
      result.element = one.type.element;
      for (std::size_t axis = 0; axis < one.extents.size(); ++axis) {
        const bool kept = one.extents[axis].of_input == std::pair(position, axis);
        StatedExtent extent;
        if (!input.open.contains(axis))
          extent.number = input.type.shape[axis];
        else if (kept && read)
          extent.of_input = std::pair(*read, axis);
        result.extents.push_back(extent);
      }
    }
    return outputs;
  }

  /// Of an input of the node among what it reads.
  [[nodiscard]] std::optional<std::size_t> position_of(int input) const {
    if (proto_.input(input).empty()) return std::nullopt;
    std::size_t place = 0;
    for (int i = 0; i < input; ++i) place += proto_.input(i).empty() ? 0 : 1;
    return place;
  }

  const Document& document_;
  const ImportedModel& imported_;
  const OperatorRegistry& registry_;
  const ImportOptions& options_;
  int node_;
  const onnx::NodeProto& proto_;
  const std::function<bool(const std::string&)>& follows_;
  std::vector<std::string> reads_;
};

}  // namespace

std::vector<OpenOutput> open_outputs_of_bodies(const Document& document, const ImportedModel& imported,
                                               const OperatorRegistry& registry, const ImportOptions& options, int node,
                                               const std::function<bool(const std::string&)>& follows) {
  constexpr int deepest = 1;
  if (document.subgraph_depth() > deepest) return {};
  return OpenBodies(document, imported, registry, options, node, follows).run();
}

}  // namespace taso
