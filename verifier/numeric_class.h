/// The numeric class of a rule, derived by comparing both sides as expressions under weaker and weaker laws.
#pragma once

#include <vector>

#include "graph/pattern.h"
#include "verifier/instances.h"

namespace taso {

/// The least class whose laws make both sides equal at all the given instances (of which a few are used); the sides are
/// known to be equal as real functions.
///   exact           equal as expression trees up to the order of the two operands of + and *, adding 0, multiplying
///                   by 0 or 1: the same roundings in reference semantics, for finite values;
///   reassociation   equal when sums and products outside reductions are regrouped;
///   accumulation    equal when every sum is a multiset of summands, also across reductions;
///   distribution    anything else (products are moved across sums, quotients rearranged, ...).
[[nodiscard]] NumericClass derive_numeric_class(const std::vector<TypedInstance>& instances);

}  // namespace taso
