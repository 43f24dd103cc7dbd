#include "verifier/unbounded/symbolic_types.h"

#include <algorithm>
#include <functional>

#include "operators/rank_range.h"
#include "operators/size_solver.h"
#include "operators/unparse.h"

namespace taso::unbounded {
namespace {

using Kind = Expression::Kind;
using AttributeForm = AttributeExpression::Kind;

const std::vector<Atom> no_context;

// Expressions of attributes: the variables that stand alone or in a list are bound there.
void note_bindings(const AttributeExpression& e, const AttributeSpec& spec, VariableKinds& kinds) {
  if (e.kind == AttributeForm::variable) {
    kinds.attributes[e.index] = spec.kind;
    if (spec.kind == AttributeKind::integers && spec.length && spec.length->kind == Kind::integer)
      kinds.lengths[e.index] = static_cast<std::size_t>(spec.length->integer);
  } else if (e.kind == AttributeForm::list) {
    for (const AttributeExpression& operand : e.operands)
      if (operand.kind == AttributeForm::variable) kinds.attributes[operand.index] = AttributeKind::integer;
  }
}

// Extents that are spoken of exist.
void note_dimensions(const AttributeExpression& e, VariableKinds& kinds) {
  if (e.kind == AttributeForm::dimension && e.operands.empty() && e.axis < 0)
    kinds.least_rank[e.index] = std::max(kinds.least_rank[e.index], static_cast<std::size_t>(-e.axis));
  for (const AttributeExpression& operand : e.operands) note_dimensions(operand, kinds);
}

}  // namespace

VariableKinds kinds_of_variables(const OperatorRegistry& registry, const Substitution& rule) {
  VariableKinds kinds;
  kinds.attributes.assign(rule.attribute_variables.size(), AttributeKind::integer);
  kinds.lengths.resize(rule.attribute_variables.size());
  kinds.integers.assign(rule.tensor_variables.size(), false);
  kinds.least_rank.assign(rule.tensor_variables.size(), 0);
  kinds.only_rank.resize(rule.tensor_variables.size());
  for (const Pattern* pattern : {&rule.target, &rule.source})
    for (const PatternNode& node : pattern->nodes) {
      const OperatorDefinition* definition = registry.find(node.op);
      if (definition == nullptr) continue;
      for (const auto& [name, value] : node.attributes) {
        if (const AttributeSpec* spec = definition->find_attribute(name)) note_bindings(value, *spec, kinds);
        note_dimensions(value, kinds);
      }
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (!node.inputs[i].is_variable) continue;
        const std::size_t position = definition->variadic() ? 0 : i;
        if (position >= definition->inputs.size()) continue;
        const InputSpec& input = definition->inputs[position];
        const std::uint32_t tensor = node.inputs[i].index;
        if (input.integers()) kinds.integers[tensor] = true;
        const RankRange ranks = rank_range(input.axes);
        kinds.least_rank[tensor] = std::max(kinds.least_rank[tensor], ranks.least);
        if (ranks.only) kinds.only_rank[tensor] = ranks.least;
      }
    }
  for (const Condition& condition : rule.conditions) {
    note_dimensions(condition.left, kinds);
    note_dimensions(condition.right, kinds);
    if (condition.relation != Condition::Relation::equal) continue;
    for (const auto& [rank, number] :
         {std::pair(&condition.left, &condition.right), std::pair(&condition.right, &condition.left)})
      if (rank->kind == AttributeForm::rank && number->kind == AttributeForm::literal)
        if (const auto* value = std::get_if<std::int64_t>(&number->literal); value != nullptr && *value >= 0)
          if (!kinds.only_rank[rank->index]) kinds.only_rank[rank->index] = static_cast<std::size_t>(*value);
  }
  return kinds;
}

std::string to_string(const Symbols& symbols, const Atom& atom) {
  // Positive summands left, negative ones right.
  Polynomial left, right;
  for (const auto& [monomial, coefficient] : atom.p.terms()) {
    if (coefficient > 0)
      left = left + Polynomial::term(monomial, coefficient);
    else
      right = right - Polynomial::term(monomial, coefficient);
  }
  return symbols.to_string(left) + (atom.relation == Atom::Relation::zero ? " == " : " >= ") + symbols.to_string(right);
}

