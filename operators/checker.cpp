#include "operators/checker.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "operators/expression_checker.h"
#include "operators/recurrences.h"
#include "operators/unparse.h"

namespace taso {
namespace {

using Kind = Expression::Kind;

class Checker : private ExpressionChecker {
 public:
  explicit Checker(const Declarations& declarations) : ExpressionChecker(declarations) {}

  Status function(FunctionDefinition& definition) {
    if (!definition.is_real() && (definition.definition || definition.declares_anything()))
      return bad_input("'" + definition.name +
                           "' is no function of reals: it is a primitive of which nothing is declared, neither a "
                           "definition nor a fact nor a law",
                       definition.where);
    if (!definition.laws.empty() && definition.definition)
      return bad_input("'" + definition.name + "' is defined by an expression: its laws follow and are not declared",
                       definition.laws[0].where);
    for (FunctionLaw& law : definition.laws) TASO_RETURN_IF_ERROR(function_law(definition, law));
    if (!definition.definition) return {};
    for (const std::string& parameter : definition.parameters) scope_.emplace_back(parameter, Sort::real);
    TASO_RETURN_IF_ERROR(real(*definition.definition));
    scope_.clear();
    return {};
  }

  Status function_law(const FunctionDefinition& function, FunctionLaw& law) {
    for (const std::string& variable : law.variables) scope_.emplace_back(variable, Sort::real);
    TASO_RETURN_IF_ERROR(real(law.left));
    TASO_RETURN_IF_ERROR(real(law.right));
    scope_.clear();
    const Expression& left = law.left;
    auto is_call = [&](const Expression& e) {
      return e.kind == Kind::call && e.name == function.name &&
             std::all_of(e.operands.begin(), e.operands.end(), is_law_argument);
    };
    const bool square = left.kind == Kind::multiply && is_call(left.operands[0]) &&
                        left.operands[0].operands.size() == 1 && left.operands[0].operands[0].kind == Kind::name &&
                        to_text(left.operands[0]) == to_text(left.operands[1]);
    if (!is_call(left) && !square)
      return bad_input("the left side of a law of " + function.name +
                           " is a call of it, or a call times itself, whose "
                           "arguments are variables, numbers, -x, x + y, x * y, 1 / x or calls of variables; it is " +
                           to_text(left),
                       law.where);
    return {};
  }

  static bool is_law_argument(const Expression& e) {
    auto all_names = [&] {
      return std::all_of(e.operands.begin(), e.operands.end(),
                         [](const Expression& operand) { return operand.kind == Kind::name; });
    };
    switch (e.kind) {
      case Kind::integer:
      case Kind::real:
      case Kind::name:
        return true;
      case Kind::negate:
        return all_names() || e.operands[0].kind == Kind::integer || e.operands[0].kind == Kind::real;
      case Kind::add:
        return all_names() && e.operands[0].name != e.operands[1].name;
      case Kind::divide:
        return e.operands[0].kind == Kind::integer && e.operands[0].integer == 1 && e.operands[1].kind == Kind::name;
      case Kind::multiply:
      case Kind::call:
        return all_names();
      default:
        return false;
    }
  }

  Status size_function(SizeFunction& definition) {
    for (const std::string& parameter : definition.parameters) scope_.emplace_back(parameter, Sort::integer);
    TASO_RETURN_IF_ERROR(expect(definition.definition, Sort::integer, "the value of a size function"));
    scope_.clear();
    return {};
  }

  Status operator_definition(OperatorDefinition& op) {
    op_ = &op;
    TASO_RETURN_IF_ERROR(inputs());
    TASO_RETURN_IF_ERROR(attribute_lengths());
    TASO_RETURN_IF_ERROR(statements());
    TASO_RETURN_IF_ERROR(output());
    TASO_RETURN_IF_ERROR(equations());
    op_->elementwise = is_elementwise(*op_);
    op_->moves = only_moves(*op_);
    op_->over_reals = is_over_reals(*op_);
    return laws();
  }

 private:
  // ---- the signature ----

