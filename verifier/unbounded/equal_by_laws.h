/// Equality of normal forms by the declared laws of functions, the order of numbers and the sign of values.
///
/// The comparison of matching.h takes a function for any that has its facts. Where it finds no equality, both sides are
/// rewritten by laws (laws.h) and compared again. Then divisors are cleared from the difference, and what all elements
/// of a maximum have in common is taken out of it; at last cases are distinguished, which of two elements of a maximum
/// is the larger. What the rule's conditions say of the signs and the order of values and numbers is known throughout.
/// Laws that define a function by others come in a second attempt: what is known of the function itself is shorter.
#pragma once

#include <cstddef>

#include "operators/registry.h"
#include "verifier/unbounded/signs.h"

namespace taso::unbounded {

/// Whether a and b are equal wherever the facts and the suppositions hold and a is defined. `steps`: comparisons left,
/// shared.
[[nodiscard]] bool equal_by_laws(const OperatorRegistry& registry, const NormalForm& a, const NormalForm& b,
                                 const Facts& facts, const Suppositions& suppositions, std::size_t& steps);

}  // namespace taso::unbounded
