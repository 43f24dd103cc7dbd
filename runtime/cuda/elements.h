/// The computing part of the backend's own kernels: objects that are copied to the device and called there, of three
/// kinds.
///
/// *Each*: `f(i)` computes element (or pack of elements) number i, independent of all others.
///
/// *Team*: `f(team, row)` is called by all threads of a team for one row. A team has `begin()` (the calling thread's
/// first element; beyond any count if the thread has nothing to do), `step()` (the distance to its next), `sum(x)` and
/// `maximum(x)` (over the team, in a fixed order, the same result in every thread), and `leads()` (true in one thread
/// that has something to do).
///
/// *Tiles*: `f.load(tile, block, thread)` by all threads of a block, a barrier, `f.store(tile, block, thread)`.
///
/// Strides and offsets count elements. Pointers are aligned to the element's size; packs ask for more where said.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "runtime/cuda/functions.h"
#include "runtime/cuda/scalar.h"
#include "runtime/cuda/walk.h"

namespace taso::cuda {

/// 16 bytes that only move.
struct alignas(16) Wide {
  std::uint64_t low, high;
};

/// As many elements as 16 bytes hold.
template <class T>
struct alignas(16) Pack {
  static constexpr int size = 16 / static_cast<int>(sizeof(T));
  T values[size];
};

/// Reads and writes packs; addresses are multiples of 16 on the device.
template <class T>
TASO_BOTH Pack<T> load_pack(const T* from) {
#ifdef __CUDA_ARCH__
  union {
    uint4 bits;
    Pack<T> pack;
  } both;
  both.bits = *reinterpret_cast<const uint4*>(from);
  return both.pack;
#else
  Pack<T> pack;
  memcpy(&pack, from, sizeof(pack));
  return pack;
#endif
}
template <class T>
TASO_BOTH void store_pack(T* to, const Pack<T>& pack) {
#ifdef __CUDA_ARCH__
  union {
    uint4 bits;
    Pack<T> pack;
  } both;
  both.pack = pack;
  *reinterpret_cast<uint4*>(to) = both.bits;
#else
  memcpy(to, &pack, sizeof(pack));
#endif
}

/// y[i] = f(x[i]) over `count` contiguous elements, a pack per call: calls 0 to (count + size - 1) / size - 1. Both
/// pointers are aligned to 16.
template <class T>
struct FlatUnary {
  const T* x;
  T* y;
  std::int64_t count;
  Function function;
  float p, q;

  TASO_BOTH void operator()(std::int64_t i) const {
    constexpr int size = Pack<T>::size;
    const std::int64_t first = i * size;
    if (first + size <= count) {
      Pack<T> pack = load_pack(x + first);
      for (int k = 0; k < size; ++k) pack.values[k] = narrow<T>(evaluate(function, widen(pack.values[k]), p, q));
      store_pack(y + first, pack);
    } else {
      for (std::int64_t at = first; at < count; ++at) y[at] = narrow<T>(evaluate(function, widen(x[at]), p, q));
    }
  }
};

/// y[i] = f(a[i], b[i]), the same; an operand that does not vary is one element.
template <class T>
struct FlatBinary {
  const T* a;
  const T* b;
  T* y;
  std::int64_t count;
  Binary function;
  bool a_varies, b_varies;

  TASO_BOTH void operator()(std::int64_t i) const {
    constexpr int size = Pack<T>::size;
    const std::int64_t first = i * size;
    if (first + size <= count) {
      float left[size], right[size];
      read(a, a_varies, first, left);
      read(b, b_varies, first, right);
      Pack<T> pack;
      for (int k = 0; k < size; ++k) pack.values[k] = narrow<T>(evaluate(function, left[k], right[k]));
      store_pack(y + first, pack);
    } else {
      for (std::int64_t at = first; at < count; ++at)
        y[at] = narrow<T>(evaluate(function, widen(a[a_varies ? at : 0]), widen(b[b_varies ? at : 0])));
    }
  }

