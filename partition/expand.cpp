#include "partition/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "partition/node_configurations.h"
#include "partition/transfer_schedule.h"

namespace taso {
namespace {

using Device = std::size_t;

bool contains(const IndexBox& outer, const IndexBox& inner) {
  for (std::size_t axis = 0; axis < inner.size(); ++axis)
    if (inner[axis].begin < outer[axis].begin || inner[axis].end > outer[axis].end) return false;
  return true;
}

/// A tensor of a device, and which part of a value it is.
struct LocalPart {
  IndexBox box;
  Value tensor;
};
using LocalParts = std::vector<LocalPart>;

/// What devices have of a value.
struct HeldTensor {
  Placement placement;
  std::vector<std::optional<Value>> parts;  ///< Per device; nothing where it has none.
  std::optional<Value> whole;               ///< Instead of these, where everybody has everything from the start.
};

class PlanExpander {
 public:
  PlanExpander(const Graph& graph, const PartitionPlan& plan, StrategyTable& strategies)
      : graph_(graph), plan_(plan), strategies_(strategies), devices_(static_cast<std::size_t>(plan.mesh.devices())) {}

  Expected<Expansion> run() {
    read_plan();
    for (const NodeId id : graph_.inputs()) TASO_RETURN_IF_ERROR(supply(id));
    for (const NodeId id : graph_.topological_order()) {
      const Node& node = graph_.node(id);
      if (node.kind == NodeKind::input) continue;
      if (node.weight_only) {
        TASO_RETURN_IF_ERROR(supply(id));
      } else if (const auto found = planned_.find(id); found == planned_.end()) {
        return bad_input("the plan says nothing of " + node.op);
      } else if (!is_understood(node)) {
        TASO_RETURN_IF_ERROR(carry(*found->second));
      } else {
        TASO_RETURN_IF_ERROR(add_pieces(*found->second));
      }
    }
    for (const Value& output : graph_.outputs()) TASO_RETURN_IF_ERROR(add_output(output));
    return std::move(made_);
  }

 private:
  [[nodiscard]] bool is_understood(const Node& node) const {
    return node.kind == NodeKind::op && types_known(graph_, node);
  }

  void read_plan() {
    for (const PlannedNode& node : plan_.nodes) planned_[node.node] = &node;
    for (const PlannedTransfer& one : plan_.transfers) {
      expected_[{one.value, one.reader}].push_back(static_cast<std::uint32_t>(made_.transfers.size()));
      made_.transfers.push_back({one.value,
                                 one.reader ? ExpandedTransfer::Purpose::read : ExpandedTransfer::Purpose::keep,
                                 one.reader, static_cast<std::int64_t>(one.transfer.bytes)});
    }
  }

  /// An input or what depends on weights alone: once, for all devices.
  Status supply(NodeId id) {
    Node node = graph_.node(id);
    for (Value& input : node.inputs) input = *held_.at(input).whole;
    const std::vector<TensorType> types = node.outputs;
    const NodeId added = node.kind == NodeKind::input ? made_.graph.add_input(node.name, node.outputs[0])
                                                      : made_.graph.add(std::move(node));
    for (std::uint32_t port = 0; port < types.size(); ++port) {
      HeldTensor& held = held_[{id, port}];
      held.whole = Value{added, port};
      const auto kept = plan_.kept.find({id, port});
      if (kept == plan_.kept.end()) continue;
      // It is in a placement before the first operator runs.
      held = {kept->second, {}, std::nullopt};
      for (Device d = 0; d < devices_; ++d) {
        TASO_ASSIGN(const Value part, add_slice({added, port}, whole_box(types[port].shape), kept->second.boxes[d],
                                                static_cast<std::int32_t>(d)));
        held.parts.emplace_back(part);
      }
    }
    return {};
  }

