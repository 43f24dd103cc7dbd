#include "optimizer/report.h"

#include <nlohmann/json.hpp>

#include "tests/optimizer/fixtures.h"

namespace taso::testing {
namespace {

OptimizeResult sample() {
  OptimizeResult result;
  result.choice = Choice::optimized;
  result.gain = true;
  result.cost_model = "time";
  result.target = "device";
  result.original.operators = {{"conv2d", 3}, {"relu", 3}};
  result.baseline.operators = {{"conv2d_bias_act", 3}};
  result.result.operators = {{"conv2d_bias_act", 1}, {"split", 1}};
  result.original.predicted_seconds = 3e-3;
  result.baseline.predicted_seconds = 2e-3;
  result.result.predicted_seconds = 1e-3;
  result.baseline.measured_seconds = 2.2e-3;
  result.result.measured_seconds = 1.1e-3;
  result.noise = 0.012;
  result.applications = {{"fuse", {"conv2d", "relu"}, {0, 1}, 0, 0, {}},
                         {"merge", {"conv2d_bias_act"}, {2}, 2000, 1000, {}}};
  result.baseline_applications = 1;
  result.graph_cost = 1000;
  return result;
}

const ReportContext report_context{"in.onnx", "out.onnx", {"conv_a", "relu_a", "conv_b"}, 1.5, 7, "reassoc", "", 0};

TEST(Report, HoldsTableRulesAndVerdict) {
  const std::string text = report_text(sample(), report_context);
  for (const std::string part : {"model   in.onnx", "output  out.onnx", "target  device", "rules used", "fuse", "merge",
                                 "2.00x faster than the baseline (1.100 ms instead of 2.200 ms, noise 1.2 %)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(Report, TimesOfAVerdictHaveOneUnit) {
  OptimizeResult result = sample();
  result.baseline.measured_seconds = 1.5e-3;
  result.result.measured_seconds = 0.75e-3;
  EXPECT_EQ(verdict(result), "2.00x faster than the baseline (0.750 ms instead of 1.500 ms, noise 1.2 %)");
}

TEST(Report, SaysHowFarThePlanIsFromTheBest) {
  OptimizeResult result = sample();
  result.result.cost = 1000;
  EXPECT_EQ(report_text(result, report_context).find("layouts "), std::string::npos);
  result.result.least_cost = 938.1;
  std::string text = report_text(result, report_context);
  EXPECT_NE(
      text.find("layouts by the costs of its kernels the result would be at most 6.2 % cheaper in the best layouts "
                "and fused kernels\n"),
      std::string::npos)
      << text;
  result.result.least_cost = 0;
  text = report_text(result, report_context);
  EXPECT_NE(
      text.find("layouts by the costs of its kernels it is not known how good its layouts and fused kernels are\n"),
      std::string::npos)
      << text;
  result.result.least_cost = 1000;
  text = report_text(result, report_context);
  EXPECT_NE(text.find("layouts by the costs of its kernels the result has the best layouts and fused kernels\n"),
            std::string::npos)
      << text;
}

TEST(Report, TimesBelowAMillisecondAreInMicroseconds) {
  OptimizeResult result = sample();
  result.baseline.measured_seconds = 34.91e-6;
  result.result.measured_seconds = 34.2e-6;
  EXPECT_EQ(verdict(result), "1.02x faster than the baseline (34.20 us instead of 34.91 us, noise 1.2 %)");
  const std::string text = report_text(result, report_context);
  EXPECT_NE(text.find("predicted ms                     3.000         2.000         1.000"), std::string::npos) << text;
  EXPECT_NE(text.find("measured us                          -         34.91         34.20"), std::string::npos) << text;
}

TEST(Report, CostsHaveTheirUnits) {
  OptimizeResult result = sample();
  for (const auto& [model, unit] : {std::pair("time", "us"),
                                    {"launches", "launches"},
                                    {"flops", "MFLOP"},
                                    {"bytes", "MB"},
                                    {"memory", "MB"},
                                    {"time+0.1*bytes", "time+0.1*bytes"}}) {
    result.cost_model = model;
    EXPECT_NE(explain_text(result, report_context).find(std::string("2000 -> 1000 ") + unit + "\n"), std::string::npos);
    EXPECT_EQ(nlohmann::json::parse(report_json(result, report_context))["cost_unit"], unit);
  }
}

TEST(Report, SaysHonestlyWhenNothingPays) {
  OptimizeResult result = sample();
  result.gain = false;
  result.choice = Choice::baseline;
  EXPECT_EQ(verdict(result),
            "no improvement over the baseline beyond the noise (noise 1.2 %); the baseline graph is written");
  result.noise.reset();
  EXPECT_EQ(verdict(result), "no improvement over the baseline; the baseline graph is written");
}

TEST(Report, GainsCountAgainstTheBetterOfOriginalAndBaseline) {
  OptimizeResult result = sample();
  result.original.measured_seconds = 0.75 * *result.baseline.measured_seconds;
  EXPECT_TRUE(verdict(result).starts_with("1.50x faster than the original (")) << verdict(result);
  result.original.measured_seconds = 1.1 * *result.baseline.measured_seconds;
  EXPECT_TRUE(verdict(result).starts_with("2.00x faster than the baseline (")) << verdict(result);
}

TEST(Report, RecordedTimesCarryTheirDate) {
  OptimizeResult result = sample();
  EXPECT_TRUE(nlohmann::json::parse(report_json(result, report_context))["timed_on"].is_null());
  result.timed_on = 20260907;
  EXPECT_NE(verdict(result).find("noise 1.2 %, timed on 2026-09-07)"), std::string::npos) << verdict(result);
  EXPECT_EQ(nlohmann::json::parse(report_json(result, report_context))["timed_on"], "2026-09-07");
}

TEST(Report, CorrectedCostsAreListed) {
  OptimizeResult result = sample();
  result.corrected = {{"relu; ; f32[2]:row -> f32[2]:row", 1e-6, 2e-6}};
  const auto document = nlohmann::json::parse(report_json(result, report_context));
  EXPECT_EQ(document["corrected"][0]["kernel"], "relu; ; f32[2]:row -> f32[2]:row");
  EXPECT_EQ(document["corrected"][0]["after"], 2e-6);
}

TEST(Report, ExplainsEveryApplication) {
  const std::string text = explain_text(sample(), report_context);
  EXPECT_NE(text.find("fuse at conv2d, relu of conv_a, relu_a"), std::string::npos) << text;
  EXPECT_NE(text.find("merge at conv2d_bias_act of conv_b: 2000 -> 1000 us"), std::string::npos) << text;
  EXPECT_EQ(explain_text({}, report_context), "no rule was applied\n");
  // A result that was found by its launches has applications with numbers of launches: these are not told.
  OptimizeResult by_launches = sample();
  by_launches.graph_cost = 900;
  EXPECT_NE(explain_text(by_launches, report_context).find("merge at conv2d_bias_act of conv_b\n"), std::string::npos);
  EXPECT_TRUE(
      nlohmann::json::parse(report_json(by_launches, report_context))["applications"][1]["cost_after"].is_null());
}

TEST(Report, JsonHoldsTheSameFacts) {
  OptimizeResult result = sample();
  result.check = CheckReport{{{"y", 1e-7, 1, 0.5, true}}, true, false, 1e-7};
  ReportContext context = report_context;
  context.ill_typed_nodes = 2;
  const auto document = nlohmann::json::parse(report_json(result, context));
  EXPECT_EQ(document["ill_typed_nodes"], 2);
  EXPECT_EQ(document["choice"], "optimized");
  EXPECT_EQ(document["gain"], true);
  EXPECT_EQ(document["result"]["operators"]["split"], 1);
  EXPECT_EQ(document["rules"][1]["name"], "merge");
  EXPECT_EQ(document["rules"][1]["search"], 1);
  EXPECT_EQ(document["applications"][0]["nodes"], nlohmann::json({"conv_a", "relu_a"}));
  EXPECT_EQ(document["search"]["stop"], "queue empty");
  EXPECT_EQ(document["check"]["tensors"][0]["name"], "y");
  EXPECT_TRUE(document["original"]["measured_seconds"].is_null());
  EXPECT_EQ(document["confidence"], 0.99);
  result.noise.reset();
  EXPECT_TRUE(nlohmann::json::parse(report_json(result, context))["confidence"].is_null());
}

TEST(Report, JsonSurvivesNamesThatAreNotUtf8) {
  ReportContext context = report_context;
  context.node_names[0] = "\xff\xfe";
  EXPECT_TRUE(nlohmann::json::accept(report_json(sample(), context)));
}

}  // namespace
}  // namespace taso::testing
