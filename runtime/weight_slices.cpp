#include "runtime/weight_slices.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/configuration.h"

namespace taso {
namespace {

/// Where a part of a tensor begins, and its extents.
struct Box {
  Shape starts, sizes;
  auto operator<=>(const Box&) const = default;
  [[nodiscard]] bool is_all_of(const Shape& shape) const { return sizes == shape; }
};

bool takes_unit_steps(const Node& slice) {
  const std::vector<std::int64_t>& steps = slice.attributes.integers("steps");
  return std::all_of(steps.begin(), steps.end(), [](std::int64_t step) { return step == 1; });
}

Box box_of(const Node& slice) { return {slice.attributes.integers("starts"), slice.attributes.integers("sizes")}; }

/// Axes begin..end - 1 of one shape that have as many elements as such axes of another.
struct AxisGroup {
  std::size_t begin = 0, end = 0, other_begin = 0, other_end = 0;
};

/// The least groups of axes of which a reshape takes one into the other, in order.
std::vector<AxisGroup> groups_of(const Shape& shape, const Shape& other) {
  std::vector<AxisGroup> groups;
  AxisGroup group;
  while (group.end < shape.size() || group.other_end < other.size()) {
    std::int64_t volume = 1, other_volume = 1;
    do {
      const bool takes_other = group.end == shape.size() || (volume > other_volume && group.other_end < other.size());
      if (takes_other)
        other_volume *= other[group.other_end++];
      else
        volume *= shape[group.end++];
    } while (volume != other_volume);
    groups.push_back(group);
    group = {group.end, group.end, group.other_end, group.other_end};
  }
  return groups;
}

/// Elements `first` to `first + count` - 1 of a row-major tensor with the axes begin..end - 1 of a shape, as a box of
/// these axes, if it is one. Writes it to `box`.
bool set_range(const Shape& shape, std::size_t begin, std::size_t end, std::int64_t first, std::int64_t count,
               Box& box) {
  std::int64_t row = 1;  // Elements of one index of the axis at hand.
  for (std::size_t axis = end; axis > begin; row *= shape[--axis]) {
    const std::int64_t extent = shape[axis - 1];
    if (count % (row * extent) == 0 && first % (row * extent) == 0) {
      box.starts[axis - 1] = 0;
      box.sizes[axis - 1] = extent;
      continue;
    }
    // The axis that is cut; one index of those before it.
    if (count % row != 0 || first % row != 0) return false;
    const std::int64_t at = first / row % extent, size = count / row;
    if (at + size > extent) return false;
    box.starts[axis - 1] = at;
    box.sizes[axis - 1] = size;
    std::int64_t rest = first / (row * extent);
    for (std::size_t outer = axis - 1; outer > begin; --outer) {
      box.starts[outer - 1] = rest % shape[outer - 1];
      box.sizes[outer - 1] = 1;
      rest /= shape[outer - 1];
    }
    return true;
  }
  return count == row;
}

/// The elements of axes begin..end - 1 that a box takes, as a range, if they are one: (first, count).
std::optional<std::pair<std::int64_t, std::int64_t>> range_of(const Box& box, const Shape& shape, std::size_t begin,
                                                              std::size_t end) {
  std::int64_t first = 0, count = 1;
  bool cut = false;
  for (std::size_t axis = begin; axis < end; ++axis) {
    // After an axis of which more than one index is taken, but not alone, all are.
    if (cut && box.sizes[axis] != shape[axis]) return std::nullopt;
    cut = cut || box.sizes[axis] > 1;
    first = first * shape[axis] + box.starts[axis];
    count *= box.sizes[axis];
  }
  return std::pair(first, count);
}

class WeightSlicer {
 public:
  WeightSlicer(Graph& graph, const OperatorRegistry& registry) : graph_(graph), registry_(registry) {}

  void run() {
    std::map<Value, Value> parts;
    for (const NodeId id : graph_.topological_order()) {
      const Node& node = graph_.node(id);
      if (!node.is_op("slice") || !node.weight_only || !takes_unit_steps(node)) continue;
      const Value part = cut(node.inputs[0], box_of(node));
      // All of a slice before it is what stands for that.
      const auto further = parts.find(part);
      parts[{id, 0}] = further == parts.end() ? part : further->second;
    }
    replace(parts);
    graph_.remove_dead();
  }

 private:
  void replace(const std::map<Value, Value>& parts) {
    const auto replaced = [&](std::vector<Value> values) {
      for (Value& value : values)
        if (const auto part = parts.find(value); part != parts.end()) value = part->second;
      return values;
    };
    for (const NodeId id : graph_.topological_order()) {
      const std::vector<Value>& inputs = graph_.node(id).inputs;
      if (std::vector<Value> others = replaced(inputs); others != inputs) graph_.set_inputs(id, std::move(others));
    }
    graph_.set_outputs(replaced(graph_.outputs()));
  }

  /// A part of a weight.
  Value cut(Value value, const Box& box) {
    if (box.is_all_of(graph_.type(value).shape)) return value;
    const auto known = cuts_.find({value, box});
    if (known != cuts_.end()) return known->second;
    const Value made = make(value, box);
    cuts_.emplace(std::pair(value, box), made);
    return made;
  }

