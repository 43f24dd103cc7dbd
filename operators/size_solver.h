/// Types of an application, found once for all domains of numbers: the sizes of a definition from its attributes and
/// the shapes of its inputs, then its lets and requirements, then the shapes of its outputs.
///
/// Derived (CRTP) says what is done where numbers must be equal, where one is divided by another and where a
/// requirement stands: types at concrete shapes check (operators/instantiate.cpp), proofs for all sizes assume
/// (verifier/unbounded/symbolic_types.cpp), graphs of symbolic extents demand that it follows
/// (verifier/unbounded/infer.cpp). Every hook returns whether to go on; why not is for Derived to keep:
///   evaluated(constraint)                       the evaluator met no failure
///   rank_differs(argument, covered, at_least)   the rank is not `covered` (or not at least that); returns false
///   rest_length(argument, axis)                 how many axes a rest has that gives its length, or nothing; if it is
///                                               not up to Derived: a number from 0 to the rank
///   equal_rests(argument, entry, value)         the extents of a rest are those of a name that is known
///   equal_extents(argument, entry, expected)    an extent is a product that is known
///   quotient(argument, entry, product, unknown) an extent divided by the factors that are known, or nothing
///   equal_lengths(attribute, length, expected)  a list has as many elements as its declaration says
///   require(statement)                          a requirement
///   output(shape)                               one more output
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operators/definition.h"
#include "operators/size_interpreter.h"

namespace taso {

template <class Derived, class Evaluator, class ShapeOf>
class SizeSolver {
 public:
  using Number = typename Evaluator::Number;
  using Value = typename Evaluator::Value;
  using Scope = typename Evaluator::Scope;
  using Shape = ShapeOf;

  /// One input tensor with the specification it must fit.
  struct Argument {
    const InputSpec* spec = nullptr;
    std::size_t number = 0;  ///< Of a tensor of a variadic input.
    int constraint = 0;      ///< That it fits.
    const Shape* shape = nullptr;
    std::vector<std::size_t> first = {};  ///< Once aligned: the first axis of each entry, and the end.

    /// As messages call it: "x", "x.1".
    [[nodiscard]] std::string name() const {
      return spec->variadic() ? spec->name + "." + std::to_string(number) : spec->name;
    }
    /// The extents of an entry.
    [[nodiscard]] std::span<const Number> extents(std::size_t entry) const {
      return std::span(shape->data() + first[entry], first[entry + 1] - first[entry]);
    }
  };

 protected:
  template <class... Arguments>
  explicit SizeSolver(const OperatorDefinition& definition, const SizeFunctions& functions, Scope& scope,
                      Arguments&&... arguments)
      : definition_(definition), scope_(scope), evaluator_(functions, scope, std::forward<Arguments>(arguments)...) {}

  /// One for each input; false if there are too few or too many.
  [[nodiscard]] bool set_arguments(std::span<const Shape* const> shapes) {
    const bool variadic = definition_.variadic();
    if (variadic ? shapes.empty() : shapes.size() != definition_.inputs.size()) return false;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const std::size_t position = variadic ? 0 : i;
      arguments_.push_back({&definition_.inputs[position], i, static_cast<int>(position) + 1, shapes[i]});
    }
    return true;
  }

  [[nodiscard]] bool known(std::string_view name) const { return std::as_const(scope_).find(name) != nullptr; }
  /// Whether all names in `e` are known.
  [[nodiscard]] bool computable(const Expression& e) const {
    if (e.kind == Expression::Kind::name || e.kind == Expression::Kind::piece) return known(e.name);
    for (const Expression& operand : e.operands)
      if (!computable(operand)) return false;
    return true;
  }

  [[nodiscard]] std::optional<std::int64_t> rest_length(const Argument& argument, const AxisSpec& axis) {
    const auto rank = static_cast<std::int64_t>(argument.shape->size());
    const auto length = evaluator_.domain().within(
        evaluator_.scalar(*axis.length), 0, rank, *axis.length, *axis.length, [&](std::int64_t found) {
          return "is " + std::to_string(found) + "; 0 to " + std::to_string(rank) + " axes are possible";
        });
    return self().evaluated(argument.constraint) ? length : std::nullopt;
  }

  [[nodiscard]] bool solve_sizes() {
    if (!definition_.variadic()) return solve_sizes(0);
    for (std::size_t i = 0; i < arguments_.size(); ++i)
      if (!solve_sizes(i)) return false;
    return true;
  }

  [[nodiscard]] bool check_lengths() {
    for (const AttributeSpec& attribute : definition_.attributes)
      if (attribute.length && !check_length(attribute)) return false;
    return true;
  }
  [[nodiscard]] bool check_length(const AttributeSpec& attribute) {
    const Number expected = evaluator_.scalar(*attribute.length);
    const Value* list = std::as_const(scope_).find(attribute.name);
    return self().evaluated(attribute.constraint) &&
           self().equal_lengths(attribute, static_cast<std::int64_t>(list->components.size()), expected);
  }

  /// `constraint`: the number of the requirement before, or that of the first one.
  [[nodiscard]] bool statement(const SizeStatement& statement, int constraint) {
    if (statement.name.empty()) return self().require(statement);
    Value value = evaluator_.value(statement.value);
    if (!self().evaluated(constraint)) return false;
    scope_.bind(statement.name, std::move(value));
    return true;
  }

  [[nodiscard]] bool statements() {
    int next = definition_.statements.empty() ? 0 : 1;
    for (const SizeStatement& statement : definition_.statements) {
      if (!this->statement(statement, next)) return false;
      if (statement.name.empty()) next = statement.constraint + 1;
    }
    return true;
  }

