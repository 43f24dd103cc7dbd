/// Identities within a rule: equations that, with the axioms, may give the rule.
///
/// A rule S => T that the axioms do not prove often fails at one step. The steps around it are taken: operators that
/// axioms tell as special cases of another (relu = apply with act=relu) are replaced by that one; axioms rewrite either
/// side, at any place, a few times; what both sides then have around and below in common is taken away (equal operators
/// at the top, equal subterms at the bottom, which become variables: anti-unification). What is left is an equation.
/// Nothing here is sound by itself - conditions and types of axioms are not looked at - because every equation is
/// proved from the definitions before it is used.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"

namespace taso {

struct IdentityOptions {
  std::size_t max_steps = 2;     ///< Applications of axioms.
  std::size_t max_states = 120;  ///< Forms of the rule that are looked at.
};

/// Equations, as axioms without names, smaller than the rule, smallest first; each text once. Deterministic.
[[nodiscard]] std::vector<Substitution> identities_within(const OperatorRegistry& registry, const Substitution& rule,
                                                          const std::vector<Substitution>& axioms,
                                                          const IdentityOptions& options = {});

/// The operators of both sides.
[[nodiscard]] std::set<std::string> operators_of(const Substitution& statement);
/// The operators of a rule and those of which axioms tell that they generalise one of them.
[[nodiscard]] std::set<std::string> related_operators(const Substitution& rule,
                                                      const std::vector<Substitution>& axioms);

/// How large an identity is: operators, then variables and attribute variables, then conditions, then its text.
struct IdentitySize {
  std::size_t operators = 0, variables = 0, conditions = 0;
  std::string text;
  auto operator<=>(const IdentitySize&) const = default;
};
[[nodiscard]] IdentitySize size_of(const Substitution& identity, const OperatorRegistry& registry);

/// The identity in canonical form: equal identities have equal text. The side with more operators stands left, unless
/// that side does not bind all variables. `name` becomes its name.
[[nodiscard]] Substitution canonical_identity(const Substitution& identity, const OperatorRegistry& registry,
                                              const std::string& name);

}  // namespace taso
