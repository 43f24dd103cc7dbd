#include "operators/size_domains.h"

#include <algorithm>

#include "operators/unparse.h"

namespace taso {
namespace {

using Kind = Expression::Kind;

template <class Number>
bool compare(Kind kind, Number a, Number b) {
  switch (kind) {
    case Kind::equal:
      return a == b;
    case Kind::not_equal:
      return a != b;
    case Kind::less:
      return a < b;
    case Kind::less_equal:
      return a <= b;
    case Kind::greater:
      return a > b;
    default:
      return a >= b;
  }
}

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? quotient - 1 : quotient;
}

}  // namespace

template class SizeInterpreter<IntegerDomain>;
template class SizeInterpreter<AffineDomain>;

std::pair<std::int64_t, std::int64_t> interval(const Affine& affine, const std::vector<std::int64_t>& extents) {
  WideInteger low = affine.base, high = affine.base;
  for (const auto& [variable, coefficient] : affine.terms)
    (coefficient < 0 ? low : high) += static_cast<WideInteger>(coefficient) * (extents[variable] - 1);
  constexpr WideInteger smallest = std::numeric_limits<std::int64_t>::min();
  constexpr WideInteger largest = std::numeric_limits<std::int64_t>::max();
  return {static_cast<std::int64_t>(std::max(low, smallest)), static_cast<std::int64_t>(std::min(high, largest))};
}

void ConcreteDomain::fail(const Expression& where, const std::string& what) {
  if (status_) status_ = bad_input(to_text(where) + " " + what, where.where);
}

bool ConcreteDomain::compare_reals(Kind kind, double a, double b) { return compare(kind, a, b); }
bool ConcreteDomain::compare_integers(Kind kind, std::int64_t a, std::int64_t b) { return compare(kind, a, b); }

std::int64_t ConcreteDomain::add_integers(std::int64_t a, std::int64_t b, const Expression& where) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) fail(where, "is beyond 64 bits");
  return result;
}

std::int64_t ConcreteDomain::subtract_integers(std::int64_t a, std::int64_t b, const Expression& where) {
  std::int64_t result = 0;
  if (__builtin_sub_overflow(a, b, &result)) fail(where, "is beyond 64 bits");
  return result;
}

std::int64_t ConcreteDomain::multiply_integers(std::int64_t a, std::int64_t b, const Expression& where) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) fail(where, "is beyond 64 bits");
  return result;
}

std::int64_t ConcreteDomain::divide_integers(std::int64_t a, std::int64_t b, const Expression& where) {
  if (b == 0) {
    fail(where, "divides by zero");
    return 0;
  }
  return b == -1 ? subtract_integers(0, a, where) : floor_quotient(a, b);
}

std::int64_t ConcreteDomain::remainder(std::int64_t a, std::int64_t b, const Expression& where) {
  if (b == 0) {
    fail(where, "divides by zero");
    return 0;
  }
  return b == -1 ? 0 : a - floor_quotient(a, b) * b;
}

std::int64_t AffineDomain::constant(const Affine& a, const Expression& where) {
  if (!a.is_constant()) fail(where, "depends on an index where a size is needed");
  return a.base;
}

Affine AffineDomain::add(const Affine& a, const Affine& b, const Expression& where) {
  Affine result;
  result.base = add_integers(a.base, b.base, where);
  auto left = a.terms.begin(), right = b.terms.begin();
  while (left != a.terms.end() || right != b.terms.end()) {
    if (right == b.terms.end() || (left != a.terms.end() && left->first < right->first)) {
      result.terms.push_back(*left++);
    } else if (left == a.terms.end() || right->first < left->first) {
      result.terms.push_back(*right++);
    } else {
      const std::int64_t sum = add_integers(left->second, right->second, where);
      if (sum != 0) result.terms.emplace_back(left->first, sum);
      ++left;
      ++right;
    }
  }
  return result;
}

Affine AffineDomain::subtract(const Affine& a, const Affine& b, const Expression& where) {
  if (a.is_constant() && b.is_constant()) return number(subtract_integers(a.base, b.base, where));
  return add(a, scale(b, -1, where), where);
}

Affine AffineDomain::scale(const Affine& a, std::int64_t factor, const Expression& where) {
  Affine result;
  if (factor == 0) return result;
  result.base = multiply_integers(a.base, factor, where);
  for (const auto& [variable, coefficient] : a.terms)
    result.terms.emplace_back(variable, multiply_integers(coefficient, factor, where));
  return result;
}

Affine AffineDomain::multiply(const Affine& a, const Affine& b, const Expression& where) {
  if (a.is_constant()) return scale(b, a.base, where);
  if (b.is_constant()) return scale(a, b.base, where);
  fail(where, "is not affine");
  return {};
}

Affine AffineDomain::floor_divide(const Affine& a, const Affine& b, const Expression& where) {
  const std::int64_t divisor = constant(b, where);
  if (a.is_constant()) return number(divide_integers(a.base, divisor, where));
  if (divisor == 0) {
    fail(where, "divides by zero");
    return {};
  }
  if (divisor == -1 || divisor == 1) return scale(a, divisor, where);
  const auto [low, high] = interval(a, *loop_extents_);
  const std::int64_t quotient = floor_quotient(low, divisor);
  if (quotient != floor_quotient(high, divisor)) {
    fail(where, "is not affine for an index from " + std::to_string(low) + " to " + std::to_string(high));
    return {};
  }
  return number(quotient);
}

Affine AffineDomain::modulo(const Affine& a, const Affine& b, const Expression& where) {
  const std::int64_t divisor = constant(b, where);
  if (a.is_constant()) return number(remainder(a.base, divisor, where));
  if (divisor == 1 || divisor == -1) return {};
  const Affine quotient = floor_divide(a, b, where);
  return add(a, number(-quotient.base * divisor), where);
}

}  // namespace taso
