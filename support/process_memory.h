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

/// Gives what has been freed, and is still held for later allocations, back to the system.
void return_free_memory();

}  // namespace taso
