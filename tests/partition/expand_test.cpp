// Plans written out as graphs: they compute what the graph computes.
#include "partition/expand.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "graph/rewrite.h"
#include "operators/ring.h"
#include "partition/plan_baselines.h"
#include "tests/optimizer/random_graph.h"
#include "tests/partition/close_tensors.h"
#include "tests/partition/drawn_plans.h"
#include "tests/partition/expansion_contract.h"
#include "tests/partition/strategy_tables.h"
#include "tests/support/graphs.h"

namespace taso::test {
namespace {

TEST(Expand, MovesWhatThePlanStates) {
  const std::vector<std::vector<std::int64_t>> meshes = {{2}, {3}, {4}, {8}, {2, 2}, {2, 2, 2}, {4, 2}, {2, 3}};
  StrategyTable strategies = every_strategy();
  std::size_t moves = 0;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    testing::GraphGenerator generator(registry(), seed);
    const testing::RandomGraph drawn_graph = generator.finish(8);
    const Graph& graph = drawn_graph.graph;
    const Mesh mesh = mesh_of_sizes(meshes[seed % meshes.size()]);
    Planner planner(graph, mesh, strategies, {});
    for (const std::uint64_t of : {1, 3}) {
      const PartitionPlan plan = value_of(planner.plan(drawn(seed, of)));
      const Expansion expansion = value_of(expand(graph, plan, strategies));
      expect_moves_as_stated(graph, plan, expansion, "seed " + std::to_string(seed) + " on " + mesh.to_string());
      moves += expansion.moves.size();
    }
  }
  EXPECT_GT(moves, 1000U);
}

// A scalar that an operator on the first device makes goes to the others, and a sum of no axes is added by one device.
TEST(Expand, Scalars) {
  const Graph graph = graph_of(R"(
input x f32[6]
s = reshape(reduce_sum(x; axes=[-1]); shape=[])
z = opaque custom(s) f32[]
output mul(z, s)
)");
  StrategyTable strategies = every_strategy();
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{{2}, {3}, {2, 2}}) {
    const Mesh mesh = mesh_of_sizes(sizes);
    Planner planner(graph, mesh, strategies, {});
    const PartitionPlan plan = value_of(planner.plan([&](NodeId id, const NodeConfiguration& configuration) {
      return graph.node(id).is_op("mul") || configuration.axes[0].kind != AxisUse::Kind::repeat;
    }));
    const Expansion expansion = value_of(expand(graph, plan, strategies));
    expect_moves_as_stated(graph, plan, expansion, mesh.to_string());
    ASSERT_FALSE(expansion.transfers.empty());
    EXPECT_EQ(expansion.transfers.back().purpose, ExpandedTransfer::Purpose::share);
  }
}

TEST(Expand, APlanThatStatesOtherBytesIsAnError) {
  const Graph graph = graph_of("input x f32[4, 6]\noutput tanh(relu(x))\n");
  const Mesh mesh = mesh_of_sizes({2});
  StrategyTable strategies = every_strategy();
  Planner planner(graph, mesh, strategies, {});
  PartitionPlan plan = value_of(planner.plan([&](NodeId id, const NodeConfiguration& configuration) {
    return configuration.to_string() == (graph.node(id).is_op("relu") ? "I@-2" : "I@-1");
  }));
  ASSERT_EQ(plan.transfers.size(), 1U);
  plan.transfers[0].transfer.bytes = 4;
  EXPECT_EQ(expand(graph, plan, strategies).error().message, "48 bytes of relu move, of which the plan says 4");
  plan.transfers.clear();
  EXPECT_EQ(expand(graph, plan, strategies).error().message, "48 bytes of relu move, of which the plan says nothing");
}

TEST(Expand, EqualPiecesStayApart) {
  // Every device repeats y, and reads its own.
  const Graph graph = graph_of("input x f32[4, 4]\nweight w f32[4, 9]\ny = relu(x)\noutput matmul(y, w)\n");
  const Mesh mesh = mesh_of_sizes({3});
  StrategyTable strategies = every_strategy();
  Planner planner(graph, mesh, strategies, {});
  const PartitionPlan plan = value_of(planner.plan([&](NodeId id, const NodeConfiguration& configuration) {
    return configuration.to_string() == (graph.node(id).is_op("relu") ? "repeat" : "j@-1");
  }));
  Graph expanded = value_of(expand(graph, plan, strategies)).graph;
  for (int normalized = 0; normalized < 2; ++normalized) {
    std::vector<std::int32_t> devices;
    for (const NodeId id : expanded.topological_order())
      if (expanded.node(id).is_op("relu")) devices.push_back(expanded.node(id).device);
    std::sort(devices.begin(), devices.end());
    EXPECT_EQ(devices, (std::vector<std::int32_t>{0, 1, 2}));
    normalize(expanded, registry());
  }
}

