/// The unbounded proof: source = target for all sizes, index by index, from the definitions alone.
///
/// For every choice of ranks and lengths of lists (up to a documented maximum where definitions leave them open) and
/// every case of what must be known as a number, both sides are typed symbolically (symbolic_types.h), each output is
/// unfolded at symbolic indices (elaborate.h), and the normal forms are compared (matching.h). No axiom is used and no
/// operator is known by name. Whatever is not understood ends as "not proved", with the reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"
#include "verifier/implicit_condition.h"
#include "verifier/instances.h"

namespace taso {

struct UnboundedOptions {
  std::size_t max_rank = 6;    ///< Ranks, and lengths of lists, where definitions leave them open.
  std::size_t least_rank = 4;  ///< A proof that covers less is none.
  /// Ranks above least_rank are left out where they need more cases, or choices of ranks, axes, ... than this.
  std::size_t max_cases = 150;
  std::size_t max_typings = 500;
  std::size_t max_steps = 20'000;  ///< Comparisons per case.
  /// Steps of the whole proof (budget.h), conditions that are tried included; about two seconds of a 2020s core.
  std::uint64_t max_work = 4'000'000;
  std::uint64_t rlimit = 50'000;  ///< Z3 resource units per question.
  std::size_t max_queries = 3;    ///< Questions to Z3 per rule, which rarely help and are slow where they do not.
  bool infer = false;             ///< If the proof fails: look for conditions under which it succeeds.
  /// Asked where the first comparison of two values fails, before what takes long: whether the rule is known to be
  /// false. Then the proof ends there.
  std::function<bool()> refuted = nullptr;
  /// Whether a proof is compared with a few instances of its own (UnboundedProver::misses): not where the caller asks
  /// that of more of them.
  bool check_instances = true;
};

/// Why a proof is not believed that says nothing of an instance at which both sides are well-typed.
inline constexpr const char* readings_differ = "the symbolic and the concrete reading of the language differ at ";

/// What the prover found.
struct UnboundedOutcome {
  bool proved = false;
  std::string reason;  ///< Why not proved.
  std::optional<std::size_t>
      max_rank;  ///< Proved for ranks and lengths of lists up to this; nothing: for all there are.
  /// What the target asks for at each use and the source does not give, each once; what it asks for only at some ranks,
  /// axes or lengths of lists is summed up as `well_typed_target`.
  std::vector<ImplicitCondition> conditions;
  /// What must be a part of the rule for this to be a proof of it: limits of ranks and lengths, domains of values. What
  /// the rule's own conditions already say is not among them.
  std::vector<Condition> added;
  bool divided = false;             ///< Divisors occur that are neither numbers nor sizes; they are not zero.
  std::vector<Condition> inferred;  ///< If not proved as it stands: conditions under which it is.
  std::size_t cases = 0;            ///< Cases that were proved.
  std::size_t typings = 0;          ///< Choices of ranks, axes, ... that were examined.
};

/// The proof of one rule, step by step: Z3 is slow and hardly ever needed, and what is refuted meanwhile does not need
/// it. Registry and rule must outlive the prover.
class UnboundedProver {
 public:
  UnboundedProver(const OperatorRegistry& registry, const Substitution& rule, const UnboundedOptions& options = {});
  ~UnboundedProver();
  UnboundedProver(const UnboundedProver&) = delete;
  UnboundedProver& operator=(const UnboundedProver&) = delete;

  /// The proof without Z3; found once.
  const UnboundedOutcome& prove();
  /// Where that fails and questions were left open, once more with Z3.
  const UnboundedOutcome& prove_with_solver();
  /// Whether a well-typed instance is one that no case of the proof speaks of, though its ranks and lengths of lists
  /// were examined: then the symbolic and the concrete reading of the language differ, and the proof is none.
  [[nodiscard]] bool misses(const Instance& instance) const;
  /// If no proof was found: conditions under which there is one, sought with Z3 if that has been tried. Conditions that
  /// hold at `difference`, an instance at which the sides are known to have different values, are no help.
  const UnboundedOutcome& infer(const Instance* difference = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Whether the target is defined wherever the source is, whether they are equal or not: for rules that are proved to be
/// equal by other means. `proved` says it, `added` the conditions under which it is so.
[[nodiscard]] UnboundedOutcome prove_target_defined(const OperatorRegistry& registry, const Substitution& rule,
                                                    const UnboundedOptions& options = {});
/// The same of whether the target's operators can be applied wherever the source's can: reads lie inside, all elements
/// are written.
[[nodiscard]] UnboundedOutcome prove_target_applicable(const OperatorRegistry& registry, const Substitution& rule,
                                                       const UnboundedOptions& options = {});

/// All steps; conditions are sought if the options say so.
[[nodiscard]] UnboundedOutcome prove_unbounded(const OperatorRegistry& registry, const Substitution& rule,
                                               const UnboundedOptions& options = {});

}  // namespace taso