 private:
  TASO_BOTH static void read(const T* from, bool varies, std::int64_t first, float (&to)[Pack<T>::size]) {
    if (varies) {
      const Pack<T> pack = load_pack(from + first);
      for (int k = 0; k < Pack<T>::size; ++k) to[k] = widen(pack.values[k]);
    } else {
      for (int k = 0; k < Pack<T>::size; ++k) to[k] = widen(*from);
    }
  }
};

/// The same through strides: y, x.
template <class T>
struct StridedUnary {
  const T* x;
  T* y;
  Walk<3> walk;
  Function function;
  float p, q;
  TASO_BOTH void operator()(std::int64_t i) const {
    std::int64_t at[3];
    walk.at(i, at);
    y[at[0]] = narrow<T>(evaluate(function, widen(x[at[1]]), p, q));
  }
};

/// y, a, b.
template <class T>
struct StridedBinary {
  const T* a;
  const T* b;
  T* y;
  Walk<3> walk;
  Binary function;
  TASO_BOTH void operator()(std::int64_t i) const {
    std::int64_t at[3];
    walk.at(i, at);
    y[at[0]] = narrow<T>(evaluate(function, widen(a[at[1]]), widen(b[at[2]])));
  }
};

/// y = f(y + bias + residual) in place: what a convolution or product ends with where the library does not. y, bias,
/// residual; bias and residual may be null.
template <class T>
struct Epilogue {
  const T* bias;
  const T* residual;
  T* y;
  Walk<3> walk;
  Function function;
  TASO_BOTH void operator()(std::int64_t i) const {
    std::int64_t at[3];
    walk.at(i, at);
    float value = widen(y[at[0]]);
    if (bias != nullptr) value += widen(bias[at[1]]);
    if (residual != nullptr) value += widen(residual[at[2]]);
    y[at[0]] = narrow<T>(evaluate(function, value, 0.0F, 0.0F));
  }
};

/// The same for a pack of neighbours along the innermost axis of all tensors: the walk counts packs.
template <class T>
struct PackedEpilogue {
  Epilogue<T> of;
  TASO_BOTH void operator()(std::int64_t i) const {
    constexpr int size = Pack<T>::size;
    std::int64_t at[3];
    of.walk.at(i, at);
    Pack<T> y = load_pack(of.y + at[0] * size), bias{}, residual{};
    if (of.bias != nullptr) bias = load_pack(of.bias + at[1] * size);
    if (of.residual != nullptr) residual = load_pack(of.residual + at[2] * size);
    for (int k = 0; k < size; ++k) {
      float value = widen(y.values[k]);
      if (of.bias != nullptr) value += widen(bias.values[k]);
      if (of.residual != nullptr) value += widen(residual.values[k]);
      y.values[k] = narrow<T>(evaluate(of.function, value, 0.0F, 0.0F));
    }
    store_pack(of.y + at[0] * size, y);
  }
};

/// A box of elements of equal size from one tensor to another: to, from.
template <class T>
struct StridedCopy {
  const T* from;
  T* to;
  Walk<2> walk;
  TASO_BOTH void operator()(std::int64_t i) const {
    std::int64_t at[2];
    walk.at(i, at);
    to[at[0]] = from[at[1]];
  }
};

inline constexpr int tile_edge = 32, tile_rows = 8;  ///< A block is tile_edge x tile_rows threads.

/// Copies matrices that are contiguous along different axes on the two sides, tile by tile, so that both sides are read
/// and written in whole lines: to[v + u * to_stride] = from[u + v * from_stride] for u < us, v < vs, for every element
/// of the outer walk (to, from).
template <class T>
struct TiledCopy {
  const T* from;
  T* to;
  Walk<2> outer;
  std::int64_t us, vs, from_stride, to_stride;

  struct Tile {
    T cells[tile_edge][tile_edge + 1];  ///< One column more: columns are read without bank conflicts.
  };
  [[nodiscard]] TASO_BOTH std::int64_t tiles_along(std::int64_t extent) const {
    return (extent + tile_edge - 1) / tile_edge;
  }
  [[nodiscard]] TASO_BOTH std::int64_t blocks() const { return outer.elements * tiles_along(us) * tiles_along(vs); }

