/// How Attention and RotaryEmbedding (opset 23) are imported: products, softmax and what exporters spell out around
/// them.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "onnx_io/import_handlers.h"

namespace taso::import_handlers {
namespace {

constexpr float unseen = -std::numeric_limits<float>::infinity();

/// [batch, heads, length, size], of an input that may be [batch, length, heads * size].
Value with_heads(NodeContext& c, std::size_t input, std::int64_t heads) {
  const Shape x = c.shape(input);
  const Value value = c.value(input);
  if (c.stopped() || x.size() == 4) return value;
  if (x.size() != 3 || heads < 1 || x[2] % heads != 0) {
    c.fail("input " + std::to_string(input) + " of shape " + shape_text(x) + " does not have " + std::to_string(heads) +
           " heads");
    return value;
  }
  const Value parts = c.reshape(value, {x[0], x[1], heads, x[2] / heads});
  return c.op("transpose", {parts}, {{"perm", Shape{0, 2, 1, 3}}});
}

/// What stands before it in a cache, if there is one.
Value after_past(NodeContext& c, Value value, std::size_t past) {
  if (c.stopped() || !c.has_input(past)) return value;
  return c.op("concat", {c.value(past), value}, {{"axis", std::int64_t{-2}}});
}

/// Each head as often as heads of the queries share it.
Value for_queries(NodeContext& c, Value value, std::int64_t heads) {
  if (c.stopped()) return value;
  const std::int64_t own = c.shape_of(value)[1];
  if (heads % own != 0) {
    c.fail(std::to_string(heads) + " heads of queries do not share " + std::to_string(own) + " of keys and values");
    return value;
  }
  return repeated(c, value, {1, heads / own, 1, 1}, false);
}

/// The mask of an input as numbers to be added: those of a constant of truth values are 0 and -inf. In versions of ONNX
/// what a query sees of nothing is NaN, or 0.
Value additive_mask(NodeContext& c, std::size_t input, bool causal) {
  if (!c.is_constant(input)) return c.value(input);
  const std::shared_ptr<const ConstantData> constant = c.inputs()[input].constant;
  std::vector<float> mask;
  if (c.type(input).element == ElementType::boolean)
    for (const std::int64_t allowed : constant->to_integers()) mask.push_back(allowed != 0 ? 0.0F : unseen);
  else
    mask = constant->to_floats();
  const Shape shape = c.shape(input);
  const std::size_t keys = at(shape.back()), queries = shape.size() < 2 ? 1 : at(shape[shape.size() - 2]);
  for (std::size_t row = 0; row * keys < mask.size(); ++row) {
    const std::size_t seen = causal ? std::min(row % queries + 1, keys) : keys;
    const auto begin = mask.begin() + static_cast<std::ptrdiff_t>(row * keys);
    if (std::all_of(begin, begin + static_cast<std::ptrdiff_t>(seen), [](float bias) { return bias == unseen; }))
      c.decline("versions of ONNX differ on a query that sees nothing");
  }
  if (c.type(input).element != ElementType::boolean) return c.value(input);
  return c.reals(shape, mask);
}

/// Query i sees the keys up to i.
Value causal_mask(NodeContext& c, std::int64_t queries, std::int64_t keys) {
  constexpr std::int64_t limit = std::int64_t{1} << 24;
  if (queries > limit / keys) {
    c.decline("its mask is too large");
    return {};
  }
  std::vector<float> mask;
  for (std::int64_t i = 0; i < queries; ++i)
    for (std::int64_t j = 0; j < keys; ++j) mask.push_back(j <= i ? 0.0F : unseen);
  return c.reals({queries, keys}, mask);
}

bool can_be_masked(NodeContext& c, std::size_t input) {
  if (!c.has_input(input)) return true;
  const TensorType& type = c.type(input);
  if (type.element == ElementType::boolean) {
    if (!c.is_constant(input)) c.decline_not_constant(input, "its mask of truth values");
  } else if (type.element != c.real_type()) {
    c.decline(std::string("its mask is ") + to_string(type.element), Obstacle::element_type);
  }
  if (!type.known) c.decline_untyped();
  return !c.stopped();
}

/// Declines where versions of the operator differ.
bool is_settled(NodeContext& c, bool causal, double softcap) {
  if (c.has_input(6)) c.decline("lengths of its cache are not modelled");
  if (causal && c.has_input(4)) c.decline("versions of ONNX differ on a causal mask behind a cache");
  if (softcap != 0 && (causal || c.has_input(3))) c.decline("versions of ONNX differ on a softcap beside a mask");
  if (c.has_input(4) != c.has_input(5)) c.fail("it has a cache for keys or values only");
  for (const std::size_t past : {std::size_t{4}, std::size_t{5}})
    if (c.has_input(past) && (!c.type(past).known || c.type(past).element != c.real_type()))
      c.decline("its cache is not f32", Obstacle::element_type);
  return !c.stopped();
}

Value multiplied_by(NodeContext& c, Value x, double factor) {
  if (c.stopped() || factor == 1) return x;
  return c.op("mul", {x, c.broadcast(c.splat({}, static_cast<float>(factor)), c.shape_of(x))});
}

}  // namespace

/// softmax(scale * q k^T + mask) v, with what is cached before the keys and values.
void attention(NodeContext& c) {
  const bool causal = c.integer("is_causal", 0) != 0;
  const double softcap = c.real("softcap", 0.0F);
  const std::int64_t query_heads = c.integer("q_num_heads", 0), key_heads = c.integer("kv_num_heads", 0);
  c.ignore("qk_matmul_output_mode");  // Concerns an output that is not modelled.
  if (c.integer("softmax_precision", 1) != onnx::TensorProto::FLOAT)
    return c.decline("its softmax is not in f32", Obstacle::element_type);
  if (!is_settled(c, causal, softcap) || !can_be_masked(c, 3)) return;
  for (std::size_t i = 0; i < c.input_count(); ++i)
    if (c.has_input(i) && volume(c.shape(i)) == 0) return c.decline("an input is empty");
  const bool flat = c.rank(0) == 3;
  const Value q = with_heads(c, 0, query_heads);
  Value k = after_past(c, with_heads(c, 1, key_heads), 4), v = after_past(c, with_heads(c, 2, key_heads), 5);
  if (c.stopped()) return;
  if (c.rank_of(q) != 4 || c.rank_of(k) != 4 || c.rank_of(v) != 4) return c.fail("its inputs must have rank 3 or 4");
  // What is cached for the next time.
  if (c.uses_output(1)) c.output(1, k);
  if (c.uses_output(2)) c.output(2, v);
  const std::int64_t heads = c.shape_of(q)[1];
  k = for_queries(c, k, heads);
  v = for_queries(c, v, heads);
  if (c.stopped()) return;
  const double scale = c.real("scale", static_cast<float>(1 / std::sqrt(static_cast<double>(c.shape_of(q)[3]))));
  Value scores = c.op("matmul", {q, c.op("transpose", {k}, {{"perm", Shape{0, 1, 3, 2}}})});
  scores = multiplied_by(c, scores, scale);
  if (softcap != 0) scores = multiplied_by(c, c.op("tanh", {multiplied_by(c, scores, 1 / softcap)}), softcap);
  if (c.stopped()) return;
  const Shape shape = c.shape_of(scores);
  if (c.has_input(3)) {
    if (c.shape(3).empty() || c.shape(3).back() != shape.back()) return c.decline("its mask is for fewer keys");
    scores = c.op("add", {scores, c.broadcast(additive_mask(c, 3, causal), shape)});
  }
  if (causal) scores = c.op("add", {scores, c.broadcast(causal_mask(c, shape[2], shape[3]), shape)});
  Value out = c.op("matmul", {c.op("softmax", {scores}, {{"axis", std::int64_t{-1}}}), v});
  if (c.stopped()) return;
  if (flat) {
    const Shape x = c.shape_of(out);
    out = c.reshape(c.op("transpose", {out}, {{"perm", Shape{0, 2, 1, 3}}}), {x[0], x[2], x[1] * x[3]});
  }
  c.output(0, out);
}

namespace {

/// Every second element, from `which` on.
Value every_second(NodeContext& c, Value x, std::int64_t which, std::int64_t half) {
  if (c.stopped()) return {};
  Shape sizes = c.shape_of(x), starts(sizes.size(), 0), steps(sizes.size(), 1);
  sizes.back() = half;
  starts.back() = which;
  steps.back() = half > 1 ? 2 : 1;
  return c.op("slice", {x}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
}

/// A table of cosines or sines, for every position.
Value table_of_positions(NodeContext& c, std::size_t input, std::int64_t angles) {
  Value table = c.value(input);
  if (c.has_input(3)) table = c.op("gather", {table, c.value(3)}, {{"axis", std::int64_t{-2}}});
  if (c.stopped()) return {};
  const Shape own = c.shape_of(table);
  if (own.size() == 3 && own.back() == angles) return table;
  c.fail("a cache of shape " + shape_text(own) + " does not have " + std::to_string(angles) + " angles");
  return {};
}

/// The same, broadcast to `shape`.
Value for_heads(NodeContext& c, Value table, const Shape& shape, bool heads_first) {
  if (c.stopped()) return {};
  Shape own = c.shape_of(table);
  own.insert(own.begin() + (heads_first ? 1 : 2), 1);
  return c.broadcast(c.reshape(table, own), shape);
}

/// Elements 2 i and 2 i + 1 as pairs, of the first `turned` elements.
Value with_pairs_side_by_side(NodeContext& c, Value x, Value of_cosines, Value of_sines, std::int64_t turned,
                              bool heads_first) {
  if (c.stopped()) return {};
  const Shape shape = c.shape_of(x);
  const std::int64_t half = turned / 2;
  Shape halves = shape;
  halves.back() = half;
  const Value cosines = for_heads(c, of_cosines, halves, heads_first),
              sines = for_heads(c, of_sines, halves, heads_first);
  Value rest, rotated = x;
  if (turned != shape.back()) {
    const Value parts =
        c.op("split", {x}, {{"axis", std::int64_t{-1}}, {"sizes", Shape{turned, shape.back() - turned}}});
    rotated = {parts.node, 0};
    rest = {parts.node, 1};
  }
  const Value a = every_second(c, rotated, 0, half), b = every_second(c, rotated, 1, half);
  Value real = c.op("sub", {c.op("mul", {cosines, a}), c.op("mul", {sines, b})});
  Value imaginary = c.op("add", {c.op("mul", {sines, a}), c.op("mul", {cosines, b})});
  Shape pairs = halves;
  pairs.push_back(1);
  real = c.reshape(real, pairs);
  imaginary = c.reshape(imaginary, pairs);
  halves.back() = turned;
  const Value out = c.reshape(c.op("concat", {real, imaginary}, {{"axis", std::int64_t{-1}}}), halves);
  return turned == shape.back() ? out : c.op("concat", {out, rest}, {{"axis", std::int64_t{-1}}});
}

}  // namespace

/// Pairs of elements are turned by the angles of their position: (x cos - y sin, x sin + y cos).
void rotary_embedding(NodeContext& c) {
  const Shape original = c.shape(0);
  const bool interleaved = c.integer("interleaved", 0) != 0, heads_first = original.size() == 4;
  const std::int64_t heads = c.integer("num_heads", 0), part = c.integer("rotary_embedding_dim", 0);
  if (c.stopped()) return;
  if (c.has_input(3) &&
      (!c.type(3).known || (c.type(3).element != ElementType::i64 && c.type(3).element != ElementType::i32)))
    return c.decline_untyped();
  Value x = c.value(0);
  if (!heads_first) {
    if (original.size() != 3 || heads < 1 || original[2] % heads != 0)
      return c.fail("its input " + shape_text(original) + " does not have " + std::to_string(heads) + " heads");
    x = c.reshape(x, {original[0], original[1], heads, original[2] / heads});
  }
  if (c.stopped()) return;
  const std::int64_t size = c.shape_of(x).back(), turned = part == 0 ? size : part;
  if (turned % 2 != 0 || turned > size || turned < 0)
    return c.fail("rotary_embedding_dim is " + std::to_string(turned) + " of " + std::to_string(size));
  const Value cosines = table_of_positions(c, 1, turned / 2), sines = table_of_positions(c, 2, turned / 2);
  if (c.stopped()) return;
  const std::int64_t axis = heads_first ? -2 : -3;
  const Value out = interleaved ? with_pairs_side_by_side(c, x, cosines, sines, turned, heads_first)
                                : c.op("rotary_embedding", {x, cosines, sines}, {{"axis", axis}});
  c.output(0, c.reshape(out, original));
}

}  // namespace taso::import_handlers
