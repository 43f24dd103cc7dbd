#include "partition/solve_limited.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <tuple>

#include "partition/priced_problem.h"

namespace taso {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();
/// Sums are rounded.
constexpr double rounding = 1e-12;

class LimitedSolver {
 public:
  LimitedSolver(const PartitionProblem& problem, const ResourceLimit& limit, const LimitedOptions& options)
      : problem_(problem), limit_(limit), options_(options), priced_(problem) {}

  LimitedSolution run() {
    result_.solution = solve_exact(problem_, options_.exact);
    bound_ = result_.solution.lower_bound;
    const ResourceLimit::Use first = meet(result_.solution.choice);
    if (result_.found) return finish(result_.solution.exact);
    Candidate worst{result_.solution.choice, first};
    for (std::size_t i = 0; i < options_.places && !stopped() && !optimal(); ++i) {
      const std::optional<Candidate> next = settle(worst);
      if (impossible() || !next) break;
      worst = *next;
    }
    if (!impossible() && !stopped() && !optimal()) branch();
    return finish(optimal());
  }

 private:
  struct Candidate {
    ResourceLimit::Choice choice;
    ResourceLimit::Use use;
  };

  bool stopped() {
    result_.stopped = result_.stopped || options_.stop.raised();
    return result_.stopped;
  }
  [[nodiscard]] bool impossible() const { return result_.needs_at_least > limit_.most * (1 + rounding); }
  [[nodiscard]] bool optimal() const { return result_.found && best_ * (1 - rounding) <= bound_; }

  LimitedSolution finish(bool exact) {
    if (result_.found) {
      result_.solution.choice = best_choice_;
      result_.solution.cost = best_;
      result_.solution.exact = exact;
    }
    result_.solution.lower_bound = std::min(bound_, result_.found ? best_ : unlimited);
    result_.prices.assign(prices_.begin(), prices_.end());
    return std::move(result_);
  }

  /// Looks whether a choice keeps to the limit, and is the best one so far.
  ResourceLimit::Use meet(const ResourceLimit::Choice& choice) {
    const ResourceLimit::Use use = limit_.used(choice);
    const double cost = problem_.cost(choice);
    if (use.amount <= limit_.most && cost < best_) {
      best_ = cost;
      best_choice_ = choice;
      result_.found = true;
    }
    return use;
  }

  const std::vector<PartitionProblem::Cost>& tables(std::size_t place) {
    const auto [at, fresh] = tables_.try_emplace(place);
    if (fresh) at->second = limit_.at_least(place);
    return at->second;
  }

  double amount(std::size_t place, const ResourceLimit::Choice& choice) {
    return PricedProblem::sum(tables(place), problem_, choice);
  }

  /// The relaxation with all prices; its bound counts.
  PartitionSolution relax(const std::map<std::size_t, double>& prices) {
    PartitionSolution solution = priced_.solve(terms_of(prices), options_.exact);
    bound_ = std::max(bound_, solution.lower_bound - constant_of(prices));
    return solution;
  }
  std::vector<PricedProblem::Term> terms_of(const std::map<std::size_t, double>& prices) {
    std::vector<PricedProblem::Term> terms;
    for (const auto& [place, price] : prices) terms.push_back({&tables(place), price});
    return terms;
  }
  [[nodiscard]] double constant_of(const std::map<std::size_t, double>& prices) const {
    double sum = 0;
    for (const auto& [place, price] : prices) sum += price * limit_.most;
    return sum;
  }

  /// A choice that keeps to the limit at a place: at a price that is high beside all costs, or else, to know whether
  /// there is one, whatever it costs. Nothing if there is none.
  std::optional<ResourceLimit::Choice> taking_little(std::size_t place, double cost) {
    constexpr double high = 1e4;
    std::map<std::size_t, double> prices = prices_;
    prices[place] = high * cost / std::max(limit_.most, 1.0);
    const PartitionSolution dear = relax(prices);
    if (amount(place, dear.choice) <= limit_.most) return dear.choice;
    const PartitionSolution least = priced_.least(tables(place), options_.exact);
    result_.needs_at_least = std::max(result_.needs_at_least, least.lower_bound);
    if (impossible() || least.cost >= EliminationProblem::forbidden_cost) return std::nullopt;
    return least.choice;
  }

