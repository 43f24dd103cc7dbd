/// Doubles that know how far off narrower arithmetic may be: running error analysis (Wilkinson; with independent
/// errors as in Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, 2019).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "graph/reals.h"
#include "operators/definition.h"
#include "operators/ring.h"
#include "support/status.h"

namespace taso {

/// A value computed in double precision, and the variance of its error if each operation is rounded in the narrower
/// arithmetic, in squares of that arithmetic's unit roundoff.
struct RoundedNumber {
  double value = 0;
  double variance = 0;
  /// The standard deviation of the error, in unit roundoffs.
  [[nodiscard]] double deviation() const { return std::sqrt(variance); }
};

/// The ring of rounded numbers (operators/ring.h). Every operation adds an error of one unit roundoff of its result,
/// independent of all others; errors of its operands are carried on to first order.
class RoundingRing {
 public:
  using Element = RoundedNumber;
  static constexpr bool folds_extrema = true;
  /// `unit`: the unit roundoff of the narrower arithmetic, 2^-24 for f32.
  /// `least`: its smallest normal number.
  explicit RoundingRing(double unit = 0x1p-24, double least = 0x1p-126) : unit_(unit), least_(least) {}
  [[nodiscard]] double unit() const { return unit_; }

  static Element number(double value) { return {value, 0}; }
  [[nodiscard]] Element add(const Element& a, const Element& b) const {
    return rounded(a.value + b.value, a.variance + b.variance);
  }
  [[nodiscard]] Element subtract(const Element& a, const Element& b) const {
    return rounded(a.value - b.value, a.variance + b.variance);
  }
  [[nodiscard]] Element multiply(const Element& a, const Element& b) const {
    return rounded(a.value * b.value, a.variance * b.value * b.value + b.variance * a.value * a.value);
  }
  [[nodiscard]] Element divide(const Element& a, const Element& b) const {
    const double quotient = a.value / b.value;
    const double square = b.value * b.value;
    return rounded(quotient, a.variance / square + b.variance * quotient * quotient / square);
  }
  [[nodiscard]] Element call(const FunctionDefinition& function, const Element& x) const {
    const double value = function.real(x.value);
    return rounded(value, carried(value, x, [&](double at) { return function.real(at); }));
  }
  [[nodiscard]] Element call(const FunctionDefinition& function, const Element& x, const Element& y) const {
    const double value = function.real2(x.value, y.value);
    return rounded(value, carried(value, x, [&](double at) { return function.real2(at, y.value); }) +
                              carried(value, y, [&](double at) { return function.real2(x.value, at); }));
  }
  /// Any of the set may be the extremum in narrow arithmetic: the largest variance counts.
  static Element extremum(bool maximum, std::span<const Element> set) {
    Element result = set.front();
    for (const Element& element : set) {
      const bool takes =
          std::isnan(element.value) || (maximum ? element.value > result.value : element.value < result.value);
      result = {takes ? element.value : result.value, std::max(result.variance, element.variance)};
    }
    return result;
  }
  /// A number that is kept in a type: the results of an operator between narrower ones than the arithmetic.
  [[nodiscard]] Element kept(const Element& x, ElementType type) const {
    const double unit = unit_roundoff(type);
    if (unit <= unit_) return x;
    const double lost = std::fmax(std::fabs(x.value), least_normal(type)) * unit / unit_;
    return {x.value, x.value == 0 ? x.variance : x.variance + lost * lost};
  }
  static Element infinity(bool negative) { return {negative ? -HUGE_VAL : HUGE_VAL, 0}; }
  [[nodiscard]] static Status status() { return {}; }

 private:
  [[nodiscard]] Element rounded(double value, double variance) const {
    // What is too small for the narrow arithmetic may become 0.
    const double lost = value != 0 && std::fabs(value) < least_ ? value / unit_ : value;
    return {value, variance + lost * lost};
  }
  /// The variance that an argument's error makes in a function's value: by differences, as functions bend.
  template <class Function>
  [[nodiscard]] double carried(double value, const Element& x, const Function& function) const {
    if (x.variance == 0) return 0;
    const double step = unit_ * x.deviation();
    const double change =
        std::fmax(std::fabs(function(x.value + step) - value), std::fabs(function(x.value - step) - value));
    return change * change / (unit_ * unit_);
  }

  double unit_, least_;
};

}  // namespace taso
