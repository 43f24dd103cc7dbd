/// How ONNX operators that take elements by indices, or put them there, are imported: gathers and scatters, paddings by
/// elements of the tensor itself, what is one of two values.
///
/// Where the indices are constant, all of these are one thing: rows of a matrix, taken in a certain order (`taken`). A
/// scatter takes them from the tensor and the updates, side by side.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "graph/words.h"
#include "onnx_io/import_handlers.h"

namespace taso::import_handlers {
namespace {

using Places = std::vector<std::int64_t>;

/// More indices than this are no part of a graph.
constexpr std::int64_t most_places = std::int64_t{1} << 22;

Shape joined(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  Shape shape(a.begin(), a.end());
  shape.insert(shape.end(), b.begin(), b.end());
  return shape;
}

/// Whether the input holds indices; declines or fails otherwise.
bool holds_indices(NodeContext& c, std::size_t input) {
  if (c.stopped()) return false;
  const TensorType& type = c.type(input);
  if (type.element != ElementType::i64 && type.element != ElementType::i32 && type.element != ElementType::other)
    c.fail("indices must be i32 or i64, they are " + std::string(to_string(type.element)));
  else if (!type.known)
    c.decline_untyped();
  else if (volume(type.shape) == 0)
    c.decline("there are no indices");
  return !c.stopped();
}

/// The elements of a constant input of indices.
Places constant_indices(NodeContext& c, std::size_t input) {
  if (!holds_indices(c, input)) return {};
  if (!c.is_constant(input)) {
    c.decline_not_constant(input);
    return {};
  }
  return c.integers(input);
}

/// An index into an axis of `extent`, counted from the front; fails if it is outside.
std::int64_t from_front(NodeContext& c, std::int64_t index, std::int64_t extent) {
  if (index < -extent || index >= extent) {
    c.fail("index " + std::to_string(index) + " is outside an axis of extent " + std::to_string(extent));
    return 0;
  }
  return index < 0 ? index + extent : index;
}

/// Slices of `x` along an axis, counted from the front.
Value taken(NodeContext& c, Value x, std::int64_t axis, const Places& places) {
  if (c.stopped()) return {};
  if (static_cast<std::int64_t>(places.size()) > most_places) {
    c.decline("there are more than " + std::to_string(most_places) + " indices");
    return {};
  }
  const Value index = c.constant(ConstantData::of_integers({static_cast<std::int64_t>(places.size())}, places));
  return c.op("gather", {x, index}, {{"axis", axis - c.rank_of(x)}});
}

/// Per axis of a tensor of this shape, how far apart its neighbours lie.
Shape strides_of(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// A mapping from each element of an index tensor to a place in a tensor of shape `x`: its own, but along `axis` where
/// the index says. Fails or declines where an index is wrong.
Places element_places(NodeContext& c, const Places& index, const Shape& shape, const Shape& x, std::size_t axis) {
  const Shape strides = strides_of(x);
  Places places;
  places.reserve(index.size());
  Shape at_place(shape.size(), 0);
  for (const std::int64_t number : index) {
    std::int64_t place = 0;
    for (std::size_t i = 0; i < shape.size(); ++i)
      place += strides[i] * (i == axis ? from_front(c, number, x[i]) : at_place[i]);
    if (c.stopped()) return {};
    places.push_back(place);
    for (std::size_t i = shape.size(); i-- > 0 && ++at_place[i] == shape[i];) at_place[i] = 0;
  }
  return places;
}

/// Whether an index tensor may stand beside a tensor of shape `x`; fails otherwise.
bool is_beside(NodeContext& c, const Shape& index, const Shape& x, std::size_t axis) {
  bool fits = index.size() == x.size();
  for (std::size_t i = 0; fits && i < x.size(); ++i) fits = i == axis || index[i] <= x[i];
  if (!fits)
    c.fail("indices of shape " + shape_text(index) + " do not fit " + shape_text(x) + " along axis " +
           std::to_string(axis));
  return fits;
}

/// Which of two rows of each place of a tensor is taken: `count` rows of its own, and behind them those of the updates,
/// update i for places[i]. Declines where two updates are for one place: ONNX does not say which counts.
Places updated(NodeContext& c, std::int64_t count, const Places& places) {
  if (count > most_places) {
    c.decline("there are more than " + std::to_string(most_places) + " places");
    return {};
  }
  Places rows(at(count));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::int64_t& row = rows[at(places[i])];
    if (row >= count) c.decline("two updates are for one place");
    row = count + static_cast<std::int64_t>(i);
  }
  return rows;
}

bool only_replaces(NodeContext& c) {
  if (c.text("reduction", "none") != "none") c.decline("it combines elements");
  return !c.stopped();
}

/// The rows that GatherND and ScatterND speak of: a tensor of shape `x` is `count` rows of `size` elements, and
/// `places` are those that are named.
struct NamedRows {
  std::int64_t count = 1, size = 1;
  Places places;
  Shape named;   ///< The shape of the list of names,
  Shape behind;  ///< and that of a row.
};

NamedRows named_rows(NodeContext& c, const Shape& x, std::int64_t batches) {
  NamedRows rows;
  const Places index = constant_indices(c, 1);
  if (c.stopped()) return rows;
  const Shape shape = c.shape(1);
  if (shape.empty() || batches < 0 || batches >= static_cast<std::int64_t>(std::min(shape.size(), x.size())) ||
      !std::equal(shape.begin(), shape.begin() + batches, x.begin()) || shape.back() < 1 ||
      batches + shape.back() > static_cast<std::int64_t>(x.size())) {
    c.fail("indices of shape " + shape_text(shape) + " do not fit " + shape_text(x));
    return rows;
  }
  const std::size_t depth = at(batches + shape.back());
  const Shape outer(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(depth));
  rows.behind.assign(x.begin() + static_cast<std::ptrdiff_t>(depth), x.end());
  rows.named.assign(shape.begin(), shape.end() - 1);
  rows.count = volume(outer);
  rows.size = volume(rows.behind);
  const Shape strides = strides_of(outer);
  const auto of_batch = volume(std::span(rows.named).subspan(at(batches)));
  const std::size_t width = at(shape.back());
  for (std::size_t i = 0; i * width < index.size(); ++i) {
    // Batches come first, in order: their place is a number in mixed radix.
    std::int64_t place = batches == 0 ? 0 : static_cast<std::int64_t>(i) / of_batch * strides[at(batches - 1)];
    for (std::size_t k = 0; k < width; ++k)
      place += from_front(c, index[i * width + k], outer[at(batches) + k]) * strides[at(batches) + k];
    if (c.stopped()) return rows;
    rows.places.push_back(place);
  }
  return rows;
}

/// A constant input of whole numbers, which may be floats.
Places whole_numbers(NodeContext& c, std::size_t input) {
  if (c.type(input).element != ElementType::f32) return c.integers(input);
  Places numbers;
  for (const double number : c.reals(input)) {
    if (number != std::floor(number) || std::abs(number) > static_cast<double>(most_places))
      c.decline("input " + std::to_string(input) + " does not hold whole numbers");
    numbers.push_back(c.stopped() ? 0 : static_cast<std::int64_t>(number));
  }
  return numbers;
}

}  // namespace

void gather_elements(NodeContext& c) {
  const std::int64_t axis = c.axis_from_front(c.integer("axis", 0), c.rank(0));
  if (!holds_indices(c, 1) || !is_beside(c, c.shape(1), c.shape(0), at(axis))) return;
  if (c.is_constant(1))
    for (const std::int64_t index : c.integers(1)) from_front(c, index, c.shape(0)[at(axis)]);
  // Along other axes the index may be shorter.
  Shape kept = c.shape(1);
  if (c.stopped()) return;
  kept[at(axis)] = c.shape(0)[at(axis)];
  Value x = c.value(0);
  if (kept != c.shape(0))
    x = c.op("slice", {x}, {{"starts", Shape(kept.size(), 0)}, {"sizes", kept}, {"steps", Shape(kept.size(), 1)}});
  c.output(0, c.op("gather_elements", {x, c.value(1)}, {{"axis", axis - c.rank(0)}}));
}

/// Rows of a tensor whose first axes are one. Indices that are not constant may name places along one axis.
void gather_nd(NodeContext& c) {
  const Shape x = c.shape(0);
  const std::int64_t batches = c.integer("batch_dims", 0);
  if (!holds_indices(c, 1)) return;
  if (!c.is_constant(1) && batches == 0 && !c.shape(1).empty() && c.shape(1).back() == 1) {
    Shape named = c.shape(1);
    named.pop_back();
    return c.output(0, c.op("gather", {c.value(0), c.reshape(c.value(1), named)}, {{"axis", -c.rank(0)}}));
  }
  const NamedRows rows = named_rows(c, x, batches);
  if (c.stopped()) return;
  const Value matrix = c.reshape(c.value(0), {rows.count, rows.size});
  c.output(0, c.reshape(taken(c, matrix, 0, rows.places), joined(rows.named, rows.behind)));
}

void scatter_nd(NodeContext& c) {
  const Shape x = c.shape(0);
  if (!only_replaces(c)) return;
  const NamedRows rows = named_rows(c, x, 0);
  if (c.stopped()) return;
  if (c.shape(2) != joined(rows.named, rows.behind))
    return c.fail("updates of shape " + shape_text(c.shape(2)) + " do not fit indices of shape " +
                  shape_text(c.shape(1)) + " into " + shape_text(x));
  const Value own = c.reshape(c.value(0), {rows.count, rows.size});
  const Value updates = c.reshape(c.value(2), {static_cast<std::int64_t>(rows.places.size()), rows.size});
  const Value both = c.op("concat", {own, updates}, {{"axis", std::int64_t{-2}}});
  c.output(0, c.reshape(taken(c, both, 0, updated(c, rows.count, rows.places)), x));
}

void scatter_elements(NodeContext& c) {
  const Shape x = c.shape(0);
  const std::int64_t axis = c.axis_from_front(c.integer("axis", 0), c.rank(0));
  if (c.stopped() || !only_replaces(c)) return;
  const Places index = constant_indices(c, 1);
  if (c.stopped() || !is_beside(c, c.shape(1), x, at(axis))) return;
  if (c.shape(2) != c.shape(1))
    return c.fail("updates of shape " + shape_text(c.shape(2)) + " do not fit indices of shape " +
                  shape_text(c.shape(1)));
  const Places places = element_places(c, index, c.shape(1), x, at(axis));
  if (c.stopped()) return;
  const Value own = c.reshape(c.value(0), {volume(x)});
  const Value updates = c.reshape(c.value(2), {volume(c.shape(2))});
  const Value both = c.op("concat", {own, updates}, {{"axis", std::int64_t{-1}}});
  c.output(0, c.reshape(taken(c, both, 0, updated(c, volume(x), places)), x));
}

/// One of the two values at every place: which one the indices say.
void one_hot(NodeContext& c) {
  if (!c.is_constant(0)) return c.decline_not_constant(0, "its list of indices");
  if (!c.is_constant(1)) return c.decline_not_constant(1, "its depth");
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
    if (c.type(i).element == ElementType::f64 || c.type(i).element == ElementType::f16)
      return c.decline(std::string("its indices are ") + to_string(c.type(i).element), Obstacle::element_type);
  const TensorType& values = c.type(2);
  if (values.element != ElementType::f32 && (c.symbolic() || !is_word(values.element)))
    return c.decline(std::string("its elements are ") + to_string(values.element), Obstacle::element_type);
  if (!values.known) return c.decline_untyped();
  const Places index = whole_numbers(c, 0), depth = whole_numbers(c, 1);
  const std::int64_t axis = c.axis_from_front(c.integer("axis", -1), c.rank(0) + 1);
  if (c.stopped()) return;
  if (depth.size() != 1 || depth[0] < 1 || depth[0] > most_places) return c.fail("its depth is not a positive number");
  if (values.shape != Shape{2})
    return c.fail("values must be " + shape_text({2}) + ", it is " + shape_text(values.shape));
  const Shape x = c.shape(0);
  const std::int64_t outer = volume(std::span(x).first(at(axis))), inner = volume(std::span(x).subspan(at(axis)));
  if (outer * inner > most_places / depth[0])
    return c.decline("there are more than " + std::to_string(most_places) + " elements");
  Places chosen;
  for (std::int64_t i = 0; i < outer; ++i)
    for (std::int64_t d = 0; d < depth[0]; ++d)
      for (std::int64_t j = 0; j < inner; ++j) {
        const std::int64_t number = index[at(i * inner + j)];
        chosen.push_back((number < 0 ? number + depth[0] : number) == d ? 1 : 0);
      }
  Shape shape = x;
  shape.insert(shape.begin() + axis, depth[0]);
  c.output(0, c.reshape(taken(c, c.value(2), 0, chosen), shape));
}

/// Slices of an axis, or elements, where a constant condition holds.
void compress(NodeContext& c) {
  if (!c.is_constant(1) || c.type(1).element != ElementType::boolean) return c.decline_not_constant(1, "its condition");
  Value x = c.value(0);
  std::int64_t axis = 0;
  if (c.has_attribute("axis"))
    axis = c.axis_from_front(c.integer("axis", 0), c.rank(0));
  else
    x = c.reshape(x, {volume(c.shape(0))});
  if (c.stopped()) return;
  const std::vector<std::int64_t> condition = c.inputs()[1].constant->to_integers();
  if (static_cast<std::int64_t>(condition.size()) > c.shape_of(x)[at(axis)])
    return c.fail("its condition is longer than the axis");
  Places places;
  for (std::size_t i = 0; i < condition.size(); ++i)
    if (condition[i] != 0) places.push_back(static_cast<std::int64_t>(i));
  if (places.empty()) return c.decline("the output is empty");
  c.output(0, taken(c, x, axis, places));
}

/// Beginnings of sequences turned round.
void reverse_sequence(NodeContext& c) {
  const std::int64_t along = c.axis_from_front(c.integer("time_axis", 0), c.rank(0)),
                     batches = c.axis_from_front(c.integer("batch_axis", 1), c.rank(0));
  const Places lengths = constant_indices(c, 1);
  if (c.stopped()) return;
  const Shape x = c.shape(0);
  if (along == batches || c.shape(1) != Shape{x[at(batches)]})
    return c.fail("sequence_lens must have a number for each of " + std::to_string(x[at(batches)]) + " sequences");
  for (const std::int64_t length : lengths)
    if (length < 0 || length > x[at(along)]) return c.fail("a sequence has " + std::to_string(length) + " steps");
  if (volume(x) > most_places) return c.decline("there are more than " + std::to_string(most_places) + " elements");
  const Shape strides = strides_of(x);
  Places places;
  for (std::int64_t place = 0; place < volume(x); ++place) {
    const std::int64_t step = place / strides[at(along)] % x[at(along)];
    const std::int64_t length = lengths[at(place / strides[at(batches)] % x[at(batches)])];
    places.push_back(step < length ? place + (length - 1 - 2 * step) * strides[at(along)] : place);
  }
  c.output(0, c.reshape(taken(c, c.reshape(c.value(0), {volume(x)}), 0, places), x));
}

Value padded_by_itself(NodeContext& c, Value x, const std::string& mode, const Shape& before, const Shape& after) {
  if (!c.stopped() && volume(c.shape_of(x)) == 0) c.decline("an input is empty");
  for (std::size_t axis = 0; axis < before.size() && !c.stopped(); ++axis) {
    if (before[axis] == 0 && after[axis] == 0) continue;
    const std::int64_t extent = c.shape_of(x)[axis];
    const std::int64_t longest = mode == "reflect" ? extent - 1 : extent;
    if (mode != "edge" && (before[axis] > longest || after[axis] > longest)) {
      c.decline("it pads by more than there is to take");
      return {};
    }
    if (extent + before[axis] + after[axis] > most_places) {
      c.decline("there are more than " + std::to_string(most_places) + " elements");
      return {};
    }
    Places places;
    for (std::int64_t i = -before[axis]; i < extent + after[axis]; ++i) {
      if (mode == "edge")
        places.push_back(std::clamp<std::int64_t>(i, 0, extent - 1));
      else if (mode == "wrap")
        places.push_back((i + extent) % extent);
      else
        places.push_back(i < 0 ? -i : i < extent ? i : 2 * (extent - 1) - i);
    }
    x = taken(c, x, static_cast<std::int64_t>(axis), places);
  }
  return x;
}

}  // namespace taso::import_handlers
