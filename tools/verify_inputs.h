/// What taso-verify reads before the first proof: files, folders and rules on the command line become statements.
#pragma once

#include <string>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"
#include "support/status.h"
#include "tools/common.h"

namespace taso::tools {

/// A statement to verify.
struct VerifyTask {
  Substitution rule;    ///< `where` tells the file, and the line where the file has lines.
  bool lemma = false;   ///< A rule in an axiom file: it must follow from the axioms alone.
  std::string problem;  ///< Of a rule in another format that cannot be told in ours: why; its verdict is unknown.
};

/// Everything that is read before the first proof.
struct VerifyInputs {
  OperatorRegistry registry;
  std::vector<Substitution> axioms;    ///< The theory; with lemmas, which are rules.
  std::vector<VerifyTask> tasks;       ///< In the order of the command line, files of a folder in name order.
  std::vector<std::string> operators;  ///< Those that .op files define, in name order.
};

/// Where to read from.
struct VerifySources {
  std::vector<std::string> inputs;  ///< .rules, .axioms, .op, .pb, or folders of the first three.
  std::vector<std::string> rules;   ///< Rules as text.
  std::string axioms;               ///< Axiom file or folder instead of those of the specifications.
};

[[nodiscard]] Expected<VerifyInputs> read_verify_inputs(const CommonOptions& options, const VerifySources& sources);

/// A rule given as text: a whole statement of a rule file, or what stands in it after the name. `number`, from 1, gives
/// the latter its name.
[[nodiscard]] Expected<std::vector<Substitution>> parse_rule_argument(const std::string& text, std::size_t number,
                                                                      const OperatorCatalog& catalog);

/// The text of a rule file with the rules of a .pb file; `problems` gets a line for each one that cannot be told.
[[nodiscard]] Expected<std::string> translated_rules(const std::string& path, const OperatorCatalog& catalog,
                                                     std::vector<std::string>& problems);

}  // namespace taso::tools
