/// taso-verify --missing-axioms and --generalise: what the axioms lack, and rules in their most general form.
#pragma once

#include <string>
#include <vector>

#include "tools/verify_inputs.h"
#include "tools/verify_reports.h"
#include "verifier/missing.h"

namespace taso::tools {

/// What --missing-axioms found.
struct MissingFindings {
  std::vector<Substitution> rules;               ///< True statements that do not follow from the axioms.
  std::vector<std::vector<Condition>> narrowed;  ///< Per rule: the conditions that were added so that it is true.
  MissingReport report;                          ///< Of these rules.
  /// The conditions that were added to a rule, for a person.
  [[nodiscard]] std::string under(std::size_t rule) const;
};

/// Looks for identities that close the rules which are true, as the results say, and do not follow from the axioms.
[[nodiscard]] Expected<MissingFindings> find_missing(const VerifyInputs& inputs,
                                                     const std::vector<VerifyResult>& results,
                                                     const CommonOptions& common, const VerifierOptions& options);

/// The findings as text: identities as an axiom file would hold them, each with a comment that says what it adds.
[[nodiscard]] std::string missing_text(const MissingFindings& findings, const OperatorCatalog& catalog);

/// --generalise: writes the rules with parameters generalised as far as they are proved; the exit code.
[[nodiscard]] Expected<int> run_generalise(const VerifyInputs& inputs, const CommonOptions& common,
                                           const VerifierOptions& options, const std::string& path);

}  // namespace taso::tools
