/// The bounded proof and its converse, the search for a counterexample.
///
/// At every examined instance both sides are evaluated over GF(2^61-1) at random points, which finds a difference
/// quickly, and then over canonical polynomials, which decides. Where the canonical forms differ, numbers are
/// searched at which the evaluator (over exact integers, or over doubles where functions leave the integers) gives
/// different results; without such numbers nothing is claimed.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include "verifier/instances.h"
#include "verifier/landmarks.h"
#include "verifier/verify.h"

namespace taso {

struct BoundedOutcome {
  enum class Kind : std::uint8_t {
    agrees,        ///< At every examined instance, and there was one.
    differs,       ///< In numbers, or in types of outputs: `counterexample`.
    forms_differ,  ///< Canonical forms differ, and no numbers were found at which the sides do.
    vacuous,       ///< There is no instance at which something could be compared.
    undecided      ///< For another reason.
  };
  Kind kind = Kind::undecided;
  std::string reason;                            ///< If it neither agrees nor differs.
  std::optional<Counterexample> counterexample;  ///< If it differs.
  std::size_t instances = 0;
  std::size_t ill_typed_target = 0;
  bool complete = false;
  bool divided = false;  ///< A divisor that is not a number occurs: equality holds where no divisor is zero.
  /// The target divides by something that the source does not divide by: it may be undefined where the source is not.
  bool divides_more = false;
  bool undefined = false;            ///< Some result of the source is infinite or undefined (an empty window, 1/0).
  std::vector<TypedInstance> typed;  ///< The instances, smallest first (for the numeric class).
};

/// What the first round of the search for a difference, with which validate_bounded begins, has done.
struct FirstRound {
  bool refuted = false;            ///< It found a difference: quick, and enough for most rules that are false.
  std::set<const void*> searched;  ///< Sets of instances that it saw to their ends.
};

/// The cache saves work only, and so does the first round, if it was searched with the same options.
[[nodiscard]] BoundedOutcome validate_bounded(const OperatorRegistry& registry, const Substitution& rule,
                                              const InstanceOptions& options, LoweredCache& cache,
                                              const std::optional<FirstRound>& first = std::nullopt);
[[nodiscard]] BoundedOutcome validate_bounded(const OperatorRegistry& registry, const Substitution& rule,
                                              const InstanceOptions& options);

[[nodiscard]] FirstRound search_first_round(const OperatorRegistry& registry, const Substitution& rule,
                                            const InstanceOptions& options, LoweredCache& cache);

/// What is known of a rule at one instance.
struct InstanceOutcome {
  BoundedOutcome::Kind kind = BoundedOutcome::Kind::undecided;
  std::string reason;                                             ///< If it neither agrees nor differs.
  std::optional<Counterexample> counterexample;                   ///< If the sides differ: shrunk.
  bool divided = false, divides_more = false, undefined = false;  ///< As in BoundedOutcome.
  bool defined = false;                                           ///< Some result of the source is defined.
  bool out_of_steps = false;                                      ///< Undecided because no steps were left.
};

/// Compares both sides at one instance by their canonical forms; numbers are searched where these differ. `steps`: what
/// is left of the work on canonical forms (PolynomialRing); null: no limit.
[[nodiscard]] InstanceOutcome examine_instance(const OperatorRegistry& registry, const Substitution& rule,
                                               TypedInstance typed, std::uint64_t seed, std::uint64_t* steps = nullptr);

/// Which numbers are tried at an instance.
struct NumberOptions {
  std::uint64_t seed = 1;
  int trials = 24;
  std::vector<double> reals;  ///< Tried as elements, beside small integers and halves.
};

/// Numbers at which the two sides differ, instance and numbers made as simple as they can be; nothing where the sides
/// agree over GF(2^61-1) or no such numbers are found.
[[nodiscard]] std::optional<Counterexample> find_counterexample(const OperatorRegistry& registry,
                                                                const Substitution& rule, const TypedInstance& typed,
                                                                const NumberOptions& options);

/// What instances at the landmarks of a rule say: where it names numbers, small instances do not tell.
struct LandmarkOutcome {
  std::vector<Instance> instances;               ///< That were compared.
  std::optional<Counterexample> counterexample;  ///< If the sides differ somewhere.
  std::string where;                             ///< Then shapes and attributes, in a line.
};

/// Compares both sides of a rule at its landmarks (verifier/landmarks.h), first over GF(2^61-1). Conditions on ranks
/// leave out what a proof says nothing of.
[[nodiscard]] LandmarkOutcome examine_landmarks(const OperatorRegistry& registry, const Substitution& rule,
                                                const LandmarkOptions& options, LoweredCache& cache);

/// Evaluates both sides on given inputs over doubles and says whether some output differs: replays a counterexample.
struct GivenInputs {
  std::vector<TensorType> variables;
  std::vector<std::optional<AttributeValue>> attributes;
  std::vector<RingTensor<double>> inputs;
};
[[nodiscard]] Expected<bool> differs(const OperatorRegistry& registry, const Substitution& rule,
                                     const GivenInputs& given);

}  // namespace taso
