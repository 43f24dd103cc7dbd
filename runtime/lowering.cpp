#include "runtime/lowering.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>

#include "runtime/storage.h"
#include "runtime/strides.h"

namespace taso {
namespace {

constexpr TensorIndex no_tensor = std::numeric_limits<TensorIndex>::max();

std::string place(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  // A carried node is named after the first tensor that it defines.
  if (node.kind == NodeKind::opaque && node.name.starts_with("node:"))
    return "the node that defines '" + node.name.substr(5) + "' (" + node.op + ")";
  return "node " + std::to_string(id) + " (" + (node.op.empty() ? "input" : node.op) +
         (node.name.empty() ? "" : " '" + node.name + "'") + ")";
}

/// The tensors that hold a value, by canonical layout.
struct Forms {
  Layout native = Layout::row_major;  ///< As it was made; all else is converted from that.
  std::array<TensorIndex, layout_count> tensors;
  Forms() { tensors.fill(no_tensor); }
  [[nodiscard]] TensorIndex in(Layout layout) const { return tensors[static_cast<std::size_t>(layout)]; }
};

/// A LoweredTensor by the type that it has in the graph, which keeps it.
struct Tensor {
  LoweredTensor::Source source = LoweredTensor::Source::kernel;
  const TensorType* type = nullptr;
  Layout layout = Layout::row_major;
  Value value;
  std::uint32_t index = 0;
  std::int64_t offset = 0;
  std::uint32_t step = 0;
};

/// A LoweredStep: its inputs and then its outputs lie in a list of all operands.
struct Step {
  const std::shared_ptr<const PlannedKernel>* kernel = nullptr;
  NodeId node = 0;
  std::uint32_t first = 0, inputs = 0, outputs = 0;
};

using Layouts = absl::InlinedVector<Layout, 8>;

}  // namespace

struct Lowering::State {
  const OperatorRegistry* registry = nullptr;
  LoweringOptions options;
  bool skip_opaque = false;
  std::unique_ptr<PlannedKernels> kernels;

  // The graph at hand.
  const Graph* graph = nullptr;
  std::vector<Tensor> tensors;
  std::vector<Step> steps;
  std::vector<TensorIndex> operands;  ///< Of all steps.
  std::vector<TensorIndex> outputs;
  std::vector<std::uint32_t> first_slot;    ///< Per node.
  std::vector<Forms> forms;                 ///< Per output of each node.
  std::vector<const Behaviour*> behaviour;  ///< Per node; null for inputs, weights, opaque nodes.
  std::vector<char> lowered;                ///< Per node.
  const LayoutAssignment* assignment = nullptr;

  [[nodiscard]] Forms& slot(Value value) { return forms[first_slot[value.node] + value.port]; }

  TensorIndex add_tensor(const Tensor& tensor) {
    tensors.push_back(tensor);
    return static_cast<TensorIndex>(tensors.size() - 1);
  }

  void add_step(const std::shared_ptr<const PlannedKernel>& kernel, NodeId node, std::span<const TensorIndex> inputs,
                std::span<const TensorIndex> made) {
    steps.push_back({&kernel, node, static_cast<std::uint32_t>(operands.size()),
                     static_cast<std::uint32_t>(inputs.size()), static_cast<std::uint32_t>(made.size())});
    operands.insert(operands.end(), inputs.begin(), inputs.end());
    operands.insert(operands.end(), made.begin(), made.end());
  }

  [[nodiscard]] std::span<const TensorIndex> inputs_of(const Step& step) const {
    return {operands.data() + step.first, step.inputs};
  }
  [[nodiscard]] std::span<const TensorIndex> outputs_of(const Step& step) const {
    return {operands.data() + step.first + step.inputs, step.outputs};
  }

  /// Of a tensor as it is stored.
  [[nodiscard]] std::int64_t bytes_of(const Tensor& tensor) const {
    return stored_bytes(*tensor.type, options.float_storage);
  }

  /// Notes the tensor that a value has come to be in.
  void set_native(Value value, Layout layout, TensorIndex tensor) {
    Forms& form = slot(value);
    form.native = canonical(graph->type(value).shape, layout);
    form.tensors[static_cast<std::size_t>(form.native)] = tensor;
  }

