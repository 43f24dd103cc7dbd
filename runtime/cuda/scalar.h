/// What both compilers share: numbers as tensors store them, and division by multiplication.
///
/// Everything that computes an element is a function of these headers (scalar.h, functions.h, walk.h, elements.h) that
/// nvcc compiles for the device and the host compiler for the tests, which run the same functions in loops on the
/// processor and compare them with the operators' definitions.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define TASO_BOTH __host__ __device__ inline
#else
#define TASO_BOTH inline
#endif

namespace taso::cuda {

/// IEEE binary16 and bfloat16 as bits; arithmetic is in float.
struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

TASO_BOTH std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

TASO_BOTH float float_of(std::uint32_t bits) {
  float value = 0;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

TASO_BOTH float widen(float value) { return value; }

TASO_BOTH float widen(BFloat16 value) { return float_of(static_cast<std::uint32_t>(value.bits) << 16); }

TASO_BOTH float widen(Half value) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(value.bits));
#else
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000U) << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 31U, mantissa = value.bits & 0x3ffU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1.0p-24F;
    return float_of(bits_of(magnitude) | sign);
  }
  if (exponent == 31) return float_of(sign | 0x7f800000U | (mantissa << 13));
  return float_of(sign | ((exponent + 112) << 23) | (mantissa << 13));
#endif
}

/// The nearest number of the type, ties to even.
template <class T>
TASO_BOTH T narrow(float value);

template <>
TASO_BOTH float narrow<float>(float value) {
  return value;
}

template <>
TASO_BOTH BFloat16 narrow<BFloat16>(float value) {
  const std::uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {static_cast<std::uint16_t>((bits >> 16) | 0x40U)};
  return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}

template <>
TASO_BOTH Half narrow<Half>(float value) {
#ifdef __CUDA_ARCH__
  return {__half_as_ushort(__float2half_rn(value))};
#else
  const std::uint32_t bits = bits_of(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t result = 0;
  if (magnitude > 0x7f800000U) {
    result = 0x7e00U;
  } else if (magnitude >= 0x477ff000U) {  // 65520 and more
    result = 0x7c00U;
  } else if (magnitude < 0x38800000U) {  // below 2^-14: multiples of 2^-24
    result = static_cast<std::uint32_t>(std::lrint(float_of(magnitude) * 0x1.0p24F));
  } else {
    result = (magnitude - 0x38000000U + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  }
  return {static_cast<std::uint16_t>(result | sign)};
#endif
}

/// Quotients of numbers below 2^31 by a multiplication and a shift (Granlund, Montgomery: Division by Invariant
/// Integers using Multiplication, 1994).
struct Divider {
  std::uint32_t magic = 1;
  std::uint32_t shift = 0;

  /// For 1 <= divisor < 2^31.
  [[nodiscard]] static Divider by(std::int64_t divisor) {
    Divider divider;
    while ((std::int64_t{1} << divider.shift) < divisor) ++divider.shift;
    const auto d = static_cast<std::uint64_t>(divisor);
    const std::uint64_t power = std::uint64_t{1} << divider.shift;
    divider.magic = static_cast<std::uint32_t>(((power - d) << 32) / d + 1);
    return divider;
  }
  /// The sum does not overflow: both terms are below 2^31.
  [[nodiscard]] TASO_BOTH std::uint32_t quotient(std::uint32_t n) const {
    const auto high = static_cast<std::uint32_t>((static_cast<std::uint64_t>(n) * magic) >> 32);
    return (high + n) >> shift;
  }
};

}  // namespace taso::cuda
