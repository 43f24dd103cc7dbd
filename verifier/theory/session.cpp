#include "verifier/theory/session.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "operators/rank_range.h"
#include "verifier/axiom_use.h"

namespace taso::theory {
namespace {

using Kind = AttributeExpression::Kind;

// Concatenations and splits are flattened for up to this many pieces; the axioms speak of two.
constexpr std::size_t max_pieces = 4;
// Resource units for the search for a contradiction in what a goal supposes, at least.
constexpr std::uint64_t consistency_rlimit = 100'000;

}  // namespace

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
        std::int64_t& rank = known[node.inputs[i].index];
        rank = std::max(rank, static_cast<std::int64_t>(rank_range(axes).least));
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

Session::Session(std::shared_ptr<Vocabulary> vocabulary, const smt::SolverOptions& options,
                 const std::set<std::string>& operators)
    : shared_vocabulary_(std::move(vocabulary)),
      vocabulary_(*shared_vocabulary_),
      registry_(vocabulary_.registry()),
      options_(options) {
  assert_lists();
  assert_shapes();
  assert_products();
  assert_function_names();
  for (const std::string& name : registry_.names())
    if (operators.empty() || operators.contains(name)) assert_definition(*registry_.find(name));
}

std::string Session::add_axiom(const Substitution& axiom, const ShapeFacts& shapes) {
  if (axiom.source.outputs.size() != axiom.target.outputs.size()) return "the sides have different numbers of outputs";
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

std::optional<std::string> Session::prove(const Substitution& rule, std::uint64_t rlimit) {
  for (std::size_t output = 0; output < rule.source.outputs.size(); ++output) {
    const std::optional<smt::Result> checked = check_goal(rule, output, true, rlimit);
    if (!checked) return "a number of the rule does not fit 64 bits, or its attributes do not fit their places";
    const smt::Result& result = *checked;
    if (result.answer == smt::Answer::unsatisfiable) continue;
    std::string why = "output " + std::to_string(output) + " does not follow from the axioms";
    if (result.answer == smt::Answer::unknown && !result.reason.empty()) why += " (" + result.reason + ")";
    return why;
  }
  // Anything follows from hypotheses that contradict each other; where the goal did, so may they, as quickly.
  if (contradictory(rule, std::max(consistency_rlimit, rlimit)))
    return "the axioms and what the rule supposes contradict each other";
  return std::nullopt;
}

bool Session::contradictory(const Substitution& rule, std::uint64_t rlimit) {
  const std::optional<smt::Result> result = check_goal(rule, 0, false, rlimit);
  return result && result->answer == smt::Answer::unsatisfiable;
}

std::string Session::smt2(const Substitution& rule) {
  std::string text;
  for (std::size_t output = 0; output < rule.source.outputs.size(); ++output) {
    const smt::Solver::Scope scope(solver());
    (void)assert_goal(rule, output, true);
    text += "; " + rule.name + ", output " + std::to_string(output) + "\n" + solver().smt2() + "(reset)\n";
  }
  return text;
}

smt::Solver& Session::solver() {
  if (!solver_) {
    solver_.emplace(vocabulary_.context(), options_);
    for (const Expr& formula : theory_) solver_->add(formula);
  }
  return *solver_;
}

void Session::assert_formula(Expr formula) {
  if (solver_) solver_->add(formula);
  theory_.push_back(std::move(formula));
}

std::optional<smt::Result> Session::check_goal(const Substitution& rule, std::size_t output, bool negated,
                                               std::uint64_t rlimit) {
  std::optional<smt::Result> result;
  {
    const smt::Solver::Scope scope(solver());
    // What is supposed may say less than the rule; a goal may not.
    if (!assert_goal(rule, output, negated) && negated) return std::nullopt;
    result = rlimit == 0 ? solver().check() : solver().check(rlimit);
  }
  if (result->interrupted) solver_.reset();
  return result;
}

bool Session::assert_goal(const Substitution& rule, std::size_t output, bool negated) {
  smt::Context& c = vocabulary_.context();
  Encoder encoder(vocabulary_, rule, "goal.");
  std::vector<Expr> facts;
  encoder.typing(rule.source, facts);
  encoder.typing(rule.target, facts);
  for (const Condition& condition : rule.conditions)
    if (const std::optional<Expr> fact = encoder.condition(condition, false)) facts.push_back(*fact);
  for (const Condition& condition : rank_conditions(registry_, rule, rule.source, rule.target))
    if (const std::optional<Expr> fact = encoder.condition(condition, false)) facts.push_back(*fact);
  for (const Expr& fact : facts) solver().add(fact);
  const std::vector<Expr> lefts = encoder.outputs(rule.source), rights = encoder.outputs(rule.target);
  // An application that would change the type of an output is refused.
  for (std::size_t i = 0; i < lefts.size(); ++i) {
    const Expr &left = lefts[i], &right = rights[i];
    solver().add(c.equal(vocabulary_.shape(left), vocabulary_.shape(right)));
    solver().add(c.equal(vocabulary_.rank(left), vocabulary_.rank(right)));
    for (int axis = -1; axis >= -max_axes; --axis)
      solver().add(
          c.equal(vocabulary_.dimension(left, c.integer(axis)), vocabulary_.dimension(right, c.integer(axis))));
    for (const Expr& axis : encoder.integer_variables())
      solver().add(c.equal(vocabulary_.dimension(left, axis), vocabulary_.dimension(right, axis)));
  }
  if (negated) solver().add(c.negation(c.equal(lefts[output], rights[output])));
  return !encoder.meaningless();
}

bool Session::add_direction(const Substitution& axiom, bool from_source, std::size_t output, const ShapeFacts& shapes) {
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
  // What is not well-typed wherever the trigger is must be known to be.
  if (shapes.may_be_ill_typed[from_source ? 0 : 1][output]) encoder.typing(only_output(other_side, output), hypotheses);
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
  assert_formula(c.forall(variables, triggers, body, axiom.name));
  return true;
}

Pattern Session::one_output(const Pattern& pattern, std::size_t output) {
  Pattern result = pattern;
  result.outputs = {pattern.outputs[output]};
  return result;
}

void Session::assert_lists() {
  smt::Context& c = vocabulary_.context();
  for (std::size_t length = 1; length <= 6; ++length) {
    const std::vector<Expr> elements = integers("e", length);
    const Expr list = vocabulary_.make_list(elements);
    for (std::size_t i = 0; i < length; ++i) {
      const std::vector<Expr> trigger{vocabulary_.get(list, static_cast<std::int64_t>(i))};
      assert_formula(c.forall(elements, trigger, c.equal(trigger[0], elements[i]), "list_get"));
    }
  }
}

// A shape is known from its other extents and that of one axis, and tells the rank: so that tensors have one shape
// whose concatenations along an axis have, if their extents there are equal, whatever their ranks.
void Session::assert_shapes() {
  smt::Context& c = vocabulary_.context();
  const Expr x = tensors(1)[0], axis = c.constant(".axis", vocabulary_.integer());
  const Expr others = vocabulary_.without_axis(vocabulary_.shape(x), axis);
  assert_equation({x, axis}, others,
                  c.equal(vocabulary_.shape(x), vocabulary_.with_axis(others, axis, vocabulary_.dimension(x, axis))),
                  "shape");
  const Expr rank = vocabulary_.rank(x);
  assert_equation({x}, rank, c.equal(rank, vocabulary_.length(vocabulary_.shape(x))), "rank");
}

void Session::assert_products() {
  const std::vector<Expr> n = integers("n", 2);
  const Expr product = vocabulary_.product(n[0], n[1]);
  assert_equation(n, product, vocabulary_.context().equal(product, vocabulary_.product(n[1], n[0])), "times");
  for (const std::int64_t factor : {0, 1, 2, 3}) {
    smt::Context& c = vocabulary_.context();
    const Expr multiple = vocabulary_.product(c.integer(factor), n[0]);
    assert_equation({n[0]}, multiple, c.equal(multiple, c.multiply(c.integer(factor), n[0])), "times");
  }
}

void Session::assert_function_names() {
  std::vector<Expr> names;
  for (const auto& [name, function] : vocabulary_.registry().functions())
    names.push_back(vocabulary_.function_name(name));
  if (names.size() > 1) assert_formula(vocabulary_.context().distinct(names));
}

std::vector<Expr> Session::integers(const std::string& prefix, std::size_t count) {
  std::vector<Expr> result;
  for (std::size_t i = 0; i < count; ++i)
    result.push_back(vocabulary_.context().constant("." + prefix + std::to_string(i), vocabulary_.integer()));
  return result;
}

std::vector<Expr> Session::tensors(std::size_t count) {
  std::vector<Expr> result;
  for (std::size_t i = 0; i < count; ++i)
    result.push_back(vocabulary_.context().constant(".x" + std::to_string(i), vocabulary_.tensor()));
  return result;
}

Session::AnyAttributes Session::any_attributes(const std::string& op) {
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

void Session::assert_equation(const std::vector<Expr>& variables, const Expr& trigger, const Expr& body,
                              const std::string& name) {
  const std::vector<Expr> triggers{trigger};
  assert_formula(vocabulary_.context().forall(variables, triggers, body, name));
}

void Session::assert_definition(const OperatorDefinition& definition) {
  if (definition.commutative) assert_commutative(definition);
  if (definition.associative) assert_associative(definition);
  if (definition.coassociative) assert_coassociative(definition);
  if (!definition.variadic() && !definition.several_outputs()) assert_extents(definition);
}

void Session::assert_commutative(const OperatorDefinition& definition) {
  const AnyAttributes attributes = any_attributes(definition.name);
  std::vector<Expr> x = tensors(2), variables = attributes.variables;
  variables.insert(variables.end(), x.begin(), x.end());
  const Expr left = vocabulary_.application(definition.name, 0, x, attributes.values);
  const Expr right = vocabulary_.application(definition.name, 0, {x[1], x[0]}, attributes.values);
  assert_equation(variables, left, vocabulary_.context().equal(left, right), definition.name + ".commutative");
}

void Session::assert_associative(const OperatorDefinition& definition) {
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
        outer.push_back(concat(
            {x.begin() + static_cast<std::ptrdiff_t>(begin), x.begin() + static_cast<std::ptrdiff_t>(begin + count)}));
        outer.insert(outer.end(), x.begin() + static_cast<std::ptrdiff_t>(begin + count), x.end());
        const Expr nested = concat(outer);
        const Expr body = c.equal(nested, flat);
        assert_equation(variables, nested, body, definition.name + ".flatten");
        if (outer.size() == 2) assert_equation(variables, flat, body, definition.name + ".nest");
      }
    }
    if (!attributes.integer) continue;
    const Expr axis = attributes.values[*attributes.integer].second;
    // Facts about an ill-typed application must not follow: its pieces may differ along the axis only.
    const Expr shape = vocabulary_.shape(flat);
    const Expr first_others = vocabulary_.without_axis(vocabulary_.shape(x[0]), axis);
    std::vector<Expr> agree;
    for (std::size_t i = 1; i < total; ++i)
      agree.push_back(c.equal(first_others, vocabulary_.without_axis(vocabulary_.shape(x[i]), axis)));
    assert_equation(variables, shape,
                    c.implies(c.conjunction(agree), c.equal(vocabulary_.without_axis(shape, axis), first_others)),
                    definition.name + ".shape");
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

void Session::assert_coassociative(const OperatorDefinition& definition) {
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
      const Expr shape = vocabulary_.shape(piece);
      assert_equation(
          variables, shape,
          c.equal(vocabulary_.without_axis(shape, axis), vocabulary_.without_axis(vocabulary_.shape(x), axis)),
          definition.name + ".shape");
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

std::vector<std::string> Session::outer_names(const std::vector<AxisSpec>& axes, int axis) {
  std::vector<std::string> names;
  const auto end = static_cast<std::size_t>(static_cast<std::int64_t>(axes.size()) + axis + 1);
  for (std::size_t i = 0; i < end && i < axes.size(); ++i)
    names.push_back((axes[i].kind == AxisSpec::Kind::rest ? ".." : "") + extent_name(axes[i]));
  return names;
}

void Session::assert_extents(const OperatorDefinition& definition) {
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

std::optional<Expr> Session::extent_of(const Expression& expression, const OperatorDefinition& definition,
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
      if (list.kind != Expression::Kind::name || index.kind != Expression::Kind::integer || place == any.places.end() ||
          any.values[place->second].first != Kindness::list)
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

void Session::assert_given_shape(const OperatorDefinition& definition, const AnyAttributes& any,
                                 const std::vector<Expr>& x) {
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

}  // namespace taso::theory
