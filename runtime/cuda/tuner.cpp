#include "runtime/cuda/tuner.h"

#include <algorithm>
#include <limits>

namespace taso::cuda {
namespace {

/// One execution is uncertain, but not by as much as this.
constexpr double hopeless = 3;

}  // namespace

std::string FastestCandidate::description() const {
  std::string text = "best of " + std::to_string(timed);
  if (abandoned > 0) text += ", " + std::to_string(abandoned) + " abandoned";
  if (failed > 0) text += ", " + std::to_string(failed) + " failed";
  return text;
}

Expected<FastestCandidate> find_fastest(const TimedCandidates& candidates) {
  FastestCandidate fastest;
  double least_once = std::numeric_limits<double>::infinity();
  std::string words = "there is none";
  const auto fail = [&](const Error& error) {
    ++fastest.failed;
    words = error.message;
  };
  for (std::size_t i = 0; i < candidates.count; ++i) {
    const Expected<double> once = candidates.once(i);
    if (!once) {
      fail(once.error());
      continue;
    }
    if (*once > hopeless * least_once) {
      ++fastest.abandoned;
      continue;
    }
    const Expected<double> seconds = candidates.settled(i, *once);
    if (!seconds) {
      fail(seconds.error());
      continue;
    }
    least_once = std::min(least_once, *once);
    if (fastest.timed == 0 || *seconds < fastest.seconds) {
      fastest.index = i;
      fastest.seconds = *seconds;
    }
    ++fastest.timed;
  }
  if (fastest.timed == 0)
    return Error{
        ErrorCode::device_unavailable, "none of " + std::to_string(candidates.count) + " engines runs: " + words, {}};
  return fastest;
}

Expected<std::string> take_first(
    const std::vector<std::vector<std::size_t>>& rounds,
    const std::function<Expected<std::string>(const std::vector<std::size_t>& round)>& take) {
  std::string first;
  for (const std::vector<std::size_t>& round : rounds) {
    TASO_ASSIGN(const std::string reason, take(round));
    if (reason.empty()) return std::string();
    if (first.empty()) first = reason;
  }
  return first;
}

}  // namespace taso::cuda
