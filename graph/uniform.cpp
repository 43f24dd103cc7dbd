#include "graph/uniform.h"

#include <cmath>
#include <cstring>
#include <variant>

namespace taso {
namespace {

// Operators through which a number is followed.
constexpr int max_steps = 16;

std::optional<float> repeated_element(const ConstantData& constant) {
  if (!constant.has_data() || constant.type().element != ElementType::f32 || constant.type().elements() == 0)
    return std::nullopt;
  const std::span<const std::byte> bytes = constant.is_dense() ? constant.dense_bytes() : constant.splat_element();
  if (bytes.size() < sizeof(float)) return std::nullopt;
  // Equal bytes all along: each element is the one before it.
  if (std::memcmp(bytes.data(), bytes.data() + sizeof(float), bytes.size() - sizeof(float)) != 0) return std::nullopt;
  float number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

// The number that all elements of a value are.
std::optional<double> number_of(const Graph& graph, Value value, const OperatorCatalog& catalog) {
  for (int step = 0; step < max_steps; ++step) {
    const Node& node = graph.node(value.node);
    if (node.kind == NodeKind::constant) return repeated_element(*node.constant);
    const OperatorSignature* const signature = node.kind == NodeKind::op ? catalog.signature(node.op) : nullptr;
    if (signature == nullptr) return std::nullopt;
    if (!signature->fill_value.empty()) return static_cast<float>(node.attributes.real(signature->fill_value));
    if (!signature->copies || !node.weight_only) return std::nullopt;
    value = node.inputs[0];
  }
  return std::nullopt;
}

}  // namespace

std::optional<Attributes> as_fill(const Graph& graph, const Value& value, std::string_view op,
                                  const OperatorCatalog& catalog) {
  const OperatorSignature* const signature = catalog.signature(op);
  const TensorType& type = graph.type(value);
  if (signature == nullptr || signature->fill_value.empty() || !type.known || type.element != ElementType::f32 ||
      !graph.node(value.node).weight_only)
    return std::nullopt;
  const std::optional<double> number = number_of(graph, value, catalog);
  if (!number || !std::isfinite(*number)) return std::nullopt;
  Attributes result;
  result.set(signature->fill_shape, std::vector<std::int64_t>(type.shape.begin(), type.shape.end()));
  result.set(signature->fill_value, *number);
  return result;
}

bool same_fill(const Graph& graph, const Value& a, const Value& b, std::string_view op,
               const OperatorCatalog& catalog) {
  const std::optional<Attributes> x = as_fill(graph, a, op, catalog), y = as_fill(graph, b, op, catalog);
  return x && y && *x == *y;
}

bool same_rounded(const AttributeValue& said, const AttributeValue& held) {
  const double* const x = std::get_if<double>(&said);
  const double* const y = std::get_if<double>(&held);
  if (x == nullptr || y == nullptr) return said == held;
  return static_cast<float>(*x) == static_cast<float>(*y);
}

}  // namespace taso
