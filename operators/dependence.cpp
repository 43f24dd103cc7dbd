#include "operators/dependence.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operators/registry.h"
#include "support/reversed.h"

namespace taso {
namespace {

using Kind = Expression::Kind;

/// What is known of a scalar expression as a function of the elements of the chosen inputs, which are called x below.
/// The default is the value of a literal 0.
struct AbstractValue {
  // It is a sum of these parts at most.
  bool constant = false;  ///< One without x that may differ from 0.
  bool linear = false;    ///< One that is linear in x.
  bool other = false;     ///< Any other.

  bool nondecreasing = true, nonincreasing = true;
  bool maxima = true;  ///< It maps a maximum to the maximum of the images.

  bool nonnegative = true, nonpositive = true;
  bool nonzero = false;

  [[nodiscard]] bool depends() const { return linear || other; }
  [[nodiscard]] bool is_zero() const { return !constant && !linear && !other; }
  [[nodiscard]] bool positive() const { return nonnegative && nonzero; }
  bool operator==(const AbstractValue&) const = default;

  /// Any function of x.
  static AbstractValue anything() {
    return {.other = true,
            .nondecreasing = false,
            .nonincreasing = false,
            .maxima = false,
            .nonnegative = false,
            .nonpositive = false};
  }
  /// Any number without x.
  static AbstractValue fixed() { return {.constant = true, .nonnegative = false, .nonpositive = false}; }
  static AbstractValue number(double value) {
    if (value == 0) return {};
    return {.constant = true, .nonnegative = value > 0, .nonpositive = value < 0, .nonzero = value == value};
  }
  /// An element of x.
  static AbstractValue element() {
    return {.linear = true, .nonincreasing = false, .nonnegative = false, .nonpositive = false};
  }
};

/// What holds of both values where it is not known which of them an expression has.
AbstractValue either(const AbstractValue& a, const AbstractValue& b) {
  return {.constant = a.constant || b.constant,
          .linear = a.linear || b.linear,
          .other = a.other || b.other,
          .nondecreasing = a.nondecreasing && b.nondecreasing,
          .nonincreasing = a.nonincreasing && b.nonincreasing,
          .maxima = a.maxima && b.maxima,
          .nonnegative = a.nonnegative && b.nonnegative,
          .nonpositive = a.nonpositive && b.nonpositive,
          .nonzero = a.nonzero && b.nonzero};
}

AbstractValue negative(AbstractValue value) {
  std::swap(value.nondecreasing, value.nonincreasing);
  std::swap(value.nonnegative, value.nonpositive);
  value.maxima = !value.depends();
  return value;
}

AbstractValue sum(const AbstractValue& a, const AbstractValue& b) {
  AbstractValue result = either(a, b);
  if (a.depends() && b.depends()) result.maxima = false;
  result.nonzero = (result.nonnegative || result.nonpositive) && (a.nonzero || b.nonzero);
  return result;
}

/// `dependent` times a factor without x of the sign of `factor`.
AbstractValue scaled(const AbstractValue& dependent, const AbstractValue& factor) {
  if (factor.is_zero()) return {};
  AbstractValue result = dependent;
  if (!factor.nonnegative) {
    result = factor.nonpositive ? negative(dependent) : dependent;
    if (!factor.nonpositive) {
      const bool moves = dependent.depends();
      result.nondecreasing = result.nonincreasing = result.maxima = !moves;
      result.nonnegative = result.nonpositive = false;
    }
  }
  result.nonzero = dependent.nonzero && factor.nonzero;
  return result;
}

AbstractValue product(const AbstractValue& a, const AbstractValue& b) {
  if (a.is_zero() || b.is_zero()) return {};
  if (!b.depends()) return scaled(a, b);
  if (!a.depends()) return scaled(b, a);
  AbstractValue result = AbstractValue::anything();
  result.nonnegative = (a.nonnegative && b.nonnegative) || (a.nonpositive && b.nonpositive);
  result.nonpositive = (a.nonnegative && b.nonpositive) || (a.nonpositive && b.nonnegative);
  result.nonzero = a.nonzero && b.nonzero;
  if (a.nonnegative && b.nonnegative) {
    result.nondecreasing = a.nondecreasing && b.nondecreasing;
    result.nonincreasing = a.nonincreasing && b.nonincreasing;
  }
  return result;
}

/// The inverse of a value, which is not 0 where the definition has a meaning.
AbstractValue inverse(const AbstractValue& value) {
  AbstractValue result = value.depends() ? AbstractValue::anything() : AbstractValue::fixed();
  result.nonnegative = value.nonnegative;
  result.nonpositive = value.nonpositive && !value.nonnegative;
  result.nonzero = true;
  // On either side of 0 the inverse decreases.
  if (value.depends() && (value.nonnegative || value.nonpositive)) {
    result.nondecreasing = value.nonincreasing;
    result.nonincreasing = value.nondecreasing;
  }
  return result;
}

AbstractValue largest(const std::vector<AbstractValue>& values) {
  AbstractValue result = values.front();
  for (std::size_t i = 1; i < values.size(); ++i) {
    const AbstractValue& next = values[i];
    const AbstractValue before = result;
    result = either(before, next);
    result.nonnegative = before.nonnegative || next.nonnegative;
    result.nonzero = before.positive() || next.positive() || result.nonzero;
    result.other = result.depends();
  }
  return result;
}

/// A minimum is a maximum of negatives; but with numbers without x it is a nondecreasing function of the rest.
AbstractValue smallest(const std::vector<AbstractValue>& values) {
  std::vector<AbstractValue> negatives;
  negatives.reserve(values.size());
  for (const AbstractValue& value : values) negatives.push_back(negative(value));
  AbstractValue result = negative(largest(negatives));
  const auto dependent =
      std::count_if(values.begin(), values.end(), [](const AbstractValue& value) { return value.depends(); });
  result.maxima = dependent <= 1 &&
                  std::all_of(values.begin(), values.end(), [](const AbstractValue& value) { return value.maxima; });
  return result;
}

/// What is known of the sizes and integer attributes of a definition: lower bounds.
class LowerBounds {
 public:
  explicit LowerBounds(const OperatorDefinition& definition) : definition_(definition) {
    for (const SizeStatement& statement : definition.statements)
      if (statement.name.empty()) assume(statement.value);
  }

