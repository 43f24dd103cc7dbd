#include "verifier/unbounded/size_evaluator.h"

#include <algorithm>

#include "operators/unparse.h"
#include "support/reversed.h"

namespace taso::unbounded {
namespace {

using Kind = Expression::Kind;

// Alternatives of one condition, at most.
constexpr std::size_t max_alternatives = 64;
// Values of a number that is asked for, and elements of a vector.
constexpr std::int64_t max_values = 64;

std::vector<std::vector<Atom>> product(const std::vector<std::vector<Atom>>& a,
                                       const std::vector<std::vector<Atom>>& b) {
  std::vector<std::vector<Atom>> result;
  for (const auto& x : a)
    for (const auto& y : b) {
      result.push_back(x);
      result.back().insert(result.back().end(), y.begin(), y.end());
    }
  return result;
}

std::vector<std::vector<Atom>> joined(std::vector<std::vector<Atom>> a, const std::vector<std::vector<Atom>>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

const Sizes* SizeEnvironment::find(std::string_view name) const {
  for (const auto& [defined, sizes] : reversed(entries_))
    if (defined == name) return &sizes;
  return nullptr;
}

Sizes* SizeEnvironment::find(std::string_view name) { return const_cast<Sizes*>(std::as_const(*this).find(name)); }

Alternatives Alternatives::known(bool value) {
  const std::vector<std::vector<Atom>> always = {{}}, never;
  return value ? Alternatives{always, never} : Alternatives{never, always};
}

Alternatives Alternatives::of(const Atom& atom) {
  if (const auto constant = atom.p.constant())
    return known(atom.relation == Atom::Relation::zero ? *constant == 0 : *constant >= 0);
  const Polynomial less = -atom.p - 1;
  if (atom.relation == Atom::Relation::nonnegative) return {{{atom}}, {{{Atom::Relation::nonnegative, less}}}};
  return {{{atom}}, {{{Atom::Relation::nonnegative, atom.p - 1}}, {{Atom::Relation::nonnegative, less}}}};
}

Alternatives Alternatives::both(const Alternatives& a, const Alternatives& b) {
  return {product(a.yes, b.yes), joined(a.no, product(a.yes, b.no))};
}

Alternatives Alternatives::either(const Alternatives& a, const Alternatives& b) {
  return both(a.negated(), b.negated()).negated();
}

void SizeEvaluator::ill_typed() {
  if (!obstacle_.any()) obstacle_.kind = Obstacle::Kind::ill_typed;
}

void SizeEvaluator::unsupported(const std::string& reason) {
  if (obstacle_.any()) return;
  obstacle_.kind = Obstacle::Kind::unsupported;
  obstacle_.reason = reason;
}

Polynomial SizeEvaluator::scalar(const Expression& expression) {
  const Sizes result = value(expression);
  return result.components.empty() ? Polynomial::invalid() : result.components[0];
}

std::int64_t SizeEvaluator::number(const Polynomial& p, std::int64_t low, std::int64_t high, const Expression& where) {
  const Polynomial reduced = facts_.reduce(p);
  if (const auto constant = reduced.constant()) {
    if (*constant < low || *constant > high) {
      ill_typed();
      return low;
    }
    return *constant;
  }
  if (obstacle_.any()) return low;
  const std::vector<SymbolId> symbols = reduced.symbols();
  const auto coefficient = symbols.size() == 1 ? reduced.linear_coefficient(symbols[0]) : std::optional<std::int64_t>();
  if (!coefficient || (*coefficient != 1 && *coefficient != -1) || high - low > max_values) {
    unsupported("the value of " + to_text(where) + " is needed");
    return low;
  }
  if (high < low) {
    ill_typed();
    return low;
  }
  obstacle_.kind = Obstacle::Kind::alternatives;
  for (std::int64_t v = low; v <= high; ++v) obstacle_.alternatives.push_back({equal_to(reduced, Polynomial(v))});
  return low;
}

std::int64_t SizeEvaluator::small_number(const Polynomial& p, const Expression& where) {
  const auto constant = facts_.reduce(p).constant();
  if (constant && *constant >= -max_values && *constant <= max_values) return *constant;
  unsupported("the value of " + to_text(where) + " is needed");
  return 0;
}

Sizes SizeEvaluator::value(const Expression& e) {
  switch (e.kind) {
    case Kind::integer:
      return Sizes::of(Polynomial(e.integer));
    case Kind::name: {
      const Sizes* found = environment_->find(e.name);
      TASO_CHECK(found != nullptr, "a checked definition reads the unbound name " + e.name);
      Sizes result = *found;
      for (Polynomial& component : result.components) component = facts_.reduce(component);
      return result;
    }
    case Kind::piece: {
      const Sizes* found = environment_->find(e.name);
      TASO_CHECK(found != nullptr, "a checked definition reads the unbound name " + e.name);
      const std::int64_t which =
          number(scalar(e.operands[0]), 0, static_cast<std::int64_t>(found->components.size()) - 1, e);
      if (obstacle_.any()) return Sizes::of(Polynomial::invalid());
      return Sizes::of(facts_.reduce(found->components[static_cast<std::size_t>(which)]));
    }
    case Kind::list: {
      std::vector<Polynomial> values;
      for (const Expression& element : e.operands) values.push_back(scalar(element));
      return Sizes::of(std::move(values));
    }
    case Kind::element: {
      const Sizes vector = value(e.operands[0]), subscript = value(e.operands[1]);
      Sizes result;
      result.vector = subscript.vector;
      for (const Polynomial& component : subscript.components) {
        const std::int64_t position =
            number(component, 0, static_cast<std::int64_t>(vector.components.size()) - 1, e.operands[1]);
        result.components.push_back(obstacle_.any() ? Polynomial::invalid()
                                                    : vector.components[static_cast<std::size_t>(position)]);
      }
      return result;
    }
    case Kind::call:
      return call(e);
    case Kind::negate: {
      Sizes result = value(e.operands[0]);
      for (Polynomial& component : result.components) component = -component;
      return result;
    }
    case Kind::add:
    case Kind::subtract:
    case Kind::multiply:
    case Kind::floor_divide:
    case Kind::modulo:
      return arithmetic(e);
    default:
      unsupported(to_text(e) + " as an index");
      return Sizes::of(Polynomial::invalid());
  }
}

Polynomial SizeEvaluator::combine(const Expression& e, const Polynomial& a, const Polynomial& b) {
  switch (e.kind) {
    case Kind::add:
      return a + b;
    case Kind::subtract:
      return a - b;
    case Kind::multiply:
      return a * b;
    default:
      break;
  }
  if (b.is_zero()) {
    ill_typed();
    return Polynomial::invalid();
  }
  const std::optional<Polynomial> quotient = facts_.divide(a, b, context_);
  if (!quotient) {
    // Only a positive divisor has been thought of; where it is negative nothing is proved.
    unsupported("the divisor in " + to_text(e) + " is not known to be positive");
    return Polynomial::invalid();
  }
  return e.kind == Kind::floor_divide ? *quotient : facts_.reduce(a - b * *quotient);
}

Sizes SizeEvaluator::arithmetic(const Expression& e) {
  Sizes left = value(e.operands[0]);
  const Sizes right = value(e.operands[1]);
  Sizes result;
  result.vector = left.vector || right.vector;
  if (left.vector && right.vector && left.components.size() != right.components.size()) {
    ill_typed();
    return left;
  }
  const std::size_t length = !result.vector ? 1 : left.vector ? left.components.size() : right.components.size();
  for (std::size_t i = 0; i < length && !obstacle_.any(); ++i)
    result.components.push_back(
        combine(e, left.components[left.vector ? i : 0], right.components[right.vector ? i : 0]));
  if (obstacle_.any()) result.components.resize(length, Polynomial::invalid());
  return result;
}

Sizes SizeEvaluator::call(const Expression& e) {
  std::vector<Sizes> arguments;
  for (const Expression& operand : e.operands) arguments.push_back(value(operand));
  Sizes nothing = Sizes::of(Polynomial::invalid());
  if (obstacle_.any()) {
    // Keep the kind of the result: a vector where one is expected.
    if (e.name == "first" || e.name == "last" || e.name == "join" || e.name == "repeat" || e.name == "inverse" ||
        e.name == "on")
      return Sizes::of(std::vector<Polynomial>{});
    return nothing;
  }
  const std::vector<Polynomial> none;
  if (e.name == "length") return Sizes::of(Polynomial(static_cast<std::int64_t>(arguments[0].components.size())));
  if (e.name == "sum" || e.name == "prod") {
    Polynomial total(e.name == "sum" ? 0 : 1);
    for (const Polynomial& element : arguments[0].components)
      total = e.name == "sum" ? total + element : total * element;
    return Sizes::of(total);
  }
  if (e.name == "max" || e.name == "min") {
    std::optional<std::size_t> length;
    for (const Sizes& argument : arguments) {
      if (!argument.vector) continue;
      if (length && argument.components.size() != *length) {
        ill_typed();
        return arguments[0];
      }
      length = argument.components.size();
    }
    Sizes result;
    result.vector = length.has_value();
    for (std::size_t i = 0; i < length.value_or(1); ++i) {
      std::optional<Polynomial> best;
      for (const Sizes& argument : arguments) {
        const Polynomial& element = argument.components[argument.vector ? i : 0];
        if (!best)
          best = element;
        else if (e.name == "max")
          best = facts_.larger(element, *best, context_);
        else
          best = -facts_.larger(-element, -*best, context_);
      }
      result.components.push_back(*best);
    }
    return result;
  }
  if (e.name == "before") {
    const std::int64_t count =
        number(arguments[1].components[0], 0, static_cast<std::int64_t>(arguments[0].components.size()), e);
    Polynomial total;
    for (std::size_t i = 0; i < arguments[0].components.size() && static_cast<std::int64_t>(i) < count; ++i)
      total = total + arguments[0].components[i];
    return Sizes::of(total);
  }
  if (e.name == "join") {
    std::vector<Polynomial> all;
    for (const Sizes& argument : arguments)
      all.insert(all.end(), argument.components.begin(), argument.components.end());
    return Sizes::of(std::move(all));
  }
  if (e.name == "first" || e.name == "last") {
    const auto& all = arguments[0].components;
    const std::int64_t count = number(arguments[1].components[0], 0, static_cast<std::int64_t>(all.size()), e);
    if (obstacle_.any()) return Sizes::of(none);
    const auto begin = e.name == "first" ? all.begin() : all.end() - count;
    return Sizes::of(std::vector<Polynomial>(begin, begin + count));
  }
  if (e.name == "repeat") {
    const std::int64_t count = small_number(arguments[1].components[0], e);
    if (count < 0) ill_typed();
    if (obstacle_.any()) return Sizes::of(none);
    return Sizes::of(std::vector<Polynomial>(static_cast<std::size_t>(count), arguments[0].components[0]));
  }
  if (e.name == "position") {
    const auto& shape = arguments[1].components;
    if (shape.size() != arguments[0].components.size()) {
      ill_typed();
      return nothing;
    }
    Polynomial total;
    for (std::size_t i = 0; i < shape.size(); ++i) total = total * shape[i] + arguments[0].components[i];
    return Sizes::of(total);
  }
  if (e.name == "inverse") {
    const auto& list = arguments[0].components;
    const auto length = static_cast<std::int64_t>(list.size());
    std::vector<Polynomial> result(list.size(), Polynomial(-1));
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::int64_t position = number(list[i], 0, length - 1, e);
      if (obstacle_.any()) return Sizes::of(none);
      Polynomial& place = result[static_cast<std::size_t>(position)];
      if (!(place == Polynomial(-1))) {
        ill_typed();
        return Sizes::of(none);
      }
      place = Polynomial(static_cast<std::int64_t>(i));
    }
    return Sizes::of(std::move(result));
  }
  if (e.name == "on") {
    const Sizes &chosen = arguments[1], &others = arguments[2];
    if (chosen.vector && others.vector && chosen.components.size() != others.components.size()) {
      ill_typed();
      return others;
    }
    const std::size_t length = chosen.vector ? chosen.components.size() : others.components.size();
    const auto rank = static_cast<std::int64_t>(length);
    std::vector<Polynomial> result;
    for (std::size_t i = 0; i < length; ++i) result.push_back(others.components[others.vector ? i : 0]);
    for (const Polynomial& axis : arguments[0].components) {
      const std::int64_t named = number(axis, -rank, rank - 1, e);
      if (obstacle_.any()) return Sizes::of(none);
      const auto position = static_cast<std::size_t>(named < 0 ? named + rank : named);
      result[position] = chosen.components[chosen.vector ? position : 0];
    }
    return Sizes::of(std::move(result));
  }
  const auto function = functions_.find(e.name);
  TASO_CHECK(function != functions_.end(), "a checked definition calls the unknown size function " + e.name);
  SizeEnvironment inner;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    inner.bind(function->second.parameters[i], std::move(arguments[i]));
  const SizeEnvironment* outer = std::exchange(environment_, &inner);
  Sizes result = value(function->second.definition);
  environment_ = outer;
  return result;
}

Alternatives SizeEvaluator::condition(const Expression& e, bool required) {
  Alternatives result;
  switch (e.kind) {
    case Kind::conjunction:
      result = Alternatives::both(condition(e.operands[0], required), condition(e.operands[1], required));
      break;
    case Kind::disjunction:
      result = Alternatives::either(condition(e.operands[0]), condition(e.operands[1]));
      break;
    case Kind::negation:
      return condition(e.operands[0]).negated();
    case Kind::call: {  // is_permutation
      const Sizes list = value(e.operands[0]);
      const auto length = static_cast<std::int64_t>(list.components.size());
      std::vector<bool> seen(list.components.size(), false);
      for (const Polynomial& element : list.components) {
        if (obstacle_.any()) return Alternatives::known(true);
        const Polynomial reduced = facts_.reduce(element);
        const auto constant = reduced.constant();
        if (constant && (*constant < 0 || *constant >= length)) return Alternatives::known(false);
        if (!constant && !required) {
          unsupported(to_text(e) + " depends on values");
          return Alternatives::known(true);
        }
        // Other values than those asked for are not accepted, since the condition is required.
        const std::int64_t position = number(reduced, 0, length - 1, e);
        if (obstacle_.any()) return Alternatives::known(true);
        if (seen[static_cast<std::size_t>(position)]) return Alternatives::known(false);
        seen[static_cast<std::size_t>(position)] = true;
      }
      return Alternatives::known(true);
    }
    case Kind::all:
      result = Alternatives::known(true);
      for (const Alternatives& part : instances(e, required)) {
        result = Alternatives::both(result, part);
        if (result.no.size() > max_alternatives) break;
      }
      break;
    default:
      result = comparison(e);
      break;
  }
  if (result.yes.size() > max_alternatives || result.no.size() > max_alternatives) {
    unsupported("the condition " + to_text(e) + " has too many cases");
    return Alternatives::known(true);
  }
  return result;
}

std::vector<Alternatives> SizeEvaluator::requirements(const Expression& e) {
  if (e.kind == Kind::conjunction) {
    std::vector<Alternatives> result = requirements(e.operands[0]);
    for (Alternatives& part : requirements(e.operands[1])) result.push_back(std::move(part));
    return result;
  }
  if (e.kind == Kind::all) return instances(e, true);
  return {condition(e, true)};
}

std::vector<Alternatives> SizeEvaluator::instances(const Expression& e, bool required) {
  SizeEnvironment inner = *environment_;
  const SizeEnvironment* outer = std::exchange(environment_, &inner);
  std::vector<std::int64_t> extents;
  for (const Expression::Range& range : e.ranges) extents.push_back(small_number(scalar(*range.extent), e));
  std::vector<Alternatives> result;
  if (!obstacle_.any() && std::all_of(extents.begin(), extents.end(), [](std::int64_t extent) { return extent > 0; })) {
    std::vector<std::int64_t> at(extents.size(), 0);
    for (bool more = true; more && !obstacle_.any();) {
      const std::size_t mark = inner.size();
      for (std::size_t i = 0; i < at.size(); ++i) inner.bind(e.ranges[i].name, Sizes::of(Polynomial(at[i])));
      result.push_back(condition(e.operands[0], required));
      inner.shrink(mark);
      more = false;
      for (std::size_t i = at.size(); i-- > 0 && !more;) {
        more = ++at[i] < extents[i];
        if (!more) at[i] = 0;
      }
    }
  }
  environment_ = outer;
  return result;
}

Alternatives SizeEvaluator::comparison(const Expression& e) {
  const Expression &left_side = e.operands[0], &right_side = e.operands[1];
  if (left_side.sort == Sort::real || right_side.sort == Sort::real) {
    unsupported("the comparison of reals " + to_text(e));
    return Alternatives::known(true);
  }
  const Sizes left = value(left_side), right = value(right_side);
  if (obstacle_.any()) return Alternatives::known(true);
  if (left.vector && right.vector && left.components.size() != right.components.size())
    return Alternatives::known(e.kind == Kind::not_equal);
  const bool vector = left.vector || right.vector;
  const std::size_t length = !vector ? 1 : left.vector ? left.components.size() : right.components.size();
  Alternatives result = Alternatives::known(true);
  for (std::size_t i = 0; i < length; ++i) {
    const Polynomial &a = left.components[left.vector ? i : 0], &b = right.components[right.vector ? i : 0];
    Alternatives here;
    switch (e.kind) {
      case Kind::equal:
        here = Alternatives::of(equal_to(a, b));
        break;
      case Kind::not_equal:
        here = Alternatives::of(equal_to(a, b)).negated();
        break;
      case Kind::less:
        here = Alternatives::of(less_than(a, b));
        break;
      case Kind::less_equal:
        here = Alternatives::of(at_least(b, a));
        break;
      case Kind::greater:
        here = Alternatives::of(less_than(b, a));
        break;
      default:
        here = Alternatives::of(at_least(a, b));
        break;
    }
    result = Alternatives::both(result, here);
  }
  return result;
}

}  // namespace taso::unbounded
