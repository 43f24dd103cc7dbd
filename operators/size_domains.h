/// Domains of the language of sizes (operators/size_interpreter.h) at concrete shapes: machine integers, which types
/// are found with, and affine functions of loop variables with known coefficients, which definitions are lowered to.
/// Private to the folder.
#pragma once

#include <absl/container/inlined_vector.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "operators/definition.h"
#include "operators/lowered_body.h"
#include "operators/size_interpreter.h"
#include "support/status.h"

namespace taso {

/// A vector of sizes; the usual ones are in place.
using Sizes = absl::InlinedVector<std::int64_t, 6>;

template <>
struct SizeComponents<std::int64_t> {
  using Type = Sizes;
};
template <>
struct SizeComponents<Affine> {
  using Type = absl::InlinedVector<Affine, 1>;
};

using IntegerValue = SizeValue<std::int64_t>;
using IntegerScope = SizeScope<std::int64_t>;
using AffineValue = SizeValue<Affine>;
using AffineScope = SizeScope<Affine>;

/// Smallest and largest value of an affine function whose variables range over [0, extents[v]), extents positive.
[[nodiscard]] std::pair<std::int64_t, std::int64_t> interval(const Affine& affine,
                                                             const std::vector<std::int64_t>& extents);

/// Conditions of a domain in which each of them is true or false.
struct TwoTruths {
  using Truth = bool;
  static bool truth(bool value) { return value; }
  static bool decides(bool truth, bool value) { return truth == value; }
  static bool both(bool a, bool b, const Expression& /*where*/) { return a && b; }
  static bool either(bool a, bool b, const Expression& /*where*/) { return a || b; }
  static bool negated(bool a) { return !a; }
  template <class Evaluate>
  static bool in_case(bool /*truth*/, bool /*value*/, const Evaluate& evaluate) {
    return evaluate();
  }
};

/// What the two domains have in common. The first failure (a division by zero, a vector of the wrong length, an
/// overflow) is kept in status().
class ConcreteDomain : public TwoTruths {
 public:
  static constexpr bool has_reals = true;

  explicit ConcreteDomain(const Attributes& attributes) : attributes_(attributes) {}

  [[nodiscard]] const Status& status() const { return status_; }
  void clear_status() {
    if (!status_) status_ = {};
  }
  [[nodiscard]] bool failed() const { return !status_.ok(); }
  void fail(const Expression& where, const std::string& what);

  static bool compare_reals(Expression::Kind kind, double a, double b);
  [[nodiscard]] double real_attribute(const std::string& name) const { return attributes_.real(name); }

 protected:
  static bool compare_integers(Expression::Kind kind, std::int64_t a, std::int64_t b);
  [[nodiscard]] std::int64_t add_integers(std::int64_t a, std::int64_t b, const Expression& where);
  [[nodiscard]] std::int64_t subtract_integers(std::int64_t a, std::int64_t b, const Expression& where);
  [[nodiscard]] std::int64_t multiply_integers(std::int64_t a, std::int64_t b, const Expression& where);
  /// Rounds down.
  [[nodiscard]] std::int64_t divide_integers(std::int64_t a, std::int64_t b, const Expression& where);
  [[nodiscard]] std::int64_t remainder(std::int64_t a, std::int64_t b, const Expression& where);
  template <class Message>
  std::optional<std::int64_t> in_range(std::int64_t value, std::int64_t low, std::int64_t high, const Expression& where,
                                       const Message& message) {
    if (value >= low && value <= high) return value;
    fail(where, message(value));
    return std::nullopt;
  }

 private:
  const Attributes& attributes_;
  Status status_;
};

/// 64-bit integers; what is beyond them is a failure.
class IntegerDomain : public ConcreteDomain {
 public:
  using Number = std::int64_t;
  using ConcreteDomain::ConcreteDomain;

