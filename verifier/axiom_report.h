/// What is known of every axiom of a set, and of the set: for taso-verify --report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "verifier/lowered_cache.h"
#include "verifier/shape_facts.h"
#include "verifier/theory/theory.h"
#include "verifier/verify.h"

namespace taso {

/// How an axiom can be used by E-matching: a side serves as a pattern if it determines all variables.
struct AxiomUse {
  bool left_to_right = false;
  bool right_to_left = false;
};
[[nodiscard]] AxiomUse usable_directions(const Substitution& axiom);

/// A use that makes an ill-typed term (verifier/axiom_use.h) where the proof from axioms does not ask for types.
struct IllTypedUse {
  bool left_to_right = true;
  std::size_t output = 0;
  std::string types;  ///< Of the instance.
};
/// The first one among small instances (of very many a random part).
[[nodiscard]] std::optional<IllTypedUse> unguarded_use(const OperatorRegistry& registry, const Substitution& axiom,
                                                       const ShapeFacts& shapes, LoweredCache& cache);

/// Asks of axioms whether they follow from the others of their set. One object per thread.
class RedundancyCheck {
 public:
  /// Lemmas of the set are left out: they may rest on the axiom that is asked for.
  RedundancyCheck(const OperatorRegistry& registry, const std::vector<Substitution>& axioms, std::uint64_t rlimit);
  /// Whether axiom `index` follows from the others (within the limit; no proof is no claim).
  [[nodiscard]] bool follows(std::size_t index);

 private:
  std::vector<Substitution> axioms_;
  std::vector<std::optional<std::size_t>> places_;  // among axioms_
  Theory theory_;
};

/// The statement x = y for two tensor variables of another (or one of them and a new one), in the presence of that
/// one's terms: whatever entails it entails too much.
[[nodiscard]] Substitution collapse_goal(const Substitution& statement, std::uint32_t x, std::uint32_t y);

/// Asks a set of statements for what must not follow from it. One object per thread.
///
/// That nothing is derived within the limit is no proof of consistency; the bounded validation of every axiom is.
class ConsistencyCheck {
 public:
  ConsistencyCheck(const OperatorRegistry& registry, const std::vector<Substitution>& axioms, std::uint64_t rlimit);
  /// Asks for x = y, for any two tensors, in the presence of the terms of one statement of the set (without terms
  /// E-matching would use nothing): "x = y among the terms of NAME" if it follows.
  [[nodiscard]] std::optional<std::string> collapse(std::size_t index);
  /// Whether a statement follows that is known to be false.
  [[nodiscard]] bool entails(const Substitution& falsehood);

 private:
  const std::vector<Substitution>& axioms_;
  Theory theory_;
};

}  // namespace taso
