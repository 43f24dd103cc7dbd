// Graphs as PaSE sees them, against PaSE's own networks.
#include "partition/pase_from_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "partition/pase_problem.h"
#include "partition/solve_exact.h"
#include "support/file.h"
#include "tests/partition/strategy_tables.h"
#include "tests/support/graphs.h"

namespace taso::test {
namespace {

Expected<PaseGraph> read_graph(const std::string& text, const PaseReading& reading = {}) {
  StrategyTable strategies = every_strategy();
  return pase_from_graph(graph_of(text), strategies, reading);
}

double least_cost(const PaseGraph& graph, std::int64_t devices) {
  const PaseProblem problem = pase_problem(graph, devices);
  const PartitionSolution solution = solve_exact(problem.problem, {});
  EXPECT_TRUE(solution.exact);
  return solution.cost;
}

/// Extents above 1, in ascending order.
std::vector<std::int64_t> extents(const PaseLayer& layer) {
  std::vector<std::int64_t> kept = layer.domain;
  std::erase(kept, 1);
  std::sort(kept.begin(), kept.end());
  return kept;
}

TEST(PaseFromGraph, AlexNetIsPasesOwn) {
  const Expected<std::string> text = read_file(std::string(TASO_SOURCE_DIR) + "/tests/partition/pase/alexnet.graph");
  ASSERT_TRUE(text);
  const Expected<PaseGraph> read = read_graph(*text);
  ASSERT_TRUE(read) << read.error().to_string();
  const PaseGraph own = pase_alexnet();
  ASSERT_EQ(read->layers.size(), own.layers.size());
  EXPECT_EQ(read->edges, own.edges);
  for (std::size_t i = 0; i < own.layers.size(); ++i) {
    EXPECT_EQ(extents(read->layers[i]), extents(own.layers[i])) << i;
    EXPECT_EQ(read->layers[i].work.index(), own.layers[i].work.index()) << i;
  }
  // The published prototype's.
  EXPECT_EQ(least_cost(*read, 4), 148'215'719'552);
  EXPECT_EQ(least_cost(*read, 8), 97'098'296'512);
  EXPECT_EQ(least_cost(*read, 64), 41'120'456'048);
}

TEST(PaseFromGraph, AllConfigurationsOfAProductCostTheSame) {
  const Expected<PaseGraph> read = read_graph(
      "input x f32[8, 12, 10, 10]\nweight k f32[16, 12, 3, 3] = 0.5\noutput relu(conv2d(x, k; pads=[1, 1, 1, 1]))",
      {.cutoff = 1, .loss = false});
  ASSERT_TRUE(read) << read.error().to_string();
  ASSERT_EQ(read->layers.size(), 1U);
  PaseGraph own;  // (b, c, h, w, r, s, n)
  PaseLayer& layer = own.layers.emplace_back();
  layer.domain = {8, 12, 10, 10, 3, 3, 16};
  layer.pinned = {2, 3};
  layer.work = PaseProduct{{}, {0, 2, 3}, {6}, {1, 4, 5}, 1, 1, 1};
  const auto costs = [](const PaseLayer& of) {
    std::vector<double> all = pase_layer_costs(of, pase_configurations(of, 24, 1), {});
    std::sort(all.begin(), all.end());
    return all;
  };
  EXPECT_EQ(costs(read->layers[0]), costs(layer));
}

TEST(PaseFromGraph, WhatFollowsAProductByAWeightIsNormalization) {
  const Expected<PaseGraph> read = read_graph(R"(
input x f32[8, 12, 10, 10]
weight k f32[16, 12, 3, 3] = 0.5
weight s f32[16, 1, 1] = 0.5
weight t f32[16, 1, 1] = 0.25
y = conv2d(x, k; pads=[1, 1, 1, 1])
z = relu(add(mul(y, broadcast(s; shape=[8, 16, 10, 10])), broadcast(t; shape=[8, 16, 10, 10])))
output add(z, sigmoid(y))
)",
                                              {.cutoff = 1, .loss = false});
  ASSERT_TRUE(read) << read.error().to_string();
  ASSERT_EQ(read->layers.size(), 4U);
  EXPECT_TRUE(std::holds_alternative<PaseProduct>(read->layers[0].work));
  EXPECT_TRUE(std::holds_alternative<PaseNorm>(read->layers[1].work));
  // The sigmoid reads what another reads, too, and the sum two activations.
  EXPECT_TRUE(std::holds_alternative<PaseElementwise>(read->layers[2].work));
  EXPECT_TRUE(std::holds_alternative<PaseElementwise>(read->layers[3].work));
  EXPECT_EQ(read->edges.size(), 4U);
}

TEST(PaseFromGraph, ABiasIsNoNormalization) {
  const Expected<PaseGraph> read = read_graph(R"(
input x f32[8, 12]
weight w f32[12, 16] = 0.5
weight b f32[16] = 0.5
y = matmul(x, w)
output add(y, broadcast(b; shape=[8, 16])), tanh(y)
)",
                                              {.cutoff = 1, .loss = false});
  ASSERT_TRUE(read) << read.error().to_string();
  ASSERT_EQ(read->layers.size(), 3U);
  EXPECT_TRUE(std::holds_alternative<PaseElementwise>(read->layers[1].work));
  EXPECT_TRUE(std::holds_alternative<PaseElementwise>(read->layers[2].work));
}

TEST(PaseFromGraph, PoolingMeansConcatenationsAndReshapes) {
  const Expected<PaseGraph> read = read_graph(R"(
input x f32[8, 12, 14, 14]
p = max_pool2d(x; kernel=[3, 5], strides=[2, 2], pads=[1, 2, 1, 2])
q = avg_pool2d_include(x; kernel=[2, 2], strides=[2, 2])
c = concat(p, q; axis=-3)
output reshape(global_avg_pool(c); shape=[8, 24])
output reshape(c; shape=[8, 1176])
)",
                                              {.cutoff = 1, .loss = false});
  ASSERT_TRUE(read) << read.error().to_string();
  ASSERT_EQ(read->layers.size(), 6U);
  const auto& pool = std::get<PasePooling>(read->layers[0].work);
  EXPECT_EQ(pool.rows, 3);
  EXPECT_EQ(pool.columns, 5);
  EXPECT_EQ(std::get<PasePooling>(read->layers[1].work).rows, 2);
  EXPECT_EQ(read->layers[2].domain, (std::vector<std::int64_t>{8, 1, 7, 7}));
  EXPECT_EQ(std::get<PaseMean>(read->layers[3].work).axes, (PaseAxes{2, 3}));
  // Without axes of extent 1 the mean is another tensor of the same layer.
  ASSERT_EQ(read->layers[3].outputs.size(), 2U);
  EXPECT_EQ(read->layers[3].outputs[1].axes, (std::vector<PaseAxes>{{0}, {1}}));
  EXPECT_TRUE(read->layers[4].contiguous);
  EXPECT_EQ(read->layers[5].domain, (std::vector<std::int64_t>{8, 1176}));
}

TEST(PaseFromGraph, SaysWhatIsNoLayer) {
  const auto message = [](const std::string& text) {
    const Expected<PaseGraph> read = read_graph(text);
    return read ? std::string() : read.error().message;
  };
  EXPECT_EQ(message("input x f32[4, 8]\ny = opaque custom(x) f32[4, 8]\noutput y"),
            "node \"y\" (custom) is no layer of PaSE: it is not understood");
  EXPECT_EQ(message("input x f32[4, 8]\na, b = split(x; axis=-1, sizes=[4, 4])\noutput a, b"),
            "node (split) is no layer of PaSE: it has several outputs");
  EXPECT_EQ(message("input x f32[4, 1]\noutput broadcast(x; shape=[4, 8])"),
            "node (broadcast) is no layer of PaSE: it repeats or leaves out elements");
}

}  // namespace
}  // namespace taso::test
