#include "operators/checker.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "operators/size_functions.h"
#include "operators/unparse.h"
#include "support/reversed.h"

namespace taso {
namespace {

using Kind = Expression::Kind;

bool is_vector(Sort sort) { return sort == Sort::integers || sort == Sort::index_vector; }
bool is_index(Sort sort) { return sort == Sort::index || sort == Sort::index_vector; }
bool is_whole(Sort sort) { return sort == Sort::integer || is_vector(sort) || is_index(sort); }

const char* describe(Sort sort) {
  switch (sort) {
    case Sort::integer:
      return "an integer";
    case Sort::integers:
      return "a vector of integers";
    case Sort::index:
      return "an index";
    case Sort::index_vector:
      return "a vector of indices";
    case Sort::integer_read:
      return "an element of an input of integers";
    case Sort::boolean:
      return "a condition";
    case Sort::real:
      return "a real";
  }
  return "?";
}

Sort whole(bool vector, bool index) {
  return vector ? (index ? Sort::index_vector : Sort::integers) : (index ? Sort::index : Sort::integer);
}

/// A tensor that equations may read.
struct Tensor {
  std::string name;
  std::vector<AxisSpec> axes;
  bool integers = false;
  bool variadic = false;
};

class Checker {
 public:
  explicit Checker(const Declarations& declarations) : declarations_(declarations) {}

  Status function(FunctionDefinition& definition) {
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
    return laws();
  }

 private:
  [[nodiscard]] const Sort* find(std::string_view name) const {
    for (const auto& [defined, sort] : reversed(scope_))
      if (defined == name) return &sort;
    return nullptr;
  }
  [[nodiscard]] const Tensor* find_tensor(std::string_view name) const {
    for (const Tensor& tensor : tensors_)
      if (tensor.name == name) return &tensor;
    return nullptr;
  }
  [[nodiscard]] const AttributeSpec* function_attribute(std::string_view name) const {
    const AttributeSpec* attribute = op_ == nullptr ? nullptr : op_->find_attribute(name);
    return attribute != nullptr && attribute->kind == AttributeKind::symbol ? attribute : nullptr;
  }

  Status declare(const std::string& name, Sort sort, const SourceLocation& where) {
    if (find(name) != nullptr || find_tensor(name) != nullptr || function_attribute(name) != nullptr)
      return bad_input("'" + name + "' already stands for something else in operator '" + op_->name + "'", where);
    scope_.emplace_back(name, sort);
    return {};
  }

  // ---- expressions ----

  Status expect(Expression& expression, Sort sort, const std::string& what) {
    TASO_RETURN_IF_ERROR(check(expression));
    if (expression.sort != sort)
      return bad_input(
          what + " must be " + describe(sort) + ", and " + to_text(expression) + " is " + describe(expression.sort),
          expression.where);
    return {};
  }

  /// A scalar: a real, or an integer that is one.
  Status real(Expression& expression) {
    TASO_RETURN_IF_ERROR(check(expression));
    return real_operand(expression);
  }
  static Status real_operand(const Expression& expression) {
    if (expression.sort == Sort::real || expression.sort == Sort::integer) return {};
    return bad_input("a scalar is needed here, and " + to_text(expression) + " is " + describe(expression.sort),
                     expression.where);
  }

