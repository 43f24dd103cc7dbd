// Comparisons, choices, conversions and integers: what is not a line of specs/onnx/words.map. At symbolic extents these
// are carried, as are the shapes that a model computes from them.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/reals.h"
#include "graph/words.h"
#include "onnx_io/import_handlers.h"
#include "onnx_io/tensor_proto.h"

namespace taso::import_handlers {
namespace {

/// Whether input `i` is a known tensor of the given elements; else declines.
bool is_known(NodeContext& c, std::size_t i, bool (*fits)(ElementType)) {
  if (c.stopped()) return false;
  const TensorType& type = c.type(i);
  if (type.element != ElementType::other && !fits(type.element))
    c.decline("its elements are " + std::string(to_string(type.element)), Obstacle::element_type);
  else if (!type.known || type.element == ElementType::other)
    c.decline_untyped();
  else if (c.is_empty(c.shape(i)))
    c.decline("an input is empty");
  return !c.stopped();
}

bool is_computed(ElementType type) { return is_real(type) || is_word(type); }

/// What it makes would follow from extents in a way that is not followed.
void decline_symbolic(NodeContext& c) {
  if (c.symbolic()) c.decline("what it makes follows from symbolic extents", Obstacle::symbolic);
}

/// The same, if what it reads follows from extents.
void decline_extents(NodeContext& c) {
  if (c.reads_extents()) decline_symbolic(c);
}

}  // namespace

void cast(NodeContext& c) {
  c.ignore("saturate");
  const std::int64_t to = c.integer("to", 0);
  const ElementType type = to < 1 || to > std::numeric_limits<std::int32_t>::max()
                               ? ElementType::other
                               : element_of(static_cast<std::int32_t>(to));
  if (type == c.type(0).element && type != ElementType::other) return c.output(0, c.value(0));
  if (!is_computed(type)) return c.decline("it changes the element type", Obstacle::element_type);
  if (c.reads_extents()) return c.decline("it changes the element type", Obstacle::element_type);
  if (!is_known(c, 0, is_computed)) return;
  c.output(0, c.op("cast", {c.value(0)}, {{"to", SymbolValue{to_string(type)}}}));
}

void choose(NodeContext& c) {
  decline_extents(c);
  if (!is_known(c, 0, [](ElementType type) { return type == ElementType::boolean; })) return;
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
    if (!is_known(c, i, is_computed)) return;
  if (c.type(1).element != c.type(2).element)
    return c.fail("its inputs have different element types, " + std::string(to_string(c.type(1).element)) + " and " +
                  to_string(c.type(2).element));
  const Shape shape = c.common_shape({c.shape(0), c.shape(1), c.shape(2)});
  if (c.stopped()) return;
  c.output(0, c.op("select",
                   {c.broadcast(c.value(0), shape), c.broadcast(c.value(1), shape), c.broadcast(c.value(2), shape)}));
}

void infinite(NodeContext& c) {
  decline_extents(c);
  const std::int64_t negative = c.integer("detect_negative", 1), positive = c.integer("detect_positive", 1);
  if (negative == 0 && positive == 0) return c.decline("it looks for nothing");
  if (!is_known(c, 0, is_real)) return;
  c.output(0, c.op("is_inf", {c.value(0)},
                   {{"negative", std::int64_t{negative != 0}}, {"positive", std::int64_t{positive != 0}}}));
}

void place_of_extremum(NodeContext& c, bool maximum) {
  decline_extents(c);
  const std::int64_t axis = c.axis_from_front(c.integer("axis", 0), c.rank(0));
  const std::int64_t kept = c.integer("keepdims", 1), last = c.integer("select_last_index", 0);
  if (!is_known(c, 0, is_real)) return;
  const Value x = maximum ? c.value(0) : c.op("neg", {c.value(0)});
  const Value place = c.op("arg_max", {x}, {{"axis", axis - c.rank(0)}, {"last", std::int64_t{last != 0}}});
  Shape shape = c.shape(0);
  if (c.stopped()) return;
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  c.output(0, kept != 0 ? place : c.reshape(place, shape));
}

/// A one where the first of the largest elements stands: its place along the axis compared with all places.
void hardmax(NodeContext& c) {
  decline_symbolic(c);
  const bool flattens = c.opset() < 13;
  const std::int64_t axis = c.axis_from_front(c.integer("axis", flattens ? 1 : -1), c.rank(0));
  if (!is_known(c, 0, is_real)) return;
  const Shape shape = c.shape(0);
  const auto front = std::span(shape).first(static_cast<std::size_t>(axis));
  Value x = c.value(0);
  std::int64_t from_end = axis - c.rank(0);
  if (flattens) {
    x = c.reshape(x, {volume(front), volume(std::span(shape).subspan(front.size()))});
    from_end = -1;
  }
  const Shape rows = c.shape_of(x);
  const std::int64_t extent = rows[rows.size() - static_cast<std::size_t>(-from_end)];
  constexpr std::int64_t limit = std::int64_t{1} << 20;
  if (extent > limit) return c.decline("it has more than " + std::to_string(limit) + " places");
  std::vector<std::byte> places(static_cast<std::size_t>(extent) * sizeof(std::int64_t));
  for (std::int64_t i = 0; i < extent; ++i) store_word(places.data(), ElementType::i64, static_cast<std::size_t>(i), i);
  Shape along(static_cast<std::size_t>(-from_end), 1);
  along[0] = extent;
  const Value all = c.constant(ConstantData::own({ElementType::i64, along, true}, std::move(places)));
  const Value largest = c.op("arg_max", {x}, {{"axis", from_end}});
  if (c.stopped()) return;
  const Value chosen = c.op("integer_equal", {c.broadcast(largest, rows), c.broadcast(all, rows)});
  c.output(0, c.reshape(c.op("cast", {chosen}, {{"to", SymbolValue{to_string(c.type(0).element)}}}), shape));
}

namespace {

/// Scale and zero point of a quantisation, and along which axis there are several of them.
struct Steps {
  Value scale, zero;
  std::int64_t axis = 0;  ///< From the end; 0 where there is one step for the whole tensor.
};

/// `element`: of the integers. Stops where the form is another one.
Steps steps_of(NodeContext& c, ElementType element) {
  decline_symbolic(c);
  const std::int64_t block = c.integer("block_size", 0);
  std::int64_t axis = c.integer("axis", 1);
  if (block != 0) c.decline("its scale is one of blocks");
  const bool bytes = element == ElementType::i8 || element == ElementType::u8;
  const bool wide = element == ElementType::i16 || element == ElementType::u16;
  if (!bytes && element != ElementType::i32 && !(wide && c.opset() >= 21))
    c.decline("its integers are " + std::string(to_string(element)), Obstacle::element_type);
  if (!is_known(c, 1, is_real) || (c.has_input(2) && !is_known(c, 2, is_integer))) return {};
  const Shape& shape = c.shape(1);
  const TensorType zeros{element, shape, true};
  // One of each serves the whole tensor, whatever its rank.
  const bool one = volume(shape) == 1;
  if (c.has_input(2) && c.type(2) != zeros && !(one && c.type(2).element == element && volume(c.shape(2)) == 1)) {
    c.decline("its zero point is " + to_string(c.type(2)) + " beside a scale of " + shape_text(shape));
    return {};
  }
  if (!one && shape.size() != 1) c.decline("its scale is of rank " + std::to_string(shape.size()));
  if (!one && c.opset() < 13) c.decline("its scale has an axis before opset 13");
  if (!one && !c.stopped()) {
    if (axis < 0) axis += c.rank(0);
    if (axis < 0 || axis >= c.rank(0) || c.shape(0)[static_cast<std::size_t>(axis)] != shape[0])
      c.decline("its scale does not fit its axis");
  }
  if (c.stopped()) return {};
  Steps steps;
  steps.scale = c.value(1);
  steps.zero =
      c.has_input(2) ? c.value(2) : c.constant(ConstantData::splat(zeros, std::vector<std::byte>(size_of(element))));
  if (one) {
    steps.scale = c.reshape(steps.scale, {});
    steps.zero = c.reshape(steps.zero, {});
  } else {
    steps.axis = axis - c.rank(0);
  }
  return steps;
}

void in_steps(NodeContext& c, const std::string& op, const Steps& steps) {
  if (c.stopped()) return;
  const std::vector<Value> operands = {c.value(0), steps.scale, steps.zero};
  if (steps.axis == 0)
    c.output(0, c.op(op + "_linear", operands));
  else
    c.output(0, c.op(op + "_channels", operands, {{"axis", steps.axis}}));
}

}  // namespace

void quantize_linear(NodeContext& c) {
  c.ignore("saturate");
  const std::int64_t to = c.integer("output_dtype", 0), precision = c.integer("precision", 0);
  if (precision != 0) c.decline("it is computed in a precision of its own");
  if (!is_known(c, 0, is_real)) return;
  ElementType element = ElementType::u8;
  if (c.has_input(2))
    element = c.type(2).element;
  else if (to != 0)
    element = element_of(to >= 1 && to <= 26 ? static_cast<std::int32_t>(to) : 0);
  // Of 16 bits the linked ONNX does not know that they may be made, so that such a node could not be written.
  if (element != ElementType::i8 && element != ElementType::u8)
    c.decline("its integers are " + std::string(to_string(element)), Obstacle::element_type);
  const Steps steps = steps_of(c, element);
  if (!c.stopped() && c.type(1).element != c.type(0).element)
    c.decline("its scale is " + std::string(to_string(c.type(1).element)), Obstacle::element_type);
  in_steps(c, "quantize", steps);
}

void dequantize_linear(NodeContext& c) {
  if (c.integer("output_dtype", 0) != 0) c.decline("it makes another type than that of its scale");
  if (!is_known(c, 0, is_integer)) return;
  const ElementType element = c.type(0).element;
  const Steps steps = steps_of(c, element);
  // Of i32 a zero point must be 0: runtimes differ on others.
  if (!c.stopped() && element == ElementType::i32 && c.has_input(2)) {
    const std::vector<std::int64_t> zeros = c.integers(2);
    if (std::any_of(zeros.begin(), zeros.end(), [](std::int64_t zero) { return zero != 0; }))
      c.decline("its zero point is not 0");
  }
  in_steps(c, "dequantize", steps);
}

/// A constant, as the shape of what it reads is one.
void eye_like(NodeContext& c) {
  decline_symbolic(c);
  const std::int64_t dtype = c.integer("dtype", 0), diagonal = c.integer("k", 0);
  if (c.stopped()) return;
  const TensorType& like = c.type(0);
  if (!like.known) return c.decline_untyped();
  if (like.shape.size() != 2) return c.fail("its input " + shape_text(like.shape) + " is no matrix");
  const TensorType type{dtype == 0 ? like.element : element_of(static_cast<std::int32_t>(dtype)), like.shape, true};
  constexpr std::int64_t limit = std::int64_t{1} << 20;
  if (!is_computed(type.element)) return c.decline("its elements are " + std::string(to_string(type.element)));
  if (type.elements() == 0 || type.elements() > limit) return c.decline("its matrix is empty or too large");
  std::vector<std::byte> bytes(static_cast<std::size_t>(type.bytes()));
  for (std::int64_t i = 0; i < type.shape[0]; ++i) {
    const std::int64_t j = i + diagonal;
    if (j < 0 || j >= type.shape[1]) continue;
    const auto place = static_cast<std::size_t>(i * type.shape[1] + j);
    if (is_real(type.element))
      store_real(bytes.data(), type.element, place, 1);
    else
      store_word(bytes.data(), type.element, place, 1);
  }
  c.output(0, c.constant(ConstantData::own(type, std::move(bytes))));
}

}  // namespace taso::import_handlers
