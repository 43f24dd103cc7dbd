/// The table of our operators that need code to be written: how each is in ONNX at the model's opset. What is a table
/// only is specs/onnx/*.map.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "graph/reals.h"
#include "onnx_io/export.h"
#include "onnx_io/mapped.h"

namespace taso {
namespace {

using Refs = std::vector<TensorRef>;

bool any_above_one(const Shape& values) {
  return std::any_of(values.begin(), values.end(), [](std::int64_t v) { return v != 1; });
}

Shape extents_from(const Shape& shape, std::size_t axis) {
  return {shape.begin() + static_cast<std::ptrdiff_t>(axis), shape.end()};
}

/// A list that is an attribute before an opset and an input from it on.
void emit_with_list(LoweringContext& c, const std::string& op_type, TensorRef input, TensorRef output,
                    const std::string& attribute, const Shape& list, std::int64_t input_since,
                    std::vector<OnnxAttribute> attributes = {}) {
  if (c.opset() >= input_since) return c.emit(op_type, {input, c.integers(list)}, output, std::move(attributes));
  attributes.emplace_back(attribute, list);
  c.emit(op_type, {input}, output, std::move(attributes));
}

void emit_reshape(LoweringContext& c, TensorRef input, const Shape& shape, TensorRef output) {
  // A 0 means "as in the input"; it stands for itself with allowzero only. (What a list that depends on sizes says is
  // found where these are written, onnx_io/symbolic_export.cpp.)
  const bool positive =
      std::all_of(shape.begin(), shape.end(), [&](std::int64_t extent) { return !c.is_number(extent) || extent > 0; });
  if (positive) return c.emit("Reshape", {input, c.integers(shape)}, output);
  if (c.opset() < 14) return c.fail("a tensor without elements cannot be reshaped before opset 14");
  c.emit("Reshape", {input, c.integers(shape)}, output, {{"allowzero", 1}});
}

void emit_reduce(LoweringContext& c, const std::string& op_type, TensorRef input, TensorRef output, const Shape& axes,
                 std::int64_t rank, std::int64_t input_since) {
  Shape from_front = axes;
  for (std::int64_t& axis : from_front) axis += rank;
  emit_with_list(c, op_type, input, output, "axes", from_front, input_since, {{"keepdims", 1}});
}

void binary(LoweringContext& c, const char* op_type) { c.emit(op_type, c.broadcasting_operands(), c.out()); }

void function(LoweringContext& c) { c.emit_function(c.node().op, c.in(0), c.out()); }

void reduce(LoweringContext& c, const char* op_type, std::int64_t input_since) {
  const Shape& axes = c.attributes().integers("axes");
  if (axes.empty()) return c.emit("Identity", {c.in(0)}, c.out());
  emit_reduce(c, op_type, c.in(0), c.out(), axes, c.rank(0), input_since);
}

void clip(LoweringContext& c) {
  const double low = c.attributes().real("min"), high = c.attributes().real("max");
  const bool has_low = low != -std::numeric_limits<double>::infinity();
  const bool has_high = high != std::numeric_limits<double>::infinity();
  if (c.opset() < 11) {
    std::vector<OnnxAttribute> attributes;
    if (has_low) attributes.emplace_back("min", static_cast<float>(low));
    if (has_high) attributes.emplace_back("max", static_cast<float>(high));
    return c.emit("Clip", {c.in(0)}, c.out(), std::move(attributes));
  }
  Refs inputs = {c.in(0)};
  if (has_low || has_high) inputs.push_back(has_low ? c.scalar(static_cast<float>(low)) : TensorRef{});
  if (has_high) inputs.push_back(c.scalar(static_cast<float>(high)));
  c.emit("Clip", std::move(inputs), c.out());
}

std::vector<OnnxAttribute> conv_attributes(LoweringContext& c) {
  const Shape& x = c.shape(0);
  const Shape& k = c.shape(1);
  const bool known = c.are_numbers({x[1], k[1]});
  if (!known) c.fail("its groups depend on symbolic extents");
  return {{"dilations", c.attributes().integers("dilations")},
          {"group", !known || k[1] == 0 ? 1 : x[1] / k[1]},
          {"kernel_shape", extents_from(k, 2)},
          {"pads", c.attributes().integers("pads")},
          {"strides", c.attributes().integers("strides")}};
}

void pool(LoweringContext& c, const std::string& op_type, std::vector<OnnxAttribute> attributes) {
  attributes.emplace_back("kernel_shape", c.attributes().integers("kernel"));
  attributes.emplace_back("pads", c.attributes().integers("pads"));
  attributes.emplace_back("strides", c.attributes().integers("strides"));
  c.emit(op_type, {c.in(0)}, c.out(), std::move(attributes));
}

void max_pool(LoweringContext& c) {
  const Shape& dilations = c.attributes().integers("dilations");
  if (!any_above_one(dilations)) return pool(c, "MaxPool", {});
  if (c.opset() < 10) return c.fail("MaxPool has no dilations before opset 10");
  pool(c, "MaxPool", {{"dilations", dilations}});
}

void matmul_bias_act(LoweringContext& c) {
  if (c.rank(0) == 2 && c.rank(1) == 2) {
    if (const auto weights = c.transposed_constant(1))
      return c.emit_activated("Gemm", {c.in(0), *weights, c.in(2)}, {{"transB", 1}});
    return c.emit_activated("Gemm", {c.in(0), c.in(1), c.in(2)}, {});
  }
  const TensorRef product = c.temporary();
  c.emit("MatMul", {c.in(0), c.in(1)}, product);
  c.emit_activated("Add", {product, c.in(2)}, {});
}

void emit_pad(LoweringContext& c, TensorRef input, TensorRef output, const Shape& before, const Shape& after,
              float value) {
  Shape pads = before;
  pads.insert(pads.end(), after.begin(), after.end());
  if (c.opset() < 11) return c.emit("Pad", {input}, output, {{"mode", "constant"}, {"pads", pads}, {"value", value}});
  Refs inputs = {input, c.integers(pads)};
  if (value != 0) inputs.push_back(c.scalar(value));
  c.emit("Pad", std::move(inputs), output, {{"mode", "constant"}});
}

void enlarge(LoweringContext& c) {
  const Shape& margin = c.attributes().integers("margin");
  emit_pad(c, c.in(0), c.out(), {0, 0, margin[0], margin[1]}, {0, 0, margin[2], margin[3]}, 0);
}

void pad_channels(LoweringContext& c) {
  emit_pad(c, c.in(0), c.out(), {0, 0, 0, 0},
           {c.attributes().integer("outputs"), c.attributes().integer("inputs"), 0, 0}, 0);
}

/// A kernel that is no constant. Of `factor` blocks, each followed by `factor` blocks of zeros, the first factor^2 are
/// the rows of a matrix with the blocks on its diagonal: block p stands at p * (factor + 1), which is row p, column p.
void regroup(LoweringContext& c) {
  const std::int64_t groups = c.attributes().integer("groups"), factor = c.attributes().integer("factor");
  const Shape& k = c.shape(0);
  if (!c.are_numbers(k)) return c.fail("its kernel depends on symbolic extents");
  const std::int64_t outputs = k[0] / (groups * factor), window = k[2] * k[3], block = outputs * k[1] * window;
  const TensorRef blocks = c.temporary(), padded = c.temporary(), flat = c.temporary(), diagonal = c.temporary();
  const TensorRef matrix = c.temporary(), ordered = c.temporary();
  emit_reshape(c, c.in(0), {groups, factor, 1, block}, blocks);
  emit_pad(c, blocks, padded, {0, 0, 0, 0}, {0, 0, factor, 0}, 0);
  emit_reshape(c, padded, {groups, factor * (factor + 1), block}, flat);
  if (c.opset() >= 10)
    c.emit("Slice", {flat, c.integers({0}), c.integers({factor * factor}), c.integers({1})}, diagonal);
  else
    c.emit("Slice", {flat}, diagonal, {{"axes", Shape{1}}, {"ends", Shape{factor * factor}}, {"starts", Shape{0}}});
  emit_reshape(c, diagonal, {groups, factor, factor, outputs, k[1], window}, matrix);
  c.emit("Transpose", {matrix}, ordered, {{"perm", Shape{0, 1, 3, 2, 4, 5}}});
  emit_reshape(c, ordered, c.result_shape(), c.out());
}

void split(LoweringContext& c) {
  Refs outputs;
  for (std::uint32_t i = 0; i < c.node().outputs.size(); ++i) outputs.push_back(c.out(i));
  const Shape& sizes = c.attributes().integers("sizes");
  if (c.opset() < 13)
    return c.emit_all("Split", {c.in(0)}, std::move(outputs), {{"axis", c.axis(0)}, {"split", sizes}});
  c.emit_all("Split", {c.in(0), c.integers(sizes)}, std::move(outputs), {{"axis", c.axis(0)}});
}

void concat(LoweringContext& c) {
  Refs inputs;
  for (std::size_t i = 0; i < c.node().inputs.size(); ++i) inputs.push_back(c.in(i));
  c.emit("Concat", std::move(inputs), c.out(), {{"axis", c.axis(0)}});
}

void slice(LoweringContext& c) {
  const Shape& starts = c.attributes().integers("starts");
  const Shape& sizes = c.attributes().integers("sizes");
  const Shape& steps = c.attributes().integers("steps");
  Shape begins, ends, axes, strides;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (starts[i] == 0 && sizes[i] == c.shape(0)[i] && steps[i] == 1) continue;
    begins.push_back(starts[i]);
    if (!c.are_numbers({starts[i], sizes[i], steps[i]})) {
      // Of other steps it would have to be known whether there are elements.
      if (steps[i] != 1) return c.fail("steps of a slice that depends on symbolic extents");
      ends.push_back(c.sum(starts[i], sizes[i]));
    } else {
      const std::int64_t end = starts[i] + (sizes[i] == 0 ? 0 : (sizes[i] - 1) * steps[i] + (steps[i] > 0 ? 1 : -1));
      ends.push_back(end < 0 ? std::numeric_limits<std::int64_t>::min() : end);
    }
    axes.push_back(static_cast<std::int64_t>(i));
    strides.push_back(steps[i]);
  }
  if (axes.empty()) return c.emit("Identity", {c.in(0)}, c.out());
  if (c.opset() >= 10) {
    Refs inputs = {c.in(0), c.integers(begins), c.integers(ends), c.integers(axes)};
    if (any_above_one(strides)) inputs.push_back(c.integers(strides));
    return c.emit("Slice", std::move(inputs), c.out());
  }
  if (any_above_one(strides)) return c.fail("Slice has no steps before opset 10");
  c.emit("Slice", {c.in(0)}, c.out(), {{"axes", axes}, {"ends", ends}, {"starts", begins}});
}

void broadcast(LoweringContext& c) {
  if (c.opset() >= 8) return c.emit("Expand", {c.in(0), c.integers(c.result_shape())}, c.out());
  c.fail("Expand is not in opset 7");
}

void softmax(LoweringContext& c) {
  const std::int64_t axis = c.axis(0), rank = c.rank(0);
  const Shape& x = c.shape(0);
  // Before opset 13 all axes from `axis` on are normalised together.
  if (c.opset() >= 13 || !any_above_one(extents_from(x, static_cast<std::size_t>(axis) + 1)))
    return c.emit("Softmax", {c.in(0)}, c.out(), {{"axis", axis}});
  Shape perm(static_cast<std::size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[static_cast<std::size_t>(axis)], perm.back());
  const TensorRef moved = c.temporary(), normalized = c.temporary();
  c.emit("Transpose", {c.in(0)}, moved, {{"perm", perm}});
  c.emit("Softmax", {moved}, normalized, {{"axis", rank - 1}});
  c.emit("Transpose", {normalized}, c.out(), {{"perm", perm}});
}

void layer_norm(LoweringContext& c) {
  const auto epsilon = static_cast<float>(c.attributes().real("epsilon"));
  if (c.opset() >= 17)
    return c.emit("LayerNormalization", {c.in(0), c.in(1), c.in(2)}, c.out(), {{"axis", -1}, {"epsilon", epsilon}});
  const TensorRef mean = c.temporary(), centered = c.temporary(), square = c.temporary(), variance = c.temporary();
  const TensorRef guarded = c.temporary(), deviation = c.temporary(), unit = c.temporary(), scaled = c.temporary();
  emit_reduce(c, "ReduceMean", c.in(0), mean, {-1}, c.rank(0), 18);
  c.emit("Sub", {c.in(0), mean}, centered);
  c.emit("Mul", {centered, centered}, square);
  emit_reduce(c, "ReduceMean", square, variance, {-1}, c.rank(0), 18);
  c.emit("Add", {variance, c.scalar(epsilon)}, guarded);
  c.emit("Sqrt", {guarded}, deviation);
  const bool plain = c.is_filled_with(1, 1) && c.is_filled_with(2, 0);
  c.emit("Div", {centered, deviation}, plain ? c.out() : unit);
  if (plain) return;
  c.emit("Mul", {unit, c.in(1)}, scaled);
  c.emit("Add", {scaled, c.in(2)}, c.out());
}

/// From opset 23 on one node; before, as exporters spell it.
void rms_norm(LoweringContext& c) {
  const auto epsilon = static_cast<float>(c.attributes().real("epsilon"));
  if (c.opset() >= 23)
    return c.emit("RMSNormalization", {c.in(0), c.in(1)}, c.out(), {{"axis", -1}, {"epsilon", epsilon}});
  const TensorRef square = c.temporary(), mean = c.temporary(), guarded = c.temporary(), root = c.temporary();
  const TensorRef unit = c.temporary();
  c.emit("Pow", {c.in(0), c.scalar(2.0F)}, square);
  emit_reduce(c, "ReduceMean", square, mean, {-1}, c.rank(0), 18);
  c.emit("Add", {mean, c.scalar(epsilon)}, guarded);
  c.emit("Sqrt", {guarded}, root);
  const bool plain = c.is_filled_with(1, 1);
  c.emit("Div", {c.in(0), root}, plain ? c.out() : unit);
  if (!plain) c.emit("Mul", {unit, c.in(1)}, c.out());
}

/// One node where there is one; before, as exporters spell it: every group as a channel of images without height.
void group_norm(LoweringContext& c) {
  const auto epsilon = static_cast<float>(c.attributes().real("epsilon"));
  const std::int64_t groups = c.attributes().integer("groups"), rank = c.rank(0);
  if (rank >= 3 && c.shape(0)[1] == groups)
    return c.emit_activated("InstanceNormalization", {c.in(0), c.in(1), c.in(2)}, {{"epsilon", epsilon}});
  if (rank >= 3 && c.opset() >= 21)
    return c.emit_activated("GroupNormalization", {c.in(0), c.in(1), c.in(2)},
                            {{"epsilon", epsilon}, {"num_groups", groups}});
  if (!c.are_numbers({c.shape(0)[1], groups})) return c.fail("its number of channels is symbolic");
  const std::int64_t channels = c.shape(0)[1];
  const bool scales = !c.is_filled_with(1, 1), shifts = !c.is_filled_with(2, 0);
  const std::string& act = c.attributes().symbol("act");
  const TensorRef flat = c.temporary(), unit = c.temporary();
  // What is made last is the result, or what the function is of.
  const TensorRef result = act == "identity" ? c.out() : c.temporary();
  const TensorRef scaled = shifts ? c.temporary() : result, standard = scales ? c.temporary() : scaled;
  c.emit("Reshape", {c.in(0), c.integers({0, groups, -1})}, flat);
  c.emit("InstanceNormalization", {flat, c.filled({groups}, 1.0F), c.filled({groups}, 0.0F)}, unit,
         {{"epsilon", epsilon}});
  emit_reshape(c, unit, c.result_shape(), standard);
  const auto of_channels = [&](std::size_t i) {
    Shape extents(static_cast<std::size_t>(rank) - 1, 1);
    extents[0] = channels;
    const TensorRef reshaped = c.temporary();
    emit_reshape(c, c.in(i), extents, reshaped);
    return reshaped;
  };
  if (scales) c.emit("Mul", {standard, of_channels(1)}, scaled);
  if (shifts) c.emit("Add", {scaled, of_channels(2)}, result);
  if (act != "identity") c.emit_function(act, result, c.out());
}

/// Input `i`, a table of positions, as it broadcasts to the heads: with the axes `shape`, but leading extents of 1.
TensorRef table_of_heads(LoweringContext& c, std::size_t i, const Shape& shape) {
  const auto stripped = [](const Shape& extents) {
    return Shape(std::find_if(extents.begin(), extents.end(), [](std::int64_t e) { return e != 1; }), extents.end());
  };
  const auto fits = [&](const Shape& own) { return own.size() <= shape.size() && stripped(own) == stripped(shape); };
  if (const std::optional<Value> whole = c.reshaped(i); whole && fits(c.type(*whole).shape)) return c.read(*whole);
  if (fits(c.shape(i))) return c.in(i);
  const TensorRef table = c.temporary();
  emit_reshape(c, c.in(i), shape, table);
  return table;
}

/// The node that ONNX has from opset 23 on, of tables with one column for each pair.
void rotary_embedding_node(LoweringContext& c, std::int64_t pairs) {
  const Shape& x = c.shape(0);
  std::vector<OnnxAttribute> attributes;
  if (2 * pairs != x[3]) attributes.emplace_back("rotary_embedding_dim", 2 * pairs);
  const auto table = [&](std::size_t i) {
    if (c.rank(i) == 3) return c.in(i);
    const TensorRef result = c.temporary();
    c.emit("Expand", {c.in(i), c.integers({x[0], c.shape(i)[0], pairs})}, result);
    return result;
  };
  if (c.attributes().integer("axis") == -2)
    return c.emit("RotaryEmbedding", {c.in(0), table(1), table(2)}, c.out(), std::move(attributes));
  const TensorRef flat = c.temporary(), turned = c.temporary();
  attributes.emplace_back("num_heads", x[2]);
  emit_reshape(c, c.in(0), {x[0], x[1], x[2] * x[3]}, flat);
  c.emit("RotaryEmbedding", {flat, table(1), table(2)}, turned, std::move(attributes));
  emit_reshape(c, turned, x, c.out());
}

/// One node where there is one; else as exporters spell it.
void rotary_embedding(LoweringContext& c) {
  const Shape& x = c.shape(0);
  const Shape& table = c.shape(1);
  const std::int64_t columns = c.attributes().integer("columns"), behind = -c.attributes().integer("axis") - 2;
  if (!c.are_numbers({x.back(), table.back()})) return c.fail("its number of pairs is symbolic");
  const std::int64_t pairs = table.back() / columns, rest = x.back() - 2 * pairs;
  const ElementType element = c.node().outputs[0].element;
  if (c.opset() >= 23 && columns == 1 && x.size() == 4 && pairs > 0 && element != ElementType::f64 &&
      (behind == 0 || c.are_numbers({x[2]})))
    return rotary_embedding_node(c, pairs);

  // The axes of heads stand before the positions or behind them.
  Shape of_heads(x.size(), 1);
  const std::size_t leading = table.size() - 2, position = x.size() - 2 - static_cast<std::size_t>(behind);
  for (std::size_t i = 0; i < leading; ++i) of_heads[position - 1 - leading + (behind == 0 ? 0 : 1) + i] = table[i];
  of_heads[position] = table[leading];
  of_heads.back() = table.back();
  const TensorRef cosines = table_of_heads(c, 1, of_heads), sines = table_of_heads(c, 2, of_heads);

  const auto pieces_of = [&](TensorRef whole, const Shape& sizes) {
    Refs pieces;
    for (std::size_t i = 0; i < sizes.size(); ++i) pieces.push_back(c.temporary());
    const std::int64_t axis = c.rank(0) - 1;
    if (c.opset() < 13)
      c.emit_all("Split", {whole}, pieces, {{"axis", axis}, {"split", sizes}});
    else
      c.emit_all("Split", {whole, c.integers(sizes)}, pieces, {{"axis", axis}});
    return pieces;
  };
  const auto combined = [&](const char* op_type, TensorRef a, TensorRef b) {
    const TensorRef result = c.temporary();
    c.emit(op_type, {a, b}, result);
    return result;
  };
  const auto join = [&](Refs pieces, TensorRef output) {
    c.emit("Concat", std::move(pieces), output, {{"axis", c.rank(0) - 1}});
  };
  if (columns == 1) {
    Shape sizes = {pairs, pairs};
    if (rest != 0) sizes.push_back(rest);
    Refs pieces = pieces_of(c.in(0), sizes);
    const TensorRef a = pieces[0], b = pieces[1];
    pieces[0] = combined("Sub", combined("Mul", a, cosines), combined("Mul", b, sines));
    pieces[1] = combined("Add", combined("Mul", b, cosines), combined("Mul", a, sines));
    return join(std::move(pieces), c.out());
  }
  Refs parts = rest == 0 ? Refs{c.in(0)} : pieces_of(c.in(0), {2 * pairs, rest});
  const Refs halves = pieces_of(parts[0], {pairs, pairs});
  const TensorRef negative = c.temporary(), exchanged = c.temporary();
  c.emit("Neg", {halves[1]}, negative);
  join({negative, halves[0]}, exchanged);
  const TensorRef turned = rest == 0 ? c.out() : c.temporary();
  c.emit("Add", {combined("Mul", parts[0], cosines), combined("Mul", exchanged, sines)}, turned);
  if (rest == 0) return;
  parts[0] = turned;
  join(std::move(parts), c.out());
}

void batch_norm(LoweringContext& c) {
  c.emit("BatchNormalization", {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)}, c.out(),
         {{"epsilon", static_cast<float>(c.attributes().real("epsilon"))}});
}

