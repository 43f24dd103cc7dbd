/// What both sides of a rule compute alike is taken out.
#pragma once

#include <optional>

#include "graph/pattern.h"

namespace taso {

/// The rule with the largest terms that stand on both sides replaced by new tensor variables. It says more than the
/// rule does: where it is true, so is the rule. Nothing if the sides share no term. All variables keep their numbers;
/// some may occur in attributes and conditions only.
[[nodiscard]] std::optional<Substitution> without_common_terms(const Substitution& rule);

}  // namespace taso
