/// The rings over which definitions are evaluated.
///
/// A ring is any class R with
///   using Element = ...;                               a regular value type
///   Element number(double value);                      every double is an exact dyadic rational
///   Element add(const Element&, const Element&);       also subtract, multiply
///   Element divide(const Element&, const Element&);
///   Element call(const std::string& function, const Element&);        a declared scalar function
///   Element call2(const std::string& function, const Element&, const Element&);   pow, ...
///   Element extremum(bool maximum, std::span<const Element>);         max or min of a non-empty set
///   Element infinity(bool negative);                   the value "-inf" of an empty max; not used otherwise
/// Rings that can fail (an inexact division) remember the first failure in `Status status()`.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "support/mod61.h"
#include "support/status.h"

namespace taso {

/// IEEE doubles and the real functions: the reference semantics.
class DoubleRing {
 public:
  using Element = double;
  Element number(double value) { return value; }
  Element add(double a, double b) { return a + b; }
  Element subtract(double a, double b) { return a - b; }
  Element multiply(double a, double b) { return a * b; }
  Element divide(double a, double b) { return a / b; }
  Element call(const std::string& function, double x);
  Element call2(const std::string& function, double x, double y);
  Element extremum(bool maximum, std::span<const double> values);
  Element infinity(bool negative);
  [[nodiscard]] Status status() const { return {}; }
};

/// GF(2^61-1). A scalar function is a keyed random oracle on the field element (0 at 0 where the function is declared
/// so); max and min are random oracles on the set of their arguments, the identity on singletons. If two
/// graphs agree here they agree for every interpretation of the functions, up to the probability stated in
/// docs/architecture.md.
class FieldRing {
 public:
  using Element = Mod61;
  /// Oracles are keyed by `seed`. `zero_at_zero(f)` tells whether f(0) = 0 is declared.
  FieldRing(std::uint64_t seed, const class OperatorRegistry& registry) : seed_(seed), registry_(&registry) {}
  Element number(double value);
  Element add(Mod61 a, Mod61 b) { return a + b; }
  Element subtract(Mod61 a, Mod61 b) { return a - b; }
  Element multiply(Mod61 a, Mod61 b) { return a * b; }
  Element divide(Mod61 a, Mod61 b);
  Element call(const std::string& function, Mod61 x);
  Element call2(const std::string& function, Mod61 x, Mod61 y);
  Element extremum(bool maximum, std::span<const Mod61> values);
  Element infinity(bool negative);
  /// Division by zero in the field (probability about 2^-61 for a non-zero divisor polynomial).
  [[nodiscard]] Status status() const { return status_; }

 private:
  std::uint64_t seed_;
  const class OperatorRegistry* registry_;
  Status status_;
};

/// Exact signed integers with the real relu, max and min. Fails on overflow of 128 bits, on an inexact division, and
/// on functions that leave the integers.
class IntegerRing {
 public:
  __extension__ using Element = __int128;
  Element number(double value);
  Element add(Element a, Element b);
  Element subtract(Element a, Element b);
  Element multiply(Element a, Element b);
  Element divide(Element a, Element b);
  Element call(const std::string& function, Element x);
  Element call2(const std::string& function, Element x, Element y);
  Element extremum(bool maximum, std::span<const Element> values);
  Element infinity(bool negative);
  [[nodiscard]] Status status() const { return status_; }

 private:
  void fail(const std::string& what);
  Status status_;
};

}  // namespace taso