  /// An operator that is not understood.
  Status carry(const PlannedNode& planned) {
    Node node = graph_.node(planned.node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const HeldTensor& held = held_.at(node.inputs[i]);
      if (held.whole) {
        node.inputs[i] = *held.whole;
        continue;
      }
      const Placement& need = planned.configuration.reads[i];
      TASO_ASSIGN(const std::vector<LocalParts> parts, bring(node.inputs[i], need, planned.node));
      TASO_ASSIGN(node.inputs[i], assemble(node.inputs[i], parts[0], need.boxes[0], 0));
    }
    node.device = 0;
    const std::vector<TensorType> types = node.outputs;
    const NodeId added = made_.graph.add(std::move(node));
    for (std::uint32_t port = 0; port < types.size(); ++port) {
      const Value value{planned.node, port}, tensor{added, port};
      HeldTensor& held = held_[value];
      if (!types[port].known) {  // Whoever reads it is on the first device, too.
        held.whole = tensor;
        continue;
      }
      held = {on_first(types[port].shape, plan_.mesh), {tensor}, std::nullopt};
      held.parts.resize(devices_);
      if (types[port].shape.empty()) TASO_RETURN_IF_ERROR(share(value, tensor));
      TASO_RETURN_IF_ERROR(keep(value));
    }
    return {};
  }

  /// No placement says that a device has nothing of a scalar, so that plans do not count it.
  Status share(Value value, Value tensor) {
    if (devices_ == 1) return {};
    const std::int64_t bytes = static_cast<std::int64_t>(devices_ - 1) * element_bytes(value);
    const std::uint32_t number = add_transfer({value, ExpandedTransfer::Purpose::share, std::nullopt, bytes});
    for (Device d = 1; d < devices_; ++d) {
      TASO_ASSIGN(held_[value].parts[d], move(tensor, {}, {}, d, number));
    }
    return {};
  }

  Status add_pieces(const PlannedNode& planned) {
    const Node& node = graph_.node(planned.node);
    const NodeConfiguration& configuration = planned.configuration;
    TASO_ASSIGN(const std::vector<OperatorPiece> pieces,
                pieces_of(graph_, planned.node, plan_.mesh, configuration.axes, strategies_));
    std::vector<std::vector<Value>> operands(devices_);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      Placement need = configuration.reads[i];
      for (Device d = 0; d < devices_; ++d) need.boxes[d] = pieces[d].reads[i];
      TASO_RETURN_IF_ERROR(read(node.inputs[i], need, planned.node, operands));
    }
    std::vector<HeldTensor> results(node.outputs.size());
    for (std::size_t port = 0; port < results.size(); ++port) results[port].placement = configuration.makes[port];
    for (Device d = 0; d < devices_; ++d) {
      leave_out_empty(node.op, operands[d]);
      TASO_ASSIGN(const NodeId added, apply(node.op, pieces[d].attributes, std::move(operands[d]), d, node.origin));
      for (std::uint32_t port = 0; port < results.size(); ++port) {
        TASO_ASSIGN(const Value part, slice({added, port}, whole_of({added, port}), pieces[d].keeps[port], d));
        results[port].parts.emplace_back(part);
      }
    }
    for (std::uint32_t port = 0; port < results.size(); ++port) {
      held_[{planned.node, port}] = std::move(results[port]);
      TASO_RETURN_IF_ERROR(keep({planned.node, port}));
    }
    return {};
  }

  /// What all devices read of a value is added to their operands.
  Status read(Value value, const Placement& need, NodeId reader, std::vector<std::vector<Value>>& operands) {
    const std::optional<Value> whole = held_.at(value).whole;
    std::vector<LocalParts> parts;
    if (!whole) {
      TASO_ASSIGN(parts, bring(value, need, reader));
    }
    for (Device d = 0; d < devices_; ++d) {
      Expected<Value> operand =
          whole ? slice(*whole, whole_of(*whole), need.boxes[d], d) : assemble(value, parts[d], need.boxes[d], d);
      if (!operand) return operand.error();
      operands[d].push_back(*operand);
    }
    return {};
  }

