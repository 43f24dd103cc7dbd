/// What a user's folder declares beside the shipped specifications: it is believed as far as it is proved.
///
/// Matching, normal forms and the theory of axioms use the laws of operators without asking, and Z3 derives rules from
/// every axiom that it is given. The shipped ones are proved by tests; those of an added folder when it is loaded.
#pragma once

#include <string>
#include <vector>

#include "operators/registry.h"
#include "support/status.h"
#include "verifier/verify.h"

namespace taso {

/// Fails, at its definition, if a declared law of an operator that `known` does not have is not proved for all sizes.
[[nodiscard]] Status prove_declared_laws(const OperatorRegistry& registry, const OperatorRegistry& known);

/// The primitives that `known` does not have and of which facts, a domain or laws are declared: these are tried on
/// numbers, not proved, and proofs rest on them. (Of an abbreviation nothing but its definition is used.)
[[nodiscard]] std::vector<const FunctionDefinition*> trusted_functions(const OperatorRegistry& registry,
                                                                       const OperatorRegistry& known);

/// Axioms, and why others are none.
struct BelievedAxioms {
  struct Doubted {
    std::string name;
    Error why;  ///< At the axiom.
  };
  std::vector<Substitution> axioms;
  std::vector<Doubted> not_proved;
};
/// Those that are proved for all sizes as they stand; and all lemmas, which are proved where they are used.
[[nodiscard]] BelievedAxioms proved_axioms(const OperatorRegistry& registry, const std::vector<Substitution>& axioms);

}  // namespace taso
