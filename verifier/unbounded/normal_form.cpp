#include "verifier/unbounded/normal_form.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace taso::unbounded {
namespace {

// Terms of one form, and factors of one term, at most.
constexpr std::size_t max_terms = 600;
constexpr std::size_t max_factors = 200;

}  // namespace

struct Elements::Shared {
  std::vector<Element> list;
  mutable std::optional<std::uint64_t> mask = std::nullopt;  // once it has been needed
};

Elements::Elements(std::vector<Element> list) {
  if (!list.empty()) shared_ = std::make_shared<const Shared>(Shared{std::move(list)});
}

const std::vector<Element>& Elements::list() const {
  static const std::vector<Element> none;
  return shared_ == nullptr ? none : shared_->list;
}

void Elements::push_back(Element element) {
  std::vector<Element> longer = list();
  longer.push_back(std::move(element));
  *this = Elements(std::move(longer));
}

bool Elements::operator==(const Elements& other) const {
  if (shared_ == other.shared_) return true;
  if (shared_ != nullptr && other.shared_ != nullptr && shared_->mask && other.shared_->mask &&
      *shared_->mask != *other.shared_->mask)
    return false;
  return list() == other.list();
}

std::uint64_t Elements::mask(const Symbols& symbols) const {
  if (shared_ == nullptr) return 0;
  if (shared_->mask) return *shared_->mask;
  std::uint64_t result = 0;
  auto add_bound = [&](const std::vector<SymbolId>& bound) {
    for (const SymbolId symbol : bound) result |= Symbols::bit(symbol);
  };
  auto add_guards = [&](const std::vector<Atom>& guards) {
    for (const Atom& guard : guards) result |= symbols.mask(guard.p);
  };
  for (const Element& element : shared_->list) {
    add_bound(element.bound);
    add_guards(element.guards);
    for (const Term& term : element.value) {
      add_bound(term.bound);
      add_guards(term.guards);
      for (const Factor& factor : term.factors) {
        for (const Polynomial& index : factor.indices) result |= symbols.mask(index);
        if (factor.kind == Factor::Kind::size) result |= symbols.mask(Polynomial::symbol(factor.symbol));
        result |= factor.elements.mask(symbols);
      }
    }
  }
  shared_->mask = result;
  return result;
}

bool is_infinite(const NormalForm& form) {
  return std::any_of(form.begin(), form.end(), [](const Term& term) {
    return std::any_of(term.factors.begin(), term.factors.end(), [](const Factor& factor) {
      return factor.kind == Factor::Kind::literal && std::isinf(factor.number);
    });
  });
}

bool Element::operator==(const Element& other) const {
  return bound == other.bound && guards == other.guards && value == other.value;
}

bool Factor::same_base(const Factor& other) const {
  return kind == other.kind && tensor == other.tensor && symbol == other.symbol && number == other.number &&
         name == other.name && function == other.function && indices == other.indices && elements == other.elements;
}

bool Factor::operator==(const Factor& other) const { return power == other.power && same_base(other); }

bool Term::operator==(const Term& other) const {
  return coefficient == other.coefficient && bound == other.bound && guards == other.guards && factors == other.factors;
}

bool FormBuilder::spend(std::uint64_t steps) {
  Budget& budget = facts_->budget();
  budget.spend(steps);
  if (budget.exhausted()) fail(out_of_steps);
  return problem_.empty();
}

Rational FormBuilder::reduced(Wide numerator, Wide denominator) {
  if (numerator == 0) return {0, 1};
  Wide a = numerator < 0 ? -numerator : numerator, b = denominator < 0 ? -denominator : denominator;
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  numerator /= a;
  denominator /= a;
  if (denominator < 0) {
    numerator = -numerator;
    denominator = -denominator;
  }
  constexpr Wide limit = std::numeric_limits<std::int64_t>::max();
  if (numerator > limit || numerator < -limit || denominator > limit) {
    fail("a coefficient is beyond 64 bits");
    return {0, 1};
  }
  return {static_cast<std::int64_t>(numerator), static_cast<std::int64_t>(denominator)};
}

Rational FormBuilder::add(Rational a, Rational b) {
  return reduced(static_cast<Wide>(a.numerator) * b.denominator + static_cast<Wide>(b.numerator) * a.denominator,
                 static_cast<Wide>(a.denominator) * b.denominator);
}

