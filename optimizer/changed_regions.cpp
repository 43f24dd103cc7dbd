#include "optimizer/changed_regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "graph/rewrite.h"

namespace taso {
namespace {

/// Sets of applications that are joined.
class Sets {
 public:
  explicit Sets(std::size_t count) : parents_(count) { std::iota(parents_.begin(), parents_.end(), std::size_t{0}); }
  std::size_t find(std::size_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }
  /// The smallest member stands for a set.
  void join(std::size_t a, std::size_t b) {
    a = find(a);
    b = find(b);
    parents_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parents_;
};

/// The applications, repeated: which of them made and removed which node, and looked at which.
struct Repeated {
  Graph graph;
  Sets sets;
  std::vector<std::pair<NodeId, std::size_t>> removed, added, seen;
  /// Of values of the original that others stand for now: which, and the last application that replaced one.
  std::map<Value, std::pair<Value, std::size_t>> standing_for;
  std::map<Value, std::vector<Value>> originals;  ///< The other way around: of values now.
};

/// Notes that `to` stands for what `from` stood for.
void note_replaced(const Graph& original, Value from, Value to, std::size_t number, Repeated& all) {
  std::vector<Value> values;
  if (const auto known = all.originals.find(from); known != all.originals.end()) {
    values = std::move(known->second);
    all.originals.erase(known);
  }
  if (original.contains(from.node) && from.port < original.node(from.node).outputs.size()) values.push_back(from);
  for (const Value value : values) {
    const auto [place, fresh] = all.standing_for.try_emplace(value, to, number);
    if (!fresh) {
      all.sets.join(place->second.second, number);
      place->second = {to, number};
    }
    all.originals[to].push_back(value);
  }
}

bool is_shared(const Node& node) { return node.weight_only || node.kind == NodeKind::input; }

Status repeat_one(const Graph& original, std::size_t number, const Substitution& rule, const Match& match,
                  const OperatorCatalog& catalog, std::unordered_map<NodeId, std::size_t>& makers, Repeated& all) {
  Expected<RewriteResult> step = apply_with_changes(all.graph, rule, match, catalog);
  if (!step)
    return internal_error(fmt::format("application {} of {} cannot be repeated for the report: {}", number + 1,
                                      rule.name, step.error().message));
  for (const NodeId id : step->removed) {
    if (is_shared(all.graph.node(id))) continue;
    all.removed.emplace_back(id, number);
    if (const auto maker = makers.find(id); maker != makers.end()) all.sets.join(maker->second, number);
  }
  for (const NodeId id : step->added) {
    if (is_shared(step->graph.node(id))) continue;
    all.added.emplace_back(id, number);
    makers[id] = number;
  }
  for (const auto& [from, to] : step->replaced) note_replaced(original, from, to, number, all);
  for (const NodeId id : match.nodes) all.seen.emplace_back(id, number);
  for (const NodeId id : step->changed) all.seen.emplace_back(id, number);
  all.graph = std::move(step->graph);
  return {};
}

Expected<Repeated> repeat(const Graph& original, const std::vector<Substitution>& rules,
                          const std::vector<RuleApplication>& applications, const OperatorCatalog& catalog) {
  std::unordered_map<std::string_view, const Substitution*> by_name;
  for (const Substitution& rule : rules) by_name.emplace(rule.name, &rule);
  Repeated all{original, Sets(applications.size()), {}, {}, {}, {}, {}};
  std::unordered_map<NodeId, std::size_t> makers;
  for (std::size_t i = 0; i < applications.size(); ++i) {
    const auto rule = by_name.find(applications[i].rule);
    if (rule == by_name.end()) return internal_error("a rule was applied that is not there: " + applications[i].rule);
    TASO_RETURN_IF_ERROR(repeat_one(original, i, *rule->second, applications[i].match, catalog, makers, all));
  }
  return all;
}

/// Whether the graphs have the same nodes under the same ids.
bool same_nodes(const Graph& a, const Graph& b) {
  for (NodeId id = 0; id < std::max(a.id_bound(), b.id_bound()); ++id) {
    if (a.contains(id) != b.contains(id)) return false;
    if (a.contains(id) && (a.node(id).label != b.node(id).label || a.node(id).inputs != b.node(id).inputs))
      return false;
  }
  return true;
}

void sort_unique(std::vector<NodeId>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

}  // namespace

Expected<std::vector<ChangedRegion>> changed_regions(const Graph& original, const Graph& result,
                                                     const std::vector<Substitution>& rules,
                                                     const std::vector<RuleApplication>& applications,
                                                     const OperatorCatalog& catalog) {
  TASO_ASSIGN(Repeated all, repeat(original, rules, applications, catalog));
  if (!same_nodes(all.graph, result))
    return internal_error("the applications of rules, repeated for the report, lead to another graph");
  std::map<std::size_t, ChangedRegion> regions;  // By their first applications.
  for (std::size_t i = 0; i < applications.size(); ++i) regions[all.sets.find(i)].applications.push_back(i);
  const auto place = [&](const auto& nodes, std::vector<NodeId> ChangedRegion::*member, const auto& belongs) {
    for (const auto& [id, number] : nodes)
      if (belongs(id)) (regions[all.sets.find(number)].*member).push_back(id);
  };
  place(all.removed, &ChangedRegion::before, [&](NodeId id) { return original.contains(id); });
  place(all.added, &ChangedRegion::after, [&](NodeId id) { return result.contains(id); });
  place(all.seen, &ChangedRegion::around,
        [&](NodeId id) { return original.contains(id) && result.contains(id) && !is_shared(result.node(id)); });
  for (const auto& [value, standing] : all.standing_for) {
    const auto& [now, number] = standing;
    if (result.contains(now.node) && !original.node(value.node).weight_only)
      regions[all.sets.find(number)].outputs.emplace_back(value, now);
  }
  std::vector<ChangedRegion> list;
  for (auto& [first, region] : regions) {
    for (auto* ids : {&region.before, &region.after, &region.around}) sort_unique(*ids);
    list.push_back(std::move(region));
  }
  return list;
}

}  // namespace taso
