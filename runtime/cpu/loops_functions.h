#pragma once

// Functions of one element, or of a vector, of which the loops of cpu/loops_body.h are made. Internal linkage and no
// library templates, as there.
//
// They are branch-free so that compilers vectorise them. exp, log and tanh follow Cephes (Moshier), erf follows the
// two-range minimax polynomials of N. Juffa, the second of which is here the logarithm to base 2.

#include <math.h>    // NOLINT(modernize-deprecated-headers): <cmath> declares templates
#include <stdint.h>  // NOLINT(modernize-deprecated-headers)
#include <string.h>  // NOLINT(modernize-deprecated-headers)

#include "runtime/cpu/pack.h"

namespace taso::cpu {
namespace {

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

inline Pack from_bits(PackBits bits) { return reinterpret_cast<Pack>(bits); }
inline PackBits to_bits(Pack value) { return reinterpret_cast<PackBits>(value); }

/// condition ? a : b without a branch, so that compilers do not move the computation of a or b under one.
inline float select(bool condition, float a, float b) {
  const int32_t mask = -static_cast<int32_t>(condition);
  return from_bits((to_bits(a) & mask) | (to_bits(b) & ~mask));
}

/// e^r for |r| not much above log(2) / 2.
template <class T>
inline T small_exponential(T r) {
  T p = T{} + 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return p * (r * r) + r + 1.0f;
}

/// e^x = 2^n * e^r. Adding 1.5 * 2^23 rounds to a whole number, which the low bits of the sum then are.
template <class T>
inline T exponential(T x) {
  const T most = T{} + 89.0f, least = T{} - 104.0f;
  T v = x > most ? most : x;
  v = v < least ? least : v;
  const T shifted = v * 1.44269504088896341f + 12582912.0f;
  const T whole = shifted - 12582912.0f;
  T r = v - whole * 0.693359375f;
  r = r + whole * 2.12194440e-4f;
  const auto n = to_bits(shifted) - 0x4b400000;
  const auto half = n >> 1;
  return small_exponential(r) * from_bits((half + 127) << 23) * from_bits((n - half + 127) << 23);
}

/// The same of a number that is not above 0, as in a softmax, where one power of two is enough; 0 below -87.
template <class T>
inline T falling_exponential(T x) {
  const T shifted = x * 1.44269504088896341f + 12582912.0f;
  const T whole = shifted - 12582912.0f;
  T r = x - whole * 0.693359375f;
  r = r + whole * 2.12194440e-4f;
  const T power = small_exponential(r) * from_bits((to_bits(shifted) - 0x4b400000 + 127) << 23);
  const T least = T{} - 87.0f, none = T{};
  return x < least ? none : power;
}

/// 2^64 * e^-(x + more), which is no subnormal number, for x from 0 to 120 and a smaller `more`: where x has few
/// digits, as exactly as `more` says.
inline float scaled_power(float x, float more) {
  const float shifted = (x + more) * 1.44269504088896341f + 12582912.0f;
  const float whole = shifted - 12582912.0f;
  float r = whole * 0.693359375f - x;
  r = r - whole * 2.12194440e-4f - more;
  const auto power = static_cast<uint32_t>(to_bits(small_exponential(r)));
  const uint32_t n = static_cast<uint32_t>(to_bits(shifted)) << 23;
  return from_bits(static_cast<int32_t>(power - n + (64u << 23)));
}
constexpr float to_scale = 1.0f / 18446744073709551616.0f;

/// The first `digits` binary digits of x. Products of two such numbers of at most 24 together are exact.
template <int digits>
inline float first_digits(float x) {
  return from_bits(to_bits(x) & -(1 << (24 - digits)));
}

/// 2^q for q between -126 and 127, by a minimax polynomial.
inline float power_of_two(float q) {
  const float shifted = q + 12582912.0f;
  const float r = q - (shifted - 12582912.0f);
  float p = 1.53458124e-4f;
  p = p * r + 1.33999309e-3f;
  p = p * r + 9.61848907e-3f;
  p = p * r + 5.55032864e-2f;
  p = p * r + 2.40226462e-1f;
  p = p * r + 6.93147182e-1f;
  p = p * r + 1.0f;
  return from_bits(to_bits(p) + static_cast<int32_t>(static_cast<uint32_t>(to_bits(shifted)) << 23));
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
  const float u = t > 10.0f ? 10.0f : t;  // tanh(10) is 1 in single precision
  const float shifted = u * 2.88539008177792681f + 12582912.0f;
  const float whole = shifted - 12582912.0f;
  float r = u + u - whole * 0.693359375f;
  r = r + whole * 2.12194440e-4f;
  const uint32_t power = static_cast<uint32_t>(to_bits(small_exponential(r)));  // times 2^n
  const float square = from_bits(static_cast<int32_t>(power + (static_cast<uint32_t>(to_bits(shifted)) << 23)));
  const float large = 1.0f - 2.0f / (square + 1.0f);
  return copysignf(select(t >= 0.625f, large, small), x);  // small for NaN: it is NaN
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
  float q = -2.49374844e-05f * u + 5.52836593e-04f;
  q = q * w + (-5.60337615e-03f * u + 3.49920227e-02f);
  q = q * u - 1.54047914e-01f;
  q = q * u - 9.15890167e-01f;
  q = q * u - 1.62839516e+00f;
  const float large = 1.0f - power_of_two(q * u);
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
/// A minimax polynomial where |x| < 1/2, else log(|x| + sqrt(1 + x^2)); where the square overflows, log(2 |x|).
struct Asinh {
  static float small(float x) {
    const float z = x * x;
    float p = -1.32374968e-2f;
    p = p * z + 2.81691048e-2f;
    p = p * z - 4.43845131e-2f;
    p = p * z + 7.49865174e-2f;
    p = p * z - 1.66666433e-1f;
    return copysignf(p * z * x + x, x);
  }
  static float apply(float x, float, float) {
    const float t = fabsf(x);
    const bool huge = t > 1e9f;
    const float y = logarithm(select(huge, t, t + sqrtf(1.0f + t * t))) + (huge ? 0.693147181f : 0.0f);
    return select(t >= 0.5f, copysignf(y, x), small(x));  // small for NaN: it is NaN
  }
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
/// x * (1 + erf(x / sqrt(2))) / 2: x times the share c of a normal distribution beyond |x|, or 1 - c. c is e^(-x^2 / 2)
/// times a minimax quotient; 0 beyond 14.5.
struct Gelu {
  static float apply(float x, float, float) {
    const float most = 14.5f;
    const float size = fabsf(x), t = size > most ? most : size;
    const float front = first_digits<12>(t);
    const float power = scaled_power(0.5f * front * front, 0.5f * (t - front) * (t + front));
    float p = 4.03694808e-3f;
    p = p * t + 4.00977433e-2f;
    p = p * t + 1.81644917e-1f;
    p = p * t + 4.36145067e-1f;
    p = p * t + 0.5f;
    float q = 1.01189893e-2f;
    q = q * t + 1.00517347e-1f;
    q = q * t + 4.65272814e-1f;
    q = q * t + 1.19589245f;
    q = q * t + 1.67017508f;
    q = q * t + 1.0f;
    const float scaled = select(size > most, 0.0f, power * p / q);
    return select(x < 0.0f, scaled * x * to_scale, x * (1.0f - scaled * to_scale));
  }
};

/// x * sigmoid(z) of a z of the sign of x, with scaled_power of |z|; 0 where x is below -most.
inline float times_sigmoid(float x, float power, float most) {
  const float scaled = select(fabsf(x) > most, 0.0f, power);
  return select(x < 0.0f, scaled * x * to_scale, x) / (1.0f + scaled * to_scale);
}
struct GeluTanh {  // z = x * (1.59... + 0.071... * x^2); (1 + tanh(z / 2)) / 2 is sigmoid(z)
  static float apply(float x, float, float) {
    const float most = 11.0f;
    const float size = fabsf(x), t = size > most ? most : size;
    const float front = first_digits<8>(t), rest = t - front;
    const float square = front * front, more_square = rest * (t + front);
    const float factor = 1.59576416015625f + 0.0712890625f * square;
    const float more_factor = 0.0713548163f * more_square + (6.57537726e-5f * square + 4.9614495e-6f);
    const float factor_front = first_digits<16>(factor);
    const float more = front * ((factor - factor_front) + more_factor) + rest * (factor + more_factor);
    return times_sigmoid(x, scaled_power(front * factor_front, more), most);
  }
};
struct Silu {
  static float apply(float x, float, float) {
    const float most = 110.0f;
    const float size = fabsf(x), t = size > most ? most : size;
    return times_sigmoid(x, scaled_power(t, 0.0f), most);
  }
};
struct QuickGelu {  // z = 1.702 * x
  static float apply(float x, float, float) {
    const float most = 65.0f;
    const float size = fabsf(x), t = size > most ? most : size;
    const float front = first_digits<12>(t);
    const float more = 1.70166015625f * (t - front) + 3.3984375e-4f * t;
    return times_sigmoid(x, scaled_power(1.70166015625f * front, more), most);
  }
};
/// x + 3, which is exact where it is small, between 0 and 6.
inline float hard(float x) {
  float v = x + 3.0f;
  v = v < 0.0f ? 0.0f : v;
  return v > 6.0f ? 6.0f : v;
}
struct HardSwish {
  static float apply(float x, float, float) { return x * (hard(x) * (1.0f / 6.0f)); }
};
struct HardSigmoid {
  static float apply(float x, float, float) { return hard(x) * (1.0f / 6.0f); }
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

}  // namespace
}  // namespace taso::cpu
