#include "elimination/elimination.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <compare>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <utility>

#include "elimination/table_minimum.h"
#include "support/reversed.h"
#include "support/status.h"

namespace taso {
namespace {

using Variable = EliminationProblem::Variable;
using Factor = EliminationProblem::Factor;

constexpr Variable no_variable = ~Variable{0};

class Eliminator {
 public:
  /// With a cache, tables are made up to constants. There will be about `terms` terms.
  Eliminator(std::span<const std::uint32_t> sizes, std::size_t terms, const EliminationOptions& options,
             MessageCache* cache)
      : sizes_(sizes),
        options_(options),
        cache_(cache),
        of_variable_(sizes.size()),
        neighbours_(sizes.size()),
        ranks_(sizes.size()) {
    terms_.reserve(terms + sizes.size());
  }

  /// Takes a term into account: it waits at all its variables.
  void add(const EliminationTerm& added) {
    const auto number = static_cast<std::uint32_t>(terms_.size());
    terms_.push_back({added, true});
    for (const Variable variable : added.scope) {
      of_variable_[variable].push_back(number);
      Neighbours& list = neighbours_[variable];
      for (const Variable other : added.scope) {
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
    take_waiting(root);
    for (std::uint32_t value = 0; value < sizes_[root]; ++value) {
      for (const std::uint32_t term : of_variable_[root]) rooted.table[value] += terms_[term].term.table[value];
      result_.assignment.assign(sizes_.size(), 0);
      result_.assignment[root] = value;
      for (const Variable variable : reversed(order)) assign(variable);
      rooted.assignments.push_back(result_.assignment);
    }
    return rooted;
  }

 private:
  using Neighbours = absl::InlinedVector<Variable, 6>;
  using TermNumbers = absl::InlinedVector<std::uint32_t, 6>;

  struct Term {
    EliminationTerm term;
    bool waits = true;  ///< None of its variables is eliminated.
  };

  /// By which the next variable is chosen, smallest first: the table over its neighbours, their number, its own.
  struct Rank {
    std::size_t table = 0;
    std::uint64_t neighbours_and_variable = 0;
    auto operator<=>(const Rank&) const = default;
    [[nodiscard]] Variable variable() const { return static_cast<Variable>(neighbours_and_variable); }
  };

  [[nodiscard]] Rank rank_of(Variable variable) const {
    return {table_size(sizes_, neighbours_[variable]), std::uint64_t{neighbours_[variable].size()} << 32 | variable};
  }

  /// All variables but `root`, in the order of elimination.
  std::vector<Variable> eliminate_all(Variable root) {
    if (!rooted_ && !options_.order.empty()) {
      for (const Variable variable : options_.order) eliminate(variable);
      return {options_.order.begin(), options_.order.end()};
    }
    std::vector<Rank> ranks;
    ranks.reserve(2 * sizes_.size());
    for (Variable variable = 0; variable < sizes_.size(); ++variable) {
      ranks_[variable] = rank_of(variable);
      if (variable != root) ranks.push_back(ranks_[variable]);
    }
    std::priority_queue<Rank, std::vector<Rank>, std::greater<>> queue(std::greater<>(), std::move(ranks));
    std::vector<char> done(sizes_.size(), 0);
    std::vector<Variable> order;
    order.reserve(sizes_.size());
    while (!queue.empty() && (result_.exact || !rooted_)) {
      const Rank rank = queue.top();
      queue.pop();
      const Variable variable = rank.variable();
      if (done[variable] != 0 || rank != ranks_[variable]) continue;  // a rank of before
      done[variable] = 1;
      order.push_back(variable);
      eliminate(variable);
      for (const Variable neighbour : neighbours_[variable]) {
        const Rank now = rank_of(neighbour);
        if (neighbour == root || now == ranks_[neighbour]) continue;
        ranks_[neighbour] = now;
        queue.push(now);
      }
    }
    return order;
  }

  /// Keeps of a variable's terms those that wait.
  void take_waiting(Variable variable) {
    TermNumbers& bucket = of_variable_[variable];
    bucket.erase(std::remove_if(bucket.begin(), bucket.end(), [&](std::uint32_t term) { return !terms_[term].waits; }),
                 bucket.end());
  }

  void eliminate(Variable variable) {
    take_waiting(variable);
    const TermNumbers& bucket = of_variable_[variable];  // stays for assign()
    const Neighbours& neighbours = neighbours_[variable];
    result_.width = std::max(result_.width, neighbours.size());
    for (const std::uint32_t term : bucket) terms_[term].waits = false;
    for (const Variable neighbour : neighbours) {
      Neighbours& others = neighbours_[neighbour];
      others.erase(std::lower_bound(others.begin(), others.end(), variable));
    }
    const std::size_t maximum = std::min(options_.maximum_table, (options_.maximum_entries - entries_) / 2);
    if (table_size(sizes_, neighbours) <= maximum) {
      message(variable, bucket, neighbours);
      return;
    }
    result_.exact = false;
    if (rooted_) return;
    // Mini-buckets: the factors with most variables first, each into the first group that it fits.
    TermNumbers sorted = bucket;
    std::stable_sort(sorted.begin(), sorted.end(), [&](std::uint32_t a, std::uint32_t b) {
      return terms_[a].term.scope.size() > terms_[b].term.scope.size();
    });
    std::vector<std::pair<TermNumbers, std::vector<Variable>>> groups;
    for (const std::uint32_t factor : sorted) {
      std::vector<Variable> scope(terms_[factor].term.scope.begin(), terms_[factor].term.scope.end());
      std::erase(scope, variable);
      std::sort(scope.begin(), scope.end());
      bool placed = false;
      for (auto& [members, variables] : groups) {
        std::vector<Variable> together;
        std::set_union(variables.begin(), variables.end(), scope.begin(), scope.end(), std::back_inserter(together));
        if (table_size(sizes_, together) > maximum) continue;
        members.push_back(factor);
        variables = std::move(together);
        placed = true;
        break;
      }
      if (!placed) groups.push_back({{factor}, std::move(scope)});
    }
    // Neighbours in different groups are none of each other any more: links are made anew by the messages.
    for (auto& [members, variables] : groups)
      message(variable, members, group_scopes_.emplace_back(std::move(variables)));
  }

  /// Adds the minimum over `variable` of the sum of `members`, a factor over `scope` (ascending), which stays.
  void message(Variable variable, std::span<const std::uint32_t> members, std::span<const Variable> scope) {
    const std::size_t entries = table_size(sizes_, scope);
    const std::size_t rank = scope.size();
    result_.largest_table = std::max(result_.largest_table, entries);
    const auto axis_of = [&](Variable other) {
      return other == variable
                 ? rank
                 : static_cast<std::size_t>(std::lower_bound(scope.begin(), scope.end(), other) - scope.begin());
    };
    Hash128 key;
    const MessageCache::Message* made = nullptr;
    if (cache_ != nullptr) {
      content_.assign({sizes_[variable], rank});
      for (const Variable other : scope) content_.push_back(sizes_[other]);
      for (const std::uint32_t number : members) {
        const EliminationTerm& member = terms_[number].term;
        content_.insert(content_.end(), {member.hash.high, member.hash.low});
        for (const Variable other : member.scope) content_.push_back(axis_of(other));
      }
      key = hash_bytes(std::as_bytes(std::span(content_)));
      made = cache_->find(key);
    }
    if (made == nullptr) {
      MessageCache::Message fresh;
      entries_ += std::min(entries, options_.maximum_entries - entries_);
      fill_minimum(fresh, variable, members, scope, entries, axis_of);
      if (cache_ != nullptr) {
        const double least = *std::min_element(fresh.table.begin(), fresh.table.end());
        if (least < EliminationProblem::forbidden_cost) {
          fresh.least = least;
          for (double& cost : fresh.table) cost -= least;
        }
        fresh.hash = hash_bytes(std::as_bytes(std::span(fresh.table)));
        made = cache_->insert(key, std::move(fresh));
      } else {
        made = &own_messages_.emplace_back(std::move(fresh));
      }
    }
    constant_ += made->least;
    if (scope.empty())
      constant_ += made->table[0];
    else
      add({scope, made->table, made->hash});
  }

  template <class AxisOf>
  void fill_minimum(MessageCache::Message& message, Variable variable, std::span<const std::uint32_t> members,
                    std::span<const Variable> scope, std::size_t entries, const AxisOf& axis_of) const {
    const std::size_t axes = scope.size() + 1;
    absl::InlinedVector<std::uint32_t, 8> sizes;
    for (const Variable other : scope) sizes.push_back(sizes_[other]);
    sizes.push_back(sizes_[variable]);
    absl::InlinedVector<std::size_t, 32> strides(members.size() * axes, 0);
    absl::InlinedVector<const double*, 8> tables(members.size());
    for (std::size_t m = 0; m < members.size(); ++m) {
      const EliminationTerm& member = terms_[members[m]].term;
      tables[m] = member.table.data();
      std::size_t stride = 1;
      for (std::size_t i = member.scope.size(); i-- > 0;) {
        strides[m * axes + axis_of(member.scope[i])] = stride;
        stride *= sizes_[member.scope[i]];
      }
    }
    message.table.resize(entries);
    minimum_of_sum({sizes, tables, strides}, message.table, options_.parallel);
  }

  /// The value of least cost given the variables eliminated later.
  void assign(Variable variable) {
    // Where each table is read for value 0, and how far on for each value more.
    struct Reading {
      const double* table;
      std::size_t stride;
    };
    absl::InlinedVector<Reading, 8> readings;
    for (const std::uint32_t number : of_variable_[variable]) {
      const EliminationTerm& term = terms_[number].term;
      std::size_t at = 0, stride = 1, own = 0;
      for (std::size_t i = term.scope.size(); i-- > 0;) {
        const Variable other = term.scope[i];
        if (other == variable)
          own = stride;
        else
          at += stride * result_.assignment[other];
        stride *= sizes_[other];
      }
      readings.push_back({term.table.data() + at, own});
    }
    double best = EliminationProblem::forbidden_cost;
    std::uint32_t chosen = 0;
    for (std::uint32_t value = 0; value < sizes_[variable]; ++value) {
      double sum = 0;
      for (const Reading& reading : readings) sum += reading.table[value * reading.stride];
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
  std::vector<Term> terms_;
  std::vector<TermNumbers> of_variable_;  ///< Terms that mention a variable; some do not wait any more.
  std::vector<Neighbours> neighbours_;    ///< Ascending; not eliminated when the variable is. Scopes of messages.
  std::vector<Rank> ranks_;               ///< Those in the queue that count.
  std::deque<std::vector<Variable>> group_scopes_;  ///< Of messages of some factors of a variable.
  std::deque<MessageCache::Message> own_messages_;  ///< Where there is no cache.
  std::vector<std::uint64_t> content_;
  double constant_ = 0;
  std::size_t entries_ = 0;  ///< Of the tables made, at most what is allowed.
  EliminationResult result_;
};

}  // namespace

EliminationResult minimize(const EliminationProblem& problem, const EliminationOptions& options, MessageCache* cache) {
  TASO_CHECK(options.order.empty() || options.order.size() == problem.variables(),
             "an order that leaves out variables");
  if (cache != nullptr) cache->make_room();
  Eliminator eliminator(problem.sizes(), problem.factors(), options, cache);
  double constant = 0;
  for (std::size_t i = 0; i < problem.factors(); ++i) {
    const Factor factor = problem.factor(i);
    if (factor.scope.empty())
      constant += factor.table[0];
    else
      eliminator.add(
          {factor.scope, factor.table, cache != nullptr ? hash_bytes(std::as_bytes(factor.table)) : Hash128()});
  }
  EliminationResult result = eliminator.run();
  result.lower_bound += constant;
  result.cost = problem.cost(result.assignment);
  return result;
}

RootedResult minimize_rooted(std::span<const std::uint32_t> sizes, std::span<const EliminationTerm> terms,
                             EliminationProblem::Variable root, const EliminationOptions& options,
                             MessageCache& cache) {
  cache.make_room();
  Eliminator eliminator(sizes, terms.size(), options, &cache);
  for (const EliminationTerm& term : terms) eliminator.add(term);
  return eliminator.run_rooted(root);
}

}  // namespace taso
