// Groups of least cost, compared with all covers there are on small graphs.
#include "runtime/groups.h"

#include <bit>
#include <map>
#include <set>

#include "support/hash.h"
#include "support/random.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

using Mask = std::uint32_t;

Mask bit(std::uint32_t stage) { return Mask{1} << stage; }
Mask mask_of(const std::vector<std::uint32_t>& stages) {
  Mask mask = 0;
  for (const std::uint32_t stage : stages) mask |= bit(stage);
  return mask;
}
std::vector<std::uint32_t> stages_in(Mask mask) {
  std::vector<std::uint32_t> stages;
  for (std::uint32_t i = 0; mask >> i != 0; ++i)
    if ((mask >> i & 1U) != 0) stages.push_back(i);
  return stages;
}

/// A graph of a few stages, and a price for some of its groups.
struct SmallProblem {
  std::vector<GroupStage> stages;
  std::map<std::pair<Mask, Mask>, double> prices;  ///< Of members and repeats; single stages among them.

  [[nodiscard]] Mask all() const { return bit(static_cast<std::uint32_t>(stages.size())) - 1; }
  [[nodiscard]] bool reads(std::uint32_t reader, std::uint32_t value) const {
    for (const GroupStage::Read& read : stages[reader].reads)
      if (read.value == value) return true;
    return false;
  }
  [[nodiscard]] bool reads_in_memory(std::uint32_t reader, std::uint32_t value) const {
    for (const GroupStage::Read& read : stages[reader].reads)
      if (read.value == value && read.in_memory) return true;
    return false;
  }
  /// Whether a group with these members stores the value of one of them: of a stage that repeats it, others want it.
  [[nodiscard]] bool is_wanted(std::uint32_t stage, Mask members) const {
    if (stages[stage].kept) return true;
    for (std::uint32_t reader = 0; reader < stages.size(); ++reader)
      if (reads(reader, stage) && ((members & bit(reader)) == 0 || reads_in_memory(reader, stage))) return true;
    return false;
  }
  [[nodiscard]] bool is_group(Mask members, Mask repeats) const {
    const Mask both = members | repeats;
    if (members == 0 || (members & repeats) != 0) return false;
    for (const std::uint32_t stage : stages_in(both))
      for (const std::uint32_t other : stages_in(both))
        if (reads_in_memory(stage, other)) return false;
    for (const std::uint32_t repeat : stages_in(repeats)) {
      bool is_read = false;
      for (const std::uint32_t reader : stages_in(both)) is_read = is_read || reads(reader, repeat);
      if (!stages[repeat].repeatable || !is_read || !is_wanted(repeat, members)) return false;
    }
    Mask reached = both & (~both + 1);
    for (Mask before = 0; before != reached;) {
      before = reached;
      for (const std::uint32_t a : stages_in(before))
        for (const std::uint32_t b : stages_in(both & ~before)) {
          bool adjoin = reads(a, b) || reads(b, a);
          for (const GroupStage::Read& read : stages[a].reads) adjoin = adjoin || reads(b, read.value);
          if (adjoin) reached |= bit(b);
        }
    }
    return reached == both;
  }
  [[nodiscard]] GroupProblem problem() const {
    GroupProblem problem;
    problem.stages = stages;
    problem.cost = [this](const StageGroup& group) -> std::optional<double> {
      EXPECT_TRUE(is_group(mask_of(group.members), mask_of(group.repeats)));
      const auto place = prices.find({mask_of(group.members), mask_of(group.repeats)});
      return place == prices.end() ? std::nullopt : std::optional(place->second);
    };
    return problem;
  }
};

