// A runtime as a target, with the worker that runs nothing (fake_worker.py): what is planned, measured, and timed
// whole.
#include "targets/worker_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph_text.h"
#include "graph/rewrite.h"
#include "onnx_io/builder.h"
#include "onnx_io/model.h"
#include "optimizer/paired_times.h"
#include "optimizer/runtime_target.h"
#include "runtime/kernel.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

/// What the fake worker adds where the caches are emptied.
constexpr double evicted = 40e-9;
/// Seconds that the fake worker gives a file with so many nodes of each type.
double fake_seconds(int relus, int products) { return (1.0 + 3.0 * relus + 10.0 * products) * 1e-9; }

class WorkerTargets : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("python3 -c 'import json' > /dev/null 2>&1") != 0) GTEST_SKIP() << "no python3";
    ModelBuilder builder(17, "small");
    builder.add_input("x", {2, 32});
    builder.add_initializer("w", {32, 32}, std::vector<float>(1024, 0.25F));
    builder.add_node("Relu", {"x"}, {"a"});
    builder.add_node("MatMul", {"a", "w"}, {"b"});
    builder.add_node("Relu", {"b"}, {"y"});
    builder.add_output("y", {2, 32});
    model_ = Model::parse(builder.serialize(), "small.onnx", test::registry()).value();
    graph_ = model_->graph();
    normalize(graph_, test::registry());
    target_ = open(6000);
  }

  /// With a cache of so many bytes.
  std::unique_ptr<WorkerTarget> open(double cache_bytes) {
    WorkerOptions worker;
    worker.device = "fake";
    worker.command = {"python3", TASO_SOURCE_DIR "/tests/targets/fake_worker.py"};
    worker.provider = "other";
    worker.threads = 3;
    return WorkerTarget::open({std::move(worker), "Some Processor", cache_bytes}, *model_, test::registry(), host_)
        .value();
  }

  KernelLibrary library_{test::registry(), KernelSet::reference};
  RuntimeTarget host_{library_, RuntimeTargetOptions{}};
  std::optional<Model> model_;
  Graph graph_;
  std::unique_ptr<WorkerTarget> target_;
};

TEST_F(WorkerTargets, CostsDependOnTheRuntimeAndWhatItRunsOn) {
  EXPECT_EQ(target_->identity(), "Fake Runtime 1.0; other; Some Processor; threads=3; parts 3");
}

TEST_F(WorkerTargets, ALaunchIsAPartThatIsMeasuredWithOthersOfItsPlan) {
  const KernelPlan plan = target_->plan(graph_).value();
  ASSERT_EQ(plan.launches.size(), 2U);
  const KernelInfo &relu = *plan.launches[0].kernel, &product = *plan.launches[1].kernel;
  EXPECT_EQ(relu.key, "opset 17: %0 = relu(x0 f32[2, 32]) ; 8 copies");
  EXPECT_EQ(product.key, "opset 17: %0 = matmul(x0 f32[2, 32], w1 f32[32, 32]) ; %1 = relu(%0) ; 8 copies");
  EXPECT_EQ(product.op, "matmul");
  EXPECT_GT(product.flops, relu.flops);
  EXPECT_EQ(relu.bytes, 2 * 2 * 32 * 4);
  std::vector<std::string> asked;
  target_->set_recorded([&](const KernelInfo& kernel) {
    asked.push_back(kernel.key);
    return false;
  });
  EXPECT_DOUBLE_EQ(target_->measure(relu).value(), fake_seconds(8, 0) / 8);
  EXPECT_THAT(asked, ::testing::ElementsAre(product.key));
  EXPECT_DOUBLE_EQ(target_->measure(product).value(), fake_seconds(8, 8) / 8);
  // It was measured along with the first one.
  EXPECT_EQ(asked.size(), 1U);
  EXPECT_EQ(target_->plan(graph_).value().launches[0].kernel, plan.launches[0].kernel);
}

/// The kernels of a graph, by their keys.
std::map<std::string, std::shared_ptr<const KernelInfo>> kernels_of(const WorkerTarget& target, const Graph& graph) {
  std::map<std::string, std::shared_ptr<const KernelInfo>> kernels;
  const KernelPlan plan = test::value_of(target.plan(graph));
  for (const Launch& launch : plan.launches) kernels[launch.kernel->key] = launch.kernel;
  return kernels;
}

/// A product with 4 KB of weights, and another output.
Graph graph_with(const std::string& output) {
  return test::value_of(
      parse_graph("input x f32[2, 32]\nweight w f32[32, 32]\nr = relu(x)\noutput matmul(r, w), " + output + "\n",
                  "cold", test::registry()));
}

