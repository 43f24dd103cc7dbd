/// How ONNX's activation functions that have no operator of their own, and selections by constant masks, are imported.
///
/// Functions with a bend at zero are sums of what they are above and below it, x = relu(x) + min(x, 0): each term is
/// exact where it is not zero, so that nothing is lost in floating point.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "graph/reals.h"
#include "onnx_io/import_handlers.h"

namespace taso::import_handlers {
namespace {

Value number(NodeContext& c, double value, const Shape& shape) {
  return c.broadcast(c.splat({}, static_cast<float>(value)), shape);
}

Value times(NodeContext& c, Value x, double factor) {
  return c.stopped() || factor == 1 ? x : c.op("mul", {x, number(c, factor, c.shape_of(x))});
}

/// min(x, 0)
Value negative_part(NodeContext& c, Value x) {
  return c.op("clip", {x}, {{"min", -std::numeric_limits<double>::infinity()}, {"max", 0.0}});
}

/// relu(x) + factor * (exp(min(x, 0) / scale) - 1)
Value exponential_below_zero(NodeContext& c, Value x, double factor, double scale) {
  return c.op("add", {c.op("relu", {x}), exponential_less_one(c, negative_part(c, x), factor, scale)});
}

/// log(1 + exp(x)) = relu(x) + log(1 + e) with e = exp(-|x|), which does not overflow. For what e adds to 1 not to be
/// lost, log(1 + e) is 2 asinh(e / (2 sqrt(1 + e))), where ONNX has it.
Value softplus_of(NodeContext& c, Value x) {
  const Value decay = c.op("exp", {c.op("neg", {c.op("abs", {x})})});
  const Value sum = c.op("add", {decay, number(c, 1, c.shape(0))});
  if (c.version() < 9) return c.op("add", {c.op("relu", {x}), c.op("log", {sum})});
  const Value root = c.op("sqrt", {sum});
  const Value half = c.op("asinh", {c.op("div", {decay, c.op("add", {root, root})})});
  return c.op("add", {c.op("relu", {x}), c.op("add", {half, half})});
}

/// Whether an input that is constant has finite elements only. A mask of zeros does not hide others.
bool is_finite(NodeContext& c, std::size_t i) {
  if (!c.is_constant(i)) return !c.is_only_shape(i);
  return c.inputs()[i].constant->is_finite();
}

Value mask_of(NodeContext& c, const Shape& shape, const std::vector<std::int64_t>& elements, bool inverted) {
  std::vector<double> mask;
  mask.reserve(elements.size());
  for (const std::int64_t element : elements) mask.push_back((element != 0) != inverted ? 1.0 : 0.0);
  return c.constant(ConstantData::of_reals({c.real_type(), shape, true}, mask));
}

/// value * mask at the smallest shape that both broadcast to.
Value masked(NodeContext& c, Value value, Value mask) {
  const Shape shape = c.common_shape({c.shape_of(value), c.shape_of(mask)});
  if (c.stopped()) return {};
  return c.op("mul", {c.broadcast(value, shape), c.broadcast(mask, shape)});
}

}  // namespace

Value exponential_less_one(NodeContext& c, Value x, double factor, double scale) {
  if (c.stopped()) return {};
  const Shape shape = c.shape_of(x);
  const Value half = scale == 1 ? times(c, x, 0.5) : c.op("div", {x, number(c, 2 * scale, shape)});
  const Value t = c.op("tanh", {half});
  return c.op("div",
              {factor == 1 ? c.op("add", {t, t}) : times(c, t, 2 * factor), c.op("sub", {number(c, 1, shape), t})});
}

void leaky_relu(NodeContext& c) {
  const double alpha = c.real("alpha", 0.01F);
  if (alpha == 0) return unary(c, "relu");
  const Value x = c.value(0);
  c.output(0, c.op("add", {c.op("relu", {x}), times(c, negative_part(c, x), alpha)}));
}

void parametric_relu(NodeContext& c) {
  const Shape shape = c.shape(0);
  const Value x = c.value(0), slope = c.broadcast(c.value(1), shape);
  c.output(0, c.op("add", {c.op("relu", {x}), c.op("mul", {negative_part(c, x), slope})}));
}

void elu(NodeContext& c) { c.output(0, exponential_below_zero(c, c.value(0), c.real("alpha", 1.0F), 1)); }

void celu(NodeContext& c) {
  const double alpha = c.real("alpha", 1.0F);
  if (!(alpha > 0)) return c.decline("its alpha is not above 0");
  c.output(0, exponential_below_zero(c, c.value(0), alpha, alpha));
}

void selu(NodeContext& c) {
  const double alpha = c.real("alpha", 1.67326319217681884765625F);
  const double gamma = c.real("gamma", 1.05070102214813232421875F);
  c.output(0, times(c, exponential_below_zero(c, c.value(0), alpha, 1), gamma));
}

void softplus(NodeContext& c) { c.output(0, softplus_of(c, c.value(0))); }

void softsign(NodeContext& c) {
  const Value x = c.value(0);
  c.output(0, c.op("div", {x, c.op("add", {c.op("abs", {x}), number(c, 1, c.shape(0))})}));
}

void mish(NodeContext& c) {
  const Value x = c.value(0);
  c.output(0, c.op("mul", {x, c.op("tanh", {softplus_of(c, x)})}));
}

void swish(NodeContext& c) {
  const Value x = c.value(0);
  if (c.real("alpha", 1.0F) == 1.0) return unary(c, "silu");
  if (c.real("alpha", 1.0F) == static_cast<double>(1.702F)) return unary(c, "quick_gelu");
  c.output(0, c.op("mul", {x, c.op("sigmoid", {times(c, x, c.real("alpha", 1.0F))})}));
}

void gelu(NodeContext& c) {
  const std::string approximation = c.text("approximate", "none");
  if (approximation == "none") return unary(c, "gelu");
  if (approximation != "tanh") return c.decline("approximate=" + approximation + " is not modelled");
  unary(c, "gelu_tanh");
}

/// Where: with a constant condition, of finite reals, x * mask + y * (1 - mask), which rules know; else a choice.
void where(NodeContext& c) {
  const bool is_mask = c.is_constant(0) && c.type(0).element == ElementType::boolean;
  if (!is_mask && c.reads_extents()) return c.decline_not_constant(0, "its condition");
  if (!is_mask) return choose(c);
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    if (!is_real(c.type(i).element) && c.type(i).element != ElementType::other) {
      if (!c.reads_extents()) return choose(c);
      return c.decline(std::string("its elements are ") + to_string(c.type(i).element), Obstacle::element_type);
    }
    if (!c.type(i).known) return c.decline_untyped();
    if (c.is_empty(c.shape(i))) return c.decline("an input is empty");
  }
  const Shape shape = c.common_shape({c.shape(0), c.shape(1), c.shape(2)});
  if (c.stopped()) return;
  const std::vector<std::int64_t> condition = c.inputs()[0].constant->to_integers();
  const auto chosen = std::count_if(condition.begin(), condition.end(), [](std::int64_t b) { return b != 0; });
  if (chosen == static_cast<std::ptrdiff_t>(condition.size())) return c.output(0, c.broadcast(c.value(1), shape));
  if (chosen == 0) return c.output(0, c.broadcast(c.value(2), shape));
  // What is not chosen may be there to be hidden: softmax of a row of -inf. A product does not hide it.
  const bool finite = is_finite(c, 1) && is_finite(c, 2) && !c.follows_from_infinity(c.value(1)) &&
                      !c.follows_from_infinity(c.value(2));
  if (!finite && c.reads_extents()) return c.decline("what it chooses from follows from a constant that is not finite");
  if (!finite) return choose(c);
  const Value x = masked(c, c.value(1), mask_of(c, c.shape(0), condition, false));
  const Value y = masked(c, c.value(2), mask_of(c, c.shape(0), condition, true));
  c.output(0, c.op("add", {c.broadcast(x, shape), c.broadcast(y, shape)}));
}

