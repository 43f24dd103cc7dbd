/// Candidates for conditions under which a rule that fails may hold.
#pragma once

#include <optional>
#include <vector>

#include "verifier/unbounded/symbolic_types.h"

namespace taso::unbounded {

/// Simple relations among the sizes of a typed source, in the language of rules: two applications of one operator agree
/// in a size ("equal outputs per group"), then a factor of an axis is 1 ("one group"). What the facts imply or exclude
/// is left out.
[[nodiscard]] std::vector<Condition> candidate_conditions(const Typing& typing, Facts& facts);

/// A size in the language of rules; nothing for what that cannot say.
[[nodiscard]] std::optional<AttributeExpression> expression_of(const Typing& typing, const Symbols& symbols,
                                                               const Polynomial& p);

}  // namespace taso::unbounded
