/// Typing the operators of rules at concrete types, with a memory: the searches for instances ask for the same
/// applications again and again, within a rule and from rule to rule.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/pattern.h"
#include "operators/instance.h"
#include "operators/registry.h"

namespace taso {

/// Appends bytes that tell values of one kind apart.
void append_to_key(std::string& key, std::int64_t value);
void append_to_key(std::string& key, const AttributeValue& value);
void append_to_key(std::string& key, const TensorType& type);

/// The attribute and the tensor variables that an expression reads; each once, ascending.
struct VariablesOfExpression {
  std::vector<std::uint32_t> attributes, tensors;
  /// Adds those of one more expression.
  void add(const AttributeExpression& expression);
};

/// Lowered operators by operator, attributes and input types; used by one thread at a time.
class LoweredCache {
 public:
  struct Entry {
    std::optional<OperatorInstance> instance;  ///< Absent if the application is not well-typed.
  };
  /// When there are more entries than `max_entries`, all are dropped.
  explicit LoweredCache(const OperatorRegistry& registry, std::size_t max_entries = 400'000)
      : registry_(registry), max_entries_(max_entries) {}
  [[nodiscard]] std::shared_ptr<Entry> find(const std::string& op, const Attributes& attributes,
                                            const std::vector<TensorType>& inputs);

 private:
  const OperatorRegistry& registry_;
  std::size_t max_entries_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;
};

/// Types the operators of one rule. What it answers does not depend on what it was asked before.
class Typer {
 public:
  /// The registry, the rule and the cache must outlive the typer.
  Typer(const OperatorRegistry& registry, const Substitution& rule, LoweredCache& cache);

  /// Operator `node` of the source (or the target) at given input types, its attributes computed from the bindings;
  /// null where it is not well-typed or a variable of its attributes is unbound.
  [[nodiscard]] std::shared_ptr<const OperatorInstance> type(bool target, std::size_t node,
                                                             std::span<const TensorType* const> inputs,
                                                             const Bindings& bindings);
  [[nodiscard]] const Substitution& rule() const { return rule_; }

 private:
  struct Node {
    VariablesOfExpression variables;  // of its attributes
    std::unordered_map<std::string, std::shared_ptr<const OperatorInstance>> known;
  };
  const OperatorRegistry& registry_;
  const Substitution& rule_;
  LoweredCache& cache_;
  std::vector<Node> sides_[2];  // source, target
  std::string key_;
};

}  // namespace taso
