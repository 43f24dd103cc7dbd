#include "verifier/unbounded/laws.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/hash.h"
#include "verifier/unbounded/families.h"
#include "verifier/unbounded/matching.h"

namespace taso::unbounded {
namespace {

using Kind = Expression::Kind;

// Nested applications of laws.
constexpr int max_law_depth = 60;
// Factors of a form, those inside of others included and counted as often as they occur: rewriting unfolds what forms
// share.
constexpr std::size_t max_size = 4'000;
// Multiples of a summand that are taken apart.
constexpr std::int64_t max_multiple = 16;
// Elements of a maximum that are taken out of a minimum.
constexpr std::size_t max_choices = 16;
// Cases of order that are distinguished one inside of the other.
constexpr int max_cases = 6;

bool is_bare(const NormalForm& form) { return form.size() == 1 && form[0].bound.empty() && form[0].guards.empty(); }

// The factor that a form is.
const Factor* only_factor(const NormalForm& form) {
  if (!is_bare(form) || form[0].coefficient != Rational{1, 1} || form[0].factors.size() != 1) return nullptr;
  return form[0].factors[0].power == 1 ? form[0].factors.data() : nullptr;
}

NormalForm form_of(Factor factor, int power) {
  factor.power = power;
  Term term;
  term.factors.push_back(std::move(factor));
  return {term};
}

std::optional<std::int64_t> exact_root(std::int64_t n) {
  if (n < 0) return std::nullopt;
  const auto root = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(n))));
  return root * root == n ? std::optional(root) : std::nullopt;
}

// The factors of a form, up to a little more than the limit.
std::size_t size_of(const NormalForm& form, std::size_t known = 0) {
  std::size_t size = known;
  for (const Term& term : form)
    for (const Factor& factor : term.factors) {
      ++size;
      for (const Element& element : factor.elements) {
        if (size > max_size) return size;
        size = size_of(element.value, size);
      }
    }
  return size;
}

// A number that does not depend on names of bound variables, on the order of summands and factors, or on coefficients.
std::uint64_t shape(const NormalForm& form, bool with_coefficients);

std::uint64_t shape(const Factor& factor) {
  Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(factor.kind));
  hasher.add(static_cast<std::uint64_t>(static_cast<std::int64_t>(factor.power)));
  hasher.add(factor.tensor);
  hasher.add(static_cast<std::uint64_t>(factor.indices.size()));
  hasher.add(factor.name);
  std::uint64_t elements = 0;
  for (const Element& element : factor.elements) elements += shape(element.value, true) | 1U;
  hasher.add(elements);
  return hasher.finish().low;
}

std::uint64_t shape(const Term& term) {
  std::uint64_t sum = term.bound.size() * 0x9e3779b97f4a7c15ULL;
  for (const Factor& factor : term.factors) sum += shape(factor) | 1U;
  return sum;
}

std::uint64_t shape(const NormalForm& form, bool with_coefficients) {
  std::uint64_t sum = 0;
  for (const Term& term : form) {
    Hasher hasher;
    hasher.add(shape(term));
    if (with_coefficients) {
      hasher.add(static_cast<std::uint64_t>(term.coefficient.numerator));
      hasher.add(static_cast<std::uint64_t>(term.coefficient.denominator));
    }
    sum += hasher.finish().low;
  }
  return sum;
}

// Whether the negative of the form is the one to write: the same for a form and its like, and not for both it and
// its negative.
bool written_negatively(const NormalForm& form) {
  std::uint64_t best = 0;
  std::int64_t sign = 1;
  bool unique = false;
  for (const Term& term : form) {
    const std::uint64_t here = shape(term);
    if (here == best) unique = false;
    if (here <= best && best != 0) continue;
    best = here;
    sign = term.coefficient.numerator < 0 ? -1 : 1;
    unique = true;
  }
  return unique && sign < 0;
}

// A positive number that all coefficients share.
Rational common_number(const NormalForm& form) {
  std::int64_t numerator = 0, denominator = 1;
  for (const Term& term : form) {
    numerator = std::gcd(numerator, term.coefficient.numerator);
    denominator = std::max(denominator, term.coefficient.denominator);
  }
  const bool shared = numerator > 0 && std::all_of(form.begin(), form.end(), [&](const Term& term) {
                        return denominator % term.coefficient.denominator == 0;
                      });
  return shared ? Rational{numerator, denominator} : Rational{1, 1};
}

// A law that says what a function is by others: its arguments are variables.
bool is_definition(const FunctionLaw& law) {
  const bool plain =
      law.left.kind == Kind::call && std::all_of(law.left.operands.begin(), law.left.operands.end(),
                                                 [](const Expression& e) { return e.kind == Kind::name; });
  return plain && law.right.kind != Kind::name && law.right.kind != Kind::integer && law.right.kind != Kind::real;
}

}  // namespace

// ---- laws ----

// A law that is being fitted to the arguments of a call.
struct LawRewriter::Match {
  const FunctionLaw& law;
  const std::vector<Expression>& patterns;
  const std::vector<NormalForm>& arguments;
  std::vector<std::optional<NormalForm>> values;  // Of the law's variables.
};