  TASO_BOTH void load(Tile& tile, std::int64_t block, int thread) const {
    std::int64_t first_u = 0, first_v = 0, at[2];
    place(block, first_u, first_v, at);
    const std::int64_t u = first_u + thread % tile_edge;
    for (int row = thread / tile_edge; row < tile_edge; row += tile_rows) {
      const std::int64_t v = first_v + row;
      if (u < us && v < vs) tile.cells[row][thread % tile_edge] = from[at[1] + u + v * from_stride];
    }
  }
  TASO_BOTH void store(const Tile& tile, std::int64_t block, int thread) const {
    std::int64_t first_u = 0, first_v = 0, at[2];
    place(block, first_u, first_v, at);
    const std::int64_t v = first_v + thread % tile_edge;
    for (int row = thread / tile_edge; row < tile_edge; row += tile_rows) {
      const std::int64_t u = first_u + row;
      if (u < us && v < vs) to[at[0] + v + u * to_stride] = tile.cells[thread % tile_edge][row];
    }
  }

 private:
  TASO_BOTH void place(std::int64_t block, std::int64_t& u, std::int64_t& v, std::int64_t (&at)[2]) const {
    const std::int64_t along_u = tiles_along(us), along_v = tiles_along(vs);
    u = block % along_u * tile_edge;
    v = block / along_u % along_v * tile_edge;
    outer.at(block / (along_u * along_v), at);
  }
};

/// to[i] = value.
template <class T>
struct Fill {
  T* to;
  T value;
  TASO_BOTH void operator()(std::int64_t i) const { to[i] = value; }
};

/// A tensor with `value` around a box from another one. The axes are those of `to`, outermost first in its memory.
template <class T>
struct Padding {
  const T* from;
  T* to;
  T value;
  std::int32_t rank;
  std::int64_t extents[max_axes];  ///< Of `to`.
  std::int64_t inside[max_axes];   ///< Of `from`.
  std::int64_t before[max_axes];   ///< Negative: cut off.
  std::int64_t to_strides[max_axes], from_strides[max_axes];
  TASO_BOTH void operator()(std::int64_t i) const {
    std::int64_t rest = i, target = 0, source = 0;
    bool copied = true;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const std::int64_t place = rest % extents[axis];
      rest /= extents[axis];
      const std::int64_t cell = place - before[axis];
      copied = copied && cell >= 0 && cell < inside[axis];
      target += place * to_strides[axis];
      source += cell * from_strides[axis];
    }
    to[target] = copied ? from[source] : value;
  }
};

/// Slices of x at the places that an index names. The walk goes over the output: y, x without the gathered axis, index.
/// Places outside of the axis are noted in *error, and element 0 is taken in their stead.
template <class T, class I>
struct Gathering {
  const T* x;
  const I* index;
  T* y;
  Walk<3> walk;
  std::int64_t extent, stride;  ///< Of the gathered axis.
  /// Takes the least of what is noted: `number` << 40 | position in the index.
  unsigned long long* error;
  unsigned long long number;

  TASO_BOTH void operator()(std::int64_t i) const {
    std::int64_t at[3];
    walk.at(i, at);
    auto place = static_cast<std::int64_t>(index[at[2]]);
    if (place < 0) place += extent;
    if (place < 0 || place >= extent) {
      const unsigned long long note = number << 40 | static_cast<unsigned long long>(at[2]);
#ifdef __CUDA_ARCH__
      atomicMin(error, note);
#else
      if (note < *error) *error = note;
#endif
      place = 0;
    }
    y[at[0]] = x[at[1] + place * stride];
  }
};

enum class PoolKind : std::uint8_t { maximum, average_include, average_exclude };

/// Poolings. The walk goes over the output: y, the channel's begin in x, output row, output column.
template <class T>
struct Pooling {
  const T* x;
  T* y;
  Walk<4> walk;
  PoolKind kind;
  std::int64_t height, width, row_stride, column_stride;  ///< Of x.
  std::int64_t kernel[2], strides[2], pads[2], dilations[2];

