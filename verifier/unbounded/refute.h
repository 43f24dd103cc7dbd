/// A quick look whether two normal forms can be equal: their values at points at which the hypotheses hold.
///
/// Elements of tensors, literals and attributes are random numbers of GF(2^61-1), keyed by what they are; so are the
/// values of functions of which nothing is declared. The others round down to multiples in the order of the
/// representatives 0, 1, ..., 2^61 - 2, which maps 0 to 0, is monotone and idempotent, and a maximum is the largest
/// representative. This is an interpretation in which everything holds that a comparison of forms may use: forms that
/// differ in it are not provably equal, and no pairing of their summands has to be tried.
#pragma once

#include "verifier/unbounded/normal_form.h"

namespace taso::unbounded {

/// Whether the forms differ at one of the first `points` points of the facts. Where a value is not known (an endless
/// sum, a divisor that is 0 there, too many summands) they count as equal.
[[nodiscard]] bool differ_at_points(const NormalForm& a, const NormalForm& b, Facts& facts, std::size_t points);

}  // namespace taso::unbounded