  /// Brings a value that was made to where it is kept.
  Status keep(Value value) {
    const auto kept = plan_.kept.find(value);
    if (kept == plan_.kept.end() || kept->second == held_.at(value).placement) return {};
    TASO_ASSIGN(const std::vector<LocalParts> parts, bring(value, kept->second, std::nullopt));
    HeldTensor moved{kept->second, {}, std::nullopt};
    for (Device d = 0; d < devices_; ++d) {
      TASO_ASSIGN(const Value part, assemble(value, parts[d], kept->second.boxes[d], d));
      moved.parts.emplace_back(part);
    }
    held_[value] = std::move(moved);
    return {};
  }

  Status add_output(Value value) {
    const HeldTensor& held = held_.at(value);
    if (held.whole) {
      made_.graph.add_output(*held.whole);
      return {};
    }
    std::optional<Value>& known = outputs_[value];
    if (!known) {
      const Placement need = on_first(graph_.type(value).shape, plan_.mesh);
      TASO_ASSIGN(const TransferSchedule schedule, schedule_of(value, need));
      std::uint32_t number = 0;
      if (schedule.elements > 0)
        number = add_transfer(
            {value, ExpandedTransfer::Purpose::output, std::nullopt, schedule.elements * element_bytes(value)});
      TASO_ASSIGN(const std::vector<LocalParts> parts, follow(value, schedule, number));
      TASO_ASSIGN(known, assemble(value, parts[0], need.boxes[0], 0));
    }
    made_.graph.add_output(*known);
    return {};
  }

  /// A concatenation needs no operands without elements, which a piece may have. Where none has elements, they may yet
  /// be of some extent along its axis.
  void leave_out_empty(std::string_view op, std::vector<Value>& operands) const {
    const auto is_empty = [&](const Value& operand) { return made_.graph.type(operand).elements() == 0; };
    if (!strategies_.registry().is_associative(op) || std::all_of(operands.begin(), operands.end(), is_empty)) return;
    std::erase_if(operands, is_empty);
  }

  Expected<NodeId> apply(std::string_view op, const Attributes& attributes, std::vector<Value> inputs, Device device,
                         std::int32_t origin) {
    return add_op(made_.graph, strategies_.registry(), op, attributes, std::move(inputs), origin,
                  static_cast<std::int32_t>(device));
  }

  [[nodiscard]] std::int64_t element_bytes(Value value) const {
    return static_cast<std::int64_t>(size_of(graph_.type(value).element));
  }
  std::uint32_t add_transfer(const ExpandedTransfer& transfer) {
    made_.transfers.push_back(transfer);
    return static_cast<std::uint32_t>(made_.transfers.size() - 1);
  }

  Expected<TransferSchedule> schedule_of(Value value, const Placement& need) const {
    std::optional<TransferSchedule> schedule =
        transfer_schedule(held_.at(value).placement, need, element_bytes(value), plan_.mesh);
    if (!schedule) return bad_input("nobody has what is read of " + name_of(value) + " as the plan has it");
    return std::move(*schedule);
  }
  [[nodiscard]] std::string name_of(Value value) const {
    const Node& node = graph_.node(value.node);
    return node.op.empty() ? node.name : node.op;
  }

  /// What devices have of a value after the transfer for one reader, or to where it is kept, which the plan states.
  Expected<std::vector<LocalParts>> bring(Value value, const Placement& need, std::optional<NodeId> reader) {
    TASO_ASSIGN(const TransferSchedule schedule, schedule_of(value, need));
    std::uint32_t number = 0;
    if (const std::int64_t bytes = schedule.elements * element_bytes(value); bytes > 0) {
      std::vector<std::uint32_t>& left = expected_[{value, reader}];
      if (left.empty() || made_.transfers[left[0]].bytes != bytes)
        return bad_input(
            fmt::format("{} bytes of {} move, of which the plan says {}", bytes, name_of(value),
                        left.empty() ? std::string("nothing") : std::to_string(made_.transfers[left[0]].bytes)));
      number = left[0];
      left.erase(left.begin());
    }
    return follow(value, schedule, number);
  }

