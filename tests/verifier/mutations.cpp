#include "tests/verifier/mutations.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "support/random.h"

namespace taso::testing {
namespace {

using Kind = AttributeExpression::Kind;
using Integers = std::vector<std::int64_t>;

// One expression changed in one place, with what was changed.
struct Changed {
  std::string what;
  AttributeExpression expression;
  bool size = false;  // a place inside of an expression rather than a value
};

// Variables of attributes that are used as a value of each kind are exchangeable.
class Mutator {
 public:
  Mutator(const Substitution& rule, const OperatorRegistry& registry) : rule_(rule), registry_(registry) {
    seen_.insert(text_of(rule));
    find_kinds();
  }

  std::vector<Mutation> run() {
    for (const bool source : {true, false}) {
      const Pattern& pattern = source ? rule_.source : rule_.target;
      for (std::size_t n = 0; n < pattern.nodes.size(); ++n) {
        change_operation(source, n);
        change_operands(source, n);
        change_attributes(source, n);
      }
      change_outputs(source);
    }
    change_conditions();
    return std::move(found_);
  }

 private:
  static const Pattern& side(const Substitution& rule, bool source) { return source ? rule.source : rule.target; }
  static Pattern& side(Substitution& rule, bool source) { return source ? rule.source : rule.target; }

  // Equal for statements that are equal up to names and commuted operands.
  [[nodiscard]] std::string text_of(Substitution rule) const {
    rule.name = "mutant";
    rule.proofs.clear();
    rule.numeric_class.reset();
    rule.expect.reset();
    return to_string(canonical(rule, registry_), registry_);
  }

  // Keeps a mutation if its text is a statement of the language that has not been seen.
  void add(MutationKind kind, const std::string& what, Substitution rule) {
    rule.proofs.clear();
    rule.numeric_class.reset();
    rule.expect.reset();
    rule.name += "_" + std::to_string(found_.size());
    const auto parsed = parse_rules(to_string(rule, registry_), "mutation", registry_);
    if (!parsed || parsed->size() != 1 || !seen_.insert(text_of(parsed->front())).second) return;
    found_.push_back({kind, what, parsed->front()});
  }

  void find_kinds() {
    kinds_.assign(rule_.attribute_variables.size(), AttributeKind::integer);
    for (const Pattern* pattern : {&rule_.source, &rule_.target})
      for (const PatternNode& node : pattern->nodes)
        for (const auto& [name, expression] : node.attributes)
          if (expression.kind == Kind::variable)
            if (const AttributeSpec* spec = registry_.find(node.op)->find_attribute(name))
              kinds_[expression.index] = spec->kind;
  }

  void change_operation(bool source, std::size_t n) {
    const PatternNode& node = side(rule_, source).nodes[n];
    const OperatorDefinition& definition = *registry_.find(node.op);
    for (const std::string& name : registry_.names()) {
      const OperatorDefinition& other = *registry_.find(name);
      if (name == node.op || other.inputs.size() != definition.inputs.size() ||
          other.variadic() != definition.variadic() || other.several_outputs() != definition.several_outputs())
        continue;
      bool fits = true;
      for (std::size_t i = 0; i < other.inputs.size(); ++i)
        fits = fits && other.inputs[i].integers() == definition.inputs[i].integers();
      PatternNode changed{name, node.inputs, {}};
      for (const auto& [attribute, expression] : node.attributes) {
        const AttributeSpec *mine = definition.find_attribute(attribute), *its = other.find_attribute(attribute);
        if (its != nullptr && mine->kind == its->kind) changed.attributes.emplace_back(attribute, expression);
      }
      for (const AttributeSpec& spec : other.attributes) {
        const bool given = std::any_of(changed.attributes.begin(), changed.attributes.end(),
                                       [&](const auto& attribute) { return attribute.first == spec.name; });
        if (given) continue;
        if (!spec.default_value) {
          fits = false;
          break;
        }
        AttributeExpression literal;
        literal.literal = *spec.default_value;
        changed.attributes.emplace_back(spec.name, literal);
      }
      if (!fits) continue;
      std::sort(changed.attributes.begin(), changed.attributes.end(),
                [](const auto& a, const auto& b) { return a.first < b.first; });
      Substitution rule = rule_;
      side(rule, source).nodes[n] = std::move(changed);
      add(MutationKind::operation, place(source) + node.op + " by " + name, std::move(rule));
    }
    if (node.inputs.empty()) return;
    Substitution rule = rule_;
    Pattern& pattern = side(rule, source);
    const PatternValue instead = node.inputs[0];
    const auto replace = [&](PatternValue& value) {
      if (!value.is_variable && value.index == n) value = instead;
    };
    for (PatternNode& user : pattern.nodes)
      for (PatternValue& value : user.inputs) replace(value);
    for (PatternValue& value : pattern.outputs) replace(value);
    add(MutationKind::removal, place(source) + node.op + " removed", std::move(rule));
  }