  Status check(Expression& e) {
    switch (e.kind) {
      case Kind::integer:
        e.sort = Sort::integer;
        return {};
      case Kind::real:
        e.sort = Sort::real;
        return {};
      case Kind::infinity:
        return bad_input("'inf' stands only as the value outside a tensor: '... or -inf' under max", e.where);
      case Kind::name: {
        const Sort* sort = find(e.name);
        if (sort == nullptr) return unknown_name(e);
        e.sort = *sort;
        return {};
      }
      case Kind::piece: {
        const Sort* sort = find(e.name);
        if (sort == nullptr) return unknown_name(e);
        if (!is_vector(*sort))
          return bad_input("'" + e.name + "' is not the extent of an axis of a variadic input; write it without '.'",
                           e.where);
        e.sort = *sort == Sort::integers ? Sort::integer : Sort::index;
        return expect(e.operands[0], Sort::integer, "what follows '.'");
      }
      case Kind::list:
        for (Expression& element : e.operands)
          TASO_RETURN_IF_ERROR(expect(element, Sort::integer, "an element of a list"));
        e.sort = Sort::integers;
        return {};
      case Kind::element:
        return element(e);
      case Kind::call:
        return call(e);
      case Kind::negate:
        TASO_RETURN_IF_ERROR(check(e.operands[0]));
        if (!is_whole(e.operands[0].sort)) TASO_RETURN_IF_ERROR(real_operand(e.operands[0]));
        e.sort = e.operands[0].sort;
        return {};
      case Kind::add:
      case Kind::subtract:
      case Kind::multiply:
      case Kind::divide:
      case Kind::floor_divide:
      case Kind::modulo:
        return arithmetic(e);
      case Kind::equal:
      case Kind::not_equal:
      case Kind::less:
      case Kind::less_equal:
      case Kind::greater:
      case Kind::greater_equal:
        for (Expression& operand : e.operands) {
          TASO_RETURN_IF_ERROR(check(operand));
          if (!is_whole(operand.sort) && operand.sort != Sort::real)
            return bad_input("comparisons are of integers, and " + to_text(operand) + " is " + describe(operand.sort),
                             operand.where);
          if (!is_known_number(operand))
            return bad_input(
                "comparisons are of sizes, indices and attributes, not of scalars that a tensor supplies: "
                "use max, min or a function",
                operand.where);
        }
        for (std::size_t i = 0; i < 2; ++i)
          if (e.operands[1 - i].sort == Sort::real && e.operands[i].sort != Sort::real &&
              e.operands[i].sort != Sort::integer)
            return bad_input("a real number is compared with a number, and " + to_text(e.operands[i]) + " is " +
                                 describe(e.operands[i].sort),
                             e.operands[i].where);
        e.sort = Sort::boolean;
        return {};
      case Kind::conjunction:
      case Kind::disjunction:
      case Kind::negation:
        for (Expression& operand : e.operands)
          TASO_RETURN_IF_ERROR(expect(operand, Sort::boolean, "an operand of '&&', '||' or '!'"));
        e.sort = Sort::boolean;
        return {};
      case Kind::conditional:
        TASO_RETURN_IF_ERROR(expect(e.operands[0], Sort::boolean, "the condition of 'if'"));
        TASO_RETURN_IF_ERROR(real(e.operands[1]));
        TASO_RETURN_IF_ERROR(real(e.operands[2]));
        e.sort = Sort::real;
        return {};
      case Kind::read:
        return read(e, false);
      case Kind::valid:
        if (e.operands.size() != 1 || e.operands[0].kind != Kind::read || e.operands[0].fallback != nullptr)
          return bad_input("valid(...) holds one read of a tensor without 'or'", e.where);
        TASO_RETURN_IF_ERROR(read(e.operands[0], false));
        e.sort = Sort::real;
        return {};
      case Kind::reduce:
        return reduce(e);
      case Kind::all: {
        const std::size_t mark = scope_.size();
        for (Expression::Range& range : e.ranges) {
          if (range.rest) return bad_input("'all' ranges over single numbers, without '..'", e.where);
          TASO_RETURN_IF_ERROR(range_extent(range, e.where));
          TASO_RETURN_IF_ERROR(declare(range.name, Sort::integer, e.where));
        }
        TASO_RETURN_IF_ERROR(expect(e.operands[0], Sort::boolean, "what 'all' ranges over"));
        scope_.resize(mark);
        e.sort = Sort::boolean;
        return {};
      }
      case Kind::tuple:
        return bad_input("a tuple stands only as the coordinate of a composite axis", e.where);
    }
    return internal_error("expression kind");
  }

  [[nodiscard]] Error unknown_name(const Expression& e) const {
    if (find_tensor(e.name) != nullptr)
      return bad_input("tensor '" + e.name + "' is read with coordinates: " + e.name + "[...]", e.where);
    if (function_attribute(e.name) != nullptr || declarations_.functions.contains(e.name))
      return bad_input("function '" + e.name + "' needs arguments: " + e.name + "(...)", e.where);
    std::string known;
    for (const auto& [name, sort] : scope_) known += (known.empty() ? "" : ", ") + name;
    return bad_input("unknown name '" + e.name + "'; known here: " + (known.empty() ? "none" : known), e.where);
  }

