/// What the parts of a fused request that only move elements come to: operands read from where inputs lie, and a result
/// written to where it ends up.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "runtime/access.h"
#include "runtime/kernel.h"

namespace taso {

/// An input of the whole, perhaps seen through moves; no access where no strides say how, or something was computed.
struct MovedInput {
  std::size_t input = 0;
  std::optional<Access> access;
};

class Moves {
 public:
  /// Of a fused request, which must outlive the object.
  explicit Moves(const KernelRequest& request);
  /// What a part reads.
  [[nodiscard]] MovedInput source(const FusedPart::Source& from) const;
  /// Where part number `computed` writes its one output, so that the moves behind it are done: from the one result of
  /// the whole back. Nothing where no strides say it, or where something else stands behind it.
  [[nodiscard]] std::optional<Access> result_of(std::size_t computed) const;
  /// Of a request of nothing but moves with one result: from where elements are read and to where they are written, in
  /// the shape of what stands somewhere between. Nothing where no shape has strides for both.
  struct Copy {
    MovedInput from;
    Access to;
  };
  [[nodiscard]] std::optional<Copy> copy() const;

 private:
  const KernelRequest& request_;
  std::vector<std::vector<MovedInput>> made_;  ///< Per part and port.
};

}  // namespace taso
