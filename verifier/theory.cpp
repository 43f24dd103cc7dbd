#include "verifier/theory.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "verifier/attribute_kinds.h"
#include "verifier/common_terms.h"
#include "verifier/shape_facts.h"
#include "verifier/smt/solver.h"

namespace taso {
namespace {

using smt::Expr;
using Kind = AttributeExpression::Kind;

// Concatenations and splits are flattened for up to this many pieces; the axioms speak of two.
constexpr std::size_t max_pieces = 4;
// Extents are equated for this many axes where a definition has a rest.
constexpr int max_axes = 5;
// Goals after which a solver and its terms are made anew, and solvers kept: so that neither grows without bound.
constexpr std::size_t goals_per_session = 500;
constexpr std::size_t max_sessions = 24;
// Resource units for the search for a contradiction in what a goal supposes.
constexpr std::uint64_t consistency_rlimit = 100'000;

// coefficient * atom + ... + constant over Int; atoms are solver terms. Meaningless once a number left 64 bits.
struct Linear {
  std::vector<std::pair<Expr, std::int64_t>> terms;
  std::int64_t constant = 0;
  bool overflow = false;

  void add(const Linear& other, std::int64_t factor) {
    overflow = overflow || other.overflow;
    accumulate(constant, factor, other.constant);
    for (const auto& [atom, coefficient] : other.terms) {
      std::int64_t product = 0;
      accumulate(product, factor, coefficient);
      add(atom, product);
    }
  }
  // sum += a * b
  void accumulate(std::int64_t& sum, std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product) || __builtin_add_overflow(sum, product, &sum)) overflow = true;
  }
  void add(const Expr& atom, std::int64_t coefficient) {
    for (auto it = terms.begin(); it != terms.end(); ++it)
      if (it->first == atom) {
        accumulate(it->second, 1, coefficient);
        if (it->second == 0) terms.erase(it);
        return;
      }
    if (coefficient != 0) terms.emplace_back(atom, coefficient);
  }
};

// The value of an attribute expression.
struct EncodedValue {
  Kindness kind = Kindness::unknown;
  Linear integer;
  Expr term;                                      // real, symbol, or a list of unknown length
  std::optional<std::vector<Linear>> components;  // a list of known length
};

// The functions of the logic for one registry, made on first use.
class Vocabulary {
 public:
  explicit Vocabulary(const OperatorRegistry& registry)
      : registry_(registry),
        tensor_(context_.uninterpreted_sort("Tensor")),
        list_(context_.uninterpreted_sort("List")),
        symbol_(context_.uninterpreted_sort("Scalar")),
        integer_(context_.integer_sort()),
        real_(context_.real_sort()) {}

  smt::Context& context() { return context_; }
  [[nodiscard]] const OperatorRegistry& registry() const { return registry_; }
  [[nodiscard]] const smt::Sort& tensor() const { return tensor_; }
  [[nodiscard]] const smt::Sort& list() const { return list_; }
  [[nodiscard]] const smt::Sort& symbol() const { return symbol_; }
  [[nodiscard]] const smt::Sort& integer() const { return integer_; }
  [[nodiscard]] const smt::Sort& real() const { return real_; }

  Expr apply(const std::string& name, const smt::Sort& result, std::vector<Expr> arguments,
             const std::vector<smt::Sort>& sorts) {
    auto it = functions_.find(name);
    if (it == functions_.end()) it = functions_.emplace(name, context_.function(name, sorts, result)).first;
    return it->second(arguments);
  }

  Expr make_list(const std::vector<Expr>& elements) {
    return apply("list_" + std::to_string(elements.size()), list_, elements,
                 std::vector<smt::Sort>(elements.size(), integer_));
  }
  Expr get(const Expr& list, std::int64_t element) {
    return apply("list_get", integer_, {list, context_.integer(element)}, {list_, integer_});
  }
  Expr dimension(const Expr& tensor, const Expr& axis) {
    return apply("dim", integer_, {tensor, axis}, {tensor_, integer_});
  }
  Expr shape(const Expr& tensor) { return apply("shape", list_, {tensor}, {tensor_}); }
  Expr rank(const Expr& tensor) { return apply("rank", integer_, {tensor}, {tensor_}); }
  // Arithmetic beyond linear is not interpreted; products commute.
  Expr product(const Expr& a, const Expr& b) { return apply("times", integer_, {a, b}, {integer_, integer_}); }
  Expr quotient(const Expr& a, const Expr& b) { return apply("over", integer_, {a, b}, {integer_, integer_}); }
  Expr function_name(const std::string& name) { return context_.constant("fn." + name, symbol_); }

  Expr real_literal(double value) {
    if (std::isfinite(value)) return context_.real(value);
    return context_.constant(std::isnan(value) ? "real.nan" : value > 0 ? "real.inf" : "real.minus_inf", real_);
  }

  // Output `port` of `op` applied to tensors; attributes are in name order.
  Expr application(const std::string& op, std::uint32_t port, const std::vector<Expr>& tensors,
                   const std::vector<std::pair<Kindness, Expr>>& attributes) {
    std::vector<Expr> arguments = tensors;
    std::vector<smt::Sort> sorts(tensors.size(), tensor_);
    for (const auto& [kind, expr] : attributes) {
      arguments.push_back(expr);
      sorts.push_back(kind == Kindness::integer ? integer_
                      : kind == Kindness::real  ? real_
                      : kind == Kindness::list  ? list_
                                                : symbol_);
    }
    return apply(op + "/" + std::to_string(tensors.size()) + "." + std::to_string(port), tensor_, arguments, sorts);
  }

 private:
  const OperatorRegistry& registry_;
  smt::Context context_;
  smt::Sort tensor_, list_, symbol_, integer_, real_;
  std::map<std::string, smt::Function> functions_;
};

// Encodes the terms of one rule.
class Encoder {
 public:
  Encoder(Vocabulary& vocabulary, const Substitution& rule, const std::string& prefix)
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

  // All variables of the rule, as solver constants.
  [[nodiscard]] const std::vector<Expr>& constants() const { return constants_; }
  // Those of the attribute variables that are single integers.
  [[nodiscard]] std::vector<Expr> integer_variables() {
    std::vector<Expr> result;
    for (const EncodedValue& attribute : attributes_)
      if (attribute.kind == Kindness::integer) result.push_back(integer(attribute.integer));
    return result;
  }
  // Numbers that stand for arithmetic in a flattened encoding: number = value.
  struct Named {
    Expr number;
    Linear value;
  };

