#include "verifier/typer.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace taso {
namespace {

void insert(std::vector<std::uint32_t>& sorted, std::uint32_t value) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), value);
  if (at == sorted.end() || *at != value) sorted.insert(at, value);
}

}  // namespace

void append_to_key(std::string& key, std::int64_t value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);  // NOLINT: a key is bytes
}

void append_to_key(std::string& key, const AttributeValue& value) {
  key += static_cast<char>('a' + value.index());
  if (const auto* integer = std::get_if<std::int64_t>(&value)) append_to_key(key, *integer);
  if (const auto* real = std::get_if<double>(&value)) append_to_key(key, std::bit_cast<std::int64_t>(*real));
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
    append_to_key(key, static_cast<std::int64_t>(list->size()));
    for (const std::int64_t element : *list) append_to_key(key, element);
  }
  if (const auto* symbol = std::get_if<SymbolValue>(&value)) (key += symbol->name) += '\0';
}

void append_to_key(std::string& key, const TensorType& type) {
  key += static_cast<char>(type.element);
  append_to_key(key, static_cast<std::int64_t>(type.shape.size()));
  for (const std::int64_t extent : type.shape) append_to_key(key, extent);
}

void VariablesOfExpression::add(const AttributeExpression& expression) {
  if (expression.kind == AttributeExpression::Kind::variable) insert(attributes, expression.index);
  if (expression.kind == AttributeExpression::Kind::dimension || expression.kind == AttributeExpression::Kind::rank)
    insert(tensors, expression.index);
  for (const AttributeExpression& operand : expression.operands) add(operand);
}

std::shared_ptr<LoweredCache::Entry> LoweredCache::find(const std::string& op, const Attributes& attributes,
                                                        const std::vector<TensorType>& inputs) {
  std::string key = op;
  key += '\0';
  for (const auto& [name, value] : attributes.entries()) append_to_key(key, value);
  for (const TensorType& type : inputs) append_to_key(key, type);
  if (const auto it = entries_.find(key); it != entries_.end()) return it->second;
  if (entries_.size() >= max_entries_) entries_.clear();
  auto entry = std::make_shared<Entry>();
  if (Expected<OperatorInstance> instance = OperatorInstance::create(registry_, op, attributes, inputs))
    entry->instance = std::move(*instance);
  entries_.emplace(std::move(key), entry);
  return entry;
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
  const std::shared_ptr<LoweredCache::Entry> entry = cache_.find(pattern.op, *attributes, types);
  if (entry->instance) it->second = std::shared_ptr<const OperatorInstance>(entry, &*entry->instance);
  return it->second;
}

}  // namespace taso
