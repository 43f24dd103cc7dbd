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

/// True if a tensor of this shape is the same bytes in both layouts: they order the axes longer than 1 alike, or it is
/// empty. One channel or 1x1 images, for instance, between row_major and channels_last.
[[nodiscard]] bool same_bytes(std::span<const std::int64_t> shape, Layout a, Layout b);

/// The first layout that is the same bytes: what tensors are compared by.
[[nodiscard]] Layout canonical(std::span<const std::int64_t> shape, Layout layout);

/// True if all axes outside `axis`, in memory order, have extent 1: a range of the axis is a range of bytes.
[[nodiscard]] bool is_outermost(std::span<const std::int64_t> shape, Layout layout, std::size_t axis);

/// The strides with which a tensor of `shape` and `strides` is read when broadcast (numpy alignment) to `target`: 0
/// along repeated axes. The caller has checked is_broadcastable.
[[nodiscard]] std::vector<std::int64_t> broadcast_strides(std::span<const std::int64_t> shape,
                                                          std::span<const std::int64_t> strides,
                                                          std::span<const std::int64_t> target);

/// Whether `shape` broadcasts to `target`.
[[nodiscard]] bool is_broadcastable(std::span<const std::int64_t> shape, std::span<const std::int64_t> target);

}  // namespace taso
