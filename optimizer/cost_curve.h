/// How the best cost falls over the steps of a search.
#pragma once

#include <cstddef>
#include <vector>

namespace taso {

/// A step function: the best cost found so far, by the number of steps. Bounded, so that it may be kept of a search of
/// any length: where there are too many points, every second one is forgotten, never the first or the last.
class CostCurve {
 public:
  /// From `step` on the best cost is `cost`.
  struct Point {
    std::size_t step = 0;
    double cost = 0;
    bool operator==(const Point&) const = default;
  };
  static constexpr std::size_t most_points = 512;

  /// `cost` was reached after `step` steps, no fewer than at the last point. It counts if it is below the last one.
  void add(std::size_t step, double cost);
  /// Goes on with the curve of a search that began after `steps` steps.
  void append(const CostCurve& more, std::size_t steps);
  /// Steps ascend, costs fall strictly.
  [[nodiscard]] const std::vector<Point>& points() const { return points_; }

 private:
  std::vector<Point> points_;
};

}  // namespace taso