bool LawRewriter::holds(const FunctionLaw::Condition& condition, const NormalForm& value) {
  using Relation = FunctionLaw::Condition::Relation;
  const Sign sign = signs_.of(value);
  switch (condition.relation) {
    case Relation::positive:
      return sign.is_positive();
    case Relation::nonnegative:
      return sign.is_nonnegative();
    case Relation::negative:
      return (-sign).is_positive();
    case Relation::nonpositive:
      return sign.is_nonpositive();
    case Relation::nonzero:
      return sign.is_nonzero();
  }
  return false;
}

std::optional<NormalForm> LawRewriter::bind(Match& match, std::size_t at,
                                            std::initializer_list<std::pair<const Expression*, NormalForm>> parts) {
  const std::vector<std::optional<NormalForm>> before = match.values;
  bool fits = true;
  for (const auto& [name, value] : parts) {
    const auto variable = std::find(match.law.variables.begin(), match.law.variables.end(), name->name);
    std::optional<NormalForm>& known = match.values[static_cast<std::size_t>(variable - match.law.variables.begin())];
    if (known)
      fits = fits && alike(*known, value, builder_.facts());
    else
      known = value;
  }
  std::optional<NormalForm> result;
  if (fits) result = apply(match, at + 1);
  if (!result) match.values = before;
  return result;
}

// x * y: each factor by itself, and the number.
std::optional<NormalForm> LawRewriter::factors(Match& match, std::size_t at) {
  const NormalForm& argument = match.arguments[at];
  const std::vector<Expression>& names = match.patterns[at].operands;
  if (names[0].name == names[1].name && !is_bare(argument)) {
    const std::optional<NormalForm> root = square_root(argument, builder_.facts());
    return root ? bind(match, at, {{names.data(), *root}}) : std::nullopt;
  }
  if (!is_bare(argument)) {
    for (const Factor& factor : common_factors(argument))
      if (auto result =
              bind(match, at,
                   {{names.data(), form_of(factor, factor.power)}, {&names[1], without_factors(argument, {factor})}}))
        return result;
    return std::nullopt;
  }
  const Term& term = argument[0];
  if (names[0].name == names[1].name) {
    const auto numerator = exact_root(term.coefficient.numerator),
               denominator = exact_root(term.coefficient.denominator);
    // 1 is its own root for ever.
    if (!numerator || !denominator || (term.factors.empty() && *numerator == *denominator)) return std::nullopt;
    Term root = term;
    root.coefficient = {*numerator, *denominator};
    for (Factor& factor : root.factors) {
      if (factor.power % 2 != 0) return std::nullopt;
      factor.power /= 2;
    }
    return bind(match, at, {{&names[0], {root}}});
  }
  if (term.coefficient != Rational{1, 1} && term.coefficient != Rational{-1, 1} && !term.factors.empty()) {
    Term number, rest = term;
    number.coefficient = {std::abs(term.coefficient.numerator), term.coefficient.denominator};
    rest.coefficient = {term.coefficient.numerator < 0 ? -1 : 1, 1};
    if (auto result = bind(match, at, {{&names[0], {number}}, {&names[1], {rest}}})) return result;
  }
  for (std::size_t i = 0; i < term.factors.size(); ++i) {
    // The whole power, then one factor of it.
    const int whole = term.factors[i].power;
    for (const int power : {whole, whole > 0 ? 1 : -1}) {
      Term one, rest = term;
      one.factors.push_back(term.factors[i]);
      one.factors[0].power = power;
      if (whole == power)
        rest.factors.erase(rest.factors.begin() + static_cast<std::ptrdiff_t>(i));
      else
        rest.factors[i].power -= power;
      if (rest.factors.empty() && rest.coefficient == Rational{1, 1}) continue;
      if (auto result = bind(match, at, {{&names[0], {one}}, {&names[1], {rest}}})) return result;
    }
  }
  return std::nullopt;
}

