#include "runtime/groups.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "support/status.h"

namespace taso {
namespace {

using Stage = std::uint32_t;
using Stages = std::vector<Stage>;
constexpr std::uint32_t no_group = ~std::uint32_t{0};
/// Of more stages of a group that may be repeated, only the first are.
constexpr std::size_t most_repeatable = 8;

bool contains(const Stages& stages, Stage stage) { return std::binary_search(stages.begin(), stages.end(), stage); }

Stages joined(const Stages& stages, Stage stage) {
  Stages more = stages;
  more.insert(std::lower_bound(more.begin(), more.end(), stage), stage);
  return more;
}

Stages stages_of(const StageGroup& group) {
  Stages all;
  std::merge(group.members.begin(), group.members.end(), group.repeats.begin(), group.repeats.end(),
             std::back_inserter(all));
  return all;
}

using Pair = std::pair<Stage, Stage>;
using GroupOfPart = GroupCache::Group;
using SolvedPart = GroupCache::Part;

struct Candidate {
  StageGroup group;
  double cost = 0;
  Stages reads;   ///< Stages whose values it reads from memory.
  Stages stores;  ///< Members whose values it stores.
};

class GroupChooser {
 public:
  GroupChooser(const GroupProblem& problem, const GroupOptions& options, GroupCache& cache)
      : problem_(problem),
        options_(options),
        cache_(cache),
        count_(static_cast<Stage>(problem.stages.size())),
        readers_(count_),
        part_of_(count_) {
    for (Stage stage = 0; stage < count_; ++stage)
      for (const GroupStage::Read& read : problem_.stages[stage].reads)
        if (read.value < count_) {
          TASO_CHECK(read.value < stage, "a stage reads a later one");
          readers_[read.value].push_back({stage, read.in_memory});
        }
  }

  /// Parts by themselves; nothing where groups of several wait for each other in a circle then.
  std::optional<GroupChoice> choose_apart(const std::vector<StageGroup>& known) {
    GroupChoice choice = begin(known);
    if (open_.empty()) return choice;
    std::vector<std::uint32_t> of(count_, no_group);
    for (std::uint32_t i = 0; i < known_; ++i) assign(of, i);
    bool changed = false;
    for (const std::size_t number : open_) {
      const Part& part = parts_[number];
      const SolvedPart solved = solve_part(number);
      choice.exact = choice.exact && solved.exact;
      choice.complete = choice.complete && solved.complete;
      choice.lower_bound += solved.lower_bound - std::min(part.least, part.known_cost);
      choice.width = std::max(choice.width, solved.width);
      choice.candidates += solved.candidates;
      if (solved.groups.empty()) continue;
      changed = true;
      for (const Stage stage : part.stages) of[stage] = no_group;
      choice.cost -= part.known_cost;
      for (const GroupOfPart& group : solved.groups) {
        const StageGroup stages = of_part(group, part.stages);
        const std::optional<double> cost = problem_.cost(stages);
        TASO_CHECK(cost.has_value(), "a chosen group has no kernel");
        choice.cost += *cost;
        candidates_.push_back(candidate_of(stages, *cost));
        assign(of, static_cast<std::uint32_t>(candidates_.size() - 1));
      }
    }
    choice.rounds = 1;
    if (!changed) return choice;
    domains_.assign(count_, {});
    if (!circle_of(of).empty()) return std::nullopt;
    take(choice, of, choice.cost);
    return choice;
  }

  /// All parts at once.
  GroupChoice choose_together(const std::vector<StageGroup>& known) {
    GroupChoice choice = begin(known);
    if (open_.empty()) return choice;
    for (const std::size_t part : open_) enumerate(part);
    solve(choice);
    return choice;
  }

 private:
  struct Reader {
    Stage stage = 0;
    bool in_memory = false;
  };

  /// Stages that links hold together.
  struct Part {
    Stages stages;
    std::vector<std::uint32_t> known;  ///< Candidates.
    double known_cost = 0, least = 0;
    bool is_open = false;  ///< It may have another cover that costs less.
    bool complete = true;  ///< All groups are candidates.
  };

  /// A choice of the known cover; finds the parts that may have a better one.
  GroupChoice begin(const std::vector<StageGroup>& known) {
    find_links();
    find_parts(known);
    note_known(known);
    GroupChoice choice = known_choice();
    open_parts();
    if (!open_.empty()) find_paths();
    return choice;
  }

