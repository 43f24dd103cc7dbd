/// Physical orders of a tensor's axes in memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace taso {

/// Axes before the last three come first, in order; a layout is an order of the last three (of fewer, where there are
/// fewer), or blocks of channels. Names of two speak of batches of matrices [.., b, m, n].
enum class Layout : std::uint8_t {
  row_major,      ///< Last axis innermost; every tensor can have it.
  channels_last,  ///< Rank 4 only: logical [n, c, h, w] stored as n, h, w, c.
  column_major,   ///< [.., m, n] stored as n, m: a transposed matrix. Rank 2 or more.
  rows_outer,     ///< [.., b, m, n] stored as m, b, n: heads of attention as a product leaves them. Rank 3 or more.
  columns_outer,  ///< [.., b, m, n] stored as n, b, m: the same, each matrix transposed. Rank 3 or more.
  blocks_of_8,    ///< Rank 4, channels a multiple of 8: [n, c, h, w] stored as n, c / 8, h, w, c % 8.
  blocks_of_16,   ///< The same with 16.
};

inline constexpr std::size_t layout_count = 7;

/// Channels of a block; 0 for layouts that are an order of axes.
[[nodiscard]] constexpr std::int64_t block_of(Layout layout) {
  switch (layout) {
    case Layout::row_major:
    case Layout::channels_last:
    case Layout::column_major:
    case Layout::rows_outer:
    case Layout::columns_outer:
      return 0;
    case Layout::blocks_of_8:
      return 8;
    case Layout::blocks_of_16:
      return 16;
  }
  return 0;
}

/// "row", "nhwc", "col", "mbn", "nbm", "nchw8c" or "nchw16c".
[[nodiscard]] constexpr const char* to_string(Layout layout) {
  switch (layout) {
    case Layout::row_major:
      return "row";
    case Layout::channels_last:
      return "nhwc";
    case Layout::column_major:
      return "col";
    case Layout::rows_outer:
      return "mbn";
    case Layout::columns_outer:
      return "nbm";
    case Layout::blocks_of_8:
      return "nchw8c";
    case Layout::blocks_of_16:
      return "nchw16c";
  }
  return "?";
}

/// The last three axes from outermost to innermost, each as its distance from the end (1: the last axis). Not for
/// blocks.
[[nodiscard]] constexpr std::array<std::size_t, 3> innermost_axes(Layout layout) {
  switch (layout) {
    case Layout::row_major:
      return {3, 2, 1};
    case Layout::channels_last:
      return {2, 1, 3};
    case Layout::column_major:
      return {3, 1, 2};
    case Layout::rows_outer:
      return {2, 3, 1};
    case Layout::columns_outer:
      return {1, 3, 2};
    case Layout::blocks_of_8:
    case Layout::blocks_of_16:
      break;
  }
  return {3, 2, 1};
}

/// Whether tensors of this shape can have the layout.
[[nodiscard]] constexpr bool fits(Layout layout, std::span<const std::int64_t> shape) {
  const std::size_t rank = shape.size();
  switch (layout) {
    case Layout::row_major:
      return true;
    case Layout::channels_last:
      return rank == 4;
    case Layout::column_major:
      return rank >= 2;
    case Layout::rows_outer:
    case Layout::columns_outer:
      return rank >= 3;
    case Layout::blocks_of_8:
    case Layout::blocks_of_16:
      return rank == 4 && shape[1] > 0 && shape[1] % block_of(layout) == 0;
  }
  return false;
}

}  // namespace taso
