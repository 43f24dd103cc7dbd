#include "operators/number_program.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace taso {
namespace {

using Kind = Expression::Kind;

// Operations of a program: definitions that use one another may unfold to any number.
constexpr std::size_t max_steps = 20'000;
// Half a unit in the last place of 1, and what the primitives of the C library may be wrong by.
constexpr double rounding = 0x1p-53;
constexpr double library_rounding = 8 * rounding;
// Less than this is lost between the smallest doubles.
constexpr double smallest = 1e-290;
// Errors of arguments within which no function turns round.
constexpr double wide = 1e-3;
// Beyond this argument a function may overflow, or vanish, without being infinite or 0.
constexpr double far = 20;

Measured lost() { return {.kind = Measured::Kind::lost}; }
Measured undefined() { return {.kind = Measured::Kind::undefined}; }

// Beyond doubles; a number over this one is less than any of them but 0.
Measured large(double sign) { return {Measured::Kind::large, sign < 0 ? -HUGE_VAL : HUGE_VAL, 0}; }

// Whether a function is floor or the like.
bool has_steps(const FunctionDefinition& function) {
  return function.whole != nullptr && function.real(0.25) == function.real(0.3);
}

// Of operands that have values.
Measured measured(double value, double error) {
  if (std::isnan(value) || !std::isfinite(error)) return lost();
  if (std::isinf(value)) return large(value);
  if (value != 0 && std::fabs(value) < smallest) error += smallest;
  return {Measured::Kind::number, value + 0.0, error + rounding * std::fabs(value)};
}

// As the C library computes it.
Measured of_library(double value, double error) { return measured(value, error + library_rounding * std::fabs(value)); }

// The first of two numbers as their maximum, or minimum: the other one may be it as well where errors overlap.
Measured extreme(const Measured& chosen, const Measured& other) {
  const bool apart = std::fabs(chosen.value - other.value) > chosen.error + other.error;
  return {Measured::Kind::number, chosen.value, apart ? chosen.error : std::max(chosen.error, other.error)};
}

}  // namespace

std::vector<int> NumberProgram::variables() const {
  std::vector<int> steps(variables_);
  std::iota(steps.begin(), steps.end(), 0);
  return steps;
}

std::optional<int> NumberProgram::add(const Step& step) {
  const auto [known, is_new] = known_.emplace(step, static_cast<int>(steps_.size()));
  if (!is_new) return known->second;
  if (steps_.size() >= max_steps) return std::nullopt;
  steps_.push_back(step);
  switch (step.kind) {
    case Step::Kind::maximum:
    case Step::Kind::minimum:
      add_switch(step.a, step.b);
      break;
    case Step::Kind::add:
      add_switch(step.a, step.b, Switch::Kind::opposite);
      break;
    case Step::Kind::subtract:
      add_switch(step.a, step.b);
      break;
    case Step::Kind::call:
      if (has_steps(*step.function)) switches_.push_back({known->second, -1, Switch::Kind::jump});
      add_switch(step.a);  // the corner of relu, the edge of a logarithm
      break;
    case Step::Kind::call_of_two:
      add_switch(step.a);
      add_switch(step.b);
      break;
    default:
      break;
  }
  return known->second;
}

// Where a variable is a number that the program names need not be looked for.
void NumberProgram::add_switch(int left, int right, Switch::Kind kind) {
  const auto is = [&](int step, Step::Kind wanted) {
    return step >= 0 && steps_[static_cast<std::size_t>(step)].kind == wanted;
  };
  const bool of_number = right < 0 || is(right, Step::Kind::number) || is(left, Step::Kind::number);
  const bool of_variable = is(left, Step::Kind::variable) || is(right, Step::Kind::variable);
  if (!of_number || !of_variable) switches_.push_back({left, right, kind});
}

std::optional<int> NumberProgram::call(const FunctionDefinition& function, const std::vector<int>& arguments) {
  if (function.definition) return add(*function.definition, function.parameters, arguments);
  if (function.real != nullptr && arguments.size() == 1)
    return add({.kind = Step::Kind::call, .a = arguments[0], .function = &function});
  if (function.real2 != nullptr && arguments.size() == 2)
    return add({.kind = Step::Kind::call_of_two, .a = arguments[0], .b = arguments[1], .function = &function});
  return std::nullopt;
}

