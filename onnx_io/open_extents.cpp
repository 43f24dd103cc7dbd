#include "onnx_io/open_extents.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace taso {
namespace {

using Extents = std::vector<StatedExtent>;

/// Those of an input.
Extents extents_like(const NodeContext& c, std::size_t input) {
  Extents extents;
  for (std::size_t axis = 0; axis < c.shape(input).size(); ++axis)
    extents.push_back({std::nullopt, std::pair(input, axis)});
  return extents;
}

Extents all_open(std::size_t rank) { return Extents(rank); }
StatedExtent number(std::int64_t extent) { return {extent, std::nullopt}; }

/// The one extent of an input that is a list; nothing if it is not known.
std::optional<std::size_t> length_of(const NodeContext& c, std::size_t input) {
  if (!c.has_input(input) || !c.type(input).known || c.rank(input) != 1 || c.inputs()[input].from_symbols)
    return std::nullopt;
  const std::int64_t length = c.shape(input)[0];
  // Ranks of tensors are small numbers.
  constexpr std::int64_t most_axes = 16;
  return length <= most_axes ? std::optional(static_cast<std::size_t>(length)) : std::nullopt;
}

bool is_typed(const NodeContext& c, std::size_t input) {
  return c.has_input(input) && c.type(input).known && c.type(input).element != ElementType::other;
}

using Outputs = std::vector<OpenOutput>;

/// The positions of elements that are not 0: as many columns as there are.
Outputs non_zero(NodeContext& c) {
  if (!is_typed(c, 0)) return {};
  return {{ElementType::i64, {number(c.rank(0)), {}}}};
}

/// Slices along an axis that a mask chooses, or elements.
Outputs compress(NodeContext& c) {
  if (!is_typed(c, 0)) return {};
  if (!c.has_attribute("axis")) return {{c.type(0).element, all_open(1)}};
  Extents extents = extents_like(c, 0);
  const std::int64_t axis = c.axis_from_front(c.integer("axis", 0), c.rank(0));
  if (c.stopped()) return {};
  extents[static_cast<std::size_t>(axis)] = {};
  return {{c.type(0).element, std::move(extents)}};
}

/// Elements or slices without those that are there twice; where each is first, which of them each one is, how often.
Outputs unique(NodeContext& c) {
  if (!is_typed(c, 0)) return {};
  Extents extents = all_open(1);
  StatedExtent places;  // of the inverse: as many as there were
  if (c.has_attribute("axis")) {
    extents = extents_like(c, 0);
    const std::int64_t axis = c.axis_from_front(c.integer("axis", 0), c.rank(0));
    if (c.stopped()) return {};
    places = std::exchange(extents[static_cast<std::size_t>(axis)], {});
  }
  const ElementType word = ElementType::i64;
  return {{c.type(0).element, std::move(extents)}, {word, all_open(1)}, {word, {places}}, {word, all_open(1)}};
}

Outputs non_max_suppression(NodeContext& /*c*/) { return {{ElementType::i64, {{}, number(3)}}}; }

/// The largest along an axis, as many as are asked for, and where they are.
Outputs top_k(NodeContext& c) {
  if (!is_typed(c, 0)) return {};
  Extents extents = extents_like(c, 0);
  const std::int64_t axis = c.axis_from_front(c.integer("axis", -1), c.rank(0));
  if (c.stopped()) return {};
  extents[static_cast<std::size_t>(axis)] = {};
  return {{c.type(0).element, extents}, {ElementType::i64, extents}};
}

Outputs range(NodeContext& c) {
  for (std::size_t i = 0; i < c.input_count(); ++i)
    if (const ElementType element = c.type(i).element; element != ElementType::other) return {{element, all_open(1)}};
  return {};
}

/// Along the axes that are named, from somewhere to somewhere.
Outputs slice(NodeContext& c) {
  if (c.opset() < 10 || !is_typed(c, 0) || c.input_count() < 3) return {};
  const auto open = std::max(length_of(c, 1), length_of(c, 2));
  std::vector<std::int64_t> axes;
  if (c.has_input(3)) {
    if (!c.is_constant(3) || c.inputs()[3].from_symbols) return {{c.type(0).element, all_open(c.shape(0).size())}};
    axes = c.integers(3);
  } else {
    if (!open) return {{c.type(0).element, all_open(c.shape(0).size())}};
    for (std::size_t axis = 0; axis < *open; ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  }
  Extents extents = extents_like(c, 0);
  for (const std::int64_t axis : axes) {
    const std::int64_t place = c.axis_from_front(axis, c.rank(0));
    if (c.stopped()) return {};
    extents[static_cast<std::size_t>(place)] = {};
  }
  return {{c.type(0).element, std::move(extents)}};
}

/// Of the shape that a list says.
Outputs reshape(NodeContext& c) {
  const std::optional<std::size_t> rank = length_of(c, 1);
  if (c.type(0).element == ElementType::other || !rank) return {};
  return {{c.type(0).element, all_open(*rank)}};
}

Outputs expand(NodeContext& c) {
  const std::optional<std::size_t> rank = length_of(c, 1);
  if (!is_typed(c, 0) || !rank) return {};
  return {{c.type(0).element, all_open(std::max(*rank, c.shape(0).size()))}};
}

/// Every axis may be longer, or shorter.
Outputs resized(NodeContext& c) {
  if (!is_typed(c, 0)) return {};
  return {{c.type(0).element, all_open(c.shape(0).size())}};
}

Outputs one_hot(NodeContext& c) {
  if (!is_typed(c, 0) || c.input_count() < 3 || c.type(2).element == ElementType::other) return {};
  Extents extents = extents_like(c, 0);
  const std::int64_t axis = c.axis_from_front(c.integer("axis", -1), c.rank(0) + 1);
  if (c.stopped()) return {};
  extents.insert(extents.begin() + static_cast<std::ptrdiff_t>(axis), StatedExtent{});
  return {{c.type(2).element, std::move(extents)}};
}

/// Pieces along an axis, of sizes that are computed.
Outputs split(NodeContext& c) {
  if (!is_typed(c, 0)) return {};
  Extents extents = extents_like(c, 0);
  const std::int64_t axis = c.axis_from_front(c.integer("axis", 0), c.rank(0));
  if (c.stopped()) return {};
  extents[static_cast<std::size_t>(axis)] = {};
  return Outputs(c.output_count(), {c.type(0).element, extents});
}

}  // namespace

std::vector<OpenOutput> open_outputs(NodeContext& context) {
  static const std::map<std::string_view, Outputs (*)(NodeContext&)> operators = {
      {"Compress", compress}, {"Expand", expand},   {"NonMaxSuppression", non_max_suppression},
      {"NonZero", non_zero},  {"OneHot", one_hot},  {"Pad", resized},
      {"Range", range},       {"Reshape", reshape}, {"Resize", resized},
      {"Slice", slice},       {"Split", split},     {"Tile", resized},
      {"TopK", top_k},        {"Unique", unique},   {"Upsample", resized}};
  const auto place = operators.find(context.proto().op_type());
  // What follows from symbolic extents is not known in another way.
  if (place == operators.end() || context.input_count() == 0 ||
      std::ranges::any_of(context.inputs(), [](const auto& input) { return input.from_symbols; }))
    return {};
  Outputs outputs = place->second(context);
  if (context.stopped()) return {};
  if (outputs.size() > context.output_count()) outputs.resize(context.output_count());
  return outputs;
}

}  // namespace taso
