/// A problem to whose costs other tables are added at a price, and some of whose ways are taken away.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "partition/partition_problem.h"
#include "partition/solve_exact.h"

namespace taso {

class PricedProblem {
 public:
  using Choice = std::vector<std::uint32_t>;
  /// Tables, and what a unit of them costs.
  struct Term {
    const std::vector<PartitionProblem::Cost>* tables = nullptr;
    double price = 0;
  };

  /// Ways that decisions must not go.
  class Restriction {
   public:
    void fix(PartitionProblem::Decision decision, std::uint32_t way);
    /// `ways`: how many the decision has.
    void forbid(PartitionProblem::Decision decision, std::uint32_t way, std::uint32_t ways);
    /// No more than one way is left.
    [[nodiscard]] bool is_fixed(PartitionProblem::Decision decision) const;
    void add_to(PartitionProblem& problem) const;

   private:
    std::map<PartitionProblem::Decision, std::vector<char>> forbidden_;  ///< Per way.
    std::map<PartitionProblem::Decision, std::uint32_t> fixed_;
  };

  /// The problem is referred to.
  explicit PricedProblem(const PartitionProblem& problem) : problem_(problem) {}

  /// Of the costs and all terms together. Costs and bound of the solution hold the terms.
  [[nodiscard]] PartitionSolution solve(const std::vector<Term>& terms, const ExactOptions& options,
                                        const Restriction* restriction = nullptr) const;
  /// Of these tables alone, among the choices that the problem allows.
  [[nodiscard]] PartitionSolution least(const std::vector<PartitionProblem::Cost>& tables,
                                        const ExactOptions& options) const;

  /// An entry of a table, and the sum of such, at a choice.
  [[nodiscard]] static double entry(const PartitionProblem::Cost& cost, const PartitionProblem& problem,
                                    const Choice& choice);
  [[nodiscard]] static double sum(const std::vector<PartitionProblem::Cost>& tables, const PartitionProblem& problem,
                                  const Choice& choice);

 private:
  const PartitionProblem& problem_;
};

}  // namespace taso
