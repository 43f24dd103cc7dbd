/// How ONNX operators that only move elements are imported.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "onnx_io/import_handlers.h"
#include "support/reversed.h"

namespace taso::import_handlers {

// ------------------------------------------------------------------------------------------ moving elements

void transpose(NodeContext& c) {
  Shape reversed = range_of(0, c.rank(0));
  std::reverse(reversed.begin(), reversed.end());
  const Shape perm = c.integer_list("perm", reversed);
  if (c.stopped()) return;
  Shape sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != range_of(0, c.rank(0)))
    return c.fail("perm " + shape_text(perm) + " is no permutation of " + std::to_string(c.rank(0)) + " axes");
  if (perm == sorted) return c.output(0, c.value(0));
  c.output(0, c.op("transpose", {c.value(0)}, {{"perm", perm}}));
}

void reshape(NodeContext& c) {
  const Shape x = c.shape(0);
  Shape shape = c.integers(1);
  const bool zero_is_zero = c.integer("allowzero", 0) != 0;
  if (c.stopped()) return;
  std::int64_t known = 1, open = -1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !zero_is_zero) {
      if (i >= x.size())
        return c.fail("shape " + shape_text(shape) + " copies an axis that " + shape_text(x) + " lacks");
      shape[i] = x[i];
    }
    if (shape[i] == -1 && open < 0) {
      open = static_cast<std::int64_t>(i);
    } else if (shape[i] < 0 || __builtin_mul_overflow(known, shape[i], &known)) {
      return c.fail("shape " + shape_text(shape) + " is not a shape");
    }
  }
  if (open >= 0 && known > 0) {
    shape[at(open)] = volume(x) / known;
    known *= shape[at(open)];
  }
  if (known != volume(x)) return c.fail(shape_text(x) + " cannot be reshaped to " + shape_text(shape));
  c.output(0, c.reshape(c.value(0), shape));
}

void flatten(NodeContext& c) {
  const std::int64_t axis = c.integer("axis", 1);
  const std::int64_t front = axis == c.rank(0) ? axis : c.axis_from_front(axis, c.rank(0));
  if (c.stopped()) return;
  const Shape x = c.shape(0);
  c.output(0, c.reshape(c.value(0), {volume(std::span(x).first(at(front))), volume(std::span(x).subspan(at(front)))}));
}

namespace {

std::vector<std::int64_t> axes_argument(NodeContext& c) {
  if (c.opset() < 13) return c.integer_list("axes", {});
  return c.has_input(1) ? c.integers(1) : std::vector<std::int64_t>{};
}

}  // namespace

void squeeze(NodeContext& c) {
  Shape shape = c.shape(0);
  std::vector<std::int64_t> axes = axes_argument(c);
  if (c.stopped()) return;
  for (std::int64_t& axis : axes) axis = c.axis_from_front(axis, c.rank(0));
  if (axes.empty())
    for (std::int64_t i = 0; i < c.rank(0); ++i)
      if (shape[at(i)] == 1) axes.push_back(i);
  if (c.stopped()) return;
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  for (const std::int64_t axis : reversed(axes)) {
    if (shape[at(axis)] != 1)
      return c.fail("axis " + std::to_string(axis) + " of " + shape_text(c.shape(0)) + " is not 1");
    shape.erase(shape.begin() + axis);
  }
  c.output(0, c.reshape(c.value(0), shape));
}

void unsqueeze(NodeContext& c) {
  std::vector<std::int64_t> axes = axes_argument(c);
  if (c.stopped()) return;
  if (axes.empty()) return c.fail("it has no axes");
  Shape shape = c.shape(0);
  const auto rank = c.rank(0) + static_cast<std::int64_t>(axes.size());
  for (std::int64_t& axis : axes) axis = c.axis_from_front(axis, rank);
  if (c.stopped()) return;
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) return c.fail("axes name one axis twice");
  for (std::int64_t axis : axes) shape.insert(shape.begin() + axis, 1);
  c.output(0, c.reshape(c.value(0), shape));
}

