/// How ONNX operators that compute are imported: element by element, products of matrices, normalisations, reductions.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "graph/reals.h"
#include "graph/words.h"
#include "onnx_io/import_handlers.h"
#include "support/reversed.h"

namespace taso::import_handlers {

// ---------------------------------------------------------------------------------------------- element-wise

/// op(x, y) with numpy broadcasting.
void binary(NodeContext& c, const char* op) {
  const Shape shape = c.common_shape({c.shape(0), c.shape(1)});
  if (c.stopped()) return;
  const Value x = c.broadcast(c.value(0), shape);
  c.output(0, c.op(op, {x, c.broadcast(c.value(1), shape)}));
}

/// The exponent may be of another type than the base.
void power(NodeContext& c) {
  const TensorType &base = c.type(0), &exponent = c.type(1);
  if (!is_real(base.element) && base.element != ElementType::other) {
    // Of an integer and a real: the power in f64, cut off.
    if (!is_integer(base.element) || !is_real(exponent.element) || c.symbolic())
      return c.decline("its elements are " + std::string(to_string(base.element)), Obstacle::element_type);
    if (!base.known || !exponent.known) return c.decline_untyped();
    const Shape shape = c.common_shape({base.shape, exponent.shape});
    const Attributes in_f64 = {{"to", SymbolValue{"f64"}}};
    const auto real = [&](std::size_t i) {
      return c.broadcast(c.type(i).element == ElementType::f64 ? c.value(i) : c.op("cast", {c.value(i)}, in_f64),
                         shape);
    };
    const Value power = c.op("pow", {real(0), real(1)});
    return c.output(0, c.op("cast", {power}, {{"to", SymbolValue{to_string(base.element)}}}));
  }
  if (!base.known || base.element == ElementType::other) return c.decline_untyped();
  if (c.is_empty(base.shape)) return c.decline("an input is empty");
  if (c.is_constant(1) && (exponent.element == ElementType::i32 || exponent.element == ElementType::i64)) {
    const std::vector<std::int64_t> whole = c.integers(1);
    const std::vector<double> reals(whole.begin(), whole.end());
    const ElementType type = c.real_type();
    constexpr double exact = 1 << 24;  // Up to here every whole number is an f32.
    if (std::any_of(reals.begin(), reals.end(),
                    [&](double e) { return std::fabs(e) > exact || rounded(e, type) != e; }))
      return c.decline("an exponent is too large");
    const Shape shape = c.common_shape({c.shape(0), exponent.shape});
    if (c.stopped()) return;
    const Value raised = c.broadcast(c.constant(ConstantData::of_reals({type, exponent.shape, true}, reals)), shape);
    return c.output(0, c.op("pow", {c.broadcast(c.value(0), shape), raised}));
  }
  if (!c.symbolic() && exponent.known && is_integer(exponent.element)) {
    const Shape shape = c.common_shape({c.shape(0), exponent.shape});
    const Value raised = c.op("cast", {c.value(1)}, {{"to", SymbolValue{to_string(c.type(0).element)}}});
    if (c.stopped()) return;
    return c.output(0, c.op("pow", {c.broadcast(c.value(0), shape), c.broadcast(raised, shape)}));
  }
  if (exponent.element != c.type(0).element && exponent.element != ElementType::other)
    return c.decline(std::string("the exponent is ") + to_string(exponent.element), Obstacle::element_type);
  if (!exponent.known) return c.decline_untyped();
  binary(c, "pow");
}

void unary(NodeContext& c, const char* op) { c.output(0, c.op(op, {c.value(0)})); }

/// A chain of additions.
Value sum_of_inputs(NodeContext& c) {
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < c.input_count(); ++i) shapes.push_back(c.shape(i));
  const Shape shape = c.common_shape(shapes);
  if (c.stopped()) return {};
  Value sum = c.broadcast(c.value(0), shape);
  for (std::size_t i = 1; i < c.input_count(); ++i) sum = c.op("add", {sum, c.broadcast(c.value(i), shape)});
  return sum;
}

void sum(NodeContext& c) { c.output(0, sum_of_inputs(c)); }

void mean(NodeContext& c) {
  const Value sum = sum_of_inputs(c);
  if (c.stopped() || c.input_count() == 1) return c.output(0, sum);
  const Value count = c.broadcast(c.splat({}, static_cast<float>(c.input_count())), c.shape_of(sum));
  c.output(0, c.op("div", {sum, count}));
}

