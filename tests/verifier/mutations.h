/// Statements changed in one place: what a prover must not be taken in by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"

namespace taso::testing {

/// The places that are changed.
enum class MutationKind : std::uint8_t {
  operation,  ///< An operator by another one that takes the same operands and attributes.
  order,      ///< Two operands exchanged.
  operand,    ///< A tensor variable by another one.
  removal,    ///< An operator by its first operand.
  attribute,  ///< A number, a list element or a function; a variable by another one or by the default.
  axis,       ///< The same in an attribute that names axes, or in dim(x, axis).
  size,       ///< An operator, a variable or the order of a list in an expression.
  output,     ///< Outputs exchanged, or another output of an operator read.
  condition,  ///< A condition dropped, or its relation changed.
};
inline constexpr std::size_t mutation_kinds = 9;
/// "operator", "order", ...
[[nodiscard]] const char* to_string(MutationKind kind);

struct Mutation {
  MutationKind kind = MutationKind::operation;
  std::string what;  ///< "source: relu by tanh"
  Substitution rule;
};

/// All statements that differ from this one in one place, on either side, and that the rule language allows; no two of
/// them equal up to names.
[[nodiscard]] std::vector<Mutation> mutations(const Substitution& rule, const OperatorRegistry& registry);

/// At most `count` of them, of all kinds as evenly as there are, the same for the same seed.
[[nodiscard]] std::vector<Mutation> some_mutations(const Substitution& rule, const OperatorRegistry& registry,
                                                   std::size_t count, std::uint64_t seed);

}  // namespace taso::testing
