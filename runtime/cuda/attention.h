/// Attention as one kernel: softmax(scale * q k' + mask) v, recognised among the parts of a fused request. Knows
/// nothing of CUDA.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/kernel.h"

namespace taso::cuda {

/// A tensor of four axes in an input, or in the output: element (i, j, k, l) lies at offset + i * strides[0] + ...
struct AttentionOperand {
  std::size_t input = 0;
  std::array<std::int64_t, 4> extents{1, 1, 1, 1}, strides{};
  std::int64_t offset = 0;
};

struct AttentionPlan {
  AttentionOperand q;                    ///< Batch, heads, queries, width.
  AttentionOperand k;                    ///< Batch, heads, width, keys.
  AttentionOperand v;                    ///< Batch, heads, keys, width.
  AttentionOperand y;                    ///< Batch, heads, queries, width; in the output.
  std::optional<std::size_t> scale;      ///< An input of one element, by which q k' is multiplied...
  bool divides = false;                  ///< ...or divided.
  std::optional<AttentionOperand> mask;  ///< Added then: batch, heads, queries, keys, all of them or 1.
};

/// The plan, or the reason why there is none.
struct PlannedAttention {
  std::optional<AttentionPlan> plan;
  std::string reason;
};

/// Of a fused request: two products, one softmax along the keys between them, at most one scale and at most one mask,
/// and operators that move what is read and the result. Floats of 16 bits only, with rows of 16 bytes or their
/// multiples.
[[nodiscard]] PlannedAttention plan_attention(const KernelRequest& request);

/// Whether a request has the products of attention, so that plan_attention is worth asking.
[[nodiscard]] bool has_two_products(const KernelRequest& request);

}  // namespace taso::cuda
