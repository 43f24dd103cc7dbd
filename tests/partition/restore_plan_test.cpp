// Plans come back from their files as they were, with all their figures counted anew.
#include "partition/restore_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/optimizer/random_graph.h"
#include "tests/partition/drawn_plans.h"
#include "tests/partition/stated_plans.h"
#include "tests/partition/strategy_tables.h"
#include "tests/support/graphs.h"

namespace taso::test {
namespace {

void expect_equal(const PartitionPlan& a, const PartitionPlan& b) {
  ASSERT_EQ(a.nodes.size(), b.nodes.size());
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    EXPECT_EQ(a.nodes[i].node, b.nodes[i].node);
    EXPECT_EQ(a.nodes[i].configuration.axes, b.nodes[i].configuration.axes);
    EXPECT_EQ(a.nodes[i].configuration.reads, b.nodes[i].configuration.reads);
    EXPECT_EQ(a.nodes[i].configuration.makes, b.nodes[i].configuration.makes);
    EXPECT_DOUBLE_EQ(a.nodes[i].compute_seconds, b.nodes[i].compute_seconds);
    EXPECT_DOUBLE_EQ(a.nodes[i].memory, b.nodes[i].memory);
  }
  EXPECT_EQ(a.kept, b.kept);
  ASSERT_EQ(a.transfers.size(), b.transfers.size());
  for (std::size_t i = 0; i < a.transfers.size(); ++i) {
    EXPECT_EQ(a.transfers[i].value, b.transfers[i].value);
    EXPECT_EQ(a.transfers[i].reader, b.transfers[i].reader);
    EXPECT_DOUBLE_EQ(a.transfers[i].transfer.bytes, b.transfers[i].transfer.bytes);
    EXPECT_DOUBLE_EQ(a.transfers[i].transfer.seconds, b.transfers[i].transfer.seconds);
  }
  EXPECT_DOUBLE_EQ(a.seconds, b.seconds);
  EXPECT_DOUBLE_EQ(a.compute_seconds, b.compute_seconds);
  EXPECT_DOUBLE_EQ(a.transfer_seconds, b.transfer_seconds);
  EXPECT_DOUBLE_EQ(a.transfer_bytes, b.transfer_bytes);
  EXPECT_DOUBLE_EQ(a.weight_bytes, b.weight_bytes);
  EXPECT_DOUBLE_EQ(a.memory, b.memory);
  EXPECT_EQ(a.memory_node, b.memory_node);
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (std::size_t i = 0; i < a.weights.size(); ++i) {
    EXPECT_EQ(a.weights[i].value, b.weights[i].value);
    EXPECT_EQ(a.weights[i].readers, b.weights[i].readers);
    EXPECT_EQ(a.weights[i].parts, b.weights[i].parts);
    EXPECT_DOUBLE_EQ(a.weights[i].bytes, b.weights[i].bytes);
  }
}

TEST(RestorePlan, DrawnPlansComeBackWithTheirFigures) {
  const std::vector<std::vector<std::int64_t>> meshes = {{2}, {3}, {4}, {2, 2}, {2, 3}, {}};
  StrategyTable strategies = every_strategy();
  std::size_t kept_otherwise = 0, cut = 0, moved = 0;
  for (std::uint64_t seed = 0; seed < 180; ++seed) {
    testing::GraphGenerator generator(registry(), seed);
    const testing::RandomGraph drawn_graph = generator.finish(8);
    const Graph& graph = drawn_graph.graph;
    Mesh mesh = mesh_of_sizes(meshes[seed % meshes.size()]);
    for (MeshAxis& axis : mesh.axes) axis.latency = 1e-6;
    Planner planner(graph, mesh, strategies, {});
    const PartitionPlan plan = value_of(planner.plan(drawn(seed, seed % 2 == 0 ? 1 : 3)));
    moved += plan.transfers.size();
    const PlanDocument document = stated(graph, mesh, plan, strategies);
    const std::string text = to_json(document);
    const PlanDocument read = value_of(parse_plan_document(text, "plan.json"));
    EXPECT_EQ(to_json(read), text);
    const PartitionPlan restored = value_of(restore_plan(read, graph, {}, strategies));
    SCOPED_TRACE(seed);
    expect_equal(plan, restored);
    for (const auto& [value, as] : plan.kept_as) kept_otherwise += as.kind == KeptAs::Kind::made && !as.axes ? 0 : 1;
    for (const StatedNode& node : document.nodes) cut += node.cuts.size();
  }
  EXPECT_GT(kept_otherwise, 10U);
  EXPECT_GT(cut, 100U);
  EXPECT_GT(moved, 30U);
}

}  // namespace
}  // namespace taso::test
