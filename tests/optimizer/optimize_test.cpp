#include "optimizer/optimize.h"

#include <algorithm>
#include <atomic>

#include "optimizer/cost_database.h"
#include "optimizer/paired_times.h"
#include "tests/optimizer/fixtures.h"

namespace taso::testing {
namespace {

class OptimizeCase : public ::testing::TestWithParam<test::TextCase> {};
INSTANTIATE_TEST_SUITE_P(Data, OptimizeCase, ::testing::ValuesIn(optimizer_cases()), test::case_name);

TEST_P(OptimizeCase, GivesWhatIsExpected) {
  const test::TextCase& test = GetParam();
  const RuleIndex rules(test_rules(), registry());
  FakeTarget target;
  CostDatabase database = CostDatabase::in_memory(target.identity());
  MeasuredCosts measured(target, database, true);
  const auto model = make_cost_model(value_of(parse_cost_formula(cost_of(test))), measured);
  OptimizeOptions options;
  options.rounding = rounding_of(test.text("fp"));
  options.search.alpha = alpha_of(test);
  options.search.max_steps = static_cast<std::size_t>(test.integer("max_steps", 1000));
  const OptimizeResult result = value_of(optimize(graph_of(test), rules, library(), measured, *model, options));
  EXPECT_TRUE(test.has("result") || test.has("baseline") || test.has("choice")) << "nothing is expected";
  EXPECT_EQ(result.original.cost, test.number("original", result.original.cost));
  EXPECT_EQ(result.baseline.cost, test.number("baseline", result.baseline.cost));
  EXPECT_EQ(result.result.cost, test.number("result", result.result.cost)) << to_string(result.graph);
  EXPECT_EQ(to_string(result.choice), test.text("choice", to_string(result.choice)));
  EXPECT_EQ(to_string(result.search.stop), test.text("stop", to_string(result.search.stop)));
  for (const std::string& use : test.all("uses")) {
    const std::vector<std::string> words = test::words_of(use);
    ASSERT_EQ(words.size(), 2U) << test.place() << ": uses RULE N";
    EXPECT_EQ(std::count_if(result.applications.begin(), result.applications.end(),
                            [&](const RuleApplication& a) { return a.rule == words[0]; }),
              std::stol(words[1]));
  }
  EXPECT_EQ(result.gain, result.choice == Choice::optimized);
  if (result.choice == Choice::original) {
    EXPECT_FALSE(result.check.has_value());
  } else {
    ASSERT_TRUE(result.check.has_value());
    EXPECT_TRUE(result.check->passed);
    EXPECT_FALSE(result.check->vacuous);
  }
}

/// Three products, mergeable in two steps; each kernel costs the same, so merging pays by the sum of times.
class ChoiceByTime : public ::testing::Test {
 protected:
  OptimizeResult run(const OptimizeOptions& options = {}) {
    const RuleIndex rules(test_rules(), registry());
    MeasuredCosts measured(target, database, true);
    const auto model = make_cost_model(value_of(parse_cost_formula("time")), measured);
    return value_of(optimize(graph, rules, library(), measured, *model, options));
  }
  FakeTarget target;
  CostDatabase database = CostDatabase::in_memory("fake device");
  const Graph graph = graph_of(R"(
input x f32[1, 8]
weight a f32[8, 4]
weight b f32[8, 4]
weight c f32[8, 4]
weight d f32[4]
output add(matmul(x, a), broadcast(d; shape=[1, 4])), matmul(x, b), matmul(x, c)
)");
};

TEST_F(ChoiceByTime, TakesTheFastestCandidate) {
  target.graph_seconds = {1.0, 1.1, 0.9, 0.7, 0.8};
  const OptimizeResult result = run();
  EXPECT_EQ(result.choice, Choice::optimized);
  EXPECT_TRUE(result.gain);
  EXPECT_EQ(result.contenders[0].name, "baseline");
  EXPECT_EQ(result.contenders[1].name, "original");
  const double fastest = result.contenders.size() > 3 ? 0.7 : 0.9;
  EXPECT_EQ(result.result.measured_seconds, fastest);
}

TEST_F(ChoiceByTime, ADifferenceWithinTheNoiseIsNoGain) {
  target.graph_seconds = {1.0, 1.1, 0.99, 0.985, 0.99};
  target.noise = 0.02;
  const OptimizeResult result = run();
  EXPECT_EQ(result.choice, Choice::baseline);
  EXPECT_FALSE(result.gain);
  EXPECT_EQ(result.baseline_applications, result.applications.size());
}

TEST_F(ChoiceByTime, AfterAFinalItsNoiseCountsAndItsGraphAlone) {
  target.graph_seconds = {1.0, 1.1, 0.99, 0.95, 0.95};
  target.noise = 0.1;
  target.final = GraphTimes::Final{2, 0.005};
  const OptimizeResult result = run();
  EXPECT_EQ(result.choice, Choice::optimized);
  EXPECT_EQ(result.result.measured_seconds, 0.99);
  EXPECT_EQ(result.noise, 0.005);
  EXPECT_EQ(result.noise_of_references, 0.1);
  EXPECT_TRUE(result.contenders[2].in_final);
  // Recorded, with the date.
  const OptimizeResult again = run();
  EXPECT_EQ(again.result.measured_seconds, 0.99);
  EXPECT_EQ(again.noise, 0.005);
  EXPECT_EQ(again.noise_of_references, 0.1);
  EXPECT_GT(again.timed_on, 0);
  EXPECT_EQ(target.timed, 1);
  // What was best before the final, and is not after it, is not taken, nor is any other.
  database = CostDatabase::in_memory("fake device");
  target.final = GraphTimes::Final{2, 0.02};
  EXPECT_FALSE(run().gain);
  // Of references its noise counts for these.
  database = CostDatabase::in_memory("fake device");
  target.graph_seconds = {1.0, 0.95, 1, 1, 1};
  target.final = GraphTimes::Final{1, 0.02};
  const OptimizeResult original = run();
  EXPECT_EQ(original.choice, Choice::original);
  EXPECT_EQ(original.noise, 0.1);
  EXPECT_EQ(original.noise_of_references, 0.02);
}

TEST_F(ChoiceByTime, WhatEndsAFinalLeavesTheTimesBefore) {
  target.graph_seconds = {1.0, 1.1, 0.7, 0.7, 0.7};
  target.cut_short = Error{ErrorCode::interrupted, "interrupted", {}};
  const OptimizeResult interrupted = run();
  EXPECT_TRUE(interrupted.gain);
  EXPECT_EQ(interrupted.result.measured_seconds, 0.7);
  EXPECT_EQ(interrupted.search.stop, StopReason::time);
  target.cut_short = Error{ErrorCode::device_unavailable, "it is gone", {}};
  const OptimizeResult failed = run();
  EXPECT_TRUE(failed.gain);
  EXPECT_TRUE(std::count(failed.notes.begin(), failed.notes.end(),
                         "the final failed, what was timed before decides: it is gone"));
}

TEST_F(ChoiceByTime, TheOriginalComesBackWhenTheBaselineIsSlower) {
  target.graph_seconds = {1.0, 0.8, 1.2, 1.2, 1.2};
  const OptimizeResult result = run();
  EXPECT_EQ(result.choice, Choice::original);
  EXPECT_FALSE(result.gain);
  EXPECT_TRUE(result.applications.empty());
}

TEST_F(ChoiceByTime, TheOriginalComesBackWhenItBeatsTheBestCandidate) {
  target.graph_seconds = {1.0, 0.8, 0.9, 0.9, 0.9};
  const OptimizeResult result = run();
  EXPECT_EQ(result.choice, Choice::original);
  EXPECT_FALSE(result.gain);
  EXPECT_TRUE(result.applications.empty());
}

TEST_F(ChoiceByTime, WhatIsRunOfTheFileCompetes) {
  target.graph_seconds = {3.0e-6, 3.3e-6, 2.7e-6, 2.1e-6, 2.4e-6};
  target.profile_fails = ErrorCode::device_unavailable;
  OptimizeOptions options;
  // The file of every graph is run as the original is: no graph is left to compete with the baseline.
  options.as_run = [&](const Graph&) -> Expected<Graph> {
    Graph run = graph;
    normalize(run, registry());
    return run;
  };
  const OptimizeResult as_original = run(options);
  EXPECT_EQ(as_original.contenders.size(), 3U);  // once, as it is not the baseline
  EXPECT_EQ(as_original.result.kernels, as_original.original.kernels);
  // One that cannot be read again competes as it was found.
  options.as_run = [](const Graph&) -> Expected<Graph> { return bad_input("unreadable", {"file"}); };
  const OptimizeResult unread = run(options);
  ASSERT_FALSE(unread.notes.empty());
  EXPECT_NE(unread.notes[0].find("is timed as it was found, not as its file is run: unreadable"), std::string::npos);
  EXPECT_TRUE(unread.gain);
}

TEST_F(ChoiceByTime, PricesThatTimesContradictAreCorrected) {
  // By itself matmul_bias costs nothing; inside of graphs it takes longer than the two operators that it replaces.
  target.seconds_of_op = {{"matmul_bias_act", 1e-9}, {"matmul", 1e-6}, {"add", 1e-6}};
  target.seconds_inside = {{"matmul_bias_act", 9e-6}};
  target.graph_seconds_from_inside = true;
  OptimizeOptions options;
  options.search.max_steps = 0;
  const OptimizeResult result = run(options);
  EXPECT_EQ(result.choice, Choice::original);
  ASSERT_EQ(result.corrected.size(), 1U);
  EXPECT_TRUE(result.corrected[0].kernel.starts_with("matmul_bias")) << result.corrected[0].kernel;
  EXPECT_EQ(result.corrected[0].before, 1e-9);
  EXPECT_EQ(result.corrected[0].after, 9e-6);
  ASSERT_FALSE(result.notes.empty());
  EXPECT_NE(result.notes[0].find("the costs of 1 kernel were corrected"), std::string::npos) << result.notes[0];
  EXPECT_GT(result.baseline.cost, result.original.cost);
  // What was corrected stays so.
  EXPECT_TRUE(run(options).corrected.empty());
}

TEST_F(ChoiceByTime, PricesThatPromiseMoreThanThereIsAreCorrected) {
  // Inside of graphs matmul_bias takes as long as what it replaces: no graph is slower than one that should be faster.
  target.seconds_of_op = {{"matmul_bias_act", 1e-9}, {"matmul", 1e-6}, {"add", 1e-6}};
  target.seconds_inside = {{"matmul_bias_act", 2e-6}};
  target.graph_seconds_from_inside = true;
  OptimizeOptions options;
  options.search.max_steps = 0;
  const OptimizeResult result = run(options);
  ASSERT_EQ(result.corrected.size(), 1U);
  EXPECT_TRUE(result.corrected[0].kernel.starts_with("matmul_bias")) << result.corrected[0].kernel;
  EXPECT_EQ(result.corrected[0].after, 2e-6);
}

/// Inside of graphs a kernel takes 13 us instead of 9, which makes 33 us of the 29 that are predicted.
TEST_F(ChoiceByTime, PricesThatPromiseALittleMoreStay) {
  target.seconds_of_op = {{"matmul_bias_act", 9e-6}, {"matmul", 10e-6}, {"add", 5e-6}};
  target.seconds_inside = {{"matmul_bias_act", 13e-6}};
  target.graph_seconds_from_inside = true;
  OptimizeOptions options;
  options.search.max_steps = 0;
  EXPECT_TRUE(run(options).corrected.empty());
}

TEST_F(ChoiceByTime, WhatWasChosenStandsWherePricesCannotBeCorrected) {
  target.seconds_of_op = {{"matmul_bias_act", 1e-9}, {"matmul", 1e-6}, {"add", 1e-6}};
  target.seconds_inside = {{"matmul_bias_act", 9e-6}};
  target.graph_seconds_from_inside = true;
  OptimizeOptions options;
  options.search.max_steps = 0;
  target.profile_fails = ErrorCode::device_unavailable;
  const OptimizeResult failed = run(options);
  EXPECT_EQ(failed.choice, Choice::original);
  EXPECT_TRUE(failed.noise);
  ASSERT_FALSE(failed.notes.empty());
  EXPECT_TRUE(std::count(failed.notes.begin(), failed.notes.end(),
                         "costs that whole graphs contradict were not corrected: no profile here"))
      << failed.notes.back();
  // The user has the result that was chosen, not none.
  database = CostDatabase::in_memory("fake device");
  target.profile_fails = ErrorCode::interrupted;
  const OptimizeResult interrupted = run(options);
  EXPECT_EQ(interrupted.choice, Choice::original);
  EXPECT_TRUE(interrupted.noise);
  EXPECT_EQ(interrupted.search.stop, StopReason::time);  // It was not the user.
}

/// Two siblings of unequal size: merged they seem to cost (9/8)^2 of the larger one, 1.25 times the two by themselves.
OptimizeResult optimize_siblings(FakeTarget& target, std::vector<double> graph_seconds) {
  const Graph graph =
      graph_of("input x f32[1, 8]\nweight a f32[8, 16]\nweight b f32[8, 2]\noutput matmul(x, a), matmul(x, b)\n");
  const RuleIndex rules(test_rules(), registry());
  target.seconds_per_flop_squared = 1e-9;
  target.graph_seconds = std::move(graph_seconds);
  target.profile_fails = ErrorCode::device_unavailable;  // nothing is corrected
  CostDatabase database = CostDatabase::in_memory("fake device");
  MeasuredCosts measured(target, database, true);
  const auto model = make_cost_model(value_of(parse_cost_formula("time")), measured);
  return value_of(optimize(graph, rules, library(), measured, *model, {}));
}

TEST(FewestLaunches, CompeteWhereGraphsAreTimed) {
  FakeTarget target;
  const OptimizeResult result = optimize_siblings(target, {8e-5, 5e-5});
  EXPECT_EQ(result.choice, Choice::optimized);
  ASSERT_EQ(result.contenders.size(), 3U);
  EXPECT_EQ(result.contenders[2].name, "fewest launches");
  EXPECT_GT(result.contenders[2].cost, result.contenders[0].cost);
  EXPECT_EQ(result.result.kernels, 1U);
}

/// Kernels are measured to take 67 us in the baseline, which takes 150 us whole: something else uses the machine.
TEST(FewestLaunches, AreNotBelievedOfADisturbedMachine) {
  FakeTarget target;
  const OptimizeResult result = optimize_siblings(target, {15e-5, 10e-5});
  EXPECT_EQ(result.choice, Choice::original);
  EXPECT_FALSE(result.gain);
  ASSERT_FALSE(result.notes.empty());
  EXPECT_EQ(
      result.notes[0],
      "fewest launches was the fastest, and by its kernels is slower than the baseline, which takes much longer now "
      "than its kernels by themselves: something else uses the machine, so it is left out");
}

/// What costs less by its kernels, too, is.
TEST_F(ChoiceByTime, ACheaperGraphIsTakenOfADisturbedMachine) {
  target.graph_seconds = {1.0, 1.0, 0.7, 0.7, 0.7};
  const OptimizeResult result = run();
  EXPECT_TRUE(result.gain);
  EXPECT_LT(result.result.cost, result.baseline.cost);
}

/// Where products are one, it copies what they make: launches do not get fewer.
class CopyingTarget final : public FakeTarget {
 public:
  [[nodiscard]] Expected<KernelPlan> plan(const Graph& graph) const override {
    TASO_ASSIGN(KernelPlan plan, plain_.plan(graph));
    KernelInfo copy;
    copy.key = "a copy";
    copy.hash = hash_text(copy.key);
    while (plan.launches.size() < 2)
      plan.launches.push_back({std::make_shared<const KernelInfo>(copy), plan.launches[0].node});
    return plan;
  }
  [[nodiscard]] const Target& for_launches() const override { return plain_; }

