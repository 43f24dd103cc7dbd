#include "verifier/rule_conditions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "operators/plain_reads.h"
#include "verifier/attribute_kinds.h"
#include "verifier/unbounded/symbolic_types.h"

namespace taso {
namespace {

using Form = AttributeExpression::Kind;
using Relation = Condition::Relation;

bool is_arithmetic(const AttributeExpression& e) {
  return e.kind == Form::add || e.kind == Form::subtract || e.kind == Form::multiply || e.kind == Form::floor_divide;
}

// Whether an expression is, or has as a part, arithmetic on reals.
bool real_arithmetic(const AttributeExpression& e, const AttributeKinds& kinds) {
  auto real = [&](const AttributeExpression& operand, auto&& self) -> bool {
    if (operand.kind == Form::variable) return kinds[operand.index].kind == Kindness::real;
    if (operand.kind == Form::literal) return std::holds_alternative<double>(operand.literal);
    return is_arithmetic(operand) && std::any_of(operand.operands.begin(), operand.operands.end(),
                                                 [&](const AttributeExpression& part) { return self(part, self); });
  };
  if (is_arithmetic(e) && real(e, real)) return true;
  return std::any_of(e.operands.begin(), e.operands.end(),
                     [&](const AttributeExpression& operand) { return real_arithmetic(operand, kinds); });
}

bool speaks_of(const AttributeExpression& e, std::uint32_t variable) {
  return (e.kind == Form::variable && e.index == variable) ||
         std::any_of(e.operands.begin(), e.operands.end(),
                     [&](const AttributeExpression& operand) { return speaks_of(operand, variable); });
}

// Whether an expression of a definition does more with numbers than to select them.
bool computes(const Expression& e) {
  using Kind = Expression::Kind;
  if (e.sort == Sort::real) {
    switch (e.kind) {
      case Kind::negate:
        if (e.operands[0].kind != Kind::infinity) return true;
        break;
      case Kind::add:
      case Kind::subtract:
      case Kind::multiply:
      case Kind::divide:
        return true;
      case Kind::call:
      case Kind::reduce:
        if (e.name != "max" && e.name != "min") return true;
        break;
      default:
        break;
    }
  }
  return std::any_of(e.operands.begin(), e.operands.end(), computes) || (e.fallback && computes(*e.fallback));
}

bool computes(const OperatorRegistry& registry, const std::string& op) {
  const OperatorDefinition* definition = registry.find(op);
  return definition == nullptr || std::any_of(definition->equations.begin(), definition->equations.end(),
                                              [](const Equation& equation) { return computes(equation.value); });
}

// Whether a value of the target that depends on an attribute variable is computed with.
bool target_computes_with(const OperatorRegistry& registry, const Substitution& rule, std::uint32_t variable,
                          const AttributeKinds& kinds) {
  std::vector<bool> depends(rule.target.nodes.size(), false);
  for (std::size_t n = 0; n < rule.target.nodes.size(); ++n) {
    const PatternNode& node = rule.target.nodes[n];
    for (const auto& [name, expression] : node.attributes) {
      if (!speaks_of(expression, variable)) continue;
      depends[n] = true;
      if (real_arithmetic(expression, kinds)) return true;
    }
    for (const PatternValue& input : node.inputs)
      if (!input.is_variable && depends[input.index]) depends[n] = true;
    if (depends[n] && computes(registry, node.op)) return true;
  }
  return false;
}

// Whether an expression of an operator's definition has a value everywhere.
bool always_defined(const OperatorRegistry& registry, const PatternNode& node, const OperatorDefinition& definition,
                    const Expression& e) {
  using Kind = Expression::Kind;
  if (e.sort == Sort::integer_read) return false;
  switch (e.kind) {
    case Kind::divide:
      // Quotients of sizes round; what they divide by is checked where the operator is typed.
      if (e.sort == Sort::real && (e.operands[1].kind != Kind::real || e.operands[1].real == 0)) return false;
      break;
    case Kind::reduce:
      if (e.name == "max" || e.name == "min") return false;
      break;
    case Kind::call: {
      if (e.name == "max" || e.name == "min" || e.sort != Sort::real) break;
      std::string name = e.name;
      if (const AttributeSpec* attribute = definition.find_attribute(e.name)) {
        const auto given = std::find_if(node.attributes.begin(), node.attributes.end(),
                                        [&](const auto& entry) { return entry.first == e.name; });
        std::optional<AttributeValue> value = attribute->default_value;
        if (given != node.attributes.end()) {
          if (given->second.kind == Form::variable) break;  // of a function that has a value for every number
          if (given->second.kind != Form::literal) return false;
          value = given->second.literal;
        }
        const auto* symbol = value ? std::get_if<SymbolValue>(&*value) : nullptr;
        if (symbol == nullptr) return false;
        name = symbol->name;
      }
      const FunctionDefinition* function = registry.find_function(name);
      if (function == nullptr || function->domain != ArgumentDomain::all) return false;
      if (function->definition && !always_defined(registry, node, definition, *function->definition)) return false;
      break;
    }
    default:
      break;
  }
  auto defined = [&](const Expression& part) { return always_defined(registry, node, definition, part); };
  return std::all_of(e.operands.begin(), e.operands.end(), defined) && (!e.fallback || defined(*e.fallback));
}

AttributeExpression variable_of(std::uint32_t index) {
  AttributeExpression e;
  e.kind = Form::variable;
  e.index = index;
  return e;
}

}  // namespace

bool is_limited(const Substitution& rule, const AttributeExpression& number, std::int64_t limit) {
  return std::any_of(rule.conditions.begin(), rule.conditions.end(), [&](const Condition& condition) {
    if (condition.relation == Relation::equal && condition.right == number)
      if (const auto* value = std::get_if<std::int64_t>(&condition.left.literal))
        return condition.left.kind == Form::literal && *value <= limit;
    const auto* bound = std::get_if<std::int64_t>(&condition.right.literal);
    if (!(condition.left == number) || condition.right.kind != Form::literal || bound == nullptr) return false;
    return (condition.relation == Relation::less && *bound <= limit + 1) ||
           ((condition.relation == Relation::less_equal || condition.relation == Relation::equal) && *bound <= limit);
  });
}

std::vector<Condition> rank_limits(const OperatorRegistry& registry, const Substitution& rule, std::int64_t limit) {
  std::vector<Condition> result;
  const unbounded::VariableKinds kinds = unbounded::kinds_of_variables(registry, rule);
  auto add = [&](AttributeExpression number) {
    if (is_limited(rule, number, limit)) return;
    AttributeExpression bound;
    bound.literal = limit;
    result.push_back({Relation::less_equal, std::move(number), bound});
  };
  for (std::uint32_t v = 0; v < rule.tensor_variables.size(); ++v) {
    if (kinds.only_rank[v]) continue;
    AttributeExpression rank;
    rank.kind = Form::rank;
    rank.index = v;
    add(std::move(rank));
  }
  for (std::uint32_t a = 0; a < rule.attribute_variables.size(); ++a) {
    if (kinds.attributes[a] != AttributeKind::integers || kinds.lengths[a]) continue;
    AttributeExpression length;
    length.kind = Form::length;
    length.operands = {variable_of(a)};
    add(std::move(length));
  }
  return result;
}

std::vector<Condition> finiteness(const OperatorRegistry& registry, const Substitution& rule) {
  std::vector<Condition> result;
  const AttributeKinds kinds(registry, rule);
  for (std::uint32_t a = 0; a < rule.attribute_variables.size(); ++a) {
    if (kinds[a].kind != Kindness::real || !target_computes_with(registry, rule, a, kinds)) continue;
    const Condition finite{Relation::finite, variable_of(a), {}};
    if (std::find(rule.conditions.begin(), rule.conditions.end(), finite) == rule.conditions.end())
      result.push_back(finite);
  }
  return result;
}

bool computes_attributes(const OperatorRegistry& registry, const Substitution& rule) {
  const AttributeKinds kinds(registry, rule);
  std::vector<AttributeExpression> known;
  for (const PatternNode& node : rule.source.nodes)
    for (const auto& [name, expression] : node.attributes) known.push_back(expression);
  for (const PatternNode& node : rule.target.nodes)
    for (const auto& [name, expression] : node.attributes)
      if (real_arithmetic(expression, kinds) && std::find(known.begin(), known.end(), expression) == known.end())
        return true;
  return false;
}

bool always_defined(const OperatorRegistry& registry, const Pattern& pattern) {
  return std::all_of(pattern.nodes.begin(), pattern.nodes.end(), [&](const PatternNode& node) {
    const OperatorDefinition* definition = registry.find(node.op);
    return definition != nullptr &&
           std::all_of(definition->equations.begin(), definition->equations.end(), [&](const Equation& equation) {
             return always_defined(registry, node, *definition, equation.value);
           });
  });
}

std::optional<double> number_beyond_floats(const Substitution& rule) {
  std::vector<double> known;
  const auto visit = [](const Pattern& pattern, const auto& see) {
    const auto within = [&](const AttributeExpression& e, const auto& self) -> void {
      if (const auto* number = std::get_if<double>(&e.literal); number != nullptr && e.kind == Form::literal)
        see(*number);
      for (const AttributeExpression& operand : e.operands) self(operand, self);
    };
    for (const PatternNode& node : pattern.nodes)
      for (const auto& [name, expression] : node.attributes) within(expression, within);
  };
  visit(rule.source, [&](double number) { known.push_back(number); });
  std::optional<double> found;
  visit(rule.target, [&](double number) {
    if (std::isfinite(number) && std::abs(number) > std::numeric_limits<float>::max() &&
        std::find(known.begin(), known.end(), number) == known.end())
      found = number;
  });
  return found;
}

bool always_applicable(const OperatorRegistry& registry, const Substitution& rule) {
  for (std::uint32_t n = 0; n < rule.target.nodes.size(); ++n) {
    const OperatorDefinition* definition = registry.find(rule.target.nodes[n].op);
    if (definition == nullptr) return false;
    const bool plain = reads_plainly(*definition);
    bool of_source = false;
    for (std::uint32_t m = 0; m < rule.source.nodes.size() && !plain && !of_source; ++m)
      of_source = same_term(rule.source, {false, m, 0}, rule.target, {false, n, 0});
    if (!plain && !of_source) return false;
  }
  return true;
}

}  // namespace taso
