#include "onnx_io/stand_in.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "onnx_io/mapped.h"

namespace taso {
namespace {

/// A node in a graph of its own.
struct StandIn {
  Graph graph;
  std::vector<std::optional<Value>> outputs;
  std::map<NodeId, std::size_t> places;  ///< Of what stands for its inputs.
};

/// Puts graph inputs in the place of what the node reads.
void replace_values(std::vector<NodeContext::Input>& inputs, StandIn& result) {
  std::size_t place = 0;
  for (NodeContext::Input& input : inputs) {
    if (!input.present) continue;
    input.value = Value{result.graph.add_input("", input.type), 0};
    result.places[input.value->node] = place++;
  }
}

/// What the handler of a row makes of the inputs.
std::optional<StandIn> by_handler(const CarriedInputs& carried, std::vector<NodeContext::Input> inputs,
                                  const ImportRow& row, const OperatorRegistry& registry, NodeContext::Sizes sizes) {
  StandIn result;
  replace_values(inputs, result);
  NodeContext trial(*carried.document, carried.node, registry, result.graph, std::move(inputs));
  trial.set_sizes(sizes);
  row.handler(trial);
  if (trial.stopped()) return std::nullopt;
  result.outputs = trial.outputs();
  return result;
}

/// The inputs, the first `limit` of them as if their elements were f32; nothing where one of these has no type or is
/// empty.
std::optional<std::vector<NodeContext::Input>> as_f32(const CarriedInputs& carried, std::size_t limit) {
  std::vector<NodeContext::Input> inputs = carried.inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    NodeContext::Input& input = inputs[i];
    if (!input.present || i >= limit) continue;
    if (!input.type.known || volume(input.type.shape) == 0) return std::nullopt;
    if (input.type.element == ElementType::f32) continue;
    input.type.element = ElementType::f32;
    input.constant = nullptr;
  }
  return inputs;
}

std::size_t float_inputs(const ImportRow* row, std::size_t count) {
  return row == nullptr || row->float_inputs < 0 ? count : std::min(count, static_cast<std::size_t>(row->float_inputs));
}

/// What the node becomes if it is of f32: by the maps, or else by the table.
std::optional<StandIn> as_if_f32(const CarriedInputs& carried, const OperatorRegistry& registry) {
  const onnx::NodeProto& node = carried.document->node(carried.node);
  const ImportRow* const row = is_default_domain(node.domain()) ? find_import_row(node.op_type()) : nullptr;
  const bool mapped = !registry.node_maps().of_type(domain_of(node), node.op_type()).empty();
  const std::size_t count = carried.inputs.size();
  if (count == 0 || node.output_size() == 0) return std::nullopt;
  if (row != nullptr && (static_cast<int>(count) < row->min_inputs ||
                         (row->max_inputs >= 0 && static_cast<int>(count) > row->max_inputs)))
    return std::nullopt;
  auto inputs = as_f32(carried, float_inputs(row, count));
  if (!inputs) return std::nullopt;
  if (mapped) {
    StandIn result;
    std::vector<NodeContext::Input> replaced = *inputs;
    replace_values(replaced, result);
    NodeContext trial(*carried.document, carried.node, registry, result.graph, std::move(replaced));
    import_mapped(trial, registry);
    result.outputs = trial.outputs();
    if (!trial.stopped()) return result;
  }
  if (row == nullptr) return std::nullopt;
  return by_handler(carried, std::move(*inputs), *row, registry, NodeContext::Sizes::all);
}

/// Operators without arithmetic, whatever they read.
bool only_moves(const std::string& op_type) {
  static const std::set<std::string> others = {
      "Cast",    "CastLike", "Constant", "ConstantOfShape",   "GatherElements",  "GatherND",
      "NonZero", "OneHot",   "Scatter",  "ReverseSequence",   "ScatterElements", "ScatterND",
      "Shape",   "Size",     "Range",    "OptionalHasElement"};
  const ImportRow* const row = find_import_row(op_type);
  // Resizing interpolates.
  return others.contains(op_type) ||
         (row != nullptr && row->moves_elements && !op_type.starts_with("Reduce") && !has_carried_type(op_type));
}

/// Operators that multiply each element of their weights once for each step and each sample.
std::optional<double> recurrent_flops(const CarriedInputs& carried) {
  const auto& inputs = carried.inputs;
  if (inputs.size() < 3) return std::nullopt;
  for (std::size_t i = 0; i < 3; ++i)
    if (!inputs[i].present || !inputs[i].type.known || inputs[i].type.shape.size() != 3) return std::nullopt;
  const Shape& x = inputs[0].type.shape;
  return 2.0 * static_cast<double>(x[0] * x[1]) *
         static_cast<double>(inputs[1].type.elements() + inputs[2].type.elements());
}

/// Each element of the input meets the kernel of each output channel of its group.
std::optional<double> transposed_convolution_flops(const CarriedInputs& carried) {
  const auto& inputs = carried.inputs;
  if (inputs.size() < 2 || !inputs[0].type.known || !inputs[1].type.known || inputs[1].type.shape.empty() ||
      inputs[1].type.shape[0] == 0)
    return std::nullopt;
  return 2.0 * static_cast<double>(inputs[0].type.elements()) *
         static_cast<double>(inputs[1].type.elements() / inputs[1].type.shape[0]);
}

}  // namespace

