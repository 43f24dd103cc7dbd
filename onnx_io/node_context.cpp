// What handlers of the import table see of a node (onnx_io/import.h).
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <string_view>
#include <vector>

#include "graph/reals.h"
#include "graph/words.h"
#include "onnx_io/import.h"
#include "onnx_io/in_quotes.h"

namespace taso {
namespace {

const char* attribute_type_name(int type) {
  switch (type) {
    case onnx::AttributeProto::FLOAT:
      return "FLOAT";
    case onnx::AttributeProto::INT:
      return "INT";
    case onnx::AttributeProto::STRING:
      return "STRING";
    case onnx::AttributeProto::TENSOR:
      return "TENSOR";
    case onnx::AttributeProto::GRAPH:
      return "GRAPH";
    case onnx::AttributeProto::FLOATS:
      return "FLOATS";
    case onnx::AttributeProto::INTS:
      return "INTS";
    case onnx::AttributeProto::STRINGS:
      return "STRINGS";
    default:
      return "another type";
  }
}

bool is_zero_everywhere(const ConstantData& data) {
  constexpr std::int64_t largest = std::int64_t{1} << 20;
  if (!data.has_data() || !is_real(data.type().element)) return false;
  if (!data.is_dense()) {
    const auto element = data.splat_element();
    return std::all_of(element.begin(), element.end(), [](auto byte) { return byte == decltype(byte){}; });
  }
  if (data.type().elements() > largest) return false;
  const std::vector<double> elements = data.to_reals();
  return std::all_of(elements.begin(), elements.end(), [](double element) { return element == 0; });
}

Shape without_leading_ones(const Shape& shape) {
  auto first = std::find_if(shape.begin(), shape.end(), [](std::int64_t extent) { return extent != 1; });
  return {first, shape.end()};
}

}  // namespace

bool is_made_of_zeros(const Graph& graph, Value value) {
  static const std::set<std::string_view> moving = {"broadcast", "concat", "reshape", "slice", "split", "transpose"};
  std::set<NodeId> seen;
  std::vector<NodeId> stack = {value.node};
  while (!stack.empty()) {
    const Node& node = graph.node(stack.back());
    const bool first = seen.insert(stack.back()).second;
    stack.pop_back();
    if (!first || (node.is_op("fill") && node.attributes.real("value") == 0)) continue;
    if (node.kind == NodeKind::constant) {
      if (!is_zero_everywhere(*node.constant)) return false;
    } else if (node.kind != NodeKind::op || !moving.contains(node.op)) {
      return false;
    } else {
      for (const Value& input : node.inputs) stack.push_back(input.node);
    }
  }
  return true;
}

Value NodeContext::value(std::size_t i) {
  Input& input = inputs_[i];
  read_as_value_[i] = true;
  if (!input.value) {
    TASO_CHECK(input.constant != nullptr, "an input that is no constant has no value");
    input.value = Value{graph_->add_constant(input.constant), 0};
  }
  return *input.value;
}

std::vector<std::int64_t> NodeContext::integers(std::size_t i) {
  constexpr std::int64_t limit = 1 << 20;
  if (stopped()) return {};
  if (!is_constant(i)) {
    decline_not_constant(i);
    return {};
  }
  const TensorType& type = inputs_[i].constant->type();
  if (is_real(type.element)) {
    fail("input " + std::to_string(i) + " must be of integers, it is " + to_string(type.element));
    return {};
  }
  if (type.elements() > limit) {
    decline("input " + std::to_string(i) + " is too large to be a list of numbers");
    return {};
  }
  return inputs_[i].constant->to_integers();
}

double NodeContext::real(std::size_t i) {
  if (stopped()) return 0;
  if (!is_constant(i)) {
    decline_not_constant(i);
    return 0;
  }
  const TensorType& type = inputs_[i].constant->type();
  if (!is_real(type.element)) {
    decline("input " + std::to_string(i) + " is " + to_string(type.element), Obstacle::element_type);
    return 0;
  }
  if (type.elements() != 1) {
    fail("input " + std::to_string(i) + " must be a scalar, it is " + to_string(type));
    return 0;
  }
  return inputs_[i].constant->to_reals()[0];
}

std::vector<double> NodeContext::reals(std::size_t i) {
  constexpr std::int64_t limit = 4096;
  if (stopped()) return {};
  if (!is_constant(i)) {
    decline_not_constant(i);
    return {};
  }
  const TensorType& type = inputs_[i].constant->type();
  if (!is_real(type.element) || type.elements() > limit) {
    decline("input " + std::to_string(i) + " is " + to_string(type));
    return {};
  }
  return inputs_[i].constant->to_reals();
}

bool NodeContext::is_only_shape(std::size_t i) const {
  if (!has_input(i) || !inputs_[i].value) return false;
  const Node& node = graph_->node(inputs_[i].value->node);
  return node.kind == NodeKind::constant && !node.constant->has_data();
}

std::string NodeContext::unknown_type(std::size_t i) const {
  const DocumentTensor& tensor = document_->tensors()[static_cast<std::size_t>(inputs_[i].tensor)];
  if (tensor.source != TensorSource::initializer) return "";
  const std::int32_t data_type = document_->initializer(tensor.index).data_type;
  return is_known_data_type(data_type) ? "" : data_type_name(data_type);
}

bool NodeContext::uses_output(std::size_t i) const {
  if (!wants_output(i)) return false;
  const int tensor = document_->find(document_->node(node_).output(static_cast<int>(i)));
  return document_->tensors()[static_cast<std::size_t>(tensor)].used;
}

bool NodeContext::has_attribute(std::string_view name) const {
  return std::any_of(proto().attribute().begin(), proto().attribute().end(),
                     [&](const auto& attribute) { return attribute.name() == name; });
}

const onnx::AttributeProto* NodeContext::attribute(std::string_view name, onnx::AttributeProto::AttributeType type) {
  seen_.insert(std::string(name));
  if (stopped()) return nullptr;
  for (const auto& candidate : proto().attribute()) {
    if (candidate.name() != name) continue;
    bool filled = false;
    switch (type) {
      case onnx::AttributeProto::INT:
        filled = candidate.has_i();
        break;
      case onnx::AttributeProto::FLOAT:
        filled = candidate.has_f();
        break;
      case onnx::AttributeProto::STRING:
        filled = candidate.has_s();
        break;
      default:
        filled = true;
        break;
    }
    if (candidate.type() != onnx::AttributeProto::UNDEFINED && candidate.type() != type)
      fail("attribute " + in_quotes(name) + " is " + attribute_type_name(candidate.type()) + ", " +
           attribute_type_name(type) + " was expected");
    else if (candidate.type() == onnx::AttributeProto::UNDEFINED && !filled)
      fail("attribute " + in_quotes(name) + " holds no " + attribute_type_name(type));
    return stopped() ? nullptr : &candidate;
  }
  return nullptr;
}

std::int64_t NodeContext::integer(std::string_view name, std::int64_t otherwise) {
  const auto* found = attribute(name, onnx::AttributeProto::INT);
  return found == nullptr ? otherwise : found->i();
}

double NodeContext::real(std::string_view name, float otherwise) {
  const auto* found = attribute(name, onnx::AttributeProto::FLOAT);
  return static_cast<double>(found == nullptr ? otherwise : found->f());
}

std::string NodeContext::text(std::string_view name, const std::string& otherwise) {
  const auto* found = attribute(name, onnx::AttributeProto::STRING);
  return found == nullptr ? otherwise : found->s();
}

std::vector<std::int64_t> NodeContext::integer_list(std::string_view name, std::vector<std::int64_t> otherwise) {
  const auto* found = attribute(name, onnx::AttributeProto::INTS);
  if (found == nullptr) return otherwise;
  return {found->ints().begin(), found->ints().end()};
}

std::vector<std::string> NodeContext::text_list(std::string_view name) {
  const auto* found = attribute(name, onnx::AttributeProto::STRINGS);
  if (found == nullptr) return {};
  return {found->strings().begin(), found->strings().end()};
}

std::vector<double> NodeContext::real_list(std::string_view name) {
  const auto* found = attribute(name, onnx::AttributeProto::FLOATS);
  if (found == nullptr) return {};
  return {found->floats().begin(), found->floats().end()};
}

namespace {

/// Whether an index is computed of numbers that are no indices themselves, so that it may be outside of an axis where
/// the model's inputs are not those that it is made for: no random ones would do then.
///
/// At symbolic sizes numbers that are equal by chance must not decide, as a model has one form at all sizes: places in
/// an axis are inside of one as long.
bool may_be_outside(const Graph& graph, Value index, std::int64_t extent, bool symbolic) {
  static const std::set<std::string_view> moving = {"broadcast", "cast",  "concat", "gather",   "gather_elements",
                                                    "reshape",   "slice", "split",  "transpose"};
  std::set<NodeId> seen;
  std::vector<Value> stack = {index};
  while (!stack.empty()) {
    const Value value = stack.back();
    stack.pop_back();
    const Node& node = graph.node(value.node);
    if (node.kind != NodeKind::op || node.weight_only || !seen.insert(value.node).second) continue;
    if (node.op == "arg_max") {
      const TensorType& type = graph.type(node.inputs[0]);
      const auto axis =
          static_cast<std::size_t>(static_cast<std::int64_t>(type.shape.size()) + node.attributes.integer("axis"));
      if (type.shape[axis] > extent || (symbolic && type.shape[axis] != extent)) return true;
      continue;
    }
    if (!moving.contains(node.op)) return true;
    for (const Value& input : node.inputs) {
      if (!is_integer(graph.type(input).element)) return true;
      stack.push_back(input);
    }
  }
  return false;
}

}  // namespace

Value NodeContext::op(std::string_view name, std::vector<Value> inputs, const Attributes& attributes) {
  if (stopped()) return {};
  if ((name == "gather" || name == "gather_elements") && !pieces_ && inputs.size() == 2) {
    const Shape& shape = shape_of(inputs[0]);
    const auto axis = static_cast<std::size_t>(static_cast<std::int64_t>(shape.size()) + attributes.integer("axis"));
    if (axis < shape.size() && may_be_outside(*graph_, inputs[1], shape[axis], symbolic())) {
      decline("whether its indices, which are computed, are inside is not known before run time");
      return {};
    }
  }
  auto added = add_op(*graph_, *catalog_, name, attributes, std::move(inputs), {.element = real_type()});
  if (!added) {
    decline(added.error().message);
    ill_typed_ = true;
    return {};
  }
  for (const TensorType& type : graph_->node(*added).outputs) {
    if (!is_reasonable(type.shape)) {
      fail("its output would be " + to_string(type) + ", more than 2^40 elements");
      return {};
    }
  }
  return {*added, 0};
}

Value NodeContext::reshape(Value value, const Shape& shape) {
  if (stopped() || shape_of(value) == shape) return value;
  return op("reshape", {value}, {{"shape", shape}});
}

Value NodeContext::broadcast(Value value, const Shape& shape) {
  if (stopped() || shape_of(value) == shape) return value;
  const Shape own = shape_of(value);
  const Shape stripped = without_leading_ones(own);
  bool fits = stripped.size() <= shape.size();
  for (std::size_t i = 0; fits && i < stripped.size(); ++i) {
    const std::int64_t to = shape[shape.size() - stripped.size() + i];
    fits = stripped[i] == to || stripped[i] == 1;
  }
  if (!fits) {
    fail("shape " + shape_text(own) + " does not broadcast to " + shape_text(shape));
    return value;
  }
  // Parameters have one form whatever shape they are written in. What is computed keeps its axes: at a batch of 1 a
  // graph is what it is at others.
  if (graph_->node(value.node).weight_only || own.size() > shape.size()) value = reshape(value, stripped);
  if (shape_of(value) == shape) return value;
  return op("broadcast", {value}, {{"shape", shape}});
}

bool NodeContext::is_zero(std::size_t i) const {
  const Input& input = inputs_[i];
  if (input.constant) return is_zero_everywhere(*input.constant);
  return input.value && is_made_of_zeros(*graph_, *input.value);
}

ElementType NodeContext::real_type() const {
  for (const Input& input : inputs_)
    if (input.present && is_real(input.type.element)) return input.type.element;
  return ElementType::f32;
}

Value NodeContext::splat(const Shape& shape, float number) {
  const ElementType type = real_type();
  const auto value = static_cast<double>(number);
  if (std::isfinite(value) && rounded(value, type) != value)
    return op("fill", {}, {{"shape", shape}, {"value", value}});
  std::vector<std::byte> element(size_of(type));
  store_real(element.data(), type, 0, value);
  return constant(shape.empty() ? ConstantData::own({type, shape, true}, std::move(element))
                                : ConstantData::splat({type, shape, true}, std::move(element)));
}

Value NodeContext::reals(const Shape& shape, std::span<const float> numbers) {
  return constant(
      ConstantData::of_reals({real_type(), shape, true}, std::vector<double>(numbers.begin(), numbers.end())));
}

bool NodeContext::follows_from_infinity(Value value) const {
  constexpr std::int64_t largest_mask = std::int64_t{1} << 20;
  std::set<NodeId> seen;
  std::vector<NodeId> stack{value.node};
  while (!stack.empty()) {
    const Node& node = graph_->node(stack.back());
    const bool first = seen.insert(stack.back()).second;
    stack.pop_back();
    if (!first) continue;
    for (const Value& input : node.inputs) stack.push_back(input.node);
    if (!node.constant || !node.constant->has_data() || !is_real(node.constant->type().element) ||
        (node.constant->is_dense() && node.constant->type().elements() > largest_mask))
      continue;
    if (!node.constant->is_finite()) return true;
  }
  return false;
}

std::int64_t NodeContext::axis_from_front(std::int64_t axis, std::int64_t rank) {
  if (axis < -rank || axis >= rank) {
    fail("axis " + std::to_string(axis) + " is outside [" + std::to_string(-rank) + ", " + std::to_string(rank - 1) +
         "]");
    return 0;
  }
  return axis < 0 ? axis + rank : axis;
}

Shape NodeContext::common_shape(const std::vector<Shape>& shapes) {
  Shape common;
  for (const Shape& shape : shapes) {
    if (shape.size() > common.size()) common.insert(common.begin(), shape.size() - common.size(), 1);
    for (std::size_t i = 0; i < shape.size(); ++i) {
      std::int64_t& extent = common[common.size() - shape.size() + i];
      if (extent == shape[i] || shape[i] == 1) continue;
      if (extent != 1) {
        std::string text;
        for (const Shape& each : shapes) text += (text.empty() ? "" : " and ") + shape_text(each);
        fail("shapes " + text + " do not broadcast");
        return common;
      }
      extent = shape[i];
    }
  }
  return common;
}

void NodeContext::check_attributes() {
  for (const auto& attribute : proto().attribute())
    if (!seen_.contains(attribute.name()))
      return decline("attribute " + in_quotes(attribute.name()) + " is not understood");
}

}  // namespace taso
