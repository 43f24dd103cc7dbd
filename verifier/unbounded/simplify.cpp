// Simplification of normal forms under hypotheses.

#include <algorithm>

#include "verifier/unbounded/matching.h"

namespace taso::unbounded {
namespace {

// Nested simplifications.
constexpr int max_simplification_depth = 40;

bool is_extent(const Atom& guard, SymbolId symbol) {
  // symbol >= 0, or something without it - 1 - symbol >= 0
  if (guard.relation != Atom::Relation::nonnegative) return false;
  if (guard.p == Polynomial::symbol(symbol)) return true;
  return guard.p.linear_coefficient(symbol) == -1;
}

// Whether a symbol occurs free in a summand's factors or guards.
bool uses(const Symbols& symbols, const Term& term, SymbolId symbol) {
  const SymbolId self[] = {symbol};
  auto in_guards = [&](const std::vector<Atom>& guards) {
    return std::any_of(guards.begin(), guards.end(),
                       [&](const Atom& guard) { return symbols.mentions(guard.p, self); });
  };
  if (in_guards(term.guards)) return true;
  for (const Factor& factor : term.factors) {
    if (factor.kind == Factor::Kind::size && symbols.mentions(Polynomial::symbol(factor.symbol), self)) return true;
    for (const Polynomial& index : factor.indices)
      if (symbols.mentions(index, self)) return true;
    for (const Element& element : factor.elements) {
      if (in_guards(element.guards)) return true;
      for (const Term& inner : element.value)
        if (uses(symbols, inner, symbol)) return true;
    }
  }
  return false;
}

// Whether a size depends on an index, or on a variable of a reduction.
bool speaks_of_places(const Symbols& symbols, const Polynomial& p) {
  const std::vector<SymbolId> all = p.symbols();
  return std::any_of(all.begin(), all.end(), [&](SymbolId id) {
    const Symbol& symbol = symbols[id];
    return symbol.kind == Symbol::Kind::bound || symbol.kind == Symbol::Kind::index ||
           std::any_of(symbol.arguments.begin(), symbol.arguments.end(),
                       [&](const Polynomial& argument) { return speaks_of_places(symbols, argument); });
  });
}

bool binds(const Term& term, SymbolId symbol) {
  return std::find(term.bound.begin(), term.bound.end(), symbol) != term.bound.end();
}

// A guard of a nested summand that speaks of none of the variables bound inside of `factor`, and of one of `outer`.
std::optional<Atom> hoistable(const Symbols& symbols, const NormalForm& form, std::vector<SymbolId>& inner,
                              const std::vector<SymbolId>& outer);

std::optional<Atom> hoistable(const Symbols& symbols, const Factor& factor, std::vector<SymbolId>& inner,
                              const std::vector<SymbolId>& outer) {
  for (const Element& element : factor.elements) {
    const std::size_t mark = inner.size();
    inner.insert(inner.end(), element.bound.begin(), element.bound.end());
    // Guards of an element of a maximum belong to it; those of its value move out.
    auto found = hoistable(symbols, element.value, inner, outer);
    inner.resize(mark);
    if (found) return found;
  }
  return std::nullopt;
}

std::optional<Atom> hoistable(const Symbols& symbols, const NormalForm& form, std::vector<SymbolId>& inner,
                              const std::vector<SymbolId>& outer) {
  for (const Term& term : form) {
    const std::size_t mark = inner.size();
    inner.insert(inner.end(), term.bound.begin(), term.bound.end());
    for (const Atom& guard : term.guards)
      if (!symbols.mentions(guard.p, inner) && symbols.mentions(guard.p, outer)) {
        inner.resize(mark);
        return guard;
      }
    for (const Factor& factor : term.factors)
      if (auto found = hoistable(symbols, factor, inner, outer)) {
        inner.resize(mark);
        return found;
      }
    inner.resize(mark);
  }
  return std::nullopt;
}

}  // namespace

bool Matcher::simplify_guards(Term& term, Facts& facts) {
  const Symbols& symbols = facts.symbols();
  FormBuilder builder(facts);
  for (bool progress = true; progress;) {
    progress = false;
    std::vector<Atom> kept;
    for (const Atom& guard : term.guards) {
      Atom reduced = facts.reduce(guard);
      if (const auto constant = reduced.p.constant()) {
        if (reduced.relation == Atom::Relation::zero ? *constant != 0 : *constant < 0) return false;
        continue;
      }
      if (std::find(kept.begin(), kept.end(), reduced) == kept.end()) kept.push_back(std::move(reduced));
    }
    term.guards = std::move(kept);
    // p >= 0 and -p >= 0 are p == 0.
    for (std::size_t i = 0; i < term.guards.size(); ++i)
      for (std::size_t j = i + 1; j < term.guards.size(); ++j)
        if (term.guards[i].relation == Atom::Relation::nonnegative &&
            term.guards[j].relation == Atom::Relation::nonnegative && term.guards[i].p == -term.guards[j].p) {
          term.guards[i].relation = Atom::Relation::zero;
          term.guards.erase(term.guards.begin() + static_cast<std::ptrdiff_t>(j));
          --j;
        }
    // An equation that determines a bound variable.
    for (std::size_t i = 0; i < term.guards.size() && !progress; ++i) {
      if (term.guards[i].relation != Atom::Relation::zero) continue;
      Polynomial p = term.guards[i].p;
      for (const SymbolId symbol : p.symbols())
        if (!binds(term, symbol) && facts.entails_quickly(at_least(Polynomial::symbol(symbol), 1)))
          while (const auto divided = Polynomial::exact_quotient(p, Polynomial::symbol(symbol))) p = *divided;
      for (const SymbolId symbol : term.bound) {
        const auto coefficient = p.linear_coefficient(symbol);
        if (!coefficient || (*coefficient != 1 && *coefficient != -1)) continue;
        const Polynomial rest = p - Polynomial::symbol(symbol) * Polynomial(*coefficient);
        const SymbolId self[] = {symbol};
        if (symbols.mentions(rest, self)) continue;
        const Polynomial value = *coefficient == 1 ? -rest : rest;
        Term replaced = term;
        replaced.guards.erase(replaced.guards.begin() + static_cast<std::ptrdiff_t>(i));
        std::erase(replaced.bound, symbol);
        term = builder.substitute(replaced, {{symbol, value}});
        progress = true;
        break;
      }
    }
    // A quotient of a bound variable: the variable becomes a pair of digits.
    for (const Factor& factor : term.factors) {
      for (const Polynomial& index : factor.indices) {
        for (const SymbolId id : index.symbols()) {
          const Symbol symbol = symbols[id];
          if (progress || symbol.kind != Symbol::Kind::quotient || symbols.mentions(symbol.arguments[1], term.bound))
            continue;
          for (const SymbolId variable : term.bound) {
            if (symbol.arguments[0].linear_coefficient(variable) != 1) continue;
            const SymbolId self[] = {variable};
            const Polynomial rest = symbol.arguments[0] - Polynomial::symbol(variable);
            if (symbols.mentions(rest, self)) continue;
            const SymbolId high = facts.symbols().bound(), low = facts.symbols().bound();
            const Polynomial h = Polynomial::symbol(high), l = Polynomial::symbol(low);
            Term replaced = term;
            std::erase(replaced.bound, variable);
            const Facts::Replacement replacement = {{variable, symbol.arguments[1] * h + l - rest}, {id, h}};
            replaced = builder.substitute(replaced, replacement);
            replaced.bound.push_back(high);
            replaced.bound.push_back(low);
            replaced.guards.push_back(at_least(l, 0));
            replaced.guards.push_back(less_than(l, symbol.arguments[1]));
            term = std::move(replaced);
            progress = true;
            break;
          }
        }
        if (progress) break;
      }
      if (progress) break;
    }
  }
  if (term.guards.empty()) return true;
  if (facts.contradictory_quickly(term.guards)) return false;
  // Guards that follow from the others. Of the variables' own extents, 0 <= t < size, it is not asked.
  for (std::size_t i = 0; i < term.guards.size();) {
    const Atom guard = term.guards[i];
    const bool extent =
        std::any_of(term.bound.begin(), term.bound.end(), [&](SymbolId symbol) { return is_extent(guard, symbol); }) &&
        std::all_of(guard.p.terms().begin(), guard.p.terms().end(), [&](const auto& part) {
          const auto& factors = part.monomial.symbols();
          return (factors.size() == 1 && binds(term, factors[0])) ||
                 std::all_of(factors.begin(), factors.end(), [&](SymbolId symbol) {
                   const Symbol::Kind kind = symbols[symbol].kind;
                   return kind == Symbol::Kind::extent || kind == Symbol::Kind::attribute ||
                          kind == Symbol::Kind::factor;
                 });
        });
    std::vector<Atom> others = term.guards;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    bool dropped = false;
    if (!extent) {
      dropped = facts.entails_quickly(guard, others);
    } else {
      // A second, wider bound of the same variable: only where another bound implies it by itself.
      for (const Atom& other : others) {
        const Atom single[] = {other};
        if (other.relation == Atom::Relation::nonnegative && !(other.p == guard.p) &&
            std::any_of(term.bound.begin(), term.bound.end(),
                        [&](SymbolId symbol) { return is_extent(other, symbol) && is_extent(guard, symbol); }) &&
            facts.entails_quickly(guard, single))
          dropped = true;
      }
    }
    if (dropped)
      term.guards.erase(term.guards.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
  return true;
}

NormalForm Matcher::simplify(const Factor& factor, Facts& facts, const std::vector<Atom>& guards, int depth) {
  FormBuilder builder(facts);
  if (factor.kind == Factor::Kind::size) {
    NormalForm base = builder.size(facts.reduce(Polynomial::symbol(factor.symbol)));
    NormalForm result = builder.number(1);
    for (int i = 0; i < std::abs(factor.power); ++i)
      result = factor.power > 0 ? builder.multiply(result, base) : builder.divide(result, base);
    if (!builder.problem().empty()) fail(builder.problem());
    return result;
  }
  Factor copy = factor;
  for (Polynomial& index : copy.indices) index = facts.reduce(index);
  if (factor.elements.empty()) return builder.factor(std::move(copy));
  std::vector<Element> elements;
  bool changed = false;
  for (const Element& element : factor.elements) {
    Facts inner = facts;
    for (const Atom& guard : guards) (void)inner.add(guard);
    Term frame;
    frame.bound = element.bound;
    frame.guards = element.guards;
    if (element.bound.empty() && element.guards.empty()) {
      elements.push_back({{}, {}, {}});
      for (const Term& term : element.value)
        elements.back().value = builder.add(std::move(elements.back().value), simplify(term, inner, depth + 1));
      changed = changed || !(elements.back() == element);
      continue;
    }
    // One member of a family: its own simplification may replace variables in the value, which travels along as an
    // argument of a function without a name.
    Factor carrier;
    carrier.kind = Factor::Kind::call;
    carrier.name = "";
    carrier.elements.push_back({{}, {}, element.value});
    frame.factors.push_back(std::move(carrier));
    if (!simplify_guards(frame, inner)) {
      changed = true;
      continue;  // left out
    }
    Element simple;
    simple.bound = frame.bound;
    simple.guards = frame.guards;
    Facts innermost = inner;
    for (const Atom& guard : frame.guards) (void)innermost.add(guard);
    for (const Term& term : frame.factors[0].elements[0].value)
      simple.value = builder.add(std::move(simple.value), simplify(term, innermost, depth + 1));
    // Guards of the value that speak of the family's variables divide the family.
    if (factor.kind == Factor::Kind::maximum || factor.kind == Factor::Kind::minimum) {
      std::vector<SymbolId> none;
      const auto guard = hoistable(facts.symbols(), simple.value, none, simple.bound);
      if (guard && !unsettled(guard->p, innermost) && step(facts)) {
        const std::vector<Atom> parts = alternatives(*guard);
        Factor divided = factor;
        std::vector<Element> pieces;
        for (const Element& other : factor.elements)
          if (&other != &element) pieces.push_back(other);
        for (const Atom& part : parts) {
          Element piece = simple;
          piece.guards.push_back(part);
          pieces.push_back(std::move(piece));
        }
        divided.elements = std::move(pieces);
        return simplify(divided, facts, guards, depth + 1);
      }
    }
    changed = changed || !(simple == element);
    elements.push_back(std::move(simple));
  }
  if (!changed && factor.kind != Factor::Kind::sum) return builder.factor(std::move(copy));
  NormalForm base;
  switch (factor.kind) {
    case Factor::Kind::call: {
      std::vector<NormalForm> arguments;
      arguments.reserve(elements.size());
      for (Element& element : elements) arguments.push_back(std::move(element.value));
      base = builder.call(factor.function, factor.name, std::move(arguments));
      break;
    }
    case Factor::Kind::maximum:
    case Factor::Kind::minimum:
      if (elements.empty()) {
        // Nowhere defined: nothing is claimed of it, but nothing is concluded from it either.
        fail("the maximum of nothing");
        return {};
      }
      base = builder.extremum(factor.kind == Factor::Kind::maximum, std::move(elements));
      break;
    case Factor::Kind::sum:
      base = elements[0].value;
      break;
    case Factor::Kind::product:
      if (elements.empty()) return builder.number(1);
      if (elements[0].bound.empty() && elements[0].guards.empty()) {
        base = elements[0].value;
      } else {
        copy.elements = std::move(elements);
        copy.power = 1;
        base = builder.factor(copy);
      }
      break;
    default:
      base = builder.factor(copy);
      break;
  }
  NormalForm result = builder.number(1);
  for (int i = 0; i < std::abs(factor.power); ++i)
    result = factor.power > 0 ? builder.multiply(result, base) : builder.divide(result, base);
  if (!builder.problem().empty()) fail(builder.problem());
  return result;
}

NormalForm Matcher::simplify(const Term& original, Facts& facts, int depth) {
  FormBuilder builder(facts);
  Term term = original;
  if (depth > max_simplification_depth) {
    fail("nested too deeply");
    return {original};
  }
  facts.budget().spend(1 + term.guards.size() + term.factors.size());
  if (facts.budget().exhausted()) {
    fail(out_of_steps);
    return {original};
  }
  if (!simplify_guards(term, facts)) return {};
  // A variable that nothing depends on counts.
  for (std::size_t i = 0; i < term.bound.size();) {
    const SymbolId self[] = {term.bound[i]};
    const bool used = std::any_of(term.factors.begin(), term.factors.end(), [&](const Factor& factor) {
      Term probe;
      probe.factors = {factor};
      return uses(facts.symbols(), probe, self[0]);
    });
    std::optional<Polynomial> count;
    std::size_t guards = 0;
    bool lower = false;
    for (const Atom& guard : term.guards) {
      if (!facts.symbols().mentions(guard.p, self)) continue;
      ++guards;
      if (guard.relation != Atom::Relation::nonnegative) continue;
      if (guard.p == Polynomial::symbol(self[0]))
        lower = true;
      else if (guard.p.linear_coefficient(self[0]) == -1)
        count = guard.p + Polynomial::symbol(self[0]) + 1;
    }
    if (used || guards != 2 || !lower || !count || facts.symbols().mentions(*count, term.bound) ||
        !facts.entails_quickly(at_least(*count, 0))) {
      ++i;
      continue;
    }
    if (speaks_of_places(facts.symbols(), *count)) {
      ++i;
      continue;
    }
    std::erase_if(term.guards, [&](const Atom& guard) { return facts.symbols().mentions(guard.p, self); });
    term.bound.erase(term.bound.begin() + static_cast<std::ptrdiff_t>(i));
    NormalForm result;
    for (const Term& product : builder.multiply({term}, builder.size(*count)))
      result = builder.add(std::move(result), simplify(product, facts, depth + 1));
    return result;
  }
  const std::vector<Factor> factors = std::move(term.factors);
  term.factors.clear();
  NormalForm result = {term};
  for (const Factor& factor : factors) {
    const NormalForm simple = simplify(factor, facts, term.guards, depth);
    if (simple.size() == 1 && simple[0].coefficient == Rational{1, 1} && simple[0].bound.empty() &&
        simple[0].guards.empty()) {
      for (Term& product : result)
        for (const Factor& part : simple[0].factors) FormBuilder::append(product.factors, part);
    } else {
      result = builder.multiply(result, simple);
    }
  }
  // Guards of functions' arguments that speak of a summand's variables: one summand for each case.
  NormalForm divided;
  for (const Term& simple : result) {
    std::vector<SymbolId> inner;
    std::optional<Atom> guard;
    for (const Factor& factor : simple.factors)
      if (!guard && !simple.bound.empty()) guard = hoistable(facts.symbols(), factor, inner, simple.bound);
    if (!guard || unsettled(guard->p, facts, simple.guards) || !step(facts)) {
      divided = builder.add(std::move(divided), {simple});
      continue;
    }
    for (const Atom& part : alternatives(*guard)) {
      Term piece = simple;
      piece.guards.push_back(part);
      divided = builder.add(std::move(divided), simplify(builder.renamed(piece), facts, depth + 1));
    }
  }
  if (!builder.problem().empty()) fail(builder.problem());
  return divided;
}

NormalForm Matcher::simplify(const NormalForm& form, Facts& facts) {
  FormBuilder builder(facts);
  NormalForm result;
  for (const Term& term : form) result = builder.add(std::move(result), simplify(term, facts, 0));
  if (!builder.problem().empty()) fail(builder.problem());
  return result;
}

}  // namespace taso::unbounded
