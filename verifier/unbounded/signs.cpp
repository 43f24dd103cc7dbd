#include "verifier/unbounded/signs.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace taso::unbounded {
namespace {

// Nested forms.
constexpr int max_sign_depth = 40;
// Summands of a form in which order is looked for.
constexpr std::size_t max_ordered = 12;
// Places at which one value of a sum may stand by itself.
constexpr std::size_t max_places = 12;

bool is_bare(const Term& term) { return term.bound.empty() && term.guards.empty(); }

std::optional<double> number_in(const Expression& e) {
  if (e.kind == Expression::Kind::integer) return static_cast<double>(e.integer);
  if (e.kind == Expression::Kind::real) return e.real;
  return std::nullopt;
}

// The call of a monotone function that a term is, up to its coefficient.
const Factor* monotone_call(const Term& term) {
  if (!is_bare(term) || term.factors.size() != 1 || term.factors[0].power != 1) return nullptr;
  const Factor& factor = term.factors[0];
  const bool monotone = factor.kind == Factor::Kind::call && factor.function != nullptr && factor.function->monotone &&
                        factor.elements.size() == 1;
  return monotone ? &factor : nullptr;
}

// A number at which a function has the given value, as its facts and laws say: 1 for the logarithm and 0.
std::optional<double> argument_for(const FunctionDefinition& function, const NormalForm& value, FormBuilder& builder) {
  if (value.empty() && function.zero_at_zero) return 0.0;
  for (const FunctionLaw& law : function.laws) {
    if (law.left.kind != Expression::Kind::call || law.left.operands.size() != 1) continue;
    const std::optional<double> argument = number_in(law.left.operands[0]), result = number_in(law.right);
    if (argument && result && builder.number(*result) == value) return argument;
  }
  return std::nullopt;
}

// The indices at which a term reads, in its functions as well; not all of many.
void collect_places(const Term& term, std::vector<Polynomial>& places) {
  for (const Factor& factor : term.factors) {
    for (const Polynomial& index : factor.indices)
      if (places.size() < max_places && std::find(places.begin(), places.end(), index) == places.end())
        places.push_back(index);
    for (const Element& element : factor.elements)
      for (const Term& inner : element.value) collect_places(inner, places);
  }
}

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

bool has_square(const FunctionDefinition& function) {
  auto is_power = [](const Expression& e, const auto& self) -> bool {
    return e.kind == Expression::Kind::name ||
           (e.kind == Expression::Kind::multiply && self(e.operands[0], self) && self(e.operands[1], self));
  };
  return std::any_of(function.laws.begin(), function.laws.end(), [&](const FunctionLaw& law) {
    return law.left.kind == Expression::Kind::multiply && law.conditions.empty() && is_power(law.right, is_power);
  });
}

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
  Sign result{false, false, false}, always;
  for (const Element& element : factor.elements) {
    const Sign sign = of(element.value, depth + 1);
    result = {result.negative || sign.negative, result.zero || sign.zero, result.positive || sign.positive};
    if (!element.bound.empty() || !element.guards.empty()) continue;
    if (maximum && !sign.negative) always.negative = false;
    if (maximum && sign.is_positive()) always.zero = false;
    if (!maximum && !sign.positive) always.positive = false;
    if (!maximum && !sign.positive && !sign.zero) always.zero = false;
  }
  return both(result, always);
}

Sign Signs::without_divisor(const NormalForm& form, int depth) {
  if (form.size() > max_ordered) return Sign::any();
  const Factor* divisor = nullptr;
  for (const Term& term : form) {
    if (!is_bare(term)) return Sign::any();
    for (const Factor& factor : term.factors)
      if (factor.kind == Factor::Kind::sum && factor.power < 0 && (divisor == nullptr || factor.power < divisor->power))
        divisor = &factor;
  }
  if (divisor == nullptr || divisor->elements[0].value.size() > max_ordered) return Sign::any();
  // By the divisor where that is positive, else by an even power of it: a divisor is not zero.
  const NormalForm base = divisor->elements[0].value;
  int power = -divisor->power;
  if (!of(base, depth + 1).is_positive()) power += power % 2;
  FormBuilder builder(*facts_);
  NormalForm product;
  for (const Term& term : form) {
    Term rest = term;
    int left = power;
    std::erase_if(rest.factors, [&](const Factor& factor) {
      if (!factor.same_base(*divisor) && !unbounded::alike(factor, *divisor, *facts_)) return false;
      left += factor.power;
      return true;
    });
    if (left < 0) return Sign::any();
    NormalForm part = {rest};
    for (int i = 0; i < left; ++i) part = builder.multiply(part, base);
    product = builder.add(std::move(product), part);
  }
  if (!builder.problem().empty()) return Sign::any();
  return of(collected(product, *facts_), depth + 1);
}