/// Of a part of a table the rest is padding.
void gather_slices(LoweringContext& c) {
  const std::int64_t before = c.attributes().integer("before"), after = c.attributes().integer("after");
  TensorRef table = c.in(0);
  if (before != 0 || after != 0) {
    Shape in_front(static_cast<std::size_t>(c.rank(0)), 0), behind = in_front;
    in_front[static_cast<std::size_t>(c.axis(0))] = before;
    behind[static_cast<std::size_t>(c.axis(0))] = after;
    table = c.temporary();
    emit_pad(c, c.in(0), table, in_front, behind, 0);
  }
  c.emit("Gather", {table, c.in(1)}, c.out(), {{"axis", c.axis(0)}});
}

void gather_elements(LoweringContext& c) {
  if (c.opset() < 11) return c.fail("GatherElements is not in opset " + std::to_string(c.opset()));
  c.emit("GatherElements", {c.in(0), c.in(1)}, c.out(), {{"axis", c.axis(0)}});
}

void cumulative_sum(LoweringContext& c) {
  if (c.opset() < 11) return c.fail("CumSum is not in opset " + std::to_string(c.opset()));
  c.emit("CumSum", {c.in(0), c.integers({c.axis(0)})}, c.out());
}

/// A recurrent layer, one node with all its directions. Biases and initial states that are zero are left out.
void recurrent_layer(LoweringContext& c, const std::string& op_type) {
  const std::int64_t directions = c.shape(1)[0], hidden = c.shape(2)[2], forward = c.attributes().integer("forward");
  if (!c.are_numbers({directions, hidden, forward})) return c.fail("its directions or states are of symbolic extents");
  std::vector<OnnxAttribute> attributes = {{"direction", directions == 2 ? "bidirectional"
                                                         : forward == 1  ? "forward"
                                                                         : "reverse"},
                                           {"hidden_size", hidden}};
  if (op_type == "GRU") attributes.emplace_back("linear_before_reset", c.attributes().integer("linear_before_reset"));
  if (op_type == "RNN" && c.attributes().symbol("act") != "tanh") {
    std::string name = c.attributes().symbol("act");
    if (name != "relu" && name != "sigmoid") return c.fail("RNN has no function " + name);
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
    attributes.emplace_back("activations", std::vector<std::string>(static_cast<std::size_t>(directions), name));
  }
  Refs inputs = {c.in(0), c.in(1), c.in(2)};
  inputs.push_back(c.is_zero(3) ? TensorRef{} : c.in(3));
  inputs.push_back({});
  for (std::size_t i = 4; i < c.node().inputs.size(); ++i) inputs.push_back(c.is_zero(i) ? TensorRef{} : c.in(i));
  while (inputs.back().kind == TensorRef::Kind::absent) inputs.pop_back();

  Refs outputs;
  std::vector<std::pair<TensorRef, std::uint32_t>> with_an_axis_less;
  for (std::uint32_t port = 0; port < c.node().outputs.size(); ++port) {
    const OutputUse use = port < c.uses().size() ? c.uses()[port] : OutputUse{true, std::nullopt};
    if (!use.read) {
      outputs.emplace_back();
    } else if (port == 0) {
      outputs.push_back(c.out(0));
    } else if (use.without_first_axis) {
      outputs.push_back(c.take_over(*use.without_first_axis));
    } else {
      outputs.push_back(c.temporary());
      with_an_axis_less.emplace_back(outputs.back(), port);
    }
  }
  while (outputs.size() > 1 && outputs.back().kind == TensorRef::Kind::absent) outputs.pop_back();
  c.emit_all(op_type, std::move(inputs), std::move(outputs), std::move(attributes));
  for (const auto& [state, port] : with_an_axis_less) emit_reshape(c, state, c.node().outputs[port].shape, c.out(port));
}

