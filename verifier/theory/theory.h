/// The axioms as first-order logic, and entailment of rules from them.
///
/// Encoding. One uninterpreted sort of tensors. Output j of an operator applied to n tensors is a function symbol
/// "op/n.j" of the tensors and the attributes, in name order: integers as Int, reals as Real, function names as
/// constants of a sort, lists as terms `list_k(i1, .., ik)` of a sort. `dim(x, axis)` and `rank(x)` are functions of
/// tensors. A list attribute of declared length k is always written list_k, so that arithmetic on lists is arithmetic
/// on their elements.
///
/// Every axiom becomes one formula per side that determines all its variables, "conditions => left = right", with
/// that side as the trigger of E-matching. Arithmetic never stands in a trigger: `pads=p + m` is matched as fresh
/// numbers q with q = p + m, and p is replaced by q - m where only m is seen.
///
/// Built in, from the definitions: the declared laws (commutative, concatenations flatten, splits of splits
/// flatten), and how extents of outputs follow from extents of inputs. A rule is proved under the hypothesis that
/// both its sides are well-typed, which is checked at each use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"
#include "verifier/shape_facts.h"

namespace taso {

/// What asking for a proof gave.
struct Entailment {
  bool proved = false;
  std::string reason;  ///< Why not.
};

/// How a question is asked.
struct EntailmentOptions {
  std::optional<std::size_t> without = {};  ///< The number of an axiom, among those given, that is not used.
  bool brief = false;  ///< Ends with the first, short attempts, which find most proofs that there are.
};

class Theory {
 public:
  /// Statements that are rules, not axioms, are lemmas: each is proved from what stands before it and then used. A
  /// table of shape facts may be shared with the theories of other threads; null for one of its own.
  Theory(const OperatorRegistry& registry, const std::vector<Substitution>& axioms, std::uint64_t rlimit,
         std::shared_ptr<ShapeFactsTable> facts = nullptr);
  ~Theory();
  Theory(const Theory&) = delete;
  Theory& operator=(const Theory&) = delete;

  [[nodiscard]] Entailment entails(const Substitution& rule, const EntailmentOptions& options = {});
  /// With these axioms more, for this once; axioms with more than one operator that the rule does not have are left
  /// aside, and so is model-based instantiation: for questions that are asked very often.
  [[nodiscard]] Entailment entails_with(const Substitution& rule, const std::vector<Substitution>& more);
  /// Whether the whole theory contradicts what a rule supposes (its conditions, both sides well-typed, equal shapes),
  /// as far as the solver finds out: then it proves nothing of it.
  [[nodiscard]] bool contradicts(const Substitution& rule);
  /// Axioms that cannot be used and lemmas that do not follow, "name: why".
  [[nodiscard]] const std::vector<std::string>& problems() const;
  /// The theory and the negated rule as SMT-LIB 2; one of several outputs at a time, concatenated.
  [[nodiscard]] std::string smt2(const Substitution& rule);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace taso
