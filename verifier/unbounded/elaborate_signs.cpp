// Signs of values from definitions: what Elaborator's obligations need not be noted for.

#include <algorithm>
#include <cmath>
#include <utility>

#include "operators/unparse.h"
#include "verifier/unbounded/elaborate.h"
#include "verifier/unbounded/signs.h"

namespace taso::unbounded {
namespace {

using Kind = Expression::Kind;

// Whether all names of a size are bound in an environment.
bool bound_in(const SizeEnvironment& environment, const Expression& e) {
  if ((e.kind == Kind::name || e.kind == Kind::piece) && environment.find(e.name) == nullptr) return false;
  return std::all_of(e.operands.begin(), e.operands.end(),
                     [&](const Expression& operand) { return bound_in(environment, operand); });
}

std::optional<double> literal(const Expression& e) {
  if (e.kind == Kind::integer) return static_cast<double>(e.integer);
  if (e.kind == Kind::real) return e.real;
  if (e.kind != Kind::negate) return std::nullopt;
  const std::optional<double> value = literal(e.operands[0]);
  return value ? std::optional(-*value) : std::nullopt;
}

// What `require name >= 0` says of a name.
SignSet required_sign(const Expression& e, const std::string& name) {
  if (e.kind == Kind::conjunction) return both(required_sign(e.operands[0], name), required_sign(e.operands[1], name));
  if (e.operands.size() != 2 || e.operands[0].kind != Kind::name || e.operands[0].name != name) return {};
  const std::optional<double> bound = literal(e.operands[1]);
  if (!bound) return {};
  switch (e.kind) {
    case Kind::greater:
      return {*bound < 0, *bound < 0, true};
    case Kind::greater_equal:
      return {*bound < 0, *bound <= 0, true};
    case Kind::less:
      return {true, *bound > 0, *bound > 0};
    case Kind::less_equal:
      return {true, *bound >= 0, *bound > 0};
    case Kind::equal:
      return SignSet::of(*bound);
    case Kind::not_equal:
      return *bound == 0 ? SignSet::of(ArgumentDomain::nonzero) : SignSet{};
    default:
      return {};
  }
}

// Indices that are put at ends of their ranges, one after the other.
constexpr int most_ends = 10;

// Whether p >= 0 for all indices and variables of reductions, so many of which are put at ends of their ranges: as the
// evaluator shows it, interval by interval. p is linear in an index, so that it is least at an end of its range.
bool least_is_nonnegative(const Polynomial& p, Facts& facts, int ends) {
  if (facts.entails_quickly({Atom::Relation::nonnegative, p})) return true;
  if (ends == 0) return false;
  const std::vector<Atom> known = facts.atoms();
  for (const SymbolId symbol : p.symbols()) {
    const Symbol::Kind kind = facts.symbols()[symbol].kind;
    if (kind != Symbol::Kind::index && kind != Symbol::Kind::bound) continue;
    Polynomial slope;
    bool linear = true;
    for (const auto& [monomial, coefficient] : p.terms()) {
      if (!monomial.contains(symbol)) continue;
      const Monomial rest = *Monomial::quotient(monomial, Monomial(symbol));
      linear = linear && !rest.contains(symbol);
      slope = slope + Polynomial::term(rest, coefficient);
    }
    // A quotient of the index is none of a line.
    const SymbolId self[] = {symbol};
    if (!linear || facts.symbols().mentions(p - slope * Polynomial::symbol(symbol), self) ||
        facts.symbols().mentions(slope, self))
      continue;
    // The least, or the largest, value of the index is at hand where t - low >= 0, or high - t >= 0, is known.
    auto at_end = [&](std::int64_t sign) -> std::optional<Polynomial> {
      for (const Atom& atom : known) {
        if (atom.relation != Atom::Relation::nonnegative || atom.p.linear_coefficient(symbol) != sign) continue;
        const Polynomial end = sign > 0 ? Polynomial::symbol(symbol) - atom.p : atom.p + Polynomial::symbol(symbol);
        if (end.valid() && !facts.symbols().mentions(end, self)) return facts.substitute(p, {{symbol, end}});
      }
      return std::nullopt;
    };
    const bool rises = facts.entails_quickly({Atom::Relation::nonnegative, slope});
    const bool falls = !rises && facts.entails_quickly({Atom::Relation::nonnegative, -slope});
    for (const std::int64_t sign : {1, -1}) {
      if (sign > 0 ? falls : rises) continue;
      const std::optional<Polynomial> end = at_end(sign);
      if (!end || !least_is_nonnegative(*end, facts, ends - 1)) return false;
    }
    return true;
  }
  return false;
}

// Gives maxima that are decided their values.
void settle_maxima(Facts& facts) {
  for (const Atom& atom : facts.atoms())
    for (const SymbolId id : atom.p.symbols()) {
      const Symbol symbol = facts.symbols()[id];
      if (symbol.kind != Symbol::Kind::maximum) continue;
      for (const std::size_t larger : {0U, 1U}) {
        const Polynomial &a = symbol.arguments[larger], &b = symbol.arguments[1 - larger];
        if (!facts.entails_quickly(at_least(a, b))) continue;
        (void)facts.add(equal_to(Polynomial::symbol(id), a));
        break;
      }
    }
}

}  // namespace

// Set in the number of a tensor that stands for whether its integers are indices of an axis.
constexpr std::uint32_t indices_of_axes = 1U << 31;

SignSet Elaborator::sign_of_size(const Expression& e, Frame& frame) {
  if (!bound_in(frame.environment, e)) return {};
  SizeEvaluator evaluator(registry_.size_functions(), frame.environment, facts_, context_);
  const Sizes value = evaluator.value(e);
  if (evaluator.obstacle().any() || value.components.size() != 1) return {};
  const Polynomial& p = value.components[0];
  if (!p.valid()) return {};
  if (facts_.entails_quickly(at_least(p, 1), context_)) return SignSet::of(ArgumentDomain::positive);
  if (facts_.entails_quickly(at_least(p, 0), context_)) return SignSet::of(ArgumentDomain::nonnegative);
  if (facts_.entails_quickly(at_least(Polynomial(-1), p), context_)) return {true, false, false};
  return {};
}

// Of a real attribute: literals, attribute variables, sizes, and sums of products of these.
SignSet Elaborator::sign_of_form(const NormalForm& form) {
  SignSet sum = SignSet::of(0.0);
  for (const Term& term : form) {
    if (!term.bound.empty() || !term.guards.empty()) return {};
    SignSet product = SignSet::of(static_cast<double>(term.coefficient.numerator));
    for (const Factor& factor : term.factors) {
      SignSet base;
      if (factor.kind == Factor::Kind::literal) base = SignSet::of(factor.number);
      if (factor.kind == Factor::Kind::constant) base = declared_sign_of_attribute(typing_.rule(), factor.name);
      if (factor.kind == Factor::Kind::size) {
        const Polynomial p = Polynomial::symbol(factor.symbol);
        if (facts_.entails_quickly(at_least(p, 1))) base = SignSet::of(ArgumentDomain::positive);
      }
      if (factor.power < 0) base = both(base, SignSet::of(ArgumentDomain::nonzero));
      if (factor.power % 2 == 0) {
        base = base * base;
        base.negative = false;
      }
      product = product * base;
    }
    sum = sum + product;
  }
  return sum;
}

SignSet Elaborator::sign_of_attribute(const std::string& name, const Frame& frame) {
  SignSet result;
  for (const SizeStatement& statement : frame.node->definition->statements)
    if (statement.name.empty()) result = both(result, required_sign(statement.value, name));
  const auto attribute = frame.node->attributes.find(name);
  if (attribute == frame.node->attributes.end()) return result;
  return both(result, sign_of_form(attribute->second.real));
}

// Whether two expressions are one value: also where two operands are the same tensor.
bool Elaborator::same_value(const Expression& a, const Expression& b, const Frame& frame) {
  if (to_text(a) == to_text(b)) return true;
  if (a.kind != Kind::read || b.kind != Kind::read || frame.node->definition->variadic() || a.flat != b.flat ||
      a.piece != nullptr || b.piece != nullptr || a.fallback != nullptr || b.fallback != nullptr ||
      a.operands.size() != b.operands.size())
    return false;
  const auto operand = [&](const std::string& name) -> const PatternValue* {
    const std::vector<InputSpec>& inputs = frame.node->definition->inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].name == name) return &frame.node->inputs[i];
    return nullptr;
  };
  const PatternValue *x = operand(a.name), *y = operand(b.name);
  return x != nullptr && y != nullptr && x->is_variable == y->is_variable && x->index == y->index &&
         x->port == y->port &&
         std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(),
                    [](const Expression& i, const Expression& j) { return to_text(i) == to_text(j); });
}

