/// What memory a plan takes on each device.
///
/// While an operator runs, a device holds: all its parts of weights; of each input of the graph that is read then or
/// later, what it reads of it; of each value that is alive (made, and not yet read for the last time, or an output)
/// its part of where the value is kept, or was made if that is not a decision; what the operator itself makes; and of
/// what it reads the parts that were fetched for it. A weight or input that several operators read in different parts
/// is stored in each of these parts that does not lie in another one; of a weight that is broadcast what it is made of.
/// Nothing is computed in the place of something else, and what kernels need besides is not counted.
#pragma once

#include <cstddef>
#include <vector>

#include "partition/partition_problem.h"
#include "partition/plan_problem.h"
#include "partition/planner.h"

namespace taso {

class PlanMemory {
 public:
  /// The problem is referred to.
  explicit PlanMemory(const PlanProblem& plan);

  /// Bytes of the device that holds most, while each operator runs, in the order of the plan.
  [[nodiscard]] std::vector<double> while_nodes_run(const PlanProblem::Choice& choice) const;
  /// What is stored of each weight, and the bytes of the device that stores most of all.
  [[nodiscard]] std::vector<StoredWeight> weights(const PlanProblem::Choice& choice, double& most) const;

  /// Tables whose sum is never more than what the last device holds while operator number `at` runs: all of it, but
  /// that a weight or an input with n readers counts 1/n of the part of each. (A cut of n indices into k pieces gives
  /// the last piece ceil(n / k), the most.)
  [[nodiscard]] std::vector<PartitionProblem::Cost> at_least(std::size_t at) const;
  /// Bytes of weights that some device stores, whatever is chosen.
  [[nodiscard]] double weights_at_least() const;

 private:
  /// While which operators a value is alive.
  struct Life {
    std::size_t begin = 0, end = 0;
  };
  [[nodiscard]] Life life_of(const PlannedValue& value) const;
  [[nodiscard]] Life life_of(const SuppliedValue& value) const;
  [[nodiscard]] std::size_t last_read(const std::vector<ValueReader>& readers, std::size_t none) const;
  void add_value(const PlannedValue& value, const PlanProblem::Choice& choice, std::size_t device,
                 std::vector<double>& changes) const;
  [[nodiscard]] double stored(const SuppliedValue& value, const PlanProblem::Choice& choice, std::size_t device) const;

  const PlanProblem& plan_;
  std::size_t devices_;
};

}  // namespace taso
