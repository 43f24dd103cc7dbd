/// The language of sizes and indices, interpreted once for all domains of numbers.
///
/// A domain says what a number is and how two of them are added, compared, divided: machine integers (types at concrete
/// shapes), affine functions of loop variables (lowering), polynomials with facts (proofs for all sizes). The
/// interpreter says what expressions mean. Whether two readings of a definition agree is therefore a question about
/// numbers alone, and tests/verifier/size_domains_test.cpp asks it.
///
/// A domain D has
///   Number, Truth                          numbers; what a condition is (bool, or cases that exclude one another)
///   number(n), read(number)                a literal; what a bound number is by now
///   add, subtract, multiply, floor_divide, modulo, larger, smaller (a, b, where), negate(a, where)
///   compare(kind, a, b, where)             a Truth, for the six comparisons
///   truth(b), decides(t, b), both(s, t, where), either(s, t, where), negated(t)
///   in_case(t, b, evaluate)                what evaluate() gives, which matters only where t is b
///   within(a, low, high, asked, where, message)   the machine integer that a is; outside of [low, high] the definition
///                                          does not apply, for the reason message(value); nothing if that failed
///   position(a, length, required, where)   the same for an element of a list that may be a permutation; elsewhere it
///                                          may be any number
///   count(a, where)                        a number of repetitions; 0 if that failed
///   real_attribute(name), compare_reals    only if has_reals; otherwise reals(where) notes that they are not known
///   fail(where, message), failed()         the first failure is kept; what comes after it is meaningless but harmless
/// where `where` is the expression that is evaluated, for messages.
#pragma once

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operators/definition.h"
#include "operators/unparse.h"
#include "support/reversed.h"
#include "support/status.h"

namespace taso {

/// How the components of a vector of numbers are kept.
template <class Number>
struct SizeComponents {
  using Type = std::vector<Number>;
};

/// A scalar (one component) or a vector.
template <class Number>
struct SizeValue {
  using Components = typename SizeComponents<Number>::Type;
  bool vector = false;
  Components components;

  [[nodiscard]] static SizeValue of(Number value) {
    SizeValue result;
    result.components.push_back(std::move(value));
    return result;
  }
  [[nodiscard]] static SizeValue of(Components values) { return {true, std::move(values)}; }
  /// Where both are vectors, of the same length.
  [[nodiscard]] const Number& at(std::size_t i) const { return components[vector ? i : 0]; }
};

/// What names stand for; inner declarations are at the back. Names are those of a definition, which outlives this.
template <class Number>
class SizeScope {
 public:
  using Value = SizeValue<Number>;
  [[nodiscard]] const Value* find(std::string_view name) const {
    for (const auto& [defined, value] : reversed(entries_))
      if (defined == name) return &value;
    return nullptr;
  }
  [[nodiscard]] Value* find(std::string_view name) { return const_cast<Value*>(std::as_const(*this).find(name)); }
  void bind(std::string_view name, Value value) { entries_.emplace_back(name, std::move(value)); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  void shrink(std::size_t size) {
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(size), entries_.end());
  }
  [[nodiscard]] auto begin() const { return entries_.begin(); }
  [[nodiscard]] auto end() const { return entries_.end(); }

 private:
  absl::InlinedVector<std::pair<std::string_view, Value>, 16> entries_;
};

using SizeFunctions = std::map<std::string, SizeFunction, std::less<>>;

/// Evaluates checked expressions.
template <class D>
class SizeInterpreter {
 public:
  using Domain = D;
  using Number = typename D::Number;
  using Truth = typename D::Truth;
  using Value = SizeValue<Number>;
  using Scope = SizeScope<Number>;

  SizeInterpreter(const SizeFunctions& functions, const Scope& scope, D domain)
      : functions_(functions), scope_(&scope), domain_(std::move(domain)) {}