std::string to_string(const Symbols& symbols, const TargetCondition& condition) {
  switch (condition.kind) {
    case TargetCondition::Kind::relation:
      return to_string(symbols, condition.atom);
    case TargetCondition::Kind::multiple:
      return symbols.to_string(condition.extent) + " is a multiple of " + symbols.to_string(condition.divisor);
    case TargetCondition::Kind::requirement:
      return condition.what;
  }
  return "?";
}

Typing::Typing(const OperatorRegistry& registry, const Substitution& rule, const VariableKinds& kinds, Facts& facts,
               const Assumptions& assumptions)
    : registry_(registry), rule_(rule), kinds_(kinds), facts_(facts), assumptions_(assumptions), builder_(facts) {}

void Typing::note_requirement(const std::string& what) {
  if (in_target_) target_conditions_.push_back({.kind = TargetCondition::Kind::requirement, .what = what});
}

void Typing::unsupported(const std::string& reason) {
  if (obstacle_.any()) return;
  obstacle_.kind = Obstacle::Kind::unsupported;
  obstacle_.reason = reason;
}

void Typing::ill_typed() {
  if (!obstacle_.any()) obstacle_.kind = Obstacle::Kind::ill_typed;
}

bool Typing::assume(const Atom& atom) {
  const Atom reduced = facts_.reduce(atom);
  if (const auto constant = reduced.p.constant()) {
    if (atom.relation == Atom::Relation::zero ? *constant == 0 : *constant >= 0) return true;
    ill_typed();
    return false;
  }
  if (in_target_ && !facts_.entails_quickly(reduced)) {
    target_places_.push_back(target_conditions_.size());
    target_conditions_.push_back({.kind = TargetCondition::Kind::relation, .atom = reduced});
    target_atoms_.push_back(reduced);
  }
  if (facts_.add(atom)) return true;
  ill_typed();
  return false;
}

std::optional<std::vector<std::vector<Atom>>> Typing::possible(const Alternatives& alternatives) {
  std::vector<std::vector<Atom>> result;
  for (const std::vector<Atom>& atoms : alternatives.yes) {
    if (alternatives.yes.size() > 1) {
      if (std::all_of(atoms.begin(), atoms.end(), [&](const Atom& atom) { return facts_.entails_quickly(atom); }))
        return std::nullopt;
      if (facts_.contradictory_quickly(atoms)) continue;
    }
    result.push_back(atoms);
  }
  return result;
}

// One of several conjunctions: those that contradict the facts are out; if several are left, that is for later.
bool Typing::assume(const Alternatives& alternatives, const std::string& what) {
  const auto left = possible(alternatives);
  if (!left) return true;
  if (left->empty()) {
    ill_typed();
    return false;
  }
  if (left->size() > 1) {
    note_requirement(what);
    pending_.emplace_back(alternatives, what);
    return true;
  }
  for (const Atom& atom : (*left)[0])
    if (!assume(atom)) return false;
  return true;
}

bool Typing::decide_pending() {
  for (bool progress = true; progress;) {
    progress = false;
    for (const auto& [alternatives, what] : pending_) {
      const auto left = possible(alternatives);
      if (!left) continue;
      if (left->empty()) {
        ill_typed();
        return false;
      }
      if (left->size() > 1) continue;
      for (const Atom& atom : (*left)[0]) {
        if (facts_.entails_quickly(atom)) continue;
        progress = true;
        if (!assume(atom)) return false;
      }
    }
  }
  for (const auto& [alternatives, what] : pending_) {
    auto left = possible(alternatives);
    if (!left || left->size() < 2) continue;
    obstacle_.kind = Obstacle::Kind::alternatives;
    obstacle_.alternatives = std::move(*left);
    obstacle_.reason = what;
    return false;
  }
  return true;
}

const std::vector<Polynomial>& Typing::shape(const TypedSide& side, const PatternValue& value) const {
  return value.is_variable ? shapes_[value.index] : side.nodes[value.index].outputs[value.port];
}

bool Typing::variables() {
  for (const Atom& atom : assumptions_.atoms)
    if (!facts_.add(atom)) {
      ill_typed();
      return false;
    }
  shapes_.resize(rule_.tensor_variables.size());
  ranked_.resize(shapes_.size(), false);
  return true;
}

