#include "verifier/missing.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "verifier/axiom_report.h"
#include "verifier/theory/theory.h"

namespace taso {
namespace {

// Identities that together close one rule.
constexpr std::size_t max_together = 4;

/// A proved identity.
struct Candidate {
  Substitution axiom;
  IdentitySize size;
  std::string origin, generalises;
};

bool by_size(const Candidate& a, const Candidate& b) { return a.size < b.size; }

class Run {
 public:
  Run(const OperatorRegistry& registry, const std::vector<Substitution>& axioms, const std::vector<Substitution>& rules,
      const MissingOptions& options)
      : registry_(registry), axioms_(axioms), rules_(rules), options_(options) {}

  MissingReport run() {
    for (const Substitution& axiom : axioms_)
      if (const auto canonical = canonical_identity(axiom, registry_, "identity"); !canonical.name.empty())
        known_.insert(to_string(canonical, registry_));
    generalise_axioms();
    closed_.resize(rules_.size());
    reasons_.resize(rules_.size());
    in_parallel("rules", rules_.size(), [&](std::size_t i, Theory& theory) { close(i, theory); });
    MissingReport report;
    report.interrupted = stopped();
    if (report.interrupted) return report;
    collect();
    leave_out();
    order(report);
    return report;
  }

 private:
  [[nodiscard]] bool stopped() const { return options_.stop && options_.stop(); }

  /// Tasks write to places of their own, so that the number of threads changes nothing.
  template <class Task>
  void in_parallel(const std::string& what, std::size_t count, const Task& task) {
    std::atomic<std::size_t> next = 0;
    std::size_t done = 0;
    std::mutex mutex;
    auto work = [&](std::size_t thread) {
      for (std::size_t i = next++; i < count && !stopped(); i = next++) {
        task(i, *theories_[thread]);
        const std::lock_guard lock(mutex);
        if (options_.progress) options_.progress(what, ++done, count);
      }
    };
    const std::size_t wanted = std::max<std::size_t>(1, std::min<std::size_t>(options_.threads, count));
    while (theories_.size() < wanted)
      theories_.push_back(std::make_unique<Theory>(registry_, axioms_, options_.rlimit));
    std::vector<std::thread> threads;
    for (std::size_t t = 1; t < wanted; ++t) threads.emplace_back(work, t);
    work(0);
    for (std::thread& thread : threads) thread.join();
  }

  [[nodiscard]] std::optional<Candidate> candidate(const Substitution& statement, const std::string& origin,
                                                   const std::string& generalises) const {
    Candidate result;
    result.axiom = canonical_identity(statement, registry_, "identity");
    if (result.axiom.name.empty()) return std::nullopt;
    result.size = size_of(result.axiom, registry_);
    if (known_.contains(result.size.text)) return std::nullopt;
    result.origin = origin;
    result.generalises = generalises;
    return result;
  }

  /// Axioms that speak of nothing but a rule's operators may be stated too narrowly.
  void generalise_axioms() {
    std::vector<std::set<std::string>> operators;
    for (const Substitution& rule : rules_) operators.push_back(related_operators(rule, axioms_));
    std::vector<std::size_t> relevant;
    for (std::size_t i = 0; i < axioms_.size(); ++i) {
      const std::set<std::string> own = operators_of(axioms_[i]);
      if (axioms_[i].is_axiom && std::any_of(operators.begin(), operators.end(), [&](const auto& all) {
            return std::includes(all.begin(), all.end(), own.begin(), own.end());
          }))
        relevant.push_back(i);
    }
    std::vector<std::optional<Candidate>> found(relevant.size());
    in_parallel("axioms", relevant.size(), [&](std::size_t i, Theory& /*theory*/) {
      const Substitution& axiom = axioms_[relevant[i]];
      const Generalisation general = generalise(registry_, axiom, options_.generalise);
      if (!general.steps.empty())
        found[i] = candidate(general.rule, "a general form of axiom " + axiom.name, axiom.name);
    });
    std::set<std::string> seen;
    for (std::optional<Candidate>& one : found)
      if (one && seen.insert(one->size.text).second) general_axioms_.push_back(std::move(*one));
  }

