#include "verifier/unbounded/index_polynomial.h"

#include <algorithm>

namespace taso::unbounded {

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

bool Monomial::contains(SymbolId symbol) const {
  const auto all = symbols();
  return std::find(all.begin(), all.end(), symbol) != all.end();
}

std::optional<Monomial> Monomial::product(const Monomial& a, const Monomial& b) {
  if (a.size_ + b.size_ > max_degree) return std::nullopt;
  Monomial result;
  result.size_ = static_cast<std::uint16_t>(a.size_ + b.size_);
  const auto x = a.symbols(), y = b.symbols();
  std::merge(x.begin(), x.end(), y.begin(), y.end(), result.symbols_.begin());
  return result;
}

std::optional<Monomial> Monomial::quotient(const Monomial& a, const Monomial& b) {
  Monomial result;
  std::size_t j = 0;
  for (const SymbolId symbol : a.symbols()) {
    if (j < b.size_ && b.symbols_[j] == symbol) {
      ++j;
    } else {
      result.symbols_[result.size_++] = symbol;
    }
  }
  if (j != b.size_) return std::nullopt;
  return result;
}

Polynomial::Polynomial(std::int64_t constant) {
  if (constant != 0) terms_.push_back({Monomial(), constant});
}

Polynomial Polynomial::symbol(SymbolId symbol) {
  return symbol <= Monomial::max_symbol ? term(Monomial(symbol), 1) : invalid();
}

Polynomial Polynomial::invalid() {
  Polynomial p;
  p.valid_ = false;
  return p;
}

Polynomial Polynomial::term(const Monomial& monomial, std::int64_t coefficient) {
  Polynomial p;
  if (coefficient != 0) p.terms_.push_back({monomial, coefficient});
  return p;
}

std::optional<std::int64_t> Polynomial::constant() const {
  if (!valid_) return std::nullopt;
  if (terms_.empty()) return 0;
  if (terms_.size() == 1 && terms_[0].monomial.degree() == 0) return terms_[0].coefficient;
  return std::nullopt;
}

std::int64_t Polynomial::constant_term() const {
  return !terms_.empty() && terms_[0].monomial.degree() == 0 ? terms_[0].coefficient : 0;
}

std::optional<SymbolId> Polynomial::as_symbol() const {
  if (!valid_ || terms_.size() != 1 || terms_[0].coefficient != 1 || terms_[0].monomial.degree() != 1)
    return std::nullopt;
  return terms_[0].monomial.symbols()[0];
}

bool Polynomial::contains(SymbolId symbol) const {
  return std::any_of(terms_.begin(), terms_.end(), [&](const Term& term) { return term.monomial.contains(symbol); });
}

std::optional<std::int64_t> Polynomial::linear_coefficient(SymbolId symbol) const {
  std::optional<std::int64_t> found;
  for (const auto& [monomial, coefficient] : terms_) {
    if (!monomial.contains(symbol)) continue;
    if (monomial.degree() != 1) return std::nullopt;
    found = coefficient;
  }
  return found;
}

std::vector<SymbolId> Polynomial::symbols() const {
  std::vector<SymbolId> result;
  for (const auto& [monomial, coefficient] : terms_)
    result.insert(result.end(), monomial.symbols().begin(), monomial.symbols().end());
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

Polynomial Polynomial::combine(const Polynomial& a, const Polynomial& b, std::int64_t sign) {
  Polynomial result;
  result.valid_ = a.valid_ && b.valid_;
  result.terms_.reserve(a.terms_.size() + b.terms_.size());
  auto i = a.terms_.begin();
  auto j = b.terms_.begin();
  while (i != a.terms_.end() || j != b.terms_.end()) {
    if (j == b.terms_.end() || (i != a.terms_.end() && i->monomial < j->monomial)) {
      result.terms_.push_back(*i++);
      continue;
    }
    std::int64_t value = 0;
    if (__builtin_mul_overflow(j->coefficient, sign, &value)) result.valid_ = false;
    if (i != a.terms_.end() && i->monomial == j->monomial) {
      if (__builtin_add_overflow(i->coefficient, value, &value)) result.valid_ = false;
      ++i;
    }
    if (value != 0) result.terms_.push_back({j->monomial, value});
    ++j;
  }
  return result.valid_ ? result : invalid();
}

Polynomial Polynomial::canonical(Terms terms, bool valid) {
  if (!valid) return invalid();
  std::sort(terms.begin(), terms.end());
  Polynomial result;
  for (const Term& term : terms) {
    if (!result.terms_.empty() && result.terms_.back().monomial == term.monomial) {
      if (__builtin_add_overflow(result.terms_.back().coefficient, term.coefficient, &result.terms_.back().coefficient))
        return invalid();
    } else {
      if (!result.terms_.empty() && result.terms_.back().coefficient == 0) result.terms_.pop_back();
      result.terms_.push_back(term);
    }
  }
  if (!result.terms_.empty() && result.terms_.back().coefficient == 0) result.terms_.pop_back();
  return result;
}

Polynomial operator*(const Polynomial& a, const Polynomial& b) {
  if (!a.valid_ || !b.valid_) return Polynomial::invalid();
  Polynomial::Terms terms;
  terms.reserve(a.terms_.size() * b.terms_.size());
  bool valid = true;
  for (const auto& [m, c] : a.terms_)
    for (const auto& [n, d] : b.terms_) {
      const std::optional<Monomial> product = Monomial::product(m, n);
      std::int64_t value = 0;
      if (!product || __builtin_mul_overflow(c, d, &value)) {
        valid = false;
      } else {
        terms.push_back({*product, value});
      }
    }
  return Polynomial::canonical(std::move(terms), valid);
}

std::optional<Polynomial> Polynomial::exact_quotient(const Polynomial& a, const Polynomial& b) {
  if (!a.valid_ || !b.valid_ || b.terms_.empty()) return std::nullopt;
  // The largest monomial leads: degree first, which multiplication respects up to the choice among equal degrees, so
  // that a failure is only a missed division.
  Polynomial rest = a, quotient;
  const auto& [lead, lead_coefficient] = b.terms_.back();
  for (int step = 0; !rest.terms_.empty(); ++step) {
    const auto& [monomial, coefficient] = rest.terms_.back();
    const std::optional<Monomial> factor = Monomial::quotient(monomial, lead);
    if (!factor || coefficient % lead_coefficient != 0 || step > 64) return std::nullopt;
    const Polynomial part = term(*factor, coefficient / lead_coefficient);
    quotient = quotient + part;
    rest = rest - part * b;
    if (!rest.valid_) return std::nullopt;
  }
  return quotient;
}

std::pair<Polynomial, Polynomial> Polynomial::divide(const Polynomial& a, const Polynomial& b) {
  if (!a.valid_ || !b.valid_ || b.terms_.empty()) return {invalid(), invalid()};
  const auto& [lead, lead_coefficient] = b.terms_.back();
  Polynomial quotient;
  for (const auto& [monomial, coefficient] : a.terms_) {
    const std::optional<Monomial> factor = Monomial::quotient(monomial, lead);
    if (!factor) continue;
    const std::int64_t part = floor_quotient(coefficient, lead_coefficient);
    if (part != 0 && (b.terms_.size() == 1 || coefficient % lead_coefficient == 0))
      quotient = quotient + term(*factor, part);
  }
  return {quotient, a - quotient * b};
}

SymbolId Symbols::add(Symbol symbol) {
  const auto id = static_cast<SymbolId>(symbols_.size());
  std::uint64_t all = bit(id);
  for (const Polynomial& argument : symbol.arguments) all |= mask(argument);
  masks_.push_back(all);
  symbols_.push_back(std::move(symbol));
  return id;
}

SymbolId Symbols::named(Symbol::Kind kind, const std::string& key, const std::string& name) {
  const auto [it, inserted] = names_.emplace(std::pair(kind, key), static_cast<SymbolId>(symbols_.size()));
  if (inserted) add({kind, name, 0, 0, 0, {}});
  return it->second;
}

SymbolId Symbols::computed(Symbol symbol, Key key) {
  const auto [it, inserted] = computed_.emplace(std::move(key), static_cast<SymbolId>(symbols_.size()));
  if (inserted) add(std::move(symbol));
  return it->second;
}

SymbolId Symbols::quotient(const Polynomial& numerator, const Polynomial& divisor) {
  return computed({Symbol::Kind::quotient, "", 0, 0, 0, {numerator, divisor}},
                  {0, {numerator.terms(), divisor.terms()}});
}

SymbolId Symbols::maximum(const Polynomial& a, const Polynomial& b) {
  if (Polynomial::less(b, a)) return maximum(b, a);
  return computed({Symbol::Kind::maximum, "", 0, 0, 0, {a, b}}, {1, {a.terms(), b.terms()}});
}

SymbolId Symbols::lookup(std::uint32_t tensor, std::vector<Polynomial> arguments) {
  Key key{tensor + 2, {}};
  for (const Polynomial& argument : arguments) key.second.push_back(argument.terms());
  return computed({Symbol::Kind::lookup, "", tensor, 0, 0, std::move(arguments)}, std::move(key));
}

SymbolId Symbols::bound() { return add({Symbol::Kind::bound, "t" + std::to_string(symbols_.size()), 0, 0, 0, {}}); }

bool Symbols::mentions(const Polynomial& p, std::span<const SymbolId> set) const {
  std::uint64_t wanted = 0;
  for (const SymbolId id : set) wanted |= bit(id);
  if ((mask(p) & wanted) == 0) return false;
  for (const auto& [monomial, coefficient] : p.terms())
    for (const SymbolId id : monomial.symbols()) {
      if (std::find(set.begin(), set.end(), id) != set.end()) return true;
      for (const Polynomial& argument : symbols_[id].arguments)
        if (mentions(argument, set)) return true;
    }
  return false;
}

std::string Symbols::to_string(const Polynomial& p) const {
  if (!p.valid()) return "(beyond 64 bits)";
  if (p.terms().empty()) return "0";
  auto name = [&](SymbolId id) {
    const Symbol& symbol = symbols_[id];
    if (symbol.kind == Symbol::Kind::quotient) {
      auto operand = [&](const Polynomial& part) {
        const std::string text = to_string(part);
        return part.terms().size() > 1 ? "(" + text + ")" : text;
      };
      return "(" + operand(symbol.arguments[0]) + " // " + operand(symbol.arguments[1]) + ")";
    }
    if (symbol.kind == Symbol::Kind::maximum)
      return "max(" + to_string(symbol.arguments[0]) + ", " + to_string(symbol.arguments[1]) + ")";
    return symbol.kind == Symbol::Kind::lookup ? "lookup" + std::to_string(id) : symbol.name;
  };
  std::string text;
  // Symbols first, the number last, as people write.
  for (std::size_t i = 1; i <= p.terms().size(); ++i) {
    const auto& [monomial, coefficient] = p.terms()[i % p.terms().size()];
    const bool negative = coefficient < 0;
    if (!text.empty()) {
      text += negative ? " - " : " + ";
    } else if (negative) {
      text += "-";
    }
    const std::string magnitude = negative ? std::to_string(coefficient).substr(1) : std::to_string(coefficient);
    std::string product;
    for (const SymbolId id : monomial.symbols()) product += (product.empty() ? "" : " * ") + name(id);
    if (product.empty()) {
      text += magnitude;
    } else {
      text += (magnitude == "1" ? "" : magnitude + " * ") + product;
    }
  }
  return text;
}

}  // namespace taso::unbounded
