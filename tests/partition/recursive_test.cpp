#include "partition/recursive.h"

#include <gtest/gtest.h>

#include <cmath>

#include "graph/rewrite.h"
#include "tests/partition/strategy_tables.h"
#include "tests/support/graphs.h"

namespace taso {
namespace {

using test::every_strategy;
using test::graph_of;
using test::registry;
using test::value_of;

Mesh mesh_of_axes(std::initializer_list<std::int64_t> sizes, double bandwidth) {
  Mesh mesh;
  mesh.device = {std::int64_t{1} << 30, 1e9, 1e12};
  for (const std::int64_t size : sizes) mesh.axes.push_back({size, "link" + std::to_string(size), bandwidth, 1e-6});
  return mesh;
}

Graph normalized(const std::string& text) {
  Graph graph = graph_of(text);
  normalize(graph, registry());
  return graph;
}

using Steps = std::vector<std::int64_t>;

TEST(RecursionSteps, AreThePrimeFactorsLargestFirst) {
  EXPECT_EQ(recursion_steps(1), Steps{});
  EXPECT_EQ(recursion_steps(8), (Steps{2, 2, 2}));
  EXPECT_EQ(recursion_steps(12), (Steps{3, 2, 2}));
  EXPECT_EQ(recursion_steps(97), Steps{97});
  EXPECT_EQ(recursion_steps(2 * 97 * 3), (Steps{97, 3, 2}));
}

TEST(RecursionSteps, KeepTheLinksOfAxes) {
  const Mesh fine = with_prime_axes(mesh_of_axes({1, 6, 4}, 1e9));
  EXPECT_EQ(fine.to_string(), "3x2x2x2");
  EXPECT_EQ(fine.devices(), 24);
  EXPECT_EQ(fine.axes[0].link, "link6");
  EXPECT_EQ(fine.axes[1].link, "link6");
  EXPECT_EQ(fine.axes[3].link, "link4");
}

const char* const chains[] = {
    "input x f32[4, 6]\nweight w f32[6, 8]\nweight v f32[8, 2]\noutput matmul(relu(matmul(x, w)), v)\n",
    "input x f32[64, 512]\nweight w f32[512, 256]\ny = matmul(x, w)\noutput add(y, tanh(y))\n",
    "input x f32[2, 4, 16, 16]\nweight k f32[4, 4, 3, 3]\ny = conv2d(x, k; pads=[1, 1, 1, 1])\noutput add(y, x)\n",
    "input x f32[6, 6]\ny = opaque custom(x) f32[6, 6]\noutput softmax(transpose(y; perm=[1, 0]); axis=-1)\n",
};

/// What a plan costs by its own configurations: the exact plan among them alone.
PartitionPlan again(const Graph& graph, const Mesh& mesh, StrategyTable& strategies, const PartitionPlan& plan) {
  Planner planner(graph, mesh, strategies, {});
  return value_of(planner.plan([&](NodeId id, const NodeConfiguration& configuration) {
    for (const PlannedNode& node : plan.nodes)
      if (node.node == id) return configuration.axes == node.configuration.axes;
    return false;
  }));
}

TEST(RecursivePlan, IsAPlanOfTheMeshAndNoBetterThanTheExactOne) {
  for (const char* text : chains)
    for (const double bandwidth : {1e6, 1e8, 1e10}) {
      const Graph graph = normalized(text);
      const Mesh mesh = mesh_of_axes({2, 2}, bandwidth);
      StrategyTable strategies = every_strategy();
      Planner planner(graph, mesh, strategies, {});
      const PartitionPlan exact = value_of(planner.plan());
      const PartitionPlan recursive = value_of(plan_recursively(graph, mesh, strategies));
      EXPECT_EQ(recursive.mesh.to_string(), "2x2");
      EXPECT_GE(recursive.seconds, exact.seconds * (1 - 1e-12)) << text << bandwidth;
      EXPECT_FALSE(recursive.exact);
      EXPECT_EQ(recursive.lower_bound, 0);
      EXPECT_LT(recursive.ways, exact.ways);
      ASSERT_EQ(recursive.nodes.size(), exact.nodes.size());
      // Its operators do what it says, and values are kept in no worse places than any that are possible.
      const PartitionPlan same = again(graph, mesh, strategies, recursive);
      EXPECT_LE(same.seconds, recursive.seconds * (1 + 1e-12));
    }
}

TEST(RecursivePlan, IsTheExactOneOnOneAxisAndOnOneDevice) {
  const Graph graph = normalized(chains[1]);
  StrategyTable strategies = every_strategy();
  for (const Mesh& mesh : {mesh_of_axes({}, 1e9), mesh_of_axes({3}, 1e9)}) {
    Planner planner(graph, mesh, strategies, {});
    const PartitionPlan exact = value_of(planner.plan());
    const PartitionPlan recursive = value_of(plan_recursively(graph, mesh, strategies));
    EXPECT_EQ(recursive.seconds, exact.seconds);
    EXPECT_TRUE(recursive.exact);
    EXPECT_EQ(recursive.lower_bound, exact.lower_bound);
    EXPECT_EQ(recursive.ways, exact.ways);
  }
}

// What the first axis is used for is that of the plan on the first axis alone.
TEST(RecursivePlan, KeepsWhatEarlierStepsDecided) {
  for (const char* text : chains) {
    const Graph graph = normalized(text);
    const Mesh first = mesh_of_axes({3}, 1e8), both = mesh_of_axes({3, 2}, 1e8);
    StrategyTable strategies = every_strategy();
    const PartitionPlan before = value_of(plan_recursively(graph, first, strategies));
    const PartitionPlan after = value_of(plan_recursively(graph, both, strategies));
    for (std::size_t i = 0; i < before.nodes.size(); ++i)
      EXPECT_EQ(after.nodes[i].configuration.axes[0], before.nodes[i].configuration.axes[0]) << text;
  }
}

}  // namespace
}  // namespace taso