  /// Declares attributes and the sizes that inputs bind, and makes sure that every size can be computed.
  Status inputs() {
    for (const AttributeSpec& attribute : op_->attributes) {
      for (const AttributeSpec& other : op_->attributes)
        if (&other != &attribute && other.name == attribute.name)
          return bad_input("attribute '" + attribute.name + "' is declared twice", attribute.where);
      if (attribute.element_type) {
        if (!attribute.default_value) continue;
        const std::string& name = std::get<SymbolValue>(*attribute.default_value).name;
        if (!element_type_named(name))
          return bad_input("the default of attribute '" + attribute.name + "', '" + name + "', is not an element type",
                           attribute.where);
      } else if (attribute.kind == AttributeKind::symbol) {
        if (!attribute.default_value) continue;
        const std::string& name = std::get<SymbolValue>(*attribute.default_value).name;
        const auto function = declarations_.functions.find(name);
        if (function == declarations_.functions.end() || function->second.arity != 1 || !function->second.is_real())
          return bad_input("the default of attribute '" + attribute.name + "', '" + name +
                               "', is not a declared function of one parameter",
                           attribute.where);
      } else {
        const Sort sort = attribute.kind == AttributeKind::integer    ? Sort::integer
                          : attribute.kind == AttributeKind::integers ? Sort::integers
                                                                      : Sort::real;
        TASO_RETURN_IF_ERROR(declare(attribute.name, sort, attribute.where));
      }
    }
    attributes_end_ = scope_.size();
    for (InputSpec& input : op_->inputs) {
      if (input.variadic() && op_->inputs.size() != 1)
        return bad_input("the variadic input '" + input.name + "' must be the only input", input.where);
      if (find_tensor(input.name) != nullptr || find(input.name) != nullptr || input.name == "out")
        return bad_input("'" + input.name + "' cannot name an input: it already stands for something else",
                         input.where);
      tensors_.push_back({input.name, input.axes, input.domain, input.variadic(), true});
    }
    TASO_RETURN_IF_ERROR(solve_sizes());
    for (InputSpec& input : op_->inputs) {
      const std::size_t mark = scope_.size();
      if (input.variadic()) TASO_RETURN_IF_ERROR(declare(input.piece, Sort::integer, input.where));
      for (AxisSpec& axis : input.axes) TASO_RETURN_IF_ERROR(axis_spec(axis));
      scope_.resize(mark);
    }
    // The tensors' axes again, now with sorts: equations rely on them.
    for (std::size_t i = 0; i < op_->inputs.size(); ++i) tensors_[i].axes = op_->inputs[i].axes;
    return {};
  }

  Status axis_spec(AxisSpec& axis) {
    for (Expression& factor : axis.factors) {
      const bool rest = axis.kind == AxisSpec::Kind::rest;
      TASO_RETURN_IF_ERROR(check(factor));
      if (factor.sort != (rest ? Sort::integers : Sort::integer))
        return bad_input("the extent of axis " + to_text(axis) + " must be " +
                             describe(rest ? Sort::integers : Sort::integer) + ", and " + to_text(factor) + " is " +
                             describe(factor.sort),
                         axis.where);
    }
    if (axis.length) TASO_RETURN_IF_ERROR(expect(*axis.length, Sort::integer, "the number of axes"));
    return {};
  }

  /// True if all names in `e` are known.
  [[nodiscard]] bool computable(const Expression& e) const {
    if (e.kind == Kind::name || e.kind == Kind::piece)
      if (find(e.name) == nullptr) return false;
    if (e.kind == Kind::piece) return true;
    return std::all_of(e.operands.begin(), e.operands.end(), [&](const Expression& o) { return computable(o); });
  }

  /// Declares a size that an axis of an input binds.
  Status declare_size(const InputSpec& input, const AxisSpec& axis, const Expression& size) {
    if (size.kind == Kind::piece &&
        (axis.kind != AxisSpec::Kind::size || size.operands[0].name != input.piece || !input.variadic()))
      return bad_input("'" + to_text(size) + "' must be an axis of the variadic input that counts by '" +
                           to_text(size.operands[0]) + "'",
                       size.where);
    const bool vector = axis.kind == AxisSpec::Kind::rest || size.kind == Kind::piece;
    return declare(size.name, vector ? Sort::integers : Sort::integer, size.where);
  }

