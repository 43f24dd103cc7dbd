#include "operators/index_value.h"

#include <algorithm>
#include <limits>

#include "operators/unparse.h"
#include "support/reversed.h"

namespace taso {
namespace {

using Kind = Expression::Kind;

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? quotient - 1 : quotient;
}

}  // namespace

IndexValue IndexValue::of(std::span<const std::int64_t> values) {
  IndexValue result;
  result.vector = true;
  result.components.reserve(values.size());
  for (std::int64_t value : values) result.components.push_back({value, {}});
  return result;
}

const IndexValue* Environment::find(std::string_view name) const {
  for (const auto& [defined, value] : reversed(entries_))
    if (defined == name) return &value;
  return nullptr;
}

IndexValue* Environment::find(std::string_view name) {
  return const_cast<IndexValue*>(std::as_const(*this).find(name));
}

std::pair<std::int64_t, std::int64_t> interval(const Affine& affine, const std::vector<std::int64_t>& extents) {
  WideInteger low = affine.base, high = affine.base;
  for (const auto& [variable, coefficient] : affine.terms)
    (coefficient < 0 ? low : high) += static_cast<WideInteger>(coefficient) * (extents[variable] - 1);
  constexpr WideInteger smallest = std::numeric_limits<std::int64_t>::min();
  constexpr WideInteger largest = std::numeric_limits<std::int64_t>::max();
  return {static_cast<std::int64_t>(std::max(low, smallest)), static_cast<std::int64_t>(std::min(high, largest))};
}

void IndexEvaluator::fail(const Expression& expression, const std::string& what) {
  if (status_) status_ = bad_input(to_text(expression) + " " + what, expression.where);
}

std::int64_t IndexEvaluator::constant(const Affine& affine, const Expression& where) {
  if (!affine.is_constant()) fail(where, "depends on an index where a size is needed");
  return affine.base;
}

Sizes IndexEvaluator::constants(const IndexValue& value, const Expression& where) {
  Sizes result;
  result.reserve(value.components.size());
  for (const Affine& component : value.components) result.push_back(constant(component, where));
  return result;
}

const IndexValue& IndexEvaluator::named(const Expression& e) const {
  const IndexValue* found = environment_->find(e.name);
  TASO_CHECK(found != nullptr, "a checked definition reads the unbound name " + e.name);
  return *found;
}

std::int64_t IndexEvaluator::integer(const Expression& e) {
  // The usual cases without an IndexValue.
  switch (e.kind) {
    case Kind::integer:
      return e.integer;
    case Kind::name: {
      const IndexValue& found = named(e);
      return found.components.size() == 1 ? constant(found.components[0], e) : 0;
    }
    case Kind::add:
    case Kind::subtract:
    case Kind::multiply:
    case Kind::floor_divide:
    case Kind::modulo: {
      if (e.operands[0].sort != Sort::integer || e.operands[1].sort != Sort::integer) break;
      const std::int64_t left = integer(e.operands[0]);
      return combine(e, left, integer(e.operands[1]));
    }
    default:
      break;
  }
  const IndexValue result = value(e);
  return result.components.size() == 1 ? constant(result.components[0], e) : 0;
}

Sizes IndexEvaluator::integers(const Expression& e) {
  if (e.kind == Kind::name) return constants(named(e), e);
  return constants(value(e), e);
}

Affine IndexEvaluator::add(const Affine& a, const Affine& b, const Expression& where) {
  Affine result;
  if (__builtin_add_overflow(a.base, b.base, &result.base)) fail(where, "is beyond 64 bits");
  auto left = a.terms.begin(), right = b.terms.begin();
  while (left != a.terms.end() || right != b.terms.end()) {
    if (right == b.terms.end() || (left != a.terms.end() && left->first < right->first)) {
      result.terms.push_back(*left++);
    } else if (left == a.terms.end() || right->first < left->first) {
      result.terms.push_back(*right++);
    } else {
      std::int64_t sum = 0;
      if (__builtin_add_overflow(left->second, right->second, &sum)) fail(where, "is beyond 64 bits");
      if (sum != 0) result.terms.emplace_back(left->first, sum);
      ++left;
      ++right;
    }
  }
  return result;
}

