/// Which ranks live, by when they were last heard of.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

namespace taso {

class Liveness {
 public:
  using Clock = std::chrono::steady_clock;
  /// Of `size` ranks, of which `own` always lives; all were heard of at `now`.
  Liveness(int size, int own, Clock::duration lost_after, Clock::time_point now);

  void heard_of(int rank, Clock::time_point now);
  /// To be called often, with what time it is: the first rank that has not been heard of for too long since the last
  /// call, if there is one. A lost rank stays lost. Time in which this was not called (the process itself was stopped,
  /// or the machine slept) counts for little: what the others said meanwhile may still be on its way.
  [[nodiscard]] std::optional<int> newly_lost(Clock::time_point now);
  [[nodiscard]] bool lost(int rank) const { return ranks_[static_cast<std::size_t>(rank)].lost; }
  [[nodiscard]] int lowest_living() const;

 private:
  struct Rank {
    Clock::time_point heard;
    bool lost = false;
  };
  std::vector<Rank> ranks_;
  int own_;
  Clock::duration lost_after_;
  Clock::time_point asked_;
};

}  // namespace taso