  static Number number(std::int64_t value) { return value; }
  static Number read(Number value) { return value; }
  Number add(Number a, Number b, const Expression& e) { return add_integers(a, b, e); }
  Number subtract(Number a, Number b, const Expression& e) { return subtract_integers(a, b, e); }
  Number multiply(Number a, Number b, const Expression& e) { return multiply_integers(a, b, e); }
  Number floor_divide(Number a, Number b, const Expression& e) { return divide_integers(a, b, e); }
  Number modulo(Number a, Number b, const Expression& e) { return remainder(a, b, e); }
  Number negate(Number a, const Expression& e) { return subtract_integers(0, a, e); }
  static Number larger(Number a, Number b, const Expression& /*where*/) { return std::max(a, b); }
  static Number smaller(Number a, Number b, const Expression& /*where*/) { return std::min(a, b); }
  static bool compare(Expression::Kind kind, Number a, Number b, const Expression& /*where*/) {
    return compare_integers(kind, a, b);
  }
  template <class Message>
  std::optional<std::int64_t> within(Number value, std::int64_t low, std::int64_t high, const Expression& /*asked*/,
                                     const Expression& where, const Message& message) {
    return in_range(value, low, high, where, message);
  }
  static std::optional<std::int64_t> position(Number value, std::int64_t /*length*/, bool /*required*/,
                                              const Expression& /*where*/) {
    return value;
  }
  static std::int64_t count(Number value, const Expression& /*where*/) { return value; }
};

/// Affine functions of loop variables. Where a size is needed, one that depends on a variable is a failure, and so is
/// what is not affine.
class AffineDomain : public ConcreteDomain {
 public:
  using Number = Affine;
  /// Variable v ranges over [0, loop_extents[v]).
  AffineDomain(const Attributes& attributes, const std::vector<std::int64_t>& loop_extents)
      : ConcreteDomain(attributes), loop_extents_(&loop_extents) {}

  static Number number(std::int64_t value) { return {value, {}}; }
  static const Number& read(const Number& value) { return value; }
  Number add(const Number& a, const Number& b, const Expression& where);
  Number subtract(const Number& a, const Number& b, const Expression& where);
  Number multiply(const Number& a, const Number& b, const Expression& where);
  /// An index is divided only where its range makes the quotient a known number.
  Number floor_divide(const Number& a, const Number& b, const Expression& where);
  Number modulo(const Number& a, const Number& b, const Expression& where);
  Number negate(const Number& a, const Expression& where) { return scale(a, -1, where); }
  Number larger(const Number& a, const Number& b, const Expression& where) {
    return number(std::max(constant(a, where), constant(b, where)));
  }
  Number smaller(const Number& a, const Number& b, const Expression& where) {
    return number(std::min(constant(a, where), constant(b, where)));
  }
  bool compare(Expression::Kind kind, const Number& a, const Number& b, const Expression& where) {
    const std::int64_t left = constant(a, where);
    return compare_integers(kind, left, constant(b, where));
  }
  template <class Message>
  std::optional<std::int64_t> within(const Number& value, std::int64_t low, std::int64_t high, const Expression& asked,
                                     const Expression& where, const Message& message) {
    return in_range(constant(value, asked), low, high, where, message);
  }
  std::optional<std::int64_t> position(const Number& value, std::int64_t /*length*/, bool /*required*/,
                                       const Expression& where) {
    return constant(value, where);
  }
  std::int64_t count(const Number& value, const Expression& where) { return constant(value, where); }

  Number scale(const Number& a, std::int64_t factor, const Expression& where);
  /// The size that a number is.
  std::int64_t constant(const Number& a, const Expression& where);

 private:
  const std::vector<std::int64_t>* loop_extents_;
};

/// Evaluates at concrete shapes; a failure of the domain is in status().
template <class Domain>
class ConcreteEvaluator : public SizeInterpreter<Domain> {
 public:
  using Scope = typename SizeInterpreter<Domain>::Scope;
  template <class... More>
  ConcreteEvaluator(const SizeFunctions& functions, const Scope& scope, const Attributes& attributes,
                    const More&... more)
      : SizeInterpreter<Domain>(functions, scope, Domain(attributes, more...)) {}

  /// A size.
  [[nodiscard]] std::int64_t integer(const Expression& e) { return this->domain().count(this->scalar(e), e); }
  /// A vector of sizes.
  [[nodiscard]] Sizes integers(const Expression& e) {
    const auto value = this->value(e);
    Sizes result;
    result.reserve(value.components.size());
    for (const auto& component : value.components) result.push_back(this->domain().count(component, e));
    return result;
  }
  [[nodiscard]] const Status& status() const { return this->domain().status(); }
  void clear_status() { this->domain().clear_status(); }
};

using IntegerEvaluator = ConcreteEvaluator<IntegerDomain>;
using AffineEvaluator = ConcreteEvaluator<AffineDomain>;

extern template class SizeInterpreter<IntegerDomain>;
extern template class SizeInterpreter<AffineDomain>;

}  // namespace taso
