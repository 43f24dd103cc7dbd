#include "optimizer/optimize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "optimizer/choice.h"
#include "optimizer/contenders.h"
#include "optimizer/correction.h"
#include "optimizer/equal_costs.h"
#include "optimizer/planned_graph.h"
#include "optimizer/prepare.h"

namespace taso {
namespace {

void note_inexact_layouts(const LayoutStatistics& layouts, std::vector<std::string>& notes) {
  if (layouts.inexact > 0)
    notes.push_back(fmt::format(
        "the layouts of {} of {} graphs may not be the best: a table was too large; at most {:.1f} % are lost",
        layouts.inexact, layouts.problems, 100 * layouts.largest_gap));
}

/// What was rewritten on the way to the result.
Expected<Rewritten> rewritten_in(const PlannedGraph& original, const RuleIndex& rules, const OptimizeOptions& options,
                                 const OptimizeResult& result) {
  std::vector<Substitution> all = rules.rules();
  all.insert(all.end(), options.rules_to_choose.begin(), options.rules_to_choose.end());
  if (options.baseline_rules != nullptr)
    all.insert(all.end(), options.baseline_rules->rules().begin(), options.baseline_rules->rules().end());
  Rewritten rewritten;
  TASO_ASSIGN(rewritten.regions,
              changed_regions(original.graph, result.graph, all, result.applications, rules.catalog()));
  rewritten.applications = result.applications;
  return rewritten;
}

/// Checks the result numerically against the original, if that is asked for and there is something to check.
Status check_result(const PlannedGraph& original, const RuleIndex& rules, const KernelLibrary& library,
                    const OptimizeOptions& options, OptimizeResult& result) {
  if (!options.check) return {};
  if (result.choice == Choice::original) {
    result.notes.push_back("no check: the result is the original graph, in which at most constants were computed");
    return {};
  }
  if (options.progress != nullptr) options.progress->enter(OptimizeProgress::Phase::checking);
  CheckOptions check_options = *options.check;
  if (result.search.stop == StopReason::interrupted) check_options.inputs = 1;
  check_options.reference_layouts = original.plan.layouts;
  check_options.result_layouts = result.chosen_layouts;
  TASO_ASSIGN(const Rewritten rewritten, rewritten_in(original, rules, options, result));
  TASO_ASSIGN(result.check, check(original.graph, result.graph, library, check_options, rewritten));
  for (const std::string& remark : result.check->remarks()) result.notes.push_back(remark);
  if (!result.check->passed) return Error{ErrorCode::check_failed, result.check->failure(), {}};
  return {};
}

/// The graphs that competed, the chosen one first; equal ones once.
std::vector<ReachedGraph> competing_graphs(Prepared& prepared, Findings& found, const OptimizeResult& result) {
  std::vector<ReachedGraph> graphs{
      {to_string(result.choice), result.graph, result.applications, result.baseline_applications}};
  for (const Competitor* const one : competitors_of(prepared, found)) {
    const bool known = std::any_of(graphs.begin(), graphs.end(),
                                   [&](const ReachedGraph& other) { return other.graph.equals(one->planned.graph); });
    if (known) continue;
    const bool searched = one != &prepared.baseline && one != &prepared.original;
    graphs.push_back(
        {one->name, one->planned.graph, one->applications, (searched ? prepared.start() : *one).applications.size()});
  }
  return graphs;
}

/// What runs of the file of a graph, priced; without a cost where there is none.
Expected<PlannedGraph> priced_as_run(const Graph& graph, const GraphPlanner& planner, const OptimizeOptions& options,
                                     std::vector<std::string>& notes) {
  Graph run = graph;
  if (options.as_run && times_graphs(planner, options)) {
    if (Expected<Graph> read = options.as_run(graph)) run = std::move(*read);
  }
  Expected<PlannedGraph> planned = planner.plan(run);
  Status status = planned ? planner.summarize(*planned) : Status(planned.error());
  if (status) return planned;
  if (status.error().code != ErrorCode::cost_missing && status.error().code != ErrorCode::interrupted)
    return status.error();
  notes.push_back("what the result takes on one device is not known: " + status.error().message);
  PlannedGraph unknown{std::move(run), {}, std::numeric_limits<double>::quiet_NaN(), {}};
  TASO_ASSIGN(unknown.plan, planner.target().plan(unknown.graph));
  TASO_ASSIGN(unknown.summary, summary_of(unknown, planner.target()));
  return unknown;
}

/// Lets the result be chosen anew, if that is asked for.
Status choose_anew(Prepared& prepared, Findings& found, const GraphPlanner& planner, const OptimizeOptions& options,
                   OptimizeResult& result) {
  if (!options.choose_anew) return {};
  TASO_ASSIGN(std::optional<ReachedGraph> chosen, options.choose_anew(competing_graphs(prepared, found, result)));
  if (!chosen) return {};
  TASO_ASSIGN(const PlannedGraph run, priced_as_run(chosen->graph, planner, options, result.notes));
  result.chosen_anew = true;
  result.result = *run.summary;
  result.graph_cost = run.cost;
  result.chosen_layouts = nullptr;
  result.gain = is_less(run.cost, prepared.baseline.planned.cost);
  result.choice = chosen->applications.empty() ? Choice::original
                  : chosen->applications.size() == chosen->baseline_applications &&
                          chosen->graph.equals(prepared.baseline.planned.graph)
                      ? Choice::baseline
                      : Choice::optimized;
  result.graph = std::move(chosen->graph);
  result.applications = std::move(chosen->applications);
  result.baseline_applications = chosen->baseline_applications;
  return {};
}

/// One line on the prices that were corrected.
void note_corrections(const std::vector<CorrectedPrice>& corrected, std::vector<std::string>& notes) {
  if (corrected.empty()) return;
  const auto change = [](const CorrectedPrice& price) { return std::abs(price.after - price.before); };
  const CorrectedPrice& largest = *std::max_element(
      corrected.begin(), corrected.end(), [&](const auto& a, const auto& b) { return change(a) < change(b); });
  notes.push_back(fmt::format(
      "graphs were not as fast as predicted, so the costs of {} kernel{} were corrected by what they take inside "
      "them, and the search went on; the most: {:.4g} us instead of {:.4g} us for {}",
      corrected.size(), corrected.size() == 1 ? "" : "s", largest.after * 1e6, largest.before * 1e6, largest.kernel));
}

/// One search and the choice among what it found.
struct Round {
  Prepared prepared;
  Findings found;
  OptimizeResult result;
};
Expected<Round> search_and_choose(const Graph& original, const RuleIndex& rules, const KernelLibrary& library,
                                  const GraphPlanner& planner, const OptimizeOptions& options,
                                  const std::vector<CorrectedPrice>& corrected, std::optional<FewestLaunches>& fewest) {
  OptimizeResult result;
  result.cost_model = planner.model().name();
  result.target = planner.target().identity();
  result.strategy = options.strategy;
  note_corrections(corrected, result.notes);
  if (options.progress != nullptr) options.progress->enter(OptimizeProgress::Phase::pricing);
  TASO_ASSIGN(Prepared prepared, prepare(original, rules, library.registry(), planner, options, result.notes));
  TASO_ASSIGN(Findings found, find_contenders(prepared, planner, options, fewest, result.notes));
  TASO_RETURN_IF_ERROR(choose(prepared, found, planner, options, result));
  return Round{std::move(prepared), std::move(found), std::move(result)};
}

/// Corrects prices that a round's times contradict. Where that is interrupted or the device fails, what was chosen
/// stands.
Expected<std::vector<CorrectedPrice>> corrected_after(Round& round, const GraphPlanner& planner) {
  Expected<std::vector<CorrectedPrice>> wrong = correct_prices(round.prepared, round.found, planner, round.result);
  if (wrong) return wrong;
  if (wrong.error().code == ErrorCode::interrupted)
    round.result.search.stop = StopReason::interrupted;
  else if (wrong.error().code == ErrorCode::device_unavailable)
    round.result.notes.push_back("costs that whole graphs contradict were not corrected: " + wrong.error().message);
  else
    return wrong;
  return std::vector<CorrectedPrice>();
}

Expected<OptimizeResult> optimize_until_interrupted(const Graph& original, const RuleIndex& rules,
                                                    const KernelLibrary& library, MeasuredCosts& measured,
                                                    CostModel& model, const OptimizeOptions& options) {
  const GraphPlanner planner(measured, model, options.strategy != Strategy::graph);
  std::vector<CorrectedPrice> corrected;
  std::optional<FewestLaunches> fewest;
  TASO_ASSIGN(Round round, search_and_choose(original, rules, library, planner, options, corrected, fewest));
  for (int corrections = 0; corrections < most_corrections; ++corrections) {
    TASO_ASSIGN(const std::vector<CorrectedPrice> wrong, corrected_after(round, planner));
    if (wrong.empty()) break;
    corrected.insert(corrected.end(), wrong.begin(), wrong.end());
    Expected<Round> next = search_and_choose(original, rules, library, planner, options, corrected, fewest);
    if (!next && next.error().code == ErrorCode::interrupted) {
      round.result.search.stop = StopReason::interrupted;
      break;
    }
    if (!next) return next.error();
    round = std::move(*next);
  }
  OptimizeResult& result = round.result;
  result.corrected = std::move(corrected);
  TASO_RETURN_IF_ERROR(choose_anew(round.prepared, round.found, planner, options, result));
  result.layouts = model.layout_statistics();
  note_inexact_layouts(result.layouts, result.notes);
  TASO_RETURN_IF_ERROR(check_result(round.prepared.original.planned, rules, library, options, result));
  return std::move(result);
}

/// The original as the result, where there was no time to find out what it costs.
Expected<OptimizeResult> unpriced(const Graph& original, const OperatorRegistry& registry, const Target& target,
                                  const CostModel& model) {
  OptimizeResult result;
  result.cost_model = model.name();
  result.target = target.identity();
  result.graph = original;
  normalize(result.graph, registry);
  PlannedGraph planned{result.graph, {}, std::numeric_limits<double>::quiet_NaN(), {}};
  TASO_ASSIGN(planned.plan, target.plan(planned.graph));
  TASO_ASSIGN(result.original, summary_of(planned, target));
  result.baseline = result.result = result.original;
  result.search.stop = StopReason::time;
  result.notes.emplace_back("the time limit passed before the costs of the model were known: it is written as it is");
  return result;
}

}  // namespace

Expected<OptimizeResult> optimize(const Graph& original, const RuleIndex& rules, const KernelLibrary& library,
                                  MeasuredCosts& measured, CostModel& model, const OptimizeOptions& options) {
  Expected<OptimizeResult> result = optimize_until_interrupted(original, rules, library, measured, model, options);
  const bool out_of_time = !options.search.stop.by_user();
  if (!result && result.error().code == ErrorCode::interrupted) {
    if (out_of_time) return unpriced(original, library.registry(), measured.target(), model);
    return Error{ErrorCode::interrupted,
                 "interrupted before the search: " + result.error().message + "; nothing was written",
                 {}};
  }
  if (result && out_of_time && result->search.stop == StopReason::interrupted) result->search.stop = StopReason::time;
  return result;
}

}  // namespace taso
