#include "optimizer/optimize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace taso {
namespace {

/// Costs that differ by less than this are equal.
constexpr double kEqualCosts = 1e-9;
/// A graph whose predicted time is this many times the baseline's is not timed whole.
constexpr double kHopeless = 1.5;

bool is_less(double cost, double than) { return cost < than - kEqualCosts * std::abs(than); }

Expected<GraphSummary> summarize(const Graph& graph, MeasuredCosts& measured, CostModel& model) {
  GraphSummary summary;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.weight_only || (node.kind != NodeKind::op && node.kind != NodeKind::opaque)) continue;
    ++summary.operators[node.op];
    ++(node.kind == NodeKind::op ? summary.operator_count : summary.opaque_count);
  }
  TASO_ASSIGN(const KernelPlan plan, measured.target().plan(graph));
  summary.kernels = plan.launches.size();
  for (const Launch& launch : plan.launches) {
    summary.flops += launch.kernel->flops;
    summary.bytes += launch.kernel->bytes;
  }
  TASO_ASSIGN(summary.peak_bytes, measured.target().peak_bytes(graph));
  TASO_ASSIGN(summary.cost, model.cost(graph, plan));
  if (model.uses_time()) {
    TASO_ASSIGN(summary.predicted_seconds, measured.seconds(plan));
  }
  return summary;
}

/// The graphs that may become the result; the first two are the baseline and the original.
struct Choices {
  std::vector<const Graph*> graphs;
  std::vector<Contender> contenders;

  void add(std::string name, const Graph& graph, double cost) {
    graphs.push_back(&graph);
    contenders.push_back({std::move(name), cost, std::nullopt});
  }
};

