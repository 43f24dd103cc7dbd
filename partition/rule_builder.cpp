#include "partition/rule_builder.h"

#include <algorithm>
#include <functional>
#include <set>

namespace taso {
namespace {

using Form = AttributeExpression::Kind;

void for_each_variable(AttributeExpression& e, const std::function<void(AttributeExpression&)>& f) {
  if (e.kind == Form::variable) f(e);
  for (AttributeExpression& operand : e.operands) for_each_variable(operand, f);
}

void for_each_variable(Pattern& pattern, const std::function<void(AttributeExpression&)>& f) {
  for (PatternNode& node : pattern.nodes)
    for (auto& [name, value] : node.attributes) for_each_variable(value, f);
}

void for_each_variable(std::vector<Condition>& conditions, const std::function<void(AttributeExpression&)>& f) {
  for (Condition& condition : conditions) {
    for_each_variable(condition.left, f);
    for_each_variable(condition.right, f);
  }
}

/// Writes the rule of a cut.
class RuleBuilder {
 public:
  RuleBuilder(const OperatorRegistry& registry, VariableCut cut) : registry_(registry), cut_(std::move(cut)) {}

  Expected<PartitionStrategy> build(const std::string& name) {
    const OperatorModel& model = cut_.model;
    const ModelVariable& variable = model.variables[cut_.variable];
    result_.op = model.definition->name;
    result_.variable = variable.name;
    result_.reducer = variable.reducer;
    Substitution& rule = result_.rule;
    rule.name = name;
    rule.attribute_variables = model.attribute_variables;
    for (const ModelTensor& tensor : model.tensors) rule.tensor_variables.push_back(tensor.name);
    make_source();
    TASO_RETURN_IF_ERROR(make_target());
    make_conditions();
    result_.cut = cut_.point;
    std::vector<std::uint32_t> moved;
    join_lists();
    compact_variables(rule, *cut_.model.definition, moved);
    renumber(moved);
    return std::move(result_);
  }

 private:
  [[nodiscard]] AttributeExpression expression(const SizePolynomial& p) {
    const std::optional<AttributeExpression> e = cut_.model.atoms.expression(p);
    if (!e) failed_ = true;
    return e.value_or(AttributeExpression());
  }

  void make_source() {
    PatternNode node;
    node.op = result_.op;
    for (std::uint32_t t = 0; t < cut_.model.tensors.size(); ++t) node.inputs.push_back({true, t, 0});
    for (const ModelAttribute& attribute : cut_.model.attributes)
      node.attributes.emplace_back(attribute.name, attribute.value);
    for (std::uint32_t k = 0; k < cut_.model.outputs.size(); ++k)
      result_.rule.source.outputs.push_back(add_node(result_.rule.source, node, k));
  }

  /// The part of an operand that a piece reads.
  PatternValue part(std::uint32_t tensor, bool second) {
    PatternValue value{true, tensor, 0};
    for (const AxisCut& cut : cut_.axes) {
      if (cut.tensor != tensor) continue;
      const ModelAxis& axis = cut_.model.tensors[tensor].axes[cut.axis];
      const SizePolynomial at = second ? cut.second_begin : cut.first_end;
      AttributeExpression sizes;
      sizes.kind = Form::list;
      sizes.operands = {expression(at), expression(axis.extent - at)};
      const PieceAttributes* names = registry_.pieces("split");
      value =
          add_node(result_.rule.target,
                   {"split", {value}, {{names->axis, expression(axis.number)}, {names->sizes, sizes}}}, second ? 1 : 0);
    }
    return value;
  }

  /// The results of a piece that are its part: those before or behind a place.
  PatternValue without(const PatternValue& made, const SizePolynomial& before, const SizePolynomial& behind,
                       std::uint32_t kept) {
    if ((kept == 0 ? behind : before).is_zero()) return made;
    AttributeExpression sizes;
    sizes.kind = Form::list;
    sizes.operands = {expression(before), expression(behind)};
    const PieceAttributes* names = registry_.pieces("split");
    return add_node(result_.rule.target, {"split", {made}, {{names->axis, result_.axis}, {names->sizes, sizes}}}, kept);
  }

  PatternNode piece(bool second) {
    PatternNode node;
    node.op = result_.op;
    for (std::uint32_t t = 0; t < cut_.model.tensors.size(); ++t) node.inputs.push_back(part(t, second));
    for (const ModelAttribute& attribute : cut_.model.attributes) {
      AttributeExpression value = attribute.value;
      if (!attribute.list.empty()) {
        std::vector<AttributeExpression> elements;
        for (const SizePolynomial& element : attribute.list) {
          const auto local = cut_.attributes.find(*element.single_atom());
          elements.push_back(expression(local == cut_.attributes.end() ? element
                                        : second                       ? local->second.second
                                                                       : local->second.first));
        }
        if (value.kind == Form::list)
          value.operands = elements;
        else
          value = elements[0];
      }
      node.attributes.emplace_back(attribute.name, std::move(value));
    }
    return node;
  }

