#include "optimizer/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/markup.h"

namespace taso {
namespace {

// Sizes in the units of the drawing.
constexpr double box_width = 168, box_height = 34, gap_x = 14, gap_y = 26, margin = 10;
constexpr int sweeps = 4;  // Of the ordering within layers.
constexpr std::size_t label_length = 26;

std::string shortened(const std::string& text) {
  if (text.size() <= label_length) return text;
  // Not in the middle of a character.
  std::size_t end = label_length - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "\u2026";
}

std::string cost_text(double cost, bool time) {
  if (time) return fmt::format("{:.1f} \u00b5s", cost * 1e6);
  return fmt::format("{} {}", cost, cost == 1 ? "launch" : "launches");
}

// The place of every drawn node: a layer and a position within it.
struct Drawing {
  std::vector<std::vector<NodeId>> layers;
  std::map<NodeId, std::pair<std::size_t, std::size_t>> places;
};

bool is_drawn(const Node& node) {
  return node.kind == NodeKind::input || (!node.weight_only && node.kind != NodeKind::constant);
}

void number_places(Drawing& drawing) {
  for (std::size_t layer = 0; layer < drawing.layers.size(); ++layer)
    for (std::size_t i = 0; i < drawing.layers[layer].size(); ++i)
      drawing.places[drawing.layers[layer][i]] = {layer, i};
}

// Layers by the longest way from an input, ordered by the mean place of neighbours (Sugiyama, Tagawa, Toda 1981),
// without nodes of their own for edges that pass layers.
Drawing arrange(const Graph& graph) {
  Drawing drawing;
  std::map<NodeId, std::vector<NodeId>> readers, read;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (!is_drawn(node)) continue;
    std::size_t layer = 0;
    for (const Value& input : node.inputs) {
      if (!is_drawn(graph.node(input.node))) continue;
      layer = std::max(layer, drawing.places[input.node].first + 1);
      read[id].push_back(input.node);
      readers[input.node].push_back(id);
    }
    if (drawing.layers.size() <= layer) drawing.layers.resize(layer + 1);
    drawing.places[id] = {layer, drawing.layers[layer].size()};
    drawing.layers[layer].push_back(id);
  }
  auto order = [&](std::vector<NodeId>& layer, std::map<NodeId, std::vector<NodeId>>& neighbours) {
    std::map<NodeId, double> means;
    for (const NodeId id : layer) {
      const std::vector<NodeId>& near = neighbours[id];
      double sum = 0;
      for (const NodeId other : near) {
        const auto [at, place] = drawing.places[other];
        sum += (static_cast<double>(place) + 0.5) / static_cast<double>(drawing.layers[at].size());
      }
      means[id] = near.empty()
                      ? (static_cast<double>(drawing.places[id].second) + 0.5) / static_cast<double>(layer.size())
                      : sum / static_cast<double>(near.size());
    }
    std::stable_sort(layer.begin(), layer.end(), [&](NodeId a, NodeId b) { return means[a] < means[b]; });
  };
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    for (std::size_t i = 0; i < drawing.layers.size(); ++i) {
      const bool down = sweep % 2 == 0;
      order(drawing.layers[down ? i : drawing.layers.size() - 1 - i], down ? read : readers);
      number_places(drawing);
    }
  }
  return drawing;
}

std::string types_text(const std::vector<TensorType>& types) {
  std::string text;
  for (const TensorType& type : types) text += (text.empty() ? "" : ", ") + to_string(type);
  return text;
}

std::string name_of(const Node& node, const ReportContext& context) {
  const auto origin = static_cast<std::size_t>(node.origin);
  return node.origin >= 0 && origin < context.node_names.size() ? context.node_names[origin] : "";
}

// From pale to red by the share of the costliest node.
std::string colour(double share) {
  const auto fade = static_cast<int>(std::lround(245 - 175 * std::sqrt(std::clamp(share, 0.0, 1.0))));
  return fmt::format("rgb(250,{},{})", fade, fade);
}

constexpr const char* style =
    "body{font:14px sans-serif;margin:24px;color:#222}table{border-collapse:collapse;margin:12px 0}"
    "td,th{padding:3px 12px;text-align:right;border-bottom:1px solid "
    "#ddd}td:first-child,th:first-child{text-align:left}"
    ".graphs{display:flex;gap:24px;align-items:flex-start}.graphs>div{overflow:auto;max-width:48vw;max-height:90vh;"
    "border:1px solid #ccc}ol{line-height:1.5}code{background:#f4f4f4;padding:1px 4px}svg text{font:11px sans-serif}";

}  // namespace

Expected<PricedGraph> price_nodes(const Graph& graph, MeasuredCosts& measured, CostModel& model, bool open) {
  TASO_ASSIGN(const PlannedGraph planned, GraphPlanner(measured, model, open).plan(graph));
  PricedGraph result;
  result.graph = &graph;
  for (const Launch& launch : planned.plan.launches) {
    double cost = 1;
    if (model.uses_time()) {
      TASO_ASSIGN(cost, measured.seconds(*launch.kernel));
    }
    result.costs[launch.node] += cost;
  }
  return result;
}

