#include "partition/plan_recount.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "partition/placement.h"
#include "partition/plan_document.h"

namespace taso {
namespace {

struct Read {
  std::size_t at = 0;  ///< The place of the operator in the plan.
  std::size_t input = 0;
};

/// What the operators of a plan read, in their order, by value.
std::map<Value, std::vector<Read>> reads_of(const Graph& graph, const std::vector<NodeId>& order) {
  std::map<Value, std::vector<Read>> reads;
  for (std::size_t at = 0; at < order.size(); ++at) {
    const std::vector<Value>& inputs = graph.node(order[at]).inputs;
    for (std::size_t input = 0; input < inputs.size(); ++input) reads[inputs[input]].push_back({at, input});
  }
  return reads;
}

bool is_output(const Graph& graph, Value value) {
  return std::find(graph.outputs().begin(), graph.outputs().end(), value) != graph.outputs().end();
}

bool is_inside(const IndexBox& inner, const IndexBox& outer) {
  for (std::size_t axis = 0; axis < inner.size(); ++axis)
    if (inner[axis].begin < outer[axis].begin || inner[axis].end > outer[axis].end) return false;
  return true;
}

/// The shape of what a broadcast weight is made of, seen as a part of the whole: of every element that is repeated one.
IndexBox without_repetition(const Graph& graph, Value value, IndexBox box) {
  const Node& node = graph.node(value.node);
  if (!node.weight_only || !node.is_op("broadcast") || !graph.type(node.inputs[0]).known) return box;
  const Shape& from = graph.type(node.inputs[0]).shape;
  for (std::size_t axis = 0; axis < box.size(); ++axis) {
    const std::size_t added = box.size() - from.size();
    const bool repeated = axis < added || from[axis - added] != node.outputs[0].shape[axis];
    if (repeated) box[axis] = {0, box[axis].size() == 0 ? 0 : 1};
  }
  return box;
}

class Recount {
 public:
  Recount(const Graph& graph, PartitionPlan& plan)
      : graph_(graph),
        plan_(plan),
        order_(planned_nodes(graph)),
        reads_(reads_of(graph, order_)),
        devices_(static_cast<std::size_t>(plan.mesh.devices())),
        changes_(devices_, std::vector<double>(order_.size() + 1, 0)) {
    for (std::size_t at = 0; at < order_.size(); ++at) positions_[order_[at]] = at;
  }

  Status run() {
    plan_.transfers.clear();
    plan_.weights.clear();
    plan_.compute_seconds = plan_.transfer_seconds = plan_.transfer_bytes = 0;
    for (const PlannedNode& node : plan_.nodes) plan_.compute_seconds += node.compute_seconds;
    for (std::size_t at = 0; at < order_.size(); ++at)
      for (std::uint32_t port = 0; port < graph_.node(order_[at]).outputs.size(); ++port)
        if (graph_.type({order_[at], port}).known) TASO_RETURN_IF_ERROR(count_value({order_[at], port}, at));
    plan_.seconds = plan_.compute_seconds + plan_.transfer_seconds;
    count_supplied();
    find_most();
    return {};
  }

 private:
  [[nodiscard]] const Placement& read_in(const Read& read) const {
    return plan_.nodes[read.at].configuration.reads[read.input];
  }
  [[nodiscard]] double bytes_of(Value value, const IndexBox& box) const {
    return static_cast<double>(volume_of(box)) * static_cast<double>(size_of(graph_.type(value).element));
  }
  [[nodiscard]] const std::vector<Read>& reads(Value value) const {
    static const std::vector<Read> none;
    const auto found = reads_.find(value);
    return found == reads_.end() ? none : found->second;
  }

  /// Bytes that a device holds while the operators from `first` to `last` run.
  void hold(std::size_t device, std::size_t first, std::size_t last, double bytes) {
    changes_[device][first] += bytes;
    changes_[device][last + 1] -= bytes;
  }

  Status move(Value value, std::optional<NodeId> reader, const Placement& from, const Placement& to) {
    const Transfer moved =
        transfer(from, to, static_cast<std::int64_t>(size_of(graph_.type(value).element)), plan_.mesh);
    if (!moved.possible)
      return Error{ErrorCode::not_proved,
                   fmt::format("{} of operator {} cannot be brought to where {}", to_string(graph_.type(value)),
                               positions_.at(value.node),
                               reader ? fmt::format("operator {} reads it", positions_.at(*reader)) : "it is kept"),
                   {}};
    if (moved.bytes == 0) return {};
    plan_.transfers.push_back({value, reader, moved});
    plan_.transfer_seconds += moved.seconds;
    plan_.transfer_bytes += moved.bytes;
    return {};
  }