  Value make(Value value, const Box& box) {
    // A copy: what is added may move nodes.
    const Node node = graph_.node(value.node);
    std::optional<Value> made;
    if (node.kind != NodeKind::op || volume(box.sizes) == 0)
      made = std::nullopt;
    else if (node.op == "slice" && takes_unit_steps(node))
      made = of_slice(node, box);
    else if (node.op == "transpose")
      made = of_transpose(node, box);
    else if (node.op == "broadcast")
      made = of_broadcast(node, box);
    else if (node.op == "reshape")
      made = of_reshape(node, box);
    else if (node.op == "concat")
      made = of_concat(node, box);
    else if (node.op == "split")
      made = of_split(node, value.port, box);
    else if (const OperatorDefinition* definition = registry_.find(node.op);
             definition != nullptr && definition->elementwise && !node.inputs.empty())
      made = of_elements(node, box);
    return made ? *made : slice(value, box);
  }

  Value slice(Value value, const Box& box) {
    Node node;
    node.op = "slice";
    node.attributes.set("starts", box.starts);
    node.attributes.set("sizes", box.sizes);
    node.attributes.set("steps", std::vector<std::int64_t>(box.sizes.size(), 1));
    node.inputs = {value};
    node.outputs = {graph_.type(value)};
    node.outputs[0].shape = box.sizes;
    return {graph_.add(std::move(node)), 0};
  }

  /// The node with other operands and a result of the box's extents.
  Value again(Node node, std::vector<Value> inputs, const Box& box) {
    node.inputs = std::move(inputs);
    node.outputs = {node.outputs[0]};
    node.outputs[0].shape = box.sizes;
    return {graph_.add(std::move(node)), 0};
  }

  Value of_slice(const Node& node, Box box) {
    const std::vector<std::int64_t>& starts = node.attributes.integers("starts");
    for (std::size_t axis = 0; axis < starts.size(); ++axis) box.starts[axis] += starts[axis];
    return cut(node.inputs[0], box);
  }

  Value of_transpose(const Node& node, const Box& box) {
    Box inner = box;
    const std::vector<std::int64_t>& permutation = node.attributes.integers("perm");
    for (std::size_t axis = 0; axis < permutation.size(); ++axis) {
      const std::size_t from = axis_of(permutation[axis], permutation.size());
      inner.starts[from] = box.starts[axis];
      inner.sizes[from] = box.sizes[axis];
    }
    return again(node, {cut(node.inputs[0], inner)}, box);
  }

  Value of_broadcast(Node node, const Box& box) {
    const Shape shape = graph_.type(node.inputs[0]).shape;
    const std::size_t added = box.sizes.size() - shape.size();
    Box inner{Shape(shape.size(), 0), shape};
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == 1) continue;
      inner.starts[axis] = box.starts[added + axis];
      inner.sizes[axis] = box.sizes[added + axis];
    }
    const Value part = cut(node.inputs[0], inner);
    node.attributes.set("shape", box.sizes);
    return again(std::move(node), {part}, box);
  }

  std::optional<Value> of_reshape(Node node, const Box& box) {
    const Shape whole = node.outputs[0].shape, shape = graph_.type(node.inputs[0]).shape;
    Box inner{Shape(shape.size(), 0), shape};
    for (const AxisGroup& group : groups_of(whole, shape)) {
      const auto range = range_of(box, whole, group.begin, group.end);
      if (!range || !set_range(shape, group.other_begin, group.other_end, range->first, range->second, inner))
        return std::nullopt;
    }
    const Value part = cut(node.inputs[0], inner);
    node.attributes.set("shape", box.sizes);
    return again(std::move(node), {part}, box);
  }

  Value of_concat(const Node& node, const Box& box) {
    const std::size_t axis = axis_of(node.attributes.integer("axis"), box.sizes.size());
    const std::int64_t first = box.starts[axis], last = first + box.sizes[axis];
    std::vector<Value> parts;
    std::int64_t at = 0;
    for (const Value& input : node.inputs) {
      const std::int64_t extent = graph_.type(input).shape[axis];
      const std::int64_t begin = std::max(first, at), end = std::min(last, at + extent);
      if (begin < end) {
        Box inner = box;
        inner.starts[axis] = begin - at;
        inner.sizes[axis] = end - begin;
        parts.push_back(cut(input, inner));
      }
      at += extent;
    }
    if (parts.size() == 1) return parts[0];
    return again(node, std::move(parts), box);
  }

  Value of_split(const Node& node, std::uint32_t port, Box box) {
    const std::size_t axis = axis_of(node.attributes.integer("axis"), box.sizes.size());
    for (std::uint32_t before = 0; before < port; ++before) box.starts[axis] += node.outputs[before].shape[axis];
    return cut(node.inputs[0], box);
  }

  /// Operands of the result's shape are cut, scalars are not.
  std::optional<Value> of_elements(const Node& node, const Box& box) {
    std::vector<Value> parts;
    for (const Value& input : node.inputs) {
      const Shape& shape = graph_.type(input).shape;
      if (shape != node.outputs[0].shape && !shape.empty()) return std::nullopt;
      parts.push_back(shape == node.outputs[0].shape ? cut(input, box) : input);
    }
    return again(node, std::move(parts), box);
  }

  Graph& graph_;
  const OperatorRegistry& registry_;
  std::map<std::pair<Value, Box>, Value> cuts_;
};

}  // namespace

void slice_weights_first(Graph& graph, const OperatorRegistry& registry) { WeightSlicer(graph, registry).run(); }

}  // namespace taso
