#include "onnx_io/export.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <unordered_map>

#include "onnx_io/attribute_proto.h"
#include "onnx_io/fold.h"
#include "onnx_io/functions.h"
#include "onnx_io/in_quotes.h"
#include "onnx_io/joined_moves.h"
#include "onnx_io/mapped.h"
#include "onnx_io/schema_types.h"
#include "onnx_io/specified.h"
#include "support/reversed.h"

namespace taso {
namespace {

/// Repeated elements of so many bytes are written as they are.
constexpr std::int64_t small_constant = 1024;

/// How the outputs of one graph node are made.
struct Cover {
  /// `part`: what the original node of another root of its expansion makes as well.
  enum class Kind : std::uint8_t { none, given, constant, folded, original, part, lowered };
  Kind kind = Kind::none;
  int document_node = -1;                    ///< Kind original.
  std::vector<std::optional<Value>> inputs;  ///< Kind original: the values now read, by input position.
  std::vector<NewNode> nodes;                ///< Kind lowered.
};

class Exporter {
 public:
  Exporter(const Document& document, const ImportedModel& imported, const Graph& graph,
           const OperatorRegistry& registry, const ExportMode& mode)
      : document_(document), imported_(imported), graph_(graph), registry_(registry), mode_(mode) {}

  /// Whether every node that is to be written has a form.
  bool can_cover() {
    index_constants();
    return choose_covers().ok();
  }

  /// Whether a node by itself has a form, should it have to be written.
  bool can_lower(NodeId id) {
    Cover cover;
    needed_.resize(graph_.id_bound());  // lower() writes it
    return lower(id, cover).ok();
  }

  Expected<ExportedGraph> run() {
    index_constants();
    TASO_RETURN_IF_ERROR(choose_covers());
    define_functions();
    if (mode_.fold) TASO_RETURN_IF_ERROR(fold());
    TASO_RETURN_IF_ERROR(give_required_names());
    give_other_names();
    TASO_RETURN_IF_ERROR(write_nodes());
    collect_constants();
    TASO_RETURN_IF_ERROR(sort_nodes());
    return std::move(result_);
  }

 private:
  // ------------------------------------------------------------------------------------------ constants

  /// Where the document has a constant of given contents, initializers before Constant nodes.
  void index_constants() {
    auto rank = [&](int tensor) {
      const DocumentTensor& entry = document_.tensors()[static_cast<std::size_t>(tensor)];
      return std::make_pair(entry.source == TensorSource::initializer ? 0 : 1, tensor);
    };
    for (std::size_t t = 0; t < imported_.constants.size(); ++t) {
      const auto& constant = imported_.constants[t];
      if (!constant || !constant->original || is_small_fill(static_cast<int>(t))) continue;
      const int tensor = static_cast<int>(t);
      const auto [place, added] = constant_tensor_.emplace(constant->data->identity(), tensor);
      if (!added && rank(tensor) < rank(place->second)) place->second = tensor;
    }
  }

  /// A ConstantOfShape that nothing else than what read it needs to read: bytes are less than a node.
  [[nodiscard]] bool is_small_fill(int tensor) const {
    const DocumentTensor& entry = document_.tensors()[static_cast<std::size_t>(tensor)];
    return entry.source == TensorSource::node && document_.node(entry.index).op_type() == "ConstantOfShape" &&
           constant_at(tensor)->data->type().bytes() <= small_constant;
  }

  [[nodiscard]] const ConstantTensor* constant_at(int tensor) const {
    if (tensor < 0) return nullptr;
    const auto& constant = imported_.constants[static_cast<std::size_t>(tensor)];
    return constant ? &*constant : nullptr;
  }

  /// True if a document tensor is a computed constant, such as the end of a Shape chain, as opposed to another name.
  [[nodiscard]] bool is_computed(int tensor) const {
    const DocumentTensor& entry = document_.tensors()[static_cast<std::size_t>(tensor)];
    return entry.source == TensorSource::node &&
           imported_.nodes[static_cast<std::size_t>(entry.index)].kind == NodeImport::Kind::constant;
  }

  /// A name under which a constant can be read, and the promise to write it. `wish` is the document's tensor that the
  /// reader used to read, or -1.
  std::string constant_name(const std::shared_ptr<const ConstantData>& data, int wish) {
    const ConstantTensor* wished = constant_at(wish);
    if (wished != nullptr && wished->data->identity() == data->identity()) {
      const std::string& name = document_.tensors()[static_cast<std::size_t>(wish)].name;
      if (wished->original) return keep(wish);
      if (is_computed(wish) && !constant_tensor_.contains(data->identity())) return add_constant(name, data);
    }
    const auto place = constant_tensor_.find(data->identity());
    if (place != constant_tensor_.end()) return keep(place->second);
    const auto known = new_constant_name_.find(data->identity());
    if (known != new_constant_name_.end()) return known->second;
    const std::string name = fresh_name("taso_constant");
    new_constant_name_.emplace(data->identity(), name);
    return add_constant(name, data);
  }

  /// Keeps an original constant of the document.
  std::string keep(int tensor) {
    kept_.insert(tensor);
    return document_.tensors()[static_cast<std::size_t>(tensor)].name;
  }

  std::string add_constant(const std::string& name, std::shared_ptr<const ConstantData> data) {
    new_constants_.emplace(name, std::move(data));
    taken_.insert(name);
    return name;
  }