void arg_max(LoweringContext& c) {
  std::vector<OnnxAttribute> attributes = {{"axis", c.axis(0)}, {"keepdims", 1}};
  if (const std::int64_t last = c.attributes().integer("last"); last != 0) {
    if (c.opset() < 12) return c.fail("ArgMax takes the first of equal elements before opset 12");
    attributes.emplace_back("select_last_index", last);
  }
  c.emit("ArgMax", {c.in(0)}, c.out(), std::move(attributes));
}

void is_inf(LoweringContext& c) {
  if (c.opset() < 10) return c.fail("IsInf is not in opset " + std::to_string(c.opset()));
  c.emit("IsInf", {c.in(0)}, c.out(),
         {{"detect_negative", c.attributes().integer("negative")},
          {"detect_positive", c.attributes().integer("positive")}});
}

/// QuantizeLinear, DequantizeLinear; `element`: of the integers.
void quantization(LoweringContext& c, const std::string& type, ElementType element, bool by_channels) {
  const bool is_wide = size_of(element) == 2;
  const std::int64_t first = is_wide ? 21 : by_channels ? 13 : 10;
  if (c.opset() < first) return c.fail(type + " has no such form in opset " + std::to_string(c.opset()));
  std::vector<OnnxAttribute> attributes;
  if (by_channels) attributes.emplace_back("axis", c.axis(0));
  c.emit(type, {c.in(0), c.in(1), c.in(2)}, c.out(), std::move(attributes));
}
void quantize(LoweringContext& c, bool by_channels) {
  quantization(c, "QuantizeLinear", c.node().outputs[0].element, by_channels);
}
void dequantize(LoweringContext& c, bool by_channels) {
  quantization(c, "DequantizeLinear", c.type_at_a_sample(c.in(0).value).element, by_channels);
}