  /// True for integers, and for reals made of literals and attributes.
  [[nodiscard]] bool is_known_number(const Expression& e) const {
    if (e.sort != Sort::real) return true;
    switch (e.kind) {
      case Kind::real:
        return true;
      case Kind::name:
        return op_ != nullptr;
      case Kind::negate:
      case Kind::add:
      case Kind::subtract:
      case Kind::multiply:
      case Kind::divide:
        return std::all_of(e.operands.begin(), e.operands.end(),
                           [&](const Expression& operand) { return is_known_number(operand); });
      default:
        return false;
    }
  }

  Status element(Expression& e) {
    TASO_RETURN_IF_ERROR(check(e.operands[0]));
    TASO_RETURN_IF_ERROR(check(e.operands[1]));
    const Sort vector = e.operands[0].sort, subscript = e.operands[1].sort;
    if (!is_vector(vector))
      return bad_input(
          "a subscript needs a vector before it, and " + to_text(e.operands[0]) + " is " + describe(vector), e.where);
    if (subscript != Sort::integer && subscript != Sort::integers)
      return bad_input("a subscript is an integer or a vector of integers, and " + to_text(e.operands[1]) + " is " +
                           describe(subscript),
                       e.where);
    e.sort = whole(subscript == Sort::integers, is_index(vector));
    return {};
  }

  Status arithmetic(Expression& e) {
    for (Expression& operand : e.operands) TASO_RETURN_IF_ERROR(check(operand));
    const Sort left = e.operands[0].sort, right = e.operands[1].sort;
    const bool whole_operands = is_whole(left) && is_whole(right);
    if (e.kind == Kind::divide || !whole_operands) {
      if (e.kind == Kind::floor_divide || e.kind == Kind::modulo)
        return bad_input("'//' and '%' are for sizes and indices; scalars are divided by '/'", e.where);
      for (const Expression& operand : e.operands) TASO_RETURN_IF_ERROR(real_operand(operand));
      e.sort = Sort::real;
      return {};
    }
    if (e.kind == Kind::multiply && is_index(left) && is_index(right))
      return bad_input("the product of two indices is not affine", e.where);
    if ((e.kind == Kind::floor_divide || e.kind == Kind::modulo) && is_index(right))
      return bad_input("a divisor must be a size, and " + to_text(e.operands[1]) + " is " + describe(right), e.where);
    e.sort = whole(is_vector(left) || is_vector(right), is_index(left) || is_index(right));
    return {};
  }

  Status arity(const Expression& e, std::size_t expected) {
    if (e.operands.size() == expected) return {};
    return bad_input("'" + e.name + "' takes " + std::to_string(expected) +
                         (expected == 1 ? " argument" : " arguments") + ", not " + std::to_string(e.operands.size()),
                     e.where);
  }

  /// An argument of a function of sizes.
  static Status argument(const Expression& e, std::size_t i, SizeArgument wanted) {
    const Expression& operand = e.operands[i];
    const Sort sort = operand.sort;
    auto wrong = [&](const std::string& what) {
      return bad_input("argument " + std::to_string(i + 1) + " of '" + e.name + "' must be " + what + ", and " +
                           to_text(operand) + " is " + describe(sort),
                       operand.where);
    };
    const bool fixed = sort == Sort::integer || sort == Sort::integers;
    switch (wanted) {
      case SizeArgument::integer:
        return sort == Sort::integer ? Status() : wrong("an integer");
      case SizeArgument::integers:
        if (!is_vector(sort)) return wrong("a vector");
        return fixed ? Status() : wrong("an integer or a vector of integers");
      case SizeArgument::integer_or_integers:
        return fixed ? Status() : wrong("an integer or a vector of integers");
      case SizeArgument::vector:
        return is_vector(sort) ? Status() : wrong("a vector");
      case SizeArgument::whole:
        return is_whole(sort) ? Status() : wrong("a size, an index or a vector of them");
    }
    return {};
  }

