#include "optimizer/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "optimizer/equal_costs.h"

namespace taso {
namespace {

/// The places of two graphs among those that compete; what was found follows in its order.
constexpr std::size_t baseline = 0, original = 1, first_found = 2;

/// Times all competitors whole and enters that in result.contenders; an interrupt leaves them untimed. Fails where that
/// is not possible here.
Status time_whole(const std::vector<Competitor*>& competitors, MeasuredCosts& measured, OptimizeResult& result) {
  // Equal graphs are timed once: an original with nothing to fuse is the baseline.
  const bool merged = competitors[baseline]->planned.graph.equals(competitors[original]->planned.graph);
  std::vector<TimedGraph> timed;
  for (std::size_t i = 0; i < competitors.size(); ++i) {
    if (merged && i == original) continue;
    timed.push_back(to_be_timed(competitors[i]->as_run()));
    timed.back().reference = i < first_found;
  }
  const Expected<GraphTimes> times = measured.graph_seconds(timed);
  if (!times && times.error().code == ErrorCode::interrupted) {
    result.search.stop = StopReason::interrupted;
  } else if (!times) {
    return times.error();
  } else {
    for (std::size_t i = 0; i < competitors.size(); ++i) {
      const std::size_t place = merged && i > baseline ? i - 1 : i;
      result.contenders[i].seconds = times->seconds[place];
      result.contenders[i].in_final = times->final && times->final->graph == place;
    }
    result.noise = result.noise_of_references = times->noise;
    if (times->final)
      (timed[times->final->graph].reference ? result.noise_of_references : *result.noise) = times->final->noise;
    if (times->cut_short && times->cut_short->code == ErrorCode::interrupted)
      result.search.stop = StopReason::interrupted;
    else if (times->cut_short)
      result.notes.push_back("the final failed, what was timed before decides: " + times->cut_short->message);
    result.timed_on = times->date;
  }
  return {};
}

/// Leaves out what was found and does not run as a whole, with a note. `try_them`: not only what is recorded counts.
/// Whether anything is left out.
Expected<bool> leave_out_refused(Findings& found, MeasuredCosts& measured, bool try_them, OptimizeResult& result) {
  std::vector<std::optional<std::string>> refusals;
  for (Competitor& competitor : found.graphs) {
    const TimedGraph timed = to_be_timed(competitor.as_run());
    std::optional<std::string> refusal = measured.recorded_refusal(timed);
    if (!refusal && try_them) {
      TASO_ASSIGN(refusal, measured.refusal(timed));
    }
    refusals.push_back(std::move(refusal));
  }
  const auto refused = std::find_if(refusals.begin(), refusals.end(), [](const auto& one) { return one.has_value(); });
  if (refused == refusals.end()) return false;
  std::vector<Competitor> running;
  std::vector<Contender> contenders(result.contenders.begin(), result.contenders.begin() + first_found);
  for (std::size_t i = 0; i < found.graphs.size(); ++i) {
    if (refusals[i]) continue;
    running.push_back(std::move(found.graphs[i]));
    contenders.push_back(std::move(result.contenders[first_found + i]));
  }
  result.notes.push_back(fmt::format("{} of {} graphs found do not run as a whole, and were left out: {}",
                                     refusals.size() - running.size(), refusals.size(), **refused));
  found.graphs = std::move(running);
  result.contenders = std::move(contenders);
  return true;
}

/// Index of the winner: the best graph found if it beats both baseline and original by more than `noise`, else the
/// baseline; but the original where that beats the baseline by more than `of_references`. `may_win`: which of the
/// graphs found can be the best.
template <class Value, class MayWin>
std::size_t pick(const std::vector<Contender>& contenders, const Value& value, double noise, double of_references,
                 const MayWin& may_win) {
  std::size_t best = baseline;
  if (value(contenders[original]) < value(contenders[baseline]) * (1 - of_references)) best = original;
  const double reference = std::min(value(contenders[baseline]), value(contenders[original]));
  for (std::size_t i = first_found; i < contenders.size(); ++i)
    if (may_win(contenders[i]) && value(contenders[i]) < reference * (1 - noise) &&
        (best < first_found || value(contenders[i]) < value(contenders[best])))
      best = i;
  return best;
}

/// Baseline and original take this many times what their kernels take by themselves: something else uses the machine,
/// which was not so when these were measured. What waits for several threads more often is slower then, so that times
/// say nothing of a machine that is at rest.
constexpr double disturbed = 1.3;

Expected<bool> were_disturbed(const std::vector<Competitor*>& competitors, MeasuredCosts& measured,
                              const OptimizeResult& result) {
  if (!result.noise) return false;
  for (const std::size_t i : {baseline, original}) {
    TASO_ASSIGN(const double by_kernels, measured.seconds(competitors[i]->as_run().plan));
    if (*result.contenders[i].seconds <= disturbed * by_kernels) return false;
  }
  return true;
}

/// `by_costs_too`: what was found must cost less than both references, too.
std::size_t pick(const OptimizeResult& result, bool by_costs_too) {
  const std::vector<Contender>& contenders = result.contenders;
  const double least_cost = std::min(contenders[baseline].cost, contenders[original].cost);
  if (!result.noise)
    return pick(
        contenders, [](const Contender& c) { return c.cost; }, equal_costs, equal_costs,
        [](const Contender&) { return true; });
  const bool had_final =
      std::any_of(contenders.begin(), contenders.end(), [](const Contender& c) { return c.in_final; });
  return pick(
      contenders, [](const Contender& c) { return *c.seconds; }, *result.noise, result.noise_of_references,
      [&](const Contender& c) { return (!had_final || c.in_final) && (!by_costs_too || is_less(c.cost, least_cost)); });
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

std::vector<Competitor*> competitors_of(Prepared& prepared, Findings& found) {
  std::vector<Competitor*> competitors = {&prepared.baseline, &prepared.original};
  for (Competitor& competitor : found.graphs) competitors.push_back(&competitor);
  return competitors;
}

Status choose(Prepared& prepared, Findings& found, const GraphPlanner& planner, const OptimizeOptions& options,
              OptimizeResult& result) {
  result.search = std::move(found.search);
  std::vector<Competitor*> competitors = competitors_of(prepared, found);
  // Moves may have to measure much, which would be taken from a time limit that the search has left for timing.
  if (result.search.stop != StopReason::interrupted && !options.search.stop.deadline)
    for (Competitor* competitor : competitors) TASO_RETURN_IF_ERROR(planner.improve(competitor->as_run()));
  for (const Competitor* competitor : competitors)
    result.contenders.push_back({competitor->name, competitor->as_run().cost, std::nullopt});

  const bool unchanged = prepared.original.planned.graph.equals(prepared.baseline.planned.graph);
  const bool all_equal = unchanged && found.graphs.empty();
  if (times_graphs(planner, options) && result.search.stop != StopReason::interrupted && !all_equal) {
    if (options.progress != nullptr) options.progress->begin_timing(competitors.size());
    TASO_ASSIGN([[maybe_unused]] const bool known, leave_out_refused(found, planner.measured(), false, result));
    competitors = competitors_of(prepared, found);
    Status timed = time_whole(competitors, planner.measured(), result);
    if (!timed) {
      const Expected<bool> fewer = leave_out_refused(found, planner.measured(), true, result);
      competitors = competitors_of(prepared, found);
      if (!fewer)
        timed = fewer.error();
      else if (*fewer)
        timed = time_whole(competitors, planner.measured(), result);
    }
    if (!timed && timed.error().code == ErrorCode::interrupted)
      result.search.stop = StopReason::interrupted;
    else if (!timed)
      result.notes.push_back("graphs were not timed whole, the predicted costs decide: " + timed.error().message);
  }
  std::size_t winner = pick(result, false);
  if (winner >= first_found) {
    TASO_ASSIGN(const bool by_costs_too, were_disturbed(competitors, planner.measured(), result));
    const std::size_t fastest = std::exchange(winner, pick(result, by_costs_too));
    if (winner != fastest)
      result.notes.push_back(
          fmt::format("{} was the fastest, and by its kernels is slower than the baseline, which takes much "
                      "longer now than its kernels by themselves: something else uses the machine, so it is left out",
                      result.contenders[fastest].name));
  }

  PlannedGraph& chosen = competitors[winner]->planned;
  PlannedGraph& run = competitors[winner]->as_run();
  result.gain = winner >= first_found;
  result.choice = result.gain                       ? Choice::optimized
                  : winner == original || unchanged ? Choice::original
                                                    : Choice::baseline;
  if (result.choice != Choice::original) {
    result.applications = competitors[winner]->applications;
    result.baseline_applications = (result.gain ? prepared.start() : prepared.baseline).applications.size();
  }
  result.graph_cost = chosen.cost;
  if (result.gain) {
    // Once more: in the statistics of layouts, which reports print, the result counts as a graph of its own. Its cost
    // is that by which it was found, before moves.
    TASO_ASSIGN(const PlannedGraph as_found, planner.plan(chosen.graph));
    result.graph_cost = as_found.cost;
  }
  for (const std::size_t i : {baseline, original, winner})
    TASO_RETURN_IF_ERROR(planner.summarize(competitors[i]->as_run()));
  for (const std::size_t i : {baseline, original, winner})
    competitors[i]->as_run().summary->measured_seconds = result.contenders[i].seconds;
  result.original = *prepared.original.planned.summary;
  result.baseline = *prepared.baseline.planned.summary;
  result.result = *run.summary;
  if (result.search.stop != StopReason::interrupted && !options.search.stop.deadline) {
    TASO_ASSIGN(result.result.least_cost, planner.least_cost(run));
  }
  note_declined(planner.target().declined(run.plan), result.notes);
  for (std::string& fallback : planner.target().fallbacks()) result.notes.push_back(std::move(fallback));
  result.graph = chosen.graph;
  result.chosen_layouts = chosen.plan.layouts;
  return {};
}

}  // namespace taso
