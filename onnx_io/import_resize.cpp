/// How Resize and Upsample are imported: axis by axis. Where every element is repeated a whole number of times, it is a
/// broadcast; other nearest neighbours are slices that are taken; interpolation is a product with a constant matrix.
///
/// The formulas are those of ONNX's reference implementation (onnx/reference/ops/op_resize.py).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onnx_io/import_handlers.h"

namespace taso::import_handlers {
namespace {

/// What all axes have in common.
struct Method {
  std::string mode = "nearest", transform = "half_pixel", rounding = "round_prefer_floor";
  bool antialias = false, exclude_outside = false;
  double cubic = -0.75, extrapolation = 0;
};

/// One axis: how long it is before and after, and its scale; the part of it that tf_crop_and_resize shows.
struct Axis {
  std::int64_t extent = 1, length = 1;
  double scale = 1, begin = 0, end = 1;
  [[nodiscard]] bool stays(const Method& method) const {
    return extent == length && scale == 1 && (method.transform != "tf_crop_and_resize" || (begin == 0 && end == 1));
  }
};

/// Where element `i` of the result lies among those of the axis.
double position(const Method& method, const Axis& axis, std::int64_t i) {
  const auto x = static_cast<double>(i), extent = static_cast<double>(axis.extent);
  const double length = axis.scale * extent;
  if (method.transform == "asymmetric") return x / axis.scale;
  if (method.transform == "align_corners") return length == 1 ? 0 : x * (extent - 1) / (length - 1);
  if (method.transform == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  if (method.transform == "pytorch_half_pixel" && length == 1) return -0.5;
  if (method.transform == "tf_crop_and_resize") {
    const double along = length == 1 ? (axis.end - axis.begin) * (extent - 1) / 2
                                     : x * (axis.end - axis.begin) * (extent - 1) / (length - 1);
    return along + axis.begin * (extent - 1);
  }
  double offset = 0;
  if (method.transform == "half_pixel_symmetric") offset = extent / 2 * (1 - static_cast<double>(axis.length) / length);
  return offset + (x + 0.5) / axis.scale - 0.5;
}

/// Whether a position is outside of what the result shows: it takes the value for extrapolation.
bool is_outside(const Method& method, const Axis& axis, double x) {
  return method.transform == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(axis.extent - 1));
}

/// The element that is nearest. Nothing where that depends on the precision in which a runtime computes positions.
std::optional<std::int64_t> nearest(const Method& method, const Axis& axis, double x) {
  const bool halves = method.rounding.starts_with("round");
  const double to_edge = std::abs(halves ? x - std::floor(x) - 0.5 : x - std::round(x));
  const double inverse = 1 / axis.scale;
  // Quotients by such scales that are halves of whole numbers are so in every precision.
  const bool exact = axis.scale == std::floor(axis.scale) || std::exp2(std::round(std::log2(axis.scale))) == axis.scale;
  const bool exact_transform = method.transform == "asymmetric" || method.transform.ends_with("half_pixel");
  const bool whole = axis.extent == axis.length && inverse == 1;
  if (to_edge < 1e-4 * std::max(1.0, x) && !(to_edge == 0 && exact && exact_transform) && !whole) return std::nullopt;
  double place = std::ceil(x - 0.5);
  if (method.rounding == "floor") place = std::floor(x);
  if (method.rounding == "ceil") place = std::ceil(x);
  if (method.rounding == "round_prefer_ceil") place = std::floor(x + 0.5);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(place), 0, axis.extent - 1);
}

/// The filter of cubic convolution (Keys, 1981) at distance `x`.
double cubic_filter(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// What elements around a position count, the first of them `first` places from the one to the left of it.
struct Weights {
  std::int64_t first = 0;
  std::vector<double> weights;
};

/// `ratio`, in (0, 1]: how far the position is from the element to its left.
Weights interpolation(const Method& method, double scale, double ratio) {
  const bool linear = method.mode == "linear";
  // Narrowing with antialiasing stretches the filter.
  const double narrow = method.antialias ? std::min(scale, 1.0) : 1.0;
  const std::int64_t first = static_cast<std::int64_t>(std::floor((linear ? -1 : -2) / narrow)) + 1;
  const std::int64_t count = 2 - 2 * first;
  Weights result{first, {}};
  double sum = 0;
  for (std::int64_t i = first; i < first + count; ++i) {
    const double x = (static_cast<double>(i) - ratio) * narrow;
    result.weights.push_back(linear ? std::max(0.0, 1 - std::abs(x)) : cubic_filter(x, method.cubic));
    sum += result.weights.back();
  }
  if (method.antialias)
    for (double& weight : result.weights) weight /= sum;
  return result;
}

/// A matrix [extent, length] by which rows are multiplied.
std::vector<float> interpolation_matrix(const Method& method, const Axis& axis) {
  std::vector<double> matrix(at(axis.extent * axis.length), 0.0);
  for (std::int64_t i = 0; i < axis.length; ++i) {
    const double x = position(method, axis, i);
    if (is_outside(method, axis, x)) continue;
    // At an element, that one is the right one of two.
    const double left = x == std::floor(x) ? x - 1 : std::floor(x);
    Weights around = interpolation(method, axis.scale, x - left);
    const auto begin = static_cast<std::int64_t>(left) + around.first;
    double sum = 0;
    for (std::size_t k = 0; k < around.weights.size(); ++k) {
      const std::int64_t place = begin + static_cast<std::int64_t>(k);
      if (method.exclude_outside && (place < 0 || place >= axis.extent)) around.weights[k] = 0;
      sum += around.weights[k];
    }
    for (std::size_t k = 0; k < around.weights.size(); ++k) {
      const std::int64_t place = std::clamp<std::int64_t>(begin + static_cast<std::int64_t>(k), 0, axis.extent - 1);
      matrix[at(place * axis.length + i)] += around.weights[k] / (method.exclude_outside ? sum : 1);
    }
  }
  return {matrix.begin(), matrix.end()};
}

/// Swaps an axis with the last one.
Value with_last(NodeContext& c, Value x, std::int64_t axis) {
  if (c.stopped() || axis + 1 == c.rank_of(x)) return x;
  Shape perm = range_of(0, c.rank_of(x));
  std::swap(perm[at(axis)], perm.back());
  return c.op("transpose", {x}, {{"perm", perm}});
}

Value interpolated(NodeContext& c, Value x, std::int64_t place, const Method& method, const Axis& axis) {
  if (c.stopped()) return {};
  constexpr std::int64_t limit = std::int64_t{1} << 22;
  if (axis.extent > limit / axis.length) {
    c.decline("an axis is too long for a matrix");
    return {};
  }
  const std::vector<float> matrix = interpolation_matrix(method, axis);
  const Value factor = c.reals({axis.extent, axis.length}, matrix);
  return with_last(c, c.op("matmul", {with_last(c, x, place), factor}), place);
}

Value nearest_taken(NodeContext& c, Value x, std::int64_t place, const Method& method, const Axis& axis) {
  if (c.stopped()) return {};
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < axis.length; ++i) {
    const double from = position(method, axis, i);
    // What lies outside is replaced afterwards.
    const auto taken = is_outside(method, axis, from) ? std::optional<std::int64_t>(0) : nearest(method, axis, from);
    if (!taken) {
      c.decline("which element is nearest depends on the precision of positions");
      return {};
    }
    places.push_back(*taken);
  }
  const Value index = c.constant(ConstantData::of_integers({axis.length}, places));
  return c.op("gather", {x, index}, {{"axis", place - c.rank_of(x)}});
}

/// Puts the value for extrapolation where a position along some axis is outside. Interpolated rows are 0 there.
Value extrapolated(NodeContext& c, Value x, const Method& method, const std::vector<Axis>& axes) {
  if (c.stopped() || method.transform != "tf_crop_and_resize") return x;
  const Shape shape = c.shape_of(x);
  Value inside;
  bool cut = false;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    std::vector<float> mask;
    for (std::int64_t i = 0; i < axes[k].length; ++i)
      mask.push_back(is_outside(method, axes[k], position(method, axes[k], i)) ? 0.0F : 1.0F);
    if (std::find(mask.begin(), mask.end(), 0.0F) == mask.end()) continue;
    Shape along(axes.size() - k, 1);
    along[0] = axes[k].length;
    const Value one = c.broadcast(c.reals(along, mask), shape);
    inside = cut ? c.op("mul", {inside, one}) : one;
    cut = true;
  }
  if (!cut) return x;
  x = c.op("mul", {x, inside});
  if (method.extrapolation == 0) return x;
  const Value ones = c.broadcast(c.splat({}, 1.0F), shape);
  const Value value = c.broadcast(c.splat({}, static_cast<float>(method.extrapolation)), shape);
  return c.op("add", {x, c.op("mul", {c.op("sub", {ones, inside}), value})});
}

