#include "onnx_io/mapped.h"

#include <algorithm>

#include "graph/reals.h"
#include "onnx_io/schema_types.h"

namespace taso {
namespace {

using Type = onnx::AttributeProto;

/// Files before IR version 3 need not name the type of an attribute.
Type::AttributeType type_of(const onnx::AttributeProto& attribute) {
  if (attribute.type() != Type::UNDEFINED) return attribute.type();
  if (attribute.has_i()) return Type::INT;
  if (attribute.has_f()) return Type::FLOAT;
  if (attribute.has_s()) return Type::STRING;
  return attribute.ints_size() > 0 ? Type::INTS : Type::UNDEFINED;
}

/// The number that a constant is, if it is one.
std::optional<double> number_of(const NodeContext::Input& input) {
  const TensorType& type = input.type;
  if (input.constant == nullptr || input.from_symbols || !is_real(type.element) || type.elements() != 1)
    return std::nullopt;
  return input.constant->to_reals().at(0);
}

MappedNode description_of(const NodeContext& c) {
  MappedNode node;
  node.domain = domain_of(c.proto());
  node.type = c.proto().op_type();
  node.version = c.version();
  for (std::size_t i = 0; i < c.input_count(); ++i) {
    const NodeContext::Input& input = c.inputs()[i];
    const bool constant = c.is_constant(i) || c.is_only_shape(i);
    node.inputs.push_back(input.present ? std::optional(MappedOperand{input.type, constant, number_of(input)})
                                        : std::nullopt);
  }
  for (std::size_t i = 0; i < c.output_count(); ++i) node.outputs.push_back(c.uses_output(i));
  for (const auto& attribute : c.proto().attribute()) {
    switch (type_of(attribute)) {
      case Type::INT:
        node.attributes[attribute.name()] = attribute.i();
        break;
      case Type::FLOAT:
        node.attributes[attribute.name()] = static_cast<double>(attribute.f());
        break;
      case Type::STRING:
        node.attributes[attribute.name()] = SymbolValue{attribute.s()};
        break;
      case Type::INTS:
        node.attributes[attribute.name()] = std::vector<std::int64_t>(attribute.ints().begin(), attribute.ints().end());
        break;
      default:
        node.other_attributes.insert(attribute.name());
        break;
    }
  }
  return node;
}

Obstacle obstacle_of(NodeReading::Misfit misfit) {
  switch (misfit) {
    case NodeReading::Misfit::form:
      return Obstacle::map;
    case NodeReading::Misfit::element_type:
      return Obstacle::element_type;
    case NodeReading::Misfit::unknown_type:
      return Obstacle::unknown_type;
  }
  return Obstacle::map;
}

OnnxAttribute attribute_of(const std::string& name, const AttributeValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return {name, *integer};
  if (const auto* real = std::get_if<double>(&value)) return {name, *real};
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) return {name, *list};
  return {name, std::get<SymbolValue>(value).name};
}

/// Whether an operator is a scalar function of every element of its only input.
bool applies_function(const OperatorDefinition& definition, const std::string& function) {
  if (definition.inputs.size() != 1 || definition.equations.size() != 1 || !definition.attributes.empty()) return false;
  const Expression& value = definition.equations[0].value;
  const bool negates = value.kind == Expression::Kind::negate && function == "neg";
  const bool calls = value.kind == Expression::Kind::call && value.name == function;
  return (negates || calls) && value.operands.size() == 1 && value.operands[0].kind == Expression::Kind::read &&
         value.operands[0].name == definition.inputs[0].name && definition.signature.max_inputs == 1 &&
         definition.output.piece.empty();
}

NewNode new_node(const NodeWriting& writing, LoweringContext& c, const std::vector<TensorRef>& operands,
                 const std::vector<TensorRef>& outputs) {
  NewNode made;
  made.op_type = writing.node.type;
  made.domain = writing.node.domain;
  for (std::size_t i = 0; i < writing.inputs.size(); ++i) {
    const auto& operand = writing.inputs[i];
    const auto& number = writing.numbers[i];
    made.inputs.push_back(operand ? operands[*operand] : number ? c.scalar(static_cast<float>(*number)) : TensorRef{});
  }
  for (const auto& output : writing.outputs) made.outputs.push_back(output ? outputs[*output] : TensorRef{});
  for (const auto& [name, value] : writing.node.attributes) made.attributes.push_back(attribute_of(name, value));
  return made;
}

}  // namespace

void import_mapped(NodeContext& c, const OperatorRegistry& registry) {
  if (c.output_count() == 0) return c.decline("it has no outputs");
  for (std::size_t i = 0; i < c.input_count(); ++i)
    if (c.inputs()[i].from_symbols && !is_real(c.type(i).element))
      return c.decline("input " + std::to_string(i) + " follows from symbolic extents", Obstacle::symbolic);
  const MappedNode node = description_of(c);
  const NodeReading reading = read_node(registry, node);
  if (reading.mapping == nullptr) return c.decline(reading.reason, obstacle_of(reading.misfit));
  if (c.reads_extents() && !registry.find(reading.mapping->op)->over_reals)
    return c.decline("what it makes follows from symbolic extents", Obstacle::symbolic);
  std::vector<Value> operands;
  for (const std::size_t i : reading.arguments)
    operands.push_back(reading.common ? c.broadcast(c.value(i), *reading.common) : c.value(i));
  const Value result = c.op(reading.mapping->op, std::move(operands), reading.attributes);
  // What an operator set newer than the linked ONNX says of more types is not known, nor could it be written.
  if (const OperatorDefinition& definition = *registry.find(reading.mapping->op);
      !c.stopped() && !definition.over_reals && reading.mapping->domain.empty() &&
      !makes_elements(c.proto().op_type(), c.opset(), c.graph().type(result).element))
    return c.decline("its elements are " + std::string(to_string(c.type(0).element)), Obstacle::element_type);
  for (std::size_t i = 0; i < reading.outputs.size(); ++i)
    if (reading.outputs[i]) c.output(i, {result.node, *reading.outputs[i]});
}

