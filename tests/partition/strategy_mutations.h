/// Strategies changed in one place: along another axis, cut a place further or earlier, combined by another reducer,
/// with the attributes of the whole, with an input read whole.
#pragma once

#include <string>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"
#include "verifier/verify.h"

namespace taso::test {

struct StrategyMutation {
  std::string what;  ///< "conv2d_cut_y: split 0 ends a place later"
  Substitution rule;
};

/// All of a strategy's rule, no two of them equal, and none equal to it.
[[nodiscard]] std::vector<StrategyMutation> strategy_mutations(const Substitution& rule,
                                                               const OperatorRegistry& registry);

/// Whether pieces were ill-typed at every instance at which the whole is well-typed, and there was one: what a strategy
/// says of itself is then false, though no numbers differ.
[[nodiscard]] inline bool is_refuted_by_types(const Verdict& verdict) {
  return verdict.kind == VerdictKind::unknown && verdict.instances == 0 && verdict.ill_typed_target > 0;
}

}  // namespace taso::test
