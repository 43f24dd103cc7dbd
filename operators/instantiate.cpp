#include "operators/instantiate.h"

#include <algorithm>
#include <array>
#include <map>

#include "graph/reals.h"
#include "graph/words.h"
#include "operators/size_solver.h"
#include "operators/unparse.h"

namespace taso {
namespace {

using Kind = Expression::Kind;

using Base = SizeSolver<class Solver, IntegerEvaluator, Shape>;

// What a solver finds, which its base refers to.
struct Result {
  Instantiation result;
};

class Solver : private Result, public Base {
 public:
  Solver(const OperatorRegistry& registry, const OperatorDefinition& definition, const Attributes& attributes,
         std::span<const TensorType> inputs, Reasons reasons)
      : Base(definition, registry.size_functions(), result.scope, attributes),
        attributes_(attributes),
        inputs_(inputs),
        reasons_(reasons) {
    for (const AttributeSpec& attribute : definition.attributes) {
      if (attribute.kind == AttributeKind::integer)
        scope_.bind(attribute.name, IntegerValue::of(attributes.integer(attribute.name)));
      else if (attribute.kind == AttributeKind::integers)
        scope_.bind(attribute.name, value_of(attributes.integers(attribute.name)));
    }
  }

  /// Everything that does not depend on the attribute `name`; false if that fails. Nothing else may be called then.
  bool prepare(const std::string& name) {
    if (!match_inputs()) return false;
    varying_ = {name};
    auto varies = [&](const Expression& e) { return this->varies(e); };
    for (const Argument& argument : arguments_)
      for (const AxisSpec& axis : argument.spec->axes)
        sizes_vary_ = sizes_vary_ || std::any_of(axis.factors.begin(), axis.factors.end(), varies) ||
                      (axis.length && varies(*axis.length));
    if (sizes_vary_) return true;
    if (!solve_sizes()) return false;
    for (const AttributeSpec& attribute : definition_.attributes)
      if (attribute.length && !length_varies(attribute) && !check_length(attribute)) return false;
    for (const SizeStatement& statement : definition_.statements) {
      if (!varies(statement.value)) {
        if (!this->statement(statement, 0)) return false;
      } else if (!statement.name.empty()) {
        varying_.push_back(statement.name);
      }
    }
    return true;
  }

  /// After prepare(), and only where no size of an input varies: whether all holds with this value of the attribute.
  bool holds_with(const AttributeSpec& attribute, const AttributeValue& value) {
    const std::size_t mark = scope_.size();
    if (const auto* integer = std::get_if<std::int64_t>(&value))
      scope_.bind(attribute.name, IntegerValue::of(*integer));
    else if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value))
      scope_.bind(attribute.name, value_of(*list));
    const bool holds = varying_part_holds();
    scope_.shrink(mark);
    result.outputs.clear();
    evaluator_.clear_status();
    return holds;
  }
  [[nodiscard]] bool sizes_vary() const { return sizes_vary_; }

  Expected<Instantiation> solve() {
    if (!match_inputs() || !solve_sizes() || !check_lengths() || !statements() || !output_shapes())
      return status_.error();
    return std::move(result);
  }

 private:
  friend Base;

  static IntegerValue value_of(std::span<const std::int64_t> values) {
    return IntegerValue::of(Sizes(values.begin(), values.end()));
  }

  [[nodiscard]] bool varies(const Expression& e) const {
    return std::find(varying_.begin(), varying_.end(), e.name) != varying_.end() ||
           std::any_of(e.operands.begin(), e.operands.end(), [&](const Expression& o) { return varies(o); }) ||
           std::any_of(e.ranges.begin(), e.ranges.end(),
                       [&](const Expression::Range& range) { return varies(*range.extent); });
  }

  /// Of an attribute whose length is checked.
  [[nodiscard]] bool length_varies(const AttributeSpec& attribute) const {
    return attribute.name == varying_[0] || varies(*attribute.length);
  }

  bool varying_part_holds() {
    for (const AttributeSpec& attribute : definition_.attributes)
      if (attribute.length && length_varies(attribute) && !check_length(attribute)) return false;
    for (const SizeStatement& statement : definition_.statements)
      if (varies(statement.value) && !this->statement(statement, 0)) return false;
    return output_shapes();
  }

  /// Keeps what is wrong, which message() says; returns false.
  template <class Message>
  bool fail(int constraint, const Message& message) {
    if (reasons_ == Reasons::none) {
      status_ = bad_input({});
      return false;
    }
    std::string shapes;
    for (const TensorType& input : inputs_) shapes += (shapes.empty() ? "" : ", ") + to_string(input.shape);
    status_ = bad_input(definition_.name + " C" + std::to_string(constraint) + ": " + message() +
                        (inputs_.empty() ? "" : "; inputs " + shapes));
    return false;
  }
  /// The same where no constraint is to blame.
  template <class Message>
  bool fail(const Message& message) {
    status_ = bad_input(reasons_ == Reasons::none ? std::string() : definition_.name + ": " + message());
    return false;
  }

