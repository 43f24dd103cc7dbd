#include "runtime/strides.h"

#include <array>

#include "support/status.h"

namespace taso {

std::vector<std::int64_t> strides_of(std::span<const std::int64_t> shape, Layout layout) {
  TASO_CHECK(fits_rank(layout, shape.size()), "a layout that the rank of a tensor does not allow");
  std::vector<std::int64_t> strides(shape.size());
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
  return strides;
}

bool same_bytes(std::span<const std::int64_t> shape, Layout a, Layout b) {
  if (a == b) return true;
  for (const std::int64_t extent : shape)
    if (extent == 0) return true;
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
    if (fits_rank(candidate, shape.size()) && same_bytes(shape, candidate, layout)) return candidate;
  }
  return layout;
}

bool is_outermost(std::span<const std::int64_t> shape, Layout layout, std::size_t axis) {
  const std::size_t rank = shape.size();
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
