// Plans written out with collectives: what all ranks compute together is what the graph computes.
#include "partition/collective_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "operators/ring.h"
#include "partition/expand.h"
#include "tests/partition/close_tensors.h"
#include "tests/partition/drawn_graphs.h"
#include "tests/partition/drawn_plans.h"
#include "tests/partition/strategy_tables.h"
#include "tests/partition/vocabularies.h"
#include "tests/support/graphs.h"

namespace taso::test {
namespace {

/// No device reads from another one, and what every rank reads of a collective is there on all ranks of the group.
void expect_programs_of_ranks(const CollectiveExpansion& expansion, std::size_t devices, const std::string& what) {
  const Graph& whole = expansion.graph;
  for (NodeId id = 0; id < whole.id_bound(); ++id)
    for (const Value& input : whole.node(id).inputs) {
      const std::int32_t from = whole.node(input.node).device;
      EXPECT_TRUE(from < 0 || from == whole.node(id).device) << what;
    }
  for (std::size_t rank = 0; rank < devices; ++rank) {
    const Graph graph = graph_of_rank(whole, rank, devices);
    EXPECT_TRUE(graph.validate()) << what;
    EXPECT_EQ(graph.outputs().size() * devices, whole.outputs().size());
    EXPECT_EQ(graph.inputs().size(), whole.inputs().size());
    std::int64_t last = -1;
    for (NodeId id = 0; id < graph.id_bound(); ++id) {
      if (!graph.contains(id)) continue;
      EXPECT_LT(graph.node(id).device, 0);
      if (!is_collective(graph.node(id))) continue;
      EXPECT_GT(graph.node(id).attributes.integer("number"), last) << "collectives run in the order of their numbers";
      last = graph.node(id).attributes.integer("number");
    }
  }
}

TEST(CollectiveGraphs, RandomGraphsInRandomPlans) {
  const std::vector<std::vector<std::int64_t>> meshes = {{2}, {3}, {4}, {2, 2}, {8}, {2, 3}, {2, 2, 2}, {4, 2}};
  StrategyTable strategies = every_strategy();
  std::size_t compared = 0, refused = 0;
  std::set<Collective::Kind> kinds;
  for (std::uint64_t seed = 0; seed < drawn_graphs; ++seed) {
    const DrawnGraph drawn_graph = draw_small_graph(seed);
    const Graph& graph = drawn_graph.graph;
    const Doubles& inputs = drawn_graph.inputs;
    DoubleRing ring;
    const Doubles expected = value_of(evaluate(graph, registry(), ring, inputs));
    const Mesh mesh = mesh_of_sizes(meshes[seed % meshes.size()]);
    const auto devices = static_cast<std::size_t>(mesh.devices());
    Planner planner(graph, mesh, strategies, {});
    for (const std::uint64_t of : {1, 3}) {
      const PartitionPlan plan = value_of(planner.plan(drawn(seed, of)));
      for (const auto& [name, vocabulary] : vocabularies()) {
        const std::string what =
            name + ", seed " + std::to_string(seed) + " on " + mesh.to_string() + "\n" + to_text(graph);
        const auto expansion = expand_with_collectives(graph, plan, strategies, vocabulary);
        if (!expansion) {
          EXPECT_THAT(expansion.error().message, ::testing::HasSubstr("is of use to some of the devices only"));
          ++refused;
          continue;
        }
        expect_programs_of_ranks(*expansion, devices, what);
        for (const CollectiveMove& move : expansion->moves)
          for (const Collective& step : move.by.steps) kinds.insert(step.kind);
        for (const std::size_t rank : {std::size_t{0}, devices - 1}) {
          const Graph together = value_of(without_collectives(expansion->graph, rank, devices, registry()));
          expect_close(expected, value_of(evaluate(together, registry(), ring, inputs)), what);
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 7 * drawn_graphs);
  EXPECT_LE(refused, compared / 50);
  // Few are drawn for sanitizers.
  if (drawn_graphs >= 200) {
    EXPECT_EQ(kinds.size(), 5U) << "every kind of collective was met";
  }
}

}  // namespace
}  // namespace taso::test
