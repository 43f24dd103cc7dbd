#include "optimizer/search.h"

#include <deque>

#include "optimizer/baseline.h"
#include "optimizer/cost_database.h"
#include "optimizer/optimize.h"
#include "tests/optimizer/fixtures.h"

namespace taso::testing {
namespace {

/// The cheapest of all graphs that rules can make of `start`.
double cheapest_reachable(const Graph& start, const RuleIndex& rules, Costs& costs) {
  constexpr std::size_t search_limit = 20'000;
  std::unordered_map<Hash128, std::vector<Graph>> met;
  std::deque<Graph> open;
  const auto visit = [&](Graph graph) {
    std::vector<Graph>& bucket = met[graph.structural_hash()];
    for (const Graph& other : bucket)
      if (other.equals(graph)) return;
    bucket.push_back(graph);
    open.push_back(std::move(graph));
  };
  Graph root = start;
  normalize(root, rules.catalog());
  visit(std::move(root));
  double best = std::numeric_limits<double>::infinity();
  while (!open.empty()) {
    EXPECT_LT(met.size(), search_limit) << "the test is not exhaustive";
    if (met.size() >= search_limit) break;
    const Graph graph = std::move(open.front());
    open.pop_front();
    best = std::min(best, costs.of(graph));
    for (const auto& [rule, match] : rules.find_all(graph))
      if (Expected<Graph> next = apply(graph, rules.rules()[rule], match, rules.catalog())) visit(*next);
  }
  return best;
}

class SearchCase : public ::testing::TestWithParam<test::TextCase> {};
INSTANTIATE_TEST_SUITE_P(Data, SearchCase, ::testing::ValuesIn(optimizer_cases()), test::case_name);

std::vector<test::TextCase> exhaustive_cases() {
  std::vector<test::TextCase> cases = optimizer_cases();
  std::erase_if(cases, [](const test::TextCase& test) { return !test.has("exhaustive"); });
  return cases;
}

class ExhaustiveCase : public ::testing::TestWithParam<test::TextCase> {};
INSTANTIATE_TEST_SUITE_P(Data, ExhaustiveCase, ::testing::ValuesIn(exhaustive_cases()), test::case_name);

TEST_P(ExhaustiveCase, FindsTheOptimum) {
  const RuleIndex rules(allowed_rules(test_rules(), rounding_of(GetParam().text("fp")), false), registry());
  Costs costs(cost_of(GetParam()));
  const Graph graph = graph_of(GetParam());
  const double optimum = cheapest_reachable(graph, rules, costs);
  SearchOptions options;
  options.alpha = alpha_of(GetParam());
  options.beam_width = 100'000;
  for (const SearchMethod method : {SearchMethod::backtracking, SearchMethod::beam}) {
    options.method = method;
    const SearchResult result = value_of(search(graph, rules, costs.target, *costs.model, options));
    EXPECT_EQ(result.best[0].cost, optimum) << to_string(method);
    EXPECT_EQ(result.best[0].cost, costs.of(result.best[0].graph));
    EXPECT_EQ(result.stop, StopReason::exhausted);
    EXPECT_TRUE(result.best[0].graph.validate());
  }
}

TEST_P(SearchCase, SameResultOnAnyNumberOfThreads) {
  const RuleIndex rules(test_rules(), registry());
  const Graph graph = graph_of(GetParam());
  std::vector<std::string> texts;
  for (const int threads : {1, 2, 7, -1, -2, -7}) {
    Costs costs("time+launches");
    SearchOptions options;
    options.threads = std::abs(threads);
    if (threads < 0) options.method = SearchMethod::beam;
    options.beam_width = 3;
    options.max_steps = 20;
    options.alpha = 1.5;
    const SearchResult result = value_of(search(graph, rules, costs.target, *costs.model, options));
    std::string text = std::to_string(result.steps) + " " + std::to_string(result.candidates) + " " +
                       std::to_string(result.duplicates) + " " + std::to_string(result.rejected) + "\n";
    for (const Candidate& candidate : result.best) text += to_string(candidate.graph);
    for (const CostCurve::Point& point : result.curve.points())
      text += std::to_string(point.step) + ": " + std::to_string(point.cost) + "\n";
    for (const std::string& key : costs.target.measured) text += key + "\n";
    texts.push_back(text);
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[0], texts[2]);
  EXPECT_EQ(texts[3], texts[4]);
  EXPECT_EQ(texts[3], texts[5]);
}

TEST_P(SearchCase, ApplicationsLeadToTheResult) {
  const RuleIndex rules(test_rules(), registry());
  Costs costs("launches");
  const Graph graph = graph_of(GetParam());
  const SearchResult result = value_of(search(graph, rules, costs.target, *costs.model, {}));
  for (const Candidate& candidate : result.best) {
    double cost = result.start_cost;
    for (const RuleApplication& application : candidate.applications) {
      EXPECT_EQ(application.cost_before, cost);
      cost = application.cost_after;
      EXPECT_FALSE(application.operators.empty());
    }
    EXPECT_EQ(candidate.cost, cost);
  }
}

/// Whole, and in parts; a part has no say in the curve of the whole but by what the whole gains.
TEST_P(SearchCase, CurveGoesFromTheStartToTheBest) {
  const RuleIndex rules(test_rules(), registry());
  Costs costs("launches");
  const Graph graph = graph_of(GetParam());
  SearchOptions options;
  for (const std::size_t part_size : {200UL, 2UL}) {
    options.part_size = part_size;
    const SearchResult result = value_of(search(graph, rules, costs.target, *costs.model, options));
    const std::vector<CostCurve::Point>& points = result.curve.points();
    EXPECT_EQ(points.front(), (CostCurve::Point{0, result.start_cost}));
    EXPECT_EQ(points.back().cost, result.best[0].cost);
    EXPECT_LE(points.back().step, result.steps);
    for (std::size_t i = 1; i < points.size(); ++i) {
      EXPECT_GT(points[i].step, points[i - 1].step);
      EXPECT_LT(points[i].cost, points[i - 1].cost);
    }
  }
}

constexpr const char* siblings_text = R"(
input x f32[1, 4]
weight a f32[4, 2]
weight b f32[4, 2]
weight c f32[4, 2]
weight d f32[4, 2]
output matmul(x, a), matmul(x, b), matmul(x, c), matmul(x, d)
)";

TEST(Search, StopsAtTheStepBudget) {
  const RuleIndex rules(test_rules(), registry());
  Costs costs("launches");
  SearchOptions options;
  options.restarts = 0;
  options.max_steps = 1;
  SearchResult result = value_of(search(graph_of(siblings_text), rules, costs.target, *costs.model, options));
  EXPECT_EQ(result.stop, StopReason::steps);
  EXPECT_EQ(result.steps, 1U);
  EXPECT_EQ(result.best[0].cost, 2);  // two pairs were merged in the one expansion
  options.max_steps = 0;
  result = value_of(search(graph_of(siblings_text), rules, costs.target, *costs.model, options));
  EXPECT_EQ(result.stop, StopReason::steps);
  EXPECT_EQ(result.best[0].cost, 4);
  EXPECT_TRUE(result.best[0].applications.empty());
}

/// Where the work budget ends a search early, the next one starts from what it found.
TEST(Search, StartsAgainFromTheBestGraph) {
  const RuleIndex rules(test_rules(), registry());
  Costs costs("launches");
  SearchOptions options;
  options.max_candidate_nodes = 1;
  options.restarts = 0;
  const SearchResult once = value_of(search(graph_of(siblings_text), rules, costs.target, *costs.model, options));
  EXPECT_EQ(once.stop, StopReason::steps);
  options.restarts = 8;
  const SearchResult again = value_of(search(graph_of(siblings_text), rules, costs.target, *costs.model, options));
  EXPECT_LT(again.best[0].cost, once.best[0].cost);
  EXPECT_EQ(again.best[0].cost, 1);
  // The record leads from the start to the result.
  Graph repeated = graph_of(siblings_text);
  normalize(repeated, registry());
  for (const RuleApplication& application : again.best[0].applications)
    for (const Substitution& rule : rules.rules())
      if (rule.name == application.rule) repeated = value_of(apply(repeated, rule, application.match, registry()));
  EXPECT_TRUE(repeated.equals(again.best[0].graph));
  options.alpha = 1;
  const SearchResult greedy = value_of(search(graph_of(siblings_text), rules, costs.target, *costs.model, options));
  EXPECT_LE(again.best[0].cost, greedy.best[0].cost);
}

/// Of each number of steps from the start, so many graphs are expanded.
TEST(Search, ABeamIsAsWideAsItIsTold) {
  const RuleIndex rules(test_rules(), registry());
  Costs costs("launches");
  SearchOptions options;
  options.method = SearchMethod::beam;
  options.alpha = 10;
  options.beam_width = 100'000;
  const SearchResult all = value_of(search(graph_of(siblings_text), rules, costs.target, *costs.model, options));
  options.beam_width = 1;
  const SearchResult one = value_of(search(graph_of(siblings_text), rules, costs.target, *costs.model, options));
  EXPECT_EQ(one.stop, StopReason::exhausted);
  EXPECT_EQ(one.best[0].cost, 1);
  EXPECT_LT(one.steps, all.steps);
  EXPECT_LE(one.steps, 4U);  // four products: no path is longer
}

/// Where an expansion would take too much of the budget, repeated cells are rewritten alike from one trial.
TEST(Search, CellsThatLookAlikeAreTriedOnce) {
  std::string text = "input x0 f32[1, 4]\n";
  constexpr int cells = 40;
  for (int i = 0; i < cells; ++i) {
    const std::string n = std::to_string(i);
    text += "weight a" + n + " f32[4, 4]\nweight b" + n + " f32[4, 4]\n";
    text += "x" + std::to_string(i + 1) + " = add(matmul(x" + n + ", a" + n + "), matmul(x" + n + ", b" + n + "))\n";
  }
  const Graph graph = graph_of(text + "output x" + std::to_string(cells) + "\n");
  const RuleIndex rules(test_rules(), registry());
  std::vector<SearchResult> results;
  for (const std::size_t budget : {std::size_t{4'000'000}, std::size_t{4000}}) {
    Costs costs("launches");
    SearchOptions options;
    options.max_candidate_nodes = budget;
    options.max_steps = 1;
    results.push_back(value_of(search(graph, rules, costs.target, *costs.model, options)));
    const Candidate& best = results.back().best[0];
    EXPECT_EQ(best.cost, costs.of(best.graph));
    double cost = results.back().start_cost;
    for (const RuleApplication& application : best.applications) {
      EXPECT_EQ(application.cost_before, cost);
      cost = application.cost_after;
    }
    EXPECT_EQ(cost, best.cost);
  }
  EXPECT_EQ(results[0].start_cost, 3 * cells);
  EXPECT_LE(results[0].best[0].cost, 2 * cells);
  EXPECT_EQ(results[1].best[0].cost, results[0].best[0].cost);
  EXPECT_LT(results[1].candidates, results[0].candidates / 2);
}

TEST(Search, StopsAtTheWorkBudget) {
  const RuleIndex rules(test_rules(), registry());
  Costs costs("launches");
  SearchOptions options;
  options.restarts = 0;
  options.max_candidate_nodes = 1;
  const SearchResult result = value_of(search(graph_of(siblings_text), rules, costs.target, *costs.model, options));
  EXPECT_EQ(result.stop, StopReason::steps);
  EXPECT_EQ(result.steps, 1U);
}

TEST(Search, StopsWithoutImprovement) {
  const RuleIndex rules(test_rules(), registry());
  Costs costs("launches");
  SearchOptions options;
  options.patience = 1;
  options.alpha = 10;
  const SearchResult result = value_of(search(graph_of(siblings_text), rules, costs.target, *costs.model, options));
  EXPECT_EQ(result.stop, StopReason::no_improvement);
  EXPECT_EQ(result.best[0].cost, 1);
}

TEST(Search, StopsAtTheTimeLimit) {
  const RuleIndex rules(test_rules(), registry());
  Costs costs("launches");
  SearchOptions options;
  options.time_limit = 0;
  const SearchResult result = value_of(search(graph_of(siblings_text), rules, costs.target, *costs.model, options));
  EXPECT_EQ(result.stop, StopReason::time);
  EXPECT_EQ(result.best.size(), 1U);
}

TEST(Search, StopsWhenInterrupted) {
  const RuleIndex rules(test_rules(), registry());
  Costs costs("launches");
  std::atomic<bool> interrupt{false};
  SearchOptions options;
  options.stop.flag = &interrupt;
  options.progress = [&](const SearchProgress& progress) {
    EXPECT_EQ(progress.start_cost, 4);
    interrupt = true;
  };
  const SearchResult result = value_of(search(graph_of(siblings_text), rules, costs.target, *costs.model, options));
  EXPECT_EQ(result.stop, StopReason::interrupted);
  EXPECT_EQ(result.steps, 1U);
  EXPECT_EQ(result.best[0].cost, 2);
}

TEST(Search, DropsQueuedGraphsForMemory) {
  const RuleIndex rules(test_rules(), registry());
  Costs costs("launches");
  SearchOptions options;
  options.alpha = 10;
  options.memory_limit = 20'000;
  const SearchResult result = value_of(search(graph_of(siblings_text), rules, costs.target, *costs.model, options));
  EXPECT_GT(result.dropped, 0U);
  EXPECT_EQ(result.best[0].cost, 1);
}

/// Matches that are given up for memory are found anew: the search goes the same way as long as no graph is dropped.
TEST(Search, GoesTheSameWayWithoutKeptMatches) {
  const RuleIndex rules(test_rules(), registry());
  std::vector<SearchResult> results;
  for (std::size_t limit = std::size_t{1} << 30; limit > 1000; limit -= limit > 200'000 ? limit / 2 : limit / 16) {
    Costs costs("launches");
    SearchOptions options;
    options.alpha = 10;
    options.memory_limit = limit;
    results.push_back(value_of(search(graph_of(siblings_text), rules, costs.target, *costs.model, options)));
    if (results.back().dropped > 0) break;
    EXPECT_EQ(results.back().steps, results[0].steps) << limit;
    EXPECT_EQ(results.back().candidates, results[0].candidates) << limit;
    EXPECT_EQ(results.back().duplicates, results[0].duplicates) << limit;
    EXPECT_TRUE(results.back().best[0].graph.equals(results[0].best[0].graph)) << limit;
  }
  EXPECT_GT(results.size(), 20U);
  EXPECT_GT(results.back().dropped, 0U);
}

TEST(Search, KeepsDifferentGraphsOnly) {
  const RuleIndex rules(test_rules(), registry());
  Costs costs("launches");
  SearchOptions options;
  options.alpha = 10;
  options.keep = 3;
  const SearchResult result = value_of(search(graph_of(siblings_text), rules, costs.target, *costs.model, options));
  ASSERT_EQ(result.best.size(), 3U);
  EXPECT_LE(result.best[0].cost, result.best[1].cost);
  EXPECT_LE(result.best[1].cost, result.best[2].cost);
  EXPECT_FALSE(result.best[0].graph.equals(result.best[1].graph));
}

TEST(Search, ReportsAMissingCost) {
  const RuleIndex rules(test_rules(), registry());
  FakeTarget target;
  CostDatabase database = CostDatabase::in_memory(target.identity());
  MeasuredCosts measured(target, database, false);
  const auto model = make_cost_model(value_of(parse_cost_formula("time")), measured);
  const auto result = search(graph_of(siblings_text), rules, target, *model, {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::cost_missing);
  EXPECT_NE(result.error().message.find("no recorded cost of the kernel 'matmul"), std::string::npos);
}

}  // namespace
}  // namespace taso::testing
