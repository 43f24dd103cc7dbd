// Schedules of random graphs of steps, by what they must not do, and of small ones, by what the model says.
#include "runtime/stream_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/step_order.h"
#include "support/random.h"

namespace taso::testing {
namespace {

std::vector<StreamTask> random_tasks(std::uint64_t seed) {
  Random random(seed, "tasks");
  std::vector<StreamTask> tasks(random.below(40));
  for (std::uint32_t i = 0; i < tasks.size(); ++i) {
    tasks[i].on_device = random.below(12) != 0;
    tasks[i].cost = {random.below(5) == 0 ? 0 : random.uniform() * 1e-5, 0.05 + 0.95 * random.uniform()};
    for (std::uint32_t producer = i > 6 ? i - 6 : 0; producer < i; ++producer)
      if (random.below(4) == 0) tasks[i].producers.push_back(producer);
  }
  return tasks;
}

/// Whether every step begins after its producers, and none runs beside one of the host.
bool is_right(const std::vector<StreamTask>& tasks, const StreamSchedule& schedule) {
  const StepOrder order(schedule.predecessors());
  std::vector<std::size_t> position(tasks.size());
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) position[schedule.steps[i].task] = i;
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const ScheduledStep& step = schedule.steps[i];
    for (const std::uint32_t producer : tasks[step.task].producers)
      if (!order.is_before(position[producer], i)) return false;
    for (std::size_t other = 0; other < i; ++other)
      if ((!step.on_device || !schedule.steps[other].on_device || schedule.steps[other].stream == step.stream) &&
          !order.is_before(other, i))
        return false;
  }
  return true;
}

TEST(StreamSchedule, OfRandomStepsIsRightAndWaitsForNoMore) {
  std::size_t waits = 0, on_several = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::vector<StreamTask> tasks = random_tasks(seed);
    for (std::size_t streams = 1; streams <= 4; ++streams) {
      StreamSchedule schedule = schedule_streams(tasks, streams, 1e-6);
      ASSERT_EQ(schedule.steps.size(), tasks.size());
      ASSERT_LE(schedule.streams, streams);
      ASSERT_TRUE(is_right(tasks, schedule));
      on_several += schedule.streams > 1 ? 1 : 0;
      for (ScheduledStep& step : schedule.steps) {
        ASSERT_LE(step.begin_s, step.end_s);
        ASSERT_LE(step.end_s, schedule.seconds);
        for (std::size_t i = 0; i < step.waits.size(); ++i, ++waits) {
          const std::uint32_t awaited = step.waits[i];
          step.waits.erase(step.waits.begin() + static_cast<std::ptrdiff_t>(i));
          ASSERT_FALSE(is_right(tasks, schedule)) << "a wait that follows from others";
          step.waits.insert(step.waits.begin() + static_cast<std::ptrdiff_t>(i), awaited);
        }
      }
    }
    const StreamSchedule chosen = choose_streams(tasks, 4, 1e-6), again = choose_streams(tasks, 4, 1e-6);
    ASSERT_TRUE(is_right(tasks, chosen));
    ASSERT_LE(chosen.seconds, schedule_streams(tasks, 1, 1e-6).seconds);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      ASSERT_EQ(chosen.steps[i].task, again.steps[i].task);
      ASSERT_EQ(chosen.steps[i].stream, again.steps[i].stream);
    }
  }
  EXPECT_GT(waits, 500u);
  EXPECT_GT(on_several, 300u);
}

/// Two chains of `length` steps of a second each, behind one step and before another.
std::vector<StreamTask> two_chains(std::uint32_t length, double share) {
  std::vector<StreamTask> tasks{{{1, share}, true, {}}};
  for (std::uint32_t i = 0; i < 2 * length; ++i) tasks.push_back({{1, share}, true, {i < 2 ? 0 : i - 1}});
  tasks.push_back({{1, share}, true, {2 * length - 1, 2 * length}});
  return tasks;
}

TEST(StreamSchedule, StepsThatLeaveRoomRunBesideOthers) {
  const StreamSchedule schedule = choose_streams(two_chains(5, 0.5), 4, 0.125);
  EXPECT_EQ(schedule.streams, 2u);
  // One chain begins behind a wait, as does the last step, and the run ends with one.
  EXPECT_DOUBLE_EQ(schedule.seconds, 1 + 0.125 + 5 + 0.125 + 1 + 0.125);
  EXPECT_EQ(choose_streams(two_chains(5, 0.5), 1, 0.125).streams, 1u) << "no more than were asked for";
}

TEST(StreamSchedule, StepsThatFillTheDeviceRunOneAfterTheOther) {
  EXPECT_EQ(choose_streams(two_chains(5, 1), 4, 0).streams, 1u);
  EXPECT_DOUBLE_EQ(choose_streams(two_chains(5, 1), 4, 0).seconds, 12);
  // Each alone would use three quarters: two at a time take half as long again as one.
  EXPECT_NEAR(choose_streams(two_chains(4, 0.75), 2, 0).seconds, 2 + 4 * 1.5, 1e-9);
}

TEST(StreamSchedule, WaitsThatTakeLongerThanStepsDoNotPay) {
  EXPECT_EQ(choose_streams(two_chains(1, 0.25), 4, 2).streams, 1u);
}

TEST(StreamSchedule, StepsOfTheHostStandBetween) {
  std::vector<StreamTask> tasks{
      {{1, 0.5}, true, {}}, {{1, 0.5}, true, {}}, {{3, 1}, false, {}}, {{1, 0.5}, true, {0}}, {{1, 0.5}, true, {0}}};
  const StreamSchedule schedule = choose_streams(tasks, 2, 0);
  EXPECT_DOUBLE_EQ(schedule.seconds, 1 + 3 + 1);
  ASSERT_EQ(schedule.steps[2].task, 2u);
  EXPECT_FALSE(schedule.steps[2].on_device);
  for (const ScheduledStep& step : schedule.steps) EXPECT_TRUE(step.waits.empty()) << "the host waits for all";
}

}  // namespace
}  // namespace taso::testing
