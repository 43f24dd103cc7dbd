#include "runtime/mpi/liveness.h"

#include <algorithm>

namespace taso {

Liveness::Liveness(int size, int own, Clock::duration lost_after, Clock::time_point now)
    : ranks_(static_cast<std::size_t>(size), Rank{now, false}), own_(own), lost_after_(lost_after), asked_(now) {}

void Liveness::heard_of(int rank, Clock::time_point now) { ranks_[static_cast<std::size_t>(rank)].heard = now; }

std::optional<int> Liveness::newly_lost(Clock::time_point now) {
  const Clock::duration gap = now - asked_, usual = lost_after_ / 5;
  asked_ = now;
  if (gap > usual)
    for (Rank& rank : ranks_) rank.heard = std::min(now, rank.heard + (gap - usual));
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    Rank& one = ranks_[static_cast<std::size_t>(rank)];
    if (rank == own_ || one.lost || now - one.heard < lost_after_) continue;
    one.lost = true;
    return rank;
  }
  return std::nullopt;
}

int Liveness::lowest_living() const {
  return static_cast<int>(std::find_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.lost; }) -
                          ranks_.begin());
}

}  // namespace taso
