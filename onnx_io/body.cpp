#include "onnx_io/body.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "onnx_io/schema_types.h"
#include "onnx_io/writer.h"

namespace taso {
namespace {

/// Version of Scan that has no axis of batches any more.
constexpr std::int64_t scan_without_batches = 9;

const onnx::GraphProto& subgraph_at(const Document& document, SubgraphPlace place) {
  return document.node(place.node).attribute(place.attribute).g();
}

/// The type of a tensor of a document in its graph; unknown for one that has no value.
TensorType type_of(const Document& document, const ImportedModel& imported, const std::string& name) {
  const int tensor = document.find(name);
  if (tensor < 0) return {ElementType::other, {}, false};
  const auto& value = imported.values[static_cast<std::size_t>(tensor)];
  if (value && imported.graph.contains(value->node)) return imported.graph.type(*value);
  const auto& constant = imported.constants[static_cast<std::size_t>(tensor)];
  return constant ? constant->data->type() : TensorType{ElementType::other, {}, false};
}

void declare(onnx::ValueInfoProto& info, const TensorType& type) {
  if (type.element == ElementType::other) return;
  onnx::TypeProto::Tensor& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(data_type_of(type.element));
  if (!type.known) return;
  tensor.clear_shape();
  tensor.mutable_shape();
  for (const std::int64_t extent : type.shape) tensor.mutable_shape()->add_dim()->set_dim_value(extent);
}

/// Whether the file says nothing of a tensor that a type could contradict, and does not say its shape.
bool is_open(const onnx::ValueInfoProto& info, const TensorType& type) {
  if (!info.has_type()) return true;
  if (!info.type().has_tensor_type()) return false;
  const auto& tensor = info.type().tensor_type();
  if (tensor.elem_type() != 0 && element_of(tensor.elem_type()) != type.element) return false;
  if (!tensor.has_shape()) return true;
  if (tensor.shape().dim_size() != static_cast<int>(type.shape.size())) return false;
  bool open = false;
  for (int i = 0; i < tensor.shape().dim_size(); ++i) {
    const auto& extent = tensor.shape().dim(i);
    if (extent.has_dim_value() && extent.dim_value() != type.shape[static_cast<std::size_t>(i)]) return false;
    open = open || !extent.has_dim_value();
  }
  return open;
}

std::vector<std::int64_t> integers_of(const onnx::NodeProto& node, std::string_view name) {
  for (const auto& attribute : node.attribute())
    if (attribute.name() == name) return {attribute.ints().begin(), attribute.ints().end()};
  return {};
}

std::int64_t integer_of(const onnx::NodeProto& node, std::string_view name) {
  for (const auto& attribute : node.attribute())
    if (attribute.name() == name) return attribute.i();
  return 0;
}

/// Names of the outside: what stands for it in a body's document.
std::set<std::string> outside_of(const onnx::GraphProto& subgraph) {
  std::set<std::string> names;
  for (const OuterRead& read : outer_reads(subgraph)) names.insert(read.name);
  return names;
}

/// Contents of a constant of a document, if a tensor is one. Elements that repeat are spelled out, so not of large
/// ones.
std::optional<TensorContents> constant_contents(const Document& document, const ImportedModel& imported, int tensor) {
  constexpr std::int64_t most_repeated = std::int64_t{1} << 24;
  const DocumentTensor& entry = document.tensors()[static_cast<std::size_t>(tensor)];
  if (entry.source == TensorSource::initializer) {
    const TensorContents& contents = document.initializer(entry.index);
    return contents.type.element == ElementType::other ? std::nullopt : std::optional(contents);
  }
  const auto& constant = imported.constants[static_cast<std::size_t>(tensor)];
  if (!constant || !constant->data->has_data()) return std::nullopt;
  const ConstantData& data = *constant->data;
  if (!data.is_dense() && data.type().bytes() > most_repeated) return std::nullopt;
  TensorContents contents;
  contents.type = data.type();
  contents.data_type = data_type_of(data.type().element);
  if (data.is_dense()) {
    contents.bytes = {data.dense_bytes(), constant->data, false};
  } else {
    auto bytes = std::make_shared<const std::vector<std::byte>>(data.to_bytes());
    contents.bytes = {*bytes, bytes, false};
  }
  return contents;
}

}  // namespace

std::vector<SubgraphPlace> bodies_of(const Document& document) {
  static const std::set<std::string> control_flow = {"If", "Loop", "Scan"};
  std::vector<SubgraphPlace> places;
  // Older files would have to list new initializers among graph inputs, which bodies have no place for.
  if (document.model().ir_version() < 4 || document.opset() < 7) return places;
  for (const int index : document.order()) {
    const onnx::NodeProto& node = document.node(index);
    if (!is_default_domain(node.domain()) || !control_flow.contains(node.op_type())) continue;
    for (int attribute = 0; attribute < node.attribute_size(); ++attribute)
      if (node.attribute(attribute).has_g()) places.push_back({index, attribute});
  }
  return places;
}

IterationInputs inputs_of_iteration(const Document& document, const ImportedModel& imported, int index) {
  const onnx::NodeProto& node = document.node(index);
  const auto type = [&](int i) { return type_of(document, imported, node.input(i)); };
  IterationInputs inputs;
  if (node.op_type() == "Loop") {
    inputs.types = {{ElementType::i64, {}, true}, {ElementType::boolean, {}, true}};
    for (int i = 2; i < node.input_size(); ++i) inputs.types.push_back(type(i));
    inputs.first_state = 2;
    inputs.states = std::max(0, node.input_size() - 2);
    inputs.first_output = 1;
  } else if (node.op_type() == "Scan" && document.opset() >= scan_without_batches) {
    const auto scanned = static_cast<int>(integer_of(node, "num_scan_inputs"));
    const std::vector<std::int64_t> axes = integers_of(node, "scan_input_axes");
    inputs.states = std::clamp(node.input_size() - scanned, 0, node.input_size());
    for (int i = 0; i < node.input_size(); ++i) {
      inputs.types.push_back(type(i));
      TensorType& part = inputs.types.back();
      if (i < inputs.states || !part.known) continue;
      const auto place = static_cast<std::size_t>(i - inputs.states);
      const auto rank = static_cast<std::int64_t>(part.shape.size());
      const std::int64_t axis = place < axes.size() ? axes[place] : 0, from_front = axis < 0 ? axis + rank : axis;
      if (from_front < 0 || from_front >= rank)
        part = {ElementType::other, {}, false};
      else
        part.shape.erase(part.shape.begin() + from_front);
    }
  }
  return inputs;
}

Expected<Body> read_body(const Document& document, const ImportedModel& imported, const OperatorRegistry& registry,
                         const ImportOptions& options, SubgraphPlace place) {
  const onnx::GraphProto& subgraph = subgraph_at(document, place);
  onnx::GraphProto graph = subgraph;
  std::vector<std::pair<std::string, TensorContents>> constants;
  bool all_known = true;  // Of what is read from outside.
  for (const std::string& name : outside_of(subgraph)) {
    const int tensor = document.find(name);
    if (tensor < 0) return document.error(document.describe(place.node) + ": its subgraph reads what nothing defines");
    if (auto contents = constant_contents(document, imported, tensor)) {
      constants.emplace_back(name, std::move(*contents));
      continue;
    }
    onnx::ValueInfoProto& input = *graph.add_input();
    input.set_name(name);
    const TensorType type = type_of(document, imported, name);
    declare(input, type);
    all_known = all_known && type.known;
  }
  // What the file says of tensors that are made of others of any extents may be what they were when it was written.
  if (!all_known) {
    graph.clear_value_info();
    for (onnx::ValueInfoProto& output : *graph.mutable_output()) output.clear_type();
  }
  const IterationInputs given = inputs_of_iteration(document, imported, place.node);
  std::set<int> assumed;  // States whose shapes are those of what the node reads.
  for (int i = 0; i < std::min(subgraph.input_size(), static_cast<int>(given.types.size())); ++i) {
    const TensorType& type = given.types[static_cast<std::size_t>(i)];
    if (!type.known || !is_open(subgraph.input(i), type)) continue;
    declare(*graph.mutable_input(i), type);
    if (i >= given.first_state && i < given.first_state + given.states) assumed.insert(i);
  }
  ImportOptions inside = options;
  inside.input_shapes.clear();
  inside.symbol_sizes.clear();
  inside.free_extents.clear();
  inside.opened.clear();
  while (true) {
    Body body;
    TASO_ASSIGN(body.document, Document::of_subgraph(document, graph, constants));
    TASO_ASSIGN(body.imported, import_document(*body.document, registry, inside));
    const std::size_t wrong = std::erase_if(assumed, [&](int i) {
      const auto made = static_cast<std::size_t>(i - given.first_state + given.first_output);
      if (made < body.imported.outputs.size() &&
          body.imported.outputs[made].type == given.types[static_cast<std::size_t>(i)])
        return false;
      *graph.mutable_input(i) = subgraph.input(i);
      return true;
    });
    if (wrong == 0) return body;
  }
}

namespace {

/// Says the type of a tensor, its open extents as symbols that no other one has.
void declare_open(onnx::ValueInfoProto& info, const TensorType& type, const std::function<bool(std::size_t)>& open,
                  SymbolSizes& sizes) {
  // In the place of none or one, at which little is what it is elsewhere.
  constexpr std::int64_t nominal = 53;
  info.clear_type();
  declare(info, type);
  if (!type.known) return;
  auto& shape = *info.mutable_type()->mutable_tensor_type()->mutable_shape();
  for (std::size_t axis = 0; axis < type.shape.size(); ++axis) {
    if (!open(axis)) continue;
    const std::string symbol = "extent " + std::to_string(sizes.size());
    sizes[symbol] = type.shape[axis] < 2 ? nominal : type.shape[axis];
    shape.mutable_dim(static_cast<int>(axis))->set_dim_param(symbol);
  }
}

}  // namespace

// Extents that depend on elements are freed until there are no others.
Expected<Body> read_open_body(const Document& document, const ImportedModel& imported, const OperatorRegistry& registry,
                              const ImportOptions& options, SubgraphPlace place, const BodyExtents& extents) {
  constexpr int most_readings = 8;
  const onnx::GraphProto& subgraph = subgraph_at(document, place);
  onnx::GraphProto graph = subgraph;
  graph.clear_value_info();
  for (onnx::ValueInfoProto& output : *graph.mutable_output()) output.clear_type();
  ImportOptions inside = options;
  inside.input_shapes.clear();
  inside.symbol_sizes.clear();
  inside.free_extents.clear();
  inside.opened.clear();
  for (int i = 0; i < graph.input_size(); ++i) {
    const auto position = static_cast<std::size_t>(i);
    if (position >= extents.inputs.size()) {
      graph.mutable_input(i)->clear_type();
      continue;
    }
    const auto& input = extents.inputs[position];
    const auto is_open = [&input](std::size_t axis) { return input.open.contains(axis); };
    declare_open(*graph.mutable_input(i), input.type, is_open, inside.symbol_sizes);
  }
  std::vector<std::pair<std::string, TensorContents>> constants;
  for (const std::string& name : outside_of(subgraph)) {
    const int tensor = document.find(name);
    if (tensor < 0) return document.error(document.describe(place.node) + ": its subgraph reads what nothing defines");
    const bool follows = extents.follows(name);
    if (auto contents = follows ? std::nullopt : constant_contents(document, imported, tensor)) {
      constants.emplace_back(name, std::move(*contents));
      continue;
    }
    onnx::ValueInfoProto& input = *graph.add_input();
    input.set_name(name);
    TensorType type = type_of(document, imported, name);
    type.known = type.known && !(follows && extents.untyped);
    declare_open(
        input, type, [&](std::size_t axis) { return follows && (!extents.varies || extents.varies(name, axis)); },
        inside.symbol_sizes);
  }
  Body body;
  TASO_ASSIGN(body.document, Document::of_subgraph(document, graph, constants));
  TASO_ASSIGN(body.imported, import_document(*body.document, registry, inside));
  for (int times = 0; times < most_readings && !body.imported.decisions.open.empty(); ++times) {
    for (const auto& [tensor, axes] : body.imported.decisions.open)
      for (const std::size_t axis : axes) {
        inside.free_extents[tensor].emplace(axis, 0);
        inside.opened.insert(tensor);
      }
    Expected<ImportedModel> freed = import_document(*body.document, registry, inside);
    if (!freed) break;
    body.imported = std::move(*freed);
  }
  return body;
}

namespace {

/// What two branches make: their types where these are known and equal.
std::vector<std::optional<TensorType>> common_types(const ImportedModel& one, const ImportedModel& other) {
  std::vector<std::optional<TensorType>> types(std::min(one.outputs.size(), other.outputs.size()));
  for (std::size_t i = 0; i < types.size(); ++i)
    if (one.outputs[i].type.known && one.outputs[i].type == other.outputs[i].type) types[i] = one.outputs[i].type;
  return types;
}

/// What a loop makes: states that have the type that they begin with, and, of a Scan, what it collects.
std::vector<std::optional<TensorType>> types_of_iteration(const Document& document, const ImportedModel& imported,
                                                          const ImportedModel& body, int index) {
  const onnx::NodeProto& node = document.node(index);
  const IterationInputs given = inputs_of_iteration(document, imported, index);
  std::vector<std::optional<TensorType>> types(static_cast<std::size_t>(node.output_size()));
  const auto made = [&](int i) -> TensorType {
    const auto place = static_cast<std::size_t>(given.first_output + i);
    return place < body.outputs.size() ? body.outputs[place].type : TensorType{ElementType::other, {}, false};
  };
  for (int i = 0; i < std::min(given.states, node.output_size()); ++i) {
    const TensorType& first = given.types[static_cast<std::size_t>(given.first_state + i)];
    if (first.known && made(i) == first) types[static_cast<std::size_t>(i)] = first;
  }
  if (node.op_type() != "Scan" || given.states >= node.input_size()) return types;
  const std::vector<std::int64_t> in_axes = integers_of(node, "scan_input_axes"),
                                  out_axes = integers_of(node, "scan_output_axes");
  const TensorType sequence = type_of(document, imported, node.input(given.states));
  const auto rank = static_cast<std::int64_t>(sequence.shape.size());
  std::int64_t along = in_axes.empty() ? 0 : in_axes[0];
  if (along < 0) along += rank;
  if (!sequence.known || along < 0 || along >= rank) return types;
  for (int i = given.states; i < node.output_size(); ++i) {
    TensorType type = made(i);
    const auto place = static_cast<std::size_t>(i - given.states);
    const std::int64_t axis = place < out_axes.size() ? out_axes[place] : 0,
                       from_front = axis < 0 ? axis + static_cast<std::int64_t>(type.shape.size()) + 1 : axis;
    if (!type.known || from_front < 0 || from_front > static_cast<std::int64_t>(type.shape.size())) continue;
    type.shape.insert(type.shape.begin() + from_front, sequence.shape[static_cast<std::size_t>(along)]);
    types[static_cast<std::size_t>(i)] = std::move(type);
  }
  return types;
}

}  // namespace

std::vector<std::optional<TensorType>> types_by_bodies(const Document& document, const ImportedModel& imported,
                                                       const OperatorRegistry& registry, const ImportOptions& options,
                                                       int node) {
  constexpr int deepest = 1;
  if (document.subgraph_depth() > deepest) return {};
  std::vector<Body> bodies;
  for (const SubgraphPlace place : bodies_of(document)) {
    if (place.node != node) continue;
    Expected<Body> body = read_body(document, imported, registry, options, place);
    if (!body) return {};
    bodies.push_back(std::move(*body));
  }
  const std::string& op_type = document.node(node).op_type();
  if (op_type == "If") {
    if (bodies.size() != 2) return {};
    return common_types(bodies[0].imported, bodies[1].imported);
  }
  if (bodies.size() != 1) return {};
  return types_of_iteration(document, imported, bodies[0].imported, node);
}

Expected<std::shared_ptr<const Document>> with_body(const Document& document, SubgraphPlace place, const Document& body,
                                                    const ImportedModel& imported, const ExportedGraph& exported) {
  const onnx::GraphProto& before = subgraph_at(document, place);
  TASO_ASSIGN(onnx::GraphProto after, graph_message(body, imported, exported));
  const std::set<std::string> outside = outside_of(before);
  auto& initializers = *after.mutable_initializer();
  initializers.erase(std::remove_if(initializers.begin(), initializers.end(),
                                    [&](const auto& tensor) { return outside.contains(tensor.name()); }),
                     initializers.end());
  *after.mutable_input() = before.input();
  *after.mutable_output() = before.output();
  if (after.SerializeAsString() == before.SerializeAsString()) return std::shared_ptr<const Document>();
  return document.with_subgraph(place.node, place.attribute, std::move(after));
}

}  // namespace taso