  /// A number that the size, or every element of the vector, is not less than.
  [[nodiscard]] std::optional<std::int64_t> of(const Expression& e) const {
    if (std::abs(e.integer) > limit) return std::nullopt;
    switch (e.kind) {
      case Kind::integer:
        return e.integer;
      case Kind::name:
        return of_name(e.name);
      case Kind::piece:
        return 0;
      case Kind::element:
        return of(e.operands[0]);
      case Kind::list:
      case Kind::add:
      case Kind::multiply:
        return combined(e);
      case Kind::call:
        return of_call(e);
      default:
        return std::nullopt;
    }
  }

 private:
  /// Beyond it nothing is claimed, so that no arithmetic overflows.
  static constexpr std::int64_t limit = 1 << 20;

  void assume(const Expression& e) {
    if (e.kind == Kind::conjunction) {
      assume(e.operands[0]);
      assume(e.operands[1]);
    } else if (e.operands.size() == 2 && e.operands[0].kind == Kind::name && e.operands[1].kind == Kind::integer &&
               (e.kind == Kind::greater || e.kind == Kind::greater_equal)) {
      const std::int64_t least = e.operands[1].integer + (e.kind == Kind::greater ? 1 : 0);
      const auto [place, added] = required_.emplace(e.operands[0].name, least);
      if (!added) place->second = std::max(place->second, least);
    }
  }

  [[nodiscard]] std::optional<std::int64_t> of_name(const std::string& name) const {
    std::optional<std::int64_t> least;
    if (const auto found = required_.find(name); found != required_.end()) least = found->second;
    if (definition_.find_attribute(name) != nullptr) return least;
    for (const SizeStatement& statement : definition_.statements)
      if (statement.name == name) {
        const std::optional<std::int64_t> value = of(statement.value);
        return !least || (value && *value > *least) ? value : least;
      }
    return std::max<std::int64_t>(least.value_or(0), 0);  // An extent.
  }

