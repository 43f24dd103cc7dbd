/// Equality of normal forms under hypotheses.
///
/// Both forms are simplified (guards that follow are dropped, summands that contradict are dropped, a sum over a
/// variable that an equation determines is its one summand, guards inside of functions move out), then their summands
/// are paired by bijections of the bound variables under which guards imply each other and factors are equal. Summands
/// that pair with nothing are divided by guards of others; guards without bound variables are decided case by case.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "verifier/unbounded/normal_form.h"

namespace taso::unbounded {

/// The cases that a guard distinguishes: it, and what excludes it.
[[nodiscard]] std::vector<Atom> alternatives(const Atom& guard);
/// What must be decided before cases are distinguished by something that speaks of p: that the divisor of a quotient in
/// it, or what an element of an input of integers indexes, is positive. Such a symbol stands under guards from which
/// this follows; a case by it alone would be one of nothing elsewhere. Nothing if the facts and `context` say so of
/// all.
[[nodiscard]] std::optional<Atom> unsettled(const Polynomial& p, Facts& facts, std::span<const Atom> context = {});

class Matcher {
 public:
  /// `steps`: comparisons and case distinctions left to this matcher and all that share the counter.
  explicit Matcher(std::size_t& steps) : steps_(steps) {}

  /// Whether a and b are equal wherever the facts hold.
  [[nodiscard]] bool equal(const NormalForm& a, const NormalForm& b, const Facts& facts);
  /// Whether every value of a family is one of `all`, wherever the facts and its guards hold.
  [[nodiscard]] bool covered(const Element& one, const Elements& all, const Facts& facts);
  /// Why not, of the first failure.
  [[nodiscard]] const std::string& reason() const { return reason_; }

  /// Whether the forms have different values at a point.
  [[nodiscard]] bool refuted() const { return refuted_; }

  /// A normal form simplified under facts; `problem` receives what could not be understood.
  [[nodiscard]] NormalForm simplify(const NormalForm& form, Facts& facts);

 private:
  using Map = Facts::Replacement;
  static constexpr int max_divisions = 2;  ///< Of a family that others cover together.

  [[nodiscard]] NormalForm simplify(const Term& term, Facts& facts, int depth);
  [[nodiscard]] NormalForm simplify(const Factor& factor, Facts& facts, const std::vector<Atom>& guards, int depth);
  [[nodiscard]] bool simplify_guards(Term& term, Facts& facts);
  [[nodiscard]] bool equal(const NormalForm& a, const NormalForm& b, const Facts& facts, int depth);
  /// Whether the summands of a - b cancel; leaves division_ alone.
  [[nodiscard]] bool paired(const NormalForm& a, const NormalForm& b, Facts& facts, int depth);
  [[nodiscard]] bool pair_up(const NormalForm& a, const NormalForm& b, Facts& facts, int depth);
  [[nodiscard]] bool match(const Term& a, const Term& b, Facts& facts, int depth);
  [[nodiscard]] bool match_with(const Term& a, const Term& b, Facts& facts, Map map, int depth);
  [[nodiscard]] bool same_factor(const Factor& a, const Factor& b, const Facts& facts, int depth);
  /// Whether every value of `one` is among those of `all`: by a map of variables, or piece by piece, divided by guards
  /// of families of `all` at most `divisions` times in a row.
  [[nodiscard]] bool includes(const Elements& all, const Element& one, Facts& facts, int depth,
                              int divisions = max_divisions);
  /// Whether a guard divides a family into two, either of which may have elements.
  [[nodiscard]] bool divides(const Element& family, const Atom& guard, Facts& facts) const;
  [[nodiscard]] bool same_product(const Element& a, const Element& b, const Facts& facts, int depth);
  /// Solves equations for the variables of `bound`.
  void solve(const std::vector<Polynomial>& equations, const std::vector<SymbolId>& bound, Facts& facts,
             Map& map) const;
  /// Completed maps from b's variables to polynomials in a's, best first.
  [[nodiscard]] std::vector<Map> completions(const Map& map, const std::vector<SymbolId>& from,
                                             const std::vector<SymbolId>& to, bool one_to_one) const;
  /// Whether a map between families is a bijection; digits that it joins are bounded by what is added to `boxes`.
  [[nodiscard]] bool bijective(const Map& map, const std::vector<SymbolId>& from, const std::vector<Atom>& from_guards,
                               const std::vector<SymbolId>& to, const std::vector<Atom>& guards, Facts& facts,
                               std::vector<Atom>& boxes) const;
  [[nodiscard]] std::optional<Atom> undecided(const NormalForm& form, std::vector<SymbolId>& bound, Facts& facts);
  /// The same family with new bound variables.
  [[nodiscard]] static Element renamed(const Element& element, Facts& facts);
  void note(const std::string& reason);
  /// Something was not understood: nothing is proved any more.
  void fail(const std::string& problem);
  [[nodiscard]] bool step(const Facts& facts);

  std::size_t& steps_;
  std::string reason_;
  bool failed_ = false, refuted_ = false;
  /// A guard by which the first of two summands might be divided, found while matching them.
  std::optional<Atom> division_;
};

/// For messages: "2 * sum(t1) [..] x[..] * y[..]".
[[nodiscard]] std::string describe(const Symbols& symbols, const Term& term);

}  // namespace taso::unbounded
