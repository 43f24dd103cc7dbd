#include "verifier/theory/encoder.h"

#include <algorithm>
#include <cmath>

#include "operators/rank_range.h"

namespace taso::theory {
namespace {

using Kind = AttributeExpression::Kind;

}  // namespace

std::string extent_name(const AxisSpec& axis) {
  std::string text;
  for (const Expression& factor : axis.factors) {
    if (factor.kind != Expression::Kind::name) return "";
    text += (text.empty() ? "" : "*") + factor.name;
  }
  return text;
}

std::vector<std::string> axis_names(const std::vector<AxisSpec>& axes) {
  std::vector<std::string> names;
  for (const AxisSpec& axis : axes) {
    const std::string name = extent_name(axis);
    names.push_back(
        (axis.kind == AxisSpec::Kind::rest ? ".." : "") +
        (name.empty() ? "?" + std::to_string(axis.where.line) + ":" + std::to_string(axis.where.column) : name));
  }
  return names;
}

std::string rest_name(const AxisSpec& axis) {
  return axis.factors.size() == 1 && axis.factors[0].kind == Expression::Kind::name ? axis.factors[0].name : "";
}

void Linear::add(const Linear& other, std::int64_t factor) {
  overflow = overflow || other.overflow;
  accumulate(constant, factor, other.constant);
  for (const auto& [atom, coefficient] : other.terms) {
    std::int64_t product = 0;
    accumulate(product, factor, coefficient);
    add(atom, product);
  }
}

void Linear::add(const Expr& atom, std::int64_t coefficient) {
  for (auto it = terms.begin(); it != terms.end(); ++it)
    if (it->first == atom) {
      accumulate(it->second, 1, coefficient);
      if (it->second == 0) terms.erase(it);
      return;
    }
  if (coefficient != 0) terms.emplace_back(atom, coefficient);
}

Encoder::Encoder(Vocabulary& vocabulary, const Substitution& rule, const std::string& prefix)
    : v_(vocabulary), kinds_(vocabulary.registry(), rule) {
  for (const std::string& name : rule.tensor_variables)
    tensors_.push_back(v_.context().constant(prefix + name, v_.tensor()));
  for (std::size_t i = 0; i < rule.attribute_variables.size(); ++i) {
    const std::string name = prefix + rule.attribute_variables[i];
    EncodedValue value;
    value.kind = kinds_[i].kind;
    switch (value.kind) {
      case Kindness::unknown:
      case Kindness::integer:
        value.integer.add(integer_constant(name), 1);
        break;
      case Kindness::real:
        value.term = v_.context().constant(name, v_.real());
        break;
      case Kindness::symbol:
        value.term = v_.context().constant(name, v_.symbol());
        break;
      case Kindness::list:
        if (kinds_[i].length) {
          value.components.emplace();
          for (std::size_t k = 0; k < *kinds_[i].length; ++k) {
            Linear element;
            element.add(integer_constant(name + "." + std::to_string(k)), 1);
            value.components->push_back(std::move(element));
          }
        } else {
          value.term = v_.context().constant(name, v_.list());
        }
        break;
    }
    if (value.term.valid()) constants_.push_back(value.term);
    attributes_.push_back(std::move(value));
  }
  for (const Expr& tensor : tensors_) constants_.push_back(tensor);
}

std::vector<Expr> Encoder::integer_variables() {
  std::vector<Expr> result;
  for (const EncodedValue& attribute : attributes_)
    if (attribute.kind == Kindness::integer) result.push_back(integer(attribute.integer));
  return result;
}

std::vector<Expr> Encoder::outputs(const Pattern& pattern, std::vector<Named>* flat) {
  std::vector<Expr> result;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Expr> done;
  for (const PatternValue& output : pattern.outputs) result.push_back(value(pattern, output, done, flat));
  return result;
}

std::optional<Expr> Encoder::condition(const Condition& condition, bool equivalent) {
  if (!condition.compares()) return std::nullopt;
  const EncodedValue left = encode(condition.left), right = encode(condition.right);
  using Relation = Condition::Relation;
  const bool ordered = condition.relation == Relation::less || condition.relation == Relation::less_equal;
  auto is_integer = [](const EncodedValue& value) { return value.kind == Kindness::integer; };
  auto is_list = [](const EncodedValue& value) { return value.kind == Kindness::list; };
  smt::Context& c = v_.context();
  std::vector<std::pair<Expr, Expr>> pairs;
  if (is_integer(left) && is_integer(right)) {
    pairs.emplace_back(integer(left.integer), integer(right.integer));
  } else if (is_list(left) && is_list(right) && !left.components && !right.components) {
    if (ordered) return std::nullopt;
    pairs.emplace_back(left.term, right.term);
  } else if (is_list(left) || is_list(right)) {
    const bool known = (left.components || is_integer(left)) && (right.components || is_integer(right));
    const bool same = left.components && right.components && left.components->size() == right.components->size();
    if (!ordered && !same && (equivalent || condition.relation == Relation::not_equal)) return std::nullopt;
    if (!ordered && (is_integer(left) || is_integer(right))) return std::nullopt;
    if (equivalent && !known) return std::nullopt;
    const std::size_t size = left.components    ? left.components->size()
                             : right.components ? right.components->size()
                                                : 0;
    for (std::size_t i = 0; i < size; ++i)
      pairs.emplace_back(integer(component(left, i)), integer(component(right, i)));
  } else if (left.kind == Kindness::real && right.kind == Kindness::real) {
    if (!is_finite_literal_or_variable(condition.left) || !is_finite_literal_or_variable(condition.right))
      return std::nullopt;
    pairs.emplace_back(left.term, right.term);
  } else if (left.kind == Kindness::symbol && right.kind == Kindness::symbol && !ordered) {
    pairs.emplace_back(left.term, right.term);
  } else {
    return std::nullopt;
  }
  if (meaningless_) return std::nullopt;
  std::vector<Expr> parts;
  for (const auto& [a, b] : pairs) {
    switch (condition.relation) {
      case Relation::equal:
        parts.push_back(c.equal(a, b));
        break;
      case Relation::not_equal:
        parts.push_back(c.negation(c.equal(a, b)));
        break;
      case Relation::less:
        parts.push_back(c.less(a, b));
        break;
      case Relation::less_equal:
        parts.push_back(c.less_equal(a, b));
        break;
      case Relation::positive:
      case Relation::nonnegative:
      case Relation::nonzero:
      case Relation::finite:
        break;
    }
  }
  return condition.relation == Relation::not_equal ? c.disjunction(parts) : c.conjunction(parts);
}

void Encoder::substitute(const Expr& variable, const Linear& value) {
  for (EncodedValue& attribute : attributes_) {
    replace(attribute.integer, variable, value);
    if (attribute.components)
      for (Linear& element : *attribute.components) replace(element, variable, value);
  }
  std::erase(constants_, variable);
}

void Encoder::substitute_list(const Expr& variable, const Expr& value) {
  for (EncodedValue& attribute : attributes_)
    if (attribute.term.valid() && attribute.term == variable) attribute.term = value;
  std::erase(constants_, variable);
}

void Encoder::replace(Linear& linear, const Expr& variable, const Linear& value) {
  for (const auto& [atom, coefficient] : linear.terms)
    if (atom == variable) {
      const std::int64_t factor = coefficient;
      linear.add(variable, -factor);
      linear.add(value, factor);
      return;
    }
}

Expr Encoder::integer(const Linear& linear) {
  smt::Context& c = v_.context();
  meaningless_ = meaningless_ || linear.overflow;
  if (linear.terms.empty()) return c.integer(linear.constant);
  std::optional<Expr> sum;
  for (const auto& [atom, coefficient] : linear.terms) {
    const Expr term = coefficient == 1 ? atom : c.multiply(c.integer(coefficient), atom);
    sum = sum ? c.add(*sum, term) : term;
  }
  return linear.constant == 0 ? *sum : c.add(*sum, c.integer(linear.constant));
}

bool Encoder::is_finite_literal_or_variable(const AttributeExpression& expression) {
  if (expression.kind == Kind::variable) return true;
  const auto* value = std::get_if<double>(&expression.literal);
  return expression.kind == Kind::literal && value != nullptr && std::isfinite(*value);
}

Expr Encoder::integer_constant(const std::string& name) {
  Expr constant = v_.context().constant(name, v_.integer());
  constants_.push_back(constant);
  return constant;
}

Linear Encoder::component(const EncodedValue& value, std::size_t i) {
  if (value.components) return i < value.components->size() ? (*value.components)[i] : Linear{};
  if (value.kind == Kindness::integer) return value.integer;
  Linear result;
  result.add(v_.get(value.term, static_cast<std::int64_t>(i)), 1);
  return result;
}

EncodedValue Encoder::encode(const AttributeExpression& expression) {
  EncodedValue result;
  smt::Context& c = v_.context();
  switch (expression.kind) {
    case Kind::literal:
      if (const auto* integer_value = std::get_if<std::int64_t>(&expression.literal)) {
        result.kind = Kindness::integer;
        result.integer.constant = *integer_value;
      } else if (const auto* real_value = std::get_if<double>(&expression.literal)) {
        result.kind = Kindness::real;
        result.term = v_.real_literal(*real_value);
      } else if (const auto* list = std::get_if<std::vector<std::int64_t>>(&expression.literal)) {
        result.kind = Kindness::list;
        result.components.emplace();
        for (const std::int64_t element : *list) result.components->push_back({{}, element});
      } else {
        result.kind = Kindness::symbol;
        result.term = v_.function_name(std::get<SymbolValue>(expression.literal).name);
      }
      return result;
    case Kind::variable: {
      const EncodedValue& value = attributes_[expression.index];
      touch(value.integer);
      if (value.components)
        for (const Linear& element : *value.components) touch(element);
      if (value.term.valid()) touched_.push_back(value.term);
      return value;
    }
    case Kind::dimension: {
      result.kind = Kindness::integer;
      touched_.push_back(tensors_[expression.index]);
      const Expr axis =
          expression.operands.empty() ? c.integer(expression.axis) : integer(encode(expression.operands[0]).integer);
      result.integer.add(v_.dimension(tensors_[expression.index], axis), 1);
      return result;
    }
    case Kind::rank:
      result.kind = Kindness::integer;
      touched_.push_back(tensors_[expression.index]);
      result.integer.add(v_.rank(tensors_[expression.index]), 1);
      return result;
    case Kind::length: {
      const EncodedValue list = encode(expression.operands[0]);
      result.kind = Kindness::integer;
      if (list.components)
        result.integer.constant = static_cast<std::int64_t>(list.components->size());
      else if (list.term.valid() && list.kind == Kindness::list)
        result.integer.add(v_.length(list.term), 1);
      else
        meaningless_ = true;
      return result;
    }
    case Kind::elements:
      meaningless_ = true;
      return result;
    case Kind::list:
      result.kind = Kindness::list;
      result.components.emplace();
      for (const AttributeExpression& operand : expression.operands)
        result.components->push_back(encode(operand).integer);
      return result;
    case Kind::element: {
      const EncodedValue list = encode(expression.operands[0]);
      result.kind = Kindness::integer;
      if (expression.axis < 0 && !list.components) {
        meaningless_ = true;  // how long the list is is not known
        return result;
      }
      result.integer = component(
          list, static_cast<std::size_t>(expression.axis < 0
                                             ? static_cast<std::int64_t>(list.components->size()) + expression.axis
                                             : expression.axis));
      return result;
    }
    case Kind::add:
    case Kind::subtract:
    case Kind::multiply:
    case Kind::floor_divide: {
      const EncodedValue left = encode(expression.operands[0]), right = encode(expression.operands[1]);
      if (left.components || right.components) {
        result.kind = Kindness::list;
        result.components.emplace();
        const std::size_t size = left.components ? left.components->size() : right.components->size();
        for (std::size_t i = 0; i < size; ++i)
          result.components->push_back(combine(expression.kind, component(left, i), component(right, i)));
      } else if (left.kind == Kindness::integer && right.kind == Kindness::integer) {
        result.kind = Kindness::integer;
        result.integer = combine(expression.kind, left.integer, right.integer);
      } else if (left.kind == Kindness::list || right.kind == Kindness::list) {
        // Lists of unknown length: an uninterpreted operation.
        result.kind = Kindness::list;
        const Expr a = left.kind == Kindness::list ? left.term : v_.make_list({integer(left.integer)});
        const Expr b = right.kind == Kindness::list ? right.term : v_.make_list({integer(right.integer)});
        result.term = v_.apply("list_op." + std::to_string(static_cast<int>(expression.kind)), v_.list(), {a, b},
                               {v_.list(), v_.list()});
      } else {
        result.kind = Kindness::real;
        if (left.kind == Kindness::symbol || right.kind == Kindness::symbol || expression.kind == Kind::floor_divide) {
          meaningless_ = true;
          result.term = v_.real_literal(0);
          return result;
        }
        const Expr a = real(left), b = real(right);
        result.term = expression.kind == Kind::add        ? c.add(a, b)
                      : expression.kind == Kind::subtract ? c.subtract(a, b)
                                                          : c.multiply(a, b);
      }
      return result;
    }
  }
  return result;
}

Linear Encoder::combine(Kind kind, const Linear& a, const Linear& b) {
  Linear result;
  if (kind == Kind::add || kind == Kind::subtract) {
    result.add(a, 1);
    result.add(b, kind == Kind::add ? 1 : -1);
  } else if (kind == Kind::multiply && (a.terms.empty() || b.terms.empty())) {
    result.add(a.terms.empty() ? b : a, a.terms.empty() ? a.constant : b.constant);
  } else if (kind == Kind::multiply) {
    result.add(v_.product(integer(a), integer(b)), 1);
  } else if (b.terms.empty() && b.constant > 0) {
    result.add(v_.context().divide(integer(a), v_.context().integer(b.constant)), 1);
  } else {
    result.add(v_.quotient(integer(a), integer(b)), 1);
  }
  return result;
}

Expr Encoder::argument(const Linear& linear, std::vector<Named>* flat) {
  const bool variable = is_plain(linear) && (linear.terms.empty() || is_constant(linear.terms[0].first));
  if (variable && !linear.terms.empty()) use(linear.terms[0].first, flat);
  if (flat == nullptr || variable) return integer(linear);
  Named named{v_.context().fresh("q", v_.integer()), linear};
  flat->push_back(named);
  return named.number;
}

std::pair<Kindness, Expr> Encoder::attribute(const AttributeExpression& expression, const AttributeShape& shape,
                                             std::vector<Named>* flat) {
  EncodedValue value = encode(expression);
  const bool widened =
      value.kind == Kindness::integer && (shape.kind == Kindness::real || shape.kind == Kindness::list);
  meaningless_ = meaningless_ || (shape.kind != Kindness::unknown && shape.kind != value.kind && !widened);
  switch (shape.kind) {
    case Kindness::unknown:
    case Kindness::integer:
      return {Kindness::integer, argument(value.integer, flat)};
    case Kindness::real:
      use(value.term, flat);
      return {Kindness::real, real(value)};
    case Kindness::symbol:
      use(value.term, flat);
      return {Kindness::symbol, value.term};
    case Kindness::list:
      break;
  }
  if (value.kind == Kindness::integer && shape.length) {
    value.components = std::vector<Linear>(*shape.length, value.integer);  // one number for every element
  } else if (!value.components && shape.length) {
    value.components.emplace();
    for (std::size_t i = 0; i < *shape.length; ++i) value.components->push_back(component(value, i));
  }
  if (!value.components) {
    use(value.term, flat);
    return {Kindness::list, value.term};
  }
  std::vector<Expr> elements;
  elements.reserve(value.components->size());
  for (const Linear& element : *value.components) elements.push_back(argument(element, flat));
  return {Kindness::list, v_.make_list(elements)};
}

Expr Encoder::value(const Pattern& pattern, const PatternValue& which,
                    std::map<std::pair<std::uint32_t, std::uint32_t>, Expr>& done, std::vector<Named>* flat) {
  if (which.is_variable) {
    touched_.push_back(tensors_[which.index]);
    use(tensors_[which.index], flat);
    return tensors_[which.index];
  }
  const auto key = std::make_pair(which.index, which.port);
  if (const auto it = done.find(key); it != done.end()) return it->second;
  const PatternNode& node = pattern.nodes[which.index];
  std::vector<Expr> inputs;
  for (const PatternValue& input : node.inputs) inputs.push_back(value(pattern, input, done, flat));
  std::vector<std::pair<Kindness, Expr>> attributes;
  for (const auto& [name, expression] : node.attributes)
    attributes.push_back(attribute(expression, shape_of(v_.registry(), node.op, name), flat));
  Expr result = v_.application(node.op, which.port, inputs, attributes);
  done.emplace(key, result);
  return result;
}

// Operands of a concatenation agree but for the axis; sizes of a split add up.
void Encoder::typing_of_pieces(const Pattern& pattern, const PatternNode& node, const OperatorDefinition& definition,
                               std::map<std::pair<std::uint32_t, std::uint32_t>, Expr>& done,
                               std::vector<Expr>& facts) {
  smt::Context& c = v_.context();
  std::optional<Linear> axis;
  std::optional<std::vector<Linear>> sizes;
  for (const auto& [name, expression] : node.attributes) {
    const AttributeShape shape = shape_of(v_.registry(), node.op, name);
    const EncodedValue encoded = encode(expression);
    if (shape.kind == Kindness::integer && !axis) axis = encoded.integer;
    if (shape.kind == Kindness::list && !sizes) sizes = encoded.components;
  }
  if (!axis) return;
  const Expr axis_term = integer(*axis);
  std::vector<Expr> pieces;
  for (const PatternValue& input : node.inputs) pieces.push_back(value(pattern, input, done, nullptr));
  if (definition.associative) {
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      facts.push_back(
          c.equal(v_.without_axis(v_.shape(pieces[0]), axis_term), v_.without_axis(v_.shape(pieces[i]), axis_term)));
      for (int other = -1; other >= -max_axes; --other) {
        const std::vector<Expr> either{
            c.equal(axis_term, c.integer(other)),
            c.equal(v_.dimension(pieces[0], c.integer(other)), v_.dimension(pieces[i], c.integer(other)))};
        facts.push_back(c.disjunction(either));
      }
    }
  } else if (sizes && pieces.size() == 1) {
    Linear sum;
    for (const Linear& size : *sizes) sum.add(size, 1);
    facts.push_back(c.equal(integer(sum), v_.dimension(pieces[0], axis_term)));
  }
}

