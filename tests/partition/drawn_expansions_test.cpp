// Random graphs on meshes of 2 to 8 devices, planned in every way and written out: exactly what the graphs are.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "graph/graph_text.h"
#include "operators/ring.h"
#include "partition/expand.h"
#include "partition/expansion_check.h"
#include "tests/partition/close_tensors.h"
#include "tests/partition/drawn_graphs.h"
#include "tests/partition/drawn_plans.h"
#include "tests/partition/expansion_contract.h"
#include "tests/partition/strategy_tables.h"
#include "tests/partition/ways_to_plan.h"
#include "tests/support/shipped.h"

namespace taso::test {
namespace {

constexpr std::uint64_t shards = 8;

const std::vector<std::vector<std::int64_t>>& meshes() {
  static const std::vector<std::vector<std::int64_t>> all = {{2}, {3}, {4}, {8}, {2, 2}, {3, 2}, {2, 2, 2}};
  return all;
}

/// Whether partial maxima are combined, and whether operators pass them on.
struct Maxima {
  bool combined = false, passed_on = false;
};
Maxima maxima_of(const PartitionPlan& plan) {
  Maxima maxima;
  for (const PlannedNode& node : plan.nodes)
    for (const AxisUse& use : node.configuration.axes) {
      if (use.reducer != "max") continue;
      maxima.combined = true;
      maxima.passed_on = maxima.passed_on || use.kind == AxisUse::Kind::partial;
    }
  return maxima;
}

/// False where the graph has no values there: where it divides by what happens to be 0.
bool expect_same(const Graph& graph, const Graph& expanded, FieldRing ring,
                 const std::vector<RingTensor<Mod61>>& inputs, const std::string& what) {
  const auto evaluated = evaluate(graph, registry(), ring, inputs);
  if (!evaluated) return false;
  const auto& expected = *evaluated;
  const auto actual = value_of(evaluate(expanded, registry(), ring, inputs));
  EXPECT_EQ(expected.size(), actual.size()) << what;
  for (std::size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) {
    EXPECT_EQ(expected[i].shape, actual[i].shape) << what;
    EXPECT_EQ(expected[i].integers, actual[i].integers) << what;
    EXPECT_EQ(expected[i].elements, actual[i].elements) << what << "output " << i;
  }
  return true;
}

void expect_close_doubles(const DrawnGraph& drawn, const Graph& expanded, const std::string& what) {
  DoubleRing ring;
  const auto expected = value_of(evaluate(drawn.graph, registry(), ring, drawn.inputs));
  expect_close(expected, value_of(evaluate(expanded, registry(), ring, drawn.inputs)), what);
}

/// Over GF(2^61-1), in which a maximum is no number: a random function of what it is the maximum of. Where parts of
/// maxima are combined, over the ordered field, and where these go through operators, for which what is larger must
/// stay so when sums are large, over numbers alone. In how many rings they were compared.
std::size_t expect_equal(const DrawnGraph& drawn, const PartitionPlan& plan, const Graph& expanded, std::uint64_t seed,
                         const std::string& what) {
  const Maxima maxima = maxima_of(plan);
  std::size_t rings = 0;
  for (const bool ordered : {false, true}) {
    if (ordered ? maxima.passed_on : maxima.combined) continue;
    const FieldRing ring(seed, ordered);
    rings += expect_same(drawn.graph, expanded, ring, random_elements(drawn, ring, seed), what) ? 1 : 0;
  }
  expect_close_doubles(drawn, expanded, what);
  return rings;
}

class DrawnExpansions : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(DrawnExpansions, AreTheirGraphs) {
  StrategyTable strategies = every_strategy();
  std::size_t compared = 0, exactly = 0, moved = 0;
  for (std::uint64_t number = GetParam(); number < drawn_graphs; number += shards) {
    const DrawnGraph drawn = draw_graph(number);
    for (std::size_t m = 0; m < meshes().size(); ++m) {
      const Mesh mesh = mesh_of_sizes(meshes()[m]);
      const std::vector<std::string>& ways = ways_to_plan();
      for (const std::string& way : {ways[0], ways[1 + (number + m) % (ways.size() - 1)]}) {
        const std::string what = "graph " + std::to_string(number) + " on " + mesh.to_string() + ", planned " + way +
                                 "\n" + to_text(drawn.graph);
        const std::optional<PartitionPlan> plan = plan_in_way(way, drawn.graph, mesh, strategies, number);
        if (!plan) continue;
        Expected<Expansion> made = expand(drawn.graph, *plan, strategies);
        ASSERT_TRUE(made) << made.error().to_string() << "\n" << what;
        const Expansion& expansion = *made;
        expect_moves_as_stated(drawn.graph, *plan, expansion, what);
        exactly += expect_equal(drawn, *plan, expansion.graph, number, what);
        const Graph alone = on_one_device(expansion);
        expect_close_doubles(drawn, alone, what);
        const Status checked = check_expansion(drawn.graph, alone, mesh, uses_of(*plan), strategies);
        EXPECT_TRUE(checked) << checked.error().message;
        ASSERT_FALSE(HasFailure()) << what;
        ++compared;
        moved += plan->transfer_bytes > 0;
      }
    }
  }
  EXPECT_GT(compared, drawn_graphs / shards * meshes().size());
  EXPECT_GT(exactly, compared);
  EXPECT_GT(moved, compared / 10);
}

INSTANTIATE_TEST_SUITE_P(Shard, DrawnExpansions, ::testing::Range<std::uint64_t>(0, shards));

/// "matmul cut t (sum)", "relu cut I", "matmul partial 0 (sum)".
std::set<std::string> uses_of_plan(const Graph& graph, const PartitionPlan& plan) {
  std::set<std::string> uses;
  for (const PlannedNode& node : plan.nodes)
    for (const AxisUse& use : node.configuration.axes) {
      std::string text = graph.node(node.node).op;
      if (use.kind == AxisUse::Kind::cut) text += " cut " + use.variable.substr(0, use.variable.find('@'));
      if (use.kind == AxisUse::Kind::partial) {
        text += " partial";
        for (const std::size_t input : use.inputs) text += " " + std::to_string(input);
      }
      if (!use.reducer.empty()) text += " (" + use.reducer + ")";
      uses.insert(text);
    }
  return uses;
}

// What is drawn says something of every strategy, and of nearly every way to pass on partial results.
TEST(DrawnGraphs, AreCutInEveryWay) {
  if (drawn_graphs < 200) GTEST_SKIP() << "a matter of what is drawn, which sanitizers only make slow";
  std::set<std::string> uncut, not_passed;
  for (const std::string& op : cut_operators()) {
    const OperatorStrategies derived = derive_strategies(registry(), op);
    for (const PartitionStrategy& strategy : derived.strategies)
      uncut.insert(op + " cut " + strategy.variable + (strategy.reducer.empty() ? "" : " (" + strategy.reducer + ")"));
    for (const PartialPassage& passage : derive_passages(registry(), op)) {
      std::string text = op + " partial";
      for (const std::size_t input : passage.inputs) text += " " + std::to_string(input);
      not_passed.insert(text + " (" + passage.reducer + ")");
    }
  }
  const std::size_t passages = not_passed.size();
  StrategyTable strategies = every_strategy();
  const Mesh mesh = mesh_of_sizes({2});
  for (std::uint64_t number = 0; number < 3000 && !(uncut.empty() && not_passed.size() < passages / 5); ++number) {
    const DrawnGraph drawn = draw_graph(number);
    for (std::uint64_t seed = 0; seed < 6; ++seed)
      for (const std::string& use :
           uses_of_plan(drawn.graph, *plan_in_way("drawn", drawn.graph, mesh, strategies, seed))) {
        uncut.erase(use);
        not_passed.erase(use);
      }
  }
  EXPECT_THAT(uncut, ::testing::IsEmpty());
  EXPECT_LT(not_passed.size(), passages / 5) << ::testing::PrintToString(not_passed);
}

}  // namespace
}  // namespace taso::test
