/// Stages of a definition that go through the same rows, so that they can be taken together row by row.
///
/// The outermost own loops of a stage, a *prefix* of them, are its rows. Stages go together whose rows are equal in
/// number and loops, and of which each reads, of what the others before it write, no more than they wrote of the same
/// row: a softmax is the maximum of a row, what is left of its elements, their sum, and their quotients. Whoever
/// computes them may take all stages of one row before the next one, or rows at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "operators/lowered_body.h"

namespace taso {

/// Of a form, the coefficient of a loop variable.
[[nodiscard]] std::int64_t coefficient_of(const Affine& form, std::uint32_t variable);

/// Elements from one row to the next as a form goes through them; nothing where it does not take equal steps. `prefix`:
/// at least 1.
[[nodiscard]] std::optional<std::int64_t> row_step(const LoweredStage& stage, std::uint32_t form, std::size_t prefix);

/// How many rows a prefix of own loops is.
[[nodiscard]] std::int64_t rows_of(const LoweredStage& stage, std::size_t prefix);

/// Whether stage `next` goes together with those from `first` on. With `next` == `first`: whether it has such rows.
[[nodiscard]] bool goes_with(std::span<const LoweredStage> stages, std::size_t first, std::size_t next,
                             std::size_t prefix);

}  // namespace taso