void Encoder::typing(const Pattern& pattern, std::vector<Expr>& facts) {
  smt::Context& c = v_.context();
  std::map<std::pair<std::uint32_t, std::uint32_t>, Expr> done;
  auto equate = [&](const Expr& a, int axis_a, const Expr& b, int axis_b) {
    if (a == b && axis_a == axis_b) return;
    facts.push_back(c.equal(v_.dimension(a, c.integer(axis_a)), v_.dimension(b, c.integer(axis_b))));
  };
  for (const PatternNode& node : pattern.nodes) {
    const OperatorDefinition* definition = v_.registry().find(node.op);
    if (definition == nullptr) continue;
    if (definition->associative || definition->coassociative) {
      typing_of_pieces(pattern, node, *definition, done, facts);
      continue;
    }
    if (definition->variadic() || definition->inputs.size() != node.inputs.size()) continue;
    struct Place {
      Expr tensor;
      int axis;
      bool outermost;
    };
    std::map<std::string, Place> first;
    std::map<std::vector<std::string>, Expr> whole;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Expr tensor = value(pattern, node.inputs[i], done, nullptr);
      const std::vector<AxisSpec>& axes = definition->inputs[i].axes;
      if (const auto [it, inserted] = whole.emplace(axis_names(axes), tensor); !inserted && !(it->second == tensor)) {
        facts.push_back(c.equal(v_.shape(tensor), v_.shape(it->second)));
        facts.push_back(c.equal(v_.rank(tensor), v_.rank(it->second)));
      }
      const RankRange ranks = rank_range(axes);
      const Expr least = c.integer(static_cast<std::int64_t>(ranks.least));
      if (ranks.only)
        facts.push_back(c.equal(v_.rank(tensor), least));
      else if (ranks.least > 0)
        facts.push_back(c.less_equal(least, v_.rank(tensor)));
      for (std::size_t k = axes.size(); k-- > 0;) {
        const int axis = static_cast<int>(k) - static_cast<int>(axes.size());
        const bool rest = axes[k].kind == AxisSpec::Kind::rest;
        const std::string name = rest ? rest_name(axes[k]) : extent_name(axes[k]);
        if (!name.empty()) {
          const auto [it, inserted] = first.emplace((rest ? ".." : "") + name, Place{tensor, axis, k == 0});
          // Where two rests are outermost, their tensors have the same axes from there on.
          if (!inserted && (!rest || (k == 0 && it->second.outermost)))
            for (int outer = 0; outer < (rest ? max_axes : 1); ++outer)
              equate(tensor, axis - outer, it->second.tensor, it->second.axis - outer);
        }
        if (rest) break;  // what stands before a rest has no fixed place from the end
      }
    }
  }
}

}  // namespace taso::theory
