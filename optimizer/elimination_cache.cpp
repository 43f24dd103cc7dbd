#include <algorithm>
#include <bit>

#include "optimizer/elimination.h"

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
    Variable top = 0;                    ///< By which it hangs on the rest.
    std::vector<Variable> members;       ///< The others, ascending.
    std::vector<const Factor*> factors;  ///< Over several variables, in the problem's order.
  };

  explicit Blocks(const EliminationProblem& given)
      : problem(given), unary(given.variables()), own_block_(given.variables(), none) {
    std::vector<std::vector<Variable>> neighbours(given.variables());
    for (const Factor& factor : given.factors())
      for (const Variable a : factor.scope)
        for (const Variable b : factor.scope)
          if (a != b) neighbours[a].push_back(b);
    found_.assign(given.variables(), 0);
    low_.assign(given.variables(), 0);
    for (Variable variable = 0; variable < given.variables(); ++variable) {
      unary[variable].assign(given.size(variable), 0);
      if (found_[variable] != 0) continue;
      roots.push_back(variable);
      search(variable, neighbours);
    }
    for (const Factor& factor : given.factors()) {
      if (factor.scope.empty()) {
        constant += factor.table[0];
      } else if (factor.scope.size() == 1) {
        for (std::size_t i = 0; i < factor.table.size(); ++i) unary[factor.scope[0]][i] += factor.table[i];
      } else {  // the variable found last is no top of a block that holds them all
        const Variable last = *std::max_element(factor.scope.begin(), factor.scope.end(),
                                                [&](Variable a, Variable b) { return found_[a] < found_[b]; });
        blocks[own_block_[last]].factors.push_back(&factor);
      }
    }
  }

  const EliminationProblem& problem;
  std::vector<Block> blocks;               ///< Blocks that hang on a member of a block stand before it.
  std::vector<Variable> roots;             ///< One per connected component.
  std::vector<std::vector<double>> unary;  ///< Per variable: its own costs and the tables of what hangs on it.
  double constant = 0;

 private:
  /// Depth first from `root` (Hopcroft and Tarjan 1973), without recursion.
  void search(Variable root, const std::vector<std::vector<Variable>>& neighbours) {
    struct Frame {
      Variable variable, parent;
      std::size_t next;
    };
    std::vector<Frame> frames = {{root, none, 0}};
    std::vector<Variable> open = {root};  // found, and in no block yet
    found_[root] = low_[root] = ++count_;
    while (!frames.empty()) {
      Frame& frame = frames.back();
      const Variable variable = frame.variable;
      if (frame.next < neighbours[variable].size()) {
        const Variable other = neighbours[variable][frame.next++];
        if (found_[other] == 0) {
          found_[other] = low_[other] = ++count_;
          open.push_back(other);
          frames.push_back({other, variable, 0});
        } else {
          low_[variable] = std::min(low_[variable], found_[other]);
        }
        continue;
      }
      const Variable parent = frame.parent;
      frames.pop_back();
      if (parent == none) continue;
      low_[parent] = std::min(low_[parent], low_[variable]);
      if (low_[variable] < found_[parent]) continue;
      Block block;
      block.top = parent;
      for (;;) {  // all above `variable` that are in no block yet
        const Variable member = open.back();
        open.pop_back();
        own_block_[member] = static_cast<std::uint32_t>(blocks.size());
        block.members.push_back(member);
        if (member == variable) break;
      }
      std::sort(block.members.begin(), block.members.end());
      blocks.push_back(std::move(block));
    }
  }

  std::vector<std::uint32_t> own_block_;    ///< Per variable: the block of which it is a member and not the top.
  std::vector<std::uint32_t> found_, low_;  ///< When it was found, from 1; the earliest that its subtree reaches.
  std::uint32_t count_ = 0;
};

