#include "partition/constant_parts.h"

#include <algorithm>
#include <string>
#include <utility>

#include "partition/strategy.h"

namespace taso {
namespace {

std::optional<IndexBox> intersection(const IndexBox& a, const IndexBox& b) {
  IndexBox both;
  for (std::size_t axis = 0; axis < a.size(); ++axis) {
    both.push_back({std::max(a[axis].begin, b[axis].begin), std::min(a[axis].end, b[axis].end)});
    if (both.back().size() == 0) return std::nullopt;
  }
  return both;
}

/// A box of a tensor, as one of the box `whole` of it.
IndexBox within(const IndexBox& box, const IndexBox& whole) {
  IndexBox moved = box;
  for (std::size_t axis = 0; axis < box.size(); ++axis) {
    moved[axis].begin -= whole[axis].begin;
    moved[axis].end -= whole[axis].begin;
  }
  return moved;
}

/// Whether every element of a box is in one of others. What the first one leaves of it is at most two boxes per axis.
bool boxes_cover(std::span<const IndexBox> boxes, const IndexBox& box) {
  if (volume_of(box) == 0) return true;
  if (boxes.empty()) return false;
  const std::optional<IndexBox> common = intersection(boxes[0], box);
  if (!common) return boxes_cover(boxes.subspan(1), box);
  IndexBox left = box;
  for (std::size_t axis = 0; axis < box.size(); ++axis) {
    IndexBox below = left, above = left;
    below[axis].end = (*common)[axis].begin;
    above[axis].begin = (*common)[axis].end;
    if (!boxes_cover(boxes.subspan(1), below) || !boxes_cover(boxes.subspan(1), above)) return false;
    left[axis] = (*common)[axis];
  }
  return true;
}

bool lies_in(const IndexBox& box, const Shape& shape) {
  if (box.size() != shape.size()) return false;
  for (std::size_t axis = 0; axis < box.size(); ++axis)
    if (box[axis].begin < 0 || box[axis].end > shape[axis]) return false;
  return true;
}

}  // namespace

ConstantParts::ConstantParts(const Graph& graph, const Mesh& mesh, const OperatorRegistry& registry,
                             std::span<const Piece> pieces)
    : graph_(graph), mesh_(mesh), registry_(registry), pieces_(pieces), weights_(graph, registry) {
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.kind == NodeKind::constant ||
        (node.kind == NodeKind::op && node.weight_only && types_known(graph, node) &&
         std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](const Value& input) { return computable_.contains(input.node); })))
      computable_.insert(id);
  }
  // What they read comes before them.
  for (std::size_t number = 0; number < pieces.size(); ++number) {
    if (!reads_constants(pieces[number])) continue;
    for (std::uint32_t output = 0; output < pieces[number].piece.makes.size(); ++output) {
      Part part = pieces[number].makes(output);
      std::vector<Made>& made = made_[part.value];
      if (std::none_of(made.begin(), made.end(), [&](const Made& other) { return other.part == part; }))
        made.push_back({number, std::move(part)});
    }
  }
}

bool ConstantParts::reads_constants(const Piece& piece) const {
  return std::all_of(piece.operands.begin(), piece.operands.end(),
                     [&](std::size_t operand) { return contains(piece.reads(graph_, operand)); });
}

bool ConstantParts::contains(const Part& part) const {
  const TensorType& type = graph_.type(part.value);
  if (!type.known || !lies_in(part.box, type.shape)) return false;
  if (volume_of(part.box) == 0) return true;
  if (graph_.node(part.value.node).weight_only) return part.axes.empty() && computable_.contains(part.value.node);
  return sources(part).has_value();
}

std::optional<std::set<Place>> ConstantParts::summands_in(const Part& part, const Part& made) const {
  if (!std::includes(made.axes.begin(), made.axes.end(), part.axes.begin(), part.axes.end())) return std::nullopt;
  if (part.axes.empty()) {
    Part all = made;
    all.axes.clear();
    all.summands = {{}};
    return spread(all, made.axes, mesh_).summands;
  }
  return part.reducer == made.reducer ? std::optional(spread(part, made.axes, mesh_).summands) : std::nullopt;
}

std::optional<ConstantParts::Sources> ConstantParts::sources(const Part& part) const {
  const auto known = made_.find(part.value);
  if (known == made_.end()) return std::nullopt;
  const std::optional<std::set<Place>> summands = summands_in(part, known->second[0].part);
  if (!summands) return std::nullopt;
  Sources found;
  const std::set<Place> none = {{}};
  for (const Place& place : *summands) {
    std::vector<IndexBox> boxes;
    std::vector<const Made*>& here = found.emplace_back();
    for (const Made& made : known->second) {
      const std::set<Place>& places = made.part.axes.empty() ? none : made.part.summands;
      if (!places.contains(place) || !intersection(made.part.box, part.box)) continue;
      here.push_back(&made);
      boxes.push_back(made.part.box);
    }
    if (!boxes_cover(boxes, part.box)) return std::nullopt;
  }
  return found;
}

