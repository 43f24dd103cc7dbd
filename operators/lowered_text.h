/// Lowered definitions as loop nests to be read: what an evaluator computes, with every size filled in.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "operators/lowered_body.h"

namespace taso {

/// A stage, one line for its loops and one or more for what is computed in them, each after `indent`:
///   for a < 128, b < 768:
///     t0[768*a + b] = exp(x0[768*a + b]) / sum(c < 768: t1[768*a + c])
/// An element outside a tensor is what stands after the colon in `inside ? element : other`, or is left out of a set
/// (`element where inside`). `let s0 = ... in ...`: computed once. `buffers`: names by number.
[[nodiscard]] std::string to_text(const LoweredStage& stage, std::span<const std::string> buffers,
                                  const std::string& indent);

/// The same of what a stage computes for an element, without its loops.
[[nodiscard]] std::string value_text(const LoweredStage& stage, std::span<const std::string> buffers);

/// The names of a body's buffers: x0, x1 of inputs, t0 of intermediates, y0 of outputs.
[[nodiscard]] std::vector<std::string> buffer_names(const LoweredBody& body);

}  // namespace taso