  [[nodiscard]] Value value(const Expression& e);
  /// Of an expression that is no vector.
  [[nodiscard]] Number scalar(const Expression& e);
  /// A condition on sizes and indices. `required`: where it does not hold, the operator does not apply.
  [[nodiscard]] Truth condition(const Expression& e, bool required = false);
  /// The conditions that together are a required condition.
  [[nodiscard]] std::vector<Truth> requirements(const Expression& e);
  [[nodiscard]] D& domain() { return domain_; }
  [[nodiscard]] const D& domain() const { return domain_; }

 private:
  using Kind = Expression::Kind;
  using Arguments = absl::InlinedVector<Value, 3>;

  [[nodiscard]] static bool is_vector(const Expression& e) {
    return e.sort == Sort::integers || e.sort == Sort::index_vector;
  }
  [[nodiscard]] static std::int64_t length(const Value& value) {
    return static_cast<std::int64_t>(value.components.size());
  }
  [[nodiscard]] static Value vector_of(typename Value::Components values) { return {true, std::move(values)}; }
  /// In place of a value that there is not.
  [[nodiscard]] Value nothing(const Expression& e) {
    return is_vector(e) ? vector_of({}) : Value::of(domain_.number(0));
  }
  [[nodiscard]] const Value& named(const Expression& e) const {
    const Value* found = scope_->find(e.name);
    TASO_CHECK(found != nullptr, "a checked definition reads the unbound name " + e.name);
    return *found;
  }
  /// The length that values have together, those that are vectors; nothing if they differ.
  template <class... Values>
  [[nodiscard]] std::optional<std::size_t> common_length(const Expression& e, const Values&... values);
  [[nodiscard]] Number combine(const Expression& e, const Number& a, const Number& b);
  [[nodiscard]] Value arithmetic(const Expression& e);
  [[nodiscard]] Value element(const Expression& e);
  [[nodiscard]] Value call(const Expression& e);
  [[nodiscard]] Value builtin(const Expression& e, const Arguments& arguments);
  [[nodiscard]] Value extremum(const Expression& e, const Arguments& arguments);
  [[nodiscard]] Value part(const Expression& e, const Value& list, const Number& count);
  [[nodiscard]] Value inverse(const Expression& e, const Value& list);
  [[nodiscard]] Value nonzero(const Expression& e, const Value& list);
  [[nodiscard]] Value on(const Expression& e, const Value& axes, const Value& chosen, const Value& others);
  [[nodiscard]] Truth is_permutation(const Expression& e, bool required);
  [[nodiscard]] Truth comparison(const Expression& e);
  [[nodiscard]] double real(const Expression& e);  ///< Of a domain that has reals.
  /// Calls `each` at all values of the ranges of an `all`, until it returns false.
  template <class Each>
  void instances(const Expression& e, const Each& each);

