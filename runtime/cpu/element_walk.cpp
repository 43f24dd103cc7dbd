#include "runtime/cpu/element_walk.h"

#include <algorithm>

#include "operators/registry.h"
#include "runtime/cpu/kernels.h"
#include "runtime/strides.h"

namespace taso::cpu {

std::int64_t ElementWalk::rows() const {
  std::int64_t rows = 1;
  for (std::size_t axis = 0; axis + 1 < extents.size(); ++axis) rows *= extents[axis];
  return rows;
}

std::string no_element_walk(const KernelRequest& request) {
  if (request.outputs.size() != 1) return "one output is needed";
  for (const Operand& input : request.inputs)
    if (!is_broadcastable(input.type.shape, request.outputs[0].type.shape))
      return "an input does not broadcast to the output";
  for (const Operand& input : request.inputs)
    if (block_of(input.layout) != 0 &&
        (input.layout != request.outputs[0].layout || input.type.shape != request.outputs[0].type.shape))
      return "blocks of channels of another shape than the output's";
  return "";
}

ElementWalk element_walk(const KernelRequest& request) {
  const Operand& output = request.outputs[0];
  const std::int64_t block = block_of(output.layout);
  Shape shape = output.type.shape;
  const std::vector<std::int64_t> out = strides_split(shape, output.layout, block);
  std::vector<std::vector<std::int64_t>> in;
  for (const Operand& operand : request.inputs) {
    if (block_of(operand.layout) != 0) {
      in.push_back(strides_split(operand.type.shape, operand.layout, block));
    } else {
      in.push_back(broadcast_strides(operand.type.shape, strides_of(operand), shape));
      split_strides(in.back(), block);
    }
  }
  split_channels(shape, block);
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < out.size(); ++axis)
    if (shape[axis] != 1) axes.push_back(axis);
  std::stable_sort(axes.begin(), axes.end(), [&](std::size_t a, std::size_t b) { return out[a] > out[b]; });
  ElementWalk walk;
  walk.strides.resize(in.size());
  for (const std::size_t axis : axes) {
    const std::int64_t extent = shape[axis];
    bool merges = !walk.extents.empty();
    for (std::size_t i = 0; i < in.size(); ++i) merges = merges && walk.strides[i].back() == in[i][axis] * extent;
    if (merges) {
      walk.extents.back() *= extent;
      for (std::size_t i = 0; i < in.size(); ++i) walk.strides[i].back() = in[i][axis];
    } else {
      walk.extents.push_back(extent);
      for (std::size_t i = 0; i < in.size(); ++i) walk.strides[i].push_back(in[i][axis]);
    }
  }
  if (walk.extents.empty()) {
    walk.extents.push_back(1);
    for (auto& strides : walk.strides) strides.push_back(1);
  }
  return walk;
}

Expected<BlockDefinition> BlockDefinition::create(const KernelRequest& request, const OperatorRegistry& registry) {
  const OperatorDefinition* const definition = registry.find(request.op);
  if (definition == nullptr || !definition->elementwise) return bad_input("no element-wise definition");
  if (definition->inputs.size() != request.inputs.size())
    return bad_input("the definition has another number of inputs");
  std::vector<TensorType> types;
  for (const InputSpec& input : definition->inputs)
    types.push_back({ElementType::f32, input.axes.empty() ? Shape{} : Shape{block_elements}, true});
  TASO_ASSIGN(OperatorInstance instance, OperatorInstance::create(registry, request.op, request.attributes, types));
  if (instance.body().stages.size() != 1) return bad_input("the definition has several stages");
  return BlockDefinition(std::move(instance));
}

}  // namespace taso::cpu