  void change_operands(bool source, std::size_t n) {
    const PatternNode& node = side(rule_, source).nodes[n];
    for (std::size_t i = 0; i + 1 < node.inputs.size(); ++i) {
      if (node.inputs[i] == node.inputs[i + 1]) continue;
      Substitution rule = rule_;
      std::swap(side(rule, source).nodes[n].inputs[i], side(rule, source).nodes[n].inputs[i + 1]);
      add(MutationKind::order,
          place(source) + "operands " + std::to_string(i) + ", " + std::to_string(i + 1) + " of " + node.op +
              " exchanged",
          std::move(rule));
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      for (std::uint32_t v = 0; v < rule_.tensor_variables.size(); ++v) {
        const PatternValue variable{true, v, 0};
        if (node.inputs[i] == variable || !node.inputs[i].is_variable) continue;
        Substitution rule = rule_;
        side(rule, source).nodes[n].inputs[i] = variable;
        add(MutationKind::operand,
            place(source) + "operand " + std::to_string(i) + " of " + node.op + " by " + rule_.tensor_variables[v],
            std::move(rule));
      }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const PatternValue& input = node.inputs[i];
      if (input.is_variable || !registry_.find(side(rule_, source).nodes[input.index].op)->several_outputs()) continue;
      Substitution rule = rule_;
      PatternValue& changed = side(rule, source).nodes[n].inputs[i];
      changed.port = changed.port == 0 ? 1 : changed.port - 1;
      add(MutationKind::output, place(source) + "another output read by " + node.op, std::move(rule));
    }
  }

  void change_attributes(bool source, std::size_t n) {
    const PatternNode& node = side(rule_, source).nodes[n];
    for (std::size_t a = 0; a < node.attributes.size(); ++a) {
      const auto& [name, expression] = node.attributes[a];
      const AttributeSpec* spec = registry_.find(node.op)->find_attribute(name);
      std::vector<Changed> changed = changes(expression);
      if (spec->default_value && expression.kind != Kind::literal) {
        AttributeExpression literal;
        literal.literal = *spec->default_value;
        changed.push_back({"the default", literal, false});
      }
      const bool axis = name == "axis" || name == "axes" || name == "perm";
      for (Changed& change : changed) {
        Substitution rule = rule_;
        side(rule, source).nodes[n].attributes[a].second = std::move(change.expression);
        add(axis          ? MutationKind::axis
            : change.size ? MutationKind::size
                          : MutationKind::attribute,
            place(source) + node.op + "." + name + ": " + change.what, std::move(rule));
      }
    }
  }

  void change_outputs(bool source) {
    const Pattern& pattern = side(rule_, source);
    for (std::size_t i = 0; i + 1 < pattern.outputs.size(); ++i) {
      Substitution rule = rule_;
      std::swap(side(rule, source).outputs[i], side(rule, source).outputs[i + 1]);
      add(MutationKind::output, place(source) + "outputs exchanged", std::move(rule));
    }
    for (std::size_t i = 0; i < pattern.outputs.size(); ++i) {
      const PatternValue& output = pattern.outputs[i];
      if (output.is_variable || !registry_.find(pattern.nodes[output.index].op)->several_outputs()) continue;
      Substitution rule = rule_;
      PatternValue& changed = side(rule, source).outputs[i];
      changed.port = changed.port == 0 ? 1 : changed.port - 1;
      add(MutationKind::output, place(source) + "another output", std::move(rule));
    }
  }

  void change_conditions() {
    for (std::size_t c = 0; c < rule_.conditions.size(); ++c) {
      Substitution dropped = rule_;
      dropped.conditions.erase(dropped.conditions.begin() + static_cast<std::ptrdiff_t>(c));
      add(MutationKind::condition, "condition " + std::to_string(c) + " dropped", std::move(dropped));
      using Relation = Condition::Relation;
      for (const Relation relation : {Relation::equal, Relation::not_equal, Relation::less, Relation::less_equal}) {
        if (relation == rule_.conditions[c].relation || !rule_.conditions[c].compares()) continue;
        Substitution rule = rule_;
        rule.conditions[c].relation = relation;
        add(MutationKind::condition, "relation of condition " + std::to_string(c), std::move(rule));
      }
      for (const bool left : {true, false}) {
        const Condition& condition = rule_.conditions[c];
        for (Changed& change : changes(left ? condition.left : condition.right)) {
          Substitution rule = rule_;
          (left ? rule.conditions[c].left : rule.conditions[c].right) = std::move(change.expression);
          add(MutationKind::condition, "condition " + std::to_string(c) + ": " + change.what, std::move(rule));
        }
      }
    }
  }

