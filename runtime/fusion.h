/// Steps of a lowered graph that one kernel of a device computes: fewer launches, and what only such steps pass on to
/// each other is never in memory.
///
/// Which steps are together is chosen at least cost (runtime/groups.h), beginning with a cover that a walk over the
/// steps finds: every step begins as a kernel of its own; a step and the producer of one of its operands become one
/// kernel if the device wants that (FusionRules::fuses), and if no step outside would have to run both after the one
/// and before the other; where two are no kernel, three may be, of which the first and the last are products
/// (attention). Steps that only move elements (runtime/access.h) are computed by each of their readers that can; one
/// that all readers compute is left out. The order of attempts is that of execution, so that equal graphs are fused
/// alike. Where the walk makes one kernel of all that can be together, nothing costs less; the rest is chosen.
#pragma once

#include <functional>
#include <unordered_map>

#include "runtime/groups.h"
#include "runtime/lowering.h"
#include "support/hash.h"

namespace taso {

struct FusionRules {
  /// Backend::fuses: of requests of several steps.
  std::function<bool(const KernelRequest&)> fuses = {};
  /// Whether a step can be part of a fused one at all, which saves asking; empty: all may.
  std::function<bool(const KernelRequest&)> joins = {};
  /// What a kernel costs, as GroupProblem::cost says: one for several steps no more than kernels that compute these
  /// together. Empty: 1, which counts launches.
  std::function<double(const KernelRequest&)> cost = {};
  /// Whether a step may be computed in several kernels; empty: if it only moves elements.
  std::function<bool(const KernelRequest&)> repeats = {};
  GroupOptions options = {};
};

/// What the rules said of groups, by what these consist of: over many graphs that are alike it is asked once. For one
/// set of rules. Not thread-safe.
class FusionCache {
 public:
  struct Verdict {
    bool is_kernel = false;
    double cost = 0;
  };
  /// Null if it is not there.
  [[nodiscard]] const Verdict* find(const Hash128& group) const;
  Verdict insert(const Hash128& group, const Verdict& verdict);
  void clear() {
    verdicts_.clear();
    groups_.parts.clear();
  }
  [[nodiscard]] GroupCache& groups() { return groups_; }

 private:
  GroupCache groups_;
  std::unordered_map<Hash128, Verdict> verdicts_;
};

/// What choosing took.
struct FusionStatistics {
  double walked = 0, chosen = 0, lower_bound = 0;  ///< Costs: of the walk's kernels, of those chosen, of any.
  bool exact = true, complete = true;              ///< See GroupChoice.
  std::size_t candidates = 0, rounds = 0, width = 0;
};

/// The steps keep an order in which each is run after those whose results it reads; a fused step has the node of the
/// last of its own. What `cache` says of a group that is chosen is asked again: if it is not so any more (a kernel
/// failed when it ran), all is forgotten. The result does not depend on what it holds.
[[nodiscard]] LoweredGraph fuse_steps(LoweredGraph lowered, const FusionRules& rules, FusionCache* cache = nullptr,
                                      FusionStatistics* statistics = nullptr);

}  // namespace taso