void select(LoweringContext& c) {
  if (c.opset() < 9) return c.fail("Where is not in opset " + std::to_string(c.opset()));
  c.emit("Where", c.broadcasting_operands(), c.out());
}

/// Operators without inputs: their values are folded, never written as nodes.
void only_folded(LoweringContext& c) { c.fail("its value is a constant and should have been folded"); }

const std::vector<ExportRow> rows = {
    {"apply", [](LoweringContext& c) { c.emit_function(c.attributes().symbol("act"), c.in(0), c.out()); }},
    {"arg_max", arg_max},
    {"avg_pool2d_exclude",
     [](LoweringContext& c) {
       pool(c, "AveragePool", {{"count_include_pad", 0}});
     }},
    {"avg_pool2d_include",
     [](LoweringContext& c) {
       pool(c, "AveragePool", {{"count_include_pad", 1}});
     }},
    {"batch_norm", batch_norm},
    {"broadcast", broadcast},
    {"cast",
     [](LoweringContext& c) {
       c.emit("Cast", {c.in(0)}, c.out(), {{"to", std::int64_t{data_type_of(c.node().outputs[0].element)}}});
     }},
    {"clip", clip},
    {"concat", concat},
    {"conv2d",
     [](LoweringContext& c) {
       c.emit("Conv", {c.in(0), c.in(1)}, c.out(), conv_attributes(c));
     }},
    {"conv2d_bias_act",
     [](LoweringContext& c) {
       c.emit_activated("Conv", {c.in(0), c.in(1), c.in(2)}, conv_attributes(c));
     }},
    {"conv2d_bias_add_act",
     [](LoweringContext& c) {
       const TensorRef convolved = c.temporary();
       c.emit("Conv", {c.in(0), c.in(1), c.in(2)}, convolved, conv_attributes(c));
       c.emit_activated("Add", {convolved, c.in(3)}, {});
     }},
    {"conv_identity", only_folded},
    {"cumulative_sum", cumulative_sum},
    {"dequantize_channels", [](LoweringContext& c) { dequantize(c, true); }},
    {"dequantize_linear", [](LoweringContext& c) { dequantize(c, false); }},
    {"enlarge", enlarge},
    {"fill", only_folded},
    {"gather", gather_slices},
    {"gather_elements", gather_elements},
    {"gelu", function},
    {"gelu_tanh", function},
    {"group_norm", group_norm},
    {"gru", [](LoweringContext& c) { recurrent_layer(c, "GRU"); }, true},
    {"hard_sigmoid", function},
    {"hard_swish", function},
    {"is_inf", is_inf},
    {"layer_norm", layer_norm},
    {"lstm", [](LoweringContext& c) { recurrent_layer(c, "LSTM"); }, true},
    {"matmul",
     [](LoweringContext& c) {
       c.emit("MatMul", {c.in(0), c.in(1)}, c.out());
     }},
    {"matmul_bias_act", matmul_bias_act},
    {"matrix_identity", only_folded},
    {"max_pool2d", max_pool},
    {"maximum", [](LoweringContext& c) { binary(c, "Max"); }},
    {"ones", only_folded},
    {"pad",
     [](LoweringContext& c) {
       emit_pad(c, c.in(0), c.out(), c.attributes().integers("before"), c.attributes().integers("after"),
                static_cast<float>(c.attributes().real("value")));
     }},
    {"pad_channels", pad_channels},
    {"pool_kernel", only_folded},
    {"pow", [](LoweringContext& c) { binary(c, "Pow"); }},
    {"quantize_channels", [](LoweringContext& c) { quantize(c, true); }},
    {"quantize_linear", [](LoweringContext& c) { quantize(c, false); }},
    {"quick_gelu", function},
    {"reduce_max", [](LoweringContext& c) { reduce(c, "ReduceMax", 18); }},
    {"reduce_mean", [](LoweringContext& c) { reduce(c, "ReduceMean", 18); }},
    {"reduce_prod", [](LoweringContext& c) { reduce(c, "ReduceProd", 18); }},
    {"reduce_sum", [](LoweringContext& c) { reduce(c, "ReduceSum", 13); }},
    {"regroup", regroup},
    {"reshape", [](LoweringContext& c) { emit_reshape(c, c.in(0), c.result_shape(), c.out()); }},
    {"rms_norm", rms_norm},
    {"rnn", [](LoweringContext& c) { recurrent_layer(c, "RNN"); }, true},
    {"rotary_embedding", rotary_embedding},
    {"select", select},
    {"silu", function},
    {"slice", slice},
    {"smul",
     [](LoweringContext& c) {
       c.emit("Mul", {c.in(0), c.in(1)}, c.out());
     }},
    {"softmax", softmax},
    {"split", split},
    {"transpose",
     [](LoweringContext& c) {
       c.emit("Transpose", {c.in(0)}, c.out(), {{"perm", c.attributes().integers("perm")}});
     }},
    {"variadic_sum",
     [](LoweringContext& c) {
       if (c.opset() < 8) return c.fail("Sum does not broadcast before opset 8");
       binary(c, "Sum");
     }},
};

}  // namespace

