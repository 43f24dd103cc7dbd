#include "runtime/lowering.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>

#include "runtime/strides.h"

namespace taso {
namespace {

/// What an operator wants of layouts.
enum class Habit : std::uint8_t {
  row,       ///< Row-major in and out.
  spatial,   ///< Input 0 and the outputs in channels_last, all else row-major.
  follower,  ///< Rank-4 operands in one layout, whichever they come in.
  channel,   ///< Input 0 and the outputs in one layout, all else row-major.
};

/// How an operator may come out as a view.
enum class ViewKind : std::uint8_t { none, reshape, broadcast, transpose, split, slice, concat };

struct Behaviour {
  Habit habit = Habit::row;
  ViewKind view = ViewKind::none;
  bool folds_broadcast = false;
};

/// Operators that are not listed are row-major kernels.
const std::unordered_map<std::string_view, Behaviour>& behaviours() {
  static const auto table = [] {
    std::unordered_map<std::string_view, Behaviour> map;
    for (const char* op : {"conv2d", "conv2d_bias_act", "max_pool2d", "avg_pool2d_include", "avg_pool2d_exclude"})
      map[op] = {Habit::spatial, ViewKind::none, false};
    for (const char* op :
         {"neg", "abs", "sqrt", "exp", "log", "erf", "tanh", "sigmoid", "relu", "gelu", "hard_swish", "hard_sigmoid",
          "clip", "pad", "global_avg_pool", "reduce_sum", "reduce_mean", "reduce_max", "softmax"})
      map[op] = {Habit::follower, ViewKind::none, false};
    for (const char* op : {"add", "sub", "mul", "div", "pow"}) map[op] = {Habit::follower, ViewKind::none, true};
    map["smul"] = {Habit::follower, ViewKind::none, false};
    for (const char* op : {"batch_norm", "lrn"}) map[op] = {Habit::channel, ViewKind::none, false};
    map["concat"] = {Habit::follower, ViewKind::concat, false};
    map["split"] = {Habit::follower, ViewKind::split, false};
    map["slice"] = {Habit::follower, ViewKind::slice, false};
    map["reshape"] = {Habit::row, ViewKind::reshape, false};
    map["broadcast"] = {Habit::row, ViewKind::broadcast, false};
    map["transpose"] = {Habit::row, ViewKind::transpose, false};
    return map;
  }();
  return table;
}

/// A fast 128-bit mixing of words, for keys that live in this process only.
class Mixer {
 public:
  void add(std::uint64_t word) {
    high_ = (high_ ^ word) * 0x9e3779b97f4a7c15ULL;
    high_ ^= high_ >> 32;
    low_ = (low_ + word) * 0xd6e8feb86659fd93ULL;
    low_ ^= (low_ >> 29) ^ high_;
  }
  void add(const TensorType& type) {
    add((static_cast<std::uint64_t>(type.element) << 8) | type.shape.size());
    for (const std::int64_t extent : type.shape) add(static_cast<std::uint64_t>(extent));
  }
  [[nodiscard]] Hash128 finish() const { return {high_, low_}; }

 private:
  std::uint64_t high_ = 0x243f6a8885a308d3ULL, low_ = 0x13198a2e03707344ULL;
};

constexpr TensorIndex no_tensor = std::numeric_limits<TensorIndex>::max();

bool can_be_channels_last(const TensorType& type) { return type.shape.size() == 4 && type.element == ElementType::f32; }

/// True if all axes outside `axis`, in memory order, have extent 1: a range of the axis is a range of bytes.
bool is_outermost(const Shape& shape, Layout layout, std::size_t axis) {
  constexpr std::array<std::size_t, 4> channels_last_order = {0, 2, 3, 1};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t at = layout == Layout::channels_last ? channels_last_order[i] : i;
    if (at == axis) return true;
    if (shape[at] != 1) return false;
  }
  return true;
}

/// The position of an axis counted from the end.
std::size_t position(std::int64_t axis, std::size_t rank) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

std::string place(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  return "node " + std::to_string(id) + " (" + (node.op.empty() ? "input" : node.op) +
         (node.name.empty() ? "" : " '" + node.name + "'") + ")";
}

}  // namespace

struct Lowering::State {
  const OperatorRegistry* registry = nullptr;
  LoweringOptions options;
  bool skip_opaque = false;
  std::unordered_map<Hash128, std::shared_ptr<const PlannedKernel>> kernels;