std::string graph_svg(const PricedGraph& priced, const ReportContext& context, bool time) {
  const Graph& graph = *priced.graph;
  const Drawing drawing = arrange(graph);
  std::size_t widest = 1;
  for (const auto& layer : drawing.layers) widest = std::max(widest, layer.size());
  double most = 0;
  for (const auto& [id, cost] : priced.costs) most = std::max(most, cost);
  const double width = 2 * margin + static_cast<double>(widest) * (box_width + gap_x) - gap_x;
  const double height = 2 * margin + static_cast<double>(drawing.layers.size()) * (box_height + gap_y) - gap_y;
  auto left = [&](NodeId id) {
    const auto [layer, place] = drawing.places.at(id);
    const double used = static_cast<double>(drawing.layers[layer].size()) * (box_width + gap_x) - gap_x;
    return (width - used) / 2 + static_cast<double>(place) * (box_width + gap_x);
  };
  auto top = [&](NodeId id) {
    return margin + static_cast<double>(drawing.places.at(id).first) * (box_height + gap_y);
  };
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" viewBox=\"0 0 {:.0f} {:.0f}\">\n",
      width, std::max(height, 1.0), width, std::max(height, 1.0));
  for (const auto& layer : drawing.layers)
    for (const NodeId id : layer)
      for (const Value& input : graph.node(id).inputs) {
        if (!is_drawn(graph.node(input.node))) continue;
        const double x1 = left(input.node) + box_width / 2, y1 = top(input.node) + box_height;
        const double x2 = left(id) + box_width / 2, y2 = top(id), bend = (y2 - y1) / 2;
        text += fmt::format(
            "<path d=\"M{:.0f} {:.0f}C{:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}\" fill=\"none\" stroke=\"#999\"/>\n",
            x1, y1, x1, y1 + bend, x2, y2 - bend, x2, y2);
      }
  for (const auto& layer : drawing.layers)
    for (const NodeId id : layer) {
      const Node& node = graph.node(id);
      const auto cost = priced.costs.find(id);
      const bool priced_node = cost != priced.costs.end();
      const std::string what = node.kind == NodeKind::input ? node.name : node.op;
      std::string title = what;
      if (!node.attributes.empty()) title += "; " + to_string(node.attributes);
      title += "\n" + types_text(node.outputs);
      if (const std::string name = name_of(node, context); !name.empty()) title += "\nfrom " + name;
      if (priced_node) title += "\n" + cost_text(cost->second, time);
      const std::string fill = node.kind == NodeKind::input    ? "#dfe9f7"
                               : node.kind == NodeKind::opaque ? "#e4e4e4"
                               : priced_node                   ? colour(time && most > 0 ? cost->second / most : 0)
                                                               : "#ffffff";
      const double x = left(id), y = top(id);
      text += fmt::format(
          "<g><title>{}</title><rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{}\" height=\"{}\" rx=\"5\" fill=\"{}\" "
          "stroke=\"#666\"/><text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>",
          escape_markup(title), x, y, box_width, box_height, fill, x + box_width / 2, y + 14,
          escape_markup(shortened(what)));
      const std::string below = priced_node ? cost_text(cost->second, time) : types_text(node.outputs);
      text += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\" fill=\"#555\">{}</text></g>\n",
                          x + box_width / 2, y + 28, escape_markup(shortened(below)));
    }
  return text + "</svg>\n";
}

std::string report_html(const OptimizeResult& result, const ReportContext& context, const PricedGraph& original,
                        const PricedGraph& optimized, bool time) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta "
      "charset=\"utf-8\"><title>{}</title><style>{}</style></head><body>\n"
      "<h1>{}</h1>\n<p><strong>{}</strong></p>\n<p>target {}; cost {}; rounding {}</p>\n",
      escape_markup(context.model), style, escape_markup(context.model), escape_markup(verdict(result)),
      escape_markup(result.target), escape_markup(result.cost_model), escape_markup(context.numeric_classes));
  const GraphSummary* columns[] = {&result.original, &result.baseline, &result.result};
  text += "<table><tr><th></th><th>original</th><th>baseline</th><th>result</th></tr>\n";
  auto row = [&](std::string_view name, const auto& cell) {
    text += fmt::format("<tr><td>{}</td>", name);
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
  row("GFLOP", [](const GraphSummary& s) { return fmt::format("{:.4f}", s.flops * 1e-9); });
  row("traffic MB", [](const GraphSummary& s) { return fmt::format("{:.2f}", s.bytes * 1e-6); });
  row("intermediates MB", [](const GraphSummary& s) { return fmt::format("{:.2f}", s.peak_bytes * 1e-6); });
  times("predicted", &GraphSummary::predicted_seconds);
  times("measured", &GraphSummary::measured_seconds);
  row("cost in " + cost_unit(result.cost_model), [](const GraphSummary& s) { return fmt::format("{:.6g}", s.cost); });
  text += "</table>\n";
  if (result.check) text += "<p>check: " + escape_markup(result.check->summary()) + "</p>\n";
  for (const std::string& note : result.notes) text += "<p>note: " + escape_markup(note) + "</p>\n";
  text += fmt::format("<h2>{} applications of rules</h2>\n<ol>\n", result.applications.size());
  for (std::size_t i = 0; i < result.applications.size(); ++i) {
    const RuleApplication& application = result.applications[i];
    text += fmt::format("<li><code>{}</code> {} at {}", escape_markup(application.rule),
                        i < result.baseline_applications ? "(baseline)" : "",
                        escape_markup(place_of(application, context)));
    if (i >= result.baseline_applications)
      text += fmt::format(": {:.6g} &rarr; {:.6g} {}", application.cost_before, application.cost_after,
                          cost_unit(result.cost_model));
    text += "</li>\n";
  }
  text += "</ol>\n<div class=\"graphs\"><div><h2>original</h2>\n" + graph_svg(original, context, time) +
          "</div><div><h2>result</h2>\n" + graph_svg(optimized, context, time) + "</div></div>\n</body></html>\n";
  return text;
}

}  // namespace taso