  [[nodiscard]] std::optional<std::int64_t> combined(const Expression& e) const {
    std::optional<std::int64_t> result;
    for (const Expression& operand : e.operands) {
      const std::optional<std::int64_t> bound = of(operand);
      if (!bound || *bound > limit || (e.kind == Kind::multiply && *bound < 0)) return std::nullopt;
      if (!result)
        result = bound;
      else if (e.kind == Kind::list)
        result = std::min(*result, *bound);
      else
        result = e.kind == Kind::add ? *result + *bound : *result * *bound;
    }
    return result;
  }

  [[nodiscard]] std::optional<std::int64_t> of_call(const Expression& e) const {
    switch (e.builtin) {
      case SizeBuiltin::length:
        return 0;
      case SizeBuiltin::sum: {
        const std::optional<std::int64_t> bound = of(e.operands[0]);
        return bound && *bound >= 0 ? std::optional<std::int64_t>(0) : std::nullopt;
      }
      case SizeBuiltin::prod: {
        const std::optional<std::int64_t> bound = of(e.operands[0]);
        return bound && *bound >= 0 ? std::optional<std::int64_t>(std::min<std::int64_t>(*bound, 1)) : std::nullopt;
      }
      case SizeBuiltin::repeat:
      case SizeBuiltin::first:
      case SizeBuiltin::last:
        return of(e.operands[0]);
      case SizeBuiltin::on: {
        const std::optional<std::int64_t> named = of(e.operands[1]), others = of(e.operands[2]);
        return named && others ? std::optional<std::int64_t>(std::min(*named, *others)) : std::nullopt;
      }
      case SizeBuiltin::max: {
        std::optional<std::int64_t> result;
        for (const Expression& operand : e.operands)
          if (const auto bound = of(operand); bound && (!result || *bound > *result)) result = bound;
        return result;
      }
      default:
        return std::nullopt;
    }
  }

  const OperatorDefinition& definition_;
  std::map<std::string, std::int64_t, std::less<>> required_;
};

/// Values of the scalar expressions of one definition.
class DependenceInterpreter {
 public:
  DependenceInterpreter(const OperatorRegistry& registry, const OperatorDefinition& definition,
                        std::span<const std::size_t> inputs, const Attributes* attributes)
      : registry_(registry), definition_(definition), attributes_(attributes), bounds_(definition) {
    for (std::size_t i = 0; i < definition.inputs.size(); ++i) {
      const bool chosen = std::find(inputs.begin(), inputs.end(), i) != inputs.end();
      tensors_[definition.inputs[i].name] = chosen ? AbstractValue::element() : AbstractValue::fixed();
      if (chosen && definition.inputs[i].integers()) coordinates_.push_back(definition.inputs[i].name);
    }
  }

  AbstractValue run() {
    // The equations of an intermediate stand before those that read it, but for recurrences: their tensors have more
    // and more of the values that come up, until a step brings no new one. The first pass is the first step.
    const std::vector<Equation>& equations = definition_.equations;
    for (std::size_t begin = 0, end = 0; begin < equations.size(); begin = end) {
      const std::optional<Recurrence> recurrence = recurrence_of(equations[begin]);
      do {
        ++end;
      } while (recurrence && end < equations.size() && is_of(*recurrence, equations[end]));
      bool progress = true;
      while (progress) {
        progress = false;
        for (std::size_t i = begin; i < end; ++i) progress = write(equations[i]) || progress;
        progress = progress && recurrence;
      }
    }
    return tensors_.at("out");
  }

 private:
  [[nodiscard]] std::optional<Recurrence> recurrence_of(const Equation& equation) const {
    const IntermediateSpec* intermediate = definition_.find_intermediate(equation.target);
    return intermediate == nullptr ? std::nullopt : intermediate->recurrence;
  }
  [[nodiscard]] bool is_of(const Recurrence& recurrence, const Equation& equation) const {
    const std::optional<Recurrence> other = recurrence_of(equation);
    return other && other->first == recurrence.first;
  }

  /// Adds what an equation gives to what its tensor may be; whether that is new.
  bool write(const Equation& equation) {
    const AbstractValue value = of(equation.value);
    const auto [place, added] = tensors_.emplace(equation.target, value);
    if (added) return true;
    const AbstractValue both = either(place->second, value);
    if (both == place->second) return false;
    place->second = both;
    return true;
  }

