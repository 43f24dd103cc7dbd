// How laws fit forms, and what they make of them.
#include <algorithm>
#include <cmath>

#include "verifier/unbounded/law_forms.h"
#include "verifier/unbounded/laws.h"

namespace taso::unbounded {
namespace {

using Kind = Expression::Kind;

// Multiples of a summand that are taken apart.
constexpr std::int64_t max_multiple = 16;

std::optional<std::int64_t> exact_root(std::int64_t n) {
  if (n < 0) return std::nullopt;
  const auto root = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(n))));
  return root * root == n ? std::optional(root) : std::nullopt;
}

}  // namespace

// A law that is being fitted to the arguments of a call.
struct LawRewriter::Match {
  const FunctionLaw& law;
  const std::vector<Expression>& patterns;
  const std::vector<NormalForm>& arguments;
  std::vector<std::optional<NormalForm>> values;  // Of the law's variables.
};

bool LawRewriter::holds(const FunctionLaw::Condition& condition, const NormalForm& value) {
  using Relation = FunctionLaw::Condition::Relation;
  const Sign sign = signs_.of(value);
  switch (condition.relation) {
    case Relation::positive:
      return sign.is_positive();
    case Relation::nonnegative:
      return sign.is_nonnegative();
    case Relation::negative:
      return (-sign).is_positive();
    case Relation::nonpositive:
      return sign.is_nonpositive();
    case Relation::nonzero:
      return sign.is_nonzero();
  }
  return false;
}

std::optional<NormalForm> LawRewriter::bind(Match& match, std::size_t at,
                                            std::initializer_list<std::pair<const Expression*, NormalForm>> parts) {
  const std::vector<std::optional<NormalForm>> before = match.values;
  bool fits = true;
  for (const auto& [name, value] : parts) {
    const auto variable = std::find(match.law.variables.begin(), match.law.variables.end(), name->name);
    std::optional<NormalForm>& known = match.values[static_cast<std::size_t>(variable - match.law.variables.begin())];
    if (known)
      fits = fits && alike(*known, value, builder_.facts());
    else
      known = value;
  }
  std::optional<NormalForm> result;
  if (fits) result = apply(match, at + 1);
  if (!result) match.values = before;
  return result;
}

// x * y: each factor by itself, and the number.
std::optional<NormalForm> LawRewriter::factors(Match& match, std::size_t at) {
  const NormalForm& argument = match.arguments[at];
  const std::vector<Expression>& names = match.patterns[at].operands;
  if (names[0].name == names[1].name && !is_bare(argument)) {
    const std::optional<NormalForm> root = square_root(argument, builder_.facts());
    return root ? bind(match, at, {{names.data(), *root}}) : std::nullopt;
  }
  if (!is_bare(argument)) {
    if (const Rational number = common_number(argument); number != Rational{1, 1}) {
      const NormalForm rest = builder_.multiply(argument, builder_.rational({number.denominator, number.numerator}));
      if (auto result = bind(match, at, {{names.data(), builder_.rational(number)}, {&names[1], rest}})) return result;
    }
    for (const Factor& factor : common_factors(argument))
      if (auto result =
              bind(match, at,
                   {{names.data(), form_of(factor, factor.power)}, {&names[1], without_factors(argument, {factor})}}))
        return result;
    return std::nullopt;
  }
  const Term& term = argument[0];
  if (names[0].name == names[1].name) {
    const auto numerator = exact_root(term.coefficient.numerator),
               denominator = exact_root(term.coefficient.denominator);
    // 1 is its own root for ever.
    if (!numerator || !denominator || (term.factors.empty() && *numerator == *denominator)) return std::nullopt;
    Term root = term;
    root.coefficient = {*numerator, *denominator};
    for (Factor& factor : root.factors) {
      if (factor.power % 2 != 0) return std::nullopt;
      factor.power /= 2;
    }
    return bind(match, at, {{&names[0], {root}}});
  }
  if (term.coefficient != Rational{1, 1} && term.coefficient != Rational{-1, 1} && !term.factors.empty()) {
    Term number, rest = term;
    number.coefficient = {std::abs(term.coefficient.numerator), term.coefficient.denominator};
    rest.coefficient = {term.coefficient.numerator < 0 ? -1 : 1, 1};
    if (auto result = bind(match, at, {{&names[0], {number}}, {&names[1], {rest}}})) return result;
  }
  for (std::size_t i = 0; i < term.factors.size(); ++i) {
    // The whole power, then one factor of it.
    const int whole = term.factors[i].power;
    for (const int power : {whole, whole > 0 ? 1 : -1}) {
      Term one, rest = term;
      one.factors.push_back(term.factors[i]);
      one.factors[0].power = power;
      if (whole == power)
        rest.factors.erase(rest.factors.begin() + static_cast<std::ptrdiff_t>(i));
      else
        rest.factors[i].power -= power;
      if (rest.factors.empty() && rest.coefficient == Rational{1, 1}) continue;
      if (auto result = bind(match, at, {{&names[0], {one}}, {&names[1], {rest}}})) return result;
    }
  }
  return std::nullopt;
}

