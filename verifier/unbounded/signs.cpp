#include "verifier/unbounded/signs.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace taso::unbounded {
namespace {

// Nested forms.
constexpr int max_sign_depth = 40;

Sign sign_of(const Rational& number) { return {number.numerator<0, number.numerator == 0, number.numerator> 0}; }

// The same term with its variables called as another's, in their order.
std::optional<Term> with_variables(const Term& term, const std::vector<SymbolId>& names, Facts& facts) {
  if (term.bound.size() != names.size()) return std::nullopt;
  if (term.bound == names) return term;
  Facts::Replacement replacement;
  for (std::size_t i = 0; i < names.size(); ++i) replacement.emplace_back(term.bound[i], Polynomial::symbol(names[i]));
  FormBuilder builder(facts);
  Term body = builder.substitute(Term{term.coefficient, {}, term.guards, term.factors}, replacement);
  body.bound = names;
  return body;
}

template <class Item, class Same>
bool same_multiset(const std::vector<Item>& a, const std::vector<Item>& b, const Same& same) {
  if (a.size() != b.size()) return false;
  std::vector<bool> used(b.size(), false);
  return std::all_of(a.begin(), a.end(), [&](const Item& item) -> bool {
    for (std::size_t i = 0; i < b.size(); ++i)
      if (!used[i] && same(item, b[i])) return used[i] = true;
    return false;
  });
}

bool alike_terms(const Term& a, const Term& other, Facts& facts) {
  if (a.factors.size() != other.factors.size() || a.guards.size() != other.guards.size()) return false;
  const std::optional<Term> b = with_variables(other, a.bound, facts);
  return b && same_multiset(a.guards, b->guards, [](const Atom& x, const Atom& y) { return x == y; }) &&
         same_multiset(a.factors, b->factors, [&](const Factor& x, const Factor& y) {
           return x.power == y.power && unbounded::alike(x, y, facts);
         });
}

bool alike(const Term& a, const Term& b, Facts& facts) {
  return a.coefficient == b.coefficient && alike_terms(a, b, facts);
}

// Whether a law says that the square of a function is its argument, or a power of that.
bool has_square(const FunctionDefinition& function) {
  auto is_power = [](const Expression& e, const auto& self) -> bool {
    return e.kind == Expression::Kind::name ||
           (e.kind == Expression::Kind::multiply && self(e.operands[0], self) && self(e.operands[1], self));
  };
  return std::any_of(function.laws.begin(), function.laws.end(), [&](const FunctionLaw& law) {
    return law.left.kind == Expression::Kind::multiply && law.conditions.empty() && is_power(law.right, is_power);
  });
}

bool alike(const Element& a, const Element& b, Facts& facts) {
  Term x, y;
  x.bound = a.bound;
  x.guards = a.guards;
  y.bound = b.bound;
  y.guards = b.guards;
  Factor carrier;
  carrier.kind = Factor::Kind::call;
  carrier.elements = std::vector<Element>{{{}, {}, a.value}};
  x.factors.push_back(carrier);
  carrier.elements = std::vector<Element>{{{}, {}, b.value}};
  y.factors.push_back(carrier);
  if (a.bound.empty() && b.bound.empty() && a.guards == b.guards) return unbounded::alike(a.value, b.value, facts);
  return alike(x, y, facts);
}

}  // namespace

bool alike(const Factor& a, const Factor& b, Facts& facts) {
  if (a.kind != b.kind || a.tensor != b.tensor || a.symbol != b.symbol || a.number != b.number || a.name != b.name ||
      a.function != b.function || a.indices != b.indices || a.elements.size() != b.elements.size())
    return false;
  auto same = [&](const Element& x, const Element& y) { return alike(x, y, facts); };
  if (a.kind == Factor::Kind::maximum || a.kind == Factor::Kind::minimum)
    return same_multiset(a.elements.list(), b.elements.list(), same);
  return std::equal(a.elements.begin(), a.elements.end(), b.elements.begin(), same);
}

bool alike(const NormalForm& a, const NormalForm& b, Facts& facts) {
  return same_multiset(a, b, [&](const Term& x, const Term& y) { return alike(x, y, facts); });
}

bool alike_but_number(const Term& a, const Term& b, Facts& facts) { return alike_terms(a, b, facts); }

