/// The table of ONNX operators that need code to be imported: those of the default domain, opset 7 and newer. What is a
/// table only is specs/onnx/*.map.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "onnx_io/import_handlers.h"

namespace taso {
namespace {

using namespace import_handlers;

// ------------------------------------------------------------------------------------------------- the table

constexpr int all = -1;
constexpr const char* recurrent_forms =
    "lengths that are not constant, or differ; clip; input_forget; of more than 4 steps, or at symbolic extents, "
    "peepholes, and other functions than the defaults (of RNN also Relu and Sigmoid)";
constexpr const char* unquantized =
    "symbolic extents; blocks; integers of 4 bits and floats of 8; a scale of another type";
constexpr const char* axes_not_constant = "axes that are not constant, or none at all";

const std::vector<ImportRow> rows = {
    {"Acos", 1, 1, all, arc_cosine, false, "atan of a quotient of roots", ""},
    {"Acosh", 1, 1, all, area_cosine, false, "asinh of a product of roots", ""},
    {"ArgMax", 1, 1, 1, [](NodeContext& c) { place_of_extremum(c, true); }, false, "arg_max, reshape", "integers"},
    {"ArgMin", 1, 1, 1, [](NodeContext& c) { place_of_extremum(c, false); }, false, "neg, arg_max, reshape",
     "integers"},
    {"Asin", 1, 1, all, arc_sine, false, "atan of a quotient", ""},
    {"Atanh", 1, 1, all, area_tangent, false, "asinh of a quotient", ""},
    {"Attention", 3, 7, 3, attention, false,
     "transpose, matmul, mul, add, softmax, matmul; concat with a cache; repeated heads",
     "masks of truth values that are not constant; scores that are read; lengths of a cache; what versions of ONNX "
     "differ on"},
    {"AveragePool", 1, 1, all, average_pool, false, "avg_pool2d_include, avg_pool2d_exclude",
     "ceil_mode with count_include_pad"},
    {"BatchNormalization", 5, 5, 1, batch_normalization, false,
     "mul and add of weight-only expressions; batch_norm if a parameter is not constant", "training; spatial=0"},
    {"Cast", 1, 1, 0, cast, false, "nothing, cast", "texts and floats of 8 bits; what follows from symbolic extents"},
    {"Celu", 1, 1, all, celu, false, "clip, div, tanh, sub, mul, relu, add", "alpha not above 0"},
    {"Clip", 1, 3, 0, clip, false, "clip, relu; maximum and neg of bounds that are computed",
     "bounds that are not f32"},
    {"Compress", 2, 2, 1, compress, false, "gather", "a condition that is not constant"},
    {"Concat", 1, all, all, concat, true, "concat", ""},
    {"Conv", 2, 3, all, conv, false,
     "conv2d, conv2d_bias_act; 1-D between reshapes; of more axes by slices that are channels", "negative pads"},
    {"ConvTranspose", 2, 3, all, conv_transpose, false,
     "conv2d of the phases (pad, reshape, slice and transpose of the kernel), reshape, transpose, reshape, slice",
     "3-D; negative pads"},
    {"CumSum", 2, 2, 1, cumulative_sum, false, "cumulative_sum; slice, pad", "an axis that is not constant"},
    {"DepthToSpace", 1, 1, all, depth_to_space, true, "reshape, transpose, reshape", ""},
    {"DequantizeLinear", 2, 3, 0, dequantize_linear, false, "dequantize_linear, dequantize_channels", unquantized},
    {"Dropout", 1, 3, 1, dropout, true, "nothing", "training; a mask that is used"},
    {"Einsum", 1, all, all, einsum, false, "transpose, reshape, matmul, reduce_sum",
     "diagonals; axes that are broadcast"},
    {"Elu", 1, 1, all, elu, false, "clip, tanh, sub, div, mul, relu, add", ""},
    {"Expand", 2, 2, 1, expand, true, "broadcast, reshape", "a shape that is not constant"},
    {"EyeLike", 1, 1, 0, eye_like, false, "nothing", "symbolic extents"},
    {"Flatten", 1, 1, all, flatten, true, "reshape", ""},
    {"GRU", 3, 6, 3, gated_recurrent_unit, false,
     "gru; at most 4 steps unrolled: matmul, add, sigmoid, tanh, mul, sub, split, concat", recurrent_forms},
    {"Gather", 2, 2, 1, gather, true, "gather", "indices of unknown shape"},
    {"GatherElements", 2, 2, 1, gather_elements, true, "gather_elements", "indices of unknown shape"},
    {"GatherND", 2, 2, 1, gather_nd, true, "reshape, gather, reshape",
     "indices that are not constant, but for those along the first axis"},
    {"Gelu", 1, 1, all, gelu, false, "gelu; with approximate=tanh: gelu_tanh", ""},
    {"Gemm", 2, 3, all, gemm, false, "matmul, matmul_bias_act, add; transposes and factors of their own", ""},
    {"GlobalLpPool", 1, 1, all, global_norm_pool, false, "abs, reduce_sum; mul, reduce_sum, sqrt; with pow", ""},
    {"GlobalMaxPool", 1, 1, all, global_max_pool, false, "reduce_max", ""},
    {"GroupNormalization", 3, 3, 1, group_normalization, false, "group_norm", "no spatial axes; another stash_type"},
    {"HardSigmoid", 1, 1, all, hard_sigmoid, false, "hard_sigmoid (alpha=1/6); else mul, add, clip", ""},
    {"Hardmax", 1, 1, 1, hardmax, false, "arg_max, integer_equal, cast", "symbolic extents"},
    {"Identity", 1, 1, all, identity, true, "nothing", ""},
    {"InstanceNormalization", 3, 3, 1, instance_normalization, false, "group_norm of as many groups as channels",
     "no spatial axes"},
    {"IsInf", 1, 1, 1, infinite, false, "is_inf", ""},
    {"LSTM", 3, 8, 3, long_short_term_memory, false,
     "lstm; at most 4 steps unrolled: matmul, add, sigmoid, tanh, mul, split, concat", recurrent_forms},
    {"LayerNormalization", 2, 3, 1, layer_normalization, false, "layer_norm, reshapes if several axes",
     "statistics that are used"},
    {"LeakyRelu", 1, 1, all, leaky_relu, false, "clip, mul, relu, add", ""},
    {"LogSoftmax", 1, 1, all, log_softmax, false, "sub, reduce_max, exp, reduce_sum, log", ""},
    {"LpNormalization", 1, 1, all, norm_along_axis, false, "abs or mul, reduce_sum, sqrt, clip, div", ""},
    {"LpPool", 1, 1, all, norm_pool, false, "abs or mul, avg_pool2d_include, mul, sqrt; with pow", ""},
    {"MatMul", 2, 2, all, matmul, false, "matmul", ""},
    {"Max", 1, all, all, [](NodeContext& c) { extremum(c, true); }, false, "a chain of maximum; clip, relu", ""},
    {"MaxPool", 1, 1, all, max_pool, false, "max_pool2d between reshapes", "indices that are used"},
    {"Mean", 1, all, all, mean, false, "a chain of add, div", ""},
    {"Min", 1, all, all, [](NodeContext& c) { extremum(c, false); }, false, "clip; a chain of neg, maximum, neg", ""},
    {"Mish", 1, 1, all, mish, false, "softplus, tanh, mul", ""},
    {"OneHot", 3, 3, 0, one_hot, false, "gather of the two values", "indices or depth that are not constant"},
    {"PRelu", 2, 2, all, parametric_relu, false, "clip, mul, relu, add", ""},
    {"Pad", 1, 4, 1, pad, true, "slice, pad; gather in other modes",
     "pads that are not constant; more than there is to take"},
    {"Pow", 2, 2, 0, power, false, "pow of broadcasts; of integers and reals between casts",
     "exponents of another real type"},
    {"QuantizeLinear", 2, 3, 0, quantize_linear, false, "quantize_linear, quantize_channels",
     "symbolic extents; blocks; integers that are not of 8 bits and floats of 8; a scale of another type"},
    {"RMSNormalization", 2, 2, all, root_mean_square_normalization, false,
     "rms_norm; of several axes, or with another scale: mul, reduce_mean, add, sqrt, div, mul", "another stash_type"},
    {"RNN", 3, 6, 3, recurrent, false, "rnn; at most 4 steps unrolled: matmul, add, tanh, split, concat",
     recurrent_forms},
    {"Reciprocal", 1, 1, all, reciprocal, false, "div", ""},
    {"ReduceL1", 1, 2, 1, [](NodeContext& c) { reduce_mapped(c, Mapped::l1); }, false, "abs, reduce_sum",
     axes_not_constant},
    {"ReduceL2", 1, 2, 1, [](NodeContext& c) { reduce_mapped(c, Mapped::l2); }, false, "mul, reduce_sum, sqrt",
     axes_not_constant},
    {"ReduceLogSum", 1, 2, 1, [](NodeContext& c) { reduce_mapped(c, Mapped::log_of_sum); }, false, "reduce_sum, log",
     axes_not_constant},
    {"ReduceLogSumExp", 1, 2, 1, [](NodeContext& c) { reduce_mapped(c, Mapped::log_of_sum_of_exponentials); }, false,
     "reduce_max, sub, exp, reduce_sum, log, add", axes_not_constant},
    {"ReduceMax", 1, 2, 1, [](NodeContext& c) { reduce(c, "reduce_max", 18); }, true, "reduce_max, reshape",
     "axes that are not constant"},
    {"ReduceMean", 1, 2, 1, [](NodeContext& c) { reduce(c, "reduce_mean", 18); }, true, "reduce_mean, reshape",
     "axes that are not constant"},
    {"ReduceMin", 1, 2, 1, [](NodeContext& c) { reduce_mapped(c, Mapped::minimum); }, false, "neg, reduce_max, neg",
     axes_not_constant},
    {"ReduceProd", 1, 2, 1, [](NodeContext& c) { reduce(c, "reduce_prod", 18); }, true, "reduce_prod, reshape",
     "axes that are not constant"},
    {"ReduceSum", 1, 2, 1, [](NodeContext& c) { reduce(c, "reduce_sum", 13); }, true, "reduce_sum, reshape",
     "axes that are not constant"},
    {"ReduceSumSquare", 1, 2, 1, [](NodeContext& c) { reduce_mapped(c, Mapped::sum_of_squares); }, false,
     "mul, reduce_sum", axes_not_constant},
    {"Reshape", 2, 2, 1, reshape, true, "reshape", "a shape that is not constant"},
    {"Resize", 1, 4, 1, resize, true, "reshape, broadcast, reshape; gather; matmul by interpolation matrices",
     "scales that are not constant; nearest elements that depend on precision"},
    {"ReverseSequence", 2, 2, 1, reverse_sequence, true, "gather between reshapes", "lengths that are not constant"},
    {"RotaryEmbedding", 3, 4, 3, rotary_embedding, false,
     "rotary_embedding; gather of positions; interleaved: slice, mul, sub, add, concat", ""},
    {"Scatter", 3, 3, 1, scatter_elements, false, "concat, gather between reshapes", "indices that are not constant"},
    {"ScatterElements", 3, 3, 1, scatter_elements, false, "concat, gather between reshapes",
     "indices that are not constant; reductions"},
    {"ScatterND", 3, 3, 1, scatter_nd, false, "concat, gather between reshapes",
     "indices that are not constant; reductions"},
    {"Selu", 1, 1, all, selu, false, "clip, tanh, sub, div, mul, relu, add", ""},
    {"Shrink", 1, 1, all, shrink, false, "relu, sub, sign, mul", "lambd below 0"},
    {"SimplifiedLayerNormalization", 2, 2, all, root_mean_square_normalization, false, "as RMSNormalization",
     "another stash_type"},
    {"Slice", 1, 5, 1, slice, true, "slice", "bounds that are not constant"},
    {"Softmax", 1, 1, all, softmax, false, "softmax; reshapes before opset 13", ""},
    {"Softplus", 1, 1, all, softplus, false, "abs, neg, exp, add, sqrt, div, asinh, relu; before opset 9 log", ""},
    {"Softsign", 1, 1, all, softsign, false, "abs, add, div", ""},
    {"SpaceToDepth", 1, 1, all, space_to_depth, true, "reshape, transpose, reshape", ""},
    {"Split", 1, 2, 1, split, true, "split", "sizes that are not constant"},
    {"Squeeze", 1, 2, 1, squeeze, true, "reshape", "axes that are not constant"},
    {"Sum", 1, all, all, sum, false, "a chain of add of broadcasts", ""},
    {"Swish", 1, 1, all, swish, false, "silu; quick_gelu (alpha=1.702); with another alpha: mul, sigmoid", ""},
    {"ThresholdedRelu", 1, 1, all, thresholded_relu, false, "relu, sub, sign, mul", "alpha below 0"},
    {"Tile", 2, 2, 1, tile, true, "reshape, broadcast, reshape", "repeats that are not constant"},
    {"Transpose", 1, 1, all, transpose, true, "transpose", ""},
    {"Trilu", 1, 2, 1, triangle, false, "mul by a mask",
     "k that is not constant; constants that are not finite, and what follows from them"},
    {"Unsqueeze", 1, 2, 1, unsqueeze, true, "reshape", "axes that are not constant"},
    {"Upsample", 1, 2, 1, resize, true, "reshape, broadcast, reshape; gather; matmul by interpolation matrices",
     "scales that are not constant; nearest elements that depend on precision"},
    {"Where", 3, 3, 0, where, false, "mul by masks, add; select",
     "what follows from symbolic extents, beside a condition that is not constant, or is another type than reals"},
};

// ------------------------------------------------------------------------------ types of what is only carried

/// How the type of a carried operator's first output follows from its inputs.
enum class Carried : std::uint8_t {
  same,
  broadcast,
  broadcast_to_boolean,
  where,
  like_second,
  cast,
  quantize,
  dequantize,
  same_boolean,
  position,
  transposed_convolution,
  resized,
};

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
    {"ArgMax", Carried::position},
    {"ArgMin", Carried::position},
    {"Asin", Carried::same},
    {"Asinh", Carried::same},
    {"Atan", Carried::same},
    {"Atanh", Carried::same},
    {"BitwiseNot", Carried::same},
    {"Cast", Carried::cast},
    {"Ceil", Carried::same},
    {"Celu", Carried::same},
    {"Clip", Carried::same},
    {"ConvTranspose", Carried::transposed_convolution},
    {"Cos", Carried::same},
    {"Cosh", Carried::same},
    {"CumSum", Carried::same},
    {"DequantizeLinear", Carried::dequantize},
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
    {"IsInf", Carried::same_boolean},
    {"IsNaN", Carried::same_boolean},
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
    {"QuantizeLinear", Carried::quantize},
    {"RMSNormalization", Carried::same},
    {"Reciprocal", Carried::same},
    {"Relu", Carried::same},
    {"Resize", Carried::resized},
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

/// The elements that QuantizeLinear makes: those of its zero point, u8 without one.
TensorType quantized(NodeContext& c) {
  TensorType type = c.type(0);
  type.element = ElementType::u8;
  if (c.has_input(2))
    type.element = c.type(2).element;
  else if (const std::int64_t to = c.integer("output_dtype", 0); to != 0)
    type.element = element_of(to >= 1 && to <= 26 ? static_cast<std::int32_t>(to) : 0);
  type.known = type.known && type.element != ElementType::other;
  return type;
}

/// The place of an extremum along an axis.
TensorType position(NodeContext& c) {
  TensorType type = c.type(0);
  const std::int64_t axis = c.axis_from_front(c.integer("axis", 0), c.rank(0));
  if (c.stopped()) return type;
  type.element = ElementType::i64;
  if (c.integer("keepdims", 1) != 0)
    type.shape[at(axis)] = 1;
  else
    type.shape.erase(type.shape.begin() + axis);
  return type;
}

std::optional<TensorType> transposed_convolution(NodeContext& c) {
  if (!c.has_input(1) || !c.type(1).known || c.rank(0) < 3 || c.rank(1) != c.rank(0)) return std::nullopt;
  const Shape x = c.shape(0), k = c.shape(1);
  const std::size_t n = x.size() - 2;
  const Shape strides = c.integer_list("strides", Shape(n, 1)), dilations = c.integer_list("dilations", Shape(n, 1)),
              pads = c.integer_list("pads", Shape(2 * n, 0)), more = c.integer_list("output_padding", Shape(n, 0)),
              given = c.integer_list("output_shape", {});
  const std::string automatic = c.text("auto_pad", "NOTSET");
  const std::int64_t group = c.integer("group", 1);
  if (c.stopped() || strides.size() != n || dilations.size() != n || pads.size() != 2 * n || more.size() != n ||
      (!given.empty() && given.size() != n) || (automatic != "NOTSET" && automatic != "VALID"))
    return std::nullopt;
  Shape shape = {x[0], k[1] * group};
  constexpr std::int64_t limit = 1 << 20;
  for (std::size_t i = 0; i < n; ++i) {
    for (const std::int64_t number : {strides[i], dilations[i], pads[i], pads[n + i], more[i], x[i + 2], k[i + 2]})
      if (number < 0 || number > limit) return std::nullopt;
    const std::int64_t pad = automatic == "VALID" ? 0 : pads[i] + pads[n + i];
    shape.push_back(given.empty() ? strides[i] * (x[i + 2] - 1) + more[i] + (k[i + 2] - 1) * dilations[i] + 1 - pad
                                  : given[i]);
  }
  return TensorType{c.type(0).element, shape, true};
}

std::optional<TensorType> resized(NodeContext& c) {
  if (c.opset() < 10 || c.has_attribute("axes") || c.has_attribute("keep_aspect_ratio_policy")) return std::nullopt;
  const Shape x = c.shape(0);
  const std::size_t scales_input = c.opset() < 11 ? 1 : 2;
  Shape shape;
  if (c.is_constant(scales_input) && c.type(scales_input).elements() > 0) {
    const std::vector<double> scales = c.reals(scales_input);
    if (c.stopped() || scales.size() != x.size()) return std::nullopt;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double length = static_cast<double>(x[i]) * scales[i], nearest = std::round(length);
      // Just beside a whole number it depends on the precision.
      if (!(length >= 1 && length < 1e6) || (length != nearest && std::abs(length - nearest) < 1e-3))
        return std::nullopt;
      shape.push_back(static_cast<std::int64_t>(length));
    }
  } else if (c.is_constant(3)) {
    shape = c.integers(3);
    if (c.stopped() || shape.size() != x.size()) return std::nullopt;
  } else {
    return std::nullopt;
  }
  return TensorType{c.type(0).element, shape, true};
}

/// Whether every extent of a Resize is multiplied by a whole number.
bool resized_by_whole_factors(NodeContext& c) {
  const std::size_t input = c.opset() < 11 ? 1 : 2;
  if (!c.is_constant(input) || c.type(input).elements() == 0) return false;
  const std::vector<double> scales = c.reals(input);
  return !c.stopped() && std::all_of(scales.begin(), scales.end(),
                                     [](double scale) { return scale >= 1 && scale == std::floor(scale); });
}

}  // namespace

