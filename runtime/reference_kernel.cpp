#include "runtime/reference_kernel.h"

#include <cstring>

#include "graph/words.h"
#include "operators/evaluate.h"
#include "operators/instance.h"
#include "operators/registry.h"
#include "runtime/strides.h"

namespace taso {
namespace {

/// Calls f(offset in elements) for the elements of `shape` in row-major order.
template <class F>
void for_each_offset(const Shape& shape, const std::vector<std::int64_t>& strides, F&& f) {
  const std::int64_t count = volume(shape);
  std::vector<std::int64_t> index(shape.size(), 0);
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    f(offset);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      offset += strides[axis];
      if (++index[axis] < shape[axis]) break;
      offset -= shape[axis] * strides[axis];
      index[axis] = 0;
    }
  }
}

/// The same for all elements of an operand.
template <class F>
void for_each_offset(const Operand& operand, F&& f) {
  Shape extents = operand.type.shape;
  const std::int64_t block = block_of(operand.layout);
  split_channels(extents, block);
  for_each_offset(extents, strides_split(operand.type.shape, operand.layout, block), std::forward<F>(f));
}

template <class T>
T load(const std::byte* bytes, std::int64_t index) {
  T value;
  std::memcpy(&value, bytes + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
void store(std::byte* bytes, std::int64_t index, T value) {
  std::memcpy(bytes + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

bool is_supported(ElementType type) { return type == ElementType::f32 || type == ElementType::f64 || is_word(type); }

class Reference final : public Kernel {
 public:
  Reference(const KernelRequest& request, OperatorInstance instance)
      : Kernel("reference"), instance_(std::move(instance)), inputs_(request.inputs), outputs_(request.outputs) {}

  Status execute(const KernelArguments& arguments) const override {
    std::vector<RingTensor<double>> tensors(inputs_.size());
    std::vector<const RingTensor<double>*> pointers;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      RingTensor<double>& tensor = tensors[i];
      tensor.shape = instance_.input_types()[i].shape;
      Shape extents = tensor.shape;
      std::vector<std::int64_t> strides;
      if (const std::int64_t block = block_of(inputs_[i].layout); block != 0) {
        strides = strides_split(inputs_[i].type.shape, inputs_[i].layout, block);
        split_channels(extents, block);
      } else {
        strides = broadcast_strides(inputs_[i].type.shape, strides_of(inputs_[i].type.shape, inputs_[i].layout),
                                    tensor.shape);
      }
      const std::byte* bytes = arguments.inputs[i];
      const ElementType element = inputs_[i].type.element;
      if (is_word(element))
        for_each_offset(extents, strides, [&](std::int64_t offset) {
          tensor.integers.push_back(load_word(bytes, element, static_cast<std::size_t>(offset)));
        });
      else
        for_each_offset(extents, strides, [&](std::int64_t offset) {
          tensor.elements.push_back(element == ElementType::f32 ? static_cast<double>(load<float>(bytes, offset))
                                                                : load<double>(bytes, offset));
        });
      pointers.push_back(&tensor);
    }
    DoubleRing ring;
    TASO_ASSIGN(const auto results, evaluate(instance_, ring, std::span<const RingTensor<double>* const>(pointers)));
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const ElementType element = outputs_[i].type.element;
      std::byte* bytes = arguments.outputs[i];
      std::size_t next = 0;
      for_each_offset(outputs_[i], [&](std::int64_t offset) {
        if (is_word(element))
          store_word(bytes, element, static_cast<std::size_t>(offset), results[i].integers[next++]);
        else if (element == ElementType::f32)
          store(bytes, offset, static_cast<float>(results[i].elements[next++]));
        else
          store(bytes, offset, results[i].elements[next++]);
      });
    }
    return {};
  }

 private:
  OperatorInstance instance_;
  std::vector<Operand> inputs_, outputs_;
};

/// The conversion between layouts, which has no definition.
class ReferenceReorder final : public Kernel {
 public:
  explicit ReferenceReorder(const KernelRequest& request)
      : Kernel("reference"), from_(request.inputs[0]), to_(request.outputs[0]) {}
  Status execute(const KernelArguments& arguments) const override {
    const std::size_t width = size_of(from_.type.element);
    std::vector<std::int64_t> targets;
    for_each_offset(to_, [&](std::int64_t offset) { targets.push_back(offset); });
    std::size_t next = 0;
    for_each_offset(from_, [&](std::int64_t offset) {
      std::memcpy(arguments.outputs[0] + static_cast<std::size_t>(targets[next++]) * width,
                  arguments.inputs[0] + static_cast<std::size_t>(offset) * width, width);
    });
    return {};
  }

 private:
  Operand from_, to_;
};

}  // namespace

KernelOffer reference_kernel(const KernelRequest& request, const OperatorRegistry& registry) {
  for (const std::vector<Operand>* operands : {&request.inputs, &request.outputs})
    for (const Operand& operand : *operands)
      if (!is_supported(operand.type.element))
        return {nullptr, std::string("no arithmetic on ") + to_string(operand.type.element)};
  if (request.op == reorder_op) return {std::make_unique<ReferenceReorder>(request), ""};
  std::vector<TensorType> types;
  for (const Operand& operand : request.inputs) types.push_back(operand.type);
  auto instance = OperatorInstance::create(registry, request.op, request.attributes, types);
  const bool makes_others = instance && instance->output_types().size() == 1 && request.outputs.size() == 1 &&
                            instance->output_types()[0].shape != request.outputs[0].type.shape;
  if ((!instance || makes_others) && request.outputs.size() == 1) {
    // The fused pair f(x, broadcast(b)), or f(broadcast(a), broadcast(b)): the operands have the output's shape.
    for (TensorType& type : types)
      if (is_broadcastable(type.shape, request.outputs[0].type.shape)) type.shape = request.outputs[0].type.shape;
    auto fused = OperatorInstance::create(registry, request.op, request.attributes, types);
    if (fused) instance = std::move(fused);
  }
  if (!instance) return {nullptr, instance.error().message};
  for (std::size_t i = 0; i < request.outputs.size(); ++i)
    if (i >= instance->output_types().size() || !(instance->output_types()[i].shape == request.outputs[i].type.shape))
      return {nullptr, "the outputs are not those of the definition"};
  return {std::make_unique<Reference>(request, std::move(*instance)), ""};
}

}  // namespace taso
