/// The choice of a partition as a factor graph: decisions with finitely many ways each, and costs of decisions by
/// themselves and of several together. What a decision is (the configuration of a layer, the sharding of a value) only
/// who builds the problem knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "elimination/elimination.h"

namespace taso {

class PartitionProblem {
 public:
  using Decision = EliminationProblem::Variable;
  /// Costs of all combinations of ways of some decisions, the last decision's ways running fastest. Shared: many layers
  /// are alike.
  using Table = std::shared_ptr<const std::vector<double>>;
  struct Cost {
    std::vector<Decision> scope;
    Table table;
  };

  /// A decision with `ways` (at least one) ways.
  Decision add_decision(std::uint32_t ways);
  /// Adds a term to the total cost. EliminationProblem::forbidden_cost forbids a combination.
  void add_cost(std::vector<Decision> scope, Table table);

  [[nodiscard]] std::size_t decisions() const { return ways_.size(); }
  [[nodiscard]] std::uint32_t ways(Decision decision) const { return ways_[decision]; }
  [[nodiscard]] const std::vector<Cost>& costs() const { return costs_; }
  /// The sum of all costs of a choice: a way per decision.
  [[nodiscard]] double cost(std::span<const std::uint32_t> choice) const;
  /// The same problem for the engine; it reads the tables of this one, which must stay.
  [[nodiscard]] EliminationProblem elimination_problem() const;

 private:
  std::vector<std::uint32_t> ways_;
  std::vector<Cost> costs_;
};

}  // namespace taso
