/// Recurrences: tensors that are computed step by step along an axis. Private to the folder.
#pragma once

#include <cstddef>

#include "operators/definition.h"
#include "support/status.h"

namespace taso {

/// The tensors that are computed together with intermediate `first`, whose first equation is number `at`: one that
/// reads itself or what stands after it, up to the last that is read so. None if it reads what stands before it only.
[[nodiscard]] Expected<Recurrence> find_recurrence(const OperatorDefinition& op, std::size_t first, std::size_t at);

/// Finds the axis along which the steps of a recurrence go, notes it in its intermediates, and checks what each of its
/// equations, the first of which is number `at`, reads of which step. The equations have their sorts already.
[[nodiscard]] Status order_steps(OperatorDefinition& op, const Recurrence& steps, std::size_t at);

}  // namespace taso