const std::vector<ImportRow>& import_rows() { return rows; }

const ImportRow* find_import_row(std::string_view op_type) {
  const auto place = std::lower_bound(rows.begin(), rows.end(), op_type,
                                      [](const ImportRow& row, std::string_view name) { return row.op_type < name; });
  return place != rows.end() && place->op_type == op_type ? &*place : nullptr;
}

namespace {

const CarriedRow* find_carried_row(std::string_view op_type) {
  const auto row = std::lower_bound(carried_rows.begin(), carried_rows.end(), op_type,
                                    [](const CarriedRow& r, std::string_view name) { return r.op_type < name; });
  return row != carried_rows.end() && row->op_type == op_type ? &*row : nullptr;
}

}  // namespace

bool has_carried_type(std::string_view op_type) { return find_carried_row(op_type) != nullptr; }

CarriedTypes carried_types(NodeContext& c) {
  const CarriedRow* const row = find_carried_row(c.proto().op_type());
  if (row == nullptr || !c.has_input(0)) return {};
  const bool by_all = row->rule == Carried::broadcast || row->rule == Carried::broadcast_to_boolean ||
                      row->rule == Carried::where || row->rule == Carried::like_second;
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has_input(i)) continue;
    if (!c.type(i).known && (by_all || (i == 0 && row->rule != Carried::same && row->rule != Carried::cast))) return {};
    shapes.push_back(c.shape(i));
  }
  TensorType type = c.type(0);
  CarriedShape shape;
  shape.rule = CarriedShape::Rule::same;
  if (by_all) shape.rule = CarriedShape::Rule::broadcast;
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
      shape.rule = CarriedShape::Rule::same;
      shape.input = 1;
      break;
    case Carried::cast: {
      const std::int64_t to = c.integer("to", 0);
      type.element = element_of(to >= 1 && to <= 26 ? static_cast<std::int32_t>(to) : 0);
      type.known = type.known && type.element != ElementType::other;
      if (!type.known) type.shape.clear();
      break;
    }
    case Carried::quantize:
      type = quantized(c);
      break;
    case Carried::dequantize:
      if (!c.has_input(1)) return {};
      type.element = c.type(1).element;
      break;
    case Carried::same_boolean:
      type.element = ElementType::boolean;
      break;
    case Carried::position:
      type = position(c);
      shape.rule = CarriedShape::Rule::polynomial;
      break;
    case Carried::transposed_convolution:
    case Carried::resized: {
      const auto inferred = row->rule == Carried::resized ? resized(c) : transposed_convolution(c);
      if (!inferred || !is_reasonable(inferred->shape)) return {};
      type = *inferred;
      shape.rule = row->rule == Carried::transposed_convolution || resized_by_whole_factors(c)
                       ? CarriedShape::Rule::polynomial
                       : CarriedShape::Rule::unknown;
      break;
    }
  }
  if (c.stopped() || !type.known || type.element == ElementType::other) return {};
  return {{type}, shape};
}

}  // namespace taso
