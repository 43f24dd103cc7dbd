/// Sizes and indices of an operator whose shapes and attributes are not known: polynomials with integer coefficients
/// whose atoms are what a rule can speak of (extents, attributes, variables), index variables, and quotients of such
/// polynomials. Equal polynomials are equal numbers; what differs may be equal all the same.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/pattern.h"

namespace taso {

/// Number of an atom in SizeAtoms.
using SizeAtomId = std::uint32_t;

class SizePolynomial {
 public:
  /// Atoms, ascending; an atom stands there as often as it is a factor.
  using Product = std::vector<SizeAtomId>;

  SizePolynomial() = default;
  explicit SizePolynomial(std::int64_t value) { add({}, value); }
  static SizePolynomial atom(SizeAtomId id) {
    SizePolynomial result;
    result.add({id}, 1);
    return result;
  }

  [[nodiscard]] bool is_zero() const { return terms_.empty(); }
  /// The number, if it is one.
  [[nodiscard]] std::optional<std::int64_t> constant() const;
  /// The atom, if it is one.
  [[nodiscard]] std::optional<SizeAtomId> single_atom() const;
  [[nodiscard]] const std::map<Product, std::int64_t>& terms() const { return terms_; }
  /// The factor of an atom in what is linear in it: of a in 3*a*b + c it is 3*b. Powers of it, and what stands inside
  /// of quotients, do not count.
  [[nodiscard]] SizePolynomial coefficient(SizeAtomId id) const;

  SizePolynomial operator+(const SizePolynomial& other) const;
  SizePolynomial operator-(const SizePolynomial& other) const;
  SizePolynomial operator*(const SizePolynomial& other) const;
  bool operator==(const SizePolynomial&) const = default;
  auto operator<=>(const SizePolynomial&) const = default;

  /// Adds a term.
  void add(Product product, std::int64_t coefficient);

 private:
  std::map<Product, std::int64_t> terms_;  // Coefficients are not 0.
};

/// What an atom is.
struct SizeAtom {
  enum class Kind : std::uint8_t {
    expression,  ///< `expression`, made of variables of a rule.
    index,       ///< The index variable `name`.
    quotient,    ///< operands[0] // operands[1].
    remainder,   ///< operands[0] % operands[1].
  };
  Kind kind = Kind::expression;
  AttributeExpression expression;
  std::string name;
  std::vector<SizePolynomial> operands;
};

/// The atoms of the polynomials of one operator.
class SizeAtoms {
 public:
  [[nodiscard]] const SizeAtom& operator[](SizeAtomId id) const { return atoms_[id]; }
  /// The atom of an expression: equal ones are one atom.
  [[nodiscard]] SizePolynomial of(const AttributeExpression& expression);
  [[nodiscard]] SizePolynomial new_index(const std::string& name);
  /// a // b, where b is not 0: the summands that b divides are taken out.
  [[nodiscard]] SizePolynomial quotient(const SizePolynomial& a, const SizePolynomial& b);
  [[nodiscard]] SizePolynomial remainder(const SizePolynomial& a, const SizePolynomial& b);
  /// Whether an atom for which `test` holds occurs, inside of quotients too.
  [[nodiscard]] bool mentions(const SizePolynomial& p, const std::function<bool(SizeAtomId)>& test) const;
  [[nodiscard]] bool mentions(const SizePolynomial& p, SizeAtomId id) const {
    return mentions(p, [&](SizeAtomId other) { return other == id; });
  }
  /// p with atoms replaced, inside of quotients too.
  [[nodiscard]] SizePolynomial substitute(const SizePolynomial& p, const std::map<SizeAtomId, SizePolynomial>& values);
  /// Calls f with every atom that occurs, inside of quotients too, outer ones first.
  void for_each_atom(const SizePolynomial& p, const std::function<void(SizeAtomId)>& f) const;
  /// As a rule writes it; nothing where an index variable occurs.
  [[nodiscard]] std::optional<AttributeExpression> expression(const SizePolynomial& p) const;

 private:
  [[nodiscard]] SizePolynomial intern(SizeAtom atom);
  [[nodiscard]] std::optional<AttributeExpression> expression(SizeAtomId id) const;

  std::vector<SizeAtom> atoms_;
};

/// Expressions of rules.
[[nodiscard]] AttributeExpression integer_expression(std::int64_t value);
[[nodiscard]] AttributeExpression variable_expression(std::uint32_t variable);
[[nodiscard]] AttributeExpression arithmetic_expression(AttributeExpression::Kind operation, AttributeExpression left,
                                                        AttributeExpression right);

}  // namespace taso