  void assign(std::vector<std::uint32_t>& of, std::uint32_t candidate) const {
    for (const Stage member : candidates_[candidate].group.members) of[member] = candidate;
  }

  // ---- What may be together.

  [[nodiscard]] bool link(Stage a, Stage b) const {
    const Stages& linked = links_[a];
    return contains(linked, b);
  }

  void find_links() {
    links_.resize(count_);
    std::set<Pair> asked;
    const auto ask = [&](Stage a, Stage b) {
      if (a > b) std::swap(a, b);
      if (a == b || !asked.emplace(a, b).second) return;
      if (problem_.links && !problem_.links(a, b)) return;
      links_[a].push_back(b);
      links_[b].push_back(a);
    };
    std::map<std::uint32_t, Stages> readers;
    for (Stage stage = 0; stage < count_; ++stage)
      for (const GroupStage::Read& read : problem_.stages[stage].reads) {
        if (!read.in_memory && read.value < count_) ask(read.value, stage);
        readers[read.value].push_back(stage);
      }
    // Of many readers, those that follow each other.
    constexpr std::size_t most_siblings = 8;
    for (const auto& [value, of] : readers)
      for (std::size_t i = 0; i < of.size(); ++i)
        for (std::size_t k = i + 1; k < std::min(of.size(), i + most_siblings); ++k) ask(of[i], of[k]);
    for (Stages& linked : links_) std::sort(linked.begin(), linked.end());
  }

  void find_parts(const std::vector<StageGroup>& known) {
    Stages root(count_);
    std::iota(root.begin(), root.end(), Stage{0});
    const auto root_of = [&](Stage stage) {
      while (root[stage] != stage) stage = root[stage] = root[root[stage]];
      return stage;
    };
    const auto join = [&](Stage a, Stage b) {
      a = root_of(a), b = root_of(b);
      root[std::max(a, b)] = std::min(a, b);
    };
    for (Stage stage = 0; stage < count_; ++stage)
      for (const Stage other : links_[stage]) join(stage, other);
    for (const StageGroup& group : known)
      for (const Stage stage : stages_of(group)) join(group.members[0], stage);
    std::vector<std::size_t> number(count_);
    for (Stage stage = 0; stage < count_; ++stage) {
      if (root_of(stage) == stage) {
        number[stage] = parts_.size();
        parts_.emplace_back();
      }
      part_of_[stage] = number[root_of(stage)];
      parts_[part_of_[stage]].stages.push_back(stage);
    }
  }

  // ---- Candidates.

  [[nodiscard]] Candidate candidate_of(StageGroup group, double cost) const {
    Candidate made{std::move(group), cost, {}, {}};
    const Stages all = stages_of(made.group);
    for (const Stage stage : all)
      for (const GroupStage::Read& read : problem_.stages[stage].reads)
        if (read.value < count_ && (read.in_memory || !contains(all, read.value))) made.reads.push_back(read.value);
    std::sort(made.reads.begin(), made.reads.end());
    made.reads.erase(std::unique(made.reads.begin(), made.reads.end()), made.reads.end());
    for (const Stage member : made.group.members)
      if (is_stored(member, made.group.members)) made.stores.push_back(member);
    return made;
  }

  [[nodiscard]] bool is_stored(Stage member, const Stages& members) const {
    return problem_.stages[member].kept ||
           std::any_of(readers_[member].begin(), readers_[member].end(),
                       [&](const Reader& reader) { return reader.in_memory || !contains(members, reader.stage); });
  }

  /// The known cover's groups are the first candidates.
  void note_known(const std::vector<StageGroup>& known) {
    for (const StageGroup& group : known) {
      const std::optional<double> cost = problem_.cost(group);
      TASO_CHECK(cost.has_value(), "the known cover has a group without a kernel");
      Part& part = parts_[part_of_[group.members[0]]];
      part.known.push_back(static_cast<std::uint32_t>(candidates_.size()));
      part.known_cost += *cost;
      candidates_.push_back(candidate_of(group, *cost));
      met_.emplace(std::pair(group.members, group.repeats), true);
    }
    known_ = candidates_.size();
  }

  [[nodiscard]] GroupChoice known_choice() {
    GroupChoice choice;
    for (const Candidate& candidate : candidates_) choice.groups.push_back(candidate.group);
    for (Part& part : parts_) {
      if (problem_.least) part.least = problem_.least(part.stages);
      // A single stage is a group, or there would be nobody to repeat it for.
      if (part.stages.size() == 1) part.least = part.known_cost;
      choice.cost += part.known_cost;
      choice.lower_bound += std::min(part.least, part.known_cost);
    }
    sort_by_member(choice.groups);
    return choice;
  }

