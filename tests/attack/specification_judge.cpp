#include "tests/attack/specification_judge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "support/random.h"

namespace taso::testing {
namespace {

using Operation = Expression::Kind;
using Number = long double;

// A falsehood is one that doubles tell, too: what differs by less is not a mistake of theirs.
constexpr Number relative = 1e-13L;
constexpr Number rounding = 0x1p-63L;
constexpr double far = 20;

struct Value {
  enum class Kind { number, undefined, unknown } kind = Kind::number;
  Number value = 0, error = 0;
};
constexpr Value undefined{Value::Kind::undefined};
constexpr Value unknown{Value::Kind::unknown};

Value number(Number value, Number error) {
  if (!std::isfinite(value) || !std::isfinite(error)) return unknown;
  // Of what doubles do not hold, little more than the sign is judged.
  if (std::fabs(value) > 1e300L) error = std::max(error, std::fabs(value) / 2);
  if (value != 0 && std::fabs(value) < 1e-290L) error += 1e-290L;
  return {Value::Kind::number, value + 0.0L, error + rounding * std::fabs(value)};
}

using Unary = Number (*)(Number);
const std::map<std::string, Unary, std::less<>>& unary_functions() {
  static const std::map<std::string, Unary, std::less<>> table = {
      {"abs", [](Number x) { return x < 0 ? -x : x; }},
      {"asinh", [](Number x) { return std::asinh(x); }},
      {"atan", [](Number x) { return std::atan(x); }},
      {"cbrt", [](Number x) { return std::cbrt(x); }},
      {"ceil", [](Number x) { return std::ceil(x); }},
      {"cos", [](Number x) { return std::cos(x); }},
      {"cosh", [](Number x) { return std::cosh(x); }},
      {"erf", [](Number x) { return std::erf(x); }},
      {"exp", [](Number x) { return std::exp(x); }},
      {"exp2", [](Number x) { return std::exp2(x); }},
      {"floor", [](Number x) { return std::floor(x); }},
      {"log", [](Number x) { return std::log(x); }},
      {"relu", [](Number x) { return std::max<Number>(x, 0); }},
      {"round", [](Number x) { return std::nearbyint(x); }},
      {"sigmoid", [](Number x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }},
      {"sign", [](Number x) { return x > 0   ? Number{1}
                                     : x < 0 ? Number{-1}
                                             : Number{0}; }},
      {"sin", [](Number x) { return std::sin(x); }},
      {"sinh", [](Number x) { return std::sinh(x); }},
      {"sqrt", [](Number x) { return std::sqrt(x); }},
      {"tan", [](Number x) { return std::tan(x); }},
      {"tanh", [](Number x) { return std::tanh(x); }},
  };
  return table;
}

bool has_steps(std::string_view name) { return name == "ceil" || name == "floor" || name == "round" || name == "sign"; }

// Expressions at numbers, with a bound on the error.
class Evaluator {
 public:
  using Names = std::vector<std::pair<std::string, Value>>;
  explicit Evaluator(const OperatorRegistry& registry) : registry_(registry) {}

  Value call(const FunctionDefinition& function, const std::vector<Value>& arguments) const {
    for (const Value& argument : arguments)
      if (argument.kind != Value::Kind::number) return argument;
    if (function.definition) {
      Names names;
      for (std::size_t i = 0; i < arguments.size(); ++i) names.emplace_back(function.parameters[i], arguments[i]);
      return value(*function.definition, names);
    }
    const Value x = arguments[0], y = arguments.back();
    const bool periodic = function.name == "sin" || function.name == "cos" || function.name == "tan";
    const auto is_wide = [&](const Value& argument) {
      return argument.error > 1e-3L * (periodic ? 1 : std::max<Number>(1, std::fabs(argument.value)));
    };
    if (is_wide(x) || is_wide(y)) return unknown;
    const auto of = [&](Number a, Number b) -> Number {
      if (arguments.size() == 1) return unary_functions().find(function.name)->second(a);
      if (function.name == "remainder_by") return std::fmod(b, a);
      return function.name == "pow" ? std::pow(a, b) : std::atan2(a, b);
    };
    const Number result = of(x.value, y.value);
    const bool is_far = std::max(std::fabs(x.value), std::fabs(y.value)) >= far;
    Number error = 0;
    bool somewhere = false, everywhere = std::isfinite(result);
    for (const Number a : {x.value - x.error, x.value + x.error})
      for (const Number b : {y.value - y.error, y.value + y.error}) {
        const Number other = of(a, b);
        somewhere = somewhere || std::isfinite(other);
        everywhere = everywhere && std::isfinite(other);
        error = std::max(error, std::fabs(other - result));
      }
    if (!everywhere) {
      if (somewhere || std::isfinite(result) || (is_far && std::isinf(result))) return unknown;
      return undefined;
    }
    if (result == 0 && x.value != 0 && (arguments.size() == 2 || function.name == "exp" || function.name == "sigmoid"))
      return unknown;
    if (has_steps(function.name) && x.error == 0) return {Value::Kind::number, result + 0.0L, 0};
    return number(result, 2 * error + 8 * rounding * std::fabs(result));
  }

