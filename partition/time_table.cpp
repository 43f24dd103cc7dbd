#include "partition/time_table.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "support/status.h"

namespace taso {

TimeTable TimeTable::of(std::vector<Point> measured) {
  std::sort(measured.begin(), measured.end());
  // Runs of points that get their mean.
  struct Run {
    double seconds = 0;  ///< The sum.
    std::size_t count = 0;
    [[nodiscard]] double mean() const { return seconds / static_cast<double>(count); }
  };
  std::vector<Run> runs;
  for (const Point& point : measured) {
    runs.push_back({point.seconds, 1});
    while (runs.size() > 1 && runs[runs.size() - 2].mean() > runs.back().mean()) {
      const Run last = runs.back();
      runs.pop_back();
      runs.back().seconds += last.seconds;
      runs.back().count += last.count;
    }
  }
  TimeTable table;
  table.points_ = std::move(measured);
  std::size_t at = 0;
  for (const Run& run : runs)
    for (std::size_t i = 0; i < run.count; ++i) table.points_[at++].seconds = run.mean();
  return table;
}

double TimeTable::seconds(double bytes) const {
  TASO_CHECK(!points_.empty(), "nothing was measured");
  if (points_.size() == 1 || bytes <= points_[0].bytes) return points_[0].seconds;
  auto upper = std::upper_bound(points_.begin(), points_.end(), bytes,
                                [](double value, const Point& point) { return value < point.bytes; });
  if (upper == points_.end()) --upper;
  const Point &from = *(upper - 1), &to = *upper;
  return from.seconds + (to.seconds - from.seconds) * ((bytes - from.bytes) / (to.bytes - from.bytes));
}

}  // namespace taso