  static void sort_by_member(std::vector<StageGroup>& groups) {
    std::sort(groups.begin(), groups.end(),
              [](const StageGroup& a, const StageGroup& b) { return a.members < b.members; });
  }

  void open_parts() {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      parts_[i].is_open = parts_[i].known_cost > parts_[i].least;
      if (parts_[i].is_open) open_.push_back(i);
    }
  }

  /// Which stages wait for which.
  void find_paths() {
    words_ = (count_ + 63) / 64;
    after_.assign(count_ * words_, 0);
    for (Stage stage = count_; stage-- > 0;)
      for (const Reader& reader : readers_[stage]) {
        after_[stage * words_ + reader.stage / 64] |= std::uint64_t{1} << (reader.stage % 64);
        for (std::size_t word = 0; word < words_; ++word)
          after_[stage * words_ + word] |= after_[reader.stage * words_ + word];
      }
  }
  [[nodiscard]] bool is_after(Stage later, Stage earlier) const {
    return (after_[earlier * words_ + later / 64] >> (later % 64) & 1U) != 0;
  }

  /// Whether a kernel of these would in any cover wait for itself: for a stage outside whose kernel, whichever it is,
  /// reads what a member has stored. Another group may compute a member once more instead, if that is repeatable.
  [[nodiscard]] bool waits_for_itself(const Candidate& candidate) const {
    const Stages all = stages_of(candidate.group);
    const auto may_wait = [&](Stage read) {
      return std::any_of(candidate.group.members.begin(), candidate.group.members.end(),
                         [&](Stage member) { return read == member || is_after(read, member); });
    };
    if (std::none_of(candidate.reads.begin(), candidate.reads.end(), may_wait)) return false;
    std::set<Stage> seen;
    Stages stack;
    const auto visit = [&](Stage stage) {
      if (stage < all.back() && !contains(all, stage) && seen.insert(stage).second) stack.push_back(stage);
    };
    for (const Stage member : candidate.group.members) {
      if (contains(candidate.reads, member)) return true;
      for (const Reader& reader : readers_[member])
        if (reader.in_memory || !problem_.stages[member].repeatable || !link(member, reader.stage)) visit(reader.stage);
    }
    while (!stack.empty()) {
      const Stage stage = stack.back();
      stack.pop_back();
      if (contains(candidate.reads, stage)) return true;
      for (const Reader& reader : readers_[stage]) visit(reader.stage);
    }
    return false;
  }

  /// Whether the stages may be in one group as far as links say.
  [[nodiscard]] bool may_be_together(const Stages& stages) const {
    for (const Stage stage : stages)
      for (const GroupStage::Read& read : problem_.stages[stage].reads)
        if (read.value < count_ && contains(stages, read.value) && (read.in_memory || !link(read.value, stage)))
          return false;
    return true;
  }

  [[nodiscard]] bool is_connected(const Stages& stages) const {
    Stages reached{stages[0]};
    for (std::size_t i = 0; i < reached.size(); ++i)
      for (const Stage linked : links_[reached[i]])
        if (contains(stages, linked) && std::find(reached.begin(), reached.end(), linked) == reached.end())
          reached.push_back(linked);
    return reached.size() == stages.size();
  }

  /// Adds what candidates there are of these stages. True if there is a kernel of any.
  bool consider(const Stages& stages) {
    if (!may_be_together(stages)) return false;
    // What may be repeated here: what somebody reads here, and somebody besides.
    Stages repeatable;
    for (const Stage stage : stages) {
      if (!problem_.stages[stage].repeatable) continue;
      const auto reads_here = [&](const Reader& reader) { return !reader.in_memory && contains(stages, reader.stage); };
      if (std::any_of(readers_[stage].begin(), readers_[stage].end(), reads_here)) repeatable.push_back(stage);
    }
    if (repeatable.size() > most_repeatable) {
      repeatable.resize(most_repeatable);
      parts_[part_of_[stages[0]]].complete = false;
    }
    bool any = false;
    for (std::uint32_t chosen = 0; chosen < std::uint32_t{1} << repeatable.size(); ++chosen) {
      if (static_cast<std::size_t>(std::popcount(chosen)) > options_.maximum_repeats) continue;
      StageGroup group{stages, {}};
      for (std::size_t i = 0; i < repeatable.size(); ++i)
        if ((chosen >> i & 1U) != 0) {
          group.repeats.push_back(repeatable[i]);
          group.members.erase(std::find(group.members.begin(), group.members.end(), repeatable[i]));
        }
      const auto is_for_others = [&](Stage stage) { return is_stored(stage, group.members); };
      if (group.members.empty() || !std::all_of(group.repeats.begin(), group.repeats.end(), is_for_others)) continue;
      any = add(std::move(group)) || any;
    }
    return any;
  }

