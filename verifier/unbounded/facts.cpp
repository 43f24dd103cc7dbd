#include "verifier/unbounded/facts.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <numeric>

#include "verifier/smt/solver.h"
#include "verifier/unbounded/elimination.h"

namespace taso::unbounded {

namespace {

// Points that are kept before new ones are looked for.
constexpr std::size_t least_points = 4;

}  // namespace

struct IntegerSolver::State {
  smt::Context context;
  std::vector<smt::Expr> constants;  // per symbol
};

IntegerSolver::IntegerSolver(const Symbols& symbols, std::uint64_t rlimit, std::size_t max_queries, Budget* budget)
    : symbols_(symbols),
      rlimit_(rlimit),
      budget_(budget != nullptr ? budget : &unlimited_),
      max_queries_(max_queries) {}
IntegerSolver::~IntegerSolver() = default;

bool IntegerSolver::infeasible(std::span<const Polynomial> nonnegative) {
  if (queries_ >= max_queries_) {
    refused_ = true;
    return false;
  }
  ++queries_;
  if (state_ == nullptr) state_ = std::make_unique<State>();
  smt::Context& context = state_->context;
  for (std::size_t id = state_->constants.size(); id < symbols_.size(); ++id)
    state_->constants.push_back(context.constant("s" + std::to_string(id), context.integer_sort()));
  smt::Solver solver(context, {.tangents = false, .rlimit = rlimit_});
  const smt::Expr zero = context.integer(0);
  for (const Polynomial& p : nonnegative) {
    smt::Expr sum = zero;
    bool first = true;
    for (const auto& [monomial, coefficient] : p.terms()) {
      smt::Expr product = context.integer(coefficient);
      for (const SymbolId symbol : monomial.symbols()) product = context.multiply(product, state_->constants[symbol]);
      sum = first ? product : context.add(sum, product);
      first = false;
    }
    solver.add(context.less_equal(zero, sum));
  }
  return solver.check().answer == smt::Answer::unsatisfiable;
}

// The largest known lower bounds of symbols.
struct Facts::Bounds {
  const Symbols& symbols;
  std::vector<std::pair<SymbolId, std::int64_t>> least;

