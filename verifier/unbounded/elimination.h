/// Contradictions among inequalities over integers, found by eliminating monomials as if they were variables.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "verifier/unbounded/budget.h"
#include "verifier/unbounded/index_polynomial.h"

namespace taso::unbounded {

/// The least known value of a symbol; nothing if there is none.
using LowerBounds = std::function<std::optional<std::int64_t>(SymbolId)>;

/// Whether p >= 0 for all of `rows` is contradictory, as far as the method of Fourier and Motzkin shows it: with
/// rounding to integers, with products of a row by symbols that are not negative where they concern a product that
/// occurs, and with s * p > 0 => p > 0 for s >= 1. False says nothing. Its steps are counted; it is
/// not cut short.
[[nodiscard]] bool eliminates_to_contradiction(const std::vector<Polynomial>& rows, const LowerBounds& bounds,
                                               Budget& budget);

/// p >= 0 divided by the content of its coefficients, the constant rounded down: equivalent over integers.
[[nodiscard]] Polynomial tightened(const Polynomial& p);

}  // namespace taso::unbounded