  bool add(StageGroup group) {
    const auto [place, fresh] = met_.emplace(std::pair(group.members, group.repeats), false);
    if (!fresh) return place->second;
    Candidate candidate = candidate_of(std::move(group), 0);
    if (waits_for_itself(candidate)) return false;
    const std::optional<double> cost = problem_.cost(candidate.group);
    if (!cost) return false;
    candidate.cost = *cost;
    candidates_.push_back(std::move(candidate));
    return place->second = true;
  }

  /// Sets of connected stages, one more at a time.
  void enumerate(std::size_t number) {
    Part& part = parts_[number];
    const std::size_t before = candidates_.size(), most = options_.candidates_per_stage * part.stages.size() + 128;
    absl::flat_hash_set<Stages> seen;
    std::vector<Stages> sets;
    for (const Stage stage : part.stages) sets.push_back({stage});
    for (std::size_t size = 1; !sets.empty(); ++size) {
      std::vector<Stages> larger;
      for (const Stages& set : sets) {
        if (!consider(set) && size >= options_.extended_size) continue;
        if (size == options_.maximum_size) continue;
        if (candidates_.size() - before > most || larger.size() > most) {
          part.complete = false;
          break;
        }
        for (const Stage stage : set)
          for (const Stage linked : links_[stage])
            if (!contains(set, linked))
              if (Stages more = joined(set, linked); seen.insert(more).second) larger.push_back(std::move(more));
      }
      if (!part.complete) break;
      std::sort(larger.begin(), larger.end());
      sets = std::move(larger);
    }
    if (!part.complete) vary_known(part);
  }

  /// The known groups with one stage more, or less.
  void vary_known(const Part& part) {
    for (const std::uint32_t known : part.known) {
      const Stages all = stages_of(candidates_[known].group);
      std::set<Stages> varied;
      for (const Stage stage : all) {
        for (const Stage linked : links_[stage])
          if (!contains(all, linked)) varied.insert(joined(all, linked));
        Stages less = all;
        less.erase(std::find(less.begin(), less.end(), stage));
        if (!less.empty() && is_connected(less)) varied.insert(std::move(less));
      }
      for (const Stages& stages : varied) consider(stages);
    }
  }

  // ---- The problem.

  /// A known group, or one of an open part.
  [[nodiscard]] bool is_in_question(std::uint32_t candidate) const {
    return candidate < known_ || parts_[part_of_[candidates_[candidate].group.members[0]]].is_open;
  }

