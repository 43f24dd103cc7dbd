/// Folders of specifications whose declarations are proved before they are believed (verifier/declarations.h).
#pragma once

#include "operators/registry.h"
#include "support/status.h"
#include "tools/common.h"
#include "verifier/declarations.h"

namespace taso::tools {

/// What load_operators() gives; a declared law of an added operator that is not proved is an error. For every program
/// that makes graphs: they are kept in normal forms that laws allow. One that rewrites graphs or proves rules gives its
/// name and warns of added functions whose facts and laws have to be trusted.
[[nodiscard]] Expected<OperatorRegistry> load_proved_operators(const CommonOptions& options,
                                                               const char* program = nullptr);

/// `program` says of which functions that `known` does not have something is declared that is not proved.
void warn_of_trusted_functions(const OperatorRegistry& registry, const OperatorRegistry& known, const char* program);

/// The axioms of all folders. Of those of added folders only what is proved; `program` warns of the others.
[[nodiscard]] Expected<BelievedAxioms> load_believed_axioms(const CommonOptions& options,
                                                            const OperatorRegistry& registry, const char* program);

}  // namespace taso::tools
