#include "onnx_io/fold.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <type_traits>
#include <utility>

#include "graph/reals.h"
#include "graph/words.h"
#include "operators/evaluate.h"
#include "operators/machine_ring.h"
#include "operators/plain_reads.h"

namespace taso {
namespace {

using Constant = std::shared_ptr<const ConstantData>;

/// An array of numbers under construction.
template <class Real>
class Reals {
 public:
  static constexpr ElementType element = std::is_same_v<Real, double> ? ElementType::f64 : ElementType::f32;
  explicit Reals(Shape shape) : type_{element, std::move(shape), true} {
    bytes_.resize(static_cast<std::size_t>(type_.bytes()));
  }
  [[nodiscard]] std::byte* at(std::int64_t position) {
    return bytes_.data() + position * static_cast<std::int64_t>(sizeof(Real));
  }
  void set(std::int64_t position, Real value) { std::memcpy(at(position), &value, sizeof value); }
  [[nodiscard]] Constant finish() { return ConstantData::own(type_, std::move(bytes_)); }

 private:
  TensorType type_;
  std::vector<std::byte> bytes_;
};

/// Elements of a constant, read in place; a splat reads its one element.
template <class Real>
class Reader {
 public:
  explicit Reader(const ConstantData& constant)
      : data_(constant.is_dense() ? constant.dense_bytes().data() : constant.splat_element().data()),
        step_(constant.is_dense() ? width : 0) {}
  [[nodiscard]] Real operator[](std::int64_t element) const {
    Real value = 0;
    std::memcpy(&value, data_ + element * step_, sizeof value);
    return value;
  }
  /// Copies `count` consecutive elements.
  void copy(std::int64_t from, std::int64_t count, std::byte* to) const {
    if (step_ != 0) {
      std::memcpy(to, data_ + from * width, static_cast<std::size_t>(count * width));
    } else {
      for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * width, data_, width);
    }
  }

 private:
  static constexpr std::int64_t width = sizeof(Real);
  const std::byte* data_;
  std::int64_t step_;
};

Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// Copies a box of `extents` elements between arrays with the given offsets and strides.
template <class Real>
void copy_box(const Reader<Real>& from, std::int64_t from_offset, const Shape& from_strides, Reals<Real>& to,
              std::int64_t to_offset, const Shape& to_strides, const Shape& extents) {
  if (volume(extents) == 0) return;
  const std::size_t rank = extents.size();
  if (rank == 0) return from.copy(from_offset, 1, to.at(to_offset));
  const std::int64_t inner = extents.back();
  const std::int64_t from_step = from_strides.back(), to_step = to_strides.back();
  Shape index(rank, 0);
  while (true) {
    std::int64_t source = from_offset, target = to_offset;
    for (std::size_t i = 0; i + 1 < rank; ++i) {
      source += index[i] * from_strides[i];
      target += index[i] * to_strides[i];
    }
    if (from_step == 1 && to_step == 1) {
      from.copy(source, inner, to.at(target));
    } else {
      for (std::int64_t i = 0; i < inner; ++i) from.copy(source + i * from_step, 1, to.at(target + i * to_step));
    }
    std::size_t axis = rank - 1;
    while (axis-- > 0) {
      if (++index[axis] < extents[axis]) break;
      index[axis] = 0;
    }
    if (axis == static_cast<std::size_t>(-1)) return;
  }
}

/// Evaluates nodes of values in f32 or f64; `inputs` are their inputs' values.
template <class Real>
class Evaluator {
 public:
  Evaluator(const OperatorRegistry& registry, std::int64_t most_elements)
      : registry_(registry), most_elements_(most_elements) {}

  Expected<std::vector<Constant>> evaluate_node(const Node& node, const std::vector<Constant>& inputs) {
    if (auto repeated = repeat_element(node, inputs); !repeated.empty()) return repeated;
    if (are_splats(inputs)) {
      if (auto element_wise = arithmetic(node, inputs)) return std::vector<Constant>{element_wise};
      const OperatorDefinition* const definition = registry_.find(node.op);
      if (definition != nullptr && reads_at_place_alone(*definition)) return by_one_element(node, inputs);
    }
    TASO_RETURN_IF_ERROR(check_size(node.outputs[0]));
    if (auto moved = move_elements(node, inputs); !moved.empty()) return moved;
    if (auto element_wise = arithmetic(node, inputs)) return std::vector<Constant>{element_wise};
    if (auto product = matrix_product(node, inputs)) return std::vector<Constant>{product};
    for (const Constant& input : inputs) TASO_RETURN_IF_ERROR(check_size(input->type()));
    return by_definition(node, inputs);
  }

