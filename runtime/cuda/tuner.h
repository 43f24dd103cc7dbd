/// The choice of the fastest of several engines, apart from how they are run. Knows nothing of CUDA.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "support/status.h"

namespace taso::cuda {

/// What is timed of a candidate.
struct TimedCandidates {
  std::size_t count = 0;
  /// Seconds of one execution, after one that is not timed.
  std::function<Expected<double>(std::size_t candidate)> once;
  /// Seconds of one execution of many, as exactly as the choice needs; `once`: what once() gave.
  std::function<Expected<double>(std::size_t candidate, double once)> settled;
};

/// The fastest, and how many it was compared with.
struct FastestCandidate {
  std::size_t index = 0;
  double seconds = 0;
  std::size_t timed = 0;      ///< To the end, the fastest among them.
  std::size_t abandoned = 0;  ///< After one execution.
  std::size_t failed = 0;
  /// "best of 8, 2 abandoned, 1 failed".
  [[nodiscard]] std::string description() const;
};

/// Times the candidates in order. Those that fail are left out; those whose one execution takes more than three times
/// that of the fastest so far are given up. Of equal ones the first is taken. An error with the last one's words if all
/// fail.
[[nodiscard]] Expected<FastestCandidate> find_fastest(const TimedCandidates& candidates);

/// Tries rounds of alternatives (`rounds_of`) one after the other until one is taken. `take` takes one of a round, or
/// says why none of it is; its error ends it all. Returns nothing where one was taken, else the reason of the first
/// round, which is what one wanted to have.
[[nodiscard]] Expected<std::string> take_first(
    const std::vector<std::vector<std::size_t>>& rounds,
    const std::function<Expected<std::string>(const std::vector<std::size_t>& round)>& take);

}  // namespace taso::cuda