  /// Finds the price at the place where `start` takes most. A choice that keeps to the limit there but not elsewhere;
  /// nothing if there is none, or no price helps.
  std::optional<Candidate> settle(const Candidate& start) {
    const std::size_t place = start.use.place;
    if (prices_.contains(place)) return std::nullopt;
    const std::optional<ResourceLimit::Choice> least = taking_little(place, problem_.cost(start.choice));
    if (!least) return std::nullopt;
    // Lines: what they cost with the prices of other places, and what they take here.
    const auto line = [&](const ResourceLimit::Choice& choice) {
      double cost = problem_.cost(choice);
      for (const auto& [other, price] : prices_) cost += price * amount(other, choice);
      return std::pair(cost, amount(place, choice));
    };
    auto [dear_cost, dear_amount] = line(start.choice);  // takes too much
    auto [low_cost, low_amount] = line(*least);
    std::optional<Candidate> last;
    const auto keep = [&](const ResourceLimit::Choice& choice) {
      const ResourceLimit::Use use = meet(choice);
      if (use.amount > limit_.most) last = Candidate{choice, use};
    };
    keep(*least);
    std::map<std::size_t, double> prices = prices_;
    for (std::size_t i = 0; i < options_.secants && !stopped(); ++i) {
      // The line of too much may lie under the other one only as far as the price is low: amounts differ then.
      if (!(dear_amount > low_amount) || !(low_cost > dear_cost)) break;
      prices[place] = (low_cost - dear_cost) / (dear_amount - low_amount);
      const PartitionSolution solution = relax(prices);
      const auto [cost, taken] = line(solution.choice);
      keep(solution.choice);
      const double corner = dear_cost + prices[place] * dear_amount;
      if (cost + prices[place] * taken >= corner - 1e-9 * corner) break;
      if (taken > limit_.most)
        std::tie(dear_cost, dear_amount) = std::pair(cost, taken);
      else
        std::tie(low_cost, low_amount) = std::pair(cost, taken);
    }
    if (!prices.contains(place)) return std::nullopt;
    prices_ = prices;
    return last && last->use.place != place ? last : std::nullopt;
  }

  /// A restriction of the problem: some decisions cannot go some ways.
  struct Branch {
    double bound = 0;
    std::size_t number = 0;  ///< Of equal bounds the one made later is looked at first.
    std::shared_ptr<const PricedProblem::Restriction> restriction;
    ResourceLimit::Choice choice;  ///< Of its relaxation.
    bool operator<(const Branch& other) const {
      return std::pair(-bound, number) < std::pair(-other.bound, other.number);
    }
  };

  /// Best first, until the bound of what is open reaches the best choice, or the work is done.
  void branch() {
    const auto nodes = static_cast<std::size_t>(std::min(
        static_cast<double>(options_.most_nodes), options_.work / std::max(1.0, result_.solution.order.combinations)));
    std::priority_queue<Branch> open;
    push(open, std::make_shared<PricedProblem::Restriction>());
    std::size_t looked_at = 0;
    for (; !open.empty() && open.top().bound < best_ * (1 - rounding); ++looked_at) {
      if (looked_at >= nodes || stopped()) break;
      const Branch branch = open.top();
      open.pop();
      split(open, branch);
    }
    const double left = open.empty() ? best_ : std::min(best_, open.top().bound);
    bound_ = std::max(bound_, left);
    if (open.empty() && !result_.found) result_.needs_at_least = std::max(result_.needs_at_least, beyond_);
  }

  void push(std::priority_queue<Branch>& open, std::shared_ptr<const PricedProblem::Restriction> restriction) {
    double bound = 0;
    ResourceLimit::Choice choice;
    for (const double factor : {1.0, 4.0}) {
      std::map<std::size_t, double> prices = prices_;
      for (auto& [place, price] : prices) price *= factor;
      const PartitionSolution solution = priced_.solve(terms_of(prices), options_.exact, restriction.get());
      bound = std::max(bound, solution.lower_bound - constant_of(prices));
      if (factor == 1) choice = solution.choice;
      if (bound >= EliminationProblem::forbidden_cost) return;
      meet(solution.choice);
      if (bound >= best_ * (1 - rounding)) return;
      if (prices.empty()) break;
    }
    open.push({bound, made_++, std::move(restriction), std::move(choice)});
  }

  /// In one half, the decision that takes most goes the way it goes, in the other one any other.
  void split(std::priority_queue<Branch>& open, const Branch& branch) {
    const ResourceLimit::Use use = limit_.used(branch.choice);
    std::vector<double> takes(problem_.decisions(), 0);
    for (const PartitionProblem::Cost& cost : tables(use.place))
      for (const PartitionProblem::Decision decision : cost.scope)
        takes[decision] += PricedProblem::entry(cost, problem_, branch.choice);
    std::optional<PartitionProblem::Decision> most;
    for (PartitionProblem::Decision decision = 0; decision < takes.size(); ++decision) {
      if (branch.restriction->is_fixed(decision) || problem_.ways(decision) == 1) continue;
      if (!most || takes[decision] > takes[*most]) most = decision;
    }
    if (!most) {  // One choice is left, which was looked at.
      beyond_ = std::min(beyond_, use.amount);
      return;
    }
    for (const bool fixed : {true, false}) {
      auto half = std::make_shared<PricedProblem::Restriction>(*branch.restriction);
      if (fixed)
        half->fix(*most, branch.choice[*most]);
      else
        half->forbid(*most, branch.choice[*most], problem_.ways(*most));
      push(open, std::move(half));
    }
  }

  const PartitionProblem& problem_;
  const ResourceLimit& limit_;
  const LimitedOptions& options_;
  PricedProblem priced_;
  LimitedSolution result_;
  std::map<std::size_t, std::vector<PartitionProblem::Cost>> tables_;
  std::map<std::size_t, double> prices_;
  double bound_ = 0, best_ = unlimited, beyond_ = unlimited;
  ResourceLimit::Choice best_choice_;
  std::size_t made_ = 0;
};

}  // namespace

LimitedSolution solve_limited(const PartitionProblem& problem, const ResourceLimit& limit,
                              const LimitedOptions& options) {
  return LimitedSolver(problem, limit, options).run();
}

}  // namespace taso
