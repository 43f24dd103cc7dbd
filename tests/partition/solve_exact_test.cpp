// The exact solver against enumeration on random small networks, and where tables are bounded.
#include "partition/solve_exact.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "partition/pase_graph_builder.h"
#include "partition/pase_problem.h"
#include "support/random.h"

namespace taso::testing {
namespace {

/// Up to seven layers over matrices of the same batch, with joins of values of any age.
PaseGraph random_network(std::uint64_t seed) {
  Random random(seed, "network");
  const auto extent = [&] { return std::int64_t{1} << random.below(4) << (random.below(3) == 0 ? 1 : 0); };
  PaseGraphBuilder net("random", 1 + static_cast<std::int64_t>(random.below(2)));
  const std::int64_t batch = 2 * extent();
  std::vector<PaseValue> values = {PaseGraphBuilder::outside({batch, extent()})};
  const auto any = [&]() -> PaseValue {
    return values[values.size() - 1 - random.below(std::min<std::size_t>(3, values.size()))];
  };
  for (std::size_t layers = 2 + random.below(6); layers > 0; --layers) {
    const PaseValue value = any(), other = any();
    switch (random.below(7)) {
      case 0:
        values.push_back(net.norm(value, random.below(2)));
        break;
      case 1:
        values.push_back(net.softmax(value, 1));
        break;
      case 2:
        values.push_back(net.concat({value, other}, 1));
        break;
      case 3:
        values.push_back(net.einsum("bi,ij->bj", value, PaseGraphBuilder::outside({value.shape[1], extent()})));
        break;
      case 4:
        values.push_back(value.shape == other.shape ? net.elementwise(value, other) : net.cross_entropy(value));
        break;
      default:
        values.push_back(net.fully_connected(value, extent(), 1));
    }
  }
  return std::move(net).finish();
}

/// The least cost of all choices; none if there are too few to be a test, or too many.
std::optional<double> by_enumeration(const PartitionProblem& problem) {
  double combinations = 1;
  for (PartitionProblem::Decision i = 0; i < problem.decisions(); ++i) combinations *= problem.ways(i);
  if (combinations < 200 || combinations > 200'000) return std::nullopt;
  std::vector<std::uint32_t> choice(problem.decisions(), 0);
  double best = std::numeric_limits<double>::infinity();
  for (;;) {
    best = std::min(best, problem.cost(choice));
    std::size_t at = 0;
    while (at < choice.size() && ++choice[at] == problem.ways(static_cast<PartitionProblem::Decision>(at)))
      choice[at++] = 0;
    if (at == choice.size()) return best;
  }
}

TEST(SolveExact, IsEnumerationOnAThousandNetworks) {
  std::size_t compared = 0, wide = 0;
  for (std::uint64_t seed = 0; compared < 1000; ++seed) {
    const PaseGraph graph = random_network(seed);
    const PaseProblem made = pase_problem(graph, 2 + static_cast<std::int64_t>(seed % 7), {},
                                          seed % 2 == 0 ? PaseParallelEdges::all : PaseParallelEdges::last);
    const std::optional<double> best = by_enumeration(made.problem);
    if (!best) continue;
    ++compared;
    for (const OrderRule rule :
         {OrderRule::min_degree, OrderRule::min_fill, OrderRule::smallest_table, OrderRule::breadth_first})
      for (const double dominance_from : {0.0, std::numeric_limits<double>::infinity()}) {
        const PartitionSolution solution = solve_exact(made.problem, {.order = rule, .dominance_from = dominance_from});
        ASSERT_TRUE(solution.exact);
        ASSERT_DOUBLE_EQ(solution.cost, *best) << "seed " << seed;
        ASSERT_DOUBLE_EQ(solution.lower_bound, *best);
        ASSERT_EQ(solution.gap(), 0);
        wide += solution.order.width > 1 ? 1 : 0;
      }
  }
  EXPECT_GT(wide, 1000U) << "too few networks that are no chains";
}

/// Where no table may be made, there is a choice, a bound, and the gap between them.
TEST(SolveExact, BoundedTablesGiveAGap) {
  const PaseProblem made = pase_problem(pase_transformer(), 8);
  const double best = solve_exact(made.problem).cost;
  std::vector<double> gaps;
  for (const std::size_t maximum : {2U, 20U}) {
    const PartitionSolution solution = solve_exact(made.problem, {.maximum_table = maximum});
    EXPECT_FALSE(solution.exact);
    EXPECT_GE(solution.cost, best);
    EXPECT_LE(solution.lower_bound, best * (1 + 1e-12));
    EXPECT_GE(solution.gap(), 0);
    EXPECT_LT(solution.gap(), 1);
    EXPECT_EQ(made.problem.cost(solution.choice), solution.cost);
    EXPECT_LT(solution.kept_ways, solution.ways) << "dominance comes first where tables are too large";
    gaps.push_back(solution.gap());
  }
  EXPECT_LT(gaps.back(), gaps.front());
  // A bound that is reached proves the choice optimal.
  const PartitionSolution reached = solve_exact(made.problem, {.maximum_table = 1000});
  EXPECT_TRUE(reached.exact);
  EXPECT_LE(reached.largest_table, 1000U);
  EXPECT_LT(static_cast<double>(reached.largest_table), reached.order.largest_table);
  EXPECT_EQ(reached.cost, best);
  // What is known already is a start.
  const PaseGraph graph = pase_transformer();
  const double data_parallel = made.problem.cost(pase_data_parallel(graph, made));
  EXPECT_GT(solve_exact(made.problem, {.maximum_table = 8}).cost, data_parallel) << "no test";
  EXPECT_LE(solve_exact(made.problem, {.maximum_table = 8, .known = {pase_data_parallel(graph, made)}}).cost,
            data_parallel);
  // All tables together.
  const PartitionSolution solution = solve_exact(made.problem, {.maximum_entries = 100});
  EXPECT_FALSE(solution.exact);
  EXPECT_LE(solution.largest_table, 64U);
  EXPECT_GE(solution.cost, best);
  EXPECT_LE(solution.lower_bound, best * (1 + 1e-12));
}

/// Costs of three decisions, forbidden combinations, a decision that nothing depends on.
TEST(SolveExact, FactorsOfAnyKind) {
  const double no = EliminationProblem::forbidden_cost;
  const auto table = [](std::vector<double> costs) { return std::make_shared<const std::vector<double>>(costs); };
  PartitionProblem problem;
  const auto a = problem.add_decision(2), b = problem.add_decision(2), c = problem.add_decision(2);
  problem.add_decision(5);
  problem.add_cost({a, b, c}, table({no, 4, 9, no, 3, 7, no, 8}));
  problem.add_cost({c}, table({2, 0}));
  problem.add_cost({}, table({10}));
  const PartitionSolution solution = solve_exact(problem);
  EXPECT_EQ(solution.choice, (std::vector<std::uint32_t>{0, 0, 1, 0}));
  EXPECT_EQ(solution.cost, 14);
  problem.add_cost({b}, table({no, 0}));
  problem.add_cost({a}, table({no, 0}));
  EXPECT_EQ(solve_exact(problem, {.dominance_from = 0}).cost, 18);
  problem.add_cost({c}, table({0, no}));
  EXPECT_EQ(solve_exact(problem).cost, no);
}

}  // namespace
}  // namespace taso::testing
