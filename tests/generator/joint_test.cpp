// Joint equalities: all that comparing every pair and triple of ways finds, and known ones among the candidates of a
// run.
#include "generator/joint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "generator/generator.h"
#include "support/file.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

using test::registry;

/// Values up to renaming, with the operators that run on both sides.
using Finding = std::tuple<std::vector<ClassId>, std::size_t, std::size_t>;

/// All ways to compute values, compared without an index.
class Brute {
 public:
  explicit Brute(const Bank& bank) : bank_(bank), max_ops_(bank.levels().size() - 1) {
    for (ClassId id = 0; id < bank.classes().size(); ++id) {
      const ValueClass& value = bank.classes()[id];
      if (!value.is_input && value.ops > 0 && value.ops < max_ops_) ways_[id].push_back(terms_of(value.index));
    }
    for (const Hit& hit : bank.hits())
      if (ways_.contains(hit.value)) ways_[hit.value].push_back(terms_of(hit.term));
  }

  [[nodiscard]] std::set<TermId> terms_of(TermId root) const {
    std::set<TermId> result{root};
    for (const ClassId input : bank_.terms()[root].inputs())
      if (!bank_.classes()[input].is_input) result.merge(terms_of(bank_.classes()[input].index));
    return result;
  }

  [[nodiscard]] std::vector<ClassId> up_to_renaming(const std::vector<ClassId>& values) const {
    std::vector<ClassId> least;
    for (std::size_t element = 0; element < bank_.symmetry().size(); ++element) {
      std::vector<ClassId> images;
      for (const ClassId id : values) images.push_back(bank_.symmetry().images(id)[element]);
      std::sort(images.begin(), images.end());
      if (least.empty() || images < least) least = images;
    }
    return least;
  }

  std::set<Finding> find(std::size_t count) const {
    std::set<Finding> result;
    std::vector<ClassId> values;
    choose(count, ways_.begin(), values, result);
    return result;
  }

 private:
  using Ways = std::map<ClassId, std::vector<std::set<TermId>>>;

  void choose(std::size_t count, Ways::const_iterator from, std::vector<ClassId>& values,
              std::set<Finding>& result) const {
    if (values.size() == count) {
      std::set<std::size_t> sources, targets;
      sizes(values, 0, {}, true, sources);
      sizes(values, 0, {}, false, targets);
      for (const std::size_t source : sources)
        for (const std::size_t target : targets)
          if (target < source && source <= max_ops_) result.insert({up_to_renaming(values), source, target});
      return;
    }
    for (; from != ways_.end(); ++from) {
      values.push_back(from->first);
      choose(count, std::next(from), values, result);
      values.pop_back();
    }
  }

  /// Operators of all graphs for some values; with the smallest way for each only.
  void sizes(const std::vector<ClassId>& values, std::size_t at, const std::set<TermId>& terms, bool smallest,
             std::set<std::size_t>& result) const {
    if (at == values.size()) {
      result.insert(terms.size());
      return;
    }
    for (const std::set<TermId>& way : ways_.at(values[at])) {
      if (smallest && way.size() > bank_.classes()[values[at]].ops) continue;
      std::set<TermId> all = terms;
      all.insert(way.begin(), way.end());
      sizes(values, at + 1, all, smallest, result);
    }
  }

  const Bank& bank_;
  std::size_t max_ops_;
  Ways ways_;
};

void compare(const std::string& text, int max_ops, bool with_triples, std::size_t* kept_triples = nullptr) {
  const auto profile = parse_profile(text, "text", registry());
  ASSERT_TRUE(profile.ok()) << profile.error().to_string();
  BankOptions options;
  options.max_ops = max_ops;
  Bank bank(profile->groups[0], registry(), options);
  ASSERT_TRUE(bank.run());
  const Brute brute(bank);
  std::map<std::size_t, std::set<Finding>> found;
  auto class_of = [&](const TermOutput& output) {
    for (ClassId id = 0; id < bank.classes().size(); ++id)
      if (!bank.classes()[id].is_input && bank.classes()[id].index == output.id) return id;
    for (const Hit& hit : bank.hits())
      if (hit.term == output.id) return hit.value;
    return ClassId{0};
  };
  find_joint_equalities(bank, [&](const std::vector<TermOutput>& source, const std::vector<TermOutput>& target) {
    ASSERT_EQ(source.size(), target.size());
    std::vector<ClassId> values;
    std::set<TermId> left, right;
    for (std::size_t i = 0; i < source.size(); ++i) {
      ASSERT_EQ(class_of(source[i]), class_of(target[i]));
      values.push_back(class_of(source[i]));
      left.merge(brute.terms_of(source[i].id));
      right.merge(brute.terms_of(target[i].id));
    }
    found[source.size()].insert({brute.up_to_renaming(values), left.size(), right.size()});
  });
  const std::set<Finding> pairs = brute.find(2);
  EXPECT_FALSE(pairs.empty());
  EXPECT_EQ(found[2], pairs);
  if (!with_triples) return;
  const std::set<Finding> triples = brute.find(3);
  EXPECT_FALSE(triples.empty());
  if (kept_triples != nullptr) *kept_triples = found[3].size();
  // Triples that are a pair and a bystander are left out.
  EXPECT_TRUE(std::includes(triples.begin(), triples.end(), found[3].begin(), found[3].end()));
  for (const Finding& triple : triples) {
    if (found[3].contains(triple)) continue;
    const std::vector<ClassId>& values = std::get<0>(triple);
    bool has_pair = false;
    for (std::size_t i = 0; i < 3; ++i) {
      std::vector<ClassId> pair = values;
      pair.erase(pair.begin() + static_cast<std::ptrdiff_t>(i));
      pair = brute.up_to_renaming(pair);
      has_pair = has_pair ||
                 std::any_of(pairs.begin(), pairs.end(), [&](const Finding& one) { return std::get<0>(one) == pair; });
    }
    EXPECT_TRUE(has_pair) << values[0] << ", " << values[1] << ", " << values[2];
  }
}

