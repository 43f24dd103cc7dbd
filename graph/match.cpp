#include <algorithm>
#include <atomic>
#include <iterator>

#include "graph/matcher.h"
#include "graph/rewrite.h"

namespace taso {
namespace {

// How a graph differs from another version of it. Nodes are immutable and versions share them, so that a node is the
// same where its address is. Ids are not used again: what a node that is the same reads has the same type, too.
struct Difference {
  std::vector<char> same;                               // Per node id: both graphs have this node.
  std::vector<std::pair<std::uint32_t, NodeId>> added;  // (operator, node) of the view's graph alone, ascending.
  // Per operator: one graph alone has such a node; or a node that one graph alone has reads of such a node.
  std::vector<char> at, near;
  bool large = false;  // More is new than is kept.

  Difference(const Graph& before, const GraphView& view, const std::unordered_map<std::string, std::uint32_t>& numbers)
      : same(std::max(before.id_bound(), view.graph.id_bound()), 0), at(numbers.size(), 0) {
    const Graph& after = view.graph;
    std::size_t kept = 0;
    near = at;
    const auto number_of = [&](const Node& node) {
      const auto number = node.kind == NodeKind::op ? numbers.find(node.op) : numbers.end();
      return number == numbers.end() ? no_operator : number->second;
    };
    const auto note = [&](const Graph& graph, NodeId id) {
      const Node& node = graph.node(id);
      if (const std::uint32_t op = number_of(node); op != no_operator) at[op] = near[op] = 1;
      for (const Value& input : node.inputs)
        if (const std::uint32_t op = number_of(graph.node(input.node)); op != no_operator) near[op] = 1;
    };
    for (NodeId id = 0; id < same.size(); ++id) {
      const bool old = before.contains(id), now = after.contains(id);
      if (old && now && &before.node(id) == &after.node(id)) {
        same[id] = 1;
        kept += view.op[id] != no_operator ? 1 : 0;
        continue;
      }
      if (old) note(before, id);
      if (now) note(after, id);
      if (now && view.op[id] != no_operator) added.emplace_back(view.op[id], id);
    }
    std::sort(added.begin(), added.end());
    large = added.size() > kept;
  }
};

}  // namespace

// Bytes that are counted while this lives.
class MatchList::Counted {
 public:
  explicit Counted(std::shared_ptr<std::atomic<std::size_t>> total, std::size_t bytes)
      : total_(std::move(total)), bytes_(bytes) {
    *total_ += bytes_;
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { *total_ -= bytes_; }
  [[nodiscard]] const std::shared_ptr<std::atomic<std::size_t>>& total() const { return total_; }

 private:
  std::shared_ptr<std::atomic<std::size_t>> total_;
  std::size_t bytes_;
};

// Matches found together.
struct MatchList::Found {
  std::vector<Match> matches;
  Counted counted;
};

// The matches of one rule; those that differ from others by an exchange of symmetric roles alone as well, since which
// of them is reported may change far away.
struct MatchList::OfRule {
  struct Entry {
    std::shared_ptr<const Match> match;
    bool reported = true;
  };
  std::vector<Entry> entries;  // In the order of find_all.
  bool complete = true;        // There are no others.
  Counted counted;
};

struct MatchList::Contents {
  Graph graph;
  Consumers consumers;
  std::size_t rules = 0;                                                       // Of the index, when the list was made.
  std::vector<std::pair<std::uint32_t, std::shared_ptr<const OfRule>>> found;  // By rule, those that have any.
  Counted counted;
};

namespace {

std::size_t bytes_of(const Match& match) {
  std::size_t bytes = sizeof(Match) + match.variables.size() * sizeof(Value) + match.nodes.size() * sizeof(NodeId) +
                      (match.operand_begin.size() + match.port_begin.size()) * sizeof(std::int32_t) +
                      match.attributes.size() * sizeof(match.attributes[0]);
  for (const auto& value : match.attributes)
    if (const auto* list = value ? std::get_if<std::vector<std::int64_t>>(&*value) : nullptr)
      bytes += list->size() * sizeof(std::int64_t);
  return bytes;
}

}  // namespace

MatchList::MatchList()
    : contents_(new Contents{{}, {}, 0, {}, Counted(std::make_shared<std::atomic<std::size_t>>(0), 0)}) {}

const Graph& MatchList::graph() const { return contents_->graph; }

const Consumers& MatchList::consumers() const { return contents_->consumers; }

std::vector<const Match*> MatchList::matches(std::uint32_t rule) const {
  std::vector<const Match*> result;
  const auto& all = contents_->found;
  const auto place = std::lower_bound(all.begin(), all.end(), rule,
                                      [](const auto& found, std::uint32_t number) { return found.first < number; });
  if (place == all.end() || place->first != rule) return result;
  for (const OfRule::Entry& entry : place->second->entries)
    if (entry.reported) result.push_back(entry.match.get());
  return result;
}

std::size_t MatchList::family_bytes() const { return contents_->counted.total()->load(); }

std::vector<std::pair<std::uint32_t, const Match*>> MatchList::matches() const {
  std::vector<std::pair<std::uint32_t, const Match*>> result;
  for (const auto& [rule, found] : contents_->found)
    for (const OfRule::Entry& entry : found->entries)
      if (entry.reported) result.emplace_back(rule, entry.match.get());
  return result;
}

RuleIndex::RuleIndex(std::vector<Substitution> rules, const OperatorCatalog& catalog) : catalog_(&catalog) {
  rules_.reserve(rules.size());
  for (Substitution& rule : rules) add(std::move(rule));
}

void RuleIndex::add(Substitution added) {
  rules_.push_back(std::move(added));
  plans_.push_back(std::make_shared<Plan>(rules_.back(), *catalog_, numbers_));
}

std::vector<std::pair<std::uint32_t, Match>> RuleIndex::find_all(const Graph& graph) const {
  const GraphView view(graph, numbers_);
  std::vector<std::pair<std::uint32_t, Match>> result;
  for (std::uint32_t rule = 0; rule < rules_.size(); ++rule) {
    if (!plans_[rule]->matchable || !view.traits.covers(plans_[rule]->needed)) continue;
    GraphMatcher matcher(view, rules_[rule], *plans_[rule], *catalog_, false);
    matcher.run();
    for (FoundMatch& candidate : matcher.take()) result.emplace_back(rule, std::move(candidate.match));
  }
  return result;
}

std::vector<Match> RuleIndex::find(const Graph& graph, std::uint32_t rule) const {
  std::vector<Match> found;
  if (!plans_.at(rule)->matchable) return found;
  const GraphView view(graph, numbers_);
  GraphMatcher matcher(view, rules_[rule], *plans_[rule], *catalog_, false);
  matcher.run();
  for (FoundMatch& candidate : matcher.take()) found.push_back(std::move(candidate.match));
  return found;
}

// What a rule's matches depend on, besides the order of symmetric ones: the nodes that match, and the types of what
// they read, which stay as long as the nodes do. So a match is lost with a node of it, and a new one has a new node:
// matching begins there. Where the parts of a source share nothing they also need a common producer or consumer; that
// stays as it is if no node that differs, and nothing that one reads, is of an operator of the source. At the cap it
// depends on the whole graph which matches are found.
MatchList RuleIndex::update(const MatchList& before, const Graph& graph) const {
  const MatchList::Contents& old = *before.contents_;
  const auto& total = old.counted.total();
  GraphView view(graph, numbers_);
  const Difference difference(old.graph, view, numbers_);
  std::vector<std::pair<std::uint32_t, std::shared_ptr<const MatchList::OfRule>>> result;
  auto next_old = old.found.begin();
  enum : char { lost, kept, reported };
  std::vector<char> fates;  // Of the old entries.
  for (std::uint32_t rule = 0; rule < rules_.size(); ++rule) {
    const Plan& plan = *plans_[rule];
    std::shared_ptr<const MatchList::OfRule> known;
    if (next_old != old.found.end() && next_old->first == rule) known = (next_old++)->second;
    if (!plan.matchable) continue;
    const std::vector<char>& where = plan.connected ? difference.at : difference.near;
    const bool affected =
        std::any_of(plan.operators.begin(), plan.operators.end(), [&](std::uint32_t op) { return where[op] != 0; });
    const bool may_match = view.traits.covers(plan.needed);
    bool anew = rule >= old.rules || (known && !known->complete) || (affected && (difference.large || !plan.connected));
    bool differs = false;
    std::size_t count = 0;
    fates.clear();
    if (!anew && known && (affected || !plan.symmetries.empty()))
      for (const MatchList::OfRule::Entry& entry : known->entries) {
        const Match& match = *entry.match;
        char fate = entry.reported ? reported : kept;
        if (affected &&
            std::any_of(match.nodes.begin(), match.nodes.end(), [&](NodeId id) { return difference.same[id] == 0; }))
          fate = lost;
        else if (!plan.symmetries.empty())
          fate = is_first_of_symmetric(match, plan, view) ? reported : kept;
        differs = differs || fate != (entry.reported ? reported : kept);
        count += fate == reported ? 1 : 0;
        fates.push_back(fate);
      }
    std::optional<GraphMatcher> matcher;
    if (!anew && affected && may_match) {
      matcher.emplace(view, rules_[rule], plan, *catalog_, true);
      for (std::uint32_t p = 0; p < plan.nodes.size(); ++p) {
        if (plan.nodes[p].fills) continue;  // A node that reads it is new whenever it is.
        const std::uint32_t op = plan.nodes[p].op;
        for (auto place = std::lower_bound(difference.added.begin(), difference.added.end(), std::pair(op, NodeId{0}));
             place != difference.added.end() && place->first == op; ++place)
          matcher->run_at(p, place->second, difference.same);
      }
    }
    anew = anew || count + (matcher ? matcher->reported() : 0) >= max_matches || (matcher && !matcher->complete());
    if (anew) {
      matcher.emplace(view, rules_[rule], plan, *catalog_, true);
      if (may_match) matcher->run();
      differs = true;
    }
    std::vector<FoundMatch> candidates = matcher ? matcher->take() : std::vector<FoundMatch>();
    if (!differs && candidates.empty()) {
      if (known) result.emplace_back(rule, std::move(known));
      continue;
    }
    using Entry = MatchList::OfRule::Entry;
    std::vector<Entry> entries, fresh;
    if (!anew)
      for (std::size_t i = 0; i < fates.size(); ++i)
        if (fates[i] != lost) entries.push_back({known->entries[i].match, fates[i] == reported});
    if (!candidates.empty()) {
      std::vector<Match> matches;
      matches.reserve(candidates.size());
      std::size_t bytes = sizeof(MatchList::Found);
      for (FoundMatch& candidate : candidates) {
        bytes += bytes_of(candidate.match);
        matches.push_back(std::move(candidate.match));
      }
      const std::shared_ptr<const MatchList::Found> found(
          new MatchList::Found{std::move(matches), MatchList::Counted(total, bytes)});
      for (std::size_t i = 0; i < candidates.size(); ++i)
        fresh.push_back({{found, &found->matches[i]}, candidates[i].reported});
    }
    std::vector<Entry> all;
    all.reserve(entries.size() + fresh.size());
    std::merge(std::make_move_iterator(entries.begin()), std::make_move_iterator(entries.end()),
               std::make_move_iterator(fresh.begin()), std::make_move_iterator(fresh.end()), std::back_inserter(all),
               [](const Entry& a, const Entry& b) { return precedes(*a.match, *b.match); });
    if (all.empty()) continue;
    const std::size_t bytes = sizeof(MatchList::OfRule) + all.size() * sizeof(Entry);
    result.emplace_back(
        rule, new MatchList::OfRule{std::move(all), !anew || matcher->complete(), MatchList::Counted(total, bytes)});
  }
  const std::size_t bytes = sizeof(MatchList::Contents) + result.size() * sizeof(result[0]) +
                            graph.id_bound() * 2 * sizeof(void*) + view.consumers.bytes();
  MatchList list;
  list.contents_.reset(new MatchList::Contents{graph, std::move(view.consumers), rules_.size(), std::move(result),
                                               MatchList::Counted(total, bytes)});
  return list;
}

}  // namespace taso
