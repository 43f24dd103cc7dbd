// Maxima and minima in rewriting by laws: the order of their elements, and what these have in common.
#include <algorithm>

#include "verifier/unbounded/families.h"
#include "verifier/unbounded/law_forms.h"
#include "verifier/unbounded/laws.h"

namespace taso::unbounded {
namespace {

// Elements of a maximum that are taken out of a minimum.
constexpr std::size_t max_choices = 16;

}  // namespace

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
  // Some element always has a value.
  std::vector<Factor> factors = common_factors(all, true);
  std::erase_if(factors, [&](const Factor& factor) {
    if (factor.power < 0 && !std::all_of(elements.begin(), elements.end(),
                                         [&](const Element& element) { return always_nonzero(factor, element.value); }))
      return true;
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

}  // namespace taso::unbounded
