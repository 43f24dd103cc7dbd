/// What memory this process takes.
#pragma once

#include <cstdint>

namespace taso {

/// In bytes, as the system counts them; 0 where it does not say.
struct ProcessMemory {
  std::int64_t resident = 0;  ///< In memory now: its own, and pages of files that it has mapped.
  std::int64_t peak = 0;      ///< The most that was resident since it started.
};
[[nodiscard]] ProcessMemory process_memory();

/// From now on large allocations are given back to the system as soon as they are freed, however many there were
/// before: for programs whose peak matters. By itself the allocator keeps more of them the larger they are.
void return_large_memory_at_once();

/// Gives what has been freed, and is still held for later allocations, back to the system.
void return_free_memory();

}  // namespace taso
