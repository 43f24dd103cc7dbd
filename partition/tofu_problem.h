/// Tofu's own space of partitions and its cost (Wang, Huang, Li 2019, sections 4 and 5): what is compared with the
/// space and the costs of partition/planner.h.
///
/// A decision per class of tensors (partition/tofu_coarsening.h): its tiling, inputs and weights included. A decision
/// per class of operators: its configuration, every step used for one of its strategies (partition-n-reduce); none
/// repeats, unless it cannot be cut in some step. The cost is bytes that devices receive, all together, summed over
/// operators: of each operand what is needed and not owned, of each result what is kept elsewhere than where it was
/// made, partial results being reduced where they are kept, or kept in another tiling first and fetched from there,
/// whichever is less. Nothing remembers what an operand's other readers fetched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "partition/node_configurations.h"
#include "partition/partition_problem.h"
#include "partition/tofu_coarsening.h"
#include "partition/tofu_tiling.h"

namespace taso {

/// What earlier steps decided, per class.
struct TofuDecisions {
  std::vector<TensorTiling> tilings;
  std::vector<std::vector<AxisUse>> uses;
};

class TofuProblem {
 public:
  /// The problem of all steps, `decided` being what the first ones did. The graph and the coarsening are referred to.
  TofuProblem(const Graph& graph, const TofuCoarsening& coarsening, const TilingSteps& steps, bool replicate,
              StrategyTable& strategies, const TofuDecisions& decided = {});
  ~TofuProblem();

  /// The decision of the tiling of class c is number c, that of operators of class c is number (classes of tensors) +
  /// c.
  [[nodiscard]] const PartitionProblem& problem() const { return problem_; }
  [[nodiscard]] const std::vector<TensorTiling>& tilings(std::size_t tensor_class) const;
  [[nodiscard]] const std::vector<NodeConfiguration>& configurations(std::size_t operator_class) const;
  [[nodiscard]] TofuDecisions decisions_of(const std::vector<std::uint32_t>& choice) const;
  /// The choice that is these decisions. Operators that have no such configuration repeat: of few indices, the first
  /// cuts may have left one whole where others do not.
  [[nodiscard]] std::vector<std::uint32_t> choice_of(const TofuDecisions& decisions) const;
  [[nodiscard]] bool complete() const { return complete_; }  ///< All configurations were made.

 private:
  struct Tiled;
  struct Configured;
  class Builder;
  PartitionProblem problem_;
  std::vector<std::shared_ptr<const Tiled>> tensors_;
  std::vector<std::shared_ptr<const Configured>> operators_;
  bool complete_ = true;
};

}  // namespace taso
