/// Expressions of the specification language outside of definitions: in tables that say something of operators.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/attributes.h"
#include "graph/tensor_type.h"
#include "operators/definition.h"
#include "operators/registry.h"
#include "support/lexer.h"
#include "support/status.h"

namespace taso {

/// Reads one expression; names are not looked up.
[[nodiscard]] Expected<Expression> parse_size_expression(TokenCursor& cursor);

/// Names for sizes; each may use those before it.
using SizeLets = std::vector<std::pair<std::string, Expression>>;

/// A size, a vector of sizes or a condition in the names that the definition of an operator gives to sizes, attributes
/// and `let`s, asked where the operator is applied. The registry must outlive it.
class SizeQuery {
 public:
  /// Of a size or a vector of sizes; `lets` are names besides those of the definition. An error names the place.
  [[nodiscard]] static Expected<SizeQuery> create(const OperatorRegistry& registry, std::string_view op,
                                                  const SizeLets& lets, Expression expression);
  /// Of a condition.
  [[nodiscard]] static Expected<SizeQuery> condition(const OperatorRegistry& registry, std::string_view op,
                                                     const SizeLets& lets, Expression expression);
  /// An integer or a list of integers; an error where the expression has no value. `attributes` are complete.
  [[nodiscard]] Expected<AttributeValue> at(const Attributes& attributes, std::span<const TensorType> inputs) const;
  /// Whether the condition holds; not where it has no value.
  [[nodiscard]] bool holds(const Attributes& attributes, std::span<const TensorType> inputs) const;

 private:
  SizeQuery() = default;
  static Expected<SizeQuery> create(const OperatorRegistry& registry, std::string_view op, const SizeLets& lets,
                                    SizeStatement asked);

  const OperatorRegistry* registry_ = nullptr;
  std::shared_ptr<const OperatorDefinition> definition_;  // The operator's, with what is asked as its last statement.
  SourceLocation where_;
};

/// A registry with one more operator: `name` of as many inputs without axes as there are parameters, whose result is
/// the expression. An error names the place `where`.
[[nodiscard]] Expected<OperatorRegistry> with_scalar_operator(const OperatorRegistry& registry, const std::string& name,
                                                              const std::vector<std::string>& parameters,
                                                              const Expression& expression,
                                                              const SourceLocation& where);

}  // namespace taso