 private:
  FakeTarget plain_;
};

/// By the costs of their kernels both steps pay; one of them does not in the whole graph.
TEST(WithoutARule, WhatDoesNotPayInTheWholeGraphIsLeftOut) {
  const Graph graph = graph_of(R"(
input x f32[1, 8]
input y f32[1, 8]
input z f32[1, 8]
weight a f32[8, 4]
weight b f32[8, 4]
output matmul(x, a), matmul(x, b), add(mul(x, y), mul(z, y))
)");
  const RuleIndex rules(test_rules(), registry());
  FakeTarget target;
  CostDatabase database = CostDatabase::in_memory("fake device");
  MeasuredCosts measured(target, database, true);
  const auto model = make_cost_model(value_of(parse_cost_formula("time")), measured);
  OptimizeOptions options;
  options.rounding = Rounding::fast;
  options.timed_candidates = 1;
  target.graph_seconds = {1.0, 0.9, 0.9, 0.7};
  const OptimizeResult result = value_of(optimize(graph, rules, library(), measured, *model, options));
  ASSERT_EQ(result.contenders.size(), 5U);
  EXPECT_EQ(result.contenders[2].name, "candidate 1");
  EXPECT_EQ(result.contenders[3].name, "without factor_right");
  EXPECT_EQ(result.contenders[4].name, "without merge_matmul");
  EXPECT_EQ(result.result.measured_seconds, 0.7);
  ASSERT_EQ(result.applications.size(), 1U);
  EXPECT_EQ(result.applications[0].rule, "factor_right");
  // What is chosen by costs alone has no need of other graphs.
  options.timed_candidates = 0;
  EXPECT_EQ(value_of(optimize(graph, rules, library(), measured, *model, options)).contenders.size(), 3U);
}

TEST(FewestLaunches, AreThoseOfTheTargetForLaunches) {
  CopyingTarget target;
  const OptimizeResult result = optimize_siblings(target, {8e-5, 5e-5});
  EXPECT_EQ(result.choice, Choice::optimized);
  ASSERT_EQ(result.contenders.size(), 3U);
  EXPECT_EQ(result.contenders[2].name, "fewest launches");
  EXPECT_EQ(result.result.kernels, 2U);
  EXPECT_EQ(result.original.kernels, 2U);
}

/// Counts the graphs that are planned in a search for the fewest launches.
class CountingTarget final : public FakeTarget {
 public:
  [[nodiscard]] const Target& for_launches() const override { return counted_; }
  [[nodiscard]] std::size_t planned() const { return counted_.planned; }