const std::vector<ExportRow>& export_rows() { return rows; }

const ExportRow* find_export_row(std::string_view op) {
  static const bool sorted = std::is_sorted(
      rows.begin(), rows.end(), [](const ExportRow& a, const ExportRow& b) { return std::string_view(a.op) < b.op; });
  TASO_CHECK(sorted, "the export table is not in the order of names");
  const auto place = std::lower_bound(rows.begin(), rows.end(), op,
                                      [](const ExportRow& row, std::string_view name) { return row.op < name; });
  return place != rows.end() && place->op == op ? &*place : nullptr;
}

std::int64_t LoweringContext::sum(std::int64_t a, std::int64_t b) {
  const std::int64_t list[] = {a, b};
  const Expected<std::int64_t> result = sum_of_sizes(list, symbolic_ == nullptr ? nullptr : symbolic_->sizes);
  if (!result) fail(result.error().message);
  return result ? *result : 0;
}

TensorType LoweringContext::type_at_a_sample(Value value) const {
  TensorType type = graph_->type(value);
  if (symbolic_ != nullptr)
    for (std::int64_t& extent : type.shape) extent = symbolic_->sizes->at(extent, 0).value_or(extent);
  return type;
}

bool LoweringContext::are_numbers(const Shape& list) const {
  return std::all_of(list.begin(), list.end(), [&](std::int64_t size) { return is_number(size); });
}

