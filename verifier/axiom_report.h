/// What is known of every axiom of a set, and of the set: for taso-verify --report.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "verifier/theory.h"
#include "verifier/verify.h"

namespace taso {

/// How an axiom can be used by E-matching: a side serves as a pattern if it determines all variables.
struct AxiomUse {
  bool left_to_right = false;
  bool right_to_left = false;
};
[[nodiscard]] AxiomUse usable_directions(const Substitution& axiom);

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

/// What was asked to find the axioms inconsistent, and what they gave away.
struct Consistency {
  std::size_t ground_terms = 0;      ///< Axioms whose terms were present when x = y was asked for.
  std::size_t falsehoods = 0;        ///< False statements asked for.
  std::vector<std::string> derived;  ///< "x = y among the terms of NAME", or the name of a falsehood; empty is good.
  [[nodiscard]] bool consistent() const { return derived.empty(); }
};

/// Asks the whole set of axioms for x = y, for fresh tensors x and y, in the presence of the terms of each axiom in
/// turn (without terms E-matching would use nothing), and for each of the falsehoods. A consistent answer says that
/// nothing was derived within the limit; it is no proof, the bounded validation of every axiom is.
[[nodiscard]] Consistency check_consistency(const OperatorRegistry& registry, const std::vector<Substitution>& axioms,
                                            const std::vector<Substitution>& falsehoods, std::uint64_t rlimit,
                                            const std::function<bool()>& stop = {});

}  // namespace taso
