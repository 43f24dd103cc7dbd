/// How ONNX operators with a sliding window are imported: convolution, pooling, local normalisation.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

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

}  // namespace taso::import_handlers
