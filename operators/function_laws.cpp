#include "operators/function_laws.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "graph/attributes.h"
#include "operators/number_program.h"
#include "operators/trial_points.h"
#include "operators/unparse.h"

namespace taso {
namespace {

using Functions = NumberProgram::Functions;
using Relation = FunctionLaw::Condition::Relation;

bool holds(FunctionLaw::Condition::Relation relation, double x) {
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

std::string at(const std::vector<std::string>& names, const TrialPoint& numbers) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? " at " : ", ") + names[i] + " = " + to_string(AttributeValue(numbers[i]));
  return text;
}

std::string to_text(const Measured& measured) {
  if (measured.kind == Measured::Kind::large) return measured.value < 0 ? "below all doubles" : "beyond all doubles";
  return measured.is_number() ? to_string(AttributeValue(measured.value)) : "undefined";
}

// A place at which something is false.
struct Failure {
  TrialPoint numbers{};
  Measured first, second;  ///< Values that show it.
};

// The one of all failures that is told in the fewest letters; numbers near 0 and positive ones first.
class Failures {
 public:
  void add(const TrialPoint& numbers, const Measured& first, const Measured& second = {}) {
    std::size_t length = 0;
    double size = 0;
    for (const double number : numbers) {
      length += to_string(AttributeValue(number)).size();
      size += std::fabs(number) - (number > 0 ? 1e-9 : 0);
    }
    if (best_ && std::pair(length, size) >= std::pair(length_, size_)) return;
    length_ = length;
    size_ = size;
    best_ = Failure{numbers, first, second};
  }
  [[nodiscard]] const std::optional<Failure>& best() const { return best_; }

