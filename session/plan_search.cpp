#include "session/plan_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "optimizer/equal_costs.h"
#include "support/hash.h"

namespace taso {
namespace {

/// A graph that was found, with its coarse price.
struct FoundGraph {
  ReachedGraph reached;
  double cost = 0;
  bool expanded = false;
};

/// Without a price: it does not compete.
bool is_of_one_graph(const Error& error) {
  return error.code == ErrorCode::not_proved || error.code == ErrorCode::cost_missing ||
         error.code == ErrorCode::bad_input;
}

/// What is the same of matches at places that look alike: the rule, and the matched operators with their types.
std::string look_of(const Graph& graph, std::uint32_t rule, const Match& match) {
  std::string look = std::to_string(rule);
  for (const NodeId id : match.nodes) {
    const Node& node = graph.node(id);
    look += " " + node.op + to_string(node.attributes);
    for (const Value& input : node.inputs)
      look += " " + to_string(graph.type(input)) + (graph.node(input.node).weight_only ? " weight" : "");
  }
  return look;
}

class PlanSearcher {
 public:
  PlanSearcher(const RuleIndex& rules, const PlanPrices& prices, const PlanSearchOptions& options)
      : rules_(rules), prices_(prices), options_(options) {}

  Expected<PlanSearchResult> run(const std::vector<ReachedGraph>& starts) {
    for (const ReachedGraph& start : starts) TASO_RETURN_IF_ERROR(consider(start).status);
    while (!spent()) {
      const std::optional<std::size_t> next = best_unexpanded();
      if (!next) break;
      TASO_RETURN_IF_ERROR(expand(*next));
    }
    return choose(starts[0]);
  }

 private:
  using RuleMatch = std::pair<std::uint32_t, Match>;

  struct Considered {
    Status status;
    std::optional<std::size_t> place;  ///< Among found_; nothing: it was known, or has no price.
  };

  [[nodiscard]] bool spent() {
    if (options_.stop.raised()) result_.stopped = true;
    return result_.stopped || result_.graphs >= options_.most_graphs || nodes_ >= options_.most_nodes;
  }

  /// Prices a graph that was not met before.
  Considered consider(const ReachedGraph& reached) {
    if (!met_.insert(reached.graph.structural_hash()).second) return {};
    ++result_.graphs;
    nodes_ += reached.graph.size();
    const Expected<double> cost = prices_.coarse(reached.graph);
    if (!cost) return {is_of_one_graph(cost.error()) ? Status() : Status(cost.error()), std::nullopt};
    found_.push_back({reached, *cost, false});
    least_ = std::min(least_, *cost);
    return {{}, found_.size() - 1};
  }

  [[nodiscard]] std::optional<std::size_t> best_unexpanded() const {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < found_.size(); ++i)
      if (!found_[i].expanded && found_[i].cost <= options_.alpha * least_ &&
          (!best || is_less(found_[i].cost, found_[*best].cost)))
        best = i;
    return best;
  }

  /// The matches of a graph by how their places look, in the order of the first ones.
  [[nodiscard]] std::vector<std::vector<RuleMatch>> matches_by_look(const Graph& graph) const {
    std::vector<std::vector<RuleMatch>> groups;
    std::map<std::string, std::size_t> places;
    for (RuleMatch& match : rules_.find_all(graph)) {
      const auto [place, fresh] = places.emplace(look_of(graph, match.first, match.second), groups.size());
      if (fresh) groups.emplace_back();
      groups[place->second].push_back(std::move(match));
    }
    return groups;
  }

  /// The graph after applying a rule at all matches of a group, which were found in `found_in`, that still are ones.
  [[nodiscard]] std::optional<ReachedGraph> applied(const ReachedGraph& from, const Graph& found_in,
                                                    const std::vector<RuleMatch>& group) const {
    ReachedGraph reached = from;
    bool changed = false;
    for (const auto& [number, match] : group) {
      const Substitution& rule = rules_.rules()[number];
      if (changed || &found_in != &from.graph) {
        if (!still_matches(found_in, reached.graph, match)) continue;
      }
      if (options_.applicable && !options_.applicable(reached.graph, rule, match)) continue;
      Expected<RewriteResult> rewritten = apply_with_changes(reached.graph, rule, match, rules_.catalog());
      if (!rewritten || (options_.writable && !options_.writable(*rewritten))) continue;
      reached.applications.push_back(describe_application(reached.graph, rule, match));
      reached.graph = std::move(rewritten->graph);
      changed = true;
    }
    if (!changed) return std::nullopt;
    reached.name = "search with plans";
    return reached;
  }