  AbstractValue of(const Expression& e) {
    if (e.sort == Sort::integer) return size(e);
    switch (e.kind) {
      case Kind::real:
        return AbstractValue::number(e.real);
      case Kind::infinity:
        return AbstractValue::number(1);
      case Kind::name:
        return name(e.name);
      case Kind::call:
        return call(e);
      case Kind::negate:
        return negative(of(e.operands[0]));
      case Kind::add:
        return sum(of(e.operands[0]), of(e.operands[1]));
      case Kind::subtract:
        return sum(of(e.operands[0]), negative(of(e.operands[1])));
      case Kind::multiply:
        return product(of(e.operands[0]), of(e.operands[1]));
      case Kind::divide:
        return product(of(e.operands[0]), inverse(of(e.operands[1])));
      case Kind::conditional:
        if (names_chosen_coordinates(e.operands[0])) return AbstractValue::anything();
        return either(of(e.operands[1]), of(e.operands[2]));
      case Kind::read:
        return read(e);
      case Kind::valid: {
        if (names_chosen_coordinates(e.operands[0])) return AbstractValue::anything();
        AbstractValue value = AbstractValue::fixed();
        value.nonnegative = true;
        return value;
      }
      case Kind::reduce:
        return reduction(e);
      default:
        return AbstractValue::anything();
    }
  }

  AbstractValue size(const Expression& e) {
    if (e.kind == Kind::integer) return AbstractValue::number(static_cast<double>(e.integer));
    if (e.kind == Kind::negate) return negative(size(e.operands[0]));
    AbstractValue value = AbstractValue::fixed();
    const std::optional<std::int64_t> bound = bounds_.of(e);
    value.nonnegative = bound && *bound >= 0;
    value.nonzero = bound && *bound > 0;
    return value;
  }

  /// A parameter of a function, or an attribute.
  AbstractValue name(const std::string& name) {
    for (const auto& [parameter, value] : reversed(parameters_))
      if (parameter == name) return value;
    if (attributes_ != nullptr && parameters_.empty())
      if (const AttributeValue* value = attributes_->find(name); value != nullptr) {
        if (const auto* real = std::get_if<double>(value)) return AbstractValue::number(*real);
        if (const auto* integer = std::get_if<std::int64_t>(value))
          return AbstractValue::number(static_cast<double>(*integer));
      }
    return AbstractValue::fixed();
  }

  AbstractValue read(const Expression& e) {
    if (std::any_of(e.operands.begin(), e.operands.end(),
                    [&](const Expression& coordinate) { return names_chosen_coordinates(coordinate); }))
      return AbstractValue::anything();
    const auto inside = tensors_.find(e.name);
    // Of a recurrence, before its first step.
    if (inside == tensors_.end()) return e.fallback == nullptr ? AbstractValue::anything() : of(*e.fallback);
    return e.fallback == nullptr ? inside->second : either(inside->second, of(*e.fallback));
  }

  AbstractValue reduction(const Expression& e) {
    const AbstractValue body = of(e.operands[0]);
    AbstractValue result = body;
    result.nonzero = false;
    if (e.name == "sum") {
      if (body.depends()) result.maxima = false;
    } else if (e.name == "prod") {
      if (body.depends()) {
        result = AbstractValue::anything();
        result.nondecreasing = body.nonnegative && body.nondecreasing;
        result.nonincreasing = body.nonnegative && body.nonincreasing;
      } else {
        result = AbstractValue::fixed();
      }
      result.nonnegative = body.nonnegative;
      result.nonzero = body.nonzero;
    } else {
      // Of nothing it is an infinity.
      result.other = body.depends();
      result.constant = true;
      if (e.name == "max") {
        result.nonnegative = false;
      } else {
        result.nonpositive = false;
        result.maxima = !body.depends();
      }
    }
    return result;
  }

