// PaSE's networks against its published prototype (tests/partition/pase): domains, costs of layers, the least cost to
// the last digit, the size of the search, data parallelism.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "partition/pase_problem.h"
#include "partition/solve_exact.h"

namespace taso::testing {
namespace {

using Splits = std::vector<PaseConfigurations::Split>;

struct PublishedLayer {
  std::string type;
  std::vector<std::int64_t> domain;
};

struct PublishedStrategy {
  std::int64_t devices = 0;
  std::size_t most_configurations = 0, width = 0;
  double combinations = 0, cost = 0;
  std::optional<double> data_parallel;
  std::vector<Splits> configurations;  ///< Per layer...
  std::vector<double> costs;           ///< ...and what it costs by itself.
};

struct Published {
  std::string name;
  std::size_t layer_count = 0, edges = 0;
  std::vector<PublishedLayer> layers;
  std::vector<PublishedStrategy> strategies;
};

template <class T>
std::vector<T> numbers(std::istream& line) {
  std::vector<T> read;
  for (T number; line >> number;) read.push_back(number);
  return read;
}

Published read_published(const std::string& file) {
  std::ifstream in(std::string(TASO_SOURCE_DIR) + "/tests/partition/pase/" + file + ".txt");
  Published read;
  for (std::string text; std::getline(in, text);) {
    std::istringstream line(text);
    std::string kind;
    if (text.empty() || text[0] == '#') continue;
    if (text[0] >= '0' && text[0] <= '9') {
      const std::vector<double> row = numbers<double>(line);
      PublishedStrategy& strategy = read.strategies.back();
      strategy.configurations.emplace_back(row.begin(), row.end() - 1);
      strategy.costs.push_back(row.back());
      continue;
    }
    line >> kind;
    if (kind == "network") {
      line >> read.name >> read.layer_count >> read.edges;
    } else if (kind == "layer") {
      PublishedLayer& layer = read.layers.emplace_back();
      line >> layer.type;
      layer.domain = numbers<std::int64_t>(line);
    } else {
      PublishedStrategy& strategy = read.strategies.emplace_back();
      std::string data_parallel;
      line >> strategy.devices >> strategy.most_configurations >> strategy.width >> strategy.combinations >>
          strategy.cost >> data_parallel;
      if (data_parallel != "-") strategy.data_parallel = std::stod(data_parallel);
    }
  }
  return read;
}

struct Case {
  const char* file;
  PaseGraph (*build)(std::int64_t batch);
  std::int64_t batch;
  std::size_t strategies;
};

class PasePublished : public ::testing::TestWithParam<Case> {};

TEST_P(PasePublished, LayersAreThePrototypes) {
  const Published published = read_published(GetParam().file);
  const PaseGraph graph = GetParam().build(GetParam().batch);
  EXPECT_EQ(graph.name, published.name);
  ASSERT_EQ(graph.layers.size(), published.layer_count);
  ASSERT_EQ(published.layers.size(), published.layer_count);
  for (std::size_t i = 0; i < graph.layers.size(); ++i) {
    EXPECT_EQ(graph.layers[i].type, published.layers[i].type) << "layer " << i;
    EXPECT_EQ(graph.layers[i].domain, published.layers[i].domain) << "layer " << i;
  }
}

TEST_P(PasePublished, CostsAreThePrototypesToTheLastDigit) {
  const Published published = read_published(GetParam().file);
  const PaseGraph graph = GetParam().build(GetParam().batch);
  ASSERT_EQ(published.strategies.size(), GetParam().strategies);
  for (const PublishedStrategy& expected : published.strategies) {
    SCOPED_TRACE(expected.devices);
    const PaseProblem made = pase_problem(graph, expected.devices);
    EXPECT_EQ(made.edges, published.edges);
    std::size_t most = 0;
    for (const PaseConfigurations& configurations : made.configurations) most = std::max(most, configurations.size());
    EXPECT_EQ(most, expected.most_configurations);
    if (expected.data_parallel) {
      EXPECT_EQ(made.problem.cost(pase_data_parallel(graph, made)), *expected.data_parallel);
    }

    // The published strategy costs here what it costs there.
    std::vector<std::uint32_t> choice;
    for (std::size_t i = 0; i < graph.layers.size(); ++i) {
      const PaseConfigurations& configurations = made.configurations[i];
      std::uint32_t at = 0;
      while (at < configurations.size() && !std::ranges::equal(configurations[at], expected.configurations[i])) ++at;
      ASSERT_LT(at, configurations.size()) << "layer " << i << " has no such configuration";
      choice.push_back(at);
      EXPECT_EQ((*made.problem.costs()[i].table)[at], expected.costs[i]) << "layer " << i;
    }
    EXPECT_EQ(made.problem.cost(choice), expected.cost);

    // Ours costs the same, and differs only where it must be equally good.
    const PartitionSolution solution = solve_exact(made.problem);
    EXPECT_TRUE(solution.exact);
    EXPECT_EQ(solution.cost, expected.cost);
    EXPECT_EQ(made.problem.cost(solution.choice), expected.cost);
    EXPECT_EQ(solution.order.width, expected.width);
    EXPECT_EQ(solution.order.largest_combinations, expected.combinations);
  }
}

/// Dominated configurations, other orders, one thread, tensors counted twice where there are two: the same least cost.
TEST_P(PasePublished, AnyWayToSolveFindsTheLeastCost) {
  const Published published = read_published(GetParam().file);
  const PaseGraph graph = GetParam().build(GetParam().batch);
  for (const PublishedStrategy& expected : published.strategies) {
    if (expected.devices > 16) continue;
    const PaseProblem made = pase_problem(graph, expected.devices);
    const PartitionSolution first = solve_exact(made.problem);
    const PartitionSolution alone = solve_exact(made.problem, {.parallel = false});
    EXPECT_EQ(alone.choice, first.choice);
    EXPECT_EQ(alone.lower_bound, first.lower_bound);
    const PartitionSolution reduced = solve_exact(made.problem, {.dominance_from = 0});
    EXPECT_EQ(reduced.cost, expected.cost);
    EXPECT_LT(reduced.kept_ways, reduced.ways);
    EXPECT_EQ(first.kept_ways, first.ways);
    for (const OrderRule rule : {OrderRule::min_fill, OrderRule::smallest_table}) {
      const PartitionSolution other = solve_exact(made.problem, {.order = rule});
      EXPECT_EQ(other.cost, expected.cost);
      EXPECT_EQ(other.order.width, expected.width);
    }
    const PaseProblem twice = pase_problem(graph, expected.devices, {}, PaseParallelEdges::all);
    EXPECT_EQ(twice.edges, graph.edges.size());
    EXPECT_EQ(solve_exact(twice.problem).cost, expected.cost);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, PasePublished,
                         ::testing::Values(Case{"alexnet", pase_alexnet, 128, 5},
                                           Case{"inception_v3", pase_inception_v3, 128, 5},
                                           Case{"rnnlm", pase_rnnlm, 64, 5},
                                           Case{"transformer", pase_transformer, 64, 5},
                                           Case{"resnet101", pase_resnet101, 128, 2}),
                         [](const auto& network) { return std::string(network.param.file); });

/// The paper on breadth-first order (section III-C): it runs out of memory on all but chains.
TEST(PasePublished, BreadthFirstOrderNeedsAstronomicalTables) {
  const auto sizes = [](const PaseGraph& graph) {
    const PaseProblem made = pase_problem(graph, 8);
    return elimination_order(interaction_graph(made.problem.elimination_problem()), OrderRule::breadth_first);
  };
  EXPECT_EQ(sizes(pase_alexnet()).width, 1U);
  EXPECT_EQ(sizes(pase_rnnlm()).width, 1U);
  const EliminationOrder inception = sizes(pase_inception_v3());
  EXPECT_EQ(inception.width, 11U);
  EXPECT_EQ(inception.largest_combinations, 812'823'211'200'000);
  const EliminationOrder transformer = sizes(pase_transformer());
  EXPECT_EQ(transformer.width, 37U);
  EXPECT_NEAR(transformer.largest_combinations, 2.3e61, 0.05e61);
}

/// Eighteen pairs of queries and keys, and the encoder's output read twice by six stacks.
TEST(PasePublished, TheTransformerHasTwentyFourParallelTensors) {
  EXPECT_EQ(pase_transformer().edges.size(), 256U + 24U);
}

}  // namespace
}  // namespace taso::testing
