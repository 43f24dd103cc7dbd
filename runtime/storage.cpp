#include "runtime/storage.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "support/status.h"

namespace taso {
namespace {

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

template <class From, class To, class F>
void each(const std::byte* from, std::byte* to, std::size_t count, F&& f) {
  for (std::size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * sizeof(From), sizeof(From));
    const To result = f(value);
    std::memcpy(to + i * sizeof(To), &result, sizeof(To));
  }
}

}  // namespace

TensorType stored(TensorType type, ElementType float_storage) {
  if (type.element == ElementType::f32) type.element = float_storage;
  return type;
}

std::int64_t stored_bytes(const TensorType& type, ElementType float_storage) {
  const ElementType element = type.element == ElementType::f32 ? float_storage : type.element;
  return type.elements() * static_cast<std::int64_t>(size_of(element));
}

void replace_floats(KernelRequest& request, ElementType from, ElementType to) {
  if (request.fused) {
    Fused fused = *request.fused;
    for (FusedPart& part : fused.parts) replace_floats(part.request, from, to);
    request.fused = std::make_shared<const Fused>(std::move(fused));
  }
  for (auto* operands : {&request.inputs, &request.outputs})
    for (Operand& operand : *operands)
      if (operand.type.element == from) operand.type.element = to;
}

void convert_floats(const std::byte* from, ElementType from_type, std::byte* to, ElementType to_type,
                    std::size_t count) {
  using Bits = std::uint16_t;
  const auto pair = std::pair(from_type, to_type);
  if (from_type == to_type) {
    if (count > 0) std::memcpy(to, from, count * size_of(from_type));
  } else if (pair == std::pair(ElementType::f32, ElementType::f16)) {
    each<float, Bits>(from, to, count, to_half);
  } else if (pair == std::pair(ElementType::f32, ElementType::bf16)) {
    each<float, Bits>(from, to, count, to_bfloat);
  } else if (pair == std::pair(ElementType::f16, ElementType::f32)) {
    each<Bits, float>(from, to, count, from_half);
  } else if (pair == std::pair(ElementType::bf16, ElementType::f32)) {
    each<Bits, float>(from, to, count, from_bfloat);
  } else {
    TASO_CHECK(false, "a conversion between types of floats that is not needed");
  }
}

}  // namespace taso