  /// What may close a rule, smallest first; proved, each once.
  [[nodiscard]] std::vector<Candidate> candidates(std::size_t index) const {
    const Substitution& rule = rules_[index];
    const std::set<std::string> operators = related_operators(rule, axioms_);
    std::vector<Candidate> result;
    std::set<std::string> seen;
    auto take = [&](std::optional<Candidate> one) {
      if (one && seen.insert(one->size.text).second) result.push_back(std::move(*one));
    };
    for (const Candidate& one : general_axioms_) {
      const std::set<std::string> own = operators_of(one.axiom);
      if (std::includes(operators.begin(), operators.end(), own.begin(), own.end())) take(one);
    }
    std::size_t tried = 0;
    for (const Substitution& identity : identities_within(registry_, rule, axioms_, options_.identities)) {
      if (stopped() || tried >= options_.max_candidates) break;
      const std::optional<Candidate> plain = candidate(identity, "within rule " + rule.name, "");
      if (!plain) continue;
      ++tried;
      const Generalisation general = generalise(registry_, identity, options_.generalise);
      if (general.proved) take(candidate(general.rule, plain->origin, ""));
    }
    std::stable_sort(result.begin(), result.end(), by_size);
    return result;
  }

  /// Whether a rule follows from the axioms and these; with `sensible` also whether they do not entail everything.
  [[nodiscard]] static bool follows(const Substitution& rule, Theory& theory,
                                    const std::vector<const Candidate*>& added, bool sensible) {
    std::vector<Substitution> more;
    more.reserve(added.size());
    for (const Candidate* one : added) more.push_back(one->axiom);
    Substitution goal = rule;
    goal.is_axiom = false;
    if (!theory.entails_with(goal, more).proved) return false;
    // From what entails x = y for any x and y, anything follows.
    return !sensible || !theory.entails_with(collapse_goal(goal, 0, 1), more).proved;
  }

  void close(std::size_t index, Theory& theory) {
    const Substitution& rule = rules_[index];
    std::vector<Candidate> list = candidates(index);
    while (!list.empty() && !stopped()) {
      const std::vector<std::size_t> chosen = smallest(rule, theory, list);
      if (chosen.empty()) break;
      std::vector<const Candidate*> added;
      added.reserve(chosen.size());
      for (const std::size_t i : chosen) added.push_back(&list[i]);
      if (follows(rule, theory, added, true)) {
        for (const Candidate* one : added) closed_[index].push_back(*one);
        return;
      }
      // What entails everything is not what is missing: on without these.
      for (const std::size_t i : chosen) list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    }
    // The rule itself.
    const Generalisation general = generalise(registry_, rule, options_.generalise);
    for (const Substitution& form : {general.rule, rule}) {
      const std::optional<Candidate> itself = candidate(form, "rule " + rule.name + " itself", "");
      if (!itself) continue;
      if (!follows(rule, theory, {&*itself}, true)) continue;
      closed_[index].push_back(*itself);
      if (!general.proved) closed_[index].back().origin += ", valid at the examined instances only: " + general.reason;
      return;
    }
    reasons_[index] = "no identity was found with which it follows; as an axiom the rule itself is of no use to Z3";
  }

