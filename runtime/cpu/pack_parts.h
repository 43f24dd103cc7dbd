#pragma once

// Parts of vectors (cpu/pack.h), for the ends of rows, and several vectors at once: one from the lanes of many, rows
// and columns exchanged. Internal linkage and no library templates, as in cpu/loops_body.h.

#include <math.h>    // NOLINT(modernize-deprecated-headers): <cmath> declares templates
#include <stdint.h>  // NOLINT(modernize-deprecated-headers)
#include <string.h>  // NOLINT(modernize-deprecated-headers)

#include "runtime/cpu/pack.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace taso::cpu {
namespace {

#if defined(__AVX512F__)
using Part = __mmask16;
/// The first `count` lanes; at least one.
inline Part part_of(Count count) { return static_cast<Part>(0xffffu >> (lanes - count)); }
/// Those lanes of x; `rest` elsewhere.
inline Pack load_part(const float* x, Part part, Pack rest) {
  return static_cast<Pack>(_mm512_mask_loadu_ps(static_cast<__m512>(rest), part, x));
}
/// Those lanes of a vector; 0 elsewhere.
inline Pack only(Part part, Pack value) {
  return static_cast<Pack>(_mm512_maskz_mov_ps(part, static_cast<__m512>(value)));
}
inline void store_part(float* x, Part part, Pack value) { _mm512_mask_storeu_ps(x, part, static_cast<__m512>(value)); }
inline Pack root(Pack x) { return static_cast<Pack>(_mm512_sqrt_ps(static_cast<__m512>(x))); }
#elif defined(__AVX2__)
using Part = __m256i;
inline Part part_of(Count count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline Pack load_part(const float* x, Part part, Pack rest) {
  return static_cast<Pack>(
      _mm256_blendv_ps(static_cast<__m256>(rest), _mm256_maskload_ps(x, part), _mm256_castsi256_ps(part)));
}
inline Pack only(Part part, Pack value) {
  return static_cast<Pack>(_mm256_and_ps(static_cast<__m256>(value), _mm256_castsi256_ps(part)));
}
inline void store_part(float* x, Part part, Pack value) { _mm256_maskstore_ps(x, part, static_cast<__m256>(value)); }
inline Pack root(Pack x) { return static_cast<Pack>(_mm256_sqrt_ps(static_cast<__m256>(x))); }
#else
using Part = Count;
inline Part part_of(Count count) { return count; }
inline Pack load_part(const float* x, Part part, Pack rest) {
  for (Count i = 0; i < part; ++i) rest[i] = x[i];
  return rest;
}
inline Pack only(Part part, Pack value) {
  for (Count i = part; i < lanes; ++i) value[i] = 0;
  return value;
}
inline void store_part(float* x, Part part, Pack value) {
  for (Count i = 0; i < part; ++i) x[i] = value[i];
}
inline Pack root(Pack x) {
  for (Count i = 0; i < lanes; ++i) x[i] = sqrtf(x[i]);
  return x;
}
#endif

/// Loads of whole vectors, and of a part of each.
struct Whole {
  static Pack only(Pack value) { return value; }
  Pack operator()(const float* x) const { return *reinterpret_cast<const PackAnywhere*>(x); }
};
struct Some {
  Part part;
  Pack rest;
  [[nodiscard]] Pack only(Pack value) const { return cpu::only(part, value); }
  Pack operator()(const float* x) const { return load_part(x, part, rest); }
};

inline void keep(float* to, Pack value) { *reinterpret_cast<PackAnywhere*>(to) = value; }

template <int... I>
struct Lanes {};
#if TASO_VECTOR_BYTES == 64
using AllLanes = Lanes<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>;
#elif TASO_VECTOR_BYTES == 32
using AllLanes = Lanes<0, 1, 2, 3, 4, 5, 6, 7>;
#else
using AllLanes = Lanes<0, 1, 2, 3>;
#endif

/// In each block of lanes, the first (or the second) half of a's block and then that of b's.
template <int Block, bool Second, int... I>
inline Pack halves(Pack a, Pack b, Lanes<I...>) {
  return __builtin_shufflevector(
      a, b, ((I % Block < Block / 2 ? I : static_cast<int>(lanes) + I - Block / 2) + (Second ? Block / 2 : 0))...);
}

/// Of `lanes` vectors one: lane r is all of vector r, combined by F::both.
template <class F, int Block = static_cast<int>(lanes)>
inline Pack across(Pack* packs) {
#pragma GCC unroll 16
  for (int i = 0; i < Block / 2; ++i)
    packs[i] = F::both(halves<Block, false>(packs[i], packs[i + Block / 2], AllLanes()),
                       halves<Block, true>(packs[i], packs[i + Block / 2], AllLanes()));
  if constexpr (Block > 2)
    return across<F, Block / 2>(packs);
  else
    return packs[0];
}

/// All lanes of a vector, combined by F::both.
template <class F, int Block = static_cast<int>(lanes)>
inline float combined(Pack x) {
  x = F::both(halves<Block, false>(x, x, AllLanes()), halves<Block, true>(x, x, AllLanes()));
  if constexpr (Block > 2)
    return combined<F, Block / 2>(x);
  else
    return x[0];
}

/// Rows and columns of `lanes` vectors, exchanged.
template <int Block = static_cast<int>(lanes)>
inline void exchange(Pack* packs) {
#pragma GCC unroll 16
  for (int group = 0; group < static_cast<int>(lanes); group += Block) {
#pragma GCC unroll 16
    for (int i = group; i < group + Block / 2; ++i) {
      const Pack a = packs[i], b = packs[i + Block / 2];
      packs[i] = halves<Block, false>(a, b, AllLanes());
      packs[i + Block / 2] = halves<Block, true>(a, b, AllLanes());
    }
  }
  if constexpr (Block > 2) exchange<Block / 2>(packs);
}

}  // namespace
}  // namespace taso::cpu
