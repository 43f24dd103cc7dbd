#include "partition/size_polynomial.h"

#include <algorithm>

namespace taso {
namespace {

using Form = AttributeExpression::Kind;
using Product = SizePolynomial::Product;

// The product without these factors; nothing if one of them is not there.
std::optional<Product> divided(Product product, const Product& divisor) {
  for (const SizeAtomId factor : divisor) {
    const auto place = std::find(product.begin(), product.end(), factor);
    if (place == product.end()) return std::nullopt;
    product.erase(place);
  }
  return product;
}

}  // namespace

void SizePolynomial::add(Product product, std::int64_t coefficient) {
  if (coefficient == 0) return;
  const auto [place, added] = terms_.emplace(std::move(product), coefficient);
  if (!added && (place->second += coefficient) == 0) terms_.erase(place);
}

std::optional<std::int64_t> SizePolynomial::constant() const {
  if (terms_.empty()) return 0;
  if (terms_.size() > 1 || !terms_.begin()->first.empty()) return std::nullopt;
  return terms_.begin()->second;
}

std::optional<SizeAtomId> SizePolynomial::single_atom() const {
  if (terms_.size() != 1 || terms_.begin()->first.size() != 1 || terms_.begin()->second != 1) return std::nullopt;
  return terms_.begin()->first[0];
}

SizePolynomial SizePolynomial::coefficient(SizeAtomId id) const {
  SizePolynomial result;
  for (const auto& [product, factor] : terms_)
    if (std::count(product.begin(), product.end(), id) == 1) result.add(*divided(product, {id}), factor);
  return result;
}

SizePolynomial SizePolynomial::operator+(const SizePolynomial& other) const {
  SizePolynomial result = *this;
  for (const auto& [product, factor] : other.terms_) result.add(product, factor);
  return result;
}

SizePolynomial SizePolynomial::operator-(const SizePolynomial& other) const {
  SizePolynomial result = *this;
  for (const auto& [product, factor] : other.terms_) result.add(product, -factor);
  return result;
}

SizePolynomial SizePolynomial::operator*(const SizePolynomial& other) const {
  SizePolynomial result;
  for (const auto& [left, a] : terms_)
    for (const auto& [right, b] : other.terms_) {
      Product product = left;
      product.insert(product.end(), right.begin(), right.end());
      std::sort(product.begin(), product.end());
      result.add(std::move(product), a * b);
    }
  return result;
}

SizePolynomial SizeAtoms::intern(SizeAtom atom) {
  const auto same = std::find_if(atoms_.begin(), atoms_.end(), [&](const SizeAtom& other) {
    return other.kind == atom.kind && other.name == atom.name && other.expression == atom.expression &&
           other.operands == atom.operands;
  });
  const auto id = static_cast<SizeAtomId>(same - atoms_.begin());
  if (same == atoms_.end()) atoms_.push_back(std::move(atom));
  return SizePolynomial::atom(id);
}

SizePolynomial SizeAtoms::of(const AttributeExpression& expression) {
  if (expression.kind == Form::literal)
    if (const auto* number = std::get_if<std::int64_t>(&expression.literal)) return SizePolynomial(*number);
  return intern({SizeAtom::Kind::expression, expression, "", {}});
}

SizePolynomial SizeAtoms::new_index(const std::string& name) {
  atoms_.push_back({SizeAtom::Kind::index, {}, name, {}});
  return SizePolynomial::atom(static_cast<SizeAtomId>(atoms_.size() - 1));
}

SizePolynomial SizeAtoms::quotient(const SizePolynomial& a, const SizePolynomial& b) {
  if (b == SizePolynomial(1)) return a;
  if (b.terms().size() == 1) {
    const auto& [divisor, factor] = *b.terms().begin();
    SizePolynomial whole, rest;
    for (const auto& [product, coefficient] : a.terms()) {
      const std::optional<Product> left = divided(product, divisor);
      if (left && coefficient % factor == 0)
        whole.add(*left, coefficient / factor);
      else
        rest.add(product, coefficient);
    }
    if (rest.is_zero()) return whole;
    const auto number = rest.constant(), by = b.constant();
    if (number && by) {
      std::int64_t down = *number / *by;
      if (*number % *by != 0 && (*number < 0) != (*by < 0)) --down;
      return whole + SizePolynomial(down);
    }
    return whole + intern({SizeAtom::Kind::quotient, {}, "", {rest, b}});
  }
  if (a == b) return SizePolynomial(1);
  return intern({SizeAtom::Kind::quotient, {}, "", {a, b}});
}

SizePolynomial SizeAtoms::remainder(const SizePolynomial& a, const SizePolynomial& b) {
  return intern({SizeAtom::Kind::remainder, {}, "", {a, b}});
}

bool SizeAtoms::mentions(const SizePolynomial& p, const std::function<bool(SizeAtomId)>& test) const {
  for (const auto& [product, coefficient] : p.terms())
    for (const SizeAtomId id : product) {
      if (test(id)) return true;
      for (const SizePolynomial& operand : atoms_[id].operands)
        if (mentions(operand, test)) return true;
    }
  return false;
}

void SizeAtoms::for_each_atom(const SizePolynomial& p, const std::function<void(SizeAtomId)>& f) const {
  (void)mentions(p, [&](SizeAtomId id) {
    f(id);
    return false;
  });
}

SizePolynomial SizeAtoms::substitute(const SizePolynomial& p, const std::map<SizeAtomId, SizePolynomial>& values) {
  SizePolynomial result;
  for (const auto& [product, coefficient] : p.terms()) {
    SizePolynomial term(coefficient);
    for (const SizeAtomId id : product) {
      const auto value = values.find(id);
      const SizeAtom atom = atoms_[id];  // Substitution may add atoms.
      if (value != values.end())
        term = term * value->second;
      else if (atom.kind == SizeAtom::Kind::quotient)
        term = term * quotient(substitute(atom.operands[0], values), substitute(atom.operands[1], values));
      else if (atom.kind == SizeAtom::Kind::remainder)
        term = term * remainder(substitute(atom.operands[0], values), substitute(atom.operands[1], values));
      else
        term = term * SizePolynomial::atom(id);
    }
    result = result + term;
  }
  return result;
}

std::optional<AttributeExpression> SizeAtoms::expression(SizeAtomId id) const {
  const SizeAtom& atom = atoms_[id];
  if (atom.kind == SizeAtom::Kind::expression) return atom.expression;
  if (atom.kind != SizeAtom::Kind::quotient) return std::nullopt;
  const auto a = expression(atom.operands[0]), b = expression(atom.operands[1]);
  if (!a || !b) return std::nullopt;
  return arithmetic_expression(Form::floor_divide, *a, *b);
}

std::optional<AttributeExpression> SizeAtoms::expression(const SizePolynomial& p) const {
  // Positive terms first, so that few expressions begin with 0 - ...; among them the number last.
  std::vector<std::pair<Product, std::int64_t>> terms(p.terms().begin(), p.terms().end());
  std::stable_sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) {
    if ((a.second > 0) != (b.second > 0)) return a.second > 0;
    return b.first.empty() && !a.first.empty();
  });
  std::optional<AttributeExpression> sum;
  for (const auto& [product, coefficient] : terms) {
    std::optional<AttributeExpression> term;
    const std::int64_t size = coefficient < 0 ? -coefficient : coefficient;
    // A number alone is written as it is.
    if (product.empty() && terms.size() == 1) return integer_expression(coefficient);
    if (size != 1 || product.empty()) term = integer_expression(size);
    for (const SizeAtomId id : product) {
      const std::optional<AttributeExpression> factor = expression(id);
      if (!factor) return std::nullopt;
      term = term ? arithmetic_expression(Form::multiply, *term, *factor) : *factor;
    }
    if (!sum && coefficient < 0) sum = integer_expression(0);
    sum = !sum ? *term : arithmetic_expression(coefficient < 0 ? Form::subtract : Form::add, *sum, *term);
  }
  return sum ? sum : integer_expression(0);
}

AttributeExpression integer_expression(std::int64_t value) {
  AttributeExpression result;
  result.literal = value;
  return result;
}

AttributeExpression variable_expression(std::uint32_t variable) {
  AttributeExpression result;
  result.kind = Form::variable;
  result.index = variable;
  return result;
}

AttributeExpression arithmetic_expression(AttributeExpression::Kind operation, AttributeExpression left,
                                          AttributeExpression right) {
  AttributeExpression result;
  result.kind = operation;
  result.operands = {std::move(left), std::move(right)};
  return result;
}

}  // namespace taso
