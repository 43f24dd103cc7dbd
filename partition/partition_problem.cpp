#include "partition/partition_problem.h"

#include <utility>

#include "support/status.h"

namespace taso {

PartitionProblem::Decision PartitionProblem::add_decision(std::uint32_t ways) {
  TASO_CHECK(ways > 0, "a decision without ways");
  ways_.push_back(ways);
  return static_cast<Decision>(ways_.size() - 1);
}

void PartitionProblem::add_cost(std::vector<Decision> scope, Table table) {
  TASO_CHECK(table->size() == table_size(ways_, scope), "a table that does not fit its decisions");
  costs_.push_back({std::move(scope), std::move(table)});
}

double PartitionProblem::cost(std::span<const std::uint32_t> choice) const {
  double sum = 0;
  for (const Cost& cost : costs_) {
    std::size_t at = 0;
    for (const Decision decision : cost.scope) at = at * ways_[decision] + choice[decision];
    sum += (*cost.table)[at];
  }
  return sum;
}

EliminationProblem PartitionProblem::elimination_problem() const {
  EliminationProblem problem;
  for (const std::uint32_t ways : ways_) problem.add_variable(ways);
  for (const Cost& cost : costs_) problem.share_factor(cost.scope, *cost.table);
  return problem;
}

}  // namespace taso
