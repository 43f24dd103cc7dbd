#include "verifier/unbounded/domains.h"

#include <algorithm>
#include <utility>

#include "verifier/unbounded/conditions.h"

namespace taso::unbounded {
namespace {

using Relation = Condition::Relation;
using Form = AttributeExpression::Kind;

std::optional<double> number_of(const AttributeExpression& e) {
  if (e.kind != Form::literal) return std::nullopt;
  if (const auto* integer = std::get_if<std::int64_t>(&e.literal)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&e.literal)) return *real;
  return std::nullopt;
}

// The signs of the numbers above (or below) a bound, which may be one of them.
SignSet above(double bound, bool included) { return {bound < 0, bound < 0 || (bound == 0 && included), true}; }
SignSet below(double bound, bool included) { return -above(-bound, included); }

AttributeExpression zero() { return {}; }

// A condition that a number is in a domain.
Condition of_number(ArgumentDomain domain, AttributeExpression number) {
  if (domain == ArgumentDomain::nonzero) return {Relation::not_equal, std::move(number), zero()};
  return {domain == ArgumentDomain::positive ? Relation::less : Relation::less_equal, zero(), std::move(number)};
}

Condition of_elements(ArgumentDomain domain, std::uint32_t tensor) {
  Condition condition;
  condition.relation = domain == ArgumentDomain::positive      ? Relation::positive
                       : domain == ArgumentDomain::nonnegative ? Relation::nonnegative
                                                               : Relation::nonzero;
  condition.left.kind = Form::elements;
  condition.left.index = tensor;
  return condition;
}

// Collects conditions under which forms are in a domain.
class Collector {
 public:
  Collector(const Typing& typing, Facts& facts) : typing_(typing), facts_(facts) {}

  std::vector<Condition> take() { return std::move(conditions_); }

  bool form(ArgumentDomain domain, const NormalForm& form) {
    if (form.empty()) return domain == ArgumentDomain::nonnegative;
    if (form.size() == 1) return term(domain, form[0]);
    // A sum of what is not negative, and positive if one of them always is.
    if (domain == ArgumentDomain::nonzero) domain = ArgumentDomain::positive;
    bool positive = domain == ArgumentDomain::nonnegative;
    for (const Term& summand : form) {
      const std::size_t mark = conditions_.size();
      if (summand.bound.empty() && summand.guards.empty() && term(domain, summand)) {
        positive = true;
        continue;
      }
      conditions_.resize(mark);
      if (!term(ArgumentDomain::nonnegative, summand)) return false;
    }
    return positive;
  }

  bool size(ArgumentDomain domain, const Polynomial& p) {
    if (within(domain, p)) return true;
    // A product is not zero where no factor is.
    if (domain == ArgumentDomain::nonzero && p.terms().size() == 1 &&
        p.terms().begin()->monomial.symbols().size() > 1) {
      const auto& symbols = p.terms().begin()->monomial.symbols();
      return std::all_of(symbols.begin(), symbols.end(),
                         [&](const SymbolId symbol) { return size(domain, Polynomial::symbol(symbol)); });
    }
    std::optional<AttributeExpression> written = expression_of(typing_, facts_.symbols(), p);
    if (!written) return false;
    add(of_number(domain, std::move(*written)));
    return true;
  }

 private:
  bool within(ArgumentDomain domain, const Polynomial& p) {
    if (domain == ArgumentDomain::nonnegative) return facts_.entails_quickly(at_least(p, 0));
    return facts_.entails_quickly(at_least(p, 1)) ||
           (domain == ArgumentDomain::nonzero && facts_.entails_quickly(at_least(Polynomial(-1), p)));
  }

  bool term(ArgumentDomain domain, const Term& term) {
    // A sum of at least one value, all of which are positive.
    if ((!term.bound.empty() || !term.guards.empty()) && domain != ArgumentDomain::nonnegative) {
      if (!has_summand(term)) return false;
      domain = ArgumentDomain::positive;
    }
    if (domain != ArgumentDomain::nonzero && term.coefficient.numerator < 0) return false;
    return std::all_of(term.factors.begin(), term.factors.end(),
                       [&](const Factor& one) { return factor(domain, one); });
  }

  // Whether the guards hold where all bound variables are 0.
  bool has_summand(const Term& term) {
    Facts::Replacement least;
    for (const SymbolId symbol : term.bound) least.emplace_back(symbol, Polynomial(0));
    return std::all_of(term.guards.begin(), term.guards.end(), [&](const Atom& guard) {
      return facts_.entails_quickly({guard.relation, facts_.substitute(guard.p, least)});
    });
  }

