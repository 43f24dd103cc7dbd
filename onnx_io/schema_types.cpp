#include "onnx_io/schema_types.h"

#include <onnx/defs/data_type_utils.h>
#include <onnx/defs/schema.h>
#include <onnx/defs/shape_inference.h>

#include <algorithm>
#include <exception>
#include <set>
#include <string>
#include <unordered_map>

namespace taso {
namespace {

/// Constants of more elements are not shown to an inference: shapes are made of few numbers.
constexpr std::int64_t most_numbers = 4096;

onnx::TypeProto proto_of(const TensorType& type) {
  onnx::TypeProto proto;
  auto* const tensor = proto.mutable_tensor_type();
  tensor->set_elem_type(data_type_of(type.element));
  for (const std::int64_t extent : type.shape) tensor->mutable_shape()->add_dim()->set_dim_value(extent);
  if (type.shape.empty()) tensor->mutable_shape();
  return proto;
}

onnx::TensorProto proto_of(const ConstantData& constant) {
  onnx::TensorProto proto;
  proto.set_data_type(data_type_of(constant.type().element));
  for (const std::int64_t extent : constant.type().shape) proto.add_dims(extent);
  const std::vector<std::byte> bytes = constant.to_bytes();
  proto.set_raw_data(bytes.data(), bytes.size());
  return proto;
}

/// One node, its inputs as they are known. Positions that the node does not have are exceptions, as they are in ONNX's
/// own context: schemas rely on that.
class NodeInference final : public onnx::InferenceContext {
 public:
  NodeInference(const onnx::NodeProto& node, const std::vector<NodeContext::Input>& inputs)
      : inputs_(inputs.size()), outputs_(static_cast<std::size_t>(node.output_size())) {
    for (const onnx::AttributeProto& attribute : node.attribute()) attributes_[attribute.name()] = &attribute;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const NodeContext::Input& input = inputs[i];
      if (!input.present || !input.type.known || input.type.element == ElementType::other) continue;
      inputs_[i].type = proto_of(input.type);
      if (input.constant && input.constant->has_data() && input.type.elements() <= most_numbers)
        inputs_[i].number = proto_of(*input.constant);
    }
  }
  const onnx::AttributeProto* getAttribute(const std::string& name) const override {
    const auto found = attributes_.find(name);
    return found == attributes_.end() ? nullptr : found->second;
  }
  std::size_t getNumInputs() const override { return inputs_.size(); }
  const onnx::TypeProto* getInputType(std::size_t i) const override {
    return inputs_.at(i).type ? &*inputs_[i].type : nullptr;
  }
  const onnx::TensorProto* getInputData(std::size_t i) const override {
    return inputs_.at(i).number ? &*inputs_[i].number : nullptr;
  }
  std::size_t getNumOutputs() const override { return outputs_.size(); }
  onnx::TypeProto* getOutputType(std::size_t i) override { return &outputs_.at(i); }
  onnx::GraphInferencer* getGraphAttributeInferencer(const std::string&) override { return nullptr; }
  const onnx::SparseTensorProto* getInputSparseData(std::size_t) const override { return nullptr; }
  const onnx::TensorShapeProto* getSymbolicInput(std::size_t) const override { return nullptr; }

