#include "optimizer/elimination.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <tuple>
#include <utility>

#include "support/reversed.h"
#include "support/status.h"

namespace taso {
namespace {

using Variable = EliminationProblem::Variable;
using Factor = EliminationProblem::Factor;

/// The product of domain sizes, saturating: sizes of tables that are never made may overflow.
std::size_t table_size(std::span<const std::uint32_t> sizes, std::span<const Variable> scope) {
  std::size_t size = 1;
  for (const Variable variable : scope)
    if (__builtin_mul_overflow(size, static_cast<std::size_t>(sizes[variable]), &size))
      return std::numeric_limits<std::size_t>::max();
  return size;
}

constexpr Variable no_variable = ~Variable{0};

class Eliminator {
 public:
  /// With a cache, tables are made up to constants.
  Eliminator(std::span<const std::uint32_t> sizes, const EliminationOptions& options, MessageCache* cache)
      : sizes_(sizes),
        options_(options),
        cache_(cache),
        of_variable_(sizes.size()),
        neighbours_(sizes.size()),
        versions_(sizes.size(), 0) {}

  /// Takes a term into account: it waits at all its variables.
  void add(const EliminationTerm& added) {
    terms_.push_back(added);
    const EliminationTerm* term = &terms_.back();
    for (const Variable variable : term->scope) {
      of_variable_[variable].push_back(term);
      for (const Variable other : term->scope) {
        auto& list = neighbours_[variable];
        if (other == variable) continue;
        const auto place = std::lower_bound(list.begin(), list.end(), other);
        if (place == list.end() || *place != other) list.insert(place, other);
      }
    }
  }

  /// All but `cost`.
  EliminationResult run() {
    const std::vector<Variable> order = eliminate_all(no_variable);
    result_.lower_bound = constant_;
    result_.assignment.assign(sizes_.size(), 0);
    for (const Variable variable : reversed(order)) assign(variable);
    return std::move(result_);
  }

  RootedResult run_rooted(Variable root) {
    rooted_ = true;
    const std::vector<Variable> order = eliminate_all(root);
    RootedResult rooted;
    rooted.exact = result_.exact;
    if (!rooted.exact) return rooted;
    rooted.width = result_.width;
    rooted.largest_table = result_.largest_table;
    rooted.table.assign(sizes_[root], constant_);
    for (std::uint32_t value = 0; value < sizes_[root]; ++value) {
      for (const EliminationTerm* term : of_variable_[root]) rooted.table[value] += term->table[value];
      result_.assignment.assign(sizes_.size(), 0);
      result_.assignment[root] = value;
      for (const Variable variable : reversed(order)) assign(variable);
      rooted.assignments.push_back(result_.assignment);
    }
    return rooted;
  }

 private:
  /// All variables but `root`, in the order of elimination.
  std::vector<Variable> eliminate_all(Variable root) {
    struct Entry {
      std::size_t table, neighbours;  // smallest first
      Variable variable;
      std::uint32_t version;
      bool operator>(const Entry& other) const {
        return std::tie(table, neighbours, variable) > std::tie(other.table, other.neighbours, other.variable);
      }
    };
    const auto entry_of = [&](Variable variable) {
      const std::vector<Variable>& neighbours = neighbours_[variable];
      return Entry{table_size(sizes_, neighbours), neighbours.size(), variable, ++versions_[variable]};
    };
    std::vector<Entry> entries;
    entries.reserve(2 * sizes_.size());
    for (Variable variable = 0; variable < sizes_.size(); ++variable)
      if (variable != root) entries.push_back(entry_of(variable));
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue(std::greater<>(), std::move(entries));
    std::vector<Variable> order;
    order.reserve(sizes_.size());
    while (!queue.empty() && (result_.exact || !rooted_)) {
      const Entry entry = queue.top();
      queue.pop();
      const Variable variable = entry.variable;
      if (entry.version != versions_[variable]) continue;  // an entry of before
      ++versions_[variable];
      order.push_back(variable);
      eliminate(variable);
      for (const Variable neighbour : neighbours_[variable])
        if (neighbour != root) queue.push(entry_of(neighbour));
    }
    return order;
  }