bool Typing::ranked(std::uint32_t v) {
  if (ranked_[v]) return true;
  if (obstacle_.any()) return false;
  const std::optional<std::size_t> rank = assumptions_.ranks[v];
  if (!rank) {
    obstacle_.kind = Obstacle::Kind::rank;
    obstacle_.variable = v;
    return false;
  }
  ranked_[v] = true;
  for (std::size_t axis = 0; axis < *rank; ++axis) {
    const std::string name = "dim(" + rule_.tensor_variables[v] + ", " +
                             std::to_string(static_cast<std::int64_t>(axis) - static_cast<std::int64_t>(*rank)) + ")";
    const SymbolId id = facts_.symbols().named(Symbol::Kind::extent, name, name);
    facts_.symbols().place(id, v, static_cast<std::int64_t>(axis) - static_cast<std::int64_t>(*rank));
    const Polynomial extent = Polynomial::symbol(id);
    // No axis is empty: a tensor without elements is not what a rule is about.
    if (!facts_.add(at_least(extent, 1))) {
      ill_typed();
      return false;
    }
    shapes_[v].push_back(facts_.reduce(extent));
  }
  return true;
}

AttributeTerm Typing::variable(std::uint32_t index) {
  AttributeTerm term;
  term.kind = kinds_.attributes[index];
  const std::string& name = rule_.attribute_variables[index];
  switch (term.kind) {
    case AttributeKind::integer:
      term.sizes = Sizes::of(Polynomial::symbol(facts_.symbols().named(Symbol::Kind::attribute, name, name)));
      facts_.symbols().place(*term.sizes.components[0].as_symbol(), index, -1);
      break;
    case AttributeKind::integers: {
      const std::optional<std::size_t> length =
          kinds_.lengths[index] ? kinds_.lengths[index] : assumptions_.lengths[index];
      term.sizes.vector = true;
      if (!length) {
        if (!obstacle_.any()) {
          obstacle_.kind = Obstacle::Kind::length;
          obstacle_.variable = index;
        }
        break;
      }
      for (std::size_t i = 0; i < *length; ++i) {
        const std::string element = name + "[" + std::to_string(i) + "]";
        term.sizes.components.push_back(
            Polynomial::symbol(facts_.symbols().named(Symbol::Kind::attribute, element, element)));
        facts_.symbols().place(*term.sizes.components[i].as_symbol(), index, static_cast<std::int64_t>(i));
      }
      break;
    }
    case AttributeKind::real: {
      Factor factor;
      factor.kind = Factor::Kind::constant;
      factor.name = name;
      term.real = builder_.factor(std::move(factor));
      break;
    }
    case AttributeKind::symbol:
      term.function = "?" + name;
      break;
  }
  return term;
}

AttributeTerm Typing::arithmetic(const AttributeExpression& e) {
  AttributeTerm left = evaluate(e.operands[0]), right = evaluate(e.operands[1]);
  AttributeTerm result;
  if (obstacle_.any()) return result;
  const std::optional<AttributeKind> kind = kind_of_arithmetic(e.kind, left.kind, right.kind);
  if (!kind) {
    ill_typed();
    return result;
  }
  result.kind = *kind;
  if (result.kind == AttributeKind::real) {
    for (AttributeTerm* side : {&left, &right})
      if (side->kind == AttributeKind::integer) side->real = builder_.size(side->sizes.components[0]);
    if (e.kind == AttributeForm::multiply)
      result.real = builder_.multiply(left.real, right.real);
    else
      result.real = builder_.add(left.real, e.kind == AttributeForm::add ? right.real : builder_.negate(right.real));
    return result;
  }
  result.sizes.vector = result.kind == AttributeKind::integers;
  const auto &a = left.sizes.components, &b = right.sizes.components;
  if (left.sizes.vector && right.sizes.vector && a.size() != b.size()) {
    ill_typed();
    return result;
  }
  const std::size_t length = left.sizes.vector ? a.size() : b.size();
  for (std::size_t i = 0; i < length; ++i) {
    const Polynomial &x = a[left.sizes.vector ? i : 0], &y = b[right.sizes.vector ? i : 0];
    if (e.kind == AttributeForm::add) {
      result.sizes.components.push_back(x + y);
    } else if (e.kind == AttributeForm::subtract) {
      result.sizes.components.push_back(x - y);
    } else if (e.kind == AttributeForm::multiply) {
      result.sizes.components.push_back(x * y);
    } else {
      const std::optional<Polynomial> quotient = facts_.divide(x, y);
      if (!quotient) unsupported("a divisor in an attribute is not known to be positive");
      result.sizes.components.push_back(quotient.value_or(Polynomial::invalid()));
    }
  }
  return result;
}