  const SizeFunctions& functions_;
  const Scope* scope_;
  D domain_;
};

template <class D>
auto SizeInterpreter<D>::scalar(const Expression& e) -> Number {
  switch (e.kind) {
    case Kind::integer:
      return domain_.number(e.integer);
    case Kind::name: {
      const Value& found = named(e);
      return found.components.size() == 1 ? domain_.read(found.components[0]) : domain_.number(0);
    }
    case Kind::add:
    case Kind::subtract:
    case Kind::multiply:
    case Kind::floor_divide:
    case Kind::modulo: {
      if (is_vector(e.operands[0]) || is_vector(e.operands[1])) break;
      const Number left = scalar(e.operands[0]);
      return combine(e, left, scalar(e.operands[1]));
    }
    default:
      break;
  }
  Value result = value(e);
  return result.components.size() == 1 ? std::move(result.components[0]) : domain_.number(0);
}

template <class D>
auto SizeInterpreter<D>::value(const Expression& e) -> Value {
  switch (e.kind) {
    case Kind::integer:
      return Value::of(domain_.number(e.integer));
    case Kind::name: {
      Value result = named(e);
      for (Number& component : result.components) component = domain_.read(component);
      return result;
    }
    case Kind::piece: {
      const Value& found = named(e);
      const auto which = domain_.within(scalar(e.operands[0]), 0, length(found) - 1, e, e,
                                        [](std::int64_t) { return std::string("does not exist"); });
      if (!which) return nothing(e);
      return Value::of(domain_.read(found.components[static_cast<std::size_t>(*which)]));
    }
    case Kind::list: {
      typename Value::Components values;
      for (const Expression& operand : e.operands) values.push_back(scalar(operand));
      return vector_of(std::move(values));
    }
    case Kind::element:
      return element(e);
    case Kind::call:
      return call(e);
    case Kind::negate: {
      Value result = value(e.operands[0]);
      for (Number& component : result.components) component = domain_.negate(component, e);
      return result;
    }
    case Kind::add:
    case Kind::subtract:
    case Kind::multiply:
    case Kind::floor_divide:
    case Kind::modulo:
      return arithmetic(e);
    default:
      break;
  }
  TASO_CHECK(false, "a checked definition uses " + to_text(e) + " as an index");
  return nothing(e);
}

template <class D>
template <class... Values>
std::optional<std::size_t> SizeInterpreter<D>::common_length(const Expression& e, const Values&... values) {
  std::optional<std::size_t> result;
  bool fits = true;
  for (const Value* value : {&values...}) {
    if (!value->vector) continue;
    if (result && *result != value->components.size() && fits) {
      domain_.fail(e, "has operands of " + std::to_string(*result) + " and " +
                          std::to_string(value->components.size()) + " elements");
      fits = false;
    }
    result = value->components.size();
  }
  if (!fits) return std::nullopt;
  return result.value_or(1);
}

template <class D>
auto SizeInterpreter<D>::combine(const Expression& e, const Number& a, const Number& b) -> Number {
  switch (e.kind) {
    case Kind::add:
      return domain_.add(a, b, e);
    case Kind::subtract:
      return domain_.subtract(a, b, e);
    case Kind::multiply:
      return domain_.multiply(a, b, e);
    case Kind::floor_divide:
      return domain_.floor_divide(a, b, e);
    default:
      return domain_.modulo(a, b, e);
  }
}

template <class D>
auto SizeInterpreter<D>::arithmetic(const Expression& e) -> Value {
  if (!is_vector(e.operands[0]) && !is_vector(e.operands[1])) return Value::of(scalar(e));
  const Value left = value(e.operands[0]), right = value(e.operands[1]);
  const std::optional<std::size_t> length = common_length(e, left, right);
  if (!length) return nothing(e);
  typename Value::Components result;
  result.reserve(*length);
  for (std::size_t i = 0; i < *length; ++i) result.push_back(combine(e, left.at(i), right.at(i)));
  return vector_of(std::move(result));
}

template <class D>
auto SizeInterpreter<D>::element(const Expression& e) -> Value {
  const bool plain = e.operands[0].kind == Kind::name;
  const Value computed = plain ? Value() : value(e.operands[0]);
  const Value& list = plain ? named(e.operands[0]) : computed;
  const Value subscript = value(e.operands[1]);
  Value result;
  result.vector = subscript.vector;
  for (const Number& component : subscript.components) {
    const auto position = domain_.within(component, 0, length(list) - 1, e.operands[1], e, [&](std::int64_t found) {
      return "has subscript " + std::to_string(found) + ", and there are " + std::to_string(length(list)) + " elements";
    });
    result.components.push_back(position ? domain_.read(list.components[static_cast<std::size_t>(*position)])
                                         : domain_.number(0));
  }
  return result;
}

template <class D>
auto SizeInterpreter<D>::call(const Expression& e) -> Value {
  Arguments arguments;
  arguments.reserve(e.operands.size());
  for (const Expression& operand : e.operands) arguments.push_back(value(operand));
  if (domain_.failed()) return nothing(e);
  if (e.builtin != SizeBuiltin::none) return builtin(e, arguments);
  const auto function = functions_.find(e.name);
  TASO_CHECK(function != functions_.end(), "a checked definition calls the unknown size function " + e.name);
  Scope inner;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    inner.bind(function->second.parameters[i], std::move(arguments[i]));
  const Scope* outer = std::exchange(scope_, &inner);
  Value result = value(function->second.definition);
  scope_ = outer;
  return result;
}

template <class D>
auto SizeInterpreter<D>::builtin(const Expression& e, const Arguments& arguments) -> Value {
  const Value& first = arguments[0];
  switch (e.builtin) {
    case SizeBuiltin::length:
      return Value::of(domain_.number(length(first)));
    case SizeBuiltin::sum:
    case SizeBuiltin::prod: {
      const bool sum = e.builtin == SizeBuiltin::sum;
      Number total = domain_.number(sum ? 0 : 1);
      for (const Number& component : first.components)
        total = sum ? domain_.add(total, component, e) : domain_.multiply(total, component, e);
      return Value::of(std::move(total));
    }
    case SizeBuiltin::max:
    case SizeBuiltin::min:
      return extremum(e, arguments);
    case SizeBuiltin::before: {
      const Value summands = part(e, first, arguments[1].components[0]);
      Number total = domain_.number(0);
      for (const Number& component : summands.components) total = domain_.add(total, component, e);
      return Value::of(std::move(total));
    }
    case SizeBuiltin::first:
    case SizeBuiltin::last:
      return part(e, first, arguments[1].components[0]);
    case SizeBuiltin::join: {
      typename Value::Components all;
      for (const Value& argument : arguments)
        all.insert(all.end(), argument.components.begin(), argument.components.end());
      return vector_of(std::move(all));
    }
    case SizeBuiltin::repeat: {
      constexpr std::int64_t most = 1024;
      const auto count = domain_.within(arguments[1].components[0], 0, most, e, e, [](std::int64_t found) {
        return "asks for " + std::to_string(found) + " elements; 0 to " + std::to_string(most) + " are possible";
      });
      if (!count) return nothing(e);
      return vector_of(typename Value::Components(static_cast<std::size_t>(*count), first.components[0]));
    }
    case SizeBuiltin::position: {
      const Value& shape = arguments[1];
      if (length(shape) != length(first)) {
        domain_.fail(
            e, "has " + std::to_string(length(first)) + " indices for " + std::to_string(length(shape)) + " axes");
        return nothing(e);
      }
      Number total = domain_.number(0);
      for (std::size_t i = 0; i < shape.components.size(); ++i)
        total = domain_.add(domain_.multiply(total, shape.components[i], e), first.components[i], e);
      return Value::of(std::move(total));
    }
    case SizeBuiltin::inverse:
      return inverse(e, first);
    case SizeBuiltin::nonzero:
      return nonzero(e, first);
    case SizeBuiltin::on:
      return on(e, first, arguments[1], arguments[2]);
    case SizeBuiltin::none:
    case SizeBuiltin::is_permutation:  // a condition
      break;
  }
  TASO_CHECK(false, "a checked definition uses " + to_text(e) + " as an index");
  return nothing(e);
}

template <class D>
auto SizeInterpreter<D>::extremum(const Expression& e, const Arguments& arguments) -> Value {
  Value result;
  std::size_t length = 1;
  for (const Value& argument : arguments) {
    if (!argument.vector) continue;
    if (result.vector && argument.components.size() != length) {
      domain_.fail(e, "has vectors of different lengths");
      return nothing(e);
    }
    result.vector = true;
    length = argument.components.size();
  }
  for (std::size_t i = 0; i < length; ++i) {
    Number best = arguments[0].at(i);
    for (std::size_t a = 1; a < arguments.size(); ++a)
      best = e.builtin == SizeBuiltin::max ? domain_.larger(arguments[a].at(i), best, e)
                                           : domain_.smaller(arguments[a].at(i), best, e);
    result.components.push_back(std::move(best));
  }
  return result;
}

// The first elements of a list, or the last.
template <class D>
auto SizeInterpreter<D>::part(const Expression& e, const Value& list, const Number& count) -> Value {
  const auto number = domain_.within(count, 0, length(list), e, e, [&](std::int64_t found) {
    return "asks for " + std::to_string(found) + " of " + std::to_string(length(list)) + " elements";
  });
  if (!number) return vector_of({});
  const auto begin = e.builtin == SizeBuiltin::last ? list.components.end() - *number : list.components.begin();
  return vector_of(typename Value::Components(begin, begin + *number));
}

// The positions of the elements that are not 0: their values must be known.
template <class D>
auto SizeInterpreter<D>::nonzero(const Expression& e, const Value& list) -> Value {
  constexpr std::int64_t any = std::int64_t{1} << 61;
  typename Value::Components positions;
  for (std::size_t i = 0; i < list.components.size(); ++i) {
    const auto element = domain_.within(list.components[i], -any, any, e, e,
                                        [](std::int64_t found) { return "has the element " + std::to_string(found); });
    if (!element) return vector_of({});
    if (*element != 0) positions.push_back(domain_.number(static_cast<std::int64_t>(i)));
  }
  return vector_of(std::move(positions));
}

template <class D>
auto SizeInterpreter<D>::inverse(const Expression& e, const Value& list) -> Value {
  const std::string wrong = "is not the inverse of a permutation";
  typename Value::Components result(list.components.size(), domain_.number(0));
  std::vector<bool> seen(list.components.size(), false);
  for (std::size_t i = 0; i < list.components.size(); ++i) {
    const auto position =
        domain_.within(list.components[i], 0, length(list) - 1, e, e, [&](std::int64_t) { return wrong; });
    if (!position) return vector_of({});
    const auto place = static_cast<std::size_t>(*position);
    if (seen[place]) {
      domain_.fail(e, wrong);
      return vector_of({});
    }
    seen[place] = true;
    result[place] = domain_.number(static_cast<std::int64_t>(i));
  }
  return vector_of(std::move(result));
}

template <class D>
auto SizeInterpreter<D>::on(const Expression& e, const Value& axes, const Value& chosen, const Value& others) -> Value {
  if (chosen.vector && others.vector && chosen.components.size() != others.components.size()) {
    domain_.fail(e, "has vectors of different lengths");
    return nothing(e);
  }
  const std::int64_t rank = chosen.vector ? length(chosen) : length(others);
  typename Value::Components result;
  for (std::int64_t i = 0; i < rank; ++i) result.push_back(others.at(static_cast<std::size_t>(i)));
  for (const Number& axis : axes.components) {
    const auto named = domain_.within(axis, -rank, rank - 1, e, e, [&](std::int64_t found) {
      return "names axis " + std::to_string(found) + " of " + std::to_string(rank);
    });
    if (!named) return vector_of({});
    const auto position = static_cast<std::size_t>(*named < 0 ? *named + rank : *named);
    result[position] = chosen.at(position);
  }
  return vector_of(std::move(result));
}

template <class D>
auto SizeInterpreter<D>::is_permutation(const Expression& e, bool required) -> Truth {
  const Value list = value(e.operands[0]);
  std::vector<bool> seen(list.components.size(), false);
  for (const Number& component : list.components) {
    const auto position = domain_.position(component, length(list), required, e);
    if (!position) return domain_.truth(true);
    if (*position < 0 || *position >= length(list) || seen[static_cast<std::size_t>(*position)])
      return domain_.truth(false);
    seen[static_cast<std::size_t>(*position)] = true;
  }
  return domain_.truth(true);
}

template <class D>
auto SizeInterpreter<D>::condition(const Expression& e, bool required) -> Truth {
  switch (e.kind) {
    case Kind::conjunction:
    case Kind::disjunction: {
      // The second operand has a meaning where the first one does not decide.
      const bool conjunction = e.kind == Kind::conjunction;
      const bool both_required = conjunction && required;
      const Truth left = condition(e.operands[0], both_required);
      if (domain_.decides(left, !conjunction)) return left;
      const Truth right = both_required ? condition(e.operands[1], true)
                                        : domain_.in_case(left, conjunction, [&] { return condition(e.operands[1]); });
      return conjunction ? domain_.both(left, right, e) : domain_.either(left, right, e);
    }
    case Kind::negation:
      return domain_.negated(condition(e.operands[0]));
    case Kind::call:
      return is_permutation(e, required);
    case Kind::all: {
      // A conjunction: each instance has a meaning where those before do not decide.
      Truth result = domain_.truth(true);
      instances(e, [&] {
        const auto here = [&] { return condition(e.operands[0], required); };
        result = domain_.both(result, required ? here() : domain_.in_case(result, true, here), e);
        return !domain_.decides(result, false);
      });
      return result;
    }
    default:
      return comparison(e);
  }
}

template <class D>
auto SizeInterpreter<D>::requirements(const Expression& e) -> std::vector<Truth> {
  std::vector<Truth> result;
  if (e.kind == Kind::conjunction) {
    result = requirements(e.operands[0]);
    for (Truth part : requirements(e.operands[1])) result.push_back(std::move(part));
  } else if (e.kind == Kind::all) {
    instances(e, [&] {
      result.push_back(condition(e.operands[0], true));
      return true;
    });
  } else {
    result.push_back(condition(e, true));
  }
  return result;
}

template <class D>
template <class Each>
void SizeInterpreter<D>::instances(const Expression& e, const Each& each) {
  Scope inner = *scope_;
  const Scope* outer = std::exchange(scope_, &inner);
  std::vector<std::int64_t> extents;
  for (const Expression::Range& range : e.ranges) extents.push_back(domain_.count(scalar(*range.extent), e));
  if (!domain_.failed() &&
      std::all_of(extents.begin(), extents.end(), [](std::int64_t extent) { return extent > 0; })) {
    // Counts through the box of all ranges, the last fastest.
    std::vector<std::int64_t> at(extents.size(), 0);
    for (bool more = true; more && !domain_.failed();) {
      const std::size_t mark = inner.size();
      for (std::size_t i = 0; i < at.size(); ++i) inner.bind(e.ranges[i].name, Value::of(domain_.number(at[i])));
      const bool go_on = each();
      inner.shrink(mark);
      if (!go_on) break;
      more = false;
      for (std::size_t i = at.size(); i-- > 0 && !more;) {
        more = ++at[i] < extents[i];
        if (!more) at[i] = 0;
      }
    }
  }
  scope_ = outer;
}

template <class D>
auto SizeInterpreter<D>::comparison(const Expression& e) -> Truth {
  const Expression &left_side = e.operands[0], &right_side = e.operands[1];
  if (left_side.sort == Sort::real || right_side.sort == Sort::real) {
    if constexpr (D::has_reals) {
      const double left = real(left_side);
      return domain_.compare_reals(e.kind, left, real(right_side));
    } else {
      domain_.reals(e);
      return domain_.truth(true);
    }
  }
  const Value left = value(left_side), right = value(right_side);
  if (domain_.failed()) return domain_.truth(true);
  // Vectors of different lengths are different, and neither is smaller.
  if (left.vector && right.vector && left.components.size() != right.components.size())
    return domain_.truth(e.kind == Kind::not_equal);
  const std::size_t length = left.vector ? left.components.size() : right.components.size();
  Truth result = domain_.truth(true);
  for (std::size_t i = 0; i < length && !domain_.decides(result, false); ++i)
    result = domain_.both(result, domain_.compare(e.kind, left.at(i), right.at(i), e), e);
  return result;
}

template <class D>
double SizeInterpreter<D>::real(const Expression& e) {
  if constexpr (!D::has_reals) {
    return 0;  // never asked for
  } else {
    if (e.sort == Sort::integer) return static_cast<double>(domain_.count(scalar(e), e));
    switch (e.kind) {
      case Kind::real:
        return e.real;
      case Kind::name:
        return domain_.real_attribute(e.name);
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
        domain_.fail(e, "cannot be compared");
        return 0;
    }
  }
}

}  // namespace taso