SignSet Elaborator::sign(const Expression& e, Frame& frame) {
  if (obstacle_.any()) return {};
  if (e.sort == taso::Sort::integer) return sign_of_size(e, frame);
  switch (e.kind) {
    case Kind::real:
      return SignSet::of(e.real);
    case Kind::name:
      if (frame.parameter_signs != nullptr) return frame.parameter_signs->at(e.name);
      return sign_of_attribute(e.name, frame);
    case Kind::call:
      return sign_of_call(e, frame);
    case Kind::negate:
      return -sign(e.operands[0], frame);
    case Kind::add:
      return sign(e.operands[0], frame) + sign(e.operands[1], frame);
    case Kind::subtract:
      return sign(e.operands[0], frame) + -sign(e.operands[1], frame);
    case Kind::multiply: {
      SignSet product = sign(e.operands[0], frame) * sign(e.operands[1], frame);
      if (same_value(e.operands[0], e.operands[1], frame)) product.negative = false;
      return product;
    }
    case Kind::divide:
      return sign(e.operands[0], frame) * both(sign(e.operands[1], frame), SignSet::of(ArgumentDomain::nonzero));
    case Kind::conditional:
      return either(sign(e.operands[1], frame), sign(e.operands[2], frame));
    case Kind::read:
      return sign_of_read(e, frame);
    case Kind::valid:
      return SignSet::of(ArgumentDomain::nonnegative);
    case Kind::reduce:
      return sign_of_reduction(e, frame);
    default:
      return {};
  }
}