Method read_method(NodeContext& c) {
  const bool first_version = c.proto().op_type() == "Upsample" || c.opset() < 11;
  Method method;
  method.mode = c.text("mode", "nearest");
  if (method.mode == "bilinear") method.mode = "linear";
  if (first_version) {
    method.transform = "asymmetric";
    method.rounding = "floor";
  } else {
    method.transform = c.text("coordinate_transformation_mode", "half_pixel");
    method.rounding = c.text("nearest_mode", "round_prefer_floor");
    method.cubic = c.real("cubic_coeff_a", -0.75F);
    method.exclude_outside = c.integer("exclude_outside", 0) != 0;
    method.extrapolation = c.real("extrapolation_value", 0.0F);
    method.antialias = c.integer("antialias", 0) != 0;
  }
  // Before opset 13 this mode shifts positions, and rounds them down, in some runtimes.
  if (method.mode != "nearest" && method.mode != "linear" && method.mode != "cubic")
    c.fail("mode \"" + method.mode + "\" is none of nearest, linear, cubic");
  static const std::vector<std::string> transforms = {
      "align_corners",      "asymmetric",         "half_pixel",          "half_pixel_symmetric",
      "pytorch_half_pixel", "tf_crop_and_resize", "tf_half_pixel_for_nn"};
  if (std::find(transforms.begin(), transforms.end(), method.transform) == transforms.end())
    c.decline("coordinate_transformation_mode " + method.transform + " is not modelled");
  return method;
}

