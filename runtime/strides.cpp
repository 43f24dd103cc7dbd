#include "runtime/strides.h"

#include <algorithm>
#include <array>
#include <utility>

#include "support/status.h"

namespace taso {

std::vector<std::int64_t> strides_of(std::span<const std::int64_t> shape, Layout layout) {
  std::vector<std::int64_t> strides(shape.size());
  fill_strides(shape, layout, strides);
  return strides;
}

void fill_strides(std::span<const std::int64_t> shape, Layout layout, std::span<std::int64_t> strides) {
  TASO_CHECK(fits(layout, shape) && block_of(layout) == 0, "a layout without strides on this shape");
  std::int64_t stride = 1;
  const std::array<std::size_t, 3> innermost = innermost_axes(layout);
  for (std::size_t i = innermost.size(); i-- > 0;) {
    if (innermost[i] > shape.size()) continue;
    const std::size_t axis = shape.size() - innermost[i];
    strides[axis] = stride;
    stride *= shape[axis];
  }
  for (std::size_t axis = shape.size() < 3 ? 0 : shape.size() - 3; axis-- > 0; stride *= shape[axis])
    strides[axis] = stride;
}

bool same_bytes(std::span<const std::int64_t> shape, Layout a, Layout b) {
  if (a == b) return true;
  for (const std::int64_t extent : shape)
    if (extent == 0) return true;
  // One block is channels_last, and of 1x1 images the blocks lie as rows.
  for (auto [blocks, other] : {std::pair(a, b), std::pair(b, a)})
    if (block_of(blocks) != 0) {
      if (shape[1] == block_of(blocks)) return same_bytes(shape, Layout::channels_last, other);
      return shape[2] * shape[3] == 1 && same_bytes(shape, Layout::row_major, other);
    }
  // Only the order of axes longer than 1 counts.
  const auto order = [&](Layout layout) {
    std::array<std::size_t, 3> axes{};
    std::size_t count = 0;
    for (const std::size_t from_end : innermost_axes(layout))
      if (from_end <= shape.size() && shape[shape.size() - from_end] != 1) axes[count++] = from_end;
    return axes;
  };
  return order(a) == order(b);
}

Layout canonical(std::span<const std::int64_t> shape, Layout layout) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(layout); ++i) {
    const auto candidate = static_cast<Layout>(i);
    if (fits(candidate, shape) && same_bytes(shape, candidate, layout)) return candidate;
  }
  return layout;
}

bool is_outermost(std::span<const std::int64_t> shape, Layout layout, std::size_t axis) {
  const std::size_t rank = shape.size();
  if (block_of(layout) != 0) {  // n, c / block, h, w, c % block; of c, ranges of whole blocks
    const bool one_block = shape[1] == block_of(layout);
    return axis == 0 || (shape[0] == 1 && (axis == 1 || (one_block && (axis == 2 || shape[2] == 1))));
  }
  for (std::size_t i = 0; i + 3 < rank; ++i) {
    if (i == axis) return true;
    if (shape[i] != 1) return false;
  }
  for (const std::size_t from_end : innermost_axes(layout)) {
    if (from_end > rank) continue;
    if (rank - from_end == axis) return true;
    if (shape[rank - from_end] != 1) return false;
  }
  return true;
}

std::int64_t block_among(std::span<const Layout> layouts) {
  std::int64_t block = 0;
  for (const Layout layout : layouts) block = std::max(block, block_of(layout));
  return block;
}

void split_channels(std::vector<std::int64_t>& extents, std::int64_t block) {
  if (block == 0) return;
  extents[1] /= block;
  extents.insert(extents.begin() + 2, block);
}

std::vector<std::int64_t> strides_split(std::span<const std::int64_t> shape, Layout layout, std::int64_t block) {
  if (block_of(layout) != 0) {
    TASO_CHECK(fits(layout, shape) && block_of(layout) == block, "blocks of another size");
    const std::int64_t image = shape[2] * shape[3];
    return {shape[1] * image, image * block, 1, shape[3] * block, block};
  }
  std::vector<std::int64_t> strides = strides_of(shape, layout);
  split_strides(strides, block);
  return strides;
}

void split_strides(std::vector<std::int64_t>& strides, std::int64_t block) {
  if (block == 0) return;
  const std::int64_t channel = strides[1];
  strides[1] = channel * block;
  strides.insert(strides.begin() + 2, channel);
}

std::vector<std::int64_t> broadcast_strides(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                                            std::span<const std::int64_t> target) {
  std::vector<std::int64_t> result(target.size(), 0);
  const std::size_t lead = target.size() - shape.size();
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    result[lead + axis] = shape[axis] == 1 && target[lead + axis] != 1 ? 0 : strides[axis];
  return result;
}

bool is_broadcastable(std::span<const std::int64_t> shape, std::span<const std::int64_t> target) {
  if (shape.size() > target.size()) return false;
  const std::size_t lead = target.size() - shape.size();
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] != 1 && shape[axis] != target[lead + axis]) return false;
  return true;
}

}  // namespace taso