std::shared_ptr<const EliminationCache::Part> EliminationCache::part_of(const Blocks& all, std::size_t index,
                                                                        const EliminationOptions& options) {
  const Blocks::Block& block = all.blocks[index];
  const EliminationProblem& problem = all.problem;
  // A variable of the block by its position: the members, then the top.
  const auto position = [&](Variable variable) {
    return variable == block.top
               ? block.members.size()
               : static_cast<std::size_t>(std::lower_bound(block.members.begin(), block.members.end(), variable) -
                                          block.members.begin());
  };
  std::vector<std::uint64_t> content = {options.maximum_table};
  std::vector<std::uint32_t> sizes;
  std::vector<EliminationTerm> terms;
  std::vector<Variable> scopes;  // Of all terms, by position.
  std::size_t count = block.members.size();
  for (const Factor* factor : block.factors) count += factor->scope.size();
  scopes.reserve(count);
  terms.reserve(block.members.size() + block.factors.size());
  const auto add = [&](std::span<const Variable> scope, const std::vector<double>& table) {
    const std::size_t begin = scopes.size();
    content.push_back(scope.size());
    for (const Variable variable : scope) {
      scopes.push_back(static_cast<Variable>(position(variable)));
      content.push_back(scopes.back());
    }
    const Hash128 hash = hash_bytes(std::as_bytes(std::span(table)));
    content.insert(content.end(), {hash.high, hash.low});
    terms.push_back({{scopes.data() + begin, scope.size()}, table, hash});
  };
  for (const Variable& member : block.members) {
    sizes.push_back(problem.size(member));
    add({&member, 1}, all.unary[member]);
  }
  sizes.push_back(problem.size(block.top));
  for (const Factor* factor : block.factors) add(factor->scope, factor->table);
  content.insert(content.end(), sizes.begin(), sizes.end());
  const Hash128 key = hash_bytes(std::as_bytes(std::span(content)));
  if (const auto place = parts_.find(key); place != parts_.end()) {
    ++reused_;
    return place->second;
  }
  ++solved_;
  auto part = std::make_shared<Part>();
  const auto top = static_cast<Variable>(block.members.size());
  RootedResult result = minimize_rooted(sizes, terms, top, options, messages_);
  part->table = std::move(result.table);
  part->assignments = std::move(result.assignments);
  part->exact = result.exact;
  part->width = result.width;
  part->largest_table = result.largest_table;
  const double least =
      part->exact ? *std::min_element(part->table.begin(), part->table.end()) : EliminationProblem::kForbidden;
  if (least < EliminationProblem::kForbidden) {
    part->least = least;
    for (double& cost : part->table) cost -= least;
  }
  if (parts_.size() >= maximum_parts_) parts_.clear();
  parts_.emplace(key, part);
  return part;
}

EliminationResult EliminationCache::minimize(const EliminationProblem& problem, const EliminationOptions& options) {
  Blocks all(problem);
  EliminationResult result;
  result.lower_bound = all.constant;
  std::vector<std::shared_ptr<const Part>> parts;
  for (std::size_t i = 0; i < all.blocks.size(); ++i) {
    parts.push_back(part_of(all, i, options));
    const Part& part = *parts.back();
    // A table too large somewhere: groups of the whole problem give a better bound than those of parts.
    if (!part.exact) return taso::minimize(problem, options, &messages_);
    result.width = std::max(result.width, part.width);
    result.largest_table = std::max(result.largest_table, part.largest_table);
    result.lower_bound += part.least;
    std::vector<double>& costs = all.unary[all.blocks[i].top];
    for (std::size_t value = 0; value < costs.size(); ++value) costs[value] += part.table[value];
  }
  result.assignment.assign(problem.variables(), 0);
  for (const Variable root : all.roots) {
    const auto best = std::min_element(all.unary[root].begin(), all.unary[root].end());
    result.assignment[root] = static_cast<std::uint32_t>(best - all.unary[root].begin());
    result.lower_bound += *best;
  }
  for (std::size_t i = all.blocks.size(); i-- > 0;) {
    const Blocks::Block& block = all.blocks[i];
    const std::vector<std::uint32_t>& values = parts[i]->assignments[result.assignment[block.top]];
    for (std::size_t j = 0; j < block.members.size(); ++j) result.assignment[block.members[j]] = values[j];
  }
  result.cost = problem.cost(result.assignment);
  return result;
}

}  // namespace taso
