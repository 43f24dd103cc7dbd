/// Concrete attribute values of a rule become variables, as far as the unbounded proof still goes through.
///
/// Idea: a literal attribute (strides=[1,1], axis=-3, act=relu, sizes=[2,3]) is a site. Sites with equal values stand
/// for one value until it is shown that they need not: a block of sites is replaced by one variable, the whole rule
/// is proved again for all sizes (unbounded/prove.h), and the step is kept if the proof succeeds. A list that
/// cannot vary as a whole may vary in its elements; an integer that cannot vary freely may do so on one side of its
/// value (axis < -2) or apart from another one (axis != b). Conditions of the rule that the proof does not need are
/// dropped. Every step keeps all instances of the rule, so that the result claims at least what the rule claimed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"
#include "verifier/unbounded/prove.h"

namespace taso {

struct GeneraliseOptions {
  std::size_t max_proofs = 120;  ///< Proofs attempted for one rule.
  /// A variable is kept only where an instance with another value than the literal's was found: an axis that types fix
  /// stays a number.
  bool other_values = true;
  bool drop_conditions = true;  ///< Also try the rule without each of its conditions.
  UnboundedOptions prover;      ///< Limits of each proof.
};

/// A rule and what could be generalised in it.
struct Generalisation {
  Substitution rule;               ///< As given, if nothing could be.
  bool proved = false;             ///< The rule as given is proved for all sizes; otherwise nothing was tried.
  std::string reason;              ///< Why not proved.
  std::vector<std::string> steps;  ///< "axis=-3 is a with a < -2", "without rank(x) == 2": for a person, in order.
  std::size_t proofs = 0;          ///< Proofs attempted.
};

/// The most general form of a rule (or axiom) that a greedy search finds. Deterministic.
[[nodiscard]] Generalisation generalise(const OperatorRegistry& registry, const Substitution& rule,
                                        const GeneraliseOptions& options = {});

}  // namespace taso
