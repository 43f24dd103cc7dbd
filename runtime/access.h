/// Where the elements of a tensor lie in memory that another one owns: what an operator that only moves elements leaves
/// to be read by whoever computes with them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/tensor_type.h"
#include "runtime/kernel.h"

namespace taso {

/// Element (i, j, ..) of a tensor of `shape` lies at offset + i * strides[0] + j * strides[1] + .., in elements.
struct Access {
  Shape shape;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;
};

/// Of a tensor in memory of its own. Not for blocks of channels.
[[nodiscard]] Access access_of(const Operand& operand);

/// Whether an operator moves elements in such a way that its results are accesses to its input, where strides allow:
/// reshape, transpose, split, slice, broadcast, a layout conversion.
[[nodiscard]] bool only_moves(const KernelRequest& request);

/// Output `port` of such an operator, read from where its input lies; nothing where no strides say it (a reshape
/// across a gap).
[[nodiscard]] std::optional<Access> access_through(const KernelRequest& request, std::size_t port, const Access& input);

}  // namespace taso
