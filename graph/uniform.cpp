#include "graph/uniform.h"

#include <cmath>
#include <cstring>
#include <variant>

#include "graph/reals.h"

namespace taso {
namespace {

// Operators through which a number is followed.
constexpr int max_steps = 16;

std::optional<double> repeated_element(const ConstantData& constant) {
  const ElementType type = constant.type().element;
  if (!constant.has_data() || !is_real(type) || constant.type().elements() == 0) return std::nullopt;
  const std::span<const std::byte> bytes = constant.is_dense() ? constant.dense_bytes() : constant.splat_element();
  const std::size_t width = size_of(type);
  if (bytes.size() < width) return std::nullopt;
  // Equal bytes all along: each element is the one before it.
  if (std::memcmp(bytes.data(), bytes.data() + width, bytes.size() - width) != 0) return std::nullopt;
  return load_real(bytes.data(), type, 0);
}

// The number that all elements of a value are.
std::optional<double> number_of(const Graph& graph, Value value, const OperatorCatalog& catalog) {
  for (int step = 0; step < max_steps; ++step) {
    const Node& node = graph.node(value.node);
    if (node.kind == NodeKind::constant) return repeated_element(*node.constant);
    const OperatorSignature* const signature = node.kind == NodeKind::op ? catalog.signature(node.op) : nullptr;
    if (signature == nullptr) return std::nullopt;
    if (!signature->fill_value.empty())
      return rounded(node.attributes.real(signature->fill_value), node.outputs[0].element);
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
  if (signature == nullptr || signature->fill_value.empty() || !type.known || !is_real(type.element) ||
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

bool same_rounded(const AttributeValue& said, const AttributeValue& held, ElementType type) {
  const double* const x = std::get_if<double>(&said);
  const double* const y = std::get_if<double>(&held);
  if (x == nullptr || y == nullptr) return said == held;
  return rounded(*x, type) == rounded(*y, type);
}

}  // namespace taso