 private:
  struct Counted final : FakeTarget {
    [[nodiscard]] Expected<KernelPlan> plan(const Graph& graph) const override {
      ++planned;
      return FakeTarget::plan(graph);
    }
    mutable std::atomic<std::size_t> planned = 0;
  };
  Counted counted_;
};

/// After prices were corrected all that depends on them is searched for again.
TEST(FewestLaunches, AreSearchedForOnce) {
  const Graph graph = graph_of(R"(
input x f32[1, 8]
weight a f32[8, 4]
weight b f32[8, 4]
weight d f32[4]
output add(matmul(x, a), broadcast(d; shape=[1, 4])), matmul(x, b)
)");
  const RuleIndex rules(test_rules(), registry());
  std::vector<std::size_t> planned;
  for (const double inside : {1e-6, 2e-6}) {
    CountingTarget target;
    target.seconds_of_op = {{"matmul_bias_act", 1e-6}, {"matmul", 1e-6}, {"add", 1e-6}};
    target.seconds_inside = {{"matmul_bias_act", inside}};
    target.graph_seconds_from_inside = true;
    CostDatabase database = CostDatabase::in_memory("fake device");
    MeasuredCosts measured(target, database, true);
    const auto model = make_cost_model(value_of(parse_cost_formula("time")), measured);
    const OptimizeResult result = value_of(optimize(graph, rules, library(), measured, *model, {}));
    EXPECT_EQ(result.corrected.empty(), inside == 1e-6);
    planned.push_back(target.planned());
  }
  EXPECT_GT(planned[0], 0U);
  EXPECT_EQ(planned[1], planned[0]);
}

TEST_F(ChoiceByTime, WithoutTimingCostsDecide) {
  target.graph_seconds = {1.0, 0.1, 2, 2, 2};  // Whole, nothing would pay.
  OptimizeOptions options;
  options.timed_candidates = 0;
  const OptimizeResult result = run(options);
  EXPECT_EQ(target.timed, 0);
  EXPECT_FALSE(result.noise);
  EXPECT_EQ(result.choice, Choice::optimized);
  EXPECT_TRUE(result.gain);
  ASSERT_EQ(result.contenders.size(), 3U);
  EXPECT_LT(result.contenders[2].cost, result.contenders[0].cost);
  EXPECT_EQ(result.result.cost, result.contenders[2].cost);
}

TEST_F(ChoiceByTime, LargeRulesAreLeftOutOfTheSearchOnly) {
  OptimizeOptions options;
  options.timed_candidates = 0;
  // The rules that merge two products have two operators or more on the source side; that which fuses the bias makes
  // the baseline, which keeps it.
  options.max_rule_size = 1;
  const OptimizeResult small = run(options);
  EXPECT_EQ(small.choice, Choice::baseline);
  EXPECT_GT(small.baseline_applications, 0U);
  for (const RuleApplication& step : small.applications) EXPECT_GT(step.operators.size(), 1U) << step.rule;
  options.max_rule_size = 2;
  const OptimizeResult large = run(options);
  EXPECT_EQ(large.choice, Choice::optimized);
  EXPECT_GT(large.applications.size(), large.baseline_applications);
}

TEST_F(ChoiceByTime, TheDatabaseFixesTheChoice) {
  target.graph_seconds = {1.0, 1.1, 0.9, 0.9, 0.9};
  const OptimizeResult first = run();
  target.graph_seconds = {1.0, 0.5, 2, 2, 2};
  target.seconds_of_op = {{"matmul", 1e-3}, {"add", 5e-3}};
  const OptimizeResult second = run();
  EXPECT_EQ(target.timed, 1);
  EXPECT_EQ(first.choice, second.choice);
  EXPECT_TRUE(first.graph.equals(second.graph));
  EXPECT_EQ(to_string(first.graph), to_string(second.graph));
}

TEST_F(ChoiceByTime, AWrongRuleFailsTheCheck) {
  const RuleIndex rules(value_of(parse_rules(R"(
rule wrong:
  tanh(sigmoid(x)) => tanh(x)
)",
                                             "test", registry())),
                        registry());
  MeasuredCosts measured(target, database, true);
  const auto model = make_cost_model(value_of(parse_cost_formula("launches")), measured);
  const Graph chain = graph_of("input x f32[2, 3]\noutput tanh(sigmoid(x))\n");
  const auto result = optimize(chain, rules, library(), measured, *model, {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::check_failed);
  EXPECT_NE(result.error().message.find("the output of tanh is the first tensor that is wrong by itself"),
            std::string::npos)
      << result.error().message;
  EXPECT_NE(result.error().message.find("applied before it: wrong at sigmoid, tanh"), std::string::npos)
      << result.error().message;
  OptimizeOptions unchecked;
  unchecked.check.reset();
  EXPECT_EQ(value_of(optimize(chain, rules, library(), measured, *model, unchecked)).result.kernels, 1U);
}

TEST(AllowedRules, FollowTheirClass) {
  const auto names = [](Rounding rounding, bool baseline) {
    std::string text;
    for (const Substitution& rule : allowed_rules(test_rules(), rounding, baseline)) text += rule.name + " ";
    return text;
  };
  const auto has = [](const std::string& text, const std::string& name) {
    return text.find(name + " ") != std::string::npos;
  };
  const std::string exact = names(Rounding::exact, false), search = names(Rounding::reassoc, false),
                    baseline = names(Rounding::reassoc, true), fast = names(Rounding::fast, false);
  EXPECT_TRUE(has(exact, "merge_matmul") && !has(exact, "merge_conv_bias_enlarged"));
  EXPECT_TRUE(has(search, "merge_conv_bias_enlarged") && !has(search, "scale_into_conv"));
  EXPECT_TRUE(has(baseline, "scale_into_conv"));
  EXPECT_TRUE(has(fast, "factor_right"));
  EXPECT_EQ(names(Rounding::exact, true), exact);
}

// Sums that are regrouped may leave the range of f16, in the operators that make it; bf16 has that of f32.
TEST(SearchFilter, KeepsTheRangeOfF16) {
  const auto refused = [](Rounding rounding, std::optional<NumericClass> numeric_class) {
    Substitution rule;
    rule.numeric_class = numeric_class;
    OptimizeOptions options;
    options.rounding = rounding;
    const MatchFilter filter = search_filter(options);
    std::string elements;
    for (const char* element : {"f16", "bf16", "f32", "f64"}) {
      const Graph graph =
          graph_of(std::string("input h f16[2]\ninput x ") + element + "[2]\noutput relu(x)\noutput h\n");
      Match match;
      match.nodes = {graph.outputs()[0].node};
      if (!filter(graph, rule, match)) elements += std::string(element) + " ";
    }
    return elements;
  };
  EXPECT_EQ(refused(Rounding::reassoc, NumericClass::exact), "");
  EXPECT_EQ(refused(Rounding::reassoc, NumericClass::reassociation), "f16 ");
  EXPECT_EQ(refused(Rounding::reassoc, std::nullopt), "f16 ");
  EXPECT_EQ(refused(Rounding::fast, NumericClass::distribution), "");
}

// 1/8 is what attention has; weights of 1e-3 times 1e-4 are hardly numbers in f16.
TEST(BaselineFilter, KeepsWeightsInTheRangeOfF16) {
  const RuleIndex rules(
      value_of(parse_rules("rule fold: mul(matmul(x, w), fill(; shape=s, value=c)) => matmul(x, mul(w, fill(; "
                           "shape=[dim(w, -2), dim(w, -1)], value=c)))\n  class distribution\n",
                           "fold.rules", registry())),
      registry());
  const auto folds = [&](const std::string& element, const std::string& number) {
    const Graph graph = graph_of("input x " + element + "[2, 2]\nweight w " + element + "[2, 2]\nweight c " + element +
                                 "[2, 2] = " + number + "\noutput mul(matmul(x, w), c)\n");
    const std::vector<Match> matches = rules.find(graph, 0);
    EXPECT_EQ(matches.size(), 1U) << element << number;
    return !matches.empty() && baseline_filter(OptimizeOptions())(graph, rules.rules()[0], matches[0]);
  };
  EXPECT_TRUE(folds("f16", "0.125"));
  EXPECT_TRUE(folds("f16", "0.0"));
  EXPECT_FALSE(folds("f16", "0.0001"));
  EXPECT_FALSE(folds("f16", "-10000.0"));
  EXPECT_TRUE(folds("f32", "0.0001"));
}

TEST(SearchFilter, AsksWhatIsApplicable) {
  const Graph graph = graph_of("input x f32[2]\noutput relu(x)\n");
  OptimizeOptions options;
  options.rounding = Rounding::fast;
  options.applicable = [](const Graph&, const Substitution& rule, const Match&) { return rule.name != "refused"; };
  Substitution rule;
  rule.name = "refused";
  EXPECT_FALSE(search_filter(options)(graph, rule, {}));
  rule.name = "allowed";
  EXPECT_TRUE(search_filter(options)(graph, rule, {}));
}

TEST(RuntimeTargetTest, TimesGraphsAndKernels) {
  const Graph graph = graph_of("input x f32[4, 8]\nweight w f32[8, 2]\noutput relu(matmul(x, w))\n");
  RuntimeTarget target(library(), {.threads = 1, .counting = false, .cancelled = {}});
  const KernelPlan plan = value_of(target.plan(graph));
  ASSERT_EQ(plan.launches.size(), 2U);
  EXPECT_GT(value_of(target.measure(*plan.launches[0].kernel)), 0);
  const TimedGraph graphs[] = {{&graph, nullptr, {}}, {&graph, nullptr, {}}};
  const GraphTimes times = value_of(target.measure_graphs(graphs));
  ASSERT_EQ(times.seconds.size(), 2U);
  EXPECT_GT(times.seconds[1], 0);
  EXPECT_GE(times.noise, least_gain);
}

}  // namespace
}  // namespace taso::testing
