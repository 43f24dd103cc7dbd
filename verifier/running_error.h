/// Evaluation with running error bounds: what rounding alone makes of two equal values is no difference of them.
#pragma once

#include <span>

#include "operators/definition.h"
#include "support/status.h"

namespace taso {

/// A double and a bound of its distance from what exact arithmetic gives, to first order in the unit roundoff.
/// An infinite bound: nothing is known.
struct Rounded {
  double value = 0, error = 0;
};

/// Running error analysis (Wilkinson; Higham, Accuracy and Stability of Numerical Algorithms, section 3.3): every
/// operation adds its own rounding, underflow included, to what its operands' errors become. A function's error is the
/// variation of its values within the argument's error.
class RunningErrorRing {
 public:
  using Element = Rounded;
  static constexpr bool folds_extrema = true;
  static Rounded number(double value) { return {value, 0}; }
  static Rounded add(Rounded a, Rounded b);
  static Rounded subtract(Rounded a, Rounded b);
  static Rounded multiply(Rounded a, Rounded b);
  static Rounded divide(Rounded a, Rounded b);
  static Rounded call(const FunctionDefinition& function, Rounded x);
  static Rounded call(const FunctionDefinition& function, Rounded x, Rounded y);
  static Rounded extremum(bool maximum, std::span<const Rounded> values);
  static Rounded infinity(bool negative);
  [[nodiscard]] static Status status() { return {}; }
};

/// Whether the exact values differ for certain: by more than what rounding explains, and by more than one part in a
/// million, as constants of definitions are rounded themselves. Values that are not finite are not said to differ.
[[nodiscard]] bool differ(Rounded a, Rounded b);

}  // namespace taso
