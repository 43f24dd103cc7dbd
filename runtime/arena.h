/// Placing temporary tensors in one block of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace taso {

/// A buffer that is in use from step `first` to step `last`, both included.
struct BufferLifetime {
  std::size_t bytes = 0;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

struct ArenaPlan {
  std::vector<std::size_t> offsets;  ///< Per buffer; multiples of the alignment.
  std::size_t bytes = 0;             ///< Size of the arena.
};

/// Greedy by size (Pisarchyk and Lee 2020): larger buffers first, each at the lowest offset free during its
/// lifetime. Buffers whose lifetimes meet never share bytes. Deterministic.
[[nodiscard]] ArenaPlan plan_arena(std::span<const BufferLifetime> buffers, std::size_t alignment);
/// The same where lifetimes are no intervals: `meets` says whether two buffers may be in use at the same time.
[[nodiscard]] ArenaPlan plan_arena(std::span<const BufferLifetime> buffers, std::size_t alignment,
                                   const std::function<bool(std::size_t, std::size_t)>& meets);

}  // namespace taso