AttributeTerm Typing::evaluate(const AttributeExpression& e, AttributeKind wanted) {
  AttributeTerm result = evaluate(e);
  if (obstacle_.any() || wanted != AttributeKind::real || result.kind != AttributeKind::integer) return result;
  result.kind = AttributeKind::real;
  result.real = builder_.size(result.sizes.components[0]);
  if (!builder_.problem().empty()) unsupported(builder_.problem());
  return result;
}

AttributeTerm Typing::evaluate(const AttributeExpression& e) {
  AttributeTerm result;
  auto axis_of = [&](const AttributeExpression& dimension, std::size_t rank) -> std::optional<std::size_t> {
    std::int64_t axis = dimension.axis;
    const auto extent = static_cast<std::int64_t>(rank);
    if (!dimension.operands.empty()) {
      const AttributeTerm term = evaluate(dimension.operands[0]);
      if (obstacle_.any()) return std::nullopt;
      if (term.kind != AttributeKind::integer) {
        ill_typed();
        return std::nullopt;
      }
      const SizeEnvironment empty;
      SizeEvaluator evaluator(registry_.size_functions(), empty, facts_, no_context);
      Expression where;
      where.kind = Kind::name;
      where.name = "the axis of a dim";
      axis = evaluator.domain().number_within(term.sizes.components[0], -extent, -1, where).value_or(-1);
      if (evaluator.obstacle().any()) {
        obstacle_ = evaluator.obstacle();
        return std::nullopt;
      }
    }
    if (axis >= 0 || axis < -extent) {
      ill_typed();
      return std::nullopt;
    }
    return static_cast<std::size_t>(axis + extent);
  };
  switch (e.kind) {
    case AttributeForm::literal:
      if (const auto* integer = std::get_if<std::int64_t>(&e.literal)) {
        result.sizes = Sizes::of(Polynomial(*integer));
      } else if (const auto* real = std::get_if<double>(&e.literal)) {
        result.kind = AttributeKind::real;
        result.real = builder_.number(*real);
      } else if (const auto* list = std::get_if<std::vector<std::int64_t>>(&e.literal)) {
        result.kind = AttributeKind::integers;
        result.sizes.vector = true;
        for (const std::int64_t element : *list) result.sizes.components.emplace_back(element);
      } else {
        result.kind = AttributeKind::symbol;
        result.function = std::get<SymbolValue>(e.literal).name;
      }
      break;
    case AttributeForm::variable:
      result = variable(e.index);
      break;
    case AttributeForm::dimension: {
      if (!ranked(e.index)) return result;
      const std::optional<std::size_t> axis = axis_of(e, shapes_[e.index].size());
      result.sizes = Sizes::of(axis ? shapes_[e.index][*axis] : Polynomial::invalid());
      break;
    }
    case AttributeForm::rank:
      if (!ranked(e.index)) return result;
      result.sizes = Sizes::of(Polynomial(static_cast<std::int64_t>(shapes_[e.index].size())));
      break;
    case AttributeForm::length: {
      const AttributeTerm list = evaluate(e.operands[0]);
      if (obstacle_.any()) return result;
      if (list.kind != AttributeKind::integers) {
        ill_typed();
        return result;
      }
      result.sizes = Sizes::of(Polynomial(static_cast<std::int64_t>(list.sizes.components.size())));
      break;
    }
    case AttributeForm::elements:
      unsupported("the elements of a tensor in an attribute");
      return result;
    case AttributeForm::list:
      result.kind = AttributeKind::integers;
      result.sizes.vector = true;
      for (const AttributeExpression& operand : e.operands) {
        const AttributeTerm element = evaluate(operand);
        if (obstacle_.any()) return result;
        if (element.kind != AttributeKind::integer) {
          ill_typed();
          return result;
        }
        result.sizes.components.push_back(element.sizes.components[0]);
      }
      break;
    case AttributeForm::element: {
      const AttributeTerm list = evaluate(e.operands[0]);
      if (obstacle_.any()) return result;
      const auto length = static_cast<std::int64_t>(list.sizes.components.size());
      const std::int64_t place = e.axis < 0 ? length + e.axis : e.axis;
      if (list.kind != AttributeKind::integers || place < 0 || place >= length) {
        ill_typed();
        return result;
      }
      result.sizes = Sizes::of(list.sizes.components[static_cast<std::size_t>(place)]);
      break;
    }
    case AttributeForm::add:
    case AttributeForm::subtract:
    case AttributeForm::multiply:
    case AttributeForm::floor_divide:
      result = arithmetic(e);
      break;
  }
  if (obstacle_.any()) return result;
  if (!builder_.problem().empty()) unsupported(builder_.problem());
  return result;
}

