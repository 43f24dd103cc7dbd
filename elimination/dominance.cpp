#include "elimination/dominance.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
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
    if (values.size() == 1 || factors_of_[variable].empty()) return std::exchange(values, {values[0]}).size() > 1;
    // All costs, value by value and factor by factor, and where each ends.
    std::vector<double> costs;
    std::vector<std::size_t> ends;
    for (const std::uint32_t value : values)
      for (const std::uint32_t factor : factors_of_[variable]) {
        append(problem_.factor(factor), variable, value, costs);
        ends.push_back(costs.size());
      }
    const Hash128 key = Hasher()
                            .add(hash_bytes(std::as_bytes(std::span(costs))))
                            .add(hash_bytes(std::as_bytes(std::span(ends))))
                            .finish();
    const auto [place, is_new] = known_.try_emplace(key);
    if (is_new) place->second = undominated(values.size(), costs, ends);
    std::vector<std::uint32_t> left;
    for (const std::uint32_t position : place->second) left.push_back(values[position]);
    const bool fewer = left.size() < values.size();
    values = std::move(left);
    return fewer;
  }

  /// Of `count` values: the positions of those that stay, ascending.
  static std::vector<std::uint32_t> undominated(std::size_t count, std::span<const double> costs,
                                                std::span<const std::size_t> ends) {
    const std::size_t factors = ends.size() / count;
    std::vector<Row> rows;
    std::unordered_set<Hash128> known;
    for (std::uint32_t i = 0; i < count; ++i) {
      Row row(i, costs, ends.subspan(i * factors, factors), i == 0 ? 0 : ends[i * factors - 1]);
      if (known.insert(hash_bytes(std::as_bytes(row.costs))).second) rows.push_back(std::move(row));
    }
    std::vector<std::uint32_t> left;
    for (Row& row : rows) {
      // A value that is dropped dominates nothing any more: of two that dominate each other, one stays.
      row.is_dominated = std::any_of(rows.begin(), rows.end(), [&](const Row& other) {
        return &other != &row && !other.is_dominated && dominates(other, row);
      });
      if (!row.is_dominated) left.push_back(row.position);
    }
    return left;
  }

  /// All costs of a value, factor by factor.
  struct Row {
    Row(std::uint32_t number, std::span<const double> all, std::span<const std::size_t> all_ends, std::size_t begin)
        : position(number), costs(all.subspan(begin, all_ends.back() - begin)) {
      std::size_t from = 0;
      for (const std::size_t end : all_ends) {
        ends.push_back(end - begin);
        const auto [low, high] = std::minmax_element(costs.begin() + static_cast<std::ptrdiff_t>(from),
                                                     costs.begin() + static_cast<std::ptrdiff_t>(ends.back()));
        least.push_back(*low);
        greatest.push_back(*high);
        from = ends.back();
      }
      for (const double cost : costs)
        if (std::abs(cost) < EliminationProblem::forbidden_cost) largest = std::max(largest, std::abs(cost));
    }
    std::uint32_t position = 0;  ///< Of the value among those that were kept.
    bool is_dominated = false;
    std::span<const double> costs;
    std::vector<std::size_t> ends;        ///< Per factor: where its costs end.
    std::vector<double> least, greatest;  ///< Per factor.
    double largest = 0;                   ///< Of the finite costs, in absolute value.
  };

  static bool dominates(const Row& better, const Row& worse) {
    const std::size_t factors = better.ends.size();
    const double margin = std::max(better.largest, worse.largest) * 0x1p-40;
    // The most that a factor grows is no less than the growth of its least and of its greatest cost.
    double growth = 0;
    for (std::size_t f = 0; f < factors; ++f)
      growth += std::max(excess(better.least[f], worse.least[f]), excess(better.greatest[f], worse.greatest[f]));
    if (growth > margin) return false;
    growth = 0;
    bool in_each = true;
    std::size_t i = 0;
    for (std::size_t f = 0; f < factors; ++f) {
      double most = -EliminationProblem::forbidden_cost;
      for (; i < better.ends[f]; ++i) most = std::max(most, excess(better.costs[i], worse.costs[i]));
      growth += most;
      in_each = in_each && most <= 0;
    }
    return in_each || growth < -margin;
  }

  /// By how much one cost is larger than another; a forbidden one cannot get worse.
  static double excess(double a, double b) {
    if (b == EliminationProblem::forbidden_cost) return a == b ? 0 : -EliminationProblem::forbidden_cost;
    return a - b;
  }

  const EliminationProblem& problem_;
  std::vector<std::vector<std::uint32_t>> factors_of_;
  std::vector<std::vector<std::uint32_t>> kept_;
  std::unordered_map<Hash128, std::vector<std::uint32_t>> known_;  ///< By all costs of a variable: what stays.
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
