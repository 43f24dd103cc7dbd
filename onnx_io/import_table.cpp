/// The table of ONNX operators: how each of the default domain is imported, opset 7 and newer.
///
/// A handler builds the operator's meaning from operators of ours, exactly, or declines with the reason; it fails where
/// the node cannot be valid. Shapes are known and elements are f32 when a handler is called.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "onnx_io/import.h"
#include "support/reversed.h"

namespace taso {
namespace {

Shape range_of(std::int64_t begin, std::int64_t end) {
  Shape out;
  for (std::int64_t i = begin; i < end; ++i) out.push_back(i);
  return out;
}

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

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
  const TensorType& exponent = c.type(1);
  if (exponent.element != ElementType::f32)
    return c.decline(std::string("the exponent is ") + to_string(exponent.element));
  if (!exponent.known) return c.decline("the shape of an input is not known before run time");
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

void clip(NodeContext& c) {
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

void hard_sigmoid(NodeContext& c) {
  const double alpha = c.real("alpha", 0.2F), beta = c.real("beta", 0.5F);
  if (c.stopped()) return;
  if (std::abs(alpha - 1.0 / 6) < 1e-7 && beta == 0.5) return unary(c, "hard_sigmoid");
  const Shape shape = c.shape(0);
  const Value scaled = c.op("mul", {c.value(0), c.broadcast(c.splat({}, static_cast<float>(alpha)), shape)});
  const Value moved = c.op("add", {scaled, c.broadcast(c.splat({}, static_cast<float>(beta)), shape)});
  c.output(0, c.op("clip", {moved}, {{"min", 0.0}, {"max", 1.0}}));
}

void gelu(NodeContext& c) {
  if (c.text("approximate", "none") != "none") return c.decline("the approximation by tanh is another function");
  unary(c, "gelu");
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
  // Leading extents of 1 of b multiply nothing.
  std::size_t ones = 0;
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
  if (vector && alpha == 1) {
    const Value bias = scaled(c.reshape(c.value(2), {columns}), beta);
    return c.output(0, c.op("matmul_bias_act", {a, b, bias}));
  }
  const Value product = scaled(c.op("matmul", {a, b}), alpha);
  c.output(0, c.op("add", {product, c.broadcast(scaled(c.value(2), beta), {rows, columns})}));
}

// ------------------------------------------------------------------------------------ convolution and pooling

/// A sliding window, with pads as explicit numbers.
struct Window {
  Shape kernel, strides, dilations;
  Shape pads;          ///< Begins, then ends.
  bool grown = false;  ///< ceil_mode added padding at the ends.
};

/// Reads strides, dilations, pads, auto_pad and ceil_mode for a window over `extents`.
Window read_window(NodeContext& c, const Shape& extents, const Shape& kernel) {
  Window w;
  const std::size_t n = extents.size();
  w.kernel = kernel;
  w.strides = c.integer_list("strides", Shape(n, 1));
  w.dilations = c.integer_list("dilations", Shape(n, 1));
  w.pads = c.integer_list("pads", Shape(2 * n, 0));
  const std::string automatic = c.text("auto_pad", "NOTSET");
  const bool ceil = c.integer("ceil_mode", 0) != 0;
  if (c.stopped()) return w;
  if (w.kernel.size() != n || w.strides.size() != n || w.dilations.size() != n || w.pads.size() != 2 * n) {
    c.fail("kernel_shape, strides, dilations or pads do not have " + std::to_string(n) + " spatial axes");
    return w;
  }
  constexpr std::int64_t limit = std::int64_t{1} << 30;
  for (std::size_t i = 0; i < n; ++i) {
    if (w.kernel[i] < 1 || w.strides[i] < 1 || w.dilations[i] < 1 || w.kernel[i] > limit || w.strides[i] > limit ||
        w.dilations[i] > limit) {
      c.fail("kernel extents, strides and dilations must be from 1 to 2^30: kernel " + shape_text(w.kernel) +
             ", strides " + shape_text(w.strides) + ", dilations " + shape_text(w.dilations));
      return w;
    }
    if (std::abs(w.pads[i]) > limit || std::abs(w.pads[n + i]) > limit) {
      c.fail("pads " + shape_text(w.pads) + " are out of range; expected at most 2^30");
      return w;
    }
  }
  if (automatic != "NOTSET" && automatic != "VALID" && automatic != "SAME_UPPER" && automatic != "SAME_LOWER") {
    c.fail("auto_pad \"" + automatic + "\" is none of NOTSET, VALID, SAME_UPPER, SAME_LOWER");
    return w;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    if (automatic == "VALID") w.pads[i] = w.pads[n + i] = 0;
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      const std::int64_t out = (extents[i] + w.strides[i] - 1) / w.strides[i];
      const std::int64_t total = std::max<std::int64_t>(0, (out - 1) * w.strides[i] + reach - extents[i]);
      w.pads[i] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.pads[n + i] = total - w.pads[i];
    }
    const std::int64_t room = extents[i] + w.pads[i] + w.pads[n + i] - reach;
    if (room < 0) {
      c.fail("a window of " + std::to_string(reach) + " does not fit into an extent of " + std::to_string(extents[i]) +
             " with padding " + std::to_string(w.pads[i]) + " and " + std::to_string(w.pads[n + i]));
      return w;
    }
    if (w.pads[i] < 0 || w.pads[n + i] < 0) {
      c.decline("a pad is negative");
      return w;
    }
    if (ceil && room % w.strides[i] != 0) {
      const std::int64_t last = (room / w.strides[i] + 1) * w.strides[i];
      if (last >= extents[i] + w.pads[i]) {
        c.decline("with ceil_mode the last window lies in the padding; runtimes differ on it");
        return w;
      }
      w.pads[n + i] += last - room;
      w.grown = true;
    }
  }
  return w;
}

/// A 1-D window as a 2-D one with a first spatial axis of extent 1.
Window two_dimensional(Window w) {
  if (w.kernel.size() != 1) return w;
  w.kernel.insert(w.kernel.begin(), 1);
  w.strides.insert(w.strides.begin(), 1);
  w.dilations.insert(w.dilations.begin(), 1);
  w.pads = {0, w.pads[0], 0, w.pads[1]};
  return w;
}

Shape with_unit_height(const Shape& shape) { return {shape[0], shape[1], 1, shape[2]}; }

/// Back to rank 3 if the node's tensors have it.
Value from_two_dimensions(NodeContext& c, Value value, bool was_one_dimensional) {
  if (c.stopped() || !was_one_dimensional) return value;
  const Shape shape = c.shape_of(value);
  return c.reshape(value, {shape[0], shape[1], shape[3]});
}

void conv(NodeContext& c) {
  const Shape x = c.shape(0), k = c.shape(1);
  if (x.size() < 3 || k.size() != x.size())
    return c.fail("input " + shape_text(x) + " and weights " + shape_text(k) + " must have the same rank, at least 3");
  const Shape extents(x.begin() + 2, x.end()), kernel(k.begin() + 2, k.end());
  if (c.integer_list("kernel_shape", kernel) != kernel)
    return c.fail("kernel_shape is not that of the weights, " + shape_text(k));
  const std::int64_t group = c.integer("group", 1);
  if (c.stopped()) return;
  if (group < 1 || group > x[1] || k[1] != x[1] / group || x[1] % group != 0 || k[0] % group != 0)
    return c.fail("input " + shape_text(x) + " and weights " + shape_text(k) + " do not fit with group " +
                  std::to_string(group));
  if (c.has_input(2) && c.shape(2) != Shape{k[0]})
    return c.fail("bias " + shape_text(c.shape(2)) + " must be " + shape_text({k[0]}));
  if (extents.size() > 2) return c.decline("it has more than two spatial axes");
  const bool flat = extents.size() == 1;
  const Window w = two_dimensional(read_window(c, extents, kernel));
  if (c.stopped()) return;
  Value input = c.value(0), weights = c.value(1);
  if (flat) {
    input = c.reshape(input, with_unit_height(x));
    weights = c.reshape(weights, with_unit_height(k));
  }
  const Attributes attributes = {{"strides", w.strides}, {"pads", w.pads}, {"dilations", w.dilations}};
  const Value out = c.has_input(2) ? c.op("conv2d_bias_act", {input, weights, c.value(2)}, attributes)
                                   : c.op("conv2d", {input, weights}, attributes);
  c.output(0, from_two_dimensions(c, out, flat));
}

/// Input of a pooling as 2-D, and its window.
bool prepare_pool(NodeContext& c, Value& input, Window& w, bool& flat) {
  const Shape x = c.shape(0);
  if (x.size() < 3) c.fail("its input " + shape_text(x) + " has no spatial axes");
  if (x.size() > 4) c.decline("it has more than two spatial axes");
  if (c.stopped()) return false;
  if (!c.has_attribute("kernel_shape")) c.fail("it has no kernel_shape");
  w = read_window(c, {x.begin() + 2, x.end()}, c.integer_list("kernel_shape", {}));
  if (c.stopped()) return false;
  for (std::size_t i = 0; i < w.kernel.size(); ++i) {
    const std::int64_t reach = (w.kernel[i] - 1) * w.dilations[i];
    if (w.pads[i] > reach || w.pads[w.kernel.size() + i] > reach || x[i + 2] < w.dilations[i]) {
      c.decline("a window may lie in the padding entirely");
      return false;
    }
  }
  w = two_dimensional(w);
  flat = x.size() == 3;
  input = c.value(0);
  if (flat) input = c.reshape(input, with_unit_height(x));
  return !c.stopped();
}

void max_pool(NodeContext& c) {
  c.ignore("storage_order");  // Concerns the indices only, an output that is not modelled.
  Value input;
  Window w;
  bool flat = false;
  if (!prepare_pool(c, input, w, flat)) return;
  const Attributes attributes = {
      {"kernel", w.kernel}, {"strides", w.strides}, {"pads", w.pads}, {"dilations", w.dilations}};
  c.output(0, from_two_dimensions(c, c.op("max_pool2d", {input}, attributes), flat));
}

void average_pool(NodeContext& c) {
  const bool include = c.integer("count_include_pad", 0) != 0;
  Value input;
  Window w;
  bool flat = false;
  if (!prepare_pool(c, input, w, flat)) return;
  if (w.dilations != Shape{1, 1}) return c.decline("it has dilations");
  if (w.grown && include) return c.decline("with ceil_mode and count_include_pad runtimes differ on the divisor");
  const Attributes attributes = {{"kernel", w.kernel}, {"strides", w.strides}, {"pads", w.pads}};
  c.output(0, from_two_dimensions(c, c.op(include ? "avg_pool2d_include" : "avg_pool2d_exclude", {input}, attributes),
                                  flat));
}

void global_average_pool(NodeContext& c) {
  if (c.rank(0) < 3) return c.decline("its input has no spatial axes");
  unary(c, "global_avg_pool");
}

void global_max_pool(NodeContext& c) {
  if (c.rank(0) < 3) return c.decline("its input has no spatial axes");
  c.output(0, c.op("reduce_max", {c.value(0)}, {{"axes", range_of(2 - c.rank(0), 0)}}));
}

void local_response_normalization(NodeContext& c) {
  if (!c.has_attribute("size")) return c.fail("it has no size");
  const Attributes attributes = {{"size", c.integer("size", 1)},
                                 {"alpha", c.real("alpha", 0.0001F)},
                                 {"beta", c.real("beta", 0.75F)},
                                 {"bias", c.real("bias", 1.0F)}};
  if (c.rank(0) < 3) return c.decline("its input has no spatial axes");
  c.output(0, c.op("lrn", {c.value(0)}, attributes));
}

// ------------------------------------------------------------------------------- normalisation and reductions

/// ONNX lets the parameters of normalisations have another type than the input.
bool parameters_are_floats(NodeContext& c) {
  for (std::size_t i = 1; i < c.input_count(); ++i) {
    if (!c.has_input(i)) continue;
    if (!c.type(i).known) c.decline("the shape of an input is not known before run time");
    if (c.type(i).element != ElementType::f32)
      c.decline("parameter " + std::to_string(i) + " is " + to_string(c.type(i).element));
  }
  return !c.stopped();
}

void batch_normalization(NodeContext& c) {
  if (!parameters_are_floats(c)) return;
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
  bool weights = true;
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
  if (!parameters_are_floats(c)) return;
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

void reduce(NodeContext& c, const char* op, std::int64_t axes_as_input_since) {
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
  const Value reduced = c.op(op, {c.value(0)}, {{"axes", axes}});
  c.output(0, keep ? reduced : c.reshape(reduced, kept));
}

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

std::vector<std::int64_t> axes_argument(NodeContext& c) {
  if (c.opset() < 13) return c.integer_list("axes", {});
  return c.has_input(1) ? c.integers(1) : std::vector<std::int64_t>{};
}

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

// ------------------------------------------------------------------------------------------------- the table

constexpr int all = -1;

const std::vector<ImportRow> rows = {
    {"Abs", 1, 1, all, [](NodeContext& c) { unary(c, "abs"); }, false, "abs", ""},
    {"Add", 2, 2, all, [](NodeContext& c) { binary(c, "add"); }, false, "add of broadcasts", ""},
    {"AveragePool", 1, 1, all, average_pool, false, "avg_pool2d_include, avg_pool2d_exclude",
     "3-D; dilations; ceil_mode with count_include_pad"},
    {"BatchNormalization", 5, 5, 1, batch_normalization, false,
     "mul and add of weight-only expressions; batch_norm if a parameter is not constant", "training; spatial=0"},
    {"Cast", 1, 1, all, cast, false, "nothing (f32 to f32); integers are folded", "every other pair of types"},
    {"Clip", 1, 3, 1, clip, false, "clip, relu", "bounds that are not constant"},
    {"Concat", 1, all, all, concat, true, "concat", ""},
    {"Conv", 2, 3, all, conv, false, "conv2d, conv2d_bias_act; 1-D between reshapes", "3-D; negative pads"},
    {"Div", 2, 2, all, [](NodeContext& c) { binary(c, "div"); }, false, "div of broadcasts", ""},
    {"Dropout", 1, 3, 1, dropout, true, "nothing", "training; a mask that is used"},
    {"Erf", 1, 1, all, [](NodeContext& c) { unary(c, "erf"); }, false, "erf", ""},
    {"Exp", 1, 1, all, [](NodeContext& c) { unary(c, "exp"); }, false, "exp", ""},
    {"Expand", 2, 2, 1, expand, true, "broadcast, reshape", "a shape that is not constant"},
    {"Flatten", 1, 1, all, flatten, true, "reshape", ""},
    {"Gather", 2, 2, 1, gather, true, "gather", "indices of unknown shape"},
    {"Gelu", 1, 1, all, gelu, false, "gelu", "approximate=tanh"},
    {"Gemm", 2, 3, all, gemm, false, "matmul, matmul_bias_act, add; transposes and factors of their own", ""},
    {"GlobalAveragePool", 1, 1, all, global_average_pool, false, "global_avg_pool", ""},
    {"GlobalMaxPool", 1, 1, all, global_max_pool, false, "reduce_max", ""},
    {"HardSigmoid", 1, 1, all, hard_sigmoid, false, "hard_sigmoid (alpha=1/6); else mul, add, clip", ""},
    {"HardSwish", 1, 1, all, [](NodeContext& c) { unary(c, "hard_swish"); }, false, "hard_swish", ""},
    {"Identity", 1, 1, all, identity, true, "nothing", ""},
    {"LRN", 1, 1, all, local_response_normalization, false, "lrn", ""},
    {"LayerNormalization", 2, 3, 1, layer_normalization, false, "layer_norm, reshapes if several axes",
     "statistics that are used"},
    {"Log", 1, 1, all, [](NodeContext& c) { unary(c, "log"); }, false, "log", ""},
    {"MatMul", 2, 2, all, matmul, false, "matmul", ""},
    {"MaxPool", 1, 1, all, max_pool, false, "max_pool2d; 1-D between reshapes", "3-D; indices that are used"},
    {"Mean", 1, all, all, mean, false, "a chain of add, div", ""},
    {"Mul", 2, 2, all, [](NodeContext& c) { binary(c, "mul"); }, false, "mul of broadcasts", ""},
    {"Neg", 1, 1, all, [](NodeContext& c) { unary(c, "neg"); }, false, "neg", ""},
    {"Pad", 1, 4, 1, pad, true, "pad", "other modes than constant; negative or unknown pads"},
    {"Pow", 2, 2, 1, power, false, "pow of broadcasts", "exponents that are not f32"},
    {"Reciprocal", 1, 1, all, reciprocal, false, "div", ""},
    {"ReduceMax", 1, 2, 1, [](NodeContext& c) { reduce(c, "reduce_max", 18); }, true, "reduce_max, reshape",
     "axes that are not constant"},
    {"ReduceMean", 1, 2, 1, [](NodeContext& c) { reduce(c, "reduce_mean", 18); }, true, "reduce_mean, reshape",
     "axes that are not constant"},
    {"ReduceSum", 1, 2, 1, [](NodeContext& c) { reduce(c, "reduce_sum", 13); }, true, "reduce_sum, reshape",
     "axes that are not constant"},
    {"Relu", 1, 1, all, [](NodeContext& c) { unary(c, "relu"); }, false, "relu", ""},
    {"Reshape", 2, 2, 1, reshape, true, "reshape", "a shape that is not constant"},
    {"Sigmoid", 1, 1, all, [](NodeContext& c) { unary(c, "sigmoid"); }, false, "sigmoid", ""},
    {"Slice", 1, 5, 1, slice, true, "slice", "bounds that are not constant"},
    {"Softmax", 1, 1, all, softmax, false, "softmax; reshapes before opset 13", ""},
    {"Split", 1, 2, 1, split, true, "split", "sizes that are not constant"},
    {"Sqrt", 1, 1, all, [](NodeContext& c) { unary(c, "sqrt"); }, false, "sqrt", ""},
    {"Squeeze", 1, 2, 1, squeeze, true, "reshape", "axes that are not constant"},
    {"Sub", 2, 2, all, [](NodeContext& c) { binary(c, "sub"); }, false, "sub of broadcasts", ""},
    {"Sum", 1, all, all, sum, false, "a chain of add of broadcasts", ""},
    {"Tanh", 1, 1, all, [](NodeContext& c) { unary(c, "tanh"); }, false, "tanh", ""},
    {"Transpose", 1, 1, all, transpose, true, "transpose", ""},
    {"Unsqueeze", 1, 2, 1, unsqueeze, true, "reshape", "axes that are not constant"},
};

// ------------------------------------------------------------------------------ types of what is only carried

/// How the type of a carried operator's first output follows from its inputs.
enum class Carried : std::uint8_t { same, broadcast, broadcast_to_boolean, where, like_second, cast };

struct CarriedRow {
  const char* op_type;
  Carried rule;
};

const std::vector<CarriedRow> carried_rows = {
    {"Abs", Carried::same},
    {"Acos", Carried::same},
    {"Acosh", Carried::same},
    {"Add", Carried::broadcast},
    {"And", Carried::broadcast_to_boolean},
    {"Asin", Carried::same},
    {"Asinh", Carried::same},
    {"Atan", Carried::same},
    {"Atanh", Carried::same},
    {"BitwiseNot", Carried::same},
    {"Cast", Carried::cast},
    {"Ceil", Carried::same},
    {"Celu", Carried::same},
    {"Clip", Carried::same},
    {"Cos", Carried::same},
    {"Cosh", Carried::same},
    {"CumSum", Carried::same},
    {"Div", Carried::broadcast},
    {"Elu", Carried::same},
    {"Equal", Carried::broadcast_to_boolean},
    {"Erf", Carried::same},
    {"Exp", Carried::same},
    {"Floor", Carried::same},
    {"GatherElements", Carried::like_second},
    {"Gelu", Carried::same},
    {"Greater", Carried::broadcast_to_boolean},
    {"GreaterOrEqual", Carried::broadcast_to_boolean},
    {"GroupNormalization", Carried::same},
    {"Hardmax", Carried::same},
    {"InstanceNormalization", Carried::same},
    {"LeakyRelu", Carried::same},
    {"Less", Carried::broadcast_to_boolean},
    {"LessOrEqual", Carried::broadcast_to_boolean},
    {"Log", Carried::same},
    {"LogSoftmax", Carried::same},
    {"Max", Carried::broadcast},
    {"Mean", Carried::broadcast},
    {"Min", Carried::broadcast},
    {"Mish", Carried::same},
    {"Mod", Carried::broadcast},
    {"Mul", Carried::broadcast},
    {"Neg", Carried::same},
    {"Not", Carried::same},
    {"Or", Carried::broadcast_to_boolean},
    {"PRelu", Carried::same},
    {"RMSNormalization", Carried::same},
    {"Reciprocal", Carried::same},
    {"Relu", Carried::same},
    {"Round", Carried::same},
    {"ScatterElements", Carried::same},
    {"ScatterND", Carried::same},
    {"Selu", Carried::same},
    {"Shrink", Carried::same},
    {"Sigmoid", Carried::same},
    {"Sign", Carried::same},
    {"Sin", Carried::same},
    {"Sinh", Carried::same},
    {"Softmax", Carried::same},
    {"Softplus", Carried::same},
    {"Softsign", Carried::same},
    {"Sqrt", Carried::same},
    {"Sub", Carried::broadcast},
    {"Sum", Carried::broadcast},
    {"Swish", Carried::same},
    {"Tan", Carried::same},
    {"Tanh", Carried::same},
    {"ThresholdedRelu", Carried::same},
    {"Trilu", Carried::same},
    {"Where", Carried::where},
    {"Xor", Carried::broadcast_to_boolean},
};

}  // namespace

const std::vector<ImportRow>& import_rows() { return rows; }

const ImportRow* find_import_row(std::string_view op_type) {
  const auto place = std::lower_bound(rows.begin(), rows.end(), op_type,
                                      [](const ImportRow& row, std::string_view name) { return row.op_type < name; });
  return place != rows.end() && place->op_type == op_type ? &*place : nullptr;
}

std::vector<std::optional<TensorType>> carried_types(NodeContext& c) {
  const std::string& op = c.proto().op_type();
  const auto row = std::lower_bound(carried_rows.begin(), carried_rows.end(), op,
                                    [](const CarriedRow& r, const std::string& name) { return r.op_type < name; });
  if (row == carried_rows.end() || row->op_type != op || !c.has_input(0)) return {};
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has_input(i)) continue;
    if (!c.type(i).known && row->rule != Carried::same && row->rule != Carried::cast) return {};
    shapes.push_back(c.shape(i));
  }
  TensorType type = c.type(0);
  switch (row->rule) {
    case Carried::same:
      break;
    case Carried::broadcast:
      type.shape = c.common_shape(shapes);
      break;
    case Carried::broadcast_to_boolean:
      type = {ElementType::boolean, c.common_shape(shapes), true};
      break;
    case Carried::where:
      if (!c.has_input(1)) return {};
      type = {c.type(1).element, c.common_shape(shapes), true};
      break;
    case Carried::like_second:
      if (!c.has_input(1)) return {};
      type.shape = c.shape(1);
      break;
    case Carried::cast: {
      const std::int64_t to = c.integer("to", 0);
      type.element = element_of(to >= 1 && to <= 26 ? static_cast<std::int32_t>(to) : 0);
      type.known = type.known && type.element != ElementType::other;
      if (!type.known) type.shape.clear();
      break;
    }
  }
  if (c.stopped() || !type.known) return {};
  return {type};
}

}  // namespace taso
