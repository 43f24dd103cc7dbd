// The theorems of Tofu's appendix A under their assumptions: no halos, even sizes, every tensor halves with every step.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "partition/tofu.h"
#include "support/random.h"
#include "tests/partition/training_graphs.h"

namespace taso {
namespace {

using test::layers_in_training;
using test::product_registry;
using test::product_strategies;
using test::TrainingGraph;
using test::value_of;

using Choice = std::vector<std::uint32_t>;

TrainingGraph random_layers(Random& random) {
  std::vector<std::int64_t> dims;
  for (int i = 0; i < 3; ++i) dims.push_back(static_cast<std::int64_t>(8 * (1 + random.below(64))));
  return layers_in_training(static_cast<std::int64_t>(8 * (1 + random.below(64))), dims);
}

Choice random_choice(const TofuProblem& problem, Random& random) {
  Choice choice;
  for (std::size_t d = 0; d < problem.problem().decisions(); ++d)
    choice.push_back(
        static_cast<std::uint32_t>(random.below(problem.problem().ways(static_cast<PartitionProblem::Decision>(d)))));
  return choice;
}

bool cuts_once(const TofuDecisions& decisions) {
  return std::none_of(decisions.tilings.begin(), decisions.tilings.end(),
                      [](const TensorTiling& tiling) { return tiling[0] && tiling[0] == tiling[1]; }) &&
         std::none_of(decisions.uses.begin(), decisions.uses.end(),
                      [](const std::vector<AxisUse>& uses) { return uses[0] == uses[1]; });
}

// Theorem 1 holds for the exact volumes, too, whatever of an operand is read whole, as long as no step cuts what an
// earlier one did: then the steps the other way round move as much. Else the order decides which quarters are whose,
// and it does not hold.
TEST(TofuTheorems, StepsCommute) {
  Random random(17);
  std::size_t commuting = 0, others = 0;
  for (int round = 0; round < 10; ++round) {
    const TrainingGraph training = random_layers(random);
    const TofuCoarsening coarsening = value_of(coarsen(training.graph, product_registry(), training.groups));
    StrategyTable strategies = product_strategies();
    const TofuProblem problem(training.graph, coarsening, {2, 2}, false, strategies);
    for (int plan = 0; plan < 2000; ++plan) {
      const Choice choice = random_choice(problem, random);
      TofuDecisions decisions = problem.decisions_of(choice);
      const bool once = cuts_once(decisions);
      if (!once && plan > 50) continue;
      for (TensorTiling& tiling : decisions.tilings) std::swap(tiling[0], tiling[1]);
      for (std::vector<AxisUse>& uses : decisions.uses) std::swap(uses[0], uses[1]);
      const double cost = problem.problem().cost(choice);
      const double swapped = problem.problem().cost(problem.choice_of(decisions));
      if (once) {
        EXPECT_EQ(cost, swapped);
      }
      commuting += once ? 1 : 0;
      others += !once && cost != swapped ? 1 : 0;
    }
  }
  EXPECT_GT(commuting, 20U);
  EXPECT_GT(others, 20U);
}

// Theorem 2 for what the recursion finds: later steps move as much or more.
TEST(TofuTheorems, LaterStepsMoveMore) {
  Random random(18);
  for (int round = 0; round < 10; ++round) {
    const TrainingGraph training = random_layers(random);
    const TofuCoarsening coarsening = value_of(coarsen(training.graph, product_registry(), training.groups));
    StrategyTable strategies = product_strategies();
    const TofuPlan plan = tofu_recursive(training.graph, coarsening, {2, 2, 2}, strategies);
    ASSERT_EQ(plan.steps.size(), 3U);
    EXPECT_LE(plan.steps[0], plan.steps[1]);
    EXPECT_LE(plan.steps[1], plan.steps[2]);
    EXPECT_DOUBLE_EQ(std::accumulate(plan.steps.begin(), plan.steps.end(), 0.0), plan.bytes);
  }
}

/// The appendix's cost of a sequence of basic plans (equation 3): step i has 2^(i-1) groups, each with tensors of
/// 1/2^(i-1) of their size; a basic plan costs alpha times sizes (Lemma 1). The alpha of a cost table is what it says
/// per element of the whole.
double appendix_cost(const PartitionProblem& one_step, const std::vector<Choice>& plans) {
  double total = 0, groups = 1;
  for (const Choice& plan : plans) {
    double within = 0;
    for (const PartitionProblem::Cost& cost : one_step.costs()) {
      std::size_t at = 0;
      for (const PartitionProblem::Decision d : cost.scope) at = at * one_step.ways(d) + plan[d];
      within += (*cost.table)[at] / groups;
    }
    total += groups * within;
    groups *= 2;
  }
  return total;
}

// Lemma 1, Theorems 1 to 3 as they are stated: costs of derived strategies as weights of sizes, and sizes that halve.
TEST(TofuTheorems, RecursionIsOptimalWhereEverythingHalves) {
  Random random(19);
  for (int round = 0; round < 10; ++round) {
    const std::int64_t b = 8 * (1 + static_cast<std::int64_t>(random.below(9)));
    const std::int64_t k = 8 * (1 + static_cast<std::int64_t>(random.below(9)));
    const std::int64_t n = 8 * (1 + static_cast<std::int64_t>(random.below(9)));
    const Graph graph = value_of(parse_graph("input x f32[" + std::to_string(b) + ", " + std::to_string(k) +
                                                 "]\ninput w f32[" + std::to_string(k) + ", " + std::to_string(n) +
                                                 "]\noutput product_of_columns(x, tanh(matmul(x, w)))\n",
                                             "", product_registry()));
    const TofuCoarsening coarsening = value_of(coarsen(graph, product_registry()));
    StrategyTable strategies = product_strategies();
    const TofuProblem problem(graph, coarsening, {2}, false, strategies);
    const Choice best = tofu_exact(graph, coarsening, {2}, strategies).choice;
    const double recursion = appendix_cost(problem.problem(), {best, best});
    Choice first(problem.problem().decisions(), 0);
    double least = std::numeric_limits<double>::infinity();
    const auto next = [&](Choice& choice) {
      for (std::size_t d = 0; d < choice.size(); ++d) {
        if (++choice[d] < problem.problem().ways(static_cast<PartitionProblem::Decision>(d))) return true;
        choice[d] = 0;
      }
      return false;
    };
    do {
      Choice second(first.size(), 0);
      do {
        const double cost = appendix_cost(problem.problem(), {first, second});
        EXPECT_DOUBLE_EQ(cost, appendix_cost(problem.problem(), {second, first}));
        least = std::min(least, cost);
      } while (next(second));
    } while (next(first));
    EXPECT_DOUBLE_EQ(recursion, least);
    EXPECT_DOUBLE_EQ(recursion, 2 * appendix_cost(problem.problem(), {best}));  // delta_1 == delta_2
  }
}

// Lemma 1: the cost of every choice is linear in the sizes: with every extent doubled, all tensors of two axes are
// four times as large, and so is the cost.
TEST(TofuTheorems, CostsAreWeightedSumsOfSizes) {
  Random random(20);
  const TrainingGraph small = layers_in_training(16, {24, 8, 40}), large = layers_in_training(32, {48, 16, 80});
  StrategyTable strategies = product_strategies();
  const TofuCoarsening of_small = value_of(coarsen(small.graph, product_registry(), small.groups));
  const TofuCoarsening of_large = value_of(coarsen(large.graph, product_registry(), large.groups));
  const TofuProblem one(small.graph, of_small, {2, 2}, true, strategies);
  const TofuProblem other(large.graph, of_large, {2, 2}, true, strategies);
  for (int plan = 0; plan < 200; ++plan) {
    const Choice choice = random_choice(one, random);
    EXPECT_EQ(4 * one.problem().cost(choice), other.problem().cost(choice));
  }
}

}  // namespace
}  // namespace taso