Rational FormBuilder::multiply(Rational a, Rational b) {
  return reduced(static_cast<Wide>(a.numerator) * b.numerator, static_cast<Wide>(a.denominator) * b.denominator);
}

NormalForm FormBuilder::rational(Rational value) {
  if (value.numerator == 0) return {};
  Term term;
  term.coefficient = value;
  return {term};
}

NormalForm FormBuilder::number(double value) {
  if (std::isnan(value)) {
    fail("the literal nan");
    return {};
  }
  // A dyadic number of few digits is a coefficient.
  constexpr int most_digits = 20, most_places = 30;
  int exponent = 0;
  const double digits = std::ldexp(std::frexp(value, &exponent), most_digits);
  if (std::isfinite(value) && digits == std::floor(digits) && std::abs(exponent) <= most_places) {
    const int places = most_digits - exponent;
    return places <= 0 ? rational({static_cast<std::int64_t>(value), 1})
                       : rational(reduced(static_cast<Wide>(digits), static_cast<Wide>(1) << places));
  }
  // Any other number is a symbol for its magnitude, which its multiples by small powers of two share.
  constexpr int largest_scale = 10;
  const int scale = std::isfinite(value) && std::abs(exponent) <= largest_scale ? exponent : 0;
  Factor factor;
  factor.kind = Factor::Kind::literal;
  factor.number = std::ldexp(std::abs(value), -scale);
  Term term;
  term.coefficient = {(value < 0 ? -1 : 1) * (std::int64_t{1} << std::max(scale, 0)),
                      std::int64_t{1} << std::max(-scale, 0)};
  term.factors.push_back(std::move(factor));
  return {term};
}

NormalForm FormBuilder::size(const Polynomial& p) {
  if (!p.valid()) {
    fail("a size beyond 64 bits, or with products of more than " + std::to_string(Monomial::max_degree) + " sizes");
    return {};
  }
  NormalForm result;
  for (const auto& [monomial, coefficient] : p.terms()) {
    Term term;
    term.coefficient = {coefficient, 1};
    for (const SymbolId symbol : monomial.symbols()) {
      Factor factor;
      factor.kind = Factor::Kind::size;
      factor.symbol = symbol;
      append(term.factors, factor);
    }
    result.push_back(std::move(term));
  }
  return result;
}

void FormBuilder::append(std::vector<Factor>& factors, const Factor& factor) {
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (!factors[i].same_base(factor)) continue;
    factors[i].power += factor.power;
    if (factors[i].power == 0) factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
  factors.push_back(factor);
}

NormalForm FormBuilder::factor(Factor factor) {
  Term term;
  term.factors.push_back(std::move(factor));
  return {term};
}

NormalForm FormBuilder::add(NormalForm a, const NormalForm& b) {
  if (!spend(b.size() + a.size() * b.size() / 8)) return {};
  if ((is_infinite(b) && !a.empty()) || (is_infinite(a) && !b.empty())) {
    fail("a sum with an infinite literal");
    return {};
  }
  for (const Term& term : b) {
    const auto same = std::find_if(a.begin(), a.end(), [&](const Term& other) {
      return other.bound == term.bound && other.guards == term.guards && other.factors == term.factors;
    });
    if (same == a.end()) {
      a.push_back(term);
      continue;
    }
    same->coefficient = add(same->coefficient, term.coefficient);
    if (same->coefficient.numerator == 0) a.erase(same);
  }
  if (a.size() > max_terms) {
    fail("more than " + std::to_string(max_terms) + " summands");
    a.clear();
  }
  return a;
}

NormalForm FormBuilder::negate(NormalForm a) {
  for (Term& term : a) term.coefficient.numerator = -term.coefficient.numerator;
  return a;
}

Term FormBuilder::renamed(const Term& term) {
  if (term.bound.empty()) return term;
  Facts::Replacement replacement;
  std::vector<SymbolId> fresh;
  for (const SymbolId old : term.bound) {
    fresh.push_back(facts_->symbols().bound());
    replacement.emplace_back(old, Polynomial::symbol(fresh.back()));
  }
  Term result;
  result.coefficient = term.coefficient;
  result.bound = std::move(fresh);
  return substitute_body(term, std::move(result), replacement);
}