  Status make_target() {
    if (registry_.pieces("split") == nullptr || !registry_.is_associative("concat"))
      return bad_input("there are no operators split and concat");
    for (const AxisCut& cut : cut_.axes) {
      const InputSpec& input = cut_.model.definition->inputs[cut_.model.definition->variadic() ? 0 : cut.tensor];
      const OperatorSignature* split = registry_.signature("split");
      if (input.integers() && (split == nullptr || !split->copies))
        return bad_input(input.name + " holds integers, which no operator cuts");
    }
    std::string combine = "concat";
    if (!result_.reducer.empty()) {
      combine = combining_operator(registry_, result_.reducer);
      if (combine.empty()) return bad_input("no operator combines partial results of " + result_.reducer);
    } else {
      const ModelVariable& variable = cut_.model.variables[cut_.variable];
      result_.axis = expression(cut_.model.outputs[0][variable.axis].number);
    }
    const PatternNode first = piece(false), second = piece(true);
    Pattern& target = result_.rule.target;
    result_.behind_first = expression(cut_.behind_first);
    result_.before_second = expression(cut_.before_second);
    const SizePolynomial point = cut_.model.atoms.of(variable_expression(cut_.point));
    for (std::uint32_t k = 0; k < cut_.model.outputs.size(); ++k) {
      const PatternValue one = without(add_node(target, first, k), point, cut_.behind_first, 0);
      const PatternValue other = without(add_node(target, second, k), cut_.before_second, cut_.extent - point, 1);
      PatternNode node{combine, {one, other}, {}};
      if (result_.reducer.empty()) node.attributes.emplace_back("axis", result_.axis);
      target.outputs.push_back(add_node(target, std::move(node)));
    }
    for (const AxisCut& cut : cut_.axes) {
      InputCut input{cut.tensor,
                     expression(cut_.model.tensors[cut.tensor].axes[cut.axis].number),
                     expression(cut.first_end),
                     expression(cut.second_begin),
                     {},
                     {}};
      for (std::size_t piece : {0, 1}) {
        input.read_begin.at(piece) = expression(cut.read_begin.at(piece));
        input.read_end.at(piece) = expression(cut.read_end.at(piece));
      }
      result_.inputs.push_back(std::move(input));
    }
    result_.extent = expression(cut_.extent);
    for (std::size_t a = 0; a < first.attributes.size(); ++a)
      if (first.attributes[a].second != cut_.model.attributes[a].value ||
          second.attributes[a].second != cut_.model.attributes[a].value)
        result_.attributes.push_back(
            {first.attributes[a].first, first.attributes[a].second, second.attributes[a].second});
    if (failed_) return bad_input("what a piece is cannot be said in a rule");
    return {};
  }

  /// Whether the rule names an attribute variable so far.
  [[nodiscard]] bool uses(std::uint32_t variable) {
    bool found = false;
    const auto note = [&](AttributeExpression& e) { found = found || e.index == variable; };
    for_each_variable(result_.rule.target, note);
    for_each_variable(result_.rule.conditions, note);
    return found;
  }

  void make_conditions() {
    std::vector<Condition>& conditions = result_.rule.conditions;
    conditions = cut_.conditions;
    std::vector<Condition> before = cut_.model.conditions;
    // What given variables are stands first: a use finds their values in this order.
    for (const ModelFactor& factor : cut_.model.factors)
      if (uses(factor.variable))
        before.push_back({Condition::Relation::equal,
                          expression(cut_.model.atoms.of(variable_expression(factor.variable)) * factor.rest),
                          expression(factor.axis)});
    for (const auto& [name, rest] : cut_.model.rests) {
      if (!uses(rest.variable)) continue;
      const AttributeExpression axis = variable_expression(rest.variable);
      const SizePolynomial number = cut_.model.atoms.of(axis);
      before.push_back({Condition::Relation::less_equal, integer_expression(0), expression(number - rest.least)});
      before.push_back({Condition::Relation::less_equal, axis, expression(rest.most)});
      for (const ModelAttribute& attribute : cut_.model.attributes)
        if (attribute.names_axes)
          for (const SizePolynomial& element : attribute.list)
            before.push_back({Condition::Relation::not_equal, axis, expression(element)});
    }
    conditions.insert(conditions.begin(), before.begin(), before.end());
  }

