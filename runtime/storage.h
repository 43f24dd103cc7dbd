/// Floats kept in another type than the graph's f32: half the memory and bandwidth, and products in hardware made for
/// them. A model says in which type a value is kept; a device may be asked to keep what is f32 there as f16 or bf16
/// (LoweringOptions::float_storage). Conversion happens on the host, where tensors enter and leave the device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/tensor_type.h"
#include "runtime/kernel.h"

namespace taso {

/// The type in which a tensor of `type` is kept: its own unless it is f32.
[[nodiscard]] TensorType stored(TensorType type, ElementType float_storage);
/// Bytes of a tensor as it is kept.
[[nodiscard]] std::int64_t stored_bytes(const TensorType& type, ElementType float_storage);

/// Puts `to` for `from` in the types of all operands.
void replace_floats(KernelRequest& request, ElementType from, ElementType to);

}  // namespace taso