NormalForm collected(const NormalForm& form, Facts& facts) {
  constexpr std::size_t most = 60;
  if (form.size() > most) return form;
  FormBuilder builder(facts);
  NormalForm result;
  for (const Term& original : form) {
    Term term = original;
    term.factors.clear();
    for (const Factor& factor : original.factors) {
      const auto same = std::find_if(term.factors.begin(), term.factors.end(),
                                     [&](const Factor& known) { return alike(known, factor, facts); });
      if (same == term.factors.end()) {
        term.factors.push_back(factor);
        continue;
      }
      same->power += factor.power;
      if (same->power == 0) term.factors.erase(same);
    }
    const auto same = std::find_if(result.begin(), result.end(),
                                   [&](const Term& known) { return alike_but_number(known, term, facts); });
    if (same == result.end()) {
      result.push_back(std::move(term));
      continue;
    }
    same->coefficient = builder.add(same->coefficient, term.coefficient);
    if (same->coefficient.numerator == 0) result.erase(same);
  }
  return builder.problem().empty() ? result : form;
}

std::optional<NormalForm> square_root(const NormalForm& square, Facts& facts) {
  constexpr std::size_t most = 36;
  if (square.size() > most) return std::nullopt;
  const NormalForm form = collected(square, facts);
  FormBuilder builder(facts);
  auto root_of = [](std::int64_t n) -> std::optional<std::int64_t> {
    if (n < 0) return std::nullopt;
    const auto root = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(n))));
    return root * root == n ? std::optional(root) : std::nullopt;
  };
  // Summands that are squares; the sign of each follows from what it makes with the first.
  NormalForm roots;
  for (const Term& term : form) {
    if (!term.bound.empty() || !term.guards.empty()) return std::nullopt;
    const auto numerator = root_of(term.coefficient.numerator), denominator = root_of(term.coefficient.denominator);
    if (!numerator || !denominator || std::any_of(term.factors.begin(), term.factors.end(), [](const Factor& factor) {
          return factor.power % 2 != 0;
        }))
      continue;
    Term root = term;
    root.coefficient = {*numerator, *denominator};
    for (Factor& factor : root.factors) factor.power /= 2;
    if (!roots.empty()) {
      Term first = roots[0];
      first.coefficient = builder.multiply(first.coefficient, {2, 1});
      const NormalForm mixed = builder.multiply({first}, {root});
      auto has = [&](const NormalForm& part) {
        return std::any_of(form.begin(), form.end(),
                           [&](const Term& other) { return alike(NormalForm{other}, part, facts); });
      };
      if (has(builder.negate(mixed)))
        root.coefficient.numerator = -root.coefficient.numerator;
      else if (!has(mixed))
        return std::nullopt;
    }
    roots.push_back(std::move(root));
  }
  if (roots.empty() || !alike(collected(builder.multiply(roots, roots), facts), form, facts) ||
      !builder.problem().empty())
    return std::nullopt;
  return roots;
}

Sign operator-(Sign a) { return {a.positive, a.zero, a.negative}; }

Sign operator+(Sign a, Sign b) {
  return {a.negative || b.negative, (a.zero && b.zero) || (a.negative && b.positive) || (a.positive && b.negative),
          a.positive || b.positive};
}

Sign operator*(Sign a, Sign b) {
  return {(a.negative && b.positive) || (a.positive && b.negative), a.zero || b.zero,
          (a.negative && b.negative) || (a.positive && b.positive)};
}

Sign both(Sign a, Sign b) { return {a.negative && b.negative, a.zero && b.zero, a.positive && b.positive}; }

bool Signs::has_values(const Term& term) {
  if (term.bound.empty() && term.guards.empty()) return true;
  // Every variable at 0 is one value, if the guards allow it.
  Facts::Replacement zero;
  for (const SymbolId symbol : term.bound) zero.emplace_back(symbol, Polynomial(0));
  return std::all_of(term.guards.begin(), term.guards.end(), [&](const Atom& guard) {
    return facts_->entails_quickly({guard.relation, facts_->substitute(guard.p, zero)});
  });
}

Sign Signs::of_extremum(const Factor& factor, int depth) {
  const bool maximum = factor.kind == Factor::Kind::maximum;
  // The largest of some values, each of which is one of the elements: at least one of these signs, and not below that
  // of an element that is always there.
  Sign result{false, false, false};
  for (const Element& element : factor.elements) {
    const Sign sign = of(element.value, depth + 1);
    result = {result.negative || sign.negative, result.zero || sign.zero, result.positive || sign.positive};
  }
  for (const Element& element : factor.elements) {
    if (!element.bound.empty() || !element.guards.empty()) continue;
    const Sign sign = of(element.value, depth + 1);
    if (maximum && !sign.negative) result.negative = false;
    if (maximum && sign.is_positive()) result.zero = false;
    if (!maximum && !sign.positive) result.positive = false;
    if (!maximum && !sign.positive && !sign.zero) result.zero = false;
  }
  return result;
}