  Value value(const Expression& e, const Names& names) const {
    std::vector<Value> operands;
    if (e.kind == Operation::name) {
      for (const auto& [name, value] : names)
        if (name == e.name) return value;
      return unknown;
    }
    for (const Expression& operand : e.operands) operands.push_back(value(operand, names));
    for (const Value& operand : operands)
      if (operand.kind == Value::Kind::undefined) return undefined;
    for (const Value& operand : operands)
      if (operand.kind != Value::Kind::number) return unknown;
    const Value a = operands.empty() ? Value{} : operands.front(), b = operands.empty() ? Value{} : operands.back();
    switch (e.kind) {
      case Operation::integer:
        return {Value::Kind::number, static_cast<Number>(e.integer), 0};
      case Operation::real:
        return {Value::Kind::number, e.real, 0};
      case Operation::negate:
        return {Value::Kind::number, 0.0L - a.value, a.error};
      case Operation::add:
        return number(a.value + b.value, a.error + b.error);
      case Operation::subtract:
        return number(a.value - b.value, a.error + b.error);
      case Operation::multiply:
        return number(a.value * b.value,
                      std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error);
      case Operation::divide:
        if (std::fabs(b.value) <= b.error) return b.error == 0 ? undefined : unknown;
        return number(a.value / b.value,
                      (a.error + std::fabs(a.value / b.value) * b.error) / (std::fabs(b.value) - b.error));
      case Operation::call: {
        if (e.name != "max" && e.name != "min") {
          const FunctionDefinition* const function = registry_.find_function(e.name);
          return function == nullptr ? unknown : call(*function, operands);
        }
        Value best = operands[0];
        for (const Value& other : operands) {
          best.value = e.name == "max" ? std::max(best.value, other.value) : std::min(best.value, other.value);
          best.error = std::max(best.error, other.error);
        }
        return best;
      }
      default:
        return unknown;
    }
  }