 private:
  std::optional<Failure> best_;
  std::size_t length_ = 0;
  double size_ = 0;
};

Error too_large(const FunctionDefinition& function) {
  return bad_input("'" + function.name + "' unfolds to too many operations for what is declared of it to be tried",
                   function.where);
}

// Whether two values are not the same for certain; neither is undefined or lost.
bool differ(const Measured& a, const Measured& b) {
  constexpr double far_from_large = 1e290;
  if (a.is_number() && b.is_number()) return std::fabs(a.value - b.value) > a.error + b.error;
  if (!a.is_number() && !b.is_number()) return a.value != b.value;
  const Measured& number = a.is_number() ? a : b;
  return std::fabs(number.value) + number.error < far_from_large;
}

Status check_law(const FunctionDefinition& function, const FunctionLaw& law, const Functions& functions) {
  const std::size_t variables = law.variables.size();
  if (variables > max_trial_variables) return bad_input("a law has at most 3 variables", law.where);
  NumberProgram program(functions, variables);
  const std::optional<int> left_step = program.add(law.left, law.variables, program.variables());
  const std::optional<int> right_step = program.add(law.right, law.variables, program.variables());
  if (!left_step || !right_step) return too_large(function);
  const auto left_at = static_cast<std::size_t>(*left_step), right_at = static_cast<std::size_t>(*right_step);
  std::vector<double> values;
  std::vector<Measured> measured;
  Failures failures;
  for (const TrialPoint& numbers : trial_points(program, variables)) {
    if (!std::all_of(law.conditions.begin(), law.conditions.end(), [&](const FunctionLaw::Condition& condition) {
          return holds(condition.relation, numbers[condition.variable]);
        }))
      continue;
    if (program.run(numbers, values) && values[left_at] == values[right_at]) continue;
    program.measure(numbers, measured);
    const Measured &left = measured[left_at], &right = measured[right_at];
    if (left.kind == Measured::Kind::lost || right.kind == Measured::Kind::lost) continue;
    const bool left_has_none = left.kind == Measured::Kind::undefined;
    const bool right_has_none = right.kind == Measured::Kind::undefined;
    if (left_has_none && right_has_none) continue;
    // Of a special case both sides are defined alike.
    if (left_has_none && !law.is_special_case()) continue;
    if (!left_has_none && !right_has_none && !differ(left, right)) continue;
    failures.add(numbers, left, right);
  }
  if (!failures.best()) return {};
  const auto& [numbers, left, right] = *failures.best();
  return bad_input("law " + to_text(law) + " is false" + at(law.variables, numbers) + ": the sides are " +
                       to_text(left) + " and " + to_text(right),
                   law.where);
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
Status check_domain(const FunctionDefinition& function, const NumberProgram& program, std::size_t result,
                    const std::vector<TrialPoint>& points) {
  std::vector<double> values;
  std::vector<Measured> measured;
  Failures outside;
  if (function.arity == 1 && function.domain != ArgumentDomain::all)
    for (const TrialPoint& numbers : points) {
      if (is_in(function.domain, numbers[0])) continue;
      program.measure(numbers, measured);
      if (measured[result].is_number() || measured[result].kind == Measured::Kind::large)
        outside.add(numbers, measured[result]);
    }
  if (outside.best())
    return bad_input("'" + function.name + "' has a value" + at(function.parameters, outside.best()->numbers) +
                         ", which its domain excludes",
                     function.where);
  if (function.definition) return {};
  const auto check = [&](ArgumentDomain domain) -> std::optional<Failure> {
    Failures inside;
    for (const TrialPoint& numbers : points) {
      if (!is_in(domain, numbers[0]) || program.run(numbers, values)) continue;
      program.measure(numbers, measured);
      if (measured[result].kind == Measured::Kind::undefined) inside.add(numbers, measured[result]);
    }
    return inside.best();
  };
  const std::optional<Failure> found = check(function.domain);
  if (!found) return {};
  const std::string message = "'" + function.name + "' has no value" + at(function.parameters, found->numbers);
  for (const auto& [domain, name] : {std::pair(ArgumentDomain::nonzero, "on_nonzero"),
                                     {ArgumentDomain::nonnegative, "on_nonnegative"},
                                     {ArgumentDomain::positive, "on_positive"}})
    if (!check(domain))
      return bad_input(message + ", which its domain does not exclude; '" + name + "' would", function.where);
  return bad_input(message, function.where);
}

Status check_facts(const FunctionDefinition& function, const NumberProgram& program, std::size_t result,
                   const std::vector<TrialPoint>& points, std::optional<std::size_t> twice) {
  auto refuse = [&](const std::string& fact, const Failure& failure, const std::string& why) {
    return bad_input("'" + function.name + "' is not " + fact + at(function.parameters, failure.numbers) + ": " + why,
                     function.where);
  };
  if (function.arity != 1 && (function.zero_at_zero || function.monotone || function.idempotent))
    return bad_input("'" + function.name +
                         "' has two parameters: zero_at_zero, monotone and idempotent are facts of "
                         "functions of one",
                     function.where);
  Failures zero, sign, order, again;
  std::vector<Measured> measured;
  // The largest value so far, less what rounding may have added.
  std::optional<Failure> largest;
  for (const TrialPoint& numbers : points) {
    program.measure(numbers, measured);
    const Measured& value = measured[result];
    if (function.zero_at_zero && numbers[0] == 0 && !(value.is_number() && value.value == 0)) zero.add(numbers, value);
    if (value.kind == Measured::Kind::large && value.value < 0) sign.add(numbers, value);
    if (!value.is_number()) continue;
    if (value.value + value.error < 0 || (function.positive && value.value + value.error <= 0))
      sign.add(numbers, value);
    if (twice) {
      const Measured& second = measured[*twice];
      if (second.kind == Measured::Kind::undefined || (second.is_number() && differ(value, second)))
        again.add(numbers, value, second);
    }
    if (!function.monotone) continue;
    if (largest && differ(value, largest->first) && value.value < largest->first.value)
      order.add({largest->numbers[0], numbers[0]}, largest->first, value);
    else if (!largest || value.value - value.error > largest->first.value - largest->first.error)
      largest = Failure{numbers, value, {}};
  }
  const auto text = [](double number) { return to_string(AttributeValue(number)); };
  if (zero.best()) return refuse("zero_at_zero", *zero.best(), "the value is " + to_text(zero.best()->first));
  if ((function.positive || function.nonnegative) && sign.best())
    return refuse(function.positive ? "positive" : "nonnegative", *sign.best(),
                  "the value is " + to_text(sign.best()->first));
  if (order.best()) {
    const auto& [numbers, before, after] = *order.best();
    return bad_input("'" + function.name + "' is not monotone: it is " + to_text(before) +
                         at(function.parameters, numbers) + " and " + to_text(after) + " at " + function.parameters[0] +
                         " = " + text(numbers[1]),
                     function.where);
  }
  if (again.best())
    return refuse("idempotent", *again.best(),
                  "the value is " + to_text(again.best()->first) + ", and of that " + to_text(again.best()->second));
  return {};
}

// Tries the domain and the facts of one function.
Status check_function(const FunctionDefinition& function, const Functions& functions) {
  if (!function.is_primitive() && !function.declares_anything()) return {};
  NumberProgram program(functions, static_cast<std::size_t>(function.arity));
  const std::optional<int> value = program.call(function, program.variables());
  std::optional<int> twice;
  if (value && function.idempotent && function.arity == 1) twice = program.call(function, {*value});
  if (!value || (function.idempotent && function.arity == 1 && !twice)) return too_large(function);
  const std::vector<TrialPoint> points = trial_points(program, static_cast<std::size_t>(function.arity));
  const auto result = static_cast<std::size_t>(*value);
  TASO_RETURN_IF_ERROR(check_domain(function, program, result, points));
  return check_facts(function, program, result, points,
                     twice ? std::optional(static_cast<std::size_t>(*twice)) : std::nullopt);
}

}  // namespace

Status check_function_facts(const Functions& functions, const std::set<std::string>& added) {
  for (const std::string& name : added) {
    const FunctionDefinition& function = functions.find(name)->second;
    if (!function.is_real()) continue;  // Nothing is declared of it.
    TASO_RETURN_IF_ERROR(check_function(function, functions));
    for (const FunctionLaw& law : function.laws) TASO_RETURN_IF_ERROR(check_law(function, law, functions));
  }
  return {};
}

}  // namespace taso