bool LoweringContext::is_zero(std::size_t i) const { return is_made_of_zeros(*graph_, node().inputs[i]); }

std::optional<double> LoweringContext::number(Value value) const {
  const Node& node = graph_->node(value.node);
  if (node.kind != NodeKind::constant || !is_constant(value)) return std::nullopt;
  const TensorType& type = node.constant->type();
  if (!is_real(type.element) || type.elements() != 1 || !node.constant->has_data()) return std::nullopt;
  return node.constant->to_reals().at(0);
}

std::vector<TensorRef> LoweringContext::broadcasting_operands() {
  auto stripped = [](const Shape& shape) {
    return Shape(std::find_if(shape.begin(), shape.end(), [](std::int64_t e) { return e != 1; }), shape.end());
  };
  // The tensor that a broadcast repeats, and before it a reshape that only takes leading extents of 1 away.
  auto source = [&](Value value) {
    const Node* producer = &graph_->node(value.node);
    if (!producer->is_op("broadcast")) return value;
    value = producer->inputs[0];
    producer = &graph_->node(value.node);
    if (!producer->is_op("reshape")) return value;
    const Shape& before = graph_->type(producer->inputs[0]).shape;
    const bool same = stripped(before) == stripped(graph_->type(value).shape) && before.size() <= result_shape().size();
    return same ? producer->inputs[0] : value;
  };
  auto fits = [&](const std::vector<Value>& operands) {
    const std::size_t rank = result_shape().size();
    if (std::none_of(operands.begin(), operands.end(),
                     [&](const Value& operand) { return graph_->type(operand).shape.size() == rank; }))
      return false;
    Shape common(rank, 1);
    for (const Value& operand : operands) {
      const Shape& own = graph_->type(operand).shape;
      for (std::size_t i = 0; i < own.size(); ++i) {
        std::int64_t& extent = common[common.size() - own.size() + i];
        if (own[i] != 1) extent = own[i];
      }
    }
    return common == result_shape();
  };
  std::vector<Value> operands = node().inputs;
  for (std::size_t i = operands.size(); i-- > 0;) {
    std::vector<Value> trial = operands;
    trial[i] = source(operands[i]);
    if (fits(trial)) operands = trial;
  }
  std::vector<TensorRef> refs;
  refs.reserve(operands.size());
  for (const Value& operand : operands) refs.push_back(of(operand));
  return refs;
}

