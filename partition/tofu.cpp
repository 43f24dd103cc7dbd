#include "partition/tofu.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace taso {
namespace {

TofuPlan tofu_plan_of(const TofuProblem& problem, const ExactOptions& options) {
  PartitionSolution solution = solve_exact(problem.problem(), options);
  TofuPlan plan;
  plan.decisions = problem.decisions_of(solution.choice);
  plan.choice = std::move(solution.choice);
  plan.bytes = solution.cost;
  plan.lower_bound = solution.lower_bound;
  plan.exact = solution.exact && problem.complete();
  plan.complete = problem.complete();
  plan.decided = problem.problem().decisions();
  plan.ways = solution.ways;
  plan.order = solution.order;
  return plan;
}

}  // namespace

TofuPlan tofu_recursive(const Graph& graph, const TofuCoarsening& coarsening, const TilingSteps& steps,
                        StrategyTable& strategies, const TofuOptions& options) {
  TofuPlan plan;
  TofuDecisions decided;
  std::vector<double> deltas;
  std::size_t ways = 0;
  bool complete = true;
  for (std::size_t step = 0; step < std::max<std::size_t>(steps.size(), 1); ++step) {
    const TilingSteps first(steps.begin(),
                            steps.begin() + static_cast<std::ptrdiff_t>(std::min(step + 1, steps.size())));
    const double before = plan.bytes;
    plan = tofu_plan_of(TofuProblem(graph, coarsening, first, options.replicate, strategies, decided), options.solver);
    decided = plan.decisions;
    deltas.push_back(plan.bytes - before);
    ways += plan.ways;
    complete = complete && plan.complete;
  }
  plan.steps = std::move(deltas);
  plan.ways = ways;
  plan.complete = complete;
  if (steps.size() > 1) {
    plan.exact = false;
    plan.lower_bound = 0;
  }
  return plan;
}

TofuPlan tofu_exact(const Graph& graph, const TofuCoarsening& coarsening, const TilingSteps& steps,
                    StrategyTable& strategies, const TofuOptions& options, const TofuDecisions& known) {
  const TofuProblem problem(graph, coarsening, steps, options.replicate, strategies);
  ExactOptions solver = options.solver;
  if (!known.tilings.empty()) solver.known.push_back(problem.choice_of(known));
  return tofu_plan_of(problem, solver);
}

}  // namespace taso