/// The axes that the node names, from the front; all, without an attribute.
std::vector<std::int64_t> named_axes(NodeContext& c) {
  if (!c.has_attribute("axes")) return range_of(0, c.rank(0));
  std::vector<std::int64_t> axes = c.integer_list("axes", {});
  for (std::int64_t& axis : axes) axis = c.axis_from_front(axis, c.rank(0));
  return axes;
}

/// Lengths and scales where the node gives lengths.
void set_lengths(NodeContext& c, const std::vector<std::int64_t>& named, const std::vector<std::int64_t>& lengths,
                 std::vector<Axis>& axes) {
  const std::string policy = c.text("keep_aspect_ratio_policy", "stretch");
  std::optional<double> common;
  for (std::size_t i = 0; i < named.size(); ++i) {
    Axis& axis = axes[at(named[i])];
    if (lengths[i] < 1) return c.decline("the output is empty");
    axis.length = lengths[i];
    axis.scale = static_cast<double>(lengths[i]) / static_cast<double>(axis.extent);
    if (!common || (policy == "not_larger" ? axis.scale < *common : axis.scale > *common)) common = axis.scale;
  }
  if (policy == "stretch") return;
  if (policy != "not_larger" && policy != "not_smaller")
    return c.fail("keep_aspect_ratio_policy \"" + policy + "\" is none of stretch, not_larger, not_smaller");
  for (const std::int64_t place : named) {
    Axis& axis = axes[at(place)];
    axis.scale = *common;
    const double length = *common * static_cast<double>(axis.extent);
    if (std::abs(length - std::floor(length) - 0.5) < 1e-3)
      return c.decline("a length depends on how halves are rounded");
    axis.length = static_cast<std::int64_t>(std::round(length));
  }
}

/// Lengths where the node gives scales.
void set_scales(NodeContext& c, const std::vector<std::int64_t>& named, const std::vector<double>& scales,
                std::vector<Axis>& axes) {
  c.ignore("keep_aspect_ratio_policy");
  for (std::size_t i = 0; i < named.size(); ++i) {
    Axis& axis = axes[at(named[i])];
    const double length = static_cast<double>(axis.extent) * scales[i], nearest = std::round(length);
    if (!(scales[i] > 0) || !(length < 1 << 24)) return c.fail("a scale is " + std::to_string(scales[i]));
    if (length != nearest && std::abs(length - nearest) < 1e-3)
      return c.decline("a length depends on the precision of products with scales");
    if (length < 1) return c.decline("the output is empty");
    axis.scale = scales[i];
    axis.length = static_cast<std::int64_t>(length);
  }
}

