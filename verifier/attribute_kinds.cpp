#include "verifier/attribute_kinds.h"

#include <variant>

namespace taso {
namespace {

using Kind = AttributeExpression::Kind;

}  // namespace

AttributeShape shape_of(const OperatorRegistry& registry, const std::string& op, const std::string& name) {
  AttributeShape result;
  const OperatorSignature* signature = registry.signature(op);
  if (signature == nullptr) return result;
  for (const AttributeSignature& attribute : signature->attributes) {
    if (attribute.name != name) continue;
    switch (attribute.kind) {
      case AttributeKind::integer:
        result.kind = Kindness::integer;
        break;
      case AttributeKind::real:
        result.kind = Kindness::real;
        break;
      case AttributeKind::integers:
        result.kind = Kindness::list;
        break;
      case AttributeKind::symbol:
        result.kind = Kindness::symbol;
        break;
    }
    if (result.kind != Kindness::list) break;
    const OperatorDefinition* definition = registry.find(op);
    const AttributeSpec* spec = definition == nullptr ? nullptr : definition->find_attribute(name);
    if (spec != nullptr && spec->length && spec->length->kind == Expression::Kind::integer)
      result.length = static_cast<std::size_t>(spec->length->integer);
    break;
  }
  return result;
}

AttributeKinds::AttributeKinds(const OperatorRegistry& registry, const Substitution& rule)
    : shapes_(rule.attribute_variables.size()) {
  for (const Pattern* pattern : {&rule.source, &rule.target})
    for (const PatternNode& node : pattern->nodes)
      for (const auto& [name, expression] : node.attributes) bind(expression, shape_of(registry, node.op, name));
  for (int round = 0; round < 3; ++round) {
    for (const Pattern* pattern : {&rule.source, &rule.target})
      for (const PatternNode& node : pattern->nodes)
        for (const auto& [name, expression] : node.attributes) expect(expression, shape_of(registry, node.op, name));
    for (const Condition& condition : rule.conditions) {
      if (!condition.compares()) continue;
      AttributeShape left = kind(condition.left), right = kind(condition.right);
      // Lists of different lengths are not equal.
      if (condition.relation == Condition::Relation::not_equal) left.length = right.length = std::nullopt;
      expect(condition.left, right);
      expect(condition.right, left);
    }
  }
  for (AttributeShape& shape : shapes_)
    if (shape.kind == Kindness::unknown) shape.kind = Kindness::integer;
}

void AttributeKinds::bind(const AttributeExpression& expression, const AttributeShape& shape) {
  if (expression.kind == Kind::variable && shapes_[expression.index].kind == Kindness::unknown)
    shapes_[expression.index] = shape;
  if (expression.kind == Kind::list)
    for (const AttributeExpression& operand : expression.operands) bind(operand, {Kindness::integer, {}});
}

void AttributeKinds::expect(const AttributeExpression& expression, const AttributeShape& shape) {
  switch (expression.kind) {
    case Kind::literal:
    case Kind::rank:
    case Kind::elements:
      return;
    case Kind::variable: {
      AttributeShape& known = shapes_[expression.index];
      if (known.kind == Kindness::unknown) known.kind = shape.kind;
      if (known.kind == Kindness::list && shape.kind == Kindness::list && !known.length) known.length = shape.length;
      return;
    }
    case Kind::dimension:
    case Kind::list:
      for (const AttributeExpression& operand : expression.operands) expect(operand, {Kindness::integer, {}});
      return;
    case Kind::element:
    case Kind::length:
      expect(expression.operands[0], {Kindness::list, {}});
      return;
    case Kind::add:
    case Kind::subtract:
    case Kind::multiply:
    case Kind::floor_divide:
      for (const AttributeExpression& operand : expression.operands) expect(operand, shape);
      return;
  }
}

AttributeShape AttributeKinds::kind(const AttributeExpression& expression) const {
  switch (expression.kind) {
    case Kind::literal:
      if (std::holds_alternative<std::int64_t>(expression.literal)) return {Kindness::integer, {}};
      if (std::holds_alternative<double>(expression.literal)) return {Kindness::real, {}};
      if (const auto* list = std::get_if<std::vector<std::int64_t>>(&expression.literal))
        return {Kindness::list, list->size()};
      return {Kindness::symbol, {}};
    case Kind::variable:
      return shapes_[expression.index];
    case Kind::dimension:
    case Kind::rank:
    case Kind::element:
    case Kind::length:
      return {Kindness::integer, {}};
    case Kind::elements:
      return {};
    case Kind::list:
      return {Kindness::list, expression.operands.size()};
    case Kind::add:
    case Kind::subtract:
    case Kind::multiply:
    case Kind::floor_divide: {
      const AttributeShape left = kind(expression.operands[0]), right = kind(expression.operands[1]);
      return left.kind == Kindness::list || right.kind == Kindness::unknown ? left : right;
    }
  }
  return {};
}

}  // namespace taso
