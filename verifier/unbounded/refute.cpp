#include "verifier/unbounded/refute.h"

#include <algorithm>
#include <bit>

#include "support/hash.h"
#include "support/mod61.h"

namespace taso::unbounded {
namespace {

// Summands and members of families that are evaluated for one form.
constexpr std::size_t max_work = 3'000;

Mod61 random_element(Hasher& hasher) { return Mod61::from_bits(hasher.finish().low); }

// The value of forms at one point; `known_` is false once something is not known.
class Evaluation {
 public:
  explicit Evaluation(const Symbols& symbols) : symbols_(symbols) {}

  std::optional<Mod61> run(const NormalForm& form, Point& point, Budget& budget) {
    const Mod61 result = value(form, point);
    budget.spend(2 * work_);
    return known_ ? std::optional(result) : std::nullopt;
  }

 private:
  Mod61 unknown() {
    known_ = false;
    return {};
  }

  Mod61 value(const NormalForm& form, Point& point) {
    Mod61 sum;
    for (const Term& term : form) {
      Mod61 part;
      for_each(term.bound, term.guards, point, [&](Point& inside) { part += product(term.factors, inside); });
      if (!known_) return {};
      sum += part * number(term.coefficient);
    }
    return sum;
  }

  static Mod61 number(const Rational& value) { return Mod61(value.numerator) * Mod61(value.denominator).inverse(); }

  // Calls body(point) for all values of the variables at which the guards hold.
  template <class Body>
  void for_each(const std::vector<SymbolId>& bound, const std::vector<Atom>& guards, Point& point, const Body& body) {
    std::vector<const Atom*> all;
    all.reserve(guards.size());
    for (const Atom& guard : guards) all.push_back(&guard);
    const std::size_t mark = point.mark();
    visit(bound, all, point, body);
    point.undo(mark);
  }

  template <class Body>
  void visit(const std::vector<SymbolId>& open, const std::vector<const Atom*>& guards, Point& point,
             const Body& body) {
    if (!known_) return;
    if (++work_ > max_work) return (void)unknown();
    std::vector<const Atom*> later;
    for (const Atom* guard : guards) {
      if (!guard->p.valid()) return (void)unknown();
      if (symbols_.mentions(guard->p, open)) {
        later.push_back(guard);
        continue;
      }
      if (!point.evaluate(symbols_, guard->p)) return (void)unknown();
      if (!point.satisfies(symbols_, *guard)) return;
    }
    if (open.empty()) return body(point);
    // A variable whose bounds follow from what is known.
    for (std::size_t i = 0; i < open.size(); ++i) {
      const SymbolId variable = open[i];
      std::vector<SymbolId> others = open;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      std::optional<std::int64_t> low, high;
      for (const Atom* guard : later)
        if (!symbols_.mentions(guard->p, others)) narrow(*guard, variable, point, low, high);
      if (!low || !high) continue;
      for (std::int64_t v = *low; v <= *high && known_; ++v) {
        const std::size_t mark = point.mark();
        point.choose(variable, v);
        visit(others, later, point, body);
        point.undo(mark);
      }
      return;
    }
    (void)unknown();
  }

  // The bounds that a guard gives to a variable in which it is linear.
  void narrow(const Atom& guard, SymbolId variable, Point& point, std::optional<std::int64_t>& low,
              std::optional<std::int64_t>& high) {
    const SymbolId self[] = {variable};
    constexpr std::int64_t large = std::int64_t{1} << 30;
    std::int64_t slope = 0, rest = 0;
    for (const auto& [monomial, coefficient] : guard.p.terms()) {
      std::size_t times = 0;
      for (const SymbolId symbol : monomial.symbols()) {
        if (symbol == variable)
          ++times;
        else if (symbols_.mentions(Polynomial::symbol(symbol), self))
          return;
      }
      if (times > 1) return;
      const auto product =
          point.evaluate(symbols_, times == 1 ? *Monomial::quotient(monomial, Monomial(variable)) : monomial);
      if (!product || std::abs(*product) > large || std::abs(coefficient) > large) return;
      (times == 1 ? slope : rest) += *product * coefficient;
      if (std::abs(rest) > large || std::abs(slope) > large) return;
    }
    if (slope == 0) return;
    // slope * variable + rest >= 0; an equation is this and its opposite.
    auto take = [&](std::int64_t a, std::int64_t b) {
      // a * variable + b >= 0
      auto floor_quotient = [](std::int64_t n, std::int64_t d) {
        const std::int64_t q = n / d;
        return q * d != n && n < 0 ? q - 1 : q;
      };
      if (a > 0) {
        const std::int64_t bound = -floor_quotient(b, a);
        if (!low || *low < bound) low = bound;
      } else {
        const std::int64_t bound = floor_quotient(b, -a);
        if (!high || *high > bound) high = bound;
      }
    };
    take(slope, rest);
    if (guard.relation == Atom::Relation::zero) take(-slope, -rest);
  }

