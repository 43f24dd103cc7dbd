#include "targets/part_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "onnx_io/builder.h"
#include "onnx_io/model.h"

namespace taso {
namespace {

/// Rates of a slow core, by which it is estimated how long a part takes.
constexpr double flops_per_second = 20e9, bytes_per_second = 5e9;
/// So long at least shall the copies of a file take together, if they are not too many or too large.
constexpr double least_seconds = 100e-6;
constexpr double most_copies = 8, most_bytes = 64e6;
/// The first opset with ConstantOfShape.
constexpr std::int64_t least_opset = 9;

/// A weight of no meaning: positive numbers of one size, the same in every process.
std::shared_ptr<const ConstantData> some_weight(const TensorType& type, std::uint64_t seed) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(type.bytes()));
  std::uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
  for (std::size_t i = 0; i + sizeof(float) <= bytes.size(); i += sizeof(float)) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const float value = 0.25F + static_cast<float>(state >> 40) * 0x1p-25F;
    std::memcpy(&bytes[i], &value, sizeof value);
  }
  return ConstantData::own(type, std::move(bytes));
}

std::string input_name(int copy, std::size_t input) { return fmt::format("x{}_{}", copy, input); }

/// The number that ONNX has for the element types that outputs of parts have.
int onnx_type(ElementType element) {
  switch (element) {
    case ElementType::f16:
      return 10;
    case ElementType::f64:
      return 11;
    case ElementType::bf16:
      return 16;
    case ElementType::i8:
      return 3;
    case ElementType::i16:
      return 5;
    case ElementType::i32:
      return 6;
    case ElementType::i64:
      return 7;
    case ElementType::u8:
      return 2;
    case ElementType::u16:
      return 4;
    case ElementType::u32:
      return 12;
    case ElementType::u64:
      return 13;
    case ElementType::boolean:
      return 9;
    default:
      return 1;
  }
}

/// A model with the inputs and outputs of all copies, in which the outputs are constants: what is rewritten.
Expected<Model> frame_of(const StandalonePart& part, int copies, std::int64_t opset, const OperatorRegistry& registry) {
  ModelBuilder builder(static_cast<int>(std::max(opset, least_opset)), "part");
  for (int copy = 0; copy < copies; ++copy) {
    for (std::size_t i = 0; i < part.roles.size(); ++i) {
      const TensorType& type = part.graph.node(part.graph.inputs()[i]).outputs[0];
      if (part.roles[i] == StandalonePart::Role::activation)
        builder.add_input(input_name(copy, i), type.shape, type.element);
    }
    for (std::size_t i = 0; i < part.graph.outputs().size(); ++i) {
      const TensorType& type = part.graph.type(part.graph.outputs()[i]);
      const std::string name = fmt::format("y{}_{}", copy, i), shape = name + "_shape", value = name + "_value";
      builder.add_initializer(shape, {static_cast<std::int64_t>(type.shape.size())}, std::span(type.shape));
      const bool is_float = type.element == ElementType::f32;
      builder.add_node("ConstantOfShape", {shape}, {is_float ? name : value});
      if (!is_float) builder.add_node("Cast", {value}, {name}, {{"to", onnx_type(type.element)}});
      builder.add_output(name, type.shape, type.element);
    }
  }
  return Model::parse(builder.serialize(), "part.onnx", registry);
}

}  // namespace

double estimated_seconds(double flops, double bytes) {
  return std::max(flops / flops_per_second, bytes / bytes_per_second);
}

int copies_of(const StandalonePart& part) {
  const double seconds = estimated_seconds(part.flops, part.bytes);
  const double wanted = std::min(least_seconds / std::max(seconds, 1e-9), most_bytes / std::max(part.bytes, 1.0));
  return static_cast<int>(std::clamp(std::ceil(wanted), 1.0, most_copies));
}

Expected<ModelRun> write_part(const StandalonePart& part, int copies, std::int64_t opset,
                              const OperatorRegistry& registry, const std::string& path) {
  TASO_ASSIGN(const Model frame, frame_of(part, copies, opset, registry));
  Graph graph = frame.graph();
  ModelRun run{path, {}, 0};
  std::map<std::string, NodeId> inputs;
  for (const NodeId id : graph.inputs()) inputs.emplace(graph.node(id).name, id);
  std::vector<Value> outputs;
  for (int copy = 0; copy < copies; ++copy) {
    std::map<NodeId, NodeId> nodes;
    for (std::size_t i = 0; i < part.roles.size(); ++i) {
      const NodeId id = part.graph.inputs()[i];
      const TensorType& type = part.graph.node(id).outputs[0];
      if (part.roles[i] == StandalonePart::Role::weight) {
        nodes[id] = graph.add_constant(some_weight(type, static_cast<std::uint64_t>(copy) * 1000 + i));
      } else {
        if (type_name(type.element).empty())
          return Error{ErrorCode::device_unavailable,
                       fmt::format("it reads {}, of which no random input is made", to_string(type.element)),
                       {}};
        nodes[id] = inputs.at(input_name(copy, i));
        run.inputs.push_back({input_name(copy, i), type, 0, part.bounds[i]});
      }
    }
    for (const NodeId id : part.graph.topological_order()) {
      if (part.graph.node(id).kind == NodeKind::input) continue;
      Node node = part.graph.node(id);
      for (Value& input : node.inputs) input.node = nodes.at(input.node);
      nodes[id] = graph.add(std::move(node));
    }
    for (const Value& output : part.graph.outputs()) outputs.push_back({nodes.at(output.node), output.port});
  }
  graph.set_outputs(std::move(outputs));
  graph.remove_dead(false);
  TASO_ASSIGN(const SaveReport report, frame.save(graph, path));
  (void)report;
  return run;
}

}  // namespace taso