 private:
  const OperatorRegistry& registry_;
};

bool differ(const Value& a, const Value& b) {
  return a.kind == Value::Kind::number && b.kind == Value::Kind::number &&
         std::fabs(a.value - b.value) > a.error + b.error + relative * std::max(std::fabs(a.value), std::fabs(b.value));
}

void collect_literals(const Expression& e, std::vector<double>& literals) {
  if (const std::optional<double> literal = e.number()) literals.push_back(*literal);
  for (const Expression& operand : e.operands) collect_literals(operand, literals);
}

// Numbers for one variable.
std::vector<double> numbers_about(const std::vector<double>& places, Random& random, std::size_t count) {
  std::vector<double> result = {0, 1, -1, 0.5, -0.5, 2, -2, 1e6, -1e6, 1e-6, -1e-6};
  for (const double place : places)
    for (const double sign : {1.0, -1.0}) {
      result.push_back(sign * place);
      for (int scale = 1; scale <= 12; ++scale)
        for (const double direction : {1.0, -1.0})
          result.push_back(sign * place + direction * std::pow(10.0, -scale) * std::max(std::fabs(place), 1e-3));
    }
  for (std::size_t i = 0; i < count; ++i) {
    const double sign = random.below(2) == 0 ? -1 : 1;
    switch (random.below(4)) {
      case 0:
        result.push_back(sign * std::pow(10.0, 60 * random.uniform() - 30));
        break;
      case 1:
        result.push_back(sign * std::pow(10.0, 12 * random.uniform() - 6));
        break;
      case 2:
        result.push_back(sign * 50 * random.uniform());
        break;
      default:
        result.push_back(sign * static_cast<double>(random.below(200)) / 4);
    }
  }
  return result;
}

bool is_in(ArgumentDomain domain, double x) {
  return domain == ArgumentDomain::all || (domain == ArgumentDomain::nonzero && x != 0) ||
         (domain == ArgumentDomain::nonnegative && x >= 0) || (domain == ArgumentDomain::positive && x > 0);
}

bool holds(const FunctionLaw& law, std::span<const double> numbers) {
  using Relation = FunctionLaw::Condition::Relation;
  return std::all_of(law.conditions.begin(), law.conditions.end(), [&](const FunctionLaw::Condition& condition) {
    const double x = numbers[condition.variable];
    return condition.relation == Relation::positive      ? x > 0
           : condition.relation == Relation::nonnegative ? x >= 0
           : condition.relation == Relation::negative    ? x < 0
           : condition.relation == Relation::nonpositive ? x <= 0
                                                         : x != 0;
  });
}

std::string text_at(std::span<const double> numbers) {
  std::string text = " at";
  for (const double number : numbers) text += " " + to_string(AttributeValue(number));
  return text;
}

Value exactly(double x) { return {Value::Kind::number, x, 0}; }

// What is wrong with a fact or the domain.
std::optional<std::string> false_fact(const Evaluator& evaluator, const FunctionDefinition& function,
                                      const std::vector<std::vector<double>>& points) {
  const std::string& name = function.name;
  for (const std::vector<double>& point : points) {
    std::vector<Value> arguments;
    for (const double x : point) arguments.push_back(exactly(x));
    const Value value = evaluator.call(function, arguments);
    const bool is_number = value.kind == Value::Kind::number;
    const Number slack = value.error + 1e-16L * std::fabs(value.value);
    if (is_number && function.positive && value.value + slack <= 0) return name + " is not positive" + text_at(point);
    if (is_number && function.nonnegative && value.value + slack < 0) return name + " is negative" + text_at(point);
    if (function.arity != 1) continue;
    if (is_number && !is_in(function.domain, point[0])) return name + " has a value" + text_at(point);
    if (function.definition == std::nullopt && value.kind == Value::Kind::undefined && is_in(function.domain, point[0]))
      return name + " has no value" + text_at(point);
    if (is_number && function.zero_at_zero && point[0] == 0 && std::fabs(value.value) > value.error)
      return name + "(0) is not 0";
    if (is_number && function.idempotent) {
      const Value again = evaluator.call(function, {value});
      if (again.kind == Value::Kind::undefined || differ(again, value))
        return name + " is not idempotent" + text_at(point);
    }
  }
  if (function.arity != 1 || !function.monotone) return std::nullopt;
  std::vector<double> sorted;
  for (const std::vector<double>& point : points) sorted.push_back(point[0]);
  std::sort(sorted.begin(), sorted.end());
  std::optional<std::pair<double, Value>> largest;
  for (const double x : sorted) {
    const Value value = evaluator.call(function, {exactly(x)});
    if (value.kind != Value::Kind::number) continue;
    if (largest && value.value < largest->second.value && differ(value, largest->second))
      return name + " is not monotone" + text_at(std::vector{largest->first, x});
    if (!largest || value.value > largest->second.value) largest = {x, value};
  }
  return std::nullopt;
}

std::optional<std::string> false_law(const Evaluator& evaluator, const FunctionLaw& law,
                                     const std::vector<std::vector<double>>& points) {
  for (const std::vector<double>& point : points) {
    if (!holds(law, point)) continue;
    Evaluator::Names names;
    for (std::size_t v = 0; v < law.variables.size(); ++v) names.emplace_back(law.variables[v], exactly(point[v]));
    const Value left = evaluator.value(law.left, names), right = evaluator.value(law.right, names);
    const bool undefined_right = left.kind == Value::Kind::number && right.kind == Value::Kind::undefined;
    if (undefined_right || differ(left, right)) return "a law is false" + text_at(point);
  }
  return std::nullopt;
}

}  // namespace

std::optional<FunctionFalsehood> judge_functions(const OperatorRegistry& registry,
                                                 const std::vector<std::string>& names,
                                                 const std::vector<double>& places, std::uint64_t seed,
                                                 std::size_t numbers) {
  const Evaluator evaluator(registry);
  for (const std::string& name : names) {
    const FunctionDefinition* const function = registry.find_function(name);
    if (function == nullptr) continue;
    Random random(seed, name);
    // So many points of several variables, each of which takes some number.
    const auto points = [&](std::size_t variables, std::vector<double> literals) {
      literals.insert(literals.end(), places.begin(), places.end());
      const std::vector<double> choices = numbers_about(literals, random, numbers);
      std::vector<std::vector<double>> result;
      if (variables <= 1) {
        for (const double x : choices) result.push_back({x});
        return result;
      }
      for (std::size_t i = 0; i < 4 * choices.size(); ++i) {
        std::vector<double> point;
        for (std::size_t v = 0; v < variables; ++v) point.push_back(choices[random.below(choices.size())]);
        // A number that differs, or whose product is, a place.
        if (!places.empty() && random.below(2) == 0) {
          const double place = places[random.below(places.size())] * (random.below(2) == 0 ? 1 : -1);
          point[0] = 50 * random.uniform() - 25;
          point[1] = random.below(3) == 0   ? place / point[0]
                     : random.below(2) == 0 ? place - point[0]
                                            : point[0] - place;
          if (random.below(2) == 0) std::swap(point[0], point[1]);
        }
        result.push_back(std::move(point));
      }
      return result;
    };
    std::vector<double> literals;
    if (function->definition) collect_literals(*function->definition, literals);
    if (auto text = false_fact(evaluator, *function, points(static_cast<std::size_t>(function->arity), literals)))
      return FunctionFalsehood{name, nullptr, std::move(*text)};
    for (const FunctionLaw& law : function->laws) {
      literals.clear();
      collect_literals(law.left, literals);
      collect_literals(law.right, literals);
      if (auto text = false_law(evaluator, law, points(law.variables.size(), literals)))
        return FunctionFalsehood{name, &law, std::move(*text)};
    }
  }
  return std::nullopt;
}

}  // namespace taso::testing
