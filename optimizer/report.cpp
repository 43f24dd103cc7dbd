#include "optimizer/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "optimizer/equal_costs.h"
#include "optimizer/paired_times.h"

namespace taso {
namespace {

/// How often each rule was applied, in the baseline and in the search.
std::map<std::string, std::pair<std::size_t, std::size_t>> rule_counts(const OptimizeResult& result) {
  std::map<std::string, std::pair<std::size_t, std::size_t>> counts;
  for (std::size_t i = 0; i < result.applications.size(); ++i) {
    auto& [baseline, search] = counts[result.applications[i].rule];
    ++(i < result.baseline_applications ? baseline : search);
  }
  return counts;
}

/// "2026-11-26" of 20261126.

/// By how much the result is faster than the better of baseline and original.
std::string faster_text(const OptimizeResult& result, const std::string& noise) {
  const double baseline = *result.baseline.measured_seconds;
  const bool original_is_better = result.original.measured_seconds.value_or(baseline) < baseline;
  const double reference = original_is_better ? *result.original.measured_seconds : baseline;
  const double now = *result.result.measured_seconds;
  // In one unit.
  const bool small = std::max(now, reference) < 1e-3;
  const auto text = [&](double seconds) {
    return small ? duration_text(seconds) : fmt::format("{:.3f} ms", seconds * 1e3);
  };
  return fmt::format("{:.2f}x faster than the {} ({} instead of {}, {})", reference / now,
                     original_is_better ? "original" : "baseline", text(now), text(reference), noise);
}

/// What of the model is open to the search, and the causes that keep most of the rest from it.
std::string coverage_section(const Coverage& coverage) {
  if (coverage.carried == 0) return "";
  constexpr std::size_t shown_causes = 3;
  std::string text =
      fmt::format("\nopen    {}; {} of {} nodes of the file are carried, {} of them for what they read\n",
                  open_share_text(coverage), coverage.carried, coverage.understood + coverage.carried, coverage.behind);
  std::istringstream lines(causes_text(coverage, shown_causes));
  for (std::string line; std::getline(lines, line);) text += "carried " + line + "\n";
  return text;
}

}  // namespace

std::string coverage_json(const Coverage& coverage) {
  nlohmann::json causes = nlohmann::json::array();
  for (const CarriedCause& cause : coverage.causes)
    causes.push_back({{"operator", cause.op},
                      {"cause", cause.cause},
                      {"node", cause.node},
                      {"nodes", cause.nodes},
                      {"behind", cause.behind},
                      {"blocked", cause.blocked},
                      {"help", cause.help}});
  const nlohmann::json carried_flops =
      coverage.carried_flops ? nlohmann::json(*coverage.carried_flops) : nlohmann::json(nullptr);
  const nlohmann::json json = {{"nodes", coverage.understood + coverage.carried},
                               {"carried_nodes", coverage.carried},
                               {"behind", coverage.behind},
                               {"flops", coverage.understood_flops},
                               {"carried_flops", carried_flops},
                               {"open_share", coverage.open_share()},
                               {"open_share_of", coverage.counts_flops() ? "flops" : "nodes"},
                               {"causes", causes}};
  return json.dump();
}

std::string duration_text(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.2f} us", seconds * 1e6) : fmt::format("{:.3f} ms", seconds * 1e3);
}

std::vector<std::string> row_of_times(const std::string& name, const std::vector<std::optional<double>>& seconds) {
  const bool small =
      std::all_of(seconds.begin(), seconds.end(), [](const auto& time) { return !time || *time < 1e-3; });
  std::vector<std::string> row = {name + (small ? " us" : " ms")};
  for (const std::optional<double>& time : seconds)
    row.push_back(!time ? "-" : small ? fmt::format("{:.2f}", *time * 1e6) : fmt::format("{:.3f}", *time * 1e3));
  return row;
}

std::string cost_unit(const std::string& cost_model) {
  for (const auto& [model, unit] : {std::pair("time", "us"), {"flops", "MFLOP"}, {"bytes", "MB"}, {"memory", "MB"}})
    if (cost_model == model) return unit;
  return cost_model;
}

std::string verdict(const OptimizeResult& result) {
  const std::string written = fmt::format("the {} graph is written", to_string(result.choice));
  const auto noise = [&] {
    return fmt::format("noise {:.1f} %{}", *result.noise * 100,
                       result.timed_on == 0 ? "" : ", timed on " + date_text(result.timed_on));
  };
  if (result.chosen_anew)
    return fmt::format(
        "chosen for its plan for several devices; on one device it costs {:.6g} instead of {:.6g} of the "
        "baseline ({})",
        result.result.cost, result.baseline.cost, cost_unit(result.cost_model));
  if (!result.gain) {
    std::string text = "no improvement over the baseline";
    if (result.noise) text += fmt::format(" beyond the noise ({})", noise());
    return text + "; " + written;
  }
  if (result.noise && result.result.measured_seconds && result.baseline.measured_seconds)
    return faster_text(result, noise());
  return fmt::format("cost {:.6g} instead of {:.6g} of the baseline ({})", result.result.cost, result.baseline.cost,
                     cost_unit(result.cost_model));
}

