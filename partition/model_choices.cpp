#include <algorithm>
#include <functional>

#include "partition/definition_uses.h"
#include "partition/operator_model.h"

namespace taso {
namespace {

using Kind = Expression::Kind;

// Calls f with every expression of a definition but its requirements, and what stands around it (null: nothing).
void for_each(const Expression& e, const Expression* parent,
              const std::function<void(const Expression&, const Expression*)>& f) {
  f(e, parent);
  for (const Expression& operand : e.operands) for_each(operand, &e, f);
  if (e.piece != nullptr) for_each(*e.piece, &e, f);
  if (e.fallback != nullptr) for_each(*e.fallback, &e, f);
  for (const Expression::Range& range : e.ranges) for_each(*range.extent, &e, f);
}

void for_each(const OperatorDefinition& definition,
              const std::function<void(const Expression&, const Expression*)>& f) {
  for (const SizeStatement& statement : definition.statements)
    if (!statement.name.empty()) for_each(statement.value, nullptr, f);
  for (const Equation& equation : definition.equations) {
    for (const Expression& coordinate : equation.coordinates) for_each(coordinate, nullptr, f);
    for (const Expression::Range& range : equation.ranges) for_each(*range.extent, nullptr, f);
    for_each(equation.value, nullptr, f);
  }
}

bool mentions(const Expression& e, const std::string& name) {
  bool found = false;
  for_each(e, nullptr, [&](const Expression& part, const Expression*) {
    found = found || ((part.kind == Kind::name || part.kind == Kind::piece) && part.name == name);
  });
  return found;
}

// Whether every use of a list is one that `allowed` says is, and there is one.
bool used_only(const OperatorDefinition& definition, const std::string& name,
               const std::function<bool(const Expression& parent, const Expression& use)>& allowed) {
  bool only = true, used = false;
  for_each(definition, [&](const Expression& e, const Expression* parent) {
    if (e.kind != Kind::name || e.name != name) return;
    used = true;
    only = only && parent != nullptr && allowed(*parent, e);
  });
  for (const AxisSpec& axis : definition.output.axes)
    for (const Expression& factor : axis.factors) only = only && !mentions(factor, name);
  return used && only;
}

std::vector<ModelChoice> extended(const std::vector<ModelChoice>& choices, std::size_t least, std::size_t most,
                                  const std::function<void(ModelChoice&, std::size_t)>& set) {
  std::vector<ModelChoice> result;
  for (const ModelChoice& choice : choices)
    for (std::size_t value = least; value <= most; ++value) {
      result.push_back(choice);
      set(result.back(), value);
    }
  return result;
}

// The rest whose number of axes is a list's length, if that is what its declaration says.
std::string rest_of_list(const AttributeSpec& attribute) {
  if (!attribute.length || attribute.length->kind != Kind::call || attribute.length->builtin != SizeBuiltin::length ||
      attribute.length->operands[0].kind != Kind::name)
    return "";
  return attribute.length->operands[0].name;
}

}  // namespace

ListUse use_of_list(const OperatorDefinition& definition, const AttributeSpec& attribute) {
  if (attribute.length && attribute.length->kind == Kind::integer) return ListUse::fixed;
  if (definition.output.count && mentions(*definition.output.count, attribute.name)) return ListUse::outputs;
  if (used_only(definition, attribute.name, [](const Expression& parent, const Expression& use) {
        return parent.kind == Kind::call && parent.builtin == SizeBuiltin::on && &parent.operands[0] == &use;
      }))
    return ListUse::axes;
  if (used_only(definition, attribute.name, [](const Expression& parent, const Expression& use) {
        return (parent.kind == Kind::call && parent.builtin == SizeBuiltin::inverse) ||
               (parent.kind == Kind::element && &parent.operands[1] == &use);
      }))
    return ListUse::permutation;
  return ListUse::per_axis;
}

std::vector<std::string> rests_of(const OperatorDefinition& definition) {
  std::vector<std::string> rests;
  for (const InputSpec& input : definition.inputs)
    for (const AxisSpec& axis : input.axes)
      if (axis.kind == AxisSpec::Kind::rest && axis.factors[0].kind == Kind::name &&
          std::find(rests.begin(), rests.end(), axis.factors[0].name) == rests.end())
        rests.push_back(axis.factors[0].name);
  return rests;
}

std::vector<ModelChoice> model_choices(const OperatorDefinition& definition) {
  std::vector<ModelChoice> choices(1);
  bool ranks_are_numbers = false;
  for (const AttributeSpec& attribute : definition.attributes) {
    if (attribute.kind != AttributeKind::integers) continue;
    const std::string& name = attribute.name;
    const auto set_length = [&](ModelChoice& choice, std::size_t value) { choice.lists[name] = value; };
    switch (use_of_list(definition, attribute)) {
      case ListUse::fixed:
        break;
      case ListUse::outputs:
        choices = extended(choices, 2, 2, set_length);
        break;
      case ListUse::axes:
        choices = extended(choices, 1, max_named_axes, set_length);
        break;
      case ListUse::permutation:
      case ListUse::per_axis: {
        ranks_are_numbers = true;
        const std::string rest = rest_of_list(attribute);
        // Lists of the same rest are equally long.
        if (!rest.empty() && choices[0].rests.contains(rest)) {
          for (ModelChoice& choice : choices) choice.lists[name] = choice.rests[rest];
          break;
        }
        choices = extended(choices, 1, max_model_rank, [&](ModelChoice& choice, std::size_t value) {
          choice.lists[name] = value;
          if (!rest.empty()) choice.rests[rest] = value;
        });
        break;
      }
    }
  }
  if (!ranks_are_numbers) return choices;
  for (const std::string& rest : rests_of(definition))
    if (!choices[0].rests.contains(rest))
      choices = extended(choices, 0, max_model_rank,
                         [&](ModelChoice& choice, std::size_t value) { choice.rests[rest] = value; });
  return choices;
}

}  // namespace taso