std::optional<NormalForm> LawRewriter::apply(Match& match, std::size_t at) {
  if (at == match.arguments.size()) {
    std::vector<NormalForm> values;
    for (const std::optional<NormalForm>& value : match.values) values.push_back(value.value_or(NormalForm{}));
    for (const FunctionLaw::Condition& condition : match.law.conditions)
      if (!holds(condition, values[condition.variable])) return std::nullopt;
    if (steps_ == 0) {
      builder_.fail("the limit on applications of laws is reached");
      return std::nullopt;
    }
    --steps_;
    return evaluate(match.law.right, match.law.variables, values);
  }
  const Expression& pattern = match.patterns[at];
  const NormalForm& argument = match.arguments[at];
  switch (pattern.kind) {
    case Kind::name:
      return bind(match, at, {{&pattern, argument}});
    case Kind::integer:
    case Kind::real:
      return argument ==
                     builder_.number(pattern.kind == Kind::real ? pattern.real : static_cast<double>(pattern.integer))
                 ? apply(match, at + 1)
                 : std::nullopt;
    case Kind::negate: {
      const Expression& inner = pattern.operands[0];
      if (inner.kind != Kind::name)
        return builder_.negate(argument) ==
                       builder_.number(inner.kind == Kind::real ? inner.real : static_cast<double>(inner.integer))
                   ? apply(match, at + 1)
                   : std::nullopt;
      if (!written_negatively(argument)) return std::nullopt;
      return bind(match, at, {{&inner, builder_.negate(argument)}});
    }
    case Kind::add: {
      // The first summand and the others, or one of several equal summands and the others.
      if (argument.empty()) return std::nullopt;
      Term first = argument[0];
      NormalForm rest(argument.begin() + 1, argument.end());
      if (rest.empty()) {
        const std::int64_t n = first.coefficient.numerator;
        if (std::abs(n) < 2 || std::abs(n) > max_multiple || first.factors.empty()) return std::nullopt;
        Term others = first;
        first.coefficient.numerator = n < 0 ? -1 : 1;
        others.coefficient.numerator = n - first.coefficient.numerator;
        rest = {others};
      }
      return bind(match, at, {{&pattern.operands[0], {first}}, {&pattern.operands[1], rest}});
    }
    case Kind::multiply:
      return factors(match, at);
    case Kind::divide: {
      // 1 / x: nothing but divisors.
      if (!is_bare(argument) || argument[0].factors.empty() ||
          std::any_of(argument[0].factors.begin(), argument[0].factors.end(),
                      [](const Factor& factor) { return factor.power > 0; }))
        return std::nullopt;
      return bind(match, at, {{&pattern.operands[1], inverse(argument)}});
    }
    case Kind::call: {
      const Factor* const inner = only_factor(argument);
      if (inner == nullptr || inner->kind != Factor::Kind::call || inner->function == nullptr ||
          inner->name != pattern.name || inner->elements.size() != pattern.operands.size())
        return std::nullopt;
      if (inner->elements.size() == 1) return bind(match, at, {{pattern.operands.data(), inner->elements[0].value}});
      return bind(
          match, at,
          {{pattern.operands.data(), inner->elements[0].value}, {&pattern.operands[1], inner->elements[1].value}});
    }
    default:
      return std::nullopt;
  }
}

std::optional<NormalForm> LawRewriter::apply(const FunctionLaw& law, const std::vector<Expression>& patterns,
                                             const std::vector<NormalForm>& arguments) {
  if (patterns.size() != arguments.size()) return std::nullopt;
  Match match{law, patterns, arguments, std::vector<std::optional<NormalForm>>(law.variables.size())};
  return apply(match, 0);
}

NormalForm LawRewriter::evaluate(const Expression& e, const std::vector<std::string>& names,
                                 const std::vector<NormalForm>& values) {
  if (!builder_.problem().empty()) return {};
  auto operand = [&](std::size_t i) { return evaluate(e.operands[i], names, values); };
  switch (e.kind) {
    case Kind::integer:
      return builder_.number(static_cast<double>(e.integer));
    case Kind::real:
      return builder_.number(e.real);
    case Kind::name:
      return values[static_cast<std::size_t>(std::find(names.begin(), names.end(), e.name) - names.begin())];
    case Kind::negate:
      return builder_.negate(operand(0));
    case Kind::add:
      return builder_.add(operand(0), operand(1));
    case Kind::subtract:
      return builder_.add(operand(0), builder_.negate(operand(1)));
    case Kind::multiply:
      return multiply(operand(0), operand(1));
    case Kind::divide:
      return multiply(operand(0), inverse(operand(1)));
    case Kind::call: {
      std::vector<NormalForm> arguments;
      for (std::size_t i = 0; i < e.operands.size(); ++i) arguments.push_back(operand(i));
      if (e.name == "max" || e.name == "min") {
        std::vector<Element> elements;
        for (NormalForm& argument : arguments) elements.push_back({{}, {}, std::move(argument)});
        return extremum(e.name == "max", std::move(elements));
      }
      const FunctionDefinition* const function = registry_.find_function(e.name);
      if (function == nullptr) break;
      if (!function->definition) return call(function, e.name, std::move(arguments));
      return evaluate(*function->definition, function->parameters, arguments);
    }
    default:
      break;
  }
  builder_.fail("the right side of a law");
  return {};
}

// ---- forms ----

NormalForm LawRewriter::call(const FunctionDefinition* function, const std::string& name,
                             std::vector<NormalForm> arguments) {
  if (!builder_.problem().empty()) return {};
  if (++depth_ > max_law_depth) builder_.fail("laws are nested too deeply");
  std::optional<NormalForm> result;
  if (function != nullptr && builder_.problem().empty()) {
    // The function of every element, where it keeps their order; of a multiple of an extremum if no law fits.
    auto of_elements = [&]() -> std::optional<NormalForm> {
      auto extremes = arguments.size() == 1 && function->monotone ? multiples(arguments[0]) : std::nullopt;
      if (!extremes || !defined_of_elements(*function, *extremes)) return std::nullopt;
      for (Element& element : extremes->elements) element.value = call(function, name, {element.value});
      return extremum(extremes->maximum, std::move(extremes->elements));
    };
    if (arguments.size() == 1 && only_factor(arguments[0]) != nullptr) result = of_elements();
    for (std::size_t i = 0; i < function->laws.size() && !result; ++i) {
      const FunctionLaw& law = function->laws[i];
      if (law.left.kind != Kind::call || (is_definition(law) && level_ != Level::definitions)) continue;
      result = apply(law, law.left.operands, arguments);
    }
    if (!result) result = of_elements();
  }
  if (!result) result = builder_.call(function, name, std::move(arguments));
  --depth_;
  return std::move(*result);
}