void identity(NodeContext& c) { c.output(0, c.value(0)); }

void dropout(NodeContext& c) {
  c.ignore("ratio");
  c.ignore("seed");
  if (c.has_input(2)) {
    const auto training = c.integers(2);
    if (c.stopped()) return;
    if (training.size() != 1 || training[0] != 0) return c.decline("it is in training mode");
  }
  c.output(0, c.value(0));
}

namespace {

/// The smaller one of two values of one shape.
Value minimum(NodeContext& c, Value x, Value y) {
  return c.op("neg", {c.op("maximum", {c.op("neg", {x}), c.op("neg", {y})})});
}

/// Clip with bounds that are computed.
void clip_by_values(NodeContext& c) {
  const Shape shape = c.shape(0);
  Value x = c.value(0);
  for (std::size_t i = 1; i < c.input_count(); ++i) {
    if (!c.has_input(i)) continue;
    if (c.is_only_shape(i)) return c.decline_not_constant(i);
    const TensorType& bound = c.type(i);
    if (bound.element != ElementType::f32 && bound.element != ElementType::other)
      return c.decline(std::string("a bound is ") + to_string(bound.element), Obstacle::element_type);
    if (!bound.known) return c.decline_untyped();
    if (bound.elements() != 1) return c.fail("a bound must be a scalar, it is " + to_string(bound));
    const Value repeated = c.broadcast(c.reshape(c.value(i), {}), shape);
    x = i == 1 ? c.op("maximum", {x, repeated}) : minimum(c, x, repeated);
  }
  c.output(0, x);
}

}  // namespace

void clip(NodeContext& c) {
  const TensorType& type = c.type(0);
  // Bounds of integers are those of lines of a map.
  if (is_integer(type.element) && type.known && !c.has_input(1) && !c.has_input(2)) return c.output(0, c.value(0));
  if (!is_real(type.element) && type.element != ElementType::other)
    return c.decline("its elements are " + std::string(to_string(type.element)), Obstacle::element_type);
  if (!type.known || type.element == ElementType::other) return c.decline_untyped();
  if (c.is_empty(type.shape)) return c.decline("an input is empty");
  if (c.opset() >= 11 && ((c.has_input(1) && !c.is_constant(1)) || (c.has_input(2) && !c.is_constant(2))))
    return clip_by_values(c);
  const double infinity = std::numeric_limits<double>::infinity();
  double low = -infinity, high = infinity;
  if (c.opset() < 11) {
    if (c.has_attribute("min")) low = c.real("min", 0);
    if (c.has_attribute("max")) high = c.real("max", 0);
  } else {
    if (c.has_input(1)) low = c.real(1);
    if (c.has_input(2)) high = c.real(2);
  }
  if (c.stopped()) return;
  constexpr auto largest = static_cast<double>(std::numeric_limits<float>::max());
  if (std::isnan(low) || std::isnan(high) || low > high) return c.decline("its bounds are not in order");
  // ONNX's defaults are the ends of the float range: no bounds at all for finite numbers.
  if (low <= -largest) low = -infinity;
  if (high >= largest) high = infinity;
  if (low == -infinity && high == infinity) return c.output(0, c.value(0));
  if (low == 0 && high == infinity) return unary(c, "relu");
  c.output(0, c.op("clip", {c.value(0)}, {{"min", low}, {"max", high}}));
}

namespace {

/// Max or Min of two operands as a clip, where one of them is a number that is repeated at most to the other's shape.
bool is_clip(NodeContext& c, bool maximum) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (!c.is_constant(i) || c.type(i).elements() != 1 || c.rank(i) > c.rank(1 - i)) continue;
    const double bound = c.real(i), infinity = std::numeric_limits<double>::infinity();
    if (std::isnan(bound)) c.decline("its bound is not a number");
    if (c.stopped()) return true;
    if (maximum && bound == 0)
      c.output(0, c.op("relu", {c.value(1 - i)}));
    else
      c.output(0, c.op("clip", {c.value(1 - i)},
                       {{"min", maximum ? bound : -infinity}, {"max", maximum ? infinity : bound}}));
    return true;
  }
  return false;
}

}  // namespace

