#include "verifier/lowered_cache.h"

#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

namespace taso {

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

std::shared_ptr<const OperatorInstance> LoweredCache::find(const std::string& op, const Attributes& attributes,
                                                           const std::vector<TensorType>& inputs) {
  static thread_local std::string key;
  key = op;
  key += '\0';
  for (const auto& [name, value] : attributes.entries()) append_to_key(key, value);
  for (const TensorType& type : inputs) append_to_key(key, type);
  return instances_.find(key, [&]() -> std::shared_ptr<const OperatorInstance> {
    std::optional<OperatorInstance> instance = OperatorInstance::create_if_typed(registry_, op, attributes, inputs);
    return instance ? std::make_shared<const OperatorInstance>(std::move(*instance)) : nullptr;
  });
}

}  // namespace taso