  /// Declares the sizes in the order in which inference computes them, and notes that order: an input's axes are told
  /// apart once at most one of its rests has an unknown length; then plain names are bound, and the last unknown factor
  /// of a composite axis by division.
  Status solve_sizes() {
    std::vector<bool> aligned(op_->inputs.size(), false);
    std::vector<std::vector<bool>> done;
    for (const InputSpec& input : op_->inputs) done.emplace_back(input.axes.size(), false);
    op_->solution.clear();
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t i = 0; i < op_->inputs.size(); ++i) {
        const InputSpec& input = op_->inputs[i];
        if (!aligned[i]) {
          int unknown = 0;
          for (const AxisSpec& axis : input.axes)
            if (axis.kind == AxisSpec::Kind::rest && find(axis.factors[0].name) == nullptr &&
                !(axis.length && computable(*axis.length)))
              ++unknown;
          if (unknown > 1) continue;
          aligned[i] = progress = true;
          op_->solution.push_back({.input = i});
        }
        for (std::size_t entry = 0; entry < input.axes.size(); ++entry) {
          if (done[i][entry]) continue;
          const AxisSpec& axis = input.axes[entry];
          std::size_t count = 0, last = 0;
          for (std::size_t f = 0; f < axis.factors.size(); ++f)
            if (!computable(axis.factors[f])) {
              ++count;
              last = f;
            }
          SizeStep step{.input = i, .entry = entry};
          if (count == 1) {
            const Expression& unknown = axis.factors[last];
            if (unknown.kind != Kind::name && unknown.kind != Kind::piece) continue;
            TASO_RETURN_IF_ERROR(declare_size(input, axis, unknown));
            step.unknown = last;
          } else if (count > 1) {
            continue;
          }
          done[i][entry] = progress = true;
          op_->solution.push_back(step);
        }
      }
    }
    for (std::size_t i = 0; i < op_->inputs.size(); ++i) {
      if (!aligned[i])
        return bad_input(
            "input '" + op_->inputs[i].name + "' has more than one '..' of unknown length; give a length: B..(n)",
            op_->inputs[i].where);
      for (const AxisSpec& axis : op_->inputs[i].axes)
        for (const Expression& factor : axis.factors)
          if (!computable(factor))
            return bad_input("the size " + to_text(factor) + " of axis " + to_text(axis) + " cannot be computed from " +
                                 "the shapes of the inputs",
                             factor.where);
    }
    return {};
  }

  Status attribute_lengths() {
    int constraint = static_cast<int>(op_->inputs.size());
    for (AttributeSpec& attribute : op_->attributes) {
      if (!attribute.length) continue;
      TASO_RETURN_IF_ERROR(expect(*attribute.length, Sort::integer, "the length of a list"));
      if (attribute.length->kind == Kind::integer) {
        const auto* list =
            attribute.default_value ? std::get_if<std::vector<std::int64_t>>(&*attribute.default_value) : nullptr;
        if (list != nullptr && static_cast<std::int64_t>(list->size()) != attribute.length->integer)
          return bad_input("the default of attribute '" + attribute.name + "' has " + std::to_string(list->size()) +
                               " elements, and its length is " + std::to_string(attribute.length->integer),
                           attribute.where);
      } else {
        attribute.constraint = ++constraint;
      }
    }
    for (SizeStatement& statement : op_->statements)
      if (statement.name.empty()) statement.constraint = ++constraint;
    return {};
  }

  Status statements() {
    for (SizeStatement& statement : op_->statements) {
      if (statement.name.empty()) {
        TASO_RETURN_IF_ERROR(expect(statement.value, Sort::boolean, "what is required"));
        continue;
      }
      TASO_RETURN_IF_ERROR(check(statement.value));
      if (statement.value.sort != Sort::integer && statement.value.sort != Sort::integers)
        return bad_input("'let " + statement.name + "' must be a size or a vector of sizes, and " +
                             to_text(statement.value) + " is " + describe(statement.value.sort),
                         statement.where);
      TASO_RETURN_IF_ERROR(declare(statement.name, statement.value.sort, statement.where));
    }
    return {};
  }

  Status output() {
    OutputSpec& output = op_->output;
    if (const AttributeSpec* type = op_->find_attribute(output.type);
        !output.type.empty() && (type == nullptr || !type->element_type))
      return bad_input("'" + output.type +
                           "' is not an attribute of kind 'type', which the element type of the output "
                           "must be",
                       output.where);
    const std::size_t mark = scope_.size();
    if (output.count) {
      // The number of outputs is known before any shape is: from attributes alone.
      auto whole_scope = scope_;
      scope_.resize(attributes_end_);
      TASO_RETURN_IF_ERROR(expect(*output.count, Sort::integer, "the number of outputs"));
      scope_ = std::move(whole_scope);
      TASO_RETURN_IF_ERROR(declare(output.piece, Sort::integer, output.where));
    }
    for (AxisSpec& axis : output.axes) {
      if (axis.length) return bad_input("an output's '..' has the length of its vector", axis.where);
      TASO_RETURN_IF_ERROR(axis_spec(axis));
    }
    scope_.resize(mark);
    return {};
  }

