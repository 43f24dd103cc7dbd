#include "partition/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "partition/plan_memory.h"
#include "partition/plan_problem.h"
#include "partition/priced_problem.h"
#include "partition/solve_limited.h"
#include "support/byte_size.h"

namespace taso {
namespace {

/// The one configuration of a node that is carried: everything on the first device, as far as types are known.
NodeConfiguration carried(const Graph& graph, const Node& node, const Mesh& mesh) {
  NodeConfiguration configuration;
  configuration.axes.resize(mesh.axes.size());
  const auto placed = [&](const TensorType& type) { return type.known ? on_first(type.shape, mesh) : Placement{}; };
  for (const Value& input : node.inputs) configuration.reads.push_back(placed(graph.type(input)));
  for (const TensorType& type : node.outputs) configuration.makes.push_back(placed(type));
  return configuration;
}

/// What is the same of equal applications.
std::string application_of(const Graph& graph, const Node& node) {
  std::string key = node.op + to_string(node.attributes);
  for (const Value& input : node.inputs)
    key += " " + to_string(graph.type(input)) + (graph.node(input.node).weight_only ? " weight" : "");
  return key;
}

}  // namespace

Planner::Planner(const Graph& graph, const Mesh& mesh, StrategyTable& strategies, PlannerOptions options,
                 PreparedNodes* shared)
    : graph_(graph), mesh_(mesh), strategies_(strategies), options_(std::move(options)) {
  if (!options_.cost) options_.cost = roofline(strategies.registry(), mesh.device);
  problem_ = unfit_state();
  PreparedNodes own;
  PreparedNodes& equal = shared != nullptr ? *shared : own;
  for (const NodeId id : graph.topological_order()) {
    if (problem_) return;
    if (!is_planned(graph.node(id))) continue;
    if (const Status status = prepare(id, equal); !status) problem_ = status.error();
  }
}

Planner::~Planner() = default;

std::optional<Error> Planner::unfit_state() const {
  std::set<Value> seen;
  const Consumers consumers(graph_);
  for (const auto& pair : options_.state) {
    const Value input = pair.input, output = pair.output;
    const Node& before = graph_.node(input.node);
    const auto error = [&](const char* what) {
      return bad_input(
          fmt::format("state {}: {}", before.name.empty() ? fmt::format("%{}", input.node) : before.name, what));
    };
    if (before.kind != NodeKind::input && before.kind != NodeKind::constant) return error("it is made by an operator");
    if (!is_planned(graph_.node(output.node))) return error("no operator makes its next value");
    if (!graph_.type(output).known || graph_.type(input) != graph_.type(output))
      return error("its next value has another type");
    if (!seen.insert(input).second || !seen.insert(output).second) return error("it is that of two pairs");
    for (const auto& [reader, operand] : consumers.of(input.node))
      if (!is_planned(graph_.node(reader))) return error("what is computed ahead of runs depends on it");
  }
  return std::nullopt;
}

Status Planner::prepare(NodeId id, PreparedNodes& equal) {
  const Node& node = graph_.node(id);
  auto prepared = std::make_shared<PreparedNode>();
  if (node.kind != NodeKind::op || !types_known(graph_, node)) {
    prepared->configurations.push_back(carried(graph_, node, mesh_));
    prepared->costs.push_back(0);
    prepared_[id] = std::move(prepared);
    return {};
  }
  ConfigurationOptions limits = options_.configurations;
  // What a way takes to look at grows with the number of devices.
  constexpr std::size_t most_pieces = std::size_t{1} << 16;
  limits.most = std::clamp<std::size_t>(most_pieces / static_cast<std::size_t>(mesh_.devices()), 1, limits.most);
  if (const auto at = options_.decided.find(id); at != options_.decided.end()) limits.decided = at->second;
  std::string key = application_of(graph_, node);
  for (const AxisUse& use : limits.decided) {
    key += " | " + use.variable + use.reducer;
    for (const std::size_t input : use.inputs) key += " " + std::to_string(input);
  }
  // What was cut short by a stop is no node's preparation but this planner's.
  if (options_.stop.raised() && !equal.contains(key)) {
    stopped_ = true;
    limits.most = 1;
    key += " | stopped";
  }
  std::shared_ptr<const PreparedNode>& known = equal[key];
  if (!known) {
    NodeConfigurations made = configurations_of(graph_, id, mesh_, strategies_, limits);
    prepared->configurations = std::move(made.list);
    prepared->complete = made.complete;
    std::vector<bool> weights;
    for (const Value& input : node.inputs) weights.push_back(graph_.node(input.node).weight_only);
    for (const NodeConfiguration& configuration : prepared->configurations) {
      TASO_ASSIGN(const double cost, options_.cost(configuration.largest, weights));
      prepared->costs.push_back(cost);
    }
    known = std::move(prepared);
  }
  complete_ = complete_ && known->complete;
  prepared_[id] = known;
  return {};
}

/// With tables small enough for the time that is left.
ExactOptions Planner::solver_for(const PlanProblem& problem, bool& stopped) const {
  ExactOptions solver = options_.solver;
  solver.known.push_back(problem.repeated());
  if (!options_.stop.flag && !options_.stop.deadline) return solver;
  constexpr double combinations_per_second = 2e8;
  const double combinations =
      elimination_order(interaction_graph(problem.problem().elimination_problem()), solver.order).combinations;
  const bool too_long = options_.stop.deadline &&
                        std::chrono::duration<double>(*options_.stop.deadline - StopSignal::Clock::now()).count() <
                            combinations / combinations_per_second;
  if (too_long || options_.stop.raised()) {
    stopped = true;
    solver.maximum_table = std::min(solver.maximum_table, std::size_t{1} << 12);
  }
  return solver;
}

void Planner::describe(const PlanProblem& problem, const PartitionSolution& solution, PartitionPlan& plan) const {
  plan.lower_bound = solution.lower_bound;
  plan.exact = solution.exact;
  plan.complete = complete_;
  plan.stopped = plan.stopped || stopped_;
  plan.order = solution.order;
  plan.ways = solution.ways;
  const PlanMemory memory(problem);
  plan.weights = memory.weights(plan.choice, plan.weight_bytes);
  const std::vector<double> bytes = memory.while_nodes_run(plan.choice);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    plan.nodes[i].memory = bytes[i];
    if (bytes[i] <= plan.memory) continue;
    plan.memory = bytes[i];
    plan.memory_node = plan.nodes[i].node;
  }
}

