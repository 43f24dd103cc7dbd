/// Concatenations that the kernels of their operands write on a device, each its own part of the result: no copy, and
/// no launch for it.
///
/// An operand becomes a piece of the result (LoweredTensor::Source::piece) where its kernel can write it there, between
/// the elements of the others (Operand::within): a convolution in nhwc its channels. That holds for operands that are
/// the whole output of a kernel which only the concatenation reads, and that begin at a multiple of piece_alignment.
/// What else is concatenated is copied by one kernel. A concatenation whose result is an operand of another one along
/// the same axis is written into that one's.
///
/// The pieces stay steps of their own, so that branches keep their streams, and a step that reads the whole waits for
/// all of them; a fused step of several convolutions would take one stream and add up their times.
#pragma once

#include <functional>

#include "runtime/lowering.h"

namespace taso {

/// `writes`: Backend::writes_within. `is_ours`: whether a step's kernel is one of the device's; empty: all are.
/// The steps stay in their order.
[[nodiscard]] LoweredGraph concat_in_place(LoweredGraph lowered,
                                           const std::function<bool(const KernelRequest&)>& writes,
                                           const std::function<bool(const KernelRequest&)>& is_ours = {});

}  // namespace taso
