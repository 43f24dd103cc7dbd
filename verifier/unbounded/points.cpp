#include "verifier/unbounded/points.h"

#include <algorithm>

#include "support/random.h"

namespace taso::unbounded {
namespace {

// Points that are looked for, and attempts to find them.
constexpr std::size_t wanted_points = 10;
constexpr std::size_t most_attempts = 30;
// Values for so many more symbols are made at once.
constexpr std::size_t room = 32;
// The largest value that is tried where an atom does not tell by itself from where on it holds.
constexpr std::int64_t farthest = std::int64_t{1} << 20;

std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9U;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

// Symbols that have values of their own, also those within quotients, maxima and lookups.
void collect(const Symbols& symbols, const Polynomial& p, std::vector<SymbolId>& found, bool nested,
             std::vector<SymbolId>* inside) {
  for (const auto& [monomial, coefficient] : p.terms())
    for (const SymbolId id : monomial.symbols()) {
      for (const Polynomial& argument : symbols[id].arguments) collect(symbols, argument, found, true, inside);
      if (!symbols[id].arguments.empty()) continue;
      found.push_back(id);
      if (nested && inside != nullptr) inside->push_back(id);
    }
}

// An atom with the symbol of it that is chosen last, for which it is solved if it is linear in it.
struct Constraint {
  const Atom* atom = nullptr;
  bool linear = false;
};

// The least value from a symbol's on at which an inequality holds that cannot be solved for it, because it stands
// inside of a quotient, if that is true of all larger values, too; else the same value.
std::int64_t raised(Point& point, const Symbols& symbols, const Atom& atom, SymbolId symbol, std::int64_t value,
                    std::int64_t most) {
  const auto holds_at = [&](std::int64_t number) {
    const std::size_t mark = point.mark();
    point.choose(symbol, number);
    const bool holds = point.satisfies(symbols, atom);
    point.undo(mark);
    return holds;
  };
  if (atom.relation != Atom::Relation::nonnegative || holds_at(value)) return value;
  std::int64_t below = value, above = value;
  for (std::int64_t step = 1; !holds_at(above); step *= 2) {
    if (above >= most) return value;
    below = above;
    above = std::min(most, above + step);
  }
  while (above - below > 1) {
    const std::int64_t middle = below + (above - below) / 2;
    (holds_at(middle) ? above : below) = middle;
  }
  return above;
}

}  // namespace

void Point::choose(SymbolId symbol, std::int64_t value) {
  // With room for the next ones, since symbols are chosen one after the other.
  if (values_.size() <= symbol) values_.resize((symbol / room + 1) * room);
  values_[symbol] = {value, State::known};
  trail_.push_back(symbol);
}

void Point::undo(std::size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) values_[trail_.back()].state = State::open;
}

void Point::forget_computed(const Symbols& symbols) {
  const std::size_t known = std::min(values_.size(), symbols.size());
  for (SymbolId id = 0; id < known; ++id)
    if (!symbols[id].arguments.empty()) values_[id].state = State::open;
}

std::optional<std::int64_t> Point::value(const Symbols& symbols, SymbolId id) {
  if (id < values_.size() && values_[id].state != State::open)
    return values_[id].state == State::known ? std::optional(values_[id].number) : std::nullopt;
  const Symbol& symbol = symbols[id];
  std::optional<std::int64_t> result;
  switch (symbol.kind) {
    case Symbol::Kind::quotient: {
      const auto n = evaluate(symbols, symbol.arguments[0]), d = evaluate(symbols, symbol.arguments[1]);
      if (n && d && *d > 0) result = floor_quotient(*n, *d);
      break;
    }
    case Symbol::Kind::maximum: {
      const auto a = evaluate(symbols, symbol.arguments[0]), b = evaluate(symbols, symbol.arguments[1]);
      if (a && b) result = std::max(*a, *b);
      break;
    }
    case Symbol::Kind::lookup: {
      // A function of the tensor and the indices, inside of the extent.
      std::uint64_t hash = mixed(seed_ + symbol.tensor);
      bool defined = true;
      for (std::size_t i = 1; i < symbol.arguments.size(); ++i) {
        const auto index = evaluate(symbols, symbol.arguments[i]);
        defined = defined && index;
        hash = mixed(hash ^ static_cast<std::uint64_t>(index.value_or(0)));
      }
      const auto extent = evaluate(symbols, symbol.arguments[0]);
      if (defined && extent && *extent > 0)
        result = static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(*extent));
      break;
    }
    default: {
      // 0, 0, 1 or 2: the least of what variables of reductions have is likely to be inside.
      const std::uint64_t hash = mixed(seed_ * 0x9E3779B97F4A7C15U + id) % 4;
      result = hash < 2 ? 0 : static_cast<std::int64_t>(hash) - 1;
      break;
    }
  }
  choose(id, result.value_or(0));
  if (!result) values_[id].state = State::undefined;
  return result;
}