// Finds the types of one application; what must hold is assumed.
class Typing::Solver : public SizeSolver<Typing::Solver, SizeEvaluator, std::vector<Polynomial>> {
 public:
  Solver(Typing& typing, const TypedSide& side, TypedNode& node, std::string key)
      : SizeSolver(*node.definition, typing.registry_.size_functions(), node.environment, typing.facts_, no_context),
        typing_(typing),
        side_(side),
        facts_(typing.facts_),
        node_(node),
        key_(std::move(key)) {}

  bool run() {
    for (const AttributeSpec& attribute : definition_.attributes) {
      const auto found = node_.attributes.find(attribute.name);
      if (found == node_.attributes.end()) {
        typing_.unsupported(definition_.name + " without " + attribute.name);
        return false;
      }
      if (found->second.kind != attribute.kind) return fail();
      if (attribute.kind == AttributeKind::integer || attribute.kind == AttributeKind::integers)
        scope_.bind(attribute.name, found->second.sizes);
    }
    return arguments() && solve_sizes() && check_lengths() && statements() && output_shapes();
  }

 private:
  friend SizeSolver;

  bool fail() {
    typing_.ill_typed();
    return false;
  }

  bool arguments() {
    std::vector<const Shape*> shapes;
    for (const Shape& shape : node_.input_shapes) shapes.push_back(&shape);
    if (!set_arguments(shapes)) return fail();
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      const bool holds_integers = typing_.integers(side_, node_.inputs[i]);
      node_.integers = node_.integers || (definition_.signature.copies && holds_integers);
      if (arguments_[i].spec->integers() != holds_integers && !node_.integers) return fail();
    }
    return true;
  }

  // Assumes a requirement whose names are known.
  bool assume_requirement(const SizeStatement& statement) {
    const std::vector<Alternatives> parts = evaluator_.requirements(statement.value);
    if (!evaluated(statement.constraint)) return false;
    for (const Alternatives& part : parts)
      if (!typing_.assume(part, text(statement))) return false;
    return true;
  }

  // Assumes what is required of integer attributes alone, which holds wherever the operator applies.
  bool attribute_requirements() {
    for (const SizeStatement& statement : definition_.statements)
      if (statement.name.empty() && statement.value.kind != Kind::not_equal && !statement.value.speaks_of_reals() &&
          computable(statement.value) && !assume_requirement(statement))
        return false;
    return true;
  }

  [[nodiscard]] std::string text(const SizeStatement& statement) const {
    return definition_.name + ": " + statement.message;
  }

  // A symbol for extent // product, without remainder; `name` of the definition is what it stands for.
  std::optional<Polynomial> factor_of(const Polynomial& extent, const Polynomial& product, const std::string& name) {
    Symbols& symbols = facts_.symbols();
    const std::string text = "(" + symbols.to_string(extent) + " // " + symbols.to_string(product) + ")";
    const Polynomial factor =
        Polynomial::symbol(symbols.named(Symbol::Kind::factor, key_ + "." + name + " " + text, text));
    if (!factor.valid()) {
      typing_.unsupported("so many symbols");
      return std::nullopt;
    }
    if (typing_.in_target_)
      typing_.target_conditions_.push_back(
          {.kind = TargetCondition::Kind::multiple, .extent = extent, .divisor = product});
    const bool in_target = std::exchange(typing_.in_target_, false);
    // An extent is not negative; as no axis is empty, a factor is positive.
    const bool positive = facts_.entails_quickly(at_least(extent, 1));
    const bool held =
        typing_.assume(at_least(factor, positive ? 1 : 0)) && typing_.assume(equal_to(extent, factor * product));
    typing_.in_target_ = in_target;
    if (!held) return std::nullopt;
    typing_.factors_.push_back({*factor.as_symbol(), extent, product});
    return factor;
  }

  // ---- the hooks of SizeSolver ----

  // Whether the evaluator met no obstacle; passes it on.
  bool evaluated(int /*constraint*/) {
    if (!evaluator_.obstacle().any()) return true;
    if (!typing_.obstacle_.any()) typing_.obstacle_ = evaluator_.obstacle();
    return false;
  }

  bool rank_differs(const Argument& /*argument*/, std::int64_t /*covered*/, bool /*at_least*/) { return fail(); }

  bool equal_rests(const Argument& argument, std::size_t entry, const Sizes& value) {
    const std::span<const Polynomial> extents = argument.extents(entry);
    const Sizes expected = value;
    if (expected.components.size() != extents.size()) return fail();
    for (std::size_t i = 0; i < extents.size(); ++i)
      if (!typing_.assume(equal_to(extents[i], expected.components[i]))) return false;
    return true;
  }

  bool equal_extents(const Argument& argument, std::size_t entry, const Polynomial& expected) {
    return typing_.assume(equal_to(argument.extents(entry)[0], expected));
  }

  // A factor is found by division; the others are extents, so positive where they are not zero, or attributes, of which
  // the requirements tell.
  std::optional<Polynomial> quotient(const Argument& argument, std::size_t entry, Polynomial product,
                                     const Expression& unknown) {
    product = facts_.reduce(product);
    if (!facts_.entails_quickly(at_least(product, 0)) && !attribute_requirements()) return std::nullopt;
    if (!facts_.entails_quickly(at_least(product, 0))) {
      typing_.unsupported("a factor of an axis of " + definition_.name + " that may be negative");
      return std::nullopt;
    }
    if (!typing_.assume(at_least(product, 1))) return std::nullopt;
    const Polynomial extent = facts_.reduce(argument.extents(entry)[0]);
    if (auto exact = Polynomial::exact_quotient(extent, product)) return exact;
    // A positive divisor leaves one quotient: that of an operator before.
    for (const FactorOfAxis& other : typing_.factors_)
      if (facts_.reduce(other.product) == product && facts_.reduce(other.extent) == extent)
        return facts_.reduce(Polynomial::symbol(other.symbol));
    return factor_of(extent, product, unknown.name);
  }

  bool equal_lengths(const AttributeSpec& /*attribute*/, std::int64_t length, const Polynomial& expected) {
    return typing_.assume(equal_to(expected, Polynomial(length)));
  }

  bool require(const SizeStatement& statement) {
    if (statement.value.speaks_of_reals()) {
      // A requirement on real attributes is not used; that the target's must hold is for the one who applies the rule.
      typing_.note_requirement(text(statement));
      return true;
    }
    if (statement.value.kind != Kind::not_equal) return assume_requirement(statement);
    // Inequality in both directions is of no use as a hypothesis; the target's is for the one who applies the rule.
    const std::vector<Alternatives> parts = evaluator_.requirements(statement.value);
    if (!evaluated(statement.constraint)) return false;
    for (const Alternatives& part : parts) {
      if (part.yes.empty()) return fail();
      if (!part.no.empty()) typing_.note_requirement(text(statement));
    }
    return true;
  }

  bool output(Shape shape) {
    for (const Polynomial& extent : shape)
      if (!typing_.assume(at_least(extent, 0))) return false;
    node_.outputs.push_back(std::move(shape));
    return true;
  }

  Typing& typing_;
  const TypedSide& side_;
  Facts& facts_;
  TypedNode& node_;
  std::string key_;
};