bool FormBuilder::binds(const std::vector<Factor>& factors, SymbolId symbol) const {
  return std::any_of(factors.begin(), factors.end(), [&](const Factor& factor) {
    if ((factor.elements.mask(facts_->symbols()) & Symbols::bit(symbol)) == 0) return false;
    return std::any_of(factor.elements.begin(), factor.elements.end(), [&](const Element& element) {
      return std::find(element.bound.begin(), element.bound.end(), symbol) != element.bound.end() ||
             std::any_of(element.value.begin(), element.value.end(), [&](const Term& term) {
               return std::find(term.bound.begin(), term.bound.end(), symbol) != term.bound.end() ||
                      binds(term.factors, symbol);
             });
    });
  });
}

NormalForm FormBuilder::multiply(const NormalForm& a, const NormalForm& b) {
  NormalForm result;
  if (a.size() * b.size() > max_terms) {
    fail("more than " + std::to_string(max_terms) + " summands");
    return result;
  }
  auto is_sign = [](const NormalForm& form) {
    return form.size() == 1 && form[0] == Term{{form[0].coefficient.numerator < 0 ? -1 : 1, 1}, {}, {}, {}};
  };
  if ((is_infinite(a) && !is_sign(b)) || (is_infinite(b) && !is_sign(a))) {
    fail("a product with an infinite literal");
    return result;
  }
  for (const Term& left : a)
    for (const Term& original : b) {
      // No variable of a summand is one of a nested sum of the other: what is known of it is not known of that.
      const bool clash = std::any_of(original.bound.begin(), original.bound.end(), [&](SymbolId symbol) {
        return std::find(left.bound.begin(), left.bound.end(), symbol) != left.bound.end() ||
               binds(left.factors, symbol);
      });
      const Term y = clash ? renamed(original) : original;
      const bool nested = std::any_of(left.bound.begin(), left.bound.end(),
                                      [&](SymbolId symbol) { return binds(original.factors, symbol); });
      const Term x = nested ? renamed(left) : left;
      if (!spend(1 + x.factors.size() + y.factors.size())) return {};
      Term product = x;
      product.coefficient = multiply(x.coefficient, y.coefficient);
      product.bound.insert(product.bound.end(), y.bound.begin(), y.bound.end());
      for (const Atom& guard : y.guards)
        if (std::find(product.guards.begin(), product.guards.end(), guard) == product.guards.end())
          product.guards.push_back(guard);
      for (const Factor& factor : y.factors) append(product.factors, factor);
      if (product.factors.size() > max_factors) fail("more than " + std::to_string(max_factors) + " factors");
      if (!problem_.empty()) return {};
      result = add(std::move(result), {product});
    }
  return result;
}

NormalForm FormBuilder::inverse(const NormalForm& a) {
  if (a.empty()) {
    fail("a division by zero");
    return {};
  }
  if (is_infinite(a)) {
    fail("a division by an infinite literal");
    return {};
  }
  if (a.size() == 1 && a[0].bound.empty() && a[0].guards.empty()) {
    Term term;
    term.coefficient = reduced(a[0].coefficient.denominator, a[0].coefficient.numerator);
    std::vector<Factor> sums;  // The inverse of the inverse of a sum is the sum.
    for (Factor factor : a[0].factors) {
      factor.power = -factor.power;
      if (factor.kind != Factor::Kind::size && factor.kind != Factor::Kind::literal) divided_ = true;
      (factor.kind == Factor::Kind::sum && factor.power > 0 ? sums : term.factors).push_back(std::move(factor));
    }
    NormalForm result = {term};
    for (const Factor& sum : sums)
      for (int i = 0; i < sum.power; ++i) result = multiply(result, sum.elements[0].value);
    return result;
  }
  divided_ = true;
  Factor factor;
  factor.kind = Factor::Kind::sum;
  factor.power = -1;
  factor.elements.push_back({{}, {}, a});
  return this->factor(std::move(factor));
}

NormalForm FormBuilder::divide(const NormalForm& a, const NormalForm& b) { return multiply(a, inverse(b)); }

