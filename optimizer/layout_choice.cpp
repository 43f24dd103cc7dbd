#include "optimizer/layout_choice.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "optimizer/equal_costs.h"
#include "optimizer/layout_moves.h"

namespace taso {
namespace {

/// Layouts that go together always: nothing is made in place, and every conversion that may be asked for is there.
std::vector<std::uint32_t> plain_choice(const LayoutSpace& space) {
  std::vector<std::uint32_t> chosen(space.variables.size(), 0);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const auto& choices = space.variables[i].choices;
    if (choices.empty()) chosen[i] = 1;
    while (chosen[i] + 1 < choices.size() &&
           (choices[chosen[i]]->claims || choices[chosen[i]]->kind == Configuration::Kind::in_place))
      ++chosen[i];
  }
  return chosen;
}

/// Flags (variables without choices) are set only as far as the choices of the nodes ask for them. False if these do
/// not go together.
bool set_flags(const LayoutSpace& space, std::vector<std::uint32_t>& chosen) {
  for (std::size_t i = 0; i < chosen.size(); ++i)
    if (space.variables[i].choices.empty()) chosen[i] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (const LayoutSpace::Factor& factor : space.factors) {
      if (space.at(factor, chosen) != LayoutSpace::impossible) continue;
      const auto clear_flag = [&](std::uint32_t variable) {
        return space.variables[variable].choices.empty() && chosen[variable] == 0;
      };
      const bool first = clear_flag(factor.first), second = clear_flag(factor.second);
      if (first == second) return false;
      chosen[first ? factor.first : factor.second] = 1;
      changed = true;
    }
  }
  return true;
}

/// The best layouts at these prices; null if there are none with what is forced.
std::shared_ptr<const LayoutAttempt> attempt_at(const LayoutSpace& space, const std::vector<double>& prices,
                                                EliminationCache& cache, LayoutStatistics& statistics,
                                                const EliminationOptions& options,
                                                std::span<const ForcedChoice> forced) {
  LayoutProblem problem = layout_problem(space, prices);
  for (const ForcedChoice& choice : forced) {
    const EliminationProblem::Variable variable = problem.variables[choice.variable];
    TASO_CHECK(choice.value < space.variables[choice.variable].size(), "a choice that a node does not have");
    if (variable == LayoutProblem::none) continue;
    std::vector<double> table(space.variables[choice.variable].size(), EliminationProblem::forbidden_cost);
    table[choice.value] = 0;
    problem.problem.add_factor(std::span(&variable, 1), table);
  }
  const EliminationResult result = cache.minimize(problem.problem, options);
  statistics.parts_solved = cache.solved();
  statistics.parts_reused = cache.reused();
  ++statistics.solved;
  statistics.width = std::max(statistics.width, result.width);
  statistics.largest_table = std::max(statistics.largest_table, result.largest_table);
  const bool possible = result.cost < EliminationProblem::forbidden_cost;
  TASO_CHECK(possible || !result.exact || !forced.empty(), "a graph without possible layouts");
  if (!possible && !forced.empty()) return nullptr;
  auto attempt = std::make_shared<LayoutAttempt>();
  attempt->prices = prices;
  attempt->maximum_table = options.maximum_table;
  attempt->exact = result.exact;
  attempt->lower_bound = result.lower_bound;
  attempt->chosen.assign(space.variables.size(), 0);
  for (std::size_t i = 0; i < attempt->chosen.size(); ++i)
    if (problem.variables[i] != LayoutProblem::none) attempt->chosen[i] = result.assignment[problem.variables[i]];
  if (!result.exact && !set_flags(space, attempt->chosen)) {
    if (!forced.empty()) return nullptr;
    attempt->chosen = plain_choice(space);
  }
  return attempt;
}

}  // namespace

void LayoutStatistics::add(const LayoutStatistics& other) {
  problems += other.problems;
  solved += other.solved;
  parts_solved += other.parts_solved;
  parts_reused += other.parts_reused;
  inexact += other.inexact;
  largest_gap = std::max(largest_gap, other.largest_gap);
  width = std::max(width, other.width);
  largest_table = std::max(largest_table, other.largest_table);
  moves_tried += other.moves_tried;
  moves_kept += other.moves_kept;
  moves_ended += other.moves_ended;
  seconds += other.seconds;
}

LayoutProblem layout_problem(const LayoutSpace& space, const std::vector<double>& prices) {
  using Variable = EliminationProblem::Variable;
  LayoutProblem made;
  made.problem.reserve(space.variables.size(), space.factors.size(), 2 * space.factors.size(), space.codes.size());
  made.variables.reserve(space.variables.size());
  for (const LayoutSpace::Variable& variable : space.variables)
    made.variables.push_back(variable.size() == 1 ? LayoutProblem::none : made.problem.add_variable(variable.size()));
  std::vector<double> table;
  for (const LayoutSpace::Factor& factor : space.factors) {
    table.clear();
    for (const LayoutSpace::Code code : space.table(factor))
      table.push_back(code == LayoutSpace::nothing      ? 0
                      : code == LayoutSpace::impossible ? EliminationProblem::forbidden_cost
                                                        : prices[code - LayoutSpace::first_kernel]);
    // A variable of one value drops out: the table is the same without it.
    std::array<Variable, 2> scope{};
    std::size_t rank = 0;
    for (const std::uint32_t variable : {factor.first, factor.second}) {
      if (variable == factor.second && factor.first == factor.second && rank > 0) continue;
      if (made.variables[variable] != LayoutProblem::none) scope[rank++] = made.variables[variable];
    }
    made.problem.add_factor(std::span<const Variable>(scope.data(), rank), table);
  }
  return made;
}