Affine IndexEvaluator::scale(const Affine& a, std::int64_t factor, const Expression& where) {
  Affine result;
  if (factor == 0) return result;
  if (__builtin_mul_overflow(a.base, factor, &result.base)) fail(where, "is beyond 64 bits");
  for (const auto& [variable, coefficient] : a.terms) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(coefficient, factor, &product)) fail(where, "is beyond 64 bits");
    result.terms.emplace_back(variable, product);
  }
  return result;
}

IndexValue IndexEvaluator::value(const Expression& e) {
  switch (e.kind) {
    case Kind::integer:
      return IndexValue::of(e.integer);
    case Kind::name:
      return named(e);
    case Kind::piece: {
      const IndexValue& found = named(e);
      const std::int64_t which = integer(e.operands[0]);
      if (which < 0 || which >= static_cast<std::int64_t>(found.components.size())) {
        fail(e, "does not exist");
        return IndexValue::of(0);
      }
      return {false, {found.components[static_cast<std::size_t>(which)]}};
    }
    case Kind::list: {
      Sizes values;
      for (const Expression& element : e.operands) values.push_back(integer(element));
      return IndexValue::of(values);
    }
    case Kind::element: {
      const IndexValue computed = e.operands[0].kind == Kind::name ? IndexValue() : value(e.operands[0]);
      const IndexValue& vector = e.operands[0].kind == Kind::name ? named(e.operands[0]) : computed;
      const IndexValue subscript = value(e.operands[1]);
      IndexValue result;
      result.vector = subscript.vector;
      for (const Affine& component : subscript.components) {
        const std::int64_t position = constant(component, e.operands[1]);
        if (position < 0 || position >= static_cast<std::int64_t>(vector.components.size())) {
          fail(e, "has subscript " + std::to_string(position) + ", and there are " +
                      std::to_string(vector.components.size()) + " elements");
          result.components.push_back({});
        } else {
          result.components.push_back(vector.components[static_cast<std::size_t>(position)]);
        }
      }
      return result;
    }
    case Kind::call:
      return call(e);
    case Kind::negate: {
      IndexValue result = value(e.operands[0]);
      for (Affine& component : result.components) component = scale(component, -1, e);
      return result;
    }
    case Kind::add:
    case Kind::subtract:
    case Kind::multiply:
    case Kind::floor_divide:
    case Kind::modulo:
      return arithmetic(e);
    case Kind::real:
    case Kind::infinity:
    case Kind::divide:
    case Kind::equal:
    case Kind::not_equal:
    case Kind::less:
    case Kind::less_equal:
    case Kind::greater:
    case Kind::greater_equal:
    case Kind::conjunction:
    case Kind::disjunction:
    case Kind::negation:
    case Kind::conditional:
    case Kind::read:
    case Kind::valid:
    case Kind::reduce:
    case Kind::all:
    case Kind::tuple:
      break;
  }
  TASO_CHECK(false, "a checked definition uses " + to_text(e) + " as an index");
  return IndexValue::of(0);
}

std::int64_t IndexEvaluator::combine(const Expression& e, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (e.kind) {
    case Kind::add:
      if (__builtin_add_overflow(a, b, &result)) fail(e, "is beyond 64 bits");
      return result;
    case Kind::subtract:
      if (__builtin_sub_overflow(a, b, &result)) fail(e, "is beyond 64 bits");
      return result;
    case Kind::multiply:
      if (__builtin_mul_overflow(a, b, &result)) fail(e, "is beyond 64 bits");
      return result;
    default: {
      if (b == 0) {
        fail(e, "divides by zero");
        return 0;
      }
      if (b == -1) {
        if (e.kind == Kind::floor_divide && __builtin_sub_overflow(std::int64_t{0}, a, &result))
          fail(e, "is beyond 64 bits");
        return result;
      }
      const std::int64_t quotient = floor_divide(a, b);
      return e.kind == Kind::floor_divide ? quotient : a - quotient * b;
    }
  }
}

