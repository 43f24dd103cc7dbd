#include "verifier/compositions.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace taso {
namespace {

using Term = AttributeExpression;

// A definition as a pattern: tensor variable i is input i, attribute variable i is attribute i of the definition.
class ComposedTerm {
 public:
  ComposedTerm(const OperatorRegistry& registry, const OperatorDefinition& written)
      : registry_(registry), written_(written) {}

  std::optional<Pattern> run() {
    for (std::uint32_t i = 0; i < written_.inputs.size(); ++i) {
      if (written_.inputs[i].variadic()) return std::nullopt;
      tensors_[written_.inputs[i].name] = {true, i, 0};
    }
    for (const Application& application : written_.applications) {
      const std::optional<PatternValue> value = apply(application);
      if (!value) return std::nullopt;
      tensors_[application.target] = *value;
    }
    const auto out = tensors_.find("out");
    if (out == tensors_.end()) return std::nullopt;
    pattern_.outputs = {out->second};
    return std::move(pattern_);
  }

 private:
  std::optional<PatternValue> apply(const Application& application) {
    const OperatorDefinition* applied = registry_.find(application.op);
    if (applied == nullptr) return std::nullopt;
    PatternNode node{application.op, {}, {}};
    for (const Application::Operand& operand : application.operands) {
      std::optional<PatternValue> value;
      if (operand.application != nullptr) {
        value = apply(*operand.application);
      } else if (const auto known = tensors_.find(operand.tensor); known != tensors_.end()) {
        value = known->second;
      }
      if (!value) return std::nullopt;
      node.inputs.push_back(*value);
    }
    // Rules give all attributes, those with their defaults, too.
    for (const AttributeSpec& spec : applied->attributes) {
      const auto given = std::find_if(application.attributes.begin(), application.attributes.end(),
                                      [&](const auto& entry) { return entry.first == spec.name; });
      std::optional<Term> term;
      if (given != application.attributes.end())
        term = attribute(given->second, spec.kind);
      else if (spec.default_value)
        term.emplace().literal = *spec.default_value;
      if (!term) return std::nullopt;
      node.attributes.emplace_back(spec.name, std::move(*term));
    }
    std::sort(node.attributes.begin(), node.attributes.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    pattern_.nodes.push_back(std::move(node));
    return PatternValue{false, static_cast<std::uint32_t>(pattern_.nodes.size() - 1),
                        static_cast<std::uint32_t>(application.output.value_or(0))};
  }

  std::optional<Term> attribute(const Expression& e, AttributeKind kind) {
    if (e.kind == Expression::Kind::name)
      if (std::optional<Term> variable = variable_of(e.name)) return variable;
    Term literal;
    if (kind == AttributeKind::symbol) {
      literal.literal = SymbolValue{e.name};
      return literal;
    }
    if (kind == AttributeKind::real) {
      const std::optional<double> number = e.number();
      if (!number) return std::nullopt;
      literal.literal = *number;
      return literal;
    }
    return size(e);
  }

  [[nodiscard]] std::optional<Term> variable_of(const std::string& name) const {
    for (std::uint32_t i = 0; i < written_.attributes.size(); ++i) {
      if (written_.attributes[i].name != name) continue;
      Term variable;
      variable.kind = Term::Kind::variable;
      variable.index = i;
      return variable;
    }
    return std::nullopt;
  }

  // The extent of an input's axis that is counted from one end.
  [[nodiscard]] std::optional<Term> extent_of(const std::string& name) const {
    const auto is_rest = [](const AxisSpec& axis) { return axis.kind == AxisSpec::Kind::rest; };
    for (std::uint32_t i = 0; i < written_.inputs.size(); ++i) {
      const std::vector<AxisSpec>& axes = written_.inputs[i].axes;
      for (auto axis = axes.begin(); axis != axes.end(); ++axis) {
        if (axis->kind != AxisSpec::Kind::size || axis->factors[0].kind != Expression::Kind::name ||
            axis->factors[0].name != name)
          continue;
        Term extent;
        extent.kind = Term::Kind::dimension;
        extent.index = i;
        if (std::none_of(axis, axes.end(), is_rest))
          extent.axis = axis - axes.end();
        else if (std::none_of(axes.begin(), axis, is_rest))
          extent.axis = axis - axes.begin();
        else
          continue;
        return extent;
      }
    }
    return std::nullopt;
  }

  std::optional<Term> size(const Expression& e) {
    using Kind = Expression::Kind;
    Term term;
    const auto with_operands = [&](Term::Kind kind) -> std::optional<Term> {
      term.kind = kind;
      for (const Expression& operand : e.operands) {
        std::optional<Term> part = size(operand);
        if (!part) return std::nullopt;
        term.operands.push_back(std::move(*part));
      }
      return term;
    };
    switch (e.kind) {
      case Kind::integer:
        term.literal = e.integer;
        return term;
      case Kind::name: {
        std::optional<Term> variable = variable_of(e.name);
        return variable ? variable : extent_of(e.name);
      }
      case Kind::negate: {
        if (const std::optional<double> number = e.number(); number && e.operands[0].kind == Kind::integer) {
          term.literal = -e.operands[0].integer;
          return term;
        }
        std::optional<Term> operand = size(e.operands[0]);
        if (!operand) return std::nullopt;
        term.kind = Term::Kind::subtract;
        term.operands = {Term{}, std::move(*operand)};
        return term;
      }
      case Kind::list: {
        std::optional<Term> list = with_operands(Term::Kind::list);
        std::vector<std::int64_t> numbers;
        for (std::size_t i = 0; list && i < list->operands.size(); ++i)
          if (const auto* number = std::get_if<std::int64_t>(&list->operands[i].literal);
              number != nullptr && list->operands[i].kind == Term::Kind::literal)
            numbers.push_back(*number);
        if (!list || numbers.size() != list->operands.size()) return list;
        Term literal;
        literal.literal = std::move(numbers);
        return literal;
      }
      case Kind::add:
        return with_operands(Term::Kind::add);
      case Kind::subtract:
        return with_operands(Term::Kind::subtract);
      case Kind::multiply:
        return with_operands(Term::Kind::multiply);
      case Kind::floor_divide:
        return with_operands(Term::Kind::floor_divide);
      case Kind::element: {
        if (e.operands[1].kind != Kind::integer) return std::nullopt;
        std::optional<Term> list = size(e.operands[0]);
        if (!list) return std::nullopt;
        term.kind = Term::Kind::element;
        term.axis = e.operands[1].integer;
        term.operands = {std::move(*list)};
        return term;
      }
      default:
        return std::nullopt;
    }
  }

  const OperatorRegistry& registry_;
  const OperatorDefinition& written_;
  std::map<std::string, PatternValue> tensors_;
  Pattern pattern_;
};

// Nothing where the definition has equations of its own, or attributes of what it applies that a rule cannot say.
std::optional<Pattern> composed_term(const OperatorRegistry& registry, const OperatorDefinition& definition) {
  if (definition.written == nullptr || definition.several_outputs()) return std::nullopt;
  const OperatorDefinition& written = *definition.written;
  if (!written.equations.empty() || !written.intermediates.empty()) return std::nullopt;
  return ComposedTerm(registry, written).run();
}

// One side of a rule with the terms of compositions in their places.
class Unfolding {
 public:
  Unfolding(const OperatorRegistry& registry, const Pattern& pattern) : registry_(registry), pattern_(pattern) {}

