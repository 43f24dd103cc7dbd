/// Strides of tensors in their layouts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/layout.h"
#include "graph/tensor_type.h"

namespace taso {

/// Distance in elements between neighbours along each logical axis.
[[nodiscard]] std::vector<std::int64_t> strides_of(std::span<const std::int64_t> shape, Layout layout);

/// True if both layouts of a tensor of this shape are the same bytes: not rank 4, one channel, 1x1 images, or empty.
[[nodiscard]] bool layouts_coincide(std::span<const std::int64_t> shape);

/// The strides with which a tensor of `shape` and `strides` is read when broadcast (numpy alignment) to `target`: 0
/// along repeated axes. The caller has checked is_broadcastable.
[[nodiscard]] std::vector<std::int64_t> broadcast_strides(std::span<const std::int64_t> shape,
                                                          std::span<const std::int64_t> strides,
                                                          std::span<const std::int64_t> target);

/// Whether `shape` broadcasts to `target`.
[[nodiscard]] bool is_broadcastable(std::span<const std::int64_t> shape, std::span<const std::int64_t> target);

}  // namespace taso
