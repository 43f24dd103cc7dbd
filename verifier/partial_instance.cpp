#include "verifier/partial_instance.h"

#include <algorithm>
#include <set>

namespace taso {
namespace {

using Integers = std::vector<std::int64_t>;

void collect(const AttributeExpression& expression, std::set<std::uint32_t>& attributes,
             std::set<std::uint32_t>& tensors) {
  using Kind = AttributeExpression::Kind;
  if (expression.kind == Kind::variable) attributes.insert(expression.index);
  if (expression.names_tensor()) tensors.insert(expression.index);
  for (const AttributeExpression& operand : expression.operands) collect(operand, attributes, tensors);
}

}  // namespace

ExpressionVariables variables_of(const AttributeExpression& expression) {
  std::set<std::uint32_t> attributes, tensors;
  collect(expression, attributes, tensors);
  return {{attributes.begin(), attributes.end()}, {tensors.begin(), tensors.end()}};
}

PartialInstance::PartialInstance(const OperatorRegistry& registry, const Substitution& rule)
    : registry_(registry), rule_(rule) {
  std::uint32_t number = 0;
  for (const bool target : {false, true}) {
    const Pattern& pattern = target ? rule.target : rule.source;
    for (const PatternNode& node : pattern.nodes) {
      NodeState state;
      state.node = &node;
      state.definition = registry.find(node.op);
      state.number = number++;
      std::set<std::uint32_t> attributes, tensors;
      for (const auto& [name, expression] : node.attributes) {
        collect(expression, attributes, tensors);
        state.expressions.push_back(variables_of(expression));
      }
      state.attributes.assign(attributes.begin(), attributes.end());
      state.tensors.assign(tensors.begin(), tensors.end());
      side(target).push_back(std::move(state));
    }
  }
  tensors_.assign(rule.tensor_variables.size(), 0);
  attributes_.assign(rule.attribute_variables.size(), 0);
  bindings_.tensors.assign(tensors_.size(), nullptr);
  bindings_.attributes.resize(attributes_.size());
}

void PartialInstance::assign_tensor(std::uint32_t variable, std::uint32_t type) {
  tensors_[variable] = type;
  bindings_.tensors[variable] = type == 0 ? nullptr : &this->type(type);
}

void PartialInstance::assign_attribute(std::uint32_t variable, std::uint32_t value) {
  attributes_[variable] = value;
  if (value == 0)
    bindings_.attributes[variable].reset();
  else
    bindings_.attributes[variable] = values_[value];
}

bool PartialInstance::bound(const std::vector<std::uint32_t>& attributes,
                            const std::vector<std::uint32_t>& tensors) const {
  for (const std::uint32_t v : attributes)
    if (attributes_[v] == 0) return false;
  for (const std::uint32_t v : tensors)
    if (tensors_[v] == 0) return false;
  return true;
}

Instance PartialInstance::instance() const {
  Instance instance;
  for (const TensorType* type : bindings_.tensors) instance.variables.push_back(type == nullptr ? TensorType{} : *type);
  instance.attributes = bindings_.attributes;
  return instance;
}

std::uint32_t PartialInstance::intern(const TensorType& type) {
  constexpr std::uint32_t large = UINT32_MAX;
  Key key{static_cast<std::uint32_t>(type.element)};
  for (const std::int64_t extent : type.shape) {
    if (extent >= 0 && extent < large) {
      key.push_back(static_cast<std::uint32_t>(extent));
      continue;
    }
    key.push_back(large);
    key.push_back(static_cast<std::uint32_t>(static_cast<std::uint64_t>(extent) >> 32));
    key.push_back(static_cast<std::uint32_t>(extent));
  }
  const auto [it, inserted] =
      type_ids_.try_emplace(std::move(key), static_cast<std::uint32_t>(tensor_types_.size() + 1));
  if (inserted) tensor_types_.push_back({type.element, type.shape, true});
  return it->second;
}

std::vector<NamedSizes> PartialInstance::known_sizes(const NodeState& state, const Side& side,
                                                     std::optional<std::size_t> except) const {
  NamedSizes start;
  for (std::size_t i = 0; i < state.node->attributes.size(); ++i) {
    const auto& [name, expression] = state.node->attributes[i];
    const ExpressionVariables& variables = state.expressions[i];
    if (!bound(variables.attributes, variables.tensors)) continue;
    const Expected<AttributeValue> value = taso::evaluate(expression, bindings_);
    if (!value) continue;
    if (const auto* integer = std::get_if<std::int64_t>(&*value)) start[name] = {*integer};
    if (const auto* list = std::get_if<Integers>(&*value)) start["[]" + name] = *list;
  }
  std::vector<NamedSizes> all{start};
  if (state.definition->variadic()) return all;
  for (std::size_t i = 0; i < state.node->inputs.size(); ++i) {
    if (except == i) continue;
    const TensorType* type = type_of(state.node->inputs[i], side);
    if (type == nullptr) continue;
    std::vector<NamedSizes> next;
    for (const NamedSizes& sizes : all)
      for (NamedSizes& solved : solve_sizes(state.definition->inputs[i], type->shape, sizes))
        next.push_back(std::move(solved));
    all = std::move(next);
  }
  return all;
}

bool PartialInstance::extents_within(std::int64_t bound) const {
  for (const TensorType* type : bindings_.tensors)
    if (type != nullptr)
      for (const std::int64_t extent : type->shape)
        if (extent > bound) return false;
  return true;
}

}  // namespace taso
