#include "bench/training_networks.h"

#include <gtest/gtest.h>

#include "partition/tofu.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

using test::value_of;

const GradientSpecifications& shipped() {
  static const auto loaded =
      value_of(GradientSpecifications::load(TASO_SOURCE_DIR "/specs/gradients", test::registry()));
  return *loaded;
}

StrategyTable gradient_strategies() {
  return StrategyTable(
      shipped().registry, [](std::string_view op) { return derive_strategies(shipped().registry, op).strategies; },
      [](std::string_view) { return std::vector<PartialPassage>(); });
}

TrainingNetwork resnet(std::int64_t layers, std::int64_t width) {
  return value_of(wide_resnet_in_training(layers, width, 8, shipped()));
}

TrainingNetwork lstm(std::int64_t layers, std::int64_t units, std::int64_t batch, std::int64_t steps) {
  return value_of(lstm_in_training(layers, units, batch, steps, shipped()));
}

/// Every weight is updated, and no operator is left that none needs.
void expect_complete(const TrainingNetwork& network) {
  EXPECT_TRUE(network.step.graph.validate().ok());
  EXPECT_EQ(network.step.weights.size(), network.groups.weights.size());
  EXPECT_EQ(network.step.graph.outputs().size(), 1 + network.step.weights.size());
}

// Parameters of the published networks: those of the well-known ones at width 1.
TEST(TrainingNetworks, HaveThePublishedWeights) {
  EXPECT_EQ(resnet(50, 1).weights, 25'557'032);
  EXPECT_EQ(resnet(101, 1).weights, 44'549'160);
  EXPECT_EQ(resnet(152, 1).weights, 60'192'808);
  EXPECT_EQ(resnet(50, 10).weights, 2'365'656'680);
  EXPECT_EQ(resnet(152, 10).weights, 5'820'386'920);
  // (8 L - 4) H^2, what reads 64 inputs, and biases.
  EXPECT_EQ(lstm(10, 8192, 8, 1).weights, 76.0 * 8192 * 8192 + 4.0 * 64 * 8192 + 10 * 4 * 8192);
}

TEST(TrainingNetworks, OfAllPapersAreDescended) {
  examples::ModelOptions options;
  options.batch = 4;
  const auto of = [&](const char* name) {
    return value_of(example_in_training(name, options, Loss::cross_entropy, shipped()));
  };
  const TrainingNetwork alexnet = of("alexnet"), vgg = of("vgg19");
  expect_complete(alexnet);
  expect_complete(vgg);
  expect_complete(resnet(50, 2));
  expect_complete(lstm(2, 64, 4, 3));
  EXPECT_EQ(vgg.weights, 143'667'240);
  const TrainingNetwork perceptron = value_of(perceptron_in_training(16, {20, 30, 10}, shipped()));
  expect_complete(perceptron);
  EXPECT_EQ(perceptron.weights, 20 * 30 + 30 + 30 * 10 + 10);
}

// Time steps change nothing but how often a layer counts.
TEST(TrainingNetworks, TimeStepsMakeNoDecisions) {
  StrategyTable strategies = gradient_strategies();
  const auto plan = [&](std::int64_t steps) {
    const TrainingNetwork network = lstm(2, 64, 16, steps);
    const TofuCoarsening coarsening = value_of(coarsen(network.step.graph, shipped().registry, network.groups));
    return tofu_recursive(network.step.graph, coarsening, {2, 2}, strategies);
  };
  const TofuPlan few = plan(4), many = plan(8);
  EXPECT_EQ(few.decided, many.decided);
  EXPECT_GT(many.bytes, few.bytes);
}

TEST(TrainingNetworks, ArePlannedStepByStep) {
  StrategyTable strategies = gradient_strategies();
  const TrainingNetwork network = resnet(50, 1);
  const TofuCoarsening coarsening = value_of(coarsen(network.step.graph, shipped().registry, network.groups));
  const TofuPlan plan = tofu_recursive(network.step.graph, coarsening, {2, 2, 2}, strategies);
  EXPECT_TRUE(plan.complete);
  EXPECT_GT(plan.steps[0], 0);
  EXPECT_LE(plan.steps[0], plan.steps[1]);
  EXPECT_LE(plan.steps[1], plan.steps[2]);
}

}  // namespace
}  // namespace taso
