#pragma once

// The loops of cpu/loops.h, included once per instruction set with TASO_LOOPS_NAME defined as the function to define
// and TASO_LOOPS_SET as the name of the instruction set. Everything here has internal linkage and uses no
// library templates, so that no code for a newer processor can be picked by the linker for general use.
//
// The functions are branch-free so that compilers vectorise them. exp, log and tanh follow Cephes (Moshier), erf
// follows the two-range minimax polynomials of N. Juffa.

#include <math.h>    // NOLINT(modernize-deprecated-headers): <cmath> declares templates
#include <stdint.h>  // NOLINT(modernize-deprecated-headers)
#include <string.h>  // NOLINT(modernize-deprecated-headers)

#include "runtime/cpu/loops.h"

namespace taso::cpu {
namespace {

using Count = int64_t;

inline float from_bits(int32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

inline int32_t to_bits(float value) {
  int32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// condition ? a : b without a branch, so that compilers do not move the computation of a or b under one.
inline float select(bool condition, float a, float b) {
  const int32_t mask = -static_cast<int32_t>(condition);
  return from_bits((to_bits(a) & mask) | (to_bits(b) & ~mask));
}

inline float exponential(float x) {
  float v = x > 89.0f ? 89.0f : x;
  v = v < -104.0f ? -104.0f : v;
  const float scaled = v * 1.44269504088896341f;
  const auto n = static_cast<int32_t>(scaled + (scaled < 0 ? -0.5f : 0.5f));
  const auto whole = static_cast<float>(n);
  float r = v - whole * 0.693359375f;
  r = r + whole * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const int32_t half = n >> 1;
  return p * from_bits((half + 127) << 23) * from_bits((n - half + 127) << 23);
}

inline float logarithm(float x) {
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)); subnormal numbers are scaled up first.
  const bool tiny = x < 1.17549435e-38f;
  const float v = tiny ? x * 8388608.0f : x;
  const int32_t bits = to_bits(v);
  int32_t e = ((bits >> 23) & 255) - 126 - (tiny ? 23 : 0);
  float m = from_bits((bits & 0x007fffff) | 0x3f000000);  // in [1/2, 1)
  const bool low = m < 0.707106781186547524f;
  e = low ? e - 1 : e;
  m = low ? m + m - 1.0f : m - 1.0f;
  const float z = m * m;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  const auto f = static_cast<float>(e);
  float y = m * z * p;
  y = y + f * -2.12194440e-4f;
  y = y - 0.5f * z;
  y = m + y + f * 0.693359375f;
  y = x == HUGE_VALF ? x : y;
  y = x == 0.0f ? -HUGE_VALF : y;
  return x < 0.0f || x != x ? NAN : y;
}

inline float hyperbolic_tangent(float x) {
  const float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float small = p * z * x + x;
  const float t = fabsf(x);
  const float large = 1.0f - 2.0f / (exponential(t + t) + 1.0f);
  return select(t < 0.625f, small, copysignf(large, x));
}

inline float error_function(float x) {
  const float t = fabsf(x);
  const float s = x * x;
  float p = -5.96761703e-4f;
  p = p * s + 4.99119423e-3f;
  p = p * s - 2.67681349e-2f;
  p = p * s + 1.12819925e-1f;
  p = p * s - 3.76125336e-1f;
  p = p * s + 1.28379166e-1f;
  const float small = p * x + x;
  const float u = t > 4.0f ? 4.0f : t;  // erf(4) is 1 in single precision
  const float w = u * u;
  float q = -1.72853470e-5f * u + 3.83197126e-4f;
  q = q * w + (-3.88396438e-3f * u + 2.42546219e-2f);
  q = q * u - 1.06777877e-1f;
  q = q * u - 6.34846687e-1f;
  q = q * u - 1.28717512e-1f;
  q = q * u - u;
  const float large = 1.0f - exponential(q);
  return select(t >= 0.927734375f, copysignf(large, x), small);  // small for NaN: it is NaN
}

struct Identity {
  static float apply(float x, float, float) { return x; }
};
struct Neg {
  static float apply(float x, float, float) { return -x; }
};
struct Abs {
  static float apply(float x, float, float) { return fabsf(x); }
};
struct Sqrt {
  static float apply(float x, float, float) { return sqrtf(x); }
};
struct Exp {
  static float apply(float x, float, float) { return exponential(x); }
};
struct Log {
  static float apply(float x, float, float) { return logarithm(x); }
};
struct Erf {
  static float apply(float x, float, float) { return error_function(x); }
};
struct Tanh {
  static float apply(float x, float, float) { return hyperbolic_tangent(x); }
};
struct Sigmoid {
  static float apply(float x, float, float) { return 1.0f / (1.0f + exponential(-x)); }
};
// Reductions of large arguments, and what is rarely used, are left to the C library.
struct Sin {
  static float apply(float x, float, float) { return sinf(x); }
};
struct Cos {
  static float apply(float x, float, float) { return cosf(x); }
};
struct Tan {
  static float apply(float x, float, float) { return tanf(x); }
};
struct Atan {
  static float apply(float x, float, float) { return atanf(x); }
};
struct Sinh {
  static float apply(float x, float, float) { return sinhf(x); }
};
struct Cosh {
  static float apply(float x, float, float) { return coshf(x); }
};
struct Asinh {
  static float apply(float x, float, float) { return asinhf(x); }
};
struct Floor {
  static float apply(float x, float, float) { return floorf(x); }
};
struct Ceil {
  static float apply(float x, float, float) { return ceilf(x); }
};
struct Round {
  static float apply(float x, float, float) { return nearbyintf(x); }
};
struct Sign {
  static float apply(float x, float, float) {
    const float y = x > 0.0f ? 1.0f : 0.0f;
    return x != x ? x : (x < 0.0f ? -1.0f : y);
  }
};
struct Relu {
  static float apply(float x, float, float) { return x < 0.0f ? 0.0f : x; }
};
struct Gelu {
  static float apply(float x, float, float) { return 0.5f * x * (1.0f + error_function(x * 0.707106781186547524f)); }
};
struct GeluTanh {
  static float apply(float x, float, float) {
    return x * Sigmoid::apply(1.5957691216057308f * (x + 0.044715f * (x * x * x)), 0, 0);  // (1 + tanh(t)) / 2
  }
};
struct Silu {
  static float apply(float x, float, float) { return x * Sigmoid::apply(x, 0, 0); }
};
struct QuickGelu {
  static float apply(float x, float, float) { return x * Sigmoid::apply(1.702f * x, 0, 0); }
};
struct HardSwish {
  static float apply(float x, float, float) {
    float v = x * (1.0f / 6.0f) + 0.5f;
    v = v < 0.0f ? 0.0f : v;
    v = v > 1.0f ? 1.0f : v;
    return x * v;
  }
};
struct HardSigmoid {
  static float apply(float x, float, float) {
    float v = x * (1.0f / 6.0f) + 0.5f;
    v = v < 0.0f ? 0.0f : v;
    return v > 1.0f ? 1.0f : v;
  }
};
struct Square {
  static float apply(float x, float, float) { return x * x; }
};
struct Clip {
  static float apply(float x, float p, float q) {
    const float v = x < p ? p : x;
    return v > q ? q : v;
  }
};

template <class F>
void unary(const float* x, float* y, Count count, float p, float q) {
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] = F::apply(x[i], p, q);
}

struct Add {
  static float apply(float a, float b) { return a + b; }
};
struct Sub {
  static float apply(float a, float b) { return a - b; }
};
struct Maximum {
  static float apply(float a, float b) { return a > b ? a : b; }
};
/// The larger and the smaller one; NaN if one is.
struct Greater {
  static float apply(float a, float b) { return a > b || a != a ? a : b; }
};
struct Less {
  static float apply(float a, float b) { return a < b || a != a ? a : b; }
};
struct Remainder {
  static float apply(float a, float b) { return fmodf(a, b); }
};
struct Mul {
  static float apply(float a, float b) { return a * b; }
};
struct Div {
  static float apply(float a, float b) { return a / b; }
};

template <class F>
void both(const float* a, const float* b, float* y, Count count) {
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] = F::apply(a[i], b[i]);
}
template <class F>
void second_scalar(const float* a, const float* b, float* y, Count count) {
  const float value = *b;
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] = F::apply(a[i], value);
}
template <class F>
void first_scalar(const float* a, const float* b, float* y, Count count) {
  const float value = *a;
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] = F::apply(value, b[i]);
}

