#include "partition/scatter.h"

#include <algorithm>

namespace taso {

IndexBox with_axis(const IndexBox& box) { return box.empty() ? IndexBox{{0, 1}} : box; }

bool may_scatter(const std::vector<IndexBox>& boxes, std::size_t tensor_axis) {
  const auto divides = [&](std::size_t axis) {
    return std::any_of(boxes.begin(), boxes.end(), [&](const IndexBox& box) { return box[axis].size() >= 2; });
  };
  if (divides(tensor_axis)) return true;
  if (tensor_axis != 0) return false;
  for (std::size_t axis = 1; axis < boxes[0].size(); ++axis)
    if (divides(axis)) return false;
  return true;
}

KeptPieces kept_pieces(const std::vector<std::int64_t>& place, const Reduction& reduction, std::size_t stages,
                       const Mesh& mesh) {
  const std::vector<std::size_t>& axes = reduction.axes;
  const std::size_t left = axes.size() - stages;  // Axes along which nothing was done yet.
  KeptPieces kept;
  const auto add = [&](std::size_t axis) {
    kept.index = kept.index * mesh.axes[axis].size + place[axis];
    kept.run *= mesh.axes[axis].size;
  };
  if (reduction.gathered) {
    for (std::size_t i = axes.size(); i-- > left;) add(axes[i]);
    return kept;
  }
  for (std::size_t i = left; i < axes.size(); ++i) add(axes[i]);
  for (std::size_t i = 0; i < left; ++i) kept.count *= mesh.axes[axes[i]].size;
  return kept;
}

std::vector<IndexBox> scattered(const IndexBox& box, const std::vector<std::int64_t>& place, const Reduction& reduction,
                                std::size_t stages, const Mesh& mesh) {
  const KeptPieces pieces = kept_pieces(place, reduction, stages, mesh);
  std::vector<IndexBox> kept;
  const IndexRange& range = box[reduction.tensor_axis];
  for (std::int64_t i = 0; i < pieces.count; ++i) {
    const IndexRange part = pieces.range(range.size(), i);
    IndexBox piece = box;
    piece[reduction.tensor_axis] = {range.begin + part.begin, range.begin + part.end};
    if (volume_of(piece) > 0) kept.push_back(std::move(piece));
  }
  return kept;
}

std::vector<std::vector<std::int64_t>> places_on(const Mesh& mesh) {
  std::vector<std::vector<std::int64_t>> places;
  for (std::int64_t device = 0; device < mesh.devices(); ++device) places.push_back(mesh.coordinates(device));
  return places;
}

}  // namespace taso
