/// A concrete instance that satisfies symbolic hypotheses: a proof about nothing is none.
#pragma once

#include "operators/registry.h"
#include "verifier/unbounded/symbolic_types.h"

namespace taso::unbounded {

/// Whether some small values of the symbols satisfy the facts and make both sides of the rule well-typed, as type
/// inference on concrete shapes confirms. False says only that none was found.
[[nodiscard]] bool has_instance(const OperatorRegistry& registry, const Substitution& rule, const VariableKinds& kinds,
                                const Assumptions& assumptions, const Typing& typing, Facts& facts);

}  // namespace taso::unbounded
