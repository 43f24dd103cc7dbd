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
    for (std::vector<std::uint32_t>& start : starts) {
      descend(whole, start);
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
