/// Missing properties: identities that, added to the axioms, prove rules which are true and yet do not follow.
///
/// The methodology of section 2.4 of the TASO chapter: a substitution that the properties do not prove is either wrong
/// or shows that a property is missing. For every such rule candidates are collected - more general forms of the
/// axioms that speak of its operators, equations within the rule (identities.h), and the rule itself, generalised -;
/// each is proved from the definitions for all sizes. Then the smallest that closes the rule is searched: candidates
/// are sorted by size, and the shortest beginning of the list with which the rule follows ends with it (Junker's
/// QuickXplain: if it is not enough alone, the search goes on with it added). At last identities that others make
/// unnecessary are left out, and the rest is ordered by how many rules each one adds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"
#include "verifier/generalise.h"
#include "verifier/identities.h"

namespace taso {

struct MissingOptions {
  std::uint64_t rlimit = 1'000'000;  ///< Z3 resource units of one question.
  std::size_t max_candidates = 24;   ///< Equations within one rule that are proved and tried, smallest first.
  unsigned threads = 1;              ///< Any number gives the same result.
  IdentityOptions identities;
  GeneraliseOptions generalise{.max_proofs = 40, .other_values = false, .drop_conditions = true, .prover = {}};
  std::function<bool()> stop;                                                  ///< Asked between steps; may be empty.
  std::function<void(const std::string&, std::size_t, std::size_t)> progress;  ///< What, done, of how many.
};

/// An identity worth an axiom.
struct MissingIdentity {
  Substitution axiom;  ///< Named, in canonical form, to be pasted into an axiom file.
  /// Where it comes from: "a general form of axiom NAME", "within rule NAME", "rule NAME itself".
  std::string origin;
  std::string generalises;         ///< The axiom that it contains as a special case, or empty.
  std::vector<std::size_t> rules;  ///< Rules whose proof uses it, by number.
  std::size_t adds = 0;            ///< Rules proved by it and those before it that are not proved without it.
};

/// A rule that does not follow.
struct MissingRule {
  std::size_t rule = 0;                 ///< Its number.
  std::vector<std::size_t> identities;  ///< Identities with which it follows; empty if none were found.
  std::string reason;                   ///< Why none were found.
};

struct MissingReport {
  std::vector<MissingIdentity> identities;  ///< In the order of a greedy cover: most rules first, then smallest.
  std::vector<MissingRule> rules;           ///< In the order given.
  bool interrupted = false;
};

/// `rules` are true and do not follow from the axioms. The registry must outlive the call.
[[nodiscard]] MissingReport find_missing_axioms(const OperatorRegistry& registry,
                                                const std::vector<Substitution>& axioms,
                                                const std::vector<Substitution>& rules, const MissingOptions& options);

}  // namespace taso
