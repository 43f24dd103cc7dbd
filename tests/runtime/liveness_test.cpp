// Who is lost: who has been silent for too long, as long as one was there to hear.
#include "runtime/mpi/liveness.h"

#include <gtest/gtest.h>

namespace taso {
namespace {

using std::chrono::milliseconds;
using Clock = Liveness::Clock;

constexpr Clock::time_point start{};
Clock::time_point at(int ms) { return start + milliseconds(ms); }

TEST(Liveness, WhoIsSilentForTooLongIsLostOnce) {
  Liveness liveness(3, 0, milliseconds(1000), start);
  for (int ms = 100; ms < 1000; ms += 100) {
    liveness.heard_of(2, at(ms));
    EXPECT_FALSE(liveness.newly_lost(at(ms))) << ms;
  }
  EXPECT_EQ(liveness.newly_lost(at(1000)), 1);
  EXPECT_FALSE(liveness.newly_lost(at(1001)));
  EXPECT_TRUE(liveness.lost(1));
  EXPECT_EQ(liveness.lowest_living(), 0);
}

TEST(Liveness, TheLowestLivingRankIsTheFirstThatIsNotLost) {
  Liveness liveness(4, 3, milliseconds(1000), start);
  for (int ms = 100; ms <= 2000; ms += 100) {
    liveness.heard_of(2, at(ms));
    (void)liveness.newly_lost(at(ms));
  }
  EXPECT_EQ(liveness.lowest_living(), 2);
}

TEST(Liveness, OneselfIsNeverLost) {
  Liveness liveness(1, 0, milliseconds(1000), start);
  for (int ms = 100; ms <= 5000; ms += 100) EXPECT_FALSE(liveness.newly_lost(at(ms)));
}

TEST(Liveness, WhoWasStoppedDoesNotTakeTheOthersForLost) {
  Liveness liveness(2, 0, milliseconds(1000), start);
  EXPECT_FALSE(liveness.newly_lost(at(100)));
  EXPECT_FALSE(liveness.newly_lost(at(60'000)));
  // From then on silence counts again: 100 ms before and 200 of the gap have passed.
  for (int ms = 100; ms < 700; ms += 100) EXPECT_FALSE(liveness.newly_lost(at(60'000 + ms))) << ms;
  EXPECT_EQ(liveness.newly_lost(at(60'700)), 1);
}

}  // namespace
}  // namespace taso
