#include <algorithm>
#include <limits>
#include <utility>

#include "elimination/elimination.h"

namespace taso {
namespace {

using Variable = EliminationProblem::Variable;
using Factor = EliminationProblem::Factor;
constexpr std::uint32_t none = ~std::uint32_t{0};

}  // namespace

/// The blocks of a problem, leaves first, with what is known of them while they are solved in this order.
class EliminationCache::Blocks {
 public:
  struct Block {
    Variable top = 0;  ///< By which it hangs on the rest.
    std::uint32_t first_member = 0, members = 0;
    std::uint32_t first_factor = 0, factors = 0;
  };

  explicit Blocks(const EliminationProblem& given) : problem(given), own_block_(given.variables(), none) {
    const std::size_t variables = given.variables();
    // Of each variable: those in factors with it, in the order of the factors.
    std::vector<std::uint32_t> begin(variables + 1, 0);
    for (std::size_t i = 0; i < given.factors(); ++i) {
      const std::span<const Variable> scope = given.factor(i).scope;
      for (const Variable a : scope) begin[a + 1] += static_cast<std::uint32_t>(scope.size() - 1);
    }
    for (std::size_t i = 0; i < variables; ++i) begin[i + 1] += begin[i];
    std::vector<Variable> neighbours(begin[variables]);
    std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
    for (std::size_t i = 0; i < given.factors(); ++i) {
      const std::span<const Variable> scope = given.factor(i).scope;
      for (const Variable a : scope)
        for (const Variable b : scope)
          if (a != b) neighbours[next[a]++] = b;
    }
    unary_begin_.reserve(variables + 1);
    unary_begin_.push_back(0);
    for (Variable variable = 0; variable < variables; ++variable)
      unary_begin_.push_back(unary_begin_.back() + given.size(variable));
    unary_.assign(unary_begin_.back(), 0);
    members_.reserve(variables);
    position_.assign(variables, 0);
    found_.assign(variables, 0);
    low_.assign(variables, 0);
    next.assign(begin.begin(), begin.end() - 1);
    for (Variable variable = 0; variable < variables; ++variable) {
      if (found_[variable] != 0) continue;
      roots.push_back(variable);
      search(variable, neighbours, begin, next);
    }
    std::vector<std::uint32_t> block_of(given.factors(), none);
    for (std::size_t i = 0; i < given.factors(); ++i) {
      const Factor factor = given.factor(i);
      if (factor.scope.empty()) {
        constant += factor.table[0];
      } else if (factor.scope.size() == 1) {
        const std::span<double> costs = unary(factor.scope[0]);
        for (std::size_t value = 0; value < costs.size(); ++value) costs[value] += factor.table[value];
      } else {  // the variable found last is no top of a block that holds them all
        const Variable last = *std::max_element(factor.scope.begin(), factor.scope.end(),
                                                [&](Variable a, Variable b) { return found_[a] < found_[b]; });
        block_of[i] = own_block_[last];
        ++blocks[block_of[i]].factors;
      }
    }
    std::uint32_t count = 0;
    for (Block& block : blocks) {
      block.first_factor = count;
      count += std::exchange(block.factors, 0);
    }
    factors_.resize(count);
    for (std::uint32_t i = 0; i < block_of.size(); ++i)
      if (block_of[i] != none) {
        Block& block = blocks[block_of[i]];
        factors_[block.first_factor + block.factors++] = i;
      }
  }

  /// The variables of a block but its top, ascending.
  [[nodiscard]] std::span<const Variable> members(const Block& block) const {
    return {members_.data() + block.first_member, block.members};
  }
  /// A variable of a block by its position: the members, then the top.
  [[nodiscard]] std::size_t position(const Block& block, Variable variable) const {
    return variable == block.top ? block.members : position_[variable];
  }
  /// The factors of a block over several variables, in the problem's order.
  [[nodiscard]] std::span<const std::uint32_t> factors(const Block& block) const {
    return {factors_.data() + block.first_factor, block.factors};
  }
  /// A variable's own costs and the tables of what hangs on it.
  [[nodiscard]] std::span<double> unary(Variable variable) {
    return {unary_.data() + unary_begin_[variable], problem.size(variable)};
  }
  [[nodiscard]] std::span<const double> unary(Variable variable) const {
    return {unary_.data() + unary_begin_[variable], problem.size(variable)};
  }

