#include "partition/tofu_tiling.h"

#include <algorithm>
#include <set>

namespace taso {
namespace {

/// Into how many pieces a tiling cuts each axis.
std::vector<std::int64_t> pieces_per_axis(const Shape& shape, const TensorTiling& tiling, const TilingSteps& steps) {
  std::vector<std::int64_t> pieces(shape.size(), 1);
  for (std::size_t step = 0; step < tiling.size(); ++step)
    if (tiling[step]) pieces[*tiling[step]] *= steps[step];
  return pieces;
}

}  // namespace

std::vector<TensorTiling> tilings_of(const Shape& shape, const TilingSteps& steps, bool replicate,
                                     const TensorTiling& first) {
  std::vector<TensorTiling> tilings{first};
  for (std::size_t step = first.size(); step < steps.size(); ++step) {
    std::vector<TensorTiling> longer;
    for (TensorTiling& tiling : tilings) {
      const std::vector<std::int64_t> pieces = pieces_per_axis(shape, tiling, steps);
      const std::size_t before = longer.size();
      tiling.emplace_back();
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (shape[axis] < pieces[axis] * steps[step]) continue;
        tiling.back() = axis;
        longer.push_back(tiling);
      }
      if (replicate || longer.size() == before) {
        tiling.back() = std::nullopt;
        longer.push_back(tiling);
      }
    }
    tilings = std::move(longer);
  }
  return tilings;
}

std::size_t count_flat_tilings(const Shape& shape, const TilingSteps& steps, bool replicate) {
  std::set<std::vector<std::int64_t>> different;
  for (const TensorTiling& tiling : tilings_of(shape, steps, replicate))
    different.insert(pieces_per_axis(shape, tiling, steps));
  return different.size();
}

std::vector<IndexBox> boxes_of(const Shape& shape, const TensorTiling& tiling, const TilingSteps& steps) {
  std::int64_t devices = 1;
  for (const std::int64_t size : steps) devices *= size;
  std::vector<IndexBox> boxes;
  for (std::int64_t device = 0; device < devices; ++device) {
    std::vector<RangePiece> pieces;
    for (const std::int64_t extent : shape) pieces.push_back({extent, 0, 1});
    std::int64_t stride = devices;
    for (std::size_t step = 0; step < steps.size(); ++step) {
      stride /= steps[step];
      if (!tiling[step]) continue;
      RangePiece& piece = pieces[*tiling[step]];
      piece.index = piece.index * steps[step] + device / stride % steps[step];
      piece.pieces *= steps[step];
    }
    IndexBox& box = boxes.emplace_back();
    for (const RangePiece& piece : pieces) box.push_back(piece.range());
  }
  return boxes;
}

std::int64_t overlap_of(const IndexBox& a, const IndexBox& b) {
  std::int64_t elements = 1;
  for (std::size_t axis = 0; axis < a.size(); ++axis)
    elements *= IndexRange{std::max(a[axis].begin, b[axis].begin), std::min(a[axis].end, b[axis].end)}.size();
  return elements;
}

double fetched(const std::vector<IndexBox>& need, const std::vector<IndexBox>& own) {
  double elements = 0;
  for (std::size_t device = 0; device < need.size(); ++device)
    elements += static_cast<double>(volume_of(need[device]) - overlap_of(need[device], own[device]));
  return elements;
}

double reduced(const std::vector<IndexBox>& made, std::int64_t summands, const std::vector<IndexBox>& own) {
  double elements = 0;
  for (std::size_t device = 0; device < own.size(); ++device)
    elements += static_cast<double>(summands * volume_of(own[device]) - overlap_of(own[device], made[device]));
  return elements;
}

}  // namespace taso