Sign Signs::of(const Factor& factor, int depth) {
  Sign base = Sign::any();
  switch (factor.kind) {
    case Factor::Kind::size: {
      const Polynomial size = Polynomial::symbol(factor.symbol);
      if (facts_->entails_quickly(at_least(size, 1)))
        base = Sign::above_zero();
      else if (facts_->entails_quickly(at_least(size, 0)))
        base = Sign::at_least_zero();
      break;
    }
    case Factor::Kind::literal:
      // What a 32-bit float rounds to zero may be zero.
      base = static_cast<float>(factor.number) > 0 ? Sign::above_zero() : Sign::at_least_zero();
      break;
    case Factor::Kind::sum:
      base = of(factor.elements[0].value, depth + 1);
      break;
    case Factor::Kind::maximum:
    case Factor::Kind::minimum:
      base = of_extremum(factor, depth);
      break;
    case Factor::Kind::product: {
      // Of any number of values: 1 if there are none.
      const Sign sign = of(factor.elements[0].value, depth + 1);
      if (sign.is_positive())
        base = Sign::above_zero();
      else if (sign.is_nonnegative())
        base = Sign::at_least_zero();
      else if (sign.is_nonzero())
        base = Sign::not_zero();
      break;
    }
    case Factor::Kind::call: {
      if (factor.function == nullptr) break;
      if (factor.function->positive)
        base = Sign::above_zero();
      else if (factor.function->nonnegative)
        base = Sign::at_least_zero();
      if (factor.function->zero_at_zero && factor.function->monotone && factor.elements.size() == 1) {
        const Sign argument = of(factor.elements[0].value, depth + 1);
        if (argument.is_nonnegative()) base = both(base, Sign::at_least_zero());
        if (argument.is_nonpositive()) base = both(base, -Sign::at_least_zero());
      }
      // Its square is a product of its arguments.
      if (base.zero && factor.elements.size() == 1 && has_square(*factor.function) &&
          of(factor.elements[0].value, depth + 1).is_nonzero())
        base.zero = false;
      break;
    }
    case Factor::Kind::read:
      for (const auto& [tensor, sign] : elements_)
        if (tensor == factor.tensor) base = both(base, sign);
      break;
    default:
      break;
  }
  if (!assumed_.empty() && base == Sign::any()) {
    Factor once = factor;
    once.power = 1;
    Term term;
    term.factors.push_back(std::move(once));
    base = by_hypothesis({term}, depth);
  }
  if (factor.power < 0) base.zero = false;  // A defined form divides by no zero.
  if (factor.power % 2 != 0) return base;
  return {false, base.zero, base.negative || base.positive};
}

Sign Signs::of(const Term& term, int depth) {
  Sign result = sign_of(term.coefficient);
  for (const Factor& factor : term.factors) {
    result = result * of(factor, depth);
    if (result == Sign::any()) return result;
  }
  if (!has_values(term)) result.zero = true;
  // Several values of different signs may add up to anything.
  if (!term.bound.empty() && result.negative && result.positive) return Sign::any();
  return result;
}

Sign Signs::of_sizes(const NormalForm& form) {
  Polynomial p;
  for (const Term& term : form) {
    if (term.coefficient.denominator != 1 || !term.bound.empty() || !term.guards.empty()) return Sign::any();
    Polynomial product(term.coefficient.numerator);
    for (const Factor& factor : term.factors) {
      if (factor.kind != Factor::Kind::size || factor.power < 0) return Sign::any();
      for (int i = 0; i < factor.power; ++i) product = product * Polynomial::symbol(factor.symbol);
    }
    p = p + product;
  }
  if (!p.valid()) return Sign::any();
  Sign result;
  result.negative = !facts_->entails_quickly(at_least(p, 0));
  result.positive = !facts_->entails_quickly(at_least(Polynomial(0), p));
  if (!result.negative) result.zero = !facts_->entails_quickly(at_least(p, 1));
  if (!result.positive) result.zero = !facts_->entails_quickly(at_least(Polynomial(-1), p));
  return result;
}