void power_both(const float* a, const float* b, float* y, Count count) {
  for (Count i = 0; i < count; ++i) y[i] = powf(a[i], b[i]);
}
void power_second_scalar(const float* a, const float* b, float* y, Count count) {
  const float exponent = *b;
  if (exponent == 2.0f) {  // NOLINT(bugprone-branch-clone): the pragma hides what differs
#pragma omp simd
    for (Count i = 0; i < count; ++i) y[i] = a[i] * a[i];
  } else if (exponent == 3.0f) {
#pragma omp simd
    for (Count i = 0; i < count; ++i) y[i] = a[i] * a[i] * a[i];
  } else if (exponent == 1.0f) {
    if (y != a) memcpy(y, a, static_cast<size_t>(count) * sizeof(float));
  } else {
    for (Count i = 0; i < count; ++i) y[i] = powf(a[i], exponent);
  }
}
void power_first_scalar(const float* a, const float* b, float* y, Count count) {
  const float base = *a;
  for (Count i = 0; i < count; ++i) y[i] = powf(base, b[i]);
}

constexpr UnaryEntry unary_entries[] = {
    {"identity", unary<Identity>},
    {"neg", unary<Neg>},
    {"abs", unary<Abs>},
    {"sqrt", unary<Sqrt>},
    {"exp", unary<Exp>},
    {"log", unary<Log>},
    {"erf", unary<Erf>},
    {"tanh", unary<Tanh>},
    {"sigmoid", unary<Sigmoid>},
    {"sin", unary<Sin>},
    {"cos", unary<Cos>},
    {"tan", unary<Tan>},
    {"atan", unary<Atan>},
    {"sinh", unary<Sinh>},
    {"cosh", unary<Cosh>},
    {"asinh", unary<Asinh>},
    {"floor", unary<Floor>},
    {"ceil", unary<Ceil>},
    {"round", unary<Round>},
    {"sign", unary<Sign>},
    {"relu", unary<Relu>},
    {"gelu", unary<Gelu>},
    {"gelu_tanh", unary<GeluTanh>},
    {"silu", unary<Silu>},
    {"quick_gelu", unary<QuickGelu>},
    {"hard_swish", unary<HardSwish>},
    {"hard_sigmoid", unary<HardSigmoid>},
    {"square", unary<Square>},
    {"clip", unary<Clip>},
};