bool Typing::side(const Pattern& pattern, TypedSide& typed, const std::string& name) {
  typed.pattern = &pattern;
  for (std::size_t n = 0; n < pattern.nodes.size(); ++n) {
    const PatternNode& node = pattern.nodes[n];
    // What the source applies as well is well-typed already.
    if (in_target_) {
      const PatternValue here{false, static_cast<std::uint32_t>(n), 0};
      const auto known = std::find_if(source_.nodes.begin(), source_.nodes.end(), [&](const TypedNode& other) {
        const PatternValue there{false, static_cast<std::uint32_t>(&other - source_.nodes.data()), 0};
        return same_term(pattern, here, rule_.source, there);
      });
      if (known != source_.nodes.end()) {
        typed.nodes.push_back(*known);
        typed.nodes.back().inputs = node.inputs;
        continue;
      }
    }
    TypedNode result;
    result.definition = registry_.find(node.op);
    if (result.definition == nullptr) {
      unsupported("the operator " + node.op);
      return false;
    }
    result.inputs = node.inputs;
    for (const PatternValue& input : node.inputs) {
      if (input.is_variable && !ranked(input.index)) return false;
      if (!input.is_variable && input.port >= typed.nodes[input.index].outputs.size()) {
        ill_typed();
        return false;
      }
      std::vector<Polynomial> shape_of_input = shape(typed, input);
      for (Polynomial& extent : shape_of_input) extent = facts_.reduce(extent);
      result.input_shapes.push_back(std::move(shape_of_input));
    }
    for (const auto& [attribute, value] : node.attributes) {
      const AttributeSpec* spec = result.definition->find_attribute(attribute);
      if (spec == nullptr) continue;
      result.attributes[attribute] = evaluate(value, spec->kind);
      if (obstacle_.any()) return false;
    }
    typed.nodes.push_back(std::move(result));
    if (!Solver(*this, typed, typed.nodes.back(), name + std::to_string(n)).run()) return false;
  }
  return true;
}

