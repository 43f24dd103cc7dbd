#include "runtime/strides.h"

#include "support/status.h"

namespace taso {

std::vector<std::int64_t> strides_of(std::span<const std::int64_t> shape, Layout layout) {
  std::vector<std::int64_t> strides(shape.size());
  switch (layout) {
    case Layout::row_major: {
      std::int64_t stride = 1;
      for (std::size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) strides[axis] = stride;
      break;
    }
    case Layout::channels_last:
      TASO_CHECK(shape.size() == 4, "channels_last needs rank 4");
      strides[1] = 1;
      strides[3] = shape[1];
      strides[2] = shape[3] * strides[3];
      strides[0] = shape[2] * strides[2];
      break;
  }
  return strides;
}

bool layouts_coincide(std::span<const std::int64_t> shape) {
  if (shape.size() != 4) return true;
  return shape[1] <= 1 || shape[2] * shape[3] <= 1 || shape[0] == 0;
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
