/// Lowered operators shared by everything that evaluates many instances.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "operators/instance.h"
#include "operators/registry.h"

namespace taso {

/// Appends bytes that tell values of one kind apart.
void append_to_key(std::string& key, std::int64_t value);
void append_to_key(std::string& key, const AttributeValue& value);
void append_to_key(std::string& key, const TensorType& type);

/// Lowered operators by operator, attributes and input types. Any number of threads may use one cache.
///
/// Entries are kept in two generations: when the younger one is full it becomes the older one, and what was in the
/// older one and has not been asked for since is dropped.
class LoweredCache {
 public:
  /// `capacity` entries of a generation.
  explicit LoweredCache(const OperatorRegistry& registry, std::size_t capacity = 100'000)
      : registry_(registry), shard_capacity_(capacity / shards) {}

  /// The application with complete attributes (OperatorRegistry::complete); null if it is not well-typed, which is not
  /// remembered.
  [[nodiscard]] std::shared_ptr<const OperatorInstance> find(const std::string& op, const Attributes& attributes,
                                                             const std::vector<TensorType>& inputs);

 private:
  static constexpr std::size_t shards = 16;
  using Map = std::unordered_map<std::string, std::shared_ptr<const OperatorInstance>>;
  struct Shard {
    std::mutex mutex;
    Map young, old;
  };

  const OperatorRegistry& registry_;
  std::size_t shard_capacity_;
  std::array<Shard, shards> shards_;
};

}  // namespace taso
