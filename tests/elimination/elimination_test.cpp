// Variable elimination against enumeration of all assignments, on random problems.
#include "elimination/elimination.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/random.h"

namespace taso::testing {
namespace {

using Variable = EliminationProblem::Variable;

/// Calls `visit` with every assignment.
template <class F>
void for_each_assignment(const EliminationProblem& problem, const F& visit) {
  std::vector<std::uint32_t> assignment(problem.variables(), 0);
  for (;;) {
    visit(assignment);
    std::size_t at = 0;
    while (at < assignment.size() && ++assignment[at] == problem.size(static_cast<Variable>(at))) assignment[at++] = 0;
    if (at == assignment.size()) return;
  }
}

/// Small integers, some forbidden: sums are exact, ties are common.
double random_cost(Random& random, unsigned forbidden_in_eight) {
  return random.below(8) < forbidden_in_eight ? EliminationProblem::forbidden_cost
                                              : static_cast<double>(random.below(6));
}

EliminationProblem random_problem(std::uint64_t seed) {
  Random random(seed, "elimination");
  EliminationProblem problem;
  const std::size_t variables = 1 + random.below(7);
  for (std::size_t i = 0; i < variables; ++i)
    problem.add_variable(1 + static_cast<std::uint32_t>(random.below(variables < 6 ? 4 : 3)));
  const std::size_t factors = random.below(3 * variables);
  const auto forbidden = static_cast<unsigned>(random.below(3));
  for (std::size_t i = 0; i < factors; ++i) {
    std::vector<Variable> scope;
    for (std::size_t j = 1 + random.below(3); j > 0; --j) {
      const auto variable = static_cast<Variable>(random.below(variables));
      if (std::find(scope.begin(), scope.end(), variable) == scope.end()) scope.push_back(variable);
    }
    std::size_t entries = 1;
    for (const Variable variable : scope) entries *= problem.size(variable);
    std::vector<double> table(entries);
    for (double& cost : table) cost = random_cost(random, forbidden);
    problem.add_factor(std::move(scope), std::move(table));
  }
  return problem;
}

double brute_force(const EliminationProblem& problem) {
  double best = EliminationProblem::forbidden_cost;
  for_each_assignment(problem, [&](const auto& assignment) { best = std::min(best, problem.cost(assignment)); });
  return best;
}

class RandomProblems : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomProblems, AreMinimized) {
  for (std::uint64_t i = 0; i < 100; ++i) {
    const EliminationProblem problem = random_problem(GetParam() * 100 + i);
    const EliminationResult result = minimize(problem);
    const double best = brute_force(problem);
    ASSERT_TRUE(result.exact);
    ASSERT_EQ(result.cost, best) << "seed " << GetParam() * 100 + i;
    ASSERT_EQ(result.lower_bound, best);
    ASSERT_EQ(result.assignment.size(), problem.variables());
    ASSERT_EQ(problem.cost(result.assignment), best);
  }
}

TEST_P(RandomProblems, AreMinimizedFromParts) {
  EliminationCache shared;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const EliminationProblem problem = random_problem(GetParam() * 100 + i);
    EliminationCache fresh;
    const EliminationResult result = shared.minimize(problem), alone = fresh.minimize(problem);
    const double best = brute_force(problem);
    ASSERT_TRUE(result.exact);
    ASSERT_EQ(result.cost, best) << "seed " << GetParam() * 100 + i;
    ASSERT_EQ(result.lower_bound, best);
    ASSERT_EQ(result.assignment, alone.assignment) << "what the cache holds decides";
    const std::size_t solved = shared.solved();
    ASSERT_EQ(shared.minimize(problem).assignment, result.assignment);
    ASSERT_EQ(shared.solved(), solved);
  }
}

TEST_P(RandomProblems, StayBoundedInBoundedTables) {
  int inexact = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const EliminationProblem problem = random_problem(GetParam() * 100 + i);
    const EliminationResult result = minimize(problem, {.maximum_table = 3});
    const double best = brute_force(problem);
    inexact += result.exact ? 0 : 1;
    ASSERT_LE(result.largest_table, 16U);  // of one given factor: four values and four
    ASSERT_LE(result.lower_bound, best) << "seed " << GetParam() * 100 + i;
    ASSERT_GE(result.cost, best);
    ASSERT_EQ(problem.cost(result.assignment), result.cost);
    if (result.exact) {
      ASSERT_EQ(result.cost, best);
    }
  }
  EXPECT_GT(inexact, 10);
}

