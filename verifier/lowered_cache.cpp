#include "verifier/lowered_cache.h"

#include <bit>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

namespace taso {

// Seven bits a byte, the lowest first, signs folded in (0, -1, 1, -2, ...): most numbers take one byte.
void append_to_key(std::string& key, std::int64_t value) {
  std::uint64_t rest = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
  for (; rest >= 0x80; rest >>= 7) key += static_cast<char>(rest | 0x80);
  key += static_cast<char>(rest);
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
    if (instance) return std::make_shared<const OperatorInstance>(std::move(*instance));
    if (declined_) declined_(op, attributes, inputs);
    return nullptr;
  });
}

}  // namespace taso
