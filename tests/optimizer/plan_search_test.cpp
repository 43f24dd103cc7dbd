#include "session/plan_search.h"

#include <gtest/gtest.h>

#include "partition/planner.h"
#include "tests/optimizer/random_graph.h"
#include "tests/partition/strategy_tables.h"
#include "tests/support/graphs.h"

namespace taso {
namespace {

using test::every_strategy;
using test::graph_of;
using test::registry;
using test::value_of;

Mesh four_devices() {
  Mesh mesh;
  MeshAxis& axis = mesh.axes.emplace_back();
  axis.size = 4;
  axis.link = "wire";
  axis.bandwidth = 1e6;
  axis.latency = 1e-6;
  mesh.device.flops = 1e6;
  mesh.device.memory_bandwidth = 1e9;
  return mesh;
}

/// The search of one graph, with its plan's cost as both prices.
struct Searched {
  explicit Searched(const Graph& graph, const std::string& rules_file) {
    const Mesh mesh = four_devices();
    StrategyTable strategies = every_strategy();
    PreparedNodes shared;
    PlanPrices prices;
    prices.coarse = prices.exact = [&](const Graph& one) -> Expected<double> {
      TASO_ASSIGN(const PartitionPlan plan, Planner(one, mesh, strategies, {}, &shared).plan());
      return plan.seconds;
    };
    const RuleIndex rules(value_of(load_rules(TASO_SOURCE_DIR + rules_file, registry())), registry());
    PlanSearchOptions options;
    options.most_graphs = 30;
    Graph start = graph;
    normalize(start, registry());
    found = value_of(search_plans({{"start", start, {}, 0}}, rules, prices, options));
    // Of what was found without what other graphs had prepared.
    cost = value_of(Planner(found.better ? found.better->graph : start, mesh, strategies, {}).plan()).seconds;
    own = value_of(Planner(start, mesh, strategies, {}).plan()).seconds;
  }
  PlanSearchResult found;
  double cost = 0, own = 0;
};

TEST(PlanSearch, TakesAProductApartWhereItsPartsAreCutBetter) {
  const Searched searched(graph_of("input x f32[8, 64]\nweight w f32[64, 192]\nweight b f32[192]\n"
                                   "s = split(matmul_bias_act(x, w, b); axis=-1, sizes=[64, 64, 64])\n"
                                   "output matmul(relu(s.0), transpose(s.1; perm=[1, 0])), s.2\n"),
                          "/specs/plan_rules/cutting.rules");
  ASSERT_TRUE(searched.found.better);
  EXPECT_EQ(searched.found.better->applications.at(0).rule, "divide_matmul_bias_act_3");
  EXPECT_LT(searched.cost, searched.own);
  EXPECT_DOUBLE_EQ(searched.cost, searched.found.best_cost);
  EXPECT_DOUBLE_EQ(searched.own, searched.found.first_cost);
}

TEST(PlanSearch, NeverCostsMoreThanItsStart) {
  std::size_t better = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    testing::GraphGenerator generator(registry(), seed);
    const Searched searched(generator.finish(8).graph, "/specs/rules/default.rules");
    EXPECT_LE(searched.cost, searched.own * (1 + 1e-9)) << seed;
    EXPECT_NEAR(searched.cost, searched.found.best_cost, 1e-9 * searched.own) << seed;
    if (searched.found.better) ++better;
    EXPECT_EQ(searched.found.better.has_value(), searched.found.best_cost < searched.found.first_cost) << seed;
  }
  EXPECT_GT(better, 0U);
}

}  // namespace
}  // namespace taso
