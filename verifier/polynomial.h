/// Canonical forms of real expressions: the ring (operators/ring.h) of the bounded proof.
///
/// An element is a sparse polynomial with rational coefficients over variables and atoms. Atoms are hash-consed:
///   f(p)          a primitive scalar function of a polynomial, with the declared facts f(0) = 0, f(f(x)) = f(x), and,
///                 for a monotone f, f(max S) = max f(S);
///   max S, min S  of a set of polynomials, flat, identity on singletons;
///   1/p           powers of a polynomial that is no monomial (monomials are divided by exactly: exponents may be
///                 negative), so that quotients are Laurent polynomials;
///   a real literal that is not a small dyadic number: it stands for any number;
///   infinity (the maximum of an empty window) and `undefined`, what arithmetic makes of it and of division by zero.
/// Equal canonical forms mean equal real functions, wherever all divisors are nonzero, for every interpretation of the
/// functions with the declared facts. For polynomials the converse holds too.
///
/// Representation: monomials are interned vectors of (variable, exponent), so that a polynomial is a sorted vector of
/// (monomial number, coefficient); everything is relative to one ring object and canonical within it.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "operators/definition.h"
#include "support/status.h"

namespace taso {

/// An exact rational number in lowest terms, denominator positive.
struct Rational {
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;
  auto operator<=>(const Rational&) const = default;
};

class PolynomialRing {
 public:
  using MonomialId = std::uint32_t;
  using Terms = std::vector<std::pair<MonomialId, Rational>>;
  /// A polynomial; null is zero.
  using Element = std::shared_ptr<const Terms>;

  /// `steps`: what is left of the work that may be done, about one for each summand that is made; null: no limit. Where
  /// none are left, the status says so and all results are meaningless.
  explicit PolynomialRing(std::uint64_t* steps = nullptr);

  /// A new variable.
  Element variable();

  Element number(double value);
  Element add(const Element& a, const Element& b) { return combine(a, b, 1); }
  Element subtract(const Element& a, const Element& b) { return combine(a, b, -1); }
  Element multiply(const Element& a, const Element& b);
  Element divide(const Element& a, const Element& b);
  Element call(const FunctionDefinition& function, const Element& x);
  Element call(const FunctionDefinition& function, const Element& x, const Element& y);
  Element extremum(bool maximum, std::span<const Element> values);
  Element infinity(bool negative);
  /// A coefficient left 64 bits, or a literal is no number.
  [[nodiscard]] const Status& status() const { return status_; }

  /// Whether a = b follows: denominators are cleared first.
  [[nodiscard]] bool equal(const Element& a, const Element& b);
  /// Whether an element is infinite or undefined.
  [[nodiscard]] bool is_special(const Element& a) const;
  /// Whether any quotient by something other than a number was formed.
  [[nodiscard]] bool divided() const { return divided_; }
  /// What was divided by: variables and atoms, the factors of monomials each by itself.
  [[nodiscard]] const std::set<std::uint32_t>& divisors() const { return divisors_; }
  /// Calls of functions that are not defined everywhere, of what is no number: (function, content of the argument).
  [[nodiscard]] const std::set<std::pair<std::uint64_t, std::uint32_t>>& partial_calls() const {
    return partial_calls_;
  }

 private:
  __extension__ using Wide = __int128;
  using VariableId = std::uint32_t;
  using Monomial = std::vector<std::pair<VariableId, std::int32_t>>;  // sorted, exponents not 0
  struct Atom {
    enum class Kind : std::uint8_t { variable, call, extremum, sum, literal, infinity, undefined };
    Kind kind = Kind::variable;
    const FunctionDefinition* function = nullptr;
    bool maximum = false;
    std::vector<Element> arguments;  // of a call or an extremum; the polynomial of a sum
  };
  struct MonomialHash {
    std::size_t operator()(const Monomial& monomial) const;
  };

  MonomialId intern(Monomial monomial);
  MonomialId product(MonomialId a, MonomialId b);
  VariableId add_atom(Atom atom);
  Element atom_element(VariableId variable, std::int32_t exponent = 1);
  Element constant(Rational value);
  Element undefined();
  Element combine(const Element& a, const Element& b, std::int64_t sign);
  Element scale(const Element& a, Rational factor, MonomialId monomial);
  Element canonical(Terms terms);
  /// The atom if the polynomial is one with coefficient and exponent 1.
  [[nodiscard]] std::optional<VariableId> bare_atom(const Element& a) const;
  /// Whether no variable occurs.
  [[nodiscard]] bool is_constant(const Element& a) const;
  [[nodiscard]] std::optional<Rational> as_constant(const Element& a) const;
  /// A number for the content of a polynomial.
  std::uint32_t content(const Element& a);
  Rational add(Rational a, Rational b);
  Rational multiply(Rational a, Rational b);
  Rational reduced(Wide numerator, Wide denominator);
  void fail(const std::string& what);
  /// Counts steps; false where none are left.
  [[nodiscard]] bool spend(std::size_t steps);

  std::vector<Atom> atoms_;
  std::vector<Monomial> monomials_;
  std::unordered_map<Monomial, MonomialId, MonomialHash> monomial_ids_;
  std::unordered_map<std::uint64_t, MonomialId> products_;
  std::map<Terms, std::uint32_t> contents_;
  std::map<std::vector<std::uint64_t>, VariableId> atom_ids_;
  Status status_;
  std::uint64_t* steps_ = nullptr;
  bool has_special_ = false;
  bool divided_ = false;
  std::set<VariableId> divisors_;
  std::set<std::pair<std::uint64_t, std::uint32_t>> partial_calls_;
};

}  // namespace taso
