/// Exact minimisation of a sum of local costs over discrete variables, by variable elimination.
///
/// The problem: variables with finite domains {0, ..., size - 1} and factors, each a table of costs over a few of the
/// variables; wanted is the assignment that minimises the sum of all factors. An infinite cost forbids a
/// combination. Layouts of tensors are such a problem (variables: how each node is computed; tables: kernels
/// and conversions), partitions over devices another: the engine knows nothing of either.
///
/// The algorithm is nonserial dynamic programming (Bertele and Brioschi 1972; bucket elimination, Dechter 1999), and
/// with its order PaSE's GenerateSeq and FindBestStrategy (Elango 2021): take the variable whose
/// neighbours have the smallest table, replace all factors that mention it by their minimum over it, a factor over the
/// neighbours, and repeat; then assign the variables in reverse order. Time and memory are exponential only in the
/// number of neighbours at elimination, which is 1 to 3 for graphs of neural networks.
///
/// Where a table would exceed the bound, the factors of the variable are minimised in groups that fit (mini-buckets,
/// Dechter and Rish 2003). The result is then an assignment and a lower bound, and `exact` is false: a gap is
/// reported, never hidden.
///
/// Deterministic: among optimal assignments the one that is smallest in the order of assignment (the last variable
/// eliminated first, lower values first). Hence if the costs of combinations that this assignment does not use
/// grow, it stays the result.
#pragma once

#include <absl/container/inlined_vector.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "support/hash.h"

namespace taso {

class EliminationProblem {
 public:
  using Variable = std::uint32_t;
  /// The cost of a combination that must not be.
  static constexpr double forbidden_cost = std::numeric_limits<double>::infinity();

  /// A cost for every combination of the variables of `scope`; kept by the problem until it changes.
  struct Factor {
    std::span<const Variable> scope;  ///< Pairwise different.
    std::span<const double> table;    ///< The last variable of the scope runs fastest.
  };

  /// A variable with `size` (at least 1) values.
  Variable add_variable(std::uint32_t size);
  /// Adds a term. No cost is -infinity or NaN. The table has one entry per combination.
  void add_factor(std::span<const Variable> scope, std::span<const double> table);
  void add_factor(const std::vector<Variable>& scope, const std::vector<double>& table) {
    add_factor(std::span(scope), std::span(table));
  }
  /// Adds a term whose table lies with the caller, unchanged for as long as the problem is used.
  void share_factor(std::span<const Variable> scope, std::span<const double> table);
  /// Makes room for so many variables, factors, variables in their scopes, and entries of their tables.
  void reserve(std::size_t variables, std::size_t factors, std::size_t scopes, std::size_t entries);

  [[nodiscard]] std::size_t variables() const { return sizes_.size(); }
  [[nodiscard]] std::uint32_t size(Variable variable) const { return sizes_[variable]; }
  /// Of all variables.
  [[nodiscard]] std::span<const std::uint32_t> sizes() const { return sizes_; }
  [[nodiscard]] std::size_t factors() const { return places_.size(); }
  [[nodiscard]] Factor factor(std::size_t index) const {
    const Place& place = places_[index];
    const double* const table = place.shared != nullptr ? place.shared : tables_.data() + place.table;
    return {{scopes_.data() + place.scope, place.rank}, {table, place.entries}};
  }
  /// The sum of all factors at an assignment of all variables.
  [[nodiscard]] double cost(std::span<const std::uint32_t> assignment) const;

 private:
  /// Where a factor's scope and table lie in `scopes_` and `tables_`, or the table of someone else.
  struct Place {
    std::size_t scope = 0, rank = 0, table = 0, entries = 0;
    const double* shared = nullptr;
  };
  std::vector<std::uint32_t> sizes_;
  std::vector<Place> places_;
  std::vector<Variable> scopes_;
  std::vector<double> tables_;
};

/// The number of entries of a table over some variables: the product of their sizes, or the largest number if that
/// overflows (sizes of tables that are never made may).
[[nodiscard]] std::size_t table_size(std::span<const std::uint32_t> sizes,
                                     std::span<const EliminationProblem::Variable> scope);

struct EliminationOptions {
  /// Most entries of a table made by elimination. Tables that are given may be larger.
  std::size_t maximum_table = std::size_t{1} << 20;
  /// Most entries of all tables together, roughly: a table may have half of what is left. What a cache holds already
  /// does not count.
  std::size_t maximum_entries = std::numeric_limits<std::size_t>::max();
  /// All variables in the order of elimination (elimination/order.h makes such), kept by the caller; if empty, the
  /// variable with the smallest table over its neighbours is next. Of EliminationCache, parts have no given order.
  std::span<const EliminationProblem::Variable> order = {};
  /// Large tables are made by several threads. The result is the same.
  bool parallel = false;
};

struct EliminationResult {
  std::vector<std::uint32_t> assignment;  ///< A value per variable.
  double cost = 0;                ///< Of the assignment; forbidden_cost if it is not allowed (`exact`: then none is).
  double lower_bound = 0;         ///< No assignment costs less. Up to rounding equal to `cost` if exact.
  bool exact = true;              ///< The assignment is optimal: no table was too large.
  std::size_t width = 0;          ///< Largest number of neighbours of a variable when it was eliminated.
  std::size_t largest_table = 0;  ///< Entries of the largest table made.
};

/// Tables that elimination made, by what they were made of: the minimum over a variable of a sum of tables is looked up
/// instead of computed where the tables (up to constants) are the same as once before. Not thread-safe.
class MessageCache {
 public:
  /// About so many entries are kept in all; then all are forgotten.
  explicit MessageCache(std::size_t maximum_entries = std::size_t{1} << 22) : maximum_entries_(maximum_entries) {}

