/// Where the elements of a tensor lie in memory that another one owns: what an operator that only moves elements leaves
/// to be read by whoever computes with them.
#pragma once

#include <cstddef>
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

/// Of an operand from where it begins. Not for blocks of channels.
[[nodiscard]] Access access_of(const Operand& operand);
/// The bytes from the first element of an operand to the end of its last: more than its own where it is within a wider
/// tensor.
[[nodiscard]] std::int64_t spanned_bytes(const Operand& operand);

/// Where the bytes of an operand lie from its begin: one run, or several at equal distances within a wider tensor.
struct ByteRuns {
  std::size_t bytes = 0;     ///< Of each.
  std::size_t distance = 0;  ///< From the begin of one to that of the next.
  std::size_t count = 1;
};
[[nodiscard]] ByteRuns runs_of(const Operand& operand);
/// Copies the elements of an operand out of their place to where they are one run, or back.
void gather_runs(const Operand& operand, const std::byte* place, std::byte* one_run);
void scatter_runs(const Operand& operand, const std::byte* one_run, std::byte* place);

/// Whether an operator moves elements in such a way that its results are accesses to its input, where strides allow:
/// reshape, transpose, split, slice, broadcast, a layout conversion.
[[nodiscard]] bool only_moves(const KernelRequest& request);

/// Output `port` of such an operator, read from where its input lies; nothing where no strides say it (a reshape
/// across a gap).
[[nodiscard]] std::optional<Access> access_through(const KernelRequest& request, std::size_t port, const Access& input);

}  // namespace taso
