#include "optimizer/layout_moves.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "support/hash.h"

namespace taso {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();

/// Nodes that compute the same, and may work in the same configurations.
struct Kind {
  std::vector<std::uint32_t> variables;
  Hash128 hash;
  double bytes = 0;  ///< Of the first outputs of all.
};

Hash128 hash_of(const Node& node, const LayoutSpace::Variable& variable) {
  Hasher hasher;
  hasher.add(node.label).add(std::uint64_t{variable.choices.size()});
  const auto add_all = [&](const auto& values) {
    hasher.add(std::uint64_t{values.size()});
    for (const auto value : values) hasher.add(static_cast<std::uint64_t>(value));
  };
  for (const auto& choice : variable.choices) {
    hasher.add(static_cast<std::uint64_t>(choice->kind)).add(std::uint64_t{choice->claims});
    add_all(choice->inputs);
    add_all(choice->outputs);
    add_all(choice->offsets);
    if (choice->kernel) hasher.add(choice->kernel->key_hash);
  }
  return hasher.finish();
}

/// The kinds of which there are several configurations: those first that make the most bytes, for whatever order of
/// nodes.
std::vector<Kind> kinds_of(const Graph& graph, const LayoutSpace& space) {
  std::map<Hash128, Kind> known;
  for (std::uint32_t i = 0; i < space.variables.size(); ++i) {
    const LayoutSpace::Variable& variable = space.variables[i];
    if (variable.choices.size() < 2) continue;
    const Node& node = graph.node(variable.node);
    const Hash128 hash = hash_of(node, variable);
    Kind& kind = known[hash];
    kind.hash = hash;
    kind.variables.push_back(i);
    kind.bytes += static_cast<double>(node.outputs[0].bytes());
  }
  std::vector<Kind> kinds;
  kinds.reserve(known.size());
  for (auto& [hash, kind] : known) kinds.push_back(std::move(kind));
  std::stable_sort(kinds.begin(), kinds.end(), [](const Kind& a, const Kind& b) { return a.bytes > b.bytes; });
  return kinds;
}

class Moves {
 public:
  Moves(const Graph& graph, const Target& target, const PriceList& prices,
        const std::function<Expected<double>(const KernelPlan&, double)>& cost_of, EliminationCache& cache,
        LayoutStatistics& statistics, const MoveOptions& options)
      : graph_(graph),
        target_(target),
        prices_(prices),
        cost_of_(cost_of),
        cache_(cache),
        statistics_(statistics),
        options_(options) {}

  Expected<std::optional<PricedPlan>> run(double limit) {
    std::optional<PricedPlan> none;
    TASO_ASSIGN(open_, target_.open_plan(graph_));
    if (!open_.open) return none;
    for (const auto& kernel : open_.open->kernels) kernels_.emplace(kernel->hash, kernel.get());
    kinds_ = kinds_of(graph_, open_.open->space);
    if (kinds_.empty()) return none;
    TASO_ASSIGN(std::optional<PricedPlan> current, tried({}, no_limit));
    if (!current) return none;
    std::vector<std::optional<std::uint32_t>> made(kinds_.size());
    std::size_t kept = 0;
    for (bool again = true; again && !ended_;) {
      again = false;
      for (std::size_t k = 0; k < kinds_.size() && !ended_; ++k) {
        const auto choices = static_cast<std::uint32_t>(choices_of(kinds_[k]).size());
        for (std::uint32_t choice = 0; choice < choices && !ended_; ++choice) {
          TASO_ASSIGN(const bool possible, may_be_made(kinds_[k], choice, current->plan));
          if (!possible) continue;
          std::vector<std::optional<std::uint32_t>> with = made;
          with[k] = choice;
          ++statistics_.moves_tried;
          ended_ = ++moves_ == most_moves_for_each_plan * options_.most_tried;
          TASO_ASSIGN(std::optional<PricedPlan> moved, tried(with, (1 - options_.least_gain) * current->cost));
          if (!moved) continue;
          current = std::move(moved);
          made = std::move(with);
          ++kept;
          again = true;
        }
      }
    }
    statistics_.moves_ended += ended_ ? 1 : 0;
    if (kept == 0 || current->cost >= (1 - options_.least_gain) * limit) return none;
    statistics_.moves_kept += kept;
    return current;
  }