  /// The layout in which a value exists now, row_major if it can be had in any (weights, coinciding layouts).
  [[nodiscard]] bool is_channels_last(Value value) {
    const Node& node = graph->node(value.node);
    if (node.weight_only || !can_be_channels_last(node.outputs[value.port])) return false;
    const Forms& form = slot(value);
    return form.in(Layout::channels_last) != no_tensor && form.in(Layout::row_major) == no_tensor;
  }

  /// The tensor that holds `value` in `layout`, converted if need be.
  Expected<TensorIndex> tensor_of(Value value, Layout layout) {
    const Node& node = graph->node(value.node);
    const TensorType& type = node.outputs[value.port];
    if (!type.known) return bad_input("the shape of a tensor of " + place(*graph, value.node) + " is not known");
    if (lowered[value.node] == 0 && !node.weight_only) TASO_RETURN_IF_ERROR(lower_node(value.node));
    const Layout wanted = fits(layout, type.shape) ? canonical(type.shape, layout) : Layout::row_major;
    if (const TensorIndex there = slot(value).in(wanted); there != no_tensor) return there;
    TensorIndex tensor = no_tensor;
    if (node.weight_only) {
      tensor = add_tensor({LoweredTensor::Source::weight, &type, layout, value, 0, 0, 0});
    } else {
      const Layout native = slot(value).native;
      const TensorIndex source = slot(value).in(native);
      TASO_CHECK(source != no_tensor, "a value is used before it is lowered");
      const auto step = static_cast<std::uint32_t>(steps.size());
      tensor = add_tensor({LoweredTensor::Source::kernel, &type, wanted, value, 0, 0, step});
      add_step(kernels->reorder(type, native, wanted), value.node, {&source, 1}, {&tensor, 1});
    }
    slot(value).tensors[static_cast<std::size_t>(wanted)] = tensor;
    return tensor;
  }

  /// A view of `value` (in `layout`) starting `offset` bytes in, by the graph's types; it stands for `target` in
  /// `target_layout`.
  Status add_view(Value value, Layout layout, Value target, Layout target_layout, std::int64_t offset) {
    TASO_ASSIGN(const TensorIndex source, tensor_of(value, layout));
    const TensorType& type = graph->type(target);
    if (type.element == ElementType::f32)
      offset =
          offset / static_cast<std::int64_t>(sizeof(float)) * static_cast<std::int64_t>(size_of(options.float_storage));
    set_native(target, target_layout,
               add_tensor({LoweredTensor::Source::view, &type, target_layout, target, source, offset, 0}));
    return {};
  }

  /// The value that an element-wise consumer reads in place of a broadcast.
  [[nodiscard]] Value unbroadcast(Value value) const {
    for (;;) {
      const Node& node = graph->node(value.node);
      if (!node.is_op("broadcast") || node.inputs.size() != 1) return value;
      value = node.inputs[0];
    }
  }

  [[nodiscard]] Layout choose_layout(const Node& node, const Behaviour& traits) {
    if (!options.channels_last) return Layout::row_major;
    switch (traits.preference) {
      case LayoutPreference::row:
      case LayoutPreference::product:
        return Layout::row_major;
      case LayoutPreference::spatial:
        return !node.outputs.empty() && can_be_channels_last(node.outputs[0]) ? Layout::channels_last
                                                                              : Layout::row_major;
      case LayoutPreference::channel:
        return !node.inputs.empty() && is_channels_last(node.inputs[0]) ? Layout::channels_last : Layout::row_major;
      case LayoutPreference::follower:
        for (const TensorType& type : node.outputs)
          if (!can_be_channels_last(type)) return Layout::row_major;
        for (Value input : node.inputs) {
          if (traits.folds_broadcast) input = unbroadcast(input);
          if (is_channels_last(input)) return Layout::channels_last;
        }
        return Layout::row_major;
    }
    return Layout::row_major;
  }