std::optional<TensorRef> LoweringContext::transposed_constant(std::size_t i) {
  const Node& producer = graph_->node(node().inputs[i].node);
  if (!producer.is_op("transpose") || producer.outputs[0].shape.size() != 2 ||
      producer.attributes.integers("perm") != Shape{1, 0} ||
      graph_->node(producer.inputs[0].node).kind != NodeKind::constant)
    return std::nullopt;
  return of(producer.inputs[0]);
}

TensorRef LoweringContext::integers(const std::vector<std::int64_t>& values) {
  constants_->push_back(symbolic_ != nullptr
                            ? symbolic_->constants->list(values)
                            : ConstantData::of_integers({static_cast<std::int64_t>(values.size())}, values));
  return {TensorRef::Kind::constant, {}, constants_->size() - 1};
}

TensorRef LoweringContext::filled(const Shape& shape, float value) {
  const auto number = static_cast<double>(value);
  const ElementType made = node().outputs[0].element, type = is_real(made) ? made : ElementType::f32;
  if (!is_in_range(number, type))
    fail("the number " + to_string(AttributeValue(number)) + " is beyond the range of " + to_string(type));
  const std::vector<double> numbers(static_cast<std::size_t>(volume(shape)), number);
  constants_->push_back(ConstantData::of_reals({type, shape, true}, numbers));
  return {TensorRef::Kind::constant, {}, constants_->size() - 1};
}

