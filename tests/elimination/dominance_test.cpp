// What is dropped is never missed, on random problems; and what should be dropped is.
#include "elimination/dominance.h"

#include <gtest/gtest.h>

#include "support/random.h"

namespace taso::testing {
namespace {

using Variable = EliminationProblem::Variable;
using Values = std::vector<std::uint32_t>;

TEST(Dominance, KeepsTheLeastCost) {
  std::size_t dropped = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Random random(seed, "dominance");
    EliminationProblem problem;
    const std::size_t variables = 2 + random.below(6);
    for (std::size_t i = 0; i < variables; ++i) problem.add_variable(1 + static_cast<std::uint32_t>(random.below(6)));
    const auto spread = 1 + random.below(60);
    for (std::size_t i = 0; i < 2 * variables; ++i) {
      std::vector<Variable> scope;
      for (std::size_t j = 1 + random.below(3); j > 0; --j) {
        const auto variable = static_cast<Variable>(random.below(variables));
        if (std::ranges::count(scope, variable) == 0) scope.push_back(variable);
      }
      std::vector<double> table(table_size(problem.sizes(), scope));
      for (double& cost : table)
        cost = random.below(12) == 0 ? EliminationProblem::forbidden_cost : static_cast<double>(random.below(spread));
      problem.add_factor(scope, table);
    }
    const ReducedProblem reduced = without_dominated_values(problem);
    const EliminationResult all = minimize(problem), few = minimize(reduced.problem);
    ASSERT_EQ(few.cost, all.cost) << "seed " << seed;
    ASSERT_EQ(problem.cost(reduced.expand(few.assignment)), all.cost) << "seed " << seed;
    for (Variable variable = 0; variable < variables; ++variable) {
      ASSERT_EQ(reduced.kept[variable].size(), reduced.problem.size(variable));
      dropped += problem.size(variable) - reduced.problem.size(variable);
    }
  }
  EXPECT_GT(dropped, 3000U);
}

TEST(Dominance, DropsWhatIsNeverBetter) {
  EliminationProblem problem;
  const Variable a = problem.add_variable(4), b = problem.add_variable(2);
  // Value 1 costs 5 more than value 0 and saves at most 4; value 3 is value 0 again; value 2 is best with b = 1.
  problem.add_factor({a}, {0, 5, 9, 0});
  problem.add_factor({a, b}, {10, 12, 8, 8, 10, 2, 10, 12});
  problem.add_factor({b}, {1, 0});
  const ReducedProblem reduced = without_dominated_values(problem);
  EXPECT_EQ(reduced.kept[a], (Values{0, 2}));
  EXPECT_EQ(reduced.kept[b], (Values{0, 1}));
}

/// Once a variable has lost values, so may its neighbours, and theirs.
TEST(Dominance, GoesOnAlongAChain) {
  EliminationProblem problem;
  for (int i = 0; i < 4; ++i) problem.add_variable(2);
  for (Variable i = 0; i + 1 < 4; ++i) problem.add_factor({i, i + 1}, {0, 9.0 - i, 9.0 - i, 0});
  problem.add_factor({0}, {0, 10});
  const ReducedProblem reduced = without_dominated_values(problem);
  for (Variable i = 0; i < 4; ++i) EXPECT_EQ(reduced.kept[i], Values{0});
}

TEST(Dominance, OfAVariableWithoutCostsAndOfForbiddenValues) {
  const double no = EliminationProblem::forbidden_cost;
  EliminationProblem problem;
  const Variable free = problem.add_variable(3), forced = problem.add_variable(3);
  problem.add_factor({forced}, {no, 7, no});
  const ReducedProblem reduced = without_dominated_values(problem);
  EXPECT_EQ(reduced.kept[free], Values{0});
  EXPECT_EQ(reduced.kept[forced], Values{1});
  EXPECT_EQ(reduced.expand({0, 0}), (Values{0, 1}));
}

}  // namespace
}  // namespace taso::testing