SignSet Elaborator::sign_of_call(const Expression& e, Frame& frame) {
  std::vector<SignSet> arguments;
  for (const Expression& operand : e.operands) arguments.push_back(sign(operand, frame));
  if (e.name == "max" || e.name == "min") {
    const bool least = e.name == "min";
    SignSet result = least ? -arguments[0] : arguments[0];
    for (std::size_t i = 1; i < arguments.size(); ++i) {
      const SignSet other = least ? -arguments[i] : arguments[i];
      // The larger is negative only if both are, and zero only if one is and the other is not above.
      const bool zero = (result.zero && (other.zero || other.negative)) || (other.zero && result.negative);
      result = {result.negative && other.negative, zero, result.positive || other.positive};
    }
    return least ? -result : result;
  }
  std::string name = e.name;
  if (frame.parameters == nullptr && frame.parameter_signs == nullptr &&
      frame.node->definition->find_attribute(e.name) != nullptr)
    name = frame.node->attributes.at(e.name).function;
  const FunctionDefinition* function = registry_.find_function(name);
  if (function == nullptr || static_cast<std::size_t>(function->arity) != arguments.size()) return {};
  if (!function->is_primitive()) {
    std::map<std::string, SignSet, std::less<>> signs;
    for (std::size_t i = 0; i < arguments.size(); ++i) signs.emplace(function->parameters[i], arguments[i]);
    Frame inner;
    inner.node = frame.node;
    inner.parameter_signs = &signs;
    const SignSet defined = ++depth_ > max_depth ? SignSet{} : sign(*function->definition, inner);
    --depth_;
    return defined;
  }
  // The domain of a function of two arguments depends on the second.
  if (function->arity == 1) arguments[0] = both(arguments[0], SignSet::of(function->domain));
  // Of a number: what the function makes of it.
  if (const std::optional<double> number = literal(e.operands[0]); number && function->real != nullptr) {
    const double value = function->real(*number);
    // 0 may be what is left of a small number: exp(-1000).
    if (!std::isfinite(value)) return {};
    if (value != 0) return SignSet::of(value);
  }
  SignSet result;
  if (function->zero_at_zero && function->monotone) result = {arguments[0].negative, true, arguments[0].positive};
  if (function->arity == 1 && !arguments[0].zero && has_square(*function)) result.zero = false;
  if (function->positive) result = both(result, SignSet::of(ArgumentDomain::positive));
  if (function->nonnegative) result = both(result, SignSet::of(ArgumentDomain::nonnegative));
  return result;
}