  TASO_BOTH void operator()(std::int64_t i) const {
    std::int64_t at[4];
    walk.at(i, at);
    const std::int64_t top = at[2] * strides[0] - pads[0], left = at[3] * strides[1] - pads[1];
    float total = kind == PoolKind::maximum ? -INFINITY : 0.0F;
    std::int64_t cells = 0;
    for (std::int64_t u = 0; u < kernel[0]; ++u) {
      const std::int64_t row = top + u * dilations[0];
      if (row < 0 || row >= height) continue;
      for (std::int64_t v = 0; v < kernel[1]; ++v) {
        const std::int64_t column = left + v * dilations[1];
        if (column < 0 || column >= width) continue;
        const float value = widen(x[at[1] + row * row_stride + column * column_stride]);
        total = kind == PoolKind::maximum ? fmaxf(total, value) : total + value;
        ++cells;
      }
    }
    if (kind == PoolKind::average_include) total /= static_cast<float>(kernel[0] * kernel[1]);
    if (kind == PoolKind::average_exclude) total /= static_cast<float>(cells);
    y[at[0]] = narrow<T>(total);
  }
};

/// The same for a pack of neighbouring channels: the walk counts packs in y and in x.
template <class T>
struct PackedPooling {
  Pooling<T> of;

  TASO_BOTH void operator()(std::int64_t i) const {
    constexpr int size = Pack<T>::size;
    std::int64_t at[4];
    of.walk.at(i, at);
    const std::int64_t top = at[2] * of.strides[0] - of.pads[0], left = at[3] * of.strides[1] - of.pads[1];
    const bool is_maximum = of.kind == PoolKind::maximum;
    float totals[size];
    for (float& total : totals) total = is_maximum ? -INFINITY : 0.0F;
    std::int64_t cells = 0;
    for (std::int64_t u = 0; u < of.kernel[0]; ++u) {
      const std::int64_t row = top + u * of.dilations[0];
      if (row < 0 || row >= of.height) continue;
      for (std::int64_t v = 0; v < of.kernel[1]; ++v) {
        const std::int64_t column = left + v * of.dilations[1];
        if (column < 0 || column >= of.width) continue;
        const Pack<T> x = load_pack(of.x + at[1] * size + row * of.row_stride + column * of.column_stride);
        for (int k = 0; k < size; ++k)
          totals[k] = is_maximum ? fmaxf(totals[k], widen(x.values[k])) : totals[k] + widen(x.values[k]);
        ++cells;
      }
    }
    Pack<T> y;
    for (int k = 0; k < size; ++k) {
      if (of.kind == PoolKind::average_include) totals[k] /= static_cast<float>(of.kernel[0] * of.kernel[1]);
      if (of.kind == PoolKind::average_exclude) totals[k] /= static_cast<float>(cells);
      y.values[k] = narrow<T>(totals[k]);
    }
    store_pack(of.y + at[0] * size, y);
  }
};

/// A convolution of every channel with a window of its own, with bias, residual and activation. The walk goes over the
/// output: y, the channel's begin in x, output row, output column, channel, residual.
template <class T>
struct Depthwise {
  const T* x;
  const T* w;
  const T* bias;
  const T* residual;
  T* y;
  Walk<6> walk;
  std::int64_t height, width, row_stride, column_stride;  ///< Of x.
  std::int64_t kernel[2], strides[2], pads[2], dilations[2];
  std::int64_t channel_of_w, row_of_w, column_of_w;  ///< Strides.
  Function function;

  TASO_BOTH void operator()(std::int64_t i) const {
    std::int64_t at[6];
    walk.at(i, at);
    const std::int64_t top = at[2] * strides[0] - pads[0], left = at[3] * strides[1] - pads[1];
    const T* window = w + at[4] * channel_of_w;
    float total = 0;
    for (std::int64_t u = 0; u < kernel[0]; ++u) {
      const std::int64_t row = top + u * dilations[0];
      if (row < 0 || row >= height) continue;
      for (std::int64_t v = 0; v < kernel[1]; ++v) {
        const std::int64_t column = left + v * dilations[1];
        if (column < 0 || column >= width) continue;
        total +=
            widen(x[at[1] + row * row_stride + column * column_stride]) * widen(window[u * row_of_w + v * column_of_w]);
      }
    }
    if (bias != nullptr) total += widen(bias[at[4]]);
    if (residual != nullptr) total += widen(residual[at[5]]);
    y[at[0]] = narrow<T>(evaluate(function, total, 0.0F, 0.0F));
  }
};

/// The same for a pack of neighbouring channels: the walk counts packs in y, x and the residual, and of channels.
template <class T>
struct PackedDepthwise {
  Depthwise<T> of;

