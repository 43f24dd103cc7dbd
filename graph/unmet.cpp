#include "graph/unmet.h"

#include "graph/rewrite.h"

namespace taso {

std::vector<UnmetCondition> unmet_conditions(const Graph& graph, const std::vector<Substitution>& rules,
                                             const OperatorCatalog& catalog) {
  std::vector<UnmetCondition> result;
  for (const Substitution& rule : rules) {
    Substitution without = rule;
    if (std::erase_if(without.conditions, [](const Condition& condition) { return condition.of_elements(); }) == 0)
      continue;
    const std::vector<Match> matches = RuleIndex({without}, catalog).find(graph, 0);
    for (const Condition& condition : rule.conditions) {
      if (!condition.of_elements()) continue;
      UnmetCondition unmet{rule.name, to_string(condition, rule), 0};
      for (const Match& match : matches) {
        Bindings bindings;
        bindings.constants = constants_of(graph, match.variables);
        const Expected<bool> holding = holds(condition, bindings);
        unmet.places += holding && *holding ? 0 : 1;
      }
      if (unmet.places > 0) result.push_back(std::move(unmet));
    }
  }
  return result;
}

}  // namespace taso
