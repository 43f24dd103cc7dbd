#include "partition/soybean_tiling.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace taso {
namespace {

using TilingKind = BasicTiling::Kind;

/// How a tensor is tiled of which the devices have the boxes `first` and `second`; nothing if that is no basic tiling.
std::optional<BasicTiling> tiling_of(const IndexBox& whole, const IndexBox& first, const IndexBox& second) {
  BasicTiling tiling;
  for (std::size_t axis = 0; axis < whole.size(); ++axis) {
    if (first[axis] == whole[axis] && second[axis] == whole[axis]) continue;
    if (tiling.kind == TilingKind::cut || first[axis].begin != whole[axis].begin ||
        second[axis].end != whole[axis].end || first[axis].end != second[axis].begin ||
        first[axis].size() != second[axis].size())
      return std::nullopt;
    tiling = {TilingKind::cut, axis};
  }
  return tiling;
}

std::optional<AlignedForm> form_of(const OperatorPiece& piece, const PieceCut& cut, const OperatorRegistry& registry) {
  if (cut.extent % 2 != 0) return std::nullopt;
  Expected<OperatorPiece> first = part_of(piece, cut, cut.extent / 2, false, registry);
  Expected<OperatorPiece> second = part_of(piece, cut, cut.extent / 2, true, registry);
  if (!first || !second || first->inputs != second->inputs || first->outputs != second->outputs) return std::nullopt;
  AlignedForm form{cut.name, {}, {}, std::move(*first), std::move(*second)};
  for (std::size_t i = 0; i < piece.inputs.size(); ++i) {
    const auto tiling = tiling_of(piece.reads[i], form.first.reads[i], form.second.reads[i]);
    if (!tiling) return std::nullopt;
    form.inputs.push_back(*tiling);
  }
  for (std::size_t i = 0; i < piece.outputs.size(); ++i)
    form.outputs.push_back(cut.output_axis ? BasicTiling{TilingKind::cut, *cut.output_axis}
                                           : BasicTiling{TilingKind::reduced});
  return form;
}

}  // namespace

std::string BasicTiling::to_string(std::size_t rank) const {
  if (kind == TilingKind::replicated) return "r";
  if (kind == TilingKind::reduced) return "red";
  return rank == 2 ? (axis == 0 ? "R" : "C") : "P" + std::to_string(axis + 1);
}

std::vector<BasicTiling> basic_tilings(const Shape& shape) {
  std::vector<BasicTiling> tilings;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] > 0 && shape[axis] % 2 == 0) tilings.push_back({TilingKind::cut, axis});
  tilings.push_back({});
  return tilings;
}

Shape half_of(Shape shape, const BasicTiling& tiling) {
  if (tiling.kind != TilingKind::cut) return shape;
  TASO_CHECK(tiling.axis < shape.size() && shape[tiling.axis] % 2 == 0, "an axis that has no half");
  shape[tiling.axis] /= 2;
  return shape;
}

double conversion_bytes(const BasicTiling& from, const BasicTiling& to, double bytes) {
  TASO_CHECK(to.kind != TilingKind::reduced || from.kind == TilingKind::reduced, "no tensor becomes a partial result");
  if (from == to || from.kind == TilingKind::replicated) return 0;
  if (from.kind == TilingKind::reduced) return to.kind == TilingKind::replicated ? 2 * bytes : bytes;
  return to.kind == TilingKind::replicated ? bytes : bytes / 2;
}

std::vector<AlignedForm> aligned_forms(const OperatorPiece& piece, StrategyTable& strategies) {
  std::vector<AlignedForm> forms;
  for (const PieceCut& cut : cuts_of(piece, strategies)) {
    const auto has_name = [&](const AlignedForm& form) { return form.variable == cut.name; };
    if (std::any_of(forms.begin(), forms.end(), has_name)) continue;
    if (std::optional<AlignedForm> form = form_of(piece, cut, strategies.registry())) forms.push_back(std::move(*form));
  }
  const OperatorSignature* signature = strategies.registry().signature(piece.op);
  if (forms.empty() || (signature != nullptr && signature->copies))
    forms.push_back({"", std::vector<BasicTiling>(piece.inputs.size()), std::vector<BasicTiling>(piece.outputs.size()),
                     piece, piece});
  return forms;
}

}  // namespace taso
