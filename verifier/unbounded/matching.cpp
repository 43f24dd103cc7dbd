#include "verifier/unbounded/matching.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "verifier/unbounded/refute.h"

namespace taso::unbounded {
namespace {

// Nested comparisons.
constexpr int max_matching_depth = 24;
// Maps of leftover variables that are tried for one pair.
constexpr std::size_t max_completions = 24;
// Letters of the summand that is said to have no counterpart.
constexpr std::size_t max_described = 200;

bool contains(const std::vector<SymbolId>& list, SymbolId symbol) {
  return std::find(list.begin(), list.end(), symbol) != list.end();
}

// Reads inside of nested factors, with the variables that are bound around them.
struct NestedRead {
  std::uint32_t tensor = 0;
  std::vector<Polynomial> indices;
};
void collect_reads(const NormalForm& form, std::vector<NestedRead>& reads, std::vector<SymbolId>& inner) {
  for (const Term& term : form) {
    inner.insert(inner.end(), term.bound.begin(), term.bound.end());
    for (const Factor& factor : term.factors) {
      if (factor.kind == Factor::Kind::read) reads.push_back({factor.tensor, factor.indices});
      for (const Element& element : factor.elements) {
        inner.insert(inner.end(), element.bound.begin(), element.bound.end());
        collect_reads(element.value, reads, inner);
      }
    }
  }
}

}  // namespace

std::vector<Atom> alternatives(const Atom& guard) {
  const Polynomial below = -guard.p - 1;
  if (guard.relation == Atom::Relation::nonnegative) return {guard, {Atom::Relation::nonnegative, below}};
  return {guard, {Atom::Relation::nonnegative, guard.p - 1}, {Atom::Relation::nonnegative, below}};
}

std::optional<Atom> unsettled(const Polynomial& p, Facts& facts, std::span<const Atom> context) {
  for (const SymbolId id : p.symbols()) {
    // A copy: questions make symbols.
    const Symbol symbol = facts.symbols()[id];
    for (const Polynomial& argument : symbol.arguments)
      if (auto first = unsettled(argument, facts, context)) return first;
    if (symbol.kind != Symbol::Kind::quotient && symbol.kind != Symbol::Kind::lookup) continue;
    const Atom positive = at_least(symbol.arguments[symbol.kind == Symbol::Kind::quotient ? 1 : 0], 1);
    if (!facts.entails_quickly(positive, context)) return positive;
  }
  return std::nullopt;
}

std::string describe(const Symbols& symbols, const Term& term) {
  std::string text;
  if (term.coefficient != Rational{1, 1}) {
    text = std::to_string(term.coefficient.numerator);
    if (term.coefficient.denominator != 1) text += "/" + std::to_string(term.coefficient.denominator);
    text += " ";
  }
  if (!term.bound.empty()) {
    text += "sum(";
    for (std::size_t i = 0; i < term.bound.size(); ++i) text += (i == 0 ? "" : ", ") + symbols[term.bound[i]].name;
    text += ") ";
  }
  for (const Atom& guard : term.guards)
    text += "[" + symbols.to_string(guard.p) + (guard.relation == Atom::Relation::zero ? " == 0] " : " >= 0] ");
  for (const Factor& factor : term.factors) {
    switch (factor.kind) {
      case Factor::Kind::read: {
        text += "#" + std::to_string(factor.tensor) + "[";
        for (std::size_t i = 0; i < factor.indices.size(); ++i)
          text += (i == 0 ? "" : ", ") + symbols.to_string(factor.indices[i]);
        text += "]";
        break;
      }
      case Factor::Kind::size:
        text += symbols.to_string(Polynomial::symbol(factor.symbol));
        break;
      case Factor::Kind::literal:
        text += std::to_string(factor.number);
        break;
      case Factor::Kind::constant:
        text += factor.name;
        break;
      default: {
        text += factor.kind == Factor::Kind::call      ? factor.name
                : factor.kind == Factor::Kind::maximum ? "max"
                : factor.kind == Factor::Kind::minimum ? "min"
                : factor.kind == Factor::Kind::product ? "prod"
                                                       : "";
        text += "(";
        for (const Element& element : factor.elements) {
          for (const SymbolId symbol : element.bound) text += symbols[symbol].name + " ";
          for (const Atom& guard : element.guards) text += "[" + symbols.to_string(guard.p) + "] ";
          for (const Term& inner : element.value) text += describe(symbols, inner) + "; ";
        }
        text += ")";
      }
    }
    if (factor.power != 1) text += "^" + std::to_string(factor.power);
    text += " ";
  }
  if (!text.empty()) text.pop_back();
  return text.empty() ? "1" : text;
}

void Matcher::note(const std::string& reason) {
  if (reason_.empty()) reason_ = reason;
}

void Matcher::fail(const std::string& problem) {
  failed_ = true;
  note(problem);
}

bool Matcher::step(const Facts& facts) {
  if (facts.budget().exhausted()) {
    fail(out_of_steps);
    return false;
  }
  if (steps_ == 0) {
    fail("the limit on comparisons is reached");
    return false;
  }
  --steps_;
  return true;
}

bool Matcher::equal(const NormalForm& a, const NormalForm& b, const Facts& facts) {
  if (is_infinite(a) || is_infinite(b)) {
    note("the value is infinite");
    return false;
  }
  // What comes after the last step means nothing.
  const bool result = equal(a, b, facts, 0) && !failed_;
  if (facts.budget().exhausted()) fail(out_of_steps);
  return result && !failed_;
}

std::optional<Atom> Matcher::undecided(const NormalForm& form, std::vector<SymbolId>& bound, Facts& facts) {
  for (const Term& term : form) {
    const std::size_t mark = bound.size();
    bound.insert(bound.end(), term.bound.begin(), term.bound.end());
    for (const Atom& guard : term.guards)
      if (!facts.symbols().mentions(guard.p, bound)) {
        bound.resize(mark);
        return guard;
      }
    for (const Factor& factor : term.factors)
      for (const Element& element : factor.elements) {
        const std::size_t inner = bound.size();
        bound.insert(bound.end(), element.bound.begin(), element.bound.end());
        for (const Atom& guard : element.guards)
          if (!facts.symbols().mentions(guard.p, bound)) {
            bound.resize(mark);
            return guard;
          }
        auto found = undecided(element.value, bound, facts);
        bound.resize(inner);
        if (found) {
          bound.resize(mark);
          return found;
        }
      }
    bound.resize(mark);
  }
  return std::nullopt;
}

bool Matcher::equal(const NormalForm& left, const NormalForm& right, const Facts& given, int depth) {
  if (failed_ || !step(given)) return false;
  if (depth > max_matching_depth) {
    fail("nested too deeply");
    return false;
  }
  Facts facts = given;
  // Most questions have the answer no; pairing summands is the slow way to find out.
  if (differ_at_points(left, right, facts, depth == 0 ? 8 : 2)) {
    refuted_ = refuted_ || depth == 0;
    return false;
  }
  const NormalForm a = simplify(left, facts), b = simplify(right, facts);
  if (failed_) return false;
  // Guards without bound variables: case by case, where the guard is not decided.
  std::vector<SymbolId> bound;
  std::optional<Atom> guard = undecided(a, bound, facts);
  if (!guard) guard = undecided(b, bound, facts);
  if (guard) {
    if (const std::optional<Atom> first = unsettled(guard->p, facts)) {
      const Atom assumed[] = {*first};
      if (facts.contradictory(assumed)) {
        // No summand of it should be left.
        note("a quotient whose divisor is not positive");
        return false;
      }
      guard = first;
    }
    std::vector<std::vector<Atom>> cases;
    for (const Atom& part : alternatives(*guard)) {
      const Atom assumed[] = {part};
      if (!facts.contradictory(assumed)) cases.push_back({part});
    }
    for (const auto& assumed : cases) {
      Facts inner = facts;
      if (!inner.add(assumed[0])) continue;
      if (!equal(a, b, inner, depth + 1)) return false;
    }
    return true;
  }
  return paired(a, b, facts, depth);
}

bool Matcher::paired(const NormalForm& a, const NormalForm& b, Facts& facts, int depth) {
  const auto outer = std::exchange(division_, std::nullopt);
  const bool result = pair_up(a, b, facts, depth);
  division_ = outer;
  return result;
}

bool Matcher::pair_up(const NormalForm& a, const NormalForm& b, Facts& facts, int depth) {
  FormBuilder builder(facts);
  NormalForm pending = a;
  for (const Term& term : b) {
    pending.push_back(term);
    pending.back().coefficient.numerator = -term.coefficient.numerator;
  }
  // Classes of equal summands; what is left in the end is compared after division by guards.
  for (int round = 0; round < 24; ++round) {
    // Each summand that began a class, with the sum of coefficients.
    struct Class {
      const Term* first = nullptr;
      Rational coefficient;
    };
    std::vector<Class> classes;
    // What became of comparisons that failed: the guard by which the first summand might be divided. The coefficient of
    // a summand does not matter to them.
    std::map<std::pair<const Term*, const Term*>, std::optional<Atom>> failures;
    auto same = [&](const Term& one, const Term& other) {
      division_.reset();
      if (match(one, other, facts, depth)) return true;
      failures.emplace(std::pair(&one, &other), division_);
      return false;
    };
    for (const Term& term : pending) {
      bool found = false;
      for (Class& known : classes) {
        if (same(*known.first, term) || (!failures[{known.first, &term}] && same(term, *known.first))) {
          known.coefficient = builder.add(known.coefficient, term.coefficient);
          found = true;
          break;
        }
      }
      if (!found) classes.push_back({&term, term.coefficient});
      if (failed_) return false;
    }
    if (!builder.problem().empty()) {
      fail(builder.problem());
      return false;
    }
    std::erase_if(classes, [](const Class& known) { return known.coefficient.numerator == 0; });
    if (classes.empty()) return true;
    // Only summands that are left may be divided.
    const Class* divided = nullptr;
    Atom guard;
    for (const Class& one : classes)
      for (const Class& other : classes) {
        if (divided != nullptr || &one == &other) continue;
        const auto key = std::pair(one.first, other.first);
        if (!failures.contains(key)) (void)same(*one.first, *other.first);
        const auto failure = failures.find(key);
        if (failure == failures.end() || !failure->second) continue;
        divided = &one;
        guard = *failure->second;
      }
    auto summand = [](const Class& known) {
      Term term = *known.first;
      term.coefficient = known.coefficient;
      return term;
    };
    if (divided == nullptr || !step(facts)) {
      std::string text = describe(facts.symbols(), summand(classes[0]));
      if (text.size() > max_described) text = text.substr(0, text.rfind(' ', max_described)) + " ...";
      note("the other side has no counterpart of " + text);
      return false;
    }
    NormalForm next;
    for (const Class& known : classes) {
      if (&known != divided) {
        next.push_back(summand(known));
        continue;
      }
      for (const Atom& part : alternatives(guard)) {
        Term piece = summand(known);
        piece.guards.push_back(part);
        for (const Term& simple : simplify({builder.renamed(piece)}, facts)) next.push_back(simple);
      }
    }
    pending = std::move(next);
  }
  note("no end of divisions by guards");
  return false;
}

void Matcher::solve(const std::vector<Polynomial>& equations, const std::vector<SymbolId>& bound, Facts& facts,
                    Map& map) const {
  auto solved = [&](SymbolId symbol) {
    return std::any_of(map.begin(), map.end(), [&](const auto& entry) { return entry.first == symbol; });
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (const Polynomial& equation : equations) {
      Polynomial p = facts.substitute(equation, map);
      if (p.constant()) continue;
      for (const SymbolId symbol : p.symbols())
        if (!contains(bound, symbol) && facts.entails_quickly(at_least(Polynomial::symbol(symbol), 1)))
          while (const auto divided = Polynomial::exact_quotient(p, Polynomial::symbol(symbol))) p = *divided;
      std::optional<SymbolId> unknown;
      std::size_t unknowns = 0;
      for (const SymbolId symbol : bound) {
        const SymbolId self[] = {symbol};
        if (solved(symbol) || !facts.symbols().mentions(p, self)) continue;
        unknown = symbol;
        ++unknowns;
      }
      if (unknowns != 1) continue;
      const auto coefficient = p.linear_coefficient(*unknown);
      if (!coefficient || (*coefficient != 1 && *coefficient != -1)) continue;
      const Polynomial rest = p - Polynomial::symbol(*unknown) * Polynomial(*coefficient);
      const SymbolId self[] = {*unknown};
      if (facts.symbols().mentions(rest, self)) continue;
      const Polynomial value = *coefficient == 1 ? -rest : rest;
      const Map single = {{*unknown, value}};
      for (auto& [symbol, known] : map) known = facts.substitute(known, single);
      map.emplace_back(*unknown, value);
      progress = true;
    }
  }
}

std::vector<Matcher::Map> Matcher::completions(const Map& map, const std::vector<SymbolId>& from,
                                               const std::vector<SymbolId>& to, bool one_to_one) const {
  std::vector<SymbolId> open, free;
  for (const SymbolId symbol : from)
    if (std::none_of(map.begin(), map.end(), [&](const auto& entry) { return entry.first == symbol; }))
      open.push_back(symbol);
  if (open.empty()) return {map};
  for (const SymbolId symbol : to)
    if (std::none_of(map.begin(), map.end(), [&](const auto& entry) { return entry.second.contains(symbol); }))
      free.push_back(symbol);
  std::vector<Map> result;
  if (one_to_one) {
    if (open.size() > free.size()) return {};
    std::sort(free.begin(), free.end());
    do {
      Map complete = map;
      for (std::size_t i = 0; i < open.size(); ++i) complete.emplace_back(open[i], Polynomial::symbol(free[i]));
      if (result.empty() || !(result.back() == complete)) result.push_back(std::move(complete));
    } while (result.size() < max_completions && std::next_permutation(free.begin(), free.end()));
    return result;
  }
  // Any value will do that satisfies the guards: a variable of the other family, or 0.
  std::function<void(std::size_t, Map&)> choose = [&](std::size_t i, Map& partial) {
    if (result.size() >= max_completions) return;
    if (i == open.size()) {
      result.push_back(partial);
      return;
    }
    std::vector<Polynomial> values;
    values.reserve(to.size() + 1);
    for (const SymbolId symbol : to) values.push_back(Polynomial::symbol(symbol));
    values.emplace_back(0);
    for (const Polynomial& value : values) {
      partial.emplace_back(open[i], value);
      choose(i + 1, partial);
      partial.pop_back();
    }
  };
  Map partial = map;
  choose(0, partial);
  return result;
}

bool Matcher::bijective(const Map& map, const std::vector<SymbolId>& from, const std::vector<Atom>& from_guards,
                        const std::vector<SymbolId>& to, const std::vector<Atom>& guards, Facts& facts,
                        std::vector<Atom>& boxes) const {
  std::vector<SymbolId> claimed;
  std::vector<const Polynomial*> images;
  for (const SymbolId symbol : from) {
    const auto it = std::find_if(map.begin(), map.end(), [&](const auto& entry) { return entry.first == symbol; });
    if (it == map.end()) return false;
    images.push_back(&it->second);
  }
  for (bool progress = true; progress && !images.empty();) {
    progress = false;
    for (std::size_t i = 0; i < images.size() && !progress; ++i) {
      const Polynomial& image = *images[i];
      std::vector<SymbolId> fresh;
      for (const SymbolId symbol : to) {
        const SymbolId self[] = {symbol};
        if (!contains(claimed, symbol) && facts.symbols().mentions(image, self)) fresh.push_back(symbol);
      }
      bool claims = false;
      if (fresh.size() == 1) {
        const auto coefficient = image.linear_coefficient(fresh[0]);
        const SymbolId self[] = {fresh[0]};
        claims = coefficient && (*coefficient == 1 || *coefficient == -1) &&
                 !facts.symbols().mentions(image - Polynomial::symbol(fresh[0]) * Polynomial(*coefficient), self);
      } else if (fresh.size() == 2) {
        // high * c + low with 0 <= low < c
        for (int turn = 0; turn < 2 && !claims; ++turn) {
          const SymbolId high = fresh[static_cast<std::size_t>(turn)], low = fresh[static_cast<std::size_t>(1 - turn)];
          if (image.linear_coefficient(low) != 1) continue;
          Polynomial scale, rest;
          bool fits = true;
          for (const auto& [monomial, coefficient] : image.terms()) {
            if (!monomial.contains(high)) {
              rest = rest + Polynomial::term(monomial, coefficient);
              continue;
            }
            const auto factor = Monomial::quotient(monomial, Monomial(high));
            fits = fits && factor && !factor->contains(high) && !factor->contains(low);
            if (fits) scale = scale + Polynomial::term(*factor, coefficient);
          }
          const SymbolId both[] = {high, low};
          if (!fits || facts.symbols().mentions(rest - Polynomial::symbol(low), both) ||
              facts.symbols().mentions(scale, to))
            continue;
          const Atom lower = at_least(Polynomial::symbol(low), 0), upper = less_than(Polynomial::symbol(low), scale);
          if (!facts.entails_quickly(lower, guards) || !facts.entails_quickly(upper, guards)) continue;
          // Where c is not positive there are no digits, although there may be values of what is mapped.
          if (!facts.entails_quickly(at_least(scale, 1), from_guards)) continue;
          boxes.push_back(lower);
          boxes.push_back(upper);
          claims = true;
        }
      }
      if (!claims) continue;
      claimed.insert(claimed.end(), fresh.begin(), fresh.end());
      images.erase(images.begin() + static_cast<std::ptrdiff_t>(i));
      progress = true;
    }
  }
  return images.empty() && claimed.size() == to.size();
}

bool Matcher::same_factor(const Factor& a, const Factor& b, const Facts& facts, int depth) {
  if (a.kind != b.kind || a.power != b.power || a.name != b.name || a.function != b.function) return false;
  Facts shared = facts;
  switch (a.kind) {
    case Factor::Kind::read: {
      if (a.tensor != b.tensor || a.indices.size() != b.indices.size()) return false;
      for (std::size_t i = 0; i < a.indices.size(); ++i)
        if (!shared.entails(equal_to(a.indices[i], b.indices[i]))) return false;
      return true;
    }
    case Factor::Kind::size:
      return shared.reduce(Polynomial::symbol(a.symbol)) == shared.reduce(Polynomial::symbol(b.symbol));
    case Factor::Kind::literal:
      return a.number == b.number;
    case Factor::Kind::constant:
      return true;
    case Factor::Kind::sum:
      return equal(a.elements[0].value, b.elements[0].value, facts, depth + 1);
    case Factor::Kind::call: {
      if (a.elements.size() != b.elements.size()) return false;
      for (std::size_t i = 0; i < a.elements.size(); ++i)
        if (!equal(a.elements[i].value, b.elements[i].value, facts, depth + 1)) return false;
      return true;
    }
    case Factor::Kind::maximum:
    case Factor::Kind::minimum:
      // The same set: each element is among the others.
      for (const Element& element : a.elements)
        if (!includes(b.elements, element, shared, depth)) return false;
      for (const Element& element : b.elements)
        if (!includes(a.elements, element, shared, depth)) return false;
      return true;
    case Factor::Kind::product:
      return same_product(a.elements[0], b.elements[0], facts, depth);
  }
  return false;
}

// Whether every value of `one` is among those of `all`, by a map of variables.
bool Matcher::covered(const Element& one, const Elements& all, const Facts& facts) {
  Facts here = facts;
  return includes(all, one, here, 0) && !failed_;
}

bool Matcher::includes(const Elements& all, const Element& given, Facts& facts, int depth, int divisions) {
  FormBuilder builder(facts);
  // The guard without which some of `given` is among one of the families: [0, m) of [0, n).
  std::optional<Atom> boundary;
  const Element one = given.bound.empty() ? given : renamed(given, facts);  // as in match()
  for (const Element& original : all) {
    if (!step(facts)) return false;
    const Element other = renamed(original, facts);
    std::vector<NestedRead> a, b;
    std::vector<SymbolId> inner;
    collect_reads(one.value, a, inner);
    collect_reads(other.value, b, inner);
    Facts under = facts;
    for (const Atom& guard : one.guards) (void)under.add(guard);
    std::size_t tries = 0;
    std::function<bool(std::size_t, const Map&)> search = [&](std::size_t at, const Map& map) -> bool {
      if (at < b.size() && map.size() < other.bound.size()) {
        for (const NestedRead& read : a) {
          if (read.tensor != b[at].tensor || read.indices.size() != b[at].indices.size()) continue;
          std::vector<Polynomial> equations;
          for (std::size_t i = 0; i < read.indices.size(); ++i) {
            const Polynomial difference = read.indices[i] - b[at].indices[i];
            if (!facts.symbols().mentions(difference, inner)) equations.push_back(difference);
          }
          Map solved = map;
          solve(equations, other.bound, facts, solved);
          if (++tries > 24) return false;
          if (search(at + 1, solved)) return true;
        }
        return search(at + 1, map);
      }
      for (const Map& complete : completions(map, other.bound, one.bound, false)) {
        if (!step(facts)) return false;
        std::optional<Atom> lacking;
        bool holds = true;
        for (const Atom& guard : other.guards) {
          const Atom here{guard.relation, facts.substitute(guard.p, complete)};
          if (under.entails(here)) continue;
          holds = false;
          if (!lacking) lacking = here;
        }
        if (holds && equal(one.value, builder.substitute(other.value, complete), under, depth + 1)) return true;
        if (lacking && !boundary && divides(one, *lacking, facts)) boundary = lacking;
      }
      return false;
    };
    if (search(0, {})) return true;
  }
  if (!boundary || divisions == 0) return false;
  for (const Atom& piece : alternatives(*boundary)) {
    Element part = one;
    part.guards.push_back(piece);
    if (!facts.contradictory_quickly(part.guards) && !includes(all, part, facts, depth, divisions - 1)) return false;
  }
  return true;
}

bool Matcher::divides(const Element& family, const Atom& guard, Facts& facts) const {
  std::vector<Atom> inside = family.guards;
  inside.push_back(guard);
  return guard.relation == Atom::Relation::nonnegative && !facts.contradictory_quickly(inside) &&
         !unsettled(guard.p, facts, family.guards);
}

bool Matcher::same_product(const Element& a, const Element& b, const Facts& facts, int depth) {
  // A product is compared like a sum of one summand: over a bijection of its variables.
  Term x, y;
  x.bound = a.bound;
  x.guards = a.guards;
  y.bound = b.bound;
  y.guards = b.guards;
  Factor carrier;
  carrier.kind = Factor::Kind::call;
  carrier.elements.push_back({{}, {}, a.value});
  x.factors.push_back(carrier);
  carrier.elements = std::vector<Element>{{{}, {}, b.value}};
  y.factors.push_back(carrier);
  Facts shared = facts;
  const auto outer = std::exchange(division_, std::nullopt);
  const bool result = match(x, y, shared, depth) || match(y, x, shared, depth);
  division_ = outer;
  return result;
}

Element Matcher::renamed(const Element& element, Facts& facts) {
  Element result = element;
  FormBuilder builder(facts);
  Facts::Replacement replacement;
  for (SymbolId& symbol : result.bound) {
    const SymbolId fresh = facts.symbols().bound();
    replacement.emplace_back(symbol, Polynomial::symbol(fresh));
    symbol = fresh;
  }
  for (Atom& guard : result.guards) guard.p = facts.substitute(guard.p, replacement);
  result.value = builder.substitute(result.value, replacement);
  return result;
}

bool Matcher::match(const Term& given, const Term& original, Facts& facts, int depth) {
  FormBuilder builder(facts);
  // The guards of one summand become facts under which both are compared: its variables must be none of a nested sum.
  const bool captures = std::any_of(given.bound.begin(), given.bound.end(), [&](SymbolId symbol) {
    return builder.binds(given.factors, symbol) || builder.binds(original.factors, symbol);
  });
  if (captures) {
    const Term fresh = builder.renamed(given);
    const bool result = match(fresh, original, facts, depth);
    Facts::Replacement back;
    for (std::size_t i = 0; i < given.bound.size(); ++i)
      back.emplace_back(fresh.bound[i], Polynomial::symbol(given.bound[i]));
    if (division_) division_->p = facts.substitute(division_->p, back);
    return result;
  }
  const Term& a = given;
  if (a.bound.empty() && original.bound.empty() && a.factors == original.factors && a.guards == original.guards)
    return true;
  if (a.factors.size() != original.factors.size() || original.bound.size() > a.bound.size()) return false;
  // Kinds and tensors must agree as multisets.
  auto key = [](const Factor& factor) {
    return std::tuple(factor.kind, factor.power, factor.tensor, factor.name, factor.indices.size());
  };
  std::vector<decltype(key(a.factors[0]))> x, y;
  for (const Factor& factor : a.factors) x.push_back(key(factor));
  for (const Factor& factor : original.factors) y.push_back(key(factor));
  std::sort(x.begin(), x.end());
  std::sort(y.begin(), y.end());
  if (x != y || !step(facts)) return false;
  const Term b = builder.renamed(original);
  std::vector<const Factor*> reads, others;
  for (const Factor& factor : a.factors)
    if (factor.kind == Factor::Kind::read) reads.push_back(&factor);
  for (const Factor& factor : b.factors)
    if (factor.kind == Factor::Kind::read) others.push_back(&factor);
  std::vector<bool> used(others.size(), false);
  std::vector<Polynomial> equations;
  std::function<bool(std::size_t)> pair = [&](std::size_t i) -> bool {
    if (i == reads.size()) {
      Map map;
      solve(equations, b.bound, facts, map);
      // Equations that cannot hold: no use in going on.
      for (const Polynomial& equation : equations) {
        const auto constant = facts.substitute(equation, map).constant();
        if (constant && *constant != 0) return false;
      }
      return match_with(a, b, facts, map, depth);
    }
    for (std::size_t j = 0; j < others.size(); ++j) {
      if (used[j] || others[j]->tensor != reads[i]->tensor || others[j]->power != reads[i]->power ||
          others[j]->indices.size() != reads[i]->indices.size())
        continue;
      if (!step(facts)) return false;
      used[j] = true;
      const std::size_t mark = equations.size();
      for (std::size_t k = 0; k < reads[i]->indices.size(); ++k)
        equations.push_back(reads[i]->indices[k] - others[j]->indices[k]);
      if (pair(i + 1)) return true;
      equations.resize(mark);
      used[j] = false;
    }
    return false;
  };
  return pair(0);
}

bool Matcher::match_with(const Term& a, const Term& b, Facts& facts, Map start, int depth) {
  // Reads inside of functions may determine what the others leave open.
  std::vector<Map> maps = {std::move(start)};
  if (maps[0].size() < b.bound.size()) {
    std::vector<NestedRead> x, y;
    std::vector<SymbolId> inner;
    for (const Factor& factor : a.factors)
      for (const Element& element : factor.elements) {
        inner.insert(inner.end(), element.bound.begin(), element.bound.end());
        collect_reads(element.value, x, inner);
      }
    for (const Factor& factor : b.factors)
      for (const Element& element : factor.elements) {
        inner.insert(inner.end(), element.bound.begin(), element.bound.end());
        collect_reads(element.value, y, inner);
      }
    for (const NestedRead& p : x)
      for (const NestedRead& q : y) {
        if (p.tensor != q.tensor || p.indices.size() != q.indices.size() || maps.size() > 12) continue;
        std::vector<Polynomial> equations;
        for (std::size_t i = 0; i < p.indices.size(); ++i) {
          const Polynomial difference = p.indices[i] - q.indices[i];
          if (!facts.symbols().mentions(difference, inner)) equations.push_back(difference);
        }
        Map extended = maps[0];
        solve(equations, b.bound, facts, extended);
        if (extended.size() > maps[0].size() && std::find(maps.begin(), maps.end(), extended) == maps.end())
          maps.push_back(std::move(extended));
      }
    std::rotate(maps.begin(), maps.begin() + 1, maps.end());
  }
  FormBuilder builder(facts);
  for (const Map& map : maps)
    for (const Map& complete : completions(map, b.bound, a.bound, true)) {
      if (!step(facts)) return false;
      std::vector<Atom> boxes;
      if (!bijective(complete, b.bound, b.guards, a.bound, a.guards, facts, boxes)) continue;
      Term image = builder.substitute(Term{b.coefficient, {}, b.guards, b.factors}, complete);
      // Guards in both directions.
      std::vector<Atom> there = image.guards;
      there.insert(there.end(), boxes.begin(), boxes.end());
      std::optional<Atom> lacking;
      bool equivalent = true;
      for (const Atom& guard : image.guards)
        if (!facts.entails(guard, a.guards)) {
          equivalent = false;
          if (!lacking) lacking = guard;
        }
      bool covered = true;
      for (const Atom& guard : a.guards)
        if (!facts.entails(guard, there)) {
          equivalent = false;
          covered = false;
        }
      if (!equivalent && !lacking) continue;
      if (!equivalent && !covered && !boxes.empty()) continue;
      Facts under = facts;
      for (const Atom& guard : a.guards) (void)under.add(guard);
      if (!equivalent)
        for (const Atom& guard : image.guards) (void)under.add(guard);
      std::vector<bool> used(image.factors.size(), false);
      bool same = true;
      for (const Factor& factor : a.factors) {
        bool found = false;
        for (std::size_t j = 0; j < image.factors.size() && !found; ++j) {
          if (used[j] || !same_factor(factor, image.factors[j], under, depth)) continue;
          used[j] = true;
          found = true;
        }
        if (!found) {
          same = false;
          break;
        }
      }
      if (!same) continue;
      if (equivalent) return true;
      const Atom both[] = {*lacking};
      std::vector<Atom> together = a.guards;
      together.insert(together.end(), both, both + 1);
      if (!division_ && !facts.contradictory_quickly(together) && !unsettled(lacking->p, facts, a.guards))
        division_ = lacking;
    }
  return false;
}

}  // namespace taso::unbounded