constexpr BinaryEntry binary_entries[] = {
    {"add", both<Add>, second_scalar<Add>, first_scalar<Add>},
    {"sub", both<Sub>, second_scalar<Sub>, first_scalar<Sub>},
    {"mul", both<Mul>, second_scalar<Mul>, first_scalar<Mul>},
    {"div", both<Div>, second_scalar<Div>, first_scalar<Div>},
    {"pow", power_both, power_second_scalar, power_first_scalar},
    {"maximum", both<Maximum>, second_scalar<Maximum>, first_scalar<Maximum>},
    {"remainder", both<Remainder>, second_scalar<Remainder>, first_scalar<Remainder>},
    {"max", both<Greater>, second_scalar<Greater>, first_scalar<Greater>},
    {"min", both<Less>, second_scalar<Less>, first_scalar<Less>},
};

#if defined(__AVX512F__)
#define TASO_VECTOR_BYTES 64
#elif defined(__AVX__)
#define TASO_VECTOR_BYTES 32
#else
#define TASO_VECTOR_BYTES 16
#endif
/// A vector of this instruction set, and one in memory.
using Pack = float __attribute__((vector_size(TASO_VECTOR_BYTES)));
using PackAnywhere = float __attribute__((vector_size(TASO_VECTOR_BYTES), aligned(4), may_alias));
constexpr Count lanes = sizeof(Pack) / sizeof(float);

/// As many partial results of a reduction are kept: an operation need not wait for the one before.
constexpr int partials = 4;

/// Combines the elements of x by F: of(result, x, i) takes in the element or vector that is the i-th, both() combines
/// results. `neutral` is the result for none.
template <class F>
float reduce(const float* x, Count count, F f) {
  Count done = 0;
  float total = F::neutral;
  if (count >= lanes) {
    Pack results[partials];
#pragma GCC unroll 4
    for (int k = 0; k < partials; ++k) results[k] = Pack{} + F::neutral;
    for (; done + partials * lanes <= count; done += partials * lanes) {
#pragma GCC unroll 4
      for (int k = 0; k < partials; ++k) results[k] = f.of(results[k], x + done + k * lanes, done + k * lanes);
    }
    for (; done + lanes <= count; done += lanes) results[0] = f.of(results[0], x + done, done);
    const Pack all = F::both(F::both(results[0], results[1]), F::both(results[2], results[3]));
#pragma GCC unroll 16
    for (Count k = 0; k < lanes; ++k) total = F::both(total, all[k]);
  }
  for (; done < count; ++done) total = f.of(total, x + done, done);
  return total;
}

