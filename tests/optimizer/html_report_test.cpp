#include "optimizer/html/html_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "optimizer/changed_regions.h"
#include "optimizer/html/assets.h"
#include "optimizer/html/charts.h"
#include "optimizer/html/graph_drawing.h"
#include "optimizer/html/page_data.h"
#include "optimizer/run_profile.h"
#include "runtime/backend.h"
#include "tests/optimizer/reports.h"

namespace taso::testing {
namespace {

nlohmann::json data_of(const MadeUpReport& made) { return nlohmann::json::parse(page_data(made.report())); }

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

TEST(HtmlReport, HoldsTheFacts) {
  MadeUpReport made = small_report();
  made.result.notes = {"a < b & \"c\""};
  const std::string page = made.page();
  EXPECT_EQ(page, made.page());
  for (const std::string part :
       {"<h1>in.onnx</h1>", "cost 1000 instead of 2000 of the baseline (us)", "predicted time", "-66.7 %",
        "note: a &lt; b &amp; &quot;c&quot;", "<code>relu_twice</code> 1 in the search, gain 1000 \u00b5s",
        "from 2000 of the baseline to 1000", "What was not understood, and why",
        ">no map reads it</td><td>1</td><td>a line of a map</td>",
        "2 of 6 nodes of the file are carried, 1 of them only for what they read", "1 application of 1 rule<"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_EQ(count_of(page, "<canvas class=\"drawing\""), 2U);
  EXPECT_EQ(count_of(page, "<svg class=\"chart\""), 2U);
}

/// A result that was found by its launches has applications with numbers of launches.
TEST(HtmlReport, CostsOfAnotherSearchAreNotTold) {
  MadeUpReport made = small_report();
  EXPECT_EQ(data_of(made)["unit"], "us");
  made.result.graph_cost = 1001;
  EXPECT_TRUE(data_of(made)["unit"].is_null());
  EXPECT_EQ(made.page().find("in the search, gain"), std::string::npos);
}

TEST(HtmlReport, BarsAreOfEveryMeasureThatAllLaunchesHave) {
  MadeUpReport made = small_report();
  EXPECT_EQ(count_of(made.page(), "name=\"measure\""), 5U);
  EXPECT_NE(made.page().find("<span>5 \u00b5s</span>"), std::string::npos);
  made.original.launches[0].measured = 20e-3;
  EXPECT_NE(made.page().find("<span>20.0 ms</span>"), std::string::npos) << "two relu";
  made.optimized.launches[0].measured.reset();
  const std::string page = made.page();
  EXPECT_EQ(count_of(page, "name=\"measure\""), 4U);
  EXPECT_EQ(count_of(page, ">measured time</label>"), 0U);
  EXPECT_EQ(count_of(page, "id=\"measure1\" checked"), 1U);
}

TEST(HtmlReport, NothingIsLoadedFromElsewhere) {
  const std::string page = small_report().page();
  for (const std::string part : {"http:", "https:", "src=", "href=", "url(", "@import", "fetch(", "import("})
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

/// Names that end the element in which they stand, were they not escaped.
TEST(HtmlReport, NamesAreEscaped) {
  MadeUpReport made = small_report();
  const std::string name = "</script><b a=\"x\">&\xff";
  made.context.model = made.context.node_names[0] = name;
  made.result.applications[0].rule = name;
  made.carried[0] = {name, 1, name};
  made.original.launches[0].implementation = made.original.problem = name;
  const std::string page = made.page();
  EXPECT_EQ(page.find("<b a="), std::string::npos);
  EXPECT_EQ(count_of(page, "</script>"), 2U);
  EXPECT_EQ(data_of(made)["carried"][0][0], "</script><b a=\"x\">&\uFFFD");
}

TEST(HtmlReport, AssetsMayStandInThePage) {
  EXPECT_NE(report_css.find("prefers-color-scheme: dark"), std::string_view::npos);
  EXPECT_EQ(report_css.find("</"), std::string_view::npos);
  EXPECT_EQ(report_js.find("</script"), std::string_view::npos);
  EXPECT_EQ(report_js.find("<!--"), std::string_view::npos);
}

TEST(HtmlReport, ALargePageIsBelowTwoMegabytes) {
  const MadeUpReport made = large_report(6000);
  EXPECT_GT(data_of(made)["graphs"][0]["boxes"]["layer"].size(), 5900U);
  const std::string page = made.page();
  EXPECT_LT(page.size(), 2'000'000U);
  EXPECT_EQ(page, made.page());
}

TEST(PageData, TellsNodesAndWhatBecameOfThem) {
  const nlohmann::json data = data_of(small_report());
  const auto text = [&](const nlohmann::json& number) { return data["strings"][number.get<std::size_t>()]; };
  const nlohmann::json &before = data["graphs"][0], &after = data["graphs"][1];
  std::vector<std::string> labels;
  for (const auto& label : before["boxes"]["label"]) labels.push_back(text(label));
  EXPECT_EQ(labels, (std::vector<std::string>{"x", "relu", "relu", "tanh", "mystery", "add"}));
  EXPECT_EQ(before["boxes"]["kind"], (std::vector<int>{0, 1, 1, 1, 2, 1}));
  EXPECT_EQ(before["boxes"]["region"], (std::vector<int>{0, 1, 1, 0, 0, 0}));
  EXPECT_EQ(after["boxes"]["region"], (std::vector<int>{0, 1, 0, 0, 0}));
  EXPECT_EQ(before["boxes"]["reads"], nlohmann::json::parse("[[], 1, 1, 1, 1, [2, 1]]"));
  EXPECT_EQ(before["outputs"], std::vector<int>{5});
  EXPECT_EQ(before["lanes"].size(), 1U) << "tanh is read by add, two layers below";
  EXPECT_EQ(before["launches"]["box"], (std::vector<int>{1, 2}));
  EXPECT_EQ(before["launches"]["measured"], (std::vector<double>{2.5, 2.5}));
  ASSERT_EQ(before["kernels"].size(), 1U) << "equal launches are told once";
  EXPECT_EQ(text(before["kernels"][0][2]), "own elementwise");
  EXPECT_EQ(before["kernels"][0][5], 2.0);
  EXPECT_EQ(text(data["applications"]["names"][0][0]), "first");
  EXPECT_EQ(data["applications"]["region"][0], 1);
}

TEST(PageData, ARegionWithoutNodesIsShownWhereItWouldBe) {
  const Graph before = graph_of("input x f32[2]\noutput tanh(relu(relu(x)))\n");
  const std::vector<Substitution> rules =
      value_of(parse_rules("rule twice: relu(relu(x)) => relu(x)\n", "test", registry()));
  const RuleIndex index(rules, registry());
  const auto matches = index.find_all(before);
  ASSERT_EQ(matches.size(), 1U);
  const std::vector<RuleApplication> applications = {describe_application(before, rules[0], matches[0].second)};
  const Graph after = value_of(apply(before, rules[0], matches[0].second, registry()));
  MadeUpReport made(before, after);
  made.result.applications = applications;
  made.regions = value_of(changed_regions(before, after, rules, applications, registry()));
  ASSERT_EQ(made.regions.size(), 1U);
  EXPECT_EQ(made.regions[0].before.size(), 1U);
  EXPECT_TRUE(made.regions[0].after.empty());
  const nlohmann::json data = data_of(made);
  EXPECT_TRUE(data["graphs"][0]["around"].empty());
  ASSERT_EQ(data["graphs"][1]["around"].size(), 1U);
  EXPECT_EQ(data["graphs"][1]["around"][0][0], 1);
  EXPECT_GE(data["graphs"][1]["around"][0].size(), 2U);
}

/// Two places in one graph, the steps of each on one another.
TEST(ChangedRegions, JoinStepsThatBuildUponEachOther) {
  const Graph before = graph_of("input x f32[2]\ninput y f32[2]\noutput relu(relu(relu(x)))\noutput relu(relu(y))\n");
  const std::vector<Substitution> rules =
      value_of(parse_rules("rule twice: relu(relu(x)) => abs(relu(x))\nrule other: abs(relu(x)) => relu(neg(neg(x)))\n",
                           "test", registry()));
  const RuleIndex index(rules, registry());
  Graph graph = before;
  std::vector<RuleApplication> applications;
  for (;;) {
    const auto matches = index.find_all(graph);
    if (matches.empty()) break;
    const auto& [rule, match] = matches[0];
    applications.push_back(describe_application(graph, rules[rule], match));
    graph = value_of(apply(graph, rules[rule], match, registry()));
  }
  ASSERT_GE(applications.size(), 4U);
  const auto regions = value_of(changed_regions(before, graph, rules, applications, registry()));
  ASSERT_EQ(regions.size(), 2U);
  std::size_t counted = 0;
  for (const ChangedRegion& region : regions) {
    counted += region.applications.size();
    EXPECT_FALSE(region.before.empty());
    EXPECT_FALSE(region.after.empty());
    for (const NodeId id : region.before) EXPECT_TRUE(before.contains(id) && !graph.contains(id));
    for (const NodeId id : region.after) EXPECT_TRUE(graph.contains(id) && !before.contains(id));
  }
  EXPECT_EQ(counted, applications.size());
  EXPECT_EQ(changed_regions(before, before, rules, applications, registry()).error().code, ErrorCode::internal);
  EXPECT_EQ(changed_regions(before, graph, {}, applications, registry()).error().code, ErrorCode::internal);
  EXPECT_TRUE(value_of(changed_regions(before, before, rules, {}, registry())).empty());
}

class ChangedRegionsCase : public ::testing::TestWithParam<test::TextCase> {};
INSTANTIATE_TEST_SUITE_P(Data, ChangedRegionsCase, ::testing::ValuesIn(optimizer_cases()), test::case_name);

/// Of whole optimizations, in parts too: every node that only one of the graphs has is in one region, each application
/// in one.
TEST_P(ChangedRegionsCase, HoldWhatDiffers) {
  const RuleIndex rules(test_rules(), registry());
  Graph original = graph_of(GetParam());
  normalize(original, registry());
  for (const std::size_t part_size : {200UL, 2UL}) {
    Costs costs("launches");
    OptimizeOptions options;
    options.check.reset();
    options.search.part_size = part_size;
    const OptimizeResult result = value_of(optimize(original, rules, library(), costs.measured, *costs.model, options));
    const auto regions =
        value_of(changed_regions(original, result.graph, test_rules(), result.applications, registry()));
    std::multiset<NodeId> before, after;
    std::multiset<std::size_t> applications;
    for (const ChangedRegion& region : regions) {
      before.insert(region.before.begin(), region.before.end());
      after.insert(region.after.begin(), region.after.end());
      applications.insert(region.applications.begin(), region.applications.end());
    }
    const auto only_in = [](const Graph& graph, const Graph& other) {
      std::multiset<NodeId> ids;
      for (const NodeId id : graph.topological_order())
        if (!other.contains(id) && !graph.node(id).weight_only) ids.insert(id);
      return ids;
    };
    EXPECT_EQ(before, only_in(original, result.graph));
    EXPECT_EQ(after, only_in(result.graph, original));
    EXPECT_EQ(applications.size(), result.applications.size());
  }
}

/// Whether producers stand above, boxes of a layer beside each other, and lines reach to the layer before their ends.
void expect_drawn_well(const Graph& graph) {
  const GraphDrawing drawing = draw_graph(graph);
  for (std::size_t i = 0; i < drawing.boxes.size(); ++i) {
    const GraphDrawing::Box& box = drawing.boxes[i];
    EXPECT_GE(box.left, 0);
    EXPECT_LE(box.left + GraphDrawing::box_width, drawing.width);
    EXPECT_LT(box.layer, drawing.layers);
    for (const std::size_t read : box.reads) EXPECT_LT(drawing.boxes[read].layer, box.layer);
    if (i == 0) continue;
    const GraphDrawing::Box& before = drawing.boxes[i - 1];
    EXPECT_LE(before.layer, box.layer);
    EXPECT_TRUE(before.layer < box.layer || box.left >= before.left + GraphDrawing::box_width);
  }
}

TEST(GraphDrawing, StandsInLayers) {
  expect_drawn_well(graph_of("input x f32[2, 3] output relu(tanh(x))"));
  expect_drawn_well(Graph());
  EXPECT_EQ(draw_graph(Graph()).width, 0);
  const MadeUpReport made = large_report(400);
  expect_drawn_well(*made.report().original.graph);
}

TEST(GraphDrawing, WeightsAreNotDrawn) {
  const Graph graph = graph_of("input x f32[2, 3] weight w f32[3, 2] a = matmul(x, tanh(w)) output relu(a)");
  const GraphDrawing drawing = draw_graph(graph);
  std::vector<std::string> drawn(drawing.boxes.size());
  std::transform(drawing.boxes.begin(), drawing.boxes.end(), drawn.begin(),
                 [&](const GraphDrawing::Box& box) { return graph.node(box.node).op; });
  EXPECT_EQ(drawn, (std::vector<std::string>{"", "matmul", "relu"}));
}

TEST(GraphDrawing, ALongLineGoesAroundWhatItPasses) {
  const GraphDrawing drawing =
      draw_graph(graph_of("input x f32[2] a = relu(x) b = tanh(abs(neg(a))) output add(a, b)"));
  const auto& a = drawing.boxes.at(1);
  ASSERT_EQ(a.lane.size(), 3U);
  for (std::size_t k = 0; k < a.lane.size(); ++k) {
    const auto& passed = drawing.boxes.at(2 + k);
    EXPECT_TRUE(a.lane[k] < passed.left || a.lane[k] > passed.left + GraphDrawing::box_width) << k;
  }
}

/// What is computed from another input only moves down to where it is read, and needs no line of its own.
TEST(GraphDrawing, NodesStandNearTheirReaders) {
  const Graph graph =
      graph_of("input x f32[2] input y f32[2] a = relu(tanh(abs(neg(x)))) output add(a, mul(sigmoid(y), y))");
  for (const GraphDrawing::Box& box : draw_graph(graph).boxes) {
    if (graph.node(box.node).op != "mul") continue;
    EXPECT_EQ(box.layer, 4U);
  }
}

TEST(Charts, AreBoundedAndKeepPeaks) {
  Chart chart;
  chart.title = "<t>";
  chart.x_end = 10000;
  ChartCurve curve{"c", "after", {}};
  for (int i = 0; i < 10000; ++i) curve.points.emplace_back(i, i == 5003 ? 7 : 1);
  chart.curves = {curve};
  const std::string svg = chart_svg(chart);
  EXPECT_LT(svg.size(), 10'000U);
  EXPECT_NE(svg.find(">7</text>"), std::string::npos) << "the y axis ends at the peak";
  EXPECT_NE(svg.find("V12.0"), std::string::npos) << "and the curve reaches it";
  EXPECT_NE(svg.find("&lt;t&gt;"), std::string::npos);
  EXPECT_EQ(chart_svg(Chart()).find("nan"), std::string::npos);
}

TEST(Charts, BarsAreSortedAndFolded) {
  std::vector<ChartBar> bars;
  bars.reserve(20);
  for (int i = 0; i < 20; ++i) bars.push_back({"op" + std::to_string(i), 1.0 * i, 0});
  const std::string html = bars_html(bars, "MB");
  EXPECT_LT(html.find(">op19<"), html.find(">op18<"));
  EXPECT_NE(html.find("<summary>12 more kinds</summary>"), std::string::npos);
  EXPECT_NE(html.find("width:100.00%\"></i><span>19 MB"), std::string::npos) << html;
  EXPECT_EQ(bars_html({}, "MB"), "");
}

TEST(Charts, Numbers) {
  for (const auto& [value, text] : {std::pair(0.0, "0"),
                                    {12.0, "12"},
                                    {1234.5, "1234"},
                                    {12.34, "12.3"},
                                    {1.234, "1.23"},
                                    {0.1234, "0.123"},
                                    {0.0001234, "0.000123"}})
    EXPECT_EQ(chart_number(value), text);
}

/// On this machine's kernels: every launch of the plan is found in the run.
void expect_run(const std::string& text, bool whole) {
  const Graph graph = graph_of(text);
  RuntimeTarget target(library(), {});
  CostDatabase database = CostDatabase::in_memory(target.identity());
  MeasuredCosts measured(target, database, true);
  const auto model = make_cost_model(value_of(parse_cost_formula("time")), measured);
  for (const bool choose : {false, true}) {
    const RunProfile run =
        value_of(profile_run(graph, target, measured, *model, {.choose_layouts = choose, .runs = 2}));
    EXPECT_EQ(run.problem, "");
    EXPECT_GE(run.launches.size(), 2U);
    for (const ProfiledLaunch& launch : run.launches) {
      EXPECT_TRUE(launch.measured && launch.predicted) << launch.op << " " << launch.layouts;
      EXPECT_FALSE(launch.implementation.empty()) << launch.op;
      EXPECT_NE(launch.layouts.find(" -> "), std::string::npos) << launch.layouts;
    }
    EXPECT_TRUE(!whole || run.memory.size() == run.launches.size());
    EXPECT_GT(*std::max_element(run.memory.begin(), run.memory.end()), 0);
  }
  const RunProfile planned = value_of(profile_run(graph, target, measured, *model, {}));
  for (const ProfiledLaunch& launch : planned.launches) EXPECT_FALSE(launch.measured);
}

constexpr const char* convolution =
    "input x f32[1, 8, 6, 6]\nweight k f32[8, 8, 3, 3]\nc = conv2d(x, k; pads=[1, 1, 1, 1])\n";

TEST(RunProfile, OfARealRun) { expect_run(std::string(convolution) + "output relu(add(c, tanh(c)))\n", true); }

TEST(RunProfile, OfAGraphThatIsCutAtAnOpaqueNode) {
  expect_run(std::string(convolution) + "t = opaque mystery(c) f32[1, 8, 6, 6]\noutput relu(add(c, tanh(t)))\n", false);
}

TEST(RunProfile, WhatADeviceFusesIsTimedOnce) {
  const Graph graph = graph_of("input x f32[4, 64]\noutput relu(add(tanh(x), x))\n");
  BackendOptions backend;
  backend.module_folder = TASO_TEST_BACKENDS;
  const KernelLibrary device(registry(), value_of(load_backend("fusing", backend)));
  RuntimeTarget target(device, {});
  CostDatabase database = CostDatabase::in_memory(target.identity());
  MeasuredCosts measured(target, database, true);
  const auto model = make_cost_model(value_of(parse_cost_formula("launches")), measured);
  const RunProfile run = value_of(profile_run(graph, target, measured, *model, {.runs = 2}));
  EXPECT_EQ(run.problem, "");
  ASSERT_EQ(run.launches.size(), 1U);
  EXPECT_TRUE(run.launches[0].measured);
  EXPECT_TRUE(run.launches[0].implementation.starts_with("test: own fused elementwise "))
      << run.launches[0].implementation;
}

/// Of a: while it is made from x, and while b is made from it; of b: then, and to the end.
TEST(RunProfile, MemoryIsWhatIsInUse) {
  const Graph graph = graph_of("input x f32[4, 64]\nweight w f32[64, 16]\noutput matmul(tanh(x), w)\n");
  const RuntimeTarget target(library(), {});
  EXPECT_EQ(value_of(target.memory_in_use(graph, nullptr)), (std::vector<double>{1024, 1024 + 256}));
  EXPECT_EQ(value_of(target.peak_bytes(graph, nullptr)), 1024 + 256);
}

/// That a graph is not run is told, and is no failure.
TEST(RunProfile, TellsWhyAGraphWasNotRun) {
  const Graph graph = graph_of("input x f32[4, 64]\nweight w f32[64, 16]\noutput matmul(tanh(x), w)\n");
  RuntimeTarget target(library(), {.cancelled = [] { return true; }});
  CostDatabase database = CostDatabase::in_memory(target.identity());
  MeasuredCosts measured(target, database, true);
  const auto model = make_cost_model(value_of(parse_cost_formula("launches")), measured);
  const RunProfile run = value_of(profile_run(graph, target, measured, *model, {.runs = 2}));
  EXPECT_EQ(run.problem, "interrupted while graphs were timed");
  EXPECT_EQ(run.launches.size(), 2U);
  for (const ProfiledLaunch& launch : run.launches) EXPECT_FALSE(launch.measured || launch.predicted);
}

TEST(CostCurve, FallsAndIsBounded) {
  CostCurve curve;
  curve.add(0, 10);
  curve.add(1, 10);
  curve.add(2, 8);
  curve.add(2, 7);
  using Points = std::vector<CostCurve::Point>;
  EXPECT_EQ(curve.points(), (Points{{0, 10}, {2, 7}}));
  CostCurve more;
  more.add(0, 9);
  more.add(3, 6);
  curve.append(more, 5);
  EXPECT_EQ(curve.points(), (Points{{0, 10}, {2, 7}, {8, 6}}));
  CostCurve longer;
  for (std::size_t i = 0; i < 10'000; ++i) longer.add(i, 1e6 - static_cast<double>(i));
  EXPECT_LE(longer.points().size(), CostCurve::most_points);
  EXPECT_GT(longer.points().size(), CostCurve::most_points / 4);
  EXPECT_EQ(longer.points().front(), (CostCurve::Point{0, 1e6}));
  EXPECT_EQ(longer.points().back(), (CostCurve::Point{9999, 1e6 - 9999}));
}

}  // namespace
}  // namespace taso::testing