  /// A list whose elements the rule names only together is a variable.
  void join_lists() {
    Substitution& rule = result_.rule;
    for (const ModelAttribute& attribute : cut_.model.attributes) {
      if (attribute.value.kind != Form::list || attribute.value.operands.empty()) continue;
      std::size_t together = 0, elements = 0;
      const auto is_element = [&](const AttributeExpression& e) {
        return std::find(attribute.value.operands.begin(), attribute.value.operands.end(), e) !=
               attribute.value.operands.end();
      };
      const auto count = [&](AttributeExpression& e) { elements += is_element(e) ? 1 : 0; };
      for (Pattern* side : {&rule.source, &rule.target}) {
        for_each_variable(*side, count);
        for (const PatternNode& node : side->nodes)
          for (const auto& [name, value] : node.attributes)
            together += name == attribute.name && value == attribute.value ? 1 : 0;
      }
      for_each_variable(rule.conditions, count);
      if (elements != together * attribute.value.operands.size()) continue;
      const std::uint32_t variable = attribute.value.operands[0].index;
      rule.attribute_variables[variable] = free_name(attribute.name, variable);
      for (Pattern* side : {&rule.source, &rule.target})
        for (PatternNode& node : side->nodes)
          for (auto& [name, value] : node.attributes)
            if (name == attribute.name && value == attribute.value) value = variable_expression(variable);
    }
  }

  [[nodiscard]] std::string free_name(const std::string& wanted, std::uint32_t variable) const {
    const auto& names = result_.rule.attribute_variables;
    for (std::size_t v = 0; v < names.size(); ++v)
      if (v != variable && names[v] == wanted) return names[variable];
    return wanted;
  }

  void renumber(const std::vector<std::uint32_t>& moved) {
    const auto move = [&](AttributeExpression& e) { e.index = moved[e.index]; };
    result_.cut = moved[result_.cut];
    for_each_variable(result_.axis, move);
    for_each_variable(result_.extent, move);
    for_each_variable(result_.behind_first, move);
    for_each_variable(result_.before_second, move);
    for (InputCut& input : result_.inputs)
      for (AttributeExpression* e : {&input.axis, &input.first_end, &input.second_begin, &input.read_begin[0],
                                     &input.read_begin[1], &input.read_end[0], &input.read_end[1]})
        for_each_variable(*e, move);
    for (LocalAttribute& attribute : result_.attributes) {
      for_each_variable(attribute.first, move);
      for_each_variable(attribute.second, move);
    }
  }

  const OperatorRegistry& registry_;
  VariableCut cut_;
  PartitionStrategy result_;
  bool failed_ = false;
};

}  // namespace

PatternValue add_node(Pattern& pattern, PatternNode node, std::uint32_t port) {
  std::sort(node.attributes.begin(), node.attributes.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto same = std::find(pattern.nodes.begin(), pattern.nodes.end(), node);
  const auto number = static_cast<std::uint32_t>(same - pattern.nodes.begin());
  if (same == pattern.nodes.end()) pattern.nodes.push_back(std::move(node));
  return {false, number, port};
}

void compact_variables(Substitution& rule, const OperatorDefinition& definition, std::vector<std::uint32_t>& moved) {
  constexpr auto none = static_cast<std::uint32_t>(-1);
  moved.assign(rule.attribute_variables.size(), none);
  std::vector<std::string> names;
  const auto move = [&](AttributeExpression& e) {
    if (moved[e.index] == none) {
      moved[e.index] = static_cast<std::uint32_t>(names.size());
      names.push_back(rule.attribute_variables[e.index]);
    }
    e.index = moved[e.index];
  };
  // In the order of the definition, as a parser numbers them.
  for (PatternNode& node : rule.source.nodes)
    for (const AttributeSpec& attribute : definition.attributes)
      for (auto& [name, value] : node.attributes)
        if (name == attribute.name) for_each_variable(value, move);
  // Then the conditions: they say first what others are made of.
  for_each_variable(rule.conditions, move);
  for_each_variable(rule.target, move);
  // A number that tells apart what is left out is needed no more.
  for (std::string& name : names) {
    const std::string plain = name.substr(0, name.find_last_not_of("0123456789") + 1);
    if (name.size() == 2 && plain.size() == 1 && std::find(names.begin(), names.end(), plain) == names.end())
      name = plain;
  }
  rule.attribute_variables = std::move(names);
  for (std::uint32_t& number : moved)
    if (number == none) number = 0;
}

Expected<PartitionStrategy> make_strategy(const OperatorRegistry& registry, VariableCut cut, const std::string& name) {
  return RuleBuilder(registry, std::move(cut)).build(name);
}

}  // namespace taso
