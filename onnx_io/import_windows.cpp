/// How ONNX operators with a sliding window are imported: convolution, pooling, local normalisation.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
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

namespace {

/// An image and a kernel whose first spatial axis has become a part of the samples and channels: a convolution along it
/// is a sum over channels of what lies under each cell of the kernel.
struct Folded {
  Value x, k;
  std::int64_t samples = 1, length = 1;
};

Window without_first_axis(const Window& w) {
  const std::size_t n = w.kernel.size();
  Window rest;
  for (std::size_t i = 1; i < n; ++i) {
    rest.kernel.push_back(w.kernel[i]);
    rest.strides.push_back(w.strides[i]);
    rest.dilations.push_back(w.dilations[i]);
    rest.pads.push_back(w.pads[i]);
  }
  for (std::size_t i = 1; i < n; ++i) rest.pads.push_back(w.pads[n + i]);
  return rest;
}

Folded fold_first_axis(NodeContext& c, Value x, Value k, Window& w) {
  const std::size_t n = w.kernel.size();
  const std::int64_t cells = w.kernel[0], stride = w.strides[0], dilation = w.dilations[0];
  Shape before(n + 2, 0), after = before;
  before[2] = w.pads[0];
  after[2] = w.pads[n];
  if (before[2] != 0 || after[2] != 0) x = c.op("pad", {x}, {{"before", before}, {"after", after}, {"value", 0.0}});
  Folded folded;
  if (c.stopped()) return folded;
  const Shape shape = c.shape_of(x), kernel = c.shape_of(k);
  const std::int64_t length = (shape[2] - (cells - 1) * dilation - 1) / stride + 1;
  const auto joined = [](Shape lead, std::span<const std::int64_t> tail) {
    lead.insert(lead.end(), tail.begin(), tail.end());
    return lead;
  };
  const auto rest = std::span(shape).subspan(3);
  std::vector<Value> taps;
  for (std::int64_t u = 0; u < cells; ++u) {
    Shape starts(n + 2, 0), sizes = shape, steps(n + 2, 1);
    starts[2] = u * dilation;
    sizes[2] = length;
    steps[2] = length == 1 ? 1 : stride;
    const Value tap = sizes == shape ? x : c.op("slice", {x}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
    taps.push_back(c.reshape(tap, joined({shape[0], shape[1], 1, length}, rest)));
  }
  const auto axis = -static_cast<std::int64_t>(n) - 1;
  x = taps.size() == 1 ? taps[0] : c.op("concat", taps, {{"axis", axis}});
  Shape perm = {0, 3, 1, 2};
  for (std::int64_t i = 4; i < static_cast<std::int64_t>(n) + 3; ++i) perm.push_back(i);
  folded.x = c.reshape(c.op("transpose", {x}, {{"perm", perm}}), joined({shape[0] * length, shape[1] * cells}, rest));
  folded.k = c.reshape(k, joined({kernel[0], kernel[1] * cells}, std::span(kernel).subspan(3)));
  folded.samples = shape[0];
  folded.length = length;
  w = without_first_axis(w);
  return folded;
}

/// A convolution over any number of axes, of which operators know two; `bias` is a part of it if there is one.
Value convolved(NodeContext& c, Value x, Value k, std::optional<Value> bias, Window w) {
  if (c.stopped()) return {};
  if (w.kernel.size() > 2) {
    const Folded folded = fold_first_axis(c, x, k, w);
    const Value out = convolved(c, folded.x, folded.k, bias, std::move(w));
    if (c.stopped()) return {};
    const Shape made = c.shape_of(out);
    Shape parts = {folded.samples, folded.length}, perm = {0, 2, 1};
    parts.insert(parts.end(), made.begin() + 1, made.end());
    for (std::int64_t i = 3; i < static_cast<std::int64_t>(parts.size()); ++i) perm.push_back(i);
    return c.op("transpose", {c.reshape(out, parts)}, {{"perm", perm}});
  }
  const bool flat = w.kernel.size() == 1;
  if (flat) {
    x = c.reshape(x, with_unit_height(c.shape_of(x)));
    k = c.reshape(k, with_unit_height(c.shape_of(k)));
    w = two_dimensional(std::move(w));
  }
  const Attributes attributes = {{"strides", w.strides}, {"pads", w.pads}, {"dilations", w.dilations}};
  const Value out = bias ? c.op("conv2d_bias_act", {x, k, *bias}, attributes) : c.op("conv2d", {x, k}, attributes);
  return from_two_dimensions(c, out, flat);
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
  Window w = read_window(c, extents, kernel);
  if (c.stopped()) return;
  if (w.kernel.size() > 2 && c.symbolic())
    return c.decline("its slices may depend on symbolic extents", Obstacle::symbolic);
  const Value input = c.value(0), weights = c.value(1);
  c.output(0, convolved(c, input, weights, c.has_input(2) ? std::optional(c.value(2)) : std::nullopt, std::move(w)));
}

namespace {

/// One spatial axis of a transposed convolution: output element stride * u + phase, before pads are cut off, is a sum
/// over taps t of input element u - t times kernel element stride * t + phase.
struct TransposedAxis {
  std::int64_t stride = 1, taps = 1;
  std::int64_t kernel = 1;
  std::int64_t begin = 0, length = 1;  ///< What is kept of the output.
};

/// A kernel with zeros between its cells.
Value dilated_kernel(NodeContext& c, Value k, const Shape& dilations) {
  if (c.stopped()) return {};
  const Shape kernel = c.shape_of(k);
  Shape parts = {kernel[0], kernel[1]}, after = {0, 0}, spread = parts, kept = parts;
  for (std::size_t i = 0; i < dilations.size(); ++i) {
    const std::int64_t extent = kernel[i + 2], dilation = dilations[i];
    if (dilation < 1 || dilation > (1 << 20)) {
      c.fail("dilations " + shape_text(dilations) + " must be from 1 to 2^20");
      return {};
    }
    parts.insert(parts.end(), {extent, 1});
    after.insert(after.end(), {0, dilation - 1});
    spread.push_back(extent * dilation);
    kept.push_back((extent - 1) * dilation + 1);
  }
  if (kept == kernel) return k;
  k = c.op("pad", {c.reshape(k, parts)}, {{"before", Shape(parts.size(), 0)}, {"after", after}, {"value", 0.0}});
  return c.op("slice", {c.reshape(k, spread)},
              {{"starts", Shape(kept.size(), 0)}, {"sizes", kept}, {"steps", Shape(kept.size(), 1)}});
}

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
  const Shape wanted = c.integer_list("output_shape", {});
  if (c.stopped()) return;
  if (!wanted.empty() && c.symbolic()) return c.decline("its pads may depend on symbolic extents", Obstacle::symbolic);
  if (strides.size() != n || pads.size() != 2 * n || more.size() != n || dilations.size() != n ||
      (!wanted.empty() && wanted.size() != n))
    return c.fail("strides, dilations, pads, output_padding or output_shape do not have " + std::to_string(n) +
                  " spatial axes");
  if (group < 1 || k[0] != x[1] || x[1] % group != 0)
    return c.fail("input " + shape_text(x) + " and weights " + shape_text(k) + " do not fit with group " +
                  std::to_string(group));
  if (c.has_input(2) && c.shape(2) != Shape{k[1] * group})
    return c.fail("bias " + shape_text(c.shape(2)) + " must be " + shape_text({k[1] * group}));
  if (n > 2) return c.decline("it has more than two spatial axes");
  if (automatic != "NOTSET" && automatic != "VALID" && automatic != "SAME_UPPER" && automatic != "SAME_LOWER")
    return c.fail("auto_pad \"" + automatic + "\" is none of NOTSET, VALID, SAME_UPPER, SAME_LOWER");
  Value weights = dilated_kernel(c, c.value(1), dilations);
  if (c.stopped()) return;
  k = c.shape_of(weights);
  kernel.assign(k.begin() + 2, k.end());
  std::vector<TransposedAxis> axes;
  for (std::size_t i = 0; i < n; ++i) {
    constexpr std::int64_t limit = 1 << 20;
    std::int64_t before = automatic == "VALID" ? 0 : pads[i], after = automatic == "VALID" ? 0 : pads[n + i];
    if (!wanted.empty() || automatic.starts_with("SAME")) {
      const std::int64_t length = wanted.empty() ? x[i + 2] * strides[i] : wanted[i];
      const std::int64_t total = strides[i] * (x[i + 2] - 1) + more[i] + kernel[i] - length;
      before = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      // What there is too little of stands behind.
      if (total < 0) before = 0;
      after = total - before;
    }
    for (const std::int64_t value : {strides[i], before, after, more[i], kernel[i], x[i + 2]})
      if (value > limit) return c.decline("a window is too large");
    if (strides[i] < 1) return c.fail("strides " + shape_text(strides) + " must be at least 1");
    if (before < 0 || more[i] < 0 || (after < 0 && wanted.empty())) return c.decline("a pad is negative");
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
  Value input = c.value(0);
  const bool flat = n == 1;
  if (flat) {
    x = with_unit_height(x);
    k = with_unit_height(k);
    input = c.reshape(input, x);
    weights = c.reshape(weights, k);
    axes.insert(axes.begin(), TransposedAxis{});
  }
  if (c.opset() < 10 && !c.stopped() && !c.graph().node(weights.node).weight_only)
    return c.decline("its kernel is computed, and Slice has no steps before opset 10");
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

/// The window of a pooling. None may lie in the padding, if `inside`.
Window read_pool(NodeContext& c, bool inside) {
  const Shape x = c.shape(0);
  if (x.size() < 3) c.fail("its input " + shape_text(x) + " has no spatial axes");
  if (c.stopped()) return {};
  if (!c.has_attribute("kernel_shape")) c.fail("it has no kernel_shape");
  const Window w = read_window(c, {x.begin() + 2, x.end()}, c.integer_list("kernel_shape", {}));
  if (c.stopped()) return w;
  for (std::size_t i = 0; inside && i < w.kernel.size(); ++i) {
    const std::int64_t reach = (w.kernel[i] - 1) * w.dilations[i];
    if (w.pads[i] > reach || w.pads[w.kernel.size() + i] > reach || x[i + 2] < w.dilations[i])
      c.decline("a window may lie in the padding entirely");
  }
  return w;
}

/// Axes `first` and the next one, or `first` alone, of a window over all.
Window part_of(const Window& w, std::size_t first, std::size_t count) {
  const std::size_t n = w.kernel.size();
  Window part;
  for (std::size_t i = first; i < first + count; ++i) {
    part.kernel.push_back(w.kernel[i]);
    part.strides.push_back(w.strides[i]);
    part.dilations.push_back(w.dilations[i]);
    part.pads.push_back(w.pads[i]);
  }
  for (std::size_t i = first; i < first + count; ++i) part.pads.push_back(w.pads[n + i]);
  return two_dimensional(part);
}

/// A pooling that can be done axis by axis: over the last two, then over each of the others, as images of which it is
/// one axis. `pool` is one of [n, c, h, w].
template <class Pool>
Value pooled(NodeContext& c, Value x, const Window& w, const Pool& pool) {
  const std::size_t n = w.kernel.size();
  if (c.stopped()) return {};
  if (n > 2 && c.symbolic()) {
    c.decline("its axes by themselves may depend on symbolic extents", Obstacle::symbolic);
    return {};
  }
  Shape shape = c.shape_of(x);
  const auto over = [&](std::size_t first, std::size_t count) {
    const std::span<const std::int64_t> extents(shape);
    const std::int64_t channels = volume(extents.subspan(1, first + 1));
    const std::int64_t height = count == 2 ? shape[first + 2] : 1, width = shape[first + 1 + count];
    const std::int64_t behind = volume(extents.subspan(first + 2 + count));
    // An axis with others behind it is the height of images whose width those are.
    Window part = part_of(w, first, count);
    Shape image = {shape[0], channels, height, width};
    if (count == 1 && behind > 1) {
      for (Shape* list : {&part.kernel, &part.strides, &part.dilations}) std::swap((*list)[0], (*list)[1]);
      part.pads = {part.pads[1], 0, part.pads[3], 0};
      image = {shape[0], channels, width, behind};
    }
    const Value out = pool(c.reshape(x, image), part);
    if (c.stopped()) return;
    const Shape made = c.shape_of(out);
    if (count == 2) shape[first + 2] = made[2];
    shape[first + 1 + count] = count == 1 && behind > 1 ? made[2] : made[3];
    x = c.reshape(out, shape);
  };
  const std::size_t last = n == 1 ? 1 : 2;
  over(n - last, last);
  for (std::size_t i = n - last; i-- > 0 && !c.stopped();) over(i, 1);
  return x;
}

}  // namespace

void max_pool(NodeContext& c) {
  c.ignore("storage_order");  // Concerns the indices only, an output that is not modelled.
  const Window w = read_pool(c, true);
  if (c.stopped()) return;
  c.output(
      0, pooled(c, c.value(0), w, [&](Value x, const Window& part) {
        return c.op(
            "max_pool2d", {x},
            {{"kernel", part.kernel}, {"strides", part.strides}, {"pads", part.pads}, {"dilations", part.dilations}});
      }));
}

namespace {

/// The share of the cells of each window that lie inside of an image, [h, w] of them.
std::vector<float> shares_inside(const Shape& image, const Window& w, const Shape& windows) {
  std::vector<float> shares;
  const auto inside = [&](std::size_t axis, std::int64_t at_window) {
    std::int64_t count = 0;
    for (std::int64_t u = 0; u < w.kernel[axis]; ++u) {
      const std::int64_t place = at_window * w.strides[axis] + u * w.dilations[axis] - w.pads[axis];
      count += place >= 0 && place < image[axis + 2] ? 1 : 0;
    }
    return static_cast<double>(count) / static_cast<double>(w.kernel[axis]);
  };
  for (std::int64_t y = 0; y < windows[2]; ++y)
    for (std::int64_t z = 0; z < windows[3]; ++z) shares.push_back(static_cast<float>(inside(0, y) * inside(1, z)));
  return shares;
}

/// The mean under a window with gaps: a convolution of each channel with a kernel of equal numbers.
Value dilated_mean(NodeContext& c, Value x, const Window& w, bool include) {
  if (c.stopped()) return {};
  const Shape image = c.shape_of(x);
  const Value kernel = c.op("pool_kernel", {}, {{"channels", image[1]}, {"kernel", w.kernel}});
  const Value sums =
      c.op("conv2d", {x, kernel}, {{"strides", w.strides}, {"pads", w.pads}, {"dilations", w.dilations}});
  if (c.stopped() || include || w.pads == Shape(4, 0)) return sums;
  const Shape windows = c.shape_of(sums);
  const Value shares = c.reals({windows[2], windows[3]}, shares_inside(image, w, windows));
  return c.op("div", {sums, c.broadcast(shares, windows)});
}

}  // namespace

void average_pool(NodeContext& c) {
  const bool include = c.integer("count_include_pad", 0) != 0;
  const Window w = read_pool(c, true);
  if (c.stopped()) return;
  if (w.grown && include) return c.decline("with ceil_mode and count_include_pad runtimes differ on the divisor");
  const bool dilated =
      std::any_of(w.dilations.begin(), w.dilations.end(), [](std::int64_t dilation) { return dilation != 1; });
  if (dilated && c.symbolic()) return c.decline("its divisors may depend on symbolic extents", Obstacle::symbolic);
  const char* const op = include ? "avg_pool2d_include" : "avg_pool2d_exclude";
  c.output(0, pooled(c, c.value(0), w, [&](Value x, const Window& part) {
             if (part.dilations != Shape{1, 1}) return dilated_mean(c, x, part, include);
             return c.op(op, {x}, {{"kernel", part.kernel}, {"strides", part.strides}, {"pads", part.pads}});
           }));
}

namespace {

/// A constant repeated to the shape of `x`.
Value number_like(NodeContext& c, Value x, double number) {
  return c.broadcast(c.splat({}, static_cast<float>(number)), c.shape_of(x));
}

/// The p-th root of what `sum` makes of |x|^p.
template <class Sum>
Value norm(NodeContext& c, Value x, std::int64_t p, const Sum& sum) {
  if (c.stopped()) return {};
  if (p == 1) return sum(c.op("abs", {x}));
  if (p == 2) return c.op("sqrt", {sum(c.op("mul", {x, x}))});
  const Value powers = c.op("pow", {c.op("abs", {x}), number_like(c, x, static_cast<double>(p))});
  const Value total = sum(powers);
  if (c.stopped()) return {};
  return c.op("pow", {total, number_like(c, total, 1 / static_cast<double>(p))});
}

std::int64_t order_of_norm(NodeContext& c) {
  const std::int64_t p = c.integer("p", 2);
  if (p < 1 || p > 1 << 20) c.fail("p is " + std::to_string(p) + ", not positive");
  return p;
}

}  // namespace

void norm_pool(NodeContext& c) {
  const std::int64_t p = order_of_norm(c);
  const Window w = read_pool(c, false);
  if (c.stopped()) return;
  const auto cells = static_cast<double>(volume(w.kernel));
  c.output(0, norm(c, c.value(0), p, [&](Value powers) {
             const Value means = pooled(c, powers, w, [&](Value x, const Window& part) {
               if (part.dilations != Shape{1, 1}) return dilated_mean(c, x, part, true);
               return c.op("avg_pool2d_include", {x},
                           {{"kernel", part.kernel}, {"strides", part.strides}, {"pads", part.pads}});
             });
             return c.stopped() ? means : c.op("mul", {means, number_like(c, means, cells)});
           }));
}

void global_norm_pool(NodeContext& c) {
  const std::int64_t p = order_of_norm(c);
  if (c.rank(0) < 3) return c.decline("its input has no spatial axes");
  c.output(0, norm(c, c.value(0), p, [&](Value powers) {
             return c.op("reduce_sum", {powers}, {{"axes", range_of(2 - c.rank(0), 0)}});
           }));
}

void global_max_pool(NodeContext& c) {
  if (c.rank(0) < 3) return c.decline("its input has no spatial axes");
  c.output(0, c.op("reduce_max", {c.value(0)}, {{"axes", range_of(2 - c.rank(0), 0)}}));
}

}  // namespace taso::import_handlers
