/// Strides of tensors in their layouts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/layout.h"
#include "graph/tensor_type.h"

namespace taso {

/// Distance in elements between neighbours along each logical axis. Not for blocks of channels.
[[nodiscard]] std::vector<std::int64_t> strides_of(std::span<const std::int64_t> shape, Layout layout);
/// The same into `strides`, one per axis.
void fill_strides(std::span<const std::int64_t> shape, Layout layout, std::span<std::int64_t> strides);

/// True if a tensor of this shape is the same bytes in both layouts: they order the axes longer than 1 alike, or it is
/// empty. One channel or 1x1 images, for instance, between row_major and channels_last.
[[nodiscard]] bool same_bytes(std::span<const std::int64_t> shape, Layout a, Layout b);

/// The first layout that is the same bytes: what tensors are compared by.
[[nodiscard]] Layout canonical(std::span<const std::int64_t> shape, Layout layout);

/// True if all axes outside `axis`, in memory order, have extent 1: a range of the axis is a range of bytes.
[[nodiscard]] bool is_outermost(std::span<const std::int64_t> shape, Layout layout, std::size_t axis);

/// Blocks of channels have strides on five axes, n, c / block, c % block, h, w, in which logical order is that of the
/// four. The block among some layouts (0: none, and all these functions then leave the four axes as they are):
[[nodiscard]] std::int64_t block_among(std::span<const Layout> layouts);
/// Extents on the five axes, in place; c is a multiple of `block`.
void split_channels(std::vector<std::int64_t>& extents, std::int64_t block);
/// Strides on the five axes from those on four, in place.
void split_strides(std::vector<std::int64_t>& strides, std::int64_t block);
/// Strides on the five axes (with `block` 0: strides_of) of a tensor in a layout without blocks or with blocks of this
/// size.
[[nodiscard]] std::vector<std::int64_t> strides_split(std::span<const std::int64_t> shape, Layout layout,
                                                      std::int64_t block);

/// The strides with which a tensor of `shape` and `strides` is read when broadcast (numpy alignment) to `target`: 0
/// along repeated axes. The caller has checked is_broadcastable.
[[nodiscard]] std::vector<std::int64_t> broadcast_strides(std::span<const std::int64_t> shape,
                                                          std::span<const std::int64_t> strides,
                                                          std::span<const std::int64_t> target);

/// Whether `shape` broadcasts to `target`.
[[nodiscard]] bool is_broadcastable(std::span<const std::int64_t> shape, std::span<const std::int64_t> target);

}  // namespace taso
