#include "onnx_io/import_function.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/reals.h"
#include "onnx_io/carried.h"
#include "onnx_io/tensor_proto.h"

namespace taso {
namespace {

/// The call as a model of its own: what is constant is an initializer, everything else that is read an input, in order.
class CallAsModel {
 public:
  CallAsModel(NodeContext& context, const Document& document, const onnx::FunctionProto& function)
      : context_(context), document_(document), function_(function) {}

  /// Nothing where the context has been declined.
  std::optional<onnx::ModelProto> run() {
    const onnx::ModelProto& caller = document_.model();
    model_.set_ir_version(caller.ir_version());
    std::set<std::string> domains;
    for (const auto& set : function_.opset_import()) {
      *model_.add_opset_import() = set;
      domains.insert(set.domain());
    }
    for (const auto& set : caller.opset_import())
      if (domains.insert(set.domain()).second) *model_.add_opset_import() = set;
    // A function that calls itself is one that is not known there.
    for (const onnx::FunctionProto& other : caller.functions())
      if (&other != &function_) *model_.add_functions() = other;
    onnx::GraphProto& graph = *model_.mutable_graph();
    graph.set_name(function_.name());
    for (int i = 0; i < function_.input_size(); ++i) input(static_cast<std::size_t>(i), graph);
    for (const std::string& output : function_.output()) graph.add_output()->set_name(output);
    for (const onnx::NodeProto& node : function_.node()) {
      *graph.add_node() = node;
      give_attributes(*graph.mutable_node(graph.node_size() - 1));
    }
    if (context_.stopped()) return std::nullopt;
    return std::move(model_);
  }

  /// Per input of the model: the input of the call.
  [[nodiscard]] const std::vector<std::size_t>& inputs() const { return inputs_; }

 private:
  void input(std::size_t i, onnx::GraphProto& graph) {
    const std::string& name = function_.input(static_cast<int>(i));
    if (!context_.has_input(i)) {
      absent_.insert(name);
      return;
    }
    const TensorType& type = context_.type(i);
    if (!type.known || type.element == ElementType::other)
      return context_.decline("the type of an input of its function is not known before run time");
    constexpr std::int64_t most = 1024;  // Larger constants are weights: nothing is decided by their elements.
    const std::shared_ptr<const ConstantData>& constant = context_.inputs()[i].constant;
    if (constant != nullptr && (!is_real(type.element) || type.elements() <= most)) {
      onnx::TensorProto& tensor = *graph.add_initializer();
      tensor.set_name(name);
      tensor.set_data_type(data_type_of(type.element));
      for (const std::int64_t extent : type.shape) tensor.add_dims(extent);
      const std::vector<std::byte> bytes = constant->to_bytes();
      tensor.set_raw_data(bytes.data(), bytes.size());
      return;
    }
    onnx::ValueInfoProto& info = *graph.add_input();
    info.set_name(name);
    auto& declared = *info.mutable_type()->mutable_tensor_type();
    declared.set_elem_type(data_type_of(type.element));
    declared.mutable_shape();
    for (const std::int64_t extent : type.shape) declared.mutable_shape()->add_dim()->set_dim_value(extent);
    inputs_.push_back(i);
  }

  /// Puts the call's attributes in place of references to them, and nothing in place of absent inputs.
  void give_attributes(onnx::NodeProto& node) {
    for (std::string& name : *node.mutable_input())
      if (absent_.contains(name)) name.clear();
    auto& attributes = *node.mutable_attribute();
    for (int a = attributes.size(); a-- > 0;) {
      onnx::AttributeProto& attribute = attributes[a];
      if (attribute.has_g())
        for (onnx::NodeProto& inner : *attribute.mutable_g()->mutable_node()) give_attributes(inner);
      if (attribute.ref_attr_name().empty()) continue;
      const auto& given = context_.proto().attribute();
      const auto place = std::find_if(given.begin(), given.end(), [&](const onnx::AttributeProto& candidate) {
        return candidate.name() == attribute.ref_attr_name();
      });
      if (place != given.end()) {
        const std::string name = attribute.name();
        attribute = *place;
        attribute.set_name(name);
      } else if (!function_.unknown_fields().empty()) {
        // Defaults of attributes, which are newer than the messages that are known here.
        return context_.decline("attribute " + attribute.ref_attr_name() + " of its function is not given");
      } else {
        attributes.DeleteSubrange(a, 1);
      }
    }
  }

  NodeContext& context_;
  const Document& document_;
  const onnx::FunctionProto& function_;
  onnx::ModelProto model_;
  std::set<std::string> absent_;
  std::vector<std::size_t> inputs_;
};

/// How many nodes functions are, those that they call put in place; beyond a limit it does not matter.
class ExpandedSize {
 public:
  static constexpr std::size_t most = 10000;