std::optional<NormalForm> LawRewriter::apply(Match& match, std::size_t at) {
  if (at == match.arguments.size()) {
    std::vector<NormalForm> values;
    for (const std::optional<NormalForm>& value : match.values) values.push_back(value.value_or(NormalForm{}));
    for (const FunctionLaw::Condition& condition : match.law.conditions)
      if (!holds(condition, values[condition.variable])) return std::nullopt;
    if (steps_ == 0) {
      builder_.fail("the limit on applications of laws is reached");
      return std::nullopt;
    }
    --steps_;
    return evaluate(match.law.right, match.law.variables, values);
  }
  const Expression& pattern = match.patterns[at];
  const NormalForm& argument = match.arguments[at];
  switch (pattern.kind) {
    case Kind::name:
      return bind(match, at, {{&pattern, argument}});
    case Kind::integer:
    case Kind::real:
      return argument ==
                     builder_.number(pattern.kind == Kind::real ? pattern.real : static_cast<double>(pattern.integer))
                 ? apply(match, at + 1)
                 : std::nullopt;
    case Kind::negate: {
      const Expression& inner = pattern.operands[0];
      if (inner.kind != Kind::name)
        return builder_.negate(argument) ==
                       builder_.number(inner.kind == Kind::real ? inner.real : static_cast<double>(inner.integer))
                   ? apply(match, at + 1)
                   : std::nullopt;
      if (!written_negatively(argument)) return std::nullopt;
      return bind(match, at, {{&inner, builder_.negate(argument)}});
    }
    case Kind::add: {
      // The first summand and the others, or one of several equal summands and the others.
      if (argument.empty()) return std::nullopt;
      Term first = argument[0];
      NormalForm rest(argument.begin() + 1, argument.end());
      if (rest.empty()) {
        const std::int64_t n = first.coefficient.numerator;
        if (std::abs(n) < 2 || std::abs(n) > max_multiple || first.factors.empty()) return std::nullopt;
        Term others = first;
        first.coefficient.numerator = n < 0 ? -1 : 1;
        others.coefficient.numerator = n - first.coefficient.numerator;
        rest = {others};
      }
      return bind(match, at, {{&pattern.operands[0], {first}}, {&pattern.operands[1], rest}});
    }
    case Kind::multiply:
      return factors(match, at);
    case Kind::divide: {
      // 1 / x: nothing but divisors.
      if (!is_bare(argument) || argument[0].factors.empty() ||
          std::any_of(argument[0].factors.begin(), argument[0].factors.end(),
                      [](const Factor& factor) { return factor.power > 0; }))
        return std::nullopt;
      return bind(match, at, {{&pattern.operands[1], inverse(argument)}});
    }
    case Kind::call: {
      const Factor* const inner = only_factor(argument);
      if (inner == nullptr || inner->kind != Factor::Kind::call || inner->function == nullptr ||
          inner->name != pattern.name || inner->elements.size() != pattern.operands.size())
        return std::nullopt;
      if (inner->elements.size() == 1) return bind(match, at, {{pattern.operands.data(), inner->elements[0].value}});
      return bind(
          match, at,
          {{pattern.operands.data(), inner->elements[0].value}, {&pattern.operands[1], inner->elements[1].value}});
    }
    default:
      return std::nullopt;
  }
}

std::optional<NormalForm> LawRewriter::apply(const FunctionLaw& law, const std::vector<Expression>& patterns,
                                             const std::vector<NormalForm>& arguments) {
  if (patterns.size() != arguments.size()) return std::nullopt;
  Match match{law, patterns, arguments, std::vector<std::optional<NormalForm>>(law.variables.size())};
  return apply(match, 0);
}

NormalForm LawRewriter::evaluate(const Expression& e, const std::vector<std::string>& names,
                                 const std::vector<NormalForm>& values) {
  if (!builder_.problem().empty()) return {};
  auto operand = [&](std::size_t i) { return evaluate(e.operands[i], names, values); };
  switch (e.kind) {
    case Kind::integer:
      return builder_.number(static_cast<double>(e.integer));
    case Kind::real:
      return builder_.number(e.real);
    case Kind::name:
      return values[static_cast<std::size_t>(std::find(names.begin(), names.end(), e.name) - names.begin())];
    case Kind::negate:
      return builder_.negate(operand(0));
    case Kind::add:
      return builder_.add(operand(0), operand(1));
    case Kind::subtract:
      return builder_.add(operand(0), builder_.negate(operand(1)));
    case Kind::multiply:
      return multiply(operand(0), operand(1));
    case Kind::divide:
      return multiply(operand(0), inverse(operand(1)));
    case Kind::call: {
      std::vector<NormalForm> arguments;
      for (std::size_t i = 0; i < e.operands.size(); ++i) arguments.push_back(operand(i));
      if (e.name == "max" || e.name == "min") {
        std::vector<Element> elements;
        for (NormalForm& argument : arguments) elements.push_back({{}, {}, std::move(argument)});
        return extremum(e.name == "max", std::move(elements));
      }
      const FunctionDefinition* const function = registry_.find_function(e.name);
      if (function == nullptr) break;
      if (!function->definition) return call(function, e.name, std::move(arguments));
      return evaluate(*function->definition, function->parameters, arguments);
    }
    default:
      break;
  }
  builder_.fail("the right side of a law");
  return {};
}

}  // namespace taso::unbounded
