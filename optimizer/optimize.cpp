#include "optimizer/optimize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "optimizer/equal_costs.h"

namespace taso {
namespace {

/// So often baseline and search are made again without steps that turned out not to hold at all sizes.
constexpr int most_rounds = 20;
/// A graph whose predicted time is this many times the baseline's is not timed whole.
constexpr double hopeless = 1.5;

/// A graph's kernels; in the best layouts, which the cost model then chooses, or by the rule.
Expected<KernelPlan> plan_of(const Graph& graph, const Target& target, bool open) {
  return open ? target.open_plan(graph) : target.plan(graph);
}

/// `plan` becomes the graph's plan.
Expected<GraphSummary> summarize(const Graph& graph, MeasuredCosts& measured, CostModel& model, bool open,
                                 KernelPlan& plan) {
  GraphSummary summary;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.weight_only || (node.kind != NodeKind::op && node.kind != NodeKind::opaque)) continue;
    ++summary.operators[node.op];
    ++(node.kind == NodeKind::op ? summary.operator_count : summary.opaque_count);
  }
  TASO_ASSIGN(plan, plan_of(graph, measured.target(), open));
  TASO_ASSIGN(summary.cost, model.cost(graph, plan));
  summary.kernels = plan.launches.size();
  for (const Launch& launch : plan.launches) {
    summary.flops += launch.kernel->flops;
    summary.bytes += launch.kernel->bytes;
    summary.conversions += launch.kernel->op == reorder_op ? 1 : 0;
  }
  TASO_ASSIGN(summary.peak_bytes, measured.target().peak_bytes(graph, plan.layouts.get()));
  summary.rule_cost = summary.cost;
  if (plan.layouts) {
    TASO_ASSIGN(KernelPlan by_rule, measured.target().plan(graph));
    const Expected<double> cost = model.cost(graph, by_rule);
    if (!cost && cost.error().code != ErrorCode::cost_missing) return cost.error();
    summary.rule_cost = cost ? std::optional<double>(*cost) : std::nullopt;
  }
  if (model.uses_time()) {
    TASO_ASSIGN(summary.predicted_seconds, measured.seconds(plan));
  }
  return summary;
}

/// The graphs that may become the result; the first two are the baseline and the original.
struct Choices {
  std::vector<TimedGraph> graphs;
  std::vector<Contender> contenders;

  void add(std::string name, const Graph& graph, const KernelPlan& plan, double cost) {
    TimedGraph timed{&graph, plan.layouts, {}};
    if (plan.layouts) {
      Hasher hasher;
      for (const Launch& launch : plan.launches) hasher.add(launch.kernel->hash);
      timed.kernels = hasher.finish();
    }
    graphs.push_back(std::move(timed));
    contenders.push_back({std::move(name), cost, std::nullopt});
  }
};

/// Times the contenders whole. False, with a note, if that is not possible here.
Expected<bool> time_whole(Choices& choices, MeasuredCosts& measured, OptimizeResult& result) {
  // Equal graphs are timed once: an original with nothing to fuse is the baseline.
  std::vector<TimedGraph> graphs = choices.graphs;
  const bool merged = graphs[0].graph->equals(*graphs[1].graph);
  if (merged) graphs.erase(graphs.begin() + 1);
  Expected<GraphTimes> times = measured.graph_seconds(graphs);
  if (!times && times.error().code == ErrorCode::interrupted) {
    result.search.stop = StopReason::interrupted;
    return false;
  }
  if (!times) {
    result.notes.push_back("graphs were not timed whole, the predicted costs decide: " + times.error().message);
    return false;
  }
  for (std::size_t i = 0; i < choices.graphs.size(); ++i)
    choices.contenders[i].seconds = times->seconds[merged && i > 0 ? i - 1 : i];
  result.noise = times->noise;
  return true;
}

/// Says which operators of a plan the device leaves to the host, with their numbers of launches.
void note_declined(const std::vector<std::string>& declined, std::vector<std::string>& notes) {
  if (declined.empty()) return;
  std::map<std::string, std::size_t> counts;
  for (const std::string& op : declined) ++counts[op];
  std::string list;
  for (const auto& [op, count] : counts) list += fmt::format("{}{} x {}", list.empty() ? "" : ", ", op, count);
  notes.push_back(
      fmt::format("{} kernels of the result run on the host, as the device has none: {}", declined.size(), list));
}

