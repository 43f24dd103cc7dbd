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

std::vector<IndexBox> scattered(const IndexBox& box, const std::vector<std::int64_t>& place, const Reduction& reduction,
                                std::size_t stages, const Mesh& mesh) {
  const std::size_t left = reduction.axes.size() - stages;  // Axes along which nothing was done yet.
  std::int64_t outer = 1, inner = 1, index = 0;             // Pieces along these; along the others, and which one.
  for (std::size_t i = 0; i < left; ++i) outer *= mesh.axes[reduction.axes[i]].size;
  for (std::size_t i = left; i < reduction.axes.size(); ++i) {
    const std::size_t axis = reduction.axes[i];
    index = index * mesh.axes[axis].size + place[axis];
    inner *= mesh.axes[axis].size;
  }
  if (reduction.gathered) {
    // The innermost axis counts most: it was cut first.
    index = 0;
    for (std::size_t i = reduction.axes.size(); i-- > left;)
      index = index * mesh.axes[reduction.axes[i]].size + place[reduction.axes[i]];
    outer = 1;
  }
  std::vector<IndexBox> pieces;
  const IndexRange& range = box[reduction.tensor_axis];
  for (std::int64_t i = 0; i < outer; ++i) {
    const RangePiece piece{range.size(), i * inner + index, outer * inner};
    IndexBox kept = box;
    kept[reduction.tensor_axis] = {range.begin + piece.range().begin, range.begin + piece.range().end};
    if (volume_of(kept) > 0) pieces.push_back(std::move(kept));
  }
  return pieces;
}

std::vector<std::vector<std::int64_t>> places_on(const Mesh& mesh) {
  std::vector<std::vector<std::int64_t>> places;
  for (std::int64_t device = 0; device < mesh.devices(); ++device) places.push_back(mesh.coordinates(device));
  return places;
}

}  // namespace taso