Expected<PartitionPlan> Planner::plan(const ConfigurationFilter& allowed) {
  if (problem_) return *problem_;
  const PlanProblem problem(graph_, mesh_, prepared_, options_.state, allowed);
  bool stopped = false;
  const PartitionSolution solution = solve_exact(problem.problem(), solver_for(problem, stopped));
  if (solution.cost >= EliminationProblem::forbidden_cost)
    return Error{ErrorCode::not_proved, "no plan was found that does only what is allowed", {}};
  PartitionPlan plan = problem.plan_of(solution.choice);
  plan.stopped = stopped;
  describe(problem, solution, plan);
  return plan;
}

/// Why no plan keeps to the memory: none does (`proved`), or none was found to.
Error Planner::unfit(const std::string& need, bool proved, bool stopped) const {
  return {ErrorCode::not_proved,
          fmt::format("no plan {} {} per device: {} on {} {}{}{}", proved ? "fits" : "was found that fits",
                      byte_size_text(*options_.memory, false), need, mesh_.devices(),
                      mesh_.devices() == 1 ? "device" : "devices", proved ? "" : ", as far as is known",
                      stopped ? "; planning ended early" : ""),
          {}};
}

Expected<PartitionPlan> Planner::plan() {
  if (problem_) return *problem_;
  if (!whole_) whole_ = std::make_unique<PlanProblem>(graph_, mesh_, prepared_, options_.state, ConfigurationFilter());
  const PlanMemory memory(*whole_);
  bool stopped = false;
  LimitedOptions options;
  options.exact = solver_for(*whole_, stopped);
  options.stop = options_.stop;
  ResourceLimit limit;
  limit.most = options_.memory.value_or(std::numeric_limits<double>::infinity());
  limit.used = [&](const ResourceLimit::Choice& choice) {
    const std::vector<double> bytes = memory.while_nodes_run(choice);
    if (bytes.empty()) return ResourceLimit::Use{};
    const auto most = std::max_element(bytes.begin(), bytes.end());
    return ResourceLimit::Use{*most, static_cast<std::size_t>(most - bytes.begin())};
  };
  limit.at_least = [&](std::size_t place) { return memory.at_least(place); };
  // Of ways that were not made nothing is known.
  const bool all_ways = complete_ && !stopped_;
  if (const double weights = memory.weights_at_least(); all_ways && weights > limit.most * (1 + 1e-12))
    return unfit(fmt::format("the weights alone need at least {}", byte_size_text(weights, true)), true, false);
  const LimitedSolution solved = solve_limited(whole_->problem(), limit, options);
  if (!solved.found) {
    const double needed = std::max(solved.needs_at_least, memory.weights_at_least());
    return unfit(fmt::format("at least {} are needed", byte_size_text(needed, true)),
                 all_ways && solved.needs_at_least > limit.most * (1 + 1e-12), stopped_ || stopped || solved.stopped);
  }
  PartitionPlan plan = whole_->plan_of(solved.solution.choice);
  plan.stopped = stopped || solved.stopped;
  plan.prices = solved.prices;
  describe(*whole_, solved.solution, plan);
  return plan;
}