  TASO_BOTH void operator()(std::int64_t i) const {
    constexpr int size = Pack<T>::size;
    std::int64_t at[6];
    of.walk.at(i, at);
    const std::int64_t top = at[2] * of.strides[0] - of.pads[0], left = at[3] * of.strides[1] - of.pads[1];
    const T* windows = of.w + at[4] * size * of.channel_of_w;
    float totals[size] = {};
    for (std::int64_t u = 0; u < of.kernel[0]; ++u) {
      const std::int64_t row = top + u * of.dilations[0];
      if (row < 0 || row >= of.height) continue;
      for (std::int64_t v = 0; v < of.kernel[1]; ++v) {
        const std::int64_t column = left + v * of.dilations[1];
        if (column < 0 || column >= of.width) continue;
        const Pack<T> x = load_pack(of.x + at[1] * size + row * of.row_stride + column * of.column_stride);
        const T* factors = windows + u * of.row_of_w + v * of.column_of_w;
        for (int k = 0; k < size; ++k) totals[k] += widen(x.values[k]) * widen(factors[k * of.channel_of_w]);
      }
    }
    Pack<T> y, bias{}, residual{};
    if (of.bias != nullptr) bias = load_pack(of.bias + at[4] * size);
    if (of.residual != nullptr) residual = load_pack(of.residual + at[5] * size);
    for (int k = 0; k < size; ++k) {
      if (of.bias != nullptr) totals[k] += widen(bias.values[k]);
      if (of.residual != nullptr) totals[k] += widen(residual.values[k]);
      y.values[k] = narrow<T>(evaluate(of.function, totals[k], 0.0F, 0.0F));
    }
    store_pack(of.y + at[0] * size, y);
  }
};

/// (x - mean) / sqrt(variance + epsilon) * scale + bias per channel: y, x, channel.
template <class T>
struct BatchNorm {
  const T* x;
  const T* scale;
  const T* bias;
  const T* mean;
  const T* variance;
  T* y;
  Walk<3> walk;
  float epsilon;
  TASO_BOTH void operator()(std::int64_t i) const {
    std::int64_t at[3];
    walk.at(i, at);
    const std::int64_t c = at[2];
    const float factor = widen(scale[c]) / sqrtf(widen(variance[c]) + epsilon);
    y[at[0]] = narrow<T>((widen(x[at[1]]) - widen(mean[c])) * factor + widen(bias[c]));
  }
};

/// x / (bias + alpha / size * sum of the squares of neighbouring channels) ** beta: y, x, channel.
template <class T>
struct Lrn {
  const T* x;
  T* y;
  Walk<3> walk;
  std::int64_t channels, channel_stride, size;
  float alpha, beta, bias;  ///< alpha already divided by size.
  TASO_BOTH void operator()(std::int64_t i) const {
    std::int64_t at[3];
    walk.at(i, at);
    const std::int64_t c = at[2];
    const std::int64_t below = (size - 1) / 2, above = size / 2;
    const std::int64_t first = c < below ? 0 : c - below, last = channels - 1 - c < above ? channels - 1 : c + above;
    float energy = 0;
    for (std::int64_t k = first; k <= last; ++k) {
      const float value = widen(x[at[1] + (k - c) * channel_stride]);
      energy += value * value;
    }
    y[at[0]] = narrow<T>(widen(x[at[1]]) / powf(bias + alpha * energy, beta));
  }
};

/// Elements of rows that are turned in pairs by the angles of their position: y, x, rows of the tables of cosines and
/// of sines, and the place in the row of y.
template <class T>
struct TurnedPairs {
  const T* x;
  const T* cosines;
  const T* sines;
  T* y;
  Walk<5> walk;
  /// Of x between a pair's two elements, and where a row of the tables has the angles of the second ones.
  std::int64_t pairs, apart, second, step_of_cosines, step_of_sines;
  TASO_BOTH void operator()(std::int64_t i) const {
    std::int64_t at[5];
    walk.at(i, at);
    const std::int64_t place = at[4];
    const float own = widen(x[at[1]]);
    if (place >= 2 * pairs) {
      y[at[0]] = narrow<T>(own);
      return;
    }
    const bool first = place < pairs;
    const float other = widen(x[first ? at[1] + apart : at[1] - apart]);
    const std::int64_t angle = first ? place : second + place - pairs;
    const float turned = (first ? -other : other) * widen(sines[at[3] + angle * step_of_sines]);
    y[at[0]] = narrow<T>(own * widen(cosines[at[2] + angle * step_of_cosines]) + turned);
  }
};

