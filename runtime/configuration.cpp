#include "runtime/configuration.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>

#include "graph/reals.h"
#include "operators/registry.h"
#include "runtime/storage.h"
#include "runtime/strides.h"

namespace taso {

namespace {

// Of operators with kernels that are more than a function of elements.
const std::unordered_map<std::string_view, Behaviour>& behaviours() {
  static const auto table = [] {
    std::unordered_map<std::string_view, Behaviour> map;
    for (const char* name : {"conv2d", "conv2d_bias_act", "max_pool2d", "avg_pool2d_include", "avg_pool2d_exclude"})
      map[name] = {.preference = LayoutPreference::spatial, .blocks = true};
    map["conv2d_bias_add_act"] = {.preference = LayoutPreference::spatial, .blocks = true, .residual = 3};
    map["pad"] = {.preference = LayoutPreference::follower, .any_order = true};
    for (const char* name : {"global_avg_pool", "reduce_sum", "reduce_mean", "reduce_max", "softmax"})
      map[name] = {.preference = LayoutPreference::follower};
    for (const char* name : {"batch_norm", "group_norm", "lrn"}) map[name] = {.preference = LayoutPreference::channel};
    for (const char* name : {"matmul", "matmul_bias_act"}) map[name] = {.preference = LayoutPreference::product};
    map["concat"] = {
        .preference = LayoutPreference::follower, .view = ViewKind::concat, .any_order = true, .blocks = true};
    map["split"] = {
        .preference = LayoutPreference::follower, .view = ViewKind::split, .any_order = true, .blocks = true};
    map["slice"] = {.preference = LayoutPreference::follower, .view = ViewKind::slice, .any_order = true};
    map["reshape"] = {.view = ViewKind::reshape};
    map["broadcast"] = {.view = ViewKind::broadcast};
    map["transpose"] = {.view = ViewKind::transpose};
    return map;
  }();
  return table;
}

}  // namespace

const Behaviour& behaviour_of(std::string_view op, const OperatorRegistry& registry) {
  static constexpr Behaviour usual{};
  static constexpr Behaviour with_scalars{.preference = LayoutPreference::follower, .any_order = true};
  static constexpr Behaviour of_one_element{
      .preference = LayoutPreference::follower, .any_order = true, .blocks = true};
  static constexpr Behaviour of_several_elements{
      .preference = LayoutPreference::follower, .folds_broadcast = true, .any_order = true, .blocks = true};
  const auto& listed = behaviours();
  if (const auto found = listed.find(op); found != listed.end()) return found->second;
  const OperatorDefinition* definition = registry.find(op);
  if (definition == nullptr || !definition->elementwise) return usual;
  if (std::any_of(definition->inputs.begin(), definition->inputs.end(),
                  [](const InputSpec& input) { return input.axes.empty(); }))
    return with_scalars;
  return definition->inputs.size() == 1 ? of_one_element : of_several_elements;
}

std::size_t residual_of(std::string_view op) {
  const auto found = behaviours().find(op);
  return found == behaviours().end() ? 0 : found->second.residual;
}

bool has_layouts(ElementType type) { return working_type(type) == ElementType::f32; }

bool can_be_channels_last(const TensorType& type) { return type.shape.size() == 4 && has_layouts(type.element); }

std::size_t axis_of(std::int64_t axis, std::size_t rank) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

std::optional<std::vector<std::int64_t>> split_offsets(const Node& node, const TensorType& input, Layout layout) {
  if (!is_outermost(input.shape, layout, axis_of(node.attributes.integer("axis"), input.shape.size())))
    return std::nullopt;
  std::vector<std::int64_t> offsets;
  std::int64_t offset = 0;
  for (const TensorType& output : node.outputs) {
    offsets.push_back(offset);
    offset += output.elements() * static_cast<std::int64_t>(size_of(output.element));
  }
  return offsets;
}

std::optional<std::vector<std::int64_t>> slice_offsets(const Node& node, const TensorType& input, Layout layout) {
  const std::vector<std::int64_t> strides = strides_of(input.shape, layout);
  const auto& starts = node.attributes.integers("starts");
  const auto& steps = node.attributes.integers("steps");
  std::int64_t offset = 0;
  bool sliced = false;
  for (std::size_t axis = 0; axis < input.shape.size(); ++axis) {
    const std::int64_t extent = node.outputs[0].shape[axis];
    if (steps[axis] != 1 && extent > 1) return std::nullopt;
    if (extent == input.shape[axis] && starts[axis] == 0) continue;
    if (sliced || !is_outermost(input.shape, layout, axis)) return std::nullopt;
    sliced = true;
    offset = starts[axis] * strides[axis] * static_cast<std::int64_t>(size_of(input.element));
  }
  return std::vector<std::int64_t>{offset};
}

bool transpose_moves_nothing(const Node& node, const TensorType& input, Layout from, Layout to) {
  const TensorType& output = node.outputs[0];
  absl::InlinedVector<std::int64_t, 8> strides(input.shape.size()), wanted(output.shape.size());
  fill_strides(input.shape, from, std::span(strides.data(), strides.size()));
  fill_strides(output.shape, to, std::span(wanted.data(), wanted.size()));
  const auto& permutation = node.attributes.integers("perm");
  for (std::size_t axis = 0; axis < output.shape.size(); ++axis)
    if (output.shape[axis] != 1 && wanted[axis] != strides[axis_of(permutation[axis], strides.size())]) return false;
  return true;
}

const std::shared_ptr<const PlannedKernel>& PlannedKernels::of_node(const Node& node,
                                                                    std::span<const OperandView> operands,
                                                                    std::span<const Layout> layouts) {
  Mixer mixer;
  mixer.add(node.label);
  for (const OperandView& operand : operands) {
    mixer.add(*operand.type);
    mixer.add((static_cast<std::uint64_t>(operand.layout) << 1) | (operand.weight ? 1 : 0));
  }
  for (const Layout layout : layouts) mixer.add(static_cast<std::uint64_t>(layout));
  auto& kernel = kernels_[mixer.finish()];
  if (!kernel) {
    KernelRequest request;
    request.op = node.op;
    request.attributes = node.attributes;
    for (const OperandView& operand : operands)
      request.inputs.push_back({*operand.type, operand.layout, operand.weight});
    for (std::size_t port = 0; port < node.outputs.size(); ++port)
      request.outputs.push_back({node.outputs[port], layouts[port], false});
    kernel = finish(std::move(request));
  }
  return kernel;
}

const std::shared_ptr<const PlannedKernel>& PlannedKernels::reorder(const TensorType& type, Layout from, Layout to) {
  Mixer mixer;
  mixer.add(type);
  mixer.add(static_cast<std::uint64_t>(from) * layout_count + static_cast<std::uint64_t>(to));
  auto& kernel = kernels_[mixer.finish()];
  if (!kernel) {
    KernelRequest request;
    request.op = reorder_op;
    request.inputs = {{type, from, false}};
    request.outputs = {{type, to, false}};
    kernel = finish(std::move(request));
  }
  return kernel;
}

std::shared_ptr<const PlannedKernel> PlannedKernels::finish(KernelRequest request) {
  auto kernel = std::make_shared<PlannedKernel>();
  request.threads = threads_;
  replace_floats(request, ElementType::f32, float_storage_);
  request.cached_tenths = cached_tenths_;
  kernel->request = std::move(request);
  kernel->key = kernel->request.key();
  kernel->key_hash = hash_text(kernel->key);
  kernel->number = static_cast<std::uint32_t>(by_number_.size());
  by_number_.push_back(kernel);
  return kernel;
}

}  // namespace taso
