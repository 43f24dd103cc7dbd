#include "session/plan_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "optimizer/equal_costs.h"
#include "partition/proved_strategies.h"
#include "session/plan_search.h"
#include "session/plan_text.h"
#include "session/plan_timing.h"

namespace taso {
namespace {

/// How much more often rules were applied for one graph than for another.
std::map<std::string, int> more_often(const ReachedGraph& one, const ReachedGraph& other) {
  std::map<std::string, int> counts;
  for (const RuleApplication& application : one.applications) ++counts[application.rule];
  for (const RuleApplication& application : other.applications) --counts[application.rule];
  std::erase_if(counts, [](const auto& count) { return count.second == 0; });
  return counts;
}

class Chooser {
 public:
  Chooser(const std::vector<ReachedGraph>& graphs, const PlanChoiceContext& context)
      : graphs_(graphs), context_(context), request_(context.request) {}

  Expected<PlanChoice> run() {
    TASO_ASSIGN(std::vector<ReachedGraph> candidates, cheapest_graphs());
    std::size_t chosen = 0;
    if (request_.times_plans()) {
      if (candidates.size() > request_.timed_plans) candidates.resize(request_.timed_plans);
      TASO_ASSIGN(chosen, fastest_of(candidates));
    }
    if (request_.search == PlanSearch::joint) report().rules = more_often(candidates[chosen], graphs_[0]);
    if (!candidates[chosen].graph.equals(graphs_[0].graph)) choice_.graph = std::move(candidates[chosen]);
    return std::move(choice_);
  }

 private:
  PlanSearchReport& report() { return choice_.searched ? *choice_.searched : choice_.searched.emplace(); }

  [[nodiscard]] ReachedGraph as_it_is() const {
    ReachedGraph original{"original", context_.model.graph(), {}, 0};
    normalize(original.graph, context_.library.registry());
    return original;
  }

  /// What is read of the file that is written for a graph, in normal form: what a plan is of.
  [[nodiscard]] Expected<Graph> as_read(const Graph& graph) const {
    TASO_ASSIGN(const Model written, context_.model.read_again(graph));
    Graph read = written.graph();
    normalize(read, context_.library.registry());
    return read;
  }

  /// The same as far as a first price needs it.
  [[nodiscard]] Expected<Graph> as_read_for_a_price(const Graph& graph) const {
    TASO_ASSIGN(const Model written, context_.model.read_again_as_shapes(graph));
    Graph read = written.graph();
    normalize(read, context_.library.registry());
    return read;
  }

  /// Those whose plans cost least, the cheapest first.
  Expected<std::vector<ReachedGraph>> cheapest_graphs() {
    switch (request_.search) {
      case PlanSearch::joint:
        break;
      case PlanSearch::sequential:
        return std::vector{graphs_[0]};
      case PlanSearch::partition:
        return std::vector{as_it_is()};
    }
    return search();
  }

  Expected<std::vector<ReachedGraph>> search() {
    StopSignal stop{.flag = request_.interrupted, .deadline = std::nullopt};
    // The other half is for the plan of what is found.
    if (request_.time_limit) stop.deadline = StopSignal::Clock::now() + *request_.time_limit / 2;
    const OperatorRegistry& registry = context_.library.registry();
    TASO_ASSIGN(const std::unique_ptr<PlanPricer> pricer, PlanPricer::open(request_, stop, registry, context_.times));
    PlanPrices prices;
    prices.coarse = [&](const Graph& graph) -> Expected<double> {
      TASO_ASSIGN(const Graph read, as_read_for_a_price(graph));
      return pricer->coarse(read);
    };
    prices.exact = [&](const Graph& graph) -> Expected<double> {
      TASO_ASSIGN(const Graph read, as_read(graph));
      return pricer->exact(read);
    };
    std::vector<Substitution> all = context_.rules.search.rules();
    all.insert(all.end(), context_.rules.plans.begin(), context_.rules.plans.end());
    const OptimizeOptions& with = context_.with;
    std::erase_if(all, [&](const Substitution& rule) { return rule.source.nodes.size() > with.max_rule_size; });
    const RuleIndex index(allowed_rules(all, with.rounding, false), registry);
    PlanSearchOptions options;
    options.stop = stop;
    options.writable = with.writable;
    options.applicable = search_filter(with);
    options.at_all_sizes = with.at_all_sizes;
    TASO_ASSIGN(PlanSearchResult found, search_plans(graphs_, index, prices, options));
    report().graphs = found.graphs;
    report().stopped = found.stopped;
    if (std::isfinite(found.first_cost)) report().sequential = found.first_cost;
    if (const Expected<double> partition = prices.exact(as_it_is().graph)) report().partition = *partition;
    TASO_ASSIGN(const Graph first, as_read(graphs_[0].graph));
    TASO_ASSIGN(report().one_device, pricer->one_device(first));
    std::vector<ReachedGraph> cheapest;
    for (PlanSearchResult::Priced& priced : found.priced) cheapest.push_back(std::move(priced.reached));
    return cheapest;
  }