/// The same where all tables together are bounded.
TEST_P(RandomProblems, StayBoundedInAllTablesTogether) {
  int inexact = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const EliminationProblem problem = random_problem(GetParam() * 100 + i);
    const double best = brute_force(problem);
    const EliminationResult result = minimize(problem, {.maximum_entries = 12});
    inexact += result.exact ? 0 : 1;
    ASSERT_LE(result.lower_bound, best) << "seed " << GetParam() * 100 + i;
    ASSERT_GE(result.cost, best);
    if (result.exact) {
      ASSERT_EQ(result.cost, best);
    }
    ASSERT_TRUE(minimize(problem, {.maximum_entries = 1000}).exact);
  }
  EXPECT_GT(inexact, 10);
}

/// Where tables are too large, too, the result does not depend on what the cache holds.
TEST_P(RandomProblems, DoNotDependOnTheCache) {
  int inexact = 0;
  EliminationCache shared;
  MessageCache messages;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const EliminationProblem problem = random_problem(GetParam() * 100 + i % 100);
    const EliminationOptions options{.maximum_table = 3};
    EliminationCache fresh;
    MessageCache none;
    for (const auto& [result, alone] :
         {std::pair(shared.minimize(problem, options), fresh.minimize(problem, options)),
          std::pair(minimize(problem, options, &messages), minimize(problem, options, &none))}) {
      ASSERT_EQ(result.assignment, alone.assignment) << "seed " << GetParam() * 100 + i % 100;
      ASSERT_EQ(result.cost, alone.cost);
      ASSERT_EQ(result.lower_bound, alone.lower_bound);
      ASSERT_EQ(result.exact, alone.exact);
      inexact += result.exact ? 0 : 1;
    }
  }
  EXPECT_GT(inexact, 10);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProblems, ::testing::Range<std::uint64_t>(0, 10));

TEST(Elimination, NothingToDecide) {
  EliminationProblem problem;
  EXPECT_EQ(minimize(problem).cost, 0);
  problem.add_factor({}, {3});
  const Variable only = problem.add_variable(1);
  problem.add_factor({only}, {4});
  const EliminationResult result = minimize(problem);
  EXPECT_EQ(result.cost, 7);
  EXPECT_EQ(result.assignment, std::vector<std::uint32_t>{0});
  EXPECT_EQ(result.width, 0U);
}

/// A shared table counts like one that was copied.
TEST(Elimination, TablesCanBeShared) {
  const std::vector<double> table = {4, 1, 2, 3};
  EliminationProblem shared, copied;
  for (EliminationProblem* problem : {&shared, &copied})
    for (int i = 0; i < 3; ++i) problem->add_variable(2);
  for (const std::vector<Variable>& scope : {std::vector<Variable>{0, 1}, std::vector<Variable>{2, 1}}) {
    shared.share_factor(scope, table);
    copied.add_factor(scope, table);
    EXPECT_EQ(shared.factor(shared.factors() - 1).table.data(), table.data());
    EXPECT_NE(copied.factor(copied.factors() - 1).table.data(), table.data());
  }
  EXPECT_EQ(minimize(shared).assignment, minimize(copied).assignment);
  EXPECT_EQ(minimize(shared).cost, 2);
  EXPECT_EQ(shared.cost(std::vector<std::uint32_t>{1, 0, 1}), 4);
}

TEST(Elimination, AnImpossibleProblemSaysSo) {
  EliminationProblem problem;
  const Variable a = problem.add_variable(2), b = problem.add_variable(2);
  const double no = EliminationProblem::forbidden_cost;
  problem.add_factor({a, b}, {no, 1, 1, no});  // different
  problem.add_factor({b, a}, {1, no, no, 1});  // equal
  const EliminationResult result = minimize(problem);
  EXPECT_TRUE(result.exact);
  EXPECT_EQ(result.cost, no);
  EXPECT_EQ(result.lower_bound, no);
}

