#include "tests/attack/rule_mutator.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace taso::testing {
namespace {

using Kind = AttributeExpression::Kind;
using Integers = std::vector<std::int64_t>;

// Numbers that sizes and ranks are compared with and divided by.
constexpr std::array<std::int64_t, 12> size_numbers = {2, 3, 4, 5, 9, 17, 50, 64, 100, 256, 300, 1000};
constexpr std::array<std::int64_t, 5> rank_numbers = {3, 5, 6, 7, 8};

AttributeExpression number(std::int64_t value) {
  AttributeExpression result;
  result.literal = value;
  return result;
}

AttributeExpression combine(Kind kind, AttributeExpression a, AttributeExpression b) {
  AttributeExpression result;
  result.kind = kind;
  result.operands = {std::move(a), std::move(b)};
  return result;
}

AttributeExpression quotient(AttributeExpression a, AttributeExpression b) {
  return combine(Kind::floor_divide, std::move(a), std::move(b));
}
AttributeExpression sum(AttributeExpression a, AttributeExpression b) {
  return combine(Kind::add, std::move(a), std::move(b));
}
AttributeExpression difference(AttributeExpression a, AttributeExpression b) {
  return combine(Kind::subtract, std::move(a), std::move(b));
}
AttributeExpression product(AttributeExpression a, AttributeExpression b) {
  return combine(Kind::multiply, std::move(a), std::move(b));
}

// The changes of one mutant.
class Changes {
 public:
  Changes(const OperatorRegistry& registry, Substitution rule, Random& random)
      : registry_(registry), rule_(std::move(rule)), random_(random) {
    find_attribute_variables();
  }

  // One change; nothing may come of it.
  void change() {
    switch (random_.below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return change_attribute();
      case 5:
      case 6:
        return change_conditions();
      case 7:
        return chance(60) ? wrap_variable() : wrap_operand();
      case 8:
      case 9:
        return wrap_output();
      case 10:
      case 11:
        return chance(70) ? add_output() : add_vanishing();
      case 12:
        return wrap_twice();
      case 13:
        return change_operator();
      case 14:
        return change_operand();
      default:
        return chance(50) ? exchange_sides() : change_function();
    }
  }

  [[nodiscard]] const Substitution& rule() const { return rule_; }

 private:
  bool chance(std::uint64_t percent) { return random_.below(100) < percent; }
  template <class List>
  const auto& one_of(const List& list) {
    return list[random_.below(list.size())];
  }
  Pattern& side() { return chance(25) ? rule_.source : rule_.target; }

  void find_attribute_variables() {
    kinds_.assign(rule_.attribute_variables.size(), AttributeKind::integer);
    for (const Pattern* pattern : {&rule_.source, &rule_.target})
      for (const PatternNode& node : pattern->nodes)
        for (const auto& [name, expression] : node.attributes)
          if (expression.kind == Kind::variable)
            if (const AttributeSpec* spec = registry_.find(node.op)->find_attribute(name))
              kinds_[expression.index] = spec->kind;
  }

  std::optional<AttributeExpression> variable_of(AttributeKind kind) {
    std::vector<std::uint32_t> found;
    for (std::uint32_t v = 0; v < kinds_.size(); ++v)
      if (kinds_[v] == kind) found.push_back(v);
    if (found.empty()) return std::nullopt;
    AttributeExpression result;
    result.kind = Kind::variable;
    result.index = one_of(found);
    return result;
  }

  AttributeExpression extent() {
    AttributeExpression result;
    result.kind = Kind::dimension;
    result.index = static_cast<std::uint32_t>(random_.below(rule_.tensor_variables.size()));
    result.axis = -1 - static_cast<std::int64_t>(chance(55) ? 0 : random_.below(3));
    return result;
  }
  AttributeExpression rank() {
    AttributeExpression result;
    result.kind = Kind::rank;
    result.index = static_cast<std::uint32_t>(random_.below(rule_.tensor_variables.size()));
    return result;
  }

  // An integer that the rule knows.
  AttributeExpression quantity() {
    if (rule_.tensor_variables.empty()) return number(one_of(size_numbers));
    if (chance(25)) return rank();
    if (chance(20))
      if (auto variable = variable_of(AttributeKind::integer)) return *variable;
    if (chance(12))
      if (auto list = variable_of(AttributeKind::integers)) {
        AttributeExpression element;
        element.kind = Kind::element;
        element.axis = static_cast<std::int64_t>(random_.below(4)) - 2;
        element.operands = {*list};
        return element;
      }
    return extent();
  }
  AttributeExpression number_for(const AttributeExpression& quantity) {
    return number(quantity.kind == Kind::rank ? one_of(rank_numbers) : one_of(size_numbers));
  }

