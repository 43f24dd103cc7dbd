#include "partition/folded_piece.h"

#include <utility>

namespace taso {
namespace {

/// What an application to some of the outputs reads and makes: extents of the pieces add up.
OperatorPiece of_other_outputs(const OperatorPiece& piece, const PieceAttributes& names) {
  OperatorPiece rest = piece;
  rest.outputs.erase(rest.outputs.begin());
  rest.makes.erase(rest.makes.begin());
  rest.keeps.erase(rest.keeps.begin());
  std::vector<std::int64_t> sizes = piece.attributes.integers(names.sizes);
  const std::int64_t first = sizes[0];
  sizes.erase(sizes.begin());
  rest.attributes.set(names.sizes, std::move(sizes));
  TensorType& input = rest.inputs[0];
  const std::int64_t axis = piece.attributes.integer(names.axis);
  input.shape[static_cast<std::size_t>(static_cast<std::int64_t>(input.shape.size()) + axis)] -= first;
  rest.reads = {whole_box(input.shape)};
  return rest;
}

std::optional<FoldedPiece> fold_outputs(const OperatorPiece& piece, const PieceAttributes& names) {
  const AttributeValue* list = piece.attributes.find(names.sizes);
  const auto* sizes = list == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(list);
  if (sizes == nullptr || sizes->size() < 3 || piece.inputs.size() != 1 || piece.attributes.find(names.axis) == nullptr)
    return std::nullopt;
  FoldedPiece result{piece, of_other_outputs(piece, names), false};
  const TensorType& others = result.rest.inputs[0];
  std::int64_t sum = 0;
  for (std::size_t i = 1; i < sizes->size(); ++i) sum += (*sizes)[i];
  result.two.attributes.set(names.sizes, std::vector<std::int64_t>{(*sizes)[0], sum});
  result.two.outputs = {piece.outputs[0], others};
  result.two.makes = {piece.makes[0], whole_box(others.shape)};
  result.two.keeps = {piece.keeps[0], whole_box(others.shape)};
  return result;
}

std::optional<FoldedPiece> fold_inputs(const OperatorPiece& piece, const OperatorRegistry& registry) {
  if (piece.inputs.size() < 3) return std::nullopt;
  FoldedPiece result{piece, piece, true};
  result.rest.inputs.erase(result.rest.inputs.begin());
  result.rest.reads.erase(result.rest.reads.begin());
  Expected<std::vector<TensorType>> others = registry.infer(piece.op, piece.attributes, result.rest.inputs);
  if (!others || others->size() != 1) return std::nullopt;
  result.rest.outputs = std::move(*others);
  result.rest.makes = result.rest.keeps = {whole_box(result.rest.outputs[0].shape)};
  result.two.inputs = {piece.inputs[0], result.rest.outputs[0]};
  result.two.reads = {piece.reads[0], result.rest.makes[0]};
  return result;
}

void restrict(TensorType& type, IndexBox& box, const RestCut& cut, bool second, std::int64_t size) {
  IndexRange& range = box[cut.axis];
  (second ? range.begin : range.end) = second ? range.end - size : range.begin + size;
  type.shape[cut.axis] = size;
}

}  // namespace

std::optional<FoldedPiece> fold(const OperatorPiece& piece, const OperatorRegistry& registry) {
  if (const PieceAttributes* names = registry.pieces(piece.op)) return fold_outputs(piece, *names);
  return registry.is_associative(piece.op) ? fold_inputs(piece, registry) : std::nullopt;
}

OperatorPiece unfold(const OperatorPiece& piece, const FoldedPiece& folded, OperatorPiece two,
                     const OperatorPiece& rest, const OperatorRegistry& registry) {
  OperatorPiece result = std::move(two);
  if (folded.of_inputs) {
    result.inputs.resize(1);
    result.reads.resize(1);
    result.inputs.insert(result.inputs.end(), rest.inputs.begin(), rest.inputs.end());
    result.reads.insert(result.reads.end(), rest.reads.begin(), rest.reads.end());
    return result;
  }
  const std::string& sizes = registry.pieces(piece.op)->sizes;
  std::vector<std::int64_t> list = {result.attributes.integers(sizes)[0]};
  const std::vector<std::int64_t>& others = rest.attributes.integers(sizes);
  list.insert(list.end(), others.begin(), others.end());
  result.attributes.set(sizes, std::move(list));
  result.outputs.resize(1);
  result.makes.resize(1);
  result.keeps.resize(1);
  result.outputs.insert(result.outputs.end(), rest.outputs.begin(), rest.outputs.end());
  result.makes.insert(result.makes.end(), rest.makes.begin(), rest.makes.end());
  result.keeps.insert(result.keeps.end(), rest.keeps.begin(), rest.keeps.end());
  return result;
}

std::optional<RestCut> cut_of_rest(const FoldedPiece& folded, const OperatorPiece& part, bool second) {
  const IndexBox& whole = folded.of_inputs ? folded.two.reads[1] : folded.two.makes[1];
  const IndexBox& here = folded.of_inputs ? part.reads[1] : part.makes[1];
  for (std::size_t axis = 0; axis < whole.size(); ++axis)
    if (here[axis] != whole[axis]) return RestCut{axis, second ? here[axis].begin : here[axis].end, whole[axis].end};
  return std::nullopt;
}

OperatorPiece plain_part(const OperatorPiece& rest, const RestCut& cut, bool second, const OperatorRegistry& registry) {
  OperatorPiece part = rest;
  const std::int64_t size = second ? cut.extent - cut.point : cut.point;
  for (std::size_t i = 0; i < part.inputs.size(); ++i) restrict(part.inputs[i], part.reads[i], cut, second, size);
  for (std::size_t i = 0; i < part.outputs.size(); ++i) {
    restrict(part.outputs[i], part.makes[i], cut, second, size);
    part.keeps[i] = whole_box(part.outputs[i].shape);
  }
  const PieceAttributes* names = registry.pieces(rest.op);
  if (names == nullptr) return part;
  const auto rank = static_cast<std::int64_t>(rest.inputs[0].shape.size());
  if (rest.attributes.integer(names->axis) + rank != static_cast<std::int64_t>(cut.axis)) return part;
  part.attributes.set(names->sizes, std::vector<std::int64_t>(rest.outputs.size(), size));
  return part;
}

}  // namespace taso