std::optional<NormalForm> LawRewriter::without_squares(const Term& term) {
  for (std::size_t i = 0; i < term.factors.size(); ++i) {
    const Factor& factor = term.factors[i];
    if (factor.kind != Factor::Kind::call || factor.function == nullptr) continue;
    for (const FunctionLaw& law : factor.function->laws) {
      if (law.left.kind != Kind::multiply) continue;
      std::vector<NormalForm> arguments;
      for (const Element& element : factor.elements) arguments.push_back(element.value);
      const std::optional<NormalForm> square = apply(law, law.left.operands[0].operands, arguments);
      if (!square) continue;
      if (std::abs(factor.power) < 2) {
        // The square over the call is the call.
        const Factor* const base = only_factor(*square);
        const auto other = std::find_if(term.factors.begin(), term.factors.end(), [&](const Factor& candidate) {
          return base != nullptr && (candidate.power < 0) != (factor.power < 0) &&
                 (candidate.same_base(*base) || alike(candidate, *base, builder_.facts()));
        });
        if (other == term.factors.end()) continue;
        Term simpler = term;
        simpler.factors[i].power = -factor.power;
        Factor& left = simpler.factors[static_cast<std::size_t>(other - term.factors.begin())];
        left.power += factor.power;
        if (left.power == 0) simpler.factors.erase(simpler.factors.begin() + (other - term.factors.begin()));
        return multiply({simpler}, builder_.number(1));
      }
      Term rest = term;
      rest.factors.erase(rest.factors.begin() + static_cast<std::ptrdiff_t>(i));
      NormalForm result = multiply({rest}, power(*square, factor.power / 2));
      if (factor.power % 2 != 0) result = multiply(result, form_of(factor, factor.power % 2));
      return result;
    }
  }
  return std::nullopt;
}

NormalForm LawRewriter::multiply(const NormalForm& a, const NormalForm& b) {
  const NormalForm product = collected(builder_.multiply(a, b), builder_.facts());
  NormalForm result;
  for (const Term& term : product) {
    const std::optional<NormalForm> simpler = without_squares(term);
    result = builder_.add(std::move(result), simpler ? *simpler : NormalForm{term});
  }
  return result;
}

NormalForm LawRewriter::power(const NormalForm& base, int power) {
  NormalForm result = builder_.number(1);
  const NormalForm once = power < 0 ? inverse(base) : base;
  for (int i = 0; i < std::abs(power); ++i) result = multiply(result, once);
  return result;
}

// The smallest power of every factor in the summands, 0 where it is not in one; what variables of a summand decide is
// not common.
std::vector<Factor> LawRewriter::common_factors(const NormalForm& form) {
  std::vector<Factor> common;
  auto power_in = [&](const Factor& base, const Term& term) {
    for (const Factor& factor : term.factors)
      if (factor.same_base(base) || alike(factor, base, builder_.facts())) return factor.power;
    return 0;
  };
  for (const Term& term : form)
    for (const Factor& factor : term.factors) {
      if (std::any_of(common.begin(), common.end(), [&](const Factor& known) { return known.same_base(factor); }))
        continue;
      if (depends_on(builder_.facts().symbols(), factor, term.bound)) continue;
      Factor shared = factor;
      for (const Term& other : form) shared.power = std::min(shared.power, power_in(factor, other));
      if (shared.power != 0) common.push_back(std::move(shared));
    }
  return common;
}

// The form divided by factors.
NormalForm LawRewriter::without_factors(const NormalForm& form, const std::vector<Factor>& factors) {
  NormalForm rest = form;
  for (Term& term : rest)
    for (const Factor& factor : factors) {
      const auto same = std::find_if(term.factors.begin(), term.factors.end(), [&](const Factor& candidate) {
        return candidate.same_base(factor) || alike(candidate, factor, builder_.facts());
      });
      if (same == term.factors.end()) {
        term.factors.push_back(factor);
        term.factors.back().power = -factor.power;
        continue;
      }
      same->power -= factor.power;
      if (same->power == 0) term.factors.erase(same);
    }
  return rest;
}

