/// What rewriting by laws and comparing by laws ask of forms.
#pragma once

#include <cstddef>

#include "verifier/unbounded/normal_form.h"

namespace taso::unbounded {

/// Factors of a form, those inside of others included and counted as often as they occur, at most: rewriting unfolds
/// what forms share.
inline constexpr std::size_t max_rewritten_size = 4'000;

/// Nested applications of laws.
inline constexpr int max_law_depth = 60;

/// Whether a form is one summand without bound variables and guards.
[[nodiscard]] bool is_bare(const NormalForm& form);
/// The factor that a form is; null for any other.
[[nodiscard]] const Factor* only_factor(const NormalForm& form);
/// A power of a factor, whatever its own is.
[[nodiscard]] NormalForm form_of(Factor factor, int power);
/// The factors of a form, those inside of others included: up to a little more than `max_rewritten_size`, added to
/// `known`.
[[nodiscard]] std::size_t size_of(const NormalForm& form, std::size_t known = 0);
/// Whether the negative of a form is the one to write: the same for a form and its like, and not for both it and its
/// negative.
[[nodiscard]] bool written_negatively(const NormalForm& form);
/// A positive number that all coefficients share.
[[nodiscard]] Rational common_number(const NormalForm& form);

}  // namespace taso::unbounded
