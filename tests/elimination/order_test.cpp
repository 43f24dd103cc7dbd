// Orders of elimination on graphs where one can see what they must be; any order gives the same minimum.
#include "elimination/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "support/random.h"

namespace taso::testing {
namespace {

using Variable = EliminationProblem::Variable;

InteractionGraph graph_of(std::vector<std::uint32_t> sizes, const std::vector<std::pair<Variable, Variable>>& edges) {
  InteractionGraph graph{std::move(sizes), {}};
  graph.neighbours.resize(graph.sizes.size());
  for (const auto& [a, b] : edges) {
    graph.neighbours[a].push_back(b);
    graph.neighbours[b].push_back(a);
  }
  for (std::vector<Variable>& neighbours : graph.neighbours) std::sort(neighbours.begin(), neighbours.end());
  return graph;
}

/// The centre of a star goes when one neighbour is left; breadth first from the centre joins all leaves.
TEST(EliminationOrder, OfAStar) {
  const InteractionGraph star = graph_of({5, 2, 3, 4}, {{0, 1}, {0, 2}, {0, 3}});
  for (const OrderRule rule : {OrderRule::min_degree, OrderRule::min_fill}) {
    const EliminationOrder order = elimination_order(star, rule);
    EXPECT_EQ(order.variables, (std::vector<Variable>{1, 2, 0, 3}));
    EXPECT_EQ(order.width, 1U);
    EXPECT_EQ(order.largest_table, 5);
    EXPECT_EQ(order.largest_combinations, 20);
    EXPECT_EQ(order.combinations, 10 + 15 + 20 + 4);
  }
  // The centre costs 4 once one leaf is left, a leaf always 5.
  EXPECT_EQ(elimination_order(star, OrderRule::smallest_table).variables, (std::vector<Variable>{1, 2, 0, 3}));
  const EliminationOrder breadth_first = elimination_order(star, OrderRule::breadth_first);
  EXPECT_EQ(breadth_first.variables, (std::vector<Variable>{0, 1, 2, 3}));
  EXPECT_EQ(breadth_first.width, 3U);
  EXPECT_EQ(breadth_first.largest_combinations, 5 * 2 * 3 * 4);
}

/// Two triangles that share variable 2, and a chord-free square: fill tells apart what degrees do not.
TEST(EliminationOrder, FewestFillIsNotFewestNeighbours) {
  // 0 has two neighbours that are not joined; 3 has three that are.
  const InteractionGraph graph =
      graph_of({2, 2, 2, 2, 2, 2}, {{0, 1}, {0, 2}, {1, 4}, {2, 5}, {3, 4}, {3, 5}, {4, 5}, {1, 5}, {2, 4}, {1, 3}});
  EXPECT_EQ(elimination_order(graph, OrderRule::min_degree).variables.front(), 0U);
  EXPECT_EQ(elimination_order(graph, OrderRule::min_fill).variables.front(), 3U);
}

TEST(EliminationOrder, OfAProblemHasItsFactors) {
  EliminationProblem problem;
  for (int i = 0; i < 4; ++i) problem.add_variable(2);
  problem.add_factor({0, 2, 3}, std::vector<double>(8, 0));
  problem.add_factor({2, 0}, std::vector<double>(4, 0));
  const InteractionGraph graph = interaction_graph(problem);
  EXPECT_EQ(graph.neighbours, (std::vector<std::vector<Variable>>{{2, 3}, {}, {0, 3}, {0, 2}}));
  EXPECT_EQ(elimination_order(graph, OrderRule::breadth_first).variables, (std::vector<Variable>{0, 2, 3, 1}));
}

/// In any order the minimum is the same, and tables are as large as foreseen.
TEST(EliminationOrder, AnyOrderFindsTheMinimum) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed, "orders");
    EliminationProblem problem;
    for (int i = 0; i < 9; ++i) problem.add_variable(1 + static_cast<std::uint32_t>(random.below(4)));
    for (int i = 0; i < 14; ++i) {
      const auto a = static_cast<Variable>(random.below(9)), b = static_cast<Variable>(random.below(9));
      if (a == b) continue;
      std::vector<double> table(std::size_t{problem.size(a)} * problem.size(b));
      for (double& cost : table) cost = static_cast<double>(random.below(50));
      problem.add_factor({a, b}, table);
    }
    const EliminationResult expected = minimize(problem);
    for (const OrderRule rule :
         {OrderRule::smallest_table, OrderRule::min_degree, OrderRule::min_fill, OrderRule::breadth_first}) {
      const EliminationOrder order = elimination_order(interaction_graph(problem), rule);
      const EliminationResult result = minimize(problem, {.order = order.variables, .parallel = true});
      EXPECT_TRUE(result.exact);
      EXPECT_EQ(result.cost, expected.cost) << "seed " << seed;
      EXPECT_EQ(result.width, order.width);
      EXPECT_EQ(static_cast<double>(result.largest_table), order.largest_table);
      if (rule == OrderRule::smallest_table) {
        EXPECT_EQ(result.assignment, expected.assignment);
      }
    }
  }
}

}  // namespace
}  // namespace taso::testing
