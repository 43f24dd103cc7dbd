/// Definitions that do nothing but apply other operators, as abbreviations of terms: for provers that know operators by
/// axioms.
#pragma once

#include <optional>

#include "graph/pattern.h"
#include "operators/registry.h"

namespace taso {

/// The rule with what its compositions apply in their places. Where the rule is well-typed, so is the result, and all
/// values are the same: a composition asks for at least what the applied operators ask for. Nothing where no operator
/// is a composition, or where one has an equation of its own or an attribute that a rule cannot say.
[[nodiscard]] std::optional<Substitution> with_compositions_unfolded(const OperatorRegistry& registry,
                                                                     const Substitution& rule);

}  // namespace taso
