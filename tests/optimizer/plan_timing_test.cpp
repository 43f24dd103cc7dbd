#include "session/plan_timing.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "optimizer/runtime_target.h"
#include "partition/expand.h"
#include "partition/plan_baselines.h"
#include "runtime/rank_team.h"
#include "session/plan_text.h"
#include "session/step_time.h"
#include "tests/optimizer/random_graph.h"
#include "tests/partition/drawn_plans.h"
#include "tests/partition/strategy_tables.h"
#include "tests/support/graphs.h"

namespace taso::test {
namespace {

std::vector<RankGraph> ranks_of(const Graph& graph, const PartitionPlan& plan, StrategyTable& strategies) {
  const Expansion expansion = value_of(expand(graph, plan, strategies));
  std::vector<RankGraph> ranks;
  for (int rank = 0; rank < plan.mesh.devices(); ++rank)
    ranks.push_back(value_of(rank_graph(expansion.graph, rank, [](NodeId /*reader*/) { return 0; })));
  return ranks;
}

const std::string product =
    "input x f32[24, 16]\nweight v f32[16, 32] = 0.5\nweight w f32[32, 8] = 0.25\noutput matmul(relu(matmul(x, v)), "
    "w)\n";

TEST(RankTeam, ComputesWhatOneDeviceDoesOverAndOver) {
  const Graph graph = graph_of(product);
  const KernelLibrary library(registry());
  StrategyTable strategies = every_strategy();
  Executor alone = value_of(Executor::create(graph, library, {}));
  for (const std::int64_t devices : {1, 2, 3}) {
    const Mesh mesh = mesh_of_sizes({devices});
    Planner planner(graph, mesh, strategies, {});
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const PartitionPlan plan = value_of(planner.plan(drawn(seed, 2)));
      const auto team = value_of(RankTeam::create(ranks_of(graph, plan, strategies), library, {}));
      for (const std::uint64_t inputs_seed : {1, 2}) {
        const std::vector<HostTensor> inputs = alone.random_inputs(inputs_seed);
        const std::vector<HostTensor> expected = value_of(alone.run(inputs));
        ASSERT_TRUE(team->set_inputs(inputs));
        EXPECT_GT(value_of(team->run()), 0);
        EXPECT_GT(value_of(team->run(3)), 0);
        ASSERT_EQ(team->outputs().size(), 1U);
        EXPECT_LT(relative_l2(team->outputs()[0], expected[0]), 1e-6) << devices << " devices, seed " << seed;
      }
    }
  }
}

TEST(RankTeam, InputsAreCounted) {
  const Graph graph = graph_of(product);
  const KernelLibrary library(registry());
  StrategyTable strategies = every_strategy();
  const Mesh mesh = mesh_of_sizes({2});
  const PartitionPlan plan = value_of(Planner(graph, mesh, strategies, {}).plan());
  const auto team = value_of(RankTeam::create(ranks_of(graph, plan, strategies), library, {}));
  EXPECT_NE(team->set_inputs({}).error().message.find("the model takes 1 inputs, 0 were given"), std::string::npos);
}

/// Plans of one product for two devices, timed.
class PlansTimed : public ::testing::Test {
 protected:
  PlansTimed() : graph_(graph_of(product)), library_(registry()), strategies_(every_strategy()) {
    normalize(graph_, registry());
    Planner planner(graph_, mesh_, strategies_, {});
    plans_.push_back({"", graph_, value_of(planner.plan())});
    plans_.push_back({"the same", graph_, plans_[0].plan});
    plans_.push_back({"all repeated", graph_, value_of(planner.plan(only_repeat()))});
    plans_.push_back({"one more", graph_, value_of(planner.plan(drawn(3, 3)))});
  }
  Expected<PlanTimes> times(bool measure) {
    RuntimeTarget target(library_, {});
    MeasuredCosts measured(target, database_, measure);
    const ProvedStrategies proved =
        value_of(ProvedStrategies::load({TASO_SOURCE_DIR "/specs/strategies/default.rules"}, registry()));
    const RuleIndex none({}, registry());
    return time_plans(plans_, graph_,
                      {.library = library_,
                       .proved = proved,
                       .fusing = none,
                       .executor = {},
                       .most_plans = 2,
                       .most_seconds = 0.1,
                       .cancelled = cancelled_},
                      measured);
  }
  Graph graph_;
  Mesh mesh_ = mesh_of_sizes({2});
  KernelLibrary library_;
  StrategyTable strategies_;
  std::vector<CompetingPlan> plans_;
  CostDatabase database_ = CostDatabase::in_memory("here");
  std::function<bool()> cancelled_;
};

TEST_F(PlansTimed, EqualOnesOnceBesideOneDevice) {
  const PlanTimes found = value_of(times(true));
  ASSERT_EQ(found.plans.size(), 2U);
  EXPECT_EQ(found.plans[0].name, "");
  EXPECT_EQ(found.plans[1].name, "all repeated");
  EXPECT_EQ(found.plans[1].number, 2U);
  EXPECT_DOUBLE_EQ(found.plans[0].predicted, plans_[0].plan.seconds);
  for (const PlanTimes::Plan& plan : found.plans) EXPECT_GT(plan.seconds, 0);
  ASSERT_EQ(found.one_device.size(), 2U);
  EXPECT_EQ(found.one_device[0].threads, 1);
  EXPECT_EQ(found.one_device[1].threads, 2);
  EXPECT_GT(found.one_device[0].seconds, 0);
}

TEST_F(PlansTimed, RecordedTimesAreTheResult) {
  EXPECT_EQ(times(false).error().code, ErrorCode::cost_missing);
  const PlanTimes first = value_of(times(true)), again = value_of(times(false));
  ASSERT_EQ(again.plans.size(), first.plans.size());
  for (std::size_t i = 0; i < first.plans.size(); ++i) EXPECT_EQ(again.plans[i].seconds, first.plans[i].seconds);
  EXPECT_EQ(again.noise, first.noise);
  EXPECT_GT(again.date, 20260000);
  // Other plans have other times.
  std::swap(plans_[0], plans_[3]);
  EXPECT_EQ(times(false).error().code, ErrorCode::cost_missing);
}

TEST_F(PlansTimed, AreInterrupted) {
  cancelled_ = [] { return true; };
  EXPECT_EQ(times(true).error().code, ErrorCode::interrupted);
}

TEST(PlanTimes, TheFastestIsTakenIfItIsNotNoise) {
  PlanTimes times;
  times.noise = 0.1;
  times.plans = {{"a", 0, 1, 10}, {"b", 1, 2, 9.5}, {"c", 2, 3, 8}, {"d", 3, 4, 8.5}};
  EXPECT_EQ(fastest_plan(times), 2U);
  times.plans[2].seconds = times.plans[3].seconds = 9.1;
  EXPECT_EQ(fastest_plan(times), 0U);
}

/// What two ranks take for a plan of a graph, over a link whose latency is a second, which is all that counts.
double step_of(const Graph& graph, const std::string& uses, PieceTimes& times, double latency = 1) {
  Mesh mesh = mesh_of_sizes({2});
  mesh.axes[0].latency = latency;
  StrategyTable strategies = every_strategy();
  Planner planner(graph, mesh, strategies, {});
  const PartitionPlan plan = value_of(planner.plan([&](NodeId id, const NodeConfiguration& configuration) {
    return configuration.to_string() == (graph.node(id).is_op("relu") ? "repeat" : uses);
  }));
  const RuleIndex none({}, registry());
  return value_of(step_seconds(graph, plan, strategies, none, times));
}

TEST(StepSeconds, AreThoseOfKernelsAndOfMessagesInARow) {
  Graph graph = graph_of("input x f32[24, 16]\ninput y f32[16, 8]\noutput relu(matmul(x, y))\n");
  normalize(graph, registry());
  const KernelLibrary library(registry());
  const auto times = value_of(
      PieceTimes::open(library, {}, {::testing::TempDir() + "step_seconds.sqlite", {}, false}, [](auto...) {}));
  double kernels = 0;
  for (const Launch& launch : value_of(times->plan(graph)).launches)
    kernels += value_of(times->seconds(*launch.kernel));
  // Everything on both: no messages.
  EXPECT_DOUBLE_EQ(step_of(graph, "repeat", *times), kernels);
  // Parts of the product go to the other rank, at the same time: one message in a row.
  const double columns = step_of(graph, "j@-1", *times);
  EXPECT_GT(columns, 1);
  EXPECT_LT(columns, 1.5);
  // Parts of the sum go there, and then the sums.
  const double sums = step_of(graph, "t (sum)", *times);
  EXPECT_GT(sums, 2);
  EXPECT_LT(sums, 2.5);
  EXPECT_NEAR(step_of(graph, "t (sum)", *times, 2) - sums, 2, 1e-9);
}

std::string said_of(double plan, double one_device) {
  DevicePlan device_plan;
  PlanSearchReport& report = device_plan.searched.emplace();
  report.search = "sequential";
  PlanTimes& times = report.timed.emplace();
  times.plans = {{"least cost", 0, 1e-3, plan}};
  times.one_device = {{1, one_device}, {2, 5e-3}};
  times.noise = 0.05;
  return search_text(device_plan);
}

TEST(PlanTimes, TheReportSaysWhetherOneDeviceIsFaster) {
  EXPECT_NE(said_of(2e-3, 1e-3).find("one device with 1 thread is faster than this plan: 1.000 ms, the plan 2.000 ms"),
            std::string::npos);
  EXPECT_NE(said_of(2e-3, 1.99e-3).find("one device with 1 thread takes as long as this plan"), std::string::npos);
  EXPECT_NE(said_of(2e-3, 9e-3).find("this plan is 2.5 times as fast as one device with 2 threads"), std::string::npos);
  EXPECT_NE(said_of(2e-3, 9e-3).find("differences below 5.0 % are noise"), std::string::npos);
}

}  // namespace
}  // namespace taso::test
