#include "graph/near_miss.h"

#include <algorithm>
#include <set>

#include "graph/matcher.h"
#include "graph/rewrite.h"

namespace taso {
namespace {

/// An attempt that ended, with what it is ordered by.
struct Attempt {
  std::set<NodeId> nodes;
  NearMiss miss;
};

/// The attempts that begin at any node that an operator of the source may stand for, and end without a match.
std::vector<Attempt> failed_attempts(const GraphView& view, const Substitution& rule, const RuleIndex::Plan& plan,
                                     const OperatorCatalog& catalog, const std::function<std::string(Value)>& name) {
  std::vector<Attempt> attempts;
  const std::vector<char> all(view.graph.id_bound(), 1);
  for (std::uint32_t p = 0; p < plan.nodes.size(); ++p) {
    // Where the parts of a source share nothing, matching reaches all of them from the root only.
    if (plan.nodes[p].fills || (!plan.connected && p != plan.root)) continue;
    for (const NodeId id : view.nodes_of[plan.nodes[p].op]) {
      FurthestAttempt furthest(name);
      GraphMatcher(view, rule, plan, catalog, false, &furthest).run_at(p, id, all);
      if (furthest.matched() == 0) continue;
      Attempt attempt;
      bool costs = false;
      for (const NodeId node : furthest.nodes()) {
        if (node == no_node) continue;
        attempt.nodes.insert(node);
        attempt.miss.nodes.push_back(node);
        costs = costs || !view.graph.node(node).weight_only;
      }
      attempt.miss.obstacle = furthest.obstacle();
      if (costs) attempts.push_back(std::move(attempt));
    }
  }
  return attempts;
}

}  // namespace

RuleOccurrences find_occurrences(const Graph& graph, const Substitution& rule, const OperatorCatalog& catalog,
                                 const std::function<std::string(Value)>& name) {
  OperatorNumbers numbers;
  const RuleIndex::Plan plan(rule, catalog, numbers);
  const GraphView view(graph, numbers);
  RuleOccurrences result;
  result.operators = plan.nodes.size();
  for (std::uint32_t p = 0; p < plan.nodes.size(); ++p) {
    const std::string& op = rule.source.nodes[p].op;
    if (!plan.nodes[p].fills && view.nodes_of[plan.nodes[p].op].empty() &&
        std::find(result.absent.begin(), result.absent.end(), op) == result.absent.end())
      result.absent.push_back(op);
  }
  if (!plan.matchable) return result;
  GraphMatcher matcher(view, rule, plan, catalog, false);
  matcher.run();
  std::vector<std::set<NodeId>> known;  // Nothing within these is worth a word.
  std::vector<Attempt> attempts;
  for (const FoundMatch& candidate : matcher.take()) {
    const std::vector<NodeId>& nodes = candidate.match.nodes;
    const Expected<Graph> applied = apply(graph, rule, candidate.match, catalog);
    if (applied) {
      ++result.matches;
      known.emplace_back(nodes.begin(), nodes.end());
    } else {
      attempts.push_back({{nodes.begin(), nodes.end()}, {nodes, applied.error().message}});
    }
  }
  std::vector<Attempt> failed = failed_attempts(view, rule, plan, catalog, name);
  std::move(failed.begin(), failed.end(), std::back_inserter(attempts));
  const auto first = [&](const Attempt& attempt) {
    std::uint32_t least = view.position[*attempt.nodes.begin()];
    for (const NodeId id : attempt.nodes) least = std::min(least, view.position[id]);
    return least;
  };
  std::stable_sort(attempts.begin(), attempts.end(), [&](const Attempt& a, const Attempt& b) {
    if (a.miss.nodes.size() != b.miss.nodes.size()) return a.miss.nodes.size() > b.miss.nodes.size();
    return first(a) < first(b);
  });
  for (Attempt& attempt : attempts) {
    const bool within = std::any_of(known.begin(), known.end(), [&](const std::set<NodeId>& nodes) {
      return std::includes(nodes.begin(), nodes.end(), attempt.nodes.begin(), attempt.nodes.end());
    });
    if (within) continue;
    known.push_back(attempt.nodes);
    result.near_misses.push_back(std::move(attempt.miss));
  }
  return result;
}

}  // namespace taso