  // Every expression that differs from this one in one place.
  [[nodiscard]] std::vector<Changed> changes(const AttributeExpression& expression) const {
    std::vector<Changed> result;
    const auto put = [&](const std::string& what, AttributeExpression changed, bool size) {
      if (!(changed == expression)) result.push_back({what, std::move(changed), size});
    };
    AttributeExpression copy = expression;
    switch (expression.kind) {
      case Kind::literal:
        if (const auto* integer = std::get_if<std::int64_t>(&expression.literal)) {
          for (const std::int64_t step : {1, -1}) {
            copy.literal = *integer + step;
            put("a number", copy, false);
          }
        } else if (const auto* real = std::get_if<double>(&expression.literal)) {
          for (const double value : {*real + 1, -*real}) {
            copy.literal = value;
            put("a number", copy, false);
          }
        } else if (const auto* list = std::get_if<Integers>(&expression.literal)) {
          for (std::size_t i = 0; i < list->size(); ++i)
            for (const std::int64_t step : {1, -1}) {
              Integers changed = *list;
              changed[i] += step;
              copy.literal = changed;
              put("element " + std::to_string(i), copy, false);
            }
          for (std::size_t i = 0; i + 1 < list->size(); ++i) {
            Integers changed = *list;
            std::swap(changed[i], changed[i + 1]);
            copy.literal = changed;
            put("elements exchanged", copy, false);
          }
        } else if (const auto* symbol = std::get_if<SymbolValue>(&expression.literal)) {
          for (const char* name : {"relu", "tanh", "identity"}) {
            if (symbol->name == name || !registry_.is_function(name)) continue;
            copy.literal = SymbolValue{name};
            put(name, copy, false);
          }
        }
        break;
      case Kind::variable:
        for (std::uint32_t v = 0; v < kinds_.size(); ++v)
          if (v != expression.index && kinds_[v] == kinds_[expression.index]) {
            copy.index = v;
            put(rule_.attribute_variables[v], copy, false);
          }
        break;
      case Kind::dimension:
      case Kind::rank:
      case Kind::elements:
        for (std::uint32_t v = 0; v < rule_.tensor_variables.size(); ++v) {
          copy.index = v;
          put("another tensor", copy, true);
        }
        copy = expression;
        if (expression.kind == Kind::dimension && expression.operands.empty())
          for (const std::int64_t step : {1, -1}) {
            copy.axis = expression.axis + step;
            if (copy.axis < 0) put("another axis", copy, true);
          }
        break;
      case Kind::length:
        break;
      case Kind::element:
        copy.axis = expression.axis == 0 ? 1 : expression.axis == -1 ? -2 : expression.axis - 1;
        put("another element", copy, true);
        break;
      case Kind::list:
        for (std::size_t i = 0; i + 1 < expression.operands.size(); ++i) {
          copy = expression;
          std::swap(copy.operands[i], copy.operands[i + 1]);
          put("elements exchanged", copy, true);
        }
        break;
      case Kind::add:
      case Kind::subtract:
        copy.kind = expression.kind == Kind::add ? Kind::subtract : Kind::add;
        put("sum and difference", copy, true);
        break;
      case Kind::multiply:
      case Kind::floor_divide:
        copy.kind = expression.kind == Kind::multiply ? Kind::floor_divide : Kind::multiply;
        put("product and quotient", copy, true);
        break;
    }
    for (std::size_t i = 0; i < expression.operands.size(); ++i)
      for (Changed& change : changes(expression.operands[i])) {
        copy = expression;
        copy.operands[i] = std::move(change.expression);
        put(change.what, copy, true);
      }
    return result;
  }

  static std::string place(bool source) { return source ? "source: " : "target: "; }

  const Substitution& rule_;
  const OperatorRegistry& registry_;
  std::vector<AttributeKind> kinds_;  // of attribute variables
  std::set<std::string> seen_;
  std::vector<Mutation> found_;
};

}  // namespace

const char* to_string(MutationKind kind) {
  switch (kind) {
    case MutationKind::operation:
      return "operator";
    case MutationKind::order:
      return "order";
    case MutationKind::operand:
      return "operand";
    case MutationKind::removal:
      return "removal";
    case MutationKind::attribute:
      return "attribute";
    case MutationKind::axis:
      return "axis";
    case MutationKind::size:
      return "size";
    case MutationKind::output:
      return "output";
    case MutationKind::condition:
      return "condition";
  }
  return "?";
}

std::vector<Mutation> mutations(const Substitution& rule, const OperatorRegistry& registry) {
  return Mutator(rule, registry).run();
}

std::vector<Mutation> some_mutations(const Substitution& rule, const OperatorRegistry& registry, std::size_t count,
                                     std::uint64_t seed) {
  std::array<std::vector<Mutation>, mutation_kinds> by_kind;
  for (Mutation& mutation : mutations(rule, registry))
    by_kind[static_cast<std::size_t>(mutation.kind)].push_back(std::move(mutation));
  Random random(seed, "mutations of " + rule.name);
  for (std::vector<Mutation>& some : by_kind)
    for (std::size_t i = some.size(); i > 1; --i) std::swap(some[i - 1], some[random.below(i)]);
  std::vector<Mutation> result;
  // Every rule begins with another kind, so that few mutations of many rules are of all kinds.
  const std::size_t first = random.below(mutation_kinds);
  for (std::size_t round = 0; result.size() < count; ++round) {
    bool left = false;
    for (std::size_t k = 0; k < mutation_kinds && result.size() < count; ++k) {
      std::vector<Mutation>& some = by_kind[(first + k) % mutation_kinds];
      if (round >= some.size()) continue;
      left = true;
      result.push_back(std::move(some[round]));
    }
    if (!left) break;
  }
  return result;
}

}  // namespace taso::testing