  /// Candidates of which a stage is a member, in order of preference; no_group where it may be left out.
  void make_domains() {
    domains_.assign(count_, {});
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < candidates_.size(); ++i)
      if (is_in_question(i)) order.push_back(i);
    const auto size = [&](std::uint32_t i) {
      return candidates_[i].group.members.size() + candidates_[i].group.repeats.size();
    };
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      if ((a < known_) != (b < known_)) return a < known_;
      if (a < known_) return a < b;
      if (size(a) != size(b)) return size(a) > size(b);
      return std::tie(candidates_[a].group.members, candidates_[a].group.repeats) <
             std::tie(candidates_[b].group.members, candidates_[b].group.repeats);
    });
    std::vector<char> is_repeated(count_, 0);
    for (const std::uint32_t i : order) {
      for (const Stage member : candidates_[i].group.members) domains_[member].push_back(i);
      for (const Stage repeated : candidates_[i].group.repeats) is_repeated[repeated] = 1;
    }
    for (Stage stage = 0; stage < count_; ++stage)
      if (domains_[stage].empty() ||
          (is_repeated[stage] != 0 && !problem_.stages[stage].kept && parts_[part_of_[stage]].is_open))
        domains_[stage].push_back(no_group);
  }

  /// The member of a group that stands for it where it reads something: one that reads it itself, if there is one.
  [[nodiscard]] Stage anchor_for(const Candidate& candidate, Stage read) const {
    for (const Reader& reader : readers_[read])
      if (contains(candidate.group.members, reader.stage)) return reader.stage;
    return candidate.group.members[0];
  }

  void make_pairs() {
    std::set<Pair> pairs;
    const auto add_pair = [&](Stage a, Stage b) {
      if (a != b && (domains_[a].size() > 1 || domains_[b].size() > 1)) pairs.emplace(std::min(a, b), std::max(a, b));
    };
    for (std::uint32_t number = 0; number < candidates_.size(); ++number) {
      if (!is_in_question(number)) continue;
      const Candidate& candidate = candidates_[number];
      // Members are together: asked of neighbours, and of what only repeats hold together.
      Stages reached{candidate.group.members[0]};
      for (std::size_t i = 0; reached.size() < candidate.group.members.size() || i < reached.size(); ++i) {
        if (i == reached.size())
          for (const Stage member : candidate.group.members)
            if (std::find(reached.begin(), reached.end(), member) == reached.end()) {
              add_pair(reached[0], member);
              reached.push_back(member);
              break;
            }
        for (const Stage linked : links_[reached[i]])
          if (contains(candidate.group.members, linked) &&
              std::find(reached.begin(), reached.end(), linked) == reached.end()) {
            add_pair(reached[i], linked);
            reached.push_back(linked);
          }
      }
      for (const Stage read : candidate.reads) add_pair(read, anchor_for(candidate, read));
    }
    pairs_.assign(pairs.begin(), pairs.end());
  }

  struct Side {
    bool other_is_member = false, reads_other = false, stores = false;
    std::uint32_t group = no_group;
  };
  [[nodiscard]] std::vector<Side> sides(Stage stage, Stage other) const {
    std::vector<Side> sides;
    for (const std::uint32_t i : domains_[stage]) {
      Side& side = sides.emplace_back();
      side.group = i;
      if (i == no_group) continue;
      const Candidate& candidate = candidates_[i];
      side.other_is_member = contains(candidate.group.members, other);
      side.reads_other = contains(candidate.reads, other);
      side.stores = contains(candidate.stores, stage);
    }
    return sides;
  }

  [[nodiscard]] std::vector<double> table_of(const Pair& pair) const {
    std::vector<double> table;
    const std::vector<Side> first = sides(pair.first, pair.second), second = sides(pair.second, pair.first);
    table.reserve(first.size() * second.size());
    for (const Side& a : first)
      for (const Side& b : second) {
        const bool apart = a.group != b.group && (a.other_is_member || b.other_is_member);
        const bool lacks = (a.reads_other && !b.stores) || (b.reads_other && !a.stores);
        table.push_back(apart || lacks ? EliminationProblem::forbidden_cost : 0.0);
      }
    return table;
  }

  using Variable = EliminationProblem::Variable;

  /// Members whose groups must not be those that wait for each other in a circle: each reads what the next one stores.
  using Circle = Stages;

  /// The elimination problem of what is open.
  struct Table {
    EliminationProblem problem;
    std::vector<Variable> variable_of;  ///< Per stage, where it is one.
    double fixed = 0;                   ///< Cost of the groups of other stages.
  };
  [[nodiscard]] bool is_variable(Stage stage) const { return domains_[stage].size() > 1; }
  [[nodiscard]] Table table() {
    make_domains();
    make_pairs();
    Table table;
    table.variable_of.assign(count_, ~Variable{0});
    for (Stage stage = 0; stage < count_; ++stage)
      if (is_variable(stage))
        table.variable_of[stage] = table.problem.add_variable(static_cast<std::uint32_t>(domains_[stage].size()));
    for (Stage stage = 0; stage < count_; ++stage) {
      // The first member pays.
      std::vector<double> costs;
      for (const std::uint32_t i : domains_[stage])
        costs.push_back(i != no_group && candidates_[i].group.members[0] == stage ? candidates_[i].cost : 0.0);
      if (is_variable(stage))
        table.problem.add_factor({table.variable_of[stage]}, costs);
      else
        table.fixed += costs[0];
    }
    for (const Pair& pair : pairs_) {
      std::vector<Variable> scope;
      for (const Stage stage : {pair.first, pair.second})
        if (is_variable(stage)) scope.push_back(table.variable_of[stage]);
      table.problem.add_factor(scope, table_of(pair));
    }
    return table;
  }
  /// The group of which each stage is a member.
  [[nodiscard]] std::vector<std::uint32_t> assigned(const Table& table, const EliminationResult& result) const {
    std::vector<std::uint32_t> of(count_);
    for (Stage stage = 0; stage < count_; ++stage)
      of[stage] = domains_[stage][is_variable(stage) ? result.assignment[table.variable_of[stage]] : 0];
    return of;
  }

  // ---- One part.

  /// A group by positions among the stages of its part.
  [[nodiscard]] static GroupOfPart to_part(const StageGroup& group, const Stages& stages) {
    const auto position = [&](Stage stage) {
      return static_cast<std::uint32_t>(std::lower_bound(stages.begin(), stages.end(), stage) - stages.begin());
    };
    GroupOfPart result;
    std::transform(group.members.begin(), group.members.end(), std::back_inserter(result.members), position);
    std::transform(group.repeats.begin(), group.repeats.end(), std::back_inserter(result.repeats), position);
    return result;
  }
  [[nodiscard]] static StageGroup of_part(const GroupOfPart& group, const Stages& stages) {
    StageGroup result;
    for (const std::uint32_t position : group.members) result.members.push_back(stages[position]);
    for (const std::uint32_t position : group.repeats) result.repeats.push_back(stages[position]);
    return result;
  }

  /// The cover of a part that costs least, whether groups wait for each other in a circle or not; as it was found
  /// before where the part was met.
  [[nodiscard]] SolvedPart solve_part(std::size_t number) {
    Part& part = parts_[number];
    std::optional<Hash128> name;
    if (problem_.identity) {
      name = name_of(part);
      if (const auto solved = cache_.parts.find(*name); solved != cache_.parts.end()) return solved->second;
    }
    enumerate(number);
    for (const std::size_t other : open_) parts_[other].is_open = other == number;
    const Table table = this->table();
    const EliminationResult result = cache_.elimination.minimize(table.problem, options_.elimination);
    const std::vector<std::uint32_t> of = assigned(table, result);
    for (const std::size_t other : open_) parts_[other].is_open = true;

    SolvedPart solved{.exact = result.exact, .complete = part.complete, .width = result.width};
    std::set<std::uint32_t> chosen;
    for (const Stage stage : part.stages)
      if (of[stage] != no_group) chosen.insert(of[stage]);
    double cost = 0;
    for (const std::uint32_t group : chosen) cost += candidates_[group].cost;
    const bool is_better = result.cost < EliminationProblem::forbidden_cost && cost < part.known_cost;
    if (is_better)
      for (const std::uint32_t group : chosen) solved.groups.push_back(to_part(candidates_[group].group, part.stages));
    solved.lower_bound =
        solved.exact && solved.complete ? std::min(cost, part.known_cost) : std::min(part.least, part.known_cost);
    for (std::size_t i = known_; i < candidates_.size(); ++i)
      if (part_of_[candidates_[i].group.members[0]] == number) ++solved.candidates;
    if (name) cache_.parts.emplace(*name, solved);
    return solved;
  }

  /// All that the best cover of a part follows from.
  [[nodiscard]] Hash128 name_of(const Part& part) const {
    const Stages& stages = part.stages;
    Hasher name;
    name.add(problem_.identity(stages));
    const auto position = [&](Stage stage) {
      return static_cast<std::uint64_t>(std::lower_bound(stages.begin(), stages.end(), stage) - stages.begin());
    };
    const auto is_here = [&](Stage stage) { return contains(stages, stage); };
    std::map<std::uint32_t, std::uint64_t> others;
    for (const Stage stage : stages) {
      const GroupStage& one = problem_.stages[stage];
      name.add(std::uint64_t{one.kept}).add(std::uint64_t{one.repeatable}).add(std::uint64_t{one.reads.size()});
      for (const GroupStage::Read& read : one.reads) {
        name.add(std::uint64_t{read.in_memory});
        if (read.value < count_ && is_here(read.value))
          name.add(std::uint64_t{0}).add(position(read.value));
        else
          name.add(std::uint64_t{1}).add(others.emplace(read.value, others.size()).first->second);
      }
      name.add(std::uint64_t{links_[stage].size()});
      for (const Stage linked : links_[stage]) name.add(position(linked));
      // What waits for it through stages elsewhere; whether any does.
      std::set<Stage> seen;
      Stages stack, waiting;
      const auto visit = [&](Stage from) {
        for (const Reader& reader : readers_[from])
          if (!is_here(reader.stage) && reader.stage < stages.back() && seen.insert(reader.stage).second)
            stack.push_back(reader.stage);
      };
      visit(stage);
      const auto is_elsewhere = [&](const Reader& reader) { return !is_here(reader.stage); };
      name.add(std::uint64_t{std::any_of(readers_[stage].begin(), readers_[stage].end(), is_elsewhere)});
      while (!stack.empty()) {
        const Stage other = stack.back();
        stack.pop_back();
        for (const Reader& reader : readers_[other])
          if (is_here(reader.stage) && seen.insert(reader.stage).second) waiting.push_back(reader.stage);
        visit(other);
      }
      std::sort(waiting.begin(), waiting.end());
      name.add(std::uint64_t{waiting.size()});
      for (const Stage later : waiting) name.add(position(later));
    }
    for (const std::uint32_t known : part.known) {
      const GroupOfPart group = to_part(candidates_[known].group, stages);
      for (const std::vector<std::uint32_t>* const list : {&group.members, &group.repeats}) {
        name.add(std::uint64_t{list->size()});
        for (const std::uint32_t one : *list) name.add(one);
      }
    }
    return name.finish();
  }

  // ---- All parts.

  void solve(GroupChoice& choice) {
    Table table = this->table();
    EliminationProblem& problem = table.problem;
    const std::vector<Variable>& variable_of = table.variable_of;
    const double fixed = table.fixed;
    choice.candidates = candidates_.size();
    for (const std::size_t part : open_) choice.complete = choice.complete && parts_[part].complete;

    std::optional<double> bound_of_complete;
    for (choice.rounds = 1;; ++choice.rounds) {
      const EliminationResult result = cache_.elimination.minimize(problem, options_.elimination);
      choice.width = std::max(choice.width, result.width);
      choice.exact = result.exact;
      const std::vector<std::uint32_t> of = assigned(table, result);
      if (!bound_of_complete) bound_of_complete = bound(result, of);
      if (choice.complete) choice.lower_bound = std::max(choice.lower_bound, fixed + result.lower_bound);
      if (result.cost >= EliminationProblem::forbidden_cost || fixed + result.cost >= choice.cost) {
        // Nothing better than what is known; for certain where the elimination was exact.
        break;
      }
      const Circle circle = circle_of(of);
      if (circle.empty()) {
        take(choice, of, fixed + result.cost);
        break;
      }
      if (choice.rounds == options_.maximum_rounds || !forbid(problem, circle, variable_of)) {
        choice.exact = false;
        break;
      }
    }
    choice.lower_bound = std::min(std::max(choice.lower_bound, *bound_of_complete), choice.cost);
    if (choice.exact && choice.complete) choice.lower_bound = choice.cost;
  }

  /// What no cover costs less than, from a choice before circles were forbidden: parts with all candidates cost what
  /// they cost in it, the others what `least` says.
  [[nodiscard]] double bound(const EliminationResult& result, const std::vector<std::uint32_t>& of) const {
    std::vector<double> sums(parts_.size(), 0);
    if (result.exact)
      for (Stage stage = 0; stage < count_; ++stage)
        if (of[stage] != no_group && candidates_[of[stage]].group.members[0] == stage)
          sums[part_of_[stage]] += candidates_[of[stage]].cost;
    double sum = 0;
    for (std::size_t i = 0; i < parts_.size(); ++i)
      sum += result.exact && parts_[i].complete ? sums[i] : std::min(parts_[i].least, parts_[i].known_cost);
    return sum;
  }

  void take(GroupChoice& choice, const std::vector<std::uint32_t>& of, double cost) const {
    std::set<std::uint32_t> chosen;
    for (const std::uint32_t group : of)
      if (group != no_group) chosen.insert(group);
    choice.cost = cost;
    choice.groups.clear();
    for (const std::uint32_t group : chosen) choice.groups.push_back(candidates_[group].group);
    sort_by_member(choice.groups);
  }

  /// The first of the shortest circles of groups, by one member of each; empty if there is none. `of`: per stage.
  [[nodiscard]] Circle circle_of(const std::vector<std::uint32_t>& of) const {
    std::map<std::uint32_t, std::set<std::uint32_t>> waits_for, waited_for_by;
    for (const std::uint32_t group : of)
      if (group != no_group)
        for (const Stage read : candidates_[group].reads) {
          waits_for[group].insert(of[read]);
          waited_for_by[of[read]].insert(group);
        }
    // What waits for nothing is in no circle.
    std::map<std::uint32_t, std::size_t> left;
    std::deque<std::uint32_t> ready;
    for (const auto& [group, readers] : waited_for_by)
      if (!waits_for.contains(group)) ready.push_back(group);
    for (const auto& [group, others] : waits_for) left[group] = others.size();
    while (!ready.empty()) {
      const std::uint32_t group = ready.front();
      ready.pop_front();
      for (const std::uint32_t reader : waited_for_by[group])
        if (--left[reader] == 0) ready.push_back(reader), left.erase(reader);
    }
    std::vector<std::uint32_t> shortest;
    for (const auto& [start, unused] : left) {
      std::map<std::uint32_t, std::uint32_t> from;
      std::deque<std::uint32_t> queue{start};
      while (!queue.empty() && !from.contains(start)) {
        const std::uint32_t group = queue.front();
        queue.pop_front();
        for (const std::uint32_t other : waits_for[group])
          if (left.contains(other) && from.emplace(other, group).second) queue.push_back(other);
      }
      if (!from.contains(start)) continue;
      std::vector<std::uint32_t> circle{start};
      for (std::uint32_t at = from[start]; at != start; at = from[at]) circle.push_back(at);
      std::reverse(circle.begin() + 1, circle.end());
      if (shortest.empty() || circle.size() < shortest.size()) shortest = std::move(circle);
    }
    Circle members;
    for (const std::uint32_t group : shortest) {
      const Stages& of_group = candidates_[group].group.members;
      members.push_back(*std::min_element(of_group.begin(), of_group.end(), [&](Stage a, Stage b) {
        return std::pair(domains_[a].size(), a) < std::pair(domains_[b].size(), b);
      }));
    }
    return members;
  }

  /// Adds the table that forbids groups of these members to wait for each other so. False if it would be too large.
  [[nodiscard]] bool forbid(EliminationProblem& problem, const Circle& circle,
                            const std::vector<Variable>& variable_of) const {
    std::vector<Variable> scope;
    std::size_t entries = 1;
    for (const Stage stage : circle) {
      entries *= domains_[stage].size();
      if (domains_[stage].size() > 1) scope.push_back(variable_of[stage]);
      if (entries > options_.elimination.maximum_table) return false;
    }
    const auto waits = [&](std::uint32_t group, std::uint32_t other) {
      if (group == no_group || other == no_group || group == other) return false;
      const Stages &reads = candidates_[group].reads, &stores = candidates_[other].stores;
      return std::any_of(reads.begin(), reads.end(), [&](Stage read) { return contains(stores, read); });
    };
    std::vector<double> table;
    table.reserve(entries);
    std::vector<std::uint32_t> groups(circle.size());
    for (std::size_t entry = 0; entry < entries; ++entry) {
      std::size_t rest = entry;
      for (std::size_t i = circle.size(); i-- > 0;) {
        groups[i] = domains_[circle[i]][rest % domains_[circle[i]].size()];
        rest /= domains_[circle[i]].size();
      }
      bool in_circle = true;
      for (std::size_t i = 0; i < groups.size() && in_circle; ++i)
        in_circle = waits(groups[i], groups[(i + 1) % groups.size()]);
      table.push_back(in_circle ? EliminationProblem::forbidden_cost : 0.0);
    }
    problem.add_factor(scope, table);
    return true;
  }

  const GroupProblem& problem_;
  const GroupOptions& options_;
  GroupCache& cache_;
  Stage count_;
  std::vector<std::vector<Reader>> readers_;
  std::vector<Stages> links_;
  std::vector<std::size_t> part_of_;
  std::vector<Part> parts_;
  std::vector<std::size_t> open_;
  std::vector<Candidate> candidates_;
  std::size_t known_ = 0;  ///< As many of them.
  absl::flat_hash_map<std::pair<Stages, Stages>, bool>
      met_;  ///< Groups that were asked for: whether they are candidates.
  std::size_t words_ = 0;
  std::vector<std::uint64_t> after_;
  std::vector<std::vector<std::uint32_t>> domains_;  ///< Per stage.
  std::vector<Pair> pairs_;
};

}  // namespace

GroupChoice choose_groups(const GroupProblem& problem, const std::vector<StageGroup>& known, GroupCache& cache,
                          const GroupOptions& options) {
  if (std::optional<GroupChoice> choice = GroupChooser(problem, options, cache).choose_apart(known))
    return *std::move(choice);
  return GroupChooser(problem, options, cache).choose_together(known);
}

}  // namespace taso