  /// Why no plans are run whole; empty: they are.
  [[nodiscard]] std::string reason_not_to_time() const {
    if (context_.library.backend()) return "only ranks on the processor are";
    const std::int64_t ranks = request_.mesh.devices();
    const int threads = context_.executor.threads, processors = usable_processors();
    if (ranks * threads <= processors) return "";
    return fmt::format("{} ranks{} need as many processors, and there {} {}", ranks,
                       threads == 1 ? "" : fmt::format(" of {} threads", threads), processors == 1 ? "is" : "are",
                       processors);
  }

  /// Plans of graphs, the cheapest first, and of which graph each is.
  Expected<std::vector<std::pair<std::size_t, CompetingPlan>>> competing_plans(
      const std::vector<ReachedGraph>& graphs) const {
    PlanRequest request = request_;
    request.alternatives = request.expanded = false;
    if (request.time_limit) request.time_limit = *request.time_limit / (4 * graphs.size());
    std::vector<std::pair<std::size_t, CompetingPlan>> plans;
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      TASO_ASSIGN(const Graph graph, as_read(graphs[i].graph));
      TASO_ASSIGN(const DevicePlan planned,
                  plan_for_devices(graph, {}, request, context_.library.registry(), context_.times,
                                   context_.times != nullptr ? &context_.fusing_rules : nullptr));
      const auto add = [&](const std::string& name, const PartitionPlan& plan) {
        if (!request.memory || plan.memory <= *request.memory) plans.push_back({i, {name, graph, plan}});
      };
      add("", planned.plan);
      if (!request.take.empty()) continue;
      for (const OtherPlan& other : planned.others)
        if (other.plan && other.name != planned.taken_from) add(other.name, *other.plan);
    }
    std::stable_sort(plans.begin(), plans.end(), [](const auto& a, const auto& b) {
      return is_less(predicted_seconds(a.second.plan), predicted_seconds(b.second.plan));
    });
    return plans;
  }

  /// The graph of the fastest of the cheapest plans; enters the times in the report, and which plan it is.
  Expected<std::size_t> fastest_of(const std::vector<ReachedGraph>& graphs) {
    if (report().not_timed = reason_not_to_time(); !report().not_timed.empty()) return 0;
    TASO_ASSIGN(const auto plans_of_graphs, competing_plans(graphs));
    std::vector<CompetingPlan> plans;
    for (const auto& [graph, plan] : plans_of_graphs) plans.push_back(plan);
    Expected<PlanTimes> times = time(plans);
    if (!times) {
      report().not_timed = times.error().message;
      return 0;
    }
    times->chosen = fastest_plan(*times);
    const auto& [graph, chosen] = plans_of_graphs[times->plans[times->chosen].number];
    choice_.fastest = chosen.name;
    for (PlanTimes::Plan& plan : times->plans) {
      if (plan.name.empty()) plan.name = "least cost";
      if (graphs.size() > 1) plan.name += fmt::format(", graph {}", plans_of_graphs[plan.number].first + 1);
    }
    report().timed = std::move(*times);
    return graph;
  }

  [[nodiscard]] Expected<PlanTimes> time(const std::vector<CompetingPlan>& plans) const {
    TASO_ASSIGN(const Graph one_device, context_.with.as_run(graphs_[0].graph));
    TASO_ASSIGN(const ProvedStrategies proved,
                ProvedStrategies::load(request_.strategy_files, context_.library.registry()));
    PlanTiming timing{.library = context_.library,
                      .proved = proved,
                      .fusing = context_.fusing_rules,
                      .executor = context_.executor,
                      .most_plans = request_.timed_plans,
                      .cancelled = [&] { return request_.interrupted != nullptr && *request_.interrupted; }};
    if (request_.time_limit)
      timing.most_seconds =
          std::min(timing.most_seconds, std::chrono::duration<double>(*request_.time_limit).count() / 4);
    return time_plans(plans, one_device, timing, context_.times->costs());
  }

  const std::vector<ReachedGraph>& graphs_;
  const PlanChoiceContext& context_;
  const PlanRequest& request_;
  PlanChoice choice_;
};

}  // namespace

Expected<PlanChoice> choose_plan(const std::vector<ReachedGraph>& graphs, const PlanChoiceContext& context) {
  return Chooser(graphs, context).run();
}

PlanSearchReport report_of(const PlanChoice& choice, PlanSearch search, const DevicePlan& plan) {
  PlanSearchReport report = choice.searched.value_or(PlanSearchReport{});
  report.search = to_string(search);
  report.unit = name_of_unit(unit_of(plan.cost));
  report.cost = plan.plan.seconds;
  if (search == PlanSearch::sequential) report.sequential = plan.plan.seconds;
  if (search == PlanSearch::partition) report.partition = plan.plan.seconds;
  if (const std::optional<double> repeated = cost_of_repeating(plan))
    report.one_device = std::min(report.one_device.value_or(*repeated), *repeated);
  return report;
}

}  // namespace taso
