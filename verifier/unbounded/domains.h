/// Where the two sides of a rule are defined: what definitions ask of values, and which signs values have.
///
/// A definition asks something of a value where it divides by it, where it calls a function that is declared on a part
/// of the real numbers only, where it takes a maximum, which needs an element, and where it reads at an index that a
/// tensor holds. What a target asks for must follow: from the signs of values, from what its source
/// asks for at the same element, or else from conditions that become a part of the rule.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "verifier/unbounded/symbolic_types.h"

namespace taso::unbounded {

/// The signs that a value may have.
struct SignSet {
  bool negative = true, zero = true, positive = true;
  /// Of a number; one that a 32-bit float rounds to zero may be zero, too.
  [[nodiscard]] static SignSet of(double number) { return {number<0, static_cast<float>(number) == 0, number> 0}; }
  /// Of the values in a domain.
  [[nodiscard]] static SignSet of(ArgumentDomain domain) {
    return {domain == ArgumentDomain::all || domain == ArgumentDomain::nonzero,
            domain == ArgumentDomain::all || domain == ArgumentDomain::nonnegative, true};
  }
  [[nodiscard]] bool within(ArgumentDomain domain) const {
    const SignSet allowed = of(domain);
    return (!negative || allowed.negative) && (!zero || allowed.zero) && (!positive || allowed.positive);
  }
  [[nodiscard]] bool never_negative() const { return !negative; }
  bool operator==(const SignSet&) const = default;
};
[[nodiscard]] SignSet operator-(SignSet a);
[[nodiscard]] SignSet operator+(SignSet a, SignSet b);
[[nodiscard]] SignSet operator*(SignSet a, SignSet b);
/// What is in one of both, and what is in both.
[[nodiscard]] SignSet either(SignSet a, SignSet b);
[[nodiscard]] SignSet both(SignSet a, SignSet b);

/// What a rule's conditions say of the elements of a tensor variable, and of a number that is an attribute variable.
[[nodiscard]] SignSet declared_sign(const Substitution& rule, std::uint32_t tensor);
[[nodiscard]] SignSet declared_sign_of_attribute(const Substitution& rule, const std::string& name);

/// Something that must be in a domain for a side to be defined.
struct Obligation {
  ArgumentDomain domain = ArgumentDomain::nonzero;
  Element element;                 ///< The values, for all values of the bound variables at which the guards hold.
  std::vector<Atom> known;         ///< The guards, and what else holds there.
  std::optional<Polynomial> size;  ///< The value, where it is a size or an integer attribute.
  std::string what;                ///< "the divisor y[i]", for a person.
  bool of_place = false;           ///< The value is how far a place lies inside of a tensor.
  bool counts = false;             ///< The value is a number of elements, of an extremum that is `call`.
  /// The call that asks for it, of a function of two arguments: it may have a value elsewhere, too (x ^ 2), so that
  /// from its having one nothing follows but that equal calls have one.
  std::optional<Element> call;
};

/// Conditions in the language of rules from which an obligation follows wherever its rule applies: on attributes and
/// sizes, on all elements of tensor variables. Nothing where there are none.
[[nodiscard]] std::optional<std::vector<Condition>> conditions_for(const Obligation& obligation, const Typing& typing,
                                                                   Facts& facts);
/// The same, only if none of them speaks of elements of tensors.
[[nodiscard]] std::optional<std::vector<Condition>> conditions_on_attributes(const Obligation& obligation,
                                                                             const Typing& typing, Facts& facts);

}  // namespace taso::unbounded
