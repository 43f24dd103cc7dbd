#include "verifier/theory/theory.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "verifier/common_terms.h"
#include "verifier/compositions.h"
#include "verifier/identities.h"
#include "verifier/shape_facts.h"
#include "verifier/theory/session.h"

namespace taso {
namespace {

using theory::Session;

// Goals after which a solver and its terms are made anew, and solvers kept: so that neither grows without bound.
constexpr std::size_t goals_per_session = 500;
constexpr std::size_t max_sessions = 12;

}  // namespace

class Theory::Implementation {
 public:
  Implementation(const OperatorRegistry& registry, const std::vector<Substitution>& axioms, std::uint64_t rlimit,
                 std::shared_ptr<ShapeFactsTable> facts)
      : registry_(registry),
        vocabulary_(std::make_shared<theory::Vocabulary>(registry)),
        rlimit_(rlimit),
        facts_(facts != nullptr ? std::move(facts) : std::make_shared<ShapeFactsTable>(registry)) {
    for (std::size_t number = 0; number < axioms.size(); ++number) {
      const Substitution& axiom = axioms[number];
      if (!axiom.is_axiom) {
        const Entailment proof = entails(axiom);
        if (!proof.proved) {
          unproved_.emplace_back(axioms_.size(), axiom.name + ": lemma not proved: " + proof.reason);
          continue;
        }
      }
      axioms_.push_back({axiom, number, operators_of(axiom)});
      sessions_.clear();
    }
  }

  // Compositions are taken as operators first: what is the same on both sides need not be unfolded.
  Entailment entails(const Substitution& rule, const EntailmentOptions& options = {}) {
    const Entailment folded = follows(rule, options);
    if (folded.proved) return folded;
    const std::optional<Substitution> unfolded = with_compositions_unfolded(registry_, rule);
    return unfolded ? follows(*unfolded, options) : folded;
  }

  // Axioms that speak only of the goal's operators come first, then those with one more operator, then all: a small
  // theory saturates quickly where the whole one has endless consequences. Each is first given a short time: a proof is
  // found quickly or hardly ever, and one theory too small must not use up what the next would need little of.
  Entailment follows(const Substitution& rule, const EntailmentOptions& options) {
    // What the sides share need not be understood, and its operators would only make the theory larger.
    if (const std::optional<Substitution> smaller = without_common_terms(rule)) {
      const std::set<std::string> operators = operators_of(*smaller);
      for (const std::size_t foreign : {std::size_t{0}, std::size_t{1}})
        if (!session(choose(operators, foreign, options.without), operators).prove(*smaller, rlimit_ / short_attempts))
          return {true, ""};
    }
    const std::set<std::string> operators = operators_of(rule);
    std::optional<std::string> reason;
    for (const std::uint64_t limit : {rlimit_ / short_attempts, rlimit_}) {
      std::vector<bool> previous;
      for (const std::size_t foreign : {std::size_t{0}, std::size_t{1}, all}) {
        const std::vector<bool> chosen = choose(operators, foreign, options.without);
        if (chosen == previous) continue;
        previous = chosen;
        reason = session(chosen, operators).prove(rule, limit);
        if (!reason) return {true, ""};
      }
      if (options.brief) return {false, *reason};
    }
    // Model-based instantiation, anew.
    Session fresh(vocabulary_, {.model_based_quantifiers = true, .rlimit = rlimit_ / 4});
    assert_chosen(fresh, choose(operators, 0, options.without));
    reason = fresh.prove(rule);
    if (!reason) return {true, ""};
    return {false, *reason};
  }

  Entailment entails_with(const Substitution& rule, const std::vector<Substitution>& more) {
    const std::size_t own = axioms_.size();
    std::map<Key, Kept> kept;
    std::swap(kept, sessions_);  // they know nothing of the axioms that come now
    for (const Substitution& axiom : more) axioms_.push_back({axiom, all, operators_of(axiom)});
    Entailment result;
    std::vector<bool> previous;
    const std::set<std::string> operators = operators_of(rule);
    for (const std::size_t foreign : {std::size_t{0}, std::size_t{1}}) {
      const std::vector<bool> chosen = choose(operators, foreign, std::nullopt);
      if (chosen == previous) continue;
      previous = chosen;
      const std::optional<std::string> reason = session(chosen, operators).prove(rule);
      result = {!reason, reason.value_or("")};
      if (!reason) break;
    }
    axioms_.resize(own);
    std::swap(kept, sessions_);
    return result;
  }

  bool contradicts(const Substitution& rule) {
    return session(choose({}, all, std::nullopt), {}).contradictory(rule, rlimit_);
  }

