#include "optimizer/parts.h"

#include <algorithm>
#include <unordered_map>

#include "optimizer/cost_database.h"
#include "optimizer/cost_model.h"
#include "optimizer/search.h"
#include "tests/optimizer/fixtures.h"

namespace taso::testing {
namespace {

/// Cells in a row; in each, two products can be merged. `wide` is made in each cell, next to what the next one reads.
std::string cells(int count) {
  std::string text = "input x0 f32[1, 4]\n";
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    text += "weight a" + n + " f32[4, 4]\nweight b" + n + " f32[4, 4]\n";
    text += "wide" + n + " = concat(tanh(x" + n + "), relu(x" + n + "); axis=-1)\n";
    text += "y" + n + " = relu(slice(wide" + n + "; starts=[0, 2], sizes=[1, 4], steps=[1, 1]))\n";
    text += "x" + std::to_string(i + 1) + " = add(matmul(y" + n + ", a" + n + "), matmul(y" + n + ", b" + n + "))\n";
  }
  return text + "output x" + std::to_string(count) + "\n";
}

Graph normal(const std::string& text) {
  Graph graph = graph_of(text);
  normalize(graph, registry());
  return graph;
}

TEST(Parts, RangesHoldEveryWorkingNodeOnce) {
  const Graph graph = normal(cells(9));
  for (const std::size_t size : {2UL, 5UL, 10UL, 1000UL})
    for (const bool shifted : {false, true}) {
      const auto ranges = cut_into_ranges(graph, size, shifted);
      std::set<NodeId> seen;
      for (const auto& range : ranges) {
        EXPECT_FALSE(range.empty());
        EXPECT_LE(range.size(), size + size / 2);
        for (const NodeId id : range) EXPECT_TRUE(seen.insert(id).second);
      }
      EXPECT_EQ(seen.size(), working_nodes(graph));
    }
  EXPECT_EQ(working_nodes(graph), 9U * 8U);
}

/// Nothing that is read by a range is made behind it: a rewrite inside cannot close a cycle.
TEST(Parts, NoPathLeavesARangeAndComesBack) {
  const Graph graph = normal(cells(9));
  for (const auto& range : cut_into_ranges(graph, 7, false)) {
    const GraphPart part = extract_part(graph, range);
    for (const Value& output : part.inputs)
      for (const NodeId id : range) EXPECT_FALSE(graph.reaches(id, output.node));
  }
}

/// Between the cells four floats cross, inside them more.
TEST(Parts, CutsWhereFewBytesCross) {
  const Graph graph = normal(cells(9));
  const auto ranges = cut_into_ranges(graph, 8, false);
  ASSERT_EQ(ranges.size(), 9U);
  for (const auto& range : ranges) {
    const GraphPart part = extract_part(graph, range);
    ASSERT_EQ(part.inputs.size(), 1U);
    ASSERT_EQ(part.graph.outputs().size(), 1U);
    EXPECT_EQ(part.graph.type(part.graph.outputs()[0]).shape, (Shape{1, 4}));
  }
  const auto shifted = cut_into_ranges(graph, 8, true);
  EXPECT_LT(shifted[0].size(), ranges[0].size());
}

TEST(Parts, APartHasTheNodesTheirWeightsAndWhatIsReadOfThem) {
  const Graph graph = normal(R"(
input x f32[2, 4]
weight w f32[4, 4]
p = matmul(x, transpose(w; perm=[1, 0]))
q = relu(p)
r = tanh(q)
output add(r, q), r
)");
  const std::vector<NodeId> order = graph.topological_order();
  std::vector<NodeId> working;
  for (const NodeId id : order)
    if (graph.node(id).kind == NodeKind::op && !graph.node(id).weight_only) working.push_back(id);
  ASSERT_EQ(working.size(), 4U);  // the product, relu, tanh, the sum
  const GraphPart part = extract_part(graph, std::span(working).subspan(0, 2));
  EXPECT_TRUE(part.graph.validate());
  EXPECT_EQ(part.inputs, (std::vector<Value>{{graph.inputs()[0], 0}}));
  EXPECT_EQ(working_nodes(part.graph), 2U);
  EXPECT_EQ(part.graph.size(), 5U);  // and the input, the weight, its transpose
  ASSERT_EQ(part.graph.outputs().size(), 1U);
  EXPECT_EQ(part.graph.node(part.graph.outputs()[0].node).op, "relu");
  const GraphPart rest = extract_part(graph, std::span(working).subspan(2));
  EXPECT_EQ(rest.inputs.size(), 1U);
  EXPECT_EQ(rest.graph.outputs().size(), 2U);
}

TEST(Parts, SignaturesTellPartsApartButForTheirWeights) {
  const Graph graph = normal(cells(4));
  const auto ranges = cut_into_ranges(graph, 8, false);
  ASSERT_EQ(ranges.size(), 4U);
  const Hash128 first = extract_part(graph, ranges[0]).signature;
  EXPECT_EQ(extract_part(graph, ranges[1]).signature, first);
  EXPECT_EQ(extract_part(graph, ranges[2]).signature, first);
  EXPECT_NE(extract_part(graph, std::span(ranges[1]).subspan(1)).signature, first);
}

TEST(Parts, APartIsFoundInItsWholeOnly) {
  const Graph graph = normal(cells(3));
  const auto ranges = cut_into_ranges(graph, 8, false);
  const GraphPart part = extract_part(graph, ranges[1]);
  EXPECT_TRUE(PartPlace::find(part.graph, part.inputs, graph, registry()));
  EXPECT_FALSE(PartPlace::find(part.graph, {{graph.inputs()[0], 0}}, graph, registry()));
  EXPECT_FALSE(PartPlace::find(part.graph, {{graph.id_bound(), 0}}, graph, registry()));
}

/// The result, the costs of the steps and the steps themselves belong together.
void expect_consistent(const SearchResult& result, const Graph& start, const RuleIndex& rules, Costs& costs) {
  for (const Candidate& candidate : result.best) {
    KernelPlan plan = value_of(costs.target.plan(candidate.graph));
    EXPECT_EQ(value_of(costs.model->cost(candidate.graph, plan)), candidate.cost);
    EXPECT_TRUE(candidate.graph.validate());
    double cost = result.start_cost;
    Graph graph = start;
    normalize(graph, rules.catalog());
    for (const RuleApplication& step : candidate.applications) {
      EXPECT_EQ(step.cost_before, cost);
      cost = step.cost_after;
      const auto rule = std::find_if(rules.rules().begin(), rules.rules().end(),
                                     [&](const Substitution& r) { return r.name == step.rule; });
      graph = value_of(apply(graph, *rule, step.match, rules.catalog()));
    }
    EXPECT_EQ(cost, candidate.cost);
    EXPECT_TRUE(graph.equals(candidate.graph));
  }
}

/// In parts of any size everything is found that is found in the whole, and parts that look alike are searched once.
TEST(Parts, ASearchInPartsFindsWhatASearchOfTheWholeFinds) {
  const RuleIndex rules(test_rules(), registry());
  const Graph graph = graph_of(cells(12));
  Costs whole("launches");
  const SearchResult expected = value_of(search(graph, rules, whole.target, *whole.model, {}));
  EXPECT_LT(expected.best[0].cost, expected.start_cost);
  for (const std::size_t size : {2UL, 3UL, 5UL, 8UL, 16UL}) {
    Costs costs("launches");
    SearchOptions options;
    options.part_size = size;
    const SearchResult result = value_of(search(graph, rules, costs.target, *costs.model, options));
    EXPECT_EQ(result.best[0].cost, expected.best[0].cost) << size;
    EXPECT_GT(result.parts, 0U);
    expect_consistent(result, graph, rules, costs);
    if (size == 8) {
      EXPECT_LE(result.parts, 12U);  // of more than 24 ranges of two ways to cut
    }
  }
}

/// Two products that can be merged stand on both sides of a cut; cut the other way they do not.
TEST(Parts, CutsAreMoved) {
  const RuleIndex rules(test_rules(), registry());
  const Graph graph = graph_of(cells(6));
  Costs costs("launches");
  SearchOptions options;
  options.part_size = 4;
  const SearchResult result = value_of(search(graph, rules, costs.target, *costs.model, options));
  EXPECT_LE(result.best[0].cost, result.start_cost - 6);
}

TEST(Parts, SmallGraphsAreSearchedWhole) {
  const RuleIndex rules(test_rules(), registry());
  Costs costs("launches");
  SearchOptions options;
  options.part_size = 8;
  EXPECT_EQ(value_of(search(graph_of(cells(3)), rules, costs.target, *costs.model, options)).parts, 0U);
  EXPECT_GT(value_of(search(graph_of(cells(4)), rules, costs.target, *costs.model, options)).parts, 0U);
}

TEST(Parts, TheSameOnAnyNumberOfThreads) {
  const RuleIndex rules(test_rules(), registry());
  std::vector<std::string> texts;
  for (const int threads : {1, 2, 7}) {
    Costs costs("time+launches");
    SearchOptions options;
    options.threads = threads;
    options.part_size = 5;
    options.alpha = 1.5;
    options.max_steps = 20;
    const SearchResult result = value_of(search(graph_of(cells(8)), rules, costs.target, *costs.model, options));
    std::string text = std::to_string(result.steps) + " " + std::to_string(result.candidates) + " " +
                       std::to_string(result.parts) + "\n";
    for (const Candidate& candidate : result.best) text += to_string(candidate.graph);
    texts.push_back(text);
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[0], texts[2]);
}

TEST(Parts, StopsWhenInterruptedAndAtTheTimeLimit) {
  const RuleIndex rules(test_rules(), registry());
  const Graph graph = graph_of(cells(8));
  Costs costs("launches");
  std::atomic<bool> interrupt{false};
  SearchOptions options;
  options.part_size = 5;
  options.stop.flag = &interrupt;
  options.progress = [&](const SearchProgress& progress) {
    EXPECT_LE(progress.best_cost, progress.start_cost);
    interrupt = true;
  };
  SearchResult result = value_of(search(graph, rules, costs.target, *costs.model, options));
  EXPECT_EQ(result.stop, StopReason::interrupted);
  EXPECT_EQ(result.parts, 1U);
  expect_consistent(result, graph, rules, costs);
  options.stop = {};
  options.time_limit = 0;
  result = value_of(search(graph, rules, costs.target, *costs.model, options));
  EXPECT_EQ(result.stop, StopReason::time);
  EXPECT_EQ(result.best.size(), 1U);
  EXPECT_TRUE(result.best[0].applications.empty());
}

TEST(Parts, TheWorkBudgetIsThatOfAllParts) {
  const RuleIndex rules(test_rules(), registry());
  Costs costs("launches");
  SearchOptions options;
  options.restarts = 0;
  options.part_size = 5;
  options.max_candidate_nodes = 300;
  const SearchResult result = value_of(search(graph_of(cells(20)), rules, costs.target, *costs.model, options));
  EXPECT_EQ(result.stop, StopReason::steps);
  EXPECT_LT(result.candidate_nodes, 1500U);  // the least of each part is one expansion
}

TEST(Parts, AMissingCostIsAnError) {
  const RuleIndex rules(test_rules(), registry());
  FakeTarget target;
  CostDatabase database = CostDatabase::in_memory(target.identity());
  MeasuredCosts measured(target, database, false);
  const auto model = make_cost_model(value_of(parse_cost_formula("time")), measured);
  SearchOptions options;
  options.part_size = 4;
  const auto result = search(graph_of(cells(8)), rules, target, *model, options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::cost_missing);
}

}  // namespace
}  // namespace taso::testing
