/// Signs of scalars: what may be said of a normal form without its value.
///
/// A sign is the set of signs that a value may have. Literals, sizes and functions that are declared positive or not
/// negative have one of their own; sums, products, powers, quotients and extrema combine those of their parts; beyond
/// that a form has the sign of a multiple of one that was assumed, or of one to which something of the same sign is
/// added. What is not understood may have any sign.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "verifier/unbounded/normal_form.h"

namespace taso::unbounded {

/// Which signs a value may have.
struct Sign {
  bool negative = true, zero = true, positive = true;
  [[nodiscard]] static Sign any() { return {}; }
  [[nodiscard]] static Sign above_zero() { return {false, false, true}; }
  [[nodiscard]] static Sign at_least_zero() { return {false, true, true}; }
  [[nodiscard]] static Sign below_zero() { return {true, false, false}; }
  [[nodiscard]] static Sign nothing_but_zero() { return {false, true, false}; }
  [[nodiscard]] static Sign not_zero() { return {true, false, true}; }
  [[nodiscard]] bool is_positive() const { return !negative && !zero; }
  [[nodiscard]] bool is_nonnegative() const { return !negative; }
  [[nodiscard]] bool is_nonpositive() const { return !positive; }
  [[nodiscard]] bool is_nonzero() const { return !zero; }
  bool operator==(const Sign&) const = default;
};
[[nodiscard]] Sign operator-(Sign a);
[[nodiscard]] Sign operator+(Sign a, Sign b);
[[nodiscard]] Sign operator*(Sign a, Sign b);
/// What is in both.
[[nodiscard]] Sign both(Sign a, Sign b);

/// What the conditions of a rule say of values.
struct Suppositions {
  std::vector<std::pair<std::uint32_t, Sign>> elements;  ///< Of all elements of tensor variables.
  std::vector<std::pair<NormalForm, Sign>> numbers;      ///< Of real attributes and their differences.
};

/// Signs under hypotheses on sizes and on values. A value: copied where cases are distinguished.
class Signs {
 public:
  explicit Signs(Facts& facts) : facts_(&facts) {}

  void assume(const Suppositions& suppositions) {
    elements_.insert(elements_.end(), suppositions.elements.begin(), suppositions.elements.end());
    assumed_.insert(assumed_.end(), suppositions.numbers.begin(), suppositions.numbers.end());
  }

  /// A hypothesis: the form is defined and has this sign.
  void assume(const NormalForm& form, Sign sign) { assumed_.emplace_back(form, sign); }
  /// The hypothesis that a form is defined: what it divides by is not zero, and the arguments of its functions lie in
  /// their domains.
  void assume_defined(const NormalForm& form);
  /// The signs that a form may have where it is defined.
  [[nodiscard]] Sign of(const NormalForm& form) {
    steps_ = most_steps;
    return of(form, 0);
  }
  /// Whether a term sums over at least one value: what it divides by is then not zero.
  [[nodiscard]] bool has_values(const Term& term);
  /// A simpler form, where there is one, that is defined where the given one is: this is not negative where that is
  /// not, and not positive where that is not. By monotone functions: x - y for exp(x) - exp(y), x for exp(x) - 1, x - 1
  /// for log(x).
  [[nodiscard]] std::optional<NormalForm> deciding(const NormalForm& form) {
    steps_ = most_steps;
    return deciding(form, 0);
  }

 private:
  [[nodiscard]] std::optional<NormalForm> deciding(const NormalForm& form, int depth);
  /// Of a sum whose summands are divided by a sum: that of its product with a positive power of the divisor.
  [[nodiscard]] Sign without_divisor(const NormalForm& form, int depth);
  /// Of sum(j) p(j) - p(i) and what is added to it, where no p(j) is negative and i is one of the j.
  [[nodiscard]] Sign of_rest(const NormalForm& form, int depth);
  [[nodiscard]] Sign of(const NormalForm& form, int depth);
  [[nodiscard]] Sign of(const Term& term, int depth);
  [[nodiscard]] Sign of(const Factor& factor, int depth);
  [[nodiscard]] Sign of_extremum(const Factor& factor, int depth);
  /// Of a form that is a polynomial of sizes.
  [[nodiscard]] Sign of_sizes(const NormalForm& form);
  [[nodiscard]] static bool is_number(const Term& term);
  [[nodiscard]] Sign of_numbers(const NormalForm& numbers);
  /// By what was assumed.
  [[nodiscard]] Sign by_hypothesis(const NormalForm& form, int depth);
  /// Forms inside of one another that are looked at for one question.
  static constexpr std::size_t most_steps = 600;

  Facts* facts_;
  std::size_t steps_ = most_steps;
  std::vector<std::pair<NormalForm, Sign>> assumed_;
  std::vector<std::pair<std::uint32_t, Sign>> elements_;  // of tensor variables
};

/// Whether a law says that the square of a function is its argument, or a power of that: it is zero only where its
/// argument is.
[[nodiscard]] bool has_square(const FunctionDefinition& function);

/// Whether two forms are the same up to the order of summands and factors and the names of bound variables; a no may be
/// wrong.
[[nodiscard]] bool alike(const NormalForm& a, const NormalForm& b, Facts& facts);
[[nodiscard]] bool alike(const Factor& a, const Factor& b, Facts& facts);
/// Whether two summands are the same up to that and up to their coefficients.
[[nodiscard]] bool alike_but_number(const Term& a, const Term& b, Facts& facts);
/// A form of few summands with those that are alike added up, and factors of each that are alike multiplied.
[[nodiscard]] NormalForm collected(const NormalForm& form, Facts& facts);

/// A form whose square is the given one, a sum of few summands without bound variables, where one is found.
[[nodiscard]] std::optional<NormalForm> square_root(const NormalForm& square, Facts& facts);

}  // namespace taso::unbounded