bool all_broadcast(const NodeMaps::Mappings& mappings) {
  return !mappings.empty() &&
         std::all_of(mappings.begin(), mappings.end(), [](const auto& mapping) { return mapping->broadcasting; });
}

std::vector<ImportedOperator> mapped_operators(const OperatorRegistry& registry) {
  std::map<std::string, ImportedOperator> found;
  for (const auto& mapping : registry.node_maps().all()) {
    if (!mapping->domain.empty()) continue;
    ImportedOperator& entry = found[mapping->type];
    const std::string form = mapping->op + (mapping->broadcasting ? " of broadcasts" : "");
    if (entry.form.find(form) == std::string::npos) entry.form += (entry.form.empty() ? "" : ", ") + form;
    entry.op_type = mapping->type;
  }
  std::vector<ImportedOperator> result;
  result.reserve(found.size());
  for (auto& [type, entry] : found) result.push_back(std::move(entry));
  return result;
}

bool maps_round_extents(const Document& document, const OperatorRegistry& registry) {
  const auto& nodes = document.graph().node();
  return std::any_of(nodes.begin(), nodes.end(), [&](const onnx::NodeProto& node) {
    const NodeMaps::Mappings& mappings = registry.node_maps().of_type(domain_of(node), node.op_type());
    return std::any_of(mappings.begin(), mappings.end(), [&](const auto& mapping) {
      return registry.typing_text(mapping->op).find("//") != std::string::npos;
    });
  });
}

bool MapWriter::may_write(const NodeMapping& mapping, const LoweringContext& c, Lines lines) const {
  switch (lines) {
    case Lines::origin: {
      const std::int32_t origin = c.node().origin;
      if (origin < 0 || origin >= document_->graph().node_size()) return false;
      const onnx::NodeProto& node = document_->node(origin);
      return mapping.domain == domain_of(node) && mapping.type == node.op_type();
    }
    case Lines::onnx:
      return mapping.domain.empty();
    case Lines::foreign:
      return !mapping.domain.empty() &&
             (document_->has_node(mapping.domain, mapping.type) || registry_->node_maps().allows(mapping.domain));
  }
  return false;
}

std::int64_t MapWriter::version_of(const std::string& domain) const {
  const std::int64_t version = document_->version(domain);
  return version == 0 && !domain.empty() ? version_of_new_domains : version;
}

bool MapWriter::write(LoweringContext& c, Lines lines) const {
  const Node& node = c.node();
  const bool has_numbers =
      std::all_of(node.attributes.entries().begin(), node.attributes.entries().end(), [&](const auto& attribute) {
        if (const auto* list = std::get_if<std::vector<std::int64_t>>(&attribute.second)) return c.are_numbers(*list);
        const auto* integer = std::get_if<std::int64_t>(&attribute.second);
        return integer == nullptr || c.is_number(*integer);
      });
  if (!has_numbers) return false;
  for (const auto& mapping : registry_->node_maps().of_operator(node.op)) {
    if (!may_write(*mapping, c, lines)) continue;
    std::vector<TensorRef> operands;
    if (mapping->broadcasting)
      operands = c.broadcasting_operands();
    else
      for (std::size_t i = 0; i < node.inputs.size(); ++i) operands.push_back(c.in(i));
    std::vector<MappedOperand> mapped;
    mapped.reserve(operands.size());
    for (const TensorRef& operand : operands)
      mapped.push_back({c.type_at_a_sample(operand.value), c.is_constant(operand.value), c.number(operand.value)});
    const auto writing =
        write_node(*registry_, *mapping, version_of(mapping->domain), node.attributes, mapped, node.outputs.size());
    if (!writing) continue;
    std::vector<TensorRef> outputs;
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port) outputs.push_back(c.out(port));
    c.emit(new_node(*writing, c, operands, outputs));
    return true;
  }
  return false;
}

bool MapWriter::write_function(LoweringContext& c, const std::string& function, TensorRef input, TensorRef output,
                               Lines lines) const {
  const OperatorDefinition* definition = registry_->find(function);
  if (definition == nullptr || !applies_function(*definition, function)) return false;
  const std::vector<MappedOperand> types = {{c.type_at_a_sample({c.id(), 0}), false, std::nullopt}};
  for (const auto& mapping : registry_->node_maps().of_operator(function)) {
    if (!may_write(*mapping, c, lines)) continue;
    const auto writing = write_node(*registry_, *mapping, version_of(mapping->domain), {}, types, 1);
    if (!writing) continue;
    c.emit(new_node(*writing, c, {input}, {output}));
    return true;
  }
  return false;
}

std::string MapWriter::why_not(std::string_view op) const {
  const std::int64_t opset = document_->version("");
  std::string reason;
  for (const auto& mapping : registry_->node_maps().of_operator(op)) {
    if (!mapping->domain.empty()) continue;
    if (opset < mapping->first || opset > mapping->last)
      reason = mapping->type + " is not in opset " + std::to_string(opset);
    else
      return mapping->type + " has no such form";
  }
  return reason;
}

}  // namespace taso