// Cuts of an axis of neighbours, of an index, and of operators of more than two inputs or outputs along their own axis.
TEST(Expand, PiecesThatAreMoreOrLessThanTheirParts) {
  const std::pair<const char*, const char*> cases[] = {
      {"input x f32[2, 9, 3]\noutput lrn(x; size=4)\n", "i@-2"},
      {"input x f32[9, 6]\ninput i i64[5, 2]\noutput gather(x, i; axis=-2)\n", "Q@-3"},
      {"input x f32[2, 6]\ninput y f32[3, 6]\ninput z f32[4, 6]\noutput concat(x, y, z; axis=-2)\n", "j@-2"},
      {"input x f32[2, 9]\ns = split(x; axis=-1, sizes=[3, 1, 5])\noutput s.0\noutput s.1\noutput s.2\n", "j@-1"}};
  StrategyTable strategies = every_strategy();
  const Mesh mesh = mesh_of_sizes({3});
  for (const auto& [text, cut] : cases) {
    const Graph graph = graph_of(text);
    Doubles inputs;
    for (const NodeId id : graph.inputs()) {
      const TensorType& type = graph.node(id).outputs[0];
      RingTensor<double>& tensor = inputs.emplace_back(RingTensor<double>{type.shape, {}, {}});
      for (std::int64_t i = 0; i < type.elements(); ++i) {
        if (type.element == ElementType::i64)
          tensor.integers.push_back(i % 9 - 4);
        else
          tensor.elements.push_back(static_cast<double>(i * i % 23) / 7);
      }
    }
    DoubleRing ring;
    const Doubles expected = value_of(evaluate(graph, registry(), ring, inputs));
    Planner planner(graph, mesh, strategies, {});
    const PartitionPlan plan = value_of(
        planner.plan([&](NodeId, const NodeConfiguration& configuration) { return configuration.to_string() == cut; }));
    ASSERT_EQ(plan.nodes.size(), 1U);
    EXPECT_EQ(plan.nodes[0].configuration.to_string(), cut);
    const Graph expanded = value_of(expand(graph, plan, strategies)).graph;
    expect_close(expected, value_of(evaluate(expanded, registry(), ring, inputs)), text);
    for (const NodeId id : expanded.topological_order()) {
      if (!expanded.node(id).is_op("concat")) continue;
      for (const Value& operand : expanded.node(id).inputs) EXPECT_GT(expanded.type(operand).elements(), 0) << text;
    }
  }
}

TEST(Expand, ConcatenationsWithoutElementsKeepTheirExtent) {
  const Graph graph = graph_of(
      "input x f32[1, 0]\ninput y f32[2, 0]\noutput slice(concat(x, y; axis=-2); starts=[2, 0], sizes=[1, 0], "
      "steps=[1, 1])\n");
  StrategyTable strategies = every_strategy();
  const Mesh mesh = mesh_of_sizes({2});
  Planner planner(graph, mesh, strategies, {});
  const Graph expanded = value_of(expand(graph, value_of(planner.plan(only_repeat())), strategies)).graph;
  EXPECT_EQ(expanded.type(expanded.outputs()[0]).shape, (Shape{1, 0}));
}

TEST(Expand, OutputsOfCarriedOperatorsAreTheirs) {
  const Graph graph = graph_of("input x f32[0, 3]\nz = opaque custom(x) f32[0, 3]\noutput z\n");
  StrategyTable strategies = every_strategy();
  const Mesh mesh = mesh_of_sizes({2});
  Planner planner(graph, mesh, strategies, {});
  const Graph expanded = value_of(expand(graph, value_of(planner.plan()), strategies)).graph;
  EXPECT_EQ(expanded.node(expanded.outputs()[0].node).kind, NodeKind::opaque);
}

TEST(Expand, WhatIsNotUnderstoodStandsOnce) {
  const Graph graph = graph_of(R"(
input x f32[4, 6]
y = relu(x)
z = opaque custom(y) f32[4, 6]
output add(z, y)
)");
  const Mesh mesh = mesh_of_sizes({2});
  StrategyTable strategies = every_strategy();
  Planner planner(graph, mesh, strategies, {});
  const PartitionPlan plan = value_of(planner.plan());
  const Graph expanded = value_of(expand(graph, plan, strategies)).graph;
  std::size_t opaque = 0, added = 0;
  for (const NodeId id : expanded.topological_order()) {
    opaque += expanded.node(id).kind == NodeKind::opaque ? 1 : 0;
    added += expanded.node(id).is_op("add") ? 1 : 0;
  }
  EXPECT_EQ(opaque, 1U);
  EXPECT_EQ(added, 2U);
  ASSERT_EQ(expanded.outputs().size(), 1U);
  EXPECT_EQ(expanded.type(expanded.outputs()[0]), graph.type(graph.outputs()[0]));
}

TEST(Expand, APlanOfAnotherGraphIsAnError) {
  const Graph graph = graph_of("input x f32[4, 6]\noutput relu(x)\n");
  const Mesh mesh = mesh_of_sizes({2});
  StrategyTable strategies = every_strategy();
  Planner planner(graph, mesh, strategies, {});
  PartitionPlan plan = value_of(planner.plan());
  plan.nodes[0].configuration.axes[0] = {AxisUse::Kind::cut, "I@-3", {}, ""};
  const Expected<Expansion> expanded = expand(graph, plan, strategies);
  ASSERT_FALSE(expanded);
  EXPECT_EQ(expanded.error().message, "relu cannot be cut so: I@-3");
  plan.nodes.clear();
  EXPECT_EQ(expand(graph, plan, strategies).error().message, "the plan says nothing of relu");
}

}  // namespace
}  // namespace taso::test
