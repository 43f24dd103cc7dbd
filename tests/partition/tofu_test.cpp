#include "partition/tofu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "partition/recursive.h"
#include "tests/partition/training_graphs.h"

namespace taso {
namespace {

using test::layers_in_training;
using test::product_registry;
using test::product_strategies;
using test::TrainingGraph;
using test::value_of;

constexpr double word_bytes = 4;

struct Words {
  double one_cut = 0, exact = 0, recursive = 0;
};

/// Words moved by two layers in training on 2 devices, and on 4 devices by both searches.
Words words(std::int64_t batch, const std::vector<std::int64_t>& dims, bool replicate) {
  const TrainingGraph training = layers_in_training(batch, dims);
  const TofuCoarsening coarsening = value_of(coarsen(training.graph, product_registry(), training.groups));
  StrategyTable strategies = product_strategies();
  TofuOptions options;
  options.replicate = replicate;
  const TofuPlan exact = tofu_exact(training.graph, coarsening, {2, 2}, strategies, options);
  const TofuPlan recursive = tofu_recursive(training.graph, coarsening, {2, 2}, strategies, options);
  EXPECT_TRUE(exact.exact);
  EXPECT_FALSE(recursive.exact);
  EXPECT_EQ(recursive.steps.size(), 2U);
  return {recursive.steps.at(0) / word_bytes, exact.bytes / word_bytes, recursive.bytes / word_bytes};
}

// Tilings by rows, by columns, and whole. Values by trying everything with real-valued halves; the recursion is not
// optimal where an operand that is read whole does not become smaller.
TEST(TofuVolumes, RecursionIsNotAlwaysOptimal) {
  const struct {
    std::int64_t batch;
    std::vector<std::int64_t> dims;
    double exact, recursive;
  } cases[] = {{1000, {700, 100, 50}, 180'000, 210'000},
               {200, {512, 512, 800}, 524'800, 614'400},
               {2048, {800, 256, 512}, 1'572'864, 1'720'320}};
  for (const auto& one : cases) {
    const Words found = words(one.batch, one.dims, true);
    EXPECT_EQ(found.exact, one.exact) << one.batch;
    EXPECT_EQ(found.recursive, one.recursive) << one.batch;
  }
  EXPECT_EQ(words(1000, {700, 100, 50}, true).one_cut, 100'000);
}

/// The next choice, as a number with a digit per decision; false after the last one.
bool next_choice(const PartitionProblem& problem, std::vector<std::uint32_t>& choice) {
  for (std::size_t d = 0; d < choice.size(); ++d) {
    if (++choice[d] < problem.ways(static_cast<PartitionProblem::Decision>(d))) return true;
    choice[d] = 0;
  }
  return false;
}

// Several first steps are best; what the second one costs depends on which is taken. With none is the plan optimal.
TEST(TofuVolumes, RecursionIsNotOptimalWhateverTiesItTakes) {
  const TrainingGraph training = layers_in_training(800, {1024, 512, 400});
  const TofuCoarsening coarsening = value_of(coarsen(training.graph, product_registry(), training.groups));
  StrategyTable strategies = product_strategies();
  EXPECT_EQ(words(800, {1024, 512, 400}, false).exact, 3'442'176);
  const TofuProblem step(training.graph, coarsening, {2}, false, strategies);
  const double first = tofu_exact(training.graph, coarsening, {2}, strategies).bytes;
  double least = std::numeric_limits<double>::infinity();
  std::vector<std::uint32_t> choice(step.problem().decisions(), 0);
  std::size_t ties = 0;
  do {
    if (step.problem().cost(choice) > first) continue;
    ++ties;
    const TofuProblem second(training.graph, coarsening, {2, 2}, false, strategies, step.decisions_of(choice));
    least = std::min(least, solve_exact(second.problem()).cost);
  } while (next_choice(step.problem(), choice));
  EXPECT_GT(ties, 1U);
  EXPECT_EQ(least / word_bytes, 3'851'776);
  EXPECT_EQ(words(800, {1024, 512, 400}, false).recursive, 4'120'576);
}

TEST(TofuVolumes, RecursionIsOptimalWhereTensorsHalve) {
  const struct {
    std::int64_t batch;
    std::vector<std::int64_t> dims;
    double one_cut, exact;
  } cases[] = {{400, {300, 300, 300}, 240'000, 480'000},
               {64, {4096, 4096, 4096}, 524'288, 1'048'576},
               {512, {64, 1024, 64}, 65'536, 196'608}};
  for (const auto& one : cases) {
    const Words found = words(one.batch, one.dims, true);
    EXPECT_EQ(found.one_cut, one.one_cut) << one.batch;
    EXPECT_EQ(found.exact, one.exact) << one.batch;
    EXPECT_EQ(found.recursive, one.exact) << one.batch;
  }
}

/// The least cost of all choices, one after the other.
double least_of_all_choices(const PartitionProblem& problem) {
  std::vector<std::uint32_t> choice(problem.decisions(), 0);
  double least = std::numeric_limits<double>::infinity();
  do {
    least = std::min(least, problem.cost(choice));
  } while (next_choice(problem, choice));
  return least;
}

TEST(TofuVolumes, EliminationFindsTheLeast) {
  for (const std::vector<std::int64_t>& dims : {std::vector<std::int64_t>{6, 10, 4}, {12, 2, 30}, {8, 8, 8}}) {
    const TrainingGraph training = layers_in_training(8, dims);
    const TofuCoarsening coarsening = value_of(coarsen(training.graph, product_registry(), training.groups));
    StrategyTable strategies = product_strategies();
    for (const bool replicate : {false, true}) {
      TofuOptions options;
      options.replicate = replicate;
      const TofuProblem problem(training.graph, coarsening, {2}, replicate, strategies);
      const TofuPlan plan = tofu_exact(training.graph, coarsening, {2}, strategies, options);
      EXPECT_EQ(plan.bytes, least_of_all_choices(problem.problem()));
      EXPECT_EQ(plan.bytes, problem.problem().cost(plan.choice));
      EXPECT_EQ(plan.bytes, tofu_recursive(training.graph, coarsening, {2}, strategies, options).bytes);
    }
  }
}

/// A chain of products: few enough decisions to try all of two steps.
TEST(TofuVolumes, EliminationFindsTheLeastOfTwoSteps) {
  const Graph graph = value_of(parse_graph(
      "input x f32[8, 4]\ninput w f32[4, 16]\noutput product_of_columns(x, matmul(x, w))\n", "", product_registry()));
  const TofuCoarsening coarsening = value_of(coarsen(graph, product_registry()));
  StrategyTable strategies = product_strategies();
  const TofuProblem problem(graph, coarsening, {2, 2}, false, strategies);
  const TofuPlan exact = tofu_exact(graph, coarsening, {2, 2}, strategies);
  EXPECT_EQ(exact.bytes, least_of_all_choices(problem.problem()));
  const TofuPlan recursive = tofu_recursive(graph, coarsening, {2, 2}, strategies);
  EXPECT_GE(recursive.bytes, exact.bytes);
  const TofuPlan both = tofu_exact(graph, coarsening, {2, 2}, strategies, {}, recursive.decisions);
  EXPECT_EQ(both.bytes, exact.bytes);
}

// Where tables are too large, the plan is at least as good as the recursion's, and there is a bound.
TEST(TofuVolumes, BoundedTablesImproveTheRecursion) {
  const TrainingGraph training = layers_in_training(8, {6, 10, 4, 12});
  const TofuCoarsening coarsening = value_of(coarsen(training.graph, product_registry(), training.groups));
  StrategyTable strategies = product_strategies();
  const TofuPlan recursive = tofu_recursive(training.graph, coarsening, {2, 2}, strategies);
  const TofuPlan exact = tofu_exact(training.graph, coarsening, {2, 2}, strategies);
  TofuOptions bounded;
  bounded.solver.maximum_table = 4;
  const TofuPlan rough = tofu_exact(training.graph, coarsening, {2, 2}, strategies, bounded, recursive.decisions);
  EXPECT_LE(rough.bytes, recursive.bytes);
  EXPECT_GE(rough.bytes, exact.bytes);
  EXPECT_LE(rough.lower_bound, exact.bytes);
}

TEST(TofuCounts, AreThoseOfThePaper) {
  EXPECT_EQ(count_flat_tilings({64, 64, 64, 64}, {2, 2, 2}, false), 20U);
  EXPECT_EQ(tilings_of({64, 64, 64, 64}, {2}, false).size(), 4U);
  // The group of a convolution: three tensors of four axes and their gradients.
  const Graph graph =
      value_of(parse_graph("input x f32[64, 64, 64, 64]\ninput w f32[64, 64, 8, 8]\n"
                           "output conv2d(x, w; pads=[4, 4, 3, 3])\n",
                           "", product_registry()));
  const TofuCoarsening coarsening = value_of(coarsen(graph, product_registry()));
  double all = 1, step = 1;
  for (const Value& tensor : coarsening.first)
    for (int with_gradient = 0; with_gradient < 2; ++with_gradient) {
      all *= static_cast<double>(count_flat_tilings(graph.type(tensor).shape, {2, 2, 2}, false));
      step *= static_cast<double>(tilings_of(graph.type(tensor).shape, {2}, false).size());
    }
  EXPECT_EQ(all, 64'000'000);
  EXPECT_EQ(static_cast<double>(recursion_steps(8).size()) * step, 12'288);
  // By its definition seven variables can be cut: four digits of the output, three of the reduction.
  StrategyTable strategies = product_strategies();
  EXPECT_EQ(TofuProblem(graph, coarsening, {2}, false, strategies).configurations(0).size(), 7U);
}

/// "x: data 8x4x18 = 576, filters 192 | data ..." of an application on two devices.
std::vector<std::string> volumes_of_pieces(const std::string& text) {
  static const OperatorRegistry own =
      value_of(OperatorRegistry::load(std::string(TASO_SOURCE_DIR) + "/tests/partition/operators", &test::registry()));
  const Graph graph = value_of(parse_graph(text, "", own));
  StrategyTable strategies(
      own, [](std::string_view op) { return derive_strategies(own, op).strategies; },
      [](std::string_view) { return std::vector<PartialPassage>(); });
  const TofuCoarsening coarsening = value_of(coarsen(graph, own));
  const TofuProblem problem(graph, coarsening, {2}, false, strategies);
  std::vector<std::string> found;
  for (const NodeConfiguration& configuration : problem.configurations(0)) {
    std::string line = configuration.to_string() + ":";
    for (std::size_t device = 0; device < 2; ++device)
      for (const Placement& read : configuration.reads) line += " " + std::to_string(volume_of(read.boxes[device]));
    found.push_back(line);
  }
  return found;
}

// What each of two workers reads of data and filters, by each of the five strategies of Tofu's convolution. A piece of
// shift_two is an application of it, too, and is given the two elements before those that it reads.
TEST(TofuVolumes, OfTheConvolutionOfThePaper) {
  EXPECT_THAT(
      volumes_of_pieces("input data f32[8, 4, 34]\ninput filters f32[4, 16, 3]\noutput conv1d(data, filters)\n"),
      ::testing::ElementsAre("n@-3: 544 192 544 192", "o@-2: 1088 96 1088 96", "x@-1: 576 192 576 192",
                             "i (sum): 544 96 544 96", "d (sum): 1024 64 1056 128"));
  EXPECT_THAT(volumes_of_pieces("input a f32[12]\noutput shift_two(a)\n"), ::testing::ElementsAre("i@-1: 7 7"));
}

TEST(TofuTilings, CutAxesThatAreLongEnough) {
  EXPECT_EQ(tilings_of({4, 1}, {2, 2, 2}, false),
            (std::vector<TensorTiling>{{std::size_t{0}, std::size_t{0}, std::nullopt}}));
  EXPECT_EQ(tilings_of({}, {2}, false), (std::vector<TensorTiling>{{std::nullopt}}));
  EXPECT_EQ(count_flat_tilings({8, 8}, {2, 2}, true), 6U);  // C(2 + 2, 2), as SoyBean counts them
  EXPECT_EQ(tilings_of({8, 8}, {2, 2}, true).size(), 9U);
  const std::vector<IndexBox> boxes = boxes_of({7, 3}, {std::size_t{0}, std::size_t{1}}, {2, 3});
  ASSERT_EQ(boxes.size(), 6U);
  EXPECT_EQ(boxes[4], (IndexBox{{3, 7}, {1, 2}}));
  EXPECT_EQ(boxes_of({8}, {std::size_t{0}, std::size_t{0}}, {2, 2})[2], (IndexBox{{4, 6}}));
}

}  // namespace
}  // namespace taso