  void eliminate(Variable variable) {
    std::vector<const EliminationTerm*>& bucket = of_variable_[variable];
    result_.width = std::max(result_.width, neighbours_[variable].size());
    // Its factors leave the other variables; `bucket` stays for assign().
    for (const Variable neighbour : neighbours_[variable]) {
      std::erase_if(of_variable_[neighbour], [&](const EliminationTerm* factor) {
        return std::find(factor->scope.begin(), factor->scope.end(), variable) != factor->scope.end();
      });
      std::erase(neighbours_[neighbour], variable);
    }
    if (table_size(sizes_, neighbours_[variable]) <= options_.maximum_table) {
      message(variable, bucket, neighbours_[variable]);
      return;
    }
    result_.exact = false;
    if (rooted_) return;
    // Mini-buckets: the factors with most variables first, each into the first group that it fits.
    std::vector<const EliminationTerm*> sorted = bucket;
    std::stable_sort(sorted.begin(), sorted.end(), [](const EliminationTerm* a, const EliminationTerm* b) {
      return a->scope.size() > b->scope.size();
    });
    std::vector<std::pair<std::vector<const EliminationTerm*>, std::vector<Variable>>> groups;
    for (const EliminationTerm* factor : sorted) {
      std::vector<Variable> scope(factor->scope.begin(), factor->scope.end());
      std::erase(scope, variable);
      std::sort(scope.begin(), scope.end());
      bool placed = false;
      for (auto& [members, variables] : groups) {
        std::vector<Variable> together;
        std::set_union(variables.begin(), variables.end(), scope.begin(), scope.end(), std::back_inserter(together));
        if (table_size(sizes_, together) > options_.maximum_table) continue;
        members.push_back(factor);
        variables = std::move(together);
        placed = true;
        break;
      }
      if (!placed) groups.push_back({{factor}, std::move(scope)});
    }
    // Neighbours in different groups are none of each other any more: links are made anew by the messages.
    for (const auto& [members, variables] : groups) message(variable, members, variables);
  }

  /// Adds the minimum over `variable` of the sum of `members`, a factor over `scope` (ascending).
  void message(Variable variable, const std::vector<const EliminationTerm*>& members,
               const std::vector<Variable>& scope) {
    const std::size_t entries = table_size(sizes_, scope);
    const std::size_t rank = scope.size();
    result_.largest_table = std::max(result_.largest_table, entries);
    const auto axis_of = [&](Variable other) {
      return other == variable
                 ? rank
                 : static_cast<std::size_t>(std::lower_bound(scope.begin(), scope.end(), other) - scope.begin());
    };
    Hash128 key;
    std::shared_ptr<const MessageCache::Message> made;
    if (cache_ != nullptr) {
      std::vector<std::uint64_t> content = {sizes_[variable], rank};
      for (const Variable other : scope) content.push_back(sizes_[other]);
      for (const EliminationTerm* member : members) {
        content.insert(content.end(), {member->hash.high, member->hash.low});
        for (const Variable other : member->scope) content.push_back(axis_of(other));
      }
      key = hash_bytes(std::as_bytes(std::span(content)));
      made = cache_->find(key);
    }
    if (!made) {
      auto fresh = std::make_shared<MessageCache::Message>();
      fresh->table = minimum(variable, members, scope, entries, axis_of);
      if (cache_ != nullptr) {
        const double least = *std::min_element(fresh->table.begin(), fresh->table.end());
        if (least < EliminationProblem::kForbidden) {
          fresh->least = least;
          for (double& cost : fresh->table) cost -= least;
        }
        fresh->hash = hash_bytes(std::as_bytes(std::span(fresh->table)));
        cache_->insert(key, fresh);
      }
      made = std::move(fresh);
    }
    constant_ += made->least;
    if (scope.empty())
      constant_ += made->table[0];
    else
      add({messages_.emplace_back(scope, made).first, made->table, made->hash});
  }

  template <class AxisOf>
  std::vector<double> minimum(Variable variable, const std::vector<const EliminationTerm*>& members,
                              const std::vector<Variable>& scope, std::size_t entries, const AxisOf& axis_of) const {
    std::vector<double> table(entries);
    // How far each member's table advances along each variable of the scope, and along `variable`.
    const std::size_t rank = scope.size();
    std::vector<std::size_t> strides(members.size() * (rank + 1), 0), at(members.size(), 0);
    for (std::size_t m = 0; m < members.size(); ++m) {
      std::size_t stride = 1;
      for (std::size_t i = members[m]->scope.size(); i-- > 0;) {
        strides[m * (rank + 1) + axis_of(members[m]->scope[i])] = stride;
        stride *= sizes_[members[m]->scope[i]];
      }
    }
    std::vector<std::uint32_t> index(rank, 0);
    const std::uint32_t values = sizes_[variable];
    for (std::size_t entry = 0; entry < entries; ++entry) {
      double best = EliminationProblem::kForbidden;
      for (std::uint32_t value = 0; value < values; ++value) {
        double sum = 0;
        for (std::size_t m = 0; m < members.size(); ++m)
          sum += members[m]->table[at[m] + value * strides[m * (rank + 1) + rank]];
        best = std::min(best, sum);
      }
      table[entry] = best;
      for (std::size_t axis = rank; axis-- > 0;) {
        const std::uint32_t size = sizes_[scope[axis]];
        const bool carry = ++index[axis] == size;
        for (std::size_t m = 0; m < members.size(); ++m) {
          at[m] += strides[m * (rank + 1) + axis];
          if (carry) at[m] -= strides[m * (rank + 1) + axis] * size;
        }
        if (!carry) break;
        index[axis] = 0;
      }
    }
    return table;
  }

