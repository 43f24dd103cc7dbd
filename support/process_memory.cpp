#include "support/process_memory.h"

#include <fstream>
#include <string>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace taso {

ProcessMemory process_memory() {
  constexpr std::int64_t kilobyte = 1024;
  ProcessMemory memory;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) memory.resident = std::stoll(line.substr(6)) * kilobyte;
    if (line.starts_with("VmHWM:")) memory.peak = std::stoll(line.substr(6)) * kilobyte;
  }
  return memory;
}

void return_large_memory_at_once() {
#if defined(__GLIBC__)
  constexpr int large = 1 << 20, kept_at_the_end = 4 << 20;
  (void)::mallopt(M_MMAP_THRESHOLD, large);
  (void)::mallopt(M_TRIM_THRESHOLD, kept_at_the_end);
#endif
}

void return_free_memory() {
#if defined(__GLIBC__)
  (void)::malloc_trim(0);
#endif
}

}  // namespace taso