  // Nothing where a composition has an attribute that depends on extents of what is not a variable.
  std::optional<Pattern> run() {
    for (const PatternNode& node : pattern_.nodes) {
      std::vector<PatternValue> inputs;
      for (const PatternValue& input : node.inputs) inputs.push_back(value(input));
      if (!unfold(node, std::move(inputs))) return std::nullopt;
    }
    for (const PatternValue& output : pattern_.outputs) result_.outputs.push_back(value(output));
    return std::move(result_);
  }
  [[nodiscard]] bool any() const { return any_; }

 private:
  [[nodiscard]] PatternValue value(const PatternValue& old) const {
    if (old.is_variable) return old;
    const PatternValue& first = places_[old.index];
    return {first.is_variable, first.index, first.is_variable ? first.port : first.port + old.port};
  }

  bool unfold(const PatternNode& node, std::vector<PatternValue> inputs) {
    const OperatorDefinition* definition = registry_.find(node.op);
    const std::optional<Pattern> term =
        definition != nullptr ? composed_term(registry_, *definition) : std::optional<Pattern>();
    if (!term) {
      result_.nodes.push_back({node.op, std::move(inputs), node.attributes});
      places_.push_back({false, static_cast<std::uint32_t>(result_.nodes.size() - 1), 0});
      return true;
    }
    any_ = true;
    // The term's own nodes, which may be compositions again, in a list of places of their own.
    std::vector<PatternValue> outer;
    std::swap(outer, places_);
    const auto inner = [&](const PatternValue& old) {
      return old.is_variable ? inputs[old.index] : places_[old.index];
    };
    for (const PatternNode& part : term->nodes) {
      PatternNode placed{part.op, {}, part.attributes};
      for (auto& [name, attribute] : placed.attributes)
        if (!place(attribute, node, *definition, inputs)) return false;
      std::vector<PatternValue> operands;
      for (const PatternValue& input : part.inputs) operands.push_back(inner(input));
      if (!unfold(placed, std::move(operands))) return false;
    }
    const PatternValue out = inner(term->outputs[0]);
    std::swap(outer, places_);
    places_.push_back(out);
    return true;
  }

  // An attribute of a term where the composition is applied by `node`.
  static bool place(Term& attribute, const PatternNode& node, const OperatorDefinition& definition,
                    const std::vector<PatternValue>& inputs) {
    if (attribute.kind == Term::Kind::variable) {
      const AttributeSpec& spec = definition.attributes[attribute.index];
      const auto given = std::find_if(node.attributes.begin(), node.attributes.end(),
                                      [&](const auto& entry) { return entry.first == spec.name; });
      if (given == node.attributes.end() && !spec.default_value) return false;
      Term in_place;
      if (given != node.attributes.end())
        in_place = given->second;
      else
        in_place.literal = *spec.default_value;
      attribute = std::move(in_place);
      return true;
    }
    if (attribute.names_tensor()) {
      if (!inputs[attribute.index].is_variable) return false;
      attribute.index = inputs[attribute.index].index;
    }
    return std::all_of(attribute.operands.begin(), attribute.operands.end(),
                       [&](Term& operand) { return place(operand, node, definition, inputs); });
  }

  const OperatorRegistry& registry_;
  const Pattern& pattern_;
  Pattern result_;
  std::vector<PatternValue> places_;  // of the nodes' outputs
  bool any_ = false;
};

}  // namespace

std::optional<Substitution> with_compositions_unfolded(const OperatorRegistry& registry, const Substitution& rule) {
  Substitution result = rule;
  bool any = false;
  for (Pattern Substitution::*side : {&Substitution::source, &Substitution::target}) {
    Unfolding unfolding(registry, rule.*side);
    std::optional<Pattern> pattern = unfolding.run();
    if (!pattern) return std::nullopt;
    any = any || unfolding.any();
    result.*side = std::move(*pattern);
  }
  return any ? std::optional(std::move(result)) : std::nullopt;
}

}  // namespace taso
