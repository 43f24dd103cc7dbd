/// Which rules the others make superfluous.
#pragma once

#include <memory>
#include <vector>

#include "generator/generalize.h"
#include "graph/rewrite.h"

namespace taso {

/// The rules kept so far, able to tell whether they derive another.
class RuleBasis {
 public:
  explicit RuleBasis(const OperatorCatalog& catalog, int max_steps = 2);

  /// Whether at most max_steps applications of kept rules lead from the source to the target, at the rule's example
  /// instance, through graphs that run no more operators than the larger side. Such a rule finds nothing
  /// that the search would not find without it. A rule that does not lower the number of operators may also be
  /// derived by lowering rules used backwards: it is an instance of a direction that is left out on purpose.
  [[nodiscard]] bool derives(const GeneralRule& rule) const;
  void add(const GeneralRule& rule);

 private:
  const OperatorCatalog* catalog_;
  int max_steps_;
  std::vector<Substitution> forward_, both_;
  std::shared_ptr<const RuleIndex> forward_index_, both_index_;
};

/// Operators that run: those that depend on an input that is not a weight.
[[nodiscard]] int running_operators(const Graph& graph, const std::vector<bool>& is_weight);

}  // namespace taso