void concat(NodeContext& c) {
  if (!c.has_attribute("axis")) return c.fail("it has no axis");
  const std::int64_t rank = c.rank(0);
  const std::int64_t axis = c.axis_from_front(c.integer("axis", 0), rank);
  if (c.stopped()) return;
  std::vector<Value> parts;
  for (std::size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has_input(i)) return c.fail("input " + std::to_string(i) + " is absent");
    Shape expected = c.shape(0);
    if (c.rank(i) == rank) expected[at(axis)] = c.shape(i)[at(axis)];
    if (c.shape(i) != expected)
      return c.fail("shapes " + shape_text(c.shape(0)) + " and " + shape_text(c.shape(i)) +
                    " do not concatenate along axis " + std::to_string(axis));
    parts.push_back(c.value(i));
  }
  c.output(0, parts.size() == 1 ? parts[0] : c.op("concat", parts, {{"axis", axis - rank}}));
}

void split(NodeContext& c) {
  const std::int64_t axis = c.axis_from_front(c.integer("axis", 0), c.rank(0));
  Shape sizes;
  if (c.opset() < 13) {
    sizes = c.integer_list("split", {});
  } else if (c.has_input(1)) {
    sizes = c.integers(1);
  }
  const auto count = static_cast<std::int64_t>(c.output_count());
  if (c.integer("num_outputs", count) != count) return c.fail("num_outputs is not the number of its outputs");
  if (c.stopped()) return;
  const std::int64_t extent = c.shape(0)[at(axis)];
  if (sizes.empty()) {
    if (c.opset() < 18 && extent % count != 0)
      return c.fail("an extent of " + std::to_string(extent) + " does not split into " + std::to_string(count) +
                    " equal parts");
    const std::int64_t size = (extent + count - 1) / count;
    for (std::int64_t begin = 0, i = 0; i < count; ++i, begin += size)
      sizes.push_back(std::max<std::int64_t>(0, std::min(size, extent - begin)));
  }
  std::int64_t total = 0;
  for (std::int64_t size : sizes)
    if (size < 0 || __builtin_add_overflow(total, size, &total)) total = -1;
  if (total != extent || static_cast<std::int64_t>(sizes.size()) != count)
    return c.fail("sizes " + shape_text(sizes) + " do not split an extent of " + std::to_string(extent) + " into " +
                  std::to_string(count) + " outputs");
  if (std::count(sizes.begin(), sizes.end(), 0) > 0) return c.decline("a part is empty");
  if (count == 1) return c.output(0, c.value(0));
  const Value first = c.op("split", {c.value(0)}, {{"axis", axis - c.rank(0)}, {"sizes", sizes}});
  for (std::uint32_t i = 0; i < c.output_count(); ++i) c.output(i, {first.node, i});
}

void slice(NodeContext& c) {
  std::vector<std::int64_t> starts, ends, axes, steps;
  if (c.opset() < 10) {
    starts = c.integer_list("starts", {});
    ends = c.integer_list("ends", {});
    axes = c.integer_list("axes", {});
  } else {
    if (!c.has_input(1) || !c.has_input(2)) return c.fail("it needs starts and ends");
    starts = c.integers(1);
    ends = c.integers(2);
    if (c.has_input(3)) axes = c.integers(3);
    if (c.has_input(4)) steps = c.integers(4);
  }
  if (c.stopped()) return;
  if (axes.empty()) axes = range_of(0, static_cast<std::int64_t>(starts.size()));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return c.fail("starts, ends, axes and steps differ in length");
  const Shape x = c.shape(0);
  Shape begins(x.size(), 0), sizes = x, strides(x.size(), 1);
  std::vector<bool> seen(x.size(), false);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t axis = at(c.axis_from_front(axes[i], c.rank(0)));
    if (c.stopped()) return;
    if (seen[axis]) return c.fail("axes name one axis twice");
    seen[axis] = true;
    const std::int64_t extent = x[axis], step = steps[i];
    if (step == 0) return c.fail("a step is 0");
    if (step == std::numeric_limits<std::int64_t>::min()) return c.decline("a step is out of range");
    auto clamp = [&](std::int64_t position, std::int64_t low, std::int64_t high) {
      return std::clamp(position < 0 ? position + extent : position, low, high);
    };
    if (step > 0) {
      const std::int64_t begin = clamp(starts[i], 0, extent), end = clamp(ends[i], 0, extent);
      begins[axis] = begin;
      sizes[axis] = end > begin ? (end - begin - 1) / step + 1 : 0;
    } else {
      const std::int64_t begin = clamp(starts[i], 0, extent - 1);
      const std::int64_t end = ends[i] < -extent ? -1 : clamp(ends[i], -1, extent - 1);
      begins[axis] = begin;
      sizes[axis] = begin > end ? (begin - end - 1) / -step + 1 : 0;
    }
    strides[axis] = sizes[axis] <= 1 ? 1 : step;
    if (sizes[axis] == 0) return c.decline("the slice is empty");
  }
  if (sizes == x && std::all_of(strides.begin(), strides.end(), [](std::int64_t step) { return step == 1; }))
    return c.output(0, c.value(0));
  c.output(0, c.op("slice", {c.value(0)}, {{"starts", begins}, {"sizes", sizes}, {"steps", strides}}));
}