TEST_F(WorkerTargets, WeightsThatDoNotStayInTheCacheAreCold) {
  const std::string relu = "opset 17: %0 = relu(x0 f32[2, 32]) ; 8 copies";
  const std::string product = "opset 17: %0 = matmul(x0 f32[2, 32], w1 f32[32, 32]) ; 8 copies";
  EXPECT_TRUE(kernels_of(*target_, graph_with("relu(r)")).contains(product));
  EXPECT_TRUE(kernels_of(*target_, graph_with("matmul(relu(r), w)")).contains(product));
  // 4 KB of 6; as they are and transposed, 8.
  const Graph cold = graph_with("matmul(relu(r), transpose(w; perm=[1, 0]))");
  const auto kernels = kernels_of(*target_, cold);
  ASSERT_TRUE(kernels.contains(relu));  // has no weights
  ASSERT_TRUE(kernels.contains(product + " ; evicted"));
  const double of_relu = fake_seconds(8, 0) / 8, of_product = (fake_seconds(0, 8) + evicted) / 8;
  EXPECT_DOUBLE_EQ(target_->measure(*kernels.at(relu)).value(), of_relu);
  EXPECT_DOUBLE_EQ(target_->measure(*kernels.at(product + " ; evicted")).value(), of_product);
  const double piece = (fake_seconds(8, 8) + evicted) / 8;
  EXPECT_NEAR(target_->profile({&cold, nullptr, {}, false}).value().at(product + " ; evicted"),
              of_product * piece / (of_relu + of_product), 1e-15);
}

/// Parts of a large graph are searched by themselves: they run among all its weights.
TEST_F(WorkerTargets, PartsOfAColdModelAreCold) {
  const auto target = open(5000);
  const Graph part = test::value_of(
      parse_graph("input x f32[2, 32]\nweight w f32[32, 4]\noutput matmul(x, w)\n", "part", test::registry()));
  EXPECT_TRUE(
      kernels_of(*target, part).contains("opset 17: %0 = matmul(x0 f32[2, 32], w1 f32[32, 4]) ; 8 copies ; evicted"));
  EXPECT_TRUE(kernels_of(*target_, part).contains("opset 17: %0 = matmul(x0 f32[2, 32], w1 f32[32, 4]) ; 8 copies"));
}

TEST_F(WorkerTargets, PartsAreProfiledByThePiecesAroundThem) {
  const KernelPlan plan = target_->plan(graph_).value();
  const std::map<std::string, double> inside = target_->profile({&graph_, nullptr, {}, false}).value();
  ASSERT_EQ(inside.size(), 2U);
  // Both are one piece, which is called once for eight copies where its parts are called once each.
  const double relu = fake_seconds(8, 0) / 8, product = fake_seconds(8, 8) / 8, piece = fake_seconds(16, 8) / 8;
  EXPECT_NEAR(inside.at(plan.launches[0].kernel->key), relu * piece / (relu + product), 1e-15);
  EXPECT_NEAR(inside.at(plan.launches[1].kernel->key), product * piece / (relu + product), 1e-15);
}

TEST_F(WorkerTargets, FewestLaunchesAreThoseOfTheHost) { EXPECT_EQ(&target_->for_launches(), &host_); }

TEST_F(WorkerTargets, WholeGraphsAreRunAsFiles) {
  Graph shorter = graph_;
  const Value output = shorter.outputs()[0];
  shorter.set_outputs({shorter.node(output.node).inputs[0]});
  const std::vector<TimedGraph> graphs{{&graph_, nullptr, {}, true}, {&shorter, nullptr, {}, false}};
  const GraphTimes times = target_->measure_graphs(graphs).value();
  ASSERT_EQ(times.seconds.size(), 2U);
  EXPECT_NEAR(times.seconds[0], fake_seconds(2, 1), 1e-15);
  EXPECT_NEAR(times.seconds[1], fake_seconds(1, 1), 1e-15);
  EXPECT_FALSE(times.final);
}

/// One Relu less of 250 ns in all: 1.2 %, which is less than is ever called a gain by the first stage.
TEST_F(WorkerTargets, WhatIsOpenIsRunOnceMoreWithTheReference) {
  ModelBuilder builder(17, "long");
  builder.add_input("x", {2, 32});
  builder.add_initializer("w", {32, 32}, std::vector<float>(1024, 0.25F));
  std::string last = "x";
  for (int i = 0; i < 27; ++i) {
    const std::string next = "t" + std::to_string(i);
    if (i < 24)
      builder.add_node("MatMul", {last, "w"}, {next});
    else
      builder.add_node("Relu", {last}, {next});
    last = next;
  }
  builder.add_output(last, {2, 32});
  model_ = Model::parse(builder.serialize(), "long.onnx", test::registry()).value();
  const std::unique_ptr<WorkerTarget> target = open(6000);
  const Graph& whole = model_->graph();
  Graph shorter = whole;
  shorter.set_outputs({shorter.node(shorter.outputs()[0].node).inputs[0]});
  const std::vector<TimedGraph> graphs{
      {&whole, nullptr, {}, true}, {&whole, nullptr, {}, false}, {&shorter, nullptr, {}, false}};
  const GraphTimes times = target->measure_graphs(graphs).value();
  EXPECT_FALSE(times.cut_short);
  ASSERT_TRUE(times.final);
  EXPECT_EQ(times.final->graph, 2U);
  EXPECT_EQ(times.final->noise, least_gain);
  ASSERT_EQ(times.seconds.size(), 3U);
  EXPECT_NEAR(times.seconds[0], fake_seconds(3, 24), 1e-15);
  EXPECT_NEAR(times.seconds[1], fake_seconds(3, 24), 1e-15);
  EXPECT_NEAR(times.seconds[2], fake_seconds(2, 24), 1e-15);
}

}  // namespace
}  // namespace taso