void LoweringContext::emit_function(const std::string& name, TensorRef input, TensorRef output) {
  if (maps_->write_function(*this, name, input, output, MapWriter::Lines::onnx)) return;
  if (name == "identity") return emit("Identity", {input}, output);
  if (name == "square") return emit("Mul", {input, input}, output);
  if (name == "hard_sigmoid") return emit("HardSigmoid", {input}, output, {{"alpha", 1.0F / 6}, {"beta", 0.5F}});
  if (name == "hard_swish") {
    const TensorRef gate = temporary();
    emit("HardSigmoid", {input}, gate, {{"alpha", 1.0F / 6}, {"beta", 0.5F}});
    return emit("Mul", {input, gate}, output);
  }
  if (name == "silu") {
    if (opset() >= 24) return emit("Swish", {input}, output);
    const TensorRef gate = temporary();
    emit("Sigmoid", {input}, gate);
    return emit("Mul", {input, gate}, output);
  }
  if (name == "quick_gelu") {
    if (opset() >= 24) return emit("Swish", {input}, output, {{"alpha", 1.702F}});
    const TensorRef steeper = temporary(), gate = temporary();
    emit("Mul", {input, scalar(1.702F)}, steeper);
    emit("Sigmoid", {steeper}, gate);
    return emit("Mul", {input, gate}, output);
  }
  if (name == "gelu_tanh") return emit_tanh_gelu(input, output);
  if (name == "gelu") {
    if (opset() >= 20) return emit("Gelu", {input}, output);
    if (opset() < 9) return fail("Erf is not in opset " + std::to_string(opset()));
    const TensorRef scaled = temporary(), error = temporary(), raised = temporary(), product = temporary();
    emit("Div", {input, scalar(std::sqrt(2.0F))}, scaled);
    emit("Erf", {scaled}, error);
    emit("Add", {error, scalar(1.0F)}, raised);
    emit("Mul", {input, raised}, product);
    return emit("Mul", {product, scalar(0.5F)}, output);
  }
  if (maps_->write_function(*this, name, input, output, MapWriter::Lines::foreign)) return;
  const std::string reason = maps_->why_not(name);
  fail(reason.empty() ? "ONNX has no operator for the function " + name : reason);
}

void LoweringContext::emit_tanh_gelu(TensorRef input, TensorRef output) {
  if (opset() >= 20) return emit("Gelu", {input}, output, {{"approximate", "tanh"}});
  const TensorRef cube = temporary(), share = temporary(), total = temporary(), scaled = temporary();
  const TensorRef bend = temporary(), raised = temporary(), half = temporary();
  emit("Pow", {input, scalar(3.0F)}, cube);
  emit("Mul", {cube, scalar(0.044715F)}, share);
  emit("Add", {input, share}, total);
  emit("Mul", {total, scalar(0.7978845608028654F)}, scaled);
  emit("Tanh", {scaled}, bend);
  emit("Add", {bend, scalar(1.0F)}, raised);
  emit("Mul", {input, scalar(0.5F)}, half);
  emit("Mul", {half, raised}, output);
}

void LoweringContext::emit_activated(const std::string& op_type, std::vector<TensorRef> inputs,
                                     std::vector<OnnxAttribute> attributes) {
  const std::string& act = this->attributes().symbol("act");
  if (act == "identity") return emit(op_type, std::move(inputs), out(), std::move(attributes));
  const TensorRef before = temporary();
  emit(op_type, std::move(inputs), before, std::move(attributes));
  emit_function(act, before, out());
}

}  // namespace taso
