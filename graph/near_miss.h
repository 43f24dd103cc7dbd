/// Places at which a rule nearly matches, and what keeps it from it: for people who wonder why.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/pattern.h"

namespace taso {

/// A place at which some operators of a rule's source were found.
struct NearMiss {
  std::vector<NodeId> nodes;  ///< That were found, in the order of the source's operators.
  std::string obstacle;       ///< Why matching, or applying the rule, ended there.
};

/// How a rule occurs in a graph.
struct RuleOccurrences {
  std::size_t operators = 0;  ///< Of the rule's source.
  std::size_t matches = 0;    ///< Places at which it matches and can be applied.
  /// The others, those first where most operators were found; of equal ones, those first that come first in the graph.
  /// None lies within another one or within a match.
  std::vector<NearMiss> near_misses;
  /// Operators of the source that the graph does not have, each once.
  std::vector<std::string> absent;
};

/// Looks for a rule in a graph in normal form. `name` says what a person calls a value of the graph: "relu 'n5'",
/// "the input 'x'".
[[nodiscard]] RuleOccurrences find_occurrences(const Graph& graph, const Substitution& rule,
                                               const OperatorCatalog& catalog,
                                               const std::function<std::string(Value)>& name);

}  // namespace taso