  // An integer that is 0 always, mostly, or under a condition that is added.
  AttributeExpression zero() {
    const AttributeExpression q = quantity(), n = number_for(q);
    switch (random_.below(16)) {
      case 0:
      case 1:
        return quotient(q, n);
      case 2:
        return quotient(product(q, number(one_of(size_numbers))), number(1000));
      case 3:
        return sum(quotient(difference(number(0), q), n), number(1));
      case 4:
        return product(quotient(q, n), quantity());
      case 5:
        return quotient(difference(q, number(1)), n);
      case 6:  // 0 under a condition
        add_condition(Condition::Relation::less, q, n);
        return quotient(q, n);
      case 7:
        add_condition(Condition::Relation::equal, quotient(q, n), number(0));
        return quotient(q, n);
      case 8:
        return difference(q, q);
      case 9:
        return difference(quotient(product(q, n), n), q);
      case 10:
        return difference(difference(quotient(sum(q, n), n), quotient(q, n)), number(1));
      case 11:
        return difference(quotient(quotient(q, number(2)), n), quotient(q, product(number(2), n)));
      case 12: {
        const AttributeExpression other = quantity();
        return difference(quotient(product(q, other), other), q);
      }
      case 13:
        return product(number(0), quotient(q, n));
      case 14:
        return difference(quotient(q, number(1)), q);
      default:
        return quotient(difference(q, q), n);
    }
  }

  void add_condition(Condition::Relation relation, AttributeExpression left, AttributeExpression right) {
    rule_.conditions.push_back({relation, std::move(left), std::move(right)});
  }

  // An attribute's value that is replaced by an expression of nearly the same value.
  void change_attribute() {
    Pattern& pattern = side();
    std::vector<std::pair<std::size_t, std::size_t>> places;
    for (std::size_t n = 0; n < pattern.nodes.size(); ++n)
      for (std::size_t a = 0; a < pattern.nodes[n].attributes.size(); ++a)
        // What binds a variable stays as it is.
        if (&pattern == &rule_.target || pattern.nodes[n].attributes[a].second.kind != Kind::variable)
          places.emplace_back(n, a);
    if (places.empty()) return;
    const auto [n, a] = one_of(places);
    const AttributeSpec* spec =
        registry_.find(pattern.nodes[n].op)->find_attribute(pattern.nodes[n].attributes[a].first);
    if (spec == nullptr || spec->kind == AttributeKind::symbol) return;
    AttributeExpression& value = pattern.nodes[n].attributes[a].second;
    if (spec->kind == AttributeKind::real)
      if (const auto b = variable_of(AttributeKind::real); b && chance(60)) {
        value = chance(50) ? sum(difference(value, *b), *b) : difference(sum(value, *b), *b);
        return;
      }
    if (chance(12)) return change_number(value);
    if (value.kind == Kind::list && !value.operands.empty() && chance(70)) {
      AttributeExpression& element = value.operands[random_.below(value.operands.size())];
      element = changed(element);
      return;
    }
    value = changed(value);
  }

  AttributeExpression changed(const AttributeExpression& value) {
    switch (random_.below(8)) {
      case 0:
        return difference(value, zero());
      case 1:
        return product(value, sum(number(1), zero()));
      case 2:
        return sum(zero(), value);
      case 3:
        return replacement();
      default:
        return sum(value, zero());
    }
  }

  // What takes the place of an attribute's value and need not have anything to do with it: operators that do not depend
  // on the attribute where they are defined do not notice, and it may be 0 where they divide by it.
  AttributeExpression replacement() {
    switch (random_.below(4)) {
      case 0:
        return zero();
      case 1:
        return difference(quantity(), number(1 + static_cast<std::int64_t>(random_.below(3))));
      case 2:
        return number(static_cast<std::int64_t>(random_.below(3)) - 1);
      default:
        return quantity();
    }
  }

  void change_number(AttributeExpression& value) {
    if (value.kind == Kind::dimension && value.operands.empty()) {
      value = extent();
      return;
    }
    if (value.kind == Kind::literal) {
      if (auto* integer = std::get_if<std::int64_t>(&value.literal)) *integer += chance(50) ? 1 : -1;
      if (auto* real = std::get_if<double>(&value.literal)) *real += chance(50) ? 1 : -0.5;
      if (auto* list = std::get_if<Integers>(&value.literal); list != nullptr && !list->empty())
        (*list)[random_.below(list->size())] += chance(50) ? 1 : -1;
      return;
    }
    if (!value.operands.empty()) change_number(value.operands[random_.below(value.operands.size())]);
  }

