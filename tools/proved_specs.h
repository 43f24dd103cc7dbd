/// Folders of specifications whose declarations are proved before they are believed (verifier/declarations.h): for
/// programs that rewrite graphs or prove rules.
#pragma once

#include "operators/registry.h"
#include "support/status.h"
#include "tools/common.h"
#include "verifier/declarations.h"

namespace taso::tools {

/// What load_operators() gives. A declared law of an added operator that is not proved is an error.
[[nodiscard]] Expected<OperatorRegistry> load_proved_operators(const CommonOptions& options);

/// The axioms of all folders. Of those of added folders only what is proved; `program` warns of the others.
[[nodiscard]] Expected<BelievedAxioms> load_believed_axioms(const CommonOptions& options,
                                                            const OperatorRegistry& registry, const char* program);

}  // namespace taso::tools
