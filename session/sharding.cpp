#include "session/sharding.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "partition/operator_piece.h"

namespace taso {
namespace {

/// The devices that have each box, without those that have nothing. Boxes of a grid are in row-major order.
std::map<IndexBox, std::vector<std::int64_t>> devices_by_box(const Placement& placement) {
  std::map<IndexBox, std::vector<std::int64_t>> devices;
  for (std::size_t d = 0; d < placement.boxes.size(); ++d)
    if (volume_of(placement.boxes[d]) > 0) devices[placement.boxes[d]].push_back(static_cast<std::int64_t>(d));
  return devices;
}

/// The ranges of boxes along an axis, in order.
template <class Boxes>
std::set<IndexRange> ranges_of(const Boxes& boxes, std::size_t axis) {
  std::set<IndexRange> ranges;
  for (const auto& [box, devices] : boxes) ranges.insert(box[axis]);
  return ranges;
}

bool lie_end_to_end(const std::set<IndexRange>& ranges, std::int64_t extent) {
  std::int64_t end = 0;
  for (const IndexRange& range : ranges) {
    if (range.begin != end) return false;
    end = range.end;
  }
  return end == extent;
}

bool are_equal_in_size(const std::set<IndexRange>& ranges) {
  return std::all_of(ranges.begin(), ranges.end(),
                     [&](const IndexRange& range) { return range.size() == ranges.begin()->size(); });
}

}  // namespace

std::optional<TensorSharding> sharding_of(const Placement& placement, const Shape& shape) {
  if (!placement.partial.empty()) return std::nullopt;
  const std::map<IndexBox, std::vector<std::int64_t>> boxes = devices_by_box(placement);
  TensorSharding sharding;
  std::size_t shards = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const std::set<IndexRange> ranges = ranges_of(boxes, axis);
    if (!lie_end_to_end(ranges, shape[axis]) || !are_equal_in_size(ranges)) return std::nullopt;
    shards *= ranges.size();
    if (ranges.size() > 1)
      sharding.axes.push_back({static_cast<std::int64_t>(axis), shape[axis], static_cast<std::int64_t>(ranges.size())});
  }
  if (shards != boxes.size()) return std::nullopt;
  for (const auto& [box, devices] : boxes) sharding.devices.push_back(devices);
  return sharding;
}

std::string why_no_sharding(const Placement& placement, const Shape& shape) {
  if (!placement.partial.empty()) return "partial results";
  const std::map<IndexBox, std::vector<std::int64_t>> boxes = devices_by_box(placement);
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const std::set<IndexRange> ranges = ranges_of(boxes, axis);
    if (!lie_end_to_end(ranges, shape[axis])) return "halos or parts";
    if (!are_equal_in_size(ranges)) return "uneven pieces";
  }
  return "parts of a grid";
}

ShardingPlan sharding_plan(const Graph& graph, const PartitionPlan& plan) {
  ShardingPlan result;
  result.annotations.configuration = "mesh " + plan.mesh.to_string();
  result.annotations.devices = plan.mesh.devices();
  for (const PlannedNode& planned : plan.nodes) {
    const Node& node = graph.node(planned.node);
    NodeSharding& sharding = result.annotations.nodes[planned.node];
    const auto add = [&](Value value, const Placement& placement, auto& tensors) {
      const TensorType& type = graph.type(value);
      if (!type.known) return;
      ++result.tensors;
      if (std::optional<TensorSharding> said = sharding_of(placement, type.shape))
        tensors.emplace_back(value, std::move(*said));
      else
        ++result.unsaid[why_no_sharding(placement, type.shape)];
    };
    for (std::size_t i = 0; i < planned.configuration.reads.size(); ++i)
      add(node.inputs[i], planned.configuration.reads[i], sharding.reads);
    for (std::uint32_t port = 0; port < planned.configuration.makes.size(); ++port)
      add({planned.node, port}, planned.configuration.makes[port], sharding.makes);
  }
  return result;
}

}  // namespace taso
