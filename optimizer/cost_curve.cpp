#include "optimizer/cost_curve.h"

namespace taso {

void CostCurve::add(std::size_t step, double cost) {
  if (!points_.empty() && !(cost < points_.back().cost)) return;
  if (!points_.empty() && points_.back().step == step) {
    points_.back().cost = cost;
    return;
  }
  points_.push_back({step, cost});
  if (points_.size() <= most_points) return;
  std::vector<Point> fewer;
  for (std::size_t i = 0; i < points_.size(); ++i)
    if (i % 2 == 0 || i + 1 == points_.size()) fewer.push_back(points_[i]);
  points_ = std::move(fewer);
}

void CostCurve::append(const CostCurve& more, std::size_t steps) {
  for (const Point& point : more.points_) add(steps + point.step, point.cost);
}

}  // namespace taso
