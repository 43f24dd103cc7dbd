/// What taso-verify says of its verdicts: text for people, and the formats of continuous integration. All are functions
/// of the results alone, so that equal results give equal bytes.
#pragma once

#include <string>
#include <vector>

#include "support/status.h"
#include "tools/verify_inputs.h"
#include "verifier/verify.h"

namespace taso::tools {

/// A statement and what is known of it.
struct VerifyResult {
  const VerifyTask* task;
  Verdict verdict;

  /// The verdict that the statement names by `expect`, or proved.
  [[nodiscard]] bool as_expected() const;
};

struct MissingFindings;

/// Definitions that were tried (verifier/definitions.h), at how many applications, and those that were at none.
struct TriedDefinitions {
  std::size_t operators = 0, applications = 0;
  std::vector<std::string> untried = {};
};

/// What reports name besides.
struct ReportContext {
  std::string version;  ///< Of this program.
  VerifierOptions options;
  TriedDefinitions definitions;
  const MissingFindings* missing = nullptr;  ///< Of --missing-axioms; null without it.
  const OperatorCatalog* catalog = nullptr;  ///< For the text of its identities.
};

/// Lines, each indented by four spaces, the last one ended.
[[nodiscard]] std::string indented(const std::string& text);

/// One statement: a line, and what a person needs to see below it.
[[nodiscard]] std::string text_report(const VerifyResult& result);

/// The report of --json.
[[nodiscard]] std::string json_report(const std::vector<VerifyResult>& results, const ReportContext& context);

/// JUnit XML: a test suite for every file, a test case for every statement; what is not as it should be is a failure.
[[nodiscard]] std::string junit_report(const std::vector<VerifyResult>& results);

/// SARIF 2.1.0: a result for every statement that is not as it should be.
[[nodiscard]] std::string sarif_report(const std::vector<VerifyResult>& results, const ReportContext& context);

/// Workflow commands of GitHub Actions, one line for every statement that is not as it should be.
[[nodiscard]] std::string github_annotations(const std::vector<VerifyResult>& results);
/// One for an error that ended the program.
[[nodiscard]] std::string github_annotation(const Error& error);

}  // namespace taso::tools
