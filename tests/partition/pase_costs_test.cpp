// PaSE's configurations and cost functions against numbers worked out by hand. Links are as slow as in its prototype:
// a word counts as 5000 FLOP.
#include "partition/pase_costs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "partition/pase_graph_builder.h"

namespace taso::testing {
namespace {

using Splits = std::vector<PaseConfigurations::Split>;
constexpr double word = 5000;

/// A network of what `add` adds to values from outside.
template <class Add>
PaseGraph network(const Add& add) {
  PaseGraphBuilder net("test", 1);
  add(net);
  return std::move(net).finish();
}

PaseValue outside(std::vector<std::int64_t> shape) { return PaseGraphBuilder::outside(std::move(shape)); }

double cost(const PaseLayer& layer, const Splits& splits) {
  PaseConfigurations one(splits.size());
  one.add(splits);
  return pase_layer_costs(layer, one, {}).at(0);
}

double edge(const std::vector<std::int64_t>& shape, const Splits& written, const Splits& read) {
  PaseConfigurations from(shape.size()), to(shape.size());
  from.add(written);
  to.add(read);
  return pase_edge_costs(shape, from, to, {}).at(0);
}

std::vector<Splits> all_of(const PaseConfigurations& configurations) {
  std::vector<Splits> all;
  for (std::size_t i = 0; i < configurations.size(); ++i)
    all.emplace_back(configurations[i].begin(), configurations[i].end());
  return all;
}

TEST(PaseConfigurations, AreAllDivisorsWithinTheDevices) {
  const PaseGraph graph = network([](PaseGraphBuilder& net) { net.norm(outside({6, 4}), 1); });
  EXPECT_EQ(all_of(pase_configurations(graph.layers[0], 6, 1)),
            (std::vector<Splits>{{1, 1}, {1, 2}, {1, 4}, {2, 1}, {2, 2}, {3, 1}, {3, 2}, {6, 1}}));
  EXPECT_EQ(all_of(pase_configurations(graph.layers[0], 1'000'000, 1)).size(), 12U);
  EXPECT_EQ(all_of(pase_configurations(graph.layers[0], 1, 1)), (std::vector<Splits>{{1, 1}}));
}

TEST(PaseConfigurations, LeavePiecesOfAtLeastTheCutoff) {
  const PaseGraph graph = network([](PaseGraphBuilder& net) { net.norm(outside({12, 2}), 1); });
  EXPECT_EQ(all_of(pase_configurations(graph.layers[0], 12, 4)), (std::vector<Splits>{{1, 1}, {2, 1}, {3, 1}}));
}

/// A pool's rows may be split five and eleven ways; a convolution's rows and columns never are.
TEST(PaseConfigurations, OfImages) {
  const PaseGraph graph = network([](PaseGraphBuilder& net) {
    net.pooling(net.convolution(outside({1, 4, 55, 55}), 4, {1, 1}), {1, 1});
  });
  const PaseConfigurations conv = pase_configurations(graph.layers[0], 64, 1);
  for (const Splits& splits : all_of(conv)) EXPECT_TRUE(splits[2] == 1 && splits[3] == 1);
  EXPECT_EQ(conv.size(), 9U);  // input and output channels
  const std::vector<Splits> pool = all_of(pase_configurations(graph.layers[1], 64, 1));
  EXPECT_TRUE(std::ranges::count(pool, Splits{1, 1, 5, 11}));
}

/// Splits of a flat tensor are contiguous pieces.
TEST(PaseConfigurations, OfReshapes) {
  const PaseGraph graph = network([](PaseGraphBuilder& net) { net.reshape(outside({2, 4}), {8}); });
  EXPECT_EQ(all_of(pase_configurations(graph.layers[0], 8, 1)), (std::vector<Splits>{{1, 1}, {2, 1}, {2, 2}, {2, 4}}));
  const PaseTensor& flat = graph.layers[0].outputs[0];
  EXPECT_EQ(flat.shape, (std::vector<std::int64_t>{8}));
  EXPECT_EQ(all_of(pase_splits(flat, pase_configurations(graph.layers[0], 8, 1))),
            (std::vector<Splits>{{1}, {2}, {4}, {8}}));
}

/// The first fully connected layer of AlexNet on 32 devices: m, n, k = 128, 4096, 9216 split (1, 4, 8).
TEST(PaseCosts, OfAProduct) {
  const PaseGraph graph = network([](PaseGraphBuilder& net) { net.fully_connected(outside({128, 9216}), 4096, 1); });
  EXPECT_EQ(graph.layers[0].domain, (std::vector<std::int64_t>{128, 4096, 9216}));
  const double products = 3.0 * 128 * 1024 * 1152, relu = 3.0 * 128 * 1024;
  const double output = word * (128 * 1024 / 8 * 14), gradient = word * (128 * 1152 / 4 * 6);
  EXPECT_EQ(products + relu + output + gradient, 2'706'178'048);
  EXPECT_EQ(cost(graph.layers[0], {1, 4, 8}), 2'706'178'048);
  // Split along the batch, only the weights' gradient is reduced.
  EXPECT_EQ(cost(graph.layers[0], {4, 1, 1}), 3.0 * 32 * 4096 * 9216 + 3 * 32 * 4096 + word * (4096.0 * 9216 / 4 * 6));
}

TEST(PaseCosts, OfAnEinsumWithABatch) {
  const PaseGraph graph = network([](PaseGraphBuilder& net) {
    net.einsum("bhlk,bhmk->bhlm", outside({4, 2, 8, 16}), outside({4, 2, 6, 16}));
  });
  EXPECT_EQ(graph.layers[0].domain, (std::vector<std::int64_t>{4, 2, 8, 6, 16}));
  EXPECT_EQ(cost(graph.layers[0], {2, 1, 1, 3, 4}),
            2 * 2 * (3.0 * 8 * 2 * 4 + word * (8 * 2 / 4.0 * 6) + word * (8 * 4 / 3.0 * 4)));
}

TEST(PaseCosts, OfAConvolution) {
  const PaseGraph graph = network([](PaseGraphBuilder& net) {
    net.convolution(outside({8, 4, 7, 9}), 6, {3, 5}, {2, {1, 2}}, 0);
  });
  EXPECT_EQ(graph.layers[0].domain, (std::vector<std::int64_t>{8, 4, 4, 5, 3, 5, 6}));
  const double m = 4 * 4 * 5, n = 3, k = 2 * 3 * 5;
  EXPECT_EQ(cost(graph.layers[0], {2, 2, 1, 1, 1, 1, 2}),
            3 * m * n * k + word * (m * n / 2 * 2) + word * (m * k / 2 * 2) + word * (n * k / 2 * 2));
}

/// Rows split in two read three more rows of the image.
TEST(PaseCosts, OfAPoolWithItsHalo) {
  const PaseGraph graph = network([](PaseGraphBuilder& net) { net.pooling(outside({2, 3, 9, 9}), {3, 3}, {2}); });
  EXPECT_EQ(graph.layers[0].domain, (std::vector<std::int64_t>{2, 3, 4, 4}));
  EXPECT_EQ(cost(graph.layers[0], {2, 1, 1, 1}), 3 * 4 * 4);
  EXPECT_EQ(cost(graph.layers[0], {2, 1, 2, 1}), 3 * 2 * 4 + word * (((4.5 + 3) * 9 - 4.5 * 9) * 1 * 3));
}

TEST(PaseCosts, OfLayersAlongAnAxis) {
  const PaseGraph graph = network([](PaseGraphBuilder& net) {
    const PaseValue value = outside({8, 10});
    net.elementwise(value, value, 1);
    net.norm(value, 1);
    net.mean(value, {1});
    net.softmax(value, 1);
    net.cross_entropy(value);
    net.concat({value, value}, 1);
  });
  const Splits splits = {4, 2};
  const auto reduce = [](double words, double devices) { return word * (words / devices * 2 * (devices - 1)); };
  EXPECT_EQ(cost(graph.layers[0], splits), 2 * 10);
  EXPECT_EQ(cost(graph.layers[1], splits), 16 * 10 + 4 * reduce(2, 2) + 4 * reduce(5, 4));
  EXPECT_EQ(cost(graph.layers[2], splits), reduce(10, 2));
  EXPECT_EQ(cost(graph.layers[3], splits), 4 * 10 + 10 * 10 + reduce(2, 2) + reduce(20, 2) + reduce(2, 2));
  EXPECT_EQ(cost(graph.layers[4], splits), 4 * 10 + 2 + 2 + word * 4);
  EXPECT_EQ(cost(graph.layers[4], {4, 1}), 4 * 20 + 2 + 2);
  EXPECT_EQ(cost(graph.layers[5], {4, 1}), 0);
  EXPECT_EQ(pase_configurations(graph.layers[5], 64, 1).size(), 4U);  // the joined axis stays whole
}

/// Two layers of cells: four gates of 8 units from 8 inputs and 8 states; and cell to cell, what another split lacks.
TEST(PaseCosts, OfRecurrentLayers) {
  const PaseGraph graph = network([](PaseGraphBuilder& net) { net.lstm(outside({4, 3, 8}), 2); });
  EXPECT_EQ(graph.layers[0].domain, (std::vector<std::int64_t>{2, 3, 4, 8, 8}));
  const double m = 3 * 2, n = 4 * 4, k = 2 * 8;
  const double product =
      3 * m * n * k + 9 * m * n + word * (m * k / 2 * 2) + word * (n * k / 2 * 2);  // layers split: one each
  EXPECT_EQ(cost(graph.layers[0], {2, 1, 2, 2, 1}), product + 2 * 3 * word * (2 * 8 - 2 * 4));
  for (const Splits& splits : all_of(pase_configurations(graph.layers[0], 64, 1))) EXPECT_EQ(splits[1], 1);
}

TEST(PaseCosts, OfTensorsBetweenLayers) {
  EXPECT_EQ(edge({8, 8}, {2, 2}, {2, 2}), 0);
  EXPECT_EQ(edge({8, 8}, {4, 1}, {1, 4}), 2 * word * (16 - 4));
  EXPECT_EQ(edge({8, 8}, {4, 1}, {2, 1}), 2 * word * (32 - 16));
  EXPECT_EQ(edge({8, 8}, {2, 1}, {4, 1}), 2 * word * 16) << "some reader has nothing yet";
  EXPECT_EQ(edge({9}, {2}, {3}), 2 * word * 3);
}

TEST(PaseCosts, ScaleWithTheMachine) {
  EXPECT_EQ(PaseMachine{}.flops_per_word(), word);
  EXPECT_EQ((PaseMachine{20, 8}.flops_per_word()), 4 * word);
}

/// Of equal splits one entry per pair of configurations, in their order.
TEST(PaseCosts, EdgesAreWrittenByRead) {
  PaseConfigurations from(1), to(1);
  for (const PaseConfigurations::Split split : {1, 2, 1}) from.add(Splits{split});
  for (const PaseConfigurations::Split split : {2, 1}) to.add(Splits{split});
  EXPECT_EQ(pase_edge_costs(std::vector<std::int64_t>{4}, from, to, {}),
            (std::vector<double>{2 * word * 2, 0, 0, 2 * word * 2, 2 * word * 2, 0}));
}

}  // namespace
}  // namespace taso::testing