/// Max or Min: a chain of `maximum`, of two operands a clip where it is one. In graphs of pieces a number may be a
/// piece of several, and what is a clip stands as a clip.
void extremum(NodeContext& c, bool maximum) {
  const bool pieces = maximum && c.of_pieces();
  if (c.input_count() == 2 && !pieces && is_clip(c, maximum)) return;
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < c.input_count(); ++i) shapes.push_back(c.shape(i));
  const Shape shape = c.common_shape(shapes);
  if (c.stopped()) return;
  Value result = c.broadcast(c.value(0), shape);
  for (std::size_t i = 1; i < c.input_count(); ++i) {
    const Value next = c.broadcast(c.value(i), shape);
    result = maximum ? c.op("maximum", {result, next}) : minimum(c, result, next);
  }
  c.output(0, result);
}

void hard_sigmoid(NodeContext& c) {
  const double alpha = c.real("alpha", 0.2F), beta = c.real("beta", 0.5F);
  if (c.stopped()) return;
  if (std::abs(alpha - 1.0 / 6) < 1e-7 && beta == 0.5) return unary(c, "hard_sigmoid");
  const Shape shape = c.shape(0);
  const Value scaled = c.op("mul", {c.value(0), c.broadcast(c.splat({}, static_cast<float>(alpha)), shape)});
  const Value moved = c.op("add", {scaled, c.broadcast(c.splat({}, static_cast<float>(beta)), shape)});
  c.output(0, c.op("clip", {moved}, {{"min", 0.0}, {"max", 1.0}}));
}

void reciprocal(NodeContext& c) { c.output(0, c.op("div", {c.broadcast(c.splat({}, 1.0F), c.shape(0)), c.value(0)})); }

// ------------------------------------------------------------------------------------- matrix multiplication

/// numpy's matmul as ours: b's leading axes equal a's innermost leading ones.
Value multiply_matrices(NodeContext& c, Value a, Value b) {
  if (c.stopped()) return {};
  const bool vector_a = c.rank_of(a) == 1, vector_b = c.rank_of(b) == 1;
  if (c.rank_of(a) == 0 || c.rank_of(b) == 0) {
    c.fail("a scalar cannot be multiplied as a matrix");
    return {};
  }
  if (vector_a) a = c.reshape(a, {1, c.shape_of(a)[0]});
  if (vector_b) b = c.reshape(b, {c.shape_of(b)[0], 1});
  if (c.stopped()) return {};
  Shape lead_a = c.shape_of(a), lead_b = c.shape_of(b);
  const Shape matrix_a(lead_a.end() - 2, lead_a.end()), matrix_b(lead_b.end() - 2, lead_b.end());
  lead_a.resize(lead_a.size() - 2);
  lead_b.resize(lead_b.size() - 2);
  if (matrix_a[1] != matrix_b[0]) {
    c.fail("matrices " + shape_text(c.shape_of(a)) + " and " + shape_text(c.shape_of(b)) + " do not multiply: " +
           std::to_string(matrix_a[1]) + " columns against " + std::to_string(matrix_b[0]) + " rows");
    return {};
  }
  const Shape lead = c.common_shape({lead_a, lead_b});
  if (c.stopped()) return {};
  auto with = [](Shape shape, const Shape& tail) {
    shape.insert(shape.end(), tail.begin(), tail.end());
    return shape;
  };
  // Leading extents of 1 of b multiply nothing. They stay where b is computed and has the axes of a: at a batch of 1 a
  // graph is what it is at others. In graphs of pieces they are pieces of others.
  std::size_t ones = 0;
  if (!c.of_pieces() && (c.graph().node(b.node).weight_only || lead_a != lead_b))
    while (ones < lead_b.size() && lead_b[ones] == 1) ++ones;
  lead_b.erase(lead_b.begin(), lead_b.begin() + static_cast<std::ptrdiff_t>(ones));
  b = c.reshape(b, with(lead_b, matrix_b));
  if (lead_a != lead) a = c.broadcast(a, with(lead, matrix_a));
  const Shape inner(lead.end() - static_cast<std::ptrdiff_t>(lead_b.size()), lead.end());
  if (lead_b != inner) b = c.broadcast(b, with(inner, matrix_b));
  Value product = c.op("matmul", {a, b});
  if (c.stopped()) return {};
  if (vector_a || vector_b) {
    Shape shape = lead;
    if (!vector_a) shape.push_back(matrix_a[0]);
    if (!vector_b) shape.push_back(matrix_b[1]);
    product = c.reshape(product, shape);
  }
  return product;
}

