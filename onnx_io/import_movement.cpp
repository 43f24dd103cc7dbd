/// How ONNX operators that only move elements are imported.

#include <algorithm>
#include <cmath>
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
  if (axes.empty() && c.symbolic())
    return c.decline("which extents are 1 may depend on symbolic ones", Obstacle::symbolic);
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
  if (std::count(sizes.begin(), sizes.end(), 0) > 0 && c.is_empty({0})) return c.decline("a part is empty");
  if (count == 1) return c.output(0, c.value(0));
  const Value first = c.op("split", {c.value(0)}, {{"axis", axis - c.rank(0)}, {"sizes", sizes}});
  for (std::uint32_t i = 0; i < c.output_count(); ++i) c.output(i, {first.node, i});
}

bool stands_for_end(std::int64_t position) {
  return position == std::numeric_limits<std::int32_t>::max() || position == std::numeric_limits<std::int64_t>::max();
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
  const auto follows = [&](std::size_t input) {
    return c.symbolic() && c.has_input(input) && c.inputs()[input].from_symbols;
  };
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
    if (step < 0 && stands_for_end(ends[i])) return c.decline("runtimes differ on an end that is beyond, backwards");
    auto clamp = [&](std::int64_t position, std::int64_t low, std::int64_t high) {
      return std::clamp(position < 0 ? position + extent : position, low, high);
    };
    // A position beyond the end, but for one that stands for the end, is where another extent would have more elements.
    constexpr std::int64_t far = std::int64_t{1} << 31;
    const auto is_beyond = [&](std::int64_t position) {
      return position < far - 1 && position > -far && (position > extent || position < -extent);
    };
    if (c.symbolic() && (is_beyond(starts[i]) || is_beyond(ends[i])))
      return c.decline("what it takes may depend on symbolic extents", Obstacle::symbolic);
    // One that follows from symbolic extents may count from the end, or stand for it, at other sizes: as long as it
    // lies inside, the operator below asks for just that.
    const auto lies_inside = [&](std::size_t input, std::int64_t position) {
      return !follows(input) || (position >= 0 && position <= extent && step > 0);
    };
    if (!lies_inside(1, starts[i]) || !lies_inside(2, ends[i]))
      return c.decline("what it takes may depend on symbolic extents", Obstacle::symbolic);
    if (step > 0) {
      const std::int64_t begin = clamp(starts[i], 0, extent), end = clamp(ends[i], 0, extent);
      begins[axis] = begin;
      sizes[axis] = end > begin ? (end - begin - 1) / step + 1 : 0;
    } else {
      const std::int64_t begin = extent == 0 ? -1 : clamp(starts[i], 0, extent - 1);
      const std::int64_t end = ends[i] < -extent ? -1 : clamp(ends[i], -1, extent - 1);
      begins[axis] = std::max<std::int64_t>(begin, 0);
      sizes[axis] = begin > end ? (begin - end - 1) / -step + 1 : 0;
    }
    strides[axis] = sizes[axis] <= 1 ? 1 : step;
    if (sizes[axis] == 0 && c.is_empty({0})) return c.decline("the slice is empty");
  }
  const bool decided_by_sizes =
      follows(1) || follows(2) ||
      (c.symbolic() && std::ranges::any_of(steps, [](std::int64_t step) { return std::abs(step) != 1; }));
  if (!decided_by_sizes && sizes == x &&
      std::all_of(strides.begin(), strides.end(), [](std::int64_t step) { return step == 1; }))
    return c.output(0, c.value(0));
  c.output(0, c.op("slice", {c.value(0)}, {{"starts", begins}, {"sizes", sizes}, {"steps", strides}}));
}

namespace {

/// What negative pads leave; they become 0.
Value without_cut_off(NodeContext& c, Value x, Shape& before, Shape& after) {
  const Shape shape = c.shape_of(x);
  Shape starts(shape.size(), 0), sizes = shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    starts[i] = std::max<std::int64_t>(0, -before[i]);
    sizes[i] -= starts[i] + std::max<std::int64_t>(0, -after[i]);
    if (sizes[i] < 1 && sizes[i] != shape[i]) {
      c.decline("pads leave nothing of an axis");
      return {};
    }
    before[i] = std::max<std::int64_t>(0, before[i]);
    after[i] = std::max<std::int64_t>(0, after[i]);
  }
  if (sizes == shape) return x;
  return c.op("slice", {x}, {{"starts", starts}, {"sizes", sizes}, {"steps", Shape(shape.size(), 1)}});
}

}  // namespace

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
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    return c.fail("mode \"" + mode + "\" is none of constant, reflect, edge, wrap");
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
    constexpr std::int64_t limit = std::int64_t{1} << 40;
    if (std::max(before[axis], after[axis]) > limit || std::min(before[axis], after[axis]) < -limit)
      return c.fail("pads " + shape_text(pads) + " are out of range");
  }
  if (std::all_of(pads.begin(), pads.end(), [](std::int64_t p) { return p == 0; })) return c.output(0, c.value(0));
  // In graphs of pieces a pad stands as a pad.
  const bool stays = c.of_pieces() && mode == "constant";
  const Value kept = stays ? c.value(0) : without_cut_off(c, c.value(0), before, after);
  if (c.stopped()) return;
  if (mode != "constant") return c.output(0, padded_by_itself(c, kept, mode, before, after));
  if (before == Shape(before.size(), 0) && after == before) return c.output(0, kept);
  c.output(0, c.op("pad", {kept}, {{"before", before}, {"after", after}, {"value", value}}));
}

