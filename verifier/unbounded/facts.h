/// Hypotheses on integers, and what follows from them.
///
/// Equations are solved where a symbol occurs alone with coefficient +-1 (after division by symbols that are positive)
/// and substituted, so that equal sizes become equal polynomials. Quotients and lookups whose arguments change are
/// renamed with them. What is left are inequalities p >= 0 and equations that cannot be solved.
///
/// Points at which the hypotheses hold are remembered (points.h): what is false at one of them does not follow. Else
/// entailment is decided in three steps, each sound: signs (every summand is at least something), elimination of
/// monomials as if they were variables (Fourier and Motzkin, with integer rounding, with products of hypotheses by
/// positive symbols, and s * p > 0 => p > 0 for s >= 1), and Z3's non-linear integer arithmetic. What none of them
/// proves counts as not entailed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "support/hash.h"
#include "verifier/unbounded/budget.h"
#include "verifier/unbounded/index_polynomial.h"
#include "verifier/unbounded/points.h"

namespace taso::unbounded {

/// The way to Z3: one context, made when it is first asked, with a limit for each question and one for all; and a
/// memory of what has been decided.
class IntegerSolver {
 public:
  /// What is known of a set of inequalities.
  struct Answer {
    bool eliminated = false;  ///< Elimination has been tried.
    bool asked = false;       ///< Z3 has been asked.
    bool contradictory = false;
  };
  /// The entry of a set of inequalities.
  [[nodiscard]] Answer& remembered(const Hash128& key) { return answers_[key]; }
  /// The entry of a set of inequalities by the question that led to it; null at first.
  [[nodiscard]] Answer*& asked_before(const Hash128& question) { return questions_[question]; }

  /// The budget is that of the whole proof; without one there is no limit.
  IntegerSolver(const Symbols& symbols, std::uint64_t rlimit, std::size_t max_queries, Budget* budget = nullptr);
  ~IntegerSolver();
  IntegerSolver(const IntegerSolver&) = delete;
  IntegerSolver& operator=(const IntegerSolver&) = delete;
  /// Whether no integers satisfy all of p >= 0.
  [[nodiscard]] bool infeasible(std::span<const Polynomial> nonnegative);
  /// Whether a question was not asked because of the limit on their number.
  [[nodiscard]] bool refused() const { return refused_; }
  /// What all that is asked and made in this proof is counted by.
  [[nodiscard]] Budget& budget() { return *budget_; }
  /// As many questions as at first may be asked again.
  void begin_again() {
    queries_ = 0;
    refused_ = false;
  }

 private:
  struct State;
  const Symbols& symbols_;
  std::uint64_t rlimit_;
  Budget unlimited_;
  Budget* budget_;
  std::size_t max_queries_;
  std::size_t queries_ = 0;
  bool refused_ = false;
  std::unique_ptr<State> state_;
  std::unordered_map<Hash128, Answer> answers_;
  std::unordered_map<Hash128, Answer*> questions_;
};

/// A conjunction of hypotheses: a value, copied where cases are distinguished. The tables that it refers to are shared.
class Facts {
 public:
  Facts(Symbols& symbols, IntegerSolver& solver) : symbols_(&symbols), solver_(&solver) {}

  /// Adds a hypothesis. False if it plainly contradicts the others.
  bool add(const Atom& atom);
  /// The polynomial with solved symbols replaced.
  [[nodiscard]] Polynomial reduce(const Polynomial& p);
  [[nodiscard]] Atom reduce(const Atom& atom) { return {atom.relation, reduce(atom.p)}; }
  /// Whether the hypotheses and `context` imply the goal.
  [[nodiscard]] bool entails(const Atom& goal, std::span<const Atom> context = {});
  /// The same without Z3.
  [[nodiscard]] bool entails_quickly(const Atom& goal, std::span<const Atom> context = {});
  /// Whether the hypotheses contradict `context` or one another.
  [[nodiscard]] bool contradictory(std::span<const Atom> context = {});
  /// The same without Z3.
  [[nodiscard]] bool contradictory_quickly(std::span<const Atom> context = {});
  /// n // d, rounded down; nothing if d is not known to be positive (or a negative number).
  [[nodiscard]] std::optional<Polynomial> divide(const Polynomial& n, const Polynomial& d,
                                                 std::span<const Atom> context = {});
  /// The larger of two.
  [[nodiscard]] Polynomial larger(const Polynomial& a, const Polynomial& b, std::span<const Atom> context = {});
  /// A polynomial with symbols replaced by others, quotients and lookups included.
  using Replacement = std::vector<std::pair<SymbolId, Polynomial>>;
  [[nodiscard]] Polynomial substitute(const Polynomial& p, const Replacement& replacement);
  /// Solved symbols and what they are.
  [[nodiscard]] const Replacement& solved() const { return solved_; }
  /// The inequalities and the unsolved equations.
  [[nodiscard]] std::vector<Atom> atoms() const;
  [[nodiscard]] Symbols& symbols() const { return *symbols_; }
  [[nodiscard]] Budget& budget() const { return solver_->budget(); }
  /// Points at which the hypotheses hold; none where none were found.
  [[nodiscard]] std::span<const Point> points();

 private:
  struct Bounds;  // lower bounds of symbols
  [[nodiscard]] bool solve(const Polynomial& p, bool& contradiction);
  void replace(SymbolId symbol, const Polynomial& value, bool& contradiction);
  bool add_inequality(Polynomial p);
  bool add_equation(Polynomial p);
  /// The bounds that the inequalities give.
  [[nodiscard]] Bounds bounds();
  /// The factors of a product that is positive, if none is negative.
  bool add_factors(const Monomial& product);
  bool use_product(const Polynomial& equation);
  [[nodiscard]] std::vector<Polynomial> constraints(std::span<const Atom> context, const Polynomial* negated,
                                                    const Bounds& bounds) const;
  /// Whether p >= 0 follows from signs, or from one hypothesis and signs.
  [[nodiscard]] bool quickly_implied(const Polynomial& p, std::span<const Atom> context, const Bounds& bounds) const;
  /// The same of p >= 1.
  [[nodiscard]] bool quickly_positive(const Polynomial& p, std::span<const Atom> context, const Bounds& bounds) const;
  [[nodiscard]] bool decide(const Polynomial* goal, std::span<const Atom> context, bool with_solver);
  /// Whether all of `context` holds and the goal does not, at a point at which the hypotheses hold.
  [[nodiscard]] bool refuted(const Polynomial* goal, std::span<const Atom> context);
  [[nodiscard]] Hash128 key_of(const Polynomial* goal, std::span<const Atom> context);
  [[nodiscard]] Polynomial divide_symbolically(const Polynomial& n, const Polynomial& d, std::span<const Atom> context);

  Symbols* symbols_;
  IntegerSolver* solver_;
  Replacement solved_;
  std::vector<Polynomial> inequalities_;
  std::vector<Polynomial> equations_;
  bool inconsistent_ = false;
  /// Points at which the hypotheses hold, shared by copies with the same hypotheses; found when first needed, and again
  /// when hypotheses were added at which most of them fail.
  struct Points {
    bool found = false;
    std::vector<Point> points;
  };
  std::shared_ptr<Points> points_ = std::make_shared<Points>();
  std::optional<Hash128> digest_;  ///< Of the hypotheses, once it has been needed.
  /// The largest known lower bounds of symbols, of inequalities_ so far.
  std::vector<std::pair<SymbolId, std::int64_t>> least_;
  std::size_t noted_ = 0;
};

}  // namespace taso::unbounded
