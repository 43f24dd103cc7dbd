/// Rewriting normal forms by the declared laws of functions, the order of numbers and the sign of values, innermost
/// first:
///   - a call to which a law applies (`exp(x + y) = exp(x) * exp(y)`) is replaced, if the law's conditions follow;
///   - what all summands of a divisor share is divided by itself, so that it may cancel;
///   - a minimum of maxima becomes a maximum of minima, elements that another one covers are left out, and families
///     of elements lose the variables that do not matter to the set of their values (families.h).
/// Every step is an equality wherever the form that was given is defined.
#pragma once

#include <cstdint>

#include "operators/registry.h"
#include "verifier/unbounded/signs.h"

namespace taso::unbounded {

/// Rewrites forms by laws.
class LawRewriter {
 public:
  /// Laws of what kind are used.
  enum class Level : std::uint8_t {
    laws,         ///< Those whose left side has a structure, and those that put a number or a variable for a call.
    definitions,  ///< All.
  };
  LawRewriter(const OperatorRegistry& registry, Facts& facts, Signs& signs, Level level)
      : registry_(registry), builder_(facts), signs_(signs), level_(level) {}

  /// The form with laws applied; wherever the given one is defined the result is, and is equal.
  [[nodiscard]] NormalForm rewrite(const NormalForm& form);
  /// What could not be done: the result is then meaningless.
  [[nodiscard]] const std::string& problem() const { return builder_.problem(); }
  /// The product with the smallest power of every divisor that is a sum and that is not zero wherever the form is not
  /// trivially 0, so that none of these is left; nothing if there is none that can be cleared. `cleared` gets what was
  /// multiplied by; `positive`: only divisors that are positive.
  [[nodiscard]] std::optional<NormalForm> without_divisors(const NormalForm& form,
                                                           std::vector<Factor>* cleared = nullptr,
                                                           bool positive = false);
  /// max(a + c, b + c) as max(a, b) + c, and max(c * a, c * b) as c * max(a, b) for a c that is not negative, in all of
  /// the form.
  [[nodiscard]] NormalForm with_common_parts_outside(const NormalForm& form);

 private:
  using Bindings = std::vector<const NormalForm*>;
  struct Match;

  [[nodiscard]] NormalForm rewrite(const Factor& factor);
  [[nodiscard]] NormalForm power(const NormalForm& base, int power);
  [[nodiscard]] NormalForm multiply(const NormalForm& a, const NormalForm& b);
  [[nodiscard]] NormalForm inverse(const NormalForm& a);
  /// Whether a divisor of summands is not zero wherever the form stands: some summand that divides by it always has a
  /// value, or its sign says so.
  [[nodiscard]] bool always_nonzero(const Factor& divisor, const NormalForm& form);
  /// Whether it is not zero wherever a summand has a value: where a summand has one, one that divides by it has, too.
  [[nodiscard]] bool nonzero_throughout(const Factor& divisor, const NormalForm& form);
  /// `nonzero`: the form is known not to be zero.
  [[nodiscard]] std::vector<Factor> common_factors(const NormalForm& form, bool nonzero = false);
  [[nodiscard]] NormalForm without_factors(const NormalForm& form, const std::vector<Factor>& factors);
  /// A maximum or minimum.
  struct Extremes {
    bool maximum = true;
    std::vector<Element> elements;
  };
  /// Whether a function has a value for every element of an extremum for which it has one.
  [[nodiscard]] bool defined_of_elements(const FunctionDefinition& function, const Extremes& extremes);
  /// A number times an extremum as the extremum of the multiples; nothing for other forms.
  [[nodiscard]] std::optional<Extremes> multiples(const NormalForm& form);
  [[nodiscard]] NormalForm extremum(bool maximum, std::vector<Element> elements);
  /// The minimum of elements one of which is a maximum, as a maximum of minima.
  [[nodiscard]] NormalForm distributed(const std::vector<Element>& elements, std::size_t which);
  [[nodiscard]] NormalForm with_common_parts_outside(bool maximum, std::vector<Element> elements);
  /// Whether it follows that low <= high.
  [[nodiscard]] bool at_most(const NormalForm& low, const NormalForm& high);
  [[nodiscard]] NormalForm call(const FunctionDefinition* function, const std::string& name,
                                std::vector<NormalForm> arguments);
  /// A product in which no call stands squared that has a law for it.
  [[nodiscard]] std::optional<NormalForm> without_squares(const Term& term);
  [[nodiscard]] std::optional<NormalForm> apply(const FunctionLaw& law, const std::vector<Expression>& patterns,
                                                const std::vector<NormalForm>& arguments);
  /// Tries all ways in which arguments from `at` on fit their patterns.
  [[nodiscard]] std::optional<NormalForm> apply(Match& match, std::size_t at);
  [[nodiscard]] std::optional<NormalForm> bind(Match& match, std::size_t at,
                                               std::initializer_list<std::pair<const Expression*, NormalForm>> parts);
  [[nodiscard]] std::optional<NormalForm> factors(Match& match, std::size_t at);
  [[nodiscard]] NormalForm evaluate(const Expression& e, const std::vector<std::string>& names,
                                    const std::vector<NormalForm>& values);
  [[nodiscard]] bool holds(const FunctionLaw::Condition& condition, const NormalForm& value);

  const OperatorRegistry& registry_;
  FormBuilder builder_;
  Signs& signs_;
  Level level_;
  int depth_ = 0;
  std::size_t steps_ = 4'000;  ///< Applications of laws that are left.
};

}  // namespace taso::unbounded
