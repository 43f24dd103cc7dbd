/// Loops over threads: OpenMP where the compiler has it (the pool that oneDNN uses too), else serial.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace taso::cpu {

/// Calls f(begin, end), or f(begin, end, chunk), on contiguous chunks that cover [0, count), at most one per thread and
/// none smaller than `grain` (except the only one). The chunks depend on `threads` only; each index is in one chunk.
template <class F>
void parallel_chunks(int threads, std::int64_t count, std::int64_t grain, F&& f) {
  if (count <= 0) return;
  const auto call = [&](std::int64_t begin, std::int64_t end, std::int64_t chunk) {
    if constexpr (std::is_invocable_v<F&, std::int64_t, std::int64_t, std::int64_t>)
      f(begin, end, chunk);
    else
      f(begin, end);
  };
  const std::int64_t chunks =
      std::clamp<std::int64_t>(count / std::max<std::int64_t>(grain, 1), 1, std::max(threads, 1));
  if (chunks == 1) {
    call(0, count, 0);
    return;
  }
#ifdef _OPENMP
#pragma omp parallel for schedule(static, 1) num_threads(static_cast <int>(chunks))
#endif
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
    call(count * chunk / chunks, count * (chunk + 1) / chunks, chunk);
}

/// Sets the number of OpenMP threads (oneDNN's) for the calling thread while it lives.
class ThreadScope {
 public:
#ifdef _OPENMP
  explicit ThreadScope(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(std::max(threads, 1)); }
  ~ThreadScope() { omp_set_num_threads(before_); }
#else
  explicit ThreadScope(int) {}
  ~ThreadScope() {}
#endif
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_ = 1;
};

}  // namespace taso::cpu