Expected<double> choose_layouts(KernelPlan& plan, const PriceList& prices, double limit, EliminationCache& cache,
                                LayoutStatistics& statistics, const EliminationOptions& options,
                                std::span<const ForcedChoice> forced) {
  using Clock = std::chrono::steady_clock;
  const OpenPlan& open = *plan.open;
  const LayoutSpace& space = open.space;
  auto start = Clock::now();
  const auto pause = [&] { statistics.seconds += std::chrono::duration<double>(Clock::now() - start).count(); };
  std::vector<double> values(open.kernels.size());
  std::vector<char> known(open.kernels.size());
  for (std::size_t i = 0; i < open.kernels.size(); ++i) {
    const Price price = prices.look_up(*open.kernels[i]);
    values[i] = price.value;
    known[i] = price.known ? 1 : 0;
  }
  ++statistics.problems;
  for (;;) {
    const std::shared_ptr<const LayoutAttempt> attempt =
        plan.attempt && plan.attempt->prices == values && plan.attempt->maximum_table == options.maximum_table
            ? std::move(plan.attempt)
            : attempt_at(space, values, cache, statistics, options, forced);
    plan.attempt.reset();
    if (!attempt) {
      pause();
      return std::numeric_limits<double>::infinity();
    }
    std::vector<Launch> launches;
    std::vector<std::size_t> missing;
    double sum = 0;
    for (const LayoutSpace::Factor& factor : space.factors) {
      const LayoutSpace::Code code = space.at(factor, attempt->chosen);
      if (code < LayoutSpace::first_kernel) continue;
      const std::size_t kernel = code - LayoutSpace::first_kernel;
      launches.push_back({open.kernels[kernel], factor.node});
      sum += values[kernel];
      if (known[kernel] == 0 && std::find(missing.begin(), missing.end(), kernel) == missing.end())
        missing.push_back(kernel);
    }
    if (attempt->exact && sum >= limit) {
      pause();
      return sum;
    }
    if (missing.empty()) {
      if (!attempt->exact) {
        ++statistics.inexact;
        if (sum > 0) statistics.largest_gap = std::max(statistics.largest_gap, (sum - attempt->lower_bound) / sum);
      }
      plan.launches = std::move(launches);
      plan.layouts = std::make_shared<const LayoutAssignment>(space.assignment(attempt->chosen));
      pause();
      return sum;
    }
    pause();
    for (const std::size_t kernel : missing) {
      const Expected<Price> found = prices.find_out(*open.kernels[kernel]);
      if (!found) {
        plan.attempt = attempt;
        return found.error();
      }
      values[kernel] = found->value;
      known[kernel] = found->known ? 1 : 0;
    }
    start = Clock::now();
  }
}

Expected<RecordedLayouts> recorded_layouts(const Graph& graph, const Target& target, const CostDatabase& costs) {
  const CostGrid grid;
  TASO_ASSIGN(KernelPlan plan, target.open_plan(graph));
  if (!plan.open) return RecordedLayouts{};
  PriceList prices;
  prices.look_up = [&](const KernelInfo& kernel) -> Price {
    const std::optional<double> seconds = costs.find("kernel", kernel.key);
    return seconds ? Price{grid(*seconds * 1e6), true} : Price{CostGrid::prohibitive, false};
  };
  prices.find_out = [](const KernelInfo&) -> Expected<Price> { return Error{ErrorCode::cost_missing, "", {}}; };
  EliminationCache cache;
  LayoutStatistics statistics;
  constexpr double no_limit = std::numeric_limits<double>::infinity();
  const Expected<double> cost = choose_layouts(plan, prices, no_limit, cache, statistics);
  if (!cost && cost.error().code == ErrorCode::cost_missing) return RecordedLayouts{};
  if (!cost) return cost.error();
  if (!target.fuses()) return RecordedLayouts{true, plan.layouts};
  // As the search does: with what is fused the rule's layouts may be cheaper, or those that moves lead to.
  const auto total = [&](const KernelPlan& of, double limit) -> Expected<double> {
    double sum = 0;
    for (const Launch& launch : of.launches) {
      const Price price = prices.look_up(*launch.kernel);
      if (!price.known) return Error{ErrorCode::cost_missing, "", {}};
      sum += price.value;
      if (sum >= limit) break;
    }
    return sum;
  };
  RecordedLayouts recorded{true, plan.layouts};
  TASO_RETURN_IF_ERROR(target.fuse(graph, plan));
  TASO_ASSIGN(const KernelPlan of_rule, target.plan(graph));
  const Expected<double> chosen = total(plan, no_limit), other = total(of_rule, no_limit);
  double best = chosen ? *chosen : no_limit;
  if (other && *other < best) {
    recorded.layouts = nullptr;
    best = *other;
  }
  TASO_ASSIGN(const std::optional<PricedPlan> moved,
              cheaper_by_moves(graph, target, prices, total, best, cache, statistics));
  if (moved) recorded.layouts = moved->plan.layouts;
  return recorded;
}

}  // namespace taso
