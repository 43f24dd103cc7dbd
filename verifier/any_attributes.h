/// Applications of an operator with any attributes, in statements.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/pattern.h"

namespace taso {

/// Attribute variables for all attributes of an operator, which the statement gets: the attributes of a pattern node,
/// by name. They may stand in several applications.
[[nodiscard]] std::vector<std::pair<std::string, AttributeExpression>> any_attributes(
    const OperatorSignature& signature, Substitution& statement);

}  // namespace taso
