/// Typing the operators of rules at concrete types, with a memory: the searches for instances ask for the same
/// applications again and again, within a rule and from rule to rule.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/pattern.h"
#include "operators/instance.h"
#include "operators/registry.h"
#include "verifier/lowered_cache.h"

namespace taso {

/// The attribute and the tensor variables that an expression reads; each once, ascending.
struct VariablesOfExpression {
  std::vector<std::uint32_t> attributes, tensors;
  /// Adds those of one more expression.
  void add(const AttributeExpression& expression);
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