  const EliminationProblem& problem;
  std::vector<Block> blocks;    ///< Blocks that hang on a member of a block stand before it.
  std::vector<Variable> roots;  ///< One per connected component.
  double constant = 0;

 private:
  /// Depth first from `root` (Hopcroft and Tarjan 1973), without recursion.
  void search(Variable root, const std::vector<Variable>& neighbours, const std::vector<std::uint32_t>& begin,
              std::vector<std::uint32_t>& next) {
    struct Frame {
      Variable variable, parent;
    };
    std::vector<Frame> frames = {{root, none}};
    std::vector<Variable> open = {root};  // found, and in no block yet
    found_[root] = low_[root] = ++count_;
    while (!frames.empty()) {
      const auto [variable, parent] = frames.back();
      if (next[variable] < begin[variable + 1]) {
        const Variable other = neighbours[next[variable]++];
        if (found_[other] == 0) {
          found_[other] = low_[other] = ++count_;
          open.push_back(other);
          frames.push_back({other, variable});
        } else {
          low_[variable] = std::min(low_[variable], found_[other]);
        }
        continue;
      }
      frames.pop_back();
      if (parent == none) continue;
      low_[parent] = std::min(low_[parent], low_[variable]);
      if (low_[variable] < found_[parent]) continue;
      const std::size_t first = members_.size();
      for (;;) {  // all above `variable` that are in no block yet
        const Variable member = open.back();
        open.pop_back();
        own_block_[member] = static_cast<std::uint32_t>(blocks.size());
        members_.push_back(member);
        if (member == variable) break;
      }
      std::sort(members_.begin() + static_cast<std::ptrdiff_t>(first), members_.end());
      for (std::size_t i = first; i < members_.size(); ++i)
        position_[members_[i]] = static_cast<std::uint32_t>(i - first);
      blocks.push_back(
          {parent, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(members_.size() - first), 0, 0});
    }
  }