  // ---- equations ----

  Status equations() {
    bool any = false;
    const auto& equations = op_->equations;
    for (std::size_t i = 0; i < equations.size(); ++i) {
      Equation& equation = op_->equations[i];
      const std::size_t mark = scope_.size();
      if (equation.target == "out") {
        any = true;
        if (op_->variadic()) TASO_RETURN_IF_ERROR(declare(op_->inputs[0].piece, Sort::integer, equation.where));
        TASO_RETURN_IF_ERROR(output_equation(equation));
        scope_.resize(mark);
        continue;
      }
      const auto spec = std::find_if(op_->intermediates.begin(), op_->intermediates.end(),
                                     [&](const IntermediateSpec& known) { return known.name == equation.target; });
      TASO_CHECK(spec != op_->intermediates.end(), "an equation of the unknown tensor " + equation.target);
      const bool first = i == 0 || equations[i - 1].target != equation.target;
      if (first && find_tensor(spec->name) == nullptr) {
        TASO_ASSIGN(const Recurrence steps,
                    find_recurrence(*op_, static_cast<std::size_t>(spec - op_->intermediates.begin()), i));
        if (steps.count > 0) {
          for (std::size_t member = 0; member < steps.count; ++member)
            TASO_RETURN_IF_ERROR(equation_of_recurrence(steps, member, op_->equations[i + member]));
          TASO_RETURN_IF_ERROR(order_steps(*op_, steps, i));
          i += steps.count - 1;
          continue;
        }
      }
      if (first) TASO_RETURN_IF_ERROR(intermediate_axes(*spec, equation));
      TASO_RETURN_IF_ERROR(equation_of(equation, spec->axes));
      scope_.resize(mark);
      if (i + 1 == equations.size() || equations[i + 1].target != equation.target)
        tensors_.push_back({spec->name, spec->axes, spec->domain});
    }
    if (!any) return bad_input("operator '" + op_->name + "' has no equation 'out[...] = ...'", op_->where);
    return {};
  }

  Status intermediate_axes(IntermediateSpec& tensor, const Equation& first) {
    if (find(tensor.name) != nullptr || find_tensor(tensor.name) != nullptr)
      return bad_input("'" + tensor.name + "' already stands for something else in operator '" + op_->name + "'",
                       tensor.where);
    for (std::size_t i = 0; i < tensor.axes.size(); ++i)
      for (Expression& extent : tensor.axes[i].factors) {
        TASO_RETURN_IF_ERROR(check(extent));
        const Expression& variable = first.coordinates[i];
        const Sort wanted = variable.rest ? Sort::integers : Sort::integer;
        if (extent.sort != wanted)
          return bad_input("the extent of index variable '" + to_text(variable) + (variable.rest ? ".." : "") +
                               "' must be " + describe(wanted) + ", and " + to_text(extent) + " is " +
                               describe(extent.sort),
                           tensor.where);
      }
    return {};
  }

  /// One equation of a recurrence; before the first of them, all of its tensors can be read.
  Status equation_of_recurrence(const Recurrence& steps, std::size_t member, Equation& equation) {
    if (member == 0)
      for (std::size_t i = 0; i < steps.count; ++i) {
        IntermediateSpec& spec = op_->intermediates[steps.first + i];
        TASO_RETURN_IF_ERROR(intermediate_axes(spec, (&equation)[i]));
        tensors_.push_back({spec.name, spec.axes, spec.domain});
      }
    const std::size_t mark = scope_.size();
    TASO_RETURN_IF_ERROR(equation_of(equation, op_->intermediates[steps.first + member].axes));
    scope_.resize(mark);
    return {};
  }