Affine IndexEvaluator::combine(const Expression& e, const Affine& a, const Affine& b) {
  if (a.is_constant() && b.is_constant()) return {combine(e, a.base, b.base), {}};
  switch (e.kind) {
    case Kind::add:
      return add(a, b, e);
    case Kind::subtract:
      return add(a, scale(b, -1, e), e);
    case Kind::multiply:
      if (a.is_constant()) return scale(b, a.base, e);
      if (b.is_constant()) return scale(a, b.base, e);
      fail(e, "is not affine");
      return {};
    case Kind::floor_divide:
    case Kind::modulo: {
      const std::int64_t divisor = constant(b, e);
      if (divisor == 0) {
        fail(e, "divides by zero");
        return {};
      }
      if (divisor == -1) return e.kind == Kind::modulo ? Affine{} : scale(a, -1, e);
      // An index is divided only where its range makes the quotient a known number.
      const auto [low, high] = interval(a, *loop_extents_);
      if (divisor == 1) return e.kind == Kind::modulo ? Affine{} : a;
      if (floor_divide(low, divisor) != floor_divide(high, divisor)) {
        fail(e, "is not affine for an index from " + std::to_string(low) + " to " + std::to_string(high));
        return {};
      }
      const std::int64_t quotient = floor_divide(low, divisor);
      if (e.kind == Kind::floor_divide) return {quotient, {}};
      return add(a, {-quotient * divisor, {}}, e);
    }
    default:
      TASO_CHECK(false, "not an arithmetic expression");
      return {};
  }
}

IndexValue IndexEvaluator::arithmetic(const Expression& e) {
  if (e.operands[0].sort == Sort::integer && e.operands[1].sort == Sort::integer) return IndexValue::of(integer(e));
  const IndexValue left = value(e.operands[0]), right = value(e.operands[1]);
  IndexValue result;
  result.vector = left.vector || right.vector;
  if (!result.vector) {
    result.components.push_back(combine(e, left.components[0], right.components[0]));
    return result;
  }
  const std::size_t length = left.vector ? left.components.size() : right.components.size();
  if (left.vector && right.vector && left.components.size() != right.components.size()) {
    fail(e, "has operands of " + std::to_string(left.components.size()) + " and " +
                std::to_string(right.components.size()) + " elements");
    return result;
  }
  for (std::size_t i = 0; i < length; ++i)
    result.components.push_back(
        combine(e, left.components[left.vector ? i : 0], right.components[right.vector ? i : 0]));
  return result;
}