enum class ReductionKind : std::uint8_t { sum, mean, maximum };

/// One output per row: the kept axes are walked as y, x; the reduced ones as x.
template <class T>
struct Reduction {
  const T* x;
  T* y;
  Walk<2> kept;
  Walk<1> reduced;
  ReductionKind kind;

  template <class Team>
  TASO_BOTH void operator()(Team& team, std::int64_t row) const {
    std::int64_t at[2], from[1];
    kept.at(row, at);
    float total = kind == ReductionKind::maximum ? -INFINITY : 0.0F;
    for (std::int64_t i = team.begin(); i < reduced.elements; i += team.step()) {
      reduced.at(i, from);
      const float value = widen(x[at[1] + from[0]]);
      total = kind == ReductionKind::maximum ? fmaxf(total, value) : total + value;
    }
    total = kind == ReductionKind::maximum ? team.maximum(total) : team.sum(total);
    if (kind == ReductionKind::mean) total /= static_cast<float>(reduced.elements);
    if (team.leads()) y[at[0]] = narrow<T>(total);
  }
};

constexpr int most_thin = 4;  ///< Rows or columns of a thin product's shorter side.

/// A matrix product of which one side has at most most_thin rows or columns, with bias and activation: a team for each
/// element of the other, wide, side, which it reads once.
template <class T>
struct ThinProduct {
  const T* wide;
  const T* thin;
  const T* bias;
  T* y;
  std::int64_t depth, thin_count;
  // Strides: along the wide side, the thin one and the depth.
  std::int64_t wide_step, wide_depth, thin_step, thin_depth;
  std::int64_t y_wide, y_thin, bias_wide, bias_thin;
  Function function;

  template <class Team>
  TASO_BOTH void operator()(Team& team, std::int64_t row) const {
    float totals[most_thin] = {};
    for (std::int64_t i = team.begin(); i < depth; i += team.step()) {
      const float factor = widen(wide[row * wide_step + i * wide_depth]);
      for (int k = 0; k < most_thin; ++k)
        if (k < thin_count) totals[k] += factor * widen(thin[k * thin_step + i * thin_depth]);
    }
    for (int k = 0; k < most_thin; ++k) {
      if (k >= thin_count) break;
      float total = team.sum(totals[k]);
      if (!team.leads()) continue;
      if (bias != nullptr) total += widen(bias[row * bias_wide + k * bias_thin]);
      y[row * y_wide + k * y_thin] = narrow<T>(evaluate(function, total, 0.0F, 0.0F));
    }
  }
};

/// Softmax of every row: rows are walked as y, x.
template <class T>
struct Softmax {
  const T* x;
  T* y;
  Walk<2> rows;
  std::int64_t count, x_stride, y_stride;

  template <class Team>
  TASO_BOTH void operator()(Team& team, std::int64_t row) const {
    std::int64_t at[2];
    rows.at(row, at);
    const T* from = x + at[1];
    T* to = y + at[0];
    float largest = -INFINITY;
    for (std::int64_t i = team.begin(); i < count; i += team.step())
      largest = fmaxf(largest, widen(from[i * x_stride]));
    largest = team.maximum(largest);
    float total = 0;
    for (std::int64_t i = team.begin(); i < count; i += team.step()) total += expf(widen(from[i * x_stride]) - largest);
    total = team.sum(total);
    for (std::int64_t i = team.begin(); i < count; i += team.step())
      to[i * y_stride] = narrow<T>(expf(widen(from[i * x_stride]) - largest) / total);
  }
};

/// (x - mean) / sqrt(variance + epsilon) * scale + bias of every row, or without a bias x / sqrt(mean square + epsilon)
/// * scale: rows are walked as y, x.
template <class T>
struct RowNorm {
  const T* x;
  const T* scale;
  const T* bias;  ///< Or null: the mean is taken for 0.
  T* y;
  Walk<2> rows;
  std::int64_t count, x_stride, y_stride;
  float epsilon;

