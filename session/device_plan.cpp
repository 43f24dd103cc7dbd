#include "session/device_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "partition/expand.h"
#include "partition/expansion_check.h"
#include "partition/plan_baselines.h"
#include "partition/proved_strategies.h"
#include "partition/recursive.h"
#include "session/step_time.h"
#include "support/byte_size.h"

namespace taso {
namespace {

constexpr const char* out_of_time = "there was no time to plan it";

/// All devices along one axis, over the slowest of the links.
Mesh with_one_axis(const Mesh& mesh) {
  Mesh flat = mesh;
  if (mesh.axes.size() < 2) return flat;
  MeshAxis axis = mesh.axes[0];
  axis.size = mesh.devices();
  for (const MeshAxis& other : mesh.axes) {
    axis.bandwidth = std::min(axis.bandwidth, other.bandwidth);
    axis.latency = std::max(axis.latency, other.latency);
  }
  axis.times = {};  // Those of a group of another size.
  flat.axes = {axis};
  flat.transport.clear();
  flat.copy = {};
  return flat;
}

/// What is asked for, but for the files that it needs.
class DevicePlanning {
 public:
  DevicePlanning(DevicePlan& result, const PlanRequest& request, const ProvedStrategies& proved,
                 const OperatorRegistry& registry, PieceTimes* times, const RuleIndex* fusing)
      : result_(result),
        request_(request),
        times_(times),
        fusing_(times == nullptr ? nullptr : fusing),
        mesh_(in_unit(request.mesh, unit_of(request.cost))),
        strategies_(
            registry, [&proved](std::string_view op) { return proved.of(op); },
            [&proved](std::string_view op) { return proved.passages_of(op); }) {
    options_.cost = piece_cost(request.cost, mesh_, registry, times);
    options_.memory = request.memory;
    options_.stop.flag = request.interrupted;
    if (request.time_limit) options_.stop.deadline = StopSignal::Clock::now() + *request.time_limit;
  }

  [[nodiscard]] Status run() {
    Planner planner(result_.graph, mesh_, strategies_, options_);
    TASO_RETURN_IF_ERROR(request_.method == PlanMethod::recursive ? plan_axis_by_axis(planner)
                                                                  : plan_all_axes(planner));
    if (!request_.take.empty()) TASO_RETURN_IF_ERROR(take_asked());
    for (const PlannedNode& node : result_.plan.nodes)
      result_.cuts.push_back(cut_points(result_.graph, node.node, mesh_, node.configuration.axes, strategies_));
    if (fusing_ != nullptr) predict_steps();
    if (!request_.expanded) return {};
    TASO_ASSIGN(const Expansion expansion, expand(result_.graph, result_.plan, strategies_));
    result_.expanded = on_one_device(expansion);
    PlannedUses uses;
    for (const PlannedNode& node : result_.plan.nodes) uses[node.node] = node.configuration.axes;
    return check_expansion(result_.graph, *result_.expanded, mesh_, uses, strategies_);
  }

 private:
  [[nodiscard]] Status plan_all_axes(Planner& planner) {
    Expected<PartitionPlan> found = planner.plan();
    if (!found && found.error().code != ErrorCode::not_proved) return found.error();
    TASO_RETURN_IF_ERROR(add_others(planner));
    if (request_.memory && !(found && found->exact)) take_better(found);
    if (!found) return found.error();
    result_.plan = std::move(*found);
    if (request_.alternatives && result_.taken_from.empty()) result_.alternatives = planner.alternatives(result_.plan);
    return {};
  }

  /// The search for a plan that keeps to the memory is not exact everywhere: others may keep to it, too.
  void take_better(Expected<PartitionPlan>& found) {
    const auto take = [&](const std::string& name, const PartitionPlan& other) {
      if (other.memory > *request_.memory || (found && other.seconds >= found->seconds * (1 - 1e-12))) return;
      PartitionPlan better = other;
      better.lower_bound = found ? found->lower_bound : 0;
      better.exact = false;
      better.complete = better.complete && (!found || found->complete);
      result_.taken_from = name;
      found = std::move(better);
    };
    if (const Expected<PartitionPlan> recursive = plan_recursively(result_.graph, mesh_, strategies_, options_))
      take("axis by axis", *recursive);
    for (const OtherPlan& other : result_.others)
      if (other.plan) take(other.name, *other.plan);
  }

