/// The strategies that may be used: those whose rules have been proved.
///
/// Proofs are kept as rule files (specs/strategies/*.rules, made by scripts/make-strategies, which asks the verifier).
/// What a definition gives is derived anew and looked up there: a rule counts if it says what was derived, with perhaps
/// more conditions, and carries a valid mark of proof (graph/pattern.h, carries_proof). So a changed definition has no
/// strategies until they are proved again.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "partition/strategy.h"
#include "support/status.h"

namespace taso {

class ProvedStrategies {
 public:
  /// Reads rule files; those of a folder of specifications are the *.rules of its folder `strategies`. The registry
  /// must outlive the result.
  [[nodiscard]] static Expected<ProvedStrategies> load(const std::vector<std::string>& files,
                                                       const OperatorRegistry& registry);

  /// The strategies of an operator, each with its rule as it was proved: all conditions of `rule` must hold at a use.
  [[nodiscard]] std::vector<PartitionStrategy> of(std::string_view op) const;
  [[nodiscard]] std::vector<PartialPassage> passages_of(std::string_view op) const;

 private:
  /// The stored rule that says what `derived` says; null if there is none.
  [[nodiscard]] const Substitution* find(const Substitution& derived) const;

  const OperatorRegistry* registry_ = nullptr;
  std::map<std::string, Substitution> rules_;  ///< By name.
};

}  // namespace taso
