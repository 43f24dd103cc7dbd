/// The domain of numbers in which operators are modelled (operators/size_interpreter.h): polynomials over what a rule
/// can speak of. Private to the folder.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "operators/size_domains.h"
#include "operators/size_interpreter.h"
#include "partition/size_polynomial.h"

namespace taso {

/// What must be known as a number and is none, and a comparison of sizes, is a failure.
class RuleDomain : public TwoTruths {
 public:
  using Number = SizePolynomial;
  static constexpr bool has_reals = false;

  explicit RuleDomain(SizeAtoms& atoms) : atoms_(&atoms) {}

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }
  void fail(const Expression& where, const std::string& what) {
    if (!failed_) reason_ = to_text(where) + " " + what;
    failed_ = true;
  }
  void reals(const Expression& where) { fail(where, "compares real numbers"); }

  static Number number(std::int64_t value) { return Number(value); }
  static const Number& read(const Number& value) { return value; }
  static Number add(const Number& a, const Number& b, const Expression& /*where*/) { return a + b; }
  static Number subtract(const Number& a, const Number& b, const Expression& /*where*/) { return a - b; }
  static Number multiply(const Number& a, const Number& b, const Expression& /*where*/) { return a * b; }
  static Number negate(const Number& a, const Expression& /*where*/) { return Number() - a; }
  Number floor_divide(const Number& a, const Number& b, const Expression& where) {
    if (b.is_zero()) fail(where, "divides by 0");
    return failed_ ? Number() : atoms_->quotient(a, b);
  }
  Number modulo(const Number& a, const Number& b, const Expression& /*where*/) { return atoms_->remainder(a, b); }
  /// Extents are at least 1.
  Number larger(const Number& a, const Number& b, const Expression& where) { return extremum(a, b, true, where); }
  Number smaller(const Number& a, const Number& b, const Expression& where) { return extremum(a, b, false, where); }

  bool compare(Expression::Kind /*kind*/, const Number& /*a*/, const Number& /*b*/, const Expression& where) {
    fail(where, "depends on sizes that are not known");
    return true;
  }
  template <class Message>
  std::optional<std::int64_t> within(const Number& value, std::int64_t low, std::int64_t high,
                                     const Expression& /*asked*/, const Expression& where, const Message& message) {
    const std::optional<std::int64_t> number = value.constant();
    if (number && *number >= low && *number <= high) return number;
    fail(where, number ? message(*number) : "must be known as a number");
    return std::nullopt;
  }
  std::optional<std::int64_t> position(const Number& value, std::int64_t /*length*/, bool /*required*/,
                                       const Expression& where) {
    return count(value, where);
  }
  std::int64_t count(const Number& value, const Expression& where) {
    const std::optional<std::int64_t> number = value.constant();
    if (!number) fail(where, "must be known as a number");
    return number.value_or(0);
  }

 private:
  Number extremum(const Number& a, const Number& b, bool largest, const Expression& where) {
    if (const auto x = a.constant(), y = b.constant(); x && y)
      return Number(largest ? std::max(*x, *y) : std::min(*x, *y));
    for (const auto& [size, bound] : {std::pair(&a, b.constant()), std::pair(&b, a.constant())}) {
      const auto atom = size->single_atom();
      if (bound && *bound <= 1 && atom && (*atoms_)[*atom].expression.kind == AttributeExpression::Kind::dimension)
        return largest ? *size : Number(*bound);
    }
    if (a == b) return a;
    fail(where, "depends on which of two sizes is larger");
    return a;
  }

  SizeAtoms* atoms_;
  bool failed_ = false;
  std::string reason_;
};

}  // namespace taso
