#include "verifier/candidates.h"

#include <algorithm>
#include <functional>
#include <set>

namespace taso {
namespace {

using Integers = std::vector<std::int64_t>;
using ElementForm = Expression::Kind;

std::string rest_key(const AxisSpec& axis) { return ".." + axis.factors[0].name; }

// The value of an expression of numbers, names and elements of lists; nothing for others.
std::optional<std::int64_t> value_of(const Expression& expression, const NamedSizes& sizes) {
  auto operand = [&](std::size_t i) { return value_of(expression.operands[i], sizes); };
  switch (expression.kind) {
    case ElementForm::integer:
      return expression.integer;
    case ElementForm::name: {
      const auto it = sizes.find(expression.name);
      if (it == sizes.end() || it->second.size() != 1) return std::nullopt;
      return it->second[0];
    }
    case ElementForm::element: {
      const auto index = operand(1);
      if (expression.operands[0].kind != ElementForm::name || !index) return std::nullopt;
      const auto it = sizes.find("[]" + expression.operands[0].name);
      if (it == sizes.end() || *index < 0 || *index >= static_cast<std::int64_t>(it->second.size()))
        return std::nullopt;
      return it->second[static_cast<std::size_t>(*index)];
    }
    case ElementForm::negate:
      if (const auto a = operand(0)) return -*a;
      return std::nullopt;
    case ElementForm::add:
    case ElementForm::subtract:
    case ElementForm::multiply: {
      const auto a = operand(0), b = operand(1);
      if (!a || !b) return std::nullopt;
      return expression.kind == ElementForm::add        ? *a + *b
             : expression.kind == ElementForm::subtract ? *a - *b
                                                        : *a * *b;
    }
    default:
      return std::nullopt;
  }
}

// How many axes a rest has, as far as that is known.
std::optional<std::size_t> rest_length(const AxisSpec& axis, const NamedSizes& sizes) {
  if (const auto it = sizes.find(rest_key(axis)); it != sizes.end()) return it->second.size();
  if (axis.length)
    if (const auto length = value_of(*axis.length, sizes); length && *length >= 0)
      return static_cast<std::size_t>(*length);
  return std::nullopt;
}

// Calls `next` for every way to write `extent` as the product of the factors from `at` on.
void factorise(const AxisSpec& axis, std::size_t at, std::int64_t extent, NamedSizes& sizes,
               const std::function<void()>& next) {
  if (at == axis.factors.size()) {
    if (extent == 1) next();
    return;
  }
  const Expression& factor = axis.factors[at];
  if (const auto value = value_of(factor, sizes)) {
    if (*value > 0 && extent % *value == 0) factorise(axis, at + 1, extent / *value, sizes, next);
    return;
  }
  if (factor.kind != ElementForm::name) return factorise(axis, at + 1, 1, sizes, next);  // for type inference to decide
  if (at + 1 == axis.factors.size()) {                                                   // all that is left, 0 as well
    sizes[factor.name] = {extent};
    factorise(axis, at + 1, 1, sizes, next);
    sizes.erase(factor.name);
    return;
  }
  for (std::int64_t divisor = 1; divisor <= extent; ++divisor) {
    if (extent % divisor != 0) continue;
    sizes[factor.name] = {divisor};
    factorise(axis, at + 1, extent / divisor, sizes, next);
    sizes.erase(factor.name);
  }
}

void solve(const InputSpec& input, std::size_t at, const Shape& shape, std::size_t axis, NamedSizes& sizes,
           std::vector<NamedSizes>& found) {
  if (at == input.axes.size()) {
    if (axis == shape.size()) found.push_back(sizes);
    return;
  }
  const AxisSpec& spec = input.axes[at];
  if (spec.kind != AxisSpec::Kind::rest) {
    if (axis == shape.size()) return;
    if (spec.factors.size() == 1 && !value_of(spec.factors[0], sizes)) {  // any extent, 0 as well
      if (spec.factors[0].kind != ElementForm::name) return solve(input, at + 1, shape, axis + 1, sizes, found);
      sizes[spec.factors[0].name] = {shape[axis]};
      solve(input, at + 1, shape, axis + 1, sizes, found);
      sizes.erase(spec.factors[0].name);
      return;
    }
    factorise(spec, 0, shape[axis], sizes, [&] { solve(input, at + 1, shape, axis + 1, sizes, found); });
    return;
  }
  const std::string name = rest_key(spec);
  const auto length = rest_length(spec, sizes);
  for (std::size_t n = length.value_or(0); n <= length.value_or(shape.size() - axis); ++n) {
    if (axis + n > shape.size()) return;
    const Integers extents(shape.begin() + static_cast<std::ptrdiff_t>(axis),
                           shape.begin() + static_cast<std::ptrdiff_t>(axis + n));
    const auto it = sizes.find(name);
    if (it != sizes.end()) {
      if (it->second == extents) solve(input, at + 1, shape, axis + n, sizes, found);
    } else {
      sizes[name] = extents;
      solve(input, at + 1, shape, axis + n, sizes, found);
      sizes.erase(name);
    }
  }
}

void propose(const InputSpec& input, std::size_t at, Shape& shape, NamedSizes& sizes, const Domain& domain,
             std::set<Shape>& found) {
  if (at == input.axes.size()) {
    found.insert(shape);
    return;
  }
  const AxisSpec& spec = input.axes[at];
  if (spec.kind == AxisSpec::Kind::rest) {
    const std::string name = rest_key(spec);
    if (const auto it = sizes.find(name); it != sizes.end()) {
      shape.insert(shape.end(), it->second.begin(), it->second.end());
      propose(input, at + 1, shape, sizes, domain, found);
      shape.resize(shape.size() - it->second.size());
      return;
    }
    std::size_t others = 0;
    for (std::size_t i = at + 1; i < input.axes.size(); ++i) others += input.axes[i].kind != AxisSpec::Kind::rest;
    const std::size_t used = shape.size() + others;
    const std::size_t most = domain.max_rank > used ? domain.max_rank - used : 0;
    const auto length = rest_length(spec, sizes);
    for (std::size_t n = length.value_or(0); n <= length.value_or(most) && n <= most; ++n) {
      Integers extents(n, 1);
      for (;;) {
        sizes[name] = extents;
        shape.insert(shape.end(), extents.begin(), extents.end());
        propose(input, at + 1, shape, sizes, domain, found);
        shape.resize(shape.size() - n);
        std::size_t axis = 0;
        while (axis < n && extents[axis] == domain.bound) extents[axis++] = 1;
        if (axis == n) break;
        ++extents[axis];
      }
      sizes.erase(name);
    }
    return;
  }
  const std::int64_t limit = spec.factors.size() > 1 ? domain.composite : domain.bound;
  const std::function<void(std::size_t, std::int64_t)> factor = [&](std::size_t f, std::int64_t product) {
    if (f == spec.factors.size()) {
      shape.push_back(product);
      propose(input, at + 1, shape, sizes, domain, found);
      shape.pop_back();
      return;
    }
    const Expression& expression = spec.factors[f];
    if (const auto value = value_of(expression, sizes)) {
      std::int64_t more = 0;  // no tensor is so large that it overflows
      if (*value >= 0 && !__builtin_mul_overflow(product, *value, &more)) factor(f + 1, more);
      return;
    }
    for (std::int64_t value = 1; product * value <= limit; ++value) {
      if (expression.kind == ElementForm::name) sizes[expression.name] = {value};
      factor(f + 1, product * value);
      if (expression.kind == ElementForm::name) sizes.erase(expression.name);
    }
  };
  factor(0, 1);
}

// The calls of the size function `window` in an operator's statements.
void find_windows(const Expression& expression, std::vector<const Expression*>& found) {
  if (expression.kind == ElementForm::call && expression.name == "window" && expression.operands.size() == 6)
    found.push_back(&expression);
  for (const Expression& operand : expression.operands) find_windows(operand, found);
}

}  // namespace

std::vector<NamedSizes> solve_sizes(const InputSpec& input, const Shape& shape, const NamedSizes& known) {
  std::vector<NamedSizes> found;
  NamedSizes sizes = known;
  solve(input, 0, shape, 0, sizes, found);
  return found;
}

std::vector<Shape> propose_shapes(const InputSpec& input, const NamedSizes& known, const Domain& domain) {
  std::set<Shape> found;
  NamedSizes sizes = known;
  Shape shape;
  propose(input, 0, shape, sizes, domain, found);
  return {found.begin(), found.end()};
}

std::vector<Shape> all_shapes(const Domain& domain) {
  std::vector<Shape> shapes;
  for (std::size_t rank = 0; rank <= domain.max_rank; ++rank) {
    Shape shape(rank, 1);
    for (;;) {
      shapes.push_back(shape);
      std::size_t axis = rank;
      while (axis > 0 && shape[axis - 1] == domain.bound) shape[--axis] = 1;
      if (axis == 0) break;
      ++shape[axis - 1];
    }
  }
  return shapes;
}

bool must_be_permutation(const OperatorDefinition& definition, const std::string& attribute) {
  const std::function<bool(const Expression&)> required = [&](const Expression& e) {
    if (e.kind == ElementForm::call && e.name == "is_permutation" && e.operands.size() == 1 &&
        e.operands[0].kind == ElementForm::name && e.operands[0].name == attribute)
      return true;
    return e.kind == ElementForm::conjunction && std::any_of(e.operands.begin(), e.operands.end(), required);
  };
  return std::any_of(definition.statements.begin(), definition.statements.end(), [&](const SizeStatement& statement) {
    return statement.name.empty() && required(statement.value);
  });
}

WindowRole window_role(const OperatorDefinition& definition, const std::string& attribute) {
  std::vector<const Expression*> windows;
  for (const SizeStatement& statement : definition.statements) find_windows(statement.value, windows);
  for (const Expression* window : windows) {
    auto reads = [&](std::size_t argument) {
      const Expression& e = window->operands[argument];
      return e.kind == ElementForm::element && e.operands[0].kind == ElementForm::name &&
             e.operands[0].name == attribute;
    };
    if (reads(2)) return WindowRole::stride;
    if (reads(3)) return WindowRole::dilation;
    if (reads(4) || reads(5)) return WindowRole::pads;
  }
  return WindowRole::none;
}

std::optional<std::vector<std::int64_t>> same_pads(const OperatorDefinition& definition, const std::string& attribute,
                                                   const NamedSizes& sizes, const Attributes& attributes) {
  NamedSizes names = sizes;
  for (const auto& [name, value] : attributes.entries()) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) names[name] = {*integer};
    if (const auto* list = std::get_if<Integers>(&value)) names["[]" + name] = *list;
  }
  std::vector<const Expression*> windows;
  for (const SizeStatement& statement : definition.statements) find_windows(statement.value, windows);
  Integers pads;
  auto place = [&](const Expression& where, std::int64_t value) {
    if (where.kind != ElementForm::element || where.operands[0].kind != ElementForm::name ||
        where.operands[0].name != attribute)
      return false;
    const auto index = value_of(where.operands[1], names);
    if (!index || *index < 0 || *index > 16) return false;
    if (pads.size() <= static_cast<std::size_t>(*index)) pads.resize(static_cast<std::size_t>(*index) + 1);
    pads[static_cast<std::size_t>(*index)] = value;
    return true;
  };
  for (const Expression* window : windows) {
    const auto extent = value_of(window->operands[0], names), kernel = value_of(window->operands[1], names),
               stride = value_of(window->operands[2], names), dilation = value_of(window->operands[3], names);
    if (!extent || !kernel || !stride || !dilation || *stride < 1) return std::nullopt;
    const std::int64_t positions = (*extent + *stride - 1) / *stride;
    const std::int64_t total =
        std::max<std::int64_t>(0, (positions - 1) * *stride + *dilation * (*kernel - 1) + 1 - *extent);
    if (!place(window->operands[4], total / 2) || !place(window->operands[5], total - total / 2)) return std::nullopt;
  }
  if (windows.empty()) return std::nullopt;
  return pads;
}

}  // namespace taso