/// Index of the winner: the best candidate if it beats the baseline by more than `margin`, else the baseline; but the
/// original where it beats either by more than that.
template <class Value>
std::size_t pick(const std::vector<Contender>& contenders, const Value& value, double margin) {
  std::size_t best = 0;
  for (std::size_t i = 2; i < contenders.size(); ++i)
    if (value(contenders[i]) < value(contenders[0]) * (1 - margin) &&
        (best == 0 || value(contenders[i]) < value(contenders[best])))
      best = i;
  if (value(contenders[1]) < value(contenders[best]) * (1 - margin)) best = 1;
  return best;
}

}  // namespace

const char* to_string(Choice choice) {
  switch (choice) {
    case Choice::original:
      return "original";
    case Choice::baseline:
      return "baseline";
    case Choice::optimized:
      return "optimized";
  }
  return "?";
}

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

const char* to_string(Rounding rounding) {
  switch (rounding) {
    case Rounding::exact:
      return "exact";
    case Rounding::reassoc:
      return "reassoc";
    case Rounding::fast:
      return "fast";
  }
  return "?";
}

std::vector<Substitution> allowed_rules(const std::vector<Substitution>& rules, Rounding rounding, bool for_baseline) {
  std::vector<Substitution> allowed;
  for (const Substitution& rule : rules) {
    const NumericClass numeric_class = rule.numeric_class.value_or(NumericClass::reassociation);
    const bool permitted =
        rounding == Rounding::fast || numeric_class == NumericClass::exact ||
        (rounding == Rounding::reassoc && (for_baseline || numeric_class != NumericClass::distribution));
    if (permitted && !rule.is_axiom) allowed.push_back(rule);
  }
  return allowed;
}

namespace {

/// A graph found, and its kernels.
struct Found {
  Candidate candidate;
  KernelPlan plan;
};

/// Searches as the strategy says. `found`: the best graphs, cheapest first, priced in the layouts that they will run
/// in.
Status find_graphs(const Graph& baseline, const RuleIndex& rules, MeasuredCosts& measured, CostModel& model,
                   const OptimizeOptions& options, const SearchOptions& search_options, OptimizeResult& result,
                   std::vector<Found>& found) {
  const bool open = options.strategy != Strategy::graph;
  const auto add = [&](std::vector<Candidate> candidates) -> Status {
    for (Candidate& candidate : candidates) {
      if (std::any_of(found.begin(), found.end(),
                      [&](const Found& other) { return other.candidate.graph.equals(candidate.graph); }))
        continue;
      TASO_ASSIGN(KernelPlan plan, plan_of(candidate.graph, measured.target(), open));
      const Expected<double> cost = model.cost(candidate.graph, plan);
      // Without its cost, or time to measure it, a graph does not compete.
      if (!cost && cost.error().code == ErrorCode::interrupted) return {};
      if (!cost && cost.error().code == ErrorCode::cost_missing) continue;
      if (!cost) return cost.error();
      candidate.cost = *cost;
      found.push_back({std::move(candidate), std::move(plan)});
    }
    return {};
  };
  SearchOptions one = search_options;
  one.choose_layouts = options.strategy == Strategy::joint;
  if (options.strategy == Strategy::layout) one.max_steps = 0;
  TASO_ASSIGN(result.search, search(baseline, rules, measured.target(), model, one));
  TASO_RETURN_IF_ERROR(add(std::move(result.search.best)));
  result.search.best.clear();
  if (options.strategy == Strategy::joint && result.search.stop != StopReason::interrupted) {
    one.choose_layouts = false;
    if (one.time_limit) one.time_limit = std::max(0.0, *one.time_limit - result.search.seconds);
    TASO_ASSIGN(SearchResult fixed, search(baseline, rules, measured.target(), model, one));
    TASO_RETURN_IF_ERROR(add(std::move(fixed.best)));
    if (fixed.stop == StopReason::interrupted) result.search.stop = StopReason::interrupted;
    result.search.seconds += fixed.seconds;
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return is_less(a.candidate.cost, b.candidate.cost); });
  return {};
}

