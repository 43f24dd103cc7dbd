#include "partition/expand.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "partition/node_configurations.h"
#include "partition/placement.h"

namespace taso {
namespace {

using Device = std::size_t;

/// Of a range without indices there is everything everywhere.
bool contains(const IndexBox& outer, const IndexBox& inner) {
  for (std::size_t axis = 0; axis < inner.size(); ++axis)
    if (inner[axis].size() > 0 && (inner[axis].begin < outer[axis].begin || inner[axis].end > outer[axis].end))
      return false;
  return true;
}

/// What devices have of a value: the tensor of each, and which part it is.
struct HeldTensor {
  Placement placement;
  std::vector<Value> parts;  ///< Per device; of what is supplied, the whole of it.
  bool whole = false;        ///< Supplied: everybody has everything, and the parts are one value.
};

class Expansion {
 public:
  Expansion(const Graph& graph, const PartitionPlan& plan, StrategyTable& strategies)
      : graph_(graph), plan_(plan), strategies_(strategies), devices_(static_cast<std::size_t>(plan.mesh.devices())) {
    for (Device d = 0; d < devices_; ++d) places_.push_back(plan.mesh.coordinates(static_cast<std::int64_t>(d)));
  }

  Expected<Graph> run() {
    std::map<NodeId, const PlannedNode*> planned;
    for (const PlannedNode& node : plan_.nodes) planned[node.node] = &node;
    for (const NodeId id : graph_.inputs()) supply(id);
    for (const NodeId id : graph_.topological_order()) {
      const Node& node = graph_.node(id);
      if (node.kind == NodeKind::input) continue;
      if (node.weight_only) {
        supply(id);
      } else if (const auto found = planned.find(id); found == planned.end()) {
        return bad_input("the plan says nothing of " + node.op);
      } else if (!is_understood(node)) {
        TASO_RETURN_IF_ERROR(carry(id));
      } else {
        TASO_RETURN_IF_ERROR(add_pieces(*found->second));
      }
    }
    for (const Value& output : graph_.outputs()) {
      TASO_ASSIGN(const Value whole, whole_on_first(output));
      made_.add_output(whole);
    }
    return std::move(made_);
  }

 private:
  [[nodiscard]] bool is_understood(const Node& node) const {
    const auto known = [](const TensorType& type) { return type.known; };
    return node.kind == NodeKind::op && std::all_of(node.outputs.begin(), node.outputs.end(), known) &&
           std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](const Value& input) { return graph_.type(input).known; });
  }

  /// An input or what depends on weights alone: once, for all devices.
  void supply(NodeId id) {
    Node node = graph_.node(id);
    for (Value& input : node.inputs) input = held_.at(input).parts[0];
    const std::vector<TensorType> types = node.outputs;
    const NodeId added =
        node.kind == NodeKind::input ? made_.add_input(node.name, node.outputs[0]) : made_.add(std::move(node));
    for (std::uint32_t port = 0; port < types.size(); ++port)
      held_[{id, port}] = {everywhere(types[port].shape, plan_.mesh), {{added, port}}, true};
  }

  /// An operator that is not understood.
  Status carry(NodeId id) {
    Node node = graph_.node(id);
    for (Value& input : node.inputs) {
      TASO_ASSIGN(input, whole_on_first(input));
    }
    node.device = 0;
    const std::vector<TensorType> types = node.outputs;
    const NodeId added = made_.add(std::move(node));
    for (std::uint32_t port = 0; port < types.size(); ++port)
      held_[{id, port}] = {everywhere(types[port].shape, plan_.mesh), {{added, port}}, true};
    return {};
  }