  template <class Team>
  TASO_BOTH void operator()(Team& team, std::int64_t row) const {
    std::int64_t at[2];
    rows.at(row, at);
    const T* from = x + at[1];
    T* to = y + at[0];
    float mean = 0;
    if (bias != nullptr) {
      float total = 0;
      for (std::int64_t i = team.begin(); i < count; i += team.step()) total += widen(from[i * x_stride]);
      mean = team.sum(total) / static_cast<float>(count);
    }
    float squares = 0;
    for (std::int64_t i = team.begin(); i < count; i += team.step()) {
      const float distance = widen(from[i * x_stride]) - mean;
      squares += distance * distance;
    }
    const float deviation = sqrtf(team.sum(squares) / static_cast<float>(count) + epsilon);
    for (std::int64_t i = team.begin(); i < count; i += team.step()) {
      const float unit = (widen(from[i * x_stride]) - mean) / deviation;
      to[i * y_stride] = narrow<T>(unit * widen(scale[i]) + (bias != nullptr ? widen(bias[i]) : 0.0F));
    }
  }
};

/// Each group of an image brought to mean 0 and variance 1, every channel scaled and shifted, then a function of each
/// element.
template <class T>
struct GroupNorm {
  const T* x;
  const T* scale;
  const T* bias;
  T* y;
  Walk<3> groups;   ///< y, x, channels: their first elements.
  Walk<3> members;  ///< Of one group: y, x, channels.
  float epsilon;
  Function act;

  template <class Team>
  TASO_BOTH void operator()(Team& team, std::int64_t group) const {
    const std::int64_t count = members.elements;
    std::int64_t first[3], at[3];
    groups.at(group, first);
    float total = 0;
    for (std::int64_t i = team.begin(); i < count; i += team.step()) {
      members.at(i, at);
      total += widen(x[first[1] + at[1]]);
    }
    const float mean = team.sum(total) / static_cast<float>(count);
    float squares = 0;
    for (std::int64_t i = team.begin(); i < count; i += team.step()) {
      members.at(i, at);
      const float distance = widen(x[first[1] + at[1]]) - mean;
      squares += distance * distance;
    }
    const float deviation = sqrtf(team.sum(squares) / static_cast<float>(count) + epsilon);
    for (std::int64_t i = team.begin(); i < count; i += team.step()) {
      members.at(i, at);
      const std::int64_t channel = first[2] + at[2];
      const float unit = (widen(x[first[1] + at[1]]) - mean) / deviation;
      y[first[0] + at[0]] = narrow<T>(evaluate(act, unit * widen(scale[channel]) + widen(bias[channel]), 0.0F, 0.0F));
    }
  }
};

// ---- Several operators in one kernel. What they compute of an element is a short program, which travels with the
// launch: instructions are the same for all threads, so that reading them costs one broadcast each, and no code has to
// be compiled for a model.

inline constexpr int max_sources = 16, max_targets = 8, max_instructions = 64, max_registers = 24;

/// One operation on registers.
struct Instruction {
  enum class Kind : std::uint8_t {
    load,    ///< register `to` = element of source `a`
    store,   ///< element of target `to` = register `a`
    unary,   ///< register `to` = Function(function)(register a), p and q being clip's bounds
    binary,  ///< register `to` = Binary(function)(register a, register b)
  };
  Kind kind = Kind::load;
  std::uint8_t function = 0;
  std::uint8_t to = 0, a = 0, b = 0;
  float p = 0, q = 0;
};

/// A program and where its operands lie: per operand, of sources and then targets, strides along the axes of a box, and
/// along the row where there are rows.
struct ElementCode {
  std::int32_t count = 0;
  Instruction instructions[max_instructions] = {};
  std::int64_t strides[max_sources + max_targets][max_axes] = {};
  std::int64_t along[max_sources + max_targets] = {};
};

