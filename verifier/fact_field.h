/// GF(2^61-1) with random oracles that know the declared facts of functions: the ring of the search for instances.
///
/// As FieldRing, a scalar function is a keyed random oracle, and so is a maximum of the set of its arguments. In
/// addition results of oracles are remembered by their value, so that what PolynomialRing knows of its atoms holds
/// here, too: f(f(x)) = f(x) for an idempotent f, f(max S) = max f(S) for a monotone one, max(max S, T) = max(S and T),
/// a power is a product. That a value is taken for the result of an oracle which it is not is as probable as that two
/// random values are equal.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "operators/ring.h"

namespace taso {

class FactField {
 public:
  using Element = Mod61;
  explicit FactField(std::uint64_t seed) : seed_(seed), field_(seed) {}

  [[nodiscard]] Mod61 number(double value) {
    if (value == std::trunc(value)) return field_.number(value);
    if (value != literal_) {  // literals come in runs
      literal_ = value;
      literal_value_ = field_.number(value);
    }
    return literal_value_;
  }
  static Mod61 add(Mod61 a, Mod61 b) { return a + b; }
  static Mod61 subtract(Mod61 a, Mod61 b) { return a - b; }
  static Mod61 multiply(Mod61 a, Mod61 b) { return a * b; }
  Mod61 divide(Mod61 a, Mod61 b) { return field_.divide(a, b); }
  Mod61 call(const FunctionDefinition& function, Mod61 x);
  [[nodiscard]] Mod61 call(const FunctionDefinition& function, Mod61 x, Mod61 y) const;
  Mod61 extremum(bool maximum, std::span<const Mod61> values);
  [[nodiscard]] Mod61 infinity(bool negative) const { return field_.infinity(negative); }
  /// Division by zero since the last clear_status().
  [[nodiscard]] Status status() const { return field_.status(); }
  void clear_status() {
    if (!field_.status()) field_ = FieldRing(seed_);
  }

  /// Whether so much is remembered that it should be forgotten; values computed before then must be computed again.
  [[nodiscard]] bool full() const { return used_ > max_results || arguments_.size() > max_arguments; }
  void forget();

 private:
  static constexpr std::size_t max_results = std::size_t{1} << 16, max_arguments = std::size_t{1} << 19;

  /// What a value is the result of: an idempotent function, or an extremum of arguments_[begin, begin + size).
  struct Result {
    std::uint64_t value = 0;  ///< 0: nothing (the value 0 is no result).
    const FunctionDefinition* function = nullptr;
    bool maximum = false;
    std::uint32_t begin = 0, size = 0;
  };

  [[nodiscard]] const Result* find(Mod61 value) const;
  void remember(Result result);

  std::uint64_t seed_;
  FieldRing field_;
  double literal_ = 0;
  Mod61 literal_value_;
  std::vector<Result> results_;  ///< Open addressing; the size is a power of two, at most half is used.
  std::size_t used_ = 0;
  std::vector<Mod61> arguments_;
};

}  // namespace taso