std::optional<int> NumberProgram::add(const Expression& e, const std::vector<std::string>& names,
                                      const std::vector<int>& values) {
  std::vector<int> operands;
  if (e.kind != Kind::name)
    for (const Expression& operand : e.operands) {
      const std::optional<int> value = add(operand, names, values);
      if (!value) return std::nullopt;
      operands.push_back(*value);
    }
  auto binary = [&](Step::Kind kind) { return add({.kind = kind, .a = operands[0], .b = operands[1]}); };
  switch (e.kind) {
    case Kind::integer:
    case Kind::real: {
      const double number = e.kind == Kind::real ? e.real : static_cast<double>(e.integer);
      literals_.push_back(number);
      return add({.kind = Step::Kind::number, .number = number});
    }
    case Kind::name: {
      const auto name = std::find(names.begin(), names.end(), e.name);
      if (name == names.end()) return std::nullopt;
      return values[static_cast<std::size_t>(name - names.begin())];
    }
    case Kind::negate:
      return add({.kind = Step::Kind::negate, .a = operands[0]});
    case Kind::add:
      return binary(Step::Kind::add);
    case Kind::subtract:
      return binary(Step::Kind::subtract);
    case Kind::multiply:
      return binary(Step::Kind::multiply);
    case Kind::divide:
      return binary(Step::Kind::divide);
    case Kind::call: {
      if (e.name == "max" || e.name == "min") {
        std::optional<int> best = operands[0];
        for (std::size_t i = 1; i < operands.size() && best; ++i)
          best =
              add({.kind = e.name == "max" ? Step::Kind::maximum : Step::Kind::minimum, .a = *best, .b = operands[i]});
        return best;
      }
      const auto function = functions_->find(e.name);
      return function == functions_->end() ? std::nullopt : call(function->second, operands);
    }
    default:
      return std::nullopt;
  }
}

bool NumberProgram::run(std::span<const double> numbers, std::vector<double>& values) const {
  values.resize(steps_.size());
  double finite = 0;  // not a number as soon as one value is not finite
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    const double a = values[static_cast<std::size_t>(step.a)], b = values[static_cast<std::size_t>(step.b)];
    double value = 0;
    switch (step.kind) {
      case Step::Kind::variable:
        value = numbers[static_cast<std::size_t>(step.a)];
        break;
      case Step::Kind::number:
        value = step.number;
        break;
      case Step::Kind::negate:
        value = -a;
        break;
      case Step::Kind::add:
        value = a + b;
        break;
      case Step::Kind::subtract:
        value = a - b;
        break;
      case Step::Kind::multiply:
        value = a * b;
        break;
      case Step::Kind::divide:
        value = a / b;
        break;
      case Step::Kind::maximum:
        value = std::isnan(a) || a > b ? a : b;
        break;
      case Step::Kind::minimum:
        value = std::isnan(a) || a < b ? a : b;
        break;
      case Step::Kind::call:
        value = step.function->real(a);
        break;
      case Step::Kind::call_of_two:
        value = step.function->real2(a, b);
        break;
    }
    value += 0.0;  // reals have no -0
    finite += value - value;
    values[i] = value;
  }
  return finite == 0;
}

// At both ends of what the arguments may be.
Measured NumberProgram::call(const Step& step, const Measured& x, const Measured& y) {
  const bool two = step.kind == Step::Kind::call_of_two;
  auto of = [&](double a, double b) { return two ? step.function->real2(a, b) : step.function->real(a); };
  const double value = of(x.value, y.value);
  const bool exact = x.error == 0 && y.error == 0;
  const bool is_far = std::max(std::fabs(x.value), std::fabs(y.value)) >= far || (two && x.value != 0);
  const double ends[2][2] = {{x.value - x.error, x.value + x.error}, {y.value - y.error, y.value + y.error}};
  if (!std::isfinite(value)) {
    const bool nowhere = !std::isfinite(of(ends[0][0], ends[1][0])) && !std::isfinite(of(ends[0][1], ends[1][1]));
    if (is_far && std::isinf(value)) return large(value);
    return exact || (nowhere && std::isnan(value)) ? undefined() : lost();
  }
  // What maps integers to integers (abs, relu, floor, ...) rounds nothing and is known by its values at both ends.
  const bool whole = step.function->whole != nullptr;
  // Whether 0 is the value, or what is left of it.
  if (value == 0 && x.value != 0 && is_far && !whole) return measured(0, smallest);
  if (exact) return whole ? Measured{Measured::Kind::number, value + 0.0, 0} : of_library(value, 0);
  // Others may do anything between numbers that lie far apart.
  const auto is_loose = [](const Measured& a) { return a.error > 1e-3 * std::max(1.0, std::fabs(a.value)); };
  if (!whole && (is_loose(x) || is_loose(y))) return lost();
  double error = 0;
  for (const double a : ends[0])
    for (const double b : ends[1]) {
      const double other = of(a, b);
      if (!std::isfinite(other)) return lost();
      error = std::max(error, std::fabs(other - value));
    }
  if (whole) return {Measured::Kind::number, value + 0.0, 2 * error};
  // Between ends that are a period apart it may be anything: what it is at doubles about them tells.
  if (x.error > wide)
    for (int i = 1; i <= 48; ++i) {
      const double share = 2 * std::fmod(i * 0.6180339887498949, 1.0) - 1;
      const double other = of(x.value + share * std::max(x.error, 64 * rounding * std::fabs(x.value)), y.value);
      error = std::max(error, std::fabs(other - value));
    }
  return of_library(value, 2 * error);
}

