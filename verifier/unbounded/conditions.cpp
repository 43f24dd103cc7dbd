#include "verifier/unbounded/conditions.h"

#include <algorithm>

namespace taso::unbounded {
namespace {

using AttributeForm = AttributeExpression::Kind;

AttributeExpression number(std::int64_t value) {
  AttributeExpression e;
  e.literal = value;
  return e;
}

AttributeExpression binary(AttributeForm kind, AttributeExpression a, AttributeExpression b) {
  AttributeExpression e;
  e.kind = kind;
  e.operands.push_back(std::move(a));
  e.operands.push_back(std::move(b));
  return e;
}

class Writer {
 public:
  Writer(const Typing& typing, const Symbols& symbols) : typing_(typing), symbols_(symbols) {}

  // Nothing for what the language of rules cannot say.
  std::optional<AttributeExpression> write(const Polynomial& p, int depth = 0) const {
    if (!p.valid() || depth > 8) return std::nullopt;
    std::optional<AttributeExpression> sum;
    for (const auto& [whole, coefficient] : p.terms()) {
      std::optional<AttributeExpression> product;
      Monomial monomial = whole;
      if (coefficient != 1 || monomial.degree() == 0) product = number(coefficient);
      // A factor of an axis times the others is the extent of that axis.
      for (const Typing::FactorOfAxis& factor : typing_.factors()) {
        const auto& others = factor.product.terms();
        if (others.size() != 1 || others[0].coefficient != 1 || others[0].monomial.degree() == 0) continue;
        const auto axis = Monomial::product(others[0].monomial, Monomial(factor.symbol));
        const auto rest = axis ? Monomial::quotient(monomial, *axis) : std::nullopt;
        if (!rest) continue;
        std::optional<AttributeExpression> extent = write(factor.extent, depth + 1);
        if (!extent) continue;
        product =
            product ? binary(AttributeForm::multiply, std::move(*product), std::move(*extent)) : std::move(*extent);
        monomial = *rest;
      }
      for (const SymbolId id : monomial.symbols()) {
        std::optional<AttributeExpression> factor = symbol(id, depth);
        if (!factor) return std::nullopt;
        product =
            product ? binary(AttributeForm::multiply, std::move(*product), std::move(*factor)) : std::move(*factor);
      }
      sum = sum ? binary(AttributeForm::add, std::move(*sum), std::move(*product)) : std::move(*product);
    }
    return sum ? sum : number(0);
  }

 private:
  std::optional<AttributeExpression> symbol(SymbolId id, int depth) const {
    const Symbol& symbol = symbols_[id];
    AttributeExpression e;
    switch (symbol.kind) {
      case Symbol::Kind::extent:
        e.kind = AttributeForm::dimension;
        e.index = symbol.variable;
        e.axis = symbol.position;
        return e;
      case Symbol::Kind::attribute:
        e.kind = AttributeForm::variable;
        e.index = symbol.variable;
        if (symbol.position >= 0) {
          AttributeExpression element;
          element.kind = AttributeForm::element;
          // Cases of several lengths are one rule: what is said of a list of any length counts from its end, as axes
          // do.
          const std::optional<std::size_t> length = typing_.chosen_length(symbol.variable);
          element.axis = symbol.position - (length ? static_cast<std::int64_t>(*length) : 0);
          element.operands.push_back(std::move(e));
          return element;
        }
        return e;
      case Symbol::Kind::factor:
        for (const Typing::FactorOfAxis& factor : typing_.factors()) {
          if (factor.symbol != id) continue;
          auto extent = write(factor.extent, depth + 1), product = write(factor.product, depth + 1);
          if (!extent || !product) return std::nullopt;
          return binary(AttributeForm::floor_divide, std::move(*extent), std::move(*product));
        }
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }

  const Typing& typing_;
  const Symbols& symbols_;
};

}  // namespace

std::optional<AttributeExpression> expression_of(const Typing& typing, const Symbols& symbols, const Polynomial& p) {
  return Writer(typing, symbols).write(p);
}

std::vector<Condition> candidate_conditions(const Typing& typing, Facts& facts) {
  std::vector<Condition> result;
  const Writer writer(typing, facts.symbols());
  auto propose = [&](const Polynomial& left, const Polynomial& right, std::optional<AttributeExpression> a,
                     std::optional<AttributeExpression> b) {
    const Atom atom = equal_to(left, right), atoms[] = {atom};
    if (facts.entails_quickly(atom) || facts.contradictory_quickly(atoms) || !a || !b) return;
    const Condition condition{Condition::Relation::equal, std::move(*a), std::move(*b)};
    if (std::find(result.begin(), result.end(), condition) == result.end()) result.push_back(condition);
  };
  const std::vector<TypedNode>& nodes = typing.source().nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (std::size_t j = i + 1; j < nodes.size(); ++j) {
      if (nodes[i].definition != nodes[j].definition) continue;
      for (const InputSpec& input : nodes[i].definition->inputs)
        for (const AxisSpec& axis : input.axes)
          for (const Expression& factor : axis.factors) {
            if (axis.kind == AxisSpec::Kind::rest || factor.kind != Expression::Kind::name) continue;
            const Sizes *a = nodes[i].environment.find(factor.name), *b = nodes[j].environment.find(factor.name);
            if (a == nullptr || b == nullptr || a->vector || b->vector) continue;
            propose(a->components[0], b->components[0], writer.write(a->components[0]), writer.write(b->components[0]));
          }
    }
  for (const Typing::FactorOfAxis& factor : typing.factors())
    propose(Polynomial::symbol(factor.symbol), Polynomial(1), writer.write(factor.extent),
            writer.write(factor.product));
  return result;
}

}  // namespace taso::unbounded
