/// Which rules the others make superfluous.
///
/// A rule is superfluous if a few applications of kept rules lead from its source to its target through graphs that run
/// no more operators than its larger side: a search finds with the others all that it finds with this one. The
/// derivation is kept beside each rule that was dropped, and stays valid: a rule that a derivation needs is dropped
/// only if there is another without it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "generator/derive.h"

namespace taso {

/// A rule that was dropped, as the profile words it, and what replaces it. `derivation.steps[i].rule` is a number of
/// the set of kept rules.
struct PrunedRule {
  GeneralRule rule;
  std::string group;
  Derivation derivation;
  bool costlier = false;  ///< The derivation passes through a graph that runs more operators than either end.
};

/// Whether only a path that an optimizer can go makes the rule superfluous.
[[nodiscard]] bool must_stand(const GeneralRule& rule);

struct PruneOptions {
  int max_steps = 2;
  std::size_t max_graphs = 400;
};

/// The kept rules and the dropped ones. Numbers of kept rules are given in the order in which they come.
class KeptRules {
 public:
  KeptRules(const OperatorCatalog& catalog, PruneOptions options)
      : basis_(catalog), catalog_(&catalog), options_(options) {}

  /// A derivation of a rule at its example instance. One that lowers the number of operators must be derived by rules
  /// as they stand; another one also by lowering rules used backwards: it is an instance of a direction that is left
  /// out on purpose. May be called from several threads.
  [[nodiscard]] std::optional<Derivation> derive(const GeneralRule& rule,
                                                 std::optional<std::uint32_t> without = std::nullopt, int max_steps = 0,
                                                 int extra_ops = 0) const;
  /// How many rules were ever kept.
  [[nodiscard]] std::size_t size() const { return kept_; }
  std::uint32_t keep(const GeneralRule& rule) {
    ++kept_;
    return basis_.add(rule.rule, rule.target_ops < rule.source_ops);
  }
  void drop(PrunedRule rule) { dropped_.push_back(std::move(rule)); }
  /// Drops a kept rule, if all derivations that use it have others, and it has one of one step itself.
  [[nodiscard]] bool replace(std::uint32_t number, const GeneralRule& rule, const std::string& group);
  /// Takes the dropped rules out; `renumber[n]` is the final number of kept rule n.
  [[nodiscard]] std::vector<PrunedRule> take_dropped(const std::vector<std::uint32_t>& renumber);

 private:
  RuleBasis basis_;
  const OperatorCatalog* catalog_;
  PruneOptions options_;
  std::size_t kept_ = 0;
  std::vector<PrunedRule> dropped_;
};

}  // namespace taso