/// Those that a part is made of, and those that these are made of.
Status ConstantParts::compute_pieces(const Part& part) {
  std::set<std::size_t> needed;
  std::vector<Part> open = {part};
  while (!open.empty()) {
    const Part next = std::move(open.back());
    open.pop_back();
    if (volume_of(next.box) == 0 || graph_.node(next.value.node).weight_only) continue;
    const std::optional<Sources> found = sources(next);
    TASO_CHECK(found.has_value(), "a part that depends on inputs");
    for (const std::vector<const Made*>& summand : *found)
      for (const Made* made : summand)
        if (!results_.contains(made->piece) && needed.insert(made->piece).second)
          for (const std::size_t operand : pieces_[made->piece].operands)
            open.push_back(pieces_[made->piece].reads(graph_, operand));
  }
  for (const std::size_t piece : needed) TASO_RETURN_IF_ERROR(compute(piece));
  return {};
}

/// What it reads is known.
Status ConstantParts::compute(std::size_t number) {
  const Piece& piece = pieces_[number];
  std::vector<TensorType> types;
  std::vector<WeightElements> operands;
  for (const std::size_t operand : piece.operands) {
    types.push_back(piece.piece.inputs[operand]);
    TASO_ASSIGN(WeightElements elements, elements_of(piece.reads(graph_, operand)));
    operands.push_back(std::move(elements));
  }
  TASO_ASSIGN(const std::vector<WeightElements> made,
              apply_to_weights(registry_, piece.piece.op, piece.piece.attributes, types, operands));
  std::vector<WeightElements>& results = results_[number];
  for (std::size_t output = 0; output < made.size(); ++output)
    results.push_back(elements_in(made[output], piece.piece.keeps[output]));
  return {};
}

/// Of a part that depends on weights alone, whose pieces are computed.
Expected<WeightElements> ConstantParts::elements_of(const Part& part) {
  if (volume_of(part.box) == 0) {
    WeightElements nothing;
    for (const IndexRange& range : part.box) nothing.exact.shape.push_back(range.size());
    return nothing;
  }
  if (graph_.node(part.value.node).weight_only) {
    TASO_ASSIGN(const WeightElements* weight, weights_.of(part.value));
    return elements_in(*weight, part.box);
  }
  const std::optional<Sources> found = sources(part);
  TASO_CHECK(found.has_value(), "a part that depends on inputs");
  std::optional<WeightElements> all;
  for (const std::vector<const Made*>& summand : *found) {
    std::optional<WeightElements> elements;
    for (const Made* made : summand) {
      const WeightElements& result = results_.at(made->piece)[part.value.port];
      const IndexBox common = *intersection(made->part.box, part.box);
      WeightElements piece = elements_in(result, within(common, made->part.box));
      if (!elements) {
        Shape shape;
        for (const IndexRange& range : part.box) shape.push_back(range.size());
        elements = room_for(shape, result);
      }
      write_elements(*elements, within(common, part.box), piece);
    }
    if (all) {
      TASO_ASSIGN(all, combined(part, std::move(*all), std::move(*elements)));
    } else {
      all = std::move(elements);
    }
  }
  return std::move(*all);
}

Expected<WeightElements> ConstantParts::combined(const Part& part, WeightElements sum, WeightElements summand) {
  const TensorType type{graph_.type(part.value).element, sum.exact.shape, true};
  const std::string op = combining_operator(registry_, made_.at(part.value)[0].part.reducer);
  const std::vector<WeightElements> operands = {std::move(sum), std::move(summand)};
  TASO_ASSIGN(std::vector<WeightElements> both, apply_to_weights(registry_, op, {}, {type, type}, operands));
  return std::move(both[0]);
}

Expected<bool> ConstantParts::are(const RingTensor<double>& elements, const Part& part) {
  if (!contains(part)) return false;
  if (graph_.node(part.value.node).weight_only) {
    TASO_ASSIGN(const WeightElements* weight, weights_.of(part.value));
    return is_part(elements, *weight, part.box);
  }
  return are_combined(elements, {part});
}

Expected<bool> ConstantParts::are_combined(const RingTensor<double>& elements, const std::vector<Part>& parts) {
  std::optional<WeightElements> all;
  for (const Part& part : parts) {
    if (!contains(part)) return false;
    TASO_RETURN_IF_ERROR(compute_pieces(part));
    TASO_ASSIGN(WeightElements one, elements_of(part));
    if (all) {
      TASO_ASSIGN(all, combined(part, std::move(*all), std::move(one)));
    } else {
      all = std::move(one);
    }
  }
  return is_part(elements, *all, whole_box(all->exact.shape));
}

}  // namespace taso