  // Found when they are first asked for: a proof needs a part of the theory only.
  const std::vector<std::string>& problems() {
    if (problems_) return *problems_;
    problems_.emplace();
    Session check(vocabulary_, {.rlimit = rlimit_});
    auto lemma = unproved_.begin();
    for (std::size_t i = 0; i <= axioms_.size(); ++i) {
      for (; lemma != unproved_.end() && lemma->first == i; ++lemma) problems_->push_back(lemma->second);
      if (i == axioms_.size()) break;
      const std::string problem = check.add_axiom(axioms_[i].axiom, facts_->of(axioms_[i].axiom));
      if (!problem.empty()) problems_->push_back(axioms_[i].axiom.name + ": " + problem);
    }
    return *problems_;
  }
  std::string smt2(const Substitution& rule) { return session(choose({}, all, std::nullopt), {}).smt2(rule); }

 private:
  static constexpr std::size_t all = static_cast<std::size_t>(-1);
  static constexpr std::uint64_t short_attempts = 32;

  struct Known {
    Substitution axiom;
    std::size_t number;  // Among those given.
    std::set<std::string> operators;
  };

  // Axioms with at most `foreign` operators that the goal does not have.
  [[nodiscard]] std::vector<bool> choose(const std::set<std::string>& operators, std::size_t foreign,
                                         std::optional<std::size_t> without = {}) const {
    std::vector<bool> chosen;
    for (const Known& known : axioms_)
      chosen.push_back(static_cast<std::size_t>(
                           std::count_if(known.operators.begin(), known.operators.end(),
                                         [&](const std::string& op) { return !operators.contains(op); })) <= foreign);
    for (std::size_t i = 0; i < axioms_.size() && without; ++i)
      if (axioms_[i].number == *without) chosen[i] = false;
    return chosen;
  }

  void assert_chosen(Session& session, const std::vector<bool>& chosen) {
    std::vector<const Substitution*> axioms;
    for (std::size_t i = 0; i < axioms_.size(); ++i)
      if (chosen[i]) axioms.push_back(&axioms_[i].axiom);
    const std::vector<const ShapeFacts*> facts = facts_->of(axioms);
    for (std::size_t i = 0; i < axioms.size(); ++i) (void)session.add_axiom(*axioms[i], *facts[i]);
  }

  // The session with the chosen axioms, for goals of these operators; of others it need not know anything.
  Session& session(const std::vector<bool>& chosen, const std::set<std::string>& goal_operators) {
    std::set<std::string> operators = goal_operators;
    for (std::size_t i = 0; i < axioms_.size() && !goal_operators.empty(); ++i)
      if (chosen[i]) operators.insert(axioms_[i].operators.begin(), axioms_[i].operators.end());
    Kept& kept = sessions_[{chosen, operators}];
    if (kept.session == nullptr || kept.goals >= goals_per_session) {
      if (sessions_.size() > max_sessions) {
        sessions_.clear();
        vocabulary_ = std::make_shared<theory::Vocabulary>(registry_);
        return session(chosen, goal_operators);
      }
      kept.session = std::make_unique<Session>(
          vocabulary_, smt::SolverOptions{.rlimit = rlimit_, .watchdog_seconds = 10}, operators);
      kept.goals = 0;
      assert_chosen(*kept.session, chosen);
    }
    ++kept.goals;
    return *kept.session;
  }

  struct Kept {
    std::unique_ptr<Session> session;
    std::size_t goals = 0;
  };

  const OperatorRegistry& registry_;
  std::shared_ptr<theory::Vocabulary> vocabulary_;  // Of all sessions, until they are made anew.
  std::uint64_t rlimit_;
  std::shared_ptr<ShapeFactsTable> facts_;
  std::vector<Known> axioms_;
  std::vector<std::pair<std::size_t, std::string>> unproved_;  // Lemmas, before the axiom of this number.
  std::optional<std::vector<std::string>> problems_;
  using Key = std::pair<std::vector<bool>, std::set<std::string>>;  // axioms; operators
  std::map<Key, Kept> sessions_;
};

Theory::Theory(const OperatorRegistry& registry, const std::vector<Substitution>& axioms, std::uint64_t rlimit,
               std::shared_ptr<ShapeFactsTable> facts)
    : implementation_(std::make_unique<Implementation>(registry, axioms, rlimit, std::move(facts))) {}
Theory::~Theory() = default;
Entailment Theory::entails(const Substitution& rule, const EntailmentOptions& options) {
  return implementation_->entails(rule, options);
}
Entailment Theory::entails_with(const Substitution& rule, const std::vector<Substitution>& more) {
  return implementation_->entails_with(rule, more);
}
bool Theory::contradicts(const Substitution& rule) { return implementation_->contradicts(rule); }
const std::vector<std::string>& Theory::problems() const { return implementation_->problems(); }
std::string Theory::smt2(const Substitution& rule) { return implementation_->smt2(rule); }

}  // namespace taso
