/// When a cost is less than another.
#pragma once

#include <cmath>

namespace taso {

/// Sums of equal terms in another order differ in the last bits: costs that differ by less than this share are equal.
inline constexpr double equal_costs = 1e-9;

[[nodiscard]] inline bool is_less(double cost, double than) { return cost < than - equal_costs * std::abs(than); }

}  // namespace taso
