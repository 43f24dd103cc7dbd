/// Tensors all of whose elements are one number: what a pattern of a filling operator (OperatorSignature::fill_value)
/// matches besides applications of it. Exporters write such numbers (an epsilon, 0.5) as constants of rank 0, as
/// tensors of equal elements, and as broadcasts of these.
#pragma once

#include <optional>

#include "graph/graph.h"

namespace taso {

/// The attributes with which `op`, a filling operator, would make a value of a real type; nothing for other operators
/// and other values, also where the number is not finite. Reads the elements of constants, of large ones only as many
/// as differ from the first.
[[nodiscard]] std::optional<Attributes> as_fill(const Graph& graph, const Value& value, std::string_view op,
                                                const OperatorCatalog& catalog);

/// Whether `op` would make both values with the same attributes: one may stand for the other.
[[nodiscard]] bool same_fill(const Graph& graph, const Value& a, const Value& b, std::string_view op,
                             const OperatorCatalog& catalog);

/// Whether a number that a rule says is the number that a constant of a real type holds: equal once rounded to it.
/// Other values are compared as they are.
[[nodiscard]] bool same_rounded(const AttributeValue& said, const AttributeValue& held, ElementType type);

}  // namespace taso
