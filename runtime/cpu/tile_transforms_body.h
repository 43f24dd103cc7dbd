#pragma once

// The transforms of cpu/tile_transforms.h, included once per instruction set with TASO_TRANSFORMS_NAME defined as the
// function to define. Internal linkage and no library templates, as in cpu/loops_body.h. There is nothing to contract,
// and so a number does not depend on its place in a vector.

#include <stdint.h>  // NOLINT(modernize-deprecated-headers)

#include "runtime/cpu/pack.h"
#include "runtime/cpu/tile_transforms.h"

namespace taso::cpu {
namespace {

/// A number of T from memory, and to it.
template <class T>
struct In;
template <>
struct In<float> {
  static constexpr int64_t count = 1;
  static float load(const float* from) { return *from; }
  static void store(float* to, float value) { *to = value; }
};
template <>
struct In<Pack> {
  static constexpr int64_t count = lanes;
  static Pack load(const float* from) { return *reinterpret_cast<const PackAnywhere*>(from); }
  static void store(float* to, Pack value) { *reinterpret_cast<PackAnywhere*>(to) = value; }
};

/// B' of one column or row.
template <class T>
inline void spread(T a, T b, T c, T d, T* to, int step) {
  to[0] = a - c;
  to[step] = b + c;
  to[2 * step] = c - b;
  to[3 * step] = b - d;
}

template <class T>
inline int64_t spread_channels(const float* const* pixels, float* v, int64_t stride, int64_t begin, int64_t end) {
  int64_t c = begin;
  for (; c + In<T>::count <= end; c += In<T>::count) {
    T half[16], whole[16];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j)
      spread<T>(In<T>::load(pixels[j] + c), In<T>::load(pixels[4 + j] + c), In<T>::load(pixels[8 + j] + c),
                In<T>::load(pixels[12 + j] + c), half + j, 4);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      spread<T>(half[4 * i], half[4 * i + 1], half[4 * i + 2], half[4 * i + 3], whole + 4 * i, 1);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) In<T>::store(v + i * stride + c, whole[i]);
  }
  return c;
}

void input(const float* const* pixels, float* v, int64_t stride, int64_t channels) {
  const int64_t done = spread_channels<Pack>(pixels, v, stride, 0, channels);
  spread_channels<float>(pixels, v, stride, done, channels);
}

template <class T>
inline T above_zero(T x) {
  const T zero = T{};
  return x < zero ? zero : x;
}

template <class T, bool Biased, bool Adds, bool Relu>
inline int64_t gather_channels(const float* m, int64_t stride, const float* bias, const float* const* added,
                               float* const* pixels, int64_t begin, int64_t end) {
  int64_t c = begin;
  for (; c + In<T>::count <= end; c += In<T>::count) {
    T half[8], y[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const T m0 = In<T>::load(m + j * stride + c), m1 = In<T>::load(m + (4 + j) * stride + c),
              m2 = In<T>::load(m + (8 + j) * stride + c), m3 = In<T>::load(m + (12 + j) * stride + c);
      half[j] = m0 + m1 + m2;
      half[4 + j] = m1 - m2 - m3;
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      y[2 * i] = half[4 * i] + half[4 * i + 1] + half[4 * i + 2];
      y[2 * i + 1] = half[4 * i + 1] - half[4 * i + 2] - half[4 * i + 3];
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      T value = y[i];
      if (Biased) value = value + In<T>::load(bias + c);
      if (Adds) value = value + In<T>::load(added[i] + c);
      In<T>::store(pixels[i] + c, Relu ? above_zero(value) : value);
    }
  }
  return c;
}

template <bool Biased, bool Adds, bool Relu>
void gather(const float* m, int64_t stride, const float* bias, const float* const* added, float* const* pixels,
            int64_t channels) {
  const int64_t done = gather_channels<Pack, Biased, Adds, Relu>(m, stride, bias, added, pixels, 0, channels);
  gather_channels<float, Biased, Adds, Relu>(m, stride, bias, added, pixels, done, channels);
}

void output(const float* m, int64_t stride, const float* bias, const float* const* added, float* const* pixels,
            bool relu, int64_t channels) {
  using Gather = void (*)(const float*, int64_t, const float*, const float* const*, float* const*, int64_t);
  static constexpr Gather kinds[2][2][2] = {
      {{gather<false, false, false>, gather<false, false, true>},
       {gather<false, true, false>, gather<false, true, true>}},
      {{gather<true, false, false>, gather<true, false, true>}, {gather<true, true, false>, gather<true, true, true>}}};
  kinds[bias != nullptr][added != nullptr][relu](m, stride, bias, added, pixels, channels);
}

}  // namespace

const TileTransforms* TASO_TRANSFORMS_NAME();

const TileTransforms* TASO_TRANSFORMS_NAME() {
  static constexpr TileTransforms table = {input, output};
  return &table;
}

}  // namespace taso::cpu
