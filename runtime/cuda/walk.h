/// From the number of an element to where it lies in several tensors at once.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "runtime/cuda/scalar.h"

namespace taso::cuda {

inline constexpr int max_axes = 8;

/// K linear functions of the coordinates of an index: strides in K tensors, or a coordinate itself (stride 1 on one
/// axis, 0 elsewhere). Axes are outermost first, at most max_axes, none of extent 1, merged where all K functions
/// allow.
template <int K>
struct Walk {
  std::int32_t rank = 0;
  bool narrow = true;  ///< Indices are below 2^31: divisions by multiplication.
  std::int64_t elements = 1;
  std::int64_t extents[max_axes] = {};
  Divider dividers[max_axes] = {};
  std::int64_t strides[K][max_axes] = {};

  /// The values of the K functions at element `index`, 0 <= index < elements.
  TASO_BOTH void at(std::int64_t index, std::int64_t (&values)[K]) const {
    for (int k = 0; k < K; ++k) values[k] = 0;
    if (narrow) {
      auto rest = static_cast<std::uint32_t>(index);
      for (int axis = rank - 1; axis > 0; --axis) {
        const std::uint32_t next = dividers[axis].quotient(rest);
        const std::uint32_t place = rest - next * static_cast<std::uint32_t>(extents[axis]);
        for (int k = 0; k < K; ++k) values[k] += static_cast<std::int64_t>(place) * strides[k][axis];
        rest = next;
      }
      if (rank > 0)
        for (int k = 0; k < K; ++k) values[k] += static_cast<std::int64_t>(rest) * strides[k][0];
      return;
    }
    std::int64_t rest = index;
    for (int axis = rank - 1; axis > 0; --axis) {
      const std::int64_t next = rest / extents[axis];
      const std::int64_t place = rest - next * extents[axis];
      for (int k = 0; k < K; ++k) values[k] += place * strides[k][axis];
      rest = next;
    }
    if (rank > 0)
      for (int k = 0; k < K; ++k) values[k] += rest * strides[k][0];
  }

  /// Fills in what follows from rank and extents.
  void finish() {
    elements = 1;
    for (int axis = 0; axis < rank; ++axis) elements *= extents[axis];
    narrow = elements <= std::numeric_limits<std::int32_t>::max();
    for (int axis = 0; axis < rank; ++axis)
      dividers[axis] = Divider::by(narrow ? std::max<std::int64_t>(extents[axis], 1) : 1);
  }
};

/// An index space of several axes, without tensors: from the number of an element to its coordinates. Axes as in Walk.
struct Box {
  std::int32_t rank = 0;
  bool narrow = true;  ///< As in Walk.
  std::int64_t elements = 1;
  std::int64_t extents[max_axes] = {};
  Divider dividers[max_axes] = {};

  /// The coordinates of element `index`, 0 <= index < elements.
  TASO_BOTH void at(std::int64_t index, std::int64_t (&place)[max_axes]) const {
    std::int64_t rest = index;
    for (int axis = rank - 1; axis > 0; --axis) {
      const std::int64_t next =
          narrow ? dividers[axis].quotient(static_cast<std::uint32_t>(rest)) : rest / extents[axis];
      place[axis] = rest - next * extents[axis];
      rest = next;
    }
    if (rank > 0) place[0] = rest;
  }

  /// Fills in what follows from rank and extents.
  void finish() {
    elements = 1;
    for (int axis = 0; axis < rank; ++axis) elements *= extents[axis];
    narrow = elements <= std::numeric_limits<std::int32_t>::max();
    for (int axis = 0; axis < rank; ++axis)
      dividers[axis] = Divider::by(narrow ? std::max<std::int64_t>(extents[axis], 1) : 1);
  }
};

/// The walk over a box of `extents` with the given functions, axes in the order given; nothing if more than max_axes
/// remain after merging.
template <int K>
[[nodiscard]] std::optional<Walk<K>> walk_in_order(const std::vector<std::int64_t>& extents,
                                                   const std::array<std::vector<std::int64_t>, K>& strides) {
  Walk<K> walk;
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) {
    walk.rank = 1;
    walk.finish();
    return walk;
  }
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] == 1) continue;
    bool merges = walk.rank > 0;
    for (std::size_t k = 0; k < K && merges; ++k)
      merges = walk.strides[k][walk.rank - 1] == strides[k][axis] * extents[axis];
    if (!merges && walk.rank == max_axes) return std::nullopt;
    if (!merges) walk.extents[walk.rank++] = 1;
    walk.extents[walk.rank - 1] *= extents[axis];
    for (std::size_t k = 0; k < K; ++k) walk.strides[k][walk.rank - 1] = strides[k][axis];
  }
  walk.finish();
  return walk;
}

/// The same with axes ordered by the first function, largest stride first: neighbouring indices are neighbours in the
/// first tensor, which is best the one written.
template <int K>
[[nodiscard]] std::optional<Walk<K>> walk_of(const std::vector<std::int64_t>& extents,
                                             const std::array<std::vector<std::int64_t>, K>& strides) {
  std::vector<std::size_t> order(extents.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return strides[0][a] > strides[0][b]; });
  std::vector<std::int64_t> sorted_extents;
  std::array<std::vector<std::int64_t>, K> sorted;
  for (const std::size_t axis : order) {
    sorted_extents.push_back(extents[axis]);
    for (std::size_t k = 0; k < K; ++k) sorted[k].push_back(strides[k][axis]);
  }
  return walk_in_order<K>(sorted_extents, sorted);
}

}  // namespace taso::cuda
