#include "operators/function_laws.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "graph/attributes.h"
#include "operators/unparse.h"

namespace taso {
namespace {

using Kind = Expression::Kind;
using Functions = std::map<std::string, FunctionDefinition, std::less<>>;

// Beyond this a function may overflow or vanish without being wrong.
constexpr double moderate = 40;

// A scalar expression at numbers. What is not a scalar expression of functions is not a number.
class NumberEvaluator {
 public:
  explicit NumberEvaluator(const Functions& functions) : functions_(functions) {}

  [[nodiscard]] double call(const FunctionDefinition& function, const std::vector<double>& arguments) const {
    if (function.definition) return value(*function.definition, function.parameters, arguments);
    if (function.real != nullptr) return function.real(arguments.front());
    return function.real2 != nullptr && arguments.size() == 2 ? function.real2(arguments[0], arguments.back())
                                                              : undefined;
  }

  [[nodiscard]] double value(const Expression& e, const std::vector<std::string>& names,
                             const std::vector<double>& numbers) const {
    auto operand = [&](std::size_t i) { return value(e.operands[i], names, numbers); };
    switch (e.kind) {
      case Kind::integer:
        return static_cast<double>(e.integer);
      case Kind::real:
        return e.real;
      case Kind::name: {
        const auto name = std::find(names.begin(), names.end(), e.name);
        return name == names.end() ? undefined : numbers[static_cast<std::size_t>(name - names.begin())];
      }
      case Kind::negate:
        return -operand(0);
      case Kind::add:
        return operand(0) + operand(1);
      case Kind::subtract:
        return operand(0) - operand(1);
      case Kind::multiply:
        return operand(0) * operand(1);
      case Kind::divide:
        return operand(0) / operand(1);
      case Kind::call: {
        std::vector<double> arguments;
        for (std::size_t i = 0; i < e.operands.size(); ++i) arguments.push_back(operand(i));
        if (e.name == "max" || e.name == "min") {
          double best = arguments[0];
          for (const double x : arguments)
            if (std::isnan(x) || (e.name == "max" ? x > best : x < best)) best = x;
          return best;
        }
        const auto function = functions_.find(e.name);
        return function == functions_.end() ? undefined : call(function->second, arguments);
      }
      default:
        return undefined;
    }
  }