  bool factor(ArgumentDomain domain, const Factor& factor) {
    // An even power of what is not zero is positive.
    if (factor.power % 2 == 0 && domain != ArgumentDomain::nonnegative) domain = ArgumentDomain::nonzero;
    if (factor.power % 2 == 0 && domain == ArgumentDomain::nonnegative && factor.power > 0) return true;
    switch (factor.kind) {
      case Factor::Kind::literal:
        return SignSet::of(factor.number).within(domain);
      case Factor::Kind::read:
        // A value that both sides share is no variable, and no condition can speak of it.
        if (factor.tensor >= typing_.rule().tensor_variables.size()) return false;
        if (!declared_sign(typing_.rule(), factor.tensor).within(domain)) add(of_elements(domain, factor.tensor));
        return true;
      case Factor::Kind::size:
        return size(domain, Polynomial::symbol(factor.symbol));
      case Factor::Kind::constant: {
        if (declared_sign_of_attribute(typing_.rule(), factor.name).within(domain)) return true;
        const std::vector<std::string>& names = typing_.rule().attribute_variables;
        const auto place = std::find(names.begin(), names.end(), factor.name);
        if (place == names.end()) return false;
        AttributeExpression variable;
        variable.kind = Form::variable;
        variable.index = static_cast<std::uint32_t>(place - names.begin());
        add(of_number(domain, std::move(variable)));
        return true;
      }
      case Factor::Kind::maximum:
      case Factor::Kind::minimum:
        return std::all_of(factor.elements.begin(), factor.elements.end(), [&](const Element& element) {
          // Of a set that is not zero one would not know the sign.
          return form(domain == ArgumentDomain::nonzero ? ArgumentDomain::positive : domain, element.value);
        });
      case Factor::Kind::call:
      case Factor::Kind::sum:
      case Factor::Kind::product:
        return false;
    }
    return false;
  }

  void add(Condition condition) {
    if (std::find(conditions_.begin(), conditions_.end(), condition) == conditions_.end())
      conditions_.push_back(std::move(condition));
  }

  const Typing& typing_;
  Facts& facts_;
  std::vector<Condition> conditions_;
};

}  // namespace

SignSet operator-(SignSet a) { return {a.positive, a.zero, a.negative}; }

SignSet operator+(SignSet a, SignSet b) {
  const bool mixed = (a.positive && b.negative) || (a.negative && b.positive);
  return {a.negative || b.negative, mixed || (a.zero && b.zero), a.positive || b.positive};
}

SignSet operator*(SignSet a, SignSet b) {
  return {(a.negative && b.positive) || (a.positive && b.negative), a.zero || b.zero,
          (a.positive && b.positive) || (a.negative && b.negative)};
}

SignSet either(SignSet a, SignSet b) { return {a.negative || b.negative, a.zero || b.zero, a.positive || b.positive}; }

SignSet both(SignSet a, SignSet b) { return {a.negative && b.negative, a.zero && b.zero, a.positive && b.positive}; }

SignSet declared_sign(const Substitution& rule, std::uint32_t tensor) {
  SignSet result;
  for (const Condition& condition : rule.conditions) {
    if (!condition.of_elements() || condition.left.index != tensor) continue;
    result = both(result, SignSet::of(condition.relation == Relation::positive      ? ArgumentDomain::positive
                                      : condition.relation == Relation::nonnegative ? ArgumentDomain::nonnegative
                                                                                    : ArgumentDomain::nonzero));
  }
  return result;
}

SignSet declared_sign_of_attribute(const Substitution& rule, const std::string& name) {
  SignSet result;
  auto named = [&](const AttributeExpression& e) {
    return e.kind == Form::variable && rule.attribute_variables[e.index] == name;
  };
  for (const Condition& condition : rule.conditions) {
    if (!condition.compares()) continue;
    const std::optional<double> left = number_of(condition.left), right = number_of(condition.right);
    const bool strict = condition.relation == Relation::less;
    const bool ordered = strict || condition.relation == Relation::less_equal;
    if (ordered && left && named(condition.right)) result = both(result, above(*left, !strict));
    if (ordered && right && named(condition.left)) result = both(result, below(*right, !strict));
    const std::optional<double> number = left && named(condition.right)   ? left
                                         : right && named(condition.left) ? right
                                                                          : std::nullopt;
    if (!number || ordered) continue;
    if (condition.relation == Relation::equal) result = both(result, SignSet::of(*number));
    if (condition.relation == Relation::not_equal && *number == 0)
      result = both(result, SignSet::of(ArgumentDomain::nonzero));
  }
  return result;
}

std::optional<std::vector<Condition>> conditions_for(const Obligation& obligation, const Typing& typing, Facts& facts) {
  Collector collector(typing, facts);
  const bool found = obligation.size ? collector.size(obligation.domain, *obligation.size)
                                     : collector.form(obligation.domain, obligation.element.value);
  if (!found) return std::nullopt;
  return collector.take();
}

std::optional<std::vector<Condition>> conditions_on_attributes(const Obligation& obligation, const Typing& typing,
                                                               Facts& facts) {
  std::optional<std::vector<Condition>> result = conditions_for(obligation, typing, facts);
  if (result && std::any_of(result->begin(), result->end(), [](const Condition& c) { return c.of_elements(); }))
    return std::nullopt;
  return result;
}

}  // namespace taso::unbounded
