#include "optimizer/html/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "optimizer/html/assets.h"
#include "optimizer/html/charts.h"
#include "optimizer/html/page.h"
#include "optimizer/html/page_data.h"
#include "support/markup.h"

namespace taso {
namespace {

constexpr const char* microseconds = "\u00b5s";

/// What may be compared: two numbers and their unit.
struct Compared {
  std::string label, unit;
  double before = 0, after = 0;
};

/// The unit of costs, in its own spelling.
std::string unit_of(const OptimizeResult& result) {
  const std::string unit = cost_unit(result.cost_model);
  return unit == "us" ? microseconds : unit;
}

/// The time of whole graphs as it was measured, else predicted, else the cost.
Compared compared_cost(const OptimizeResult& result) {
  const auto times = [&](const char* label, std::optional<double> GraphSummary::*member) -> std::optional<Compared> {
    if (!(result.original.*member) || !(result.result.*member)) return std::nullopt;
    const double before = *(result.original.*member), after = *(result.result.*member);
    const bool small = std::max(before, after) < 1e-3;
    return Compared{label, small ? microseconds : "ms", before * (small ? 1e6 : 1e3), after * (small ? 1e6 : 1e3)};
  };
  if (const auto measured = times("measured time", &GraphSummary::measured_seconds)) return *measured;
  if (const auto predicted = times("predicted time", &GraphSummary::predicted_seconds)) return *predicted;
  return {"cost", unit_of(result), result.original.cost, result.result.cost};
}

std::string tile(const Compared& compared) {
  const double most = std::max(compared.before, compared.after);
  const auto bar = [&](const char* css_class, double value) {
    return fmt::format("<i class=\"{}\" style=\"width:{:.2f}%\"></i>", css_class, most > 0 ? 100 * value / most : 0.0);
  };
  std::string change = "unchanged";
  if (compared.before != compared.after && compared.before > 0)
    change = fmt::format("{:+.1f} %", 100 * (compared.after / compared.before - 1));
  return fmt::format(
      "<div class=\"tile\"><h3>{}</h3><p class=\"change\">{}</p><p>{} \u2192 {} {}</p><div class=\"bars\">{}{}</div>"
      "</div>\n",
      escape_markup(compared.label), change, chart_number(compared.before), chart_number(compared.after),
      escape_markup(compared.unit), bar("before", compared.before), bar("after", compared.after));
}

/// Bytes in kB where all are below 0.1 MB, else in MB.
std::pair<const char*, double> unit_of_bytes(double most) {
  return most < 1e5 ? std::pair("kB", 1e-3) : std::pair("MB", 1e-6);
}

Compared compared_bytes(const char* label, double before, double after) {
  const auto [unit, scale] = unit_of_bytes(std::max(before, after));
  return {label, unit, before * scale, after * scale};
}

std::string tiles(const OptimizeResult& result) {
  const GraphSummary &before = result.original, &after = result.result;
  const auto count = [](std::size_t value) { return static_cast<double>(value); };
  return "<div class=\"tiles\">\n" + tile(compared_cost(result)) +
         tile({"kernels", "", count(before.kernels), count(after.kernels)}) +
         tile({"operators", "", count(before.operator_count), count(after.operator_count)}) +
         tile(compared_bytes("traffic", before.bytes, after.bytes)) +
         tile(compared_bytes("memory for intermediates", before.peak_bytes, after.peak_bytes)) + "</div>\n";
}

/// Sums over the launches of both graphs by operator; nothing if a launch has no such value.
template <class Of>
std::optional<std::vector<ChartBar>> bars_by_operator(const HtmlReport& report, const Of& value_of) {
  std::map<std::string, ChartBar> bars;
  const auto add = [&](const RunProfile& run, double ChartBar::*member) {
    for (const ProfiledLaunch& launch : run.launches) {
      const std::optional<double> value = value_of(launch);
      if (!value) return false;
      bars[launch.op].*member += *value;
    }
    return true;
  };
  if (!add(report.original.run, &ChartBar::before) || !add(report.optimized.run, &ChartBar::after)) return std::nullopt;
  std::vector<ChartBar> list;
  for (auto& [op, bar] : bars) {
    bar.label = op;
    list.push_back(bar);
  }
  return list;
}

/// Bars of microseconds, in milliseconds where one is long.
std::string time_bars(std::vector<ChartBar> bars) {
  constexpr double longest = 1e4;
  const bool is_long = std::any_of(bars.begin(), bars.end(),
                                   [](const ChartBar& bar) { return bar.before >= longest || bar.after >= longest; });
  for (ChartBar& bar : bars) {
    bar.before *= is_long ? 1e-3 : 1;
    bar.after *= is_long ? 1e-3 : 1;
  }
  return bars_html(std::move(bars), is_long ? "ms" : microseconds);
}

/// The bars of each measure there is; a radio button shows one of them.
std::string operator_bars(const HtmlReport& report) {
  struct Measure {
    const char* label;
    const char* unit;  ///< Null: times.
    std::optional<std::vector<ChartBar>> bars;
  };
  const auto us = [](const std::optional<double>& seconds) {
    return seconds ? std::optional(*seconds * 1e6) : std::nullopt;
  };
  const Measure measures[] = {
      {"measured time", nullptr, bars_by_operator(report, [&](const auto& launch) { return us(launch.measured); })},
      {"predicted time", nullptr, bars_by_operator(report, [&](const auto& launch) { return us(launch.predicted); })},
      {"kernels", "", bars_by_operator(report, [](const auto&) { return std::optional(1.0); })},
      {"arithmetic", "MFLOP",
       bars_by_operator(report, [](const auto& launch) { return std::optional(launch.flops * 1e-6); })},
      {"traffic", "MB",
       bars_by_operator(report, [](const auto& launch) { return std::optional(launch.bytes * 1e-6); })}};
  std::string buttons, panels;
  std::size_t number = 0;
  for (const Measure& measure : measures) {
    if (!measure.bars) continue;
    ++number;
    buttons += fmt::format(
        "<input type=\"radio\" name=\"measure\" id=\"measure{0}\"{1}><label for=\"measure{0}\">{2}"
        "</label>\n",
        number, number == 1 ? " checked" : "", measure.label);
    panels += fmt::format("<div class=\"measure\">\n{}</div>\n",
                          measure.unit == nullptr ? time_bars(*measure.bars) : bars_html(*measure.bars, measure.unit));
  }
  return "<figure class=\"kinds\"><figcaption>By kind of kernel</figcaption>\n" + buttons + panels + "</figure>\n";
}

std::string cost_chart(const OptimizeResult& result) {
  Chart chart;
  chart.title = "Best cost over the steps of the search";
  chart.x_label = "steps";
  chart.y_label = unit_of(result);
  chart.x_end = static_cast<double>(std::max<std::size_t>(result.search.steps, 1));
  chart.from_zero = false;
  ChartCurve curve{"best cost", "after", {}};
  for (const CostCurve::Point& point : result.search.curve.points())
    curve.points.emplace_back(static_cast<double>(point.step), point.cost);
  const std::string caption = curve.points.size() > 1
                                  ? fmt::format("from {:.6g} of the baseline to {:.6g}", curve.points.front().second,
                                                curve.points.back().second)
                                  : "no graph was cheaper than the baseline";
  chart.curves.push_back(std::move(curve));
  return fmt::format("<figure><figcaption>{} <small>({}; stopped: {})</small></figcaption>\n{}</figure>\n", chart.title,
                     escape_markup(caption), to_string(result.search.stop), chart_svg(chart));
}

std::string memory_chart(const HtmlReport& report) {
  Chart chart;
  chart.title = "Memory for intermediates over a run";
  chart.x_label = "% of the kernels";
  double most = 0;
  for (const auto* run : {&report.original.run, &report.optimized.run})
    for (const double bytes : run->memory) most = std::max(most, bytes);
  const auto [unit, scale] = unit_of_bytes(most);
  chart.y_label = unit;
  chart.x_end = 100;
  const auto add = [&, to_unit = scale](const char* name, const char* css_class, const std::vector<double>& bytes) {
    ChartCurve curve{name, css_class, {}};
    for (std::size_t i = 0; i < bytes.size(); ++i)
      curve.points.emplace_back(100 * static_cast<double>(i) / static_cast<double>(bytes.size()), bytes[i] * to_unit);
    chart.curves.push_back(std::move(curve));
  };
  add("original", "before", report.original.run.memory);
  add("result", "after", report.optimized.run.memory);
  return fmt::format("<figure><figcaption>{}</figcaption>\n{}</figure>\n", chart.title, chart_svg(chart));
}

std::string table_of_numbers(const OptimizeResult& result) {
  const GraphSummary* columns[] = {&result.original, &result.baseline, &result.result};
  std::string text =
      "<details open><summary>Numbers</summary>\n<table><tr><th></th><th>original</th><th>baseline</th>"
      "<th>result</th></tr>\n";
  const auto row = [&](std::string_view name, const auto& cell) {
    text += fmt::format("<tr><td>{}</td>", escape_markup(name));
    for (const GraphSummary* column : columns) text += "<td>" + cell(*column) + "</td>";
    text += "</tr>\n";
  };
  const auto times = [&](const std::string& name, std::optional<double> GraphSummary::*member) {
    const std::vector<std::string> cells =
        row_of_times(name, {result.original.*member, result.baseline.*member, result.result.*member});
    text +=
        fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", cells[0], cells[1], cells[2], cells[3]);
  };
  row("operators", [](const GraphSummary& s) { return std::to_string(s.operator_count); });
  row("opaque operators", [](const GraphSummary& s) { return std::to_string(s.opaque_count); });
  row("kernels", [](const GraphSummary& s) { return std::to_string(s.kernels); });
  row("of these conversions", [](const GraphSummary& s) { return std::to_string(s.conversions); });
  row("GFLOP", [](const GraphSummary& s) { return fmt::format("{:.4f}", s.flops * 1e-9); });
  row("traffic MB", [](const GraphSummary& s) { return fmt::format("{:.2f}", s.bytes * 1e-6); });
  row("intermediates MB", [](const GraphSummary& s) { return fmt::format("{:.2f}", s.peak_bytes * 1e-6); });
  times("predicted", &GraphSummary::predicted_seconds);
  times("measured", &GraphSummary::measured_seconds);
  row("cost in " + unit_of(result), [](const GraphSummary& s) { return fmt::format("{:.6g}", s.cost); });
  return text + "</table>\n</details>\n";
}

/// One of the two graphs; the script draws it.
std::string graph_figure(const char* name, const ReportedGraph& graph) {
  std::string text = fmt::format(
      "<figure class=\"graph\"><figcaption><strong>{0}</strong> <span class=\"size\"></span><span class=\"buttons\">"
      "<button type=\"button\" class=\"in\" aria-label=\"{0}: zoom in\">+</button>"
      "<button type=\"button\" class=\"out\" aria-label=\"{0}: zoom out\">\u2212</button>"
      "<button type=\"button\" class=\"fit\">fit</button></span></figcaption>\n"
      "<div class=\"view\"><canvas class=\"drawing\" tabindex=\"0\" role=\"application\" aria-label=\"{0} graph\" "
      "aria-describedby=\"keys\"></canvas><canvas class=\"map\" aria-hidden=\"true\"></canvas>"
      "<div class=\"node\" role=\"status\"></div></div>\n",
      name);
  if (!graph.run.problem.empty())
    text += fmt::format("<p class=\"note\">kernels were not timed: {}</p>\n", escape_markup(graph.run.problem));
  return text + "</figure>\n";
}

std::string graphs(const HtmlReport& report) {
  const char* tools = R"(<section><h2>Graphs</h2>
<p class="tools"><label>search <input type="search" id="search" placeholder="operator, name, shape, kernel"></label>
<button type="button" id="previous">previous</button> <button type="button" id="next">next</button>
<output id="found" for="search"></output></p>
<p class="legend"><span class="swatch changed"></span> changed: equal colours belong together; a click shows the other
side <span class="swatch same"></span> unchanged <span class="swatch input"></span> input
<span class="swatch carried"></span> carried, not understood)";
  const char* keys = R"(</div>
<p id="keys" class="keys">drag: move; wheel with Ctrl, or after a click: zoom. Keys in a graph: arrows go along lines and
layers, with Shift they move it, Enter shows the other side, + &minus; zoom, 0 fits, Esc ends the selection</p>
<noscript><p class="note">The graphs, and the places of rules, are drawn by a script, which is switched
off.</p></noscript></section>
)";
  const bool timed = std::any_of(report.original.run.launches.begin(), report.original.run.launches.end(),
                                 [](const ProfiledLaunch& launch) { return launch.predicted || launch.measured; });
  return std::string(tools) + (timed ? " <span class=\"swatch cost\"></span> time" : "") +
         "</p>\n<div class=\"pair\">\n" + graph_figure("original", report.original) +
         graph_figure("result", report.optimized) + keys;
}

