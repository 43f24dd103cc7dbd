/// Looks for a falsehood in a rule that the verifier calls proved.
///
/// Both sides are evaluated by the definitions at small instances, at instances about every number that the rule and
/// its definitions name (verifier/landmarks.h), and at random draws (tests/verifier/draws.h). A rule is false where
/// both sides are defined and differ, and where the target is undefined though the source is defined.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"
#include "verifier/lowered_cache.h"

namespace taso::testing {

struct JudgeOptions {
  std::uint64_t seed = 1;
  std::size_t small_instances = 12;
  std::size_t draws = 4;
  /// Whether what specifications declare of functions may be false: sides that are equal by it are compared in numbers,
  /// too, at these and others.
  bool doubts_functions = false;
  std::vector<double> reals = {};
  bool definedness = true;  ///< A target must be defined where the source is; of axioms that is not said.
};

struct Judgement {
  std::size_t instances = 0;             ///< At which both sides were compared.
  std::optional<std::string> falsehood;  ///< What differs, and where.
};

/// Judges a rule as it was proved (stored_form): under its conditions, with the class that it claims.
[[nodiscard]] Judgement judge(const OperatorRegistry& registry, const Substitution& rule, const JudgeOptions& options,
                              LoweredCache& cache);

}  // namespace taso::testing
