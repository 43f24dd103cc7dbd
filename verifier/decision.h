/// What a verdict rests on, and the table that makes a verdict of it.
///
/// Provers gather evidence (verify.cpp) and draw no conclusions; decide() alone does. It is a pure function of a few
/// enumerations, so that a test goes over all of its arguments (tests/verifier/decision_test.cpp). What is never
/// proved: anything with numbers at which the sides differ, with a contradiction between provers, with conditions that
/// leave no value, with a target that may be undefined, and what was compared nowhere.
#pragma once

#include <cstdint>
#include <vector>

namespace taso {

enum class VerdictKind : std::uint8_t { proved, refuted, unknown };
/// "proved", "refuted", "unknown".
[[nodiscard]] const char* to_string(VerdictKind kind);

/// What was found out of one rule. The default is that nothing was asked.
struct Evidence {
  /// The proof for all sizes, from the definitions alone. It includes that the target is defined.
  enum class Unbounded : std::uint8_t {
    not_asked,
    not_proved,
    of_nothing,  ///< Nothing stood against it, but no element was compared.
    proved
  };
  /// The derivation from the axioms. It speaks of instances at which both sides are defined, with results of equal
  /// types, and is as true as the axioms are.
  enum class Axioms : std::uint8_t { not_asked, not_derived, derived };
  /// Small instances.
  enum class Instances : std::uint8_t {
    not_examined,
    none,            ///< Nothing was compared: both sides are well-typed, or the source is defined, at none.
    undecided,       ///< Some instance has no canonical form.
    forms_differ,    ///< Canonical forms differ somewhere, and no numbers were found at which the sides do.
    types_differ,    ///< The outputs have different types at some instance, and the same types at none.
    numbers_differ,  ///< The evaluator has replayed numbers at which the sides differ.
    agree            ///< At every one that was examined, and there was one.
  };
  /// Instances about the numbers that the rule names.
  enum class Landmarks : std::uint8_t {
    not_examined,
    numbers_differ,  ///< The evaluator has replayed numbers at which the sides differ.
    agree            ///< Also where there are none.
  };
  /// The separate proof that the target is defined wherever the source is.
  enum class Definedness : std::uint8_t { not_asked, not_shown, shown };

  bool same_outputs = true;  ///< Both sides have the same number of outputs, and at least one.
  Unbounded unbounded = Unbounded::not_asked;
  Axioms axioms = Axioms::not_asked;
  Instances instances = Instances::not_examined;
  Landmarks landmarks = Landmarks::not_examined;
  /// At some examined instance both sides are well-typed, and no case of the proof for all sizes speaks of it.
  bool uncovered = false;
  /// The target divides, takes a maximum, reads at an index that a tensor holds or calls a function that is not defined
  /// everywhere. Read off the definitions, so that it is known whatever was asked; instances may say it, too.
  bool asks_of_values = false;
  Definedness definedness = Definedness::not_asked;
  bool contradictory = false;      ///< Its conditions, with those that its proof adds, leave no value for an attribute.
  bool beyond_floats = false;      ///< The target names a number that no 32-bit float can hold.
  bool rounds_attributes = false;  ///< The target computes with real attributes: what the rule makes is rounded.
  bool operator==(const Evidence&) const = default;
};

/// Why a rule is not proved.
enum class Reason : std::uint8_t {
  different_outputs,    ///< The numbers of outputs are not the same.
  differ,               ///< There are numbers, or types, in which the sides differ.
  differ_by_rounding,   ///< The same, though they are equal over the real numbers.
  contradiction,        ///< Proved for all sizes, and numbers say otherwise: neither is believed.
  uncovered,            ///< Proved for all sizes, but for an instance that the proof does not know of.
  beyond_floats,        ///< Evidence::beyond_floats.
  contradictory,        ///< Evidence::contradictory.
  target_undefined,     ///< Nothing tells that the target is defined wherever the source is.
  instances_undecided,  ///< Small instances say nothing, or there are none.
  not_derived,          ///< It does not follow from the axioms.
  not_unbounded,        ///< It is not proved for all sizes.
  too_little_asked      ///< Nothing failed; what was asked for is no proof.
};

/// The verdict on evidence.
struct Decision {
  VerdictKind kind = VerdictKind::unknown;
  std::vector<Reason> reasons;  ///< In the order in which a person reads them; none if and only if it is proved.
  /// A difference or a contradiction: no proof is believed, and what axioms, conditions or domains say is not needed
  /// any more.
  bool settled = false;
  bool operator==(const Decision&) const = default;
};

/// The one place where evidence becomes a verdict.
[[nodiscard]] Decision decide(const Evidence& evidence);

/// Whether the rule follows from the axioms and what its target asks of values is left to be shown. That no instance
/// was to be examined is no reason not to ask: a target that divides more than its source is named with every option.
[[nodiscard]] bool asks_for_domain(const Evidence& evidence);

}  // namespace taso