Sign Signs::of_rest(const NormalForm& form, int depth) {
  if (form.size() > max_ordered) return Sign::any();
  NormalForm rest = form;
  FormBuilder builder(*facts_);
  Sign sums = Sign::nothing_but_zero();
  for (const Term& sum : form) {
    if (sum.bound.size() != 1 || !of(sum, depth + 1).is_nonnegative()) continue;
    // Whether a summand takes away the value of the sum at one of the places at which it reads.
    const auto is_one_of_it = [&](const Term& taken) {
      if (!is_bare(taken) || taken.coefficient.numerator >= 0) return false;
      const NormalForm wanted = builder.negate(NormalForm{taken});
      std::vector<Polynomial> places;
      collect_places(taken, places);
      return std::any_of(places.begin(), places.end(), [&](const Polynomial& place) {
        const Facts::Replacement here = {{sum.bound[0], place}};
        Term value = builder.substitute(Term{sum.coefficient, {}, sum.guards, sum.factors}, here);
        const bool inside = std::all_of(value.guards.begin(), value.guards.end(),
                                        [&](const Atom& guard) { return facts_->entails_quickly(guard); });
        value.guards.clear();
        return inside && unbounded::alike(NormalForm{value}, wanted, *facts_);
      });
    };
    const auto taken = std::find_if(rest.begin(), rest.end(), is_one_of_it);
    if (taken == rest.end()) continue;
    rest.erase(taken);
    rest.erase(std::find(rest.begin(), rest.end(), sum));
    sums = Sign::at_least_zero();
  }
  if (rest.size() == form.size()) return Sign::any();
  return sums + of(rest, depth + 1);
}

std::optional<NormalForm> Signs::deciding(const NormalForm& form, int depth) {
  if (depth > max_sign_depth || form.empty() || form.size() > 2 ||
      !std::all_of(form.begin(), form.end(), [](const Term& term) { return is_bare(term); }))
    return std::nullopt;
  FormBuilder builder(*facts_);
  const auto with_sign_of = [&](const Term& term, NormalForm difference) {
    return term.coefficient.numerator < 0 ? builder.negate(std::move(difference)) : difference;
  };
  // c * f(x) + d, where d = -c * f(number): as x - number.
  for (std::size_t i = 0; i < form.size(); ++i) {
    const Factor* const call = monotone_call(form[i]);
    if (call == nullptr) continue;
    NormalForm value;
    if (form.size() == 2) {
      if (!form[1 - i].factors.empty()) continue;
      value = builder.divide(builder.negate({form[1 - i]}), builder.rational(form[i].coefficient));
    }
    if (const auto argument = argument_for(*call->function, value, builder))
      return with_sign_of(form[i], builder.add(call->elements[0].value, builder.negate(builder.number(*argument))));
  }
  if (form.size() != 2) return std::nullopt;
  // c * p - c * q, where both are calls of one function, or both are positive: then as p / q - 1.
  Term first = form[0], second = form[1];
  if (builder.add(first.coefficient, second.coefficient).numerator != 0) return std::nullopt;
  if (const Factor* const x = monotone_call(first), * const y = monotone_call(second);
      x != nullptr && y != nullptr && x->function == y->function)
    return with_sign_of(first, builder.add(x->elements[0].value, builder.negate(y->elements[0].value)));
  first.coefficient = second.coefficient = {1, 1};
  if (!of(first, depth + 1).is_positive() || !of(second, depth + 1).is_positive()) return std::nullopt;
  const NormalForm ratio = collected(builder.divide({first}, {second}), *facts_);
  if (ratio.size() != 1 || !is_bare(ratio[0]) || ratio[0].coefficient != Rational{1, 1} || ratio[0].factors.empty() ||
      !builder.problem().empty())
    return std::nullopt;
  // f(x)^k - 1 as f(x) - 1, and f(x)^k / f(y)^k - 1 as f(x) - f(y), for a positive f; the other way round for k < 0.
  const std::vector<Factor>& factors = ratio[0].factors;
  Term base, other;
  base.factors = {factors[0]};
  const int power = factors[0].power;
  base.factors[0].power = 1;
  const Factor* const call = monotone_call(base);
  if (call == nullptr || !call->function->positive) return std::nullopt;
  NormalForm difference = {base};
  if (factors.size() == 2 && factors[1].power == -power && factors[1].kind == Factor::Kind::call &&
      factors[1].function == call->function) {
    other.factors = {factors[1]};
    other.factors[0].power = 1;
    difference = builder.add(std::move(difference), builder.negate({other}));
  } else if (factors.size() == 1 && (form[0].factors.size() + form[1].factors.size() > 1 || std::abs(power) > 1)) {
    difference = builder.add(std::move(difference), builder.rational({-1, 1}));
  } else {
    return std::nullopt;
  }
  return (power < 0) != (form[0].coefficient.numerator < 0) ? builder.negate(std::move(difference)) : difference;
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
  if (depth > max_sign_depth || steps_ == 0) return Sign::any();
  --steps_;
  if (form.empty()) return Sign::nothing_but_zero();
  Sign result = Sign::nothing_but_zero();
  for (const Term& term : form) {
    result = result + of(term, depth);
    if (result == Sign::any()) break;
  }
  if (result == Sign::any()) result = of_sizes(form);
  if (result == Sign::any() && form.size() > 1) result = without_divisor(form, depth);
  if (result == Sign::any() && form.size() > 1) result = of_rest(form, depth);
  if (result == Sign::any())
    if (const std::optional<NormalForm> simpler = deciding(form, depth)) {
      const Sign sign = of(*simpler, depth + 1);
      result = {!sign.is_nonnegative(), true, !sign.is_nonpositive()};
    }
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
        // f(0) = 0: where f(x) is not zero, x is not.
        if (factor.kind == Factor::Kind::call && factor.function != nullptr && factor.function->zero_at_zero &&
            factor.elements.size() == 1)
          assume(factor.elements[0].value, Sign::not_zero());
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
