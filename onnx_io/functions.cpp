#include "onnx_io/functions.h"

#include <algorithm>

#include "onnx_io/attribute_proto.h"
#include "onnx_io/specified.h"
#include "onnx_io/tensor_proto.h"
#include "operators/unfold.h"
#include "support/reversed.h"

namespace taso {
namespace {

/// A graph of operators that have a form in ONNX as the body of a function.
class BodyWriter {
 public:
  BodyWriter(const Graph& graph, std::int64_t opset, const MapWriter& maps)
      : graph_(graph), opset_(opset), maps_(maps), lowered_(graph.id_bound()), needed_(graph.id_bound(), false) {}

  /// Inputs are named as in the graph, the only output "out", others "out.0", "out.1", ...
  Expected<onnx::FunctionProto> run() {
    for (const NodeId id : graph_.inputs()) names_.emplace(Value{id, 0}, graph_.node(id).name);
    const auto& outputs = graph_.outputs();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string name = outputs.size() == 1 ? "out" : "out." + std::to_string(i);
      function_.add_output(name);
      needed_[outputs[i].node] = true;
      const bool constant = graph_.node(outputs[i].node).kind == NodeKind::constant;
      if (constant || !names_.emplace(outputs[i], name).second) aliases_.emplace_back(outputs[i], name);
    }
    const std::vector<NodeId> order = graph_.topological_order();
    for (const NodeId id : reversed(order))
      if (needed_[id] && graph_.node(id).kind == NodeKind::op) TASO_RETURN_IF_ERROR(lower(id));
    for (const NodeId id : graph_.inputs()) function_.add_input(graph_.node(id).name);
    for (const NodeId id : order)
      for (const NewNode& made : lowered_[id]) write(made);
    for (const auto& [value, name] : aliases_) {
      const std::string source = name_of(value);
      add("Identity", {source}, {name});
    }
    return std::move(function_);
  }

 private:
  Status lower(NodeId id) {
    LoweringContext context(graph_, id, opset_, maps_, nullptr, constants_, temporaries_);
    if (!maps_.write(context, MapWriter::Lines::onnx)) {
      const ExportRow* const row = find_export_row(graph_.node(id).op);
      if (row == nullptr) return bad_input("ONNX has no operator " + graph_.node(id).op);
      row->handler(context);
    }
    if (context.error()) return *context.error();
    lowered_[id] = context.nodes();
    for (const NewNode& made : lowered_[id])
      for (const TensorRef& input : made.inputs)
        if (input.kind == TensorRef::Kind::value) needed_[input.value.node] = true;
    return {};
  }