/// What reductions load: a vector or one element.
inline void load(const float* x, Pack& to) { to = *reinterpret_cast<const PackAnywhere*>(x); }
inline void load(const float* x, float& to) { to = *x; }

struct SumOf {
  static constexpr float neutral = 0;
  template <class T>
  static T both(T a, T b) {
    return a + b;
  }
  template <class T>
  T of(T total, const float* x, Count) const {
    T value;
    load(x, value);
    return total + value;
  }
};
/// Of products with b.
struct SumOfProducts : SumOf {
  const float* b;
  template <class T>
  T of(T total, const float* x, Count at) const {
    T value, factor;
    load(x, value);
    load(b + at, factor);
    return total + value * factor;
  }
};
/// Of squares of what is above (or below) the mean.
struct SumOfSquares : SumOf {
  float mean;
  template <class T>
  T of(T total, const float* x, Count) const {
    T value;
    load(x, value);
    value = value - mean;
    return total + value * value;
  }
};
/// The largest, or the smallest with Less; NaN where one is, or left out.
template <bool Less, bool KeepNan>
struct ExtremumOf {
  static constexpr float neutral = Less ? HUGE_VALF : -HUGE_VALF;
  template <class T>
  static T both(T total, T value) {
    if (KeepNan) return ((Less ? value < total : value > total) | (value != value)) ? value : total;
    return (Less ? value < total : value > total) ? value : total;
  }
  template <class T>
  T of(T total, const float* x, Count) const {
    T value;
    load(x, value);
    return both(total, value);
  }
};

float sum(const float* x, Count count) { return reduce(x, count, SumOf()); }
float maximum(const float* x, Count count) { return reduce(x, count, ExtremumOf<false, false>()); }
float greatest(const float* x, Count count) { return reduce(x, count, ExtremumOf<false, true>()); }
float least(const float* x, Count count) { return reduce(x, count, ExtremumOf<true, true>()); }
float dot(const float* a, const float* b, Count count) { return reduce(a, count, SumOfProducts{{}, b}); }
float squares(const float* x, Count count, float mean) { return reduce(x, count, SumOfSquares{{}, mean}); }

/// So many rows at once: sums of a panel's width stay in registers.
template <int Rows>
void panel_rows(const float* a, Count length, const float* panel, float* y, Count y_stride, Count columns) {
  using Vector = float __attribute__((vector_size(64)));
  using Anywhere = float __attribute__((vector_size(64), aligned(4), may_alias));
  constexpr Count lanes = sizeof(Vector) / sizeof(float);
  constexpr int vectors = static_cast<int>(panel_width / lanes);
  Vector sums[Rows][vectors] = {};
  for (Count k = 0; k < length; ++k, panel += panel_width) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const Vector of_k = *reinterpret_cast<const Anywhere*>(panel + v * lanes);
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) sums[r][v] += of_k * a[r * length + k];
    }
  }
  float row[panel_width];
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) *reinterpret_cast<Anywhere*>(row + v * lanes) = sums[r][v];
    memcpy(y + r * y_stride, row, static_cast<size_t>(columns) * sizeof(float));
  }
}

void panel_product(const float* a, Count rows, Count length, const float* panel, float* y, Count y_stride,
                   Count columns) {
  for (; rows >= 4; rows -= 4, a += 4 * length, y += 4 * y_stride)
    panel_rows<4>(a, length, panel, y, y_stride, columns);
  if (rows == 3) panel_rows<3>(a, length, panel, y, y_stride, columns);
  if (rows == 2) panel_rows<2>(a, length, panel, y, y_stride, columns);
  if (rows == 1) panel_rows<1>(a, length, panel, y, y_stride, columns);
}

void accumulate(const float* x, float* y, Count count) {
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] += x[i];
}

void accumulate_maximum(const float* x, float* y, Count count) {
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] = x[i] > y[i] ? x[i] : y[i];
}

void accumulate_products(const float* a, const float* b, float* y, Count count) {
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] += a[i] * b[i];
}

void accumulate_scaled(const float* x, float* y, Count count, float factor) {
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] += x[i] * factor;
}

