/// Sizes and indices as polynomials with integer coefficients over integer symbols.
///
/// A polynomial is a vector of (monomial, coefficient), sorted, without zeros, so that equal polynomials have equal
/// representations. A monomial is a sorted list of symbols with repetition, in 16 bytes: proofs copy polynomials all
/// the time, and most have at most three terms, which are stored in place. Coefficients are 64-bit and checked: a
/// polynomial of which a coefficient or a degree left the representation is `valid == false`, and so is everything
/// that is computed from it; nothing is ever concluded from an invalid one.
#pragma once

#include <absl/container/inlined_vector.h>

#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace taso::unbounded {

using SymbolId = std::uint32_t;

/// The quotient rounded towards minus infinity, of a divisor that is not 0.
[[nodiscard]] std::int64_t floor_quotient(std::int64_t a, std::int64_t b);

/// A product of symbols; the empty product is 1.
class Monomial {
 public:
  static constexpr std::size_t max_degree = 11;
  static constexpr SymbolId max_symbol = UINT16_MAX;
  Monomial() = default;
  /// The symbol is at most max_symbol.
  explicit Monomial(SymbolId symbol) : size_(1) { symbols_[0] = static_cast<std::uint16_t>(symbol); }

  [[nodiscard]] std::span<const std::uint16_t> symbols() const { return {symbols_.data(), size_}; }
  [[nodiscard]] std::size_t degree() const { return size_; }
  [[nodiscard]] bool contains(SymbolId symbol) const;
  /// Nothing if the degree would be too large.
  [[nodiscard]] static std::optional<Monomial> product(const Monomial& a, const Monomial& b);
  /// a / b, if b divides a.
  [[nodiscard]] static std::optional<Monomial> quotient(const Monomial& a, const Monomial& b);
  bool operator==(const Monomial& other) const { return words() == other.words(); }
  /// By degree, then by symbols.
  std::strong_ordering operator<=>(const Monomial& other) const {
    const auto a = words(), b = other.words();
    if (a[0] != b[0]) return ordered(a[0]) <=> ordered(b[0]);
    if (a[1] != b[1]) return ordered(a[1]) <=> ordered(b[1]);
    return ordered(a[2]) <=> ordered(b[2]);
  }

 private:
  [[nodiscard]] std::array<std::uint64_t, 3> words() const {
    return std::bit_cast<std::array<std::uint64_t, 3>>(*this);
  }
  /// Four symbols as one number, the first in the highest place.
  static std::uint64_t ordered(std::uint64_t word) {
    if constexpr (std::endian::native == std::endian::big) return word;
    word = (word << 32) | (word >> 32);
    return ((word & 0x0000FFFF0000FFFFU) << 16) | ((word >> 16) & 0x0000FFFF0000FFFFU);
  }

  std::uint16_t size_ = 0;
  std::array<std::uint16_t, max_degree> symbols_{};  ///< Zeros after the last.
};

/// A polynomial.
class Polynomial {
 public:
  struct Term {
    Monomial monomial;
    std::int64_t coefficient = 0;
    auto operator<=>(const Term&) const = default;
  };
  using Terms = absl::InlinedVector<Term, 3>;
  Polynomial() = default;
  Polynomial(std::int64_t constant);  // NOLINT(google-explicit-constructor): numbers are polynomials
  /// Invalid for a symbol beyond Monomial::max_symbol.
  [[nodiscard]] static Polynomial symbol(SymbolId symbol);
  [[nodiscard]] static Polynomial invalid();
  [[nodiscard]] static Polynomial term(const Monomial& monomial, std::int64_t coefficient);

  [[nodiscard]] bool valid() const { return valid_; }
  [[nodiscard]] const Terms& terms() const { return terms_; }
  [[nodiscard]] bool is_zero() const { return valid_ && terms_.empty(); }
  /// The value, if no symbol occurs.
  [[nodiscard]] std::optional<std::int64_t> constant() const;
  /// The summand without symbols.
  [[nodiscard]] std::int64_t constant_term() const;
  /// The symbol, if this is a symbol and nothing else.
  [[nodiscard]] std::optional<SymbolId> as_symbol() const;
  [[nodiscard]] bool contains(SymbolId symbol) const;
  /// The coefficient of the monomial that is the symbol alone, if the symbol occurs in no other.
  [[nodiscard]] std::optional<std::int64_t> linear_coefficient(SymbolId symbol) const;
  /// The symbols that occur, ascending. Arguments of quotients and lookups do not count.
  [[nodiscard]] std::vector<SymbolId> symbols() const;

  friend Polynomial operator+(const Polynomial& a, const Polynomial& b) { return combine(a, b, 1); }
  friend Polynomial operator-(const Polynomial& a, const Polynomial& b) { return combine(a, b, -1); }
  friend Polynomial operator*(const Polynomial& a, const Polynomial& b);
  Polynomial operator-() const { return Polynomial(0) - *this; }
  bool operator==(const Polynomial& other) const { return valid_ && other.valid_ && terms_ == other.terms_; }
  /// Some total order.
  [[nodiscard]] static bool less(const Polynomial& a, const Polynomial& b) { return a.terms_ < b.terms_; }