void matmul(NodeContext& c) { c.output(0, multiply_matrices(c, c.value(0), c.value(1))); }

void gemm(NodeContext& c) {
  const double alpha = c.real("alpha", 1.0F), beta = c.real("beta", 1.0F);
  const bool transpose_a = c.integer("transA", 0) != 0, transpose_b = c.integer("transB", 0) != 0;
  if (c.stopped()) return;
  if (c.rank(0) != 2 || c.rank(1) != 2)
    return c.fail("its operands must be matrices, they are " + shape_text(c.shape(0)) + " and " +
                  shape_text(c.shape(1)));
  Value a = c.value(0), b = c.value(1);
  if (transpose_a) a = c.op("transpose", {a}, {{"perm", Shape{1, 0}}});
  if (transpose_b) b = c.op("transpose", {b}, {{"perm", Shape{1, 0}}});
  if (c.stopped()) return;
  const std::int64_t rows = c.shape_of(a)[0], columns = c.shape_of(b)[1];
  if (c.shape_of(a)[1] != c.shape_of(b)[0])
    return c.fail("matrices " + shape_text(c.shape_of(a)) + " and " + shape_text(c.shape_of(b)) + " do not multiply");
  auto scaled = [&](Value value, double factor) {
    if (factor == 1) return value;
    return c.op("mul", {value, c.broadcast(c.splat({}, static_cast<float>(factor)), c.shape_of(value))});
  };
  if (!c.has_input(2)) return c.output(0, scaled(c.op("matmul", {a, b}), alpha));
  const Shape bias_shape = c.shape(2);
  if (c.common_shape({bias_shape, {rows, columns}}) != Shape{rows, columns})
    return c.fail("C of shape " + shape_text(bias_shape) + " does not broadcast to " + shape_text({rows, columns}));
  const bool vector = volume(bias_shape) == columns && !bias_shape.empty() && bias_shape.back() == columns;
  // Runtimes do not read what 0 is to multiply.
  if (beta == 0) return c.output(0, scaled(c.op("matmul", {a, b}), alpha));
  if (vector && alpha == 1) {
    const Value bias = scaled(c.reshape(c.value(2), {columns}), beta);
    return c.output(0, c.op("matmul_bias_act", {a, b, bias}));
  }
  const Value product = scaled(c.op("matmul", {a, b}), alpha);
  c.output(0, c.op("add", {product, c.broadcast(scaled(c.value(2), beta), {rows, columns})}));
}

namespace {

// ------------------------------------------------------------------------------- normalisation and reductions

/// ONNX lets the parameters of normalisations have another type than the input.
bool parameters_are_alike(NodeContext& c) {
  for (std::size_t i = 1; i < c.input_count(); ++i) {
    if (!c.has_input(i)) continue;
    if (!c.type(i).known) c.decline_untyped();
    if (c.type(i).element != c.type(0).element)
      c.decline("parameter " + std::to_string(i) + " is " + to_string(c.type(i).element), Obstacle::element_type);
  }
  return !c.stopped();
}

}  // namespace

