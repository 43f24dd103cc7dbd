#include "partition/plan_baselines.h"

#include <gtest/gtest.h>

#include "graph/rewrite.h"
#include "tests/partition/strategy_tables.h"
#include "tests/support/graphs.h"

namespace taso {
namespace {

using test::every_strategy;
using test::graph_of;
using test::registry;
using test::value_of;

/// What a baseline does with a graph on four devices: "op axes; ..." or why it is impossible.
std::string planned(const std::string& text, const std::string& name) {
  Graph graph = graph_of(text);
  normalize(graph, registry());
  Mesh mesh;
  mesh.device = {std::int64_t{1} << 30, 1e12, 1e12};
  mesh.axes = {{4, "link", 1e9, 0}};
  StrategyTable strategies = every_strategy();
  Planner planner(graph, mesh, strategies, {});
  for (const PlanBaseline& baseline :
       plan_baselines(graph, mesh, planner, roofline(registry(), mesh.device), strategies)) {
    if (baseline.name != name) continue;
    if (!baseline.impossible.empty()) return baseline.impossible;
    std::string uses;
    for (const PlannedNode& node : value_of(planner.plan(baseline.allowed)).nodes)
      uses += graph.node(node.node).op + " " + node.configuration.to_string() + "; ";
    return uses;
  }
  return "no such baseline";
}

const std::string mlp =
    "input x f32[8, 64]\nweight w f32[64, 256]\nweight v f32[256, 64]\noutput tanh(matmul(relu(matmul(x, w)), v))\n";
const std::string cnn =
    "input x f32[8, 4, 8, 8]\nweight k f32[8, 4, 1, 1]\nweight w f32[512, 64]\n"
    "output matmul(reshape(relu(conv2d(x, k)); shape=[8, 512]), w)\n";

TEST(PlanBaselines, OneWeirdTrick) {
  EXPECT_EQ(planned(mlp, "one weird trick"), "no convolution can be cut among all devices");
  const std::string uses = planned(cnn, "one weird trick");
  EXPECT_NE(uses.find("conv2d b@-4; "), std::string::npos) << uses;
  EXPECT_NE(uses.find("matmul j@-1; "), std::string::npos) << uses;
  EXPECT_EQ(planned("input x f32[8, 4, 8, 8]\nweight k f32[8, 4, 1, 1]\noutput conv2d(x, k)\n", "one weird trick"),
            "no other product with weights can be cut among all devices");
}

TEST(PlanBaselines, Megatron) {
  EXPECT_EQ(planned(mlp, "Megatron"), "matmul j@-1; relu I@-1; matmul t (sum); tanh repeat; ");
  EXPECT_EQ(planned("input x f32[8, 64]\nweight w f32[64, 64]\noutput relu(matmul(x, w))\n", "Megatron"),
            "no two products with weights, one behind the other, can be cut among all devices");
}

TEST(PlanBaselines, OfTofu) {
  EXPECT_EQ(planned(mlp, "all row, greedy"), "matmul i@-2; relu I@-2; matmul i@-2; tanh I@-2; ");
  EXPECT_NE(planned(mlp, "equal chop"), "no such baseline");
}

TEST(PlanBaselines, RepeatedAndDataParallel) {
  EXPECT_EQ(planned(mlp, "all repeated"), "matmul repeat; relu repeat; matmul repeat; tanh repeat; ");
  EXPECT_EQ(planned(mlp, "data parallel"), "matmul i@-2; relu I@-2; matmul i@-2; tanh I@-2; ");
}

}  // namespace
}  // namespace taso