  /// a / b if there is no remainder.
  [[nodiscard]] static std::optional<Polynomial> exact_quotient(const Polynomial& a, const Polynomial& b);
  /// a = q * b + r, where r keeps what b's leading monomial does not divide; for a number b, 0 <= every coefficient of
  /// r < b (b positive).
  [[nodiscard]] static std::pair<Polynomial, Polynomial> divide(const Polynomial& a, const Polynomial& b);

 private:
  static Polynomial combine(const Polynomial& a, const Polynomial& b, std::int64_t sign);
  static Polynomial canonical(Terms terms, bool valid);

  Terms terms_;
  bool valid_ = true;
};

/// What is known of a polynomial: p >= 0 or p == 0.
struct Atom {
  enum class Relation : std::uint8_t { nonnegative, zero };
  Relation relation = Relation::nonnegative;
  Polynomial p;
  bool operator==(const Atom&) const = default;
};
/// a >= b, a < b, a == b.
[[nodiscard]] inline Atom at_least(const Polynomial& a, const Polynomial& b) {
  return {Atom::Relation::nonnegative, a - b};
}
[[nodiscard]] inline Atom less_than(const Polynomial& a, const Polynomial& b) {
  return {Atom::Relation::nonnegative, b - a - Polynomial(1)};
}
[[nodiscard]] inline Atom equal_to(const Polynomial& a, const Polynomial& b) { return {Atom::Relation::zero, a - b}; }

/// What a symbol stands for.
struct Symbol {
  enum class Kind : std::uint8_t {
    extent,     ///< An extent of a tensor variable.
    attribute,  ///< An attribute variable, or an element of one.
    factor,     ///< A factor of a composite axis.
    index,      ///< An index of the output.
    bound,      ///< A variable of a reduction.
    quotient,   ///< arguments[0] // arguments[1], rounded down; the divisor is positive.
    maximum,    ///< The largest of arguments[0] and arguments[1].
    /// An element of an input of integers, as one of a number of places, in [0, places): arguments are that number,
    /// then the indices. Two of them are one function of the tensor only if the numbers are equal.
    lookup,
  };
  Kind kind = Kind::extent;
  std::string name;                   ///< For a person, in the spelling of rules.
  std::uint32_t tensor = 0;           ///< Of a lookup.
  std::uint32_t variable = 0;         ///< Of an extent or attribute: the rule's tensor or attribute variable.
  std::int64_t position = 0;          ///< Of an extent: the axis, from the end; of an attribute: the element, or -1.
  std::vector<Polynomial> arguments;  ///< Of a quotient, a maximum or a lookup.
};

/// The symbols of one proof, numbered in order of creation; equal symbols are one.
class Symbols {
 public:
  /// The symbol of that kind and key; `name` is what a person reads.
  SymbolId named(Symbol::Kind kind, const std::string& key, const std::string& name);
  SymbolId quotient(const Polynomial& numerator, const Polynomial& divisor);
  SymbolId maximum(const Polynomial& a, const Polynomial& b);
  SymbolId lookup(std::uint32_t tensor, std::vector<Polynomial> arguments);
  /// A new variable of a reduction.
  SymbolId bound();
  /// Says what an extent or attribute belongs to.
  void place(SymbolId id, std::uint32_t variable, std::int64_t position) {
    symbols_[id].variable = variable;
    symbols_[id].position = position;
  }
  [[nodiscard]] const Symbol& operator[](SymbolId id) const { return symbols_[id]; }
  [[nodiscard]] std::size_t size() const { return symbols_.size(); }
  /// Whether a symbol of the set occurs in p, also inside of quotients and lookups.
  [[nodiscard]] bool mentions(const Polynomial& p, std::span<const SymbolId> set) const;
  /// One bit of 64 for each symbol that occurs in p, also inside of quotients and lookups: disjoint masks, no symbol in
  /// common.
  [[nodiscard]] std::uint64_t mask(const Polynomial& p) const {
    std::uint64_t result = 0;
    for (const auto& [monomial, coefficient] : p.terms())
      for (const SymbolId id : monomial.symbols()) result |= masks_[id];
    return result;
  }
  [[nodiscard]] static std::uint64_t bit(SymbolId id) { return std::uint64_t{1} << (id % 64); }
  /// "2*s[0] + dim(x, -1) - 1".
  [[nodiscard]] std::string to_string(const Polynomial& p) const;

 private:
  using Key = std::pair<std::uint32_t, std::vector<Polynomial::Terms>>;
  SymbolId computed(Symbol symbol, Key key);

  SymbolId add(Symbol symbol);

  std::vector<Symbol> symbols_;
  std::vector<std::uint64_t> masks_;  ///< Per symbol: its own bit, and those of its arguments.
  std::map<std::pair<Symbol::Kind, std::string>, SymbolId> names_;
  std::map<Key, SymbolId> computed_;
};

}  // namespace taso::unbounded
