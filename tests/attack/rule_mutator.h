/// Mutants of rules for the attack on the verifier.
///
/// A mutant is made from a true rule by a few changes. Some keep it true (the same operator around both sides, the same
/// new output, `q - q` added to an attribute, one more condition), some keep it true at small sizes only (`q // 50`
/// added), some make it false. Mutants are made at random and each depends on its own seed alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"
#include "support/random.h"

namespace taso::testing {

/// Makes mutants of given rules. The registry must outlive it.
class RuleMutator {
 public:
  RuleMutator(const OperatorRegistry& registry, std::vector<Substitution> rules);

  /// The mutant of one number: a rule of the language; nothing where the changes make none.
  [[nodiscard]] std::optional<Substitution> mutant(std::uint64_t seed, std::uint64_t number) const;
  [[nodiscard]] const std::vector<Substitution>& rules() const { return rules_; }

 private:
  const OperatorRegistry& registry_;
  std::vector<Substitution> rules_;
  std::vector<std::uint64_t> weights_;  ///< Sums of the weights of the rules up to each: small ones come often.
};

}  // namespace taso::testing