  // --------------------------------------------------------------------------------------------- covers

  [[nodiscard]] bool is_varying(NodeId id) const { return !mode_.varying.empty() && mode_.varying[id]; }
  [[nodiscard]] bool is_needed(NodeId id) const { return needed_[id]; }
  void need(Value value) { needed_[value.node] = true; }

  Status choose_covers() {
    covers_.resize(graph_.id_bound());
    needed_.assign(graph_.id_bound(), false);
    const std::vector<NodeId> order = graph_.topological_order();
    for (const Value& output : graph_.outputs()) need(output);
    for (const NodeId id : reversed(order)) {
      const Node& node = graph_.node(id);
      Cover& cover = covers_[id];
      if (node.kind == NodeKind::opaque) {
        TASO_RETURN_IF_ERROR(cover_opaque(id, cover));
        continue;
      }
      if (!is_needed(id) || cover.kind == Cover::Kind::part) continue;
      if (node.kind == NodeKind::input) {
        cover.kind = Cover::Kind::given;
      } else if (node.kind == NodeKind::constant) {
        cover.kind = Cover::Kind::constant;
      } else if (is_foreign(node)) {
        cover_foreign(id, cover);
      } else if (node.weight_only && !is_varying(id) && is_worth_folding(id)) {
        cover.kind = Cover::Kind::folded;
      } else if (!registry_.defines(node.op)) {
        // A node of a graph for all sizes that no step touches.
        if (!cover_original(id, cover))
          return internal_error("what node " + std::to_string(id) + " (" + node.op + ") reads is another");
      } else if (!mode_.verbatim || !cover_original(id, cover)) {
        Status lowered = lower(id, cover);
        if (!lowered && !node.weight_only) return lowered;
        if (!lowered) cover.kind = Cover::Kind::folded;  // large, but there is no other way
      }
    }
    return {};
  }

  Status cover_opaque(NodeId id, Cover& cover) {
    const Node& node = graph_.node(id);
    if (node.name.starts_with("tensor:")) {
      cover.kind = Cover::Kind::given;
      return {};
    }
    if (node.origin < 0 || node.origin >= document_.graph().node_size() ||
        imported_.nodes[static_cast<std::size_t>(node.origin)].kind != NodeImport::Kind::opaque)
      return internal_error("opaque node " + in_quotes(node.op) + " does not come from the model");
    const NodeImport& record = imported_.nodes[static_cast<std::size_t>(node.origin)];
    cover.kind = Cover::Kind::original;
    cover.document_node = node.origin;
    std::size_t next = 0;
    for (const auto& input : record.inputs) {
      cover.inputs.emplace_back();
      if (!input) continue;
      if (next == node.inputs.size()) return internal_error("opaque node " + in_quotes(node.op) + " has lost inputs");
      cover.inputs.back() = node.inputs[next++];
      need(*cover.inputs.back());
    }
    used_originals_.insert(node.origin);
    return {};
  }

  /// An operator by its name in ONNX, which comes from no node of the document.
  [[nodiscard]] bool is_foreign(const Node& node) const {
    return node.kind == NodeKind::op && node.origin < 0 && node.op.find("::") != std::string::npos &&
           !registry_.defines(node.op);
  }

