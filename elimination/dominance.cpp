#include "elimination/dominance.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "support/hash.h"

namespace taso {
namespace {

using Variable = EliminationProblem::Variable;

class Reduction {
 public:
  explicit Reduction(const EliminationProblem& problem) : problem_(problem), kept_(problem.variables()) {
    factors_of_.resize(problem.variables());
    for (std::uint32_t i = 0; i < problem.factors(); ++i)
      for (const Variable variable : problem.factor(i).scope) factors_of_[variable].push_back(i);
    for (Variable variable = 0; variable < problem.variables(); ++variable) {
      kept_[variable].resize(problem.size(variable));
      std::iota(kept_[variable].begin(), kept_[variable].end(), 0U);
    }
  }

  ReducedProblem run() {
    std::vector<char> open(problem_.variables(), 1);
    for (bool changed = true; changed;) {
      changed = false;
      for (Variable variable = 0; variable < open.size(); ++variable) {
        if (std::exchange(open[variable], 0) == 0 || !reduce(variable)) continue;
        changed = true;  // fewer combinations to compare for its neighbours
        for (const std::uint32_t factor : factors_of_[variable])
          for (const Variable other : problem_.factor(factor).scope) open[other] |= other != variable ? 1 : 0;
      }
    }
    ReducedProblem reduced;
    for (const std::vector<std::uint32_t>& values : kept_)
      reduced.problem.add_variable(static_cast<std::uint32_t>(values.size()));
    std::vector<double> table;
    for (std::size_t i = 0; i < problem_.factors(); ++i) {
      const EliminationProblem::Factor factor = problem_.factor(i);
      table.clear();
      append(factor, no_variable, 0, table);
      reduced.problem.add_factor(factor.scope, table);
    }
    reduced.kept = std::move(kept_);
    return reduced;
  }

 private:
  static constexpr Variable no_variable = ~Variable{0};

  /// Appends a factor's costs at kept values, of `fixed` (if it is a variable) at `value` only.
  void append(const EliminationProblem::Factor& factor, Variable fixed, std::uint32_t value,
              std::vector<double>& to) const {
    const std::size_t rank = factor.scope.size();
    absl::InlinedVector<std::size_t, 4> strides(rank);
    std::size_t stride = 1;
    for (std::size_t axis = rank; axis-- > 0; stride *= problem_.size(factor.scope[axis])) strides[axis] = stride;
    const auto descend = [&](const auto& self, std::size_t axis, const double* table) -> void {
      if (axis == rank) {
        to.push_back(*table);
        return;
      }
      const Variable variable = factor.scope[axis];
      if (variable == fixed)
        self(self, axis + 1, table + value * strides[axis]);
      else if (axis + 1 == rank)
        for (const std::uint32_t other : kept_[variable]) to.push_back(table[other]);
      else
        for (const std::uint32_t other : kept_[variable]) self(self, axis + 1, table + other * strides[axis]);
    };
    descend(descend, 0, factor.table.data());
  }

  /// Drops dominated values of a variable; false if there are none.
  bool reduce(Variable variable) {
    std::vector<std::uint32_t>& values = kept_[variable];
    if (values.size() == 1) return false;
    // All costs of a value are one row; equal rows once.
    std::vector<std::vector<double>> rows;
    std::vector<std::uint32_t> different;
    std::unordered_set<Hash128> known;
    std::vector<double> row;
    for (const std::uint32_t value : values) {
      row.clear();
      for (const std::uint32_t factor : factors_of_[variable]) append(problem_.factor(factor), variable, value, row);
      if (!known.insert(hash_bytes(std::as_bytes(std::span(row)))).second) continue;
      rows.push_back(row);
      different.push_back(value);
    }
    std::vector<std::uint32_t> left;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      bool dominated = false;
      for (std::size_t j = 0; j < rows.size() && !dominated; ++j) dominated = i != j && no_worse(rows[j], rows[i]);
      if (!dominated) left.push_back(different[i]);
    }
    const bool fewer = left.size() < values.size();
    values = std::move(left);
    return fewer;
  }

  static bool no_worse(const std::vector<double>& a, const std::vector<double>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) { return x <= y; });
  }

  const EliminationProblem& problem_;
  std::vector<std::vector<std::uint32_t>> factors_of_;
  std::vector<std::vector<std::uint32_t>> kept_;
};

}  // namespace

std::vector<std::uint32_t> ReducedProblem::expand(const std::vector<std::uint32_t>& assignment) const {
  std::vector<std::uint32_t> given;
  for (std::size_t variable = 0; variable < assignment.size(); ++variable)
    given.push_back(kept[variable][assignment[variable]]);
  return given;
}

ReducedProblem without_dominated_values(const EliminationProblem& problem) { return Reduction(problem).run(); }

}  // namespace taso