std::vector<PlanAlternative> Planner::alternatives(const PartitionPlan& plan) {
  std::vector<PlanAlternative> all;
  if (!whole_) return all;
  const PlanMemory memory(*whole_);
  const PricedProblem priced(whole_->problem());
  std::vector<std::vector<PartitionProblem::Cost>> tables;
  tables.reserve(plan.prices.size());
  std::vector<PricedProblem::Term> terms;
  for (const auto& [place, price] : plan.prices) terms.push_back({&tables.emplace_back(memory.at_least(place)), price});
  std::map<std::pair<std::string, std::vector<AxisUse>>, std::size_t> places;
  for (const PlannedNode& node : plan.nodes) {
    if (std::all_of(node.configuration.axes.begin(), node.configuration.axes.end(),
                    [](const AxisUse& use) { return use.kind == AxisUse::Kind::repeat; }))
      continue;
    const auto key = std::pair(application_of(graph_, graph_.node(node.node)), node.configuration.axes);
    if (const auto [at, fresh] = places.emplace(key, all.size()); !fresh) {
      ++all[at->second].equal;
      continue;
    }
    if (options_.stop.raised()) break;
    PlanAlternative& other = all.emplace_back();
    other.node = node.node;
    const PartitionProblem::Decision decision = whole_->decision(node.node);
    PricedProblem::Restriction restriction;
    restriction.forbid(decision, plan.choice[decision], whole_->ways(node.node));
    if (restriction.is_fixed(decision) && whole_->ways(node.node) == 1) continue;
    const PartitionSolution solution = priced.solve(terms, options_.solver, &restriction);
    if (solution.cost >= EliminationProblem::forbidden_cost) continue;
    other.plan = whole_->plan_of(solution.choice);
    if (options_.memory) describe(*whole_, solution, *other.plan);
    other.configuration = whole_->configuration(node.node, solution.choice[decision]);
  }
  return all;
}

const std::vector<NodeConfiguration>& Planner::configurations(NodeId id) const {
  return prepared_.at(id)->configurations;
}

}  // namespace taso
