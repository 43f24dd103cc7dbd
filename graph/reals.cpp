#include "graph/reals.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "support/status.h"

namespace taso {
namespace {

/// A binary floating-point format.
struct RealFormat {
  int digits;       ///< Bits of the significand, the leading one included.
  int least_place;  ///< The exponent of the last bit of the smallest numbers.
  int end;          ///< All finite numbers are below two to this.
};

RealFormat format_of(ElementType type) {
  switch (type) {
    case ElementType::f16:
      return {11, -24, 16};
    case ElementType::bf16:
      return {8, -133, 128};
    case ElementType::f32:
      return {24, -149, 128};
    case ElementType::f64:
      return {53, -1074, 1024};
    case ElementType::i8:
    case ElementType::i16:
    case ElementType::i32:
    case ElementType::i64:
    case ElementType::u8:
    case ElementType::u16:
    case ElementType::u32:
    case ElementType::u64:
    case ElementType::boolean:
    case ElementType::other:
      break;
  }
  TASO_CHECK(false, "real numbers of a type that has none");
  return {};
}

/// f32 to f16. Normal results: the exponent is re-biased and 13 bits of the fraction are rounded away in one integer
/// addition, whose carry goes where it should. Results below the least normal one: adding 0.5, whose last bit is worth
/// 2^-24, the step of those numbers, makes the hardware round to it.
std::uint16_t to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return sign | 0x7e00U;
  if (magnitude >= 0x477ff000U) return sign | 0x7c00U;  // 65520 and above
  if (magnitude < 0x38800000U) {                        // 2^-14
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U));
  }
  magnitude += 0xfffU + ((magnitude >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000U) >> 13));
}

float from_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t exponent = (half >> 10) & 31U, fraction = half & 1023U;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? 255U : exponent + 112U;
  return std::bit_cast<float>(sign | (wide << 23) | (fraction << 13));
}

std::uint16_t to_bfloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

float from_bfloat(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

template <class T>
T load(const std::byte* elements, std::size_t index) {
  T value;
  std::memcpy(&value, elements + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(std::byte* elements, std::size_t index, T value) {
  std::memcpy(elements + index * sizeof(T), &value, sizeof(T));
}

template <class From, class To, class F>
void convert(const std::byte* from, std::byte* to, std::size_t count, F&& f) {
  for (std::size_t i = 0; i < count; ++i) store<To>(to, i, f(load<From>(from, i)));
}

}  // namespace

bool is_real(ElementType type) {
  return type == ElementType::f32 || type == ElementType::f64 || type == ElementType::f16 || type == ElementType::bf16;
}

ElementType working_type(ElementType type) {
  return type == ElementType::f16 || type == ElementType::bf16 ? ElementType::f32 : type;
}

double unit_roundoff(ElementType type) { return std::ldexp(1.0, -format_of(type).digits); }

double least_normal(ElementType type) {
  const RealFormat format = format_of(type);
  return std::ldexp(1.0, format.least_place + format.digits - 1);
}

double rounded(double value, ElementType type) {
  if (type == ElementType::f64 || !std::isfinite(value) || value == 0) return value;
  const RealFormat format = format_of(type);
  int exponent = 0;
  std::frexp(value, &exponent);
  const int place = std::max(exponent - format.digits, format.least_place);
  const double result = std::ldexp(std::nearbyint(std::ldexp(value, -place)), place);
  return std::fabs(result) < std::ldexp(1.0, format.end) ? result : std::copysign(HUGE_VAL, value);
}

bool is_in_range(double value, ElementType type) {
  const double result = rounded(value, type);
  return std::isfinite(result) == std::isfinite(value) && (result == 0) == (value == 0);
}

double load_real(const std::byte* elements, ElementType type, std::size_t index) {
  switch (type) {
    case ElementType::f16:
      return static_cast<double>(from_half(load<std::uint16_t>(elements, index)));
    case ElementType::bf16:
      return static_cast<double>(from_bfloat(load<std::uint16_t>(elements, index)));
    case ElementType::f32:
      return static_cast<double>(load<float>(elements, index));
    default:
      TASO_CHECK(type == ElementType::f64, "real numbers of a type that has none");
      return load<double>(elements, index);
  }
}

void store_real(std::byte* elements, ElementType type, std::size_t index, double value) {
  switch (type) {
    // What is rounded to 16 bits is an f32 exactly.
    case ElementType::f16:
      return store(elements, index, to_half(static_cast<float>(rounded(value, type))));
    case ElementType::bf16:
      return store(elements, index, to_bfloat(static_cast<float>(rounded(value, type))));
    case ElementType::f32:
      return store(elements, index, static_cast<float>(value));
    default:
      TASO_CHECK(type == ElementType::f64, "real numbers of a type that has none");
      return store(elements, index, value);
  }
}

void convert_reals(const std::byte* from, ElementType from_type, std::byte* to, ElementType to_type,
                   std::size_t count) {
  TASO_CHECK(is_real(from_type) && is_real(to_type), "a conversion of what are no real numbers");
  using Bits = std::uint16_t;
  if (from_type == to_type) {
    if (count > 0) std::memcpy(to, from, count * size_of(from_type));
  } else if (from_type == ElementType::f32 && to_type == ElementType::f16) {
    convert<float, Bits>(from, to, count, to_half);
  } else if (from_type == ElementType::f32 && to_type == ElementType::bf16) {
    convert<float, Bits>(from, to, count, to_bfloat);
  } else if (from_type == ElementType::f16 && to_type == ElementType::f32) {
    convert<Bits, float>(from, to, count, from_half);
  } else if (from_type == ElementType::bf16 && to_type == ElementType::f32) {
    convert<Bits, float>(from, to, count, from_bfloat);
  } else {
    for (std::size_t i = 0; i < count; ++i) store_real(to, to_type, i, load_real(from, from_type, i));
  }
}

}  // namespace taso