  /// A call of a function of sizes that the language has by itself.
  Status builtin(Expression& e, const SizeBuiltinSpec& spec) {
    e.builtin = spec.function;
    if (spec.variadic && e.operands.empty())
      return bad_input("'" + e.name + "' takes one or more arguments, not 0", e.where);
    if (!spec.variadic) TASO_RETURN_IF_ERROR(arity(e, spec.arguments.size()));
    bool vector = false, index = false;
    for (std::size_t i = 0; i < e.operands.size(); ++i) {
      TASO_RETURN_IF_ERROR(argument(e, i, spec.arguments[spec.variadic ? 0 : i]));
      vector = vector || is_vector(e.operands[i].sort);
      index = index || is_index(e.operands[i].sort);
    }
    if (spec.function == SizeBuiltin::on && !is_vector(e.operands[1].sort) && !is_vector(e.operands[2].sort))
      return bad_input("argument 2 or 3 of 'on' must be a vector, which gives the length", e.where);
    switch (spec.result) {
      case SizeResult::integer:
        e.sort = Sort::integer;
        break;
      case SizeResult::integers:
        e.sort = Sort::integers;
        break;
      case SizeResult::index:
        e.sort = Sort::index;
        break;
      case SizeResult::boolean:
        e.sort = Sort::boolean;
        break;
      case SizeResult::as_first:
        e.sort = e.operands[0].sort;
        break;
      case SizeResult::joined:
        e.sort = whole(true, index);
        break;
      case SizeResult::widest:
        e.sort = whole(vector, false);
        break;
    }
    return {};
  }

  Status call(Expression& e) {
    for (Expression& operand : e.operands) TASO_RETURN_IF_ERROR(check(operand));
    if (const SizeBuiltinSpec* spec = find_size_builtin(e.name)) {
      // The larger and the smaller of scalars are functions of the ring.
      const bool of_scalars = spec->result == SizeResult::widest &&
                              std::any_of(e.operands.begin(), e.operands.end(), [](const Expression& operand) {
                                return operand.sort != Sort::integer && operand.sort != Sort::integers;
                              });
      if (!of_scalars) return builtin(e, *spec);
      for (const Expression& operand : e.operands) TASO_RETURN_IF_ERROR(real_operand(operand));
      e.sort = Sort::real;
      return {};
    }
    if (const auto size = declarations_.size_functions.find(e.name); size != declarations_.size_functions.end()) {
      TASO_RETURN_IF_ERROR(arity(e, size->second.parameters.size()));
      for (std::size_t i = 0; i < e.operands.size(); ++i) TASO_RETURN_IF_ERROR(argument(e, i, SizeArgument::integer));
      e.sort = Sort::integer;
      return {};
    }
    std::size_t expected = 1;
    if (function_attribute(e.name) == nullptr) {
      const auto function = declarations_.functions.find(e.name);
      if (function == declarations_.functions.end())
        return bad_input("unknown function '" + e.name + "'; declare it: function " + e.name + "(x)", e.where);
      expected = static_cast<std::size_t>(function->second.arity);
    }
    TASO_RETURN_IF_ERROR(arity(e, expected));
    for (const Expression& operand : e.operands) TASO_RETURN_IF_ERROR(real_operand(operand));
    e.sort = Sort::real;
    return {};
  }

  Status range_extent(Expression::Range& range, const SourceLocation& where) {
    Expression extent = *range.extent;
    TASO_RETURN_IF_ERROR(check(extent));
    const Sort wanted = range.rest ? Sort::integers : Sort::integer;
    if (extent.sort != wanted)
      return bad_input("the extent of index variable '" + range.name + (range.rest ? ".." : "") + "' must be " +
                           describe(wanted) + ", and " + to_text(extent) + " is " + describe(extent.sort),
                       where);
    range.extent = std::make_shared<const Expression>(std::move(extent));
    return {};
  }

  Status reduce(Expression& e) {
    const std::size_t mark = scope_.size();
    for (Expression::Range& range : e.ranges) {
      TASO_RETURN_IF_ERROR(range_extent(range, e.where));
      TASO_RETURN_IF_ERROR(declare(range.name, range.rest ? Sort::index_vector : Sort::index, e.where));
    }
    Expression& body = e.operands[0];
    if (body.kind == Kind::read && is_infinity(body.fallback.get())) {
      const bool negative = body.fallback->kind == Kind::negate;
      if (e.name != (negative ? "max" : "min"))
        return bad_input("'or -inf' belongs under max and 'or inf' under min: there the element is left out",
                         body.where);
      TASO_RETURN_IF_ERROR(read(body, true));
    } else {
      TASO_RETURN_IF_ERROR(real(body));
    }
    scope_.resize(mark);
    e.sort = Sort::real;
    return {};
  }

