/// Families of values in which only the set of values matters: the elements of a maximum or minimum.
#pragma once

#include "verifier/unbounded/normal_form.h"

namespace taso::unbounded {

/// Whether a symbol of the set occurs free in a form.
[[nodiscard]] bool depends_on(const Symbols& symbols, const NormalForm& form, const std::vector<SymbolId>& set);
[[nodiscard]] bool depends_on(const Symbols& symbols, const Factor& factor, const std::vector<SymbolId>& set);

/// A family with the same set of values and, where that can be found, fewer variables. Two variables that the value
/// speaks of in one combination only (the steps of a window in a window) become one, and a variable of which the value
/// does not speak is replaced by the condition that there is a number for it: Fourier and Motzkin's elimination, where
/// it is exact on integers (W. Pugh, The Omega Test, 1991: where the dark shadow is the real one).
[[nodiscard]] Element with_fewer_variables(const Element& element, Facts& facts);

}  // namespace taso::unbounded