/// Times the contenders whole. False, with a note, if that is not possible here.
Expected<bool> time_whole(Choices& choices, MeasuredCosts& measured, OptimizeResult& result) {
  // Equal graphs are timed once: an original with nothing to fuse is the baseline.
  std::vector<const Graph*> graphs = choices.graphs;
  const bool merged = graphs[0]->equals(*graphs[1]);
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

/// Index of the winner: the best candidate if it beats the baseline by more than `margin`, else the baseline, unless
/// the original beats that.
template <class Value>
std::size_t pick(const std::vector<Contender>& contenders, const Value& value, double margin) {
  std::size_t best = 0;
  for (std::size_t i = 2; i < contenders.size(); ++i)
    if (value(contenders[i]) < value(contenders[0]) * (1 - margin) &&
        (best == 0 || value(contenders[i]) < value(contenders[best])))
      best = i;
  if (best == 0 && value(contenders[1]) < value(contenders[0]) * (1 - margin)) best = 1;
  return best;
}

/// One line on a tensor that is outside the tolerance.
std::string describe_failure(const CheckedTensor& tensor, double rtol) {
  if (tensor.became_not_finite > 0)
    return fmt::format(
        "numeric check failed: {} of {} elements of '{}' are NaN or infinite where the original's are "
        "finite; nothing was written",
        tensor.became_not_finite, tensor.compared + tensor.not_finite, tensor.name);
  return fmt::format(
      "numeric check failed: '{}' differs by {:.3g} where the largest magnitude is {:.3g} (allowed: "
      "{:.3g} of it); nothing was written",
      tensor.name, tensor.max_difference, tensor.magnitude, rtol);
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

Expected<OptimizeResult> optimize_until_interrupted(const Graph& original, const RuleIndex& rules,
                                                    const KernelLibrary& library, MeasuredCosts& measured,
                                                    CostModel& model, const OptimizeOptions& options) {
  OptimizeResult result;
  result.cost_model = model.name();
  result.target = measured.target().identity();

  Graph start = original;
  normalize(start, rules.catalog());
  const RuleIndex baseline_rules(allowed_rules(rules.rules(), options.rounding, true), rules.catalog());
  const RuleIndex search_rules(allowed_rules(rules.rules(), options.rounding, false), rules.catalog());
  TASO_ASSIGN(Baseline baseline,
              make_baseline(start, baseline_rules, library.registry(), options.writable, options.search.interrupt));
  TASO_ASSIGN(result.original, summarize(start, measured, model));
  TASO_ASSIGN(result.baseline, summarize(baseline.graph, measured, model));
  SearchOptions search_options = options.search;
  search_options.writable = options.writable;
  TASO_ASSIGN(result.search, search(baseline.graph, search_rules, measured.target(), model, search_options));
  const std::vector<Candidate> found = std::move(result.search.best);
  result.search.best.clear();

  Choices choices;
  choices.add("baseline", baseline.graph, result.baseline.cost);
  choices.add("original", start, result.original.cost);
  std::vector<const Candidate*> candidates;
  for (const Candidate& candidate : found) {
    if (!is_less(candidate.cost, result.baseline.cost) || candidates.size() == options.timed_candidates) continue;
    candidates.push_back(&candidate);
    choices.add(fmt::format("candidate {}", candidates.size()), candidate.graph, candidate.cost);
  }

  // Times of single kernels miss what kernels share: weights that several of them read, starts and ends. A graph with
  // the fewest launches is often better than its sum says, so it competes where graphs are timed whole.
  SearchResult fewest;
  if (model.uses_time() && result.search.stop != StopReason::interrupted) {
    search_options.keep = 1;
    if (search_options.time_limit)
      search_options.time_limit = std::max(0.0, *search_options.time_limit - result.search.seconds);
    const auto launches = make_cost_model({{{1, CostFormula::Term::launches}}}, measured);
    TASO_ASSIGN(fewest, search(baseline.graph, search_rules, measured.target(), *launches, search_options));
    if (fewest.stop == StopReason::interrupted) result.search.stop = StopReason::interrupted;
    const Candidate& candidate = fewest.best[0];
    const bool known = std::any_of(candidates.begin(), candidates.end(),
                                   [&](const Candidate* other) { return other->graph.equals(candidate.graph); });
    if (is_less(candidate.cost, fewest.start_cost) && !known) {
      TASO_ASSIGN(const KernelPlan plan, measured.target().plan(candidate.graph));
      const double limit = kHopeless * result.baseline.cost;
      const Expected<double> cost = model.cost(candidate.graph, plan, limit);
      if (!cost && cost.error().code == ErrorCode::interrupted)
        result.search.stop = StopReason::interrupted;
      else if (!cost && cost.error().code != ErrorCode::cost_missing)
        return cost.error();
      if (cost && *cost < limit) {
        candidates.push_back(&candidate);
        choices.add("fewest launches", candidate.graph, *cost);
      }
    }
  }

  const bool interrupted = result.search.stop == StopReason::interrupted;
  const bool unchanged = start.equals(baseline.graph);
  const bool all_equal = candidates.empty() && unchanged;
  bool timed = false;
  if (model.uses_time() && !interrupted && !all_equal) {
    TASO_ASSIGN(timed, time_whole(choices, measured, result));
  }
  const std::size_t winner = timed
                                 ? pick(
                                       choices.contenders, [](const Contender& c) { return *c.seconds; }, *result.noise)
                                 : pick(
                                       choices.contenders, [](const Contender& c) { return c.cost; }, kEqualCosts);
  if (timed) {
    result.baseline.measured_seconds = choices.contenders[0].seconds;
    result.original.measured_seconds = choices.contenders[1].seconds;
  }

  result.gain = winner >= 2;
  result.choice = winner >= 2 ? Choice::optimized : winner == 1 || unchanged ? Choice::original : Choice::baseline;
  result.graph = *choices.graphs[winner];
  if (result.choice != Choice::original) {
    result.applications = std::move(baseline.applications);
    result.baseline_applications = result.applications.size();
  }
  if (winner >= 2) {
    const std::vector<RuleApplication>& steps = candidates[winner - 2]->applications;
    result.applications.insert(result.applications.end(), steps.begin(), steps.end());
    TASO_ASSIGN(result.result, summarize(result.graph, measured, model));
    result.result.measured_seconds = choices.contenders[winner].seconds;
  } else {
    result.result = winner == 1 ? result.original : result.baseline;
  }
  result.contenders = std::move(choices.contenders);

  if (options.check) {
    if (result.choice == Choice::original) {
      result.notes.push_back("no check: the result is the original graph");
      return result;
    }
    CheckOptions check_options = *options.check;
    if (result.search.stop == StopReason::interrupted) check_options.inputs = 1;
    TASO_ASSIGN(result.check, check(start, result.graph, library, check_options));
    for (const std::string& remark : result.check->remarks()) result.notes.push_back(remark);
    if (!result.check->passed) {
      for (const CheckedTensor& tensor : result.check->tensors)
        if (!tensor.within) return Error{ErrorCode::check_failed, describe_failure(tensor, options.check->rtol), {}};
      return Error{ErrorCode::check_failed, "numeric check failed; nothing was written", {}};
    }
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