  Status add_pieces(const PlannedNode& planned) {
    const Node& node = graph_.node(planned.node);
    const NodeConfiguration& configuration = planned.configuration;
    TASO_ASSIGN(const std::vector<OperatorPiece> pieces,
                pieces_of(graph_, planned.node, plan_.mesh, configuration.axes, strategies_));
    std::vector<HeldTensor> results(node.outputs.size());
    for (std::size_t port = 0; port < results.size(); ++port) results[port].placement = configuration.makes[port];
    for (Device d = 0; d < devices_; ++d) {
      std::vector<Value> operands;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        Placement need = configuration.reads[i];
        need.boxes[d] = pieces[d].reads[i];
        TASO_ASSIGN(const Value operand, read(held_.at(node.inputs[i]), need, d));
        operands.push_back(operand);
      }
      leave_out_empty(node.op, operands);
      TASO_ASSIGN(const NodeId added, apply(node.op, pieces[d].attributes, std::move(operands), d, node.origin));
      for (std::uint32_t port = 0; port < results.size(); ++port) {
        TASO_ASSIGN(const Value part, slice({added, port}, whole_of({added, port}), pieces[d].keeps[port], d));
        results[port].parts.push_back(part);
      }
    }
    for (std::uint32_t port = 0; port < results.size(); ++port) {
      const Value value{planned.node, port};
      HeldTensor& held = held_[value] = std::move(results[port]);
      const auto kept = plan_.kept.find(value);
      if (kept == plan_.kept.end() || kept->second == held.placement) continue;
      HeldTensor moved{kept->second, {}, false};
      for (Device d = 0; d < devices_; ++d) {
        TASO_ASSIGN(const Value part, read(held, kept->second, d));
        moved.parts.push_back(part);
      }
      held = std::move(moved);
    }
    return {};
  }

  /// A concatenation needs no operands without elements, which a piece may have, unless it has no others.
  void leave_out_empty(std::string_view op, std::vector<Value>& operands) const {
    if (!strategies_.registry().is_associative(op)) return;
    const Value first = operands[0];
    std::erase_if(operands, [&](const Value& operand) { return made_.type(operand).elements() == 0; });
    if (operands.empty()) operands.push_back(first);
  }

  Expected<NodeId> apply(std::string_view op, const Attributes& attributes, std::vector<Value> inputs, Device device,
                         std::int32_t origin) {
    return add_op(made_, strategies_.registry(), op, attributes, std::move(inputs), origin,
                  static_cast<std::int32_t>(device));
  }

  /// What device d reads of a value.
  Expected<Value> read(const HeldTensor& held, const Placement& need, Device d) {
    if (held.whole) return slice(held.parts[0], whole_of(held.parts[0]), need.boxes[d], d);
    const std::vector<std::size_t>& kept = need.partial;
    if (!std::includes(held.placement.partial.begin(), held.placement.partial.end(), kept.begin(), kept.end()))
      return internal_error("a whole value is read as a part of a sum");
    Reading reading{held, d, {}, {}};
    std::set_difference(held.placement.partial.begin(), held.placement.partial.end(), kept.begin(), kept.end(),
                        std::back_inserter(reading.combined));
    // Candidates have the summand that d is to have; one per group whose members are combined: the nearest.
    for (Device e = 0; e < devices_; ++e) {
      if (!std::all_of(kept.begin(), kept.end(),
                       [&](std::size_t axis) { return places_[e][axis] == places_[d][axis]; }))
        continue;
      if (!std::all_of(reading.combined.begin(), reading.combined.end(),
                       [&](std::size_t axis) { return places_[e][axis] == places_[d][axis]; }))
        continue;
      reading.candidates.push_back(e);
    }
    std::stable_sort(reading.candidates.begin(), reading.candidates.end(),
                     [&](Device a, Device b) { return distance(a, d) < distance(b, d); });
    return assemble(reading, need.boxes[d], 0);
  }

  struct Reading {
    const HeldTensor& held;
    Device device;
    std::vector<std::size_t> combined;  ///< Mesh axes along which summands are combined.
    std::vector<Device> candidates;     ///< Nearest first.
  };

  /// Slower axes count more: they are the first ones.
  [[nodiscard]] std::vector<std::int64_t> distance(Device a, Device b) const {
    std::vector<std::int64_t> differ;
    for (std::size_t axis = 0; axis < places_[a].size(); ++axis) {
      const std::int64_t apart = places_[a][axis] - places_[b][axis];
      differ.push_back(apart < 0 ? -apart : apart);
    }
    return differ;
  }

  /// A box of the value: whole from one device, or slabs along `axis` one after the other.
  Expected<Value> assemble(const Reading& reading, const IndexBox& box, std::size_t axis) {
    for (const Device e : reading.candidates)
      if (contains(reading.held.placement.boxes[e], box)) return take(reading, e, box);
    if (axis == box.size()) return internal_error("nobody has what a piece reads");
    if (box[axis].size() == 0) return assemble(reading, box, axis + 1);
    std::vector<std::int64_t> bounds = {box[axis].begin, box[axis].end};
    for (const Device e : reading.candidates)
      for (const std::int64_t bound :
           {reading.held.placement.boxes[e][axis].begin, reading.held.placement.boxes[e][axis].end})
        if (box[axis].begin < bound && bound < box[axis].end) bounds.push_back(bound);
    std::sort(bounds.begin(), bounds.end());
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    std::vector<Value> parts;
    for (std::size_t i = 0; i + 1 < bounds.size();) {
      // As much as one device has, else up to the next bound.
      IndexBox slab = box;
      slab[axis] = {bounds[i], bounds[i + 1]};
      std::size_t next = i + 1;
      for (std::size_t j = bounds.size() - 1; j > i; --j) {
        slab[axis].end = bounds[j];
        const bool found = std::any_of(reading.candidates.begin(), reading.candidates.end(),
                                       [&](Device e) { return contains(reading.held.placement.boxes[e], slab); });
        next = j;
        if (found || j == i + 1) break;
      }
      TASO_ASSIGN(const Value part, assemble(reading, slab, axis + 1));
      parts.push_back(part);
      i = next;
    }
    if (parts.size() == 1) return parts[0];
    Attributes attributes;
    attributes.set("axis", static_cast<std::int64_t>(axis) - static_cast<std::int64_t>(box.size()));
    TASO_ASSIGN(const NodeId joined, apply("concat", attributes, std::move(parts), reading.device, -1));
    return Value{joined, 0};
  }

  /// A box that device e has; summands of its group are combined.
  Expected<Value> take(const Reading& reading, Device e, const IndexBox& box) {
    std::optional<Value> sum;
    for (Device m = 0; m < devices_; ++m) {
      const bool member = [&] {
        for (std::size_t axis = 0; axis < places_[m].size(); ++axis) {
          const bool combined =
              std::find(reading.combined.begin(), reading.combined.end(), axis) != reading.combined.end();
          if (!combined && places_[m][axis] != places_[e][axis]) return false;
        }
        return true;
      }();
      if (!member) continue;
      TASO_ASSIGN(const Value part, slice(reading.held.parts[m], reading.held.placement.boxes[m], box, reading.device));
      if (!sum) {
        sum = part;
        continue;
      }
      const std::string combine = combining_operator(strategies_.registry(), reading.held.placement.reducer);
      TASO_ASSIGN(const NodeId both, apply(combine, {}, {*sum, part}, reading.device, -1));
      sum = Value{both, 0};
    }
    return *sum;
  }

  [[nodiscard]] IndexBox whole_of(Value value) const { return whole_box(made_.type(value).shape); }

  /// The part `box` of a tensor that is the part `has` of a value.
  Expected<Value> slice(Value tensor, const IndexBox& has, const IndexBox& box, Device device) {
    if (has == box) return tensor;
    std::vector<std::int64_t> starts, sizes;
    for (std::size_t axis = 0; axis < box.size(); ++axis) {
      starts.push_back(box[axis].size() == 0 ? 0 : box[axis].begin - has[axis].begin);
      sizes.push_back(box[axis].size());
    }
    Attributes attributes;
    attributes.set("starts", starts);
    attributes.set("sizes", sizes);
    attributes.set("steps", std::vector<std::int64_t>(box.size(), 1));
    // Of weights one slice serves all.
    const std::int32_t place = made_.node(tensor.node).weight_only ? -1 : static_cast<std::int32_t>(device);
    std::optional<Value>& known = slices_[{tensor, starts, sizes, place}];
    if (known) return *known;
    TASO_ASSIGN(const NodeId sliced, add_op(made_, strategies_.registry(), "slice", attributes, {tensor}, -1, place));
    known = Value{sliced, 0};
    return *known;
  }

  Expected<Value> whole_on_first(Value value) {
    const HeldTensor& held = held_.at(value);
    if (held.whole) return held.parts[0];
    return read(held, everywhere(graph_.type(value).shape, plan_.mesh), 0);
  }

  const Graph& graph_;
  const PartitionPlan& plan_;
  StrategyTable& strategies_;
  Device devices_;
  std::vector<std::vector<std::int64_t>> places_;  ///< Of devices on the mesh.
  Graph made_;
  std::map<Value, HeldTensor> held_;
  std::map<std::tuple<Value, std::vector<std::int64_t>, std::vector<std::int64_t>, std::int32_t>, std::optional<Value>>
      slices_;
};

}  // namespace

Expected<Graph> expand(const Graph& graph, const PartitionPlan& plan, StrategyTable& strategies) {
  return Expansion(graph, plan, strategies).run();
}

}  // namespace taso