void scale(float* y, Count count, float factor) {
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] *= factor;
}

void affine(const float* x, float* y, Count count, float a, float b) {
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] = x[i] * a + b;
}

void affine_rows(const float* x, const float* a, const float* b, float* y, Count count) {
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] = x[i] * a[i] + b[i];
}

/// exp(x) of numbers that are not above 0, as in a softmax, where one power of two is enough; 0 below -87, and NaN of
/// NaN. T: a number or a pack of them; Bits: as wide.
template <class T, class Bits>
T falling_exponential(T x) {
  constexpr float shift = 12582912.0f;  // 1.5 * 2^23: what is added to it is rounded, and is in the lowest bits
  const T shifted = x * 1.44269504088896341f + shift;
  const T whole = shifted - shift;
  T r = x - whole * 0.693359375f;
  r = r + whole * 2.12194440e-4f;
  T p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  Bits bits, power;
  memcpy(&bits, &p, sizeof bits);
  memcpy(&power, &shifted, sizeof power);
  bits += power << 23;
  T value;
  memcpy(&value, &bits, sizeof value);
  return x < -87.0f ? T{} : value;
}

using PackBits = uint32_t __attribute__((vector_size(TASO_VECTOR_BYTES)));

template <Count Elements>
struct VectorOf {
  typedef float type __attribute__((vector_size(Elements * sizeof(float)), may_alias));  // NOLINT(modernize-use-using)
};

/// So many elements that lie together in one.
template <Count Elements, class Both>
float folded(float* parts, const Both& both) {
  if constexpr (Elements == 4) {
    return both(both(parts[0], parts[2]), both(parts[1], parts[3]));
  } else {
    using Half = typename VectorOf<Elements / 2>::type;
    auto* const halves = reinterpret_cast<Half*>(parts);
    halves[0] = both(halves[0], halves[1]);
    return folded<Elements / 2>(parts, both);
  }
}
template <class Both>
float folded(const Pack& pack, const Both& both) {
  alignas(sizeof(Pack)) float parts[lanes];
  *reinterpret_cast<PackAnywhere*>(parts) = pack;
  return folded<lanes>(parts, both);
}
struct LargestOf {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return a > b ? a : b;
  }
};
struct TotalOf {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return a + b;
  }
};

inline Pack pack_at(const float* x) { return *reinterpret_cast<const PackAnywhere*>(x); }
inline void store_pack(float* y, const Pack& pack) { *reinterpret_cast<PackAnywhere*>(y) = pack; }

/// As many words of no bits as a pack has elements, then as many of all bits.
struct NoneThenAll {
  uint32_t of[2 * lanes] = {};
  constexpr NoneThenAll() {
    for (Count i = lanes; i < 2 * lanes; ++i) of[i] = ~0U;
  }
};
constexpr NoneThenAll none_then_all;

/// The last elements of a row, fewer than a pack has. They are the last ones of a pack, in which before them are those
/// before them in the row; -inf, where the row is shorter than a pack.
struct RowEnd {
  Count rest, count;
  PackBits is_new;
  RowEnd(Count rest_of_row, Count count_of_row) : rest(rest_of_row), count(count_of_row) {
    memcpy(&is_new, none_then_all.of + rest, sizeof is_new);
  }
  /// -inf in place of others.
  [[nodiscard]] Pack load(const float* x) const {
    if (count >= lanes) return is_new ? pack_at(x + count - lanes) : Pack{} - HUGE_VALF;
    Pack pack = Pack{} - HUGE_VALF;
    memcpy(reinterpret_cast<char*>(&pack) + sizeof pack - static_cast<size_t>(rest) * sizeof(float), x,
           static_cast<size_t>(rest) * sizeof(float));
    return pack;
  }
  void store(float* y, const Pack& pack) const {
    if (count >= lanes)
      store_pack(y + count - lanes, is_new ? pack : pack_at(y + count - lanes));
    else
      memcpy(y, reinterpret_cast<const char*>(&pack) + sizeof pack - static_cast<size_t>(rest) * sizeof(float),
             static_cast<size_t>(rest) * sizeof(float));
  }
};