  [[nodiscard]] bool output_shapes() {
    const OutputSpec& output = definition_.output;
    std::int64_t count = 1;
    if (output.count) {
      constexpr std::int64_t most = 1024;
      const auto given = evaluator_.domain().within(
          evaluator_.scalar(*output.count), 0, most, *output.count, *output.count, [](std::int64_t found) {
            return "is " + std::to_string(found) + "; 0 to " + std::to_string(most) + " outputs are possible";
          });
      if (!self().evaluated(0)) return false;
      count = given.value_or(0);
    }
    for (std::int64_t k = 0; k < count; ++k) {
      const std::size_t mark = scope_.size();
      if (output.count) scope_.bind(output.piece, Value::of(evaluator_.domain().number(k)));
      Shape shape;
      for (const AxisSpec& axis : output.axes) extents_of(axis, shape);
      scope_.shrink(mark);
      if (!self().evaluated(0) || !self().output(std::move(shape))) return false;
    }
    return true;
  }

  const OperatorDefinition& definition_;
  Scope& scope_;
  Evaluator evaluator_;
  std::vector<Argument> arguments_;

 private:
  [[nodiscard]] Derived& self() { return static_cast<Derived&>(*this); }

  /// The steps of the solution; those of a variadic input for one of its tensors.
  [[nodiscard]] bool solve_sizes(std::size_t tensor) {
    for (const SizeStep& step : definition_.solution) {
      Argument& argument = arguments_[step.input + tensor];
      if (!(step.entry == SizeStep::align ? align(argument) : solve_entry(argument, step))) return false;
    }
    return true;
  }

  /// Finds which axes of the tensor each entry covers.
  [[nodiscard]] bool align(Argument& argument) {
    const auto rank = static_cast<std::int64_t>(argument.shape->size());
    std::int64_t covered = 0;
    bool open = false;  // a rest that takes what is left
    absl::InlinedVector<std::int64_t, 8> lengths;
    for (const AxisSpec& axis : argument.spec->axes) {
      std::int64_t length = 1;
      if (axis.kind == AxisSpec::Kind::rest) {
        if (const Value* value = std::as_const(scope_).find(axis.factors[0].name)) {
          length = static_cast<std::int64_t>(value->components.size());
        } else if (axis.length && computable(*axis.length)) {
          const std::optional<std::int64_t> given = self().rest_length(argument, axis);
          if (!given) return false;
          length = *given;
        } else {
          open = true;
          length = -1;
        }
      }
      lengths.push_back(length);
      if (length > 0) covered += length;
    }
    if (open ? rank < covered : rank != covered) return self().rank_differs(argument, covered, open);
    std::size_t at = 0;
    argument.first.reserve(lengths.size() + 1);
    for (const std::int64_t length : lengths) {
      argument.first.push_back(at);
      at += static_cast<std::size_t>(length < 0 ? rank - covered : length);
    }
    argument.first.push_back(at);
    return true;
  }

  /// Binds or compares the names of one entry.
  [[nodiscard]] bool solve_entry(const Argument& argument, const SizeStep& step) {
    const AxisSpec& axis = argument.spec->axes[step.entry];
    const std::span<const Number> extents = argument.extents(step.entry);
    if (axis.kind == AxisSpec::Kind::rest) {
      const std::string& name = axis.factors[0].name;
      if (known(name)) return self().equal_rests(argument, step.entry, *std::as_const(scope_).find(name));
      scope_.bind(name, Value::of(typename Value::Components(extents.begin(), extents.end())));
      return true;
    }
    if (axis.factors[0].kind == Expression::Kind::piece && axis.kind == AxisSpec::Kind::size) {
      const std::string& name = axis.factors[0].name;
      if (!known(name)) scope_.bind(name, Value::of(typename Value::Components()));
      scope_.find(name)->components.push_back(extents[0]);
      return true;
    }
    // A name that an earlier tensor of a variadic input gave is not unknown any more.
    const bool finds = step.unknown && !known(axis.factors[*step.unknown].name);
    if (finds && axis.factors.size() == 1) {
      scope_.bind(axis.factors[0].name, Value::of(extents[0]));
      return true;
    }
    Number product = evaluator_.domain().number(1);
    for (std::size_t f = 0; f < axis.factors.size(); ++f) {
      if (finds && f == *step.unknown) continue;
      const Expression& factor = axis.factors[f];
      product = evaluator_.domain().multiply(product, evaluator_.scalar(factor), factor);
    }
    if (!self().evaluated(argument.constraint)) return false;
    if (!finds) return self().equal_extents(argument, step.entry, product);
    const Expression& unknown = axis.factors[*step.unknown];
    std::optional<Number> quotient = self().quotient(argument, step.entry, std::move(product), unknown);
    if (!quotient) return false;
    scope_.bind(unknown.name, Value::of(std::move(*quotient)));
    return true;
  }

  /// Appends the extents of an axis of an output.
  void extents_of(const AxisSpec& axis, Shape& shape) {
    if (axis.kind == AxisSpec::Kind::rest) {
      const Value extents = evaluator_.value(axis.factors[0]);
      shape.insert(shape.end(), extents.components.begin(), extents.components.end());
      return;
    }
    Number extent = evaluator_.scalar(axis.factors[0]);
    for (std::size_t f = 1; f < axis.factors.size(); ++f)
      extent = evaluator_.domain().multiply(extent, evaluator_.scalar(axis.factors[f]), axis.factors[f]);
    shape.push_back(std::move(extent));
  }
};

}  // namespace taso