NormalForm LawRewriter::inverse(const NormalForm& a) {
  if (!builder_.problem().empty()) return {};
  if (a.empty() || is_bare(a)) return builder_.divide(builder_.number(1), a);
  // A sum of fractions is one fraction.
  std::vector<Factor> cleared;
  if (const auto numerator = depth_ < max_law_depth ? without_divisors(a, &cleared) : std::nullopt) {
    ++depth_;
    NormalForm result = inverse(*numerator);
    --depth_;
    for (const Factor& divisor : cleared) result = multiply(result, power(divisor.elements[0].value, divisor.power));
    return result;
  }
  const std::vector<Factor> common = common_factors(a);
  NormalForm rest = without_factors(a, common);
  Rational shared = common_number(rest);
  if (written_negatively(rest)) shared.numerator = -shared.numerator;
  NormalForm outside = builder_.rational(shared);
  rest = builder_.multiply(rest, builder_.divide(builder_.number(1), outside));
  NormalForm result = builder_.divide(builder_.number(1), outside);
  for (const Factor& factor : common) result = builder_.multiply(result, form_of(factor, -factor.power));
  return multiply(result, builder_.divide(builder_.number(1), rest));
}

bool LawRewriter::at_most(const NormalForm& low, const NormalForm& high) {
  const NormalForm difference = builder_.add(high, builder_.negate(low));
  if (signs_.of(difference).is_nonnegative()) return true;
  if (const auto cleared = without_divisors(difference, nullptr, true); cleared && signs_.of(*cleared).is_nonnegative())
    return true;
  const Factor *const below = only_factor(low), *const above = only_factor(high);
  auto always = [](const Element& element) { return element.bound.empty() && element.guards.empty(); };
  // Every element of the larger minimum, or of the smaller maximum; one element of the others.
  if (above != nullptr && above->kind == Factor::Kind::minimum)
    return std::all_of(above->elements.begin(), above->elements.end(),
                       [&](const Element& element) { return always(element) && at_most(low, element.value); });
  if (below != nullptr && below->kind == Factor::Kind::maximum)
    return std::all_of(below->elements.begin(), below->elements.end(),
                       [&](const Element& element) { return always(element) && at_most(element.value, high); });
  if (below != nullptr && below->kind == Factor::Kind::minimum)
    return std::any_of(below->elements.begin(), below->elements.end(),
                       [&](const Element& element) { return always(element) && at_most(element.value, high); });
  if (above != nullptr && above->kind == Factor::Kind::maximum)
    return std::any_of(above->elements.begin(), above->elements.end(),
                       [&](const Element& element) { return always(element) && at_most(low, element.value); });
  return false;
}

NormalForm LawRewriter::distributed(const std::vector<Element>& elements, std::size_t which) {
  NormalForm result;
  const std::vector<Element> largest = only_factor(elements[which].value)->elements.list();
  std::vector<Element> choices;
  for (const Element& original : largest) {
    // Its variables get new names: another element may be a family over the same ones.
    Element one = original;
    Facts::Replacement fresh;
    for (SymbolId& symbol : one.bound) {
      const SymbolId name = builder_.facts().symbols().bound();
      fresh.emplace_back(symbol, Polynomial::symbol(name));
      symbol = name;
    }
    if (!fresh.empty()) {
      Element body = builder_.substitute(Element{{}, original.guards, original.value}, fresh);
      one.guards = std::move(body.guards);
      one.value = std::move(body.value);
    }
    std::vector<Element> members;
    for (std::size_t i = 0; i < elements.size(); ++i)
      members.push_back(i == which ? Element{{}, {}, one.value} : elements[i]);
    choices.push_back({one.bound, one.guards, extremum(false, std::move(members))});
  }
  return extremum(true, std::move(choices));
}

// Of a minimum above a bound all elements are, of a maximum perhaps one only: log(max(-1, 2)).
bool LawRewriter::defined_of_elements(const FunctionDefinition& function, const Extremes& extremes) {
  if (function.domain == ArgumentDomain::all) return true;
  if (!extremes.maximum && function.domain != ArgumentDomain::nonzero) return true;
  return std::all_of(extremes.elements.begin(), extremes.elements.end(), [&](const Element& element) {
    const Sign sign = signs_.of(element.value);
    switch (function.domain) {
      case ArgumentDomain::positive:
        return sign.is_positive();
      case ArgumentDomain::nonnegative:
        return sign.is_nonnegative();
      default:
        return sign.is_nonzero();
    }
  });
}

std::optional<LawRewriter::Extremes> LawRewriter::multiples(const NormalForm& form) {
  if (!is_bare(form) || form[0].factors.size() != 1) return std::nullopt;
  const Factor& inner = form[0].factors[0];
  if (inner.power != 1 || (inner.kind != Factor::Kind::maximum && inner.kind != Factor::Kind::minimum))
    return std::nullopt;
  const Rational number = form[0].coefficient;
  Extremes result{(inner.kind == Factor::Kind::maximum) == (number.numerator > 0), inner.elements.list()};
  if (number != Rational{1, 1})
    for (Element& element : result.elements)
      element.value = builder_.multiply(element.value, builder_.rational(number));
  return result;
}

