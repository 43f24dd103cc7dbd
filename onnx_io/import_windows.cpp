/// How ONNX operators with a sliding window are imported: convolution, pooling, local normalisation.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "onnx_io/import_handlers.h"

namespace taso::import_handlers {

namespace {

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
  if (c.may_be_rounded() && (ceil || automatic.starts_with("SAME")))
    c.decline("its pads may depend on symbolic extents", Obstacle::symbolic);
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

}  // namespace

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

namespace {

/// One spatial axis of a transposed convolution: output element stride * u + phase, before pads are cut off, is a sum
/// over taps t of input element u - t times kernel element stride * t + phase.
struct TransposedAxis {
  std::int64_t stride = 1, taps = 1;
  std::int64_t kernel = 1;
  std::int64_t begin = 0, length = 1;  ///< What is kept of the output.
};

}  // namespace

/// A convolution of stride 1 computes every phase of the output as channels of its own; then they are interleaved.
void conv_transpose(NodeContext& c) {
  Shape x = c.shape(0), k = c.shape(1);
  if (x.size() < 3 || k.size() != x.size())
    return c.fail("input " + shape_text(x) + " and weights " + shape_text(k) + " must have the same rank, at least 3");
  const std::size_t n = x.size() - 2;
  Shape kernel(k.begin() + 2, k.end());
  if (c.integer_list("kernel_shape", kernel) != kernel)
    return c.fail("kernel_shape is not that of the weights, " + shape_text(k));
  const Shape strides = c.integer_list("strides", Shape(n, 1)), pads = c.integer_list("pads", Shape(2 * n, 0)),
              more = c.integer_list("output_padding", Shape(n, 0));
  const Shape dilations = c.integer_list("dilations", Shape(n, 1));
  const std::int64_t group = c.integer("group", 1);
  const std::string automatic = c.text("auto_pad", "NOTSET");
  if (c.has_attribute("output_shape")) return c.decline("pads that follow from output_shape are not modelled");
  if (c.stopped()) return;
  if (strides.size() != n || pads.size() != 2 * n || more.size() != n || dilations.size() != n)
    return c.fail("strides, dilations, pads or output_padding do not have " + std::to_string(n) + " spatial axes");
  if (group < 1 || k[0] != x[1] || x[1] % group != 0)
    return c.fail("input " + shape_text(x) + " and weights " + shape_text(k) + " do not fit with group " +
                  std::to_string(group));
  if (c.has_input(2) && c.shape(2) != Shape{k[1] * group})
    return c.fail("bias " + shape_text(c.shape(2)) + " must be " + shape_text({k[1] * group}));
  if (n > 2) return c.decline("it has more than two spatial axes");
  if (dilations != Shape(n, 1)) return c.decline("it has dilations");
  if (automatic != "NOTSET" && automatic != "VALID") return c.decline("auto_pad " + automatic + " is not modelled");
  std::vector<TransposedAxis> axes;
  for (std::size_t i = 0; i < n; ++i) {
    constexpr std::int64_t limit = 1 << 20;
    const std::int64_t before = automatic == "VALID" ? 0 : pads[i], after = automatic == "VALID" ? 0 : pads[n + i];
    for (const std::int64_t value : {strides[i], before, after, more[i], kernel[i], x[i + 2]})
      if (value > limit) return c.decline("a window is too large");
    if (strides[i] < 1) return c.fail("strides " + shape_text(strides) + " must be at least 1");
    if (before < 0 || after < 0 || more[i] < 0) return c.decline("a pad is negative");
    TransposedAxis axis;
    axis.stride = strides[i];
    axis.kernel = kernel[i];
    axis.begin = before;
    axis.length = strides[i] * (x[i + 2] - 1) + kernel[i] + more[i] - before - after;
    if (axis.length < 1) return c.decline("the pads leave nothing");
    const std::int64_t reach = std::max(kernel[i], kernel[i] + more[i] - after);
    axis.taps = (reach + axis.stride - 1) / axis.stride;
    axes.push_back(axis);
  }
  Value input = c.value(0), weights = c.value(1);
  const bool flat = n == 1;
  if (flat) {
    x = with_unit_height(x);
    k = with_unit_height(k);
    input = c.reshape(input, x);
    weights = c.reshape(weights, k);
    axes.insert(axes.begin(), TransposedAxis{});
  }
  const auto [sh, qh] = std::pair(axes[0].stride, axes[0].taps);
  const auto [sw, qw] = std::pair(axes[1].stride, axes[1].taps);
  // [c, o, h, w] to [g, c / g, o, taps, phases, taps, phases], taps reversed, to [(g o phases), c / g, taps, taps].
  const Shape behind = {0, 0, qh * sh - k[2], qw * sw - k[3]};
  if (behind != Shape(4, 0))
    weights = c.op("pad", {weights}, {{"before", Shape(4, 0)}, {"after", behind}, {"value", 0.0}});
  const Shape parts = {group, k[0] / group, k[1], qh, sh, qw, sw};
  weights = c.reshape(weights, parts);
  if (qh > 1 || qw > 1)
    weights = c.op("slice", {weights},
                   {{"starts", Shape{0, 0, 0, qh - 1, 0, qw - 1, 0}},
                    {"sizes", parts},
                    {"steps", Shape{1, 1, 1, qh > 1 ? -1 : 1, 1, qw > 1 ? -1 : 1, 1}}});
  weights = c.op("transpose", {weights}, {{"perm", Shape{0, 2, 4, 6, 1, 3, 5}}});
  const std::int64_t channels = group * k[1];
  weights = c.reshape(weights, {channels * sh * sw, k[0] / group, qh, qw});
  const Attributes attributes = {
      {"strides", Shape{1, 1}}, {"pads", Shape{qh - 1, qw - 1, qh - 1, qw - 1}}, {"dilations", Shape{1, 1}}};
  Value out;
  if (c.has_input(2)) {
    const Value repeated = c.broadcast(c.reshape(c.value(2), {channels, 1}), {channels, sh * sw});
    out = c.op("conv2d_bias_act", {input, weights, c.reshape(repeated, {channels * sh * sw})}, attributes);
  } else {
    out = c.op("conv2d", {input, weights}, attributes);
  }
  const std::int64_t rows = x[2] + qh - 1, columns = x[3] + qw - 1;
  if (sh > 1 || sw > 1) {
    out = c.reshape(out, {x[0], channels, sh, sw, rows, columns});
    out = c.op("transpose", {out}, {{"perm", Shape{0, 1, 4, 2, 5, 3}}});
    out = c.reshape(out, {x[0], channels, rows * sh, columns * sw});
  }
  const Shape kept = {x[0], channels, axes[0].length, axes[1].length};
  if (!c.stopped() && c.shape_of(out) != kept)
    out = c.op("slice", {out},
               {{"starts", Shape{0, 0, axes[0].begin, axes[1].begin}}, {"sizes", kept}, {"steps", Shape{1, 1, 1, 1}}});
  c.output(0, from_two_dimensions(c, out, flat));
}

namespace {

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

}  // namespace

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

void global_max_pool(NodeContext& c) {
  if (c.rank(0) < 3) return c.decline("its input has no spatial axes");
  c.output(0, c.op("reduce_max", {c.value(0)}, {{"axes", range_of(2 - c.rank(0), 0)}}));
}

}  // namespace taso::import_handlers