  struct Message {
    absl::InlinedVector<double, 6> table;  ///< The least entry is 0 if any is finite.
    double least = 0;                      ///< What was subtracted for that.
    Hash128 hash;                          ///< Of the table.
  };
  /// Null if it is not there. What is found, or was inserted, stays until make_room().
  [[nodiscard]] const Message* find(const Hash128& key) const;
  const Message* insert(const Hash128& key, Message message);
  /// Forgets all if there is too much: called before each elimination.
  void make_room();

 private:
  std::size_t maximum_entries_, entries_ = 0;
  std::unordered_map<Hash128, Message> messages_;
};

/// Minimises. Never fails; see EliminationResult::exact and cost. With a cache, sums are rounded differently.
[[nodiscard]] EliminationResult minimize(const EliminationProblem& problem, const EliminationOptions& options = {},
                                         MessageCache* cache = nullptr);

/// The least cost for each value of one variable, and the assignments behind it.
struct RootedResult {
  std::vector<double> table;                            ///< Per value of the root; forbidden_cost where it cannot be.
  std::vector<std::vector<std::uint32_t>> assignments;  ///< Per value of the root: of all variables.
  bool exact = true;                                    ///< No table was too large; else there is nothing but this.
  std::size_t width = 0, largest_table = 0;             ///< As in EliminationResult.
};

/// A factor whose scope and table are kept by someone else.
struct EliminationTerm {
  std::span<const EliminationProblem::Variable> scope;
  std::span<const double> table;
  Hash128 hash;  ///< Of the table; where there is a MessageCache.
};

/// Minimises the sum of `terms`, none of them with an empty scope, over all variables but `root`.
[[nodiscard]] RootedResult minimize_rooted(std::span<const std::uint32_t> sizes, std::span<const EliminationTerm> terms,
                                           EliminationProblem::Variable root, const EliminationOptions& options,
                                           MessageCache& cache);

/// Parts of problems that were solved. A part is a block of the graph of variables (two variables in one factor are
/// neighbours): a largest set that no single variable separates. Seen from the variable by which it hangs on the rest,
/// it is a table over that variable and the assignment behind each entry. Parts are known by their content (costs up to
/// a constant), so that of a problem that differs from an earlier one in one place, only the blocks there are solved:
/// the table of what hangs below a block changes by a constant mostly, which the block above does not see. Not
/// thread-safe.
class EliminationCache {
 public:
  /// At most so many parts are kept; then all are forgotten.
  explicit EliminationCache(std::size_t maximum_parts = 100'000) : maximum_parts_(maximum_parts) {}
  /// As taso::minimize; the results are equal but for which of several optimal assignments is found. That depends on
  /// the problem only, not on what the cache holds.
  [[nodiscard]] EliminationResult minimize(const EliminationProblem& problem, const EliminationOptions& options = {});
  [[nodiscard]] std::size_t solved() const { return solved_; }  ///< Parts solved...
  [[nodiscard]] std::size_t reused() const { return reused_; }  ///< ...and parts found.

 private:
  struct Part {
    std::vector<double> table;  ///< Per value of the top variable; the least entry is 0 if any is finite.
    double least = 0;           ///< What was subtracted for that.
    std::vector<std::vector<std::uint32_t>> assignments;  ///< Per value of the top variable: of the others.
    bool exact = true;
    std::size_t width = 0, largest_table = 0;
  };
  class Blocks;
  [[nodiscard]] std::shared_ptr<const Part> part_of(const Blocks& blocks, std::size_t block,
                                                    const EliminationOptions& options);
  /// True if a block is known to need a table that is too large. That follows from its structure alone: from the sizes
  /// of its variables and which of them share a factor.
  [[nodiscard]] bool is_known_as_too_large(const Blocks& blocks, const EliminationOptions& options);
  [[nodiscard]] Hash128 structure_of(const Blocks& blocks, std::size_t block, const EliminationOptions& options);
  std::size_t maximum_parts_;
  std::size_t solved_ = 0, reused_ = 0;
  std::unordered_map<Hash128, std::shared_ptr<const Part>> parts_;
  MessageCache messages_;
  std::unordered_set<Hash128> too_large_;  ///< Structures of blocks, at most as many as parts.
  std::size_t smallest_too_large_ = std::numeric_limits<std::size_t>::max();  ///< Of those: least number of members.
  // A part while it is looked up: what it is known by, and itself as a problem of its own.
  std::vector<std::uint64_t> content_;
  std::vector<std::uint32_t> sizes_;
  std::vector<EliminationProblem::Variable> scopes_;
  std::vector<EliminationTerm> terms_;
};

}  // namespace taso