/// The upper or lower triangle of matrices: a product with a mask.
void triangle(NodeContext& c) {
  const Shape shape = c.shape(0);
  const bool upper = c.integer("upper", 1) != 0;
  std::int64_t diagonal = 0;
  if (c.has_input(1)) {
    const std::vector<std::int64_t> k = c.integers(1);
    if (c.stopped()) return;
    if (k.size() != 1) return c.fail("k must be one number, it has " + std::to_string(k.size()));
    diagonal = k[0];
  }
  if (c.stopped()) return;
  if (shape.size() < 2) return c.fail("its input " + shape_text(shape) + " has no matrices");
  if (!is_finite(c, 0)) return c.decline("its input is constant and not finite");
  if (c.follows_from_infinity(c.value(0))) return c.decline("its input follows from a constant that is not finite");
  const std::int64_t rows = shape[shape.size() - 2], columns = shape.back();
  constexpr std::int64_t limit = std::int64_t{1} << 24;
  if (rows > limit / columns) return c.decline("its matrices are too large for a mask");
  // Far from the corners a mask shows at large sizes only which diagonal it begins at.
  if (c.symbolic() && std::abs(diagonal) > 1)
    return c.decline("its mask may depend on symbolic extents", Obstacle::symbolic);
  // Beyond the corners all diagonals are alike.
  diagonal = std::clamp(diagonal, -rows, columns);
  std::vector<std::int64_t> kept;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) kept.push_back((upper ? j - i >= diagonal : j - i <= diagonal) ? 1 : 0);
  c.output(0, masked(c, c.value(0), mask_of(c, {rows, columns}, kept, false)));
}