/// What share of a graph's cost other layouts and fused kernels might save. A bound of more than half of it comes from
/// kernels that count as nothing since others may take them up.
std::string gap_text(double cost, double least) {
  if (least < cost / 2) return "by the costs of its kernels it is not known how good its layouts and fused kernels are";
  if (!is_less(least, cost)) return "by the costs of its kernels the result has the best layouts and fused kernels";
  return fmt::format(
      "by the costs of its kernels the result would be at most {:.1f} % cheaper in the best layouts and "
      "fused kernels",
      std::ceil(1000 * (1 - least / cost)) / 10);
}

std::string report_text(const OptimizeResult& result, const ReportContext& context) {
  std::string text;
  text += fmt::format("model   {}\n", context.model);
  if (!context.output.empty()) text += fmt::format("output  {}\n", context.output);
  text += fmt::format("target  {}\ncost    {}; {}\n\n", result.target, result.cost_model, to_string(result.strategy));

  const GraphSummary* columns[] = {&result.original, &result.baseline, &result.result};
  const auto row = [&](std::string_view name, const auto& cell) {
    text += fmt::format("{:<24}", name);
    for (const GraphSummary* column : columns) text += fmt::format("{:>14}", cell(*column));
    text += "\n";
  };
  const auto times = [&](const std::string& name, std::optional<double> GraphSummary::*member) {
    const std::vector<std::string> cells =
        row_of_times(name, {result.original.*member, result.baseline.*member, result.result.*member});
    text += fmt::format("{:<24}{:>14}{:>14}{:>14}\n", cells[0], cells[1], cells[2], cells[3]);
  };
  text += fmt::format("{:<24}{:>14}{:>14}{:>14}\n", "", "original", "baseline", "result");
  std::set<std::string> operators;
  for (const GraphSummary* column : columns)
    for (const auto& [name, count] : column->operators) operators.insert(name);
  for (const std::string& name : operators)
    row(name, [&](const GraphSummary& summary) {
      const auto place = summary.operators.find(name);
      return place == summary.operators.end() ? std::string("-") : std::to_string(place->second);
    });
  row("operators", [](const GraphSummary& s) { return std::to_string(s.operator_count); });
  if (result.original.opaque_count > 0)
    row("opaque operators", [](const GraphSummary& s) { return std::to_string(s.opaque_count); });
  row("kernels", [](const GraphSummary& s) { return std::to_string(s.kernels); });
  if (result.layouts.problems > 0)
    row("of these conversions", [](const GraphSummary& s) { return std::to_string(s.conversions); });
  row("GFLOP", [](const GraphSummary& s) { return fmt::format("{:.4f}", s.flops * 1e-9); });
  row("traffic MB", [](const GraphSummary& s) { return fmt::format("{:.2f}", s.bytes * 1e-6); });
  row("intermediates MB", [](const GraphSummary& s) { return fmt::format("{:.2f}", s.peak_bytes * 1e-6); });
  if (result.original.predicted_seconds) times("predicted", &GraphSummary::predicted_seconds);
  if (result.noise) times("measured", &GraphSummary::measured_seconds);
  if (!result.original.predicted_seconds || result.cost_model != "time")
    row("cost in " + cost_unit(result.cost_model),
        [](const GraphSummary& s) { return std::isfinite(s.cost) ? fmt::format("{:.6g}", s.cost) : std::string("-"); });

  text += coverage_section(context.coverage);
  if (const auto counts = rule_counts(result); !counts.empty()) {
    text += fmt::format("\n{:<48}{:>10}{:>10}\n", "rules used", "baseline", "search");
    for (const auto& [name, count] : counts)
      text += fmt::format("{:<48}{:>10}{:>10}\n", name, count.first == 0 ? "-" : std::to_string(count.first),
                          count.second == 0 ? "-" : std::to_string(count.second));
  }
  text += "\n";
  text +=
      fmt::format("search  {}{} steps, {} candidates ({} met before), {} rules; stopped: {}\n",
                  result.search.parts > 0 ? fmt::format("{} parts, ", result.search.parts) : "", result.search.steps,
                  result.search.candidates, result.search.duplicates, context.rules, to_string(result.search.stop));
  if (result.result.least_cost)
    text += fmt::format("layouts {}\n", gap_text(result.result.cost, *result.result.least_cost));
  if (context.measured_kernels > 0)
    text += fmt::format("costs   {} kernels measured now, kept in {}\n", context.measured_kernels,
                        context.costs.empty() ? "memory only" : context.costs);
  if (context.tuning && context.tuning->choices > 0)
    text +=
        fmt::format("engines {} chosen now by timing, in {:.1f} s\n", context.tuning->choices, context.tuning->seconds);
  if (result.check) text += "check   " + result.check->summary() + "\n";
  for (const std::string& note : result.notes) text += "note    " + note + "\n";
  text += "result  " + verdict(result) + "\n";
  return text;
}