std::optional<std::int64_t> Point::evaluate(const Symbols& symbols, const Monomial& monomial) {
  std::int64_t product = 1;
  for (const SymbolId id : monomial.symbols()) {
    const auto factor = value(symbols, id);
    if (!factor || __builtin_mul_overflow(product, *factor, &product)) return std::nullopt;
  }
  return product;
}

std::optional<std::int64_t> Point::evaluate(const Symbols& symbols, const Polynomial& p) {
  if (!p.valid()) return std::nullopt;
  std::int64_t sum = 0;
  for (const auto& [monomial, coefficient] : p.terms()) {
    auto product = evaluate(symbols, monomial);
    if (!product || __builtin_mul_overflow(*product, coefficient, &*product) ||
        __builtin_add_overflow(sum, *product, &sum))
      return std::nullopt;
  }
  return sum;
}

bool Point::satisfies(const Symbols& symbols, const Atom& atom) {
  const auto number = evaluate(symbols, atom.p);
  return number && (atom.relation == Atom::Relation::zero ? *number == 0 : *number >= 0);
}

std::vector<Point> find_points(const Symbols& symbols, std::span<const Atom> atoms, Budget& budget) {
  // Symbols in the order in which they were made: sizes before indices, indices before what depends on them.
  std::vector<SymbolId> order;
  std::vector<std::vector<SymbolId>> mentioned(atoms.size()), inside(atoms.size());
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    collect(symbols, atoms[i].p, mentioned[i], false, &inside[i]);
    order.insert(order.end(), mentioned[i].begin(), mentioned[i].end());
  }
  std::sort(order.begin(), order.end());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  std::vector<std::vector<Constraint>> constraints(order.size());
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    if (mentioned[i].empty()) continue;
    const SymbolId last = *std::max_element(mentioned[i].begin(), mentioned[i].end());
    const bool linear = std::find(inside[i].begin(), inside[i].end(), last) == inside[i].end() &&
                        std::all_of(atoms[i].p.terms().begin(), atoms[i].p.terms().end(), [&](const auto& term) {
                          const auto all = term.monomial.symbols();
                          return std::count(all.begin(), all.end(), last) < 2;
                        });
    const auto at = std::lower_bound(order.begin(), order.end(), last) - order.begin();
    constraints[static_cast<std::size_t>(at)].push_back({&atoms[i], linear});
  }
  Random random(1, "points");
  std::vector<Point> result;
  for (std::size_t attempt = 0; attempt < most_attempts && result.size() < wanted_points; ++attempt) {
    if (attempt == most_attempts / 2 && result.empty()) break;
    Point point(random.next());
    bool possible = true;
    budget.spend(1 + atoms.size() / 4);
    for (std::size_t s = 0; s < order.size() && possible; ++s) {
      const SymbolId symbol = order[s];
      std::optional<std::int64_t> low, high;
      for (const Constraint& constraint : constraints[s]) {
        if (!constraint.linear) continue;
        // slope * symbol + rest
        std::int64_t slope = 0, rest = 0;
        bool defined = true;
        for (const auto& [monomial, coefficient] : constraint.atom->p.terms()) {
          const bool here = monomial.contains(symbol);
          auto product = point.evaluate(symbols, here ? *Monomial::quotient(monomial, Monomial(symbol)) : monomial);
          std::int64_t& sum = here ? slope : rest;
          if (!product || __builtin_mul_overflow(*product, coefficient, &*product) ||
              __builtin_add_overflow(sum, *product, &sum)) {
            defined = false;
            break;
          }
        }
        if (!defined || slope == 0 || slope == INT64_MIN || rest == INT64_MIN) continue;
        const bool equation = constraint.atom->relation == Atom::Relation::zero;
        if (slope > 0 || equation) {
          const std::int64_t bound = -floor_quotient(rest, slope);  // the least integer from -rest / slope on
          if (!low || *low < bound) low = bound;
        }
        if (slope < 0 || equation) {
          const std::int64_t bound = floor_quotient(slope < 0 ? rest : -rest, slope < 0 ? -slope : slope);
          if (!high || *high > bound) high = bound;
        }
      }
      if (low && high && *low > *high) {
        possible = false;
        break;
      }
      const auto offset = static_cast<std::int64_t>(random.below(attempt % 2 == 0 ? 2 : 4));
      std::int64_t value = low ? *low : high ? *high : 0;
      if (low || !high)
        value = high ? std::min(*high - value, offset) + value : value + offset;
      else
        value -= offset;
      for (const Constraint& constraint : constraints[s])
        if (!constraint.linear)
          value = raised(point, symbols, *constraint.atom, symbol, value, high ? std::min(*high, farthest) : farthest);
      point.choose(symbol, value);
    }
    possible = possible && std::all_of(atoms.begin(), atoms.end(),
                                       [&](const Atom& atom) { return point.satisfies(symbols, atom); });
    if (possible) result.push_back(std::move(point));
  }
  return result;
}

}  // namespace taso::unbounded