  /// Another plan, because the request says so.
  [[nodiscard]] Status take_asked() {
    std::string names;
    for (const OtherPlan& other : result_.others) {
      names += (names.empty() ? "" : ", ") + other.name;
      if (other.name != request_.take) continue;
      if (!other.plan)
        return Error{ErrorCode::usage, fmt::format("there is no plan \"{}\": {}", other.name, other.missing), {}};
      if (request_.memory && other.plan->memory > *request_.memory)
        return Error{ErrorCode::usage,
                     fmt::format("the plan \"{}\" takes {} per device, of which {} is allowed", other.name,
                                 byte_size_text(other.plan->memory, true), byte_size_text(*request_.memory, false)),
                     {}};
      PartitionPlan taken = *other.plan;
      taken.lower_bound = std::min(result_.plan.lower_bound, taken.seconds);
      taken.exact = taken.seconds <= taken.lower_bound;
      taken.complete = result_.plan.complete;
      result_.taken_from = other.name;
      result_.taken_by = request_.take_is_fastest ? DevicePlan::TakenBy::time : DevicePlan::TakenBy::request;
      result_.alternatives.clear();
      result_.exact = std::exchange(result_.plan, std::move(taken));
      return {};
    }
    return Error{
        ErrorCode::usage, fmt::format("no other plan is called \"{}\"; there are: {}", request_.take, names), {}};
  }

  /// Where a step of the plan itself cannot be had, those of others are of no use.
  void predict_steps() {
    const auto predict = [this](PartitionPlan& plan) {
      const Expected<double> seconds = step_seconds(result_.graph, plan, strategies_, *fusing_, *times_);
      if (seconds) plan.step_seconds = *seconds;
    };
    predict(result_.plan);
    if (!result_.plan.step_seconds) return;
    if (result_.exact) predict(*result_.exact);
    for (OtherPlan& other : result_.others)
      if (other.plan && !options_.stop.raised()) predict(*other.plan);
  }

  [[nodiscard]] Status plan_axis_by_axis(Planner& planner) {
    Expected<PartitionPlan> found = plan_recursively(result_.graph, mesh_, strategies_, options_);
    if (found && options_.stop.raised()) {
      result_.plan = std::move(*found);
      return add_others(planner);
    }
    TASO_ASSIGN(result_.exact, planner.plan());
    if (!found && found.error().code == ErrorCode::not_proved)
      return Error{ErrorCode::not_proved,
                   fmt::format("no plan that fits {} per device was found axis by axis; --partition exact finds one",
                               byte_size_text(*request_.memory, false)),
                   {}};
    TASO_ASSIGN(result_.plan, std::move(found));
    return add_others(planner);
  }

  [[nodiscard]] Status add_others(Planner& planner) {
    for (PlanBaseline& baseline : plan_baselines(result_.graph, mesh_, planner, options_.cost, strategies_)) {
      OtherPlan& other = result_.others.emplace_back();
      other.name = std::move(baseline.name);
      other.missing = std::move(baseline.impossible);
      if (!other.missing.empty()) continue;
      if (options_.stop.raised()) {
        other.missing = out_of_time;
        continue;
      }
      Expected<PartitionPlan> found = planner.plan(baseline.allowed);
      if (!found && found.error().code != ErrorCode::not_proved) return found.error();
      if (found)
        other.plan = std::move(*found);
      else
        other.missing = found.error().message;
    }
    return {};
  }

