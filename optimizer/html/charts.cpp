#include "optimizer/html/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "support/markup.h"

namespace taso {
namespace {

constexpr std::size_t most_points = 400, shown_bars = 8;

/// What a chart shows: x from 0 on, y between two values.
struct Frame {
  /// Of the drawing, in its units: its size, and where the axes end.
  static constexpr double width = 460, height = 230, left = 66, right = 448, top = 12, bottom = 200;
  double x_end = 1, low = 0, high = 1;
  [[nodiscard]] double x(double value) const { return left + (right - left) * value / x_end; }
  [[nodiscard]] double y(double value) const { return top + (bottom - top) * (high - value) / (high - low); }
};

Frame frame_of(const Chart& chart) {
  Frame frame;
  frame.x_end = chart.x_end > 0 ? chart.x_end : 1;
  double low = 0, high = 0;
  bool first = true;
  for (const ChartCurve& curve : chart.curves)
    for (const auto& [x, y] : curve.points) {
      low = first ? y : std::min(low, y);
      high = first ? y : std::max(high, y);
      first = false;
    }
  const double spread = high - low;
  frame.low = chart.from_zero ? 0 : std::max(0.0, low - spread / 10);
  frame.high = high;
  if (frame.high <= frame.low) {  // A flat line, in the middle.
    frame.low = 0;
    frame.high = high > 0 ? 2 * high : 1;
  }
  return frame;
}

/// At most `most_points` points; each is the highest of those that it stands for.
std::vector<std::pair<double, double>> thinned(const std::vector<std::pair<double, double>>& points) {
  if (points.size() <= most_points) return points;
  std::vector<std::pair<double, double>> fewer;
  for (std::size_t bucket = 0; bucket < most_points; ++bucket) {
    const std::size_t begin = bucket * points.size() / most_points, end = (bucket + 1) * points.size() / most_points;
    double most = points[begin].second;
    for (std::size_t i = begin; i < end; ++i) most = std::max(most, points[i].second);
    fewer.emplace_back(points[begin].first, most);
  }
  return fewer;
}

std::string path_of(const ChartCurve& curve, const Frame& frame) {
  std::string path;
  for (const auto& [x, y] : thinned(curve.points))
    path += path.empty() ? fmt::format("M{:.1f} {:.1f}", frame.x(x), frame.y(y))
                         : fmt::format("H{:.1f}V{:.1f}", frame.x(x), frame.y(y));
  return path + fmt::format("H{:.1f}", frame.x(frame.x_end));
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"{}\">{}</text>", x, y, anchor, escape_markup(text));
}

std::string bar_row(const ChartBar& bar, double most, const std::string& unit) {
  const auto one = [&](const char* css_class, double value) {
    return fmt::format("<div class=\"bar {}\"><i style=\"width:{:.2f}%\"></i><span>{}</span></div>", css_class,
                       most > 0 ? 100 * value / most : 0.0,
                       value > 0 ? escape_markup(chart_number(value) + " " + unit) : "\u2013");
  };
  return fmt::format("<div class=\"kind\"><div class=\"label\">{}</div><div>{}{}</div></div>\n",
                     escape_markup(bar.label), one("before", bar.before), one("after", bar.after));
}

}  // namespace

std::string chart_number(double value) {
  const double magnitude = std::abs(value);
  if (value == std::floor(value) && magnitude < 1e6) return fmt::format("{:.0f}", value);
  const int decimals = magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : magnitude >= 0.995 ? 2 : 3;
  return magnitude >= 0.001 ? fmt::format("{:.{}f}", value, decimals) : fmt::format("{:.3g}", value);
}

std::string chart_svg(const Chart& chart) {
  const Frame frame = frame_of(chart);
  std::string text = fmt::format(
      "<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n<path class=\"axis\" "
      "d=\"M{} {}V{}H{}\"/>\n",
      Frame::width, Frame::height, escape_markup(chart.title), Frame::left, Frame::top, Frame::bottom, Frame::right);
  const double beside = Frame::left - 6, below = Frame::bottom + 16;
  text += text_at(beside, Frame::top + 8, "end", chart_number(frame.high)) +
          text_at(beside, Frame::bottom, "end", chart_number(frame.low)) +
          text_at(beside, (Frame::top + Frame::bottom) / 2 + 4, "end", chart.y_label) +
          text_at(Frame::left, below, "middle", "0") + text_at(Frame::right, below, "end", chart_number(chart.x_end)) +
          text_at((Frame::left + Frame::right) / 2, below, "middle", chart.x_label) + "\n";
  for (const ChartCurve& curve : chart.curves) {
    if (curve.points.empty()) continue;
    text += fmt::format("<path class=\"curve {}\" d=\"{}\"><title>{}</title></path>\n", curve.css_class,
                        path_of(curve, frame), escape_markup(curve.name));
  }
  return text + "</svg>\n";
}

std::string bars_html(std::vector<ChartBar> bars, const std::string& unit) {
  std::stable_sort(bars.begin(), bars.end(), [](const ChartBar& a, const ChartBar& b) {
    return std::max(a.before, a.after) > std::max(b.before, b.after);
  });
  const double most = bars.empty() ? 0 : std::max(bars[0].before, bars[0].after);
  std::string text;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    if (i == shown_bars) text += fmt::format("<details><summary>{} more kinds</summary>\n", bars.size() - shown_bars);
    text += bar_row(bars[i], most, unit);
  }
  return bars.size() > shown_bars ? text + "</details>\n" : text;
}

}  // namespace taso
