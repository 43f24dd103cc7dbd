#include "tests/graph/fake_catalog.h"

namespace taso {
namespace {

Expected<std::size_t> axis_of(const Attributes& attributes, const TensorType& type, const std::string& name) {
  const std::int64_t axis = attributes.integer(name);
  const auto rank = static_cast<std::int64_t>(type.shape.size());
  if (axis >= 0 || axis < -rank) return bad_input("no axis " + std::to_string(axis));
  return static_cast<std::size_t>(rank + axis);
}

}  // namespace

FakeCatalog::FakeCatalog() {
  const auto unlimited = OperatorSignature::unlimited;
  const AttributeSignature axis = {"axis", AttributeKind::integer, std::nullopt};
  auto add = [&](const char* name, std::size_t least, std::size_t most, std::vector<AttributeSignature> attributes) {
    OperatorSignature& signature = signatures_[name];
    signature.min_inputs = least;
    signature.max_inputs = most;
    signature.attributes = std::move(attributes);
  };
  add("relu", 1, 1, {});
  add("tanh", 1, 1, {});
  add("add", 2, 2, {});
  add("mul", 2, 2, {});
  add("sub", 2, 2, {});
  add("matmul", 2, 2, {});
  add("matmul_bias_act", 3, 3, {{"act", AttributeKind::symbol, SymbolValue{"identity"}}});
  const std::vector<std::int64_t> ones = {1, 1};
  add("conv2d", 2, 2,
      {{"strides", AttributeKind::integers, ones},
       {"pads", AttributeKind::integers, std::vector<std::int64_t>(4)},
       {"dilations", AttributeKind::integers, ones}});
  add("clip", 1, 1, {{"min", AttributeKind::real, std::nullopt}, {"max", AttributeKind::real, 1.0}});
  add("concat", 1, unlimited, {axis});
  add("split", 1, 1, {axis, {"sizes", AttributeKind::integers, std::nullopt}});
  add("cut", 1, 1,
      {{"place", AttributeKind::integer, std::nullopt}, {"extents", AttributeKind::integers, std::nullopt}});
  add("ones", 0, 0, {{"shape", AttributeKind::integers, std::nullopt}});
  add("enlarge", 1, 1, {{"margin", AttributeKind::integers, std::nullopt}});
}

const OperatorSignature* FakeCatalog::signature(std::string_view op) const {
  const auto place = signatures_.find(op);
  return place == signatures_.end() ? nullptr : &place->second;
}

Expected<Attributes> FakeCatalog::complete(std::string_view op, const Attributes& attributes) const {
  const OperatorSignature* known = signature(op);
  if (known == nullptr) return bad_input("unknown operator " + std::string(op));
  Attributes result;
  for (const AttributeSignature& declared : known->attributes) {
    const AttributeValue* value = attributes.find(declared.name);
    if (value == nullptr && declared.default_value) value = &*declared.default_value;
    if (value == nullptr) return bad_input(std::string(op) + " needs attribute " + declared.name);
    if (static_cast<AttributeKind>(value->index()) != declared.kind)
      return bad_input("attribute " + declared.name + " of " + std::string(op) + " has the wrong kind");
    result.set(declared.name, *value);
  }
  return result;
}

Expected<std::vector<TensorType>> FakeCatalog::infer(std::string_view op, const Attributes& attributes,
                                                     std::span<const TensorType> inputs) const {
  for (const TensorType& input : inputs)
    if (!input.known || input.element != ElementType::f32)
      return bad_input(std::string(op) + " needs known f32 inputs");
  if (op == "ones") return std::vector<TensorType>{{ElementType::f32, attributes.integers("shape"), true}};
  TensorType type = inputs[0];
  if (op == "relu" || op == "tanh" || op == "clip") return std::vector{type};
  if (op == "add" || op == "mul" || op == "sub") {
    if (inputs[0] != inputs[1]) return bad_input(std::string(op) + " needs equal shapes");
    return std::vector{type};
  }
  if (op == "matmul" || op == "matmul_bias_act") {
    if (type.shape.size() != 2 || inputs[1].shape.size() != 2 || type.shape[1] != inputs[1].shape[0])
      return bad_input("matmul needs [m, k] and [k, n]");
    type.shape[1] = inputs[1].shape[1];
    return std::vector{type};
  }
  if (op == "conv2d") {
    const Shape& kernel = inputs[1].shape;
    const auto& pads = attributes.integers("pads");
    if (type.shape.size() != 4 || kernel.size() != 4 || type.shape[1] % kernel[1] != 0)
      return bad_input("conv2d needs [n, g*c, h, w] and [g*o, c, r, s]");
    type.shape[1] = kernel[0];
    for (std::size_t i = 0; i < 2; ++i)
      type.shape[2 + i] =
          (type.shape[2 + i] + pads[i] + pads[i + 2] - attributes.integers("dilations")[i] * (kernel[2 + i] - 1) - 1) /
              attributes.integers("strides")[i] +
          1;
    return std::vector{type};
  }
  if (op == "enlarge") {
    const auto& margin = attributes.integers("margin");
    if (margin.size() != 4 || type.shape.size() != 4) return bad_input("enlarge needs a kernel and four margins");
    for (std::size_t i = 0; i < 4; ++i) {
      if (margin[i] < 0) return bad_input("enlarge needs margins of at least 0");
      type.shape[2 + i % 2] += margin[i];
    }
    return std::vector{type};
  }
  const PieceAttributes* const names = pieces(op);
  TASO_ASSIGN(const std::size_t axis, axis_of(attributes, type, names == nullptr ? "axis" : names->axis));
  if (op == "concat") {
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      TensorType other = inputs[i];
      if (other.shape.size() != type.shape.size()) return bad_input("concat needs equal ranks");
      const std::int64_t extent = other.shape[axis];
      other.shape[axis] = type.shape[axis];
      if (other != type) return bad_input("concat needs equal shapes but for the axis");
      type.shape[axis] += extent;
    }
    return std::vector{type};
  }
  std::vector<TensorType> outputs;
  std::int64_t total = 0;
  for (const std::int64_t size : attributes.integers(names->sizes)) {
    if (size < 0) return bad_input("split needs sizes of at least 0");
    total += size;
    outputs.push_back(type);
    outputs.back().shape[axis] = size;
  }
  if (total != type.shape[axis] || outputs.empty()) return bad_input("split needs sizes that add up to the extent");
  return outputs;
}

std::size_t FakeCatalog::output_count(std::string_view op, const Attributes& attributes) const {
  const PieceAttributes* const names = pieces(op);
  return names == nullptr ? 1 : attributes.integers(names->sizes).size();
}

}  // namespace taso
