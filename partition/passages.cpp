#include <algorithm>
#include <numeric>
#include <optional>

#include "operators/dependence.h"
#include "partition/rule_builder.h"
#include "partition/strategy.h"

namespace taso {
namespace {

/// `op(combine(x, x2), y) => combine(op(x, y), op(x2, y))` for the partial inputs x.
Substitution passage_rule(const OperatorDefinition& definition, const std::vector<std::size_t>& partial,
                          const std::string& combine, const std::string& name) {
  Substitution rule = whole_operator(definition);
  rule.name = name;
  const PatternNode whole = rule.source.nodes[0];
  rule.source = {};
  rule.tensor_variables.clear();
  PatternNode combined = whole, first = whole, second = whole;
  const auto variable = [&](const std::string& wanted) {
    rule.tensor_variables.push_back(wanted);
    return PatternValue{true, static_cast<std::uint32_t>(rule.tensor_variables.size() - 1), 0};
  };
  for (std::size_t input = 0; input < whole.inputs.size(); ++input) {
    const std::string& tensor = definition.inputs[input].name;
    const PatternValue one = variable(tensor);
    combined.inputs[input] = first.inputs[input] = second.inputs[input] = one;
    if (std::find(partial.begin(), partial.end(), input) == partial.end()) continue;
    second.inputs[input] = variable(tensor + "_2");
    combined.inputs[input] = add_node(rule.source, {combine, {one, second.inputs[input]}, {}});
  }
  rule.source.outputs = {add_node(rule.source, combined)};
  rule.target.outputs = {
      add_node(rule.target, {combine, {add_node(rule.target, first), add_node(rule.target, second)}, {}})};
  return rule;
}

}  // namespace

Substitution whole_operator(const OperatorDefinition& definition) {
  Substitution rule;
  PatternNode node;
  node.op = definition.name;
  for (const InputSpec& input : definition.inputs) {
    node.inputs.push_back({true, static_cast<std::uint32_t>(rule.tensor_variables.size()), 0});
    rule.tensor_variables.push_back(input.name);
  }
  for (const AttributeSpec& attribute : definition.attributes) {
    node.attributes.emplace_back(attribute.name,
                                 variable_expression(static_cast<std::uint32_t>(rule.attribute_variables.size())));
    rule.attribute_variables.push_back(attribute.name);
  }
  rule.source.outputs = {add_node(rule.source, std::move(node))};
  return rule;
}

std::vector<PartialPassage> derive_passages(const OperatorRegistry& registry, std::string_view op) {
  const OperatorDefinition* definition = registry.find(op);
  TASO_CHECK(definition != nullptr, "the passages of an operator that the registry lacks are asked for");
  std::vector<PartialPassage> result;
  if (definition->variadic() || definition->several_outputs()) return result;
  std::vector<std::vector<std::size_t>> choices;
  for (std::size_t input = 0; input < definition->inputs.size(); ++input)
    if (!definition->inputs[input].integers()) choices.push_back({input});
  if (choices.size() > 1) {
    std::vector<std::size_t> all;
    for (const std::vector<std::size_t>& one : choices) all.push_back(one[0]);
    choices.push_back(std::move(all));
  }
  for (const char* reducer : {"sum", "max"}) {
    const std::string combine = combining_operator(registry, reducer);
    if (combine.empty()) continue;
    for (const std::vector<std::size_t>& inputs : choices) {
      const Dependence depends = dependence(registry, op, inputs);
      if (!(reducer == std::string("sum") ? depends.linear : depends.preserves_maxima)) continue;
      std::string name = std::string(op) + "_keeps_" + reducer;
      if (choices.size() > 1) {
        name += "_of";
        for (const std::size_t input : inputs) name += "_" + definition->inputs[input].name;
      }
      result.push_back({std::string(op), inputs, reducer, passage_rule(*definition, inputs, combine, name)});
    }
  }
  return result;
}

}  // namespace taso
