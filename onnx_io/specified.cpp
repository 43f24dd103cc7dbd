#include "onnx_io/specified.h"

#include "graph/term_syntax.h"
#include "onnx_io/functions.h"

namespace taso {

void import_specified(NodeContext& c, const OperatorCatalog& catalog) {
  const std::string op = specified_operator(c.proto().op_type());
  const OperatorSignature& signature = *catalog.signature(op);
  if (const std::string problem = arity_problem(signature, c.input_count()); !problem.empty())
    return c.fail(op + " " + problem);
  std::vector<Value> inputs;
  for (std::size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has_input(i)) return c.fail("input " + std::to_string(i) + " is absent but not optional");
    if (!c.type(i).known) return c.decline_untyped();
    inputs.push_back(c.value(i));
  }
  Attributes attributes;
  for (const AttributeSignature& attribute : signature.attributes) {
    if (!c.has_attribute(attribute.name)) {
      if (!attribute.default_value) return c.fail("attribute " + attribute.name + " is missing");
      attributes.set(attribute.name, *attribute.default_value);
      continue;
    }
    switch (attribute.kind) {
      case AttributeKind::integer:
        attributes.set(attribute.name, c.integer(attribute.name, 0));
        break;
      case AttributeKind::real:
        attributes.set(attribute.name, c.real(attribute.name, 0.0F));
        break;
      case AttributeKind::integers:
        attributes.set(attribute.name, c.integer_list(attribute.name, {}));
        break;
      case AttributeKind::symbol:
        attributes.set(attribute.name, SymbolValue{c.text(attribute.name, "")});
        break;
    }
  }
  const Value first = c.op(op, std::move(inputs), attributes);
  if (c.stopped()) return;
  const std::size_t outputs = c.graph().node(first.node).outputs.size();
  if (c.output_count() > outputs)
    return c.fail("it has " + std::to_string(c.output_count()) + " outputs, " + op + " has " + std::to_string(outputs));
  for (std::size_t i = 0; i < c.output_count(); ++i) c.output(i, {first.node, static_cast<std::uint32_t>(i)});
}

void write_specified(LoweringContext& c, const OperatorCatalog& catalog) {
  const Node& node = c.node();
  NewNode made;
  made.op_type = node.op;
  made.domain = specified_domain;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) made.inputs.push_back(c.in(i));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) made.outputs.push_back(c.out(static_cast<std::uint32_t>(i)));
  for (const AttributeSignature& attribute : catalog.signature(node.op)->attributes) {
    switch (attribute.kind) {
      case AttributeKind::integer:
        made.attributes.emplace_back(attribute.name, c.attributes().integer(attribute.name));
        break;
      case AttributeKind::real:
        made.attributes.emplace_back(attribute.name, c.attributes().real(attribute.name));
        break;
      case AttributeKind::integers:
        made.attributes.emplace_back(attribute.name, c.attributes().integers(attribute.name));
        break;
      case AttributeKind::symbol:
        made.attributes.emplace_back(attribute.name, c.attributes().symbol(attribute.name));
        break;
    }
  }
  c.emit(std::move(made));
}

}  // namespace taso
