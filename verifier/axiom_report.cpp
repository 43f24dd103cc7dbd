#include "verifier/axiom_report.h"

#include <algorithm>
#include <set>
#include <string>

#include "verifier/axiom_use.h"
#include "verifier/theory/theory.h"

namespace taso {
namespace {

void collect(const AttributeExpression& expression, std::set<std::uint32_t>& attributes) {
  if (expression.kind == AttributeExpression::Kind::variable) attributes.insert(expression.index);
  for (const AttributeExpression& operand : expression.operands) collect(operand, attributes);
}

bool determines(const Pattern& side, const Substitution& axiom) {
  std::set<std::uint32_t> tensors, attributes;
  for (const PatternValue& output : side.outputs)
    if (output.is_variable) tensors.insert(output.index);
  for (const PatternNode& node : side.nodes) {
    for (const PatternValue& input : node.inputs)
      if (input.is_variable) tensors.insert(input.index);
    for (const auto& [name, expression] : node.attributes) collect(expression, attributes);
  }
  // A bare variable is no pattern.
  return !side.nodes.empty() && tensors.size() == axiom.tensor_variables.size() &&
         attributes.size() == axiom.attribute_variables.size();
}

}  // namespace

// x = y for two tensor variables (the axiom's own, or one of them and a new one), with both sides of an axiom as
// further outputs that agree trivially: their terms and those of the axiom's conditions are there to be matched.
Substitution collapse_goal(const Substitution& axiom, std::uint32_t x, std::uint32_t y) {
  Substitution rule = axiom;
  rule.name = "x = y among the terms of " + axiom.name;
  rule.is_axiom = false;
  rule.proofs.clear();
  while (rule.tensor_variables.size() <= std::max(x, y))
    rule.tensor_variables.push_back("other" + std::to_string(rule.tensor_variables.size()));
  // Both patterns hold the nodes of both sides; the first output is asked for.
  Pattern both = axiom.source;
  const auto shift = static_cast<std::uint32_t>(both.nodes.size());
  for (PatternNode node : axiom.target.nodes) {
    for (PatternValue& input : node.inputs)
      if (!input.is_variable) input.index += shift;
    both.nodes.push_back(std::move(node));
  }
  for (PatternValue output : axiom.target.outputs) {
    if (!output.is_variable) output.index += shift;
    both.outputs.push_back(output);
  }
  rule.source = rule.target = both;
  rule.source.outputs.insert(rule.source.outputs.begin(), PatternValue{true, x, 0});
  rule.target.outputs.insert(rule.target.outputs.begin(), PatternValue{true, y, 0});
  return rule;
}

namespace {

std::vector<Substitution> only_axioms(const std::vector<Substitution>& statements) {
  std::vector<Substitution> axioms;
  for (const Substitution& statement : statements)
    if (statement.is_axiom) axioms.push_back(statement);
  return axioms;
}

}  // namespace

AxiomUse usable_directions(const Substitution& axiom) {
  return {determines(axiom.source, axiom), determines(axiom.target, axiom)};
}

std::optional<IllTypedUse> unguarded_use(const OperatorRegistry& registry, const Substitution& axiom,
                                         const ShapeFacts& shapes, LoweredCache& cache) {
  for (const bool left_to_right : {true, false})
    for (std::size_t output = 0; output < axiom.source.outputs.size(); ++output) {
      if (shapes.may_be_ill_typed[left_to_right ? 0 : 1][output]) continue;
      if (auto types = ill_typed_use(registry, axiom, shapes, left_to_right, output, examined_uses, cache))
        return IllTypedUse{left_to_right, output, std::move(*types)};
    }
  return std::nullopt;
}

RedundancyCheck::RedundancyCheck(const OperatorRegistry& registry, const std::vector<Substitution>& axioms,
                                 std::uint64_t rlimit)
    : axioms_(only_axioms(axioms)), theory_(registry, axioms_, rlimit) {
  std::size_t next = 0;
  for (const Substitution& axiom : axioms) places_.push_back(axiom.is_axiom ? std::optional(next++) : std::nullopt);
}

bool RedundancyCheck::follows(std::size_t index) {
  const std::optional<std::size_t> place = places_[index];
  if (!place) return false;
  Substitution goal = axioms_[*place];
  goal.is_axiom = false;
  return theory_.entails(goal, {.without = *place}).proved;
}

ConsistencyCheck::ConsistencyCheck(const OperatorRegistry& registry, const std::vector<Substitution>& axioms,
                                   std::uint64_t rlimit)
    : axioms_(axioms), theory_(registry, axioms, rlimit) {}

std::optional<std::string> ConsistencyCheck::collapse(std::size_t index) {
  const auto count = static_cast<std::uint32_t>(std::max<std::size_t>(2, axioms_[index].tensor_variables.size()));
  for (std::uint32_t x = 0; x < count; ++x)
    for (std::uint32_t y = x + 1; y < count; ++y) {
      const Substitution goal = collapse_goal(axioms_[index], x, y);
      if (theory_.entails(goal).proved) return goal.name;
    }
  return std::nullopt;
}

bool ConsistencyCheck::entails(const Substitution& falsehood) { return theory_.entails(falsehood).proved; }

}  // namespace taso