  // The graph at hand.
  const Graph* graph = nullptr;
  LoweredGraph result;
  std::vector<std::uint32_t> first_slot;          ///< Per node.
  std::vector<std::array<TensorIndex, 2>> forms;  ///< Per output of each node: its tensor per layout.
  std::vector<const Behaviour*> behaviour;        ///< Per node; null for inputs, weights, opaque nodes.
  std::vector<char> lowered;                      ///< Per node.
  std::vector<Operand> operands;                  ///< Scratch.

  [[nodiscard]] std::array<TensorIndex, 2>& slot(Value value) { return forms[first_slot[value.node] + value.port]; }

  TensorIndex add_tensor(LoweredTensor tensor) {
    result.tensors.push_back(std::move(tensor));
    return static_cast<TensorIndex>(result.tensors.size() - 1);
  }

  void set_form(Value value, Layout layout, TensorIndex tensor) {
    slot(value)[static_cast<std::size_t>(layout)] = tensor;
  }

  /// The kernel of a node on `operands` (inputs) with outputs in `layout`, remembered.
  std::shared_ptr<const PlannedKernel> planned(const Node& node, Layout layout) {
    Mixer mixer;
    mixer.add(node.label.high);
    mixer.add(node.label.low);
    for (const Operand& operand : operands) {
      mixer.add(operand.type);
      mixer.add((static_cast<std::uint64_t>(operand.layout) << 1) | (operand.weight ? 1 : 0));
    }
    mixer.add(static_cast<std::uint64_t>(layout));
    auto& kernel = kernels[mixer.finish()];
    if (!kernel) {
      KernelRequest request;
      request.op = node.op;
      request.attributes = node.attributes;
      request.inputs = operands;
      for (const TensorType& type : node.outputs)
        request.outputs.push_back({type, type.shape.size() == 4 ? layout : Layout::row_major, false});
      kernel = finish(std::move(request));
    }
    return kernel;
  }

  std::shared_ptr<const PlannedKernel> reorder(const TensorType& type, Layout from, Layout to) {
    Mixer mixer;
    mixer.add(type);
    mixer.add(static_cast<std::uint64_t>(from) * 2 + static_cast<std::uint64_t>(to));
    auto& kernel = kernels[mixer.finish()];
    if (!kernel) {
      KernelRequest request;
      request.op = reorder_op;
      request.inputs = {{type, from, false}};
      request.outputs = {{type, to, false}};
      kernel = finish(std::move(request));
    }
    return kernel;
  }

  std::shared_ptr<const PlannedKernel> finish(KernelRequest request) const {
    auto kernel = std::make_shared<PlannedKernel>();
    request.threads = options.threads;
    kernel->request = std::move(request);
    kernel->key = kernel->request.key();
    kernel->key_hash = hash_text(kernel->key);
    return kernel;
  }

  /// The layout in which a value exists now, row_major if it can be had in any (weights, coinciding layouts).
  [[nodiscard]] bool is_channels_last(Value value) {
    const Node& node = graph->node(value.node);
    if (node.weight_only || !can_be_channels_last(node.outputs[value.port])) return false;
    const auto& form = slot(value);
    return form[1] != no_tensor && form[0] == no_tensor && !layouts_coincide(node.outputs[value.port].shape);
  }

  /// The tensor that holds `value` in `layout`, converted if need be.
  Expected<TensorIndex> tensor_of(Value value, Layout layout) {
    const Node& node = graph->node(value.node);
    const TensorType& type = node.outputs[value.port];
    if (!type.known) return bad_input("the shape of a tensor of " + place(*graph, value.node) + " is not known");
    if (lowered[value.node] == 0 && !node.weight_only) TASO_RETURN_IF_ERROR(lower_node(value.node));
    if (!can_be_channels_last(type)) layout = Layout::row_major;
    auto& form = slot(value);
    const auto wanted = static_cast<std::size_t>(layout);
    if (form[wanted] != no_tensor) return form[wanted];
    if (node.weight_only) {
      form[wanted] = add_tensor({LoweredTensor::Source::weight, type, layout, value, 0, 0, 0});
      return form[wanted];
    }
    const TensorIndex other = form[1 - wanted];
    TASO_CHECK(other != no_tensor, "a value is used before it is lowered");
    if (layouts_coincide(type.shape)) {
      form[wanted] = other;
      return other;
    }
    const auto step = static_cast<std::uint32_t>(result.steps.size());
    const TensorIndex tensor = add_tensor({LoweredTensor::Source::kernel, type, layout, value, 0, 0, step});
    result.steps.push_back({reorder(type, static_cast<Layout>(1 - wanted), layout), value.node, {other}, {tensor}});
    slot(value)[wanted] = tensor;
    return tensor;
  }