 private:
  /// Most moves lead to plans that were tried before.
  static constexpr std::size_t most_moves_for_each_plan = 16;

  [[nodiscard]] std::span<const std::shared_ptr<const Configuration>> choices_of(const Kind& kind) const {
    return open_.open->space.variables[kind.variables[0]].choices;
  }

  /// False if the plan is so already, or the move needs a kernel that has no price.
  Expected<bool> may_be_made(const Kind& kind, std::uint32_t choice, const KernelPlan& plan) {
    const LayoutSpace& space = open_.open->space;
    if (std::all_of(kind.variables.begin(), kind.variables.end(), [&](std::uint32_t variable) {
          return (*plan.layouts)[space.variables[variable].node] == space.variables[variable].choices[choice];
        }))
      return false;
    const Configuration& configuration = *choices_of(kind)[choice];
    if (!configuration.kernel) return true;
    const auto kernel = kernels_.find(configuration.kernel->key_hash);
    if (kernel == kernels_.end() || prices_.look_up(*kernel->second).known) return true;
    const Expected<Price> found = prices_.find_out(*kernel->second);
    return found ? Expected(true) : after(found.error(), false);
  }

  /// The plan with these choices of kinds and the best ones around them, if it is a new one, and costs less than
  /// `limit`.
  Expected<std::optional<PricedPlan>> tried(const std::vector<std::optional<std::uint32_t>>& made, double limit) {
    std::optional<PricedPlan> none;
    std::vector<ForcedChoice> forced;
    for (std::size_t k = 0; k < made.size(); ++k)
      if (made[k])
        for (const std::uint32_t variable : kinds_[k].variables) forced.push_back({variable, *made[k]});
    PricedPlan plan{open_, 0};
    LayoutStatistics own;
    const Expected<double> alone =
        choose_layouts(plan.plan, prices_, no_limit, cache_, own, layout_elimination, forced);
    // What follows from prices that are known in part is not the same as from all of them.
    const bool inexact = own.inexact > 0;
    own.problems = own.inexact = 0;  // this is no further graph whose layouts are chosen
    own.largest_gap = 0;
    if (own.solved > 0) statistics_.parts_solved = statistics_.parts_reused = 0;  // the cache counts them
    statistics_.add(own);
    if (!alone) return after(alone.error(), std::move(none));
    if (inexact || !plan.plan.layouts || !seen_.insert(*plan.plan.layouts).second) return none;
    if (seen_.size() > options_.most_tried) {
      ended_ = true;
      return none;
    }
    TASO_RETURN_IF_ERROR(target_.fuse(graph_, plan.plan));
    const Expected<double> cost = cost_of_(plan.plan, limit);
    if (!cost) return after(cost.error(), std::move(none));
    plan.cost = *cost;
    if (plan.cost >= limit) return none;
    return std::optional(std::move(plan));
  }

  /// `value`, where an error means no more than that a plan does not count, or that no further one does.
  template <class T>
  Expected<T> after(const Error& error, T value) {
    if (error.code == ErrorCode::interrupted) ended_ = true;
    if (error.code == ErrorCode::interrupted || error.code == ErrorCode::cost_missing ||
        error.code == ErrorCode::device_unavailable)
      return value;
    return error;
  }

  const Graph& graph_;
  const Target& target_;
  const PriceList& prices_;
  const std::function<Expected<double>(const KernelPlan&, double)>& cost_of_;
  EliminationCache& cache_;
  LayoutStatistics& statistics_;
  MoveOptions options_;
  KernelPlan open_;
  std::unordered_map<Hash128, const KernelInfo*> kernels_;  ///< Of the open plan.
  std::vector<Kind> kinds_;
  std::set<LayoutAssignment> seen_;
  std::size_t moves_ = 0;
  bool ended_ = false;
};

}  // namespace

Expected<std::optional<PricedPlan>> cheaper_by_moves(
    const Graph& graph, const Target& target, const PriceList& prices,
    const std::function<Expected<double>(const KernelPlan&, double limit)>& cost_of, double limit,
    EliminationCache& cache, LayoutStatistics& statistics, const MoveOptions& options) {
  return Moves(graph, target, prices, cost_of, cache, statistics, options).run(limit);
}

}  // namespace taso
