#include "partition/weight_elements.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "operators/rounding_ring.h"

namespace taso {
namespace {

/// An error so many times its standard deviation does not happen.
constexpr double most_deviations = 8;

/// Calls `visit(place in the box, place in the tensor)` for the elements of a box in row-major order.
template <class Visit>
void for_each_in(const Shape& shape, const IndexBox& box, const Visit& visit) {
  std::vector<std::int64_t> index(box.size(), 0);
  const auto count = static_cast<std::size_t>(volume_of(box));
  for (std::size_t at = 0; at < count; ++at) {
    std::size_t from = 0;
    for (std::size_t axis = 0; axis < box.size(); ++axis)
      from = from * static_cast<std::size_t>(shape[axis]) + static_cast<std::size_t>(box[axis].begin + index[axis]);
    visit(at, from);
    for (std::size_t axis = box.size(); axis-- > 0;) {
      if (++index[axis] < box[axis].size()) break;
      index[axis] = 0;
    }
  }
}

Shape shape_of(const IndexBox& box) {
  Shape shape;
  for (const IndexRange& range : box) shape.push_back(range.size());
  return shape;
}

RingTensor<RoundedNumber> rounded(const WeightElements& weight) {
  RingTensor<RoundedNumber> tensor{weight.exact.shape, {}, weight.exact.integers};
  for (std::size_t i = 0; i < weight.exact.elements.size(); ++i)
    tensor.elements.push_back({weight.exact.elements[i], weight.variances.empty() ? 0 : weight.variances[i]});
  return tensor;
}

WeightElements elements_of(RingTensor<RoundedNumber> tensor) {
  WeightElements weight{{std::move(tensor.shape), {}, std::move(tensor.integers)}};
  for (const RoundedNumber& number : tensor.elements) {
    weight.exact.elements.push_back(number.value);
    weight.variances.push_back(number.variance);
  }
  return weight;
}

/// Whether an element may be what another one is when it is computed in f32.
bool is_same(double element, double exact, double tolerance) {
  return element == exact || std::abs(element - exact) <= tolerance || (std::isnan(element) && std::isnan(exact)) ||
         (tolerance > 0 && element == static_cast<double>(static_cast<float>(exact)));
}

}  // namespace

double WeightElements::tolerance(std::size_t element) const {
  if (variances.empty()) return 0;
  const double most = most_deviations * RoundingRing().unit() * std::sqrt(variances[element]);
  // Beyond all bounds nothing is known of the error: then only the element itself is accepted.
  return std::isfinite(most) ? most : 0;
}

Expected<const WeightElements*> Weights::of(Value value) {
  if (const auto known = known_.find(value); known != known_.end()) return &known->second;
  Graph cone;
  std::map<NodeId, NodeId> copies;
  copy(value.node, cone, copies);
  cone.add_output({copies.at(value.node), value.port});
  for (const NodeId id : cone.topological_order())
    if (cone.node(id).constant) TASO_RETURN_IF_ERROR(cone.node(id).constant->require_data());
  WeightElements elements;
  if (is_computed(value.node)) {
    RoundingRing ring;
    TASO_ASSIGN(std::vector<RingTensor<RoundedNumber>> tensors, evaluate(cone, registry_, ring, {}));
    elements = elements_of(std::move(tensors[0]));
  } else {
    DoubleRing ring;
    TASO_ASSIGN(std::vector<RingTensor<double>> tensors, evaluate(cone, registry_, ring, {}));
    elements.exact = std::move(tensors[0]);
  }
  return &known_.emplace(value, std::move(elements)).first->second;
}

/// Whether a value is more than elements of constants in other places.
bool Weights::is_computed(NodeId id) const {
  const Node& node = graph_.node(id);
  if (node.kind != NodeKind::op) return false;
  const OperatorSignature* const signature = registry_.signature(node.op);
  const bool copies = signature != nullptr && (signature->copies || registry_.is_associative(node.op));
  return !copies || std::any_of(node.inputs.begin(), node.inputs.end(),
                                [&](const Value& input) { return is_computed(input.node); });
}

void Weights::copy(NodeId id, Graph& cone, std::map<NodeId, NodeId>& copies) const {
  if (copies.contains(id)) return;
  Node node = graph_.node(id);
  for (Value& input : node.inputs) {
    copy(input.node, cone, copies);
    input.node = copies.at(input.node);
  }
  copies[id] = cone.add(std::move(node));
}

Expected<std::vector<WeightElements>> apply_to_weights(const OperatorRegistry& registry, std::string_view op,
                                                       const Attributes& attributes,
                                                       const std::vector<TensorType>& types,
                                                       std::span<const WeightElements> operands) {
  TASO_ASSIGN(const OperatorInstance instance, OperatorInstance::create(registry, op, attributes, types));
  std::vector<RingTensor<RoundedNumber>> tensors;
  for (const WeightElements& operand : operands) tensors.push_back(rounded(operand));
  std::vector<const RingTensor<RoundedNumber>*> inputs;
  for (const RingTensor<RoundedNumber>& tensor : tensors) inputs.push_back(&tensor);
  RoundingRing ring;
  TASO_ASSIGN(std::vector<RingTensor<RoundedNumber>> results,
              evaluate(instance, ring, std::span<const RingTensor<RoundedNumber>* const>(inputs)));
  std::vector<WeightElements> made;
  for (RingTensor<RoundedNumber>& result : results) made.push_back(elements_of(std::move(result)));
  return made;
}

WeightElements room_for(const Shape& shape, const WeightElements& kind) {
  const auto count = static_cast<std::size_t>(volume(shape));
  WeightElements room{{shape, {}, {}}};
  if (kind.exact.integers.empty()) {
    room.exact.elements.resize(count);
    room.variances.resize(count);
  } else {
    room.exact.integers.resize(count);
  }
  return room;
}

WeightElements elements_in(const WeightElements& weight, const IndexBox& box) {
  WeightElements part = room_for(shape_of(box), weight);
  for_each_in(weight.exact.shape, box, [&](std::size_t at, std::size_t from) {
    if (part.exact.elements.empty()) {
      part.exact.integers[at] = weight.exact.integers[from];
      return;
    }
    part.exact.elements[at] = weight.exact.elements[from];
    if (!weight.variances.empty()) part.variances[at] = weight.variances[from];
  });
  return part;
}

void write_elements(WeightElements& weight, const IndexBox& box, const WeightElements& elements) {
  for_each_in(weight.exact.shape, box, [&](std::size_t at, std::size_t to) {
    if (weight.exact.elements.empty()) {
      weight.exact.integers[to] = elements.exact.integers[at];
      return;
    }
    weight.exact.elements[to] = elements.exact.elements[at];
    weight.variances[to] = elements.variances.empty() ? 0 : elements.variances[at];
  });
}

bool is_part(const RingTensor<double>& part, const WeightElements& weight, const IndexBox& box) {
  const RingTensor<double>& whole = weight.exact;
  if (part.shape != shape_of(box) || whole.shape.size() != box.size()) return false;
  if (part.integers.empty() != whole.integers.empty()) return volume_of(box) == 0;
  bool same = true;
  for_each_in(whole.shape, box, [&](std::size_t at, std::size_t from) {
    same = same && (whole.elements.empty() ? part.integers[at] == whole.integers[from]
                                           : is_same(part.elements[at], whole.elements[from], weight.tolerance(from)));
  });
  return same;
}

}  // namespace taso