  AbstractValue call(const Expression& e) {
    std::vector<AbstractValue> arguments;
    for (const Expression& operand : e.operands) arguments.push_back(of(operand));
    if (e.name == "max") return largest(arguments);
    if (e.name == "min") return smallest(arguments);
    std::string name = e.name;
    // The body of a function, where parameters are bound, has no attributes.
    if (parameters_.empty() && definition_.find_attribute(name) != nullptr) {
      const AttributeValue* value = attributes_ == nullptr ? nullptr : attributes_->find(name);
      if (value == nullptr) return any_function(arguments);
      name = std::get<SymbolValue>(*value).name;
    }
    const FunctionDefinition* function = registry_.find_function(name);
    return function == nullptr ? any_function(arguments) : applied(*function, arguments);
  }

  static AbstractValue any_function(const std::vector<AbstractValue>& arguments) {
    const bool depends = std::any_of(arguments.begin(), arguments.end(),
                                     [](const AbstractValue& argument) { return argument.depends(); });
    return depends ? AbstractValue::anything() : AbstractValue::fixed();
  }

  AbstractValue applied(const FunctionDefinition& function, const std::vector<AbstractValue>& arguments) {
    // What is declared of an abbreviation is not used: its definition says all.
    if (!function.is_primitive()) {
      // The body names its parameters only.
      std::vector<std::pair<std::string, AbstractValue>> bound;
      for (std::size_t i = 0; i < arguments.size(); ++i) bound.emplace_back(function.parameters[i], arguments[i]);
      std::swap(bound, parameters_);
      const AbstractValue result = of(*function.definition);
      std::swap(bound, parameters_);
      return result;
    }
    AbstractValue result = any_function(arguments);
    const AbstractValue& argument = arguments[0];
    if (function.zero_at_zero && arguments.size() == 1 && argument.is_zero()) return {};
    if (function.monotone && arguments.size() == 1) {
      result.nondecreasing = result.nondecreasing || argument.nondecreasing;
      result.nonincreasing = result.nonincreasing || argument.nonincreasing;
      // Of the maximum of parts a function may be defined while it is not of one of them: log(max(-1, 2)).
      result.maxima = result.maxima || (argument.maxima && function.domain == ArgumentDomain::all);
    }
    result.nonnegative = result.nonnegative || function.positive || function.nonnegative;
    result.nonzero = result.nonzero || function.positive;
    return result;
  }

  /// Whether an expression reads an input of integers that is chosen.
  [[nodiscard]] bool names_chosen_coordinates(const Expression& e) const {
    return (e.kind == Kind::read &&
            std::find(coordinates_.begin(), coordinates_.end(), e.name) != coordinates_.end()) ||
           std::any_of(e.operands.begin(), e.operands.end(),
                       [&](const Expression& operand) { return names_chosen_coordinates(operand); });
  }

  const OperatorRegistry& registry_;
  const OperatorDefinition& definition_;
  const Attributes* attributes_;
  LowerBounds bounds_;
  std::map<std::string, AbstractValue, std::less<>> tensors_;
  std::vector<std::string> coordinates_;  // Chosen inputs of integers.
  std::vector<std::pair<std::string, AbstractValue>> parameters_;
};

}  // namespace

Dependence dependence(const OperatorRegistry& registry, std::string_view op, std::span<const std::size_t> inputs,
                      const Attributes* attributes) {
  const OperatorDefinition* definition = registry.find(op);
  TASO_CHECK(definition != nullptr, "the dependence of an operator that the registry lacks is asked for");
  // Nothing is known of functions of integers and truth values.
  if (!definition->over_reals) return {};
  const AbstractValue value = DependenceInterpreter(registry, *definition, inputs, attributes).run();
  return {.linear = !value.constant && !value.other,
          .affine = !value.other,
          .nondecreasing = value.nondecreasing,
          .nonincreasing = value.nonincreasing,
          .preserves_maxima = value.maxima};
}

bool linear_in(const OperatorRegistry& registry, std::string_view op, std::size_t input, const Attributes* attributes) {
  return dependence(registry, op, std::span(&input, 1), attributes).linear;
}

bool monotone_in(const OperatorRegistry& registry, std::string_view op, std::size_t input,
                 const Attributes* attributes) {
  return dependence(registry, op, std::span(&input, 1), attributes).nondecreasing;
}

}  // namespace taso