/// x / sqrt(mean(x^2) + epsilon) * scale, along the last axes.
void root_mean_square_normalization(NodeContext& c) {
  const std::int64_t axis = c.axis_from_front(c.integer("axis", -1), c.rank(0));
  const double epsilon = c.real("epsilon", 1e-5F);
  if (c.integer("stash_type", 1) != 1) return c.decline("its statistics are not in f32");
  if (c.stopped()) return;
  const Shape shape = c.shape(0);
  const std::int64_t rank = c.rank(0);
  const Value x = c.value(0);
  if (axis == rank - 1 && c.shape(1) == Shape{shape.back()})
    return c.output(0, c.op("rms_norm", {x, c.value(1)}, {{"epsilon", epsilon}}));
  const Value mean = c.op("reduce_mean", {c.op("mul", {x, x})}, {{"axes", range_of(axis - c.rank(0), 0)}});
  if (c.stopped()) return;
  const Value root = c.op("sqrt", {c.op("add", {mean, number(c, epsilon, c.shape_of(mean))})});
  const Value normal = c.op("div", {x, c.op("broadcast", {root}, {{"shape", shape}})});
  c.output(0, c.op("mul", {normal, c.broadcast(c.value(1), shape)}));
}

namespace {

/// 1 where x > bound, else 0.
Value is_above(NodeContext& c, Value x, double bound) {
  return c.op("relu", {c.op("sign", {c.op("sub", {x, number(c, bound, c.shape_of(x))})})});
}

}  // namespace

/// x above alpha, else 0. Below 0 is never above: of -inf nothing is left that a product with 0 would make NaN.
void thresholded_relu(NodeContext& c) {
  const double alpha = c.real("alpha", 1.0F);
  if (c.stopped()) return;
  if (alpha == 0) return unary(c, "relu");
  if (!(alpha > 0) || std::isinf(alpha)) return c.decline("its alpha is not a positive number");
  const Value x = c.value(0);
  c.output(0, c.op("mul", {c.op("relu", {x}), is_above(c, x, alpha)}));
}

/// x - bias above lambd, x + bias below -lambd, else 0.
void shrink(NodeContext& c) {
  const double bias = c.real("bias", 0.0F), lambd = c.real("lambd", 0.5F);
  if (c.stopped()) return;
  if (!(lambd >= 0) || std::isinf(lambd) || !std::isfinite(bias))
    return c.decline("its lambd is not a number of at least 0");
  const Value x = c.value(0), negative = c.op("neg", {x});
  const auto above = [&](Value side) {
    Value moved = c.op("relu", {side});
    if (bias != 0) moved = c.op("sub", {moved, number(c, bias, c.shape(0))});
    return c.op("mul", {moved, is_above(c, side, lambd)});
  };
  c.output(0, c.op("sub", {above(x), above(negative)}));
}

namespace {

/// sqrt((1 - x) (1 + x)): NaN outside of [-1, 1].
Value root_of_complement(NodeContext& c, Value x) {
  const Value ones = number(c, 1, c.shape(0));
  return c.op("sqrt", {c.op("mul", {c.op("sub", {ones, x}), c.op("add", {ones, x})})});
}

}  // namespace

/// asin(x) = atan(x / sqrt(1 - x^2)), acos(x) = pi / 2 - that, but exact near 1 in half the angle.
void arc_sine(NodeContext& c) {
  const Value x = c.value(0);
  c.output(0, c.op("atan", {c.op("div", {x, root_of_complement(c, x)})}));
}

void arc_cosine(NodeContext& c) {
  const Value x = c.value(0), ones = number(c, 1, c.shape(0));
  const Value half = c.op("sqrt", {c.op("div", {c.op("sub", {ones, x}), c.op("add", {ones, x})})});
  c.output(0, times(c, c.op("atan", {half}), 2));
}

/// sinh(acosh(x)) = sqrt(x - 1) sqrt(x + 1), sinh(atanh(x)) = x / sqrt(1 - x^2).
void area_cosine(NodeContext& c) {
  const Value x = c.value(0), ones = number(c, 1, c.shape(0));
  const Value below = c.op("sqrt", {c.op("sub", {x, ones})}), above = c.op("sqrt", {c.op("add", {x, ones})});
  c.output(0, c.op("asinh", {c.op("mul", {below, above})}));
}

void area_tangent(NodeContext& c) {
  const Value x = c.value(0);
  c.output(0, c.op("asinh", {c.op("div", {x, root_of_complement(c, x)})}));
}

}  // namespace taso::import_handlers