  /// Whether elements of words can be what definitions that move them have where nothing is read: numbers of
  /// attributes.
  [[nodiscard]] bool fits_numbers(ElementType type) const {
    return is_real(type) || !definition_.moves ||
           std::all_of(definition_.attributes.begin(), definition_.attributes.end(), [&](const AttributeSpec& spec) {
             return spec.kind != AttributeKind::real || has_number(type, attributes_.real(spec.name));
           });
  }

  bool match_inputs() {
    std::vector<const Shape*> shapes;
    for (const TensorType& input : inputs_) shapes.push_back(&input.shape);
    if (!set_arguments(shapes)) {
      const std::size_t expected = definition_.inputs.size();
      status_ = bad_input(definition_.name + " C0: takes " +
                          (definition_.variadic() ? "one or more inputs"
                                                  : std::to_string(expected) + (expected == 1 ? " input" : " inputs")) +
                          ", not " + std::to_string(inputs_.size()));
      return false;
    }
    // Per domain the first input: all others have its type.
    std::array<const TensorType*, 4> first = {};
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Argument& argument = arguments_[i];
      const TensorType& type = inputs_[i];
      if (!type.known) return fail([&] { return "the shape of " + argument.name() + " is not known"; });
      const ElementDomain domain = definition_.domain_of(i);
      const bool coordinates = domain == ElementDomain::integer && definition_.over_reals;
      if (!definition_.takes(i, type.element))
        return fail(argument.constraint, [&] {
          return argument.name() + " holds " + to_string(type.element) + ", expected " +
                 (coordinates ? "i32 or i64" : elements_of(domain));
        });
      if (!coordinates) {
        const TensorType*& before = first.at(static_cast<std::size_t>(domain));
        if (before == nullptr) before = &type;
        if (type.element != before->element)
          return fail(argument.constraint, [&] {
            return argument.name() + " holds " + to_string(type.element) + ", expected " + to_string(before->element) +
                   ", as the input before";
          });
        if (domain == ElementDomain::any && !fits_numbers(type.element))
          return fail(argument.constraint, [&] {
            return argument.name() + " holds " + to_string(type.element) + ", which does not have the number " +
                   "that stands where nothing is read";
          });
      }
      if (!is_reasonable(type.shape))
        return fail(argument.constraint,
                    [&] { return argument.name() + " has a negative extent or more than 2^40 elements"; });
    }
    return true;
  }

  /// ", as in a" for a name that another input gave.
  [[nodiscard]] std::string origin(const Argument& argument, const Expression& e) const {
    if (e.kind != Kind::name) return "";
    for (const SizeStep& step : definition_.solution) {
      if (!step.unknown) continue;
      const Argument& giver = arguments_[step.input];
      if (giver.spec->axes[step.entry].factors[*step.unknown].name != e.name) continue;
      return &giver == &argument && !argument.spec->variadic() ? "" : ", as in " + giver.name();
    }
    return "";
  }

  static std::string signature(const Argument& argument) {
    return argument.spec->name + (argument.spec->variadic() ? "." + argument.spec->piece : "") +
           to_text(argument.spec->axes);
  }
  static std::string place(const Argument& argument, std::size_t entry) {
    return "axis " +
           std::to_string(static_cast<std::int64_t>(argument.first[entry]) -
                          static_cast<std::int64_t>(argument.shape->size())) +
           " of " + argument.name();
  }

  // ---- the hooks of SizeSolver ----

  bool evaluated(int constraint) {
    if (evaluator_.status()) return true;
    const auto message = [&] { return evaluator_.status().error().message; };
    return constraint == 0 ? fail(message) : fail(constraint, message);
  }

  bool rank_differs(const Argument& argument, std::int64_t covered, bool at_least) {
    return fail(argument.constraint, [&] {
      return argument.name() + " has rank " + std::to_string(argument.shape->size()) + ", expected " +
             (at_least ? "at least " : "") + std::to_string(covered) + " for " + signature(argument);
    });
  }

  std::optional<std::int64_t> rest_length(const Argument& argument, const AxisSpec& axis) {
    const std::int64_t length = evaluator_.integer(*axis.length);
    if (!evaluated(argument.constraint)) return std::nullopt;
    if (length >= 0 && length <= 1024) return length;
    fail(argument.constraint, [&] {
      return "the number " + to_text(*axis.length) + " of axes " + to_text(axis.factors[0]) + ".. of " +
             argument.name() + " is " + std::to_string(length);
    });
    return std::nullopt;
  }

  bool equal_rests(const Argument& argument, std::size_t entry, const IntegerValue& value) {
    const std::span<const std::int64_t> extents = argument.extents(entry);
    if (std::ranges::equal(value.components, extents)) return true;
    return fail(argument.constraint, [&] {
      const Expression& name = argument.spec->axes[entry].factors[0];
      return "the axes " + to_text(name) + ".. of " + argument.name() + " are " +
             to_string(Shape(extents.begin(), extents.end())) + ", expected " +
             to_string(Shape(value.components.begin(), value.components.end())) + origin(argument, name);
    });
  }

  bool equal_extents(const Argument& argument, std::size_t entry, std::int64_t expected) {
    const std::int64_t extent = argument.extents(entry)[0];
    if (extent == expected) return true;
    return fail(argument.constraint, [&] {
      const AxisSpec& axis = argument.spec->axes[entry];
      return place(argument, entry) + " is " + std::to_string(extent) + ", expected " + to_text(axis) + " = " +
             std::to_string(expected) + origin(argument, axis.factors[0]);
    });
  }

  std::optional<std::int64_t> quotient(const Argument& argument, std::size_t entry, std::int64_t product,
                                       const Expression& unknown) {
    const std::int64_t extent = argument.extents(entry)[0];
    const AxisSpec& axis = argument.spec->axes[entry];
    if (product == 0) {
      fail(argument.constraint, [&] {
        return place(argument, entry) + " is " + to_text(axis) + ", and " + unknown.name +
               " cannot be known where another factor is 0";
      });
      return std::nullopt;
    }
    if (extent % product != 0) {
      fail(argument.constraint, [&] {
        return place(argument, entry) + " is " + std::to_string(extent) + ", expected a multiple of " +
               std::to_string(product) + " for " + to_text(axis);
      });
      return std::nullopt;
    }
    return extent / product;
  }

  bool equal_lengths(const AttributeSpec& attribute, std::int64_t length, std::int64_t expected) {
    if (length == expected) return true;
    const auto message = [&] {
      return attribute.name + " has " + std::to_string(length) + " elements, expected " + to_text(*attribute.length) +
             " = " + std::to_string(expected);
    };
    return attribute.constraint == 0 ? fail(message) : fail(attribute.constraint, message);
  }

  bool require(const SizeStatement& statement) {
    const bool holds = evaluator_.condition(statement.value, true);
    if (!evaluated(statement.constraint)) return false;
    return holds || fail(statement.constraint, [&] {
             return statement.message + " (" + to_text(statement.value) + ")" + values_of(statement.value);
           });
  }

  bool output(Shape shape) {
    if (!is_reasonable(shape))
      return fail([&] {
        return "the output would be " + to_string(shape) + ", which has a negative extent or more than 2^40 elements";
      });
    result.outputs.push_back(std::move(shape));
    return true;
  }

  /// " where oh = 0, ow = 3": the numbers behind a failed requirement.
  std::string values_of(const Expression& e) {
    std::map<std::string, std::string> values;
    collect(e, values);
    std::string text;
    for (const auto& [name, value] : values) text += (text.empty() ? " where " : ", ") + name + " = " + value;
    return text;
  }
  void collect(const Expression& e, std::map<std::string, std::string>& values) {
    if (e.kind == Kind::name && known(e.name)) {
      const IntegerValue& value = *std::as_const(scope_).find(e.name);
      values[e.name] = value.vector ? to_string(Shape(value.components.begin(), value.components.end()))
                                    : std::to_string(value.components[0]);
    }
    for (const Expression& operand : e.operands) collect(operand, values);
    for (const Expression::Range& range : e.ranges) collect(*range.extent, values);
  }

  const Attributes& attributes_;
  std::span<const TensorType> inputs_;
  Reasons reasons_;
  Status status_;                          ///< The first failure.
  std::vector<std::string_view> varying_;  ///< After prepare(): the attribute, and lets that depend on it.
  bool sizes_vary_ = false;                ///< Sizes of inputs depend on it.
};

}  // namespace