NormalForm LawRewriter::extremum(bool maximum, std::vector<Element> elements) {
  const Factor::Kind kind = maximum ? Factor::Kind::maximum : Factor::Kind::minimum;
  for (Element& element : elements)
    if (only_factor(element.value) == nullptr)
      if (auto inner = multiples(element.value)) element.value = extremum(inner->maximum, std::move(inner->elements));
  // A minimum of maxima is written as the maximum of minima.
  if (!maximum && depth_ < max_law_depth)
    for (std::size_t i = 0; i < elements.size() && elements.size() > 1; ++i) {
      const Factor* const largest = only_factor(elements[i].value);
      if (largest == nullptr || largest->kind != Factor::Kind::maximum || largest->elements.size() > max_choices ||
          !elements[i].bound.empty() || !elements[i].guards.empty())
        continue;
      ++depth_;
      NormalForm result = distributed(elements, i);
      --depth_;
      return result;
    }
  const NormalForm merged = builder_.extremum(maximum, std::move(elements));
  const Factor* const only = only_factor(merged);
  if (only == nullptr || only->kind != kind) return merged;
  // Elements that one which is always there covers.
  std::vector<Element> kept = only->elements.list();
  for (Element& element : kept) element = with_fewer_variables(element, builder_.facts());
  for (std::size_t i = 0; i < kept.size();) {
    bool covered = false;
    for (std::size_t j = 0; j < kept.size() && !covered; ++j) {
      if (i == j || !kept[j].bound.empty() || !kept[j].guards.empty()) continue;
      covered = maximum ? at_most(kept[i].value, kept[j].value) : at_most(kept[j].value, kept[i].value);
    }
    if (covered)
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
  // A function that is not declared everywhere stands outside of a maximum whose elements are all calls of it.
  const Factor* const first = maximum ? only_factor(kept[0].value) : nullptr;
  const FunctionDefinition* const function = first != nullptr ? first->function : nullptr;
  if (function != nullptr && function->monotone && function->arity == 1 && function->domain != ArgumentDomain::all &&
      std::all_of(kept.begin(), kept.end(), [&](const Element& element) {
        const Factor* const other = only_factor(element.value);
        return other != nullptr && other->kind == Factor::Kind::call && other->function == function;
      })) {
    const std::string name = first->name;
    for (Element& element : kept) {
      NormalForm argument = only_factor(element.value)->elements[0].value;
      element.value = std::move(argument);
    }
    return builder_.call(function, name, {builder_.extremum(true, std::move(kept))});
  }
  return builder_.extremum(maximum, std::move(kept));
}

NormalForm LawRewriter::rewrite(const Factor& factor) {
  NormalForm base;
  switch (factor.kind) {
    case Factor::Kind::call: {
      std::vector<NormalForm> arguments;
      for (const Element& element : factor.elements) arguments.push_back(rewrite(element.value));
      base = call(factor.function, factor.name, std::move(arguments));
      break;
    }
    case Factor::Kind::maximum:
    case Factor::Kind::minimum: {
      std::vector<Element> elements = factor.elements.list();
      for (Element& element : elements) element.value = rewrite(element.value);
      base = extremum(factor.kind == Factor::Kind::maximum, std::move(elements));
      break;
    }
    case Factor::Kind::sum:
      base = rewrite(factor.elements[0].value);
      break;
    case Factor::Kind::product: {
      Factor copy = factor;
      copy.power = 1;
      std::vector<Element> members = factor.elements.list();
      for (Element& member : members) member.value = rewrite(member.value);
      copy.elements = std::move(members);
      base = builder_.factor(std::move(copy));
      break;
    }
    default:
      return builder_.factor(factor);
  }
  NormalForm result = power(base, factor.power);
  const std::size_t size = size_of(result);
  builder_.facts().budget().spend(size);
  if (size > max_size) builder_.fail("a form of more than " + std::to_string(max_size) + " factors");
  return result;
}

NormalForm LawRewriter::rewrite(const NormalForm& form) {
  NormalForm result;
  for (const Term& term : form) {
    NormalForm product = {Term{term.coefficient, term.bound, term.guards, {}}};
    for (const Factor& factor : term.factors) {
      if (!builder_.problem().empty()) return {};
      product = multiply(product, rewrite(factor));
    }
    result = builder_.add(std::move(result), product);
  }
  return collected(result, builder_.facts());
}

NormalForm LawRewriter::with_common_parts_outside(bool maximum, std::vector<Element> elements) {
  // Nothing can be taken from what is infinite.
  if (std::any_of(elements.begin(), elements.end(), [](const Element& element) { return is_infinite(element.value); }))
    return extremum(maximum, std::move(elements));
  const Symbols& symbols = builder_.facts().symbols();
  auto place = [&](const Element& element, const Term& part) {
    return std::find_if(element.value.begin(), element.value.end(), [&](const Term& candidate) {
      return candidate.coefficient == part.coefficient && alike_but_number(candidate, part, builder_.facts());
    });
  };
  NormalForm summands;
  for (const Term& part : NormalForm(elements[0].value)) {
    const bool common = std::all_of(elements.begin(), elements.end(), [&](const Element& element) {
      // A family of which nothing is left has no value to be the largest of.
      const bool all = element.value.size() == 1 && !(element.bound.empty() && element.guards.empty());
      return !all && place(element, part) != element.value.end() && !depends_on(symbols, {part}, element.bound);
    });
    if (!common) continue;
    for (Element& element : elements) element.value.erase(place(element, part));
    summands.push_back(part);
  }
  NormalForm all;
  for (const Element& element : elements) all.insert(all.end(), element.value.begin(), element.value.end());
  std::vector<Factor> factors = common_factors(all);
  std::erase_if(factors, [&](const Factor& factor) {
    return std::any_of(elements.begin(), elements.end(),
                       [&](const Element& element) { return depends_on(symbols, factor, element.bound); }) ||
           !signs_.of(form_of(factor, factor.power)).is_nonnegative();
  });
  for (Element& element : elements) element.value = without_factors(element.value, factors);
  const Rational content = common_number(all);
  for (Element& element : elements)
    element.value = builder_.multiply(element.value, builder_.rational({content.denominator, content.numerator}));
  NormalForm result = extremum(maximum, std::move(elements));
  for (const Factor& factor : factors) result = multiply(result, form_of(factor, factor.power));
  return builder_.add(builder_.multiply(result, builder_.rational(content)), summands);
}

NormalForm LawRewriter::with_common_parts_outside(const NormalForm& form) {
  NormalForm result;
  for (const Term& term : form) {
    NormalForm product = {Term{term.coefficient, term.bound, term.guards, {}}};
    for (const Factor& factor : term.factors) {
      if (!builder_.problem().empty()) return {};
      if (factor.elements.size() == 0) {
        product = multiply(product, builder_.factor(factor));
        continue;
      }
      std::vector<Element> elements = factor.elements.list();
      for (Element& element : elements) element.value = with_common_parts_outside(element.value);
      if (factor.kind == Factor::Kind::maximum || factor.kind == Factor::Kind::minimum) {
        const bool maximum = factor.kind == Factor::Kind::maximum;
        product = multiply(product, power(with_common_parts_outside(maximum, std::move(elements)), factor.power));
      } else {
        Factor inner = factor;
        inner.elements = std::move(elements);
        product = multiply(product, builder_.factor(std::move(inner)));
      }
    }
    result = builder_.add(std::move(result), product);
  }
  return collected(result, builder_.facts());
}

std::optional<NormalForm> LawRewriter::without_divisors(const NormalForm& form, std::vector<Factor>* cleared,
                                                        bool positive) {
  NormalForm current = form;
  bool changed = false;
  for (int round = 0; round < 12; ++round) {
    const Factor* divisor = nullptr;
    for (const Term& term : current)
      for (const Factor& factor : term.factors)
        if (divisor == nullptr && factor.power < 0 && factor.kind == Factor::Kind::sum &&
            !depends_on(builder_.facts().symbols(), factor, term.bound) &&
            (!positive || signs_.of(factor.elements[0].value).is_positive()))
          divisor = &factor;
    if (divisor == nullptr) break;
    const Factor chosen = *divisor;
    int lowest = 0;
    auto is_divisor = [&](const Factor& factor) {
      return factor.same_base(chosen) || alike(factor, chosen, builder_.facts());
    };
    for (const Term& term : current)
      for (const Factor& factor : term.factors)
        if (is_divisor(factor)) lowest = std::min(lowest, factor.power);
    NormalForm next;
    for (const Term& term : current) {
      Term rest = term;
      int power = -lowest;
      std::erase_if(rest.factors, [&](const Factor& factor) {
        if (!is_divisor(factor)) return false;
        power += factor.power;
        return true;
      });
      NormalForm product = {rest};
      for (int i = 0; i < power; ++i) product = multiply(product, chosen.elements[0].value);
      next = builder_.add(std::move(next), product);
    }
    if (!builder_.problem().empty()) return std::nullopt;
    if (cleared != nullptr) {
      cleared->push_back(chosen);
      cleared->back().power = -lowest;
    }
    current = std::move(next);
    changed = true;
  }
  return changed ? std::optional(current) : std::nullopt;
}

// ---- comparison ----

namespace {

// Whether laws, signs or divisors may say more of a form than the comparison without them knows.
bool has_something_to_rewrite(const NormalForm& form) {
  return std::any_of(form.begin(), form.end(), [](const Term& term) {
    return std::any_of(term.factors.begin(), term.factors.end(), [](const Factor& factor) {
      if (factor.kind == Factor::Kind::maximum || factor.kind == Factor::Kind::minimum) return true;
      if (factor.kind == Factor::Kind::sum && factor.power < 0) return true;
      if (factor.kind == Factor::Kind::call && factor.function != nullptr && !factor.function->laws.empty())
        return true;
      return std::any_of(factor.elements.begin(), factor.elements.end(),
                         [](const Element& element) { return has_something_to_rewrite(element.value); });
    });
  });
}

bool has_extremum(const NormalForm& form) {
  return std::any_of(form.begin(), form.end(), [](const Term& term) {
    return std::any_of(term.factors.begin(), term.factors.end(), [](const Factor& factor) {
      return factor.kind == Factor::Kind::maximum || factor.kind == Factor::Kind::minimum ||
             std::any_of(factor.elements.begin(), factor.elements.end(),
                         [](const Element& element) { return has_extremum(element.value); });
    });
  });
}

// The difference of two elements of a maximum or minimum whose order is not known.
std::optional<NormalForm> undecided_order(const NormalForm& form, FormBuilder& builder, Signs& signs,
                                          std::vector<SymbolId>& bound) {
  const std::size_t mark = bound.size();
  std::optional<NormalForm> found;
  for (const Term& term : form) {
    bound.insert(bound.end(), term.bound.begin(), term.bound.end());
    for (const Factor& factor : term.factors) {
      for (const Element& element : factor.elements) {
        const std::size_t inner = bound.size();
        bound.insert(bound.end(), element.bound.begin(), element.bound.end());
        if (!found) found = undecided_order(element.value, builder, signs, bound);
        bound.resize(inner);
      }
      if (found || (factor.kind != Factor::Kind::maximum && factor.kind != Factor::Kind::minimum)) continue;
      for (std::size_t i = 0; i < factor.elements.size() && !found; ++i)
        for (std::size_t j = 0; j < i && !found; ++j) {
          const Element &x = factor.elements[i], &y = factor.elements[j];
          if (!x.bound.empty() || !x.guards.empty() || !y.bound.empty() || !y.guards.empty()) continue;
          NormalForm difference = builder.add(x.value, builder.negate(y.value));
          if (depends_on(builder.facts().symbols(), difference, bound)) continue;
          const Sign sign = signs.of(difference);
          if (!sign.is_nonnegative() && !sign.is_nonpositive()) found = std::move(difference);
        }
    }
    bound.resize(mark);
    if (found) break;
  }
  return found;
}

class Comparison {
 public:
  // Of two forms that are known to differ as they stand.
  Comparison(const OperatorRegistry& registry, const NormalForm& a, const NormalForm& b, const Facts& facts,
             std::size_t& steps)
      : registry_(registry), facts_(facts), steps_(steps), different_{{a, b}} {}

  bool equal(const NormalForm& a, const NormalForm& b, const Signs& known, LawRewriter::Level level) {
    level_ = level;
    return equal(a, b, known, max_cases);
  }

 private:
  bool equal(const NormalForm& a, const NormalForm& b, const Signs& known, int cases) {
    Signs signs = known;
    LawRewriter rewriter(registry_, facts_, signs, level_);
    const NormalForm left = rewriter.rewrite(a);
    if (!rewriter.problem().empty() || size_of(left) > max_size) return false;
    const NormalForm right = rewriter.rewrite(b);
    if (!rewriter.problem().empty() || size_of(right) > max_size || facts_.budget().exhausted()) return false;
    if (same(left, right)) return true;
    FormBuilder builder(facts_);
    const auto cleared = rewriter.without_divisors(builder.add(left, builder.negate(right)));
    if (cleared && rewriter.problem().empty() && same(*cleared, {})) return true;
    if (has_extremum(left) || has_extremum(right)) {
      const NormalForm outside = rewriter.rewrite(rewriter.with_common_parts_outside(left)),
                       other = rewriter.rewrite(rewriter.with_common_parts_outside(right));
      if (rewriter.problem().empty() && same(outside, other)) return true;
    }
    if (cases == 0) return false;
    std::vector<SymbolId> bound;
    std::optional<NormalForm> difference = undecided_order(left, builder, signs, bound);
    if (!difference) difference = undecided_order(right, builder, signs, bound);
    if (!difference || !builder.problem().empty()) return false;
    for (const NormalForm& above : {*difference, builder.negate(*difference)}) {
      Signs assumed = known;
      assumed.assume(above, Sign::at_least_zero());
      if (!equal(left, right, assumed, cases - 1)) return false;
    }
    return true;
  }

  bool same(const NormalForm& a, const NormalForm& b) {
    const std::pair pair(a, b);
    if (std::find(different_.begin(), different_.end(), pair) != different_.end()) return false;
    Matcher matcher(steps_);
    if (matcher.equal(a, b, facts_)) return true;
    different_.push_back(pair);
    return false;
  }

  const OperatorRegistry& registry_;
  Facts facts_;
  std::size_t& steps_;
  LawRewriter::Level level_ = LawRewriter::Level::laws;
  std::vector<std::pair<NormalForm, NormalForm>> different_;  // what was compared in vain
};

}  // namespace

bool equal_by_laws(const OperatorRegistry& registry, const NormalForm& a, const NormalForm& b, const Facts& facts,
                   const Suppositions& suppositions, std::size_t& steps) {
  if (size_of(a) > max_size || size_of(b) > max_size) return false;
  if (!has_something_to_rewrite(a) && !has_something_to_rewrite(b)) return false;
  Facts here = facts;
  Signs signs(here);
  signs.assume(suppositions);
  signs.assume_defined(a);
  Comparison comparison(registry, a, b, facts, steps);
  return comparison.equal(a, b, signs, LawRewriter::Level::laws) ||
         comparison.equal(a, b, signs, LawRewriter::Level::definitions);
}

}  // namespace taso::unbounded
