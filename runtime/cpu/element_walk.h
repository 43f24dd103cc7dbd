/// How element-wise kernels go over their operands: the output's axes in memory order, those along which all operands
/// advance regularly merged, and the innermost of what remains at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/kernel.h"

namespace taso::cpu {

struct ElementWalk {
  std::vector<std::int64_t> extents;               ///< Of the merged axes, outermost first; at least one.
  std::vector<std::vector<std::int64_t>> strides;  ///< Per input, per axis, in elements. The output is dense.
  /// How many times the innermost axis is gone along.
  [[nodiscard]] std::int64_t rows() const;
};

/// Of a request for an element-wise operator whose inputs broadcast to its one output. Blocks of channels: of an input,
/// only where the output has them and the same shape.
[[nodiscard]] ElementWalk element_walk(const KernelRequest& request);

/// Why there is no walk of the request; empty if there is one.
[[nodiscard]] std::string no_element_walk(const KernelRequest& request);

/// Calls f(where the row begins in each input, row) for the rows in [begin, end), in order.
template <class F>
void for_rows(const ElementWalk& walk, std::int64_t begin, std::int64_t end, F&& f) {
  const std::size_t outer = walk.extents.size() - 1;
  std::vector<std::int64_t> index(outer), offsets(walk.strides.size(), 0);
  std::int64_t rest = begin;
  for (std::size_t axis = outer; axis-- > 0;) {
    index[axis] = rest % walk.extents[axis];
    rest /= walk.extents[axis];
    for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] += index[axis] * walk.strides[i][axis];
  }
  for (std::int64_t row = begin; row < end; ++row) {
    f(std::span<const std::int64_t>(offsets), row);
    for (std::size_t axis = outer; axis-- > 0;) {
      const bool carry = ++index[axis] == walk.extents[axis];
      for (std::size_t i = 0; i < offsets.size(); ++i)
        offsets[i] += walk.strides[i][axis] * (carry ? 1 - walk.extents[axis] : 1);
      if (!carry) break;
      index[axis] = 0;
    }
  }
}

}  // namespace taso::cpu