  /// Numbers of the smallest candidates with which the rule follows, the largest first; empty if all are not enough.
  [[nodiscard]] std::vector<std::size_t> smallest(const Substitution& rule, Theory& theory,
                                                  const std::vector<Candidate>& list) const {
    std::vector<std::size_t> chosen;
    auto with = [&](std::size_t beginning) {
      std::vector<const Candidate*> added;
      added.reserve(chosen.size() + beginning);
      for (const std::size_t i : chosen) added.push_back(&list[i]);
      for (std::size_t i = 0; i < beginning; ++i) added.push_back(&list[i]);
      return follows(rule, theory, added, false);
    };
    std::size_t enough = list.size();
    if (!with(enough)) return {};
    // With the first `enough` candidates and those chosen the rule follows.
    while (enough > 0 && (chosen.empty() || !with(0))) {
      if (chosen.size() == max_together || stopped()) return {};
      std::size_t too_few = 0;
      while (enough - too_few > 1) {
        const std::size_t middle = too_few + (enough - too_few) / 2;
        (with(middle) ? enough : too_few) = middle;
      }
      chosen.push_back(--enough);
    }
    if (chosen.size() < 2) return chosen;
    // One identity is better than several, if it is not larger than they are together.
    std::size_t together = 0;
    for (const std::size_t i : chosen) together += list[i].size.operators;
    for (std::size_t i = 0; i < list.size() && !stopped(); ++i)
      if (list[i].size.operators <= together && list[i].axiom.source.outputs.size() > 1 &&
          follows(rule, theory, {&list[i]}, false))
        return {i};
    return chosen;
  }

  /// Every identity once, smallest first.
  void collect() {
    std::map<IdentitySize, std::size_t> numbers;
    for (const auto& closed : closed_)
      for (const Candidate& one : closed) {
        if (numbers.emplace(one.size, pool_.size()).second) pool_.push_back(one);
      }
    std::stable_sort(pool_.begin(), pool_.end(), by_size);
    uses_.resize(rules_.size());
    for (std::size_t rule = 0; rule < closed_.size(); ++rule)
      for (const Candidate& one : closed_[rule])
        for (std::size_t i = 0; i < pool_.size(); ++i)
          if (pool_[i].size == one.size) uses_[rule].insert(i);
  }

  /// Leaves out identities without which their rules follow from those that stay: large ones for few rules first.
  void leave_out() {
    std::vector<std::size_t> order(pool_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    auto users = [&](std::size_t identity) {
      return std::count_if(uses_.begin(), uses_.end(), [&](const auto& used) { return used.contains(identity); });
    };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const auto left = users(a), right = users(b);
      return left != right ? left < right : a > b;
    });
    std::vector<bool> out(pool_.size(), false);
    for (const std::size_t identity : order) {
      if (stopped()) return;
      // What else speaks of the operators of each of its rules.
      std::vector<std::pair<std::size_t, std::set<std::size_t>>> instead;
      bool unnecessary = true;
      for (std::size_t rule = 0; rule < rules_.size() && unnecessary; ++rule) {
        if (!uses_[rule].contains(identity)) continue;
        const std::set<std::string> operators = related_operators(rules_[rule], axioms_);
        std::set<std::size_t> others;
        std::vector<const Candidate*> added;
        for (std::size_t i = 0; i < pool_.size(); ++i) {
          const std::set<std::string> own = operators_of(pool_[i].axiom);
          if (i == identity || out[i] || users(i) == 0 ||
              !std::includes(operators.begin(), operators.end(), own.begin(), own.end()))
            continue;
          others.insert(i);
          added.push_back(&pool_[i]);
        }
        unnecessary = !others.empty() && follows(rules_[rule], *theories_[0], added, true);
        instead.emplace_back(rule, others);
      }
      if (!unnecessary || instead.empty()) continue;
      out[identity] = true;
      for (auto& [rule, others] : instead) uses_[rule] = needed(rule, others);
    }
  }

  /// A part of the identities with which the rule still follows, and without any one of which it does not.
  [[nodiscard]] std::set<std::size_t> needed(std::size_t rule, std::set<std::size_t> all) const {
    Theory& theory = *theories_[0];
    for (const std::size_t one : std::vector<std::size_t>(all.rbegin(), all.rend())) {
      if (all.size() == 1) break;
      std::vector<const Candidate*> added;
      for (const std::size_t i : all)
        if (i != one) added.push_back(&pool_[i]);
      if (follows(rules_[rule], theory, added, true)) all.erase(one);
    }
    return all;
  }