  /// Lowers the node as a view if it can be one.
  Expected<bool> lower_as_view(NodeId id, const Node& node, const Behaviour& traits, Layout layout) {
    switch (traits.view) {
      case ViewKind::none:
        return false;
      case ViewKind::reshape:
        if (node.inputs.size() != 1) return false;
        if (graph->type(node.inputs[0]) == node.outputs[0] && is_channels_last(node.inputs[0])) {
          TASO_RETURN_IF_ERROR(add_view(node.inputs[0], Layout::channels_last, {id, 0}, Layout::channels_last, 0));
        } else {
          TASO_RETURN_IF_ERROR(add_view(node.inputs[0], Layout::row_major, {id, 0}, Layout::row_major, 0));
        }
        return true;
      case ViewKind::broadcast:
        // A broadcast that repeats nothing only adds leading axes of extent 1.
        if (graph->type(node.inputs[0]).elements() != node.outputs[0].elements()) return false;
        TASO_RETURN_IF_ERROR(add_view(node.inputs[0], Layout::row_major, {id, 0}, Layout::row_major, 0));
        return true;
      case ViewKind::transpose:
        return transpose_as_view(id, node);
      case ViewKind::split:
        return ranges_of_input(id, node, layout, split_offsets(node, graph->type(node.inputs[0]), layout));
      case ViewKind::slice:
        return ranges_of_input(id, node, layout, slice_offsets(node, graph->type(node.inputs[0]), layout));
      case ViewKind::concat:
        return concat_as_view(id, node, layout);
    }
    return false;
  }

  /// The outputs as ranges of bytes of the input, if they are.
  Expected<bool> ranges_of_input(NodeId id, const Node& node, Layout layout,
                                 const std::optional<std::vector<std::int64_t>>& offsets) {
    if (!offsets) return false;
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port)
      TASO_RETURN_IF_ERROR(add_view(node.inputs[0], layout, {id, port}, layout, (*offsets)[port]));
    return true;
  }

  /// A transpose is a view if the input's bytes, read with moved axes, are one of the output's layouts.
  Expected<bool> transpose_as_view(NodeId id, const Node& node) {
    const TensorType& type = graph->type(node.inputs[0]);
    const Layout from = is_channels_last(node.inputs[0]) ? Layout::channels_last : Layout::row_major;
    for (const Layout to : {Layout::row_major, Layout::channels_last}) {
      if (to == Layout::channels_last && (!options.channels_last || !can_be_channels_last(node.outputs[0]))) continue;
      if (!transpose_moves_nothing(node, type, from, to)) continue;
      TASO_RETURN_IF_ERROR(add_view(node.inputs[0], from, {id, 0}, to, 0));
      return true;
    }
    return false;
  }

  /// A concatenation is a view if its operands are whole outputs of kernels, which then write into the result.
  Expected<bool> concat_as_view(NodeId id, const Node& node, Layout layout) {
    const TensorType& type = node.outputs[0];
    const std::size_t axis = axis_of(node.attributes.integer("axis"), type.shape.size());
    if (!options.concat_in_place || !is_outermost(type.shape, layout, axis)) return false;
    for (const Value& input : node.inputs)
      if (graph->node(input.node).weight_only) return false;
    std::vector<TensorIndex> pieces;
    for (const Value& input : node.inputs) {
      TASO_ASSIGN(TensorIndex piece, tensor_of(input, layout));
      while (tensors[piece].source == LoweredTensor::Source::view &&
             bytes_of(tensors[tensors[piece].index]) == bytes_of(tensors[piece]))
        piece = tensors[piece].index;
      if (tensors[piece].source != LoweredTensor::Source::kernel) return false;
      if (std::find(pieces.begin(), pieces.end(), piece) != pieces.end()) return false;
      pieces.push_back(piece);
    }
    const TensorIndex whole = add_tensor({LoweredTensor::Source::pieces, &type, layout, {id, 0}, 0, 0, 0});
    set_native({id, 0}, layout, whole);
    std::int64_t offset = 0;
    for (const TensorIndex piece : pieces) {
      Tensor& tensor = tensors[piece];
      tensor.source = LoweredTensor::Source::piece;
      tensor.index = whole;
      tensor.offset = offset;
      offset += bytes_of(tensor);
    }
    return true;
  }

