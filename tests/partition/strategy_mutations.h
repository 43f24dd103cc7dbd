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
  std::string changed;  ///< The strategy: "conv2d_cut_y".
};

/// All of a strategy's rule, no two of them equal, and none equal to it.
[[nodiscard]] std::vector<StrategyMutation> strategy_mutations(const Substitution& rule,
                                                               const OperatorRegistry& registry);

/// Whether a strategy that is neither proved nor refuted by numbers is refuted by types: there are an operator and a
/// cut that fulfil its conditions for which pieces are ill-typed, so that it is no way to compute the operator.
/// (Derived strategies have no such instance: StrategyProofs.PiecesAreWellTyped.)
[[nodiscard]] inline bool is_refuted_by_types(const Verdict& verdict) {
  return verdict.kind == VerdictKind::unknown && verdict.ill_typed_target > 0;
}

}  // namespace taso::test
