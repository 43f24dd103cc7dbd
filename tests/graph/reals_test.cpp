#include "graph/reals.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace taso {
namespace {

constexpr std::array reals = {ElementType::f16, ElementType::bf16, ElementType::f32, ElementType::f64};

double kept(double value, ElementType type) {
  std::array<std::byte, 8> bytes{};
  store_real(bytes.data(), type, 0, value);
  return load_real(bytes.data(), type, 0);
}

TEST(Reals, EveryNumberOf16BitsIsKept) {
  for (const ElementType type : {ElementType::f16, ElementType::bf16})
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      const auto stored = static_cast<std::uint16_t>(bits);
      std::array<std::byte, 2> bytes{};
      std::memcpy(bytes.data(), &stored, sizeof stored);
      const double value = load_real(bytes.data(), type, 0);
      if (std::isnan(value)) continue;
      EXPECT_EQ(rounded(value, type), value) << bits;
      store_real(bytes.data(), type, 0, value);
      std::uint16_t again = 0;
      std::memcpy(&again, bytes.data(), sizeof again);
      EXPECT_EQ(again, stored);
    }
}

TEST(Reals, RoundToTheNearestAndTiesToEven) {
  for (const ElementType type : reals) {
    const double unit = unit_roundoff(type);
    EXPECT_EQ(rounded(1 + unit, type), 1) << to_string(type);
    if (type == ElementType::f64) continue;
    EXPECT_EQ(rounded(1 + 1.001 * unit, type), 1 + 2 * unit) << to_string(type);
    EXPECT_EQ(rounded(1 + 3 * unit, type), 1 + 4 * unit) << to_string(type);
    // Not by way of another type: this is above a tie by less than an f32 knows.
    EXPECT_EQ(rounded(1 + unit * (1 + 0x1p-25), type), 1 + 2 * unit) << to_string(type);
    EXPECT_EQ(kept(1 + unit * (1 + 0x1p-25), type), 1 + 2 * unit) << to_string(type);
    EXPECT_EQ(rounded(-0.1, type), -rounded(0.1, type)) << to_string(type);
  }
}

TEST(Reals, Ranges) {
  EXPECT_EQ(rounded(65519.9, ElementType::f16), 65504);
  EXPECT_EQ(rounded(65520, ElementType::f16), HUGE_VAL);
  EXPECT_EQ(kept(-1e6, ElementType::f16), -HUGE_VAL);
  EXPECT_EQ(rounded(0x1p-24 * 0.75, ElementType::f16), 0x1p-24);
  EXPECT_EQ(rounded(0x1p-25, ElementType::f16), 0);
  EXPECT_EQ(least_normal(ElementType::f16), 0x1p-14);
  EXPECT_EQ(least_normal(ElementType::bf16), 0x1p-126);
  EXPECT_EQ(least_normal(ElementType::f32), static_cast<double>(std::numeric_limits<float>::min()));
  EXPECT_EQ(least_normal(ElementType::f64), std::numeric_limits<double>::min());
  EXPECT_FALSE(is_in_range(1e-9, ElementType::f16));
  EXPECT_FALSE(is_in_range(1e5, ElementType::f16));
  EXPECT_TRUE(is_in_range(1e5, ElementType::bf16));
  EXPECT_TRUE(is_in_range(0, ElementType::f16));
  EXPECT_TRUE(is_in_range(HUGE_VAL, ElementType::f16));
  EXPECT_TRUE(std::isnan(kept(std::nan(""), ElementType::f16)));
  EXPECT_TRUE(std::isnan(kept(std::nan(""), ElementType::bf16)));
}

TEST(Reals, ConversionsAreRounding) {
  for (const ElementType from : reals)
    for (const ElementType to : reals)
      for (const double value : {0.1, -3.0, 1e-6, 70000.0, 0.0}) {
        std::array<std::byte, 8> given{}, made{};
        store_real(given.data(), from, 0, value);
        convert_reals(given.data(), from, made.data(), to, 1);
        EXPECT_EQ(load_real(made.data(), to, 0), rounded(rounded(value, from), to))
            << value << " from " << to_string(from) << " to " << to_string(to);
      }
}

}  // namespace
}  // namespace taso
