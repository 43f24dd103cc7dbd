/// The rules of a session, from files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/pattern.h"
#include "graph/rewrite.h"
#include "operators/registry.h"
#include "session/message.h"
#include "support/status.h"

namespace taso {

/// Which rules there are. Files are rule text, or .pb of the original TASO, of which rules without a counterpart are
/// left out, with a warning. The proof marks in them are believed.
struct RuleOptions {
  std::vector<std::string> simplify_files;  ///< Of rules that search and baseline use besides, before all others.
  std::vector<std::string> files;           ///< Of the search.
  std::vector<std::string> baseline_files;  ///< Of the baseline, and no others; empty: as the search.
  /// Of what is besides looked for where a result is planned for several devices: rules that take apart.
  std::vector<std::string> plan_files;
  std::vector<std::string> disabled;  ///< Names of rules that are left out.
  bool require_proofs = false;        ///< A rule without a proof mark is an error; else there is a warning.
};

/// Rules, each with a name of its own.
struct RuleSets {
  RuleIndex search;
  std::optional<RuleIndex> baseline;  ///< Nothing: as the search.
  std::vector<Substitution> plans;    ///< Besides those of the search, for plans for several devices.

  [[nodiscard]] const RuleIndex& for_baseline() const { return baseline ? *baseline : search; }
  /// The rules of all.
  [[nodiscard]] std::vector<Substitution> all() const;
};

/// Loads rules; axioms in the files are left out. Fails as load_rules and load_taso_rules do, with bad_input where a
/// proof is required and absent, and with usage where `disabled` names no rule. `registry` must outlive the result.
[[nodiscard]] Expected<RuleSets> load_rule_sets(const RuleOptions& options, const OperatorRegistry& registry,
                                                const MessageSink& message);

}  // namespace taso
