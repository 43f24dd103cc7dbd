// That costs are those of the launches of a run, on a device that fuses steps.
#include <algorithm>

#include "optimizer/recorded_step_costs.h"
#include "runtime/backend.h"
#include "runtime/executor.h"
#include "tests/optimizer/fixtures.h"

namespace taso::testing {
namespace {

const KernelLibrary& test_device(const std::string& name) {
  static std::map<std::string, KernelLibrary> devices;
  if (const auto known = devices.find(name); known != devices.end()) return known->second;
  BackendOptions backend;
  backend.module_folder = TASO_TEST_BACKENDS;
  return devices.emplace(name, KernelLibrary(registry(), value_of(load_backend(name, backend)))).first->second;
}

/// A device that fuses, with kernels of which each costs what a test says, and 1 us where it does not.
class FusingTarget final : public FakeTarget {
 public:
  explicit FusingTarget(bool counting) : plans_(test_device("fusing"), {.counting = counting, .cancelled = {}}) {}
  [[nodiscard]] Expected<KernelPlan> plan(const Graph& graph) const override { return plans_.plan(graph); }
  [[nodiscard]] Expected<KernelPlan> open_plan(const Graph& graph) const override { return plans_.open_plan(graph); }
  [[nodiscard]] bool fuses() const override { return plans_.fuses(); }
  [[nodiscard]] Status fuse(const Graph& graph, KernelPlan& plan) const override { return plans_.fuse(graph, plan); }

 private:
  RuntimeTarget plans_;
};

class FusedCosts : public ::testing::Test {
 protected:
  /// A graph with layouts chosen, and its cost.
  PlannedGraph planned(const Graph& graph, const std::string& formula, double limit = MeasuredCosts::no_limit) {
    const auto model = make_cost_model(value_of(parse_cost_formula(formula)), measured);
    return value_of(GraphPlanner(measured, *model, true).plan(graph, limit));
  }