Sign Signs::by_hypothesis(const NormalForm& form, int depth) {
  Sign result = Sign::any();
  FormBuilder builder(*facts_);
  for (std::size_t i = 0; i < assumed_.size() && depth < 3; ++i) {
    const auto [known, sign] = assumed_[i];
    const auto lead = std::find_if(known.begin(), known.end(), [](const Term& term) { return !term.factors.empty(); });
    if (lead == known.end()) continue;
    // form = c * known + rest, for a c that makes one summand of the known form vanish.
    for (const Term& term : form) {
      Term one = *lead, other = term;
      one.coefficient = other.coefficient = {1, 1};
      if (!alike(NormalForm{one}, NormalForm{other}, *facts_)) continue;
      const Rational inverse = lead->coefficient.numerator < 0
                                   ? Rational{-lead->coefficient.denominator, -lead->coefficient.numerator}
                                   : Rational{lead->coefficient.denominator, lead->coefficient.numerator};
      const Rational factor = builder.multiply(term.coefficient, inverse);
      NormalForm rest = form;
      for (Term part : known) {
        part.coefficient = builder.multiply(part.coefficient, factor);
        const auto same = std::find_if(rest.begin(), rest.end(), [&](const Term& candidate) {
          return alike(NormalForm{candidate}, NormalForm{part}, *facts_);
        });
        if (same != rest.end()) {
          rest.erase(same);
        } else {
          part.coefficient.numerator = -part.coefficient.numerator;
          rest = builder.add(std::move(rest), {part});
        }
      }
      if (!builder.problem().empty()) return result;
      const Sign scaled = sign_of(factor) * sign;
      if (rest.empty()) {
        result = both(result, scaled);
      } else if (rest.size() < form.size() || rest.size() == 1 ||
                 (rest.size() == form.size() && std::all_of(rest.begin(), rest.end(), is_number))) {
        result = both(result, scaled + of(rest, depth + 1));
      }
      break;
    }
  }
  return result;
}

// Whether a term speaks of no tensor: a literal, a real attribute.
bool Signs::is_number(const Term& term) {
  return std::all_of(term.factors.begin(), term.factors.end(), [](const Factor& factor) {
    return factor.kind == Factor::Kind::literal || factor.kind == Factor::Kind::constant;
  });
}

Sign Signs::of_numbers(const NormalForm& numbers) {
  Sign result = Sign::nothing_but_zero();
  for (const Term& term : numbers) result = result + of(term, 0);
  return result;
}

Sign Signs::of(const NormalForm& form, int depth) {
  if (depth > max_sign_depth) return Sign::any();
  if (form.empty()) return Sign::nothing_but_zero();
  Sign result = Sign::nothing_but_zero();
  for (const Term& term : form) {
    result = result + of(term, depth);
    if (result == Sign::any()) break;
  }
  if (result == Sign::any()) result = of_sizes(form);
  if (result == Sign::any() && form.size() > 1) {
    // A square, and what is added to it.
    NormalForm numbers, others;
    for (const Term& term : form)
      (of(term, depth).is_nonnegative() && is_number(term) ? numbers : others).push_back(term);
    if (square_root(form, *facts_))
      result = Sign::at_least_zero();
    else if (square_root(others, *facts_))
      result = Sign::at_least_zero() + of_numbers(numbers);
  }
  if (result.negative + result.zero + result.positive > 1) result = both(result, by_hypothesis(form, depth));
  return result;
}

void Signs::assume_defined(const NormalForm& form) {
  for (const Term& term : form) {
    if (!term.bound.empty() || !term.guards.empty()) continue;  // It may have no value.
    for (const Factor& factor : term.factors) {
      if (factor.power < 0 && factor.kind == Factor::Kind::sum) {
        assume(factor.elements[0].value, Sign::not_zero());
      } else if (factor.power < 0) {
        Factor once = factor;
        once.power = 1;
        Term base;
        base.factors.push_back(std::move(once));
        assume({base}, Sign::not_zero());
      }
      // The domain of a function of two arguments depends on the second: x^2 is defined everywhere.
      if (factor.kind == Factor::Kind::call && factor.function != nullptr && factor.function->arity == 1) {
        const ArgumentDomain domain = factor.function->domain;
        const NormalForm& argument = factor.elements[0].value;
        if (domain == ArgumentDomain::positive) assume(argument, Sign::above_zero());
        if (domain == ArgumentDomain::nonnegative) assume(argument, Sign::at_least_zero());
        if (domain == ArgumentDomain::nonzero) assume(argument, Sign::not_zero());
      }
      for (const Element& element : factor.elements)
        if (element.bound.empty() && element.guards.empty()) assume_defined(element.value);
    }
  }
}

}  // namespace taso::unbounded