Expected<OptimizeResult> optimize_until_interrupted(const Graph& original, const RuleIndex& rules,
                                                    const KernelLibrary& library, MeasuredCosts& measured,
                                                    CostModel& model, const OptimizeOptions& options) {
  OptimizeResult result;
  result.cost_model = model.name();
  result.target = measured.target().identity();
  result.strategy = options.strategy;
  const bool open = options.strategy != Strategy::graph;

  Graph start = original;
  normalize(start, rules.catalog());
  const RuleIndex& for_baseline = options.baseline_rules != nullptr ? *options.baseline_rules : rules;
  const RuleIndex baseline_rules(allowed_rules(for_baseline.rules(), options.rounding, true), rules.catalog());
  std::vector<Substitution> allowed = allowed_rules(rules.rules(), options.rounding, false);
  std::erase_if(allowed, [&](const Substitution& r) { return r.source.nodes.size() > options.max_rule_size; });
  const RuleIndex search_rules(std::move(allowed), rules.catalog());
  using AtAllSizes = OptimizeOptions::AtAllSizes;
  Baseline baseline;
  const auto at_all_sizes = [&](const std::vector<RuleApplication>& more) {
    if (!options.at_all_sizes) return AtAllSizes::holds;
    std::vector<RuleApplication> all = baseline.applications;
    all.insert(all.end(), more.begin(), more.end());
    return options.at_all_sizes(all);
  };
  AtAllSizes of_baseline = AtAllSizes::refused;
  for (int round = 0; round < most_rounds && of_baseline == AtAllSizes::refused; ++round) {
    TASO_ASSIGN(baseline, make_baseline(start, baseline_rules, library.registry(), options.writable,
                                        options.search.interrupt, options.applicable));
    of_baseline = at_all_sizes({});
  }
  if (of_baseline != AtAllSizes::holds) {
    result.notes.emplace_back("the baseline is the original: what makes it does not hold at all sizes");
    baseline = {start, {}};
  }
  KernelPlan start_plan, baseline_plan;
  TASO_ASSIGN(result.original, summarize(start, measured, model, open, start_plan));
  TASO_ASSIGN(result.baseline, summarize(baseline.graph, measured, model, open, baseline_plan));
  SearchOptions search_options = options.search;
  search_options.keep = std::max(search_options.keep, options.timed_candidates);
  search_options.writable = options.writable;
  search_options.applicable = options.applicable;
  const std::size_t kept = std::max<std::size_t>(1, options.timed_candidates);
  std::vector<Found> found;
  std::vector<const Found*> holding;  // Of these, the best that are better than the baseline, at all sizes.
  std::size_t refused = 0;
  bool again = true;
  for (int round = 0; round < most_rounds && again; ++round) {
    found.clear();
    holding.clear();
    again = false;
    refused = 0;
    TASO_RETURN_IF_ERROR(
        find_graphs(baseline.graph, search_rules, measured, model, options, search_options, result, found));
    for (const Found& one : found) {
      if (!is_less(one.candidate.cost, result.baseline.cost) || holding.size() == kept) continue;
      const AtAllSizes holds = at_all_sizes(one.candidate.applications);
      if (holds == AtAllSizes::holds) {
        holding.push_back(&one);
        continue;
      }
      ++refused;
      again = again || holds == AtAllSizes::refused;
    }
    again = again && result.search.stop != StopReason::interrupted && result.search.stop != StopReason::time;
  }

  Choices choices;
  choices.add("baseline", baseline.graph, baseline_plan, result.baseline.cost);
  choices.add("original", start, start_plan, result.original.cost);
  const bool time_graphs = model.uses_time() && options.timed_candidates > 0;
  std::vector<const Candidate*> candidates;
  for (const Found* one : holding) {
    candidates.push_back(&one->candidate);
    choices.add(fmt::format("candidate {}", candidates.size()), one->candidate.graph, one->plan, one->candidate.cost);
  }

  // Times of single kernels miss what kernels share: weights that several of them read, starts and ends. A graph with
  // the fewest launches is often better than its sum says, so it competes where graphs are timed whole.
  SearchResult fewest;
  if (time_graphs && options.strategy != Strategy::layout && result.search.stop != StopReason::interrupted) {
    search_options.keep = 1;
    search_options.choose_layouts = false;
    if (search_options.time_limit)
      search_options.time_limit = std::max(0.0, *search_options.time_limit - result.search.seconds);
    const auto launches = make_cost_model({{{1, CostFormula::Term::launches}}}, measured);
    TASO_ASSIGN(fewest, search(baseline.graph, search_rules, measured.target(), *launches, search_options));
    if (fewest.stop == StopReason::interrupted) result.search.stop = StopReason::interrupted;
    const Candidate& candidate = fewest.best[0];
    const bool known = std::any_of(candidates.begin(), candidates.end(),
                                   [&](const Candidate* other) { return other->graph.equals(candidate.graph); });
    if (is_less(candidate.cost, fewest.start_cost) && !known &&
        at_all_sizes(candidate.applications) == AtAllSizes::holds) {
      TASO_ASSIGN(KernelPlan plan, plan_of(candidate.graph, measured.target(), open));
      const double limit = hopeless * result.baseline.cost;
      const Expected<double> cost = model.cost(candidate.graph, plan, limit);
      if (!cost && cost.error().code == ErrorCode::interrupted)
        result.search.stop = StopReason::interrupted;
      else if (!cost && cost.error().code != ErrorCode::cost_missing)
        return cost.error();
      if (cost && *cost < limit) {
        candidates.push_back(&candidate);
        choices.add("fewest launches", candidate.graph, plan, *cost);
      }
    }
  }

  if (refused > 0)
    result.notes.push_back(
        fmt::format("{} of {} graphs found do not hold at all sizes, and were left out", refused, found.size()));
  const bool interrupted = result.search.stop == StopReason::interrupted;
  const bool unchanged = start.equals(baseline.graph);
  const bool all_equal = candidates.empty() && unchanged;
  bool timed = false;
  if (time_graphs && !interrupted && !all_equal) {
    TASO_ASSIGN(timed, time_whole(choices, measured, result));
  }
  const std::size_t winner = timed
                                 ? pick(
                                       choices.contenders, [](const Contender& c) { return *c.seconds; }, *result.noise)
                                 : pick(
                                       choices.contenders, [](const Contender& c) { return c.cost; }, equal_costs);
  if (timed) {
    result.baseline.measured_seconds = choices.contenders[0].seconds;
    result.original.measured_seconds = choices.contenders[1].seconds;
  }

  result.gain = winner >= 2;
  result.choice = winner >= 2 ? Choice::optimized : winner == 1 || unchanged ? Choice::original : Choice::baseline;
  result.graph = *choices.graphs[winner].graph;
  result.chosen_layouts = choices.graphs[winner].layouts;
  if (result.choice != Choice::original) {
    result.applications = std::move(baseline.applications);
    result.baseline_applications = result.applications.size();
  }
  if (winner >= 2) {
    const std::vector<RuleApplication>& steps = candidates[winner - 2]->applications;
    result.applications.insert(result.applications.end(), steps.begin(), steps.end());
    KernelPlan plan;
    TASO_ASSIGN(result.result, summarize(result.graph, measured, model, open, plan));
    result.result.measured_seconds = choices.contenders[winner].seconds;
    note_declined(measured.target().declined(plan), result.notes);
  } else {
    result.result = winner == 1 ? result.original : result.baseline;
    note_declined(measured.target().declined(winner == 1 ? start_plan : baseline_plan), result.notes);
  }
  result.contenders = std::move(choices.contenders);
  result.layouts = model.layout_statistics();
  if (result.layouts.inexact > 0)
    result.notes.push_back(fmt::format(
        "the layouts of {} of {} graphs may not be the best: a table was too large; at most {:.1f} % are lost",
        result.layouts.inexact, result.layouts.problems, 100 * result.layouts.largest_gap));

  if (options.check) {
    if (result.choice == Choice::original) {
      result.notes.push_back("no check: the result is the original graph");
      return result;
    }
    CheckOptions check_options = *options.check;
    if (result.search.stop == StopReason::interrupted) check_options.inputs = 1;
    check_options.reference_layouts = start_plan.layouts;
    check_options.result_layouts = result.chosen_layouts;
    TASO_ASSIGN(result.check, check(start, result.graph, library, check_options));
    for (const std::string& remark : result.check->remarks()) result.notes.push_back(remark);
    if (!result.check->passed) return Error{ErrorCode::check_failed, result.check->failure(), {}};
  }
  return result;
}

}  // namespace

Expected<OptimizeResult> optimize(const Graph& original, const RuleIndex& rules, const KernelLibrary& library,
                                  MeasuredCosts& measured, CostModel& model, const OptimizeOptions& options) {
  Expected<OptimizeResult> result = optimize_until_interrupted(original, rules, library, measured, model, options);
  if (!result && result.error().code == ErrorCode::interrupted)
    return Error{ErrorCode::interrupted,
                 "interrupted before the search: " + result.error().message + "; nothing was written",
                 {}};
  return result;
}

}  // namespace taso
