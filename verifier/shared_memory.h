/// What was found out once, for all statements and threads: values under keys of bytes.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace taso {

/// A bounded map from keys to constant values that any number of threads may use.
///
/// Entries are kept in two generations: when the younger one is full it becomes the older one, and what was in the
/// older one and has not been asked for since is dropped.
template <class Value>
class SharedMemory {
 public:
  /// `capacity` entries of a generation.
  explicit SharedMemory(std::size_t capacity) : shard_capacity_(capacity / shards) {}

  /// The value under the key; what `make` returns (a shared pointer) where there is none. Null is not remembered.
  template <class Make>
  [[nodiscard]] std::shared_ptr<const Value> find(const std::string& key, const Make& make) {
    const std::size_t hash = std::hash<std::string>{}(key);
    Shard& shard = shards_[hash % shards];
    {
      const std::lock_guard lock(shard.mutex);
      if (const auto it = shard.young.find(key, hash); it != shard.young.end()) return it->second;
      if (const auto it = shard.old.find(key, hash); it != shard.old.end()) {
        std::shared_ptr<const Value> entry = std::move(it->second);
        shard.old.erase(it);
        return keep(shard, key, std::move(entry));
      }
    }
    std::shared_ptr<const Value> entry = make();
    if (entry == nullptr) return nullptr;
    const std::lock_guard lock(shard.mutex);
    return keep(shard, key, std::move(entry));
  }

 private:
  static constexpr std::size_t shards = 16;
  using Map = absl::flat_hash_map<std::string, std::shared_ptr<const Value>, std::hash<std::string>>;
  struct Shard {
    std::mutex mutex;
    Map young, old;
  };

  // Puts an entry into the younger generation; the shard is locked.
  std::shared_ptr<const Value> keep(Shard& shard, const std::string& key, std::shared_ptr<const Value> entry) {
    if (shard.young.size() >= shard_capacity_) {
      shard.old = std::move(shard.young);
      shard.young.clear();
    }
    return shard.young.try_emplace(key, std::move(entry)).first->second;
  }

  std::size_t shard_capacity_;
  std::array<Shard, shards> shards_;
};

}  // namespace taso