void gather(NodeContext& c) {
  const std::int64_t axis = c.axis_from_front(c.integer("axis", 0), c.rank(0));
  if (c.stopped()) return;
  const TensorType& index = c.type(1);
  if (index.element != ElementType::i64 && index.element != ElementType::i32 && index.element != ElementType::other)
    return c.fail("indices must be i32 or i64, they are " + std::string(to_string(index.element)));
  if (!index.known) return c.decline_untyped();
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
  // Only extents of 1 in front: a reshape, where it is no piece of a larger broadcast.
  if (volume(shape) == volume(c.shape(0)) && !c.of_pieces()) return c.output(0, c.reshape(c.value(0), shape));
  c.output(0, c.broadcast(c.value(0), shape));
}

namespace {

/// Checks what the two operators below have in common; the block size.
std::int64_t block_size(NodeContext& c) {
  if (!c.has_attribute("blocksize")) c.fail("it has no blocksize");
  const std::int64_t block = c.integer("blocksize", 1);
  if (c.rank(0) != 4) c.fail("its input must have rank 4, it is " + shape_text(c.shape(0)));
  if (block < 1 || block > (std::int64_t{1} << 20)) c.fail("blocksize is " + std::to_string(block));
  return block;
}

}  // namespace

void depth_to_space(NodeContext& c) {
  const std::int64_t b = block_size(c);
  const std::string mode = c.text("mode", "DCR");
  if (c.stopped()) return;
  const Shape x = c.shape(0);
  if (x[1] % (b * b) != 0)
    return c.fail(std::to_string(x[1]) + " channels do not make blocks of " + std::to_string(b * b));
  const std::int64_t channels = x[1] / (b * b);
  if (mode != "DCR" && mode != "CRD") return c.fail("mode \"" + mode + "\" is neither DCR nor CRD");
  const bool depth_first = mode == "DCR";
  const Value parts = c.reshape(
      c.value(0), depth_first ? Shape{x[0], b, b, channels, x[2], x[3]} : Shape{x[0], channels, b, b, x[2], x[3]});
  const Shape perm = depth_first ? Shape{0, 3, 4, 1, 5, 2} : Shape{0, 1, 4, 2, 5, 3};
  c.output(0, c.reshape(c.op("transpose", {parts}, {{"perm", perm}}), {x[0], channels, x[2] * b, x[3] * b}));
}

void space_to_depth(NodeContext& c) {
  const std::int64_t b = block_size(c);
  if (c.stopped()) return;
  const Shape x = c.shape(0);
  if (x[2] % b != 0 || x[3] % b != 0) return c.fail("an image of " + shape_text(x) + " has no whole number of blocks");
  const Value parts = c.reshape(c.value(0), {x[0], x[1], x[2] / b, b, x[3] / b, b});
  c.output(0, c.reshape(c.op("transpose", {parts}, {{"perm", Shape{0, 3, 5, 1, 2, 4}}}),
                        {x[0], x[1] * b * b, x[2] / b, x[3] / b}));
}

Value repeated(NodeContext& c, Value value, const Shape& repeats, bool blocks) {
  if (c.stopped()) return {};
  const Shape x = c.shape_of(value);
  Shape parts, target, result;  // Each repeated axis is two in between, one of them to be repeated.
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::int64_t extent = 0;
    if (repeats[i] < 0 || __builtin_mul_overflow(x[i], repeats[i], &extent)) {
      c.fail("repeats " + shape_text(repeats) + " are out of range");
      return {};
    }
    result.push_back(extent);
    if (repeats[i] == 1) {
      parts.push_back(x[i]);
      target.push_back(x[i]);
      continue;
    }
    if (x[i] != 1 && !blocks) {
      parts.push_back(x[i]);
      target.push_back(x[i]);
    }
    parts.push_back(1);
    target.push_back(repeats[i]);
    if (x[i] != 1 && blocks) {
      parts.push_back(x[i]);
      target.push_back(x[i]);
    }
  }
  if (!is_reasonable(result)) {
    c.fail("its output would be " + shape_text(result) + ", more than 2^40 elements");
    return {};
  }
  if (c.is_empty(result)) {
    c.decline("the output is empty");
    return {};
  }
  return c.reshape(c.broadcast(c.reshape(value, parts), target), result);
}

void tile(NodeContext& c) {
  const Shape repeats = c.integers(1);
  if (c.stopped()) return;
  if (static_cast<std::int64_t>(repeats.size()) != c.rank(0))
    return c.fail("repeats " + shape_text(repeats) + " do not fit " + shape_text(c.shape(0)));
  c.output(0, repeated(c, c.value(0), repeats, true));
}

}  // namespace taso::import_handlers
