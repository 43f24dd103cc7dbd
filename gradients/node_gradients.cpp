#include "gradients/node_gradients.h"

#include <utility>

namespace taso {

namespace {

using Kind = GradientOperand::Kind;

const OperatorDefinition& definition_of(const OperatorRegistry& registry, const Node& node) {
  const OperatorDefinition* found = node.kind == NodeKind::op ? registry.find(node.op) : nullptr;
  TASO_CHECK(found != nullptr, "only operators have gradients");
  return *found;
}

}  // namespace

NodeGradients::NodeGradients(NodeAdder& adder, const OperatorRegistry& registry, const GradientTable& table,
                             NodeId node, std::vector<std::optional<Value>> output_gradients)
    : adder_(adder),
      definition_(definition_of(registry, adder.graph().node(node))),
      table_(table),
      id_(node),
      node_(adder.graph().node(node)),
      output_gradients_(std::move(output_gradients)) {
  for (const taso::Value input : node_.inputs) types_.push_back(adder.graph().type(input));
}

const GradientEntry* NodeGradients::entry(std::size_t position) const {
  const OperatorGradients* gradients = table_.find(node_.op);
  if (gradients == nullptr) return nullptr;
  const std::size_t input = definition_.variadic() ? 0 : position;
  for (const GradientEntry& entry : gradients->entries)
    if (entry.input == input && (!entry.condition || entry.condition->holds(node_.attributes, types_))) return &entry;
  return nullptr;
}

Expected<Value> NodeGradients::of(std::size_t position) {
  const std::string& name = definition_.inputs[definition_.variadic() ? 0 : position].name;
  const GradientEntry* entry = this->entry(position);
  if (entry == nullptr)
    return bad_input("no table has a gradient of input " + name + " of " + node_.op + "(" +
                     to_string(node_.attributes) + ")");
  Expected<Value> result = value(entry->value, position);
  if (!result) return result;
  if (adder_.graph().type(*result) == types_[position]) return result;
  return bad_input("the gradient of input " + name + " of " + node_.op + " is " +
                       to_string(adder_.graph().type(*result)) + ", but the input is " + to_string(types_[position]),
                   entry->where);
}

Expected<Value> NodeGradients::value(const GradientOperand& operand, std::size_t position) {
  switch (operand.kind) {
    case Kind::input:
      return node_.inputs[operand.index];
    case Kind::output:
      return Value{id_, 0};
    case Kind::output_gradient:
      return output_gradient(0);
    case Kind::term:
      return apply(*operand.term, position);
    case Kind::inputs:
    case Kind::output_gradients:
      break;
  }
  return bad_input("several tensors stand where one is needed");
}

Status NodeGradients::add_values(const GradientOperand& operand, std::size_t position, std::vector<Value>& values) {
  if (operand.kind == Kind::inputs) {
    values.insert(values.end(), node_.inputs.begin(), node_.inputs.end());
  } else if (operand.kind == Kind::output_gradients) {
    for (std::size_t output = 0; output < node_.outputs.size(); ++output) {
      TASO_ASSIGN(const Value gradient, output_gradient(output));
      values.push_back(gradient);
    }
  } else {
    TASO_ASSIGN(const Value one, value(operand, position));
    values.push_back(one);
  }
  return {};
}

Expected<Value> NodeGradients::output_gradient(std::size_t output) {
  std::optional<Value>& known = output_gradients_[output];
  if (!known) {
    const TensorType& type = node_.outputs[output];
    TASO_ASSIGN(const NodeId zeros, adder_.add("fill", {{"shape", type.shape}, {"value", 0.0}}, {}));
    known = Value{zeros, 0};
  }
  return *known;
}

Expected<Attributes> NodeGradients::attributes_of(const GradientTerm& term) const {
  Attributes result;
  for (const auto& [name, source] : term.attributes) {
    if (const auto* copied = std::get_if<CopiedAttribute>(&source)) {
      result.set(name, *node_.attributes.find(copied->name));
    } else if (const auto* literal = std::get_if<AttributeValue>(&source)) {
      result.set(name, *literal);
    } else {
      TASO_ASSIGN(AttributeValue value, std::get<SizeQuery>(source).at(node_.attributes, types_));
      result.set(name, std::move(value));
    }
  }
  return result;
}

Expected<Value> NodeGradients::apply(const GradientTerm& term, std::size_t position) {
  std::vector<Value> operands;
  for (const GradientOperand& operand : term.operands) TASO_RETURN_IF_ERROR(add_values(operand, position, operands));
  TASO_ASSIGN(const Attributes attributes, attributes_of(term));
  const Expected<NodeId> added = adder_.add(term.op, attributes, std::move(operands));
  if (!added) {
    Error error = added.error();
    error.where = term.where;
    return error;
  }
  const std::uint32_t output = term.counted ? static_cast<std::uint32_t>(position) : term.output;
  if (output >= adder_.graph().node(*added).outputs.size())
    return bad_input(term.op + " has no output " + std::to_string(output), term.where);
  return Value{*added, output};
}

}  // namespace taso
