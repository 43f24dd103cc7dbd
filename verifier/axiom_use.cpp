#include "verifier/axiom_use.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "verifier/enumerate.h"
#include "verifier/theory/session.h"

namespace taso {

Pattern only_output(const Pattern& pattern, std::size_t output) {
  constexpr std::uint32_t absent = UINT32_MAX;
  Pattern result;
  std::vector<bool> needed(pattern.nodes.size(), false);
  const PatternValue root = pattern.outputs[output];
  if (!root.is_variable) needed[root.index] = true;
  for (std::size_t i = pattern.nodes.size(); i-- > 0;)
    for (const PatternValue& input : pattern.nodes[i].inputs)
      if (needed[i] && !input.is_variable) needed[input.index] = true;
  std::vector<std::uint32_t> places(pattern.nodes.size(), absent);
  auto moved = [&](PatternValue value) {
    if (!value.is_variable) value.index = places[value.index];
    return value;
  };
  for (std::size_t i = 0; i < pattern.nodes.size(); ++i) {
    if (!needed[i]) continue;
    PatternNode node = pattern.nodes[i];
    for (PatternValue& input : node.inputs) input = moved(input);
    places[i] = static_cast<std::uint32_t>(result.nodes.size());
    result.nodes.push_back(std::move(node));
  }
  result.outputs.push_back(moved(root));
  return result;
}

namespace {

// Up to so many instances the first ones are taken: an estimate of their number would cost more.
constexpr std::size_t few = 500;

// The part of an axiom that one use of it needs: an output of the side that is matched, the other side's, and the
// variables of the former, renumbered.
class Use {
 public:
  Use(const OperatorRegistry& registry, const Substitution& axiom, const ShapeFacts& shapes, bool left_to_right,
      std::size_t output)
      : registry_(registry) {
    matched_ = only_output(left_to_right ? axiom.source : axiom.target, output);
    made_ = only_output(left_to_right ? axiom.target : axiom.source, output);
    tensors_.assign(axiom.tensor_variables.size(), absent);
    attributes_.assign(axiom.attribute_variables.size(), absent);
    search_.name = axiom.name;
    search_.source = matched_;
    if (matched_.nodes.empty()) return;
    visit(
        search_.source,
        [&](std::uint32_t& v) { v = number(tensors_, v, axiom.tensor_variables, search_.tensor_variables); },
        [&](std::uint32_t& v) { v = number(attributes_, v, axiom.attribute_variables, search_.attribute_variables); });
    search_.target = search_.source;
    for (const std::size_t v : shapes.result_shapes[output])
      if (attributes_[v] == absent) supplied_.push_back(v);
    // Whatever else the other side has must have been matched.
    usable_ = true;
    auto tensor = [&](std::uint32_t& v) { usable_ = usable_ && tensors_[v] != absent; };
    auto attribute = [&](std::uint32_t& v) {
      usable_ =
          usable_ && (attributes_[v] != absent || std::find(supplied_.begin(), supplied_.end(), v) != supplied_.end());
    };
    Pattern made = made_;
    visit(made, tensor, attribute);
    std::vector<Condition> conditions = axiom.conditions;
    for (const Condition& condition : theory::rank_conditions(registry, axiom, matched_, made_))
      conditions.push_back(condition);
    for (Condition& condition : conditions)
      for (AttributeExpression* side : {&condition.left, &condition.right}) visit(*side, tensor, attribute);
    if (!usable_) return;
    for (Condition& condition : conditions) {
      bool supplied = false;
      for (AttributeExpression* side : {&condition.left, &condition.right})
        visit(
            *side, [&](std::uint32_t& v) { v = tensors_[v]; },
            [&](std::uint32_t& v) {
              supplied = supplied || attributes_[v] == absent;
              v = attributes_[v];
            });
      if (!supplied) search_.conditions.push_back(std::move(condition));
    }
  }

  [[nodiscard]] bool usable() const { return usable_; }
  [[nodiscard]] const Substitution& search() const { return search_; }

  // Whether the other side has the type of the matched one, or, if they may differ, any.
  [[nodiscard]] bool well_typed(const Instance& instance, bool may_differ) const {
    Bindings bindings;
    bindings.tensors.assign(tensors_.size(), nullptr);
    bindings.attributes.resize(attributes_.size());
    for (std::size_t v = 0; v < tensors_.size(); ++v)
      if (tensors_[v] != absent) bindings.tensors[v] = &instance.variables[tensors_[v]];
    for (std::size_t v = 0; v < attributes_.size(); ++v)
      if (attributes_[v] != absent) bindings.attributes[v] = instance.attributes[attributes_[v]];
    const std::optional<TensorType> type = type_of(matched_, bindings);
    if (!type) return true;
    for (const std::size_t v : supplied_) bindings.attributes[v] = type->shape;
    const std::optional<TensorType> other = type_of(made_, bindings);
    return other ? may_differ || other->shape == type->shape : may_differ;
  }