/// Runs instructions [first, last) for the element at `place`, `step` elements along its row.
template <class T>
TASO_BOTH void interpret(const ElementCode& code, const T* const* sources, T* const* targets, int first, int last,
                         const std::int64_t (&place)[max_axes], int rank, std::int64_t step,
                         float (&registers)[max_registers]) {
  for (int i = first; i < last; ++i) {
    const Instruction& one = code.instructions[i];
    switch (one.kind) {
      case Instruction::Kind::load:
      case Instruction::Kind::store: {
        const bool loads = one.kind == Instruction::Kind::load;
        const int operand = loads ? one.a : max_sources + one.to;
        std::int64_t at = step * code.along[operand];
        for (int axis = 0; axis < rank; ++axis) at += place[axis] * code.strides[operand][axis];
        if (loads)
          registers[one.to] = widen(sources[one.a][at]);
        else
          targets[one.to][at] = narrow<T>(registers[one.a]);
        break;
      }
      case Instruction::Kind::unary:
        registers[one.to] = evaluate(static_cast<Function>(one.function), registers[one.a], one.p, one.q);
        break;
      case Instruction::Kind::binary:
        registers[one.to] = evaluate(static_cast<Binary>(one.function), registers[one.a], registers[one.b]);
        break;
    }
  }
}

/// A program for every element of a box.
template <class T>
struct Chain {
  const T* sources[max_sources];
  T* targets[max_targets];
  Box box;
  ElementCode code;

  TASO_BOTH void operator()(std::int64_t i) const {
    std::int64_t place[max_axes];
    box.at(i, place);
    float registers[max_registers];
    interpret(code, sources, targets, 0, code.count, place, box.rank, 0, registers);
  }
};

/// What is computed of whole rows.
enum class RowFunction : std::uint8_t { softmax, normalize, divide_by_root };

/// A function of every row of what the first `before` instructions leave in register `value`: softmax, or
/// (x - mean) / sqrt(variance + epsilon), or with a mean of 0 (divide_by_root); then the other instructions, which find
/// its result in register `result`. The first ones are computed anew in each of the passes over a row, and store
/// nothing.
template <class T>
struct RowChain {
  const T* sources[max_sources];
  T* targets[max_targets];
  Box rows;
  ElementCode code;
  std::int64_t count;  ///< Elements of a row.
  std::int32_t before;
  std::int32_t value, result;
  RowFunction function;
  float epsilon;

  template <class Team>
  TASO_BOTH void operator()(Team& team, std::int64_t row) const {
    std::int64_t place[max_axes];
    rows.at(row, place);
    float registers[max_registers];
    const auto element = [&](std::int64_t i) {
      interpret(code, sources, targets, 0, before, place, rows.rank, i, registers);
      return registers[value];
    };
    float center = 0, scale = 0;
    if (function == RowFunction::softmax) {
      center = -INFINITY;
      for (std::int64_t i = team.begin(); i < count; i += team.step()) center = fmaxf(center, element(i));
      center = team.maximum(center);
      for (std::int64_t i = team.begin(); i < count; i += team.step()) scale += expf(element(i) - center);
      scale = team.sum(scale);
    } else {
      if (function == RowFunction::normalize) {
        for (std::int64_t i = team.begin(); i < count; i += team.step()) center += element(i);
        center = team.sum(center) / static_cast<float>(count);
      }
      for (std::int64_t i = team.begin(); i < count; i += team.step()) {
        const float distance = element(i) - center;
        scale += distance * distance;
      }
      scale = sqrtf(team.sum(scale) / static_cast<float>(count) + epsilon);
    }
    for (std::int64_t i = team.begin(); i < count; i += team.step()) {
      const float distance = element(i) - center;
      registers[result] = (function == RowFunction::softmax ? expf(distance) : distance) / scale;
      interpret(code, sources, targets, before, code.count, place, rows.rank, i, registers);
    }
  }
};

inline constexpr int max_pieces = 12;

/// Boxes of elements of equal size from tensors to others, one behind the other: copy k has the calls from begin[k] to
/// begin[k + 1]. Walks are to, from.
template <class T>
struct StridedCopies {
  const T* from[max_pieces];
  T* to[max_pieces];
  std::int64_t begin[max_pieces + 1];
  std::int32_t count;
  Walk<2> walks[max_pieces];

  TASO_BOTH void operator()(std::int64_t i) const {
    int k = 0;
    while (k + 1 < count && i >= begin[k + 1]) ++k;
    std::int64_t at[2];
    walks[k].at(i - begin[k], at);
    to[k][at[0]] = from[k][at[1]];
  }
};

}  // namespace taso::cuda