SmallProblem random_problem(Random& random, std::uint32_t count) {
  SmallProblem made;
  for (std::uint32_t i = 0; i < count; ++i) {
    GroupStage& stage = made.stages.emplace_back();
    std::set<std::uint32_t> read;
    for (std::uint64_t k = random.below(3) + (i < 2 ? 0 : 1); k > 0; --k)
      read.insert(static_cast<std::uint32_t>(random.below(i + 2) < 2 && i > 0 ? count + random.below(2)
                                                                              : random.below(std::max(i, 1U))));
    for (const std::uint32_t value : read)
      if (value < i || value >= count) stage.reads.push_back({value, value < i && random.below(12) == 0});
    stage.kept = random.below(6) == 0;
    stage.repeatable = random.below(2) == 0;
  }
  for (std::uint32_t i = 0; i < count; ++i)
    if (!made.is_wanted(i, 0)) made.stages[i].kept = true;
  const std::uint64_t tenths = 1 + random.below(5);  // of groups that have kernels
  for (Mask members = 1; members <= made.all(); ++members)
    for (Mask repeats = 0; repeats <= made.all(); ++repeats) {
      if (!made.is_group(members, repeats)) continue;
      const auto size = static_cast<std::uint64_t>(std::popcount(members)),
                 repeated = static_cast<std::uint64_t>(std::popcount(repeats));
      if (size + repeated > 1 && random.below(10) >= tenths) continue;
      // Together they cost less than apart, mostly, and what is repeated costs little.
      made.prices[{members, repeats}] = static_cast<double>(8 + random.below(12) + 6 * size + repeated);
    }
  return made;
}

/// The cost of the cheapest cover, by trying all.
class AllCovers {
 public:
  explicit AllCovers(const SmallProblem& problem) : problem_(problem) {
    for (const auto& [group, price] : problem.prices) {
      by_first_[std::countr_zero(group.first)].push_back({group.first, group.second, price});
    }
  }
  double least() {
    go_on(0, 0);
    return best_;
  }

 private:
  struct Kernel {
    Mask members = 0, repeats = 0;
    double price = 0;
  };
  void go_on(Mask decided, double cost) {
    if (cost >= best_) return;
    if (decided == problem_.all()) {
      if (is_cover()) best_ = cost;
      return;
    }
    const int next = std::countr_one(decided);
    for (const Kernel& kernel : by_first_[next]) {
      if ((kernel.members & decided) != 0) continue;
      chosen_.push_back(kernel);
      go_on(decided | kernel.members, cost + kernel.price);
      chosen_.pop_back();
    }
    go_on(decided | bit(static_cast<std::uint32_t>(next)), cost);  // a member of none
  }
  /// Kernels run once all that they read from memory has been stored.
  bool is_cover() {
    Mask stored = 0;
    std::vector<char> done(chosen_.size(), 0);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < chosen_.size(); ++i) {
        const Mask both = chosen_[i].members | chosen_[i].repeats;
        Mask read = 0;
        for (const std::uint32_t stage : stages_in(both))
          for (const GroupStage::Read& one : problem_.stages[stage].reads)
            if (one.value < problem_.stages.size() && (one.in_memory || (both & bit(one.value)) == 0))
              read |= bit(one.value);
        if (done[i] != 0 || (read & ~stored) != 0) continue;
        done[i] = 1;
        changed = true;
        for (const std::uint32_t member : stages_in(chosen_[i].members))
          if (problem_.is_wanted(member, chosen_[i].members)) stored |= bit(member);
      }
    }
    for (std::uint32_t i = 0; i < problem_.stages.size(); ++i)
      if (problem_.stages[i].kept && (stored & bit(i)) == 0) return false;
    return std::all_of(done.begin(), done.end(), [](char one) { return one != 0; });
  }

  const SmallProblem& problem_;
  std::map<int, std::vector<Kernel>> by_first_;
  std::vector<Kernel> chosen_;
  double best_ = std::numeric_limits<double>::infinity();
};

std::vector<StageGroup> single_stages(std::size_t count) {
  std::vector<StageGroup> groups;
  for (std::uint32_t i = 0; i < count; ++i) groups.push_back({{i}, {}});
  return groups;
}