// Of operands one of which is no number.
Measured NumberProgram::with_large(Step::Kind kind, const Measured& a, const Measured& b) {
  if (a.kind == Measured::Kind::lost || b.kind == Measured::Kind::lost) return lost();
  const bool both = !a.is_number() && !b.is_number();
  const Measured& one = a.is_number() ? b : a;    // the large one
  const Measured& other = a.is_number() ? a : b;  // a number, unless both are large
  switch (kind) {
    case Step::Kind::negate:
      return large(-a.value);
    case Step::Kind::add:
      return both && a.value != b.value ? lost() : large(one.value);
    case Step::Kind::subtract:
      if (both && a.value == b.value) return lost();
      return large(a.is_number() ? -b.value : a.value);
    case Step::Kind::multiply:
      if (both) return large(a.value == b.value ? 1 : -1);
      if (other.value == 0 && other.error == 0) return measured(0, 0);
      if (std::fabs(other.value) - other.error < 1) return lost();
      return large((one.value < 0) == (other.value < 0) ? 1 : -1);
    case Step::Kind::divide:
      if (both) return lost();
      if (a.is_number()) return measured(0, (std::fabs(a.value) + a.error) * smallest + smallest);
      if (std::fabs(b.value) <= b.error || std::fabs(b.value) + b.error > 1) return lost();
      return large((a.value < 0) == (b.value < 0) ? 1 : -1);
    case Step::Kind::maximum:
      return both ? large(std::max(a.value, b.value)) : one.value > 0 ? one : other;
    case Step::Kind::minimum:
      return both ? large(std::min(a.value, b.value)) : one.value < 0 ? one : other;
    case Step::Kind::variable:
    case Step::Kind::number:
    case Step::Kind::call:
    case Step::Kind::call_of_two:
      break;
  }
  return lost();
}

void NumberProgram::measure(std::span<const double> numbers, std::vector<Measured>& values) const {
  values.resize(steps_.size());
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    Measured& result = values[i];
    if (step.kind == Step::Kind::variable || step.kind == Step::Kind::number) {
      result = {Measured::Kind::number,
                step.kind == Step::Kind::number ? step.number : numbers[static_cast<std::size_t>(step.a)], 0};
      continue;
    }
    const bool unary = step.kind == Step::Kind::negate || step.kind == Step::Kind::call;
    const Measured a = values[static_cast<std::size_t>(step.a)];
    const Measured b = unary ? Measured{} : values[static_cast<std::size_t>(step.b)];
    if (a.kind == Measured::Kind::undefined || b.kind == Measured::Kind::undefined) {
      result = undefined();
      continue;
    }
    if (!a.is_number() || !b.is_number()) {
      result = with_large(step.kind, a, b);
      continue;
    }
    switch (step.kind) {
      case Step::Kind::variable:
      case Step::Kind::number:
        break;
      case Step::Kind::negate:
        result = {Measured::Kind::number, -a.value + 0.0, a.error};
        break;
      case Step::Kind::add:
        result = measured(a.value + b.value, a.error + b.error);
        break;
      case Step::Kind::subtract:
        result = measured(a.value - b.value, a.error + b.error);
        break;
      case Step::Kind::multiply: {
        const double value = a.value * b.value;
        const bool vanishes = a.value != 0 && b.value != 0 && std::fabs(value) < smallest;
        result = measured(value, std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error +
                                     (vanishes ? smallest : 0));
        break;
      }
      case Step::Kind::divide: {
        if (std::fabs(b.value) <= b.error) {
          result = b.error == 0 ? undefined() : lost();
          break;
        }
        const double value = a.value / b.value;
        const bool vanishes = a.value != 0 && std::fabs(value) < smallest;
        result = measured(
            value, (a.error + std::fabs(value) * b.error) / (std::fabs(b.value) - b.error) + (vanishes ? smallest : 0));
        break;
      }
      case Step::Kind::maximum:
        result = a.value < b.value ? extreme(b, a) : extreme(a, b);
        break;
      case Step::Kind::minimum:
        result = a.value < b.value ? extreme(a, b) : extreme(b, a);
        break;
      case Step::Kind::call:
      case Step::Kind::call_of_two:
        result = call(step, a, b);
        break;
    }
  }
}

}  // namespace taso
