#include "verifier/unbounded/size_evaluator.h"

#include "operators/unparse.h"

namespace taso {
template class SizeInterpreter<unbounded::PolynomialDomain>;
}  // namespace taso

namespace taso::unbounded {
namespace {

using Kind = Expression::Kind;

// Alternatives of one condition, at most.
constexpr std::size_t max_alternatives = 64;
// Values of a number that is asked for, and of one that counts.
constexpr std::int64_t max_values = 64;

std::vector<std::vector<Atom>> product(const std::vector<std::vector<Atom>>& a,
                                       const std::vector<std::vector<Atom>>& b) {
  std::vector<std::vector<Atom>> result;
  for (const auto& x : a)
    for (const auto& y : b) {
      result.push_back(x);
      result.back().insert(result.back().end(), y.begin(), y.end());
    }
  return result;
}

std::vector<std::vector<Atom>> joined(std::vector<std::vector<Atom>> a, const std::vector<std::vector<Atom>>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

Alternatives Alternatives::known(bool value) {
  const std::vector<std::vector<Atom>> always = {{}}, never;
  return value ? Alternatives{always, never} : Alternatives{never, always};
}

Alternatives Alternatives::of(const Atom& atom) {
  if (const auto constant = atom.p.constant())
    return known(atom.relation == Atom::Relation::zero ? *constant == 0 : *constant >= 0);
  const Polynomial less = -atom.p - 1;
  if (atom.relation == Atom::Relation::nonnegative) return {{{atom}}, {{{Atom::Relation::nonnegative, less}}}};
  return {{{atom}}, {{{Atom::Relation::nonnegative, atom.p - 1}}, {{Atom::Relation::nonnegative, less}}}};
}

Alternatives Alternatives::both(const Alternatives& a, const Alternatives& b) {
  return {product(a.yes, b.yes), joined(a.no, product(a.yes, b.no))};
}

Alternatives Alternatives::either(const Alternatives& a, const Alternatives& b) {
  return both(a.negated(), b.negated()).negated();
}

void PolynomialDomain::ill_typed() {
  if (!obstacle_.any()) obstacle_.kind = Obstacle::Kind::ill_typed;
}

void PolynomialDomain::unsupported(const std::string& reason) {
  if (obstacle_.any()) return;
  obstacle_.kind = Obstacle::Kind::unsupported;
  obstacle_.reason = reason;
}

void PolynomialDomain::reals(const Expression& where) { unsupported("the comparison of reals " + to_text(where)); }

void PolynomialDomain::value_needed(const Expression& where) {
  unsupported("the value of " + to_text(where) + " is needed");
}

void PolynomialDomain::only_in_a_case() {
  if (obstacle_.kind != Obstacle::Kind::ill_typed && obstacle_.kind != Obstacle::Kind::alternatives) return;
  obstacle_ = {};
  unsupported("a condition that has a meaning only where another one holds");
}

Polynomial PolynomialDomain::floor_divide(const Polynomial& a, const Polynomial& b, const Expression& where) {
  if (b.is_zero()) {
    ill_typed();
    return Polynomial::invalid();
  }
  std::optional<Polynomial> quotient = facts_.divide(a, b, context_);
  if (quotient) return *std::move(quotient);
  // Only a positive divisor has been thought of; where it is negative nothing is proved.
  unsupported("the divisor in " + to_text(where) + " is not known to be positive");
  return Polynomial::invalid();
}

Polynomial PolynomialDomain::modulo(const Polynomial& a, const Polynomial& b, const Expression& where) {
  return facts_.reduce(a - b * floor_divide(a, b, where));
}

Alternatives PolynomialDomain::compare(Kind kind, const Polynomial& a, const Polynomial& b,
                                       const Expression& /*where*/) {
  switch (kind) {
    case Kind::equal:
      return Alternatives::of(equal_to(a, b));
    case Kind::not_equal:
      return Alternatives::of(equal_to(a, b)).negated();
    case Kind::less:
      return Alternatives::of(less_than(a, b));
    case Kind::less_equal:
      return Alternatives::of(at_least(b, a));
    case Kind::greater:
      return Alternatives::of(less_than(b, a));
    default:
      return Alternatives::of(at_least(a, b));
  }
}

Alternatives PolynomialDomain::both(const Alternatives& a, const Alternatives& b, const Expression& where) {
  if (!failed()) {
    Alternatives result = Alternatives::both(a, b);
    if (result.yes.size() <= max_alternatives && result.no.size() <= max_alternatives) return result;
    unsupported("the condition " + to_text(where) + " has too many cases");
  }
  return Alternatives::known(true);
}

std::optional<std::int64_t> PolynomialDomain::number_within(const Polynomial& value, std::int64_t low,
                                                            std::int64_t high, const Expression& asked) {
  const Polynomial reduced = facts_.reduce(value);
  if (const auto constant = reduced.constant()) {
    if (*constant >= low && *constant <= high) return constant;
    ill_typed();
    return std::nullopt;
  }
  if (failed()) return std::nullopt;
  if (high < low) {
    ill_typed();
    return std::nullopt;
  }
  const std::vector<SymbolId> symbols = reduced.symbols();
  const auto coefficient = symbols.size() == 1 ? reduced.linear_coefficient(symbols[0]) : std::optional<std::int64_t>();
  if (!coefficient || (*coefficient != 1 && *coefficient != -1) || high - low > max_values) {
    value_needed(asked);
    return std::nullopt;
  }
  obstacle_.kind = Obstacle::Kind::alternatives;
  for (std::int64_t v = low; v <= high; ++v) obstacle_.alternatives.push_back({equal_to(reduced, Polynomial(v))});
  return std::nullopt;
}

std::optional<std::int64_t> PolynomialDomain::position(const Polynomial& value, std::int64_t length, bool required,
                                                       const Expression& where) {
  if (const auto constant = facts_.reduce(value).constant()) return constant;
  // Other values than those asked for are not accepted, if the condition is required.
  if (required) return number_within(value, 0, length - 1, where);
  unsupported(to_text(where) + " depends on values");
  return std::nullopt;
}

std::int64_t PolynomialDomain::count(const Polynomial& value, const Expression& where) {
  const auto constant = facts_.reduce(value).constant();
  if (constant && *constant >= -max_values && *constant <= max_values) return *constant;
  value_needed(where);
  return 0;
}

}  // namespace taso::unbounded