Expected<Instantiation> instantiate(const OperatorRegistry& registry, const OperatorDefinition& definition,
                                    const Attributes& attributes, std::span<const TensorType> inputs, Reasons reasons) {
  for (const AttributeSpec& attribute : definition.attributes)
    if (attributes.find(attribute.name) == nullptr ||
        attributes.find(attribute.name)->index() != static_cast<std::size_t>(attribute.kind)) {
      // Incomplete attributes: report as complete() would.
      TASO_ASSIGN(const Attributes completed, registry.complete(definition.name, attributes));
      return Solver(registry, definition, completed, inputs, reasons).solve();
    }
  return Solver(registry, definition, attributes, inputs, reasons).solve();
}

std::vector<bool> instantiable(const OperatorRegistry& registry, const OperatorDefinition& definition,
                               Attributes attributes, std::span<const TensorType> inputs, const std::string& name,
                               std::span<const AttributeValue> values) {
  std::vector<bool> result(values.size(), false);
  const AttributeSpec* attribute = definition.find_attribute(name);
  if (attribute == nullptr) return result;
  auto fits = [&](const AttributeValue& value) { return value.index() == static_cast<std::size_t>(attribute->kind); };
  const auto first = std::find_if(values.begin(), values.end(), fits);
  if (first == values.end()) return result;
  attributes.set(name, *first);
  Solver solver(registry, definition, attributes, inputs, Reasons::none);
  if (!solver.prepare(name)) return result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!fits(values[i])) continue;
    if (solver.sizes_vary()) {
      attributes.set(name, values[i]);
      result[i] = Solver(registry, definition, attributes, inputs, Reasons::none).solve().ok();
    } else {
      result[i] = solver.holds_with(*attribute, values[i]);
    }
  }
  return result;
}

}  // namespace taso