  void cover_foreign(NodeId id, Cover& cover) {
    const Node& node = graph_.node(id);
    const std::size_t colons = node.op.rfind("::");
    NewNode made{node.op.substr(colons + 2), {}, {}, {}, id, node.op.substr(0, colons)};
    for (const Value& input : node.inputs) {
      made.inputs.push_back({TensorRef::Kind::value, input, 0});
      need(input);
    }
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port)
      made.outputs.push_back({TensorRef::Kind::value, {id, port}, 0});
    for (const auto& [name, value] : node.attributes.entries()) {
      if (const auto* integer = std::get_if<std::int64_t>(&value)) made.attributes.emplace_back(name, *integer);
      if (const auto* real = std::get_if<double>(&value)) made.attributes.emplace_back(name, *real);
      if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value))
        made.attributes.emplace_back(name, *integers);
      if (const auto* symbol = std::get_if<SymbolValue>(&value)) made.attributes.emplace_back(name, symbol->name);
    }
    cover.kind = Cover::Kind::lowered;
    cover.nodes.push_back(std::move(made));
  }

  /// Whether something that is computed when the model runs reads the elements of a constant as they are.
  bool is_stored_as_it_is(Value constant) {
    if (!stored_) {
      stored_.emplace(graph_.outputs().begin(), graph_.outputs().end());
      for (NodeId id = 0; id < graph_.id_bound(); ++id)
        if (graph_.contains(id) && !graph_.node(id).weight_only)
          stored_->insert(graph_.node(id).inputs.begin(), graph_.node(id).inputs.end());
    }
    return is_constant_value(constant) && stored_->contains(constant);
  }

  /// Folding stores the result: not worth it where an operator repeats a small weight many times, or only arranges a
  /// large one in another way that is stored as well (an embedding whose transpose makes the logits).
  [[nodiscard]] bool is_worth_folding(NodeId id) {
    constexpr std::int64_t small = 1 << 16, factor = 8;
    const Node& node = graph_.node(id);
    if (node.inputs.empty()) return true;
    std::int64_t bytes = 0, leaves = 0;
    for (const TensorType& type : node.outputs) bytes += type.bytes();
    if (bytes <= small) return true;
    if ((node.op == "transpose" || node.op == "reshape") && is_stored_as_it_is(node.inputs[0])) return false;
    std::set<NodeId> seen;
    std::vector<NodeId> stack = {id};
    while (!stack.empty()) {
      const NodeId next = stack.back();
      stack.pop_back();
      if (!seen.insert(next).second) continue;
      const Node& part = graph_.node(next);
      if (part.inputs.empty())
        for (const TensorType& type : part.outputs) leaves += type.bytes();
      for (const Value& input : part.inputs) stack.push_back(input.node);
    }
    return bytes / factor <= leaves;
  }

  /// Whether a node is a root of the expansion of a document node of several roots, and to be computed by it.
  [[nodiscard]] bool is_whole(NodeId root, std::int32_t origin) const {
    if (!graph_.contains(root)) return false;
    const Node& node = graph_.node(root);
    return node.kind == NodeKind::op && node.origin == origin && !node.weight_only && registry_.defines(node.op) &&
           covers_[root].kind == Cover::Kind::none;
  }

  /// Whether what a document node reads now is computed from one of the roots of its expansion.
  [[nodiscard]] bool depends_on(const std::map<Value, Value>& externals, const std::set<NodeId>& roots) const {
    std::vector<NodeId> stack;
    std::set<NodeId> seen;
    for (const auto& [was, is] : externals) stack.push_back(is.node);
    while (!stack.empty()) {
      const NodeId next = stack.back();
      stack.pop_back();
      if (roots.contains(next)) return true;
      if (!seen.insert(next).second) continue;
      for (const Value& input : graph_.node(next).inputs) stack.push_back(input.node);
    }
    return false;
  }

  /// What an output of an original node that covers `id` is in the graph.
  [[nodiscard]] Value made_by(NodeId id, const Value& output) const {
    const bool part = output.node < covers_.size() && covers_[output.node].kind == Cover::Kind::part;
    return {part ? output.node : id, output.port};
  }

  /// Covers a node by its original ONNX node if the whole expansion of that one is still there; with it the other roots
  /// of the expansion, if there are several: then all are still the nodes that they were.
  bool cover_original(NodeId id, Cover& cover) {
    const Node& node = graph_.node(id);
    if (node.origin < 0 || node.origin >= document_.graph().node_size() || used_originals_.contains(node.origin))
      return false;
    const NodeImport& record = imported_.nodes[static_cast<std::size_t>(node.origin)];
    if (record.kind != NodeImport::Kind::expansion) return false;
    std::map<Value, Value> externals;  // Original value read from outside the expansion -> what is read now.
    std::set<Value> is_external;
    for (const auto& input : record.inputs)
      if (input) is_external.insert(*input);
    std::set<NodeId> roots;
    for (const auto& output : record.outputs)
      if (output && !is_external.contains(*output) && imported_.graph.contains(output->node))
        roots.insert(output->node);
    if (roots.empty()) return false;
    std::set<std::pair<NodeId, NodeId>> seen;
    std::function<bool(NodeId, NodeId)> same = [&](NodeId was, NodeId is) {
      if (!seen.insert({was, is}).second) return true;
      const Node& before = imported_.graph.node(was);
      const Node& now = graph_.node(is);
      if (before.label != now.label || before.kind != now.kind || before.inputs.size() != now.inputs.size())
        return false;
      for (std::size_t i = 0; i < before.inputs.size(); ++i) {
        const Value &old_input = before.inputs[i], &new_input = now.inputs[i];
        if (is_external.contains(old_input)) {
          // Between is a reshape, say, that takes other types too, which the ONNX node does not.
          if (imported_.graph.type(old_input) != graph_.type(new_input)) return false;
          const auto [place, added] = externals.emplace(old_input, new_input);
          if (!added && place->second != new_input) return false;
        } else if (old_input.port != new_input.port || !same(old_input.node, new_input.node)) {
          return false;
        }
      }
      return true;
    };
    if (roots.size() == 1) {
      if (!same(*roots.begin(), id)) return false;
    } else if (!roots.contains(id) || !std::all_of(roots.begin(), roots.end(), [&](NodeId root) {
                 return is_whole(root, node.origin) && same(root, root);
               })) {
      return false;
    }
    for (const auto& input : record.inputs) {
      // An input that the expansion does not read, or not any more, must be the same as ever: one of the graph.
      if (!input || externals.contains(*input)) continue;
      if (!imported_.graph.contains(input->node) || imported_.graph.node(input->node).kind != NodeKind::input)
        return false;
      externals.emplace(*input, *input);
    }
    if (roots.size() > 1 && depends_on(externals, roots)) return false;
    for (const NodeId root : roots) {
      if (root == id || roots.size() == 1) continue;
      covers_[root].kind = Cover::Kind::part;
      needed_[root] = true;
    }
    cover.kind = Cover::Kind::original;
    cover.document_node = node.origin;
    for (const auto& input : record.inputs) {
      cover.inputs.emplace_back();
      if (input) {
        cover.inputs.back() = externals.at(*input);
        need(*cover.inputs.back());
      }
    }
    used_originals_.insert(node.origin);
    return true;
  }

  Status lower(NodeId id, Cover& cover) {
    const Node& node = graph_.node(id);
    const MapWriter maps(document_, registry_);
    LoweringContext context(graph_, id, document_.opset(), maps, mode_.symbolic, constants_, temporaries_);
    if (const ExportRow* row = find_export_row(node.op); row != nullptr && row->asks_for_uses)
      context.set_uses(uses_of(id));
    // As it was, else as ONNX has it, else as another domain that the model has already, else by its own name.
    using Lines = MapWriter::Lines;
    if (!maps.write(context, Lines::origin)) {
      const ExportRow* row = find_export_row(node.op);
      if (document_.opset() < 7 && (row != nullptr || !maps.why_not(node.op).empty()))
        return internal_error("operator " + node.op + " cannot be written before opset 7");
      if (!maps.write(context, Lines::onnx)) {
        if (row != nullptr)
          row->handler(context);
        else if (!maps.write(context, Lines::foreign))
          write_own(context, maps);
      }
    }
    if (context.error()) return *context.error();
    if (const ElementType element = node.outputs[0].element; element != ElementType::f32)
      for (const NewNode& made : context.nodes())
        if (is_default_domain(made.domain) && !makes_elements(made.op_type, document_.opset(), element))
          return internal_error("cannot write " + node.op + " as ONNX: " + made.op_type + " is not of " +
                                to_string(element) + " in opset " + std::to_string(document_.opset()));
    cover.kind = Cover::Kind::lowered;
    cover.nodes = context.nodes();
    for (const NodeId other : context.taken_over()) {
      covers_[other].kind = Cover::Kind::part;
      covers_[other].nodes.clear();
    }
    for (const NewNode& made : cover.nodes)
      for (const TensorRef& input : made.inputs)
        if (input.kind == TensorRef::Kind::value && input.value.node != id) need(input.value);
    return {};
  }

  /// What may read the outputs of a node, all of whose readers are covered.
  [[nodiscard]] std::vector<OutputUse> uses_of(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<OutputUse> uses(node.outputs.size());
    if (covers_.empty()) {  // of a node by itself
      for (OutputUse& use : uses) use.read = true;
      return uses;
    }
    if (consumers_.empty()) consumers_ = graph_.consumers();
    std::vector<std::vector<NodeId>> readers(uses.size());
    for (const auto& [reader, position] : consumers_[id])
      readers[graph_.node(reader).inputs[position].port].push_back(reader);
    std::vector<bool> required(uses.size(), false);
    for (const Value& output : graph_.outputs())
      if (output.node == id) required[output.port] = true;
    for (std::uint32_t port = 0; port < uses.size(); ++port) {
      uses[port].read = required[port] || !readers[port].empty();
      if (required[port] || readers[port].size() != 1) continue;
      const Node& reader = graph_.node(readers[port][0]);
      const Shape& shape = node.outputs[port].shape;
      if (reader.is_op("reshape") && covers_[readers[port][0]].kind == Cover::Kind::lowered && !shape.empty() &&
          shape[0] == 1 && reader.outputs[0].shape == Shape(shape.begin() + 1, shape.end()))
        uses[port].without_first_axis = Value{readers[port][0], 0};
    }
    return uses;
  }

  /// By the name of its definition, unless that has a form in ONNX, at another opset, say.
  void write_own(LoweringContext& context, const MapWriter& maps) {
    const std::string& op = context.node().op;
    if (document_.is_subgraph()) return context.fail("functions are not added for a subgraph");
    if (const std::string reason = maps.why_not(op); !reason.empty() && !document_.has_node(specified_domain, op))
      return context.fail(reason);
    write_specified(context, registry_);
  }

  /// Nodes that stand for definitions call functions of the model, where definitions have such a form.
  void define_functions() {
    const MapWriter maps(document_, registry_);
    FunctionWriter functions(document_, maps, registry_);
    const SampledSizes* const sizes = mode_.symbolic == nullptr ? nullptr : mode_.symbolic->sizes;
    for (const NodeId id : graph_.topological_order())
      for (NewNode& made : covers_[id].nodes)
        if (made.domain == specified_domain) made.op_type = functions.type_of(graph_, id, sizes);
    result_.functions = functions.functions();
    result_.without_function = functions.without_function();
  }

  Status fold() {
    std::vector<Value> values;
    for (NodeId id = 0; id < graph_.id_bound(); ++id) {
      if (!graph_.contains(id) || covers_[id].kind != Cover::Kind::folded) continue;
      for (std::uint32_t port = 0; port < graph_.node(id).outputs.size(); ++port)
        if (is_read(Value{id, port})) values.push_back({id, port});
    }
    TASO_ASSIGN(auto results, fold_weights(graph_, values, registry_));
    for (std::size_t i = 0; i < values.size(); ++i) folded_.emplace(values[i], std::move(results[i]));
    result_.folded = static_cast<std::int64_t>(folded_.size());
    return {};
  }

  /// A value is read by something that is written (ports of a multi-output weight may not be).
  bool is_read(Value value) {
    if (read_.empty()) {
      for (const Value& output : graph_.outputs()) read_.insert(output);
      for (const Cover& cover : covers_) {
        for (const auto& input : cover.inputs)
          if (input) read_.insert(*input);
        for (const NewNode& node : cover.nodes)
          for (const TensorRef& input : node.inputs)
            if (input.kind == TensorRef::Kind::value) read_.insert(input.value);
      }
    }
    return read_.contains(value);
  }

  // ---------------------------------------------------------------------------------------------- names

  std::string fresh_name(const std::string& base) {
    std::size_t& count = fresh_counts_[base];
    while (true) {
      std::string name = base + "_" + std::to_string(count++);
      if (!document_.all_names().contains(name) && taken_.insert(name).second) return name;
    }
  }

  [[nodiscard]] bool is_constant_value(Value value) const { return graph_.node(value.node).kind == NodeKind::constant; }

  /// Gives a value its name if it has none and nothing else has that name.
  void claim(Value value, const std::string& name) {
    if (name.empty() || is_constant_value(value) || names_.contains(value)) return;
    // A name of the document may be taken over only by a value of the same type.
    const int tensor = document_.find(name);
    if (tensor >= 0) {
      const auto& before = imported_.values[static_cast<std::size_t>(tensor)];
      if (before && imported_.graph.contains(before->node) && imported_.graph.type(*before) != graph_.type(value))
        return;
      if (constant_at(tensor) != nullptr && constant_at(tensor)->original) return;
    }
    if (taken_.insert(name).second) names_.emplace(value, name);
  }

  /// The name by which a value is read; `wish` is the name that this reader knew it by.
  std::string name_of(Value value, const std::string& wish) {
    const Node& node = graph_.node(value.node);
    if (node.kind == NodeKind::constant) return constant_name(node.constant, wish.empty() ? -1 : document_.find(wish));
    const auto place = names_.find(value);
    TASO_CHECK(place != names_.end(), "a value that is read has no name");
    return place->second;
  }

  /// Names that must hold a given value: graph inputs and outputs, tensors that subgraphs capture.
  Status give_required_names() {
    for (NodeId id : graph_.inputs()) {
      names_.emplace(Value{id, 0}, graph_.node(id).name);
      taken_.insert(graph_.node(id).name);
    }
    for (NodeId id = 0; id < graph_.id_bound(); ++id) {
      if (!graph_.contains(id)) continue;
      const Node& node = graph_.node(id);
      if (node.kind != NodeKind::opaque || !node.name.starts_with("tensor:")) continue;
      const std::string name = node.name.substr(7);
      names_.emplace(Value{id, 0}, name);
      taken_.insert(name);
      if (is_needed(id)) kept_.insert(document_.find(name));
    }
    if (graph_.outputs().size() != static_cast<std::size_t>(document_.graph().output_size()))
      return internal_error("the graph has another number of outputs than the model");
    for (int i = 0; i < document_.graph().output_size(); ++i)
      required_.emplace_back(graph_.outputs()[static_cast<std::size_t>(i)], document_.graph().output(i).name());
    for (NodeId id = 0; id < graph_.id_bound(); ++id) {
      const Cover& cover = covers_[id];
      if (cover.kind != Cover::Kind::original) continue;
      const auto& captures = document_.captures(cover.document_node);
      const auto first = static_cast<std::size_t>(document_.node(cover.document_node).input_size());
      for (std::size_t i = 0; i < captures.size(); ++i)
        if (cover.inputs[first + i]) required_.emplace_back(*cover.inputs[first + i], captures[i]);
    }
    for (const auto& [value, name] : required_) claim(value, name);
    return {};
  }

  void give_other_names() {
    std::vector<NodeId> order;
    for (NodeId id : graph_.topological_order())
      if (covers_[id].kind != Cover::Kind::none) order.push_back(id);
    for (NodeId id : order) {
      const Cover& cover = covers_[id];
      if (cover.kind != Cover::Kind::original) continue;
      const auto& outputs = imported_.nodes[static_cast<std::size_t>(cover.document_node)].outputs;
      for (std::size_t i = 0; i < outputs.size(); ++i)
        if (outputs[i] && is_output_of(cover.document_node, *outputs[i]))
          claim(made_by(id, *outputs[i]), document_.node(cover.document_node).output(static_cast<int>(i)));
    }
    for (NodeId id : order) {
      const Cover& cover = covers_[id];
      if (cover.kind != Cover::Kind::original) continue;
      const onnx::NodeProto& proto = document_.node(cover.document_node);
      for (int i = 0; i < proto.input_size(); ++i)
        if (cover.inputs[static_cast<std::size_t>(i)])
          claim(*cover.inputs[static_cast<std::size_t>(i)], proto.input(i));
    }
    for (NodeId id : order) {
      const Cover& cover = covers_[id];
      const Node& node = graph_.node(id);
      if (cover.kind != Cover::Kind::folded && cover.kind != Cover::Kind::original && cover.kind != Cover::Kind::part &&
          cover.kind != Cover::Kind::lowered)
        continue;
      const std::string base = "taso_" + (node.op.find("::") == std::string::npos ? node.op : std::string("node"));
      for (std::uint32_t port = 0; port < node.outputs.size(); ++port) {
        const Value value{id, port};
        if (cover.kind == Cover::Kind::folded && !is_read(value)) continue;
        if (!names_.contains(value)) names_.emplace(value, fresh_name(base));
      }
    }
  }

  /// The value is made by the node (rather than passed through it).
  [[nodiscard]] bool is_output_of(int document_node, Value value) const {
    for (const auto& input : imported_.nodes[static_cast<std::size_t>(document_node)].inputs)
      if (input == value) return false;
    return true;
  }

  // ---------------------------------------------------------------------------------------------- nodes

  /// `key`: its place in the file; `document_node`: the one that it is, with its subgraphs, or -1.
  void push(onnx::NodeProto proto, int original, int key, int document_node) {
    if (document_node < 0 && proto.output_size() > 0) result_.made.insert(proto.output(0));
    result_.nodes.push_back(std::move(proto));
    result_.originals.push_back(original);
    result_.verbatim_nodes += original >= 0 ? 1 : 0;
    keys_.push_back(key);
    captures_of_.push_back(document_node);
  }

  Status write_nodes() {
    for (const auto& [value, data] : folded_) write_folded(value, data);
    for (NodeId id : graph_.topological_order()) {
      const Cover& cover = covers_[id];
      if (cover.kind == Cover::Kind::original) write_original(id, cover);
      if (cover.kind == Cover::Kind::lowered) write_lowered(id, cover);
    }
    for (const auto& [value, name] : required_) {
      const std::string has = name_of(value, name);
      if (has == name || !aliased_.insert(name).second) continue;
      if (document_.find(name) >= 0 && taken_.contains(name))
        return internal_error("the name " + in_quotes(name) + " is needed for two values");
      write_alias(has, name);
    }
    // Writing a constant may keep another one, which its shape is read from.
    for (std::set<int> written; written.size() != kept_.size();) {
      const std::set<int> kept = kept_;
      for (int tensor : kept)
        if (written.insert(tensor).second) write_kept(tensor);
    }
    return {};
  }

  /// The place of a node in the file: that of the document's node, which it comes from, or that of its id.
  [[nodiscard]] int place_of(NodeId id, int document_node) const {
    return mode_.in_order_of_ids ? document_.graph().node_size() + 1 + static_cast<int>(id) : document_node;
  }

  /// Annotates a node with the shardings of tensors that it reads or makes under these names; of a node of the
  /// document, with those of all nodes that it became. Whether there are any.
  bool annotate(onnx::NodeProto& proto, NodeId id, const std::map<Value, std::string>& inputs,
                const std::map<Value, std::string>& outputs, int document_node) {
    if (mode_.annotations == nullptr) return false;
    std::vector<NamedSharding> tensors;
    const auto add = [&](const std::vector<std::pair<Value, TensorSharding>>& shardings,
                         const std::map<Value, std::string>& names) {
      for (const auto& [value, sharding] : shardings) {
        const auto name = names.find(value);
        if (name == names.end()) continue;
        const auto known = [&](const NamedSharding& tensor) { return tensor.first == name->second; };
        if (std::none_of(tensors.begin(), tensors.end(), known)) tensors.emplace_back(name->second, sharding);
      }
    };
    for (const auto& [node, sharding] : mode_.annotations->nodes) {
      if (node != id && (document_node < 0 || graph_.node(node).origin != document_node)) continue;
      add(sharding.reads, inputs);
      add(sharding.makes, outputs);
    }
    if (tensors.empty()) return false;
    result_.annotated_tensors += static_cast<std::int64_t>(tensors.size());
    proto.mutable_unknown_fields()->AddLengthDelimited(
        node_device_configurations_field, node_configuration_bytes(mode_.annotations->configuration, tensors));
    return true;
  }

  void write_original(NodeId id, const Cover& cover) {
    const onnx::NodeProto& original = document_.node(cover.document_node);
    const NodeImport& record = imported_.nodes[static_cast<std::size_t>(cover.document_node)];
    onnx::NodeProto proto = original;
    std::map<Value, std::string> inputs, outputs;
    bool same = true;
    for (int i = 0; i < original.input_size(); ++i) {
      if (original.input(i).empty()) continue;
      const auto& value = cover.inputs[static_cast<std::size_t>(i)];
      const int tensor = document_.find(original.input(i));
      const std::string name =
          value ? name_of(*value, original.input(i)) : constant_name(constant_at(tensor)->data, tensor);
      if (value) inputs.emplace(*value, name);
      if (name == original.input(i)) continue;
      proto.set_input(i, name);
      same = false;
    }
    for (int i = 0; i < original.output_size(); ++i) {
      const auto& output = record.outputs[static_cast<std::size_t>(i)];
      if (!output || original.output(i).empty() || !is_output_of(cover.document_node, *output)) continue;
      const Value made = made_by(id, *output);
      const auto named = names_.find(made);
      if (named == names_.end()) continue;  // Nothing reads it, and it is not in the graph: its name is free.
      const std::string& name = named->second;
      outputs.emplace(made, name);
      if (name == original.output(i)) continue;
      proto.set_output(i, name);
      same = false;
    }
    if (annotate(proto, id, inputs, outputs, cover.document_node)) same = false;
    push(std::move(proto), same ? cover.document_node : -1, place_of(id, cover.document_node), cover.document_node);
  }

  void write_lowered(NodeId id, const Cover& cover) {
    const Node& node = graph_.node(id);
    auto name = [&](const TensorRef& ref) -> std::string {
      switch (ref.kind) {
        case TensorRef::Kind::absent:
          return "";
        case TensorRef::Kind::value:
          return name_of(ref.value, "");
        case TensorRef::Kind::constant:
          return constant_name(constants_[ref.index], -1);
        case TensorRef::Kind::temporary: {
          auto& text = temporary_names_[ref.index];
          if (text.empty()) text = fresh_name("taso_" + node.op + "_part");
          return text;
        }
      }
      return "";
    };
    for (const NewNode& made : cover.nodes) {
      onnx::NodeProto proto;
      proto.set_op_type(made.op_type);
      if (!made.domain.empty()) proto.set_domain(made.domain);
      std::map<Value, std::string> inputs, outputs;
      for (const TensorRef& input : made.inputs) {
        proto.add_input(name(input));
        if (input.kind == TensorRef::Kind::value) inputs.emplace(input.value, *proto.input().rbegin());
      }
      for (const TensorRef& output : made.outputs) {
        proto.add_output(name(output));
        if (output.kind == TensorRef::Kind::value) outputs.emplace(output.value, *proto.output().rbegin());
      }
      std::vector<OnnxAttribute> attributes = made.attributes;
      std::sort(attributes.begin(), attributes.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
      for (const OnnxAttribute& attribute : attributes) append_attribute(proto, attribute);
      proto.set_name(fresh_name("taso_" + made.op_type));
      annotate(proto, id, inputs, outputs, -1);
      push(std::move(proto), -1, place_of(id, node.origin < 0 ? document_.graph().node_size() : node.origin), -1);
    }
  }

  /// A folded weight becomes an initializer, or ConstantOfShape if one element repeats.
  void write_folded(Value value, const std::shared_ptr<const ConstantData>& data) {
    const std::string& name = names_.at(value);
    if (data->is_dense() || data->type().bytes() <= small_constant || document_.opset() < 9) {
      add_constant(name, data->is_dense() ? data : ConstantData::own(data->type(), data->to_bytes()));
      return;
    }
    onnx::NodeProto proto;
    proto.set_op_type("ConstantOfShape");
    proto.set_name(fresh_name("taso_ConstantOfShape"));
    proto.add_input(constant_name(
        ConstantData::of_integers({static_cast<std::int64_t>(data->type().shape.size())}, data->type().shape), -1));
    proto.add_output(name);
    auto& attribute = *proto.add_attribute();
    attribute.set_name("value");
    attribute.set_type(onnx::AttributeProto::TENSOR);
    attribute.mutable_t()->set_data_type(data_type_of(data->type().element));
    attribute.mutable_t()->add_dims(1);
    attribute.mutable_t()->set_raw_data(data->splat_element().data(), data->splat_element().size());
    push(std::move(proto), -1, -1, -1);
  }

  /// `name` as another name of `source`: the document's own Identity if it has one.
  void write_alias(const std::string& source, const std::string& name) {
    const int tensor = document_.find(name);
    onnx::NodeProto proto;
    int key = place_of(graph_.id_bound(), document_.graph().node_size()), original = -1;
    if (tensor >= 0 && document_.tensors()[static_cast<std::size_t>(tensor)].source == TensorSource::node) {
      const int index = document_.tensors()[static_cast<std::size_t>(tensor)].index;
      if (document_.node(index).op_type() == "Identity" && is_default_domain(document_.node(index).domain())) {
        proto = document_.node(index);
        key = index;
        if (proto.input(0) == source) original = index;
        proto.set_input(0, source);
      }
    }
    if (proto.op_type().empty()) {
      proto.set_op_type("Identity");
      proto.set_name(fresh_name("taso_Identity"));
      proto.add_input(source);
      proto.add_output(name);
    }
    taken_.insert(name);
    push(std::move(proto), original, key, -1);
  }

  /// A name for the shape that a kept ConstantOfShape reads. If it was computed, of what is equal to it only what reads
  /// nothing will do: it may be equal to what it is the shape of.
  std::string shape_name(int tensor) {
    const ConstantTensor& shape = *constant_at(tensor);
    const auto place = constant_tensor_.find(shape.data->identity());
    if (shape.original || place == constant_tensor_.end()) return constant_name(shape.data, tensor);
    const DocumentTensor& equal = document_.tensors()[static_cast<std::size_t>(place->second)];
    if (equal.source != TensorSource::node || document_.node(equal.index).input_size() == 0) return keep(place->second);
    const std::string name = fresh_name("taso_constant");
    return add_constant(name, shape.data);
  }

  /// A constant of the document that is a node: Constant, ConstantOfShape.
  void write_kept(int tensor) {
    const DocumentTensor& entry = document_.tensors()[static_cast<std::size_t>(tensor)];
    if (entry.source != TensorSource::node) return;
    onnx::NodeProto proto = document_.node(entry.index);
    int original = entry.index;
    for (int i = 0; i < proto.input_size(); ++i) {
      const int input = document_.find(proto.input(i));
      const std::string name = shape_name(input);
      if (name == proto.input(i)) continue;
      proto.set_input(i, name);
      original = -1;
    }
    push(std::move(proto), original, entry.index, -1);
  }

  void collect_constants() {
    // Initializers that are no longer read go, unless nothing read them in the first place, a caller may override them
    // (they are graph inputs), or the training part may need them.
    for (std::size_t t = 0; t < document_.tensors().size(); ++t) {
      const DocumentTensor& entry = document_.tensors()[t];
      if (entry.source != TensorSource::initializer) continue;
      if (kept_.contains(static_cast<int>(t)) || !entry.used || entry.is_input ||
          document_.model().training_info_size() > 0) {
        initializer_kept_.insert(entry.index);
        taken_.insert(entry.name);
      }
    }
    for (int index : initializer_kept_)
      result_.constants.push_back({document_.graph().initializer(index).name(), index, nullptr});
    for (auto& [name, data] : new_constants_) result_.constants.push_back({name, -1, std::move(data)});
    for (const auto& [value, name] : names_) result_.types.emplace(name, graph_.type(value));
    const std::vector<Hash128> terms = weight_terms();
    for (const auto& [value, name] : names_)
      if (covers_[value.node].kind == Cover::Kind::folded)
        result_.weights.emplace(name, Hasher().add(terms[value.node]).add(std::uint64_t{value.port}).finish());
  }

  /// Per node id: a hash of the term that a weight-only node is.
  [[nodiscard]] std::vector<Hash128> weight_terms() const {
    std::vector<Hash128> terms(graph_.id_bound());
    for (const NodeId id : graph_.topological_order()) {
      const Node& node = graph_.node(id);
      if (!node.weight_only) continue;
      Hasher hasher;
      hasher.add(node.label);
      for (const Value& input : node.inputs) hasher.add(terms[input.node]).add(std::uint64_t{input.port});
      terms[id] = hasher.finish();
    }
    return terms;
  }

  /// Producers first, otherwise in the document's order.
  Status sort_nodes() {
    const std::size_t count = result_.nodes.size();
    std::unordered_map<std::string, std::size_t> producer;
    for (std::size_t i = 0; i < count; ++i)
      for (const auto& output : result_.nodes[i].output())
        if (!output.empty()) producer.emplace(output, i);
    std::vector<std::vector<std::size_t>> users(count);
    std::vector<std::size_t> pending(count, 0);
    for (std::size_t i = 0; i < count; ++i) {
      auto depend = [&](const std::string& name) {
        const auto place = producer.find(name);
        if (place == producer.end()) return;
        users[place->second].push_back(i);
        ++pending[i];
      };
      for (const auto& input : result_.nodes[i].input()) depend(input);
      if (captures_of_[i] >= 0)
        for (const auto& name : document_.captures(captures_of_[i])) depend(name);
    }
    using Entry = std::pair<int, std::size_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    for (std::size_t i = 0; i < count; ++i)
      if (pending[i] == 0) ready.push({keys_[i], i});
    std::vector<onnx::NodeProto> nodes;
    std::vector<int> originals;
    while (!ready.empty()) {
      const std::size_t next = ready.top().second;
      ready.pop();
      nodes.push_back(std::move(result_.nodes[next]));
      originals.push_back(result_.originals[next]);
      for (std::size_t user : users[next])
        if (--pending[user] == 0) ready.push({keys_[user], user});
    }
    if (nodes.size() != count) return internal_error("the graph to be written has a cycle");
    result_.nodes = std::move(nodes);
    result_.originals = std::move(originals);
    return {};
  }

  const Document& document_;
  const ImportedModel& imported_;
  const Graph& graph_;
  const OperatorRegistry& registry_;
  const ExportMode& mode_;
  ExportedGraph result_;

  std::map<Hash128, int> constant_tensor_;  // Contents -> original constant tensor of the document.
  std::set<int> kept_;                      // Original constant tensors that are read.
  std::map<std::string, std::shared_ptr<const ConstantData>> new_constants_;
  std::map<Hash128, std::string> new_constant_name_;

  std::vector<Cover> covers_;                                             // Per graph node.
  std::vector<std::vector<std::pair<NodeId, std::uint32_t>>> consumers_;  // Per graph node, once they are asked for.
  std::vector<bool> needed_;
  std::set<int> used_originals_;
  std::vector<std::shared_ptr<const ConstantData>> constants_;  // Small constants of lowered nodes.
  std::size_t temporaries_ = 0;
  std::set<Value> read_;
  std::optional<std::set<Value>> stored_;  ///< See is_stored_as_it_is.
  std::map<Value, std::shared_ptr<const ConstantData>> folded_;

  std::map<Value, std::string> names_;
  std::set<std::string> taken_;
  std::map<std::string, std::size_t> fresh_counts_;
  std::map<std::size_t, std::string> temporary_names_;
  std::vector<std::pair<Value, std::string>> required_;
  std::set<std::string> aliased_;
  std::set<int> initializer_kept_;
  std::vector<int> keys_;         // Per node to be written: place in the file.
  std::vector<int> captures_of_;  // Per node to be written: the document's node whose subgraphs it has, or -1.
};

}  // namespace