void batch_normalization(NodeContext& c) {
  if (!parameters_are_alike(c)) return;
  const double epsilon = c.real("epsilon", 1e-5F);
  c.ignore("momentum");
  if (c.integer("training_mode", 0) != 0) return c.decline("it is in training mode");
  if (c.integer("spatial", 1) != 1) return c.decline("it normalises every activation");
  if (c.rank(0) < 2) return c.decline("its input has no channel axis");
  const std::int64_t channels = c.shape(0)[1];
  for (std::size_t i = 1; i <= 4; ++i)
    if (c.shape(i) != Shape{channels})
      return c.fail("parameter " + std::to_string(i) + " must be " + shape_text({channels}) + ", it is " +
                    shape_text(c.shape(i)));
  if (c.stopped()) return;
  // In graphs of pieces what is computed of weights stands as that.
  bool weights = !c.of_pieces();
  for (std::size_t i = 1; i <= 4; ++i) weights = weights && c.graph().node(c.value(i).node).weight_only;
  if (!weights) {
    return c.output(
        0, c.op("batch_norm", {c.value(0), c.value(1), c.value(2), c.value(3), c.value(4)}, {{"epsilon", epsilon}}));
  }
  const Value guard = c.broadcast(c.splat({}, static_cast<float>(epsilon)), {channels});
  const Value deviation = c.op("sqrt", {c.op("add", {c.value(4), guard})});
  const Value scale = c.op("div", {c.value(1), deviation});
  const Value shift = c.op("sub", {c.value(2), c.op("mul", {c.value(3), scale})});
  Shape per_channel = {channels};
  for (std::int64_t i = 2; i < c.rank(0); ++i) per_channel.push_back(1);
  const Shape shape = c.shape(0);
  const Value scaled = c.op("mul", {c.value(0), c.broadcast(c.reshape(scale, per_channel), shape)});
  c.output(0, c.op("add", {scaled, c.broadcast(c.reshape(shift, per_channel), shape)}));
}

void layer_normalization(NodeContext& c) {
  if (!parameters_are_alike(c)) return;
  const std::int64_t axis = c.axis_from_front(c.integer("axis", -1), c.rank(0));
  const double epsilon = c.real("epsilon", 1e-5F);
  if (c.integer("stash_type", 1) != 1) return c.decline("its statistics are not in f32");
  if (c.stopped()) return;
  const Shape x = c.shape(0);
  const Shape normalized(x.begin() + axis, x.end());
  Shape flat(x.begin(), x.begin() + axis);
  flat.push_back(volume(normalized));
  auto parameter = [&](std::size_t i) {
    if (volume(c.shape(i)) == volume(normalized)) return c.reshape(c.value(i), {volume(normalized)});
    return c.reshape(c.broadcast(c.value(i), normalized), {volume(normalized)});
  };
  const Value scale = parameter(1);
  const Value bias = c.has_input(2) ? parameter(2) : c.splat({volume(normalized)}, 0.0F);
  const Value out = c.op("layer_norm", {c.reshape(c.value(0), flat), scale, bias}, {{"epsilon", epsilon}});
  c.output(0, c.reshape(out, x));
}

void softmax(NodeContext& c) {
  const Shape x = c.shape(0);
  const std::int64_t axis = c.integer("axis", c.opset() < 13 ? 1 : -1);
  if (c.opset() >= 13) {
    const std::int64_t front = c.axis_from_front(axis, c.rank(0));
    return c.output(0, c.op("softmax", {c.value(0)}, {{"axis", front - c.rank(0)}}));
  }
  // Before opset 13 the input is taken as a matrix: axes before `axis` are rows, the others columns.
  const std::int64_t front = axis == c.rank(0) ? axis : c.axis_from_front(axis, c.rank(0));
  if (c.stopped()) return;
  const std::int64_t rows = volume(std::span(x).first(at(front)));
  const std::int64_t columns = volume(std::span(x).subspan(at(front)));
  const bool last = front + 1 == c.rank(0);
  const Value matrix = last ? c.value(0) : c.reshape(c.value(0), {rows, columns});
  c.output(0, c.reshape(c.op("softmax", {matrix}, {{"axis", std::int64_t{-1}}}), x));
}

void log_softmax(NodeContext& c) {
  // x - max - log(sum(exp(x - max))) along an axis; before opset 13 of the columns of a matrix, as for softmax.
  const Shape x = c.shape(0);
  const std::int64_t axis = c.integer("axis", c.opset() < 13 ? 1 : -1);
  const std::int64_t front = c.opset() < 13 && axis == c.rank(0) ? axis : c.axis_from_front(axis, c.rank(0));
  if (c.stopped()) return;
  Value value = c.value(0);
  std::int64_t along = front - c.rank(0);
  if (c.opset() < 13 && front + 1 != c.rank(0)) {
    value = c.reshape(value, {volume(std::span(x).first(at(front))), volume(std::span(x).subspan(at(front)))});
    along = -1;
  }
  if (c.stopped()) return;
  const Shape shape = c.shape_of(value);
  const Attributes axes = {{"axes", Shape{along}}};
  // The reduced axis stays with extent 1, so that nothing has to be stripped.
  auto repeated = [&](Value reduced) { return c.op("broadcast", {reduced}, {{"shape", shape}}); };
  const Value moved = c.op("sub", {value, repeated(c.op("reduce_max", {value}, axes))});
  const Value total = c.op("log", {c.op("reduce_sum", {c.op("exp", {moved})}, axes)});
  c.output(0, c.reshape(c.op("sub", {moved, repeated(total)}), x));
}