 private:
  static constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
  const Functions& functions_;
};

void collect_literals(const Expression& e, std::vector<double>& literals) {
  if (e.kind == Kind::integer) literals.push_back(static_cast<double>(e.integer));
  if (e.kind == Kind::real) literals.push_back(e.real);
  for (const Expression& operand : e.operands) collect_literals(operand, literals);
}

// Ascending, without duplicates. Fewer of them where several variables take them.
std::vector<double> points(const std::vector<double>& literals, bool few) {
  std::vector<double> result = {0};
  for (const double magnitude : {1e-6, 0.3, 0.5, 1.0, 1.25, 2.0, 2.75, 3.0, 7.3, 20.0, 100.0, 1e6}) {
    result.push_back(magnitude);
    result.push_back(-magnitude);
  }
  for (const double literal : literals)
    for (const double near : {literal, literal - 0.01, literal + 0.01, -literal}) result.push_back(near);
  // Multiples of an irrational number, spread over some magnitudes.
  double x = 0.7548776662466927;
  for (int i = 0; i < (few ? 8 : 60); ++i) {
    x = std::fmod(x * 1.3247179572447460 + 0.5698402909980532, 1.0);
    result.push_back((x - 0.5) * std::ldexp(1.0, i % 12));
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

bool close(double a, double b) { return std::fabs(a - b) <= 1e-10 * std::max({1.0, std::fabs(a), std::fabs(b)}); }

bool holds(FunctionLaw::Condition::Relation relation, double x) {
  using Relation = FunctionLaw::Condition::Relation;
  switch (relation) {
    case Relation::positive:
      return x > 0;
    case Relation::nonnegative:
      return x >= 0;
    case Relation::negative:
      return x < 0;
    case Relation::nonpositive:
      return x <= 0;
    case Relation::nonzero:
      return x != 0;
  }
  return false;
}

std::string at(const std::vector<std::string>& names, const std::vector<double>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? " at " : ", ") + names[i] + " = " + to_string(AttributeValue(numbers[i]));
  return text;
}

bool all_moderate(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double x) { return std::fabs(x) <= moderate; });
}

std::string to_text(double number) { return std::isnan(number) ? "undefined" : to_string(AttributeValue(number)); }

// Calls body(numbers) for all choices of points until it fails, small numbers first.
template <class Body>
Status for_all(std::size_t variables, std::vector<double> candidates, const Body& body) {
  std::sort(candidates.begin(), candidates.end(),
            [](double a, double b) { return std::pair(std::fabs(a), -a) < std::pair(std::fabs(b), -b); });
  std::vector<std::size_t> choice(variables, 0);
  std::vector<double> numbers(variables, candidates[0]);
  while (true) {
    TASO_RETURN_IF_ERROR(body(numbers));
    std::size_t i = 0;
    for (; i < variables; ++i) {
      choice[i] = (choice[i] + 1) % candidates.size();
      numbers[i] = candidates[choice[i]];
      if (choice[i] != 0) break;
    }
    if (i == variables) return {};
  }
}

Status check_law(const FunctionLaw& law, const NumberEvaluator& evaluator) {
  if (law.variables.size() > 3) return bad_input("a law has at most 3 variables", law.where);
  std::vector<double> literals;
  collect_literals(law.left, literals);
  collect_literals(law.right, literals);
  return for_all(law.variables.size(), points(literals, law.variables.size() > 1),
                 [&](const std::vector<double>& numbers) -> Status {
                   for (const FunctionLaw::Condition& condition : law.conditions)
                     if (!holds(condition.relation, numbers[condition.variable])) return {};
                   const double left = evaluator.value(law.left, law.variables, numbers);
                   const double right = evaluator.value(law.right, law.variables, numbers);
                   const bool moderate_numbers = all_moderate(numbers);
                   // Of a special case both sides are defined alike.
                   if (!std::isfinite(left) && !(law.is_special_case() && moderate_numbers && std::isfinite(right)))
                     return {};
                   if (!std::isfinite(right) && !moderate_numbers) return {};
                   if (std::isfinite(left) && std::isfinite(right) && close(left, right)) return {};
                   return bad_input("law " + to_text(law) + " is false" + at(law.variables, numbers) +
                                        ": the sides are " + to_text(left) + " and " + to_text(right),
                                    law.where);
                 });
}

bool is_in(ArgumentDomain domain, double x) {
  switch (domain) {
    case ArgumentDomain::all:
      return true;
    case ArgumentDomain::nonzero:
      return x != 0;
    case ArgumentDomain::nonnegative:
      return x >= 0;
    case ArgumentDomain::positive:
      return x > 0;
  }
  return false;
}

// Whether a function has values where it is said to have them, and there alone: from a value that a rule's source has,
// provers conclude where the argument is. Of two arguments the second one decides, too (x ^ 2 has values everywhere),
// and nothing is concluded; where an abbreviation has values follows from what it stands for.
Status check_domain(const FunctionDefinition& function, const NumberEvaluator& evaluator) {
  std::vector<double> literals;
  if (function.definition) collect_literals(*function.definition, literals);
  const std::vector<double> candidates = points(literals, function.arity > 1);
  if (function.arity == 1)
    TASO_RETURN_IF_ERROR(for_all(1, candidates, [&](const std::vector<double>& numbers) -> Status {
      if (is_in(function.domain, numbers[0]) || !std::isfinite(evaluator.call(function, numbers))) return {};
      return bad_input(
          "'" + function.name + "' has a value" + at(function.parameters, numbers) + ", which its domain excludes",
          function.where);
    }));
  if (function.definition) return {};
  const auto check = [&](ArgumentDomain domain) {
    return for_all(
        static_cast<std::size_t>(function.arity), candidates, [&](const std::vector<double>& numbers) -> Status {
          if (!is_in(domain, numbers[0]) || !all_moderate(numbers)) return {};
          if (std::isfinite(evaluator.call(function, numbers))) return {};
          return bad_input("'" + function.name + "' has no value" + at(function.parameters, numbers), function.where);
        });
  };
  Status found = check(function.domain);
  if (found) return found;
  for (const auto& [domain, name] : {std::pair(ArgumentDomain::nonzero, "on_nonzero"),
                                     {ArgumentDomain::nonnegative, "on_nonnegative"},
                                     {ArgumentDomain::positive, "on_positive"}})
    if (check(domain))
      return bad_input(found.error().message + ", which its domain does not exclude; '" + name + "' would",
                       function.where);
  return found;
}

Status check_facts(const FunctionDefinition& function, const NumberEvaluator& evaluator) {
  auto refuse = [&](const std::string& fact, const std::vector<double>& numbers) {
    return bad_input("'" + function.name + "' is not " + fact + at(function.parameters, numbers), function.where);
  };
  std::vector<double> literals;
  if (function.definition) collect_literals(*function.definition, literals);
  const std::vector<double> candidates = points(literals, function.arity > 1);
  if (function.positive || function.nonnegative)
    TASO_RETURN_IF_ERROR(for_all(static_cast<std::size_t>(function.arity), candidates,
                                 [&](const std::vector<double>& numbers) -> Status {
                                   const double value = evaluator.call(function, numbers);
                                   if (value < 0 || (value == 0 && function.positive && all_moderate(numbers)))
                                     return refuse(function.positive ? "positive" : "nonnegative", numbers);
                                   return {};
                                 }));
  if (function.arity != 1) {
    if (function.zero_at_zero || function.monotone || function.idempotent)
      return bad_input("'" + function.name +
                           "' has two parameters: zero_at_zero, monotone and idempotent are facts of "
                           "functions of one",
                       function.where);
    return {};
  }
  if (function.zero_at_zero && !(evaluator.call(function, {0}) == 0)) return refuse("zero_at_zero", {0});
  double last = -std::numeric_limits<double>::infinity();
  for (const double x : candidates) {
    const double value = evaluator.call(function, {x});
    if (std::isnan(value)) continue;
    if (function.monotone && value < last && !close(value, last)) return refuse("monotone", {x});
    last = value;
    if (function.idempotent && !close(evaluator.call(function, {value}), value)) return refuse("idempotent", {x});
  }
  return {};
}

}  // namespace

Status check_function_facts(const Functions& functions) {
  const NumberEvaluator evaluator(functions);
  for (const auto& [name, function] : functions) {
    TASO_RETURN_IF_ERROR(check_domain(function, evaluator));
    TASO_RETURN_IF_ERROR(check_facts(function, evaluator));
    for (const FunctionLaw& law : function.laws) TASO_RETURN_IF_ERROR(check_law(law, evaluator));
  }
  return {};
}

}  // namespace taso