  /// A view of `value` (in `layout`) starting `offset` bytes in; it stands for `target` in `target_layout`.
  Status add_view(Value value, Layout layout, Value target, Layout target_layout, std::int64_t offset) {
    TASO_ASSIGN(const TensorIndex source, tensor_of(value, layout));
    const TensorType& type = graph->type(target);
    set_form(target, target_layout,
             add_tensor({LoweredTensor::Source::view, type, target_layout, target, source, offset, 0}));
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
    switch (traits.habit) {
      case Habit::row:
        return Layout::row_major;
      case Habit::spatial:
        return !node.outputs.empty() && can_be_channels_last(node.outputs[0]) ? Layout::channels_last
                                                                              : Layout::row_major;
      case Habit::channel:
        return !node.inputs.empty() && is_channels_last(node.inputs[0]) ? Layout::channels_last : Layout::row_major;
      case Habit::follower:
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
    const auto size = static_cast<std::int64_t>(size_of(node.outputs[0].element));
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
      case ViewKind::split: {
        const TensorType& type = graph->type(node.inputs[0]);
        const std::size_t axis = position(node.attributes.integer("axis"), type.shape.size());
        if (!is_outermost(type.shape, layout, axis)) return false;
        std::int64_t offset = 0;
        for (std::uint32_t port = 0; port < node.outputs.size(); ++port) {
          TASO_RETURN_IF_ERROR(add_view(node.inputs[0], layout, {id, port}, layout, offset));
          offset += node.outputs[port].elements() * size;
        }
        return true;
      }
      case ViewKind::slice: {
        const TensorType& type = graph->type(node.inputs[0]);
        const std::vector<std::int64_t> strides = strides_of(type.shape, layout);
        std::int64_t offset = 0;
        bool sliced = false;
        for (std::size_t axis = 0; axis < type.shape.size(); ++axis) {
          const std::int64_t extent = node.outputs[0].shape[axis];
          if (extent == type.shape[axis] && node.attributes.integers("starts")[axis] == 0) continue;
          if (sliced || !is_outermost(type.shape, layout, axis)) return false;
          if (node.attributes.integers("steps")[axis] != 1 && extent > 1) return false;
          sliced = true;
          offset = node.attributes.integers("starts")[axis] * strides[axis] * size;
        }
        for (std::size_t axis = 0; axis < type.shape.size(); ++axis)
          if (node.attributes.integers("steps")[axis] != 1 && node.outputs[0].shape[axis] > 1) return false;
        TASO_RETURN_IF_ERROR(add_view(node.inputs[0], layout, {id, 0}, layout, offset));
        return true;
      }
      case ViewKind::concat:
        return concat_as_view(id, node, layout);
    }
    return false;
  }

  /// A transpose is a view if the input's bytes, read with moved axes, are one of the output's layouts.
  Expected<bool> transpose_as_view(NodeId id, const Node& node) {
    const TensorType& type = graph->type(node.inputs[0]);
    const TensorType& output = node.outputs[0];
    const Layout from = is_channels_last(node.inputs[0]) ? Layout::channels_last : Layout::row_major;
    const std::vector<std::int64_t> strides = strides_of(type.shape, from);
    for (const Layout to : {Layout::row_major, Layout::channels_last}) {
      if (to == Layout::channels_last && (!options.channels_last || !can_be_channels_last(output))) continue;
      const std::vector<std::int64_t> wanted = strides_of(output.shape, to);
      bool equal = true;
      for (std::size_t axis = 0; axis < output.shape.size() && equal; ++axis)
        equal = output.shape[axis] == 1 ||
                wanted[axis] == strides[position(node.attributes.integers("perm")[axis], strides.size())];
      if (!equal) continue;
      TASO_RETURN_IF_ERROR(add_view(node.inputs[0], from, {id, 0}, to, 0));
      return true;
    }
    return false;
  }

