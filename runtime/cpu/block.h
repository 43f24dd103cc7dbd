/// Elements that kernels compute with at a time, and operations on them: one loop of cpu/loops.h each.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/cpu/loops.h"

namespace taso::cpu {

/// Elements of a block.
inline constexpr std::int64_t block_elements = 1024;

/// Of a block some of whose elements lie apart: those between them should stay in the cache.
inline constexpr std::int64_t block_elements_apart = 128;

/// So many blocks are transposed together at most, and so many elements of them are to be, as far as blocks are no
/// shorter than those of elements that lie apart.
inline constexpr std::int64_t turned_steps = 112;
inline constexpr std::int64_t turned_elements = 32768;

/// Rows of fewer elements are rather transposed than computed several at once.
inline constexpr std::int64_t fewest_of_row = 16;
/// Elements of rows that are computed at once.
inline constexpr std::int64_t elements_of_rows = 2048;

/// Elements of a block in memory: one, which all are, or as many as there are.
struct Block {
  const float* data = nullptr;
  bool uniform = true;
};

/// f(x) in `y`, which may be x.
[[nodiscard]] inline Block apply(const UnaryEntry& f, Block x, float* y, std::int64_t count, float p = 0, float q = 0) {
  f.loop(x.data, y, x.uniform ? 1 : count, p, q);
  return {y, x.uniform};
}

/// f(a, b) in `y`, which may be a or b.
[[nodiscard]] inline Block apply(const BinaryEntry& f, Block a, Block b, float* y, std::int64_t count) {
  if (a.uniform && b.uniform)
    f.both(a.data, b.data, y, 1);
  else if (b.uniform)
    f.second_scalar(a.data, b.data, y, count);
  else if (a.uniform)
    f.first_scalar(a.data, b.data, y, count);
  else
    f.both(a.data, b.data, y, count);
  return {y, a.uniform && b.uniform};
}

/// All elements of the block in `elements`.
inline void store(Block block, std::int64_t count, float* elements) {
  if (block.uniform)
    std::fill_n(elements, count, *block.data);
  else if (block.data != elements)
    std::copy_n(block.data, count, elements);
}

}  // namespace taso::cpu