  static bool is_infinity(const Expression* e) {
    if (e == nullptr) return false;
    if (e->kind == Kind::negate) return e->operands[0].kind == Kind::infinity;
    return e->kind == Kind::infinity;
  }

  /// Checks a read; `extremum` if an infinite fallback is in place.
  Status read(Expression& e, bool extremum) {
    const Tensor* tensor = find_tensor(e.name);
    if (tensor == nullptr && op_ != nullptr && op_->find_intermediate(e.name) != nullptr)
      return bad_input("'" + e.name + "' is read before it is defined", e.where);
    if (tensor == nullptr) return bad_input("tensor '" + e.name + "' cannot be read here", e.where);
    if (tensor->variadic != (e.piece != nullptr) && !e.flat)
      return bad_input(tensor->variadic
                           ? "'" + e.name + "' is variadic: read one of its tensors, '" + e.name + ".k[...]'"
                           : "'" + e.name + "' is one tensor: read it without '.'",
                       e.where);
    if (e.piece != nullptr) {
      Expression piece = *e.piece;
      TASO_RETURN_IF_ERROR(expect(piece, Sort::integer, "what follows '.'"));
      e.piece = std::make_shared<const Expression>(std::move(piece));
    }
    if (e.flat) {
      if (tensor->variadic) return bad_input("a variadic input has no flat positions", e.where);
      if (e.operands.size() != 1 || e.operands[0].rest)
        return bad_input("'" + e.name + ".flat[...]' takes one position", e.where);
      TASO_RETURN_IF_ERROR(check(e.operands[0]));
      if (e.operands[0].sort != Sort::integer && e.operands[0].sort != Sort::index)
        return bad_input("a flat position must be an index", e.operands[0].where);
    } else {
      if (e.operands.size() != tensor->axes.size())
        return bad_input("'" + e.name + "' has axes " + to_text(tensor->axes) + ", and " +
                             std::to_string(e.operands.size()) + " coordinates are given",
                         e.where);
      for (std::size_t i = 0; i < e.operands.size(); ++i)
        TASO_RETURN_IF_ERROR(coordinate(e.operands[i], tensor->axes[i]));
    }
    e.sort = tensor->integers ? Sort::integer_read : Sort::real;
    if (e.fallback == nullptr || extremum) return {};
    if (tensor->integers) return bad_input("a read of integers cannot have 'or'", e.where);
    if (is_infinity(e.fallback.get()))
      return bad_input("'or -inf' stands directly under max, and 'or inf' under min", e.where);
    Expression fallback = *e.fallback;
    TASO_RETURN_IF_ERROR(real(fallback));
    e.fallback = std::make_shared<const Expression>(std::move(fallback));
    return {};
  }

  Status coordinate(Expression& e, const AxisSpec& axis) {
    const bool rest = axis.kind == AxisSpec::Kind::rest;
    if (rest != e.rest)
      return bad_input(rest ? "the coordinate of the axes " + to_text(axis) + " must end in '..'"
                            : "'..' stands for several axes, and " + to_text(axis) + " is one",
                       e.where);
    if (e.kind == Kind::tuple) {
      if (axis.kind != AxisSpec::Kind::composite || axis.factors.size() != e.operands.size())
        return bad_input("the tuple " + to_text(e) + " does not fit axis " + to_text(axis), e.where);
      for (Expression& operand : e.operands) {
        TASO_RETURN_IF_ERROR(check(operand));
        if (operand.sort != Sort::integer && operand.sort != Sort::index)
          return bad_input("a coordinate must be an index, and " + to_text(operand) + " is " + describe(operand.sort),
                           operand.where);
      }
      e.sort = Sort::index;
      return {};
    }
    TASO_RETURN_IF_ERROR(check(e));
    const bool fits =
        rest ? is_vector(e.sort) : e.sort == Sort::integer || e.sort == Sort::index || e.sort == Sort::integer_read;
    if (!fits)
      return bad_input("a coordinate must be " + std::string(rest ? "a vector of indices" : "an index") + ", and " +
                           to_text(e) + " is " + describe(e.sort),
                       e.where);
    return {};
  }

