/// Generation of rules from a profile: enumeration, candidates, generalisation, proof, pruning, text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "generator/bank.h"
#include "generator/candidates.h"
#include "generator/float_test.h"
#include "generator/forms.h"
#include "generator/profile.h"
#include "generator/prune.h"
#include "verifier/verify.h"

namespace taso {

struct GeneratorOptions {
  int max_ops = 3;
  std::uint64_t seed = 1;
  unsigned threads = 1;
  bool verify = false;                      ///< Keep only what the verifier proves, and write the proofs down.
  std::uint64_t max_terms = 4'000'000'000;  ///< Per group.
  bool counts_only = false;                 ///< Enumerate, and make no rules (Generation::complete is false).
  ScaleOptions scale;                       ///< Memory, checkpoints, shards: no influence on the result.
  /// Of everything else that the result depends on (files, program): tells checkpoints of other runs.
  Hash128 inputs;
  PruneOptions prune;
  /// Also find derivations for candidates that are left out as not useful (Generation::pruned): for tests and
  /// statistics.
  bool explain_skipped = false;
  /// For every form that is tried: less effort than taso-verify spends, since a form that takes more has less general
  /// ones behind it.
  VerifierOptions verifier{.rlimit = 400'000};
  std::vector<Substitution> axioms;  ///< For the verifier.
  /// Told what is going on: group and stage, how far, of how much. May be empty.
  std::function<void(const std::string& what, std::size_t done, std::size_t total)> progress;
  /// Told what the last level of a group is expected to take, before it begins. May be empty.
  std::function<void(const std::string& group, const LevelEstimate&)> estimate;
  /// Told of every operator of a group that no term applies, where the group is enumerated up to its own size: as it
  /// stands in the profile, it is of no use. May be empty.
  std::function<void(const ProfileGroup& group, const ProfileOperator& op)> never_applied;
  /// Told of every candidate that was dropped after generalisation, and why. May be empty.
  std::function<void(const std::string& rule, const std::string& why)> dropped;
};

/// Counts of one group, in the order in which candidates go through the stages.
struct GroupStatistics {
  std::string name;
  std::size_t worlds = 0, points = 0;
  std::vector<LevelCounts> levels;
  CandidateCounts candidates;
  std::uint64_t distinct = 0;         ///< Distinct as text, over all groups before as well.
  std::uint64_t not_expressible = 0;  ///< The target needs an attribute that the source does not determine.
  std::uint64_t derived = 0;          ///< Found by applying smaller kept rules.
  std::uint64_t skipped = 0;          ///< Other orders of operands, exchanges that cannot pay: not among `distinct`.
  std::uint64_t skipped_costlier =
      0;  ///< ... derived only through graphs that run one operator more (explain_skipped).
  std::uint64_t skipped_underived = 0;     ///< ... of which no derivation was found (explain_skipped).
  std::uint64_t not_general = 0;           ///< Failed at other shapes or attributes than the profile's.
  std::uint64_t refuted = 0, unknown = 0;  ///< By the verifier.
  std::uint64_t kept = 0;
  /// Upper bound on the probability that two different values share a fingerprint anywhere in the group.
  double error_bound = 0;
};

struct Generation {
  std::vector<GeneralRule> rules;
  /// Rules that were dropped because `rules` derive them; steps name rules by their index in `rules`.
  std::vector<PrunedRule> pruned;
  std::vector<GroupStatistics> groups;
  std::vector<FloatOutlier> outliers;  ///< Of `rules`, in single precision at inputs in [-1, 1].
  /// False if the segments of this process were sent elsewhere, or only counts were asked for: there are no rules.
  bool complete = true;
};

/// Runs all stages. The result depends on profile, registry, axioms, seed and max_ops, not on threads.
[[nodiscard]] Expected<Generation> generate(const Profile& profile, const OperatorRegistry& registry,
                                            const GeneratorOptions& options);

/// The rule file: a header comment with `command` and counts, then the rules.
[[nodiscard]] std::string rule_file(const Generation& generation, const Profile& profile,
                                    const GeneratorOptions& options, const std::string& command,
                                    const OperatorCatalog& catalog);

/// Tables for people: counts by size, and what each stage of pruning leaves.
[[nodiscard]] std::string statistics_text(const Generation& generation);
/// The same as a JSON object.
[[nodiscard]] std::string statistics_json(const Generation& generation, const Profile& profile,
                                          const GeneratorOptions& options);

}  // namespace taso
