/// The language of sizes (operators/size_interpreter.h) over polynomials: what an expression is at all sizes of which
/// the facts hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operators/definition.h"
#include "operators/size_interpreter.h"
#include "verifier/unbounded/facts.h"

namespace taso::unbounded {

/// A scalar (one component) or a vector.
using Sizes = SizeValue<Polynomial>;
using SizeEnvironment = SizeScope<Polynomial>;

/// Why an elaboration cannot go on as it stands.
struct Obstacle {
  enum class Kind : std::uint8_t {
    none,
    ill_typed,     ///< The operators do not accept this; nothing is claimed here.
    alternatives,  ///< One of `alternatives` holds: each is to be assumed in turn.
    rank,          ///< The rank of tensor variable `variable` is needed.
    length,        ///< The length of list variable `variable` is needed.
    unsupported,   ///< `reason` names what is not understood.
  };
  Kind kind = Kind::none;
  std::vector<std::vector<Atom>> alternatives;
  std::uint32_t variable = 0;
  std::string reason;
  [[nodiscard]] bool any() const { return kind != Kind::none; }
};

/// The two sides of a condition, each a list of alternatives that exclude one another, each a conjunction.
struct Alternatives {
  std::vector<std::vector<Atom>> yes, no;
  [[nodiscard]] static Alternatives known(bool value);
  [[nodiscard]] static Alternatives of(const Atom& atom);
  [[nodiscard]] static Alternatives both(const Alternatives& a, const Alternatives& b);
  [[nodiscard]] static Alternatives either(const Alternatives& a, const Alternatives& b);
  [[nodiscard]] Alternatives negated() const { return {no, yes}; }
};

/// Polynomials, of which facts are known. What two of them are compared to, or divided by, is decided by these facts,
/// or it is an obstacle; the first obstacle is kept.
class PolynomialDomain {
 public:
  using Number = Polynomial;
  using Truth = Alternatives;
  static constexpr bool has_reals = false;

  /// `context`: what holds besides the facts where the expression stands.
  PolynomialDomain(Facts& facts, const std::vector<Atom>& context) : facts_(facts), context_(context) {}

  [[nodiscard]] Obstacle& obstacle() { return obstacle_; }
  [[nodiscard]] bool failed() const { return obstacle_.any(); }
  void ill_typed();
  void unsupported(const std::string& reason);
  void fail(const Expression& /*where*/, const std::string& /*what*/) { ill_typed(); }
  void reals(const Expression& where);

  static Number number(std::int64_t value) { return {value}; }
  Number read(const Number& value) { return facts_.reduce(value); }
  static Number add(const Number& a, const Number& b, const Expression& /*where*/) { return a + b; }
  static Number subtract(const Number& a, const Number& b, const Expression& /*where*/) { return a - b; }
  static Number multiply(const Number& a, const Number& b, const Expression& /*where*/) { return a * b; }
  static Number negate(const Number& a, const Expression& /*where*/) { return -a; }
  Number floor_divide(const Number& a, const Number& b, const Expression& where);
  Number modulo(const Number& a, const Number& b, const Expression& where);
  Number larger(const Number& a, const Number& b, const Expression& /*where*/) { return facts_.larger(a, b, context_); }
  Number smaller(const Number& a, const Number& b, const Expression& /*where*/) {
    return -facts_.larger(-a, -b, context_);
  }

  static Truth truth(bool value) { return Alternatives::known(value); }
  static bool decides(const Truth& truth, bool value) { return value ? truth.no.empty() : truth.yes.empty(); }
  static Truth compare(Expression::Kind kind, const Number& a, const Number& b, const Expression& where);
  Truth both(const Truth& a, const Truth& b, const Expression& where);
  Truth either(const Truth& a, const Truth& b, const Expression& where) {
    return both(a.negated(), b.negated(), where).negated();
  }
  static Truth negated(const Truth& a) { return a.negated(); }
  template <class Evaluate>
  Truth in_case(const Truth& truth, bool value, const Evaluate& evaluate) {
    const bool failed_before = failed();
    Truth result = evaluate();
    if (!failed_before && !decides(truth, value)) only_in_a_case();
    return result;
  }

  template <class Message>
  std::optional<std::int64_t> within(const Number& value, std::int64_t low, std::int64_t high, const Expression& asked,
                                     const Expression& /*where*/, const Message& /*message*/) {
    return number_within(value, low, high, asked);
  }
  std::optional<std::int64_t> position(const Number& value, std::int64_t length, bool required,
                                       const Expression& where);
  std::int64_t count(const Number& value, const Expression& where);

  /// The number that a polynomial is. Outside of [low, high], and only there, the definition does not apply.
  std::optional<std::int64_t> number_within(const Number& value, std::int64_t low, std::int64_t high,
                                            const Expression& asked);

 private:
  /// What was evaluated has a meaning only in a case that is not decided: that it has none does not say that the
  /// definition does not apply.
  void only_in_a_case();
  void value_needed(const Expression& where);

  Facts& facts_;
  const std::vector<Atom>& context_;
  Obstacle obstacle_;
};

/// Evaluates at all sizes; values after an obstacle are meaningless but harmless.
class SizeEvaluator : public SizeInterpreter<PolynomialDomain> {
 public:
  SizeEvaluator(const SizeFunctions& functions, const SizeEnvironment& environment, Facts& facts,
                const std::vector<Atom>& context)
      : SizeInterpreter(functions, environment, PolynomialDomain(facts, context)) {}

  [[nodiscard]] Obstacle& obstacle() { return domain().obstacle(); }
};

}  // namespace taso::unbounded

namespace taso {
extern template class SizeInterpreter<unbounded::PolynomialDomain>;
}  // namespace taso
