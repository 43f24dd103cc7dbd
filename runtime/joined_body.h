/// Operators that are computed together, as one definition.
///
/// Every operator is its definition: stages of loops, the maximum of a row, say, what is left of its elements, their
/// sum (operators/lowered_body.h). Of a fused request the definitions of all parts are unfolded, and what one part
/// makes is what the stages of others read. So the whole is stages again, which an evaluator may take in whatever order
/// and together wherever they depend on each other no further: where a part ends means nothing. Nothing is assumed of
/// an operator but its definition, by which rules are proved, too.
///
/// Operators that only move elements (runtime/access.h) are no stages: what reads their results reads what they move,
/// from where it lies.
///
/// Loops of several stages over the same rows are made the same loops: the outermost ones of all stages are parted
/// until they have equal extents, as long as all stages go together by these (runtime/stage_rows.h) and no loop
/// over elements becomes very short.
#pragma once

#include "operators/lowered_body.h"
#include "operators/registry.h"
#include "runtime/kernel.h"
#include "support/status.h"

namespace taso {

/// The stages of a fused request's parts, in order, or those of a request's one operator. Its buffers: the request's
/// inputs, what parts pass on to each other (each in an order of axes of its own, without gaps), the request's outputs;
/// each where its layout says. The error says why there is no such body: a part that computes with other than reals, or
/// goes through steps in turn; operands that are not all f32, all f16 or all bf16, or have blocks of channels; elements
/// that cannot be read where they lie; a result that is only moved.
[[nodiscard]] Expected<LoweredBody> joined_body(const KernelRequest& request, const OperatorRegistry& registry);

}  // namespace taso