  /// Greedy: the identity that completes most rules, then the one that most rules wait for, then the smallest.
  void order(MissingReport& report) {
    std::set<std::size_t> left;
    for (const auto& used : uses_) left.insert(used.begin(), used.end());
    std::set<std::size_t> taken;
    std::map<std::size_t, std::size_t> position;
    std::set<std::string> names;
    for (const Substitution& axiom : axioms_) names.insert(axiom.name);
    while (!left.empty()) {
      std::size_t best = *left.begin(), best_adds = 0, best_waiting = 0;
      for (const std::size_t identity : left) {
        std::size_t adds = 0, waiting = 0;
        for (const auto& used : uses_) {
          if (!used.contains(identity)) continue;
          ++waiting;
          adds += std::all_of(used.begin(), used.end(),
                              [&](std::size_t other) { return other == identity || taken.contains(other); })
                      ? 1U
                      : 0U;
        }
        if (adds > best_adds || (adds == best_adds && waiting > best_waiting)) {
          best = identity;
          best_adds = adds;
          best_waiting = waiting;
        }
      }
      left.erase(best);
      taken.insert(best);
      MissingIdentity identity;
      identity.axiom = pool_[best].axiom;
      identity.axiom.name = name_of(pool_[best], names);
      identity.axiom.where = {};
      identity.origin = pool_[best].origin;
      identity.generalises = pool_[best].generalises;
      identity.adds = best_adds;
      for (std::size_t rule = 0; rule < uses_.size(); ++rule)
        if (uses_[rule].contains(best)) identity.rules.push_back(rule);
      position[best] = report.identities.size();
      report.identities.push_back(std::move(identity));
    }
    for (std::size_t rule = 0; rule < rules_.size(); ++rule) {
      MissingRule one;
      one.rule = rule;
      for (const std::size_t identity : uses_[rule]) one.identities.push_back(position[identity]);
      std::sort(one.identities.begin(), one.identities.end());
      if (one.identities.empty()) one.reason = reasons_[rule];
      report.rules.push_back(std::move(one));
    }
  }

  /// After the axiom that it generalises, else after its operators; not a name that is taken.
  static std::string name_of(const Candidate& candidate, std::set<std::string>& names) {
    std::string base = candidate.generalises.empty() ? "" : candidate.generalises + "_general";
    if (base.empty()) {
      std::string last;
      for (const Pattern* side : {&candidate.axiom.source, &candidate.axiom.target})
        for (auto node = side->nodes.rbegin(); node != side->nodes.rend(); ++node) {
          if (side == &candidate.axiom.target && !base.empty()) break;
          if (node->op != last) base += (base.empty() ? "" : "_") + node->op;
          last = node->op;
        }
    }
    std::string name = base;
    for (int number = 2; !names.insert(name).second; ++number) name = base + "_" + std::to_string(number);
    return name;
  }

  const OperatorRegistry& registry_;
  const std::vector<Substitution>& axioms_;
  const std::vector<Substitution>& rules_;
  const MissingOptions& options_;
  std::set<std::string> known_;                    // texts of the axioms
  std::vector<std::unique_ptr<Theory>> theories_;  // one for each thread
  std::vector<Candidate> general_axioms_;
  std::vector<std::vector<Candidate>> closed_;  // per rule: with what it follows
  std::vector<std::string> reasons_;            // per rule: why nothing was found
  std::vector<Candidate> pool_;
  std::vector<std::set<std::size_t>> uses_;  // per rule: numbers of the pool
};

}  // namespace

MissingReport find_missing_axioms(const OperatorRegistry& registry, const std::vector<Substitution>& axioms,
                                  const std::vector<Substitution>& rules, const MissingOptions& options) {
  return Run(registry, axioms, rules, options).run();
}

}  // namespace taso