NormalForm FormBuilder::call(const FunctionDefinition* function, const std::string& name,
                             std::vector<NormalForm> arguments) {
  if (std::any_of(arguments.begin(), arguments.end(), is_infinite)) {
    fail("a function of an infinite literal");
    return {};
  }
  if (function != nullptr && function->arity == 1) {
    const NormalForm& x = arguments[0];
    if (x.empty() && function->zero_at_zero) return {};
    if (x.size() == 1 && x[0].coefficient == Rational{1, 1} && x[0].bound.empty() && x[0].guards.empty() &&
        x[0].factors.size() == 1 && x[0].factors[0].power == 1) {
      const Factor& only = x[0].factors[0];
      if (function->idempotent && only.kind == Factor::Kind::call && only.function == function) return x;
      // Where a function is declared from some number on, only the largest element need be there.
      const bool passes = (only.kind == Factor::Kind::maximum && function->domain == ArgumentDomain::all) ||
                          (only.kind == Factor::Kind::minimum && function->domain != ArgumentDomain::nonzero);
      if (function->monotone && passes) {
        std::vector<Element> elements = only.elements.list();
        for (Element& element : elements) element.value = call(function, name, {element.value});
        return extremum(only.kind == Factor::Kind::maximum, std::move(elements));
      }
    }
  }
  Factor factor;
  factor.kind = Factor::Kind::call;
  factor.function = function;
  factor.name = name;
  std::vector<Element> elements;
  for (NormalForm& argument : arguments) elements.push_back({{}, {}, std::move(argument)});
  factor.elements = std::move(elements);
  return this->factor(std::move(factor));
}

