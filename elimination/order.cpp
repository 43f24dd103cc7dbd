#include "elimination/order.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace taso {
namespace {

using Variable = EliminationProblem::Variable;

/// By which variables are compared, and the variable.
using Key = std::tuple<double, std::size_t, Variable>;

class Elimination {
 public:
  Elimination(const InteractionGraph& graph, OrderRule rule)
      : sizes_(graph.sizes), neighbours_(graph.neighbours), rule_(rule) {}

  EliminationOrder run() {
    const std::size_t count = sizes_.size();
    if (rule_ == OrderRule::breadth_first) {
      for (const Variable variable : breadth_first()) eliminate(variable);
      return std::move(made_);
    }
    std::set<Key> queue;
    std::vector<Key> keys(count);
    for (Variable variable = 0; variable < count; ++variable) queue.insert(keys[variable] = key_of(variable));
    while (!queue.empty()) {
      const Variable variable = std::get<Variable>(*queue.begin());
      queue.erase(queue.begin());
      const std::vector<Variable> neighbours = neighbours_[variable];
      eliminate(variable);
      for (const Variable changed : changed_by(neighbours)) {
        queue.erase(keys[changed]);
        queue.insert(keys[changed] = key_of(changed));
      }
    }
    return std::move(made_);
  }

 private:
  [[nodiscard]] double table_over(const std::vector<Variable>& variables) const {
    double entries = 1;
    for (const Variable variable : variables) entries *= sizes_[variable];
    return entries;
  }

  [[nodiscard]] bool are_neighbours(Variable a, Variable b) const {
    return std::binary_search(neighbours_[a].begin(), neighbours_[a].end(), b);
  }

  [[nodiscard]] Key key_of(Variable variable) const {
    const std::vector<Variable>& neighbours = neighbours_[variable];
    switch (rule_) {
      case OrderRule::smallest_table:
        return {table_over(neighbours), neighbours.size(), variable};
      case OrderRule::min_fill: {
        std::size_t missing = 0;
        for (std::size_t i = 0; i < neighbours.size(); ++i)
          for (std::size_t j = i + 1; j < neighbours.size(); ++j)
            missing += are_neighbours(neighbours[i], neighbours[j]) ? 0 : 1;
        return {0, missing, variable};
      }
      case OrderRule::min_degree:
      case OrderRule::breadth_first:
        break;
    }
    return {0, neighbours.size(), variable};
  }

  /// Variables whose key may change when a variable with these neighbours goes: pairs that are joined count for others.
  [[nodiscard]] std::vector<Variable> changed_by(const std::vector<Variable>& neighbours) const {
    std::vector<Variable> changed = neighbours;
    if (rule_ == OrderRule::min_fill) {
      for (const Variable neighbour : neighbours)
        changed.insert(changed.end(), neighbours_[neighbour].begin(), neighbours_[neighbour].end());
      std::sort(changed.begin(), changed.end());
      changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
    }
    return changed;
  }

  void eliminate(Variable variable) {
    const std::vector<Variable> neighbours = std::exchange(neighbours_[variable], {});
    const double table = table_over(neighbours), combinations = table * sizes_[variable];
    made_.variables.push_back(variable);
    made_.width = std::max(made_.width, neighbours.size());
    made_.largest_table = std::max(made_.largest_table, table);
    made_.largest_combinations = std::max(made_.largest_combinations, combinations);
    made_.combinations += combinations;
    for (const Variable neighbour : neighbours) {
      std::vector<Variable> joined;
      std::set_union(neighbours_[neighbour].begin(), neighbours_[neighbour].end(), neighbours.begin(), neighbours.end(),
                     std::back_inserter(joined));
      std::erase_if(joined, [&](Variable other) { return other == neighbour || other == variable; });
      neighbours_[neighbour] = std::move(joined);
    }
  }

  [[nodiscard]] std::vector<Variable> breadth_first() const {
    std::vector<Variable> found;
    std::vector<char> is_found(sizes_.size(), 0);
    for (Variable start = 0; start < sizes_.size(); ++start) {
      if (std::exchange(is_found[start], 1) != 0) continue;
      std::size_t next = found.size();
      found.push_back(start);
      for (; next < found.size(); ++next)
        for (const Variable neighbour : neighbours_[found[next]])
          if (std::exchange(is_found[neighbour], 1) == 0) found.push_back(neighbour);
    }
    return found;
  }

  const std::vector<std::uint32_t>& sizes_;
  std::vector<std::vector<Variable>> neighbours_;
  OrderRule rule_;
  EliminationOrder made_;
};

}  // namespace

InteractionGraph interaction_graph(const EliminationProblem& problem) {
  InteractionGraph graph{{problem.sizes().begin(), problem.sizes().end()}, {}};
  graph.neighbours.resize(problem.variables());
  for (std::size_t i = 0; i < problem.factors(); ++i)
    for (const Variable a : problem.factor(i).scope)
      for (const Variable b : problem.factor(i).scope)
        if (a != b) graph.neighbours[a].push_back(b);
  for (std::vector<Variable>& neighbours : graph.neighbours) {
    std::sort(neighbours.begin(), neighbours.end());
    neighbours.erase(std::unique(neighbours.begin(), neighbours.end()), neighbours.end());
  }
  return graph;
}

EliminationOrder elimination_order(const InteractionGraph& graph, OrderRule rule) {
  return Elimination(graph, rule).run();
}

}  // namespace taso
