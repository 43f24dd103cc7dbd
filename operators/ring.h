/// The rings over which definitions are evaluated.
///
/// A ring is any class R with
///   using Element = ...;                               a regular value type, not necessarily trivially copyable
///   Element number(double value);                      every double is an exact dyadic rational
///   Element add(const Element&, const Element&);       also subtract, multiply
///   Element divide(const Element&, const Element&);
///   Element call(const FunctionDefinition&, const Element&);                   a primitive scalar function
///   Element call(const FunctionDefinition&, const Element&, const Element&);   a binary one (pow)
///   Element extremum(bool maximum, std::span<const Element>);  max or min of a non-empty set
///   Element infinity(bool negative);                   the value "-inf" of an empty max; not used otherwise
///   Status status() const;                             the first failure (an inexact division), if there was one
/// Functions with a definition (gelu, ...) are expanded before evaluation, so that only primitives are called.
/// A ring whose extrema may be taken two at a time declares `static constexpr bool folds_extrema = true`.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "operators/definition.h"
#include "support/mod61.h"
#include "support/status.h"

namespace taso {

/// IEEE doubles and the real functions: the reference semantics.
class DoubleRing {
 public:
  using Element = double;
  static constexpr bool folds_extrema = true;
  static double number(double value) { return value; }
  static double add(double a, double b) { return a + b; }
  static double subtract(double a, double b) { return a - b; }
  static double multiply(double a, double b) { return a * b; }
  static double divide(double a, double b) { return a / b; }
  static double call(const FunctionDefinition& function, double x) { return function.real(x); }
  static double call(const FunctionDefinition& function, double x, double y) { return function.real2(x, y); }
  static double extremum(bool maximum, std::span<const double> values);
  static double infinity(bool negative);
  [[nodiscard]] static Status status() { return {}; }
};

/// GF(2^61-1). A scalar function is a keyed random oracle on the field element (0 at 0 where the function is declared
/// so); max and min are random oracles on the set of their arguments, the identity on singletons. If two
/// graphs agree here they agree for every interpretation of the functions, up to the probability stated in
/// docs/architecture.md.
///
/// With an *order*, a residue stands for the integer nearest to 0 that has it, and variables take small integers: max,
/// min, relu and abs are the real ones, and a function that is declared monotone is a random monotone one. Graphs
/// that agree here may still differ where other pieces of their functions meet. Integers beyond 2^60 wrap around: what
/// holds of their order is not seen.
class FieldRing {
 public:
  using Element = Mod61;
  /// Variables of an ordered ring are integers of so many bits, the sign included.
  static constexpr int ordered_bits = 25;
  /// Oracles are keyed by `seed` and the function's name.
  explicit FieldRing(std::uint64_t seed, bool ordered = false) : seed_(seed), ordered_(ordered) {}
  /// An element for a variable, from random bits.
  [[nodiscard]] Mod61 element(std::uint64_t bits) const;
  /// Exact for every finite double; infinities are infinity().
  [[nodiscard]] Mod61 number(double value) const;
  static Mod61 add(Mod61 a, Mod61 b) { return a + b; }
  static Mod61 subtract(Mod61 a, Mod61 b) { return a - b; }
  static Mod61 multiply(Mod61 a, Mod61 b) { return a * b; }
  Mod61 divide(Mod61 a, Mod61 b);
  [[nodiscard]] Mod61 call(const FunctionDefinition& function, Mod61 x) const;
  [[nodiscard]] Mod61 call(const FunctionDefinition& function, Mod61 x, Mod61 y) const;
  [[nodiscard]] Mod61 extremum(bool maximum, std::span<const Mod61> values) const;
  /// The same of a set of at least two, ascending; not ordered.
  [[nodiscard]] Mod61 extremum_of_set(bool maximum, std::span<const Mod61> set) const;
  [[nodiscard]] Mod61 infinity(bool negative) const;
  /// Division by zero in the field (probability about 2^-61 for a non-zero divisor polynomial).
  [[nodiscard]] Status status() const { return status_; }

 private:
  std::uint64_t seed_;
  bool ordered_;
  Status status_;
  Mod61 divisor_{std::int64_t{1}}, inverse_{std::int64_t{1}};  ///< The last divisor and its inverse.
};

/// Exact signed integers with the real relu, abs, max and min. Fails on overflow of 128 bits, on an inexact division,
/// and on functions that leave the integers.
class IntegerRing {
 public:
  using Element = WideInteger;
  static constexpr bool folds_extrema = true;
  Element number(double value);
  Element add(Element a, Element b);
  Element subtract(Element a, Element b);
  Element multiply(Element a, Element b);
  Element divide(Element a, Element b);
  Element call(const FunctionDefinition& function, Element x);
  Element call(const FunctionDefinition& function, Element x, Element y);
  static Element extremum(bool maximum, std::span<const Element> values);
  Element infinity(bool negative);
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  void fail(const std::string& what);
  Status status_;
};

}  // namespace taso
