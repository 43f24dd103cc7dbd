/// Cost-based backtracking search over rule applications (TASO, Algorithm 2), with seven additions that keep large
/// graphs tractable:
///
///  - Independent improvements are taken together. When a state is expanded, every match is costed by itself; then
///    the improving ones are applied one after another, best first, as long as their matched nodes are untouched
///    and the cost keeps falling. A graph with n independent improvements needs one expansion, not 2^n.
///  - A state that was reached by a step that did not improve is first expanded only at matches that touch what this
///    step changed: all other matches commute with the step and are tried from its parent. The other matches follow
///    later, at lower priority, so that nothing is lost.
///  - Matches are found once: those of a graph are made from those of the graph before the step, of which only the ones
///    around the step differ (RuleIndex::update).
///  - Equal graphs are met once (canonical structural hash and exact equality).
///  - A graph of many nodes is cut where few tensors cross and searched part by part, then with other cuts, until
///    neither brings anything (optimizer/parts.h). Parts that look alike are searched once. An improvement counts only
///    if the whole graph is cheaper with it.
///  - Of a part so large that trying all its matches would take more than a quarter of the budget, one match is
///    tried of those with equal neighbourhoods (the repeated cells of a network), and the others are applied with it.
///  - A search that keeps improvements alone (alpha = 1) follows, as it sometimes ends below what the budget finds with
///    backtracking, so that the result is never above that of greedy application. Where it does, or the budget was
///    spent, the search starts again from the best graph, with a fresh budget, as long as that pays.
///
/// Beam search, for comparison, shares all but the order: of the graphs that are k steps from the start, the
/// `beam_width` cheapest are expanded, at all their matches, before those that are k + 1 steps away.
///
/// The outcome depends on the inputs and options only, not on the number of threads, unless a time limit or an
/// interrupt stops the search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/rewrite.h"
#include "optimizer/cost_curve.h"
#include "optimizer/cost_model.h"
#include "optimizer/trace.h"
#include "support/status.h"
#include "support/stop_signal.h"

namespace taso {

enum class StopReason : std::uint8_t {
  exhausted,       ///< Every reachable graph within alpha of the best was expanded.
  steps,           ///< The budget of expansions or of candidates is spent.
  no_improvement,  ///< `patience` expansions in a row brought nothing.
  time,            ///< The time limit has passed.
  interrupted,     ///< The stop signal was raised.
};
/// "queue empty", "step budget spent", ...
[[nodiscard]] const char* to_string(StopReason reason);

/// State of a running search, for progress display.
struct SearchProgress {
  std::size_t steps = 0, candidates = 0, queued = 0;
  double start_cost = 0, best_cost = 0, seconds = 0;
};

/// The order in which states are expanded.
enum class SearchMethod : std::uint8_t {
  backtracking,  ///< The cheapest first, however it was reached.
  beam,          ///< Step by step, the `beam_width` cheapest of each.
};
/// "backtracking", "beam".
[[nodiscard]] const char* to_string(SearchMethod method);

struct SearchOptions {
  SearchMethod method = SearchMethod::backtracking;
  std::size_t beam_width = 16;
  double alpha = 1.05;           ///< Graphs costlier than alpha times the best are dropped. At least 1.
  std::size_t max_steps = 3000;  ///< Expansions, those of restarts included.
  std::size_t patience = 300;    ///< Expansions without improvement before giving up.
  /// So often the search starts again at most, see above; 0: it ends where backtracking ends. No beam does.
  int restarts = 8;
  /// Total number of nodes of all candidate graphs: bounds the work independently of machine and graph size. Each
  /// restart has it anew.
  std::size_t max_candidate_nodes = 2'000'000;
  std::optional<double> time_limit;                   ///< Seconds. Results then depend on the speed of the machine.
  std::size_t memory_limit = std::size_t{512} << 20;  ///< Bytes of graphs, and of matches that are kept; beyond, these
                                                      ///< are made anew, and then the costliest graphs are dropped.
  std::size_t keep = 4;                               ///< Number of best graphs to return.
  int threads = 0;                                    ///< 0: all.
  StopSignal stop;
  /// Layouts are chosen for every graph (Target::open_plan); else they follow the target's rule.
  bool choose_layouts = false;
  /// Graphs of more than three times as many nodes (weights not counted) are searched in parts of about so many; 0:
  /// never.
  std::size_t part_size = 200;
  RewriteFilter writable;  ///< Rewrites that it refuses are no candidates; called from several threads.
  MatchFilter applicable;  ///< Matches that it refuses are not tried; called from several threads.
  std::function<void(const SearchProgress&)> progress;
};

struct Candidate {
  Graph graph;
  double cost = 0;
  std::vector<RuleApplication> applications;  ///< From the start graph to this one.
};

struct SearchResult {
  std::vector<Candidate> best;  ///< Pairwise different, cheapest first; never empty: the start graph competes.
  double start_cost = 0;
  CostCurve curve;  ///< From start_cost to the cost of best[0], over `steps`.
  StopReason stop = StopReason::exhausted;
  std::size_t steps = 0;            ///< States expanded.
  std::size_t candidates = 0;       ///< Graphs made by applying a rule.
  std::size_t duplicates = 0;       ///< Of these, seen before.
  std::size_t rejected = 0;         ///< Matches whose application failed a condition, a shape or the cycle check.
  std::size_t unwritable = 0;       ///< Matches whose result `writable` refused.
  std::size_t dropped = 0;          ///< Queued graphs given up for memory.
  std::size_t parts = 0;            ///< Parts searched; 0: the graph was searched whole.
  std::size_t candidate_nodes = 0;  ///< Nodes of all candidates (see SearchOptions::max_candidate_nodes).
  double seconds = 0;
};

/// Searches from `start`, in parts if it is large. Fails only where the cost model fails (a kernel that cannot be
/// measured, a missing cost).
[[nodiscard]] Expected<SearchResult> search(const Graph& start, const RuleIndex& rules, const Target& target,
                                            CostModel& model, const SearchOptions& options);

/// The same in parts, whatever the size. `best` are the graphs after the passes over all parts, cheapest first, and the
/// start graph.
[[nodiscard]] Expected<SearchResult> search_in_parts(const Graph& start, const RuleIndex& rules, const Target& target,
                                                     CostModel& model, const SearchOptions& options);

}  // namespace taso
