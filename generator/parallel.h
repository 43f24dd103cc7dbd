/// Work of independent parts on several threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace taso {

/// Calls body(i, thread) for every i below `count`, each once, in no order. `thread` is below max(1, threads).
template <class Body>
void parallel_for(unsigned threads, std::size_t count, const Body& body) {
  std::atomic<std::size_t> next{0};
  auto work = [&](unsigned thread) {
    for (std::size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) body(i, thread);
  };
  std::vector<std::thread> others;
  for (unsigned t = 1; t < threads && t < count; ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& thread : others) thread.join();
}

/// The same over ranges [begin, end) of at most `grain` numbers: body(begin, end, thread).
template <class Body>
void parallel_ranges(unsigned threads, std::size_t count, std::size_t grain, const Body& body) {
  parallel_for(threads, (count + grain - 1) / grain, [&](std::size_t i, unsigned thread) {
    const std::size_t begin = i * grain, end = begin + grain;
    body(begin, end < count ? end : count, thread);
  });
}

}  // namespace taso