  explicit ExpandedSize(const Document& document) {
    for (const onnx::FunctionProto& function : document.model().functions())
      functions_.emplace(std::pair(function.domain(), function.name()), &function);
  }

  /// At most `most` + 1: also of a function that calls itself, or lies too deep.
  std::size_t of(const onnx::FunctionProto& function, int depth = 0) {
    constexpr int deepest = 32;
    if (depth > deepest) return most + 1;
    // Until it is known, a function that is met again calls itself.
    const auto [place, added] = sizes_.emplace(&function, most + 1);
    if (!added) return place->second;
    std::size_t size = 0;
    for (const onnx::NodeProto& node : function.node()) {
      const auto called = functions_.find(std::pair(node.domain(), node.op_type()));
      size = std::min(most + 1, size + (called == functions_.end() ? 1 : of(*called->second, depth + 1)));
    }
    return sizes_[&function] = size;
  }

 private:
  std::map<std::pair<std::string, std::string>, const onnx::FunctionProto*> functions_;
  std::map<const onnx::FunctionProto*, std::size_t> sizes_;
};

/// Copies what a graph computes; per node id, its values.
std::map<NodeId, Value> copy_into(NodeContext& context, const Graph& graph, const std::vector<std::size_t>& inputs) {
  std::map<NodeId, Value> made;
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) made[graph.inputs()[i]] = context.value(inputs[i]);
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.kind == NodeKind::constant) made[id] = context.constant(node.constant);
    if (node.kind != NodeKind::op) continue;
    std::vector<Value> operands;
    for (const Value& input : node.inputs) {
      const Value first = made.at(input.node);
      operands.push_back({first.node, first.port + input.port});
    }
    made[id] = context.op(node.op, std::move(operands), node.attributes);
  }
  return made;
}

}  // namespace

const onnx::FunctionProto* called_function(const Document& document, const onnx::NodeProto& node) {
  const auto& functions = document.model().functions();
  const auto place = std::find_if(functions.begin(), functions.end(), [&](const onnx::FunctionProto& function) {
    return function.domain() == node.domain() && function.name() == node.op_type();
  });
  return place == functions.end() ? nullptr : &*place;
}

std::shared_ptr<const ConstantData> import_function(NodeContext& context, const Document& document,
                                                    const onnx::FunctionProto& function,
                                                    const OperatorRegistry& registry) {
  if (context.symbolic()) {
    context.decline("it calls a function of the model, and extents are symbolic");
    return nullptr;
  }
  if (ExpandedSize(document).of(function) > ExpandedSize::most) {
    context.decline("its function calls itself, or is more than " + std::to_string(ExpandedSize::most) + " nodes");
    return nullptr;
  }
  CallAsModel call(context, document, function);
  const std::optional<onnx::ModelProto> model = call.run();
  if (!model) return nullptr;
  const std::string prefix = "its function: ";
  const auto bytes = std::make_shared<const std::string>(model->SerializeAsString());
  const auto parsed =
      Document::parse(std::as_bytes(std::span(bytes->data(), bytes->size())), bytes, false, document.path());
  if (!parsed) {
    context.decline(prefix + parsed.error().message);
    return nullptr;
  }
  const Expected<ImportedModel> imported = import_document(**parsed, registry, {});
  if (!imported) {
    context.decline(prefix + imported.error().message);
    return nullptr;
  }
  const std::vector<CarriedNode> carried = explain_carried(**parsed, *imported);
  const auto own =
      std::find_if(carried.begin(), carried.end(), [](const CarriedNode& node) { return node.behind.empty(); });
  if (own != carried.end()) {
    context.decline(prefix + own->op + ": " + own->reason);
    return nullptr;
  }
  const Graph& graph = imported->graph;
  const auto is_constant = [&](const Value& value) { return graph.node(value.node).kind == NodeKind::constant; };
  const std::vector<Value>& outputs = graph.outputs();
  if (outputs.size() == 1 && is_constant(outputs[0])) return graph.node(outputs[0].node).constant;
  if (std::any_of(outputs.begin(), outputs.end(), is_constant)) {
    context.decline(prefix + "one of its outputs is constant");
    return nullptr;
  }
  const std::map<NodeId, Value> made = copy_into(context, graph, call.inputs());
  for (std::size_t i = 0; i < std::min(outputs.size(), context.output_count()); ++i) {
    const Value first = made.at(outputs[i].node);
    context.output(i, {first.node, first.port + outputs[i].port});
  }
  // Whatever is given takes part: the body decides what it reads.
  for (const auto& attribute : context.proto().attribute()) context.ignore(attribute.name());
  return nullptr;
}

}  // namespace taso
