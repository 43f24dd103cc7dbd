#include "optimizer/contenders.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "optimizer/equal_costs.h"

namespace taso {
namespace {

using AtAllSizes = OptimizeOptions::AtAllSizes;

/// Where even the cheapest graph is better by less than this share, no other one is timed.
constexpr double hardly_better = 0.005;

/// Of the time that is left, so much is the search's; the rest is for timing graphs whole.
constexpr double share_of_search = 0.6;

/// So many graphs are searched for without one of the rules that made the best one.
constexpr std::size_t most_left_out = 3;

/// A graph whose predicted time is this many times the baseline's is not timed whole.
constexpr double hopeless = 1.5;

bool contains(const std::vector<Competitor>& graphs, const Graph& graph) {
  return std::any_of(graphs.begin(), graphs.end(),
                     [&](const Competitor& other) { return other.planned.graph.equals(graph); });
}

/// The searches of one optimization: all of them start from one graph, with the same rules.
class Searches {
 public:
  Searches(const Prepared& prepared, const GraphPlanner& planner, const OptimizeOptions& options)
      : prepared_(prepared), planner_(planner), options_(options), common_(options.search) {
    common_.keep = std::max(common_.keep, options.timed_candidates);
    common_.writable = options.writable;
    if (common_.stop.deadline) {
      const std::chrono::duration<double> left = *common_.stop.deadline - StopSignal::Clock::now();
      const double share = std::max(0.0, share_of_search * left.count());
      common_.time_limit = std::min(common_.time_limit.value_or(share), share);
    }
    if (options.progress != nullptr)
      common_.progress = [progress = options.progress](const SearchProgress& state) { progress->update(state); };
    common_.applicable = search_filter(options);
  }

  /// Searches as the strategy says. All that is found, cheapest first, priced in the layouts that it will run in.
  [[nodiscard]] Expected<Findings> by_cost() const {
    SearchOptions one = common_;
    one.choose_layouts = options_.strategy == Strategy::joint;
    if (options_.strategy == Strategy::layout) one.max_steps = 0;
    Findings found;
    TASO_ASSIGN(found.search, run(one, planner_.target(), planner_.model()));
    TASO_RETURN_IF_ERROR(add(std::exchange(found.search.best, {}), found.graphs));
    if (options_.strategy == Strategy::joint && found.search.stop != StopReason::interrupted) {
      one.choose_layouts = false;
      spend(found.search.seconds, one);
      TASO_ASSIGN(SearchResult fixed, run(one, planner_.target(), planner_.model()));
      TASO_RETURN_IF_ERROR(add(std::move(fixed.best), found.graphs));
      if (fixed.stop == StopReason::interrupted) found.search.stop = StopReason::interrupted;
      found.search.seconds += fixed.seconds;
    }
    std::stable_sort(found.graphs.begin(), found.graphs.end(),
                     [](const Competitor& a, const Competitor& b) { return is_less(a.planned.cost, b.planned.cost); });
    return found;
  }

