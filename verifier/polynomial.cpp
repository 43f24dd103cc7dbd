#include "verifier/polynomial.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

namespace taso {
namespace {

__extension__ using Wide = __int128;

// Denominators are cleared for at most this many terms; beyond, the answer is "not shown equal".
constexpr std::size_t max_cleared_terms = 20000;

Wide gcd(Wide a, Wide b) {
  if (a < 0) a = -a;
  while (b != 0) {
    const Wide r = a % b;
    a = b;
    b = r;
  }
  return a;
}

}  // namespace

std::size_t PolynomialRing::MonomialHash::operator()(const Monomial& monomial) const {
  std::uint64_t hash = 0x9E3779B97F4A7C15U;
  for (const auto& [variable, exponent] : monomial) {
    hash ^= (static_cast<std::uint64_t>(variable) << 32) | static_cast<std::uint32_t>(exponent);
    hash *= 0xFF51AFD7ED558CCDU;
    hash ^= hash >> 32;
  }
  return hash;
}

PolynomialRing::PolynomialRing(std::uint64_t* steps) : steps_(steps) { intern({}); }  // monomial 0 is 1

bool PolynomialRing::spend(std::size_t steps) {
  if (steps_ == nullptr) return true;
  *steps_ -= std::min<std::uint64_t>(*steps_, steps);
  if (*steps_ == 0) fail("the limit on steps of canonical forms is reached");
  return *steps_ > 0;
}

void PolynomialRing::fail(const std::string& what) {
  if (status_) status_ = bad_input(what);
}

Rational PolynomialRing::reduced(Wide numerator, Wide denominator) {
  if (denominator < 0) {
    numerator = -numerator;
    denominator = -denominator;
  }
  if (denominator != 1) {
    const Wide divisor = gcd(numerator, denominator);
    numerator /= divisor;
    denominator /= divisor;
  }
  constexpr Wide limit = std::numeric_limits<std::int64_t>::max();
  if (numerator > limit || numerator < -limit || denominator > limit) {
    fail("a coefficient leaves 64 bits");
    return {};
  }
  return {static_cast<std::int64_t>(numerator), static_cast<std::int64_t>(denominator)};
}

Rational PolynomialRing::add(Rational a, Rational b) {
  if (a.denominator == 1 && b.denominator == 1) return reduced(static_cast<Wide>(a.numerator) + b.numerator, 1);
  // |products| < 2^126, so that the sum fits.
  return reduced(static_cast<Wide>(a.numerator) * b.denominator + static_cast<Wide>(b.numerator) * a.denominator,
                 static_cast<Wide>(a.denominator) * b.denominator);
}

Rational PolynomialRing::multiply(Rational a, Rational b) {
  return reduced(static_cast<Wide>(a.numerator) * b.numerator, static_cast<Wide>(a.denominator) * b.denominator);
}

PolynomialRing::MonomialId PolynomialRing::intern(Monomial monomial) {
  const auto [it, inserted] = monomial_ids_.emplace(std::move(monomial), static_cast<MonomialId>(monomials_.size()));
  if (inserted) monomials_.push_back(it->first);
  return it->second;
}

PolynomialRing::MonomialId PolynomialRing::product(MonomialId a, MonomialId b) {
  if (a == 0) return b;
  if (b == 0) return a;
  if (a > b) std::swap(a, b);
  const std::uint64_t key = (static_cast<std::uint64_t>(a) << 32) | b;
  if (const auto it = products_.find(key); it != products_.end()) return it->second;
  const Monomial &x = monomials_[a], &y = monomials_[b];
  Monomial result;
  result.reserve(x.size() + y.size());
  (void)spend(result.capacity() / 2);  // a new monomial
  for (std::size_t i = 0, j = 0; i < x.size() || j < y.size();) {
    if (j == y.size() || (i < x.size() && x[i].first < y[j].first)) {
      result.push_back(x[i++]);
    } else if (i == x.size() || y[j].first < x[i].first) {
      result.push_back(y[j++]);
    } else {
      if (x[i].second + y[j].second != 0) result.emplace_back(x[i].first, x[i].second + y[j].second);
      ++i, ++j;
    }
  }
  const MonomialId id = intern(std::move(result));
  products_.emplace(key, id);
  return id;
}

PolynomialRing::VariableId PolynomialRing::add_atom(Atom atom) {
  // Keys: kind, function or direction, contents of the arguments.
  std::vector<std::uint64_t> key{static_cast<std::uint64_t>(atom.kind), atom.function != nullptr
                                                                            ? atom.function->key
                                                                            : static_cast<std::uint64_t>(atom.maximum)};
  for (const Element& argument : atom.arguments) key.push_back(content(argument));
  const auto [it, inserted] = atom_ids_.emplace(std::move(key), static_cast<VariableId>(atoms_.size()));
  if (inserted) atoms_.push_back(std::move(atom));
  return it->second;
}

PolynomialRing::Element PolynomialRing::atom_element(VariableId variable, std::int32_t exponent) {
  return std::make_shared<const Terms>(Terms{{intern({{variable, exponent}}), {1, 1}}});
}

PolynomialRing::Element PolynomialRing::variable() {
  atoms_.push_back({});
  return atom_element(static_cast<VariableId>(atoms_.size() - 1));
}

PolynomialRing::Element PolynomialRing::constant(Rational value) {
  if (value.numerator == 0) return nullptr;
  return std::make_shared<const Terms>(Terms{{0, value}});
}

PolynomialRing::Element PolynomialRing::number(double value) {
  if (std::isinf(value)) return infinity(value < 0);
  if (std::isnan(value)) {
    fail("not a number");
    return nullptr;
  }
  const double scaled = value * 1024;
  if (std::abs(value) < 1 << 20 && scaled == std::floor(scaled))
    return constant(reduced(static_cast<std::int64_t>(scaled), 1024));
  // Any other number is a symbol for its magnitude.
  const std::vector<std::uint64_t> key{static_cast<std::uint64_t>(Atom::Kind::literal),
                                       std::bit_cast<std::uint64_t>(std::abs(value))};
  const auto [it, inserted] = atom_ids_.emplace(key, static_cast<VariableId>(atoms_.size()));
  if (inserted) atoms_.push_back({.kind = Atom::Kind::literal, .function = nullptr, .maximum = false, .arguments = {}});
  const Element symbol = atom_element(it->second);
  return value < 0 ? subtract(nullptr, symbol) : symbol;
}

PolynomialRing::Element PolynomialRing::infinity(bool negative) {
  const std::vector<std::uint64_t> key{static_cast<std::uint64_t>(Atom::Kind::infinity),
                                       static_cast<std::uint64_t>(negative)};
  const auto [it, inserted] = atom_ids_.emplace(key, static_cast<VariableId>(atoms_.size()));
  if (inserted)
    atoms_.push_back({.kind = Atom::Kind::infinity, .function = nullptr, .maximum = !negative, .arguments = {}});
  has_special_ = true;
  return atom_element(it->second);
}

PolynomialRing::Element PolynomialRing::undefined() {
  const std::vector<std::uint64_t> key{static_cast<std::uint64_t>(Atom::Kind::undefined)};
  const auto [it, inserted] = atom_ids_.emplace(key, static_cast<VariableId>(atoms_.size()));
  if (inserted)
    atoms_.push_back({.kind = Atom::Kind::undefined, .function = nullptr, .maximum = false, .arguments = {}});
  has_special_ = true;
  return atom_element(it->second);
}

bool PolynomialRing::is_special(const Element& a) const {
  if (!has_special_) return false;
  const std::optional<VariableId> atom = bare_atom(a);
  return atom && (atoms_[*atom].kind == Atom::Kind::infinity || atoms_[*atom].kind == Atom::Kind::undefined);
}

PolynomialRing::Element PolynomialRing::combine(const Element& a, const Element& b, std::int64_t sign) {
  if (!b) return a;
  if (is_special(a) || is_special(b)) return undefined();
  if (!a && sign > 0) return b;
  static const Terms none;
  const Terms &x = a ? *a : none, &y = *b;
  if (!spend((x.size() + y.size()) / 4)) return nullptr;
  Terms result;
  result.reserve(x.size() + y.size());
  for (std::size_t i = 0, j = 0; i < x.size() || j < y.size();) {
    if (j == y.size() || (i < x.size() && x[i].first < y[j].first)) {
      result.push_back(x[i++]);
    } else {
      Rational term = y[j].second;
      term.numerator *= sign;
      if (i < x.size() && x[i].first == y[j].first) term = add(x[i++].second, term);
      if (term.numerator != 0) result.emplace_back(y[j].first, term);
      ++j;
    }
  }
  return result.empty() ? nullptr : std::make_shared<const Terms>(std::move(result));
}

PolynomialRing::Element PolynomialRing::canonical(Terms terms) {
  std::sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Terms result;
  for (const auto& [monomial, coefficient] : terms) {
    if (!result.empty() && result.back().first == monomial)
      result.back().second = add(result.back().second, coefficient);
    else
      result.emplace_back(monomial, coefficient);
    if (result.back().second.numerator == 0) result.pop_back();
  }
  return result.empty() ? nullptr : std::make_shared<const Terms>(std::move(result));
}

PolynomialRing::Element PolynomialRing::scale(const Element& a, Rational factor, MonomialId monomial) {
  if (!a || factor.numerator == 0 || !spend(a->size())) return nullptr;
  Terms terms;
  terms.reserve(a->size());
  for (const auto& [id, coefficient] : *a) terms.emplace_back(product(id, monomial), multiply(coefficient, factor));
  return monomial == 0 ? std::make_shared<const Terms>(std::move(terms)) : canonical(std::move(terms));
}

PolynomialRing::Element PolynomialRing::multiply(const Element& a, const Element& b) {
  if (is_special(a) || is_special(b)) return undefined();
  if (!a || !b) return nullptr;
  if (b->size() == 1) return scale(a, (*b)[0].second, (*b)[0].first);
  if (a->size() == 1) return scale(b, (*a)[0].second, (*a)[0].first);
  if (!spend(a->size() * b->size())) return nullptr;
  Terms terms;
  terms.reserve(a->size() * b->size());
  for (const auto& [x, p] : *a)
    for (const auto& [y, q] : *b) terms.emplace_back(product(x, y), multiply(p, q));
  return canonical(std::move(terms));
}

PolynomialRing::Element PolynomialRing::divide(const Element& a, const Element& b) {
  if (!b || is_special(a) || is_special(b)) return undefined();
  // b = factor * monomial * sum, where sum starts with 1 and has no common monomial.
  std::map<VariableId, std::int32_t> common;
  for (std::size_t i = 0; i < b->size(); ++i) {
    const Monomial& monomial = monomials_[(*b)[i].first];
    std::map<VariableId, std::int32_t> here(monomial.begin(), monomial.end());
    if (i == 0) {
      common = std::move(here);
      continue;
    }
    for (auto it = common.begin(); it != common.end();) {
      const auto found = here.find(it->first);
      it->second = std::min(it->second, found == here.end() ? 0 : found->second);
      it = it->second == 0 ? common.erase(it) : std::next(it);
    }
    for (const auto& [variable, exponent] : here)
      if (exponent < 0 && !common.contains(variable)) common.emplace(variable, exponent);
  }
  Monomial inverse;
  for (const auto& [variable, exponent] : common) inverse.emplace_back(variable, -exponent);
  const MonomialId inverse_id = intern(std::move(inverse));
  const bool constant = is_constant(b);
  if (!constant) {
    divided_ = true;
    for (const auto& [variable, exponent] : common)
      if (exponent > 0) divisors_.insert(variable);
  }
  if (b->size() == 1) {
    if (!a) return nullptr;
    const Rational c = (*b)[0].second;
    return scale(a, reduced(c.denominator, c.numerator), inverse_id);
  }
  Element sum = scale(b, {1, 1}, inverse_id);
  const Rational c = (*sum)[0].second;
  const Rational inverse_factor = reduced(c.denominator, c.numerator);
  sum = scale(sum, inverse_factor, 0);
  const VariableId atom =
      add_atom({.kind = Atom::Kind::sum, .function = nullptr, .maximum = false, .arguments = {sum}});
  if (!constant) divisors_.insert(atom);
  if (!a) return nullptr;
  return scale(a, inverse_factor, product(inverse_id, intern({{atom, -1}})));
}

std::optional<PolynomialRing::VariableId> PolynomialRing::bare_atom(const Element& a) const {
  if (!a || a->size() != 1 || (*a)[0].second != Rational{1, 1}) return std::nullopt;
  const Monomial& monomial = monomials_[(*a)[0].first];
  if (monomial.size() != 1 || monomial[0].second != 1) return std::nullopt;
  return monomial[0].first;
}

bool PolynomialRing::is_constant(const Element& a) const {
  if (!a) return true;
  for (const auto& [id, coefficient] : *a)
    for (const auto& [variable, exponent] : monomials_[id]) {
      const Atom& atom = atoms_[variable];
      if (atom.kind == Atom::Kind::variable) return false;
      for (const Element& argument : atom.arguments)
        if (!is_constant(argument)) return false;
    }
  return true;
}

std::optional<Rational> PolynomialRing::as_constant(const Element& a) const {
  if (!a) return Rational{};
  if (a->size() == 1 && (*a)[0].first == 0) return (*a)[0].second;
  return std::nullopt;
}

std::uint32_t PolynomialRing::content(const Element& a) {
  return contents_.emplace(a ? *a : Terms{}, static_cast<std::uint32_t>(contents_.size())).first->second;
}

PolynomialRing::Element PolynomialRing::call(const FunctionDefinition& function, const Element& x) {
  if (function.domain != ArgumentDomain::all && !is_constant(x)) partial_calls_.emplace(function.key, content(x));
  if (!x && function.zero_at_zero) return nullptr;
  if (is_special(x)) return undefined();
  if (const auto id = bare_atom(x)) {
    const Atom& atom = atoms_[*id];
    if (function.idempotent && atom.kind == Atom::Kind::call && atom.function->key == function.key) return x;
    if (function.monotone && atom.kind == Atom::Kind::extremum) {
      const bool maximum = atom.maximum;
      const std::vector<Element> arguments = atom.arguments;
      std::vector<Element> values;
      values.reserve(arguments.size());
      for (const Element& argument : arguments) values.push_back(call(function, argument));
      return extremum(maximum, values);
    }
  }
  return atom_element(add_atom({.kind = Atom::Kind::call, .function = &function, .maximum = false, .arguments = {x}}));
}

PolynomialRing::Element PolynomialRing::call(const FunctionDefinition& function, const Element& x, const Element& y) {
  if (is_special(x) || is_special(y)) return undefined();
  if (function.name == "pow") {
    const std::optional<Rational> exponent = as_constant(y);
    if (exponent && exponent->denominator == 1 && exponent->numerator >= 0 && exponent->numerator <= 8) {
      Element result = constant({1, 1});
      for (std::int64_t i = 0; i < exponent->numerator; ++i) result = multiply(result, x);
      return result;
    }
  }
  if (function.domain != ArgumentDomain::all && !is_constant(x)) partial_calls_.emplace(function.key, content(x));
  return atom_element(
      add_atom({.kind = Atom::Kind::call, .function = &function, .maximum = false, .arguments = {x, y}}));
}

PolynomialRing::Element PolynomialRing::extremum(bool maximum, std::span<const Element> values) {
  std::map<std::uint32_t, Element> set;
  Element neutral;
  bool has_neutral = false;
  auto insert = [&](const Element& value) { set.emplace(content(value), value); };
  for (const Element& value : values) {
    const std::optional<VariableId> id = bare_atom(value);
    if (id && atoms_[*id].kind == Atom::Kind::infinity && atoms_[*id].maximum != maximum) {
      neutral = value;
      has_neutral = true;
    } else if (is_special(value)) {
      return undefined();
    } else if (id && atoms_[*id].kind == Atom::Kind::extremum && atoms_[*id].maximum == maximum) {
      for (const Element& argument : atoms_[*id].arguments) insert(argument);
    } else {
      insert(value);
    }
  }
  if (set.empty()) {
    return has_neutral ? neutral : infinity(maximum);
  }
  if (set.size() == 1) return set.begin()->second;
  Atom atom{.kind = Atom::Kind::extremum, .function = nullptr, .maximum = maximum, .arguments = {}};
  for (const auto& [id, value] : set) atom.arguments.push_back(value);
  return atom_element(add_atom(std::move(atom)));
}

bool PolynomialRing::equal(const Element& a, const Element& b) {
  Element difference = subtract(a, b);
  for (int round = 0; difference && round < 32; ++round) {
    // The newest sum with a negative exponent; older ones cannot contain it.
    std::optional<VariableId> newest;
    std::int32_t lowest = 0;
    for (const auto& [id, coefficient] : *difference)
      for (const auto& [variable, exponent] : monomials_[id])
        if (exponent < 0 && atoms_[variable].kind == Atom::Kind::sum) {
          if (!newest || variable > *newest) {
            newest = variable;
            lowest = exponent;
          } else if (variable == *newest) {
            lowest = std::min(lowest, exponent);
          }
        }
    if (!newest) return false;
    const Element sum = atoms_[*newest].arguments[0];
    // Multiply by sum^-lowest: a term with sum^e becomes term * sum^(e - lowest).
    std::map<std::int32_t, Terms> by_power;
    for (const auto& [id, coefficient] : *difference) {
      Monomial rest;
      std::int32_t power = -lowest;
      for (const auto& factor : monomials_[id]) {
        if (factor.first == *newest)
          power += factor.second;
        else
          rest.push_back(factor);
      }
      by_power[power].emplace_back(intern(std::move(rest)), coefficient);
    }
    Element result;
    for (auto& [power, terms] : by_power) {
      Element part = canonical(std::move(terms));
      for (std::int32_t i = 0; i < power && part; ++i) {
        if (part->size() * sum->size() > max_cleared_terms) return false;
        part = multiply(part, sum);
      }
      result = add(result, part);
    }
    difference = result;
  }
  return difference == nullptr;
}

}  // namespace taso
