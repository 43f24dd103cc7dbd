/// An instance of a rule in the making: which variables have values so far, and the types that follow.
///
/// Types and attribute values are interned, so that what is known of an operator's operands and attributes is a short
/// list of numbers by which answers are remembered.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "operators/ring.h"
#include "verifier/candidates.h"
#include "verifier/instances.h"
#include "verifier/lowered_cache.h"

namespace taso {

/// Numbers for values, from 1; 0 stands for "not known".
template <class Value>
class Interner {
 public:
  std::uint32_t id(const Value& value) {
    const auto [it, inserted] = ids_.try_emplace(value, static_cast<std::uint32_t>(values_.size() + 1));
    if (inserted) values_.push_back(&it->first);
    return it->second;
  }
  /// Stays where it is.
  [[nodiscard]] const Value& operator[](std::uint32_t id) const { return *values_[id - 1]; }

 private:
  std::map<Value, std::uint32_t> ids_;
  std::vector<const Value*> values_;
};

/// A list of numbers under which something is remembered.
using Key = absl::InlinedVector<std::uint32_t, 8>;
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::uint64_t hash = key.size();
    for (const std::uint32_t number : key) {
      hash = (hash ^ number) * 0x9E3779B97F4A7C15U;
      hash ^= hash >> 29;
    }
    return hash;
  }
};
/// References to its values hold until the next insertion.
template <class Value>
using KeyMap = absl::flat_hash_map<Key, Value, KeyHash>;

/// An application of an operator at known types and attributes.
struct Typing {
  std::shared_ptr<const OperatorInstance> instance;  ///< Null if the application is not well-typed.
  std::vector<std::uint32_t> outputs;                ///< Types of the results.
  bool too_large = false;                            ///< A result is larger than wanted.
};

/// The variables of an attribute expression.
struct ExpressionVariables {
  std::vector<std::uint32_t> attributes, tensors;  ///< Ascending.
};
[[nodiscard]] ExpressionVariables variables_of(const AttributeExpression& expression);

/// A node of one side with what is known of it.
struct NodeState {
  const PatternNode* node = nullptr;
  const OperatorDefinition* definition = nullptr;
  std::uint32_t number = 0;                        ///< Among the nodes of both sides.
  std::vector<std::uint32_t> attributes, tensors;  ///< Variables of its attribute expressions.
  std::vector<ExpressionVariables> expressions;    ///< Of each of these.
  std::shared_ptr<const Typing> typing;            ///< If typed.
  bool valued = false;                             ///< Whether `values` are those of the instance.
  std::vector<RingTensor<Mod61>> values;
};
using Side = std::vector<NodeState>;

class PartialInstance {
 public:
  PartialInstance(const OperatorRegistry& registry, const Substitution& rule);

  [[nodiscard]] const OperatorRegistry& registry() const { return registry_; }
  [[nodiscard]] const Substitution& rule() const { return rule_; }
  /// The source's nodes, then the target's.
  [[nodiscard]] Side& side(bool target) { return sides_[target ? 1 : 0]; }
  [[nodiscard]] const Side& side(bool target) const { return sides_[target ? 1 : 0]; }
  [[nodiscard]] bool is_target(const Side& side) const { return &side == &sides_[1]; }

  void assign_tensor(std::uint32_t variable, std::uint32_t type);
  void assign_attribute(std::uint32_t variable, std::uint32_t value);
  /// The interned value of a variable; 0 if it has none.
  [[nodiscard]] std::uint32_t tensor(std::uint32_t variable) const { return tensors_[variable]; }
  [[nodiscard]] std::uint32_t attribute(std::uint32_t variable) const { return attributes_[variable]; }
  [[nodiscard]] bool bound(const std::vector<std::uint32_t>& attributes,
                           const std::vector<std::uint32_t>& tensors) const;
  /// The values of all variables that have one.
  [[nodiscard]] const Bindings& bindings() const { return bindings_; }
  /// The instance, once every variable has a value.
  [[nodiscard]] Instance instance() const;

  Interner<AttributeValue>& values() { return values_; }
  [[nodiscard]] const TensorType& type(std::uint32_t id) const { return tensor_types_[id - 1]; }
  std::uint32_t intern(const TensorType& type);

  /// The type of a value of a side; 0, or null, while it is not known.
  [[nodiscard]] std::uint32_t type_id(const PatternValue& value, const Side& side) const {
    if (value.is_variable) return tensors_[value.index];
    const Typing* typing = side[value.index].typing.get();
    return typing == nullptr || value.port >= typing->outputs.size() ? 0 : typing->outputs[value.port];
  }
  [[nodiscard]] const TensorType* type_of(const PatternValue& value, const Side& side) const {
    const std::uint32_t id = type_id(value, side);
    return id == 0 ? nullptr : &type(id);
  }

  /// Assignments of names under which the known inputs of an operator, `except` left out, have their types.
  [[nodiscard]] std::vector<NamedSizes> known_sizes(const NodeState& state, const Side& side,
                                                    std::optional<std::size_t> except) const;
  /// Whether no tensor variable has an extent above this.
  [[nodiscard]] bool extents_within(std::int64_t bound) const;

 private:
  const OperatorRegistry& registry_;
  const Substitution& rule_;
  Side sides_[2];
  std::vector<std::uint32_t> tensors_, attributes_;
  Bindings bindings_;
  KeyMap<std::uint32_t> type_ids_;       // under the element type and the extents
  std::deque<TensorType> tensor_types_;  // of every number
  Interner<AttributeValue> values_;
};

}  // namespace taso
