/// Operators that compute every row of their result from the same row of their first operand: softmax, layer_norm,
/// rms_norm.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "operators/registry.h"
#include "runtime/kernel.h"

namespace taso::cpu {

/// Rows, by loops of cpu/loops.h. What one becomes does not depend on those computed with it.
class RowLoop {
 public:
  /// Nothing where the operator is no such one, an operand is not f32, or the elements of a row do not lie together.
  [[nodiscard]] static std::optional<RowLoop> of(const KernelRequest& request, const OperatorRegistry& registry);

  /// Elements of a row; at least one.
  [[nodiscard]] std::int64_t length() const { return length_; }
  /// Of an element, in additions.
  [[nodiscard]] double work() const { return kind_ == Kind::softmax ? 8 : 4; }
  /// `operands`: the rows of the first, and the elements of the others, as many as one row has. `y` may be the first.
  void compute(std::span<const float* const> operands, float* y, std::int64_t rows) const;

 private:
  enum class Kind : std::uint8_t { softmax, layer_norm, rms_norm };
  RowLoop(Kind kind, std::int64_t length, float epsilon) : kind_(kind), length_(length), epsilon_(epsilon) {}

  Kind kind_;
  std::int64_t length_;
  float epsilon_;
};

}  // namespace taso::cpu