  // ---- the signature ----

  /// Declares attributes and the sizes that inputs bind, and makes sure that every size can be computed.
  Status inputs() {
    for (const AttributeSpec& attribute : op_->attributes) {
      for (const AttributeSpec& other : op_->attributes)
        if (&other != &attribute && other.name == attribute.name)
          return bad_input("attribute '" + attribute.name + "' is declared twice", attribute.where);
      if (attribute.kind == AttributeKind::symbol) {
        if (!attribute.default_value) continue;
        const std::string& name = std::get<SymbolValue>(*attribute.default_value).name;
        const auto function = declarations_.functions.find(name);
        if (function == declarations_.functions.end() || function->second.arity != 1)
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
      tensors_.push_back({input.name, input.axes, input.integers, input.variadic()});
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
        TASO_ASSIGN(const Recurrence steps, recurrence(spec, i));
        if (steps.count > 0) {
          for (std::size_t member = 0; member < steps.count; ++member)
            TASO_RETURN_IF_ERROR(equation_of_recurrence(steps, member, op_->equations[i + member]));
          TASO_RETURN_IF_ERROR(along_one_axis(steps, i));
          i += steps.count - 1;
          continue;
        }
      }
      if (first) TASO_RETURN_IF_ERROR(intermediate_axes(*spec, equation));
      TASO_RETURN_IF_ERROR(equation_of(equation, spec->axes));
      scope_.resize(mark);
      if (i + 1 == equations.size() || equations[i + 1].target != equation.target)
        tensors_.push_back({spec->name, spec->axes});
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

  // ---- recurrences ----

  using Intermediates = std::vector<IntermediateSpec>;

  /// A read of a tensor of a recurrence in the equation of one: `reader` and `read` count them.
  struct StepRead {
    const Expression* read_at = nullptr;
    std::size_t reader = 0, read = 0;
    bool valid = false;  ///< In valid(...).
  };

  template <class Visit>
  static void for_each_read(const Expression& e, const Visit& visit, bool valid = false) {
    if (e.kind == Kind::read) visit(e, valid);
    for (const Expression& operand : e.operands) for_each_read(operand, visit, e.kind == Kind::valid);
    if (e.fallback != nullptr) for_each_read(*e.fallback, visit);
  }

  /// The tensors that are computed together with this one, the equation of which is number `at`: one that reads itself
  /// or what stands after it, up to the last that is read so. None if it reads what stands before it only.
  Expected<Recurrence> recurrence(Intermediates::iterator tensor, std::size_t at) {
    const auto first = static_cast<std::size_t>(tensor - op_->intermediates.begin());
    Recurrence result{.first = first, .count = 0, .axis = 0};
    std::size_t begin = at;
    for (std::size_t member = first; member < first + std::max<std::size_t>(result.count, 1); ++member) {
      const IntermediateSpec& spec = op_->intermediates.at(member);
      std::size_t end = begin;
      while (end < op_->equations.size() && op_->equations[end].target == spec.name) ++end;
      for (std::size_t i = begin; i < end; ++i)
        for_each_read(op_->equations[i].value, [&](const Expression& read, bool /*valid*/) {
          for (std::size_t other = member; other < op_->intermediates.size(); ++other)
            if (op_->intermediates[other].name == read.name) result.count = std::max(result.count, other + 1 - first);
        });
      if (result.count == 0) break;
      if (end == begin)
        return bad_input("'" + spec.name + "' is computed step by step together with '" + tensor->name +
                             "': their equations stand together",
                         spec.where);
      if (end != begin + 1)
        return bad_input(
            "'" + spec.name + "' has several equations, and a tensor that is computed step by step has one",
            op_->equations[begin].where);
      begin = end;
    }
    return result;
  }

  /// One equation of a recurrence; before the first of them, all of its tensors can be read.
  Status equation_of_recurrence(const Recurrence& steps, std::size_t member, Equation& equation) {
    if (member == 0)
      for (std::size_t i = 0; i < steps.count; ++i) {
        IntermediateSpec& spec = op_->intermediates[steps.first + i];
        TASO_RETURN_IF_ERROR(intermediate_axes(spec, (&equation)[i]));
        tensors_.push_back({spec.name, spec.axes});
      }
    const std::size_t mark = scope_.size();
    TASO_RETURN_IF_ERROR(equation_of(equation, op_->intermediates[steps.first + member].axes));
    scope_.resize(mark);
    return {};
  }

  /// Finds the axis along which the steps of a recurrence go, and what each equation reads of which step.
  Status along_one_axis(const Recurrence& steps, std::size_t at) {
    std::vector<StepRead> reads;
    for (std::size_t member = 0; member < steps.count; ++member)
      for_each_read(op_->equations[at + member].value, [&](const Expression& read, bool valid) {
        for (std::size_t other = 0; other < steps.count; ++other)
          if (op_->intermediates[steps.first + other].name == read.name) reads.push_back({&read, member, other, valid});
      });
    const auto first =
        std::find_if(reads.begin(), reads.end(), [](const StepRead& read) { return read.read >= read.reader; });
    TASO_CHECK(first != reads.end(), "a recurrence without a read");
    // The first of the axes that will do.
    std::optional<Error> failure;
    for (std::size_t entry = 0; entry < first->read_at->operands.size() && !first->read_at->flat; ++entry) {
      std::vector<std::optional<std::size_t>> axes(steps.count);
      axes[first->read] = entry;
      if (!(step_of(*first, entry, op_->equations[at + first->reader]) == -1)) continue;
      const Status status = take_steps(steps, at, reads, axes);
      if (status) return {};
      if (!failure) failure = status.error();
    }
    if (failure) return *failure;
    const IntermediateSpec& read = op_->intermediates[steps.first + first->read];
    return bad_input("'" + read.name + "' is read where it is not computed yet; a recurrence reads the step before, '" +
                         read.name + "[..., t - 1, ...] or' an initial value, where t is an index variable of '" +
                         op_->intermediates[steps.first + first->reader].name + "'",
                     first->read_at->where);
  }

  /// Of a coordinate of a read that is an index variable of the equation plus a number: the number.
  static std::optional<std::int64_t> step_of(const StepRead& read, std::size_t entry, const Equation& equation) {
    const Expression& coordinate = read.read_at->operands[entry];
    if (coordinate.rest) return std::nullopt;
    if (index_of(coordinate, equation)) return 0;
    if ((coordinate.kind == Kind::subtract || coordinate.kind == Kind::add) &&
        index_of(coordinate.operands[0], equation) && coordinate.operands[1].kind == Kind::integer)
      return coordinate.kind == Kind::add ? coordinate.operands[1].integer : -coordinate.operands[1].integer;
    return std::nullopt;
  }

  /// The entry of the axis list over which an index variable of the left side ranges.
  static std::optional<std::size_t> index_of(const Expression& name, const Equation& equation) {
    if (name.kind != Kind::name) return std::nullopt;
    for (std::size_t i = 0; i < equation.coordinates.size(); ++i)
      if (equation.coordinates[i].kind == Kind::name && !equation.coordinates[i].rest &&
          equation.coordinates[i].name == name.name)
        return i;
    return std::nullopt;
  }

  /// Extends the axes of some tensors of a recurrence to all, and checks what is read.
  Status take_steps(const Recurrence& steps, std::size_t at, const std::vector<StepRead>& reads,
                    std::vector<std::optional<std::size_t>> axes) {
    auto variable = [&](const StepRead& read, std::size_t entry) {
      const Expression& coordinate = read.read_at->operands[entry];
      return index_of(coordinate.kind == Kind::name ? coordinate : coordinate.operands.at(0),
                      op_->equations[at + read.reader]);
    };
    for (bool progress = true; progress;) {
      progress = false;
      for (const StepRead& read : reads) {
        if (read.read_at->flat) continue;
        const Equation& equation = op_->equations[at + read.reader];
        for (std::size_t entry = 0; entry < read.read_at->operands.size(); ++entry) {
          if ((axes[read.read] && axes[read.read] != entry) || !step_of(read, entry, equation)) continue;
          const std::optional<std::size_t> own = variable(read, entry);
          if (axes[read.reader] && axes[read.reader] != own) continue;
          if (!axes[read.read] && !axes[read.reader]) continue;
          progress = progress || !axes[read.read] || !axes[read.reader];
          axes[read.read] = entry;
          axes[read.reader] = own;
          break;
        }
      }
    }
    const IntermediateSpec& first = op_->intermediates[steps.first];
    for (std::size_t member = 0; member < steps.count; ++member) {
      IntermediateSpec& spec = op_->intermediates[steps.first + member];
      if (!axes[member])
        return bad_input("'" + spec.name +
                             "' stands among tensors that are computed step by step, and is not; define "
                             "it before '" +
                             first.name + "'",
                         spec.where);
    }
    for (const StepRead& read : reads) TASO_RETURN_IF_ERROR(check_step(steps, at, read, axes));
    for (std::size_t member = 0; member < steps.count; ++member) {
      const IntermediateSpec& spec = op_->intermediates[steps.first + member];
      const std::string own = to_text(spec.axes[*axes[member]]), others = to_text(first.axes[*axes[0]]);
      if (own != others)
        return bad_input("tensors that are computed step by step have one number of steps: '" + first.name + "' has " +
                             others + ", and '" + spec.name + "' has " + own,
                         spec.where);
    }
    for (std::size_t member = 0; member < steps.count; ++member) {
      IntermediateSpec& spec = op_->intermediates[steps.first + member];
      spec.recurrence = Recurrence{steps.first, steps.count, *axes[member]};
      for (const StepRead& read : reads)
        if (read.read == member && step_of(read, *axes[member], op_->equations[at + read.reader]) == -1)
          spec.recurrence->carried = true;
    }
    return {};
  }

  /// That a read is of the same step and of what is computed by then, or of the step before.
  [[nodiscard]] Status check_step(const Recurrence& steps, std::size_t at, const StepRead& read,
                                  const std::vector<std::optional<std::size_t>>& axes) const {
    const Expression& e = *read.read_at;
    const std::string quoted = "'" + e.name + "'";
    if (read.valid || e.flat)
      return bad_input(quoted +
                           " is computed step by step, and is read here as 'tensor[...]' or 'tensor[...] or' an "
                           "initial value only",
                       e.where);
    const Equation& equation = op_->equations[at + read.reader];
    const std::optional<std::size_t> axis = axes[read.read], own = axes[read.reader];
    const std::string variable = own ? equation.coordinates[*own].name : "t";
    const std::optional<std::int64_t> step = axis ? step_of(read, *axis, equation) : std::nullopt;
    const bool along = step && own && variable_at(e.operands[*axis]) == variable;
    if (!along || (*step != 0 && *step != -1))
      return bad_input("a recurrence reads the same step and the one before, " + variable + " and " + variable +
                           " - 1, and " + quoted + " is read at " + (axis ? to_text(e.operands[*axis]) : "neither"),
                       axis ? e.operands[*axis].where : e.where);
    const bool along_another = [&] {
      for (std::size_t entry = 0; entry < e.operands.size(); ++entry)
        if (entry != *axis && step_of(read, entry, equation) == -1) return true;
      return false;
    }();
    if (*step == 0 && read.read == read.reader && along_another)
      return bad_input("a recurrence goes along one axis, here that of " + variable + ", and " + quoted +
                           " is read at the same step",
                       e.where);
    if (*step == 0 && read.read >= read.reader)
      return bad_input(quoted + " is read at step " + variable + ", where it is not computed yet; read it at " +
                           variable + " - 1" +
                           (read.read == read.reader
                                ? ""
                                : ", or define it before '" + op_->intermediates[steps.first + read.reader].name + "'"),
                       e.where);
    if (*step == -1 && e.fallback == nullptr)
      return bad_input(quoted + " at " + to_text(e.operands[*axis]) + " needs an initial value for the first step: '" +
                           to_text(e) + " or ...'",
                       e.where);
    return {};
  }

  static std::string variable_at(const Expression& coordinate) {
    return coordinate.kind == Kind::name ? coordinate.name : coordinate.operands.at(0).name;
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
    return real(equation.value);
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

  const Declarations& declarations_;
  OperatorDefinition* op_ = nullptr;
  std::vector<std::pair<std::string, Sort>> scope_;  ///< Innermost last.
  std::size_t attributes_end_ = 0;                   ///< scope_ up to here holds the attributes.
  std::vector<Tensor> tensors_;
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