  Status output_equation(Equation& equation) {
    const OutputSpec& output = op_->output;
    if (output.piece != equation.piece)
      return bad_input(output.piece.empty()
                           ? "operator '" + op_->name + "' has one output: write 'out[...]'"
                           : "operator '" + op_->name + "' has several outputs: write 'out." + output.piece + "[...]'",
                       equation.where);
    if (!output.piece.empty()) TASO_RETURN_IF_ERROR(declare(output.piece, Sort::integer, equation.where));
    if (equation.coordinates.size() != output.axes.size())
      return bad_input("the output has axes " + to_text(output.axes) + ", and " +
                           std::to_string(equation.coordinates.size()) + " coordinates are given",
                       equation.where);
    return equation_of(equation, output.axes);
  }

  /// The left side of an equation against the axes of the tensor that it writes, and its value.
  Status equation_of(Equation& equation, const std::vector<AxisSpec>& axes) {
    for (Expression::Range& range : equation.ranges) {
      if (range.rest) return bad_input("'where' gives the extent of single index variables", equation.where);
      TASO_RETURN_IF_ERROR(range_extent(range, equation.where));
    }
    // Variables that stand alone range over their axis; others have their extent from 'where'.
    for (std::size_t i = 0; i < axes.size(); ++i) {
      Expression& coordinate = equation.coordinates[i];
      const AxisSpec& axis = axes[i];
      if ((axis.kind == AxisSpec::Kind::rest) != coordinate.rest)
        return bad_input(coordinate.rest ? "'..' stands for several axes, and " + to_text(axis) + " is one"
                                         : "the coordinate of the axes " + to_text(axis) + " must end in '..'",
                         coordinate.where);
      auto ranged = [&](const std::string& name) {
        return std::any_of(equation.ranges.begin(), equation.ranges.end(),
                           [&](const Expression::Range& range) { return range.name == name; });
      };
      if (coordinate.kind == Kind::tuple) {
        if (axis.kind != AxisSpec::Kind::composite || axis.factors.size() != coordinate.operands.size())
          return bad_input("the tuple " + to_text(coordinate) + " does not fit axis " + to_text(axis),
                           coordinate.where);
        for (Expression& operand : coordinate.operands) {
          if (operand.kind != Kind::name)
            return bad_input("on the left side a tuple holds index variables", operand.where);
          TASO_RETURN_IF_ERROR(declare(operand.name, Sort::index, operand.where));
        }
      } else if (coordinate.kind == Kind::name && !ranged(coordinate.name) && !is_piece(coordinate.name)) {
        TASO_RETURN_IF_ERROR(
            declare(coordinate.name, coordinate.rest ? Sort::index_vector : Sort::index, coordinate.where));
      } else if (coordinate.rest) {
        return bad_input("on the left side '..' follows a name", coordinate.where);
      }
    }
    for (const Expression::Range& range : equation.ranges)
      TASO_RETURN_IF_ERROR(declare(range.name, Sort::index, equation.where));
    for (Expression& coordinate : equation.coordinates) {
      if (coordinate.kind == Kind::tuple) continue;
      TASO_RETURN_IF_ERROR(check(coordinate));
      if (!is_whole(coordinate.sort) || is_vector(coordinate.sort) != coordinate.rest)
        return bad_input("a coordinate of the left side must be an index, and " + to_text(coordinate) + " is " +
                             describe(coordinate.sort),
                         coordinate.where);
    }
    return scalar(equation.value,
                  equation.target == "out" ? op_->output.domain : op_->find_intermediate(equation.target)->domain);
  }

  /// The name that counts the tensors of a variadic input, or the outputs.
  [[nodiscard]] bool is_piece(const std::string& name) const {
    return (op_->variadic() && op_->inputs[0].piece == name) || (op_->several_outputs() && op_->output.piece == name);
  }

  Status laws() {
    if (op_->commutative && (op_->inputs.size() != 2 || op_->several_outputs()))
      return bad_input("law 'commutative' needs two inputs and one output", op_->where);
    if (op_->associative && (!op_->variadic() || op_->several_outputs()))
      return bad_input("law 'associative' is for an operator of a variadic input and one output", op_->where);
    if (op_->coassociative && (op_->inputs.size() != 1 || op_->variadic() || !op_->several_outputs()))
      return bad_input("law 'coassociative' is for an operator of one input and several outputs", op_->where);
    if (op_->coassociative && !takes_apart())
      return bad_input(
          "law 'coassociative(axis, sizes)' is for an operator that takes a tensor apart along one axis: f(x[A.., n, "
          "B..(-axis - 1)]; axis: int, sizes: int[]) -> [A.., sizes[k], B..] for k < length(sizes); "
          "'coassociative(sizes)' for one that does so along a certain axis",
          op_->where);
    return {};
  }