SignSet Elaborator::sign_of_reduction(const Expression& e, Frame& frame) {
  bool nonempty = true;
  for (const Expression::Range& range : e.ranges) {
    if (!bound_in(frame.environment, *range.extent)) {
      nonempty = false;
      continue;
    }
    SizeEvaluator evaluator(registry_.size_functions(), frame.environment, facts_, context_);
    const Sizes extents = evaluator.value(*range.extent);
    nonempty = nonempty && !evaluator.obstacle().any() &&
               std::all_of(extents.components.begin(), extents.components.end(), [&](const Polynomial& extent) {
                 return extent.valid() && facts_.entails_quickly(at_least(extent, 1), context_);
               });
  }
  const SignSet body = sign(e.operands[0], frame);
  if (e.name == "max" || e.name == "min") return body;  // of nothing it has no value
  if (e.name == "sum") {
    // Of several summands, as many as there may be.
    const SignSet sum = body + body;
    return nonempty ? either(body, sum) : either(SignSet::of(0.0), either(body, sum));
  }
  return body.negative ? SignSet{} : SignSet{false, body.zero, true};
}

SignSet Elaborator::sign_of_read(const Expression& e, Frame& frame) {
  SignSet result;
  const OperatorDefinition& definition = *frame.node->definition;
  const auto input = std::find_if(definition.inputs.begin(), definition.inputs.end(),
                                  [&](const InputSpec& spec) { return spec.name == e.name; });
  if (input != definition.inputs.end() && definition.variadic()) {
    result = {false, false, false};
    for (const PatternValue& value : frame.node->inputs) result = either(result, sign_of_value(value));
  } else if (input != definition.inputs.end()) {
    result = sign_of_value(frame.node->inputs[static_cast<std::size_t>(input - definition.inputs.begin())]);
  } else {
    result = sign_of_written(e.name, *frame.node);
  }
  if (e.fallback == nullptr) return result;
  const Expression& fallback = *e.fallback;
  // Infinity stands for nothing, in a maximum or minimum.
  const bool infinite =
      fallback.kind == Kind::infinity || (fallback.kind == Kind::negate && fallback.operands[0].kind == Kind::infinity);
  return infinite ? result : either(result, sign(fallback, frame));
}

SignSet Elaborator::sign_of_value(const PatternValue& value) {
  if (value.is_variable) return declared_sign(typing_.rule(), value.index);
  if (const auto known = node_signs_.find(value.index); known != node_signs_.end()) return known->second;
  const TypedNode& node = side_.nodes[value.index];
  // Of all its elements, wherever they are read: what holds around this read has no part in it.
  std::vector<Atom> context = std::exchange(context_, {});
  const SignSet result = sign_of_written("out", node);
  context_ = std::move(context);
  node_signs_.emplace(value.index, result);
  return result;
}

SignSet Elaborator::sign_of_written(const std::string& tensor, const TypedNode& node) {
  const IntermediateSpec* const intermediate = node.definition->find_intermediate(tensor);
  if (intermediate != nullptr && intermediate->recurrence) return {};
  SignSet result{false, false, false};
  Frame frame;
  frame.node = &node;
  frame.environment = node.environment;
  for (const Equation& equation : node.definition->equations) {
    if (equation.target != tensor) continue;
    result = either(result, ++depth_ > max_depth ? SignSet{} : sign(equation.value, frame));
    --depth_;
  }
  return result;
}

