/// Which stages of a graph one kernel computes together: groups of stages at least cost.
///
/// A stage reads values and makes one. A group computes some stages in one kernel and stores those of their values that
/// someone else reads. Of its stages it has *members*, whose values it is the one to store, and *repeats*, which are
/// computed here once more because that is cheaper than reading what another group has stored; a stage that all of its
/// readers repeat is a member of no group. Wanted is a cover: every stage whose value is kept, or read by a chosen
/// group from memory, is a member of exactly one chosen group, no group waits for itself, and the sum of the groups'
/// costs is least.
///
/// This is an elimination problem (elimination/elimination.h). Its variables are the stages, their values the candidate
/// groups of which the stage is a member ("which group stores it"), or none. Two stages that one group has as members
/// are in it together or not at all: a table over two variables, and as groups are connected it is enough to ask
/// neighbours. What a group reads from memory must be stored: a table over what is read and one member of the reader.
/// Parts of the graph that hold together by what may be in one group are problems by themselves, and their solutions
/// are kept for graphs that have the same parts. That groups do not wait for each other in a circle is no local matter:
/// where the best covers have a circle, all parts are one problem, a table that forbids the circle is added, and the
/// choice is made again, until the best cover has none. It is then the best without circles.
///
/// Bounds. Candidates are all connected groups up to a size, as long as they are not too many (GroupOptions);
/// otherwise those up to the size where they become too many, the groups of a cover that is known before, and what
/// these are with one stage more or less. GroupChoice says whether the choice is exact among its candidates, whether
/// these were all there are, and below which cost no cover can be.
///
/// Deterministic. Of covers of equal cost the known one stays, else one with larger groups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "elimination/elimination.h"
#include "support/hash.h"

namespace taso {

/// One stage, numbered in an order in which every one comes after those that it reads.
struct GroupStage {
  struct Read {
    /// A stage's number: its value. From the number of stages on: a value that no stage makes, which groups may share.
    std::uint32_t value = 0;
    /// It is read where it has been stored, never within a group.
    bool in_memory = false;
  };
  std::vector<Read> reads;  ///< Of pairwise different values.
  bool kept = false;        ///< Its value is stored in any case.
  bool repeatable = false;  ///< It may be computed in several groups.
};

/// Stages that one kernel computes; their numbers ascend.
struct StageGroup {
  std::vector<std::uint32_t> members;  ///< At least one. Stored where kept, or read by a stage that is no member.
  std::vector<std::uint32_t>
      repeats;  ///< Each of them read by another stage of the group, and by a non-member or kept.
  bool operator==(const StageGroup&) const = default;
};

struct GroupProblem {
  std::vector<GroupStage> stages;
  /// What a group costs, not below 0; nothing where no kernel computes it. A single stage has a kernel. Sums of costs
  /// are compared as they are: costs that are whole numbers are safe from rounding.
  std::function<std::optional<double>(const StageGroup&)> cost;
  /// Whether two stages may be in one group because one reads the other's value or both read the same. Symmetric; those
  /// that do not link are in one group only where neither reads the other and others hold them together. Empty: all do.
  std::function<bool(std::uint32_t, std::uint32_t)> links;
  /// No cover of these stages, which link with no others, costs less. Empty: 0.
  std::function<double(std::span<const std::uint32_t>)> least;
  /// All that kernels and costs of groups of these stages, which link with no others, follow from, besides what the
  /// problem says of them: equal for equal ones. With it the cache is asked for parts. Empty: it is not.
  std::function<Hash128(std::span<const std::uint32_t>)> identity;
};

/// What is kept from choice to choice, of the same kernels and costs. The choices do not depend on what it holds.
struct GroupCache {
  /// Positions among the stages of a part.
  struct Group {
    std::vector<std::uint32_t> members, repeats;
  };
  /// The best cover of stages that link with no others.
  struct Part {
    std::vector<Group> groups = {};  ///< Empty: the known ones.
    double lower_bound = 0;
    bool exact = true, complete = true;
    std::size_t width = 0, candidates = 0;
  };
  EliminationCache elimination;
  std::unordered_map<Hash128, Part> parts;
};

struct GroupOptions {
  std::size_t maximum_size = 32;  ///< Most stages of a group, unless the known cover has larger ones.
  /// Connected stages for which there is no kernel are tried with one more if they are fewer than these.
  std::size_t extended_size = 3;
  std::size_t maximum_repeats = 3;       ///< Most repeats of a group, unless the known cover has more.
  std::size_t candidates_per_stage = 8;  ///< Most candidates, for each stage of those that links hold together.
  std::size_t maximum_rounds = 8;        ///< Most choices with circles forbidden.
  EliminationOptions elimination{.maximum_table = std::size_t{1} << 15};
};

struct GroupChoice {
  std::vector<StageGroup> groups;  ///< By first member.
  double cost = 0;
  double lower_bound = 0;  ///< No cover costs less; where `complete` is false, one of other groups might cost so much.
  bool exact = true;       ///< No cover of candidates costs less.
  bool complete = true;    ///< The candidates were all groups within the sizes, but where `least` was reached.
  std::size_t candidates = 0;  ///< Groups with a kernel, besides those of parts where the known cover costs `least`.
  std::size_t rounds = 0;      ///< Eliminations run.
  std::size_t width = 0;       ///< Of these: largest number of neighbours.
};

/// `known`: a cover; every stage that may not be left out is in it. Its cost is an upper bound, and parts of the graph
/// where it costs what `least` says are left as they are.
[[nodiscard]] GroupChoice choose_groups(const GroupProblem& problem, const std::vector<StageGroup>& known,
                                        GroupCache& cache, const GroupOptions& options = {});

}  // namespace taso
