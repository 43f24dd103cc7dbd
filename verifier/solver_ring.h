/// Both sides of a rule at one instance, as real arithmetic for Z3: an independent opinion on the canonical forms.
#pragma once

#include <cstdint>

#include "verifier/instances.h"
#include "verifier/smt/solver.h"

namespace taso {

/// Whether some real inputs make the two sides differ: unsatisfiable if they are equal everywhere. Scalar functions are
/// uninterpreted functions with their declared facts at the terms that occur; a quotient is the number whose product
/// with the divisor is the dividend, and divisors are assumed not to be 0; an extremum is an argument that bounds the
/// others. Unknown if a result is infinite or Z3 gives no answer.
[[nodiscard]] smt::Answer smt_agreement(const TypedInstance& typed, std::uint64_t seed);

}  // namespace taso