/// A chain with a skip over each pair of links, as in a residual network: width 2 however long.
TEST(Elimination, ResidualChainsStayNarrow) {
  EliminationProblem problem;
  Random random(1, "chain");
  std::vector<Variable> chain;
  for (int i = 0; i < 3000; ++i) chain.push_back(problem.add_variable(4));
  const auto connect = [&](Variable a, Variable b) {
    std::vector<double> table(16);
    for (double& cost : table) cost = static_cast<double>(random.below(100));
    problem.add_factor({a, b}, std::move(table));
  };
  for (std::size_t i = 1; i < chain.size(); ++i) connect(chain[i - 1], chain[i]);
  for (std::size_t i = 2; i < chain.size(); i += 2) connect(chain[i - 2], chain[i]);
  const EliminationResult result = minimize(problem);
  EXPECT_TRUE(result.exact);
  EXPECT_LE(result.width, 2U);
  EXPECT_EQ(result.cost, result.lower_bound);
}

/// Of a chain of diamonds that changes in one of them, that one is solved anew, and at most its neighbours.
TEST(Elimination, PartsThatStayAreNotSolvedAgain) {
  const auto chain = [](std::size_t changed, double cost) {
    EliminationProblem problem;
    Random random(3, "diamonds");
    Variable last = problem.add_variable(3);
    const auto connect = [&](Variable a, Variable b, bool here) {
      std::vector<double> table(9);
      for (double& entry : table) entry = static_cast<double>(random.below(50));
      if (here) table[4] = cost;
      problem.add_factor({a, b}, std::move(table));
    };
    for (std::size_t i = 0; i < 100; ++i) {
      const Variable left = problem.add_variable(3), right = problem.add_variable(3), next = problem.add_variable(3);
      connect(last, left, i == changed);
      connect(last, right, false);
      connect(left, next, false);
      connect(right, next, false);
      last = next;
    }
    return problem;
  };
  EliminationCache cache;
  ASSERT_TRUE(cache.minimize(chain(1000, 0)).exact);
  EXPECT_EQ(cache.solved(), 100U);
  for (const std::size_t changed : {10U, 50U, 90U}) {
    const std::size_t before = cache.solved();
    const EliminationProblem problem = chain(changed, 60);
    const EliminationResult result = cache.minimize(problem);
    EXPECT_LE(cache.solved(), before + 4) << "diamond " << changed;
    EXPECT_GE(cache.solved(), before + 1);
    EXPECT_EQ(result.cost, minimize(problem).cost);
  }
}

/// With tables looked up, also where the cache forgets: the same cost.
TEST(Elimination, TablesAreLookedUp) {
  MessageCache large, small(40);
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const EliminationProblem problem = random_problem(seed % 200);
    const EliminationResult expected = minimize(problem);
    for (MessageCache* cache : {&large, &small}) {
      const EliminationResult result = minimize(problem, {}, cache);
      EXPECT_EQ(result.cost, expected.cost) << "seed " << seed;
      EXPECT_EQ(result.lower_bound, expected.lower_bound);
      EXPECT_EQ(result.largest_table, expected.largest_table);
    }
  }
}

/// What the search's recorded costs rest on: costs that the result does not use may grow, and it stays the result.
TEST(Elimination, UnusedCostsMayGrow) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const EliminationProblem problem = random_problem(seed);
    const EliminationResult first = minimize(problem);
    if (first.cost == EliminationProblem::forbidden_cost) continue;
    Random random(seed, "grow");
    EliminationProblem grown;
    for (std::size_t i = 0; i < problem.variables(); ++i) grown.add_variable(problem.size(static_cast<Variable>(i)));
    for (std::size_t f = 0; f < problem.factors(); ++f) {
      const EliminationProblem::Factor factor = problem.factor(f);
      std::size_t used = 0;
      for (const Variable variable : factor.scope) used = used * problem.size(variable) + first.assignment[variable];
      std::vector<double> table(factor.table.begin(), factor.table.end());
      for (std::size_t i = 0; i < table.size(); ++i)
        if (i != used) table[i] += static_cast<double>(random.below(3));
      grown.add_factor(factor.scope, std::move(table));
    }
    EXPECT_EQ(minimize(grown).assignment, first.assignment) << "seed " << seed;
  }
}

}  // namespace
}  // namespace taso::testing