  void write(const NewNode& made) {
    std::vector<std::string> inputs, outputs;
    for (const TensorRef& input : made.inputs) inputs.push_back(name_of(input));
    for (const TensorRef& output : made.outputs) outputs.push_back(name_of(output));
    onnx::NodeProto& node = add(made.op_type, inputs, outputs);
    std::vector<OnnxAttribute> attributes = made.attributes;
    std::sort(attributes.begin(), attributes.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    for (const OnnxAttribute& attribute : attributes) append_attribute(node, attribute);
  }

  onnx::NodeProto& add(const std::string& op_type, const std::vector<std::string>& inputs,
                       const std::vector<std::string>& outputs) {
    onnx::NodeProto& node = *function_.add_node();
    node.set_op_type(op_type);
    for (const std::string& input : inputs) node.add_input(input);
    for (const std::string& output : outputs) node.add_output(output);
    return node;
  }

  std::string name_of(const TensorRef& ref) {
    switch (ref.kind) {
      case TensorRef::Kind::absent:
        return "";
      case TensorRef::Kind::value:
        return name_of(ref.value);
      case TensorRef::Kind::temporary: {
        std::string& name = temporary_names_[ref.index];
        if (name.empty()) name = fresh_name();
        return name;
      }
      case TensorRef::Kind::constant:
        return name_of(constants_[ref.index]);
    }
    return "";
  }

  std::string name_of(Value value) {
    const Node& node = graph_.node(value.node);
    if (node.kind == NodeKind::constant) return name_of(node.constant);
    std::string& name = names_[value];
    if (name.empty()) name = fresh_name();
    return name;
  }

  /// A function has no initializers: a constant is a node before its first reader.
  std::string name_of(const std::shared_ptr<const ConstantData>& constant) {
    std::string& name = constant_names_[constant->identity()];
    if (!name.empty()) return name;
    name = fresh_name();
    onnx::AttributeProto& value = *add("Constant", {}, {name}).add_attribute();
    value.set_name("value");
    value.set_type(onnx::AttributeProto::TENSOR);
    value.mutable_t()->set_data_type(data_type_of(constant->type().element));
    for (const std::int64_t extent : constant->type().shape) value.mutable_t()->add_dims(extent);
    const std::vector<std::byte> bytes = constant->to_bytes();
    value.mutable_t()->set_raw_data(bytes.data(), bytes.size());
    return name;
  }

  /// No input of a definition has a '.' and a number alone behind it but those of variadic ones, "x.0".
  std::string fresh_name() { return "part." + std::to_string(count_++); }

  const Graph& graph_;
  const std::int64_t opset_;
  const MapWriter& maps_;
  onnx::FunctionProto function_;
  std::vector<std::vector<NewNode>> lowered_;  ///< Per graph node.
  std::vector<bool> needed_;
  std::vector<std::shared_ptr<const ConstantData>> constants_;
  std::size_t temporaries_ = 0, count_ = 0;
  std::map<Value, std::string> names_;
  std::map<std::size_t, std::string> temporary_names_;
  std::map<Hash128, std::string> constant_names_;
  std::vector<std::pair<Value, std::string>> aliases_;  ///< Outputs that have another name already.
};

/// What an integer of a graph is at a sample.
Expected<std::int64_t> at_sample(std::int64_t size, const SampledSizes* sizes, std::size_t sample) {
  if (sizes == nullptr) return size;
  const std::optional<std::int64_t> number = sizes->at(size, sample);
  if (!number) return bad_input("an extent has no value");
  return *number;
}

/// An application at a sample.
struct Sample {
  Attributes attributes;
  std::vector<TensorType> inputs;
};

Expected<Sample> sample_of(const Graph& graph, const Node& node, const SampledSizes* sizes, std::size_t sample) {
  Sample result;
  for (const auto& [name, value] : node.attributes.entries()) {
    AttributeValue number = value;
    if (auto* integer = std::get_if<std::int64_t>(&number)) {
      TASO_ASSIGN(*integer, at_sample(*integer, sizes, sample));
    } else if (auto* list = std::get_if<std::vector<std::int64_t>>(&number)) {
      for (std::int64_t& element : *list) {
        TASO_ASSIGN(element, at_sample(element, sizes, sample));
      }
    }
    result.attributes.set(name, std::move(number));
  }
  for (const Value& input : node.inputs) {
    TensorType type = graph.type(input);
    for (std::int64_t& extent : type.shape) {
      TASO_ASSIGN(extent, at_sample(extent, sizes, sample));
    }
    result.inputs.push_back(std::move(type));
  }
  return result;
}

std::string text_of(onnx::FunctionProto function) {
  function.clear_name();
  return function.SerializeAsString();
}

}  // namespace

bool FunctionWriter::has_form(std::string_view op) const {
  if (find_export_row(op) != nullptr) return true;
  const auto& lines = registry_.node_maps().of_operator(op);
  return std::any_of(lines.begin(), lines.end(), [&](const auto& line) {
    return line->domain.empty() && line->first <= document_.opset() && document_.opset() <= line->last;
  });
}

Expected<onnx::FunctionProto> FunctionWriter::body_of(const std::string& op, const Attributes& attributes,
                                                      std::span<const TensorType> inputs) const {
  TASO_ASSIGN(const Graph graph,
              unfold(registry_, op, attributes, inputs, [&](std::string_view other) { return has_form(other); }));
  TASO_ASSIGN(onnx::FunctionProto function, BodyWriter(graph, document_.opset(), maps_).run());
  const OperatorDefinition& definition = *registry_.find(op);
  function.set_domain(specified_domain);
  function.set_doc_string(definition.documentation);
  for (const AttributeSpec& attribute : definition.attributes) function.add_attribute(attribute.name);
  function.add_opset_import()->set_version(document_.opset());
  return function;
}

Expected<onnx::FunctionProto> FunctionWriter::function_of(const Graph& graph, NodeId id,
                                                          const SampledSizes* sizes) const {
  constexpr std::int64_t first_opset = 7;
  if (document_.opset() < first_opset) return bad_input("the model's operator set is too old, or it has none");
  const Node& node = graph.node(id);
  std::optional<onnx::FunctionProto> function;
  const std::size_t samples = sizes == nullptr ? 1 : sizes->sample_count();
  for (std::size_t i = 0; i < samples; ++i) {
    TASO_ASSIGN(const Sample sample, sample_of(graph, node, sizes, i));
    TASO_ASSIGN(onnx::FunctionProto body, body_of(node.op, sample.attributes, sample.inputs));
    if (function && text_of(*function) != text_of(body))
      return bad_input("its definition in operators of ONNX is another at other sizes");
    function = std::move(body);
  }
  if (!function) return bad_input("there is no size to write it for");
  return std::move(*function);
}

std::string FunctionWriter::type_of(const Graph& graph, NodeId id, const SampledSizes* sizes) {
  const std::string& op = graph.node(id).op;
  Expected<onnx::FunctionProto> function = function_of(graph, id, sizes);
  if (!function) {
    without_.emplace(op, function.error().message);
    return op;
  }
  const std::string text = text_of(*function);
  const auto known = names_.find(op + "\n" + text);
  if (known != names_.end()) return known->second;
  // A function of the model itself may be the same; else a name that neither a function nor a node of it has.
  const auto& own = document_.model().functions();
  std::string name = op;
  for (int number = 2;; name = op + "." + std::to_string(number++)) {
    const auto place = std::find_if(own.begin(), own.end(), [&](const onnx::FunctionProto& other) {
      return other.domain() == specified_domain && other.name() == name;
    });
    if (place != own.end() && text_of(*place) == text) break;
    if (place != own.end() || document_.has_node(specified_domain, name) || !taken_.insert(name).second) continue;
    function->set_name(name);
    functions_.push_back(std::move(*function));
    break;
  }
  names_.emplace(op + "\n" + text, name);
  return name;
}

}  // namespace taso