  /// Adds, for the rules that made the cheapest graph, the cheapest one without each of them (most_left_out of them,
  /// those applied most often), if it is clearly better than the start and another one.
  [[nodiscard]] Status without_a_rule(Findings& found) const {
    const std::vector<RuleApplication>& made_by = found.graphs.front().applications;
    std::map<std::string, std::size_t> counts;
    for (std::size_t i = prepared_.start().applications.size(); i < made_by.size(); ++i) ++counts[made_by[i].rule];
    if (counts.size() < 2) return {};
    std::vector<std::pair<std::string, std::size_t>> used(counts.begin(), counts.end());
    std::stable_sort(used.begin(), used.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    used.resize(std::min(used.size(), most_left_out));
    for (const auto& [left_out, count] : used) {
      std::vector<Substitution> rules;
      for (const Substitution& rule : prepared_.search_rules.rules())
        if (counts.count(rule.name) > 0 && rule.name != left_out) rules.push_back(rule);
      SearchOptions one = common_;
      one.keep = 1;
      one.choose_layouts = options_.strategy == Strategy::joint;
      spend(found.search.seconds, one);
      TASO_ASSIGN(SearchResult result, run(one, RuleIndex(std::move(rules), prepared_.search_rules.catalog()),
                                           planner_.target(), planner_.model()));
      found.search.seconds += result.seconds;
      if (result.stop == StopReason::interrupted) {
        found.search.stop = StopReason::interrupted;
        return {};
      }
      const double limit = (1 - hardly_better) * prepared_.start().planned.cost;
      TASO_RETURN_IF_ERROR(add_named("without " + left_out, std::move(result.best[0]), limit, found));
    }
    return {};
  }

  /// Adds the graph of fewest launches, if it is another one and not hopeless.
  [[nodiscard]] Status by_launches(Findings& found, std::optional<FewestLaunches>& known) const {
    const Graph& start = prepared_.start().planned.graph;
    // Which steps hold at all sizes is known better from search to search.
    if (!known || options_.at_all_sizes || !known->start.equals(start)) {
      SearchOptions one = common_;
      one.keep = 1;
      one.choose_layouts = false;
      spend(found.search.seconds, one);
      const auto launches = make_cost_model({{{1, CostFormula::Term::launches}}}, planner_.measured());
      TASO_ASSIGN(SearchResult result, run(one, planner_.target().for_launches(), *launches));
      found.search.seconds += result.seconds;
      if (result.stop == StopReason::interrupted) found.search.stop = StopReason::interrupted;
      FewestLaunches fewest{start, std::move(result.best[0]), result.start_cost};
      if (result.stop == StopReason::interrupted || result.stop == StopReason::time)
        return add_fewest(std::move(fewest), found);
      known = std::move(fewest);
    }
    return add_fewest(*known, found);
  }

 private:
  [[nodiscard]] Status add_fewest(FewestLaunches fewest, Findings& found) const {
    if (!is_less(fewest.best.cost, fewest.start_launches)) return {};
    return add_named("fewest launches", std::move(fewest.best), hopeless * prepared_.start().planned.cost, found);
  }
  [[nodiscard]] Expected<SearchResult> run(const SearchOptions& options, const Target& target, CostModel& model) const {
    return run(options, prepared_.search_rules, target, model);
  }
  [[nodiscard]] Expected<SearchResult> run(const SearchOptions& options, const RuleIndex& rules, const Target& target,
                                           CostModel& model) const {
    if (options_.progress != nullptr) options_.progress->begin_search(options.max_steps);
    return search(prepared_.start().planned.graph, rules, target, model, options);
  }

  /// Adds a graph under a name if it costs less than `limit`, is not there yet and holds at all sizes.
  [[nodiscard]] Status add_named(std::string name, Candidate candidate, double limit, Findings& found) const {
    if (contains(found.graphs, candidate.graph) || candidate.graph.equals(prepared_.start().planned.graph)) return {};
    std::vector<RuleApplication> applications = from_original(candidate);
    if (at_all_sizes(applications, options_) != AtAllSizes::holds) return {};
    Expected<PlannedGraph> planned = planner_.plan(std::move(candidate.graph), limit);
    if (!planned && planned.error().code == ErrorCode::interrupted) found.search.stop = StopReason::interrupted;
    if (!planned) return unless_unpriced(planned.error());
    if (planned->cost < limit)
      found.graphs.push_back({std::move(name), std::move(*planned), std::move(applications), {}});
    return {};
  }

  /// Takes seconds that were used off a search's limit.
  static void spend(double seconds, SearchOptions& options) {
    if (options.time_limit) options.time_limit = std::max(0.0, *options.time_limit - seconds);
  }

  /// Without its cost, time to measure it, or a device that runs it, a graph does not compete; other errors stay
  /// errors.
  static Status unless_unpriced(const Error& error) {
    if (error.code == ErrorCode::interrupted || error.code == ErrorCode::cost_missing ||
        error.code == ErrorCode::device_unavailable)
      return {};
    return error;
  }

  [[nodiscard]] std::vector<RuleApplication> from_original(const Candidate& candidate) const {
    std::vector<RuleApplication> all = prepared_.start().applications;
    all.insert(all.end(), candidate.applications.begin(), candidate.applications.end());
    return all;
  }

  /// Plans the candidates that are not there yet, and adds them.
  [[nodiscard]] Status add(std::vector<Candidate> candidates, std::vector<Competitor>& graphs) const {
    for (Candidate& candidate : candidates) {
      if (contains(graphs, candidate.graph)) continue;
      Expected<PlannedGraph> planned = planner_.plan(std::move(candidate.graph));
      if (!planned && planned.error().code == ErrorCode::interrupted) return {};
      if (!planned) {
        TASO_RETURN_IF_ERROR(unless_unpriced(planned.error()));
        continue;
      }
      graphs.push_back({"", std::move(*planned), from_original(candidate), {}});
    }
    return {};
  }

  const Prepared& prepared_;
  const GraphPlanner& planner_;
  const OptimizeOptions& options_;
  SearchOptions common_;
};

/// Whether two graphs are computed by the same kernels in the same order.
bool run_alike(const PlannedGraph& a, const PlannedGraph& b) {
  return std::equal(a.plan.launches.begin(), a.plan.launches.end(), b.plan.launches.begin(), b.plan.launches.end(),
                    [](const Launch& x, const Launch& y) { return x.kernel->hash == y.kernel->hash; });
}

/// Plans what is run of the files of graphs found, in their place. Those that then run as the baseline or as one before
/// does, or hopelessly, are left out. Where it cannot be priced, the graph itself competes.
Status take_from_files(const Prepared& prepared, const GraphPlanner& planner, const OptimizeOptions& options,
                       Findings& found, std::vector<std::string>& notes) {
  std::vector<Competitor> kept;
  const auto interrupted_at = [&](std::size_t i) {
    std::move(found.graphs.begin() + static_cast<std::ptrdiff_t>(i), found.graphs.end(), std::back_inserter(kept));
    found.graphs = std::move(kept);
    found.search.stop = StopReason::interrupted;
  };
  for (std::size_t i = 0; i < found.graphs.size(); ++i) {
    Competitor& graph = found.graphs[i];
    Expected<Graph> read = options.as_run(graph.planned.graph);
    if (!read && read.error().code == ErrorCode::interrupted) {
      interrupted_at(i);
      return {};
    }
    if (!read) {
      notes.push_back(
          fmt::format("{} is timed as it was found, not as its file is run: {}", graph.name, read.error().message));
    } else {
      Expected<PlannedGraph> planned = planner.plan(std::move(*read));
      if (!planned && planned.error().code == ErrorCode::interrupted) {
        interrupted_at(i);
        return {};
      }
      if (!planned && planned.error().code != ErrorCode::cost_missing) return planned.error();
      if (planned) graph.from_file = std::move(*planned);
    }
    const PlannedGraph& run = graph.as_run();
    const bool known =
        std::any_of(kept.begin(), kept.end(), [&](const Competitor& other) { return run_alike(other.as_run(), run); });
    if (!known && !run_alike(prepared.baseline.planned, run) && run.cost < hopeless * prepared.start().planned.cost)
      kept.push_back(std::move(graph));
  }
  found.graphs = std::move(kept);
  return {};
}

/// What became of graphs found.
struct Sifted {
  std::vector<Competitor> holding;  ///< Better than baseline and original, at all sizes.
  std::size_t refused = 0;          ///< So many are better, and do not hold.
  bool again = false;               ///< Another search knows more of where steps do not hold.
};

/// The best of graphs in order of their costs.
Sifted sift(std::vector<Competitor> graphs, const Prepared& prepared, const OptimizeOptions& options) {
  Sifted sifted;
  std::size_t kept = std::max<std::size_t>(1, options.timed_candidates);
  const double start = prepared.start().planned.cost;
  if (!graphs.empty() && graphs.front().planned.cost > (1 - hardly_better) * start) kept = 1;
  for (Competitor& graph : graphs) {
    if (!is_less(graph.planned.cost, start) || sifted.holding.size() == kept) continue;
    const AtAllSizes holds = at_all_sizes(graph.applications, options);
    if (holds == AtAllSizes::holds) {
      graph.name = fmt::format("candidate {}", sifted.holding.size() + 1);
      sifted.holding.push_back(std::move(graph));
      continue;
    }
    ++sifted.refused;
    sifted.again = sifted.again || holds == AtAllSizes::refused;
  }
  return sifted;
}

}  // namespace

const char* to_string(Strategy strategy) {
  switch (strategy) {
    case Strategy::joint:
      return "joint";
    case Strategy::graph:
      return "graph";
    case Strategy::layout:
      return "layout";
    case Strategy::sequential:
      return "sequential";
  }
  return "?";
}

bool times_graphs(const GraphPlanner& planner, const OptimizeOptions& options) {
  return planner.model().uses_time() && options.timed_candidates > 0;
}

Expected<Findings> find_contenders(const Prepared& prepared, const GraphPlanner& planner,
                                   const OptimizeOptions& options, std::optional<FewestLaunches>& fewest,
                                   std::vector<std::string>& notes) {
  const Searches searches(prepared, planner, options);
  Findings found;
  Sifted sifted{{}, 0, true};
  std::size_t seen = 0;
  for (int round = 0; round < most_rounds && sifted.again; ++round) {
    TASO_ASSIGN(found, searches.by_cost());
    seen = found.graphs.size();
    sifted = sift(std::move(found.graphs), prepared, options);
    if (found.search.stop == StopReason::interrupted || found.search.stop == StopReason::time) break;
  }
  found.graphs = std::move(sifted.holding);
  if (sifted.refused > 0)
    notes.push_back(
        fmt::format("{} of {} graphs found do not hold at all sizes, and were left out", sifted.refused, seen));
  // Times of single kernels miss what kernels share: weights that several of them read, starts and ends. A graph with
  // the fewest launches is often better than its sum says, so it competes where graphs are timed whole. And a kind of
  // step may not pay though its kernels do: graphs without it compete, too.
  if (times_graphs(planner, options) && options.strategy != Strategy::layout &&
      found.search.stop != StopReason::interrupted) {
    const bool any = !found.graphs.empty();
    TASO_RETURN_IF_ERROR(searches.by_launches(found, fewest));
    if (any && found.search.stop != StopReason::interrupted) TASO_RETURN_IF_ERROR(searches.without_a_rule(found));
  }
  if (times_graphs(planner, options) && options.as_run && found.search.stop != StopReason::interrupted)
    TASO_RETURN_IF_ERROR(take_from_files(prepared, planner, options, found, notes));
  return found;
}

}  // namespace taso