 private:
  static constexpr std::uint32_t absent = UINT32_MAX;

  static std::uint32_t number(std::vector<std::uint32_t>& numbers, std::uint32_t v, const std::vector<std::string>& old,
                              std::vector<std::string>& names) {
    if (numbers[v] == absent) {
      numbers[v] = static_cast<std::uint32_t>(names.size());
      names.push_back(old[v]);
    }
    return numbers[v];
  }

  template <class Tensor, class Attribute>
  static void visit(AttributeExpression& expression, const Tensor& tensor, const Attribute& attribute) {
    if (expression.kind == AttributeExpression::Kind::variable) attribute(expression.index);
    if (expression.names_tensor()) tensor(expression.index);
    for (AttributeExpression& operand : expression.operands) visit(operand, tensor, attribute);
  }
  template <class Tensor, class Attribute>
  static void visit(Pattern& pattern, const Tensor& tensor, const Attribute& attribute) {
    for (PatternNode& node : pattern.nodes) {
      for (PatternValue& input : node.inputs)
        if (input.is_variable) tensor(input.index);
      for (auto& [name, expression] : node.attributes) visit(expression, tensor, attribute);
    }
    for (PatternValue& output : pattern.outputs)
      if (output.is_variable) tensor(output.index);
  }

  [[nodiscard]] std::optional<TensorType> type_of(const Pattern& pattern, const Bindings& bindings) const {
    std::vector<std::vector<TensorType>> types;
    auto find = [&](const PatternValue& value) -> const TensorType* {
      if (value.is_variable) return bindings.tensors[value.index];
      return value.port < types[value.index].size() ? &types[value.index][value.port] : nullptr;
    };
    for (const PatternNode& node : pattern.nodes) {
      const Expected<Attributes> attributes = evaluate_attributes(node, bindings, registry_);
      if (!attributes) return std::nullopt;
      std::vector<TensorType> inputs;
      for (const PatternValue& input : node.inputs) {
        const TensorType* type = find(input);
        if (type == nullptr) return std::nullopt;
        inputs.push_back(*type);
      }
      if (!registry_.accepts(node.op, *attributes, inputs)) return std::nullopt;
      Expected<std::vector<TensorType>> outputs = registry_.infer(node.op, *attributes, inputs);
      if (!outputs) return std::nullopt;
      types.push_back(std::move(*outputs));
    }
    const TensorType* result = find(pattern.outputs[0]);
    return result == nullptr ? std::nullopt : std::optional(*result);
  }

  const OperatorRegistry& registry_;
  Pattern matched_, made_;
  Substitution search_;
  std::vector<std::uint32_t> tensors_, attributes_;  // numbers of the axiom's variables in the search
  std::vector<std::size_t> supplied_;                // lists that become the shape of the result
  bool usable_ = false;
};

std::string description(const Substitution& rule, const Instance& instance) {
  std::string text;
  for (std::size_t v = 0; v < rule.tensor_variables.size(); ++v)
    text += (text.empty() ? "" : ", ") + rule.tensor_variables[v] + ": " + to_string(instance.variables[v]);
  for (std::size_t v = 0; v < rule.attribute_variables.size(); ++v)
    if (instance.attributes[v])
      text += (text.empty() ? "" : ", ") + rule.attribute_variables[v] + " = " + to_string(*instance.attributes[v]);
  return text;
}

}  // namespace

std::optional<std::string> ill_typed_use(const OperatorRegistry& registry, const Substitution& axiom,
                                         const ShapeFacts& shapes, bool left_to_right, std::size_t output,
                                         std::size_t instances, LoweredCache& cache) {
  const Use use(registry, axiom, shapes, left_to_right, output);
  if (!use.usable()) return std::nullopt;
  Enumeration enumeration(registry, use.search(), cache,
                          {.domain = {.bound = 3},
                           .max_instances = 2 * instances,
                           .max_steps = 50 * instances,
                           .thin_above = instances > few ? instances : 0});
  std::optional<std::string> found;
  enumeration.run([&] {
    const Instance instance = enumeration.instance();
    if (use.well_typed(instance, shapes.may_differ)) return true;
    found = description(use.search(), instance);
    return false;
  });
  return found;
}

}  // namespace taso
