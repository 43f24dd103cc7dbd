/// What must be a part of a rule for a proof to be one of it, as far as its text and the definitions tell.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"

namespace taso {

/// `rank(x) <= limit` and `length(p) <= limit` where neither definitions nor the rule's conditions bound a rank or a
/// length: for proofs that have seen no larger ones.
[[nodiscard]] std::vector<Condition> rank_limits(const OperatorRegistry& registry, const Substitution& rule,
                                                 std::int64_t limit);
/// Whether a condition of the rule says that a rank or a length is at most `limit`.
[[nodiscard]] bool is_limited(const Substitution& rule, const AttributeExpression& number, std::int64_t limit);

/// `finite(a)` for the real attributes with which the target computes: in arithmetic of attributes, or in definitions
/// that do more than to select and to move elements. Where a is only passed on nothing depends on its value.
[[nodiscard]] std::vector<Condition> finiteness(const OperatorRegistry& registry, const Substitution& rule);

/// Whether the target has arithmetic on real attributes that the source does not have: what it computes is rounded,
/// and differs by as much as the numbers are large.
[[nodiscard]] bool computes_attributes(const OperatorRegistry& registry, const Substitution& rule);

/// A number in the target that no 32-bit float can hold (1e39) and that the source does not name: computed with, it is
/// infinite. Nothing if there is none; infinity itself is the bound that leaves a side open.
[[nodiscard]] std::optional<double> number_beyond_floats(const Substitution& rule);

/// Whether every element of a pattern has a value, whatever its variables are, as far as the text of the definitions
/// tells: nothing in them divides but by a number, takes a maximum over a range, reads at an index that a tensor holds,
/// or calls a function that is not defined everywhere. What is proved from axioms must have such a target: axioms speak
/// of where both sides are defined.
[[nodiscard]] bool always_defined(const OperatorRegistry& registry, const Pattern& pattern);

/// Whether the text tells that the target's operators can be applied wherever the source's can: each is one of the
/// source, or reads at its indices as they are and writes all elements by one equation.
[[nodiscard]] bool always_applicable(const OperatorRegistry& registry, const Substitution& rule);

}  // namespace taso
