#include "partition/priced_problem.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace taso {
namespace {

PartitionProblem::Table scaled(const PartitionProblem::Table& table, double factor) {
  auto made = std::make_shared<std::vector<double>>(*table);
  for (double& entry : *made) entry *= factor;
  return made;
}

}  // namespace

void PricedProblem::Restriction::fix(PartitionProblem::Decision decision, std::uint32_t way) { fixed_[decision] = way; }

void PricedProblem::Restriction::forbid(PartitionProblem::Decision decision, std::uint32_t way, std::uint32_t ways) {
  std::vector<char>& list = forbidden_[decision];
  list.resize(ways, 0);
  list[way] = 1;
}

bool PricedProblem::Restriction::is_fixed(PartitionProblem::Decision decision) const {
  if (fixed_.contains(decision)) return true;
  const auto found = forbidden_.find(decision);
  return found != forbidden_.end() && std::count(found->second.begin(), found->second.end(), 0) <= 1;
}

void PricedProblem::Restriction::add_to(PartitionProblem& problem) const {
  const auto add = [&](PartitionProblem::Decision decision, const auto& is_allowed) {
    auto table = std::make_shared<std::vector<double>>(problem.ways(decision), 0.0);
    for (std::uint32_t way = 0; way < table->size(); ++way)
      if (!is_allowed(way)) (*table)[way] = EliminationProblem::forbidden_cost;
    problem.add_cost({decision}, std::move(table));
  };
  for (const auto& [decision, ways] : forbidden_)
    add(decision, [&list = ways](std::uint32_t way) { return list[way] == 0; });
  for (const auto& [decision, fixed] : fixed_) add(decision, [only = fixed](std::uint32_t way) { return way == only; });
}

PartitionSolution PricedProblem::solve(const std::vector<Term>& terms, const ExactOptions& options,
                                       const Restriction* restriction) const {
  PartitionProblem priced = problem_;
  for (const Term& term : terms)
    for (const PartitionProblem::Cost& cost : *term.tables) priced.add_cost(cost.scope, scaled(cost.table, term.price));
  if (restriction != nullptr) restriction->add_to(priced);
  return solve_exact(priced, options);
}

PartitionSolution PricedProblem::least(const std::vector<PartitionProblem::Cost>& tables,
                                       const ExactOptions& options) const {
  PartitionProblem problem;
  for (PartitionProblem::Decision decision = 0; decision < problem_.decisions(); ++decision)
    problem.add_decision(problem_.ways(decision));
  std::map<const std::vector<double>*, PartitionProblem::Table> allowed;  // Null: everything is.
  for (const PartitionProblem::Cost& cost : problem_.costs()) {
    const auto [at, fresh] = allowed.try_emplace(cost.table.get());
    const auto is_forbidden = [](double entry) { return entry >= EliminationProblem::forbidden_cost; };
    if (fresh && std::any_of(cost.table->begin(), cost.table->end(), is_forbidden)) {
      auto table = std::make_shared<std::vector<double>>(cost.table->size(), 0.0);
      for (std::size_t i = 0; i < table->size(); ++i)
        if (is_forbidden((*cost.table)[i])) (*table)[i] = EliminationProblem::forbidden_cost;
      at->second = std::move(table);
    }
    if (at->second) problem.add_cost(cost.scope, at->second);
  }
  for (const PartitionProblem::Cost& cost : tables) problem.add_cost(cost.scope, cost.table);
  return solve_exact(problem, options);
}

double PricedProblem::entry(const PartitionProblem::Cost& cost, const PartitionProblem& problem, const Choice& choice) {
  std::size_t at = 0;
  for (const PartitionProblem::Decision decision : cost.scope) at = at * problem.ways(decision) + choice[decision];
  return (*cost.table)[at];
}

double PricedProblem::sum(const std::vector<PartitionProblem::Cost>& tables, const PartitionProblem& problem,
                          const Choice& choice) {
  double sum = 0;
  for (const PartitionProblem::Cost& cost : tables) sum += entry(cost, problem, choice);
  return sum;
}

}  // namespace taso