  Status lower_node(NodeId id) {
    const Node& node = graph->node(id);
    lowered[id] = 1;
    const Behaviour& traits = *behaviour[id];
    for (const TensorType& type : node.outputs)
      if (!type.known) return bad_input("the shape of an output of " + place(*graph, id) + " is not known");
    for (const Value& input : node.inputs)
      if (lowered[input.node] == 0 && !graph->node(input.node).weight_only && !traits.folds_broadcast)
        TASO_RETURN_IF_ERROR(lower_node(input.node));
    if (assignment != nullptr && id < assignment->size() && (*assignment)[id])
      return lower_as(id, node, traits, *(*assignment)[id]);
    const Layout layout = choose_layout(node, traits);
    TASO_ASSIGN(const bool viewed, lower_as_view(id, node, traits, layout));
    if (viewed) return {};

    Layouts inputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool plain = !traits.is_image(i) && (traits.preference == LayoutPreference::spatial ||
                                                 traits.preference == LayoutPreference::channel);
      const TensorType& type = graph->type(operand_of(node, traits, i));
      inputs.push_back(plain || !can_be_channels_last(type) ? Layout::row_major : layout);
    }
    Layouts made;
    for (const TensorType& type : node.outputs) made.push_back(type.shape.size() == 4 ? layout : Layout::row_major);
    return add_kernel(id, node, traits, inputs, made);
  }

  /// The value that a node's kernel reads as its input `i`.
  [[nodiscard]] Value operand_of(const Node& node, const Behaviour& traits, std::size_t i) const {
    return traits.folds_broadcast ? unbroadcast(node.inputs[i]) : node.inputs[i];
  }

  /// Adds the step that computes a node from inputs in the layouts given.
  Status add_kernel(NodeId id, const Node& node, const Behaviour& traits, std::span<const Layout> inputs,
                    std::span<const Layout> made) {
    absl::InlinedVector<TensorIndex, 8> read, written;
    absl::InlinedVector<OperandView, 8> views;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Value value = operand_of(node, traits, i);
      TASO_ASSIGN(const TensorIndex tensor, tensor_of(value, inputs[i]));
      read.push_back(tensor);
      views.push_back({&graph->type(value), inputs[i], graph->node(value.node).weight_only});
    }
    const auto number = static_cast<std::uint32_t>(steps.size());
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port) {
      const TensorIndex tensor =
          add_tensor({LoweredTensor::Source::kernel, &node.outputs[port], made[port], {id, port}, 0, 0, number});
      set_native({id, port}, made[port], tensor);
      written.push_back(tensor);
    }
    add_step(kernels->of_node(node, views, made), id, read, written);
    return {};
  }

  /// Lowers a node as an assignment says.
  Status lower_as(NodeId id, const Node& node, const Behaviour& traits, const Configuration& configuration) {
    TASO_CHECK(configuration.inputs.size() == node.inputs.size() && configuration.outputs.size() == node.outputs.size(),
               "an assignment of layouts for another graph");
    switch (configuration.kind) {
      case Configuration::Kind::view:
        for (std::uint32_t port = 0; port < node.outputs.size(); ++port)
          TASO_RETURN_IF_ERROR(add_view(node.inputs[0], configuration.inputs[0], {id, port},
                                        configuration.outputs[port], configuration.offsets[port]));
        return {};
      case Configuration::Kind::in_place: {
        TASO_ASSIGN(const bool done, concat_as_view(id, node, configuration.outputs[0]));
        if (done) return {};
        break;  // an operand is not as the assignment assumed: copied
      }
      case Configuration::Kind::kernel:
        break;
    }
    return add_kernel(id, node, traits, configuration.inputs, configuration.outputs);
  }

  /// Marks what the outputs need (and, if opaque nodes are skipped, what those need).
  [[nodiscard]] std::vector<char> needed() const {
    std::vector<char> live(graph->id_bound(), 0);
    std::vector<NodeId> stack;
    const auto visit = [&](NodeId id) {
      if (live[id] != 0) return;
      live[id] = 1;
      stack.push_back(id);
    };
    for (const Value& output : graph->outputs()) visit(output.node);
    if (skip_opaque)
      for (NodeId id = 0; id < graph->id_bound(); ++id)
        if (graph->contains(id) && graph->node(id).kind == NodeKind::opaque) visit(id);
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      const Node& node = graph->node(id);
      if (node.weight_only) continue;
      for (const Value& input : node.inputs) visit(input.node);
    }
    return live;
  }

  /// Makes tensors, steps and outputs.
  Status run(const Graph& which, const LayoutAssignment* chosen) {
    graph = &which;
    assignment = chosen;
    tensors.clear();
    steps.clear();
    operands.clear();
    outputs.clear();
    const NodeId bound = which.id_bound();
    first_slot.assign(bound, 0);
    behaviour.assign(bound, nullptr);
    lowered.assign(bound, 0);
    std::uint32_t slots = 0;
    for (NodeId id = 0; id < bound; ++id) {
      if (!which.contains(id)) continue;
      const Node& node = which.node(id);
      first_slot[id] = slots;
      slots += static_cast<std::uint32_t>(node.outputs.size());
      if (node.kind == NodeKind::op && !node.weight_only) behaviour[id] = &behaviour_of(node.op, *registry);
    }
    forms.assign(slots, {});
    const std::vector<char> live = needed();
    for (std::uint32_t i = 0; i < which.inputs().size(); ++i) {
      const NodeId id = which.inputs()[i];
      lowered[id] = 1;
      const TensorType& type = which.node(id).outputs[0];
      if (!type.known && live[id] != 0 && !skip_opaque)
        return bad_input("input '" + which.node(id).name + "' has no known shape; give one with --input-shape");
      set_native({id, 0}, Layout::row_major,
                 add_tensor({LoweredTensor::Source::input, &type, Layout::row_major, {id, 0}, i, 0, 0}));
    }
    for (const NodeId id : which.topological_order()) {
      const Node& node = which.node(id);
      if (live[id] == 0 || node.weight_only || lowered[id] != 0) continue;
      switch (node.kind) {
        case NodeKind::input:
        case NodeKind::constant:
          break;
        case NodeKind::opaque:
          TASO_RETURN_IF_ERROR(pass_opaque(id, node));
          break;
        case NodeKind::op:
          // Lowered when a consumer needs it that is not element-wise.
          if (behaviour[id]->view == ViewKind::broadcast) break;
          TASO_RETURN_IF_ERROR(lower_node(id));
          break;
      }
    }
    for (const Value& output : which.outputs()) {
      if (skip_opaque && !which.type(output).known) continue;
      TASO_ASSIGN(const TensorIndex tensor, tensor_of(output, Layout::row_major));
      outputs.push_back(tensor);
    }
    return {};
  }

  [[nodiscard]] LoweredGraph lowered_graph() const {
    LoweredGraph result;
    result.outputs = outputs;
    result.tensors.reserve(tensors.size());
    for (const Tensor& tensor : tensors)
      result.tensors.push_back({tensor.source, stored(*tensor.type, options.float_storage), tensor.layout, tensor.value,
                                tensor.index, tensor.offset, tensor.step});
    result.steps.reserve(steps.size());
    for (const Step& step : steps) {
      const std::span<const TensorIndex> inputs = inputs_of(step), made = outputs_of(step);
      result.steps.push_back({*step.kernel, step.node, {inputs.begin(), inputs.end()}, {made.begin(), made.end()}});
    }
    return result;
  }

  Status pass_opaque(NodeId id, const Node& node) {
    if (!skip_opaque)
      return bad_input(place(*graph, id) +
                       " is not an operator that this program can run; it is carried in the file as it is");
    for (const Value& input : node.inputs) {
      if (!graph->type(input).known || graph->node(input.node).weight_only) continue;
      TASO_RETURN_IF_ERROR([&]() -> Status {
        TASO_ASSIGN([[maybe_unused]] const TensorIndex tensor, tensor_of(input, Layout::row_major));
        return {};
      }());
    }
    lowered[id] = 1;
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port)
      set_native(
          {id, port}, Layout::row_major,
          add_tensor(
              {LoweredTensor::Source::input, &node.outputs[port], Layout::row_major, {id, port}, no_tensor, 0, 0}));
    return {};
  }
};

