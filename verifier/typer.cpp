#include "verifier/typer.h"

#include <algorithm>
#include <utility>

namespace taso {
namespace {

void insert(std::vector<std::uint32_t>& sorted, std::uint32_t value) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), value);
  if (at == sorted.end() || *at != value) sorted.insert(at, value);
}

}  // namespace

void VariablesOfExpression::add(const AttributeExpression& expression) {
  if (expression.kind == AttributeExpression::Kind::variable) insert(attributes, expression.index);
  if (expression.names_tensor()) insert(tensors, expression.index);
  for (const AttributeExpression& operand : expression.operands) add(operand);
}

Typer::Typer(const OperatorRegistry& registry, const Substitution& rule, LoweredCache& cache)
    : registry_(registry), rule_(rule), cache_(cache) {
  for (const bool target : {false, true})
    for (const PatternNode& node : (target ? rule.target : rule.source).nodes) {
      Node& state = sides_[target].emplace_back();
      for (const auto& [name, expression] : node.attributes) state.variables.add(expression);
    }
}

std::shared_ptr<const OperatorInstance> Typer::type(bool target, std::size_t node,
                                                    std::span<const TensorType* const> inputs,
                                                    const Bindings& bindings) {
  Node& state = sides_[target][node];
  key_.clear();
  for (const TensorType* type : inputs) append_to_key(key_, *type);
  for (const std::uint32_t v : state.variables.attributes) {
    if (!bindings.attributes[v]) return nullptr;
    append_to_key(key_, *bindings.attributes[v]);
  }
  for (const std::uint32_t v : state.variables.tensors) {
    if (bindings.tensors[v] == nullptr) return nullptr;
    append_to_key(key_, *bindings.tensors[v]);
  }
  const auto [it, inserted] = state.known.try_emplace(key_);
  if (!inserted) return it->second;
  const PatternNode& pattern = (target ? rule_.target : rule_.source).nodes[node];
  const Expected<Attributes> given = evaluate_attributes(pattern, bindings, registry_);
  if (!given) return nullptr;
  const Expected<Attributes> attributes = registry_.complete(pattern.op, *given);
  if (!attributes) return nullptr;
  std::vector<TensorType> types;
  types.reserve(inputs.size());
  for (const TensorType* type : inputs) types.push_back(*type);
  it->second = cache_.find(pattern.op, *attributes, types);
  return it->second;
}

}  // namespace taso
