/// Places at which only a condition on values keeps a rule from applying: for people who wonder why.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/pattern.h"

namespace taso {

/// A condition that elements of a graph do not satisfy, or that nothing tells of.
struct UnmetCondition {
  std::string rule;
  std::string condition;   ///< In the spelling of rules.
  std::size_t places = 0;  ///< At which all other conditions hold.
};

/// The conditions on values that rules have and that do not hold where their sources occur, by rule and condition.
[[nodiscard]] std::vector<UnmetCondition> unmet_conditions(const Graph& graph, const std::vector<Substitution>& rules,
                                                           const OperatorCatalog& catalog);

}  // namespace taso
