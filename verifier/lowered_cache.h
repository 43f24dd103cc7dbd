/// Lowered operators shared by everything that evaluates many instances.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operators/instance.h"
#include "operators/registry.h"
#include "verifier/shared_memory.h"

namespace taso {

/// Appends bytes that tell values of one kind apart.
void append_to_key(std::string& key, std::int64_t value);
void append_to_key(std::string& key, const AttributeValue& value);
void append_to_key(std::string& key, const TensorType& type);

/// Lowered operators by operator, attributes and input types, and what the searches for instances
/// (verifier/proposals.h) have found out about operators. Any number of threads may use one cache; memory is bounded
/// (SharedMemory).
class LoweredCache {
 public:
  /// `capacity` entries of a generation.
  explicit LoweredCache(const OperatorRegistry& registry, std::size_t capacity = 100'000)
      : registry_(registry), instances_(capacity), values_(50'000) {}

  /// Called with every application that is not well-typed, or that the operator's definition does not work for; by any
  /// of the threads.
  using Declined = std::function<void(const std::string& op, const Attributes&, const std::vector<TensorType>& inputs)>;
  void on_declined(Declined declined) { declined_ = std::move(declined); }

  /// The application with complete attributes (OperatorRegistry::complete); null if it is not well-typed, which is not
  /// remembered.
  [[nodiscard]] std::shared_ptr<const OperatorInstance> find(const std::string& op, const Attributes& attributes,
                                                             const std::vector<TensorType>& inputs);

  /// Lists of values, or of shapes, that are the answer to a question; the key holds all that it depends on.
  using Values = std::vector<AttributeValue>;
  [[nodiscard]] SharedMemory<Values>& answers() { return values_; }

 private:
  const OperatorRegistry& registry_;
  SharedMemory<OperatorInstance> instances_;
  SharedMemory<Values> values_;
  Declined declined_;
};

}  // namespace taso