  void change_conditions() {
    using Relation = Condition::Relation;
    if (!rule_.conditions.empty() && chance(55)) {
      const std::size_t c = random_.below(rule_.conditions.size());
      const AttributeExpression nothing = zero();  // May add a condition: first of all.
      Condition& condition = rule_.conditions[c];
      switch (random_.below(4)) {
        case 0:
          rule_.conditions.erase(rule_.conditions.begin() + static_cast<std::ptrdiff_t>(c));
          return;
        case 1:
          condition.relation =
              std::array{Relation::equal, Relation::less_equal, Relation::less, Relation::not_equal}[random_.below(4)];
          return;
        case 2:
          condition.left = sum(condition.left, nothing);
          return;
        default:
          condition.right = sum(condition.right, nothing);
          return;
      }
    }
    if (rule_.tensor_variables.empty()) return;
    switch (random_.below(7)) {
      case 0:
        return add_condition(Relation::equal, rank(), number(2 + static_cast<std::int64_t>(random_.below(3))));
      case 1:
        return add_condition(Relation::less_equal, rank(), number(one_of(rank_numbers)));
      case 2:
        return add_condition(Relation::less, extent(), number(one_of(size_numbers)));
      case 3:
        return add_condition(Relation::less_equal, number(one_of(size_numbers)), extent());
      case 4:
        return add_condition(Relation::equal, extent(), extent());
      case 5:
        return add_condition(Relation::equal, quotient(extent(), number(one_of(size_numbers))), number(0));
      default:
        return add_condition(Relation::less_equal, product(extent(), extent()), number(one_of(size_numbers)));
    }
  }

  // Operators of so many tensors of elements, one output and attributes that have defaults.
  std::vector<std::string> operators(std::size_t inputs) const {
    std::vector<std::string> result;
    for (const std::string& name : registry_.names()) {
      const OperatorDefinition& definition = *registry_.find(name);
      if (definition.variadic() || definition.several_outputs() || definition.inputs.size() != inputs) continue;
      bool fits = true;
      for (const InputSpec& input : definition.inputs) fits = fits && !input.integers();
      for (const AttributeSpec& spec : definition.attributes)
        fits = fits && (spec.default_value || spec.name == "axis" || spec.kind == AttributeKind::symbol);
      if (fits) result.push_back(name);
    }
    return result;
  }

