#include "partition/solve_limited.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "partition/priced_problem.h"
#include "support/random.h"

namespace taso {
namespace {

/// Decisions in a row with some more pairs; costs of which some are forbidden; amounts at each of a few places.
struct RandomProblem {
  PartitionProblem problem;
  std::vector<std::vector<PartitionProblem::Cost>> places;

  RandomProblem(Random& random, std::size_t decisions) {
    const auto table = [&](const std::vector<PartitionProblem::Decision>& scope, std::uint64_t most, bool forbids) {
      std::size_t size = 1;
      for (const auto decision : scope) size *= problem.ways(decision);
      auto made = std::make_shared<std::vector<double>>();
      for (std::size_t i = 0; i < size; ++i)
        made->push_back(forbids && random.below(12) == 0 ? EliminationProblem::forbidden_cost
                                                         : static_cast<double>(random.below(most)));
      return made;
    };
    for (std::size_t i = 0; i < decisions; ++i) problem.add_decision(1 + static_cast<std::uint32_t>(random.below(4)));
    for (PartitionProblem::Decision i = 0; i < decisions; ++i) {
      problem.add_cost({i}, table({i}, 20, false));
      if (i > 0) problem.add_cost({i - 1, i}, table({i - 1, i}, 20, true));
      if (i > 2 && random.below(2) == 0) problem.add_cost({i - 3, i}, table({i - 3, i}, 20, false));
    }
    for (std::size_t place = 0; place < 1 + random.below(3); ++place) {
      auto& tables = places.emplace_back();
      for (PartitionProblem::Decision i = 0; i < decisions; ++i)
        if (random.below(3) > 0) tables.push_back({{i}, table({i}, 30, false)});
      tables.push_back({{0, 1}, table({0, 1}, 10, false)});
    }
  }

  [[nodiscard]] ResourceLimit::Use used(const std::vector<std::uint32_t>& choice) const {
    ResourceLimit::Use use{-1, 0};
    for (std::size_t place = 0; place < places.size(); ++place) {
      const double amount = PricedProblem::sum(places[place], problem, choice);
      if (amount > use.amount) use = {amount, place};
    }
    return use;
  }

  /// Calls it with every choice.
  template <class Of>
  void for_each(const Of& of) const {
    std::vector<std::uint32_t> choice(problem.decisions(), 0);
    while (true) {
      of(choice);
      std::size_t at = 0;
      while (at < choice.size() && ++choice[at] == problem.ways(static_cast<PartitionProblem::Decision>(at)))
        choice[at++] = 0;
      if (at == choice.size()) return;
    }
  }
};

TEST(SolveLimited, IsAsGoodAsTryingEverything) {
  Random random(5);
  int limited = 0, impossible = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const RandomProblem one(random, 3 + random.below(4));
    double least = HUGE_VAL, most = 0;
    one.for_each([&](const auto& choice) {
      if (one.problem.cost(choice) >= EliminationProblem::forbidden_cost) return;
      least = std::min(least, one.used(choice).amount);
      most = std::max(most, one.used(choice).amount);
    });
    if (least == HUGE_VAL) continue;
    ResourceLimit limit;
    limit.most = std::floor(least - 2 + (most - least) * 0.7 * static_cast<double>(random.below(100)) / 100);
    limit.used = [&](const auto& choice) { return one.used(choice); };
    limit.at_least = [&](std::size_t place) { return one.places[place]; };
    double best = HUGE_VAL;
    one.for_each([&](const auto& choice) {
      if (one.used(choice).amount <= limit.most) best = std::min(best, one.problem.cost(choice));
    });
    const LimitedSolution solved = solve_limited(one.problem, limit);
    ASSERT_EQ(solved.found, best < HUGE_VAL) << trial;
    if (solved.found) {
      EXPECT_TRUE(solved.solution.exact) << trial;
      EXPECT_DOUBLE_EQ(solved.solution.cost, best) << trial;
      EXPECT_LE(one.used(solved.solution.choice).amount, limit.most);
      EXPECT_LE(solved.solution.lower_bound, best * (1 + 1e-9) + 1e-9);
      limited += best > solve_exact(one.problem).cost + 0.5;
    } else {
      EXPECT_GT(solved.needs_at_least, limit.most) << trial;
      EXPECT_LE(solved.needs_at_least, least + 1e-9) << trial;
      ++impossible;
    }
  }
  EXPECT_GT(limited, 80) << "the limit changes what is best";
  EXPECT_GT(impossible, 20);
}

// Without branch and bound a gap may be left: the bound holds, and what is found keeps to the limit.
TEST(SolveLimited, TheBoundHoldsWhereAGapIsLeft) {
  Random random(6);
  int gaps = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const RandomProblem one(random, 6);
    ResourceLimit limit;
    limit.most = 60;
    limit.used = [&](const auto& choice) { return one.used(choice); };
    limit.at_least = [&](std::size_t place) { return one.places[place]; };
    LimitedOptions options;
    options.work = 0;
    const LimitedSolution solved = solve_limited(one.problem, limit, options);
    if (!solved.found) continue;
    const LimitedSolution exact = solve_limited(one.problem, limit);
    EXPECT_LE(solved.solution.lower_bound, exact.solution.cost + 1e-9) << trial;
    EXPECT_GE(solved.solution.cost, exact.solution.cost) << trial;
    EXPECT_LE(one.used(solved.solution.choice).amount, limit.most) << trial;
    gaps += !solved.solution.exact;
  }
  EXPECT_GT(gaps, 10);
}

TEST(SolveLimited, StopsWhenItIsTold) {
  Random random(7);
  const std::atomic<bool> flag = true;
  int stopped = 0;
  for (int trial = 0; trial < 20; ++trial) {
    const RandomProblem one(random, 6);
    ResourceLimit limit;
    limit.most = 40;
    limit.used = [&](const auto& choice) { return one.used(choice); };
    limit.at_least = [&](std::size_t place) { return one.places[place]; };
    LimitedOptions options;
    options.stop.flag = &flag;
    stopped += solve_limited(one.problem, limit, options).stopped;
  }
  EXPECT_GT(stopped, 10);
}

}  // namespace
}  // namespace taso