bool Typing::conditions() {
  std::vector<Condition> all = rule_.conditions;
  all.insert(all.end(), extra_.begin(), extra_.end());
  for (const Condition& condition : all) {
    // What is asked of values says nothing of types.
    if (!condition.compares()) continue;
    const AttributeTerm left = evaluate(condition.left);
    const AttributeTerm right = evaluate(condition.right);
    if (obstacle_.any()) return false;
    auto whole = [](const AttributeTerm& term) {
      return term.kind == AttributeKind::integer || term.kind == AttributeKind::integers;
    };
    // What is computed from reals is rounded where conditions are decided, and says little of the numbers themselves.
    auto computed = [](const AttributeExpression& e) {
      return e.kind == AttributeForm::add || e.kind == AttributeForm::subtract || e.kind == AttributeForm::multiply;
    };
    if ((left.kind == AttributeKind::real || right.kind == AttributeKind::real) && !computed(condition.left) &&
        !computed(condition.right)) {
      auto real = [&](const AttributeTerm& term) -> std::optional<NormalForm> {
        if (term.kind == AttributeKind::real) return term.real;
        if (term.kind == AttributeKind::integer) return builder_.size(term.sizes.components[0]);
        return std::nullopt;
      };
      const auto low = real(left), high = real(right);
      if (low && high) {
        NormalForm difference = builder_.add(*high, builder_.negate(*low));
        if (builder_.problem().empty()) real_conditions_.push_back({condition.relation, std::move(difference)});
      }
      // What cannot be said in the form is not used: without it the claim is only stronger.
      if (!builder_.problem().empty()) builder_ = FormBuilder(facts_);
    }
    // Conditions on functions are not used, either.
    if (!whole(left) || !whole(right)) continue;
    const bool ordered =
        condition.relation == Condition::Relation::less || condition.relation == Condition::Relation::less_equal;
    const auto &a = left.sizes, &b = right.sizes;
    if (a.vector != b.vector && !ordered) {
      // A list and a number are different.
      if (condition.relation == Condition::Relation::not_equal) continue;
      ill_typed();
      return false;
    }
    if (a.vector && b.vector && a.components.size() != b.components.size()) {
      if (condition.relation == Condition::Relation::not_equal) continue;
      ill_typed();
      return false;
    }
    const std::size_t length = a.vector ? a.components.size() : b.components.size();
    Alternatives alternatives = Alternatives::known(true);
    for (std::size_t i = 0; i < length; ++i) {
      const Polynomial x = facts_.reduce(a.components[a.vector ? i : 0]);
      const Polynomial y = facts_.reduce(b.components[b.vector ? i : 0]);
      if (condition.relation == Condition::Relation::equal && !divisible(x - y)) return false;
      Atom atom = equal_to(x, y);
      if (condition.relation == Condition::Relation::less) atom = less_than(x, y);
      if (condition.relation == Condition::Relation::less_equal) atom = at_least(y, x);
      alternatives = Alternatives::both(alternatives, Alternatives::of(atom));
    }
    if (condition.relation == Condition::Relation::not_equal) alternatives = alternatives.negated();
    if (!assume(alternatives, "a condition")) return false;
  }
  return true;
}

