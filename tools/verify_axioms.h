/// taso-verify --exhaustive and --report: bounded validation at full breadth, and what is known of an axiom set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"
#include "tools/common.h"

namespace taso::tools {

struct AxiomArguments {
  bool exhaustive = false;             ///< Every instance of every statement.
  bool report = false;                 ///< That, and redundancy, directions, consistency of the axioms.
  std::int64_t bound = 4;              ///< Largest extent.
  std::uint64_t obligations = 40'000;  ///< About so many of one statement; of more a random part. 0: all.
  std::uint64_t rlimit = 200'000;      ///< Of a question to Z3.
  std::string falsehoods;              ///< A rule file of false statements that must not follow; may be empty.
};

/// Examines the statements, prints a line for each and the sums, and writes --json; the exit code.
[[nodiscard]] Expected<int> run_axiom_modes(const OperatorRegistry& registry,
                                            const std::vector<Substitution>& statements,
                                            const std::vector<Substitution>& axioms, const CommonOptions& common,
                                            const AxiomArguments& arguments);

/// taso-verify --record-facts: writes the record of every axiom file's shapes (verifier/shape_facts.h) beside it.
[[nodiscard]] Expected<int> record_shape_facts(const OperatorRegistry& registry,
                                               const std::vector<Substitution>& statements,
                                               const CommonOptions& common);

}  // namespace taso::tools