Lowering::Lowering(const OperatorRegistry& registry, LoweringOptions options) : state_(std::make_unique<State>()) {
  state_->registry = &registry;
  state_->options = options;
  state_->kernels = std::make_unique<PlannedKernels>(options.threads, options.cached_tenths, options.float_storage);
}
Lowering::~Lowering() = default;
Lowering::Lowering(Lowering&&) noexcept = default;
Lowering& Lowering::operator=(Lowering&&) noexcept = default;

Expected<LoweredGraph> Lowering::lower(const Graph& graph, const LayoutAssignment* assignment) {
  TASO_RETURN_IF_ERROR(state_->run(graph, assignment));
  return state_->lowered_graph();
}
Expected<std::vector<LoweredLaunch>> Lowering::launches(const Graph& graph) {
  TASO_RETURN_IF_ERROR(state_->run(graph, nullptr));
  std::vector<LoweredLaunch> launches;
  launches.reserve(state_->steps.size());
  for (const Step& step : state_->steps) launches.push_back({*step.kernel, step.node});
  return launches;
}
const LoweringOptions& Lowering::options() const { return state_->options; }
void Lowering::set_skip_opaque(bool skip) { state_->skip_opaque = skip; }

Expected<LoweredGraph> lower(const Graph& graph, const OperatorRegistry& registry, const LoweringOptions& options,
                             const LayoutAssignment* assignment) {
  return Lowering(registry, options).lower(graph, assignment);
}