// An extent of which a condition says that it is a multiple is the product with a symbol.
bool Typing::divisible(const Polynomial& difference) {
  Symbols& symbols = facts_.symbols();
  for (const SymbolId id : difference.symbols()) {
    if (symbols[id].kind != Symbol::Kind::quotient) continue;
    const Polynomial extent = symbols[id].arguments[0], divisor = symbols[id].arguments[1];
    const Polynomial remainder = extent - Polynomial::symbol(id) * divisor;
    if (!extent.as_symbol() || (difference != remainder && difference != -remainder)) continue;
    const std::string name = "(" + symbols.to_string(extent) + " // " + symbols.to_string(divisor) + ")";
    const Polynomial factor = Polynomial::symbol(symbols.named(Symbol::Kind::factor, "condition " + name, name));
    if (!factor.valid() || !facts_.entails_quickly(at_least(extent, 0))) return true;  // the condition says it, too
    factors_.push_back({*factor.as_symbol(), extent, divisor});
    return assume(at_least(factor, facts_.entails_quickly(at_least(extent, 1)) ? 1 : 0)) &&
           assume(equal_to(extent, factor * divisor));
  }
  return true;
}

bool Typing::outputs() {
  for (std::size_t i = 0; i < rule_.source.outputs.size(); ++i) {
    const PatternValue &left = rule_.source.outputs[i], &right = rule_.target.outputs[i];
    for (const PatternValue* value : {&left, &right})
      if (value->is_variable && !ranked(value->index)) return false;
    for (const auto& [value, side] : {std::pair(&left, &source_), std::pair(&right, &target_)})
      if (!value->is_variable && value->port >= side->nodes[value->index].outputs.size()) {
        ill_typed();
        return false;
      }
    const std::vector<Polynomial> a = shape(source_, left), b = shape(target_, right);
    if (a.size() != b.size()) {
      ill_typed();
      return false;
    }
    for (std::size_t axis = 0; axis < a.size(); ++axis)
      if (!assume(equal_to(a[axis], b[axis]))) return false;
  }
  return true;
}

Obstacle Typing::run() {
  if (!variables() || !side(rule_.source, source_, "s")) return obstacle_;
  if (!conditions()) return obstacle_;
  const Facts before = facts_;
  in_target_ = true;
  if (!side(rule_.target, target_, "t") || !outputs()) return obstacle_;
  for (std::uint32_t v = 0; v < shapes_.size(); ++v)
    if (!ranked(v)) return obstacle_;
  if (!decide_pending()) return obstacle_;
  in_target_ = false;
  drop_implied(before);
  return obstacle_;
}

// What was assumed first may follow from what came later: equal products of extents from equal extents.
void Typing::drop_implied(const Facts& before) {
  for (std::size_t i = 0; i + 1 < target_atoms_.size();) {
    Facts others = before;
    bool consistent = true;
    for (std::size_t j = 0; j < target_atoms_.size() && consistent; ++j)
      if (j != i) consistent = others.add(others.reduce(target_atoms_[j]));
    if (!consistent || !others.entails_quickly(others.reduce(target_atoms_[i]))) {
      ++i;
      continue;
    }
    const std::size_t place = target_places_[i];
    target_conditions_.erase(target_conditions_.begin() + static_cast<std::ptrdiff_t>(place));
    target_atoms_.erase(target_atoms_.begin() + static_cast<std::ptrdiff_t>(i));
    target_places_.erase(target_places_.begin() + static_cast<std::ptrdiff_t>(i));
    for (std::size_t& other : target_places_) other -= other > place ? 1 : 0;
  }
}

}  // namespace taso::unbounded