  std::vector<std::uint32_t> own_block_;    ///< Per variable: the block of which it is a member and not the top.
  std::vector<std::uint32_t> position_;     ///< Among the members of that block.
  std::vector<std::uint32_t> found_, low_;  ///< When it was found, from 1; the earliest that its subtree reaches.
  std::uint32_t count_ = 0;
  std::vector<Variable> members_;         ///< Of all blocks.
  std::vector<std::uint32_t> factors_;    ///< Of all blocks.
  std::vector<std::size_t> unary_begin_;  ///< Per variable.
  std::vector<double> unary_;
};

std::shared_ptr<const EliminationCache::Part> EliminationCache::part_of(const Blocks& all, std::size_t index,
                                                                        const EliminationOptions& options) {
  const Blocks::Block& block = all.blocks[index];
  const std::span<const Variable> members = all.members(block);
  const EliminationProblem& problem = all.problem;
  content_.assign({options.maximum_table});
  sizes_.clear();
  terms_.clear();
  scopes_.clear();  // of all terms, by position
  std::size_t count = members.size();
  for (const std::uint32_t factor : all.factors(block)) count += problem.factor(factor).scope.size();
  scopes_.reserve(count);
  const auto add = [&](std::span<const Variable> scope, std::span<const double> table) {
    const std::size_t begin = scopes_.size();
    content_.push_back(scope.size());
    for (const Variable variable : scope) {
      scopes_.push_back(static_cast<Variable>(all.position(block, variable)));
      content_.push_back(scopes_.back());
    }
    const Hash128 hash = hash_bytes(std::as_bytes(table));
    content_.insert(content_.end(), {hash.high, hash.low});
    terms_.push_back({{scopes_.data() + begin, scope.size()}, table, hash});
  };
  for (const Variable& member : members) {
    sizes_.push_back(problem.size(member));
    add({&member, 1}, all.unary(member));
  }
  sizes_.push_back(problem.size(block.top));
  for (const std::uint32_t number : all.factors(block)) {
    const Factor factor = problem.factor(number);
    add(factor.scope, factor.table);
  }
  content_.insert(content_.end(), sizes_.begin(), sizes_.end());
  const Hash128 key = hash_bytes(std::as_bytes(std::span(content_)));
  if (const auto place = parts_.find(key); place != parts_.end()) {
    ++reused_;
    return place->second;
  }
  ++solved_;
  auto part = std::make_shared<Part>();
  const auto top = static_cast<Variable>(members.size());
  RootedResult result = minimize_rooted(sizes_, terms_, top, options, messages_);
  part->table = std::move(result.table);
  part->assignments = std::move(result.assignments);
  part->exact = result.exact;
  part->width = result.width;
  part->largest_table = result.largest_table;
  const double least =
      part->exact ? *std::min_element(part->table.begin(), part->table.end()) : EliminationProblem::forbidden_cost;
  if (least < EliminationProblem::forbidden_cost) {
    part->least = least;
    for (double& cost : part->table) cost -= least;
  }
  if (parts_.size() >= maximum_parts_) parts_.clear();
  parts_.emplace(key, part);
  return part;
}

Hash128 EliminationCache::structure_of(const Blocks& all, std::size_t index, const EliminationOptions& options) {
  const Blocks::Block& block = all.blocks[index];
  const std::span<const Variable> members = all.members(block);
  content_.assign({options.maximum_table, all.problem.size(block.top), members.size()});
  for (const Variable member : members) content_.push_back(all.problem.size(member));
  for (const std::uint32_t number : all.factors(block)) {
    const std::span<const Variable> scope = all.problem.factor(number).scope;
    content_.push_back(scope.size());
    for (const Variable variable : scope) content_.push_back(all.position(block, variable));
  }
  return hash_bytes(std::as_bytes(std::span(content_)));
}

bool EliminationCache::is_known_as_too_large(const Blocks& all, const EliminationOptions& options) {
  for (std::size_t i = 0; i < all.blocks.size(); ++i)
    if (all.blocks[i].members >= smallest_too_large_ && too_large_.contains(structure_of(all, i, options))) return true;
  return false;
}

EliminationResult EliminationCache::minimize(const EliminationProblem& problem, const EliminationOptions& options) {
  Blocks all(problem);
  if (is_known_as_too_large(all, options)) return taso::minimize(problem, options, &messages_);
  EliminationResult result;
  result.lower_bound = all.constant;
  std::vector<std::shared_ptr<const Part>> parts;
  parts.reserve(all.blocks.size());
  for (std::size_t i = 0; i < all.blocks.size(); ++i) {
    parts.push_back(part_of(all, i, options));
    const Part& part = *parts.back();
    // A table too large somewhere: groups of the whole problem give a better bound than those of parts.
    if (!part.exact) {
      if (too_large_.size() >= maximum_parts_) {
        too_large_.clear();
        smallest_too_large_ = std::numeric_limits<std::size_t>::max();
      }
      too_large_.insert(structure_of(all, i, options));
      smallest_too_large_ = std::min<std::size_t>(smallest_too_large_, all.blocks[i].members);
      return taso::minimize(problem, options, &messages_);
    }
    result.width = std::max(result.width, part.width);
    result.largest_table = std::max(result.largest_table, part.largest_table);
    result.lower_bound += part.least;
    const std::span<double> costs = all.unary(all.blocks[i].top);
    for (std::size_t value = 0; value < costs.size(); ++value) costs[value] += part.table[value];
  }
  result.assignment.assign(problem.variables(), 0);
  for (const Variable root : all.roots) {
    const std::span<const double> costs = all.unary(root);
    const auto best = std::min_element(costs.begin(), costs.end());
    result.assignment[root] = static_cast<std::uint32_t>(best - costs.begin());
    result.lower_bound += *best;
  }
  for (std::size_t i = all.blocks.size(); i-- > 0;) {
    const Blocks::Block& block = all.blocks[i];
    const std::vector<std::uint32_t>& values = parts[i]->assignments[result.assignment[block.top]];
    const std::span<const Variable> members = all.members(block);
    for (std::size_t j = 0; j < members.size(); ++j) result.assignment[members[j]] = values[j];
  }
  result.cost = problem.cost(result.assignment);
  return result;
}

}  // namespace taso