  /// Does what a schedule says; what devices have then, before it is joined to what they need.
  Expected<std::vector<LocalParts>> follow(Value value, const TransferSchedule& schedule, std::uint32_t number) {
    const HeldTensor& held = held_.at(value);
    std::vector<LocalParts> parts(devices_);
    for (Device d = 0; d < devices_; ++d)
      if (held.parts[d]) parts[d].push_back({held.placement.boxes[d], *held.parts[d]});
    for (const TransferStep& step : schedule.steps) {
      std::vector<LocalParts> next(devices_);
      for (Device d = 0; d < devices_; ++d) {
        if (step.kind == TransferStep::Kind::combine) {
          TASO_ASSIGN(next[d], combine(parts, step, d, held.placement.reducer, number));
          continue;
        }
        next[d] = parts[d];
        for (const ReceivedBox& one : step.received[d]) {
          TASO_ASSIGN(const Value part, take(parts, one.from, one.box, d, number));
          next[d].push_back({one.box, part});
        }
        if (&step == &schedule.steps.back()) continue;
        for (const IndexBox& box : step.holds[d]) {
          TASO_ASSIGN(const Value joined, assemble(value, next[d], box, d));
          next[d] = {{box, joined}};
        }
      }
      parts = std::move(next);
    }
    return parts;
  }

  /// The boxes that a device holds after a step of a reduce-scatter.
  Expected<LocalParts> combine(const std::vector<LocalParts>& parts, const TransferStep& step, Device d,
                               const std::string& reducer, std::uint32_t number) {
    const std::string op = combining_operator(strategies_.registry(), reducer);
    LocalParts combined;
    for (const IndexBox& box : step.holds[d]) {
      std::set<Device> members = {d};
      for (const ReceivedBox& one : step.received[d])
        if (one.box == box) members.insert(one.from);
      std::optional<Value> sum;
      for (const Device e : members) {
        TASO_ASSIGN(Value summand, take(parts, e, box, d, number));
        if (sum) {
          TASO_ASSIGN(const NodeId both, apply(op, {}, {*sum, summand}, d, -1));
          summand = {both, 0};
        }
        sum = summand;
      }
      combined.push_back({box, *sum});
    }
    return combined;
  }

  /// A box that lies in a part of device e, on device d.
  Expected<Value> take(const std::vector<LocalParts>& parts, Device e, const IndexBox& box, Device d,
                       std::uint32_t number) {
    for (const LocalPart& part : parts[e])
      if (contains(part.box, box))
        return e == d ? slice(part.tensor, part.box, box, d) : move(part.tensor, part.box, box, d, number);
    return internal_error("a device sends what it does not have");
  }

  /// A box of a value, of parts that device d has: one of them, or slabs along `axis` one after the other.
  Expected<Value> assemble(Value value, const LocalParts& parts, const IndexBox& box, Device d, std::size_t axis = 0) {
    // Without elements, too: a carried operator makes it under the name of an output.
    for (const LocalPart& part : parts)
      if (part.box == box) return part.tensor;
    if (volume_of(box) == 0) return nothing(value, box);
    for (const LocalPart& part : parts)
      if (contains(part.box, box)) return slice(part.tensor, part.box, box, d);
    if (axis == box.size()) return internal_error("nobody has what a piece reads");
    std::vector<std::int64_t> bounds = {box[axis].begin, box[axis].end};
    for (const LocalPart& part : parts)
      for (const std::int64_t bound : {part.box[axis].begin, part.box[axis].end})
        if (box[axis].begin < bound && bound < box[axis].end) bounds.push_back(bound);
    std::sort(bounds.begin(), bounds.end());
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    std::vector<Value> joined;
    for (std::size_t i = 0; i + 1 < bounds.size();) {
      // As much as one part has, else up to the next bound.
      IndexBox slab = box;
      std::size_t next = bounds.size() - 1;
      for (; next > i + 1; --next) {
        slab[axis] = {bounds[i], bounds[next]};
        if (std::any_of(parts.begin(), parts.end(), [&](const LocalPart& part) { return contains(part.box, slab); }))
          break;
      }
      slab[axis] = {bounds[i], bounds[next]};
      TASO_ASSIGN(const Value part, assemble(value, parts, slab, d, axis + 1));
      joined.push_back(part);
      i = next;
    }
    if (joined.size() == 1) return joined[0];
    Attributes attributes;
    attributes.set("axis", static_cast<std::int64_t>(axis) - static_cast<std::int64_t>(box.size()));
    TASO_ASSIGN(const NodeId whole, apply("concat", attributes, std::move(joined), d, -1));
    return Value{whole, 0};
  }

