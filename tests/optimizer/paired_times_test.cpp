#include "optimizer/paired_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
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

/// Graphs with these times, run in turn on a machine that drifts, with skewed noise; each executor may be off by a
/// share that stays, and later ones may be faster than earlier ones.
struct Simulation {
  std::vector<double> seconds;
  std::vector<char> is_reference;
  double noise = 0.05, stays = 0, trend = 0;
  std::size_t fallback = 0;
  std::size_t runs_at_most = 100000;                    ///< Of all executors in one comparison: a limit of time.
  std::size_t rounds = 0;                               ///< That were run.
  std::vector<std::vector<std::size_t>> compared = {};  ///< Which graphs, per comparison.

  Samples sample(const PairedTimes& paired, std::span<const std::size_t> of, Random& random) {
    compared.emplace_back(of.begin(), of.end());
    std::vector<double> base;
    for (const std::size_t graph : paired.executors())
      base.push_back(seconds[of[graph]] * (1 + stays * random.uniform()) *
                     (1 - trend * static_cast<double>(base.size())));
    Samples samples(base.size());
    std::vector<char> goes_on(base.size(), 1);
    const double phase = 100 * random.uniform();
    std::size_t runs = 0;
    for (rounds = 0;
         rounds < paired.most_rounds() && runs < runs_at_most && std::count(goes_on.begin(), goes_on.end(), 1) > 0;
         ++rounds) {
      const double drift = 1 + 0.3 * std::sin(static_cast<double>(rounds) / 10 + phase);
      for (std::size_t i = 0; i < base.size(); ++i)
        if (goes_on[i] != 0) {
          samples[i].push_back(1e6 * drift * base[i] * (1 + noise * std::pow(random.uniform(), 4) * 4));
          ++runs;
        }
      paired.after_round(samples, goes_on);
    }
    return samples;
  }