 private:
  /// The element all splats share, or nothing.
  static std::span<const std::byte> common_splat(const std::vector<Constant>& inputs) {
    std::span<const std::byte> element;
    for (const Constant& input : inputs) {
      if (input->is_dense()) return {};
      if (!element.empty() && std::memcmp(element.data(), input->splat_element().data(), element.size()) != 0)
        return {};
      element = input->splat_element();
    }
    return element;
  }

  static bool are_splats(const std::vector<Constant>& inputs) {
    return std::none_of(inputs.begin(), inputs.end(), [](const Constant& input) { return input->is_dense(); });
  }

  static bool moves(const Node& node) {
    return node.op == "concat" || node.op == "split" || node.op == "reshape" || node.op == "transpose" ||
           node.op == "broadcast" || node.op == "slice" || node.op == "pad" || node.op == "enlarge";
  }

  /// What operators that only move elements make of one element, however often it is repeated.
  static std::vector<Constant> repeat_element(const Node& node, const std::vector<Constant>& inputs) {
    if (!moves(node) || node.op == "pad" || node.op == "enlarge") return {};
    const std::span<const std::byte> element = common_splat(inputs);
    std::vector<Constant> outputs;
    if (!element.empty())
      for (const TensorType& type : node.outputs)
        outputs.push_back(ConstantData::splat(type, {element.begin(), element.end()}));
    return outputs;
  }

  std::vector<Constant> move_elements(const Node& node, const std::vector<Constant>& inputs) {
    if (!moves(node)) return {};
    for (const Constant& input : inputs)
      if (input->type().element != Reals<Real>::element) return {};
    if (node.op == "reshape") return {inputs[0]->reshaped(node.outputs[0].shape)};
    if (node.op == "concat") return {concat(node, inputs)};
    const Shape& x = inputs[0]->type().shape;
    const Shape strides = row_major_strides(x);
    const Reader<Real> reader(*inputs[0]);
    if (node.op == "split") return split(node, x, strides, reader);
    const Shape& shape = node.outputs[0].shape;
    Reals<Real> out(shape);
    Shape from = strides;
    std::int64_t offset = 0;
    if (node.op == "transpose") {
      const auto& perm = node.attributes.integers("perm");
      for (std::size_t i = 0; i < perm.size(); ++i) from[i] = strides[static_cast<std::size_t>(perm[i])];
    } else if (node.op == "broadcast") {
      from.assign(shape.size(), 0);
      for (std::size_t i = 0; i < x.size(); ++i) from[shape.size() - x.size() + i] = x[i] == 1 ? 0 : strides[i];
    } else if (node.op == "slice") {
      for (std::size_t i = 0; i < x.size(); ++i) {
        offset += node.attributes.integers("starts")[i] * strides[i];
        from[i] = strides[i] * node.attributes.integers("steps")[i];
      }
    } else {
      return pad(node, x, strides, reader);
    }
    copy_box(reader, offset, from, out, 0, row_major_strides(shape), shape);
    return {out.finish()};
  }

  static Constant concat(const Node& node, const std::vector<Constant>& inputs) {
    const Shape& shape = node.outputs[0].shape;
    const auto axis =
        static_cast<std::size_t>(static_cast<std::int64_t>(shape.size()) + node.attributes.integer("axis"));
    const Shape strides = row_major_strides(shape);
    Reals<Real> out(shape);
    std::int64_t begin = 0;
    for (const Constant& input : inputs) {
      const Shape& part = input->type().shape;
      copy_box(Reader<Real>(*input), 0, row_major_strides(part), out, begin * strides[axis], strides, part);
      begin += part[axis];
    }
    return out.finish();
  }

  static std::vector<Constant> split(const Node& node, const Shape& x, const Shape& strides,
                                     const Reader<Real>& reader) {
    const auto axis = static_cast<std::size_t>(static_cast<std::int64_t>(x.size()) + node.attributes.integer("axis"));
    std::vector<Constant> outputs;
    std::int64_t begin = 0;
    for (const TensorType& type : node.outputs) {
      Reals<Real> out(type.shape);
      copy_box(reader, begin * strides[axis], strides, out, 0, row_major_strides(type.shape), type.shape);
      begin += type.shape[axis];
      outputs.push_back(out.finish());
    }
    return outputs;
  }