Expected<ExportedGraph> export_graph(const Document& document, const ImportedModel& imported, const Graph& graph,
                                     const OperatorRegistry& registry, const ExportMode& mode) {
  if (!mode.join_moves || !mode.verbatim || mode.in_order_of_ids || mode.annotations != nullptr)
    return Exporter(document, imported, graph, registry, mode).run();
  const Graph joined = with_joined_moves(graph, moves_to_join(document, graph));
  return Exporter(document, imported, joined, registry, mode).run();
}

bool can_export(const Document& document, const ImportedModel& imported, const Graph& graph,
                const OperatorRegistry& registry, const std::vector<NodeId>& nodes) {
  const ExportMode mode;
  Exporter single(document, imported, graph, registry, mode);
  const auto has_form = [&](NodeId id) {
    const Node& node = graph.node(id);
    return node.kind != NodeKind::op || node.weight_only || single.can_lower(id);
  };
  const bool all = std::all_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    const std::vector<Value>& inputs = graph.node(id).inputs;
    return has_form(id) &&
           std::all_of(inputs.begin(), inputs.end(), [&](const Value& input) { return has_form(input.node); });
  });
  // A node without a form may still stand where none is needed: a broadcast that its reader does itself, say.
  return all || Exporter(document, imported, graph, registry, mode).can_cover();
}

}  // namespace taso
