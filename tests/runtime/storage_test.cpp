#include "runtime/storage.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "graph/reals.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

std::uint16_t narrow(float value, ElementType type) {
  std::uint16_t bits = 0;
  convert_reals(reinterpret_cast<const std::byte*>(&value), ElementType::f32, reinterpret_cast<std::byte*>(&bits), type,
                1);
  return bits;
}

float widen(std::uint16_t bits, ElementType type) {
  float value = 0;
  convert_reals(reinterpret_cast<const std::byte*>(&bits), type, reinterpret_cast<std::byte*>(&value), ElementType::f32,
                1);
  return value;
}

// The conversions of tests (HostTensor::to_doubles) are other code.
TEST(Storage, EveryNarrowNumberSurvives) {
  for (const ElementType type : {ElementType::f16, ElementType::bf16})
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
      const auto narrowed = static_cast<std::uint16_t>(bits);
      HostTensor tensor({type, {}, true});
      std::memcpy(tensor.bytes().data(), &narrowed, 2);
      const double expected = tensor.to_doubles()[0];
      const float value = widen(narrowed, type);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(value)) << bits;
        ASSERT_TRUE(std::isnan(widen(narrow(value, type), type))) << bits;
      } else {
        ASSERT_EQ(value, expected) << bits;
        ASSERT_EQ(narrow(value, type), narrowed) << bits;
      }
    }
}

// Between two neighbours the nearer one is taken, in the middle the even one.
TEST(Storage, RoundsToNearestEven) {
  for (const ElementType type : {ElementType::f16, ElementType::bf16}) {
    const std::uint16_t largest = type == ElementType::f16 ? 0x7bff : 0x7f7f;
    for (std::uint16_t bits = 0; bits < largest; ++bits) {
      const float below = widen(bits, type), above = widen(static_cast<std::uint16_t>(bits + 1), type);
      const float middle = below / 2 + above / 2;
      if (middle == below || middle == above) continue;  // beyond f32's range of fractions
      const auto even = static_cast<std::uint16_t>(bits % 2 == 0 ? bits : bits + 1);
      const float up = std::nextafter(middle, std::numeric_limits<float>::infinity());
      const float down = std::nextafter(middle, 0.0F);
      ASSERT_EQ(narrow(middle, type), even) << bits;
      ASSERT_EQ(narrow(-middle, type), even | 0x8000) << bits;
      if (up < above) {
        ASSERT_EQ(narrow(up, type), bits + 1);
      }
      if (down > below) {
        ASSERT_EQ(narrow(down, type), bits);
      }
    }
    const float beyond = type == ElementType::f16 ? 65520.0F : std::numeric_limits<float>::max();
    EXPECT_TRUE(std::isinf(widen(narrow(beyond, type), type)));
    EXPECT_EQ(narrow(-0.0F, type), 0x8000);
  }
}

TEST(Storage, RequestsAndTypes) {
  const TensorType floats{ElementType::f32, {2}, true}, integers{ElementType::i64, {2}, true};
  EXPECT_EQ(to_string(stored(floats, ElementType::f16)), "f16[2]");
  EXPECT_EQ(stored(integers, ElementType::f16), integers);
  KernelRequest request{"gather", {}, {{floats}, {integers}}, {{floats}}, 1};
  replace_floats(request, ElementType::f32, ElementType::bf16);
  EXPECT_EQ(request.key(), "gather; ; bf16[2]:row, i64[2]:row -> bf16[2]:row; threads=1");
}

}  // namespace
}  // namespace taso::testing