void pad(NodeContext& c) {
  const std::string mode = c.text("mode", "constant");
  std::vector<std::int64_t> pads, axes;
  double value = 0;
  if (c.opset() < 11) {
    pads = c.integer_list("pads", {});
    value = c.real("value", 0.0F);
  } else {
    if (!c.has_input(1)) return c.fail("it has no pads");
    pads = c.integers(1);
    if (c.has_input(2)) value = c.real(2);
    if (c.has_input(3)) axes = c.integers(3);
  }
  if (c.stopped()) return;
  if (mode != "constant") return c.decline("mode " + mode + " is not modelled");
  if (axes.empty()) axes = range_of(0, c.rank(0));
  if (pads.size() != 2 * axes.size())
    return c.fail("pads " + shape_text(pads) + " do not have two numbers for each of " + std::to_string(axes.size()) +
                  " axes");
  Shape before(c.shape(0).size(), 0), after = before;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = at(c.axis_from_front(axes[i], c.rank(0)));
    if (c.stopped()) return;
    before[axis] = pads[i];
    after[axis] = pads[axes.size() + i];
    if (before[axis] < 0 || after[axis] < 0) return c.decline("a pad is negative");
    if (before[axis] > (std::int64_t{1} << 40) || after[axis] > (std::int64_t{1} << 40))
      return c.fail("pads " + shape_text(pads) + " are out of range");
  }
  if (std::all_of(pads.begin(), pads.end(), [](std::int64_t p) { return p == 0; })) return c.output(0, c.value(0));
  c.output(0, c.op("pad", {c.value(0)}, {{"before", before}, {"after", after}, {"value", value}}));
}

void gather(NodeContext& c) {
  const std::int64_t axis = c.axis_from_front(c.integer("axis", 0), c.rank(0));
  if (c.stopped()) return;
  const TensorType& index = c.type(1);
  if (index.element != ElementType::i64 && index.element != ElementType::i32 && index.element != ElementType::other)
    return c.fail("indices must be i32 or i64, they are " + std::string(to_string(index.element)));
  if (!index.known) return c.decline("the shape of the indices is not known before run time");
  if (volume(index.shape) == 0) return c.decline("there are no indices");
  if (c.is_constant(1)) {
    const std::int64_t extent = c.shape(0)[at(axis)];
    for (std::int64_t i : c.integers(1))
      if (i < -extent || i >= extent)
        return c.fail("index " + std::to_string(i) + " is outside an axis of extent " + std::to_string(extent));
  }
  if (c.stopped()) return;
  c.output(0, c.op("gather", {c.value(0), c.value(1)}, {{"axis", axis - c.rank(0)}}));
}

void expand(NodeContext& c) {
  const Shape target = c.integers(1);
  if (c.stopped()) return;
  if (!is_reasonable(target))
    return c.fail("shape " + shape_text(target) + " is negative or has more than 2^40 elements");
  const Shape shape = c.common_shape({c.shape(0), target});
  if (c.stopped()) return;
  if (c.rank(0) == static_cast<std::int64_t>(shape.size()) && c.shape(0) == shape) return c.output(0, c.value(0));
  // Only extents of 1 in front: a reshape.
  if (volume(shape) == volume(c.shape(0))) return c.output(0, c.reshape(c.value(0), shape));
  c.output(0, c.broadcast(c.value(0), shape));
}

void cast(NodeContext& c) {
  c.ignore("saturate");
  if (c.integer("to", 0) != onnx::TensorProto::FLOAT) return c.decline("it changes the element type");
  c.output(0, c.value(0));
}

}  // namespace taso::import_handlers
