/// The ranks that a definition accepts of an operand.
#pragma once

#include <cstddef>
#include <vector>

#include "operators/definition.h"

namespace taso {

/// Ranks from `least` on, or `least` alone.
struct RankRange {
  std::size_t least = 0;
  bool only = false;
  bool operator==(const RankRange&) const = default;
};

/// What the axes of an operand say of its rank, whatever the attributes are: a size or a composite is one axis, a rest
/// any number of them, also none, unless the definition gives its length as a number. Nothing else may be supposed of
/// ranks.
[[nodiscard]] inline RankRange rank_range(const std::vector<AxisSpec>& axes) {
  RankRange result{0, true};
  for (const AxisSpec& axis : axes) {
    if (axis.kind != AxisSpec::Kind::rest) {
      ++result.least;
    } else if (axis.length && axis.length->kind == Expression::Kind::integer && axis.length->integer >= 0) {
      result.least += static_cast<std::size_t>(axis.length->integer);
    } else {
      result.only = false;
    }
  }
  return result;
}

}  // namespace taso
