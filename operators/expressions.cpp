#include "operators/expressions.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "operators/unparse.h"

namespace taso {
namespace {

using Kind = Expression::Kind;
using AxisKind = AxisSpec::Kind;

}  // namespace

Expression name_of(std::string name, const SourceLocation& where, bool rest) {
  Expression e;
  e.kind = Kind::name;
  e.name = std::move(name);
  e.rest = rest;
  e.where = where;
  return e;
}

Expression integer_of(std::int64_t value, const SourceLocation& where) {
  Expression e;
  e.integer = value < 0 ? -value : value;
  e.where = where;
  if (value >= 0) return e;
  Expression negative;
  negative.kind = Kind::negate;
  negative.where = where;
  negative.operands.push_back(std::move(e));
  return negative;
}

Expression make(Kind kind, std::vector<Expression> operands, const SourceLocation& where, std::string name) {
  Expression e;
  e.kind = kind;
  e.operands = std::move(operands);
  e.where = where;
  e.name = std::move(name);
  return e;
}

Expression literal_of(const AttributeValue& value, const SourceLocation& where) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return integer_of(*integer, where);
  if (const auto* real = std::get_if<double>(&value)) {
    Expression e;
    e.kind = Kind::real;
    e.real = std::abs(*real);
    e.where = where;
    return *real < 0 ? make(Kind::negate, {std::move(e)}, where) : e;
  }
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
    std::vector<Expression> elements;
    for (const std::int64_t element : *list) elements.push_back(integer_of(element, where));
    return make(Kind::list, std::move(elements), where);
  }
  return name_of(std::get<SymbolValue>(value).name, where);
}

std::optional<std::int64_t> constant(const Expression& e) {
  if (e.kind == Kind::integer) return e.integer;
  std::vector<std::int64_t> values;
  for (const Expression& operand : e.operands) {
    const std::optional<std::int64_t> value = constant(operand);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  std::int64_t result = 0;
  bool overflow = false;
  switch (e.kind) {
    case Kind::negate:
      overflow = __builtin_sub_overflow(std::int64_t{0}, values[0], &result);
      break;
    case Kind::add:
      overflow = __builtin_add_overflow(values[0], values[1], &result);
      break;
    case Kind::subtract:
      overflow = __builtin_sub_overflow(values[0], values[1], &result);
      break;
    case Kind::multiply:
      overflow = __builtin_mul_overflow(values[0], values[1], &result);
      break;
    default:
      return std::nullopt;
  }
  return overflow ? std::nullopt : std::optional(result);
}

bool is_literal(const Expression& e) {
  if (e.kind == Kind::list) return std::all_of(e.operands.begin(), e.operands.end(), is_literal);
  return e.number().has_value();
}

bool same_text(const Expression& a, const Expression& b) { return to_text(a) == to_text(b); }

Expression extent_of(const AxisSpec& axis) {
  Expression product = axis.factors[0];
  for (std::size_t i = 1; i < axis.factors.size(); ++i)
    product = make(Kind::multiply, {std::move(product), axis.factors[i]}, axis.where);
  return product;
}

Expression extents_of(const Axes& axes, const SourceLocation& where) {
  if (axes.size() == 1 && axes[0].kind == AxisKind::rest) return axes[0].factors[0];
  std::vector<Expression> parts;
  bool rests = false;
  for (const AxisSpec& axis : axes) {
    parts.push_back(extent_of(axis));
    rests = rests || axis.kind == AxisKind::rest;
  }
  return rests ? make(Kind::call, std::move(parts), where, "join") : make(Kind::list, std::move(parts), where);
}

void collect_names(const Expression& e, std::set<std::string>& names) {
  if (e.kind == Kind::name || e.kind == Kind::piece) names.insert(e.name);
  for (const Expression& operand : e.operands) collect_names(operand, names);
}

}  // namespace taso
