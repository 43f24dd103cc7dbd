#include "optimizer/cost_model.h"

#include "tests/optimizer/fixtures.h"

namespace taso::testing {
namespace {

TEST(CostFormula, ReadsSums) {
  const std::vector<std::pair<std::string, std::string>> cases{{"time", "time"},
                                                               {"flops", "flops"},
                                                               {"bytes", "bytes"},
                                                               {"launches", "launches"},
                                                               {"memory", "memory"},
                                                               {"time+0.1*bytes", "time+0.1*bytes"},
                                                               {" time + 2*launches ", "time+2*launches"},
                                                               {"1*time", "time"},
                                                               {"1e+3*flops+1e-3*bytes", "1000*flops+0.001*bytes"}};
  for (const auto& [text, canonical] : cases) EXPECT_EQ(value_of(parse_cost_formula(text)).to_string(), canonical);
  EXPECT_TRUE(value_of(parse_cost_formula("flops+time")).uses_time());
  EXPECT_FALSE(value_of(parse_cost_formula("flops+0*time")).uses_time());
}

TEST(CostFormula, SaysWhatIsWrong) {
  const std::string expected = "; expected time, flops, bytes, launches, memory or a sum such as time+0.1*bytes";
  const std::vector<std::pair<std::string, std::string>> cases{{"", "a term is empty"},
                                                               {"time+", "a term is empty"},
                                                               {"speed", "'speed' is not a cost"},
                                                               {"x*time", "'x' is not a weight of at least 0"},
                                                               {"-1*time", "'-1' is not a weight of at least 0"},
                                                               {"inf*time", "'inf' is not a weight of at least 0"},
                                                               {"2*", "a term is empty"}};
  for (const auto& [text, message] : cases) {
    const auto formula = parse_cost_formula(text);
    ASSERT_FALSE(formula.ok()) << text;
    EXPECT_EQ(formula.error().message, "--cost " + text + ": " + message + expected);
    EXPECT_EQ(formula.error().code, ErrorCode::usage);
  }
}

class CostModelTest : public ::testing::Test {
 protected:
  double cost(const std::string& formula, const Graph& of, double limit = MeasuredCosts::no_limit) {
    const auto model = make_cost_model(value_of(parse_cost_formula(formula)), measured);
    KernelPlan plan = value_of(target.plan(of));
    return value_of(model->cost(of, plan, limit));
  }
  FakeTarget target;
  CostDatabase database = CostDatabase::in_memory("fake device");
  MeasuredCosts measured{target, database, true};
  const Graph graph = graph_of(R"(
input x f32[4, 8]
weight w f32[8, 2]
output relu(matmul(x, w)), tanh(x)
)");
};

TEST_F(CostModelTest, CountsLaunches) { EXPECT_EQ(cost("launches", graph), 3); }

TEST_F(CostModelTest, AddsArithmetic) {
  // 4*2 sums of 8 products each: 8*8 products and 8*7 or 8*8 additions, then one operation per element.
  const double mega = cost("flops", graph);
  EXPECT_GE(mega, (8 * 8 + 8 * 7 + 8 + 32) * 1e-6);
  EXPECT_LE(mega, (8 * 8 * 2 + 8 + 32) * 1e-6 * 1.2);
}

TEST_F(CostModelTest, AddsTraffic) {
  EXPECT_NEAR(cost("bytes", graph), 4e-6 * ((32 + 16 + 8) + (8 + 8) + (32 + 32)), 1e-8);
}

TEST_F(CostModelTest, AddsTimesOfLaunches) {
  target.seconds_of_op = {{"matmul", 5e-6}, {"relu", 1e-6}, {"tanh", 2e-6}};
  EXPECT_DOUBLE_EQ(cost("time", graph), 8);
  EXPECT_DOUBLE_EQ(cost("time+10*launches", graph), 38);
}

TEST_F(CostModelTest, MeasuresAKernelOnce) {
  (void)cost("time", graph);
  (void)cost("time", graph);
  EXPECT_EQ(target.measured.size(), 3U);
  EXPECT_EQ(measured.measured(), 3U);
  EXPECT_EQ(database.entries().size(), 3U);
  EXPECT_EQ(measured.used(), database.entries());
}

TEST_F(CostModelTest, DoesNotMeasureWhatIsTooSlowAlready) {
  target.seconds_of_op = {{"matmul", 5e-6}};
  const Graph product = graph_of("input x f32[4, 8]\nweight w f32[8, 2]\noutput matmul(x, w)\n");
  (void)cost("time", product);
  EXPECT_GE(cost("time", graph, 3), 3);
  EXPECT_EQ(target.measured.size(), 1U);
}

// Else a search that has given a kernel up for its bound and one that finds it recorded would choose differently.
TEST_F(CostModelTest, NoTimeIsBelowTheBoundThatWasRecordedBefore) {
  class Bounded final : public FakeTarget {
   public:
    [[nodiscard]] Expected<double> least_seconds(const KernelInfo& /*kernel*/) override { return 5e-6; }
  };
  Bounded bounded;
  bounded.seconds_of_op = {{"matmul", 2e-6}, {"tanh", 7e-6}};
  MeasuredCosts costs(bounded, database, true);
  for (const Launch& launch : value_of(bounded.plan(graph)).launches) {
    const KernelInfo& kernel = *launch.kernel;
    const MeasuredCosts::Known least = value_of(costs.find_out(kernel));
    EXPECT_FALSE(least.exactly);
    EXPECT_EQ(least.seconds, 5e-6);
    const MeasuredCosts::Known all = value_of(costs.find_out(kernel));
    EXPECT_TRUE(all.exactly);
    EXPECT_EQ(all.seconds, kernel.op == "tanh" ? 7e-6 : 5e-6) << kernel.op;
  }
}

TEST_F(CostModelTest, WeightsAndViewsAreFree) {
  const Graph weights = graph_of(R"(
input x f32[4, 8]
weight u f32[8, 2]
weight v f32[8, 2]
output reshape(matmul(x, add(u, mul(u, v))); shape=[8, 1])
)");
  EXPECT_EQ(cost("launches", weights), 1);
}

TEST_F(CostModelTest, KnowsPeakMemory) {
  // Two tensors of 32 floats are alive at once; the arena rounds to 64 bytes, which divides them. (Along columns, so
  // that the three are three kernels.)
  const Graph chain = graph_of("input x f32[4, 8]\noutput softmax(softmax(softmax(x; axis=-2); axis=-2); axis=-2)\n");
  EXPECT_GE(cost("memory", chain), 256e-6 - 1e-8);
  EXPECT_LE(cost("memory", chain), 384e-6 + 1e-8);
}

/// What follows each other within rows is one kernel, which passes nothing on in memory.
TEST_F(CostModelTest, KnowsWhatIsFused) {
  const Graph chain = graph_of("input x f32[4, 8]\noutput tanh(softmax(sqrt(x); axis=-1))\n");
  EXPECT_LE(cost("memory", chain), 128e-6 + 1e-8);
}

/// The share of a model that stays cached is a cost like others: recorded by its size in MB.
TEST_F(CostModelTest, CachedSharesAreRecorded) {
  EXPECT_EQ(cache_key(16.2e6), "17 MB");
  EXPECT_EQ(value_of(measured.cached_tenths(16.2e6)), 7);
  target.tenths = 3;
  EXPECT_EQ(value_of(measured.cached_tenths(16.9e6)), 7);
  EXPECT_EQ(target.caches_measured, 1);
  ASSERT_EQ(measured.used().size(), 1U);
  EXPECT_EQ(measured.used()[0], (CostDatabase::Entry{"fake device", "cache", "17 MB", 7}));
  MeasuredCosts fixed(target, database, false);
  EXPECT_EQ(value_of(fixed.cached_tenths(16.5e6)), 7);
  EXPECT_EQ(value_of(fixed.cached_tenths(40e6)), 0);  // not recorded
  EXPECT_EQ(target.caches_measured, 1);
}

TEST(RuntimeTarget, CountsTheWeightsThatARunReads) {
  // Equal ones, as files repeat them, once; w is read as it is and as a part of what is computed of weights.
  const Graph graph = graph_of(
      "input x f32[4, 8]\nweight w f32[8, 2]\nweight v f32[8, 3]\nc = concat(w, v; axis=-1)\n"
      "weight b f32[5]\noutput add(matmul(x, c), broadcast(b; shape=[4, 5]))\noutput matmul(x, w)\n");
  EXPECT_EQ(weight_bytes(graph), (8 * (2 + 5) + 5) * 4);
  Graph twice = graph;
  for (NodeId id = 0; id < graph.id_bound(); ++id) {
    if (!graph.contains(id) || !graph.node(id).is_op("matmul")) continue;
    for (const Value& input : graph.node(id).inputs)
      if (graph.node(input.node).kind == NodeKind::constant)
        twice.set_inputs(id, {graph.node(id).inputs[0], {twice.add_constant(graph.node(input.node).constant), 0}});
  }
  EXPECT_EQ(twice.size(), graph.size() + 1);
  EXPECT_EQ(weight_bytes(twice), weight_bytes(graph));
  // What is computed alike of equal weights, too: graphs of files are not in normal form.
  const Graph turned = graph_of(
      "input x f32[4, 8]\nweight w f32[2, 8]\noutput matmul(x, transpose(w; perm=[1, 0]))\n"
      "output tanh(matmul(x, transpose(w; perm=[1, 0])))\n");
  EXPECT_EQ(turned.size(), 7U);  // with two of transpose
  EXPECT_EQ(weight_bytes(turned), 8 * 2 * 4);
}

/// Kernels are told apart by the share that they were measured with.
TEST(RuntimeTarget, PlansKernelsForTheShareThatStaysCached) {
  const Graph graph = graph_of("input x f32[4, 8]\nweight w f32[8, 2]\noutput relu(matmul(x, w))\n");
  RuntimeTarget cpu(library(), {});
  const std::string cold = value_of(cpu.plan(graph)).launches.at(0).kernel->key;
  EXPECT_EQ(working_set_bytes(graph, cpu), 8 * 2 * 4 + value_of(cpu.peak_bytes(graph, nullptr)));
  cpu.set_cached_tenths(6);
  EXPECT_EQ(value_of(cpu.plan(graph)).launches.at(0).kernel->key, cold + "; cached=60%");
  const KernelPlan open = value_of(cpu.open_plan(graph));
  EXPECT_NE(open.open->kernels.at(0)->key.find("; cached=60%"), std::string::npos);
  cpu.set_cached_tenths(0);
  EXPECT_EQ(value_of(cpu.plan(graph)).launches.at(0).kernel->key, cold);
}

TEST_F(CostModelTest, GraphTimesAreRecorded) {
  target.graph_seconds = {2, 3};
  const Graph other = graph_of("input x f32[4, 8]\noutput tanh(x)\n");
  const GraphTimes first = value_of(measured.graph_seconds({{&graph, nullptr, {}}, {&other, nullptr, {}}}));
  target.graph_seconds = {7, 8};
  const GraphTimes second = value_of(measured.graph_seconds({{&graph, nullptr, {}}, {&other, nullptr, {}}}));
  EXPECT_EQ(target.timed, 1);
  EXPECT_EQ(first.seconds, second.seconds);
  EXPECT_EQ(first.noise, second.noise);
  EXPECT_EQ(measured.used().size(), 5U);  // two times, their noise and date, and that there was no final
  EXPECT_EQ(first.date, 0);
  EXPECT_GT(second.date, 20260000);
  MeasuredCosts fixed(target, database, false);
  EXPECT_EQ(value_of(fixed.graph_seconds({{&graph, nullptr, {}}, {&other, nullptr, {}}})).seconds, first.seconds);
  const auto missing = fixed.graph_seconds({{&other, nullptr, {}}, {&graph, nullptr, {}}});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::cost_missing);
}

TEST_F(CostModelTest, FinalsAreRecordedWithTheTimes) {
  const Graph other = graph_of("input x f32[4, 8]\noutput tanh(x)\n");
  const std::vector<TimedGraph> graphs = {{&graph, nullptr, {}, true}, {&other, nullptr, {}, false}};
  const auto entry = [&](std::string_view kind) -> std::optional<double> {
    for (const CostDatabase::Entry& one : measured.used())
      if (one.kind == kind) return one.value;
    return std::nullopt;
  };
  target.graph_seconds = {1, 0.97};
  target.final = GraphTimes::Final{1, 0.03};
  (void)value_of(measured.graph_seconds(graphs));
  EXPECT_EQ(entry("finalist"), 2);
  EXPECT_EQ(entry("noise of final"), 0.03);
  MeasuredCosts again(target, database, false);
  ASSERT_TRUE(value_of(again.graph_seconds(graphs)).final);
  // What no such graph can be, in a file that somebody has changed, is no finalist.
  CostDatabase forged = CostDatabase::in_memory(target.identity());
  for (const double which : {0.5, 3.0, 1e300}) {
    for (const CostDatabase::Entry& one : measured.used())
      (void)forged.replace(one.kind, one.key, one.kind == "finalist" ? which : one.value);
    MeasuredCosts from_forged(target, forged, false);
    EXPECT_FALSE(value_of(from_forged.graph_seconds(graphs)).final) << which;
  }
  // By the noise of the final it is near: timed anew, this time without one.
  target.graph_seconds = {1, 0.5};
  target.final.reset();
  const GraphTimes anew = value_of(measured.graph_seconds(graphs));
  EXPECT_EQ(target.timed, 2);
  EXPECT_FALSE(anew.final);
  EXPECT_EQ(entry("finalist"), 0);
  EXPECT_EQ(entry("noise of final"), std::nullopt);
  EXPECT_FALSE(value_of(measured.graph_seconds(graphs)).final);
  EXPECT_EQ(target.timed, 2);
  // Times of a version that knew no finals count where nothing may be measured, and only there.
  CostDatabase before = CostDatabase::in_memory(target.identity());
  for (const CostDatabase::Entry& one : measured.used())
    if (one.kind != "finalist") (void)before.replace(one.kind, one.key, one.value);
  MeasuredCosts fixed(target, before, false), free(target, before, true);
  EXPECT_EQ(value_of(fixed.graph_seconds(graphs)).seconds, anew.seconds);
  EXPECT_EQ(target.timed, 2);
  for (const CostDatabase::Entry& one : fixed.used()) EXPECT_NE(one.kind, "finalist");
  (void)value_of(free.graph_seconds(graphs));
  EXPECT_EQ(target.timed, 3);
}

TEST_F(CostModelTest, TimesOfAFinalThatWasCutShortAreNotRecorded) {
  const Graph other = graph_of("input x f32[4, 8]\noutput tanh(x)\n");
  const std::vector<TimedGraph> graphs = {{&graph, nullptr, {}, true}, {&other, nullptr, {}, false}};
  target.cut_short = Error{ErrorCode::interrupted, "stop", {}};
  target.graph_seconds = {1, 0.5};
  EXPECT_EQ(value_of(measured.graph_seconds(graphs)).seconds, target.graph_seconds);
  EXPECT_TRUE(measured.used().empty());
  target.cut_short.reset();
  (void)value_of(measured.graph_seconds(graphs));
  EXPECT_EQ(target.timed, 2);
}

TEST_F(CostModelTest, GraphTimesNearTheNoiseAreTakenAnew) {
  const Graph other = graph_of("input x f32[4, 8]\noutput tanh(x)\n");
  const std::vector<TimedGraph> graphs = {{&graph, nullptr, {}, true}, {&other, nullptr, {}, false}};
  target.noise = 0.04;
  target.graph_seconds = {1, 0.97};
  EXPECT_EQ(value_of(measured.graph_seconds(graphs)).seconds, (std::vector<double>{1, 0.97}));
  target.graph_seconds = {1, 1.02};
  const GraphTimes anew = value_of(measured.graph_seconds(graphs));
  EXPECT_EQ(target.timed, 2);
  EXPECT_EQ(anew.seconds, target.graph_seconds);
  EXPECT_EQ(anew.date, 0);
  EXPECT_EQ(value_of(measured.graph_seconds(graphs)).seconds, target.graph_seconds);
  EXPECT_EQ(target.timed, 2);
  // Without measuring, what is recorded counts.
  ASSERT_TRUE(database.replace("graph", database.entries().front().key, 1.0).ok());
  MeasuredCosts fixed(target, database, false);
  EXPECT_GT(value_of(fixed.graph_seconds(graphs)).date, 0);
  EXPECT_EQ(target.timed, 2);
}

}  // namespace
}  // namespace taso::testing
