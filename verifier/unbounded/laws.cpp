#include "verifier/unbounded/laws.h"

#include <algorithm>
#include <cmath>

#include "verifier/unbounded/families.h"
#include "verifier/unbounded/law_forms.h"

namespace taso::unbounded {
namespace {

using Kind = Expression::Kind;

// A law that says what a function is by others: its arguments are variables.
bool is_definition(const FunctionLaw& law) {
  const bool plain =
      law.left.kind == Kind::call && std::all_of(law.left.operands.begin(), law.left.operands.end(),
                                                 [](const Expression& e) { return e.kind == Kind::name; });
  return plain && law.right.kind != Kind::name && law.right.kind != Kind::integer && law.right.kind != Kind::real;
}

// The summands that divide by something.
std::vector<const Term*> dividing(const Factor& divisor, const NormalForm& form, Facts& facts) {
  std::vector<const Term*> result;
  for (const Term& term : form)
    for (const Factor& factor : term.factors)
      if (factor.power < 0 && (factor.same_base(divisor) || alike(factor, divisor, facts))) result.push_back(&term);
  return result;
}

// Whether a form has a value for every number: it divides by nothing, and calls functions that are defined everywhere.
bool is_total(const NormalForm& form) {
  return std::all_of(form.begin(), form.end(), [](const Term& term) {
    return std::all_of(term.factors.begin(), term.factors.end(), [](const Factor& factor) {
      if (factor.power < 0 || factor.kind == Factor::Kind::maximum || factor.kind == Factor::Kind::minimum)
        return false;
      if (factor.kind == Factor::Kind::call &&
          (factor.function == nullptr || factor.function->domain != ArgumentDomain::all))
        return false;
      return std::all_of(factor.elements.begin(), factor.elements.end(),
                         [](const Element& element) { return is_total(element.value); });
    });
  });
}

}  // namespace

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

bool LawRewriter::always_nonzero(const Factor& divisor, const NormalForm& form) {
  const std::vector<const Term*> terms = dividing(divisor, form, builder_.facts());
  if (std::any_of(terms.begin(), terms.end(), [&](const Term* term) { return signs_.has_values(*term); })) return true;
  const NormalForm value = divisor.kind == Factor::Kind::sum ? divisor.elements[0].value : form_of(divisor, 1);
  return is_total(value) && signs_.of(value).is_nonzero();
}

// A divisor is asked to be nonzero where a summand divides by it. Guards can leave out all of these summands and let
// others stay: there the divisor may be 0, and what is multiplied by it says nothing.
bool LawRewriter::nonzero_throughout(const Factor& divisor, const NormalForm& form) {
  if (always_nonzero(divisor, form)) return true;
  Facts& facts = builder_.facts();
  const std::vector<const Term*> terms = dividing(divisor, form, facts);
  return std::all_of(form.begin(), form.end(), [&](const Term& term) {
    return std::any_of(terms.begin(), terms.end(), [&](const Term* other) {
      return other == &term ||
             (other->bound.empty() && std::all_of(other->guards.begin(), other->guards.end(), [&](const Atom& guard) {
                return facts.entails_quickly(guard, term.guards);
              }));
    });
  });
}

// The smallest power of every factor in the summands, 0 where it is not in one; what variables of a summand decide is
// not common. Outside of the summands a divisor is asked for wherever the form is.
std::vector<Factor> LawRewriter::common_factors(const NormalForm& form, bool nonzero) {
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
      if (shared.power == 0) continue;
      if (shared.power < 0 && !nonzero && !always_nonzero(shared, form)) continue;
      common.push_back(std::move(shared));
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
  std::vector<Factor> common = common_factors(a, true);
  std::erase_if(common, [&](const Factor& factor) { return factor.power < 0 && !nonzero_throughout(factor, a); });
  NormalForm rest = without_factors(a, common);
  Rational shared = common_number(rest);
  if (written_negatively(rest)) shared.numerator = -shared.numerator;
  NormalForm outside = builder_.rational(shared);
  rest = builder_.multiply(rest, builder_.divide(builder_.number(1), outside));
  NormalForm result = builder_.divide(builder_.number(1), outside);
  for (const Factor& factor : common) result = builder_.multiply(result, form_of(factor, -factor.power));
  return multiply(result, builder_.divide(builder_.number(1), rest));
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
  if (size > max_rewritten_size)
    builder_.fail("a form of more than " + std::to_string(max_rewritten_size) + " factors");
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
            (!positive || signs_.of(factor.elements[0].value).is_positive()) && nonzero_throughout(factor, current))
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

}  // namespace taso::unbounded