void instance_normalization(NodeContext& c) {
  if (!parameters_are_alike(c)) return;
  const double epsilon = c.real("epsilon", 1e-5F);
  if (c.rank(0) < 3) return c.decline("its input has no spatial axes");
  const Shape x = c.shape(0);
  for (std::size_t i = 1; i <= 2; ++i)
    if (c.shape(i) != Shape{x[1]})
      return c.fail("parameter " + std::to_string(i) + " must be " + shape_text({x[1]}) + ", it is " +
                    shape_text(c.shape(i)));
  if (c.stopped()) return;
  c.output(0, c.op("group_norm", {c.value(0), c.value(1), c.value(2)}, {{"epsilon", epsilon}, {"groups", x[1]}}));
}

void group_normalization(NodeContext& c) {
  if (!parameters_are_alike(c)) return;
  const double epsilon = c.real("epsilon", 1e-5F);
  if (c.integer("stash_type", 1) != 1) return c.decline("its statistics are not in f32");
  if (!c.has_attribute("num_groups")) return c.fail("it has no num_groups");
  const std::int64_t groups = c.integer("num_groups", 1);
  if (c.rank(0) < 3) return c.decline("its input has no spatial axes");
  if (c.stopped()) return;
  const Shape x = c.shape(0);
  if (groups < 1 || x[1] % groups != 0)
    return c.fail(std::to_string(x[1]) + " channels do not fall into " + std::to_string(groups) + " groups");
  // Before opset 21 the parameters are per group.
  const Shape parameters = {c.opset() < 21 ? groups : x[1]};
  for (std::size_t i = 1; i <= 2; ++i)
    if (c.shape(i) != parameters)
      return c.fail("parameter " + std::to_string(i) + " must be " + shape_text(parameters) + ", it is " +
                    shape_text(c.shape(i)));
  auto of_channels = [&](std::size_t i) {
    if (c.opset() >= 21) return c.value(i);
    return c.reshape(c.broadcast(c.reshape(c.value(i), {groups, 1}), {groups, x[1] / groups}), {x[1]});
  };
  c.output(
      0, c.op("group_norm", {c.value(0), of_channels(1), of_channels(2)}, {{"epsilon", epsilon}, {"groups", groups}}));
}

namespace {

/// A reduction over the axes that the node names; `compute` is given a value and the axes of ours, and keeps them with
/// extent 1. What it computes of an element by itself must be that element if `plain`.
template <class Compute>
void reduce_by(NodeContext& c, std::int64_t axes_as_input_since, bool plain, const Compute& compute) {
  const bool keep = c.integer("keepdims", 1) != 0;
  const bool none_means_none = c.integer("noop_with_empty_axes", 0) != 0;
  std::vector<std::int64_t> axes;
  if (c.opset() >= axes_as_input_since) {
    if (c.has_input(1)) axes = c.integers(1);
  } else {
    if (c.has_input(1)) return c.fail("axes are an attribute before opset " + std::to_string(axes_as_input_since));
    axes = c.integer_list("axes", {});
  }
  if (c.stopped()) return;
  if (!plain && (c.rank(0) == 0 || (axes.empty() && none_means_none)))
    return c.decline("there is no axis; versions of ONNX differ on whether elements are mapped");
  if (axes.empty() && none_means_none) return c.output(0, c.value(0));
  if (axes.empty()) axes = range_of(0, c.rank(0));
  for (std::int64_t& axis : axes) axis = c.axis_from_front(axis, c.rank(0));
  if (c.stopped()) return;
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) return c.fail("axes name one axis twice");
  if (axes.empty()) return c.output(0, c.value(0));
  Shape kept = c.shape(0);
  for (const std::int64_t axis : reversed(axes)) kept.erase(kept.begin() + axis);
  for (std::int64_t& axis : axes) axis -= c.rank(0);
  const Value reduced = compute(c.value(0), Attributes{{"axes", axes}});
  c.output(0, keep ? reduced : c.reshape(reduced, kept));
}

}  // namespace

