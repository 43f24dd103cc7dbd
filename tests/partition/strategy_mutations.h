/// Strategies changed in one place: along another axis, cut a place further or earlier, combined by another reducer, with
/// the attributes of the whole, with an input read whole.
#pragma once

#include <string>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"

namespace taso::test {

struct StrategyMutation {
  std::string what;  ///< "conv2d_cut_y: split 0 ends a place later"
  Substitution rule;
};

/// All of a strategy's rule, no two of them equal, and none equal to it.
[[nodiscard]] std::vector<StrategyMutation> strategy_mutations(const Substitution& rule,
                                                               const OperatorRegistry& registry);

}  // namespace taso::test
