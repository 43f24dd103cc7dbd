/// Which costs are equal, and which is less.
#pragma once

#include <cmath>

namespace taso {

/// Costs are multiples of a small power of two. Sums of them are then exact (below 2^53 steps), the same in any order:
/// which of two equal graphs or layouts is met first does not depend on what was measured before.
class CostGrid {
 public:
  /// What a kernel costs that has no recorded cost and may not be measured: more than any graph. Sums with it are not
  /// exact, but each of them is above every sum without it.
  static constexpr double prohibitive = 1e12;

  /// Of costs in microseconds, MFLOP, MB or launches: steps of 4e-9, exact up to sums of 3e7.
  CostGrid() = default;
  /// Of such costs times a weight of at most `largest_weight`, which is above 0.
  explicit CostGrid(double largest_weight) : step_(std::ldexp(default_step, std::ilogb(largest_weight))) {}

  /// The multiple closest to a cost.
  [[nodiscard]] double operator()(double cost) const { return std::nearbyint(cost / step_) * step_; }

 private:
  static constexpr double default_step = 0x1p-28;
  double step_ = default_step;
};

/// Costs that differ by less than this share are not worth telling apart.
inline constexpr double equal_costs = 1e-9;

[[nodiscard]] inline bool is_less(double cost, double than) { return cost < than - equal_costs * std::abs(than); }

}  // namespace taso