double total_flops(const Graph& graph, const OperatorRegistry& registry) {
  double flops = 0;
  for (NodeId id = 0; id < graph.id_bound(); ++id) {
    if (!graph.contains(id)) continue;
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::op || node.weight_only) continue;
    std::vector<TensorType> types;
    for (const Value& input : node.inputs) types.push_back(graph.type(input));
    if (const auto work = registry.work(node.op, node.attributes, types)) flops += work->flops;
  }
  return flops;
}

bool only_renames(const onnx::NodeProto& node) {
  const std::string& op_type = node.op_type();
  // All of one part is the whole.
  return op_type == "Cast" || op_type == "Dropout" || op_type == "Identity" ||
         (op_type == "Split" && node.output_size() == 1) || (op_type == "Concat" && node.input_size() == 1);
}

CarriedTypes types_of_moved(const CarriedInputs& carried, const ImportRow& row, const OperatorRegistry& registry,
                            NodeContext::Sizes sizes) {
  if (carried.inputs.empty() || !carried.inputs[0].present || !carried.inputs[0].type.known) return {};
  auto inputs = as_f32(carried, float_inputs(&row, carried.inputs.size()));
  if (!inputs) return {};
  const std::optional<StandIn> stand_in = by_handler(carried, std::move(*inputs), row, registry, sizes);
  if (!stand_in) return {};
  CarriedTypes types;
  for (const auto& output : stand_in->outputs) {
    types.types.emplace_back();
    if (output)
      types.types.back() = TensorType{carried.inputs[0].type.element, stand_in->graph.type(*output).shape, true};
  }
  types.shape = shape_of_one_operator(stand_in->graph, stand_in->outputs, stand_in->places);
  if (types.shape.rule == CarriedShape::Rule::same && !only_renames(carried.document->node(carried.node)))
    types.shape = {};
  return types;
}

std::optional<double> estimated_flops(const CarriedInputs& carried, const OperatorRegistry& registry,
                                      const std::vector<TensorType>& outputs) {
  const onnx::NodeProto& node = carried.document->node(carried.node);
  const bool standard = is_default_domain(node.domain());
  if (standard && only_moves(node.op_type())) return 0.0;
  if (const auto stand_in = as_if_f32(carried, registry)) return total_flops(stand_in->graph, registry);
  if (!standard) return std::nullopt;
  if (node.op_type() == "ConvTranspose") return transposed_convolution_flops(carried);
  static const std::set<std::string> recurrent = {"GRU", "LSTM", "RNN"};
  if (recurrent.contains(node.op_type())) return recurrent_flops(carried);
  if (!has_carried_type(node.op_type()) || outputs.empty() || !outputs[0].known) return std::nullopt;
  return static_cast<double>(outputs[0].elements());
}

}  // namespace taso