  /// pad, and enlarge as the padding of a kernel; without cells cut off.
  static std::vector<Constant> pad(const Node& node, const Shape& x, const Shape& strides, const Reader<Real>& reader) {
    const Shape& shape = node.outputs[0].shape;
    Shape before(x.size(), 0);
    Real value = 0;
    if (node.op == "pad") {
      before = node.attributes.integers("before");
      value = static_cast<Real>(node.attributes.real("value"));
    } else {
      const auto& margin = node.attributes.integers("margin");
      before[2] = margin[0];
      before[3] = margin[1];
    }
    for (std::size_t i = 0; i < x.size(); ++i)
      if (before[i] < 0 || shape[i] < x[i] + before[i]) return {};
    Reals<Real> out(shape);
    if (value != 0)
      for (std::int64_t i = 0; i < volume(shape); ++i) out.set(i, value);
    const Shape to = row_major_strides(shape);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < x.size(); ++i) offset += before[i] * to[i];
    copy_box(reader, 0, strides, out, offset, to, x);
    return {out.finish()};
  }

  /// One step of arithmetic is correctly rounded, which is what rounding the double result gives.
  static Constant arithmetic(const Node& node, const std::vector<Constant>& inputs) {
    Real (*function)(Real, Real) = nullptr;
    if (node.op == "add") function = [](Real a, Real b) { return a + b; };
    if (node.op == "sub") function = [](Real a, Real b) { return a - b; };
    if (node.op == "mul") function = [](Real a, Real b) { return a * b; };
    if (node.op == "div") function = [](Real a, Real b) { return a / b; };
    if (node.op == "sqrt") function = [](Real a, Real) { return std::sqrt(a); };
    if (node.op == "neg") function = [](Real a, Real) { return -a; };
    if (function == nullptr) return nullptr;
    const Reader<Real> a(*inputs.front()), b(*inputs.back());
    if (are_splats(inputs)) {
      const Real value = function(a[0], b[0]);
      std::vector<std::byte> element(sizeof value);
      std::memcpy(element.data(), &value, sizeof value);
      return ConstantData::splat(node.outputs[0], std::move(element));
    }
    Reals<Real> out(node.outputs[0].shape);
    const std::int64_t count = node.outputs[0].elements();
    for (std::int64_t i = 0; i < count; ++i) out.set(i, function(a[i], b[i]));
    return out.finish();
  }