  /// A value that the operator at a place makes.
  Status count_value(Value value, std::size_t at) {
    const Placement& made = plan_.nodes[at].configuration.makes[value.port];
    const auto kept = plan_.kept.find(value);
    const Placement& held = kept == plan_.kept.end() ? made : kept->second;
    const std::vector<Read>& readers = reads(value);
    if (kept != plan_.kept.end()) TASO_RETURN_IF_ERROR(move(value, std::nullopt, made, held));
    for (const Read& read : readers) TASO_RETURN_IF_ERROR(move(value, order_[read.at], held, read_in(read)));
    const std::size_t last = is_output(graph_, value) ? order_.size() - 1 : readers.empty() ? at : readers.back().at;
    for (std::size_t d = 0; d < devices_; ++d) {
      const IndexBox &had = made.boxes[d], &has = held.boxes[d];
      hold(d, at, last, bytes_of(value, has));
      // While it is made: what is made, if that is something else; of it what is kept of it need not be there twice.
      if (had != has) hold(d, at, at, bytes_of(value, had) - (is_inside(has, had) ? bytes_of(value, has) : 0));
      std::set<std::pair<std::size_t, IndexBox>> fetched;
      for (const Read& read : readers) {
        const IndexBox& wants = read_in(read).boxes[d];
        if (!is_inside(wants, has) && fetched.emplace(read.at, wants).second)
          hold(d, read.at, read.at, bytes_of(value, wants));
      }
    }
    return {};
  }

  /// Weights and inputs of the graph: a part that lies in another one is stored with that.
  void count_supplied() {
    std::vector<double> of_weights(devices_, 0);
    for (const auto& [value, readers] : reads_) {
      if (positions_.contains(value.node) || !graph_.type(value).known) continue;
      const bool is_weight = graph_.node(value.node).weight_only;
      StoredWeight weight{value, {}, 0, 0};
      std::set<Placement> different;
      for (const Read& read : readers) {
        weight.readers.push_back(order_[read.at]);
        different.insert(read_in(read));
      }
      weight.parts = different.size();
      for (std::size_t d = 0; d < devices_; ++d) {
        const double bytes = stored(value, readers, d);
        const std::size_t last = is_weight ? order_.size() - 1 : readers.back().at;
        hold(d, 0, last, bytes);
        weight.bytes = std::max(weight.bytes, bytes);
        if (is_weight) of_weights[d] += bytes;
      }
      if (is_weight) plan_.weights.push_back(std::move(weight));
    }
    plan_.weight_bytes = *std::max_element(of_weights.begin(), of_weights.end());
  }

  [[nodiscard]] double stored(Value value, const std::vector<Read>& readers, std::size_t device) const {
    std::set<IndexBox> parts;
    for (const Read& read : readers) parts.insert(without_repetition(graph_, value, read_in(read).boxes[device]));
    double bytes = 0;
    for (const IndexBox& part : parts)
      if (std::none_of(parts.begin(), parts.end(),
                       [&](const IndexBox& other) { return other != part && is_inside(part, other); }))
        bytes += bytes_of(value, part);
    return bytes;
  }

  void find_most() {
    plan_.memory = 0;
    plan_.memory_node = 0;
    std::vector<double> held(devices_, 0);
    for (std::size_t at = 0; at < order_.size(); ++at) {
      double& most = plan_.nodes[at].memory = 0;
      for (std::size_t d = 0; d < devices_; ++d) most = std::max(most, held[d] += changes_[d][at]);
      if (most <= plan_.memory) continue;
      plan_.memory = most;
      plan_.memory_node = order_[at];
    }
  }

  const Graph& graph_;
  PartitionPlan& plan_;
  std::vector<NodeId> order_;
  std::map<NodeId, std::size_t> positions_;
  std::map<Value, std::vector<Read>> reads_;
  std::size_t devices_;
  /// Per device and operator: so many bytes more than while the one before it runs.
  std::vector<std::vector<double>> changes_;
};

}  // namespace

std::vector<Value> kept_values(const Graph& graph) {
  const std::vector<NodeId> order = planned_nodes(graph);
  const std::map<Value, std::vector<Read>> reads = reads_of(graph, order);
  std::vector<Value> kept;
  for (const NodeId id : order)
    for (std::uint32_t port = 0; port < graph.node(id).outputs.size(); ++port) {
      const Value value{id, port};
      const auto found = reads.find(value);
      const std::size_t readers = found == reads.end() ? 0 : found->second.size();
      if (graph.type(value).known && (readers > 1 || is_output(graph, value))) kept.push_back(value);
    }
  return kept;
}

Status recount(const Graph& graph, PartitionPlan& plan) { return Recount(graph, plan).run(); }

}  // namespace taso