  /// A tensor without elements, which nobody has to send.
  Value nothing(Value value, const IndexBox& box) {
    TensorType type{graph_.type(value).element, {}, true};
    for (const IndexRange& range : box) type.shape.push_back(range.size());
    return {made_.graph.add_constant(ConstantData::own(std::move(type), {})), 0};
  }

  [[nodiscard]] IndexBox whole_of(Value value) const { return whole_box(made_.graph.type(value).shape); }

  /// The part `box` of a tensor that is the part `has` of a value, on the device that has it, or of what all have.
  Expected<Value> slice(Value tensor, const IndexBox& has, const IndexBox& box, Device device) {
    if (has == box) return tensor;
    // Of weights one slice serves all.
    const Node& node = made_.graph.node(tensor.node);
    const std::int32_t place = node.weight_only && node.device < 0 ? -1 : static_cast<std::int32_t>(device);
    std::optional<Value>& known = slices_[{tensor, has, box, place}];
    if (!known) {
      TASO_ASSIGN(known, add_slice(tensor, has, box, place));
    }
    return *known;
  }

  /// The same on another device: a message of a transfer.
  Expected<Value> move(Value tensor, const IndexBox& has, const IndexBox& box, Device to, std::uint32_t number) {
    TASO_ASSIGN(const Value moved, add_slice(tensor, has, box, static_cast<std::int32_t>(to)));
    made_.moves.emplace(moved.node, number);
    return moved;
  }

  Expected<Value> add_slice(Value tensor, const IndexBox& has, const IndexBox& box, std::int32_t place) {
    std::vector<std::int64_t> starts, sizes;
    for (std::size_t axis = 0; axis < box.size(); ++axis) {
      starts.push_back(box[axis].size() == 0 ? 0 : box[axis].begin - has[axis].begin);
      sizes.push_back(box[axis].size());
    }
    Attributes attributes;
    attributes.set("starts", starts);
    attributes.set("sizes", sizes);
    attributes.set("steps", std::vector<std::int64_t>(box.size(), 1));
    TASO_ASSIGN(const NodeId sliced,
                add_op(made_.graph, strategies_.registry(), "slice", attributes, {tensor}, -1, place));
    return Value{sliced, 0};
  }

  const Graph& graph_;
  const PartitionPlan& plan_;
  StrategyTable& strategies_;
  Device devices_;
  std::map<NodeId, const PlannedNode*> planned_;
  /// The numbers of the plan's transfers that were not made yet.
  std::map<std::pair<Value, std::optional<NodeId>>, std::vector<std::uint32_t>> expected_;
  Expansion made_;
  std::map<Value, HeldTensor> held_;
  std::map<Value, std::optional<Value>> outputs_;
  /// Within devices.
  std::map<std::tuple<Value, IndexBox, IndexBox, std::int32_t>, std::optional<Value>> slices_;
};

}  // namespace

Expected<Expansion> expand(const Graph& graph, const PartitionPlan& plan, StrategyTable& strategies) {
  return PlanExpander(graph, plan, strategies).run();
}

Graph on_one_device(const Expansion& expansion) {
  Graph graph = expansion.graph;
  std::map<Value, Value> same;  // Ascending: what a message is of comes before it.
  std::vector<std::pair<Value, Value>> replacements;
  for (const auto& [id, number] : expansion.moves) {
    Value from = graph.node(id).inputs[0];
    if (const auto known = same.find(from); known != same.end()) from = known->second;
    if (graph.type({id, 0}) != graph.type(from)) continue;
    same[{id, 0}] = from;
    replacements.emplace_back(Value{id, 0}, from);
  }
  graph.replace_uses(replacements);
  graph.remove_dead();
  return graph;
}

}  // namespace taso