 private:
  struct Input {
    std::optional<onnx::TypeProto> type;
    std::optional<onnx::TensorProto> number;
  };
  std::unordered_map<std::string, const onnx::AttributeProto*> attributes_;
  std::vector<Input> inputs_;
  std::vector<onnx::TypeProto> outputs_;
};

/// Operators whose inference in the library is not what runtimes compute: pools that round up count windows that lie in
/// the padding alone, products with scales are rounded in another precision, and transforms were described anew since.
bool is_inferred_wrongly(const onnx::NodeProto& node, bool inputs_known) {
  static const std::set<std::string> pools = {"AveragePool", "LpPool", "MaxPool"},
                                     others = {"DFT", "Resize", "STFT", "Upsample"};
  // It copies the shape of what it reads, known or not.
  if (node.op_type() == "EyeLike" && !inputs_known) return true;
  const bool rounds_up = std::any_of(node.attribute().begin(), node.attribute().end(), [](const auto& attribute) {
    return attribute.name() == "ceil_mode" && attribute.i() != 0;
  });
  return others.contains(node.op_type()) || (pools.contains(node.op_type()) && rounds_up);
}

/// Whether a slice may go backwards: the library lets it take an element of an axis that has none.
bool goes_backwards(const onnx::NodeProto& node, const std::vector<NodeContext::Input>& inputs) {
  if (node.op_type() != "Slice" || inputs.size() < 5 || !inputs[4].present) return false;
  if (!inputs[4].constant || !inputs[4].constant->has_data()) return true;
  const std::vector<std::int64_t> steps = inputs[4].constant->to_integers();
  return std::any_of(steps.begin(), steps.end(), [](std::int64_t step) { return step < 0; });
}

/// Whether a node can be one of this version of its operator.
bool is_of_version(const onnx::NodeProto& node, const onnx::OpSchema& schema, const NodeInference& inference) {
  const auto count = static_cast<int>(inference.getNumInputs());
  if (count < schema.min_input() || count > schema.max_input() || node.output_size() > schema.max_output())
    return false;
  // Of control flow the types are those of subgraphs, which are not looked into here.
  for (const auto& [name, attribute] : schema.attributes())
    if (attribute.type == onnx::AttributeProto::GRAPH || attribute.type == onnx::AttributeProto::GRAPHS) return false;
  for (const onnx::AttributeProto& attribute : node.attribute())
    if (attribute.has_g() || attribute.graphs_size() > 0 || attribute.has_t() ||
        schema.attributes().find(attribute.name()) == schema.attributes().end())
      return false;
  for (std::size_t i = 0; i < inference.getNumInputs() && !schema.inputs().empty(); ++i) {
    const onnx::TypeProto* const type = inference.getInputType(i);
    const auto& allowed = schema.inputs()[std::min(i, schema.inputs().size() - 1)].GetTypes();
    if (type != nullptr && !allowed.contains(onnx::Utils::DataTypeUtils::ToType(*type))) return false;
  }
  return true;
}

std::optional<TensorType> tensor_type(const onnx::TypeProto& proto) {
  const std::optional<Shape> shape = declared_shape(proto);
  if (!shape || !is_reasonable(*shape)) return std::nullopt;
  const ElementType element = element_of(proto.tensor_type().elem_type());
  if (element == ElementType::other) return std::nullopt;
  return TensorType{element, *shape, true};
}

/// Whether the extents of what a node makes are sums and products of extents of what it reads, and numbers of its own.
bool has_polynomial_extents(const onnx::NodeProto& node, const std::vector<NodeContext::Input>& inputs) {
  static const std::set<std::string> all = {
      "Det",    "Einsum",        "GRU", "GatherElements",  "GatherND", "GridSample",      "LSTM",      "MatMulInteger",
      "OneHot", "QLinearMatMul", "RNN", "ReverseSequence", "RoiAlign", "ScatterElements", "ScatterND", "TopK"};
  // Of these the elements of an input say how many there are.
  static const std::set<std::string> by_elements = {"OneHot", "TopK"};
  return all.contains(node.op_type()) &&
         (!by_elements.contains(node.op_type()) ||
          std::none_of(inputs.begin(), inputs.end(), [](const auto& input) { return input.from_symbols; }));
}

}  // namespace

CarriedTypes types_by_schema(const Document& document, int node, const std::vector<NodeContext::Input>& inputs,
                             NodeContext::Sizes sizes) {
  const onnx::NodeProto& proto = document.node(node);
  const bool polynomial = is_default_domain(proto.domain()) && has_polynomial_extents(proto, inputs);
  if (sizes != NodeContext::Sizes::all && !polynomial) return {};
  const std::string& domain = is_default_domain(proto.domain()) ? onnx::ONNX_DOMAIN : proto.domain();
  const auto version = static_cast<int>(document.version(domain));
  CarriedTypes result;
  if (polynomial) result.shape.rule = CarriedShape::Rule::polynomial;
  // The library reports by exceptions what is wrong with a node, of which it is not the judge here.
  try {
    const onnx::OpSchema* const schema = onnx::OpSchemaRegistry::Schema(proto.op_type(), version, domain);
    NodeInference inference(proto, inputs);
    const bool inputs_known = std::ranges::all_of(inputs, [](const auto& input) { return input.type.known; });
    if (schema == nullptr || !schema->has_type_and_shape_inference_function() ||
        is_inferred_wrongly(proto, inputs_known) || goes_backwards(proto, inputs) ||
        !is_of_version(proto, *schema, inference))
      return {};
    schema->GetTypeAndShapeInferenceFunction()(inference);
    for (std::size_t i = 0; i < inference.getNumOutputs(); ++i)
      // Of other outputs than the first nothing would be known at all sizes.
      result.types.push_back(i == 0 || sizes == NodeContext::Sizes::all ? tensor_type(*inference.getOutputType(i))
                                                                        : std::nullopt);
  } catch (const std::exception&) {
    return {};
  }
  return result;
}

bool makes_elements(const std::string& op_type, std::int64_t opset, ElementType element) {
  const onnx::OpSchema* const schema =
      onnx::OpSchemaRegistry::Schema(op_type, static_cast<int>(opset), onnx::ONNX_DOMAIN);
  if (schema == nullptr || schema->outputs().empty()) return true;
  return schema->outputs()[0].GetTypes().contains(onnx::Utils::DataTypeUtils::ToType(proto_of({element, {}, true})));
}

}  // namespace taso