IndexValue IndexEvaluator::call(const Expression& e) {
  absl::InlinedVector<IndexValue, 3> arguments;
  for (const Expression& operand : e.operands) arguments.push_back(value(operand));
  auto integer_argument = [&](std::size_t i) { return constant(arguments[i].components.at(0), e); };
  if (e.name == "length") return IndexValue::of(static_cast<std::int64_t>(arguments[0].components.size()));
  if (e.name == "sum" || e.name == "prod") {
    std::int64_t total = e.name == "sum" ? 0 : 1;
    for (std::int64_t element : constants(arguments[0], e)) {
      if (e.name == "sum" ? __builtin_add_overflow(total, element, &total)
                          : __builtin_mul_overflow(total, element, &total))
        fail(e, "is beyond 64 bits");
    }
    return IndexValue::of(total);
  }
  if (e.name == "max" || e.name == "min") {
    std::size_t length = 1;
    bool vector = false;
    for (const IndexValue& argument : arguments)
      if (argument.vector) {
        if (vector && argument.components.size() != length) {
          fail(e, "has vectors of different lengths");
          return arguments[0];
        }
        vector = true;
        length = argument.components.size();
      }
    Sizes result;
    for (std::size_t i = 0; i < length; ++i) {
      std::optional<std::int64_t> best;
      for (const IndexValue& argument : arguments) {
        const std::int64_t element = constant(argument.components[argument.vector ? i : 0], e);
        if (!best || (e.name == "max" ? element > *best : element < *best)) best = element;
      }
      result.push_back(*best);
    }
    if (vector) return IndexValue::of(result);
    return IndexValue::of(result.at(0));
  }
  if (e.name == "before") {
    const Sizes list = constants(arguments[0], e);
    const std::int64_t count = integer_argument(1);
    std::int64_t total = 0;
    for (std::size_t i = 0; i < list.size() && static_cast<std::int64_t>(i) < count; ++i)
      if (__builtin_add_overflow(total, list[i], &total)) fail(e, "is beyond 64 bits");
    return IndexValue::of(total);
  }
  if (e.name == "join") {
    IndexValue result;
    result.vector = true;
    for (const IndexValue& argument : arguments)
      result.components.insert(result.components.end(), argument.components.begin(), argument.components.end());
    return result;
  }
  if (e.name == "first" || e.name == "last") {
    const std::int64_t count = integer_argument(1);
    const auto length = static_cast<std::int64_t>(arguments[0].components.size());
    if (count < 0 || count > length) {
      fail(e, "asks for " + std::to_string(count) + " of " + std::to_string(length) + " elements");
      return IndexValue::of(Sizes{});
    }
    IndexValue result;
    result.vector = true;
    const auto begin = e.name == "first" ? arguments[0].components.begin() : arguments[0].components.end() - count;
    result.components.assign(begin, begin + count);
    return result;
  }
  if (e.name == "repeat") {
    const std::int64_t count = integer_argument(1);
    if (count < 0 || count > 1024) {
      fail(e, "asks for " + std::to_string(count) + " elements; 0 to 1024 are possible");
      return IndexValue::of(Sizes{});
    }
    return IndexValue::of(Sizes(static_cast<std::size_t>(count), integer_argument(0)));
  }
  if (e.name == "position") {
    const Sizes shape = constants(arguments[1], e);
    if (shape.size() != arguments[0].components.size()) {
      fail(e, "has " + std::to_string(arguments[0].components.size()) + " indices for " + std::to_string(shape.size()) +
                  " axes");
      return IndexValue::of(0);
    }
    Affine total;
    for (std::size_t i = 0; i < shape.size(); ++i)
      total = add(scale(total, shape[i], e), arguments[0].components[i], e);
    return {false, {total}};
  }
  if (e.name == "inverse") {
    const Sizes list = constants(arguments[0], e);
    Sizes result(list.size(), -1);
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i] < 0 || list[i] >= static_cast<std::int64_t>(list.size()) ||
          result[static_cast<std::size_t>(list[i])] >= 0) {
        fail(e, "is not the inverse of a permutation");
        break;
      }
      result[static_cast<std::size_t>(list[i])] = static_cast<std::int64_t>(i);
    }
    return IndexValue::of(result);
  }
  if (e.name == "on") {
    const IndexValue &chosen = arguments[1], &others = arguments[2];
    if (chosen.vector && others.vector && chosen.components.size() != others.components.size()) {
      fail(e, "has vectors of different lengths");
      return others;
    }
    const std::size_t length = chosen.vector ? chosen.components.size() : others.components.size();
    IndexValue result;
    result.vector = true;
    for (std::size_t i = 0; i < length; ++i) result.components.push_back(others.components[others.vector ? i : 0]);
    const auto rank = static_cast<std::int64_t>(length);
    for (std::int64_t axis : constants(arguments[0], e)) {
      if (axis < -rank || axis >= rank) {
        fail(e, "names axis " + std::to_string(axis) + " of " + std::to_string(rank));
        continue;
      }
      const auto position = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
      result.components[position] = chosen.components[chosen.vector ? position : 0];
    }
    return result;
  }
  const auto function = functions_.find(e.name);
  TASO_CHECK(function != functions_.end(), "a checked definition calls the unknown size function " + e.name);
  Environment inner;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    inner.bind(function->second.parameters[i], std::move(arguments[i]));
  const Environment* outer = std::exchange(environment_, &inner);
  IndexValue result = value(function->second.definition);
  environment_ = outer;
  return result;
}

