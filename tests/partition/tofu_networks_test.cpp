#include "bench/tofu_networks.h"

#include <gtest/gtest.h>

#include "partition/tofu.h"
#include "tests/partition/training_graphs.h"

namespace taso {
namespace {

using test::product_registry;
using test::product_strategies;
using test::value_of;

// Parameters of the published networks: those of the well-known ones at width 1.
TEST(TofuNetworks, HaveThePublishedWeights) {
  const auto resnet = [](std::int64_t layers, std::int64_t width) {
    return value_of(wide_resnet_in_training(layers, width, 8, product_registry())).weights;
  };
  EXPECT_EQ(resnet(50, 1), 25'557'032);
  EXPECT_EQ(resnet(101, 1), 44'549'160);
  EXPECT_EQ(resnet(152, 1), 60'192'808);
  EXPECT_EQ(resnet(50, 10), 2'365'656'680);
  EXPECT_EQ(resnet(152, 10), 5'820'386'920);
  // (8 L - 4) H^2, and what reads 128 inputs.
  EXPECT_EQ(value_of(lstm_in_training(10, 8192, 8, 1, product_registry())).weights,
            76.0 * 8192 * 8192 + 4.0 * 128 * 8192);
}

// And those of the example models, without biases.
TEST(TofuNetworks, OfSoybeanHaveThePublishedWeights) {
  const auto alexnet = value_of(alexnet_in_training(32, 1, product_registry()));
  EXPECT_EQ(alexnet.weights, 62'378'344 - 10'568);
  EXPECT_EQ(alexnet.graph.outputs().size(), 8U);
  EXPECT_EQ(value_of(vgg19_in_training(32, 1, product_registry())).weights, 143'667'240 - 14'696);
  EXPECT_EQ(value_of(mlp_in_training(8, {16, 32, 64}, product_registry())).weights, 16 * 32 + 32 * 64);
  EXPECT_EQ(value_of(convolutions_in_training(5, 16, 8, 4, product_registry())).weights, 5 * 9 * 16 * 16);
}

// Time steps change nothing but how often a layer counts.
TEST(TofuNetworks, TimeStepsMakeNoDecisions) {
  StrategyTable strategies = product_strategies();
  const auto plan = [&](std::int64_t steps) {
    const TofuNetwork network = value_of(lstm_in_training(2, 64, 16, steps, product_registry()));
    const TofuCoarsening coarsening = value_of(coarsen(network.graph, product_registry(), network.groups));
    return tofu_recursive(network.graph, coarsening, {2, 2}, strategies);
  };
  const TofuPlan few = plan(3), many = plan(6);
  EXPECT_EQ(few.decided, many.decided);
  EXPECT_GT(many.bytes, few.bytes);
}

TEST(TofuNetworks, ArePlannedStepByStep) {
  StrategyTable strategies = product_strategies();
  const TofuNetwork network = value_of(wide_resnet_in_training(50, 1, 8, product_registry()));
  const TofuCoarsening coarsening = value_of(coarsen(network.graph, product_registry(), network.groups));
  const TofuPlan plan = tofu_recursive(network.graph, coarsening, {2, 2, 2}, strategies);
  EXPECT_TRUE(plan.complete);
  EXPECT_GT(plan.steps[0], 0);
  EXPECT_LE(plan.steps[0], plan.steps[1]);
  EXPECT_LE(plan.steps[1], plan.steps[2]);
}

}  // namespace
}  // namespace taso