  /// Every group by itself; then those that improve the graph together, best first.
  Status expand(std::size_t place) {
    found_[place].expanded = true;
    const FoundGraph from = found_[place];
    const std::vector<std::vector<RuleMatch>> groups = matches_by_look(from.reached.graph);
    std::vector<std::pair<double, std::size_t>> improving;
    for (std::size_t i = 0; i < groups.size() && !spent(); ++i) {
      const std::optional<ReachedGraph> reached = applied(from.reached, from.reached.graph, groups[i]);
      if (!reached) continue;
      const Considered considered = consider(*reached);
      TASO_RETURN_IF_ERROR(considered.status);
      if (considered.place && is_less(found_[*considered.place].cost, from.cost))
        improving.emplace_back(found_[*considered.place].cost, i);
    }
    std::stable_sort(improving.begin(), improving.end(),
                     [](const auto& a, const auto& b) { return is_less(a.first, b.first); });
    FoundGraph together = from;
    for (const auto& [cost, group] : improving) {
      if (spent()) break;
      const std::optional<ReachedGraph> reached = applied(together.reached, from.reached.graph, groups[group]);
      if (!reached) continue;
      if (group == improving[0].second) {
        together = {*reached, cost, false};
        continue;
      }
      const Considered considered = consider(*reached);
      TASO_RETURN_IF_ERROR(considered.status);
      if (considered.place && is_less(found_[*considered.place].cost, together.cost))
        together = found_[*considered.place];
    }
    return {};
  }

  /// The best graph by its exact price.
  Expected<PlanSearchResult> choose(const ReachedGraph& first) {
    const Expected<double> first_cost = prices_.exact(first.graph);
    if (!first_cost && !is_of_one_graph(first_cost.error())) return first_cost.error();
    result_.first_cost = result_.best_cost = first_cost ? *first_cost : std::numeric_limits<double>::infinity();
    if (first_cost) result_.priced.push_back({first, *first_cost});
    std::stable_sort(found_.begin(), found_.end(),
                     [](const FoundGraph& a, const FoundGraph& b) { return is_less(a.cost, b.cost); });
    std::size_t priced = 0;
    for (FoundGraph& one : found_) {
      if (priced == options_.finalists || options_.stop.raised()) break;
      if (one.reached.graph.equals(first.graph) || !holds(one.reached)) continue;
      ++priced;
      const Expected<double> cost = prices_.exact(one.reached.graph);
      if (!cost && !is_of_one_graph(cost.error())) return cost.error();
      if (!cost) continue;
      result_.priced.push_back({one.reached, *cost});
      if (std::isfinite(result_.best_cost) && !is_less(*cost, result_.best_cost)) continue;
      result_.best_cost = *cost;
      result_.better = std::move(one.reached);
    }
    std::stable_sort(result_.priced.begin(), result_.priced.end(),
                     [](const auto& a, const auto& b) { return is_less(a.cost, b.cost); });
    if (!first_cost && !result_.better) return first_cost.error();
    result_.stopped = result_.stopped || options_.stop.raised();
    return std::move(result_);
  }

  [[nodiscard]] bool holds(const ReachedGraph& reached) const {
    return !options_.at_all_sizes || options_.at_all_sizes(reached.applications) == OptimizeOptions::AtAllSizes::holds;
  }

  const RuleIndex& rules_;
  const PlanPrices& prices_;
  const PlanSearchOptions& options_;
  std::vector<FoundGraph> found_;
  std::set<Hash128> met_;
  std::size_t nodes_ = 0;
  double least_ = std::numeric_limits<double>::infinity();
  PlanSearchResult result_;
};

}  // namespace

Expected<PlanSearchResult> search_plans(const std::vector<ReachedGraph>& starts, const RuleIndex& rules,
                                        const PlanPrices& prices, const PlanSearchOptions& options) {
  TASO_CHECK(!starts.empty(), "a search from nowhere");
  return PlanSearcher(rules, prices, options).run(starts);
}

}  // namespace taso