  FusingTarget target{false};
  CostDatabase database = CostDatabase::in_memory("fusing device");
  MeasuredCosts measured{target, database, true};
  const Graph chain =
      graph_of("input x f32[4, 64]\nweight b f32[64]\noutput relu(add(tanh(x), broadcast(b; shape=[4, 64])))\n");
};

std::vector<std::string> keys_of(const KernelPlan& plan) {
  std::vector<std::string> keys;
  for (const Launch& launch : plan.launches) keys.push_back(launch.kernel->key);
  return keys;
}

TEST_F(FusedCosts, AreThoseOfOneLaunch) {
  target.seconds_of_op = {{"fused", 2e-6}, {"tanh", 5e-6}, {"add", 5e-6}, {"relu", 5e-6}};
  const PlannedGraph graph = planned(chain, "time");
  EXPECT_TRUE(graph.plan.fused);
  EXPECT_DOUBLE_EQ(graph.cost, 2);
  EXPECT_DOUBLE_EQ(planned(chain, "launches").cost, 1);
  // Operations are those of the three operators; what they pass on to each other is not in memory.
  const double elements = 4 * 64;
  EXPECT_NEAR(planned(chain, "flops").cost, 3 * elements * 1e-6, 1e-8);
  EXPECT_NEAR(planned(chain, "bytes").cost, (2 * elements + 64) * 4 * 1e-6, 1e-8);
}

/// Kernels by themselves may cost more than the limit, and be fused for less.
TEST_F(FusedCosts, AreNotBoundedByWhatIsNotFused) {
  target.seconds_of_op = {{"fused", 2e-6}, {"tanh", 5e-6}, {"add", 5e-6}, {"relu", 5e-6}};
  const PlannedGraph graph = planned(chain, "time", 3);
  EXPECT_DOUBLE_EQ(graph.cost, 2);
  EXPECT_TRUE(graph.plan.layouts);
}

/// What is priced is what an executor runs, kernel by kernel, with chosen layouts and by the rule.
TEST_F(FusedCosts, AreOfTheKernelsThatRun) {
  const Graph graph = graph_of(R"(
input x f32[1, 8, 6, 6]
weight k f32[8, 8, 3, 3]
c = conv2d(x, k; pads=[1, 1, 1, 1])
t = tanh(c)
output relu(concat(t, add(c, t); axis=-3))
output softmax(transpose(t; perm=[0, 1, 3, 2]); axis=-1)
)");
  const PlannedGraph chosen = planned(graph, "time");
  const KernelPlan by_rule = value_of(target.plan(graph));
  EXPECT_TRUE(by_rule.fused);
  for (const KernelPlan* plan : {&chosen.plan, &by_rule}) {
    ExecutorOptions options;
    options.layouts = plan->layouts;
    const Executor executor = value_of(Executor::create(graph, test_device("fusing"), options));
    std::vector<std::string> run;
    for (const LoweredStep& step : executor.lowered().steps) run.push_back(step.kernel->key);
    EXPECT_EQ(keys_of(*plan), run);
    EXPECT_TRUE(std::any_of(run.begin(), run.end(), [](const std::string& key) { return key.starts_with("fused; "); }));
  }
}

/// So on the processor, whose own kernels fuse; where launches are counted there, they are the operators of the file.
TEST(FusedCostsOfTheProcessor, AreOfTheKernelsThatRun) {
  const Graph graph = graph_of(R"(
input x f32[6, 16]
weight w f32[16, 16]
weight s f32[16]
weight b f32[16]
p = matmul(x, w)
h = layer_norm(add(p, x), s, b; epsilon=0.00001)
output add(softmax(mul(h, x); axis=-1), h)
)");
  const RuntimeTarget target(library(), {});
  EXPECT_TRUE(target.fuses());
  const KernelPlan plan = value_of(target.plan(graph));
  EXPECT_TRUE(plan.fused);
  const Executor executor = value_of(Executor::create(graph, library(), {}));
  std::vector<std::string> run;
  for (const LoweredStep& step : executor.lowered().steps) run.push_back(step.kernel->key);
  EXPECT_EQ(keys_of(plan), run);
  EXPECT_EQ(run.size(), 2U);
  const RuntimeTarget counts(library(), {.counting = true, .cancelled = {}});
  EXPECT_FALSE(counts.fuses());
  EXPECT_EQ(value_of(counts.plan(graph)).launches.size(), 6U);
}

/// Two products with a softmax between them are one step where the device has attention, which reads rows: the layouts
/// of kernels by themselves, in which a product reads the transposed matrix, are dearer then. Who has the recorded
/// costs chooses alike.
TEST_F(FusedCosts, OfAttention) {
  const Graph attention = graph_of(R"(
input q f16[1, 2, 16, 64]
input k f16[1, 2, 16, 64]
input v f16[1, 2, 16, 64]
output matmul(softmax(matmul(q, transpose(k; perm=[0, 1, 3, 2])); axis=-1), v)
)");
  target.seconds_of_op = {{"fused", 4e-6}, {"matmul", 3e-6}, {"softmax", 3e-6}};
  ASSERT_EQ(value_of(target.plan(attention)).launches.size(), 1U);
  const PlannedGraph graph = planned(attention, "time");
  EXPECT_EQ(graph.plan.launches.size(), 1U);
  EXPECT_DOUBLE_EQ(graph.cost, 4);
  EXPECT_FALSE(graph.plan.layouts || graph.plan.open) << "the rule's";
  const RecordedLayouts recorded = value_of(recorded_layouts(attention, target, database));
  EXPECT_TRUE(recorded.priced);
  EXPECT_FALSE(recorded.layouts);
  EXPECT_FALSE(value_of(recorded_layouts(attention, target, CostDatabase::in_memory("another"))).priced);
}

/// With a convolution that is cheapest on rows, which is not the rule, neither the best layouts of kernels by
/// themselves nor those of the rule are best, but what one move makes of the former: it is of the transposes of all
/// layers.
TEST_F(FusedCosts, OfAttentionBesideAConvolutionOnRows) {
  std::string text =
      "input x f16[1, 4, 6, 6]\nweight f f16[4, 4, 3, 3]\ninput h0 f16[1, 2, 16, 64]\n"
      "output conv2d(x, f; pads=[1, 1, 1, 1])\n";
  for (int i = 0; i < 3; ++i) {
    const std::string at = std::to_string(i), next = std::to_string(i + 1);
    text += "input k" + at + " f16[1, 2, 16, 64]\ninput v" + at + " f16[1, 2, 16, 64]\n";
    text += "h" + next + " = matmul(softmax(matmul(h" + at + ", transpose(k" + at +
            "; perm=[0, 1, 3, 2])); axis=-1), v" + at + ")\n";
  }
  const Graph graph = graph_of(text + "output h3\n");
  target.seconds_of_op = {{"fused", 4e-6}, {"matmul", 3e-6}, {"softmax", 3e-6}, {"reorder", 9e-6}};
  const auto model = make_cost_model(value_of(parse_cost_formula("time")), measured);
  const GraphPlanner planner(measured, *model, true);
  PlannedGraph planned = value_of(planner.plan(graph));
  EXPECT_DOUBLE_EQ(planned.cost, 3 * 9 + 1);
  ASSERT_TRUE(planner.improve(planned));
  EXPECT_DOUBLE_EQ(planned.cost, 3 * 4 + 1);
  EXPECT_EQ(planned.plan.launches.size(), 4U);
  EXPECT_EQ(model->layout_statistics().moves_kept, 1U);
  KernelPlan by_rule = value_of(target.plan(graph));
  EXPECT_DOUBLE_EQ(value_of(model->cost(graph, by_rule)), 31);
  // Who has the recorded costs chooses alike.
  KernelPlan recorded;
  recorded.layouts = value_of(recorded_layouts(graph, target, database)).layouts;
  ASSERT_TRUE(recorded.layouts);
  ASSERT_TRUE(target.fuse(graph, recorded));
  EXPECT_EQ(keys_of(recorded), keys_of(planned.plan));
}

/// Graphs are timed on as many streams as they are run on, by costs of steps that are measured before.
TEST(TimesOnStreams, AreOfRunsOnStreams) {
  const Graph branches = graph_of(R"(
input x f32[4, 8]
weight w f32[8, 8]
output add(add(matmul(tanh(x), w), matmul(relu(x), w)), matmul(sigmoid(x), w))
)");
  CostDatabase costs = CostDatabase::in_memory("test device");
  RuntimeTargetOptions options;
  options.streams = 4;
  RuntimeTarget target(test_device("host"), options);
  EXPECT_EQ(target.conditions(), "streams=4");
  const auto step_costs = std::make_shared<RecordedStepCosts>(CostDatabase::in_memory("steps"));
  target.set_step_costs(step_costs);
  MeasuredCosts measured_costs(target, costs, true);
  const std::vector<TimedGraph> graphs{{&branches, nullptr, {}, true}};
  EXPECT_EQ(value_of(measured_costs.graph_seconds(graphs)).seconds.size(), 1U);
  EXPECT_TRUE(step_costs->wait_seconds().has_value());
  for (const Launch& launch : value_of(target.plan(branches)).launches)
    EXPECT_TRUE(step_costs->find(launch.kernel->key).has_value()) << launch.kernel->key;
  // Times on one stream are others: they are neither taken for these nor recorded in their place.
  RuntimeTarget one(test_device("host"), {});
  EXPECT_EQ(one.conditions(), "");
  MeasuredCosts recorded(one, costs, false), same(target, costs, false);
  EXPECT_FALSE(recorded.graph_seconds(graphs).ok());
  EXPECT_TRUE(same.graph_seconds(graphs).ok());
  RuntimeTarget cpu(library(), options);
  EXPECT_EQ(cpu.conditions(), "") << "the host has no streams";
}

}  // namespace
}  // namespace taso::testing