namespace {

/// Opaque nodes by name, for an order that graphs share.
std::map<std::string, NodeId> opaque_nodes(const Graph& graph) {
  std::map<std::string, NodeId> opaque;
  for (NodeId id = 0; id < graph.id_bound(); ++id)
    if (graph.contains(id) && graph.node(id).kind == NodeKind::opaque) opaque.emplace(graph.node(id).name, id);
  return opaque;
}

/// What the opaque nodes read, by label, in the order of their names.
std::vector<std::pair<std::string, Value>> read_by_opaque(const Graph& graph) {
  std::vector<std::pair<std::string, Value>> reads;
  for (const auto& [name, id] : opaque_nodes(graph)) {
    const Node& node = graph.node(id);
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (graph.type(node.inputs[i]).known) reads.emplace_back(name + ":in" + std::to_string(i), node.inputs[i]);
  }
  return reads;
}

bool is_computed(const Graph& graph, Value value) {
  const Node& producer = graph.node(value.node);
  return producer.kind == NodeKind::op && !producer.weight_only;
}

/// Cuts; `reads` of opaque nodes become outputs.
CutGraph cut(const Graph& graph, const std::vector<std::string>& output_names,
             const std::vector<std::pair<std::string, Value>>& reads) {
  CutGraph cut;
  cut.graph = graph;
  const std::map<std::string, NodeId> opaque = opaque_nodes(graph);
  cut.opaque_nodes = opaque.size();
  std::vector<Value> outputs;
  for (std::uint32_t i = 0; i < graph.outputs().size(); ++i) {
    const Value output = graph.outputs()[i];
    if (!graph.type(output).known) continue;
    outputs.push_back(output);
    cut.output_names.push_back(i < output_names.size() ? output_names[i] : "output" + std::to_string(i));
    cut.own_output_index.push_back(i);
  }
  cut.own_outputs = outputs.size();
  for (const auto& [label, value] : reads) {
    outputs.push_back(value);
    cut.output_names.push_back(label);
  }
  cut.graph.set_outputs(outputs);
  std::vector<std::pair<Value, Value>> replacements;
  for (const auto& [name, id] : opaque) {
    const Node& node = graph.node(id);
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port) {
      if (!node.outputs[port].known) continue;
      const NodeId input = cut.graph.add_input(name + ":out" + std::to_string(port), node.outputs[port]);
      replacements.emplace_back(Value{id, port}, Value{input, 0});
    }
  }
  if (!replacements.empty()) cut.graph.replace_uses(replacements);
  cut.graph.remove_dead(false);
  return cut;
}

}  // namespace

CutGraph cut_at_opaque(const Graph& graph, const std::vector<std::string>& output_names) {
  auto reads = read_by_opaque(graph);
  std::erase_if(reads, [&](const auto& read) { return !is_computed(graph, read.second); });
  return cut(graph, output_names, reads);
}

std::pair<CutGraph, CutGraph> cut_alike(const Graph& a, const Graph& b, const std::vector<std::string>& names_of_a,
                                        const std::vector<std::string>& names_of_b) {
  auto reads_a = read_by_opaque(a), reads_b = read_by_opaque(b);
  const std::map<std::string, Value> by_label_a(reads_a.begin(), reads_a.end()),
      by_label_b(reads_b.begin(), reads_b.end());
  const auto is_plain = [&](const std::string& label) {
    const auto x = by_label_a.find(label), y = by_label_b.find(label);
    if (x == by_label_a.end() || y == by_label_b.end() || is_computed(a, x->second) || is_computed(b, y->second))
      return false;
    const Node &left = a.node(x->second.node), &right = b.node(y->second.node);
    if (left.weight_only || right.weight_only) return left.weight_only && right.weight_only;
    return left.kind == right.kind && left.name == right.name && x->second.port == y->second.port;
  };
  for (auto* reads : {&reads_a, &reads_b})
    std::erase_if(*reads, [&](const auto& read) { return is_plain(read.first); });
  return {cut(a, names_of_a, reads_a), cut(b, names_of_b, reads_b)};
}

}  // namespace taso