  /// In one stage.
  GraphTimes run(std::uint64_t seed) {
    Random random(seed, "machine");
    const PairedTimes paired(is_reference);
    std::vector<std::size_t> all(seconds.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return paired.times(sample(paired, all, random));
  }

  GraphTimes run_in_stages(std::uint64_t seed) {
    Random random(seed, "machine");
    return compare_in_turn(is_reference, fallback,
                           [&](const PairedTimes& paired, std::span<const std::size_t> of) {
                             return Expected<Samples>(sample(paired, of, random));
                           })
        .value();
  }

  bool gains(const GraphTimes& times, std::size_t graph) const {
    if (times.final && times.final->graph != graph) return false;
    const double noise_of = times.final ? times.final->noise : times.noise;
    for (std::size_t i = 0; i < is_reference.size(); ++i)
      if (is_reference[i] != 0 && !(times.seconds[graph] < times.seconds[i] * (1 - noise_of))) return false;
    return true;
  }
  /// Whether any graph that is no reference does.
  bool gains(const GraphTimes& times) const {
    for (std::size_t i = 0; i < is_reference.size(); ++i)
      if (is_reference[i] == 0 && gains(times, i)) return true;
    return false;
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

TEST(PairedTimes, CopiesStandBackwardsBehindTheGraphs) {
  EXPECT_EQ(PairedTimes({1, 0, 0}).executors(), (std::vector<std::size_t>{0, 1, 2, 0}));
  EXPECT_EQ(PairedTimes({1, 0, 1}, final_looks, true).executors(), (std::vector<std::size_t>{0, 1, 2, 1, 0}));
  EXPECT_EQ(PairedTimes({1}).executors(), (std::vector<std::size_t>{0, 0}));
}

TEST(CompareInTurn, EqualGraphsHardlyEverSeemFaster) {
  struct Machine {
    double noise, stays, trend;
  };
  for (const Machine& machine : {Machine{0.05, 0, 0}, {0.05, 0.01, 0}, {0.02, 0, 0.004}, {0.15, 0.005, 0.002}}) {
    int gains = 0;
    constexpr int runs = 1000;
    for (int run = 0; run < runs; ++run) {
      Simulation equal{{1, 1.01, 1, 1, 1}, {1, 1, 0, 0, 0}, machine.noise, machine.stays, machine.trend};
      equal.runs_at_most = 400;
      gains += equal.gains(equal.run_in_stages(static_cast<std::uint64_t>(run))) ? 1 : 0;
    }
    EXPECT_LE(gains, runs / 100) << machine.noise << " " << machine.stays << " " << machine.trend;
  }
}

/// Six graphs that take turns have few rounds in the time there is; two that are left have more.
TEST(CompareInTurn, AGainNearTheNoiseIsFoundInAFinal) {
  int in_one_stage = 0, in_stages = 0;
  constexpr int runs = 200;
  for (int run = 0; run < runs; ++run) {
    Simulation machine{{1, 1.02, 0.95, 0.965, 0.99, 1}, {1, 1, 0, 0, 0, 0}, 0.03};
    machine.runs_at_most = 200;
    const auto seed = static_cast<std::uint64_t>(run);
    in_one_stage += machine.gains(machine.run(seed)) ? 1 : 0;
    in_stages += machine.gains(machine.run_in_stages(seed)) ? 1 : 0;
  }
  EXPECT_LT(in_one_stage, runs / 2);
  EXPECT_GT(in_stages, runs * 9 / 10);
}

TEST(CompareInTurn, OnlyWhatIsOpenHasAFinal) {
  const auto compared = [](std::vector<double> seconds, std::vector<char> is_reference, std::size_t fallback = 0) {
    Simulation machine{std::move(seconds), std::move(is_reference), 0.02};
    machine.fallback = fallback;
    const GraphTimes times = machine.run_in_stages(11);
    EXPECT_EQ(times.final.has_value(), machine.compared.size() == 2);
    return machine.compared.size() == 2 ? machine.compared[1] : std::vector<std::size_t>();
  };
  using Graphs = std::vector<std::size_t>;
  EXPECT_EQ(compared({1, 0.8}, {1, 0}), Graphs());        // faster
  EXPECT_EQ(compared({1, 1.3}, {1, 0}), Graphs());        // slower
  EXPECT_EQ(compared({1, 1, 1.3}, {1, 1, 0}), Graphs());  // nothing to choose between references
  EXPECT_EQ(compared({1}, {1}), Graphs());
  EXPECT_EQ(compared({1, 0.988}, {1, 0}), (Graphs{0, 1}));
  EXPECT_EQ(compared({1, 0.93}, {1, 0}), (Graphs{0, 1}));  // beyond the noise, but perhaps because of its memory
  EXPECT_EQ(compared({1, 1.3, 0.988}, {1, 1, 0}), (Graphs{0, 2}));              // a reference far behind has no part
  EXPECT_EQ(compared({1.01, 1, 1.2, 0.988}, {1, 1, 0, 0}), (Graphs{1, 3, 0}));  // the better reference first
  // References among themselves, if the one that seems better is not chosen anyway.
  EXPECT_EQ(compared({1, 0.988, 1.3}, {1, 1, 0}, 0), (Graphs{0, 1}));
  EXPECT_EQ(compared({1, 0.988, 1.3}, {1, 1, 0}, 1), Graphs());
}

/// The one that seems better is judged, so that rounds go on until it is shown to be.
TEST(CompareInTurn, AReferenceIsShownToBeBetterThanTheOther) {
  int shown = 0;
  for (int run = 0; run < 100; ++run) {
    Simulation machine{{1, 0.97, 1.5}, {1, 1, 0}, 0.02};
    machine.runs_at_most = 400;
    const GraphTimes times = machine.run_in_stages(static_cast<std::uint64_t>(run));
    const double noise = times.final ? times.final->noise : times.noise;
    EXPECT_EQ(times.final.value_or(GraphTimes::Final{1, 0}).graph, 1U);
    shown += times.seconds[1] < times.seconds[0] * (1 - noise) ? 1 : 0;
  }
  EXPECT_GT(shown, 95);
}

TEST(CompareInTurn, TimesOfTheFinalReplaceThoseBefore) {
  int stage = 0;
  const GraphTimes times =
      compare_in_turn({1, 0, 1}, 0, [&](const PairedTimes& paired, std::span<const std::size_t> of) {
        // First 1 takes 0.96 times as long as 0, in the final 0.9 times.
        const std::vector<double> first = {100, 98, 104, 104}, last = {200, 180, 208, 180, 200};
        EXPECT_EQ(paired.is_final(), stage == 1);
        EXPECT_EQ(of.size(), 3U);
        Samples samples;
        for (const double time : stage++ == 0 ? first : last) samples.emplace_back(45, time);
        return Expected<Samples>(std::move(samples));
      }).value();
  ASSERT_TRUE(times.final);
  EXPECT_EQ(times.final->graph, 1U);
  EXPECT_NEAR(times.seconds[0], 102e-6, 1e-9);
  EXPECT_NEAR(times.seconds[1], 91.8e-6, 1e-9);
  EXPECT_NEAR(times.seconds[2], 106.08e-6, 1e-9);
  EXPECT_EQ(times.final->noise, least_gain);
  EXPECT_NEAR(times.noise, 0.04, 1e-9);
}

TEST(CompareInTurn, AFinalThatIsCutShortLeavesTheTimesBefore) {
  const GraphTimes times =
      compare_in_turn(
          {1, 0}, 0,
          [&](const PairedTimes& paired, std::span<const std::size_t> /*of*/) -> Expected<Samples> {
            if (paired.is_final()) return Error{ErrorCode::interrupted, "stop", {}};
            return Samples{std::vector<double>(45, 100), std::vector<double>(45, 98), std::vector<double>(45, 104)};
          })
          .value();
  EXPECT_FALSE(times.final);
  ASSERT_TRUE(times.cut_short);
  EXPECT_EQ(times.cut_short->code, ErrorCode::interrupted);
  EXPECT_NEAR(times.seconds[1], 98e-6, 1e-9);
  EXPECT_NEAR(times.noise, 0.04, 1e-9);
  // The first stage has to be there.
  EXPECT_FALSE(compare_in_turn({1, 0}, 0, [](const auto&, const auto&) -> Expected<Samples> {
                 return Error{ErrorCode::interrupted, "stop", {}};
               }).ok());
}

TEST(PairedTimes, NearTheNoise) {
  const std::vector<char> is_reference = {1, 0};
  const auto near = [&](double seconds) { return is_near_the_noise({{1, seconds}, 0.04, {}, {}, 0}, is_reference); };
  EXPECT_FALSE(near(1.1));
  EXPECT_FALSE(near(0.985));
  EXPECT_TRUE(near(0.97));
  EXPECT_TRUE(near(0.95));
  EXPECT_FALSE(near(0.9));
  EXPECT_FALSE(is_near_the_noise({{1, 0.96}, 0.04, {}, {}, 0}, {1, 1}));  // nothing but references
  // After a final its own noise counts, and of what was no reference its graph alone.
  const auto in_final = [](double first, double second, std::size_t graph) {
    return is_near_the_noise({{1, 1.02, first, second}, 0.04, GraphTimes::Final{graph, 0.02}, {}, 0}, {1, 1, 0, 0});
  };
  EXPECT_TRUE(in_final(0.98, 0.9, 2));
  EXPECT_FALSE(in_final(0.95, 0.98, 2));
  EXPECT_TRUE(is_near_the_noise({{1, 0.98, 0.9}, 0.04, GraphTimes::Final{1, 0.02}, {}, 0}, {1, 1, 0}));
  EXPECT_FALSE(is_near_the_noise({{1, 0.95, 0.9}, 0.04, GraphTimes::Final{1, 0.02}, {}, 0}, {1, 1, 0}));
}

}  // namespace
}  // namespace taso
