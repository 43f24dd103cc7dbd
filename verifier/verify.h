/// Verdicts on substitutions: the library behind taso-verify, also called by the generator.
///
/// Three independent proofs (docs/verification.md):
///   unbounded - both sides are equal index by index, for all sizes, from the definitions alone;
///   axioms  - Z3 derives `source = target` from the axioms (for all sizes);
///   bounded - both sides have the same canonical polynomials at every examined small instance (shapes up to a bound
///             and attribute values), with uninterpreted scalar functions.
/// A rule is proved by the first, or by the other two together, an axiom by the first; refuted if the evaluator replays
/// a counterexample; unknown otherwise (verifier/decision.h has the whole table). Small instances do not tell of a rule
/// that says 50: both sides are compared about every number that it names, too (verifier/landmarks.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"
#include "support/status.h"
#include "verifier/decision.h"
#include "verifier/implicit_condition.h"

namespace taso {

/// A concrete instance at which the two sides differ; replayed by the reference evaluator before it is reported.
struct Counterexample {
  std::vector<TensorType> variables;                      ///< Types of the rule's tensor variables.
  std::vector<std::optional<AttributeValue>> attributes;  ///< Values of the rule's attribute variables.
  /// The inputs: elements of each variable in row-major order, of variables that hold indices `integers`. Empty where
  /// the sides differ in the types of their outputs.
  std::vector<std::vector<double>> elements;
  std::vector<std::vector<std::int64_t>> integers;
  std::size_t output = 0;  ///< The first output that differs.
  /// For a person: shapes, attributes, input values, and the two results, one a line.
  std::string text;
  /// Whether the sides differ in the types of their outputs, not in numbers.
  [[nodiscard]] bool of_types() const { return elements.empty() && integers.empty(); }
};

/// What is known of one rule.
struct Verdict {
  VerdictKind kind = VerdictKind::unknown;
  bool by_unbounded = false;        ///< Equal for all sizes, from the definitions.
  bool by_axioms = false;           ///< Z3 derived the rule from the axioms.
  bool by_bounded = false;          ///< Every examined instance agrees, and there was one.
  std::vector<std::string> proofs;  ///< "unbounded", "axioms", "bounded 3": the text of a rule's `proof` clause.
  /// What the proof needs and the rule's own conditions do not say: limits of ranks and lengths, domains of values,
  /// finite attributes. Proved means proved with these; stored_form() has them.
  std::vector<Condition> added;
  /// All conditions: those that the rule declares, then `added`. Empty where a difference or a contradiction ended the
  /// examination.
  std::vector<Condition> conditions;
  /// What is checked at each use without being said (the target well-typed), or holds where the source is defined.
  std::vector<ImplicitCondition> implicit;
  /// Of the unbounded proof: ranks and lengths of lists up to this were examined; nothing: all that there are.
  std::optional<std::size_t> max_rank;
  /// Not proved as it stands, but by the unbounded proof with these conditions added to its own.
  std::vector<Condition> needs;
  std::optional<NumericClass> numeric_class;  ///< Derived, if the bounded proof succeeded.
  /// The operator of the target whose result can be several times larger than anything in the source (overflow of
  /// 16-bit floats), if the bounded proof succeeded and there is one.
  std::optional<std::string> may_overflow;
  std::optional<Counterexample> counterexample;  ///< If refuted.
  std::string reason;                            ///< Why not proved; empty if proved.
  std::size_t instances = 0;                     ///< Well-typed instances that were compared.
  bool complete = false;                         ///< These were all instances within the bound.
  std::size_t ill_typed_target = 0;              ///< Instances at which only the source is well-typed.
  std::size_t landmark_instances = 0;            ///< Instances about numbers of the rule that were compared as well.
};

/// The rule as it was proved: with all conditions, the kinds of proof, its class, sealed. Only for what is proved.
[[nodiscard]] Substitution stored_form(const Substitution& rule, const Verdict& verdict,
                                       const OperatorCatalog& catalog);

struct VerifierOptions {
  std::int64_t bound = 3;            ///< Largest extent that is enumerated (channel products may exceed it).
  std::uint64_t rlimit = 2'000'000;  ///< Z3 resource units per goal; deterministic, unlike time.
  std::uint64_t seed = 1;            ///< Of the sample of instances and of the random points.
  std::size_t max_instances = 160;   ///< Instances compared per rule; all of them if there are fewer.
  /// The same for a rule that is proved for all sizes, for which no difference and no rare instance is searched,
  /// either.
  std::size_t confirming_instances = 40;
  bool full = false;             ///< Examine such rules like all others.
  std::size_t max_work = 6'000;  ///< Scalar operations per side of the largest instance that is compared.
  bool rare = true;              ///< After the quota, look for instances that combine unusual attributes.
  bool axioms = true;            ///< Try the proof from axioms.
  /// Try it for what is proved for all sizes, too: a second proof, which changes no verdict.
  bool axioms_always = true;
  bool bounded = true;  ///< Try the bounded proof.
  /// Compare both sides at instances about the numbers that a rule names, too (verifier/landmarks.h); with `bounded`.
  bool landmarks = true;
  bool unbounded = true;  ///< Try the unbounded proof.
  bool infer = false;     ///< Where it fails, look for conditions under which it succeeds.
};

/// Verifies substitutions against one theory. One object per thread; verify() is deterministic and does not depend on
/// earlier calls. The registry must outlive the verifier.
class Verifier {
 public:
  Verifier(const OperatorRegistry& registry, std::vector<Substitution> axioms, VerifierOptions options = {});
  ~Verifier();
  Verifier(Verifier&&) noexcept;
  Verifier& operator=(Verifier&&) noexcept;
  /// A verifier of the same theory, or of another one, for another thread: a copy that shares the caches of what was
  /// found of operators and axioms.
  [[nodiscard]] Verifier sharing_copy() const;
  [[nodiscard]] Verifier sharing_copy(std::vector<Substitution> axioms) const;

  /// The verdict on a rule, or on an axiom (then without the other axioms). With `brief` a rule that is not
  /// proved for all sizes is examined at few instances, and not derived from the axioms: both are slow where they do
  /// not succeed, and the caller may know of statements that are easier to prove.
  [[nodiscard]] Verdict verify(const Substitution& rule, bool brief = false);
  /// The axioms' side alone: whether Z3 derives the rule; `reason` says why not.
  [[nodiscard]] bool follows_from_axioms(const Substitution& rule, std::string* reason = nullptr);
  /// Axioms that could not be used and lemmas that do not follow, "name: why".
  [[nodiscard]] const std::vector<std::string>& theory_problems();
  /// The goals given to Z3 for a rule, each with the whole theory, in SMT-LIB 2.
  [[nodiscard]] std::string smt2(const Substitution& rule);
  /// Declared laws of operators (commutative, ...) as axioms named "<op>.commutative"; taso-verify proves them.
  [[nodiscard]] static std::vector<Substitution> declared_laws(const OperatorRegistry& registry);

 private:
  struct State;
  class Examination;
  explicit Verifier(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Loads every *.axioms file of a folder, in name order, or one file; each with the record of its axioms' shapes beside
/// it, if there is one (verifier/shape_facts.h).
[[nodiscard]] Expected<std::vector<Substitution>> load_axioms(const std::string& path, const OperatorCatalog& catalog);
/// The file of that record: X.facts beside X.axioms.
[[nodiscard]] std::string shape_facts_file(const std::string& axioms);

}  // namespace taso