  /// The value of least cost given the variables eliminated later.
  void assign(Variable variable) {
    double best = EliminationProblem::kForbidden;
    std::uint32_t chosen = 0;
    for (std::uint32_t value = 0; value < sizes_[variable]; ++value) {
      result_.assignment[variable] = value;
      double sum = 0;
      for (const EliminationTerm* factor : of_variable_[variable]) {
        std::size_t at = 0;
        for (const Variable other : factor->scope) at = at * sizes_[other] + result_.assignment[other];
        sum += factor->table[at];
      }
      if (sum < best) {
        best = sum;
        chosen = value;
      }
    }
    result_.assignment[variable] = chosen;
  }

  std::span<const std::uint32_t> sizes_;
  const EliminationOptions& options_;
  MessageCache* cache_;
  bool rooted_ = false;  ///< A table that is too large ends the work.
  std::vector<std::vector<const EliminationTerm*>>
      of_variable_;                                ///< Terms that mention a variable and none eliminated.
  std::vector<std::vector<Variable>> neighbours_;  ///< Ascending; of variables not eliminated.
  std::vector<std::uint32_t> versions_;            ///< Of entries of the queue.
  std::deque<EliminationTerm> terms_;
  /// What terms that were made on the way refer to.
  std::deque<std::pair<std::vector<Variable>, std::shared_ptr<const MessageCache::Message>>> messages_;
  double constant_ = 0;
  EliminationResult result_;
};

}  // namespace

EliminationProblem::Variable EliminationProblem::add_variable(std::uint32_t size) {
  TASO_CHECK(size > 0, "a variable without values");
  sizes_.push_back(size);
  return static_cast<Variable>(sizes_.size() - 1);
}

void EliminationProblem::add_factor(std::vector<Variable> scope, std::vector<double> table) {
  for (std::size_t i = 0; i < scope.size(); ++i) {
    TASO_CHECK(scope[i] < sizes_.size(), "a factor over a variable that there is not");
    TASO_CHECK(std::find(scope.begin(), scope.begin() + static_cast<std::ptrdiff_t>(i), scope[i]) ==
                   scope.begin() + static_cast<std::ptrdiff_t>(i),
               "a factor that mentions a variable twice");
  }
  TASO_CHECK(table.size() == table_size(sizes_, scope), "a table that does not fit its variables");
  factors_.push_back({std::move(scope), std::move(table)});
}

double EliminationProblem::cost(std::span<const std::uint32_t> assignment) const {
  double sum = 0;
  for (const Factor& factor : factors_) {
    std::size_t at = 0;
    for (const Variable variable : factor.scope) at = at * sizes_[variable] + assignment[variable];
    sum += factor.table[at];
  }
  return sum;
}

EliminationResult minimize(const EliminationProblem& problem, const EliminationOptions& options, MessageCache* cache) {
  std::vector<std::uint32_t> sizes;
  for (Variable variable = 0; variable < problem.variables(); ++variable) sizes.push_back(problem.size(variable));
  Eliminator eliminator(sizes, options, cache);
  double constant = 0;
  for (const Factor& factor : problem.factors()) {
    if (factor.scope.empty())
      constant += factor.table[0];
    else
      eliminator.add({factor.scope, factor.table,
                      cache != nullptr ? hash_bytes(std::as_bytes(std::span(factor.table))) : Hash128()});
  }
  EliminationResult result = eliminator.run();
  result.lower_bound += constant;
  result.cost = problem.cost(result.assignment);
  return result;
}

RootedResult minimize_rooted(std::span<const std::uint32_t> sizes, std::span<const EliminationTerm> terms,
                             EliminationProblem::Variable root, const EliminationOptions& options,
                             MessageCache& cache) {
  Eliminator eliminator(sizes, options, &cache);
  for (const EliminationTerm& term : terms) eliminator.add(term);
  return eliminator.run_rooted(root);
}

std::shared_ptr<const MessageCache::Message> MessageCache::find(const Hash128& key) const {
  const auto place = messages_.find(key);
  return place == messages_.end() ? nullptr : place->second;
}

void MessageCache::insert(const Hash128& key, std::shared_ptr<const Message> message) {
  if (entries_ + message->table.size() > maximum_entries_) {
    messages_.clear();
    entries_ = 0;
  }
  entries_ += message->table.size();
  messages_.emplace(key, std::move(message));
}

}  // namespace taso
