#include "partition/solve_exact.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "elimination/dominance.h"

namespace taso {
namespace {

/// Changes one variable at a time as long as that lowers the cost.
void descend(const EliminationProblem& problem, std::vector<std::uint32_t>& assignment) {
  using Variable = EliminationProblem::Variable;
  std::vector<std::vector<std::size_t>> factors_of(problem.variables());
  for (std::size_t i = 0; i < problem.factors(); ++i)
    for (const Variable variable : problem.factor(i).scope) factors_of[variable].push_back(i);
  const auto cost_around = [&](Variable variable) {
    double sum = 0;
    for (const std::size_t number : factors_of[variable]) {
      const EliminationProblem::Factor factor = problem.factor(number);
      std::size_t at = 0;
      for (const Variable other : factor.scope) at = at * problem.size(other) + assignment[other];
      sum += factor.table[at];
    }
    return sum;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (Variable variable = 0; variable < problem.variables(); ++variable) {
      std::uint32_t best = assignment[variable];
      double least = cost_around(variable);
      for (std::uint32_t value = 0; value < problem.size(variable); ++value) {
        assignment[variable] = value;
        const double cost = cost_around(variable);
        if (cost >= least) continue;
        least = cost;
        best = value;
        changed = true;
      }
      assignment[variable] = best;
    }
  }
}

using Variable = EliminationProblem::Variable;

/// The variables without which what is left can be solved exactly at little cost: those with the most neighbours, as
/// many as it takes.
std::vector<bool> cutset(const EliminationProblem& problem, const ExactOptions& options) {
  constexpr double most_combinations = 1e8;
  InteractionGraph graph = interaction_graph(problem);
  std::vector<bool> fixed(problem.variables(), false);
  for (;;) {
    const EliminationOrder order = elimination_order(graph, options.order);
    if (order.largest_table <= static_cast<double>(options.maximum_table) && order.combinations <= most_combinations)
      return fixed;
    Variable most = 0;
    for (Variable variable = 1; variable < graph.neighbours.size(); ++variable)
      if (graph.neighbours[variable].size() > graph.neighbours[most].size()) most = variable;
    if (graph.neighbours[most].empty()) return fixed;
    fixed[most] = true;
    graph.sizes[most] = 1;
    for (const Variable other : graph.neighbours[most]) std::erase(graph.neighbours[other], most);
    graph.neighbours[most].clear();
  }
}

/// The best assignment in which fixed variables have these values: the others are solved exactly (cutset conditioning,
/// Dechter 1990).
std::vector<std::uint32_t> conditioned(const EliminationProblem& problem, const std::vector<bool>& fixed,
                                       std::vector<std::uint32_t> assignment, const ExactOptions& options) {
  EliminationProblem rest;
  std::vector<Variable> place(problem.variables(), 0);
  for (Variable variable = 0; variable < problem.variables(); ++variable)
    if (!fixed[variable]) place[variable] = rest.add_variable(problem.size(variable));
  for (std::size_t number = 0; number < problem.factors(); ++number) {
    const EliminationProblem::Factor factor = problem.factor(number);
    std::vector<Variable> scope;
    for (const Variable variable : factor.scope)
      if (!fixed[variable]) scope.push_back(place[variable]);
    if (scope.empty()) continue;
    if (scope.size() == factor.scope.size()) {
      rest.share_factor(scope, factor.table);
      continue;
    }
    std::vector<double> table;
    for (std::size_t entry = 0; entry < factor.table.size(); ++entry) {
      bool fits = true;
      std::size_t left = entry;
      for (std::size_t i = factor.scope.size(); i-- > 0;) {
        const Variable variable = factor.scope[i];
        fits = fits && (!fixed[variable] || left % problem.size(variable) == assignment[variable]);
        left /= problem.size(variable);
      }
      if (fits) table.push_back(factor.table[entry]);
    }
    rest.add_factor(scope, table);
  }
  const EliminationOrder order = elimination_order(interaction_graph(rest), options.order);
  const EliminationResult result = minimize(rest, {.maximum_table = options.maximum_table,
                                                   .maximum_entries = options.maximum_entries,
                                                   .order = order.variables,
                                                   .parallel = options.parallel});
  for (Variable variable = 0; variable < problem.variables(); ++variable)
    if (!fixed[variable]) assignment[variable] = result.assignment[place[variable]];
  return assignment;
}

/// Improves an assignment: all but a cutset at once, then variables one by one, as long as that helps.
void improve(const EliminationProblem& problem, const std::vector<bool>& fixed, const ExactOptions& options,
             std::vector<std::uint32_t>& assignment) {
  constexpr int most_rounds = 8;
  descend(problem, assignment);
  for (int round = 0; round < most_rounds; ++round) {
    std::vector<std::uint32_t> better = conditioned(problem, fixed, assignment, options);
    descend(problem, better);
    if (problem.cost(better) >= problem.cost(assignment) * (1 - 1e-12)) return;
    assignment = std::move(better);
  }
}

}  // namespace

PartitionSolution solve_exact(const PartitionProblem& problem, const ExactOptions& options) {
  const EliminationProblem whole = problem.elimination_problem();
  PartitionSolution solution;
  solution.order = elimination_order(interaction_graph(whole), options.order);
  solution.ways = std::accumulate(whole.sizes().begin(), whole.sizes().end(), std::size_t{0});
  solution.kept_ways = solution.ways;
  EliminationOrder order = solution.order;
  std::optional<ReducedProblem> reduced;
  if (order.combinations >= options.dominance_from ||
      order.largest_table > static_cast<double>(options.maximum_table)) {
    reduced = without_dominated_values(whole);
    const auto sizes = reduced->problem.sizes();
    solution.kept_ways = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
    order = elimination_order(interaction_graph(reduced->problem), options.order);
  }
  const EliminationProblem& solved = reduced ? reduced->problem : whole;
  MessageCache cache;  // equal layers in equal surroundings have equal tables
  EliminationResult result = minimize(solved,
                                      {.maximum_table = options.maximum_table,
                                       .maximum_entries = options.maximum_entries,
                                       .order = order.variables,
                                       .parallel = options.parallel},
                                      &cache);
  solution.choice = reduced ? reduced->expand(result.assignment) : std::move(result.assignment);
  solution.cost = problem.cost(solution.choice);
  if (!result.exact) {
    std::vector<std::vector<std::uint32_t>> starts = options.known;
    starts.insert(starts.begin(), solution.choice);
    const std::vector<bool> fixed = cutset(whole, options);
    for (std::vector<std::uint32_t>& start : starts) {
      improve(whole, fixed, options, start);
      const double cost = problem.cost(start);
      if (cost > solution.cost) continue;
      solution.cost = cost;
      solution.choice = std::move(start);
    }
  }
  solution.lower_bound = result.lower_bound;
  solution.exact = result.exact || solution.cost <= solution.lower_bound;
  solution.largest_table = result.largest_table;
  return solution;
}

}  // namespace taso