  static Constant matrix_product(const Node& node, const std::vector<Constant>& inputs) {
    if (node.op != "matmul" || inputs[1]->type().shape.size() != 2) return nullptr;
    const Shape& shape = node.outputs[0].shape;
    const std::int64_t columns = shape.back(), inner = inputs[1]->type().shape[0];
    const std::int64_t rows = columns == 0 ? 0 : volume(shape) / columns;
    const Reader<Real> a(*inputs[0]), b(*inputs[1]);
    Reals<Real> out(shape);
    std::vector<double> sums(static_cast<std::size_t>(columns));
    for (std::int64_t i = 0; i < rows; ++i) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::int64_t t = 0; t < inner; ++t) {
        const double factor = a[i * inner + t];
        for (std::int64_t j = 0; j < columns; ++j)
          sums[static_cast<std::size_t>(j)] += factor * static_cast<double>(b[t * columns + j]);
      }
      for (std::int64_t j = 0; j < columns; ++j)
        out.set(i * columns + j, static_cast<Real>(sums[static_cast<std::size_t>(j)]));
    }
    return out.finish();
  }

  [[nodiscard]] Status check_size(const TensorType& type) const {
    if (type.elements() <= most_elements_) return {};
    return Error{ErrorCode::bad_input, std::to_string(type.elements()) + " elements are too many to look at", {}};
  }

  /// What an operator makes at each place of operands that are one element repeated.
  Expected<std::vector<Constant>> by_one_element(Node node, std::vector<Constant> inputs) {
    const TensorType type = std::exchange(node.outputs[0], {node.outputs[0].element, {}, true});
    for (Constant& input : inputs) {
      const std::span<const std::byte> element = input->splat_element();
      input = ConstantData::splat({input->type().element, {}, true}, {element.begin(), element.end()});
    }
    TASO_ASSIGN(const std::vector<Constant> one, by_definition(node, inputs));
    return std::vector<Constant>{ConstantData::splat(type, one[0]->to_bytes())};
  }

  Expected<std::vector<Constant>> by_definition(const Node& node, const std::vector<Constant>& inputs) {
    std::vector<TensorType> types;
    std::vector<RingTensor<double>> tensors;
    for (const Constant& input : inputs) {
      types.push_back(input->type());
      RingTensor<double> tensor;
      tensor.shape = input->type().shape;
      if (is_real(input->type().element))
        tensor.elements = input->to_reals();
      else
        tensor.integers = input->to_integers();
      tensors.push_back(std::move(tensor));
    }
    TASO_ASSIGN(const OperatorInstance instance, OperatorInstance::create(registry_, node.op, node.attributes, types));
    std::vector<const RingTensor<double>*> pointers;
    pointers.reserve(tensors.size());
    for (const auto& tensor : tensors) pointers.push_back(&tensor);
    DoubleRing ring;
    const std::span<const RingTensor<double>* const> operands(pointers);
    TASO_ASSIGN(const auto results, has_machine_numbers(instance) ? evaluate_defined(instance, operands)
                                                                  : evaluate(instance, ring, operands));
    std::vector<Constant> outputs;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const TensorType& type = node.outputs[i];
      outputs.push_back(is_word(type.element) ? words(type, results[i].integers)
                                              : ConstantData::of_reals(type, results[i].elements));
    }
    return outputs;
  }

  static Constant words(const TensorType& type, const std::vector<std::int64_t>& values) {
    std::vector<std::byte> bytes(values.size() * size_of(type.element));
    for (std::size_t i = 0; i < values.size(); ++i) store_word(bytes.data(), type.element, i, values[i]);
    return ConstantData::own(type, std::move(bytes));
  }

  const OperatorRegistry& registry_;
  std::int64_t most_elements_;
};

}  // namespace

Expected<std::vector<Constant>> fold_weights(const Graph& graph, std::span<const Value> values,
                                             const OperatorRegistry& registry, std::int64_t most_elements) {
  // How many uses of each node are left: its value is dropped after the last one.
  std::vector<std::int64_t> uses(graph.id_bound(), 0);
  std::vector<NodeId> stack;
  for (const Value& value : values) {
    TASO_CHECK(graph.node(value.node).weight_only, "a value to be folded is not weight-only");
    if (uses[value.node]++ == 0) stack.push_back(value.node);
  }
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    for (const Value& input : graph.node(id).inputs)
      if (uses[input.node]++ == 0) stack.push_back(input.node);
  }
  std::map<NodeId, std::vector<Constant>> computed;
  auto take = [&](const Value& value) {
    const auto place = computed.find(value.node);
    Constant constant = place->second[value.port];
    if (--uses[value.node] == 0) computed.erase(place);
    return constant;
  };
  std::vector<Constant> results(values.size());
  Evaluator<float> evaluator(registry, most_elements);
  Evaluator<double> evaluator_in_f64(registry, most_elements);
  for (NodeId id : graph.topological_order()) {
    if (uses[id] == 0) continue;
    const Node& node = graph.node(id);
    if (node.kind == NodeKind::constant) {
      TASO_RETURN_IF_ERROR(node.constant->require_data());
      const ElementType type = node.constant->type().element;
      computed[id] = {is_real(type) ? converted(node.constant, working_type(type)) : node.constant};
    } else {
      std::vector<Constant> inputs;
      for (const Value& input : node.inputs) inputs.push_back(take(input));
      Node worked = node;
      for (TensorType& type : worked.outputs) type.element = working_type(type.element);
      const bool in_f64 = worked.outputs[0].element == ElementType::f64;
      TASO_ASSIGN(computed[id],
                  in_f64 ? evaluator_in_f64.evaluate_node(worked, inputs) : evaluator.evaluate_node(worked, inputs));
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i].node != id) continue;
      const Constant result = take(values[i]);
      const ElementType type = graph.type(values[i]).element;
      results[i] = is_real(type) ? converted(result, type) : result;
    }
  }
  return results;
}

}  // namespace taso
