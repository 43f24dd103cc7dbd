#include <algorithm>
#include <utility>

#include "elimination/elimination.h"
#include "support/status.h"

namespace taso {

using Variable = EliminationProblem::Variable;

std::size_t table_size(std::span<const std::uint32_t> sizes, std::span<const Variable> scope) {
  std::size_t size = 1;
  for (const Variable variable : scope)
    if (__builtin_mul_overflow(size, static_cast<std::size_t>(sizes[variable]), &size))
      return std::numeric_limits<std::size_t>::max();
  return size;
}

EliminationProblem::Variable EliminationProblem::add_variable(std::uint32_t size) {
  TASO_CHECK(size > 0, "a variable without values");
  sizes_.push_back(size);
  return static_cast<Variable>(sizes_.size() - 1);
}

void EliminationProblem::add_factor(std::span<const Variable> scope, std::span<const double> table) {
  share_factor(scope, table);
  places_.back().table = tables_.size();
  places_.back().shared = nullptr;
  tables_.insert(tables_.end(), table.begin(), table.end());
}

void EliminationProblem::share_factor(std::span<const Variable> scope, std::span<const double> table) {
  for (std::size_t i = 0; i < scope.size(); ++i) {
    TASO_CHECK(scope[i] < sizes_.size(), "a factor over a variable that there is not");
    TASO_CHECK(std::find(scope.begin(), scope.begin() + static_cast<std::ptrdiff_t>(i), scope[i]) ==
                   scope.begin() + static_cast<std::ptrdiff_t>(i),
               "a factor that mentions a variable twice");
  }
  TASO_CHECK(table.size() == table_size(sizes_, scope), "a table that does not fit its variables");
  places_.push_back({scopes_.size(), scope.size(), 0, table.size(), table.data()});
  scopes_.insert(scopes_.end(), scope.begin(), scope.end());
}

void EliminationProblem::reserve(std::size_t variables, std::size_t factors, std::size_t scopes, std::size_t entries) {
  sizes_.reserve(variables);
  places_.reserve(factors);
  scopes_.reserve(scopes);
  tables_.reserve(entries);
}

double EliminationProblem::cost(std::span<const std::uint32_t> assignment) const {
  double sum = 0;
  for (std::size_t i = 0; i < factors(); ++i) {
    const Factor one = factor(i);
    std::size_t at = 0;
    for (const Variable variable : one.scope) at = at * sizes_[variable] + assignment[variable];
    sum += one.table[at];
  }
  return sum;
}

const MessageCache::Message* MessageCache::find(const Hash128& key) const {
  const auto place = messages_.find(key);
  return place == messages_.end() ? nullptr : &place->second;
}

const MessageCache::Message* MessageCache::insert(const Hash128& key, Message message) {
  constexpr std::size_t overhead = 16;  // of a message, in entries
  entries_ += message.table.size() + overhead;
  return &messages_.emplace(key, std::move(message)).first->second;
}

void MessageCache::make_room() {
  if (entries_ <= maximum_entries_) return;
  messages_.clear();
  entries_ = 0;
}

}  // namespace taso