std::string counted(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// How a rule was used.
struct RuleUses {
  std::size_t first = 0;  ///< Its first application.
  std::size_t baseline = 0, search = 0;
  double gain = 0;
};

/// The rules in the order of their first applications.
std::vector<RuleUses> uses_of_rules(const OptimizeResult& result) {
  std::map<std::string, std::size_t> places;
  std::vector<RuleUses> all;
  for (std::size_t i = 0; i < result.applications.size(); ++i) {
    const RuleApplication& application = result.applications[i];
    const auto [place, fresh] = places.emplace(application.rule, all.size());
    if (fresh) all.push_back({i, 0, 0, 0});
    RuleUses& uses = all[place->second];
    ++(i < result.baseline_applications ? uses.baseline : uses.search);
    uses.gain += application.cost_before - application.cost_after;
  }
  return all;
}

/// The script fills in the places of a rule when it is unfolded.
std::string rules(const OptimizeResult& result) {
  const std::vector<RuleUses> all = uses_of_rules(result);
  std::string text = "<section><h2>" + counted(result.applications.size(), "application") + " of " +
                     counted(all.size(), "rule") + "</h2>\n";
  for (const RuleUses& uses : all) {
    std::string counts;
    if (uses.baseline > 0) counts = fmt::format("{} in the baseline", uses.baseline);
    if (uses.search > 0) counts += fmt::format("{}{} in the search", counts.empty() ? "" : ", ", uses.search);
    if (uses.search > 0 && tells_costs(result))
      counts += fmt::format(", gain {} {}", chart_number(uses.gain), escape_markup(unit_of(result)));
    text += fmt::format(
        "<details class=\"rule\" data-first=\"{}\"><summary><code>{}</code> {}</summary><ol></ol></details>\n",
        uses.first, escape_markup(result.applications[uses.first].rule), counts);
  }
  return text + "</section>\n";
}

/// What keeps nodes from being understood, by cause.
std::string causes(const Coverage& coverage) {
  if (coverage.causes.empty()) return "";
  std::string text = fmt::format(
      "<section><h2>What was not understood, and why</h2>\n<p>Open to rules: {}. {} of {} nodes of the file are "
      "carried, "
      "{} of them only for what they read.</p>\n<table "
      "class=\"carried\"><tr><th>operator</th><th>number</th><th>cause</th>"
      "<th>nodes behind it</th><th>what would help</th></tr>\n",
      escape_markup(open_share_text(coverage)), coverage.carried, coverage.understood + coverage.carried,
      coverage.behind);
  for (const CarriedCause& cause : coverage.causes)
    text += fmt::format("<tr><td>{}</td><td>{}</td><td title=\"{}\">{}</td><td>{}</td><td>{}</td></tr>\n",
                        escape_markup(cause.op), cause.nodes, escape_markup(cause.node), escape_markup(cause.cause),
                        cause.behind, escape_markup(cause.help));
  return text + "</table></section>\n";
}

std::string carried(const std::vector<CarriedOperator>& operators) {
  if (operators.empty()) return "";
  std::string text =
      "<section><h2>Operators that are carried</h2>\n<p>They are carried as they are; no rule reaches across "
      "them.</p>\n<table class=\"carried\"><tr><th>operator</th><th>number</th><th>reason (of the first)</th></tr>\n";
  for (const CarriedOperator& one : operators)
    text += fmt::format("<tr><td><button type=\"button\" class=\"find\">{}</button></td><td>{}</td><td>{}</td></tr>\n",
                        escape_markup(one.op), one.count, escape_markup(one.reason));
  return text + "</table></section>\n";
}

std::string head(const HtmlReport& report) {
  const OptimizeResult& result = *report.result;
  return page_begin(report.context->model) +
         fmt::format(
             "<header><h1>{}</h1>\n<p class=\"verdict\"><strong>{}</strong></p>\n<p class=\"facts\">target {}; cost "
             "{}; "
             "rounding {}</p>\n",
             escape_markup(report.context->model), escape_markup(verdict(result)), escape_markup(result.target),
             escape_markup(result.cost_model), escape_markup(report.context->numeric_classes));
}

}  // namespace

std::string report_html(const HtmlReport& report) {
  const OptimizeResult& result = *report.result;
  std::string text = head(report);
  if (result.check) text += "<p>check: " + escape_markup(result.check->summary()) + "</p>\n";
  for (const std::string& note : result.notes) text += "<p class=\"facts\">note: " + escape_markup(note) + "</p>\n";
  text +=
      "</header>\n<main>\n<section><h2>What changed</h2>\n<p class=\"legend\"><span class=\"swatch before\"></span> "
      "original <span class=\"swatch after\"></span> result</p>\n" +
      tiles(result) + "<div class=\"charts\">\n" + operator_bars(report) + cost_chart(result) + memory_chart(report) +
      "</div></section>\n";
  text += report.plan + graphs(report) + rules(result) + causes(report.context->coverage) + carried(report.carried);
  text += "<section>" + table_of_numbers(result) +
          "</section>\n</main>\n<script type=\"application/json\" id=\"data\">" + page_data(report) +
          "</script>\n<script type=\"module\">\n";
  text += report_js;
  return text + "</script>\n</body></html>\n";
}

}  // namespace taso