  /// Whether the outputs are pieces as long as the attribute that the law names for it says, along the axis that the
  /// other one counts from the end, if there is one: so graphs know operators that take tensors apart
  /// (graph/match.cpp).
  [[nodiscard]] bool takes_apart() const {
    const PieceAttributes& names = *op_->coassociative;
    const AttributeSpec *sizes = op_->find_attribute(names.sizes), *axis = op_->find_attribute(names.axis);
    if (sizes == nullptr || sizes->kind != AttributeKind::integers || sizes->length) return false;
    if (to_text(*op_->output.count) != "length(" + names.sizes + ")") return false;
    const std::vector<AxisSpec>&in = op_->inputs[0].axes, &out = op_->output.axes;
    const auto piece = std::find_if(out.begin(), out.end(), [&](const AxisSpec& spec) {
      return spec.kind == AxisSpec::Kind::size && to_text(spec) == names.sizes + "[" + op_->output.piece + "]";
    });
    if (piece == out.end() || in.size() != out.size()) return false;
    for (std::size_t i = 0; i < out.size(); ++i)
      if (out[i].kind != in[i].kind || (out.begin() + static_cast<std::ptrdiff_t>(i) != piece &&
                                        to_text(out[i].factors[0]) != to_text(in[i].factors[0])))
        return false;
    if (names.axis.empty()) return true;
    const auto after = static_cast<std::size_t>(piece - out.begin()) + 1;
    return axis != nullptr && axis->kind == AttributeKind::integer && after + 1 == in.size() &&
           in[after].kind == AxisSpec::Kind::rest && in[after].length &&
           to_text(*in[after].length) == "-" + names.axis + " - 1";
  }

  std::size_t attributes_end_ = 0;  ///< scope_ up to here holds the attributes.
};

/// Finds a function that is defined by itself: depth-first over the calls of definitions.
template <class Map, class Definition>
Status check_acyclic(const Map& functions, Definition definition_of) {
  std::set<std::string> done;
  std::vector<std::string> open;
  struct Visitor {
    const Map& functions;
    Definition& definition_of;
    std::set<std::string>& done;
    std::vector<std::string>& open;

    Status visit(const std::string& name) {
      const auto function = functions.find(name);
      if (function == functions.end() || done.contains(name)) return {};
      if (std::find(open.begin(), open.end(), name) != open.end())
        return bad_input("'" + name + "' is defined by itself", function->second.where);
      open.push_back(name);
      if (const Expression* definition = definition_of(function->second); definition != nullptr)
        TASO_RETURN_IF_ERROR(visit(*definition));
      open.pop_back();
      done.insert(name);
      return {};
    }
    Status visit(const Expression& expression) {
      if (expression.kind == Kind::call) TASO_RETURN_IF_ERROR(visit(expression.name));
      for (const Expression& operand : expression.operands) TASO_RETURN_IF_ERROR(visit(operand));
      return {};
    }
  } visitor{functions, definition_of, done, open};
  for (const auto& [name, function] : functions) TASO_RETURN_IF_ERROR(visitor.visit(name));
  return {};
}

}  // namespace

Status check_functions(std::map<std::string, FunctionDefinition, std::less<>>& functions,
                       std::map<std::string, SizeFunction, std::less<>>& size_functions) {
  const Declarations declarations{functions, size_functions};
  for (auto& [name, function] : functions) {
    if (size_functions.contains(name))
      return bad_input("'" + name + "' is both a function and a size function", function.where);
    TASO_RETURN_IF_ERROR(Checker(declarations).function(function));
  }
  for (auto& [name, function] : size_functions) TASO_RETURN_IF_ERROR(Checker(declarations).size_function(function));
  TASO_RETURN_IF_ERROR(
      check_acyclic(functions, [](const FunctionDefinition& f) { return f.definition ? &*f.definition : nullptr; }));
  return check_acyclic(size_functions, [](const SizeFunction& f) { return &f.definition; });
}

Status check_operator(OperatorDefinition& definition, const Declarations& declarations) {
  return Checker(declarations).operator_definition(definition);
}

}  // namespace taso
