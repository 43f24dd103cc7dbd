#include "verifier/unbounded/families.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace taso::unbounded {
namespace {

// Inequalities that one elimination may leave.
constexpr std::size_t max_guards = 60;

// An inequality coefficient * variable + rest >= 0.
struct Bound {
  std::int64_t coefficient = 0;
  Polynomial rest;
};

// The guards without a variable that the value does not speak of; nothing where it cannot be eliminated exactly.
std::optional<std::vector<Atom>> eliminated(const std::vector<Atom>& guards, SymbolId variable, Facts& facts) {
  const SymbolId self[] = {variable};
  std::vector<Atom> result;
  std::vector<Bound> lower, upper;
  for (const Atom& guard : guards) {
    if (!guard.p.valid()) return std::nullopt;
    if (!facts.symbols().mentions(guard.p, self)) {
      result.push_back(guard);
      continue;
    }
    const auto coefficient = guard.p.linear_coefficient(variable);
    if (guard.relation != Atom::Relation::nonnegative || !coefficient || std::abs(*coefficient) > 1'000'000)
      return std::nullopt;
    Bound bound{*coefficient, guard.p - Polynomial::symbol(variable) * Polynomial(*coefficient)};
    if (facts.symbols().mentions(bound.rest, self)) return std::nullopt;
    (bound.coefficient > 0 ? lower : upper).push_back(std::move(bound));
  }
  if (lower.empty() || upper.empty() || lower.size() * upper.size() + result.size() > max_guards) return std::nullopt;
  std::vector<Atom> shadows;
  for (const Bound& low : lower)
    for (const Bound& high : upper) {
      const std::int64_t a = -high.coefficient, b = low.coefficient;
      const Polynomial shadow = Polynomial(a) * low.rest + Polynomial(b) * high.rest;
      if (!shadow.valid()) return std::nullopt;
      if (a == 1 || b == 1) {
        shadows.push_back(at_least(shadow, 0));
      } else if (!facts.entails_quickly(at_least(shadow, (a - 1) * (b - 1)), result)) {
        return std::nullopt;
      }
    }
  for (Atom& shadow : shadows)
    if (!facts.entails_quickly(shadow, result)) result.push_back(std::move(shadow));
  return result;
}

// Index polynomials of a form that mention two variables or more of a set.
void collect_combinations(const Symbols& symbols, const NormalForm& form, const std::vector<SymbolId>& bound,
                          std::vector<Polynomial>& found) {
  for (const Term& term : form)
    for (const Factor& factor : term.factors) {
      for (const Polynomial& index : factor.indices) {
        std::size_t mentioned = 0;
        for (const SymbolId symbol : bound) {
          const SymbolId self[] = {symbol};
          mentioned += symbols.mentions(index, self) ? 1 : 0;
        }
        if (mentioned >= 2) found.push_back(index);
      }
      for (const Element& element : factor.elements) collect_combinations(symbols, element.value, bound, found);
    }
}

// The family with a variable less, of which its value speaks only together with another one.
std::optional<Element> combined(const Element& element, Facts& facts) {
  std::vector<Polynomial> indices;
  collect_combinations(facts.symbols(), element.value, element.bound, indices);
  FormBuilder builder(facts);
  for (const Polynomial& index : indices)
    for (const SymbolId inner : element.bound)
      for (const SymbolId outer : element.bound) {
        const auto unit = index.linear_coefficient(inner), times = index.linear_coefficient(outer);
        if (inner == outer || !unit || !times || (*unit != 1 && *unit != -1)) continue;
        // unit * inner + times * outer is a variable of its own.
        const SymbolId sum = facts.symbols().bound();
        const Polynomial value =
            (Polynomial::symbol(sum) - Polynomial::symbol(outer) * Polynomial(*times)) * Polynomial(*unit);
        Element result;
        result.bound = element.bound;
        std::replace(result.bound.begin(), result.bound.end(), inner, sum);
        result.value = builder.substitute(element.value, {{inner, value}});
        if (!builder.problem().empty() || depends_on(facts.symbols(), result.value, {outer})) continue;
        std::vector<Atom> guards;
        for (const Atom& guard : element.guards)
          guards.push_back({guard.relation, facts.substitute(guard.p, {{inner, value}})});
        auto without = eliminated(guards, outer, facts);
        if (!without) continue;
        result.guards = std::move(*without);
        std::erase(result.bound, outer);
        return result;
      }
  return std::nullopt;
}

}  // namespace

bool depends_on(const Symbols& symbols, const Factor& factor, const std::vector<SymbolId>& set) {
  if (set.empty()) return false;
  if (factor.kind == Factor::Kind::size && symbols.mentions(Polynomial::symbol(factor.symbol), set)) return true;
  auto mentioned = [&](const Polynomial& p) { return symbols.mentions(p, set); };
  if (std::any_of(factor.indices.begin(), factor.indices.end(), mentioned)) return true;
  return std::any_of(factor.elements.begin(), factor.elements.end(), [&](const Element& element) {
    return std::any_of(element.guards.begin(), element.guards.end(),
                       [&](const Atom& guard) { return mentioned(guard.p); }) ||
           depends_on(symbols, element.value, set);
  });
}

bool depends_on(const Symbols& symbols, const NormalForm& form, const std::vector<SymbolId>& set) {
  if (set.empty()) return false;
  return std::any_of(form.begin(), form.end(), [&](const Term& term) {
    return std::any_of(term.guards.begin(), term.guards.end(),
                       [&](const Atom& guard) { return symbols.mentions(guard.p, set); }) ||
           std::any_of(term.factors.begin(), term.factors.end(),
                       [&](const Factor& factor) { return depends_on(symbols, factor, set); });
  });
}

Element with_fewer_variables(const Element& element, Facts& facts) {
  Element result = element;
  for (bool progress = true; progress && !result.bound.empty();) {
    progress = false;
    for (const SymbolId variable : result.bound) {
      if (depends_on(facts.symbols(), result.value, {variable})) continue;
      auto without = eliminated(result.guards, variable, facts);
      if (!without) continue;
      result.guards = std::move(*without);
      std::erase(result.bound, variable);
      progress = true;
      break;
    }
    if (progress) continue;
    if (auto fewer = combined(result, facts)) {
      result = std::move(*fewer);
      progress = true;
    }
  }
  return result;
}

}  // namespace taso::unbounded