  // The outputs of a pattern. With `flat`, arithmetic in attributes is named instead of written.
  std::vector<Expr> outputs(const Pattern& pattern, std::vector<Named>* flat = nullptr) {
    std::vector<Expr> result;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Expr> done;
    for (const PatternValue& output : pattern.outputs) result.push_back(value(pattern, output, done, flat));
    return result;
  }

  // A condition as the logic has it, or nothing where the logic would say more than it does at a match: reals are exact
  // here and rounded there, lists of different lengths are not equal. With `equivalent` also nothing where it would
  // say less (hypotheses of an axiom).
  std::optional<Expr> condition(const Condition& condition, bool equivalent) {
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
    if (overflow_) return std::nullopt;
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
      }
    }
    return condition.relation == Relation::not_equal ? c.disjunction(parts) : c.conjunction(parts);
  }

  // Whether a number in what was encoded does not fit 64 bits: then the encoding means nothing.
  [[nodiscard]] bool overflow() const { return overflow_; }

  // Whether a constant stands in a flattened encoding itself, not only within arithmetic.
  [[nodiscard]] bool is_used(const Expr& constant) const {
    return std::find(used_.begin(), used_.end(), constant) != used_.end();
  }

  // Whether a constant occurs in anything that was encoded.
  [[nodiscard]] bool is_touched(const Expr& constant) const {
    return std::find(touched_.begin(), touched_.end(), constant) != touched_.end();
  }

  // Writes `variable` as `value` from now on.
  void substitute(const Expr& variable, const Linear& value) {
    for (EncodedValue& attribute : attributes_) {
      replace(attribute.integer, variable, value);
      if (attribute.components)
        for (Linear& element : *attribute.components) replace(element, variable, value);
    }
    std::erase(constants_, variable);
  }
  // Variables that are lists of unknown length.
  void substitute_list(const Expr& variable, const Expr& value) {
    for (EncodedValue& attribute : attributes_)
      if (attribute.term.valid() && attribute.term == variable) attribute.term = value;
    std::erase(constants_, variable);
  }
  // The list variable of a name, if it is one of unknown length.
  [[nodiscard]] std::optional<Expr> list_variable(std::size_t variable) const {
    if (attributes_[variable].kind != Kindness::list || attributes_[variable].components) return std::nullopt;
    return attributes_[variable].term;
  }
  static void replace(Linear& linear, const Expr& variable, const Linear& value) {
    for (const auto& [atom, coefficient] : linear.terms)
      if (atom == variable) {
        const std::int64_t factor = coefficient;
        linear.add(variable, -factor);
        linear.add(value, factor);
        return;
      }
  }

  Expr integer(const Linear& linear) {
    smt::Context& c = v_.context();
    overflow_ = overflow_ || linear.overflow;
    if (linear.terms.empty()) return c.integer(linear.constant);
    std::optional<Expr> sum;
    for (const auto& [atom, coefficient] : linear.terms) {
      const Expr term = coefficient == 1 ? atom : c.multiply(c.integer(coefficient), atom);
      sum = sum ? c.add(*sum, term) : term;
    }
    return linear.constant == 0 ? *sum : c.add(*sum, c.integer(linear.constant));
  }

  // Equations between extents without which an application of the pattern would not be well-typed.
  void typing(const Pattern& pattern, std::vector<Expr>& facts);

 private:
  void typing_of_pieces(const Pattern& pattern, const PatternNode& node, const OperatorDefinition& definition,
                        std::map<std::pair<std::uint32_t, std::uint32_t>, Expr>& done, std::vector<Expr>& facts);

  static bool is_finite_literal_or_variable(const AttributeExpression& expression) {
    if (expression.kind == Kind::variable) return true;
    const auto* value = std::get_if<double>(&expression.literal);
    return expression.kind == Kind::literal && value != nullptr && std::isfinite(*value);
  }

  Expr integer_constant(const std::string& name) {
    Expr constant = v_.context().constant(name, v_.integer());
    constants_.push_back(constant);
    return constant;
  }

  Expr real(const EncodedValue& value) {
    return value.kind == Kindness::integer ? v_.context().to_real(integer(value.integer)) : value.term;
  }

  Linear component(const EncodedValue& value, std::size_t i) {
    if (value.components) return i < value.components->size() ? (*value.components)[i] : Linear{};
    if (value.kind == Kindness::integer) return value.integer;
    Linear result;
    result.add(v_.get(value.term, static_cast<std::int64_t>(i)), 1);
    return result;
  }

  EncodedValue encode(const AttributeExpression& expression) {
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
      case Kind::list:
        result.kind = Kindness::list;
        result.components.emplace();
        for (const AttributeExpression& operand : expression.operands)
          result.components->push_back(encode(operand).integer);
        return result;
      case Kind::element: {
        const EncodedValue list = encode(expression.operands[0]);
        result.kind = Kindness::integer;
        result.integer = component(list, static_cast<std::size_t>(expression.axis));
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

  Linear combine(Kind kind, const Linear& a, const Linear& b) {
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

  static bool is_plain(const Linear& linear) {
    return linear.terms.empty() || (linear.terms.size() == 1 && linear.constant == 0 && linear.terms[0].second == 1);
  }

  // An integer argument of a symbol: itself, or a name for it if it is arithmetic or an extent.
  Expr argument(const Linear& linear, std::vector<Named>* flat) {
    const bool variable = is_plain(linear) && (linear.terms.empty() || is_constant(linear.terms[0].first));
    if (variable && !linear.terms.empty()) use(linear.terms[0].first, flat);
    if (flat == nullptr || variable) return integer(linear);
    Named named{v_.context().fresh("q", v_.integer()), linear};
    flat->push_back(named);
    return named.number;
  }

  void touch(const Linear& linear) {
    for (const auto& [atom, coefficient] : linear.terms) touched_.push_back(atom);
  }

  void use(const Expr& term, std::vector<Named>* flat) {
    if (flat != nullptr && term.valid() && !is_used(term)) used_.push_back(term);
  }

  bool is_constant(const Expr& atom) const {
    return std::find(constants_.begin(), constants_.end(), atom) != constants_.end();
  }

  std::pair<Kindness, Expr> attribute(const AttributeExpression& expression, const AttributeShape& shape,
                                      std::vector<Named>* flat) {
    EncodedValue value = encode(expression);
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

  Expr value(const Pattern& pattern, const PatternValue& which,
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

  Vocabulary& v_;
  AttributeKinds kinds_;
  std::vector<Expr> tensors_;
  std::vector<EncodedValue> attributes_;
  std::vector<Expr> constants_;
  std::vector<Expr> used_, touched_;
  bool overflow_ = false;
};

// "name" for an axis whose extent is that size, "g*c" for a composite one of names; empty for anything else.
std::string extent_name(const AxisSpec& axis) {
  std::string text;
  for (const Expression& factor : axis.factors) {
    if (factor.kind != Expression::Kind::name) return "";
    text += (text.empty() ? "" : "*") + factor.name;
  }
  return text;
}

// The names of all axes; equal lists of a definition are equal shapes. An axis without a name gets one of its own.
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

// The name of a rest.
std::string rest_name(const AxisSpec& axis) {
  return axis.factors.size() == 1 && axis.factors[0].kind == Expression::Kind::name ? axis.factors[0].name : "";
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
    for (std::size_t i = 1; i < pieces.size(); ++i)
      for (int other = -1; other >= -max_axes; --other) {
        const std::vector<Expr> either{
            c.equal(axis_term, c.integer(other)),
            c.equal(v_.dimension(pieces[0], c.integer(other)), v_.dimension(pieces[i], c.integer(other)))};
        facts.push_back(c.disjunction(either));
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
      if (std::none_of(axes.begin(), axes.end(), [](const AxisSpec& a) { return a.kind == AxisSpec::Kind::rest; }))
        facts.push_back(c.equal(v_.rank(tensor), c.integer(static_cast<std::int64_t>(axes.size()))));
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

std::set<std::string> operators_of(const Substitution& rule) {
  std::set<std::string> operators;
  for (const Pattern* pattern : {&rule.source, &rule.target})
    for (const PatternNode& node : pattern->nodes) operators.insert(node.op);
  return operators;
}

// What `dim(v, -3)` supposes, that v has three axes, where no operator that reads v says it. Extents of other axes are
// numbers, too, in the logic, which nothing is known of: an axiom would give them a meaning.
std::vector<Condition> rank_conditions(const OperatorRegistry& registry, const Substitution& rule,
                                       const Pattern& source, const Pattern& target) {
  std::vector<std::int64_t> needed(rule.tensor_variables.size(), 0), known(needed);
  const std::function<void(const AttributeExpression&)> collect = [&](const AttributeExpression& expression) {
    if (expression.kind == Kind::dimension && expression.operands.empty())
      needed[expression.index] = std::max(needed[expression.index], -expression.axis);
    for (const AttributeExpression& operand : expression.operands) collect(operand);
  };
  for (const Pattern* pattern : {&source, &target})
    for (const PatternNode& node : pattern->nodes) {
      for (const auto& attribute : node.attributes) collect(attribute.second);
      const OperatorDefinition& definition = *registry.find(node.op);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (!node.inputs[i].is_variable) continue;
        const std::vector<AxisSpec>& axes = definition.inputs[definition.variadic() ? 0 : i].axes;
        const auto fixed = std::count_if(axes.begin(), axes.end(),
                                         [](const AxisSpec& axis) { return axis.kind != AxisSpec::Kind::rest; });
        std::int64_t& rank = known[node.inputs[i].index];
        rank = std::max<std::int64_t>(rank, fixed);
      }
    }
  std::vector<Condition> result;
  for (std::uint32_t v = 0; v < needed.size(); ++v) {
    if (needed[v] <= known[v]) continue;
    AttributeExpression least, rank;
    least.literal = needed[v];
    rank.kind = Kind::rank;
    rank.index = v;
    result.push_back({Condition::Relation::less_equal, least, rank});
  }
  return result;
}

// One solver with the theory asserted.
class Session {
 public:
  Session(const OperatorRegistry& registry, const smt::SolverOptions& options)
      : registry_(registry), vocabulary_(registry), solver_(vocabulary_.context(), options) {
    assert_lists();
    assert_products();
    assert_function_names();
    for (const std::string& name : registry.names()) assert_definition(*registry.find(name));
  }

  // Adds an axiom; the text says why it cannot be used, if so.
  std::string add_axiom(const Substitution& axiom, const ShapeFacts& shapes) {
    if (axiom.source.outputs.size() != axiom.target.outputs.size())
      return "the sides have different numbers of outputs";
    Encoder encoder(vocabulary_, axiom, "check.");
    for (const Condition& condition : axiom.conditions)
      if (!encoder.condition(condition, true)) return "one of its conditions has no exact meaning in the logic";
    std::vector<bool> usable(axiom.source.outputs.size(), false);
    for (const bool from_source : {true, false}) {
      const Pattern& trigger_side = from_source ? axiom.source : axiom.target;
      for (std::size_t output = 0; output < trigger_side.outputs.size(); ++output)
        if (!trigger_side.outputs[output].is_variable && add_direction(axiom, from_source, output, shapes))
          usable[output] = true;
    }
    if (std::find(usable.begin(), usable.end(), false) != usable.end())
      return "neither side of the equation determines all variables";
    return "";
  }

  // Whether the solver derives output `output` of the rule; empty if so, else the reason.
  std::optional<std::string> prove(const Substitution& rule, bool satisfiable = false, std::uint64_t rlimit = 0) {
    for (std::size_t output = 0; output < rule.source.outputs.size(); ++output) {
      smt::Result result;
      {
        const smt::Solver::Scope scope(solver_);
        if (!assert_goal(rule, output, true)) return "a number of the rule does not fit 64 bits";
        result = rlimit == 0 ? solver_.check() : solver_.check(rlimit);
      }
      if (result.answer == smt::Answer::unsatisfiable) {
        if (satisfiable) continue;
        // Anything follows from hypotheses that contradict each other.
        const smt::Solver::Scope scope(solver_);
        assert_goal(rule, output, false);
        if (solver_.check(consistency_rlimit).answer != smt::Answer::unsatisfiable) continue;
        return "the axioms and what output " + std::to_string(output) + " supposes contradict each other";
      }
      std::string why = "output " + std::to_string(output) + " does not follow from the axioms";
      if (result.answer == smt::Answer::unknown && !result.reason.empty()) why += " (" + result.reason + ")";
      return why;
    }
    return std::nullopt;
  }

  std::string smt2(const Substitution& rule) {
    std::string text;
    for (std::size_t output = 0; output < rule.source.outputs.size(); ++output) {
      const smt::Solver::Scope scope(solver_);
      assert_goal(rule, output, true);
      text += "; " + rule.name + ", output " + std::to_string(output) + "\n" + solver_.smt2() + "(reset)\n";
    }
    return text;
  }

 private:
  // What an application supposes and, with `negated`, that the outputs differ; false if it cannot be said.
  bool assert_goal(const Substitution& rule, std::size_t output, bool negated) {
    smt::Context& c = vocabulary_.context();
    Encoder encoder(vocabulary_, rule, "goal.");
    std::vector<Expr> facts;
    encoder.typing(rule.source, facts);
    encoder.typing(rule.target, facts);
    for (const Condition& condition : rule.conditions)
      if (const std::optional<Expr> fact = encoder.condition(condition, false)) facts.push_back(*fact);
    for (const Condition& condition : rank_conditions(registry_, rule, rule.source, rule.target))
      if (const std::optional<Expr> fact = encoder.condition(condition, false)) facts.push_back(*fact);
    for (const Expr& fact : facts) solver_.add(fact);
    const std::vector<Expr> lefts = encoder.outputs(rule.source), rights = encoder.outputs(rule.target);
    // An application that would change the type of an output is refused.
    for (std::size_t i = 0; i < lefts.size(); ++i) {
      const Expr &left = lefts[i], &right = rights[i];
      solver_.add(c.equal(vocabulary_.shape(left), vocabulary_.shape(right)));
      solver_.add(c.equal(vocabulary_.rank(left), vocabulary_.rank(right)));
      for (int axis = -1; axis >= -max_axes; --axis)
        solver_.add(
            c.equal(vocabulary_.dimension(left, c.integer(axis)), vocabulary_.dimension(right, c.integer(axis))));
      for (const Expr& axis : encoder.integer_variables())
        solver_.add(c.equal(vocabulary_.dimension(left, axis), vocabulary_.dimension(right, axis)));
    }
    if (negated) solver_.add(c.negation(c.equal(lefts[output], rights[output])));
    return !encoder.overflow();
  }

  // "conditions => source = target", matched on one side; false if that side leaves a variable open.
  bool add_direction(const Substitution& axiom, bool from_source, std::size_t output, const ShapeFacts& shapes) {
    smt::Context& c = vocabulary_.context();
    const std::string prefix = axiom.name + (from_source ? ".l" : ".r") + std::to_string(output) + ".";
    Encoder encoder(vocabulary_, axiom, prefix);
    std::vector<Encoder::Named> named;
    const Pattern& trigger_side = from_source ? axiom.source : axiom.target;
    const Pattern& other_side = from_source ? axiom.target : axiom.source;
    const Expr trigger = encoder.outputs(one_output(trigger_side, output), &named)[0];
    // Variables that only stand within arithmetic are solved for.
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t i = 0; i < named.size() && !progress; ++i) {
        for (const auto& [atom, coefficient] : named[i].value.terms) {
          const std::vector<Expr>& constants = encoder.constants();
          if ((coefficient != 1 && coefficient != -1) || encoder.is_used(atom) ||
              std::find(constants.begin(), constants.end(), atom) == constants.end())
            continue;
          // number = coefficient * atom + rest, so atom = coefficient * (number - rest)
          const Expr variable = atom;
          Linear solution;
          solution.add(named[i].number, coefficient);
          Linear rest = named[i].value;
          rest.add(variable, -coefficient);
          solution.add(rest, -coefficient);
          encoder.substitute(variable, solution);
          // The equation now holds by construction; its number remains as a variable of the trigger.
          Linear itself;
          itself.add(named[i].number, 1);
          named[i].value = itself;
          for (Encoder::Named& other : named) Encoder::replace(other.value, variable, solution);
          progress = true;
          break;
        }
      }
    }
    // A list that only the other side has and that is always the result's shape.
    bool supplied = false;
    for (const std::size_t variable : shapes.result_shapes[output])
      if (const auto list = encoder.list_variable(variable); list && !encoder.is_used(*list)) {
        encoder.substitute_list(*list, vocabulary_.shape(trigger));
        supplied = true;
      }
    std::vector<Expr> hypotheses;
    for (const Condition& condition : axiom.conditions) hypotheses.push_back(*encoder.condition(condition, true));
    for (const Condition& condition :
         rank_conditions(registry_, axiom, one_output(axiom.source, output), one_output(axiom.target, output)))
      if (const std::optional<Expr> hypothesis = encoder.condition(condition, true)) hypotheses.push_back(*hypothesis);
    const Expr other = encoder.outputs(one_output(other_side, output))[0];
    // Where shapes may differ the equation is about those where no output's does: a piece of a split is what was
    // concatenated there only if the pieces before it have the right sizes, too.
    if (shapes.may_differ) {
      hypotheses.push_back(c.equal(vocabulary_.shape(trigger), vocabulary_.shape(other)));
      for (std::size_t i = 0; i < trigger_side.outputs.size(); ++i)
        if (i != output)
          hypotheses.push_back(c.equal(vocabulary_.shape(encoder.outputs(one_output(trigger_side, i))[0]),
                                       vocabulary_.shape(encoder.outputs(one_output(other_side, i))[0])));
    }
    std::vector<Expr> variables;
    for (const Expr& constant : encoder.constants()) {
      if (!encoder.is_touched(constant)) continue;  // belongs to another output's equation
      if (!encoder.is_used(constant)) return false;
      variables.push_back(constant);
    }
    for (const Encoder::Named& equation : named) {
      variables.push_back(equation.number);
      if (equation.value.terms.size() == 1 && equation.value.terms[0].first == equation.number) continue;
      hypotheses.push_back(c.equal(equation.number, encoder.integer(equation.value)));
    }
    Expr body = c.equal(trigger, other);
    if (supplied) {
      // The list was chosen so that the other side is well-typed.
      std::vector<Expr> parts{body};
      encoder.typing(one_output(other_side, output), parts);
      body = c.conjunction(parts);
    }
    if (!hypotheses.empty()) body = c.implies(c.conjunction(hypotheses), body);
    const std::vector<Expr> triggers{trigger};
    solver_.add(c.forall(variables, triggers, body, axiom.name));
    return true;
  }

  static Pattern one_output(const Pattern& pattern, std::size_t output) {
    Pattern result = pattern;
    result.outputs = {pattern.outputs[output]};
    return result;
  }

  void assert_lists() {
    smt::Context& c = vocabulary_.context();
    for (std::size_t length = 1; length <= 6; ++length) {
      const std::vector<Expr> elements = integers("e", length);
      const Expr list = vocabulary_.make_list(elements);
      for (std::size_t i = 0; i < length; ++i) {
        const std::vector<Expr> trigger{vocabulary_.get(list, static_cast<std::int64_t>(i))};
        solver_.add(c.forall(elements, trigger, c.equal(trigger[0], elements[i]), "list_get"));
      }
    }
  }

  void assert_products() {
    const std::vector<Expr> n = integers("n", 2);
    const Expr product = vocabulary_.product(n[0], n[1]);
    assert_equation(n, product, vocabulary_.context().equal(product, vocabulary_.product(n[1], n[0])), "times");
    for (const std::int64_t factor : {0, 1, 2, 3}) {
      smt::Context& c = vocabulary_.context();
      const Expr multiple = vocabulary_.product(c.integer(factor), n[0]);
      assert_equation({n[0]}, multiple, c.equal(multiple, c.multiply(c.integer(factor), n[0])), "times");
    }
  }

  void assert_function_names() {
    std::vector<Expr> names;
    for (const auto& [name, function] : vocabulary_.registry().functions())
      names.push_back(vocabulary_.function_name(name));
    if (names.size() > 1) solver_.add(vocabulary_.context().distinct(names));
  }

  std::vector<Expr> integers(const std::string& prefix, std::size_t count) {
    std::vector<Expr> result;
    for (std::size_t i = 0; i < count; ++i)
      result.push_back(vocabulary_.context().constant("." + prefix + std::to_string(i), vocabulary_.integer()));
    return result;
  }
  std::vector<Expr> tensors(std::size_t count) {
    std::vector<Expr> result;
    for (std::size_t i = 0; i < count; ++i)
      result.push_back(vocabulary_.context().constant(".x" + std::to_string(i), vocabulary_.tensor()));
    return result;
  }

  // Arbitrary attributes of an operator: values in name order, and the variables in them.
  struct AnyAttributes {
    std::vector<std::pair<Kindness, Expr>> values;
    std::vector<Expr> variables;
    std::optional<std::size_t> integer, list;  // the first of that kind
    std::map<std::string, std::size_t> places;
    std::map<std::string, std::vector<Expr>> elements;  // of lists of declared length
  };
  AnyAttributes any_attributes(const std::string& op) {
    AnyAttributes result;
    std::vector<std::string> names;
    for (const AttributeSignature& attribute : vocabulary_.registry().signature(op)->attributes)
      names.push_back(attribute.name);
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      const AttributeShape shape = shape_of(vocabulary_.registry(), op, name);
      Expr value;
      if (shape.kind == Kindness::list && shape.length) {
        const std::vector<Expr> elements = integers(name, *shape.length);
        value = vocabulary_.make_list(elements);
        result.variables.insert(result.variables.end(), elements.begin(), elements.end());
        result.elements[name] = elements;
      } else {
        value = vocabulary_.context().constant("." + name, shape.kind == Kindness::integer ? vocabulary_.integer()
                                                           : shape.kind == Kindness::real  ? vocabulary_.real()
                                                           : shape.kind == Kindness::list  ? vocabulary_.list()
                                                                                           : vocabulary_.symbol());
        result.variables.push_back(value);
      }
      if (shape.kind == Kindness::integer && !result.integer) result.integer = result.values.size();
      if (shape.kind == Kindness::list && !result.list) result.list = result.values.size();
      result.places[name] = result.values.size();
      result.values.emplace_back(shape.kind, value);
    }
    return result;
  }

  void assert_equation(const std::vector<Expr>& variables, const Expr& trigger, const Expr& body,
                       const std::string& name) {
    const std::vector<Expr> triggers{trigger};
    solver_.add(vocabulary_.context().forall(variables, triggers, body, name));
  }

  void assert_definition(const OperatorDefinition& definition) {
    if (definition.commutative) assert_commutative(definition);
    if (definition.associative) assert_associative(definition);
    if (definition.coassociative) assert_coassociative(definition);
    if (!definition.variadic() && !definition.several_outputs()) assert_extents(definition);
  }

  void assert_commutative(const OperatorDefinition& definition) {
    const AnyAttributes attributes = any_attributes(definition.name);
    std::vector<Expr> x = tensors(2), variables = attributes.variables;
    variables.insert(variables.end(), x.begin(), x.end());
    const Expr left = vocabulary_.application(definition.name, 0, x, attributes.values);
    const Expr right = vocabulary_.application(definition.name, 0, {x[1], x[0]}, attributes.values);
    assert_equation(variables, left, vocabulary_.context().equal(left, right), definition.name + ".commutative");
  }

  // concat(x.., concat(y..), z..) = concat(x.., y.., z..), and the extents of a concatenation.
  void assert_associative(const OperatorDefinition& definition) {
    smt::Context& c = vocabulary_.context();
    const AnyAttributes attributes = any_attributes(definition.name);
    auto concat = [&](const std::vector<Expr>& x) {
      return vocabulary_.application(definition.name, 0, x, attributes.values);
    };
    for (std::size_t total = 2; total <= max_pieces; ++total) {
      const std::vector<Expr> x = tensors(total);
      std::vector<Expr> variables = attributes.variables;
      variables.insert(variables.end(), x.begin(), x.end());
      const Expr flat = concat(x);
      for (std::size_t begin = 0; begin < total; ++begin) {
        for (std::size_t count = 2; count < total && begin + count <= total; ++count) {
          std::vector<Expr> outer(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(begin));
          outer.push_back(concat({x.begin() + static_cast<std::ptrdiff_t>(begin),
                                  x.begin() + static_cast<std::ptrdiff_t>(begin + count)}));
          outer.insert(outer.end(), x.begin() + static_cast<std::ptrdiff_t>(begin + count), x.end());
          const Expr nested = concat(outer);
          const Expr body = c.equal(nested, flat);
          assert_equation(variables, nested, body, definition.name + ".flatten");
          if (outer.size() == 2) assert_equation(variables, flat, body, definition.name + ".nest");
        }
      }
      if (!attributes.integer) continue;
      const Expr axis = attributes.values[*attributes.integer].second;
      const Expr other = c.constant(".some_axis", vocabulary_.integer());
      std::vector<Expr> with_axis = variables;
      with_axis.push_back(other);
      const Expr extent = vocabulary_.dimension(flat, other);
      Expr sum = c.integer(0);
      for (const Expr& piece : x) sum = c.add(sum, vocabulary_.dimension(piece, other));
      assert_equation(with_axis, extent, c.implies(c.equal(axis, other), c.equal(extent, sum)),
                      definition.name + ".extent");
      std::vector<Expr> hypotheses{c.negation(c.equal(axis, other))};
      for (std::size_t i = 1; i < total; ++i)
        hypotheses.push_back(c.equal(vocabulary_.dimension(x[0], other), vocabulary_.dimension(x[i], other)));
      assert_equation(with_axis, extent,
                      c.implies(c.conjunction(hypotheses), c.equal(extent, vocabulary_.dimension(x[0], other))),
                      definition.name + ".other_extent");
    }
  }

  // Splits of the first or the second piece of a split in two are splits; extents of pieces.
  void assert_coassociative(const OperatorDefinition& definition) {
    smt::Context& c = vocabulary_.context();
    const AnyAttributes any = any_attributes(definition.name);
    if (!any.integer || !any.list) return;
    const Expr axis = any.values[*any.integer].second;
    auto split = [&](const Expr& x, const std::vector<Expr>& sizes, std::size_t port) {
      std::vector<std::pair<Kindness, Expr>> attributes = any.values;
      attributes[*any.list].second = vocabulary_.make_list(sizes);
      return vocabulary_.application(definition.name, static_cast<std::uint32_t>(port), {x}, attributes);
    };
    const Expr x = tensors(1)[0];
    const Expr rest = c.constant(".rest", vocabulary_.integer());
    for (std::size_t total = 2; total <= max_pieces; ++total) {
      const std::vector<Expr> sizes = integers("s", total);
      std::vector<Expr> variables = sizes;
      variables.push_back(x);
      variables.push_back(axis);
      Expr tail_sum = c.integer(0), head_sum = c.integer(0);
      for (std::size_t i = 0; i < total; ++i) {
        if (i > 0) tail_sum = c.add(tail_sum, sizes[i]);
        if (i + 1 < total) head_sum = c.add(head_sum, sizes[i]);
      }
      for (std::size_t port = 0; port < total; ++port) {
        const Expr piece = split(x, sizes, port);
        const Expr other = c.constant(".some_axis", vocabulary_.integer());
        std::vector<Expr> with_axis = variables;
        with_axis.push_back(other);
        const Expr extent = vocabulary_.dimension(piece, other);
        assert_equation(with_axis, extent,
                        c.conjunction(std::vector<Expr>{c.implies(c.equal(axis, other), c.equal(extent, sizes[port])),
                                                        c.implies(c.negation(c.equal(axis, other)),
                                                                  c.equal(extent, vocabulary_.dimension(x, other)))}),
                        definition.name + ".extent");
        if (total == 2) continue;
        const std::vector<Expr> tail(sizes.begin() + 1, sizes.end()), head(sizes.begin(), sizes.end() - 1);
        std::vector<Expr> with_rest = variables;
        with_rest.push_back(rest);
        // From the front: piece 0 of [s0, rest], the others from its piece 1.
        {
          const Expr body_now =
              port == 0 ? split(x, {sizes[0], tail_sum}, 0) : split(split(x, {sizes[0], tail_sum}, 1), tail, port - 1);
          assert_equation(variables, piece, c.equal(piece, body_now), definition.name + ".nest");
          if (port > 0) {
            const Expr nested = split(split(x, {sizes[0], rest}, 1), tail, port - 1);
            assert_equation(with_rest, nested, c.implies(c.equal(rest, tail_sum), c.equal(nested, piece)),
                            definition.name + ".flatten");
          }
        }
        // From the back.
        {
          const Expr body_now = port + 1 == total ? split(x, {head_sum, sizes[port]}, 1)
                                                  : split(split(x, {head_sum, sizes.back()}, 0), head, port);
          assert_equation(variables, piece, c.equal(piece, body_now), definition.name + ".nest");
          if (port + 1 < total) {
            const Expr nested = split(split(x, {rest, sizes.back()}, 0), head, port);
            assert_equation(with_rest, nested, c.implies(c.equal(rest, head_sum), c.equal(nested, piece)),
                            definition.name + ".flatten");
          }
        }
      }
    }
  }

  static std::vector<std::string> outer_names(const std::vector<AxisSpec>& axes, int axis) {
    std::vector<std::string> names;
    const auto end = static_cast<std::size_t>(static_cast<std::int64_t>(axes.size()) + axis + 1);
    for (std::size_t i = 0; i < end && i < axes.size(); ++i)
      names.push_back((axes[i].kind == AxisSpec::Kind::rest ? ".." : "") + extent_name(axes[i]));
    return names;
  }

  // dim(op(..), i) in terms of extents of the inputs.
  void assert_extents(const OperatorDefinition& definition) {
    smt::Context& c = vocabulary_.context();
    const AnyAttributes attributes = any_attributes(definition.name);
    const std::vector<Expr> x = tensors(definition.inputs.size());
    std::vector<Expr> variables = attributes.variables;
    variables.insert(variables.end(), x.begin(), x.end());
    const Expr result = vocabulary_.application(definition.name, 0, x, attributes.values);
    const Expr result_shape = vocabulary_.shape(result);
    // Facts about an ill-typed application must not follow, let alone facts about its operands: what several inputs
    // tell is asserted where they agree.
    std::vector<Expr> like_result;
    for (std::size_t i = 0; i < definition.inputs.size(); ++i)
      if (axis_names(definition.inputs[i].axes) == axis_names(definition.output.axes)) like_result.push_back(x[i]);
    if (!like_result.empty()) {
      std::vector<Expr> agree;
      for (std::size_t i = 1; i < like_result.size(); ++i)
        agree.push_back(c.equal(vocabulary_.shape(like_result[0]), vocabulary_.shape(like_result[i])));
      const Expr fact = c.equal(result_shape, vocabulary_.shape(like_result[0]));
      assert_equation(variables, result_shape, agree.empty() ? fact : c.implies(c.conjunction(agree), fact),
                      definition.name + ".shape");
    }
    assert_given_shape(definition, attributes, x);
    const std::vector<AxisSpec>& output = definition.output.axes;
    for (std::size_t k = output.size(); k-- > 0 && output[k].kind != AxisSpec::Kind::rest;) {
      if (output[k].factors.size() != 1) continue;
      const std::optional<Expr> value = extent_of(output[k].factors[0], definition, attributes, x);
      if (!value) continue;
      const Expr extent = vocabulary_.dimension(
          result, c.integer(static_cast<std::int64_t>(k) - static_cast<std::int64_t>(output.size())));
      assert_equation(variables, extent, c.equal(extent, *value), definition.name + ".extent");
    }
    const std::vector<AxisFact> facts = axis_facts(definition);
    for (std::size_t n = 0; n < facts.size(); ++n) {
      const AxisFact& fact = facts[n];
      // Outer axes correspond only if the same rests stand there: otherwise one tensor may have more of them.
      if (fact.and_outer && outer_names(definition.output.axes, fact.output_axis) !=
                                outer_names(definition.inputs[fact.input].axes, fact.input_axis))
        continue;
      const Expr axis = fact.and_outer ? c.constant(".some_axis", vocabulary_.integer()) : c.integer(fact.output_axis);
      auto extent_in = [&](const AxisFact& other) {
        return vocabulary_.dimension(x[other.input], c.add(axis, c.integer(other.input_axis - other.output_axis)));
      };
      std::vector<Expr> hypotheses;
      if (fact.and_outer) hypotheses.push_back(c.less_equal(axis, c.integer(fact.output_axis)));
      for (std::size_t m = 0; m < facts.size(); ++m)
        if (m != n && facts[m].output_axis == fact.output_axis && facts[m].and_outer == fact.and_outer)
          hypotheses.push_back(c.equal(extent_in(fact), extent_in(facts[m])));
      std::vector<Expr> bound = variables;
      if (fact.and_outer) bound.push_back(axis);
      const Expr extent = vocabulary_.dimension(result, axis);
      const Expr body = c.equal(extent, extent_in(fact));
      assert_equation(bound, extent, hypotheses.empty() ? body : c.implies(c.conjunction(hypotheses), body),
                      definition.name + ".extent");
    }
  }

  // The value of an extent made of integers, attributes, elements of list attributes, and extents of inputs.
  std::optional<Expr> extent_of(const Expression& expression, const OperatorDefinition& definition,
                                const AnyAttributes& any, const std::vector<Expr>& x) {
    smt::Context& c = vocabulary_.context();
    switch (expression.kind) {
      case Expression::Kind::integer:
        return c.integer(expression.integer);
      case Expression::Kind::name: {
        if (const auto place = any.places.find(expression.name); place != any.places.end())
          return any.values[place->second].first == Kindness::integer ? std::optional(any.values[place->second].second)
                                                                      : std::nullopt;
        for (std::size_t i = 0; i < definition.inputs.size(); ++i) {
          const std::vector<AxisSpec>& axes = definition.inputs[i].axes;
          for (std::size_t k = axes.size(); k-- > 0 && axes[k].kind != AxisSpec::Kind::rest;)
            if (axes[k].factors.size() == 1 && extent_name(axes[k]) == expression.name)
              return vocabulary_.dimension(
                  x[i], c.integer(static_cast<std::int64_t>(k) - static_cast<std::int64_t>(axes.size())));
        }
        return std::nullopt;
      }
      case Expression::Kind::element: {
        const Expression &list = expression.operands[0], &index = expression.operands[1];
        const auto place = any.places.find(list.name);
        if (list.kind != Expression::Kind::name || index.kind != Expression::Kind::integer ||
            place == any.places.end() || any.values[place->second].first != Kindness::list)
          return std::nullopt;
        const auto elements = any.elements.find(list.name);
        const auto i = static_cast<std::size_t>(index.integer);
        if (elements != any.elements.end() && i < elements->second.size()) return elements->second[i];
        return std::nullopt;
      }
      case Expression::Kind::add:
      case Expression::Kind::subtract: {
        const auto left = extent_of(expression.operands[0], definition, any, x);
        const auto right = extent_of(expression.operands[1], definition, any, x);
        if (!left || !right) return std::nullopt;
        return expression.kind == Expression::Kind::add ? c.add(*left, *right) : c.subtract(*left, *right);
      }
      default:
        return std::nullopt;
    }
  }

  // Where the output's shape is an attribute: shape(op(..; s)) = s, and its extents are the elements of s.
  void assert_given_shape(const OperatorDefinition& definition, const AnyAttributes& any, const std::vector<Expr>& x) {
    smt::Context& c = vocabulary_.context();
    if (definition.output.axes.size() != 1 || definition.output.axes[0].kind != AxisSpec::Kind::rest) return;
    const std::string name = rest_name(definition.output.axes[0]);
    const auto place = any.places.find(name);
    if (place == any.places.end()) return;
    const std::size_t index = place->second;
    std::vector<Expr> variables = any.variables;
    variables.insert(variables.end(), x.begin(), x.end());
    const Expr result = vocabulary_.application(definition.name, 0, x, any.values);
    const Expr shape = vocabulary_.shape(result);
    assert_equation(variables, shape, c.equal(shape, any.values[index].second), definition.name + ".shape");
    for (std::size_t length = 1; length <= max_axes; ++length) {
      const std::vector<Expr> elements = integers("extent", length);
      AnyAttributes given = any;
      std::erase(given.variables, given.values[index].second);
      given.values[index].second = vocabulary_.make_list(elements);
      std::vector<Expr> bound = given.variables;
      bound.insert(bound.end(), x.begin(), x.end());
      bound.insert(bound.end(), elements.begin(), elements.end());
      const Expr application = vocabulary_.application(definition.name, 0, x, given.values);
      for (std::size_t i = 0; i < length; ++i) {
        const Expr extent = vocabulary_.dimension(
            application, c.integer(static_cast<std::int64_t>(i) - static_cast<std::int64_t>(length)));
        assert_equation(bound, extent, c.equal(extent, elements[i]), definition.name + ".extent");
      }
      const Expr rank = vocabulary_.rank(application);
      assert_equation(bound, rank, c.equal(rank, c.integer(static_cast<std::int64_t>(length))),
                      definition.name + ".rank");
    }
  }

  const OperatorRegistry& registry_;
  Vocabulary vocabulary_;
  smt::Solver solver_;
};

}  // namespace

class Theory::Implementation {
 public:
  Implementation(const OperatorRegistry& registry, const std::vector<Substitution>& axioms, std::uint64_t rlimit,
                 std::shared_ptr<ShapeFactsTable> facts)
      : registry_(registry),
        rlimit_(rlimit),
        facts_(facts != nullptr ? std::move(facts) : std::make_shared<ShapeFactsTable>(registry)) {
    for (std::size_t number = 0; number < axioms.size(); ++number) {
      const Substitution& axiom = axioms[number];
      if (!axiom.is_axiom) {
        const Entailment proof = entails(axiom);
        if (!proof.proved) {
          unproved_.emplace_back(axioms_.size(), axiom.name + ": lemma not proved: " + proof.reason);
          continue;
        }
      }
      axioms_.push_back({axiom, number, operators_of(axiom)});
      sessions_.clear();
    }
  }

  // Axioms that speak only of the goal's operators come first, then those with one more operator, then all: a small
  // theory saturates quickly where the whole one has endless consequences. Each is first given a short time: a proof is
  // found quickly or hardly ever, and one theory too small must not use up what the next would need little of.
  Entailment entails(const Substitution& rule, const EntailmentOptions& options = {}) {
    // What the sides share need not be understood, and its operators would only make the theory larger.
    if (const std::optional<Substitution> smaller = without_common_terms(rule)) {
      const std::set<std::string> operators = operators_of(*smaller);
      for (const std::size_t foreign : {std::size_t{0}, std::size_t{1}})
        if (!session(choose(operators, foreign, options.without))
                 .prove(*smaller, options.satisfiable, rlimit_ / short_attempts))
          return {true, ""};
    }
    const std::set<std::string> operators = operators_of(rule);
    std::optional<std::string> reason;
    for (const std::uint64_t limit : {rlimit_ / short_attempts, rlimit_}) {
      std::vector<bool> previous;
      for (const std::size_t foreign : {std::size_t{0}, std::size_t{1}, all}) {
        const std::vector<bool> chosen = choose(operators, foreign, options.without);
        if (chosen == previous) continue;
        previous = chosen;
        reason = session(chosen).prove(rule, options.satisfiable, limit);
        if (!reason) return {true, ""};
      }
      if (options.brief) return {false, *reason};
    }
    // Model-based instantiation, anew.
    Session fresh(registry_, {.model_based_quantifiers = true, .rlimit = rlimit_ / 4});
    assert_chosen(fresh, choose(operators, 0, options.without));
    reason = fresh.prove(rule, options.satisfiable);
    if (!reason) return {true, ""};
    return {false, *reason};
  }

  Entailment entails_with(const Substitution& rule, const std::vector<Substitution>& more) {
    const std::size_t own = axioms_.size();
    std::map<std::vector<bool>, Kept> kept;
    std::swap(kept, sessions_);  // they know nothing of the axioms that come now
    for (const Substitution& axiom : more) axioms_.push_back({axiom, all, operators_of(axiom)});
    Entailment result;
    std::vector<bool> previous;
    for (const std::size_t foreign : {std::size_t{0}, std::size_t{1}}) {
      const std::vector<bool> chosen = choose(operators_of(rule), foreign, std::nullopt);
      if (chosen == previous) continue;
      previous = chosen;
      const std::optional<std::string> reason = session(chosen).prove(rule);
      result = {!reason, reason.value_or("")};
      if (!reason) break;
    }
    axioms_.resize(own);
    std::swap(kept, sessions_);
    return result;
  }

  // Found when they are first asked for: a proof needs a part of the theory only.
  const std::vector<std::string>& problems() {
    if (problems_) return *problems_;
    problems_.emplace();
    Session check(registry_, {.rlimit = rlimit_});
    auto lemma = unproved_.begin();
    for (std::size_t i = 0; i <= axioms_.size(); ++i) {
      for (; lemma != unproved_.end() && lemma->first == i; ++lemma) problems_->push_back(lemma->second);
      if (i == axioms_.size()) break;
      const std::string problem = check.add_axiom(axioms_[i].axiom, facts_->of(axioms_[i].axiom));
      if (!problem.empty()) problems_->push_back(axioms_[i].axiom.name + ": " + problem);
    }
    return *problems_;
  }
  std::string smt2(const Substitution& rule) { return session(choose({}, all, std::nullopt)).smt2(rule); }

 private:
  static constexpr std::size_t all = static_cast<std::size_t>(-1);
  static constexpr std::uint64_t short_attempts = 32;

  struct Known {
    Substitution axiom;
    std::size_t number;  // Among those given.
    std::set<std::string> operators;
  };

  // Axioms with at most `foreign` operators that the goal does not have.
  [[nodiscard]] std::vector<bool> choose(const std::set<std::string>& operators, std::size_t foreign,
                                         std::optional<std::size_t> without = {}) const {
    std::vector<bool> chosen;
    for (const Known& known : axioms_)
      chosen.push_back(static_cast<std::size_t>(
                           std::count_if(known.operators.begin(), known.operators.end(),
                                         [&](const std::string& op) { return !operators.contains(op); })) <= foreign);
    for (std::size_t i = 0; i < axioms_.size() && without; ++i)
      if (axioms_[i].number == *without) chosen[i] = false;
    return chosen;
  }

  void assert_chosen(Session& session, const std::vector<bool>& chosen) {
    std::vector<const Substitution*> axioms;
    for (std::size_t i = 0; i < axioms_.size(); ++i)
      if (chosen[i]) axioms.push_back(&axioms_[i].axiom);
    const std::vector<const ShapeFacts*> facts = facts_->of(axioms);
    for (std::size_t i = 0; i < axioms.size(); ++i) (void)session.add_axiom(*axioms[i], *facts[i]);
  }

  Session& session(const std::vector<bool>& chosen) {
    Kept& kept = sessions_[chosen];
    if (kept.session == nullptr || kept.goals >= goals_per_session) {
      if (sessions_.size() > max_sessions) {
        sessions_.clear();
        return session(chosen);
      }
      kept.session =
          std::make_unique<Session>(registry_, smt::SolverOptions{.rlimit = rlimit_, .watchdog_seconds = 10});
      kept.goals = 0;
      assert_chosen(*kept.session, chosen);
    }
    ++kept.goals;
    return *kept.session;
  }

  struct Kept {
    std::unique_ptr<Session> session;
    std::size_t goals = 0;
  };

  const OperatorRegistry& registry_;
  std::uint64_t rlimit_;
  std::shared_ptr<ShapeFactsTable> facts_;
  std::vector<Known> axioms_;
  std::vector<std::pair<std::size_t, std::string>> unproved_;  // Lemmas, before the axiom of this number.
  std::optional<std::vector<std::string>> problems_;
  std::map<std::vector<bool>, Kept> sessions_;
};

Theory::Theory(const OperatorRegistry& registry, const std::vector<Substitution>& axioms, std::uint64_t rlimit,
               std::shared_ptr<ShapeFactsTable> facts)
    : implementation_(std::make_unique<Implementation>(registry, axioms, rlimit, std::move(facts))) {}
Theory::~Theory() = default;
Entailment Theory::entails(const Substitution& rule, const EntailmentOptions& options) {
  return implementation_->entails(rule, options);
}
Entailment Theory::entails_with(const Substitution& rule, const std::vector<Substitution>& more) {
  return implementation_->entails_with(rule, more);
}
const std::vector<std::string>& Theory::problems() const { return implementation_->problems(); }
std::string Theory::smt2(const Substitution& rule) { return implementation_->smt2(rule); }

}  // namespace taso
