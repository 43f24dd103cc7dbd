#include "onnx_io/schema_function.h"

#include <onnx/defs/schema.h>

#include <algorithm>
#include <exception>
#include <vector>

namespace taso {
namespace {

/// The node with every attribute that the schema has a default for.
onnx::NodeProto with_defaults(const onnx::NodeProto& node, const onnx::OpSchema& schema) {
  onnx::NodeProto complete = node;
  for (const auto& [name, attribute] : schema.attributes()) {
    bool given = !attribute.default_value.has_name();
    for (const onnx::AttributeProto& own : node.attribute()) given = given || own.name() == name;
    if (!given) *complete.add_attribute() = attribute.default_value;
  }
  return complete;
}

/// Puts the attributes of a node in place of references to them; those that it lacks are left out.
void give_attributes(onnx::FunctionProto& function, const onnx::NodeProto& node) {
  for (onnx::NodeProto& inner : *function.mutable_node()) {
    auto& attributes = *inner.mutable_attribute();
    for (int a = attributes.size(); a-- > 0;) {
      if (attributes[a].ref_attr_name().empty()) continue;
      const onnx::AttributeProto* given = nullptr;
      for (const onnx::AttributeProto& own : node.attribute())
        if (own.name() == attributes[a].ref_attr_name()) given = &own;
      if (given == nullptr) {
        attributes.DeleteSubrange(a, 1);
        continue;
      }
      const std::string name = attributes[a].name();
      attributes[a] = *given;
      attributes[a].set_name(name);
    }
  }
}

/// Builders of functions of subgraphs look into these without asking whether they are there.
bool has_subgraphs(const onnx::OpSchema& schema) {
  for (const auto& [name, attribute] : schema.attributes())
    if (attribute.type == onnx::AttributeProto::GRAPH || attribute.type == onnx::AttributeProto::GRAPHS) return true;
  return false;
}

/// Runtimes know quantised operators by the node that makes what these read, so that no rule may take it apart.
bool quantizes(const onnx::FunctionProto& function) {
  return std::any_of(function.node().begin(), function.node().end(),
                     [](const onnx::NodeProto& node) { return node.op_type() == "QuantizeLinear"; });
}

std::vector<onnx::TypeProto> types_of(const NodeContext& context) {
  std::vector<onnx::TypeProto> types;
  for (const NodeContext::Input& input : context.inputs()) {
    types.emplace_back();
    if (!input.present || !input.type.known) continue;
    auto& tensor = *types.back().mutable_tensor_type();
    tensor.set_elem_type(data_type_of(input.type.element));
    tensor.mutable_shape();
    for (const std::int64_t extent : input.type.shape) tensor.mutable_shape()->add_dim()->set_dim_value(extent);
  }
  return types;
}

std::optional<onnx::FunctionProto> body(const onnx::OpSchema& schema, const onnx::NodeProto& node,
                                        const NodeContext& context) {
  if (schema.HasFunction()) return *schema.GetFunction();
  if (!schema.HasContextDependentFunction()) return std::nullopt;
  onnx::FunctionProto function;
  const onnx::FunctionBodyBuildContextImpl build(node, types_of(context));
  if (!schema.BuildContextDependentFunction(build, function)) return std::nullopt;
  return function;
}

}  // namespace

std::optional<onnx::FunctionProto> function_of_schema(const Document& document, int node, const NodeContext& context) {
  const onnx::NodeProto& proto = document.node(node);
  if (!is_default_domain(proto.domain())) return std::nullopt;
  // The library reports by exceptions what is wrong with a node.
  try {
    const auto version = static_cast<int>(document.opset());
    const onnx::OpSchema* const schema = onnx::OpSchemaRegistry::Schema(proto.op_type(), version, onnx::ONNX_DOMAIN);
    if (schema == nullptr || has_subgraphs(*schema)) return std::nullopt;
    const onnx::NodeProto complete = with_defaults(proto, *schema);
    std::optional<onnx::FunctionProto> function = body(*schema, complete, context);
    if (!function || quantizes(*function)) return std::nullopt;
    give_attributes(*function, complete);
    int used = 0;
    for (int i = 0; i < proto.output_size() && i < function->output_size(); ++i)
      if (context.uses_output(static_cast<std::size_t>(i))) used = i + 1;
    while (function->output_size() > std::max(used, 1)) function->mutable_output()->RemoveLast();
    return function;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace taso