  /// A concatenation is a view if its operands are whole outputs of kernels, which then write into the result.
  Expected<bool> concat_as_view(NodeId id, const Node& node, Layout layout) {
    const TensorType& type = node.outputs[0];
    const std::size_t axis = position(node.attributes.integer("axis"), type.shape.size());
    if (!options.concat_in_place || !is_outermost(type.shape, layout, axis)) return false;
    for (const Value& input : node.inputs)
      if (graph->node(input.node).weight_only) return false;
    std::vector<TensorIndex> pieces;
    for (const Value& input : node.inputs) {
      TASO_ASSIGN(TensorIndex piece, tensor_of(input, layout));
      while (result.tensors[piece].source == LoweredTensor::Source::view &&
             result.tensors[result.tensors[piece].index].type.bytes() == result.tensors[piece].type.bytes())
        piece = result.tensors[piece].index;
      if (result.tensors[piece].source != LoweredTensor::Source::kernel) return false;
      if (std::find(pieces.begin(), pieces.end(), piece) != pieces.end()) return false;
      pieces.push_back(piece);
    }
    const TensorIndex whole = add_tensor({LoweredTensor::Source::pieces, type, layout, {id, 0}, 0, 0, 0});
    set_form({id, 0}, layout, whole);
    std::int64_t offset = 0;
    for (const TensorIndex piece : pieces) {
      LoweredTensor& tensor = result.tensors[piece];
      tensor.source = LoweredTensor::Source::piece;
      tensor.index = whole;
      tensor.offset = offset;
      offset += tensor.type.bytes();
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
    const Layout layout = choose_layout(node, traits);
    TASO_ASSIGN(const bool viewed, lower_as_view(id, node, traits, layout));
    if (viewed) return {};

    LoweredStep step;
    step.node = id;
    step.inputs.reserve(node.inputs.size());
    std::vector<Operand> inputs;
    inputs.reserve(node.inputs.size());
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Value value = traits.folds_broadcast ? unbroadcast(node.inputs[i]) : node.inputs[i];
      const bool plain = i > 0 && (traits.habit == Habit::spatial || traits.habit == Habit::channel);
      const TensorType& type = graph->type(value);
      const Layout wanted = plain || !can_be_channels_last(type) ? Layout::row_major : layout;
      TASO_ASSIGN(const TensorIndex tensor, tensor_of(value, wanted));
      step.inputs.push_back(tensor);
      inputs.push_back({type, wanted, graph->node(value.node).weight_only});
    }
    operands = std::move(inputs);
    step.kernel = planned(node, layout);
    const auto number = static_cast<std::uint32_t>(result.steps.size());
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port) {
      const Layout form = step.kernel->request.outputs[port].layout;
      const TensorIndex tensor =
          add_tensor({LoweredTensor::Source::kernel, node.outputs[port], form, {id, port}, 0, 0, number});
      set_form({id, port}, form, tensor);
      step.outputs.push_back(tensor);
    }
    result.steps.push_back(std::move(step));
    return {};
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

  Expected<LoweredGraph> run(const Graph& which) {
    graph = &which;
    result = {};
    const NodeId bound = which.id_bound();
    first_slot.assign(bound, 0);
    behaviour.assign(bound, nullptr);
    lowered.assign(bound, 0);
    static constexpr Behaviour usual{};
    std::uint32_t slots = 0;
    for (NodeId id = 0; id < bound; ++id) {
      if (!which.contains(id)) continue;
      const Node& node = which.node(id);
      first_slot[id] = slots;
      slots += static_cast<std::uint32_t>(node.outputs.size());
      if (node.kind == NodeKind::op && !node.weight_only) {
        const auto found = behaviours().find(node.op);
        behaviour[id] = found != behaviours().end() ? &found->second : &usual;
      }
    }
    forms.assign(slots, {no_tensor, no_tensor});
    const std::vector<char> live = needed();
    for (std::uint32_t i = 0; i < which.inputs().size(); ++i) {
      const NodeId id = which.inputs()[i];
      lowered[id] = 1;
      const TensorType& type = which.node(id).outputs[0];
      if (!type.known && live[id] != 0 && !skip_opaque)
        return bad_input("input '" + which.node(id).name + "' has no known shape; give one with --input-shape");
      set_form({id, 0}, Layout::row_major,
               add_tensor({LoweredTensor::Source::input, type, Layout::row_major, {id, 0}, i, 0, 0}));
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
      result.outputs.push_back(tensor);
    }
    return std::move(result);
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
      set_form({id, port}, Layout::row_major,
               add_tensor(
                   {LoweredTensor::Source::input, node.outputs[port], Layout::row_major, {id, port}, no_tensor, 0, 0}));
    return {};
  }
};

Lowering::Lowering(const OperatorRegistry& registry, LoweringOptions options) : state_(std::make_unique<State>()) {
  state_->registry = &registry;
  state_->options = options;
}
Lowering::~Lowering() = default;
Lowering::Lowering(Lowering&&) noexcept = default;
Lowering& Lowering::operator=(Lowering&&) noexcept = default;

Expected<LoweredGraph> Lowering::lower(const Graph& graph) { return state_->run(graph); }
const LoweringOptions& Lowering::options() const { return state_->options; }
void Lowering::set_skip_opaque(bool skip) { state_->skip_opaque = skip; }

Expected<LoweredGraph> lower(const Graph& graph, const OperatorRegistry& registry, const LoweringOptions& options) {
  return Lowering(registry, options).lower(graph);
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