void softmax(const float* x, float* y, Count count) {
  const Count rest = count % lanes, whole = count - rest;
  const RowEnd end(rest, count);
  Pack largest = rest > 0 ? end.load(x) : Pack{} - HUGE_VALF;
  Pack last = largest;
  for (Count i = 0; i < whole; i += lanes) largest = LargestOf()(pack_at(x + i), largest);
  const float top = folded(largest, LargestOf());
  Pack totals{};
  for (Count i = 0; i < whole; i += lanes) {
    const Pack e = falling_exponential<Pack, PackBits>(pack_at(x + i) - top);
    store_pack(y + i, e);
    totals += e;
  }
  if (rest > 0) {
    last = falling_exponential<Pack, PackBits>(last - top);
    totals += last;
  }
  const float factor = 1.0f / folded(totals, TotalOf());
  for (Count i = 0; i < whole; i += lanes) store_pack(y + i, pack_at(y + i) * factor);
  if (rest > 0) end.store(y, last * factor);
}

void exp_minus(const float* x, const float* m, float* y, float* s, Count count) {
#pragma omp simd
  for (Count i = 0; i < count; ++i) {
    const float e = falling_exponential<float, uint32_t>(x[i] - m[i]);
    y[i] = e;
    s[i] += e;
  }
}

void layer_norm(const float* x, const float* scales, const float* bias, float* y, Count count, float epsilon) {
  const float mean = sum(x, count) / static_cast<float>(count);
  const float factor = 1.0f / sqrtf(squares(x, count, mean) / static_cast<float>(count) + epsilon);
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] = (x[i] - mean) * factor * scales[i] + bias[i];
}

void rms_norm(const float* x, const float* scales, float* y, Count count, float epsilon) {
  const float factor = 1.0f / sqrtf(dot(x, x, count) / static_cast<float>(count) + epsilon);
#pragma omp simd
  for (Count i = 0; i < count; ++i) y[i] = x[i] * factor * scales[i];
}

void lrn(const float* x, const float* s, float* y, Count count, float alpha, float beta, float bias) {
  if (beta == 0.75f) {
#pragma omp simd
    for (Count i = 0; i < count; ++i) {
      const float root = sqrtf(bias + alpha * s[i]);
      y[i] = x[i] / (root * sqrtf(root));
    }
  } else {
#pragma omp simd
    for (Count i = 0; i < count; ++i) y[i] = x[i] * exponential(-beta * logarithm(bias + alpha * s[i]));
  }
}

void turn_pairs(const float* x, const float* c, const float* s, float* y, Count pairs, Count second) {
#pragma omp simd
  for (Count i = 0; i < pairs; ++i) {
    const float a = x[i], b = x[pairs + i];
    y[i] = a * c[i] - b * s[i];
    y[pairs + i] = b * c[second + i] + a * s[second + i];
  }
}

void transpose(const float* x, Count x_stride, float* y, Count y_stride, Count rows, Count columns) {
  constexpr Count tile = 16;
  for (Count j0 = 0; j0 < columns; j0 += tile) {
    const Count jn = columns - j0 < tile ? columns - j0 : tile;
    for (Count i0 = 0; i0 < rows; i0 += tile) {
      const Count in = rows - i0 < tile ? rows - i0 : tile;
      if (in == tile && jn == tile) {
        for (Count i = 0; i < tile; ++i) {
          const float* from = x + j0 * x_stride + i0 + i;
          float* to = y + (i0 + i) * y_stride + j0;
#pragma omp simd
          for (Count j = 0; j < tile; ++j) to[j] = from[j * x_stride];
        }
      } else {
        for (Count i = 0; i < in; ++i)
          for (Count j = 0; j < jn; ++j) y[(i0 + i) * y_stride + j0 + j] = x[(j0 + j) * x_stride + i0 + i];
      }
    }
  }
}

}  // namespace

const LoopTable* TASO_LOOPS_NAME();

const LoopTable* TASO_LOOPS_NAME() {
  static constexpr LoopTable table = {TASO_LOOPS_SET,
                                      unary_entries,
                                      sizeof unary_entries / sizeof unary_entries[0],
                                      binary_entries,
                                      sizeof binary_entries / sizeof binary_entries[0],
                                      sum,
                                      maximum,
                                      greatest,
                                      least,
                                      dot,
                                      panel_product,
                                      accumulate,
                                      accumulate_maximum,
                                      accumulate_products,
                                      accumulate_scaled,
                                      scale,
                                      affine,
                                      affine_rows,
                                      softmax,
                                      exp_minus,
                                      layer_norm,
                                      rms_norm,
                                      lrn,
                                      turn_pairs,
                                      transpose};
  return &table;
}

}  // namespace taso::cpu