NormalForm FormBuilder::extremum(bool maximum, std::vector<Element> elements) {
  const Factor::Kind kind = maximum ? Factor::Kind::maximum : Factor::Kind::minimum;
  // An infinite element is the extremum, or no element beside others.
  for (std::size_t i = 0; i < elements.size();) {
    const Element& element = elements[i];
    if (!is_infinite(element.value)) {
      ++i;
    } else if ((element.value[0].coefficient.numerator < 0) == maximum) {
      if (elements.size() == 1) return element.value;
      elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (element.bound.empty() && element.guards.empty()) {
      return element.value;
    } else {
      fail("an infinite literal at some places");
      return {};
    }
  }
  std::vector<Element> flat;
  for (Element& element : elements) {
    const NormalForm& value = element.value;
    const bool nested = value.size() == 1 && value[0].coefficient == Rational{1, 1} && value[0].bound.empty() &&
                        value[0].guards.empty() && value[0].factors.size() == 1 && value[0].factors[0].power == 1 &&
                        value[0].factors[0].kind == kind;
    if (!nested) {
      if (std::find(flat.begin(), flat.end(), element) == flat.end()) flat.push_back(std::move(element));
      continue;
    }
    for (Element inner : value[0].factors[0].elements) {
      const bool clash = std::any_of(inner.bound.begin(), inner.bound.end(), [&](SymbolId symbol) {
        return std::find(element.bound.begin(), element.bound.end(), symbol) != element.bound.end();
      });
      if (clash) {
        fail("a maximum inside of itself");
        return {};
      }
      inner.bound.insert(inner.bound.begin(), element.bound.begin(), element.bound.end());
      inner.guards.insert(inner.guards.begin(), element.guards.begin(), element.guards.end());
      if (std::find(flat.begin(), flat.end(), inner) == flat.end()) flat.push_back(std::move(inner));
    }
  }
  if (flat.size() > max_terms) {
    fail("more than " + std::to_string(max_terms) + " elements of a maximum");
    return {};
  }
  if (flat.size() == 1 && flat[0].bound.empty() && flat[0].guards.empty()) return flat[0].value;
  Factor factor;
  factor.kind = kind;
  factor.elements = std::move(flat);
  return this->factor(std::move(factor));
}

NormalForm FormBuilder::guarded(NormalForm form, const std::vector<Atom>& guards) {
  for (Term& term : form)
    for (const Atom& guard : guards)
      if (std::find(term.guards.begin(), term.guards.end(), guard) == term.guards.end()) term.guards.push_back(guard);
  return form;
}

NormalForm FormBuilder::summed(NormalForm form, const std::vector<SymbolId>& bound, const std::vector<Atom>& guards) {
  for (Term& term : form) {
    term.bound.insert(term.bound.begin(), bound.begin(), bound.end());
    term.guards.insert(term.guards.begin(), guards.begin(), guards.end());
  }
  return form;
}

NormalForm FormBuilder::substitute(const NormalForm& form, const Facts::Replacement& replacement) {
  NormalForm result;
  for (const Term& term : form) {
    Term rest;
    rest.coefficient = term.coefficient;
    rest.bound = term.bound;
    const Facts::Replacement inner = avoiding_capture(rest.bound, replacement);
    // A size may become a sum of sizes.
    Term others = term;
    std::erase_if(others.factors, [&](const Factor& factor) {
      return factor.kind == Factor::Kind::size && replaces(inner, factor.symbol);
    });
    NormalForm product = {substitute_body(others, std::move(rest), inner)};
    for (const Factor& factor : term.factors) {
      if (factor.kind != Factor::Kind::size || !replaces(inner, factor.symbol)) continue;
      const NormalForm base = size(facts_->substitute(Polynomial::symbol(factor.symbol), inner));
      for (int k = 0; k < std::abs(factor.power); ++k)
        product = factor.power > 0 ? multiply(product, base) : divide(product, base);
    }
    result = add(std::move(result), product);
  }
  return result;
}

bool FormBuilder::replaces(const Facts::Replacement& replacement, SymbolId symbol) const {
  const Polynomial size = Polynomial::symbol(symbol);
  return std::any_of(replacement.begin(), replacement.end(), [&](const auto& entry) {
    const SymbolId self[] = {entry.first};
    return facts_->symbols().mentions(size, self);
  });
}

Facts::Replacement FormBuilder::avoiding_capture(std::vector<SymbolId>& bound, const Facts::Replacement& replacement) {
  Facts::Replacement result = replacement;
  for (SymbolId& symbol : bound) {
    const SymbolId self[] = {symbol};
    const bool clash = std::any_of(replacement.begin(), replacement.end(), [&](const auto& entry) {
      return entry.first == symbol || facts_->symbols().mentions(entry.second, self);
    });
    if (!clash) continue;
    std::erase_if(result, [&](const auto& entry) { return entry.first == symbol; });
    const SymbolId fresh = facts_->symbols().bound();
    result.emplace_back(symbol, Polynomial::symbol(fresh));
    symbol = fresh;
  }
  return result;
}

Element FormBuilder::substitute(const Element& element, const Facts::Replacement& replacement) {
  Element result;
  result.bound = element.bound;
  const Facts::Replacement inner = avoiding_capture(result.bound, replacement);
  for (const Atom& guard : element.guards)
    result.guards.push_back({guard.relation, facts_->substitute(guard.p, inner)});
  result.value = substitute(element.value, inner);
  return result;
}

Term FormBuilder::substitute(const Term& term, const Facts::Replacement& replacement) {
  Term result;
  result.coefficient = term.coefficient;
  result.bound = term.bound;
  const Facts::Replacement inner = avoiding_capture(result.bound, replacement);
  return substitute_body(term, std::move(result), inner);
}

Term FormBuilder::substitute_body(const Term& term, Term result, const Facts::Replacement& replacement) {
  if (!spend(1 + term.guards.size() / 2 + term.factors.size())) {
    result.factors = term.factors;  // of as many factors as expected; it means nothing
    return result;
  }
  for (const Atom& guard : term.guards)
    result.guards.push_back({guard.relation, facts_->substitute(guard.p, replacement)});
  std::uint64_t replaced_symbols = 0;
  for (const auto& [symbol, value] : replacement) replaced_symbols |= Symbols::bit(symbol);
  for (const Factor& factor : term.factors) {
    Factor replaced = factor;
    if (factor.kind == Factor::Kind::size && replaces(replacement, factor.symbol)) {
      // A summand has room for a product of sizes only.
      const Polynomial size = facts_->substitute(Polynomial::symbol(factor.symbol), replacement);
      if (!size.valid() || size.terms().size() != 1 || size.terms()[0].coefficient != 1) {
        fail("a number that depends on a variable of a sum");
        continue;
      }
      for (const SymbolId symbol : size.terms()[0].monomial.symbols()) {
        replaced.symbol = symbol;
        append(result.factors, replaced);
      }
      continue;
    }
    for (Polynomial& index : replaced.indices) index = facts_->substitute(index, replacement);
    if ((factor.elements.mask(facts_->symbols()) & replaced_symbols) != 0) {
      std::vector<Element> elements;
      elements.reserve(factor.elements.size());
      for (const Element& element : factor.elements) elements.push_back(substitute(element, replacement));
      replaced.elements = std::move(elements);
    }
    append(result.factors, replaced);
  }
  return result;
}

}  // namespace taso::unbounded