  Mod61 product(const std::vector<Factor>& factors, Point& point) {
    Mod61 result = Mod61(1);
    for (const Factor& factor : factors) {
      const Mod61 base = this->base(factor, point);
      if (!known_) return {};
      if (factor.power < 0 && base == Mod61()) return unknown();
      const Mod61 once = factor.power < 0 ? base.inverse() : base;
      for (int i = 0; i < std::abs(factor.power); ++i) result *= once;
    }
    return result;
  }

  Mod61 base(const Factor& factor, Point& point) {
    Hasher hasher;
    hasher.add(static_cast<std::uint64_t>(factor.kind));
    switch (factor.kind) {
      case Factor::Kind::read: {
        hasher.add(factor.tensor);
        for (const Polynomial& index : factor.indices) {
          const auto at = point.evaluate(symbols_, index);
          if (!at) return unknown();
          hasher.add(*at);
        }
        return random_element(hasher);
      }
      case Factor::Kind::size: {
        const auto size = point.evaluate(symbols_, Polynomial::symbol(factor.symbol));
        return size ? Mod61(*size) : unknown();
      }
      case Factor::Kind::literal:
        hasher.add(std::bit_cast<std::uint64_t>(factor.number));
        return random_element(hasher);
      case Factor::Kind::constant:
        hasher.add(factor.name);
        return random_element(hasher);
      case Factor::Kind::sum:
        return value(factor.elements[0].value, point);
      case Factor::Kind::call:
        return call(factor, point);
      case Factor::Kind::maximum:
      case Factor::Kind::minimum: {
        std::optional<Mod61> best;
        for (const Element& element : factor.elements)
          for_each(element.bound, element.guards, point, [&](Point& inside) {
            const Mod61 member = value(element.value, inside);
            if (!best || (factor.kind == Factor::Kind::maximum ? *best < member : member < *best)) best = member;
          });
        return best ? *best : unknown();
      }
      case Factor::Kind::product: {
        Mod61 result = Mod61(1);
        for (const Element& element : factor.elements)
          for_each(element.bound, element.guards, point,
                   [&](Point& inside) { result *= value(element.value, inside); });
        return result;
      }
    }
    return unknown();
  }

  Mod61 call(const Factor& factor, Point& point) {
    std::vector<Mod61> arguments;
    for (const Element& element : factor.elements) {
      arguments.push_back(value(element.value, point));
      if (!known_) return {};
    }
    Hasher hasher;
    hasher.add(factor.name);
    const FunctionDefinition* const function = factor.function;
    if (function != nullptr && (function->zero_at_zero || function->monotone || function->idempotent)) {
      if (arguments.size() != 1) return unknown();
      const std::uint64_t grain = (std::uint64_t{1} << 20) + hasher.finish().low % (std::uint64_t{1} << 20);
      const std::uint64_t whole = arguments[0].value() / grain * grain;
      return Mod61::from_bits(whole);
    }
    for (const Mod61 argument : arguments) hasher.add(argument.value());
    return random_element(hasher);
  }

  const Symbols& symbols_;
  std::size_t work_ = 0;
  bool known_ = true;
};

}  // namespace

bool differ_at_points(const NormalForm& a, const NormalForm& b, Facts& facts, std::size_t points) {
  const std::vector<Atom> hypotheses = facts.atoms();
  for (const Point& found : facts.points()) {
    if (points-- == 0) break;
    Point point = found;
    point.forget_computed(facts.symbols());
    // Symbols that equations determine are in no hypothesis any more.
    bool known = true;
    for (const auto& [symbol, solution] : facts.solved()) {
      const auto number = point.evaluate(facts.symbols(), solution);
      known = known && number;
      point.choose(symbol, number.value_or(0));
    }
    known = known && std::all_of(hypotheses.begin(), hypotheses.end(),
                                 [&](const Atom& atom) { return point.satisfies(facts.symbols(), atom); });
    if (!known) continue;
    const auto left = Evaluation(facts.symbols()).run(a, point, facts.budget());
    if (!left) continue;
    const auto right = Evaluation(facts.symbols()).run(b, point, facts.budget());
    if (right && *left != *right) return true;
  }
  return false;
}

}  // namespace taso::unbounded
