/// The whole of taso-opt between import and export: baseline, search, choice by whole-graph time, numeric check.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/rewrite.h"
#include "operators/registry.h"
#include "optimizer/check.h"
#include "optimizer/cost_model.h"
#include "optimizer/planned_graph.h"
#include "optimizer/progress.h"
#include "optimizer/search.h"
#include "support/status.h"

namespace taso {

/// Which of the graphs became the result.
enum class Choice : std::uint8_t { original, baseline, optimized };
[[nodiscard]] const char* to_string(Choice choice);

/// Which rules may be used, by their numeric class (--fp).
enum class Rounding : std::uint8_t {
  exact,    ///< Class exact only: every element is computed by the same operations in the same order.
  reassoc,  ///< Besides, sums may be regrouped; and the baseline folds scales into weights, as any runtime does.
  fast,     ///< All rules.
};
[[nodiscard]] const char* to_string(Rounding rounding);

/// The rules that `rounding` allows for the baseline or the search. A rule without a class is taken for a regrouping.
[[nodiscard]] std::vector<Substitution> allowed_rules(const std::vector<Substitution>& rules, Rounding rounding,
                                                      bool for_baseline);

/// Whether `rounding` allows the search a rule only where no matched operator makes values in f16: sums that are
/// regrouped may leave the range of f16 where those of the graph did not.
[[nodiscard]] bool may_leave_f16(const Substitution& rule, Rounding rounding);

/// What is optimized (--strategy): the four of Figure 2.12 of the TASO chapter. Layouts are those of the runtime's
/// rule, or chosen, which is exact.
enum class Strategy : std::uint8_t {
  joint,       ///< Graphs are searched by their cost in the best layouts; what `sequential` finds competes.
  graph,       ///< Graphs are searched by their cost in the rule's layouts, and run in these.
  layout,      ///< The baseline in the best layouts; no search.
  sequential,  ///< Graphs are searched by their cost in the rule's layouts; the best then get the best layouts.
};
[[nodiscard]] const char* to_string(Strategy strategy);

/// A graph, and how it is reached from the original.
struct ReachedGraph {
  std::string name;  ///< As in Contender, or of what made it.
  Graph graph;
  std::vector<RuleApplication> applications;  ///< From the original in normal form.
  std::size_t baseline_applications = 0;      ///< So many of them, the first ones, made the baseline.
};

struct OptimizeOptions {
  Rounding rounding = Rounding::reassoc;
  Strategy strategy = Strategy::joint;
  SearchOptions search;
  /// Rules of the baseline; null: those of the search.
  const RuleIndex* baseline_rules = nullptr;
  /// So many of the cheapest graphs are timed whole, where the cost model uses time, beside the original, the baseline
  /// and the graph with the fewest launches; 0: none is, and costs decide.
  std::size_t timed_candidates = 2;
  /// The search uses rules of at most so many operators on the source side; the baseline uses all.
  std::size_t max_rule_size = std::numeric_limits<std::size_t>::max();
  std::optional<CheckOptions> check = CheckOptions{};  ///< No check if empty.
  OptimizeProgress* progress = nullptr;                ///< Is told of phases and searches, if not null.
  /// Says whether the model's file can hold the result of a rewrite; others are not used.
  RewriteFilter writable;
  /// What is run of the file that is written for a graph: the file read again, folded and fused. Where graphs are timed
  /// whole, that is what competes. Empty: the graph itself.
  std::function<Expected<Graph>(const Graph&)> as_run;
  /// Of a model with symbolic extents: matches at which a step is known not to hold at all sizes.
  MatchFilter applicable;
  /// What at_all_sizes says of applications.
  enum class AtAllSizes : std::uint8_t {
    holds,
    refused,  ///< A step does not hold, and `applicable` did not know it; it does now.
    fails,    ///< They do not hold, for another reason.
  };
  /// Says of a model with symbolic extents whether what these applications, in order, make of the original can be made
  /// at all sizes; what cannot does not compete. Empty: everything.
  std::function<AtAllSizes(const std::vector<RuleApplication>&)> at_all_sizes;
  /// Chooses anew, by something else than what a graph takes on one device, among the graphs that competed, of which
  /// the chosen one is the first, or what rules make of them. Nothing: the choice stands. Empty: it always does.
  std::function<Expected<std::optional<ReachedGraph>>(std::vector<ReachedGraph>)> choose_anew;
  std::vector<Substitution> rules_to_choose;  ///< Rules that it applies besides those of search and baseline.
};

/// The matches at which the search, one for plans included, may apply a rule that is allowed: those that
/// options.applicable does not refuse, and where the rule cannot leave the range of f16 (may_leave_f16).
[[nodiscard]] MatchFilter search_filter(const OptimizeOptions& options);
/// Those at which the baseline may. It takes numbers into weights in f16, too, where these then stay in the range in
/// which f16 is exact to 11 bits: no numbers above 32 or below 1/32.
[[nodiscard]] MatchFilter baseline_filter(const OptimizeOptions& options);

/// One of the graphs that competed for being the result.
struct Contender {
  std::string name;               ///< "original", "baseline", "candidate 1", "fewest launches", ...
  double cost = 0;                ///< By the cost model.
  std::optional<double> seconds;  ///< Timed whole, where the cost model uses time.
  bool in_final = false;          ///< GraphTimes::final was about this one.
};

/// A kernel that takes another time inside the graphs than by itself.
struct CorrectedPrice {
  std::string kernel;            ///< KernelInfo::key
  double before = 0, after = 0;  ///< Seconds.
};

struct OptimizeResult {
  Graph graph;
  Choice choice = Choice::original;
  /// The result is better than the baseline: cheaper, and where time counts, faster beyond the noise.
  bool gain = false;
  bool chosen_anew = false;                   ///< By OptimizeOptions::choose_anew: then `gain` is by costs alone.
  std::vector<RuleApplication> applications;  ///< From the original to the result.
  std::size_t baseline_applications = 0;      ///< So many of them, the first ones, made the baseline.
  GraphSummary original, baseline, result;
  double graph_cost = 0;  ///< Of `graph` as it was found; `result.cost` is that of what runs of its file.
  std::vector<Contender> contenders;
  /// Relative differences of whole-graph times that may be noise: of what was found compared with baseline and original
  /// (in its final, if it had one; set if and only if graphs were timed), and of these two.
  std::optional<double> noise;
  double noise_of_references = 0;
  int timed_on = 0;  ///< The date of recorded whole-graph times, as 20261126; 0: they are of this run.
  /// Times of graphs contradicted the sums of their kernels' times: these were corrected, and the search went on.
  std::vector<CorrectedPrice> corrected;
  SearchResult search;  ///< Statistics; its graphs are moved out.
  std::optional<CheckReport> check;
  std::string cost_model, target;
  Strategy strategy = Strategy::joint;
  LayoutStatistics layouts;  ///< Of all choices of layouts.
  /// How `graph` is to be computed; null: by the rule.
  std::shared_ptr<const LayoutAssignment> chosen_layouts;
  std::vector<std::string> notes;  ///< For people: what could not be timed or checked, and why.
};

/// Optimizes one graph. A failed numeric check is an error of code check_failed. After the stop signal (SearchOptions)
/// the best graph so far is chosen by its cost, without timing graphs whole, and checked on one input. Before the
/// search has begun, an interrupt by the user is an error of code interrupted, and a deadline leaves the original as it
/// is, with a note.
[[nodiscard]] Expected<OptimizeResult> optimize(const Graph& original, const RuleIndex& rules,
                                                const KernelLibrary& library, MeasuredCosts& measured, CostModel& model,
                                                const OptimizeOptions& options);

}  // namespace taso