TEST(Joint, FindsAllPairsAndTriplesOfSums) {
  compare(
      "profile p\ngroup g\n  max_ops 5\n  max_weight_ops 0\n  extent m: 2, 3\n  activation x [m]\n  activation y [m]\n"
      "  activation z [m]\n  activation w [m]\n  apply add(activation, activation)\n",
      4, true);
}

TEST(Joint, FindsAllPairsOfSumsAndProducts) {
  compare(
      "profile p\ngroup g\n  max_ops 5\n  max_weight_ops 0\n  extent m: 2, 3\n  activation x [m]\n  activation y [m]\n"
      "  activation z [m]\n  apply add(activation, activation)\n  apply mul(activation, activation)\n",
      4, false);
}

TEST(Joint, FindsAllPairsAndTriplesOfTransposedProducts) {
  std::size_t triples = 0;
  compare(
      "profile p\ngroup g\n  max_ops 5\n  max_weight_ops 0\n  extent m: 2, 3\n  extent n: 3, 2\n  activation x [m, n]\n"
      "  activation y [n, m]\n  apply matmul(activation, activation)\n  apply transpose(activation) perm=[1, 0]\n",
      4, true, &triples);
  EXPECT_GT(triples, 0u) << "none is more than a pair and a bystander";
}

std::string text_of(Substitution rule) {
  rule = canonical(rule, registry());
  rule.name = "r";
  return to_string(rule, registry());
}

// They are found, and dropped because associativity leads there.
TEST(Joint, CommonSubexpressionsAreCandidates) {
  const auto profile = load_profile(TASO_SOURCE_DIR "/tests/generator/pruned/sharing.profile", registry());
  ASSERT_TRUE(profile.ok()) << profile.error().to_string();
  GeneratorOptions options;
  options.max_ops = 4;
  const auto result = generate(*profile, registry(), options);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_GT(result->groups[0].candidates.joint, 0u);
  std::set<std::string> pruned;
  for (const PrunedRule& rule : result->pruned) pruned.insert(text_of(rule.rule.rule));
  for (const char* const text : {
           "add(x, y), add(add(x, z), y) => s, add(s, z) where s = add(x, y)",
           "add(add(x, z), y), add(x, add(y, w)) => add(s, z), add(s, w) where s = add(x, y)",
       }) {
    const auto rule = parse_rules(std::string("rule r: ") + text + "\n", "text", registry());
    ASSERT_TRUE(rule.ok()) << rule.error().to_string();
    std::string all;
    for (const std::string& one : pruned) all += one;
    EXPECT_TRUE(pruned.contains(text_of(rule->front()))) << text << "\n" << all;
  }
}

// The whole way to a proof.
TEST(Joint, RulesAreProved) {
  const auto profile = load_profile(TASO_SOURCE_DIR "/tests/generator/cases/shared_work.profile", registry());
  ASSERT_TRUE(profile.ok()) << profile.error().to_string();
  const auto axioms = load_axioms(TASO_SOURCE_DIR "/specs/axioms", registry());
  ASSERT_TRUE(axioms.ok()) << axioms.error().to_string();
  GeneratorOptions options;
  options.max_ops = 4;
  options.verify = true;
  options.axioms = *axioms;
  const auto result = generate(*profile, registry(), options);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  std::size_t shared = 0;
  for (const GeneralRule& rule : result->rules)
    if (rule.rule.source.outputs.size() > 1) {
      ++shared;
      EXPECT_FALSE(rule.rule.proofs.empty()) << to_string(rule.rule, registry());
      EXPECT_EQ(rule.rule.name.rfind("share_", 0), 0u) << rule.rule.name;
    }
  EXPECT_GE(shared, 3u);
}

}  // namespace
}  // namespace taso
