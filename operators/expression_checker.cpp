#include "operators/expression_checker.h"

#include <algorithm>
#include <memory>

#include "operators/indirect_coordinate.h"
#include "operators/unparse.h"
#include "support/reversed.h"

namespace taso {

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
      return "an integer element";
    case Sort::truth_read:
      return "a truth value";
    case Sort::any_read:
      return "an element of any type";
    case Sort::boolean:
      return "a condition";
    case Sort::real:
      return "a real";
  }
  return "?";
}

/// What elements of a domain are.
Sort sort_of(ElementDomain domain) {
  switch (domain) {
    case ElementDomain::real:
      break;
    case ElementDomain::integer:
      return Sort::integer_read;
    case ElementDomain::boolean:
      return Sort::truth_read;
    case ElementDomain::any:
      return Sort::any_read;
  }
  return Sort::real;
}

Sort whole(bool vector, bool index) {
  return vector ? (index ? Sort::index_vector : Sort::integers) : (index ? Sort::index : Sort::integer);
}

const Sort* ExpressionChecker::find(std::string_view name) const {
  for (const auto& [defined, sort] : reversed(scope_))
    if (defined == name) return &sort;
  return nullptr;
}

const ReadableTensor* ExpressionChecker::find_tensor(std::string_view name) const {
  for (const ReadableTensor& tensor : tensors_)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

const AttributeSpec* ExpressionChecker::function_attribute(std::string_view name) const {
  const AttributeSpec* attribute = op_ == nullptr ? nullptr : op_->find_attribute(name);
  return attribute != nullptr && attribute->kind == AttributeKind::symbol && !attribute->element_type ? attribute
                                                                                                      : nullptr;
}

Status ExpressionChecker::declare(const std::string& name, Sort sort, const SourceLocation& where) {
  if (find(name) != nullptr || find_tensor(name) != nullptr || function_attribute(name) != nullptr)
    return bad_input("'" + name + "' already stands for something else in operator '" + op_->name + "'", where);
  scope_.emplace_back(name, sort);
  return {};
}

Status ExpressionChecker::expect(Expression& expression, Sort sort, const std::string& what) {
  TASO_RETURN_IF_ERROR(check(expression));
  if (expression.sort != sort)
    return bad_input(
        what + " must be " + describe(sort) + ", and " + to_text(expression) + " is " + describe(expression.sort),
        expression.where);
  return {};
}

Status ExpressionChecker::real(Expression& expression) {
  TASO_RETURN_IF_ERROR(check(expression));
  return real_operand(expression);
}

Status ExpressionChecker::real_operand(const Expression& expression) {
  if (expression.sort == Sort::real || expression.sort == Sort::integer) return {};
  return bad_input("a scalar is needed here, and " + to_text(expression) + " is " + describe(expression.sort),
                   expression.where);
}

Status ExpressionChecker::scalar(Expression& expression, ElementDomain domain) {
  TASO_RETURN_IF_ERROR(check(expression));
  return scalar_operand(expression, domain);
}

Status ExpressionChecker::scalar_operand(const Expression& expression, ElementDomain domain) {
  if (domain == ElementDomain::real) return real_operand(expression);
  const Sort sort = expression.sort;
  const bool number = sort == Sort::integer && domain != ElementDomain::boolean;
  const bool element =
      sort == Sort::real || sort == Sort::integer_read || sort == Sort::truth_read || sort == Sort::any_read;
  if (number || sort == sort_of(domain) || (domain == ElementDomain::any && element)) return {};
  return bad_input(
      std::string(describe(sort_of(domain))) + " is needed here, and " + to_text(expression) + " is " + describe(sort),
      expression.where);
}

Status ExpressionChecker::check(Expression& e) {
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
      TASO_RETURN_IF_ERROR(check(e.operands[1]));
      TASO_RETURN_IF_ERROR(check(e.operands[2]));
      e.sort = Sort::real;
      if (const Sort sort = e.operands[1].sort;
          sort == e.operands[2].sort &&
          (sort == Sort::integer_read || sort == Sort::truth_read || sort == Sort::any_read)) {
        e.sort = sort;
        return {};
      }
      TASO_RETURN_IF_ERROR(real_operand(e.operands[1]));
      return real_operand(e.operands[2]);
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

Error ExpressionChecker::unknown_name(const Expression& e) const {
  if (find_tensor(e.name) != nullptr)
    return bad_input("tensor '" + e.name + "' is read with coordinates: " + e.name + "[...]", e.where);
  if (function_attribute(e.name) != nullptr || declarations_.functions.contains(e.name))
    return bad_input("function '" + e.name + "' needs arguments: " + e.name + "(...)", e.where);
  std::string known;
  for (const auto& [name, sort] : scope_) known += (known.empty() ? "" : ", ") + name;
  return bad_input("unknown name '" + e.name + "'; known here: " + (known.empty() ? "none" : known), e.where);
}

bool ExpressionChecker::is_known_number(const Expression& e) const {
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

Status ExpressionChecker::element(Expression& e) {
  TASO_RETURN_IF_ERROR(check(e.operands[0]));
  TASO_RETURN_IF_ERROR(check(e.operands[1]));
  const Sort vector = e.operands[0].sort, subscript = e.operands[1].sort;
  if (!is_vector(vector))
    return bad_input("a subscript needs a vector before it, and " + to_text(e.operands[0]) + " is " + describe(vector),
                     e.where);
  if (subscript != Sort::integer && subscript != Sort::integers)
    return bad_input("a subscript is an integer or a vector of integers, and " + to_text(e.operands[1]) + " is " +
                         describe(subscript),
                     e.where);
  e.sort = whole(subscript == Sort::integers, is_index(vector));
  return {};
}

Status ExpressionChecker::arithmetic(Expression& e) {
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

Status ExpressionChecker::arity(const Expression& e, std::size_t expected) {
  if (e.operands.size() == expected) return {};
  return bad_input("'" + e.name + "' takes " + std::to_string(expected) + (expected == 1 ? " argument" : " arguments") +
                       ", not " + std::to_string(e.operands.size()),
                   e.where);
}

Status ExpressionChecker::argument(const Expression& e, std::size_t i, SizeArgument wanted) {
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

Status ExpressionChecker::builtin(Expression& e, const SizeBuiltinSpec& spec) {
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

Status ExpressionChecker::call(Expression& e) {
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
  const FunctionDefinition* named = nullptr;
  if (function_attribute(e.name) == nullptr) {
    const auto function = declarations_.functions.find(e.name);
    if (function == declarations_.functions.end())
      return bad_input("unknown function '" + e.name + "'; declare it: function " + e.name + "(x)", e.where);
    named = &function->second;
    expected = static_cast<std::size_t>(named->arity);
  }
  TASO_RETURN_IF_ERROR(arity(e, expected));
  for (std::size_t i = 0; i < e.operands.size(); ++i)
    TASO_RETURN_IF_ERROR(
        scalar_operand(e.operands[i], named == nullptr ? ElementDomain::real : named->parameter_domains[i]));
  e.sort = named == nullptr ? Sort::real : sort_of(named->result);
  return {};
}

Status ExpressionChecker::range_extent(Expression::Range& range, const SourceLocation& where) {
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

Status ExpressionChecker::reduce(Expression& e) {
  const std::size_t mark = scope_.size();
  for (Expression::Range& range : e.ranges) {
    TASO_RETURN_IF_ERROR(range_extent(range, e.where));
    TASO_RETURN_IF_ERROR(declare(range.name, range.rest ? Sort::index_vector : Sort::index, e.where));
  }
  Expression& body = e.operands[0];
  if (body.kind == Kind::read && is_infinity(body.fallback.get())) {
    const bool negative = body.fallback->kind == Kind::negate;
    if (e.name != (negative ? "max" : "min"))
      return bad_input("'or -inf' belongs under max and 'or inf' under min: there the element is left out", body.where);
    TASO_RETURN_IF_ERROR(read(body, true));
  } else {
    TASO_RETURN_IF_ERROR(real(body));
  }
  scope_.resize(mark);
  e.sort = Sort::real;
  return {};
}

bool ExpressionChecker::is_infinity(const Expression* e) {
  if (e == nullptr) return false;
  if (e->kind == Kind::negate) return e->operands[0].kind == Kind::infinity;
  return e->kind == Kind::infinity;
}

Status ExpressionChecker::read(Expression& e, bool extremum) {
  const ReadableTensor* tensor = find_tensor(e.name);
  if (tensor == nullptr && op_ != nullptr && op_->find_intermediate(e.name) != nullptr)
    return bad_input("'" + e.name + "' is read before it is defined", e.where);
  if (tensor == nullptr) return bad_input("tensor '" + e.name + "' cannot be read here", e.where);
  if (tensor->variadic != (e.piece != nullptr) && !e.flat)
    return bad_input(tensor->variadic ? "'" + e.name + "' is variadic: read one of its tensors, '" + e.name + ".k[...]'"
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
  e.sort = sort_of(tensor->domain);
  if (extremum && tensor->domain != ElementDomain::real)
    return bad_input("max and min are of reals, and " + to_text(e) + " is " + describe(e.sort), e.where);
  if (e.fallback == nullptr || extremum) return {};
  if (is_infinity(e.fallback.get()))
    return bad_input("'or -inf' stands directly under max, and 'or inf' under min", e.where);
  Expression fallback = *e.fallback;
  TASO_RETURN_IF_ERROR(scalar(fallback, tensor->domain));
  e.fallback = std::make_shared<const Expression>(std::move(fallback));
  return {};
}

/// Whether a coordinate makes something of an element of an input of integers (operators/indirect_coordinate.h).
bool ExpressionChecker::says_integers(const Expression& e) const {
  const Expression* read = indirect_coordinate(e).read;
  const ReadableTensor* tensor = read != &e && read->kind == Kind::read ? find_tensor(read->name) : nullptr;
  return tensor != nullptr && tensor->domain == ElementDomain::integer;
}

Status ExpressionChecker::plain_index(const Expression& read) const {
  if (read.fallback != nullptr) return bad_input("a read of integers cannot have 'or' in a coordinate", read.where);
  if (read.kind == Kind::read && find_tensor(read.name)->input) return {};
  return bad_input("integers of a coordinate are read from an input, and " + to_text(read) + " is computed",
                   read.where);
}

Status ExpressionChecker::indirect(Expression& e) {
  const bool moved = e.kind == Kind::subtract;
  Expression& index = moved ? e.operands[0] : e;
  if (index.kind != Kind::modulo)
    return bad_input("how many places '" + to_text(index) + "' is one of must be said: '" + to_text(index) + " % n'",
                     index.where);
  TASO_RETURN_IF_ERROR(read(index.operands[0], false));
  TASO_RETURN_IF_ERROR(plain_index(index.operands[0]));
  TASO_RETURN_IF_ERROR(expect(index.operands[1], Sort::integer, "the number of places of a coordinate"));
  index.sort = e.sort = Sort::integer_read;
  return moved ? expect(e.operands[1], Sort::integer, "what is taken from a coordinate") : Status();
}

Status ExpressionChecker::coordinate(Expression& e, const AxisSpec& axis) {
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
  if (!rest && says_integers(e)) return indirect(e);
  TASO_RETURN_IF_ERROR(check(e));
  const bool fits =
      rest ? is_vector(e.sort) : e.sort == Sort::integer || e.sort == Sort::index || e.sort == Sort::integer_read;
  if (!fits)
    return bad_input("a coordinate must be " + std::string(rest ? "a vector of indices" : "an index") + ", and " +
                         to_text(e) + " is " + describe(e.sort),
                     e.where);
  return e.sort == Sort::integer_read ? plain_index(e) : Status();
}
}  // namespace taso
