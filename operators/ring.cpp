#include "operators/ring.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "support/hash.h"

namespace taso {
namespace {

/// SplitMix64's finaliser: a fixed permutation of 64-bit words that behaves like a random one.
std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// A keyed oracle of a sequence of words.
class Oracle {
 public:
  Oracle(std::uint64_t seed, std::uint64_t key) : state_(mix(seed ^ mix(key + 0x9e3779b97f4a7c15ULL))) {}
  Oracle& add(std::uint64_t word) {
    state_ = mix(state_ + 0x9e3779b97f4a7c15ULL) ^ mix(word + 0xd1b54a32d192ed03ULL);
    return *this;
  }
  [[nodiscard]] Mod61 finish() const { return Mod61::from_bits(mix(state_ + 0x9e3779b97f4a7c15ULL)); }

 private:
  std::uint64_t state_;
};

/// The integer nearest to 0 of a residue class.
std::int64_t nearest_to_zero(Mod61 x) {
  const auto value = static_cast<std::int64_t>(x.value());
  constexpr auto prime = static_cast<std::int64_t>(Mod61::prime);
  return value > prime / 2 ? value - prime : value;
}

constexpr std::uint64_t key_of_maximum = 0x6d6178696d756d00ULL;
constexpr std::uint64_t key_of_minimum = 0x6d696e696d756d00ULL;
/// Larger than what is computed with.
constexpr std::int64_t infinite = (std::int64_t{1} << 60) - 2;
constexpr std::uint64_t key_of_infinity = 0x696e66696e697479ULL;

}  // namespace

double DoubleRing::extremum(bool maximum, std::span<const double> values) {
  double best = values[0];
  for (double value : values.subspan(1))
    if (std::isnan(value) || (maximum ? value > best : value < best)) best = value;
  return best;
}

double DoubleRing::infinity(bool negative) {
  return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

Mod61 FieldRing::element(std::uint64_t bits) const {
  if (!ordered_) return Mod61::from_bits(bits);
  return Mod61(static_cast<std::int64_t>(bits >> (64 - ordered_bits)) - (std::int64_t{1} << (ordered_bits - 1)));
}

Mod61 FieldRing::number(double value) const {
  if (value == 0) return {};
  if (const auto whole = static_cast<std::int64_t>(std::fabs(value) < 0x1p53 ? value : 0);
      static_cast<double>(whole) == value)
    return Mod61(whole);
  if (!std::isfinite(value)) return infinity(value < 0);
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // value = fraction * 2^exponent, |fraction| in [1/2, 1)
  // 2 has order 61 in GF(2^61-1), since 2^61 = 1.
  const auto mantissa = static_cast<std::int64_t>(std::ldexp(fraction, 53));
  const int shift = (((exponent - 53) % 61) + 61) % 61;
  return Mod61(mantissa) * Mod61(std::int64_t{1} << shift);
}

Mod61 FieldRing::divide(Mod61 a, Mod61 b) {
  if (b == Mod61() && status_) status_ = bad_input("division by zero in GF(2^61-1)");
  // Divisors repeat: every element of a mean has the same.
  if (b != divisor_) {
    divisor_ = b;
    inverse_ = b.inverse();
  }
  return a * inverse_;
}

Mod61 FieldRing::call(const FunctionDefinition& function, Mod61 x) const {
  if (function.zero_at_zero && x == Mod61()) return x;
  const Mod61 random = Oracle(seed_, function.key).add(x.value()).finish();
  if (!ordered_) return random;
  const std::int64_t integer = nearest_to_zero(x);
  if (function.whole != nullptr) return Mod61(static_cast<std::int64_t>(function.whole(integer)));
  // Strictly monotone, with random low digits; positive integers stay positive, negative ones negative.
  constexpr int digits = 12;
  constexpr std::int64_t largest = std::int64_t{1} << (59 - digits);
  if (!function.monotone || integer >= largest || integer < -largest) return random;
  return Mod61(integer * (std::int64_t{1} << digits) +
               static_cast<std::int64_t>(random.value() & ((std::uint64_t{1} << digits) - 1)));
}

Mod61 FieldRing::call(const FunctionDefinition& function, Mod61 x, Mod61 y) const {
  return Oracle(seed_, function.key).add(x.value()).add(y.value()).finish();
}

Mod61 FieldRing::extremum(bool maximum, std::span<const Mod61> values) const {
  if (ordered_) {
    auto below = [](Mod61 a, Mod61 b) { return nearest_to_zero(a) < nearest_to_zero(b); };
    return maximum ? *std::max_element(values.begin(), values.end(), below)
                   : *std::min_element(values.begin(), values.end(), below);
  }
  std::vector<Mod61> set(values.begin(), values.end());
  std::sort(set.begin(), set.end());
  set.erase(std::unique(set.begin(), set.end()), set.end());
  return set.size() == 1 ? set[0] : extremum_of_set(maximum, set);
}

Mod61 FieldRing::extremum_of_set(bool maximum, std::span<const Mod61> set) const {
  Oracle oracle(seed_, maximum ? key_of_maximum : key_of_minimum);
  for (Mod61 value : set) oracle.add(value.value());
  return oracle.finish();
}

Mod61 FieldRing::infinity(bool negative) const {
  if (ordered_) return Mod61(negative ? -infinite : infinite);
  return Oracle(seed_, key_of_infinity).add(negative ? 1 : 0).finish();
}

void IntegerRing::fail(const std::string& what) {
  if (status_) status_ = bad_input(what);
}

IntegerRing::Element IntegerRing::number(double value) {
  if (std::floor(value) != value || std::fabs(value) >= 0x1p126) {
    fail("the number " + std::to_string(value) + " is not an exact integer below 2^126");
    return 0;
  }
  return static_cast<Element>(value);
}

IntegerRing::Element IntegerRing::add(Element a, Element b) {
  Element result = 0;
  if (__builtin_add_overflow(a, b, &result)) fail("a sum is beyond 128 bits");
  return result;
}
IntegerRing::Element IntegerRing::subtract(Element a, Element b) {
  Element result = 0;
  if (__builtin_sub_overflow(a, b, &result)) fail("a difference is beyond 128 bits");
  return result;
}
IntegerRing::Element IntegerRing::multiply(Element a, Element b) {
  Element result = 0;
  if (__builtin_mul_overflow(a, b, &result)) fail("a product is beyond 128 bits");
  return result;
}
IntegerRing::Element IntegerRing::divide(Element a, Element b) {
  if (b == 0 || (b != -1 && a % b != 0)) {
    fail(b == 0 ? "division by zero" : "a division is not exact");
    return 0;
  }
  return b == -1 ? subtract(0, a) : a / b;
}

// The smallest number has no negative: abs leaves the integers there.
IntegerRing::Element IntegerRing::call(const FunctionDefinition& function, Element x) {
  constexpr Element smallest = std::numeric_limits<Element>::min();
  if (function.whole != nullptr && x != smallest) return function.whole(x);
  fail("'" + function.name + "' leaves the integers");
  return 0;
}

IntegerRing::Element IntegerRing::call(const FunctionDefinition& function, Element, Element) {
  fail("'" + function.name + "' leaves the integers");
  return 0;
}

IntegerRing::Element IntegerRing::extremum(bool maximum, std::span<const Element> values) {
  return maximum ? *std::max_element(values.begin(), values.end()) : *std::min_element(values.begin(), values.end());
}

IntegerRing::Element IntegerRing::infinity(bool) {
  fail("an empty max or min is not an integer");
  return 0;
}

}  // namespace taso
