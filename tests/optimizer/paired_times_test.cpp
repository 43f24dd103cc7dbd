#include "optimizer/paired_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "support/random.h"

namespace taso {
namespace {

using Samples = std::vector<std::vector<double>>;

TEST(MedianInterval, HoldsTheMedianWithTheConfidenceAskedFor) {
  std::vector<double> samples;
  for (int i = 1; i <= 11; ++i) samples.push_back(i);
  // 2 * 2^-11 of all draws have their median outside of the smallest and largest of 11 samples.
  EXPECT_EQ(median_interval(samples, 0.001).low, 1);
  EXPECT_EQ(median_interval(samples, 0.001).high, 11);
  EXPECT_EQ(median_interval(samples, 0.0009).low, -std::numeric_limits<double>::infinity());
  // 2 * (1 + 11) * 2^-11 = 0.0117
  EXPECT_EQ(median_interval(samples, 0.0118).low, 2);
  EXPECT_EQ(median_interval(samples, 0.0118).high, 10);
  EXPECT_EQ(median_interval(samples, 0.0116).low, 1);
  EXPECT_EQ(median_interval({1, 2, 3, 4}, 0.5).median, 2.5);
  EXPECT_FALSE(std::isfinite(median_interval({5}, 0.01).high));
}

TEST(MedianInterval, MissesTheMedianAsOftenAsAllowed) {
  Random random(1, "intervals");
  int missed = 0;
  constexpr int draws = 4000;
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<double> samples(25);
    for (double& sample : samples) sample = std::pow(random.uniform(), 3);
    const MedianInterval interval = median_interval(samples, 0.1);
    missed += interval.low > 0.125 || interval.high < 0.125 ? 1 : 0;
  }
  EXPECT_GT(missed, draws / 50);
  EXPECT_LE(missed, draws / 10);
}

/// Graphs with these times, run in turn on a machine that drifts, with skewed noise; the copy of the first one and each
/// graph may be off by a share that stays.
struct Simulation {
  std::vector<double> seconds;
  std::vector<char> is_reference;
  double noise = 0.05, stays = 0;
  std::size_t rounds = 0;  ///< That were run.

  GraphTimes run(std::uint64_t seed) {
    Random random(seed, "machine");
    std::vector<double> base = seconds;
    base.push_back(seconds[0]);
    for (double& time : base) time *= 1 + stays * random.uniform();
    const PairedTimes paired(is_reference);
    Samples samples(base.size());
    std::vector<char> goes_on(base.size(), 1);
    for (rounds = 0; rounds < 201 && std::count(goes_on.begin(), goes_on.end(), 1) > 0; ++rounds) {
      const double drift = 1 + 0.3 * std::sin(static_cast<double>(rounds) / 10 + static_cast<double>(seed));
      for (std::size_t i = 0; i < base.size(); ++i)
        if (goes_on[i] != 0)
          samples[i].push_back(1e6 * drift * base[i] * (1 + noise * std::pow(random.uniform(), 4) * 4));
      paired.after_round(samples, goes_on);
    }
    return paired.times(samples);
  }

  bool gains(const GraphTimes& times, std::size_t graph) const {
    for (std::size_t i = 0; i < is_reference.size(); ++i)
      if (is_reference[i] != 0 && !(times.seconds[graph] < times.seconds[i] * (1 - times.noise))) return false;
    return true;
  }
};

TEST(PairedTimes, EqualGraphsHardlyEverSeemFaster) {
  for (const double stays : {0.0, 0.01}) {
    int gains = 0;
    constexpr int runs = 1000;
    for (int run = 0; run < runs; ++run) {
      Simulation machine{{1, 1.03, 1}, {1, 1, 0}, 0.05, stays};
      gains += machine.gains(machine.run(static_cast<std::uint64_t>(run)), 2) ? 1 : 0;
    }
    EXPECT_LE(gains, runs / 100) << stays;
  }
}

TEST(PairedTimes, AGainBeyondTheNoiseIsFoundWithFewRounds) {
  int gains = 0;
  for (int run = 0; run < 100; ++run) {
    Simulation machine{{1, 1.2, 0.9}, {1, 1, 0}, 0.02};
    gains += machine.gains(machine.run(static_cast<std::uint64_t>(run)), 2) ? 1 : 0;
    EXPECT_LE(machine.rounds, 45U);
  }
  EXPECT_EQ(gains, 100);
}

TEST(PairedTimes, TheNearerToTheNoiseTheMoreRounds) {
  const auto rounds = [](double seconds) {
    Simulation machine{{1, seconds}, {1, 0}, 0.03};
    (void)machine.run(7);
    return machine.rounds;
  };
  EXPECT_EQ(rounds(2), 3U);
  EXPECT_LE(rounds(0.8), 17U);
  EXPECT_GT(rounds(0.985), rounds(0.8));
}

TEST(PairedTimes, WhatIsGivenUpEarlySaysNothingOfTheNoise) {
  Simulation machine{{1, 2, 3}, {1, 1, 0}, 0.01};
  const GraphTimes times = machine.run(5);
  EXPECT_EQ(machine.rounds, 3U);
  EXPECT_LT(times.noise, 0.05);
  EXPECT_NEAR(times.seconds[2] / times.seconds[0], 3, 0.1);
}

TEST(PairedTimes, BothReferencesMustBeBeaten) {
  Simulation machine{{1, 0.8, 0.9}, {1, 1, 0}, 0.01};
  const GraphTimes times = machine.run(3);
  EXPECT_FALSE(machine.gains(times, 2));
  EXPECT_NEAR(times.seconds[1] / times.seconds[0], 0.8, 0.02);
  EXPECT_NEAR(times.seconds[2] / times.seconds[0], 0.9, 0.02);
}

TEST(PairedTimes, NearTheNoise) {
  const std::vector<char> is_reference = {1, 0};
  const auto near = [&](double seconds) { return is_near_the_noise({{1, seconds}, 0.04, 0}, is_reference); };
  EXPECT_FALSE(near(1.1));
  EXPECT_FALSE(near(0.985));
  EXPECT_TRUE(near(0.97));
  EXPECT_TRUE(near(0.95));
  EXPECT_FALSE(near(0.9));
  EXPECT_FALSE(is_near_the_noise({{1, 0.96}, 0.04, 0}, {1, 1}));  // nothing but references
}

}  // namespace
}  // namespace taso
