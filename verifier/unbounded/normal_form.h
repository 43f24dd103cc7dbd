/// One element of a tensor, at symbolic indices, in normal form.
///
///   sum of   coefficient * [guards] * SUM over bound variables   product of factors
///
/// The extents of bound variables stand among the guards. A factor is an element of a tensor variable, the value of a
/// size, a literal, a real attribute, a function of normal forms, a power of a sum, a maximum or minimum over boxes, or
/// a product over boxes. Sums, products and substitution keep the form; equality of two forms is for
/// verifier/unbounded/matching.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operators/definition.h"
#include "verifier/polynomial.h"
#include "verifier/unbounded/facts.h"

namespace taso::unbounded {

struct Term;
/// A sum of terms; the empty sum is zero.
using NormalForm = std::vector<Term>;

/// A guarded family of values: for every value of the bound variables at which the guards hold.
struct Element {
  std::vector<SymbolId> bound;
  std::vector<Atom> guards;
  NormalForm value;
  bool operator==(const Element&) const;
};

/// The elements of a factor, shared by its copies: what nests is not copied with it, and is compared once.
class Elements {
 public:
  Elements() = default;
  Elements(std::vector<Element> list);  // NOLINT(google-explicit-constructor): a list, with shared storage

  [[nodiscard]] bool empty() const { return shared_ == nullptr; }
  [[nodiscard]] std::size_t size() const { return list().size(); }
  [[nodiscard]] const Element& operator[](std::size_t i) const { return list()[i]; }
  [[nodiscard]] std::vector<Element>::const_iterator begin() const { return list().begin(); }
  [[nodiscard]] std::vector<Element>::const_iterator end() const { return list().end(); }
  [[nodiscard]] const std::vector<Element>& list() const;
  /// Of this copy alone.
  void push_back(Element element);
  void clear() { shared_.reset(); }
  bool operator==(const Elements& other) const;
  /// One bit of 64 for each symbol that occurs, bound ones included (Symbols::mask).
  [[nodiscard]] std::uint64_t mask(const Symbols& symbols) const;

 private:
  struct Shared;
  std::shared_ptr<const Shared> shared_;  ///< Null: no element.
};

/// One factor of a term, to an integral power that is not 0.
struct Factor {
  enum class Kind : std::uint8_t {
    read,      ///< Element `indices` of tensor variable `tensor`.
    size,      ///< The value of integer symbol `symbol`.
    literal,   ///< A literal that is not a small dyadic number, or infinity: `number`, which is positive.
    constant,  ///< A real attribute, or what stands for it: `name`.
    call,      ///< Function `name` of `elements`, one value each.
    sum,       ///< elements[0].value, to a negative power.
    maximum,
    minimum,  ///< Of the union of `elements`.
    product,  ///< Over elements[0].
  };
  Kind kind = Kind::read;
  int power = 1;
  std::uint32_t tensor = 0;
  std::vector<Polynomial> indices;
  SymbolId symbol = 0;
  double number = 0;
  std::string name;
  const FunctionDefinition* function = nullptr;  ///< Of a call of a declared function; null for a function attribute.
  Elements elements;
  bool operator==(const Factor&) const;
  /// The same but for the power.
  [[nodiscard]] bool same_base(const Factor& other) const;
};

/// One summand.
struct Term {
  Rational coefficient{1, 1};
  std::vector<SymbolId> bound;
  std::vector<Atom> guards;
  std::vector<Factor> factors;
  bool operator==(const Term&) const;
};

/// Whether a form is an infinite literal: it has no value, but may be an element of a maximum or minimum, where it is
/// the extremum or is left out. All other arithmetic with it fails.
[[nodiscard]] bool is_infinite(const NormalForm& form);

/// Operations on normal forms. A form that grows beyond a limit, a coefficient beyond 64 bits, a division by zero, the
/// end of the budget are remembered in problem(), and the results are then meaningless.
class FormBuilder {
 public:
  explicit FormBuilder(Facts& facts) : facts_(&facts) {}

  [[nodiscard]] NormalForm number(double value);
  [[nodiscard]] NormalForm rational(Rational value);
  /// A polynomial of sizes as a scalar.
  [[nodiscard]] NormalForm size(const Polynomial& p);
  [[nodiscard]] NormalForm factor(Factor factor);
  [[nodiscard]] NormalForm add(NormalForm a, const NormalForm& b);
  [[nodiscard]] NormalForm negate(NormalForm a);
  [[nodiscard]] NormalForm multiply(const NormalForm& a, const NormalForm& b);
  [[nodiscard]] NormalForm divide(const NormalForm& a, const NormalForm& b);
  [[nodiscard]] NormalForm call(const FunctionDefinition* function, const std::string& name,
                                std::vector<NormalForm> arguments);
  [[nodiscard]] NormalForm extremum(bool maximum, std::vector<Element> elements);
  [[nodiscard]] NormalForm guarded(NormalForm form, const std::vector<Atom>& guards);
  [[nodiscard]] NormalForm summed(NormalForm form, const std::vector<SymbolId>& bound, const std::vector<Atom>& guards);
  /// Symbols replaced everywhere. Of a single term: of its sizes as scalars too only in the form of terms.
  [[nodiscard]] NormalForm substitute(const NormalForm& form, const Facts::Replacement& replacement);
  [[nodiscard]] Term substitute(const Term& term, const Facts::Replacement& replacement);
  [[nodiscard]] Element substitute(const Element& element, const Facts::Replacement& replacement);
  /// The same term with new bound variables.
  [[nodiscard]] Term renamed(const Term& term);
  /// Whether a variable is bound inside of factors: what is known of one of that name around them is not known of it.
  [[nodiscard]] bool binds(const std::vector<Factor>& factors, SymbolId symbol) const;

  [[nodiscard]] const std::string& problem() const { return problem_; }
  void fail(const std::string& what) {
    if (problem_.empty()) problem_ = what;
  }
  /// Whether a division by something that is not a number took place.
  [[nodiscard]] bool divided() const { return divided_; }
  [[nodiscard]] Facts& facts() { return *facts_; }

  [[nodiscard]] Rational add(Rational a, Rational b);
  [[nodiscard]] Rational multiply(Rational a, Rational b);
  /// Appends a factor, merging powers of equal bases.
  static void append(std::vector<Factor>& factors, const Factor& factor);

 private:
  __extension__ using Wide = __int128;
  [[nodiscard]] Rational reduced(Wide numerator, Wide denominator);
  [[nodiscard]] NormalForm inverse(const NormalForm& a);
  /// The replacement for what stands under `bound`, whose variables get new names where they would be confused.
  [[nodiscard]] Facts::Replacement avoiding_capture(std::vector<SymbolId>& bound,
                                                    const Facts::Replacement& replacement);
  /// Adds the guards and factors of a term, with symbols replaced, to `result`.
  /// Whether a symbol, or an argument of it, is one of those replaced.
  [[nodiscard]] bool replaces(const Facts::Replacement& replacement, SymbolId symbol) const;
  [[nodiscard]] Term substitute_body(const Term& term, Term result, const Facts::Replacement& replacement);

  /// Counts steps; false, with the problem, where none are left.
  bool spend(std::uint64_t steps);

  Facts* facts_;
  std::string problem_;
  bool divided_ = false;
};

}  // namespace taso::unbounded
