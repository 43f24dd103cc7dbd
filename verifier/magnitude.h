/// Intermediates that can grow beyond what the source of a rule has: a warning for 16-bit floating point.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "verifier/instances.h"

namespace taso {

/// An intermediate result of the target that can leave a number format although nothing in the source does.
struct Growth {
  std::string op;     ///< The operator whose result grows.
  double factor = 1;  ///< How much larger it can be than everything in the source, for the magnitudes that were tried.
};

/// Both sides are evaluated on bounds of magnitudes: |a + b| <= |a| + |b|, |a b| = |a| |b|, |a / b| = |a| / |b|, a
/// scalar function by its values at plus and minus the bound. Every variable is given each of the magnitudes 2^-8, 1,
/// 2^8. The largest ratio of a result in the target to the largest input or result in the source, if it is at least 4;
/// it is taken over the given instances, of which a few are used.
[[nodiscard]] std::optional<Growth> find_growth(const std::vector<TypedInstance>& instances);

}  // namespace taso