void reduce(NodeContext& c, const char* op, std::int64_t axes_as_input_since) {
  reduce_by(c, axes_as_input_since, true, [&](Value x, const Attributes& axes) { return c.op(op, {x}, axes); });
}

void reduce_mapped(NodeContext& c, Mapped kind) {
  reduce_by(c, 18, false, [&](Value x, const Attributes& axes) {
    switch (kind) {
      case Mapped::minimum:
        return c.op("neg", {c.op("reduce_max", {c.op("neg", {x})}, axes)});
      case Mapped::l1:
        return c.op("reduce_sum", {c.op("abs", {x})}, axes);
      case Mapped::l2:
        return c.op("sqrt", {c.op("reduce_sum", {c.op("mul", {x, x})}, axes)});
      case Mapped::sum_of_squares:
        return c.op("reduce_sum", {c.op("mul", {x, x})}, axes);
      case Mapped::log_of_sum:
        return c.op("log", {c.op("reduce_sum", {x}, axes)});
      case Mapped::log_of_sum_of_exponentials: {
        const Value largest = c.op("reduce_max", {x}, axes);
        if (c.stopped()) return x;
        const Value moved = c.op("sub", {x, c.op("broadcast", {largest}, {{"shape", c.shape_of(x)}})});
        return c.op("add", {largest, c.op("log", {c.op("reduce_sum", {c.op("exp", {moved})}, axes)})});
      }
    }
    return x;
  });
}

/// Sums along an axis: of what stands before an element, and of it unless they are exclusive; or from the other end.
void cumulative_sum(NodeContext& c) {
  if (!c.is_constant(1)) return c.decline_not_constant(1, "its axis");
  const std::vector<std::int64_t> named = c.integers(1);
  const bool exclusive = c.integer("exclusive", 0) != 0, reverse = c.integer("reverse", 0) != 0;
  if (c.stopped()) return;
  if (named.size() != 1) return c.fail("its axis must be one number, it has " + std::to_string(named.size()));
  const std::int64_t axis = c.axis_from_front(named[0], c.rank(0));
  if (c.stopped()) return;
  const Shape shape = c.shape(0);
  const std::size_t place = static_cast<std::size_t>(axis);
  const auto turned = [&](Value value) {
    if (!reverse || shape[place] == 1) return value;
    Shape starts(shape.size(), 0), steps(shape.size(), 1);
    starts[place] = shape[place] - 1;
    steps[place] = -1;
    return c.op("slice", {value}, {{"starts", starts}, {"sizes", shape}, {"steps", steps}});
  };
  if (reverse && c.symbolic()) return c.decline("its order may depend on symbolic extents", Obstacle::symbolic);
  Value sums = c.op("cumulative_sum", {turned(c.value(0))}, {{"axis", axis - c.rank(0)}});
  if (exclusive) {
    Shape before(shape.size(), 0), after = before;
    before[place] = 1;
    after[place] = -1;
    sums = c.op("pad", {sums}, {{"before", before}, {"after", after}, {"value", 0.0}});
  }
  c.output(0, turned(sums));
}

/// x over its norm along an axis: 0 where that is 0. No norm lies between 0 and the least positive number.
void norm_along_axis(NodeContext& c) {
  const std::int64_t axis = c.axis_from_front(c.integer("axis", -1), c.rank(0)) - c.rank(0), p = c.integer("p", 2);
  if (c.stopped()) return;
  if (p != 1 && p != 2) return c.fail("p is " + std::to_string(p) + ", neither 1 nor 2");
  const Value x = c.value(0);
  const Attributes along = {{"axes", Shape{axis}}};
  Value norm = p == 1 ? c.op("reduce_sum", {c.op("abs", {x})}, along)
                      : c.op("sqrt", {c.op("reduce_sum", {c.op("mul", {x, x})}, along)});
  constexpr auto least = static_cast<double>(std::numeric_limits<float>::denorm_min());
  norm = c.op("clip", {norm}, {{"min", least}, {"max", std::numeric_limits<double>::infinity()}});
  c.output(0, c.op("div", {x, c.op("broadcast", {norm}, {{"shape", c.shape(0)}})}));
}

}  // namespace taso::import_handlers
