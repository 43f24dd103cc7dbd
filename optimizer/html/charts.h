/// Charts of a report's page, as text of HTML and SVG; report.css gives them colours.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace taso {

/// A step function.
struct ChartCurve {
  std::string name;                               ///< In the legend.
  std::string css_class;                          ///< "before", "after".
  std::vector<std::pair<double, double>> points;  ///< From x on the value is y; x ascend.
};

/// Step functions over one x axis, which begins at 0.
struct Chart {
  std::string title, x_label, y_label;
  double x_end = 1;       ///< Where the last values end.
  bool from_zero = true;  ///< The y axis begins at 0; else a little below the lowest value.
  std::vector<ChartCurve> curves;
};

/// As an SVG element, with numbers at the ends of the axes. Of a curve of very many points the highest of neighbouring
/// ones are drawn.
[[nodiscard]] std::string chart_svg(const Chart& chart);

/// One kind of thing before and after.
struct ChartBar {
  std::string label;
  double before = 0, after = 0;
};

/// Bars in the order of the larger of both, largest first, with `unit` behind their numbers; all but the first eight
/// are folded away.
[[nodiscard]] std::string bars_html(std::vector<ChartBar> bars, const std::string& unit);

/// Whole numbers as they are, others with three digits: "1.23", "12.3", "1230".
[[nodiscard]] std::string chart_number(double value);

}  // namespace taso
