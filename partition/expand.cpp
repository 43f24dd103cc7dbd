#include "partition/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "partition/collective_graph.h"
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
  /// `vocabulary`: of the collectives that stand in place of messages; null: messages stand there.
  PlanExpander(const Graph& graph, const PartitionPlan& plan, StrategyTable& strategies,
               const CollectiveVocabulary* vocabulary = nullptr)
      : graph_(graph),
        plan_(plan),
        strategies_(strategies),
        vocabulary_(vocabulary),
        devices_(static_cast<std::size_t>(plan.mesh.devices())) {}

  Expected<Expansion> run() {
    TASO_RETURN_IF_ERROR(write_out());
    for (const Value& output : graph_.outputs()) TASO_RETURN_IF_ERROR(add_output(output));
    return std::move(made_);
  }

  Expected<CollectiveExpansion> run_with_collectives() {
    TASO_RETURN_IF_ERROR(write_out());
    for (const Value& output : graph_.outputs()) TASO_RETURN_IF_ERROR(gather_output(output));
    for (Device d = 0; d < devices_; ++d)
      for (const Value& output : graph_.outputs()) made_.graph.add_output(*gathered_.at(output)[d]);
    std::vector<Graph> ranks;
    for (Device d = 0; d < devices_; ++d) ranks.push_back(graph_of_rank(made_.graph, d, devices_));
    if (const std::optional<std::int64_t> number = collective_that_not_all_need(ranks))
      return bad_input("what collectives move of " +
                       name_of(moves_[move_of_[static_cast<std::size_t>(*number)]].transfer.value) +
                       " is of use to some of the devices only, which no collective can say");
    return CollectiveExpansion{std::move(made_.graph), std::move(moves_), std::move(move_of_)};
  }

 private:
  [[nodiscard]] bool is_understood(const Node& node) const {
    return node.kind == NodeKind::op && types_known(graph_, node);
  }

  /// All but the outputs.
  Status write_out() {
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
    return {};
  }

  void read_plan() {
    for (const PlannedNode& node : plan_.nodes) planned_[node.node] = &node;
    for (const PlannedTransfer& one : plan_.transfers) {
      expected_[{one.value, one.reader}].push_back(static_cast<std::uint32_t>(made_.transfers.size()));
      made_.transfers.push_back({one.value,
                                 one.reader ? ExpandedTransfer::Purpose::read : ExpandedTransfer::Purpose::keep,
                                 one.reader, static_cast<std::int64_t>(one.transfer.bytes)});
      moves_.push_back({made_.transfers.back(), {}, 0});
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
    if (vocabulary_ != nullptr)
      return bad_input("an operator that is not understood (" + node.op + ") stands on the first device alone");
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
      TASO_ASSIGN(const NodeId added, apply(node.op, pieces[d].attributes, std::move(operands[d]), d,
                                            {.origin = node.origin, .element = node.outputs[0].element}));
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

  /// Every device gets an output.
  Status gather_output(Value value) {
    std::vector<std::optional<Value>>& known = gathered_[value];
    if (!known.empty()) return {};
    const HeldTensor& held = held_.at(value);
    if (held.whole) {
      known.assign(devices_, held.whole);
      return {};
    }
    TASO_ASSIGN(const TransferSchedule schedule, schedule_of(value, on_first(graph_.type(value).shape, plan_.mesh)));
    const Placement need = everywhere(graph_.type(value).shape, plan_.mesh);
    moves_.push_back(
        {{value, ExpandedTransfer::Purpose::output, std::nullopt, schedule.elements * element_bytes(value)}, {}, 0});
    TASO_ASSIGN(const std::vector<LocalParts> parts, move_by_collectives(value, need, moves_.size() - 1));
    for (Device d = 0; d < devices_; ++d) {
      TASO_ASSIGN(const Value output, assemble(value, parts[d], need.boxes[d], d));
      known.emplace_back(output);
    }
    return {};
  }

  /// A concatenation needs no operands without elements, which a piece may have. Where none has elements, they may yet
  /// be of some extent along its axis. What collectives bring stays, so that every device takes part in them.
  void leave_out_empty(std::string_view op, std::vector<Value>& operands) const {
    const auto is_empty = [&](const Value& operand) { return made_.graph.type(operand).elements() == 0; };
    if (!strategies_.registry().is_associative(op) || std::all_of(operands.begin(), operands.end(), is_empty)) return;
    std::erase_if(operands, [&](const Value& operand) {
      return is_empty(operand) && (vocabulary_ == nullptr || made_.graph.node(operand.node).weight_only);
    });
  }

  Expected<NodeId> apply(std::string_view op, const Attributes& attributes, std::vector<Value> inputs, Device device,
                         NodePlace place = {}) {
    place.device = static_cast<std::int32_t>(device);
    return add_op(made_.graph, strategies_.registry(), op, attributes, std::move(inputs), place);
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
    return vocabulary_ != nullptr ? move_by_collectives(value, need, number) : follow(value, schedule, number);
  }

  /// What devices have of a value after the collectives that bring them what they need.
  Expected<std::vector<LocalParts>> move_by_collectives(Value value, const Placement& need, std::size_t move) {
    const HeldTensor& held = held_.at(value);
    CollectiveTransfer by =
        collective_transfer(held.placement, need, graph_.type(value).shape, plan_.mesh, *vocabulary_);
    std::vector<LocalParts> parts(devices_);
    if (by.steps.empty()) {
      for (Device d = 0; d < devices_; ++d) parts[d].push_back({held.placement.boxes[d], *held.parts[d]});
      return parts;
    }
    TASO_CHECK(move < moves_.size(), "a move that the plan does not state");
    if (by.steps[0].kind == Collective::Kind::gather_parts) {
      TASO_ASSIGN(parts, gather_parts(value, by, need, move));
    } else {
      std::vector<Value> tensors;
      for (Device d = 0; d < devices_; ++d) tensors.push_back(*held.parts[d]);
      for (const Collective& step : by.steps) tensors = collect(step, tensors, move);
      for (Device d = 0; d < devices_; ++d) parts[d].push_back({by.has.boxes[d], tensors[d]});
    }
    for (const Collective& step : by.steps) moves_[move].bytes += step.elements * element_bytes(value);
    moves_[move].by = std::move(by);
    return parts;
  }

  /// The nodes of a collective on all devices; `tensors` and results are per device.
  std::vector<Value> collect(const Collective& collective, const std::vector<Value>& tensors, std::size_t move) {
    const auto number = static_cast<std::int64_t>(move_of_.size());
    move_of_.push_back(move);
    std::vector<Value> results;
    for (Device d = 0; d < devices_; ++d)
      results.push_back({made_.graph.add(collective_node(collective, number, tensors[d], made_.graph.type(tensors[d]),
                                                         d, plan_.mesh)),
                         0});
    return results;
  }

  /// What devices have of everybody's parts, combined as far as they need that.
  Expected<std::vector<LocalParts>> gather_parts(Value value, const CollectiveTransfer& by, const Placement& need,
                                                 std::size_t move) {
    const HeldTensor& held = held_.at(value);
    Shape common(graph_.type(value).shape.size(), 0);
    for (const IndexBox& box : held.placement.boxes)
      for (std::size_t axis = 0; axis < common.size(); ++axis) common[axis] = std::max(common[axis], box[axis].size());
    std::vector<Value> rows;
    for (Device d = 0; d < devices_; ++d) {
      TASO_ASSIGN(const Value row, as_row(*held.parts[d], common, d));
      rows.push_back(row);
    }
    Collective collective = by.steps[0];
    collective.kind = Collective::Kind::all_gather;
    rows = collect(collective, rows, move);
    std::vector<LocalParts> parts(devices_);
    for (Device d = 0; d < devices_; ++d) {
      TASO_ASSIGN(parts[d], combined_rows(rows[d], held.placement, by, need, d));
    }
    return parts;
  }

  /// A tensor padded to the extents of the largest one, with an axis of extent 1 in front.
  Expected<Value> as_row(Value tensor, const Shape& common, Device d) {
    const Shape shape = made_.graph.type(tensor).shape;
    if (shape != common) {
      Shape behind = common;
      for (std::size_t axis = 0; axis < common.size(); ++axis) behind[axis] -= shape[axis];
      Attributes attributes;
      attributes.set("before", Shape(common.size(), 0));
      attributes.set("after", behind);
      TASO_ASSIGN(const NodeId padded, apply("pad", attributes, {tensor}, d));
      tensor = {padded, 0};
    }
    Shape row = common;
    row.insert(row.begin(), 1);
    return reshape(tensor, row, d);
  }

  Expected<Value> reshape(Value tensor, const Shape& shape, Device d) {
    Attributes attributes;
    attributes.set("shape", shape);
    TASO_ASSIGN(const NodeId made, apply("reshape", attributes, {tensor}, d));
    return Value{made, 0};
  }

  /// Of the parts of a group, each once, the sums along the mesh axes that are reduced.
  Expected<LocalParts> combined_rows(Value rows, const Placement& held, const CollectiveTransfer& by,
                                     const Placement& need, Device d) {
    const std::vector<Device> group = group_of(d, by.steps[0].mesh_axes, plan_.mesh);
    const std::vector<std::int64_t> own = plan_.mesh.coordinates(static_cast<std::int64_t>(d));
    const std::string op = by.reduced.empty() ? "" : combining_operator(strategies_.registry(), held.reducer);
    std::map<std::vector<std::int64_t>, LocalPart> sums;  // By the places that summands share.
    for (std::size_t i = 0; i < group.size(); ++i) {
      std::vector<std::int64_t> places = plan_.mesh.coordinates(static_cast<std::int64_t>(group[i]));
      const auto differs = [&](std::size_t axis) { return places[axis] != own[axis]; };
      if (std::any_of(need.partial.begin(), need.partial.end(), differs)) continue;
      for (const std::size_t axis : by.reduced) places[axis] = 0;
      const IndexBox& box = held.boxes[group[i]];
      const auto known = sums.find(places);
      const auto has_box = [&](const auto& sum) { return sum.second.box == box; };
      if (known == sums.end() && std::any_of(sums.begin(), sums.end(), has_box)) continue;
      TASO_ASSIGN(const Value part, row_of(rows, i, box, d));
      if (known == sums.end()) {
        sums[places] = {box, part};
        continue;
      }
      TASO_ASSIGN(const NodeId both, apply(op, {}, {known->second.tensor, part}, d));
      known->second.tensor = {both, 0};
    }
    LocalParts parts;
    for (const auto& [places, part] : sums) parts.push_back(part);
    return parts;
  }

  /// What a row holds of a box, whose elements come first.
  Expected<Value> row_of(Value rows, std::size_t row, const IndexBox& box, Device d) {
    IndexBox taken = {{static_cast<std::int64_t>(row), static_cast<std::int64_t>(row) + 1}};
    Shape shape;
    for (const IndexRange& range : box) {
      taken.push_back({0, range.size()});
      shape.push_back(range.size());
    }
    TASO_ASSIGN(const Value sliced, slice(rows, whole_of(rows), taken, d));
    return reshape(sliced, shape, d);
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
          TASO_ASSIGN(const NodeId both, apply(op, {}, {*sum, summand}, d));
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
    if (volume_of(box) == 0) return nothing_of(value, parts, box, d);
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
    TASO_ASSIGN(const NodeId whole, apply("concat", attributes, std::move(joined), d));
    return Value{whole, 0};
  }

  /// Nothing of a value: with collectives, of what they brought.
  Expected<Value> nothing_of(Value value, const LocalParts& parts, const IndexBox& box, Device d) {
    const auto has_room = [&](const LocalPart& part) {
      for (std::size_t axis = 0; axis < box.size(); ++axis)
        if (part.box[axis].size() < std::max<std::int64_t>(box[axis].size(), 1)) return false;
      return true;
    };
    const auto part = std::find_if(parts.begin(), parts.end(), has_room);
    if (vocabulary_ == nullptr || part == parts.end()) return nothing(value, box);
    IndexBox within;
    for (std::size_t axis = 0; axis < box.size(); ++axis)
      within.push_back({part->box[axis].begin, part->box[axis].begin + box[axis].size()});
    return slice(part->tensor, part->box, within, d);
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
                add_op(made_.graph, strategies_.registry(), "slice", attributes, {tensor}, {-1, place}));
    return Value{sliced, 0};
  }

  const Graph& graph_;
  const PartitionPlan& plan_;
  StrategyTable& strategies_;
  const CollectiveVocabulary* vocabulary_;
  Device devices_;
  std::map<NodeId, const PlannedNode*> planned_;
  /// The numbers of the plan's transfers that were not made yet.
  std::map<std::pair<Value, std::optional<NodeId>>, std::vector<std::uint32_t>> expected_;
  Expansion made_;
  std::map<Value, HeldTensor> held_;
  std::map<Value, std::optional<Value>> outputs_;
  std::vector<CollectiveMove> moves_;
  std::vector<std::size_t> move_of_;                             ///< As in CollectiveExpansion.
  std::map<Value, std::vector<std::optional<Value>>> gathered_;  ///< Outputs, per device.
  /// Within devices.
  std::map<std::tuple<Value, IndexBox, IndexBox, std::int32_t>, std::optional<Value>> slices_;
};

}  // namespace

Expected<Expansion> expand(const Graph& graph, const PartitionPlan& plan, StrategyTable& strategies) {
  return PlanExpander(graph, plan, strategies).run();
}

Expected<CollectiveExpansion> expand_with_collectives(const Graph& graph, const PartitionPlan& plan,
                                                      StrategyTable& strategies,
                                                      const CollectiveVocabulary& vocabulary) {
  return PlanExpander(graph, plan, strategies, &vocabulary).run_with_collectives();
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