void Elaborator::oblige(ArgumentDomain domain, const NormalForm& value, SignSet sign, const Expression& e,
                        std::optional<Polynomial> size, const std::optional<NormalForm>& call) {
  if (obstacle_.any() || sign.within(domain)) return;
  // A number decides for itself; a division by zero is a problem of the builder.
  if (value.size() == 1 && value[0].factors.empty() && value[0].bound.empty() && value[0].guards.empty() &&
      SignSet::of(static_cast<double>(value[0].coefficient.numerator)).within(domain))
    return;
  Obligation obligation;
  obligation.domain = domain;
  obligation.element = {scope_, guards_, value};
  obligation.known = context_;
  obligation.size = std::move(size);
  obligation.what = to_text(e);
  if (call) obligation.call = Element{scope_, guards_, *call};
  add(std::move(obligation));
}

void Elaborator::oblige_elements(const std::vector<SymbolId>& bound, const std::vector<Atom>& guards, std::size_t box,
                                 const Expression& e, const NormalForm& extremum) {
  // Most ranges have a first element, and it takes part.
  Facts::Replacement first;
  for (const SymbolId symbol : bound) first.emplace_back(symbol, Polynomial(0));
  std::vector<Atom> left;
  for (const Atom& guard : guards) {
    const Atom there{guard.relation, facts_.substitute(guard.p, first)};
    if (!facts_.entails_quickly(there, context_)) left.push_back(there);
  }
  if (left.empty()) return;
  Obligation obligation;
  obligation.domain = ArgumentDomain::positive;
  obligation.known = context_;
  obligation.counts = true;
  obligation.call = Element{scope_, guards_, extremum};
  if (box < guards.size()) {
    obligation.what = "the number of elements of " + to_text(e);
    obligation.element = {scope_, guards_, builder_.summed(builder_.number(1), bound, guards)};
    add(std::move(obligation));
    return;
  }
  // A range from 0: what is left is that its extent is at least 1.
  for (const Atom& guard : left) {
    obligation.what = "an extent of " + to_text(e);
    obligation.size = guard.p + 1;
    obligation.element = {scope_, guards_, builder_.size(*obligation.size)};
    add(obligation);
  }
}

void Elaborator::oblige_index(std::uint32_t tensor, const std::vector<Polynomial>& arguments, const Expression& e) {
  // Told from elements by the number of the tensor. An axis of extent 1 has indices, too, that are none of its.
  Factor factor;
  factor.kind = Factor::Kind::read;
  factor.tensor = indices_of_axes | tensor;
  factor.indices = arguments;
  oblige_defined(builder_.factor(std::move(factor)), "the slice that " + to_text(e) + " names");
}

void Elaborator::oblige_inside(const Atom& inside, const Expression& e) {
  // Operators are looked at as wholes, once.
  if (!only_places_ || facts_.entails_quickly(inside, context_)) return;
  Facts here = facts_;
  for (const Atom& atom : context_)
    if (!here.add(atom)) return;  // nothing is read
  settle_maxima(here);
  if (least_is_nonnegative(here.reduce(inside.p), here, most_ends)) return;
  Obligation obligation;
  obligation.domain = ArgumentDomain::nonnegative;
  obligation.of_place = true;
  obligation.size = facts_.reduce(inside.p);
  obligation.element = {scope_, guards_, builder_.size(*obligation.size)};
  obligation.known = context_;
  obligation.what = "the distance of " + to_text(e) + " from the edge";
  add(std::move(obligation));
}

void Elaborator::oblige_defined(const NormalForm& value, const std::string& what) {
  Obligation obligation;
  obligation.domain = ArgumentDomain::all;
  obligation.element = {scope_, guards_, value};
  obligation.known = context_;
  obligation.what = what;
  add(std::move(obligation));
}

void Elaborator::add(Obligation obligation) {
  if (only_places_ && !obligation.of_place) return;
  const bool known = std::any_of(obligations_.begin(), obligations_.end(), [&](const Obligation& other) {
    return other.domain == obligation.domain && other.element == obligation.element && other.call == obligation.call;
  });
  if (!known) obligations_.push_back(std::move(obligation));
}

}  // namespace taso::unbounded
