#include "verifier/unbounded/witness.h"

#include <algorithm>
#include <map>

#include "support/random.h"
#include "verifier/instances.h"

namespace taso::unbounded {
namespace {

constexpr std::size_t max_tries = 400;

using Values = std::map<SymbolId, std::int64_t>;

// The value of a polynomial; nothing on overflow or a division by zero.
std::optional<std::int64_t> evaluate(const Symbols& symbols, const Polynomial& p, const Values& values) {
  if (!p.valid()) return std::nullopt;
  std::int64_t sum = 0;
  for (const auto& [monomial, coefficient] : p.terms()) {
    std::int64_t product = coefficient;
    for (const SymbolId id : monomial.symbols()) {
      const Symbol& symbol = symbols[id];
      std::int64_t value = 0;
      if (symbol.kind == Symbol::Kind::quotient) {
        const auto n = evaluate(symbols, symbol.arguments[0], values),
                   d = evaluate(symbols, symbol.arguments[1], values);
        if (!n || !d || *d <= 0) return std::nullopt;
        value = *n / *d - (*n % *d < 0 ? 1 : 0);
      } else {
        const auto it = values.find(id);
        if (it == values.end()) return std::nullopt;
        value = it->second;
      }
      if (__builtin_mul_overflow(product, value, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

void collect(const Symbols& symbols, const Polynomial& p, Values& values) {
  for (const SymbolId id : p.symbols()) {
    if (symbols[id].kind == Symbol::Kind::quotient) {
      for (const Polynomial& argument : symbols[id].arguments) collect(symbols, argument, values);
    } else {
      values.emplace(id, 0);
    }
  }
}

}  // namespace

bool has_instance(const OperatorRegistry& registry, const Substitution& rule, const VariableKinds& kinds,
                  const Assumptions& assumptions, const Typing& typing, Facts& facts) {
  Symbols& symbols = facts.symbols();
  Values values;
  const std::vector<Atom> atoms = facts.atoms();
  for (const Atom& atom : atoms) collect(symbols, atom.p, values);
  std::vector<std::vector<Polynomial>> shapes = typing.variable_shapes();
  for (auto& shape : shapes)
    for (Polynomial& extent : shape) {
      extent = facts.reduce(extent);
      collect(symbols, extent, values);
    }
  std::vector<std::vector<Polynomial>> attributes(rule.attribute_variables.size());
  for (std::size_t a = 0; a < attributes.size(); ++a) {
    const std::string& name = rule.attribute_variables[a];
    std::vector<std::string> names;
    if (kinds.attributes[a] == AttributeKind::integer) names = {name};
    if (kinds.attributes[a] == AttributeKind::integers) {
      const std::size_t length = kinds.lengths[a] ? *kinds.lengths[a] : assumptions.lengths[a].value_or(0);
      for (std::size_t i = 0; i < length; ++i) names.push_back(name + "[" + std::to_string(i) + "]");
    }
    for (const std::string& element : names) {
      attributes[a].push_back(
          facts.reduce(Polynomial::symbol(symbols.named(Symbol::Kind::attribute, element, element))));
      collect(symbols, attributes[a].back(), values);
    }
  }
  // Whether the types that these values of symbols make are those of an instance.
  const auto is_instance = [&](auto&& number_at) {
    Instance instance;
    for (std::size_t v = 0; v < shapes.size(); ++v) {
      TensorType type;
      type.element = kinds.integers[v] ? ElementType::i64 : ElementType::f32;
      for (const Polynomial& extent : shapes[v]) type.shape.push_back(number_at(extent).value_or(-1));
      instance.variables.push_back(std::move(type));
    }
    for (std::size_t a = 0; a < attributes.size(); ++a) {
      std::vector<std::int64_t> numbers;
      for (const Polynomial& p : attributes[a]) numbers.push_back(number_at(p).value_or(-1));
      switch (kinds.attributes[a]) {
        case AttributeKind::integer:
          instance.attributes.emplace_back(numbers[0]);
          break;
        case AttributeKind::integers:
          instance.attributes.emplace_back(numbers);
          break;
        case AttributeKind::real:
          instance.attributes.emplace_back(1.0);
          break;
        case AttributeKind::symbol: {
          SymbolValue function{"identity"};
          for (const auto& [name, definition] : registry.functions())
            if (definition.arity == 1 && definition.is_real()) function.name = name;
          instance.attributes.emplace_back(function);
          break;
        }
      }
    }
    return check_types(registry, rule, instance).typed.has_value();
  };
  Random random(1, "witness");
  std::size_t checked = 0;
  for (std::size_t attempt = 0; attempt < max_tries; ++attempt) {
    const std::uint64_t reach = attempt < 4 ? 1 : attempt < 150 ? 3 : 6;
    for (auto& [id, value] : values) {
      const bool attribute = symbols[id].kind == Symbol::Kind::attribute;
      value = static_cast<std::int64_t>(random.below(reach)) + (attribute && attempt % 2 == 1 ? 0 : 1);
    }
    bool holds = true;
    for (const Atom& atom : atoms) {
      const auto value = evaluate(symbols, atom.p, values);
      holds = value && (atom.relation == Atom::Relation::zero ? *value == 0 : *value >= 0);
      if (!holds) break;
    }
    if (!holds) continue;
    if (is_instance([&](const Polynomial& p) { return evaluate(symbols, p, values); })) return true;
    if (++checked >= 20) return false;
  }
  // What small numbers do not satisfy (a window of seven needs as many rows) was perhaps solved one symbol at a time.
  for (Point point : facts.points())
    if (is_instance([&](const Polynomial& p) { return point.evaluate(symbols, p); })) return true;
  return false;
}

}  // namespace taso::unbounded