/// The graph twice, side by side: its parts are met twice.
GroupProblem twice(const SmallProblem& once) {
  const auto count = static_cast<std::uint32_t>(once.stages.size());
  GroupProblem problem = once.problem();
  for (GroupStage stage : once.stages) {
    for (GroupStage::Read& read : stage.reads) read.value += read.value < count ? count : 3 * count;
    problem.stages.push_back(stage);
  }
  for (std::uint32_t i = 0; i < count; ++i)
    for (GroupStage::Read& read : problem.stages[i].reads) read.value += read.value < count ? 0 : 2 * count;
  problem.cost = [count, cost = problem.cost](StageGroup group) {
    for (std::vector<std::uint32_t>* const list : {&group.members, &group.repeats})
      for (std::uint32_t& stage : *list) stage %= count;
    return cost(group);
  };
  problem.identity = [count](std::span<const std::uint32_t> part) {
    Hasher identity;
    for (const std::uint32_t stage : part) identity.add(stage % count);
    return identity.finish();
  };
  return problem;
}

TEST(Groups, OfPartsThatWereMetAreTheSame) {
  Random random(23);
  std::size_t met = 0, changed = 0;
  for (int graph = 0; graph < 300; ++graph) {
    const SmallProblem once = random_problem(random, 2 + static_cast<std::uint32_t>(random.below(7)));
    GroupProblem problem = twice(once), without = problem;
    without.identity = {};
    const std::vector<StageGroup> known = single_stages(problem.stages.size());
    GroupCache cache, unused;
    const GroupChoice first = choose_groups(problem, known, cache), again = choose_groups(problem, known, cache),
                      fresh = choose_groups(without, known, unused);
    ASSERT_TRUE(unused.parts.empty());
    for (const GroupChoice& choice : {again, fresh}) {
      ASSERT_EQ(choice.groups, first.groups) << "graph " << graph;
      ASSERT_EQ(choice.cost, first.cost) << "graph " << graph;
      ASSERT_EQ(choice.lower_bound, first.lower_bound) << "graph " << graph;
      ASSERT_EQ(choice.exact, first.exact) << "graph " << graph;
      ASSERT_EQ(choice.complete, first.complete) << "graph " << graph;
    }
    met += cache.parts.size();
    changed += first.groups.size() < known.size() ? 1 : 0;
  }
  EXPECT_GT(met, 200U);
  EXPECT_GT(changed, 100U);
}

TEST(Groups, CostAsLittleAsAnyCover) {
  Random random(17);
  std::size_t several_rounds = 0, with_repeats = 0, left_out = 0;
  GroupOptions options;
  options.extended_size = 8;
  options.maximum_repeats = 8;
  options.candidates_per_stage = 100'000;
  options.maximum_rounds = 1000;
  options.elimination.maximum_table = std::size_t{1} << 20;
  std::size_t exact = 0, graphs = 0;
  for (; exact < 500; ++graphs) {
    const SmallProblem problem = random_problem(random, 2 + static_cast<std::uint32_t>(random.below(7)));
    GroupCache cache;
    const GroupChoice choice = choose_groups(problem.problem(), single_stages(problem.stages.size()), cache, options);
    ASSERT_TRUE(choice.complete) << "graph " << graphs;
    const double least = AllCovers(problem).least();
    ASSERT_LE(choice.lower_bound, least) << "graph " << graphs;
    ASSERT_GE(choice.cost, least) << "graph " << graphs;
    if (choice.exact) {
      ASSERT_EQ(choice.cost, least) << "graph " << graphs;
      ASSERT_EQ(choice.lower_bound, least) << "graph " << graphs;
      ++exact;
    }
    double sum = 0;
    std::size_t members = 0;
    for (const StageGroup& group : choice.groups) {
      sum += problem.prices.at({mask_of(group.members), mask_of(group.repeats)});
      members += group.members.size();
      with_repeats += group.repeats.empty() ? 0 : 1;
    }
    ASSERT_EQ(sum, choice.cost);
    left_out += members < problem.stages.size() ? 1 : 0;
    several_rounds += choice.rounds > 1 ? 1 : 0;
  }
  EXPECT_LT(graphs, 550U) << "most graphs are within the bound of tables";
  EXPECT_GT(several_rounds, 5U);
  EXPECT_GT(with_repeats, 20U);
  EXPECT_GT(left_out, 20U);
}

}  // namespace
}  // namespace taso::testing