  DevicePlan& result_;
  const PlanRequest& request_;
  PieceTimes* times_;        ///< Null: costs are no times.
  const RuleIndex* fusing_;  ///< Null: steps are not asked for.
  Mesh mesh_;
  StrategyTable strategies_;
  PlannerOptions options_;
};

}  // namespace

const char* to_string(PlanSearch search) {
  switch (search) {
    case PlanSearch::joint:
      return "joint";
    case PlanSearch::sequential:
      return "sequential";
    case PlanSearch::partition:
      return "partition";
  }
  return "?";
}

Expected<PlanSearch> parse_plan_search(std::string_view text) {
  for (const PlanSearch search : {PlanSearch::joint, PlanSearch::sequential, PlanSearch::partition})
    if (text == to_string(search)) return search;
  return Error{ErrorCode::usage, fmt::format("--plan-search {}: expected joint, sequential or partition", text), {}};
}

struct PlanPricer::State {
  State(const PlanRequest& asked, ProvedStrategies loaded, const StopSignal& stop, const OperatorRegistry& registry,
        PieceTimes* times)
      : request(asked),
        proved(std::move(loaded)),
        mesh(in_unit(asked.mesh, unit_of(asked.cost))),
        flat(with_one_axis(mesh)),
        strategies(
            registry, [this](std::string_view op) { return proved.of(op); },
            [this](std::string_view op) { return proved.passages_of(op); }) {
    options.cost = piece_cost(request.cost, mesh, registry, times);
    options.memory = request.memory;
    options.stop = stop;
  }

  const PlanRequest& request;
  ProvedStrategies proved;
  Mesh mesh, flat;
  StrategyTable strategies;
  PlannerOptions options;
  PreparedNodes on_mesh, on_flat;
};

PlanPricer::PlanPricer(std::unique_ptr<State> state) : state_(std::move(state)) {}
PlanPricer::~PlanPricer() = default;

Expected<std::unique_ptr<PlanPricer>> PlanPricer::open(const PlanRequest& request, const StopSignal& stop,
                                                       const OperatorRegistry& registry, PieceTimes* times) {
  TASO_ASSIGN(ProvedStrategies proved, ProvedStrategies::load(request.strategy_files, registry));
  return std::unique_ptr<PlanPricer>(
      new PlanPricer(std::make_unique<State>(request, std::move(proved), stop, registry, times)));
}

Expected<double> PlanPricer::coarse(const Graph& graph) {
  Planner planner(graph, state_->flat, state_->strategies, state_->options, &state_->on_flat);
  TASO_ASSIGN(const PartitionPlan plan,
              planner.plan([](NodeId /*node*/, const NodeConfiguration& /*way*/) { return true; }));
  return plan.seconds;
}

Expected<double> PlanPricer::exact(const Graph& graph) {
  if (state_->request.method == PlanMethod::recursive) {
    TASO_ASSIGN(const PartitionPlan plan, plan_recursively(graph, state_->mesh, state_->strategies, state_->options));
    return plan.seconds;
  }
  Planner planner(graph, state_->mesh, state_->strategies, state_->options, &state_->on_mesh);
  TASO_ASSIGN(const PartitionPlan plan, planner.plan());
  return plan.seconds;
}

Expected<double> PlanPricer::one_device(const Graph& graph) {
  Planner planner(graph, state_->flat, state_->strategies, state_->options, &state_->on_flat);
  TASO_ASSIGN(const PartitionPlan plan, planner.plan(only_repeat()));
  return plan.seconds;
}

Expected<DevicePlan> plan_for_devices(Graph graph, std::vector<std::string> node_names, const PlanRequest& request,
                                      const OperatorRegistry& registry, PieceTimes* times, const RuleIndex* fusing) {
  TASO_ASSIGN(const ProvedStrategies proved, ProvedStrategies::load(request.strategy_files, registry));
  DevicePlan result;
  result.graph = std::move(graph);
  result.node_names = std::move(node_names);
  result.topology = request.topology;
  result.mesh = request.mesh;
  result.method = request.method;
  result.cost = request.cost;
  result.memory = request.memory;
  TASO_RETURN_IF_ERROR(DevicePlanning(result, request, proved, registry, times, fusing).run());
  return result;
}

}  // namespace taso