bool tells_costs(const OptimizeResult& result) {
  if (result.applications.size() <= result.baseline_applications) return false;
  const double told = result.applications.back().cost_after;
  return !is_less(told, result.graph_cost) && !is_less(result.graph_cost, told);
}

std::string explain_text(const OptimizeResult& result, const ReportContext& context) {
  std::string text;
  for (std::size_t i = 0; i < result.applications.size(); ++i) {
    const RuleApplication& application = result.applications[i];
    text += fmt::format("{:>4} {:<8} {} at {}", i + 1, i < result.baseline_applications ? "baseline" : "search",
                        application.rule, place_of(application, context.node_names));
    if (i >= result.baseline_applications && tells_costs(result))
      text += fmt::format(": {:.6g} -> {:.6g} {}", application.cost_before, application.cost_after,
                          cost_unit(result.cost_model));
    text += "\n";
  }
  return text.empty() ? "no rule was applied\n" : text;
}

namespace {

nlohmann::json timed_plans(const PlanSearchReport& report) {
  if (!report.timed) return nullptr;
  const PlanTimes& times = *report.timed;
  nlohmann::json plans = nlohmann::json::array(), one_device = nlohmann::json::array();
  for (const PlanTimes::Plan& plan : times.plans)
    plans.push_back({{"name", plan.name}, {"predicted", plan.predicted}, {"seconds", plan.seconds}});
  for (const PlanTimes::OneDevice& one : times.one_device)
    one_device.push_back({{"threads", one.threads}, {"seconds", one.seconds}});
  return {{"plans", plans},
          {"chosen", times.plans[times.chosen].name},
          {"one_device", one_device},
          {"noise", times.noise},
          {"date", times.date == 0 ? nlohmann::json(nullptr) : nlohmann::json(date_text(times.date))}};
}

}  // namespace