  PatternNode application(const std::string& op, std::vector<PatternValue> inputs) {
    PatternNode node{op, std::move(inputs), {}};
    for (const AttributeSpec& spec : registry_.find(op)->attributes) {
      AttributeExpression value;
      if (spec.default_value)
        value.literal = *spec.default_value;
      else if (spec.kind == AttributeKind::symbol)
        value.literal = SymbolValue{"tanh"};
      else
        value.literal = std::int64_t{-1};
      node.attributes.emplace_back(spec.name, value);
    }
    std::sort(node.attributes.begin(), node.attributes.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    return node;
  }

  static PatternValue append(Pattern& pattern, PatternNode node) {
    pattern.nodes.push_back(std::move(node));
    return {false, static_cast<std::uint32_t>(pattern.nodes.size() - 1), 0};
  }

  // f(x) for a variable x, everywhere.
  void wrap_variable() {
    if (rule_.tensor_variables.empty()) return;
    const PatternValue variable{true, static_cast<std::uint32_t>(random_.below(rule_.tensor_variables.size())), 0};
    const std::string op = unary();
    for (Pattern* pattern : {&rule_.source, &rule_.target}) {
      Pattern changed;
      changed.nodes.push_back(application(op, {variable}));
      const auto moved = [&](const PatternValue& value) -> PatternValue {
        if (value.is_variable) return value == variable ? PatternValue{false, 0, 0} : value;
        return {false, value.index + 1, value.port};
      };
      for (PatternNode node : pattern->nodes) {
        for (PatternValue& input : node.inputs) input = moved(input);
        changed.nodes.push_back(std::move(node));
      }
      for (const PatternValue& output : pattern->outputs) changed.outputs.push_back(moved(output));
      *pattern = std::move(changed);
    }
  }

  // An operator of one tensor; one that is not defined everywhere often.
  std::string unary() {
    static constexpr std::array<const char*, 5> partial = {"log", "sqrt", "log", "sqrt", "reciprocal"};
    const std::string op = one_of(partial);
    if (chance(35) && registry_.find(op) != nullptr) return op;
    return one_of(operators(1));
  }

  // f(x) for an operand x of one operator, or for all its operands.
  void wrap_operand() {
    Pattern& pattern = side();
    if (pattern.nodes.empty()) return;
    const std::size_t n = random_.below(pattern.nodes.size());
    if (pattern.nodes[n].inputs.empty()) return;
    const std::string op = unary();
    const PatternValue only = one_of(pattern.nodes[n].inputs);
    const bool all = chance(50);
    Pattern changed;
    std::vector<std::uint32_t> places;  // of the nodes of old
    const auto moved = [&](const PatternValue& value) -> PatternValue {
      return value.is_variable ? value : PatternValue{false, places[value.index], value.port};
    };
    for (std::size_t i = 0; i < pattern.nodes.size(); ++i) {
      PatternNode node = pattern.nodes[i];
      for (PatternValue& input : node.inputs) {
        const bool wrapped = i == n && (all || input == only);
        input = moved(input);
        if (wrapped) input = append(changed, application(op, {input}));
      }
      places.push_back(append(changed, std::move(node)).index);
    }
    for (const PatternValue& output : pattern.outputs) changed.outputs.push_back(moved(output));
    pattern = std::move(changed);
  }

  PatternValue any_variable() {
    return {true, static_cast<std::uint32_t>(random_.below(rule_.tensor_variables.size())), 0};
  }

  // f(output), or f(output, x), on both sides.
  void wrap_output() {
    if (rule_.source.outputs.empty() || rule_.source.outputs.size() != rule_.target.outputs.size()) return;
    const std::size_t i = random_.below(rule_.source.outputs.size());
    const bool binary = chance(40) && !rule_.tensor_variables.empty();
    const std::string op = binary ? one_of(operators(2)) : unary();
    const PatternValue other = binary ? any_variable() : PatternValue{};
    const bool first = chance(50);
    for (Pattern* pattern : {&rule_.source, &rule_.target}) {
      const PatternValue output = pattern->outputs[i];
      std::vector<PatternValue> inputs = {output};
      if (binary) inputs.insert(first ? inputs.end() : inputs.begin(), other);
      pattern->outputs[i] = append(*pattern, application(op, std::move(inputs)));
    }
  }

  // The same output on both sides: of variables, or, on one of them, of the other side's term.
  void add_output() {
    if (rule_.tensor_variables.empty()) return;
    const std::size_t arity = 1 + random_.below(2);
    const std::string op = one_of(operators(arity));
    std::vector<PatternValue> inputs;
    for (std::size_t i = 0; i < arity; ++i) inputs.push_back(any_variable());
    const std::string outer = one_of(operators(1));
    const bool nested = chance(40);
    for (Pattern* pattern : {&rule_.source, &rule_.target}) {
      PatternValue value = append(*pattern, application(op, inputs));
      if (nested) value = append(*pattern, application(outer, {value}));
      pattern->outputs.push_back(value);
    }
  }

  // output + (u - u) on one side, for a u that may have no value and that nothing else asks for.
  void add_vanishing() {
    Pattern& pattern = chance(80) ? rule_.target : rule_.source;
    if (pattern.outputs.empty()) return;
    PatternValue& output = pattern.outputs[random_.below(pattern.outputs.size())];
    const PatternValue value = output;
    PatternValue operand = value;
    if (chance(25)) operand = append(pattern, application("sub", {value, value}));
    PatternNode node = application(unary(), {operand});
    if (chance(30)) {
      const bool by_variable = !rule_.tensor_variables.empty() && chance(50);
      node = application("div", {value, by_variable ? any_variable() : operand});
    }
    const PatternValue vanishing = append(pattern, std::move(node));
    const PatternValue zero = append(pattern, application("sub", {vanishing, vanishing}));
    output = append(pattern, application("add", {value, zero}));
  }

  // neg(neg(output)) on one side, or another pair of operators that may undo each other.
  void wrap_twice() {
    static constexpr std::array<std::pair<const char*, const char*>, 8> pairs = {{{"neg", "neg"},
                                                                                  {"neg", "neg"},
                                                                                  {"relu", "relu"},
                                                                                  {"exp", "log"},
                                                                                  {"log", "exp"},
                                                                                  {"neg", "neg"},
                                                                                  {"abs", "relu"},
                                                                                  {"relu", "abs"}}};
    const auto [inner, outer] = one_of(pairs);
    if (registry_.find(inner) == nullptr || registry_.find(outer) == nullptr) return;
    Pattern& pattern = chance(50) ? rule_.source : rule_.target;
    if (pattern.outputs.empty()) return;
    PatternValue& output = pattern.outputs[random_.below(pattern.outputs.size())];
    const PatternValue once = append(pattern, application(inner, {output}));
    output = append(pattern, application(outer, {once}));
  }

  void change_operator() {
    Pattern& pattern = side();
    if (pattern.nodes.empty()) return;
    PatternNode& node = pattern.nodes[random_.below(pattern.nodes.size())];
    const OperatorDefinition& definition = *registry_.find(node.op);
    if (definition.variadic() || definition.several_outputs()) return;
    const std::vector<std::string> others = operators(node.inputs.size());
    if (others.empty()) return;
    PatternNode changed = application(one_of(others), node.inputs);
    const OperatorDefinition& other = *registry_.find(changed.op);
    for (const auto& [name, value] : node.attributes) {
      const AttributeSpec *mine = definition.find_attribute(name), *its = other.find_attribute(name);
      for (auto& [given, expression] : changed.attributes)
        if (given == name && mine->kind == its->kind) expression = value;
    }
    node = std::move(changed);
  }

  void change_operand() {
    Pattern& pattern = side();
    if (pattern.nodes.empty() || rule_.tensor_variables.empty()) return;
    PatternNode& node = pattern.nodes[random_.below(pattern.nodes.size())];
    if (node.inputs.empty()) return;
    if (node.inputs.size() > 1 && chance(50)) {
      std::swap(node.inputs[random_.below(node.inputs.size())], node.inputs[random_.below(node.inputs.size())]);
      return;
    }
    PatternValue& input = node.inputs[random_.below(node.inputs.size())];
    if (input.is_variable) {
      input = any_variable();
    } else if (registry_.find(pattern.nodes[input.index].op)->several_outputs()) {
      input.port = input.port == 0 ? 1 : input.port - 1;
    }
  }

  // Another function where an attribute names one, or where the operator is one.
  void change_function() {
    Pattern& pattern = side();
    std::vector<std::string> functions;
    for (const auto& [name, function] : registry_.functions())
      if (function.arity == 1) functions.push_back(name);
    std::vector<AttributeValue*> places;
    for (PatternNode& node : pattern.nodes)
      for (auto& [name, expression] : node.attributes)
        if (expression.kind == Kind::literal && std::holds_alternative<SymbolValue>(expression.literal))
          places.push_back(&expression.literal);
    if (!places.empty()) *one_of(places) = SymbolValue{one_of(functions)};
  }

  void exchange_sides() { std::swap(rule_.source, rule_.target); }

  const OperatorRegistry& registry_;
  Substitution rule_;
  Random& random_;
  std::vector<AttributeKind> kinds_;  // of attribute variables
};

}  // namespace

RuleMutator::RuleMutator(const OperatorRegistry& registry, std::vector<Substitution> rules)
    : registry_(registry), rules_(std::move(rules)) {
  std::uint64_t total = 0;
  for (const Substitution& rule : rules_) {
    const std::size_t nodes = rule.source.nodes.size() + rule.target.nodes.size();
    std::size_t weight = 0;
    for (const Pattern* pattern : {&rule.source, &rule.target})
      for (const PatternNode& node : pattern->nodes)
        weight += registry.find(node.op)->attributes.size();  // strides, pads, dilations: long proofs
    total += 1 + 600 / ((nodes + 1) * (nodes + 1) * (1 + weight));
    weights_.push_back(total);
  }
}

std::optional<Substitution> RuleMutator::mutant(std::uint64_t seed, std::uint64_t number) const {
  Random random(seed, "mutant " + std::to_string(number));
  const std::uint64_t place = random.below(weights_.back());
  const auto rule = std::upper_bound(weights_.begin(), weights_.end(), place) - weights_.begin();
  Substitution start = rules_[static_cast<std::size_t>(rule)];
  start.is_axiom = false;
  start.proofs.clear();
  start.numeric_class.reset();
  start.expect.reset();
  start.facts.clear();
  start.name = "mutant_" + std::to_string(number) + "_of_" + start.name;
  std::replace(start.name.begin(), start.name.end(), '.', '_');
  Changes changes(registry_, std::move(start), random);
  for (std::uint64_t n = 1 + random.below(3); n > 0; --n) changes.change();
  const auto parsed = parse_rules(to_string(changes.rule(), registry_), "mutant", registry_);
  if (!parsed || parsed->size() != 1) return std::nullopt;
  return parsed->front();
}

}  // namespace taso::testing