std::vector<Axis> read_axes(NodeContext& c, const Method& method) {
  const bool is_upsample = c.proto().op_type() == "Upsample", first_version = is_upsample || c.opset() < 11;
  std::vector<Axis> axes;
  for (const std::int64_t extent : c.shape(0)) axes.push_back({extent, extent, 1, 0, 1});
  const std::vector<std::int64_t> named = named_axes(c);
  const std::size_t scales_input = first_version ? 1 : 2;
  const auto fit = [&](std::size_t count) {
    if (!c.stopped() && count != named.size())
      c.fail("scales or sizes do not have a number for each axis of " + shape_text(c.shape(0)));
    return !c.stopped();
  };
  if (is_upsample && c.opset() < 9) {
    const std::vector<double> scales = c.real_list("scales");
    if (fit(scales.size())) set_scales(c, named, scales, axes);
  } else if (c.has_input(scales_input) && !(c.is_constant(scales_input) && c.type(scales_input).elements() == 0)) {
    const std::vector<double> scales = c.reals(scales_input);
    if (fit(scales.size())) set_scales(c, named, scales, axes);
  } else if (c.has_input(3)) {
    const std::vector<std::int64_t> lengths = c.integers(3);
    if (fit(lengths.size())) set_lengths(c, named, lengths, axes);
  } else {
    c.fail("it has neither scales nor sizes");
  }
  if (c.stopped() || method.transform != "tf_crop_and_resize") return axes;
  if (!c.has_input(1)) {
    c.decline("it has no region");
    return axes;
  }
  const std::vector<double> region = c.reals(1);
  if (c.stopped() || region.size() != 2 * named.size()) {
    c.fail("roi does not have two numbers for each axis");
    return axes;
  }
  for (std::size_t i = 0; i < named.size(); ++i) {
    axes[at(named[i])].begin = region[i];
    axes[at(named[i])].end = region[named.size() + i];
  }
  return axes;
}

/// How often every element of each axis is repeated, if that is all that happens.
std::optional<Shape> repetitions(const Method& method, const std::vector<Axis>& axes) {
  if (method.mode != "nearest" || method.transform == "tf_crop_and_resize") return std::nullopt;
  Shape repeats;
  for (const Axis& axis : axes) {
    if (axis.length % axis.extent != 0 || axis.scale != std::floor(axis.scale)) return std::nullopt;
    const std::int64_t repeat = axis.length / axis.extent;
    for (std::int64_t i = 0; i < axis.length; ++i)
      if (nearest(method, axis, position(method, axis, i)) != i / repeat) return std::nullopt;
    repeats.push_back(repeat);
  }
  return repeats;
}

}  // namespace

void resize(NodeContext& c) {
  if (c.proto().op_type() == "Upsample" && c.opset() >= 10) return c.decline("it is deprecated at this opset");
  const Method method = read_method(c);
  if (c.stopped()) return;
  if (volume(c.shape(0)) == 0) return c.decline("an input is empty");
  const std::vector<Axis> axes = read_axes(c, method);
  if (c.stopped()) return;
  // The standard divides by the product of scale and extent, ONNX Runtime by the length, which is that product rounded
  // down.
  const bool by_ends = method.transform == "align_corners" || method.transform == "tf_crop_and_resize";
  if (by_ends && std::ranges::any_of(axes, [](const Axis& axis) {
        return std::abs(axis.scale * static_cast<double>(axis.extent) - static_cast<double>(axis.length)) > 1e-6;
      }))
    return c.decline("a scale does not make a whole length; runtimes differ on it");
  if (const auto repeats = repetitions(method, axes)) return c.output(0, repeated(c, c.value(0), *repeats, false));
  // Lengths by other scales are rounded, and whether they are those of x may depend on its extents.
  const auto is_whole = [](const Axis& axis) { return axis.scale == std::floor(axis.scale); };
  if (c.symbolic() && !std::all_of(axes.begin(), axes.end(), is_whole))
    return c.decline("its lengths may depend on symbolic extents", Obstacle::symbolic);
  Value x = c.value(0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].stays(method)) continue;
    const auto place = static_cast<std::int64_t>(i);
    x = method.mode == "nearest" ? nearest_taken(c, x, place, method, axes[i])
                                 : interpolated(c, x, place, method, axes[i]);
  }
  c.output(0, extrapolated(c, x, method, axes));
}

}  // namespace taso::import_handlers