std::string report_json(const OptimizeResult& result, const ReportContext& context) {
  using nlohmann::json;
  const auto optional = [](const auto& value) { return value ? json(*value) : json(nullptr); };
  const auto summary = [&](const GraphSummary& s) {
    return json{{"operators", s.operators},
                {"operator_count", s.operator_count},
                {"opaque_count", s.opaque_count},
                {"kernels", s.kernels},
                {"flops", s.flops},
                {"bytes", s.bytes},
                {"peak_bytes", s.peak_bytes},
                {"cost", s.cost},
                {"conversions", s.conversions},
                {"rule_cost", optional(s.rule_cost)},
                {"least_cost", optional(s.least_cost)},
                {"predicted_seconds", optional(s.predicted_seconds)},
                {"measured_seconds", optional(s.measured_seconds)}};
  };
  json document;
  document["model"] = context.model;
  document["output"] = context.output;
  document["target"] = result.target;
  document["cost_model"] = result.cost_model;
  document["cost_unit"] = cost_unit(result.cost_model);
  document["strategy"] = to_string(result.strategy);
  document["layouts"] = {{"problems", result.layouts.problems},
                         {"solved", result.layouts.solved},
                         {"parts_solved", result.layouts.parts_solved},
                         {"parts_reused", result.layouts.parts_reused},
                         {"inexact", result.layouts.inexact},
                         {"largest_gap", result.layouts.largest_gap},
                         {"width", result.layouts.width},
                         {"largest_table", result.layouts.largest_table},
                         {"moves_tried", result.layouts.moves_tried},
                         {"moves_kept", result.layouts.moves_kept},
                         {"moves_ended", result.layouts.moves_ended},
                         {"seconds", result.layouts.seconds}};
  document["fp"] = context.numeric_classes;
  document["seconds"] = context.seconds;
  document["measured_kernels"] = context.measured_kernels;
  if (context.tuning) document["tuning"] = {{"choices", context.tuning->choices}, {"seconds", context.tuning->seconds}};
  document["ill_typed_nodes"] = context.ill_typed_nodes;
  document["coverage"] = nlohmann::json::parse(coverage_json(context.coverage));
  document["choice"] = to_string(result.choice);
  document["gain"] = result.gain;
  document["verdict"] = verdict(result);
  document["noise"] = optional(result.noise);
  document["noise_of_references"] = result.noise ? json(result.noise_of_references) : json(nullptr);
  document["confidence"] = result.noise ? json(1 - allowed_error) : json(nullptr);
  const auto finalist = std::find_if(result.contenders.begin(), result.contenders.end(),
                                     [](const Contender& contender) { return contender.in_final; });
  document["final"] = finalist == result.contenders.end() ? json(nullptr) : json(finalist->name);
  document["timed_on"] = result.timed_on == 0 ? json(nullptr) : json(date_text(result.timed_on));
  document["corrected"] = json::array();
  for (const CorrectedPrice& price : result.corrected)
    document["corrected"].push_back({{"kernel", price.kernel}, {"before", price.before}, {"after", price.after}});
  document["original"] = summary(result.original);
  document["baseline"] = summary(result.baseline);
  document["result"] = summary(result.result);
  document["contenders"] = json::array();
  for (const Contender& contender : result.contenders)
    document["contenders"].push_back(
        {{"name", contender.name}, {"cost", contender.cost}, {"seconds", optional(contender.seconds)}});
  document["rules"] = json::array();
  for (const auto& [name, count] : rule_counts(result))
    document["rules"].push_back({{"name", name}, {"baseline", count.first}, {"search", count.second}});
  document["applications"] = json::array();
  const bool costs = tells_costs(result);
  for (std::size_t i = 0; i < result.applications.size(); ++i) {
    const RuleApplication& application = result.applications[i];
    json nodes = json::array();
    for (const std::int32_t origin : application.origins)
      if (static_cast<std::size_t>(origin) < context.node_names.size())
        nodes.push_back(context.node_names[static_cast<std::size_t>(origin)]);
    document["applications"].push_back({{"rule", application.rule},
                                        {"stage", i < result.baseline_applications ? "baseline" : "search"},
                                        {"operators", application.operators},
                                        {"nodes", nodes},
                                        {"cost_before", costs ? json(application.cost_before) : json(nullptr)},
                                        {"cost_after", costs ? json(application.cost_after) : json(nullptr)}});
  }
  document["search"] = {{"steps", result.search.steps},           {"candidates", result.search.candidates},
                        {"duplicates", result.search.duplicates}, {"rejected", result.search.rejected},
                        {"unwritable", result.search.unwritable}, {"dropped", result.search.dropped},
                        {"seconds", result.search.seconds},       {"rules", context.rules},
                        {"parts", result.search.parts},           {"stop", to_string(result.search.stop)}};
  document["check"] = nullptr;
  if (result.check) {
    json tensors = json::array();
    for (const CheckedTensor& tensor : result.check->tensors)
      tensors.push_back({{"name", tensor.name},
                         {"max_difference", tensor.max_difference},
                         {"magnitude", tensor.magnitude},
                         {"sensitivity", tensor.sensitivity},
                         {"compared", tensor.compared},
                         {"not_finite", tensor.not_finite},
                         {"finite_share", tensor.finite_share},
                         {"own_deviation", tensor.own_deviation},
                         {"excused", tensor.excused},
                         {"within", tensor.within}});
    document["check"] = {{"passed", result.check->passed},
                         {"vacuous", result.check->vacuous},
                         {"worst", result.check->worst},
                         {"regions",
                          {{"count", result.check->regions.regions},
                           {"checked", result.check->regions.checked},
                           {"elements", result.check->regions.elements}}},
                         {"tensors", tensors}};
  }
  document["notes"] = result.notes;
  document["plan"] = nullptr;
  if (context.plan)
    document["plan"] = {{"search", context.plan->search},
                        {"unit", context.plan->unit},
                        {"cost", context.plan->cost},
                        {"sequential", optional(context.plan->sequential)},
                        {"partition", optional(context.plan->partition)},
                        {"one_device", optional(context.plan->one_device)},
                        {"graphs", context.plan->graphs},
                        {"stopped", context.plan->stopped},
                        {"rules", context.plan->rules},
                        {"timed", timed_plans(*context.plan)}};
  // Names come from files and need not be UTF-8.
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string date_text(int date) { return fmt::format("{:04}-{:02}-{:02}", date / 10000, date / 100 % 100, date % 100); }

std::string error_json(const Error& error, const std::string& model) {
  const nlohmann::json document{{"model", model}, {"error", error.to_string()}, {"exit_code", error.exit_code()}};
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace taso