double IndexEvaluator::real(const Expression& e) {
  if (e.sort == Sort::integer) return static_cast<double>(integer(e));
  switch (e.kind) {
    case Kind::real:
      return e.real;
    case Kind::name:
      return attributes_.real(e.name);
    case Kind::negate:
      return -real(e.operands[0]);
    case Kind::add:
      return real(e.operands[0]) + real(e.operands[1]);
    case Kind::subtract:
      return real(e.operands[0]) - real(e.operands[1]);
    case Kind::multiply:
      return real(e.operands[0]) * real(e.operands[1]);
    case Kind::divide:
      return real(e.operands[0]) / real(e.operands[1]);
    default:
      fail(e, "cannot be compared");
      return 0;
  }
}

bool IndexEvaluator::condition(const Expression& e) {
  switch (e.kind) {
    case Kind::conjunction:
      return condition(e.operands[0]) && condition(e.operands[1]);
    case Kind::disjunction:
      return condition(e.operands[0]) || condition(e.operands[1]);
    case Kind::negation:
      return !condition(e.operands[0]);
    case Kind::call: {
      const Sizes list = integers(e.operands[0]);  // is_permutation
      std::vector<bool> seen(list.size(), false);
      for (std::int64_t element : list) {
        if (element < 0 || element >= static_cast<std::int64_t>(list.size()) || seen[static_cast<std::size_t>(element)])
          return false;
        seen[static_cast<std::size_t>(element)] = true;
      }
      return true;
    }
    case Kind::all: {
      Environment inner = *environment_;
      const Environment* outer = std::exchange(environment_, &inner);
      // Counts through the box of all ranges, the last fastest.
      std::vector<std::int64_t> extents;
      for (const Expression::Range& range : e.ranges) extents.push_back(integer(*range.extent));
      bool holds = true;
      if (std::all_of(extents.begin(), extents.end(), [](std::int64_t extent) { return extent > 0; })) {
        std::vector<std::int64_t> at(extents.size(), 0);
        for (bool more = true; more && holds && status_;) {
          const std::size_t mark = inner.size();
          for (std::size_t i = 0; i < at.size(); ++i) inner.bind(e.ranges[i].name, IndexValue::of(at[i]));
          holds = condition(e.operands[0]);
          inner.shrink(mark);
          more = false;
          for (std::size_t i = at.size(); i-- > 0 && !more;) {
            more = ++at[i] < extents[i];
            if (!more) at[i] = 0;
          }
        }
      }
      environment_ = outer;
      return holds;
    }
    default:
      break;
  }
  const Expression &left_side = e.operands[0], &right_side = e.operands[1];
  if (left_side.sort == Sort::real || right_side.sort == Sort::real) {
    const double left = real(left_side), right = real(right_side);
    switch (e.kind) {
      case Kind::equal:
        return left == right;
      case Kind::not_equal:
        return left != right;
      case Kind::less:
        return left < right;
      case Kind::less_equal:
        return left <= right;
      case Kind::greater:
        return left > right;
      default:
        return left >= right;
    }
  }
  const IndexValue left = value(left_side), right = value(right_side);
  // Vectors of different lengths are different, and neither is smaller.
  if (left.vector && right.vector && left.components.size() != right.components.size())
    return e.kind == Kind::not_equal;
  const std::size_t length = left.vector ? left.components.size() : right.components.size();
  bool all = true;
  for (std::size_t i = 0; i < length; ++i) {
    const std::int64_t a = constant(left.components[left.vector ? i : 0], e);
    const std::int64_t b = constant(right.components[right.vector ? i : 0], e);
    bool here = false;
    switch (e.kind) {
      case Kind::equal:
        here = a == b;
        break;
      case Kind::not_equal:
        here = a != b;
        break;
      case Kind::less:
        here = a < b;
        break;
      case Kind::less_equal:
        here = a <= b;
        break;
      case Kind::greater:
        here = a > b;
        break;
      default:
        here = a >= b;
        break;
    }
    all = all && here;
  }
  return all;
}

}  // namespace taso
