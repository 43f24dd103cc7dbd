/// The record of rule applications that leads from one graph to another.
#pragma once

#include <string>
#include <vector>

namespace taso {

/// One application of a rule.
struct RuleApplication {
  std::string rule;         ///< The rule's name.
  std::string place;        ///< Where: the matched operators, for people.
  double cost_before = 0;   ///< Of the whole graph, in the cost model's unit (0 in the baseline).
  double cost_after = 0;
};

}  // namespace taso