  void note(const Polynomial& p) {
    // s - c >= 0
    const auto& terms = p.terms();
    if (terms.empty() || terms.size() > 2 || terms.back().monomial.degree() != 1 || terms.back().coefficient != 1)
      return;
    if (terms.size() == 2 && terms[0].monomial.degree() != 0) return;
    const SymbolId symbol = terms.back().monomial.symbols()[0];
    const std::int64_t bound = terms.size() == 2 ? -terms[0].coefficient : 0;
    for (auto& [known, value] : least)
      if (known == symbol) {
        value = std::max(value, bound);
        return;
      }
    least.emplace_back(symbol, bound);
  }
  [[nodiscard]] std::optional<std::int64_t> of(SymbolId symbol) const {
    for (const auto& [known, value] : least)
      if (known == symbol) return value;
    const Symbol& info = symbols[symbol];
    if (info.kind == Symbol::Kind::lookup) return 0;
    if (info.kind == Symbol::Kind::maximum)
      for (const Polynomial& argument : info.arguments)
        if (nonnegative(argument)) return argument.constant().value_or(0);
    if (info.kind == Symbol::Kind::quotient && nonnegative(info.arguments[0]) && positive(info.arguments[1])) return 0;
    return std::nullopt;
  }
  // Adds the least that a summand may be; false if that is not known.
  [[nodiscard]] bool add_least(const Monomial& monomial, std::int64_t coefficient, std::int64_t& sum) const {
    if (coefficient < 0 && monomial.degree() != 0) return false;
    for (const SymbolId symbol : monomial.symbols()) {
      const std::optional<std::int64_t> bound = of(symbol);
      if (!bound || *bound < 0 || __builtin_mul_overflow(coefficient, *bound, &coefficient)) return false;
    }
    return !__builtin_add_overflow(sum, coefficient, &sum);
  }
  [[nodiscard]] bool positive(const Polynomial& p) const {
    const auto constant = p.constant();
    return constant ? *constant >= 1 : nonnegative(p - 1);
  }
  // Whether the sum of least summands is not negative.
  [[nodiscard]] bool nonnegative(const Polynomial& p) const {
    if (!p.valid()) return false;
    std::int64_t sum = 0;
    return std::all_of(p.terms().begin(), p.terms().end(),
                       [&](const auto& term) { return add_least(term.monomial, term.coefficient, sum); }) &&
           sum >= 0;
  }
  // The same of p - q, or of p + q, which is not made: most questions end at the first summand.
  [[nodiscard]] bool nonnegative(const Polynomial& p, const Polynomial& q, bool difference) const {
    if (!p.valid() || !q.valid()) return false;
    std::int64_t sum = 0;
    auto i = p.terms().begin(), j = q.terms().begin();
    const auto i_end = p.terms().end(), j_end = q.terms().end();
    while (i != i_end || j != j_end) {
      if (j == j_end || (i != i_end && i->monomial < j->monomial)) {
        if (!add_least(i->monomial, i->coefficient, sum)) return false;
        ++i;
        continue;
      }
      std::int64_t coefficient = 0;
      if (__builtin_mul_overflow(j->coefficient, std::int64_t{difference ? -1 : 1}, &coefficient)) return false;
      if (i != i_end && i->monomial == j->monomial &&
          __builtin_add_overflow((i++)->coefficient, coefficient, &coefficient))
        return false;
      if (coefficient != 0 && !add_least(j->monomial, coefficient, sum)) return false;
      ++j;
    }
    return sum >= 0;
  }
  // The same for p = s * q with s >= 0.
  [[nodiscard]] bool product_nonnegative(const Polynomial& p) const {
    if (nonnegative(p)) return true;
    const std::vector<SymbolId> factors = p.symbols();
    return std::any_of(factors.begin(), factors.end(), [&](SymbolId symbol) {
      const auto bound = of(symbol);
      if (!bound || *bound < 0) return false;
      const auto quotient = Polynomial::exact_quotient(p, Polynomial::symbol(symbol));
      return quotient && nonnegative(*quotient);
    });
  }
  // p = s * h + r with s >= 1, and h and r of one sign: p is 0 only where both are.
  [[nodiscard]] std::optional<std::pair<Polynomial, Polynomial>> zero_parts(const Polynomial& p) const {
    if (p.terms().size() < 4) return std::nullopt;
    for (const SymbolId symbol : p.symbols()) {
      const auto bound = of(symbol);
      if (!bound || *bound < 1) continue;
      Polynomial h, r;
      for (const auto& [monomial, coefficient] : p.terms()) {
        if (monomial.contains(symbol))
          h = h + Polynomial::term(*Monomial::quotient(monomial, Monomial(symbol)), coefficient);
        else
          r = r + Polynomial::term(monomial, coefficient);
      }
      if (h.terms().size() < 2 || r.terms().size() < 2) continue;
      if ((product_nonnegative(h) && product_nonnegative(r)) || (product_nonnegative(-h) && product_nonnegative(-r)))
        return std::pair(h, r);
    }
    return std::nullopt;
  }
};

Facts::Bounds Facts::bounds() {
  Bounds result{*symbols_, std::move(least_)};
  for (; noted_ < inequalities_.size(); ++noted_) result.note(inequalities_[noted_]);
  least_ = result.least;
  return result;
}

Polynomial Facts::substitute(const Polynomial& p, const Replacement& replacement) {
  if (!p.valid()) return p;
  std::uint64_t replaced_symbols = 0;
  for (const auto& [symbol, value] : replacement) replaced_symbols |= Symbols::bit(symbol);
  if ((symbols_->mask(p) & replaced_symbols) == 0) return p;
  auto value_of = [&](SymbolId id) -> std::optional<Polynomial> {
    for (const auto& [symbol, value] : replacement)
      if (symbol == id) return value;
    const Symbol::Kind kind = (*symbols_)[id].kind;
    if ((*symbols_)[id].arguments.empty()) return std::nullopt;
    std::vector<Polynomial> arguments = (*symbols_)[id].arguments;
    bool changed = false;
    for (Polynomial& argument : arguments) {
      Polynomial replaced = substitute(argument, replacement);
      if (replaced == argument) continue;
      argument = std::move(replaced);
      changed = true;
    }
    if (!changed) return std::nullopt;
    for (const Polynomial& argument : arguments)
      if (!argument.valid()) return Polynomial::invalid();
    if (kind == Symbol::Kind::lookup) {
      const std::uint32_t tensor = (*symbols_)[id].tensor;
      return Polynomial::symbol(symbols_->lookup(tensor, std::move(arguments)));
    }
    if (kind == Symbol::Kind::maximum) return larger(arguments[0], arguments[1]);
    // Where the divisor is not known to be positive, a quotient is a function of which nothing else is known.
    if (!quickly_positive(arguments[1], {}, bounds()))
      return Polynomial::symbol(symbols_->quotient(arguments[0], arguments[1]));
    return divide_symbolically(arguments[0], arguments[1], {});
  };
  Polynomial result;
  bool any = false;
  for (const auto& [monomial, coefficient] : p.terms()) {
    Polynomial product;
    bool changed = false;
    for (const SymbolId id : monomial.symbols()) {
      std::optional<Polynomial> value = value_of(id);
      if (!value) continue;
      if (!changed) {
        // Begin again with what stands before.
        product = Polynomial(coefficient);
        for (const SymbolId other : monomial.symbols()) {
          if (std::optional<Polynomial> replaced = value_of(other))
            product = product * *replaced;
          else
            product = product * Polynomial::symbol(other);
        }
        changed = true;
      }
    }
    any = any || changed;
    result = result + (changed ? product : Polynomial::term(monomial, coefficient));
  }
  return any ? result : p;
}

Polynomial Facts::reduce(const Polynomial& p) { return solved_.empty() ? p : substitute(p, solved_); }

std::vector<Atom> Facts::atoms() const {
  std::vector<Atom> result;
  for (const Polynomial& p : equations_) result.push_back({Atom::Relation::zero, p});
  for (const Polynomial& p : inequalities_) result.push_back({Atom::Relation::nonnegative, p});
  return result;
}

bool Facts::add(const Atom& atom) {
  const Polynomial p = reduce(atom.p);
  if (!p.valid()) return true;  // says nothing
  digest_.reset();
  if (!p.constant()) {
    const Atom reduced{atom.relation, p};
    if (points_.use_count() == 1) {
      std::erase_if(points_->points, [&](Point& point) { return !point.satisfies(*symbols_, reduced); });
    } else {
      auto left = std::make_shared<Points>();
      for (Point& point : points_->points)
        if (point.satisfies(*symbols_, reduced)) left->points.push_back(point);
      points_ = std::move(left);
    }
    points_->found = points_->points.size() >= least_points;
  }
  bool consistent = atom.relation == Atom::Relation::zero ? add_equation(p) : add_inequality(p);
  // A new lower bound of a symbol may make products positive.
  if (consistent && p.terms().size() <= 2 && p.symbols().size() == 1) {
    const std::vector<Polynomial> equations = equations_;
    for (const Polynomial& equation : equations) consistent = consistent && use_product(reduce(equation));
  }
  inconsistent_ = inconsistent_ || !consistent;
  return consistent;
}

bool Facts::add_inequality(Polynomial p) {
  p = tightened(p);
  if (const auto constant = p.constant()) return *constant >= 0;
  const Polynomial opposite = -p;
  for (const Polynomial& known : inequalities_) {
    if (known == p) return true;
    if (known == opposite) return add_equation(p);
  }
  inequalities_.push_back(p);
  // A product of what is not negative that is at least 1 has no factor 0.
  if (p.terms().size() == 2 && p.constant_term() < 0 && p.terms()[1].coefficient > 0 &&
      p.terms()[1].monomial.degree() >= 2)
    return add_factors(p.terms()[1].monomial);
  return true;
}

bool Facts::add_factors(const Monomial& product) {
  Bounds bounds = this->bounds();
  for (const SymbolId symbol : product.symbols()) {
    const auto bound = bounds.of(symbol);
    if (!bound || *bound < 0) return true;
  }
  for (const SymbolId symbol : product.symbols()) {
    if (*bounds.of(symbol) >= 1) continue;
    if (!add_inequality(Polynomial::symbol(symbol) - 1)) return false;
  }
  return true;
}

bool Facts::add_equation(Polynomial p) {
  if (const auto constant = p.constant()) return *constant == 0;
  // Divide by symbols that occur everywhere and are not zero.
  Bounds bounds = this->bounds();
  for (const SymbolId symbol : p.symbols()) {
    const auto bound = bounds.of(symbol);
    if (!bound || *bound < 1) continue;
    while (const auto divided = Polynomial::exact_quotient(p, Polynomial::symbol(symbol))) p = *divided;
  }
  std::int64_t content = 0;
  for (const auto& [monomial, coefficient] : p.terms())
    if (monomial.degree() != 0) content = std::gcd(content, coefficient);
  if (content > 1) {
    if (p.constant_term() % content != 0) return false;
    p = *Polynomial::exact_quotient(p, Polynomial(content));
  }
  if (const auto constant = p.constant()) return *constant == 0;
  if (const auto parts = bounds.zero_parts(p))
    return add_equation(reduce(parts->first)) && add_equation(reduce(parts->second));
  // Which symbol to solve for: attributes before extents before factors before indices before quotients, newest first.
  auto preference = [&](SymbolId id) {
    switch ((*symbols_)[id].kind) {
      case Symbol::Kind::attribute:
        return 0;
      case Symbol::Kind::extent:
        return 1;
      case Symbol::Kind::factor:
        return 2;
      case Symbol::Kind::index:
      case Symbol::Kind::bound:
        return 3;
      case Symbol::Kind::quotient:
      case Symbol::Kind::maximum:
        return 4;
      case Symbol::Kind::lookup:
        return 5;
    }
    return 6;
  };
  std::optional<SymbolId> chosen;
  const std::vector<SymbolId> candidates = p.symbols();
  for (const SymbolId symbol : candidates) {
    if ((*symbols_)[symbol].kind == Symbol::Kind::lookup || (*symbols_)[symbol].kind == Symbol::Kind::maximum) continue;
    const auto coefficient = p.linear_coefficient(symbol);
    if (!coefficient || (*coefficient != 1 && *coefficient != -1)) continue;
    const Polynomial rest = p - Polynomial::symbol(symbol) * Polynomial(*coefficient);
    const SymbolId self[] = {symbol};
    if (symbols_->mentions(rest, self)) continue;
    if (!chosen || preference(symbol) <= preference(*chosen)) chosen = symbol;
  }
  if (!chosen) {
    // s * a + b = 0 with a >= 1 that divides b.
    for (const SymbolId symbol : candidates) {
      if (preference(symbol) > 2) continue;
      Polynomial a, b;
      bool linear = true;
      for (const auto& [monomial, coefficient] : p.terms()) {
        if (!monomial.contains(symbol)) {
          b = b + Polynomial::term(monomial, coefficient);
          continue;
        }
        const Monomial rest = *Monomial::quotient(monomial, Monomial(symbol));
        linear = linear && !rest.contains(symbol);
        a = a + Polynomial::term(rest, coefficient);
      }
      const SymbolId self[] = {symbol};
      if (!linear || symbols_->mentions(a, self) || symbols_->mentions(b, self)) continue;
      const auto quotient = Polynomial::exact_quotient(b, a);
      if (!quotient || !(bounds.nonnegative(a - 1) || bounds.nonnegative(-a - 1))) continue;
      bool contradiction = false;
      replace(symbol, -*quotient, contradiction);
      return !contradiction;
    }
    for (const Polynomial& known : equations_)
      if (known == p || known == -p) return true;
    equations_.push_back(p);
    return use_product(p);
  }
  const std::int64_t coefficient = *p.linear_coefficient(*chosen);
  const Polynomial rest = p - Polynomial::symbol(*chosen) * Polynomial(coefficient);
  bool contradiction = false;
  replace(*chosen, coefficient == 1 ? -rest : rest, contradiction);
  return !contradiction;
}

// A product that equals something positive has no factor 0.
bool Facts::use_product(const Polynomial& p) {
  Bounds bounds = this->bounds();
  for (const std::int64_t sign : {1, -1}) {
    std::optional<Monomial> product;
    Polynomial rest;
    int positive = 0;
    for (const auto& [monomial, coefficient] : p.terms()) {
      if ((coefficient > 0) == (sign > 0)) {
        ++positive;
        product = monomial;
      } else {
        rest = rest + Polynomial::term(monomial, coefficient * -sign);
      }
    }
    if (positive != 1 || product->degree() < 2 || !bounds.nonnegative(rest - 1)) continue;
    if (!add_factors(*product)) return false;
    // And none is larger than a product that is a number.
    const Bounds now = this->bounds();
    const auto factors = product->symbols();
    const bool all_positive = std::all_of(factors.begin(), factors.end(), [&](SymbolId symbol) {
      const auto bound = now.of(symbol);
      return bound && *bound >= 1;
    });
    if (all_positive && rest.constant())
      for (const SymbolId symbol : factors)
        if (!add_inequality(reduce(rest - Polynomial::symbol(symbol)))) return false;
  }
  return true;
}

void Facts::replace(SymbolId symbol, const Polynomial& value, bool& contradiction) {
  const bool positive_divisor = (*symbols_)[symbol].kind == Symbol::Kind::quotient &&
                                quickly_positive((*symbols_)[symbol].arguments[1], {}, bounds());
  std::vector<Polynomial> inequalities = std::move(inequalities_), equations = std::move(equations_);
  inequalities_.clear();
  equations_.clear();
  least_.clear();
  noted_ = 0;
  const Symbol info = (*symbols_)[symbol];
  if (positive_divisor) {
    const Polynomial product = info.arguments[1] * value;
    inequalities.push_back(info.arguments[0] - product);
    inequalities.push_back(product + info.arguments[1] - 1 - info.arguments[0]);
  }
  const Replacement single = {{symbol, value}};
  for (auto& [known, old] : solved_) old = substitute(old, single);
  solved_.emplace_back(symbol, value);
  for (const Polynomial& p : inequalities) {
    const Polynomial replaced = reduce(p);
    if (replaced.valid() && !add_inequality(replaced)) contradiction = true;
  }
  for (const Polynomial& p : equations) {
    const Polynomial replaced = reduce(p);
    if (replaced.valid() && !add_equation(replaced)) contradiction = true;
  }
}

bool Facts::quickly_implied(const Polynomial& p, std::span<const Atom> context, const Bounds& bounds) const {
  if (bounds.nonnegative(p)) return true;
  for (const Atom& atom : context) {
    if (bounds.nonnegative(p, atom.p, true)) return true;
    if (atom.relation == Atom::Relation::zero && bounds.nonnegative(p, atom.p, false)) return true;
  }
  return std::any_of(inequalities_.begin(), inequalities_.end(),
                     [&](const Polynomial& known) { return bounds.nonnegative(p, known, true); });
}

// A quotient is made where its divisor is positive, and an element of an input of integers is read where what it
// indexes is not empty: under guards, for instance. Elsewhere such a symbol may have any value, and nothing follows
// from it.
bool Facts::quickly_positive(const Polynomial& p, std::span<const Atom> context, const Bounds& bounds) const {
  const auto constant = p.constant();
  return constant ? *constant >= 1 : quickly_implied(p - 1, context, bounds);
}

// Only what shares symbols with the question, directly or through others, can matter to it: without a goal the question
// is the context, without a context it is everything.
std::vector<Polynomial> Facts::constraints(std::span<const Atom> context, const Polynomial* negated,
                                           const Bounds& bounds) const {
  std::vector<Polynomial> waiting, result;
  auto note = [&](const Polynomial& p) {
    if (p.valid()) waiting.push_back(tightened(p));
  };
  std::vector<SymbolId> active;
  auto activate = [&](const Polynomial& p) {
    for (const auto& [monomial, coefficient] : p.terms())
      for (const SymbolId symbol : monomial.symbols())
        if (std::find(active.begin(), active.end(), symbol) == active.end()) active.push_back(symbol);
  };
  auto take = [&](const Polynomial& p) {
    if (!p.valid() || std::find(result.begin(), result.end(), p) != result.end()) return;
    result.push_back(p);
    activate(p);
  };
  if (negated != nullptr) take(tightened(*negated));
  for (const Atom& atom : context) {
    note(atom.p);
    if (atom.relation == Atom::Relation::zero) note(-atom.p);
  }
  const bool everything = negated == nullptr && context.empty();
  if (negated == nullptr) {
    for (const Polynomial& p : waiting) take(p);
    waiting.clear();
  }
  for (const Polynomial& p : inequalities_) note(p);
  for (const Polynomial& p : equations_) {
    note(p);
    note(-p);
  }
  if (everything) {
    for (const Polynomial& p : waiting) take(p);
    waiting.clear();
  }
  for (std::size_t i = 0; i < active.size(); ++i) {  // NOLINT(modernize-loop-convert): take() adds to it
    const SymbolId id = active[i];
    std::erase_if(waiting, [&](const Polynomial& p) {
      if (!p.contains(id)) return false;
      take(p);
      return true;
    });
    // What quotients, maxima and lookups mean.
    const Symbol& symbol = (*symbols_)[id];
    if (symbol.arguments.empty()) continue;
    const Polynomial value = Polynomial::symbol(id);
    if (symbol.kind == Symbol::Kind::lookup) {
      take(value);
      if (quickly_positive(symbol.arguments[0], context, bounds)) take(tightened(symbol.arguments[0] - 1 - value));
    } else if (symbol.kind == Symbol::Kind::maximum) {
      take(tightened(value - symbol.arguments[0]));
      take(tightened(value - symbol.arguments[1]));
    } else if (quickly_positive(symbol.arguments[1], context, bounds)) {
      const Polynomial product = symbol.arguments[1] * value;
      take(tightened(symbol.arguments[0] - product));
      take(tightened(product + symbol.arguments[1] - 1 - symbol.arguments[0]));
    }
  }
  return result;
}

namespace {

void add_to_hash(Hasher& hasher, const Polynomial& p) {
  hasher.add(static_cast<std::uint64_t>(p.terms().size()));
  for (const auto& [monomial, coefficient] : p.terms()) {
    hasher.add(static_cast<std::uint64_t>(monomial.degree()));
    for (const SymbolId symbol : monomial.symbols()) hasher.add(symbol);
    hasher.add(coefficient);
  }
}

// Of inequalities up to the names of their symbols, of which no more is known than a lower bound: what has been decided
// of some variables need not be decided again of others.
Hash128 hash_of(const std::vector<Polynomial>& rows, const LowerBounds& bounds) {
  Hasher hasher;
  absl::InlinedVector<SymbolId, 32> seen;
  for (const Polynomial& p : rows) {
    hasher.add(static_cast<std::uint64_t>(p.terms().size()));
    for (const auto& [monomial, coefficient] : p.terms()) {
      hasher.add(static_cast<std::uint64_t>(monomial.degree()));
      for (const SymbolId symbol : monomial.symbols()) {
        const auto place = static_cast<std::uint64_t>(std::find(seen.begin(), seen.end(), symbol) - seen.begin());
        hasher.add(place);
        if (place < seen.size()) continue;
        seen.push_back(symbol);
        const std::optional<std::int64_t> bound = bounds(symbol);
        hasher.add(static_cast<std::uint64_t>(bound.has_value()));
        hasher.add(bound.value_or(0));
      }
      hasher.add(coefficient);
    }
  }
  return hasher.finish();
}

}  // namespace

std::span<const Point> Facts::points() {
  if (inconsistent_) return {};
  if (!points_->found) {
    points_->found = true;
    points_->points = find_points(*symbols_, atoms(), budget());
  }
  return points_->points;
}

bool Facts::refuted(const Polynomial* goal, std::span<const Atom> context) {
  if (points().empty()) return false;
  return std::any_of(points_->points.begin(), points_->points.end(), [&](Point& point) {
    if (goal != nullptr) {
      const auto value = point.evaluate(*symbols_, *goal);
      if (!value || *value >= 0) return false;
    }
    return std::all_of(context.begin(), context.end(),
                       [&](const Atom& atom) { return !atom.p.valid() || point.satisfies(*symbols_, atom); });
  });
}

Hash128 Facts::key_of(const Polynomial* goal, std::span<const Atom> context) {
  if (!digest_) {
    Hasher hasher;
    for (const Polynomial& p : inequalities_) add_to_hash(hasher, p);
    hasher.add(static_cast<std::uint64_t>(inequalities_.size()));
    for (const Polynomial& p : equations_) add_to_hash(hasher, p);
    digest_ = hasher.finish();
  }
  Hasher hasher;
  hasher.add(digest_->low);
  hasher.add(digest_->high);
  hasher.add(static_cast<std::uint64_t>(goal != nullptr));
  if (goal != nullptr) add_to_hash(hasher, *goal);
  for (const Atom& atom : context) {
    hasher.add(static_cast<std::uint64_t>(atom.relation));
    hasher.add(static_cast<std::uint64_t>(atom.p.valid()));
    add_to_hash(hasher, atom.p);
  }
  return hasher.finish();
}

bool Facts::decide(const Polynomial* goal, std::span<const Atom> context, bool with_solver) {
  if (goal != nullptr && !goal->valid()) return false;
  budget().spend(2 + context.size());
  if (refuted(goal, context)) return false;
  // Quick: constants, signs, one hypothesis and signs.
  Bounds bounds = this->bounds();
  for (const Atom& atom : context) {
    bounds.note(atom.p);
    if (atom.relation == Atom::Relation::zero) bounds.note(-atom.p);
  }
  if (goal != nullptr && quickly_implied(*goal, context, bounds)) return true;
  IntegerSolver::Answer*& before = solver_->asked_before(key_of(goal, context));
  if (before != nullptr && (before->contradictory || (before->eliminated && (!with_solver || before->asked))))
    return before->contradictory;
  if (budget().exhausted()) return false;
  Polynomial negated;
  if (goal != nullptr) negated = -*goal - 1;
  std::vector<Polynomial> rows = constraints(context, goal != nullptr ? &negated : nullptr, bounds);
  const LowerBounds bound_of = [&](SymbolId symbol) { return bounds.of(symbol); };
  IntegerSolver::Answer& answer = solver_->remembered(hash_of(rows, bound_of));
  before = &answer;
  if (answer.contradictory) return true;
  if (!answer.eliminated) {
    answer.eliminated = true;
    answer.contradictory = eliminates_to_contradiction(rows, bound_of, budget());
    if (answer.contradictory) return true;
  }
  if (!with_solver || answer.asked) return false;
  answer.asked = true;
  // Linear questions are decided by elimination (up to rational points); Z3 is for products.
  const bool products = std::any_of(rows.begin(), rows.end(), [](const Polynomial& p) {
    return std::any_of(p.terms().begin(), p.terms().end(),
                       [](const auto& term) { return term.monomial.degree() >= 2; });
  });
  answer.contradictory = products && solver_->infeasible(rows);
  return answer.contradictory;
}

bool Facts::entails(const Atom& goal, std::span<const Atom> context) {
  if (inconsistent_) return true;
  const Polynomial p = reduce(goal.p);
  std::vector<Atom> reduced;
  for (const Atom& atom : context) reduced.push_back(reduce(atom));
  if (goal.relation == Atom::Relation::nonnegative) return decide(&p, reduced, true);
  if (p.is_zero()) return true;
  if (!p.valid() || p.constant()) return contradictory(context);
  const Polynomial opposite = -p;
  return decide(&p, reduced, true) && decide(&opposite, reduced, true);
}

bool Facts::entails_quickly(const Atom& goal, std::span<const Atom> context) {
  if (inconsistent_) return true;
  const Polynomial p = reduce(goal.p);
  std::vector<Atom> reduced;
  for (const Atom& atom : context) reduced.push_back(reduce(atom));
  if (goal.relation == Atom::Relation::nonnegative) return decide(&p, reduced, false);
  if (p.is_zero()) return true;
  if (!p.valid()) return false;
  const Polynomial opposite = -p;
  return decide(&p, reduced, false) && decide(&opposite, reduced, false);
}

bool Facts::contradictory(std::span<const Atom> context) {
  if (inconsistent_) return true;
  std::vector<Atom> reduced;
  for (const Atom& atom : context) reduced.push_back(reduce(atom));
  return decide(nullptr, reduced, true);
}

bool Facts::contradictory_quickly(std::span<const Atom> context) {
  if (inconsistent_) return true;
  std::vector<Atom> reduced;
  for (const Atom& atom : context) reduced.push_back(reduce(atom));
  return decide(nullptr, reduced, false);
}

Polynomial Facts::larger(const Polynomial& a, const Polynomial& b, std::span<const Atom> context) {
  if (!a.valid() || !b.valid()) return Polynomial::invalid();
  if (entails_quickly(at_least(a, b), context)) return a;
  if (entails_quickly(at_least(b, a), context)) return b;
  return Polynomial::symbol(symbols_->maximum(a, b));
}

std::optional<Polynomial> Facts::divide(const Polynomial& numerator, const Polynomial& divisor,
                                        std::span<const Atom> context) {
  const Polynomial n = reduce(numerator), d = reduce(divisor);
  if (!n.valid() || !d.valid()) return Polynomial::invalid();
  if (const auto constant = d.constant(); constant && *constant < 0) {
    if (*constant == INT64_MIN) return std::nullopt;
    return divide_symbolically(-n, -d, context);
  }
  if (!entails({Atom::Relation::nonnegative, d - 1}, context)) return std::nullopt;
  return divide_symbolically(n, d, context);
}

Polynomial Facts::divide_symbolically(const Polynomial& n, const Polynomial& d, std::span<const Atom> context) {
  if (!n.valid() || !d.valid()) return Polynomial::invalid();
  if (d == Polynomial(1)) return n;
  auto inside = [&](const Polynomial& rest) {
    return entails_quickly({Atom::Relation::nonnegative, rest}, context) &&
           entails_quickly({Atom::Relation::nonnegative, d - 1 - rest}, context);
  };
  if (const auto exact = Polynomial::exact_quotient(n, d)) return *exact;
  const auto [quotient, rest] = Polynomial::divide(n, d);
  if (!rest.valid()) return Polynomial::invalid();
  if (inside(rest)) return quotient;
  // One more or one less, as for n - 1 divided by n.
  for (const std::int64_t shift : {-1, 1})
    if (inside(rest - d * Polynomial(shift))) return quotient + Polynomial(shift);
  // n // (s * e) is (n // s) // e: where n is s * q + r with 0 <= r < s, that is q // e.
  for (const SymbolId symbol : d.symbols()) {
    const Polynomial s = Polynomial::symbol(symbol);
    const auto others = Polynomial::exact_quotient(d, s);
    if (!others) continue;
    const auto [inner, digit] = Polynomial::divide(n, s);
    if (digit.valid() && inner.valid() && entails_quickly({Atom::Relation::nonnegative, digit}, context) &&
        entails_quickly({Atom::Relation::nonnegative, s - 1 - digit}, context))
      return divide_symbolically(inner, *others, context);
  }
  return quotient + Polynomial::symbol(symbols_->quotient(rest, d));
}

}  // namespace taso::unbounded
