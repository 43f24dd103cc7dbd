/// The prime field GF(2^61 - 1), in which graphs are fingerprinted (docs/architecture.md, "Generator").
#pragma once

#include <compare>
#include <cstdint>

namespace taso {

/// An element of GF(p), p = 2^61 - 1 (a Mersenne prime), kept reduced to [0, p).
class Mod61 {
 public:
  static constexpr std::uint64_t prime = (std::uint64_t{1} << 61) - 1;

  constexpr Mod61() = default;
  /// The residue of any signed integer.
  constexpr explicit Mod61(std::int64_t value)
      : value_(value >= 0 ? reduce(static_cast<std::uint64_t>(value))
                          : negate(reduce(static_cast<std::uint64_t>(-(value + 1)) + 1))) {}
  /// The residue of 64 arbitrary bits (hash values).
  static constexpr Mod61 from_bits(std::uint64_t bits) {
    Mod61 result;
    result.value_ = reduce(bits);
    return result;
  }

  [[nodiscard]] constexpr std::uint64_t value() const { return value_; }
  constexpr auto operator<=>(const Mod61&) const = default;

  friend constexpr Mod61 operator+(Mod61 a, Mod61 b) { return raw(a.value_ + b.value_); }
  friend constexpr Mod61 operator-(Mod61 a, Mod61 b) { return raw(a.value_ + prime - b.value_); }
  friend constexpr Mod61 operator-(Mod61 a) { return raw(prime - a.value_); }
  friend constexpr Mod61 operator*(Mod61 a, Mod61 b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a.value_) * b.value_;
    return raw(static_cast<std::uint64_t>(product & prime) + static_cast<std::uint64_t>(product >> 61));
  }
  constexpr Mod61& operator+=(Mod61 other) { return *this = *this + other; }
  constexpr Mod61& operator*=(Mod61 other) { return *this = *this * other; }

  /// a^exponent by squaring.
  [[nodiscard]] constexpr Mod61 power(std::uint64_t exponent) const {
    Mod61 base = *this, result(1);
    for (; exponent != 0; exponent >>= 1, base *= base)
      if (exponent & 1) result *= base;
    return result;
  }
  /// The multiplicative inverse by Fermat's theorem; the inverse of 0 is 0, callers check.
  [[nodiscard]] constexpr Mod61 inverse() const { return power(prime - 2); }

 private:
  static constexpr std::uint64_t reduce(std::uint64_t v) {
    v = (v & prime) + (v >> 61);
    return v >= prime ? v - prime : v;
  }
  static constexpr std::uint64_t negate(std::uint64_t v) { return v == 0 ? 0 : prime - v; }
  static constexpr Mod61 raw(std::uint64_t v) {
    Mod61 result;
    result.value_ = v >= prime ? v - prime : v;
    return result;
  }

  std::uint64_t value_ = 0;
};

}  // namespace taso
