#include "onnx_io/import.h"

#include <algorithm>
#include <array>
#include <span>

#include "graph/reals.h"
#include "graph/words.h"
#include "onnx_io/body.h"
#include "onnx_io/fold.h"
#include "onnx_io/functions.h"
#include "onnx_io/import_function.h"
#include "onnx_io/in_quotes.h"
#include "onnx_io/mapped.h"
#include "onnx_io/open_bodies.h"
#include "onnx_io/open_extents.h"
#include "onnx_io/schema_function.h"
#include "onnx_io/schema_types.h"
#include "onnx_io/specified.h"
#include "onnx_io/stand_in.h"
#include "onnx_io/symbol_flow.h"

namespace taso {
namespace {

/// Walks the document's nodes and keeps what each tensor is.
class Importer {
 public:
  Importer(const Document& document, const OperatorRegistry& registry, const ImportOptions& options)
      : document_(document), catalog_(registry), options_(options), flow_(document, result_.decisions) {}

  Expected<ImportedModel> run() {
    const std::size_t tensors = document_.tensors().size();
    result_.values.resize(tensors);
    result_.constants.resize(tensors);
    result_.nodes.resize(static_cast<std::size_t>(document_.graph().node_size()));
    TASO_RETURN_IF_ERROR(add_inputs());
    first_unowned_ = result_.graph.id_bound();
    flow_.begin(result_.symbols, options_, maps_round_extents(document_, catalog_));
    read_hints();
    note_inputs_with_symbols();
    for (int node : document_.order()) {
      const bool depends = depends_on_symbols(node);
      sizes_ = depends ? flow_.sizes() : NodeContext::Sizes::all;
      TASO_RETURN_IF_ERROR(import_node(node));
      follows_.resize(result_.graph.id_bound(), depends);
      for (const NodeId id : own_constants_) follows_[id] = false;
      own_constants_.clear();
    }
    TASO_RETURN_IF_ERROR(add_outputs());
    if (flow_.sizes() != NodeContext::Sizes::all)
      result_.decisions.imported = std::make_shared<const Graph>(result_.graph);
    result_.graph.remove_dead();
    TASO_RETURN_IF_ERROR(result_.graph.validate());
    return std::move(result_);
  }

 private:
  Expected<TensorDeclaration> declaration(const onnx::ValueInfoProto& info, const std::string& what) {
    TensorDeclaration declared;
    declared.name = info.name();
    declared.type = {ElementType::other, {}, false};
    if (!info.type().has_tensor_type()) return declared;
    const auto& tensor = info.type().tensor_type();
    declared.element = element_of(tensor.elem_type());
    declared.type.element = declared.element;
    declared.has_shape = tensor.has_shape();
    if (!declared.has_shape) return declared;
    Shape shape;
    for (const auto& extent : tensor.shape().dim()) {
      DeclaredExtent entry;
      if (extent.has_dim_value()) {
        if (extent.dim_value() < 0)
          return document_.error(what + " " + in_quotes(info.name()) + " declares extent " +
                                 std::to_string(extent.dim_value()));
        entry.value = extent.dim_value();
        shape.push_back(extent.dim_value());
      } else {
        entry.symbol = extent.dim_param();
      }
      declared.extents.push_back(std::move(entry));
    }
    declared.type.known = declared.element != ElementType::other && shape.size() == declared.extents.size();
    if (!declared.type.known) return declared;
    if (!is_reasonable(shape))
      return document_.error(what + " " + in_quotes(info.name()) + " declares shape " + shape_text(shape) +
                             ", more than 2^40 elements");
    declared.type.shape = std::move(shape);
    return declared;
  }

  Status add_inputs() {
    for (const auto& [name, shape] : options_.input_shapes) {
      const int tensor = document_.find(name);
      if (tensor < 0 || document_.tensors()[static_cast<std::size_t>(tensor)].source != TensorSource::input)
        return document_.error("there is no graph input " + in_quotes(name) + " to give a shape to" + input_names());
    }
    for (const auto& input : document_.graph().input()) {
      const int tensor = document_.find(input.name());
      TASO_ASSIGN(TensorDeclaration declared, declaration(input, "graph input"));
      if (document_.tensors()[static_cast<std::size_t>(tensor)].source != TensorSource::input) continue;
      const auto replaced = options_.input_shapes.find(input.name());
      if (replaced != options_.input_shapes.end()) {
        if (declared.has_shape && declared.extents.size() != replaced->second.size())
          return document_.error("graph input " + in_quotes(input.name()) + " has rank " +
                                 std::to_string(declared.extents.size()) + ", the shape given for it is " +
                                 shape_text(replaced->second));
        for (std::size_t axis = 0; declared.has_shape && axis < declared.extents.size(); ++axis) {
          const std::optional<std::int64_t>& extent = declared.extents[axis].value;
          if (extent && *extent != replaced->second[axis])
            return document_.error("graph input " + in_quotes(input.name()) + " declares extent " +
                                   std::to_string(*extent) + " for axis " + std::to_string(axis) +
                                   ", the shape given for it is " + shape_text(replaced->second) +
                                   "; only symbolic extents can be chosen");
        }
        if (!is_reasonable(replaced->second))
          return document_.error("the shape " + shape_text(replaced->second) + " given for graph input " +
                                 in_quotes(input.name()) + " is negative or too large");
        declared.type = {declared.element, replaced->second, declared.element != ElementType::other};
      } else {
        TASO_RETURN_IF_ERROR(give_sizes(declared));
      }
      const NodeId id = result_.graph.add_input(input.name(), declared.type);
      result_.values[static_cast<std::size_t>(tensor)] = Value{id, 0};
      result_.inputs.push_back(std::move(declared));
    }
    return {};
  }

  /// A name for an extent that has none: one that no extent of an input has.
  std::string name_of_extent(const std::string& tensor, std::size_t axis) const {
    std::string name = tensor + "[" + std::to_string(axis) + "]";
    const auto is_taken = [&] {
      for (const onnx::ValueInfoProto& other : document_.graph().input())
        for (const auto& dimension : other.type().tensor_type().shape().dim())
          if (dimension.dim_param() == name) return true;
      return false;
    };
    while (is_taken()) name += "'";
    return name;
  }

  /// Notes the symbols of an input, and puts the sizes in their place where all have one.
  Status give_sizes(TensorDeclaration& declared) {
    if (!declared.has_shape) return {};
    Shape shape;
    for (std::size_t axis = 0; axis < declared.extents.size(); ++axis) {
      const DeclaredExtent& extent = declared.extents[axis];
      if (extent.value) {
        shape.push_back(*extent.value);
        continue;
      }
      const std::string name = extent.symbol.empty() ? name_of_extent(declared.name, axis) : extent.symbol;
      if (std::none_of(result_.symbols.begin(), result_.symbols.end(), [&](const Symbol& s) { return s.name == name; }))
        result_.symbols.push_back({name, declared.name, axis});
      if (const auto size = options_.symbol_sizes.find(name); size != options_.symbol_sizes.end())
        shape.push_back(size->second);
    }
    if (declared.type.known || shape.size() < declared.extents.size() || declared.element == ElementType::other)
      return {};
    if (!is_reasonable(shape))
      return document_.error("graph input " + in_quotes(declared.name) + " has more than 2^40 elements at " +
                             to_string(options_.symbol_sizes));
    declared.type = {declared.element, std::move(shape), true};
    return {};
  }

  std::string input_names() const {
    std::string text;
    for (const auto& input : document_.graph().input())
      if (document_.tensors()[static_cast<std::size_t>(document_.find(input.name()))].source == TensorSource::input)
        text += (text.empty() ? "; its inputs are " : ", ") + in_quotes(input.name());
    return text;
  }

  /// Shapes that the file states for intermediate tensors: used where nothing better is known. With replaced input
  /// shapes or sizes of symbols they may be stale, and are not used.
  void read_hints() {
    if (!options_.input_shapes.empty() || !options_.symbol_sizes.empty()) return;
    auto read = [&](const onnx::ValueInfoProto& info) {
      const int tensor = document_.find(info.name());
      if (tensor < 0 || !info.type().has_tensor_type()) return;
      const ElementType element = element_of(info.type().tensor_type().elem_type());
      const std::optional<Shape> shape = declared_shape(info.type());
      if (element != ElementType::other && shape && is_reasonable(*shape)) hints_[tensor] = {element, *shape, true};
    };
    for (const auto& info : document_.graph().value_info()) read(info);
    for (const auto& info : document_.graph().output()) read(info);
  }

  /// The constant behind a tensor, if it is one.
  std::shared_ptr<const ConstantData> constant_of(int tensor) {
    auto& known = result_.constants[static_cast<std::size_t>(tensor)];
    const DocumentTensor& entry = document_.tensors()[static_cast<std::size_t>(tensor)];
    if (!known && entry.source == TensorSource::initializer) {
      const TensorContents& contents = document_.initializer(entry.index);
      if (contents.type.element != ElementType::other)
        known = ConstantTensor{make_constant(contents, entry.name), true};
    }
    return known ? known->data : nullptr;
  }

  NodeContext::Input read(const std::string& name) {
    NodeContext::Input input;
    if (name.empty()) return input;
    input.present = true;
    input.tensor = document_.find(name);
    const auto index = static_cast<std::size_t>(input.tensor);
    input.from_symbols = flow_.reaches(input.tensor);
    input.constant = constant_of(input.tensor);
    // To handlers, what is only a shape is a tensor like any other.
    if (input.constant && !input.constant->has_data()) {
      value_of(input.tensor);
      input.constant = nullptr;
    }
    input.value = result_.values[index];
    if (input.constant)
      input.type = input.constant->type();
    else if (input.value)
      input.type = result_.graph.type(*input.value);
    else
      input.type = {ElementType::other, {}, false};
    return input;
  }

  // ------------------------------------------------------------------------------- what follows from symbols
  //
  // Beside what follows from symbolic or free extents may be much that does not: an image of one size, before what a
  // detector finds in it. Such nodes are read as if there were no symbols.

  void note_inputs_with_symbols() {
    follows_.resize(result_.graph.id_bound(), false);
    for (std::size_t i = 0; i < result_.inputs.size(); ++i)
      follows_[result_.graph.inputs()[i]] = std::ranges::any_of(
          result_.inputs[i].extents, [](const DeclaredExtent& extent) { return !extent.value.has_value(); });
  }

  bool follows_from_symbols(const std::string& name) const {
    const int tensor = name.empty() ? -1 : document_.find(name);
    if (tensor < 0) return false;
    const std::optional<Value>& value = result_.values[static_cast<std::size_t>(tensor)];
    return flow_.reaches(tensor) || (value && value->node < follows_.size() && follows_[value->node]);
  }

  bool depends_on_symbols(int index) const {
    return flow_.sizes() != NodeContext::Sizes::all &&
           (!free_extents_of(document_.node(index)).empty() || reads_what_follows(index));
  }
  bool reads_what_follows(int index) const {
    const auto follows = [&](const std::string& name) { return follows_from_symbols(name); };
    return std::ranges::any_of(document_.node(index).input(), follows) ||
           std::ranges::any_of(document_.captures(index), follows);
  }

  /// Extents of a carried node that reads nothing that follows from symbols: numbers.
  static CarriedShape shape_of_numbers(const std::vector<TensorType>& types) {
    CarriedShape shape;
    shape.rule = CarriedShape::Rule::stated;
    for (const TensorType& type : types) {
      shape.stated.emplace_back();
      if (!type.known) continue;
      for (const std::int64_t extent : type.shape) shape.stated.back().push_back({extent, std::nullopt});
    }
    return shape;
  }

  /// The graph value of a tensor, for an opaque consumer or a graph output.
  Value value_of(int tensor) {
    auto& value = result_.values[static_cast<std::size_t>(tensor)];
    if (value) return *value;
    if (auto constant = constant_of(tensor)) {
      value = Value{result_.graph.add_constant(std::move(constant)), 0};
      if (!flow_.reaches(tensor)) own_constants_.push_back(value->node);
    } else {
      // An initializer that the IR does not look into: strings, sparse tensors, small floats.
      Node node;
      node.kind = NodeKind::opaque;
      node.op = "initializer";
      node.name = "tensor:" + document_.tensors()[static_cast<std::size_t>(tensor)].name;
      node.outputs = {{ElementType::other, {}, false}};
      value = Value{result_.graph.add(std::move(node)), 0};
    }
    return *value;
  }

  std::vector<NodeContext::Input> read_inputs(const onnx::NodeProto& node) {
    std::vector<NodeContext::Input> inputs;
    for (const auto& name : node.input()) inputs.push_back(read(name));
    while (!inputs.empty() && !inputs.back().present) inputs.pop_back();
    return inputs;
  }

  Status import_node(int index) {
    const auto& node = document_.node(index);
    if (node.domain() == specified_domain && catalog_.defines(specified_operator(node.op_type())))
      return import_specified_node(index);
    const NodeMaps::Mappings& mappings = catalog_.node_maps().of_type(domain_of(node), node.op_type());
    if (!is_default_domain(node.domain())) {
      std::optional<Refusal> refusal = Refusal{"it is of another domain", Obstacle::operator_type};
      if (!mappings.empty()) {
        TASO_ASSIGN(refusal, import_by_maps(index, false));
        if (!refusal) return {};
      }
      const onnx::FunctionProto* const function = called_function(document_, node);
      return function == nullptr ? add_opaque(index, *refusal, {}) : import_call(index, *function);
    }
    if (document_.opset() < 7) return add_opaque(index, {"the opset is older than 7", Obstacle::opset}, {});
    if (node.op_type() == "Constant" && node.output_size() == 1) return import_constant(index);

    TASO_ASSIGN(std::vector<NodeContext::Input> inputs, inputs_to_fold(node));
    NodeContext context(document_, index, catalog_, result_.graph, std::move(inputs), options_.pieces);
    context.set_sizes(sizes_);
    const ImportRow* const row = find_import_row(node.op_type());
    if (row != nullptr)
      check_arity(*row, context);
    else if (!mappings.empty() && context.output_count() == 0)
      context.fail("it has no outputs");
    if (context.error()) return *context.error();
    if (auto constant = fold_integers(context)) {
      if (const std::string reason = context.symbolic() ? flow_.fold(context, *constant) : ""; !reason.empty())
        return add_opaque(index, {reason, Obstacle::symbolic}, types_of_folded(row, index, *constant));
      set_constant(index, std::move(constant), node.op_type() == "ConstantOfShape");
      return {};
    }
    if (context.error()) return *context.error();
    // Another name for a constant of any type.
    if (node.op_type() == "Identity" && context.is_constant(0) && context.output_count() == 1) {
      const int source = context.inputs()[0].tensor;
      set_constant(index, context.inputs()[0].constant, false);
      NodeImport& record = result_.nodes[static_cast<std::size_t>(index)];
      record.kind = NodeImport::Kind::alias;
      const int tensor = document_.find(node.output(0));
      if (tensor >= 0) {
        result_.values[static_cast<std::size_t>(tensor)] = result_.values[static_cast<std::size_t>(source)];
        flow_.alias(source, tensor);
      }
      return {};
    }
    // Those whose extents depend on elements are carried for reasons of their own.
    if (!free_extents_of(node).empty() &&
        std::ranges::none_of(node.output(), [&](const auto& name) { return options_.opened.contains(name); }))
      return add_opaque(index, {"extents of what it computes are not known at all sizes", Obstacle::symbolic},
                        types_of_carried(row, index));
    if (const std::optional<std::size_t> input = unchanged_input(context)) {
      NodeContext renamed(document_, index, catalog_, result_.graph, read_inputs(node), options_.pieces);
      renamed.output(0, renamed.value(*input));
      record_expansion(index, renamed, true);
      return {};
    }
    // Fresh contexts: folding may have asked for attributes.
    std::optional<Refusal> refusal = refusal_of_unmapped(node.op_type());
    if (!mappings.empty()) {
      TASO_ASSIGN(refusal, import_by_maps(index, row == nullptr && all_broadcast(mappings)));
      if (!refusal) return {};
    }
    if (row == nullptr) {
      if (mappings.empty()) {
        TASO_ASSIGN(refusal, import_by_schema(index, *refusal));
        if (!refusal) return {};
      }
      return add_opaque(index, *refusal, types_of_carried(nullptr, index));
    }
    NodeContext import(document_, index, catalog_, result_.graph, read_inputs(node), options_.pieces);
    import.set_sizes(sizes_);
    if (const std::string reason = SymbolFlow::misuse(import); !reason.empty())
      return add_opaque(index, {reason, Obstacle::symbolic}, types_of_carried(row, index));
    require_floats(row->float_inputs, import, row->moves_elements);
    if (!import.stopped()) row->handler(import);
    if (!import.stopped()) import.check_attributes();
    if (!import.stopped()) check_outputs(import);
    if (!import.stopped() && renames_unknown_extents(import))
      import.decline("what it does may depend on symbolic extents", Obstacle::symbolic);
    if (import.error()) return *import.error();
    if (!import.declined()) {
      record_expansion(index, import);
      return {};
    }
    const CarriedTypes carried = types_of_carried(row, index);
    if (renames_any_elements(import, carried)) {
      NodeContext renamed(document_, index, catalog_, result_.graph, read_inputs(node), options_.pieces);
      renamed.output(0, renamed.value(0));
      record_expansion(index, renamed);
      return {};
    }
    return add_declined(index, import, carried);
  }

  /// Whether a number is computed as every runtime rounds it: by operators that IEEE says all of, which are computed in
  /// double and rounded to f32 one by one (onnx_io/fold.h).
  bool is_rounded_alike(Value value) const {
    static const std::set<std::string_view> operators = {
        "abs",     "add",   "broadcast", "ceil",  "concat",     "div",        "floor", "maximum",
        "minimum", "mul",   "neg",       "recip", "reduce_max", "reduce_min", "relu",  "reshape",
        "round",   "slice", "split",     "sqrt",  "sub",        "transpose"};
    constexpr std::size_t most_nodes = 256;
    std::set<NodeId> seen;
    std::vector<NodeId> left = {value.node};
    while (!left.empty()) {
      const NodeId id = left.back();
      left.pop_back();
      if (!seen.insert(id).second) continue;
      const Node& node = result_.graph.node(id);
      if (seen.size() > most_nodes || node.outputs[0].element != ElementType::f32 || !node.outputs[0].known ||
          (node.kind != NodeKind::constant && !operators.contains(node.op)))
        return false;
      for (const Value& input : node.inputs) left.push_back(input.node);
    }
    return true;
  }

  /// Whether it makes few integers of floats: extents of an image that is scaled.
  bool makes_integers(const onnx::NodeProto& node, const NodeContext::Input& input) const {
    constexpr std::int64_t most = 64;
    if (node.op_type() != "Cast" || !input.type.known || input.type.elements() > most || !input.value) return false;
    return std::ranges::any_of(node.attribute(),
                               [](const onnx::AttributeProto& attribute) {
                                 return attribute.name() == "to" && (attribute.i() == onnx::TensorProto::INT64 ||
                                                                     attribute.i() == onnx::TensorProto::INT32);
                               }) &&
           is_rounded_alike(*input.value);
  }

  /// The inputs of a node, floats that follow from constants alone computed where it compares them, chooses from them
  /// or fills them, and the many places that it fills: so masks are made. And where it makes extents of them.
  Expected<std::vector<NodeContext::Input>> inputs_to_fold(const onnx::NodeProto& node) {
    constexpr std::int64_t largest = std::int64_t{1} << 20;
    std::vector<NodeContext::Input> inputs = read_inputs(node);
    const bool has_places = node.op_type() == "ScatterND";
    const auto is_weight = [&](const NodeContext::Input& input) {
      return input.value && result_.graph.node(input.value->node).weight_only && input.type.known &&
             (input.type.element == ElementType::f32 || (has_places && is_integer(input.type.element))) &&
             input.type.elements() <= largest;
    };
    if ((!makes_masks(node.op_type()) && (inputs.size() != 1 || !makes_integers(node, inputs[0]))) ||
        sizes_ != NodeContext::Sizes::all ||
        !std::ranges::all_of(inputs, [&](const auto& input) { return input.constant != nullptr || is_weight(input); }))
      return inputs;
    for (NodeContext::Input& input : inputs) {
      if (input.constant) continue;
      TASO_ASSIGN(const auto constants, fold_weights(result_.graph, std::span(&*input.value, 1), catalog_));
      input.constant = constants.at(0);
    }
    return inputs;
  }

  /// Whether a node is another name for what it reads, of any elements: it keeps the shape, or the element type.
  bool renames_any_elements(const NodeContext& context, const CarriedTypes& carried) const {
    static const std::set<std::string> keeps_order = {"Expand", "Flatten", "Reshape"};
    const std::string& op = context.proto().op_type();
    if (context.input_count() == 0 || !context.has_input(0) || carried.types.empty() || !carried.types[0]) return false;
    const TensorType& type = context.type(0);
    if (op == "Cast") return type.element != ElementType::other && carried.types[0]->element == type.element;
    return keeps_order.contains(op) && sizes_ == NodeContext::Sizes::all && type.known && *carried.types[0] == type;
  }

  /// The input that an operator on truth values or integers is another name of, as the other one is a number that
  /// changes nothing, of an axis less, or of extents of 1, so that this holds at all sizes. (Of reals a rule says so.)
  std::optional<std::size_t> unchanged_input(const NodeContext& context) {
    struct Neutral {
      std::int64_t number;
      bool on_either_side;
    };
    static const std::map<std::string_view, Neutral> numbers = {
        {"Add", {0, true}}, {"Sub", {0, false}}, {"Mul", {1, true}}, {"Div", {1, false}}};
    static const std::map<std::string_view, Neutral> truth_values = {
        {"And", {1, true}}, {"Or", {0, true}}, {"Xor", {0, true}}};
    if (context.input_count() != 2 || context.output_count() != 1) return std::nullopt;
    for (const std::size_t i : {0, 1}) {
      const NodeContext::Input &input = context.inputs()[i], &other = context.inputs()[1 - i];
      if (!input.present || input.constant || !other.constant || other.from_symbols) continue;
      const TensorType& type = other.constant->type();
      if (is_row_of_zeros(context, input, other)) return i;
      if (!input.type.known) continue;
      if (type.element != input.type.element || type.elements() != 1 || type.shape.size() > input.type.shape.size())
        continue;
      const bool is_truth_value = type.element == ElementType::boolean;
      if (!is_truth_value && !is_integer(type.element)) continue;
      const auto& known = is_truth_value ? truth_values : numbers;
      const auto neutral = known.find(context.proto().op_type());
      if (neutral != known.end() && (i == 0 || neutral->second.on_either_side) &&
          other.constant->to_integers().at(0) == neutral->second.number)
        return i;
    }
    return std::nullopt;
  }

  /// Whether a sum is one of a product by weights and zeros, one for each of their columns. (Where the product's shape
  /// is known, a rule says that this is the product.)
  bool is_row_of_zeros(const NodeContext& context, const NodeContext::Input& product, const NodeContext::Input& row) {
    if (context.proto().op_type() != "Add" || product.type.known) return false;
    const TensorType& type = row.constant->type();
    const DocumentTensor& tensor = document_.tensors()[static_cast<std::size_t>(product.tensor)];
    if (!is_real(type.element) || type.shape.size() != 1 || tensor.source != TensorSource::node) return false;
    const onnx::NodeProto& maker = document_.node(tensor.index);
    if (maker.op_type() != "MatMul" || !is_default_domain(maker.domain()) || maker.input_size() != 2) return false;
    const std::shared_ptr<const ConstantData> weights = constant_of(document_.find(maker.input(1)));
    if (!weights || weights->type().element != type.element || weights->type().shape.size() < 2 ||
        weights->type().shape.back() != type.shape[0])
      return false;
    const std::vector<double> zeros = row.constant->to_reals();
    return std::ranges::all_of(zeros, [](double zero) { return zero == 0; });
  }

  /// What is in the way of an operator that is neither in the table nor mapped.
  static Refusal refusal_of_unmapped(const std::string& op_type) {
    if (op_type == "Shape" || op_type == "Size")
      return {"the shape of an input is not known before run time", Obstacle::unknown_type};
    if (computes_constants(op_type)) return {"it is computed of constants only", Obstacle::constants_only};
    return {"the operator is not modelled", Obstacle::operator_type};
  }

  /// Whether a node became another name of what a carried node computes, of whose extents no formula is known.
  bool renames_unknown_extents(const NodeContext& context) const {
    if (sizes_ == NodeContext::Sizes::all || only_renames(context.proto())) return false;
    return std::any_of(context.inputs().begin(), context.inputs().end(), [&](const NodeContext::Input& input) {
      if (!input.value) return false;
      const auto carried = result_.decisions.carried.find(input.value->node);
      return carried != result_.decisions.carried.end() && carried->second.rule == CarriedShape::Rule::unknown &&
             std::find(context.outputs().begin(), context.outputs().end(), input.value) != context.outputs().end();
    });
  }

  /// Imports a node by the maps, or says why they do not apply. `strict`: another number of inputs, inputs of several
  /// types, and shapes that do not broadcast are an error.
  Expected<std::optional<Refusal>> import_by_maps(int index, bool strict) {
    NodeContext import(document_, index, catalog_, result_.graph, read_inputs(document_.node(index)), options_.pieces);
    import.set_sizes(sizes_);
    if (strict) {
      const NodeMaps::Mappings& lines = catalog_.node_maps().of_type("", import.proto().op_type());
      ImportRow row = {nullptr, 1 << 20, 0, -1, nullptr, false, nullptr, nullptr};
      for (const auto& line : lines) {
        const auto count = static_cast<int>(line->inputs.size());
        row.min_inputs = std::min(row.min_inputs, count);
        row.max_inputs = line->variadic || row.max_inputs < 0 ? -1 : std::max(row.max_inputs, count);
      }
      check_arity(row, import);
      const bool words = std::any_of(lines.begin(), lines.end(),
                                     [&](const auto& line) { return !catalog_.find(line->op)->over_reals; });
      require_floats(-1, import, false, words);
      std::vector<Shape> shapes;
      for (const NodeContext::Input& input : import.inputs())
        if (input.present && !import.stopped()) shapes.push_back(input.type.shape);
      if (!import.stopped()) import.common_shape(shapes);
    }
    if (!import.stopped()) import_mapped(import, catalog_);
    if (!import.stopped()) check_outputs(import);
    if (import.error()) return *import.error();
    if (import.declined()) return import.declined();
    record_expansion(index, import);
    return std::optional<Refusal>();
  }

  /// A call of a function of the model.
  Status import_call(int index, const onnx::FunctionProto& function) {
    NodeContext import(document_, index, catalog_, result_.graph, read_inputs(document_.node(index)), options_.pieces);
    import.set_sizes(sizes_);
    if (auto constant = import_function(import, document_, function, catalog_)) {
      set_constant(index, std::move(constant), false);
      return {};
    }
    if (!import.stopped()) check_outputs(import);
    if (import.error()) return *import.error();
    if (import.declined()) return add_declined(index, import, {});
    record_expansion(index, import);
    return {};
  }

  /// Imports a node as the function that ONNX's schema says its operator is, or says why it is carried: `unknown` where
  /// there is no such function.
  Expected<std::optional<Refusal>> import_by_schema(int index, const Refusal& unknown) {
    NodeContext import(document_, index, catalog_, result_.graph, read_inputs(document_.node(index)), options_.pieces);
    import.set_sizes(sizes_);
    const std::optional<onnx::FunctionProto> function = function_of_schema(document_, index, import);
    if (!function) return std::optional(unknown);
    if (auto constant = import_function(import, document_, *function, catalog_)) {
      set_constant(index, std::move(constant), false);
      return std::optional<Refusal>();
    }
    if (!import.stopped()) check_outputs(import);
    if (import.error()) return *import.error();
    if (import.declined()) return import.declined();
    record_expansion(index, import);
    return std::optional<Refusal>();
  }

  Status import_specified_node(int index) {
    NodeContext import(document_, index, catalog_, result_.graph, read_inputs(document_.node(index)), options_.pieces);
    import_specified(import, catalog_);
    if (!import.stopped()) import.check_attributes();
    if (!import.stopped()) check_outputs(import);
    if (import.error()) return *import.error();
    if (import.declined()) return add_declined(index, import, {});
    record_expansion(index, import);
    return {};
  }

  static void check_arity(const ImportRow& row, NodeContext& context) {
    const auto count = static_cast<int>(context.input_count());
    if (count < row.min_inputs || (row.max_inputs >= 0 && count > row.max_inputs))
      return context.fail("it has " + std::to_string(count) + " inputs, " +
                          (row.max_inputs < 0 ? "at least " + std::to_string(row.min_inputs)
                           : row.min_inputs == row.max_inputs
                               ? std::to_string(row.min_inputs)
                               : std::to_string(row.min_inputs) + " to " + std::to_string(row.max_inputs)) +
                          " were expected");
    for (int i = 0; i < row.min_inputs; ++i)
      if (!context.has_input(static_cast<std::size_t>(i)))
        return context.fail("input " + std::to_string(i) + " is absent but not optional");
    if (context.output_count() == 0) return context.fail("it has no outputs");
  }

  /// The first `count` inputs (-1: all) of one real type: all known with positive extents, or the node is carried;
  /// mixed types are an error. What moves elements may move integers, in graphs of pieces.
  /// `words`: integers and truth values, too.
  static void require_floats(int count, NodeContext& context, bool moves_elements = false, bool words = false) {
    const auto limit =
        count < 0 ? context.input_count() : std::min(context.input_count(), static_cast<std::size_t>(count));
    std::optional<ElementType> first;
    for (std::size_t i = 0; i < limit; ++i) {
      if (!context.has_input(i)) continue;
      const TensorType& type = context.type(i);
      if (const std::string unknown = context.unknown_type(i); !unknown.empty())
        return context.fail("the element type of input " + std::to_string(i) + ", " + unknown + ", is not known");
      if (type.element == ElementType::other) continue;
      if (first && *first != type.element)
        return context.fail("its inputs have different element types, " + std::string(to_string(*first)) + " and " +
                            to_string(type.element));
      first = type.element;
    }
    // Reductions keep shapes as moves do, and compute.
    const bool moves = moves_elements && first && !context.proto().op_type().starts_with("Reduce");
    const bool moves_words = moves && is_word(*first) && (context.of_pieces() || !context.reads_extents());
    if (first && !is_real(*first) && !moves_words && !words)
      return context.decline("its elements are " + std::string(to_string(*first)), Obstacle::element_type);
    for (std::size_t i = 0; i < limit; ++i) {
      if (!context.has_input(i)) continue;
      if (!context.type(i).known) return context.decline_untyped();
      if (context.is_empty(context.shape(i))) return context.decline("an input is empty");
    }
  }

  void check_outputs(NodeContext& context) const {
    for (std::size_t i = 0; i < context.output_count(); ++i) {
      if (!context.outputs()[i]) {
        if (context.uses_output(i)) return context.decline("output " + std::to_string(i) + " is not modelled");
        continue;
      }
      if (context.is_empty(context.shape_of(*context.outputs()[i]))) return context.decline("an output is empty");
      if (const Status status = check_defined(*context.outputs()[i]); !status)
        return context.decline("it is computed of constants: " + status.error().message);
    }
  }

  /// Whether integers that follow from constants are the same in every runtime: a quotient by 0 is not.
  [[nodiscard]] Status check_defined(Value output) const {
    const Node& node = result_.graph.node(output.node);
    if (node.kind != NodeKind::op || !node.weight_only || !is_integer(node.outputs[output.port].element)) return {};
    if (const OperatorDefinition* definition = catalog_.find(node.op); definition == nullptr || definition->over_reals)
      return {};
    const auto folded = fold_weights(result_.graph, std::span(&output, 1), catalog_, std::int64_t{1} << 26);
    return folded ? Status() : Status(folded.error());
  }

  /// The type of what could be computed at these sizes, but not at all.
  CarriedTypes types_of_folded(const ImportRow* row, int index, const ConstantData& folded) {
    CarriedTypes carried = types_of_carried(row, index);
    if (carried.types.size() != 1 || carried.types[0] != folded.type()) carried = {{folded.type()}, {}};
    return carried;
  }

  CarriedInputs inputs_of(int index) { return {&document_, index, read_inputs(document_.node(index))}; }

  /// Whether a node has a subgraph.
  [[nodiscard]] bool has_body(int index) const {
    const auto& attributes = document_.node(index).attribute();
    return std::any_of(attributes.begin(), attributes.end(), [](const auto& attribute) { return attribute.has_g(); });
  }

  /// Types of what a node makes that is carried; `row` is null where the table has none. What our own rules do not
  /// tell, ONNX's schemas may: numbers at these sizes, of which nothing is known at others.
  CarriedTypes types_of_carried(const ImportRow* row, int index) {
    CarriedTypes carried = types_by_rules(row, index);
    if (std::any_of(carried.types.begin(), carried.types.end(), [](const auto& type) { return type.has_value(); }))
      return carried;
    if (has_body(index)) return types_of_bodies(index);
    carried = types_by_schema(document_, index, read_inputs(document_.node(index)), sizes_);
    for (std::size_t port = 0; port < carried.types.size(); ++port) doubt(index, port, carried.types[port]);
    if (std::ranges::any_of(carried.types, [](const auto& type) { return type.has_value(); })) return carried;
    NodeContext context(document_, index, catalog_, result_.graph, read_inputs(document_.node(index)), options_.pieces);
    return open_types(index, open_outputs(context));
  }

  /// Types of what control flow makes: those that its subgraphs make, numbers where these are; else as much as is known
  /// of extents.
  CarriedTypes types_of_bodies(int index) {
    CarriedTypes carried;
    if (!reads_what_follows(index)) {
      carried.types = types_by_bodies(document_, result_, catalog_, options_, index);
      for (std::size_t port = 0; port < carried.types.size(); ++port) doubt(index, port, carried.types[port]);
    }
    const std::vector<std::optional<TensorType>> numbers = carried.types;
    const auto count = static_cast<std::size_t>(document_.node(index).output_size());
    const auto known = std::ranges::count_if(numbers, [](const auto& type) { return type.has_value(); });
    if (static_cast<std::size_t>(known) == count) return carried;
    std::vector<OpenOutput> outputs =
        open_outputs_of_bodies(document_, result_, catalog_, options_, index,
                               [this](const std::string& name) { return follows_from_symbols(name); });
    outputs.resize(count);
    for (std::size_t port = 0; port < numbers.size(); ++port) {
      if (!numbers[port]) continue;
      outputs[port] = {numbers[port]->element, {}};
      for (const std::int64_t extent : numbers[port]->shape) outputs[port].extents.push_back({extent, std::nullopt});
    }
    const bool any =
        std::ranges::any_of(outputs, [](const OpenOutput& output) { return output.element != ElementType::other; });
    return any ? open_types(index, outputs) : carried;
  }

  /// Whether extents depend on elements.
  static bool is_open(const CarriedTypes& carried) { return carried.shape.rule == CarriedShape::Rule::stated; }

  /// Types of outputs whose extents depend on elements, if these are free: with a number each that stands for them.
  CarriedTypes open_types(int index, const std::vector<OpenOutput>& outputs) {
    CarriedTypes carried;
    if (outputs.empty()) return carried;
    carried.shape.rule = CarriedShape::Rule::stated;
    std::vector<NodeContext::Input> inputs = read_inputs(document_.node(index));
    if (has_body(index)) {
      std::erase_if(inputs, [](const NodeContext::Input& input) { return !input.present; });
      for (const std::string& name : document_.captures(index)) inputs.push_back(read(name));
    }
    for (std::size_t port = 0; port < outputs.size(); ++port) {
      const OpenOutput& output = outputs[port];
      const std::string& tensor = document_.node(index).output(static_cast<int>(port));
      carried.shape.stated.push_back(output.extents);
      carried.types.emplace_back();
      Shape shape;
      for (std::size_t axis = 0; axis < output.extents.size(); ++axis) {
        const StatedExtent& extent = output.extents[axis];
        if (extent.number) {
          shape.push_back(*extent.number);
        } else if (extent.of_input) {
          shape.push_back(inputs[extent.of_input->first].type.shape[extent.of_input->second]);
        } else if (const auto nominal = nominal_extent(tensor, axis)) {
          shape.push_back(*nominal);
        }
      }
      if (shape.size() == output.extents.size() && output.element != ElementType::other)
        carried.types.back() = TensorType{output.element, shape, true};
    }
    return carried;
  }

  /// What stands for a free extent that depends on elements: another number for each, as far as there are. Of a tensor
  /// with many they are small, as they are multiplied by each other.
  std::optional<std::int64_t> nominal_extent(const std::string& tensor, std::size_t axis) const {
    static constexpr std::array<std::int64_t, 24> of_few = {61,  67,  71,  73,  79,  83,  89,  97,  101, 103, 107, 109,
                                                            113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179};
    static constexpr std::array<std::int64_t, 10> of_many = {11, 13, 17, 19, 23, 29, 31, 37, 41, 43};
    if (!options_.opened.contains(tensor)) return std::nullopt;
    std::size_t place = 0;
    for (const auto& [name, axes] : options_.free_extents)
      for (const auto& [free, more] : axes) {
        if (name == tensor && free == axis)
          return axes.size() < 3 ? of_few[place % of_few.size()] : of_many[place % of_many.size()];
        ++place;
      }
    return std::nullopt;
  }

  /// Believes neither ONNX's schema nor the file where they contradict each other.
  void doubt(int index, std::size_t port, std::optional<TensorType>& inferred) {
    const std::string& name = document_.node(index).output(static_cast<int>(port));
    const auto stated = name.empty() ? hints_.end() : hints_.find(document_.find(name));
    if (!inferred || stated == hints_.end() || stated->second == *inferred) return;
    result_.contradictions.push_back(document_.describe(index) + ": the file says that output " + in_quotes(name) +
                                     " is " + to_string(stated->second) + ", the schema that it is " +
                                     to_string(*inferred));
    hints_.erase(stated);
    inferred.reset();
  }

  /// What is known of the extents of a slice whose positions mean something else at other sizes: it keeps those along
  /// the axes that it does not name.
  static CarriedShape kept_by_slice(const NodeContext& context, const CarriedTypes& carried) {
    NodeContext plain = context.with_inputs(context.inputs());
    if (plain.proto().op_type() != "Slice" || plain.opset() < 10 || carried.types.empty() || !plain.is_constant(1) ||
        (plain.has_input(3) && (!plain.is_constant(3) || plain.inputs()[3].from_symbols)))
      return {};
    CarriedShape shape;
    shape.rule = CarriedShape::Rule::same;
    std::vector<std::int64_t> axes;
    if (plain.has_input(3))
      axes = plain.integers(3);
    else
      for (std::int64_t axis = 0; axis < plain.inputs()[1].constant->type().elements(); ++axis) axes.push_back(axis);
    for (const std::int64_t axis : axes)
      shape.changed.insert(static_cast<std::size_t>(plain.axis_from_front(axis, plain.rank(0))));
    return plain.stopped() ? CarriedShape() : shape;
  }

  CarriedTypes types_by_rules(const ImportRow* row, int index) {
    NodeContext plain(document_, index, catalog_, result_.graph, read_inputs(document_.node(index)), options_.pieces);
    plain.set_sizes(sizes_);
    CarriedTypes carried = carried_types(plain);
    if (!carried.types.empty()) return carried;
    const CarriedInputs inputs = inputs_of(index);
    if (row == nullptr || !row->moves_elements) return carried;
    // Where extents are not known, neither is how many are 1.
    if (sizes_ != NodeContext::Sizes::all && document_.node(index).op_type() == "Squeeze" &&
        !plain.has_attribute("axes") && !plain.has_input(1))
      return carried;
    // What a handler does at all sizes, else what it does at these.
    carried = types_of_moved(inputs, *row, catalog_, sizes_);
    if (carried.types.empty() && sizes_ != NodeContext::Sizes::all) {
      carried = types_of_moved(inputs, *row, catalog_, NodeContext::Sizes::all);
      carried.shape = kept_by_slice(plain, carried);
    } else if (sizes_ != NodeContext::Sizes::all && !strided_axes(plain).empty()) {
      carried.shape = kept_by_slice(plain, carried);
    } else if (carried.shape.rule == CarriedShape::Rule::op) {
      carried.shape.changed = kept_by_slice(plain, carried).changed;
    }
    // Integers that follow from extents in a way that is not known are no constants, so these shapes are known.
    static const std::set<std::string> to_shapes = {"Expand", "Flatten", "Reshape"};
    if (sizes_ != NodeContext::Sizes::all && to_shapes.contains(document_.node(index).op_type()) &&
        (carried.shape.rule != CarriedShape::Rule::same || plain.inputs().size() < 2 || plain.inputs()[1].from_symbols))
      carried.shape = flow_.listed(plain);
    return carried;
  }

  Status import_constant(int index) {
    const auto& node = document_.node(index);
    if (node.attribute_size() != 1)
      return document_.error(document_.describe(index) + ": it has " + std::to_string(node.attribute_size()) +
                             " attributes, exactly one value was expected");
    const auto& attribute = node.attribute(0);
    std::shared_ptr<const ConstantData> constant;
    if (attribute.name() == "value" && attribute.has_t()) {
      TASO_ASSIGN(const TensorContents contents, document_.attribute_tensor(index, 0));
      if (contents.type.element != ElementType::other) constant = make_constant(contents, document_.describe(index));
    } else if (attribute.name() == "value_float") {
      const float number = attribute.f();
      constant = ConstantData::of_floats({}, std::span(&number, 1));
    } else if (attribute.name() == "value_floats") {
      const std::vector<float> numbers(attribute.floats().begin(), attribute.floats().end());
      constant = ConstantData::of_floats({static_cast<std::int64_t>(numbers.size())}, numbers);
    } else if (attribute.name() == "value_int") {
      const std::int64_t number = attribute.i();
      constant = ConstantData::of_integers({}, std::span(&number, 1));
    } else if (attribute.name() == "value_ints") {
      const std::vector<std::int64_t> numbers(attribute.ints().begin(), attribute.ints().end());
      constant = ConstantData::of_integers({static_cast<std::int64_t>(numbers.size())}, numbers);
    } else if (attribute.name() != "value_string" && attribute.name() != "value_strings" &&
               attribute.name() != "sparse_value") {
      return document_.error(document_.describe(index) + ": attribute " + in_quotes(attribute.name()) +
                             " does not hold a value");
    }
    if (!constant) return add_opaque(index, {"the constant's type is not modelled", Obstacle::element_type}, {});
    set_constant(index, std::move(constant), true);
    return {};
  }

  void set_constant(int index, std::shared_ptr<const ConstantData> constant, bool original) {
    const auto& node = document_.node(index);
    NodeImport& record = result_.nodes[static_cast<std::size_t>(index)];
    record.kind = NodeImport::Kind::constant;
    record.inputs.resize(static_cast<std::size_t>(node.input_size()));
    record.outputs.resize(static_cast<std::size_t>(node.output_size()));
    const int tensor = document_.find(node.output(0));
    if (tensor >= 0)
      result_.constants[static_cast<std::size_t>(tensor)] = ConstantTensor{std::move(constant), original};
  }

  /// `at_all_sizes`: if it is another name, this does not depend on extents.
  void record_expansion(int index, NodeContext& context, bool at_all_sizes = false) {
    const auto& node = document_.node(index);
    NodeImport& record = result_.nodes[static_cast<std::size_t>(index)];
    record.inputs.resize(static_cast<std::size_t>(node.input_size()));
    record.outputs = context.outputs();
    bool alias = true;
    for (std::size_t i = 0; i < context.input_count(); ++i) {
      const auto& input = context.inputs()[i];
      // What is computed is an input even where it does not count: the node cannot be written without it.
      if (!input.present || (input.constant && !context.read_as_value(i))) continue;
      record.inputs[i] = input.value;
      result_.values[static_cast<std::size_t>(input.tensor)] = input.value;
    }
    for (int port = 0; port < node.output_size(); ++port) {
      const auto& output = record.outputs[static_cast<std::size_t>(port)];
      if (!output) continue;
      bool is_input = false;
      for (const auto& input : context.inputs()) {
        if (!input.present || input.value != output) continue;
        is_input = true;
        // Another name for a constant is a constant.
        const int tensor = document_.find(node.output(port));
        if (input.constant && tensor >= 0) {
          result_.constants[static_cast<std::size_t>(tensor)] = ConstantTensor{input.constant, false};
          flow_.alias(input.tensor, tensor);
        }
      }
      alias = alias && is_input;
      if (!is_input) own(output->node, index);
      const int tensor = document_.find(node.output(port));
      if (tensor >= 0) result_.values[static_cast<std::size_t>(tensor)] = output;
    }
    record.kind = alias ? NodeImport::Kind::alias : NodeImport::Kind::expansion;
    if (flow_.sizes() != NodeContext::Sizes::all) {
      static const std::set<std::string> windows = {"AveragePool", "Conv", "LpPool", "MaxPool"};
      if (alias && !at_all_sizes && !only_renames(node))
        result_.decisions.renamed.push_back(result_.decisions.readings.size());
      const bool rounds =
          node.op_type() == "Resize" || node.op_type() == "Upsample" ||
          std::any_of(node.attribute().begin(), node.attribute().end(), [](const auto& attribute) {
            return (attribute.name() == "ceil_mode" && attribute.i() != 0) ||
                   (attribute.name() == "auto_pad" && attribute.s() != "NOTSET" && attribute.s() != "VALID");
          });
      if (rounds && context.input_count() > 0 && context.inputs()[0].value)
        for (NodeId id = first_unowned_; id < result_.graph.id_bound(); ++id)
          result_.decisions.rounded[id] = *context.inputs()[0].value;
      const bool keeps_zeros = std::ranges::any_of(node.attribute(), [](const auto& attribute) {
        return attribute.name() == "allowzero" && attribute.i() != 0;
      });
      if (node.op_type() == "Reshape" && !keeps_zeros)
        for (NodeId id = first_unowned_; id < result_.graph.id_bound(); ++id)
          if (result_.graph.node(id).is_op("reshape")) result_.decisions.copying.insert(id);
      if (const std::set<std::size_t> strided = strided_axes(context); !strided.empty())
        for (NodeId id = first_unowned_; id < result_.graph.id_bound(); ++id)
          if (result_.graph.node(id).is_op("slice")) result_.decisions.strided[id] = strided;
      if (windows.contains(node.op_type()))
        for (NodeId id = first_unowned_; id < result_.graph.id_bound(); ++id) result_.decisions.windows.insert(id);
      if (!alias && !record.outputs.empty() && record.outputs[0]) record_equal_extents(index, record.outputs[0]->node);
      note_reading(context, record);
    }
    for (NodeId id = first_unowned_; id < result_.graph.id_bound(); ++id)
      if (result_.graph.node(id).kind == NodeKind::op) own(id, index);
    first_unowned_ = result_.graph.id_bound();
  }

  /// Axes along which a Slice does not take each place.
  static std::set<std::size_t> strided_axes(const NodeContext& context) {
    NodeContext plain = context.with_inputs(context.inputs());
    std::set<std::size_t> strided;
    if (plain.proto().op_type() != "Slice" || plain.opset() < 10 || !plain.is_constant(4) || !plain.type(0).known)
      return strided;
    const std::vector<std::int64_t> steps = plain.integers(4);
    const std::vector<std::int64_t> axes = plain.is_constant(3) ? plain.integers(3) : std::vector<std::int64_t>{};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (std::abs(steps[i]) == 1) continue;
      const std::int64_t axis = i < axes.size() ? axes[i] : static_cast<std::int64_t>(i);
      strided.insert(static_cast<std::size_t>(plain.axis_from_front(axis, plain.rank(0))));
    }
    return strided;
  }

  /// Notes what the graph nodes since the last note may depend on.
  void note_reading(const NodeContext& context, const NodeImport& record) {
    ReadNode reading{first_unowned_, result_.graph.id_bound(), {}, flow_.read_by(context), {}};
    for (const NodeContext::Input& input : context.inputs())
      if (input.present && !input.constant && input.value && result_.graph.type(*input.value).known)
        reading.values.push_back(*input.value);
    for (std::size_t port = 0; port < record.outputs.size(); ++port)
      if (const std::string& name = context.proto().output(static_cast<int>(port));
          record.outputs[port] && !name.empty())
        reading.makes.emplace(name, *record.outputs[port]);
    result_.decisions.readings.push_back(std::move(reading));
  }

  /// Those among the outputs of a node, by position.
  [[nodiscard]] std::map<int, const std::map<std::size_t, std::int64_t>*> free_extents_of(
      const onnx::NodeProto& node) const {
    std::map<int, const std::map<std::size_t, std::int64_t>*> result;
    for (int port = 0; port < node.output_size(); ++port)
      if (const auto place = options_.free_extents.find(node.output(port)); place != options_.free_extents.end())
        result.emplace(port, &place->second);
    return result;
  }

  /// Makes extents of what a carried node, which is to be `id`, computes symbols of their own.
  void free_extents(Node& node, NodeId id, const onnx::NodeProto& proto, const CarriedShape& shape) {
    for (const auto& [port, axes] : free_extents_of(proto)) {
      const Value value{id, static_cast<std::uint32_t>(port)};
      TensorType& type = node.outputs[value.port];
      for (const auto& [axis, more] : *axes) {
        if (!type.known || axis >= type.shape.size()) continue;
        std::int64_t& extent = type.shape[axis];
        const std::int64_t free = std::max<std::int64_t>(1, extent + more);
        const std::string& tensor = proto.output(port);
        const bool open = value.port < shape.stated.size() && shape.stated[value.port][axis].open();
        result_.decisions.free.push_back({name_of_extent(tensor, axis), tensor, value, axis, free - extent, open});
        extent = free;
      }
    }
  }

  /// Notes what must be equal where the model exists: extents that are broadcast against each other, or concatenated.
  void record_equal_extents(int index, NodeId reader) {
    const onnx::NodeProto& node = document_.node(index);
    static const std::set<std::string> broadcasting = {
        "Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min",
        "Mul", "Or",  "Pow", "Sub",   "Sum",     "Where",          "Xor"};
    const bool broadcast = broadcasting.contains(node.op_type());
    if (is_default_domain(node.domain()) && node.op_type() == "Expand")
      return flow_.note_expanded(NodeContext(document_, index, catalog_, result_.graph, read_inputs(node)), reader);
    if (!is_default_domain(node.domain()) || (!broadcast && node.op_type() != "Concat")) return;
    std::vector<Value> values;
    for (const auto& name : node.input()) {
      const int tensor = document_.find(name);
      if (tensor < 0) continue;
      const auto& value = result_.values[static_cast<std::size_t>(tensor)];
      if (value && result_.graph.type(*value).known) values.push_back(*value);
    }
    std::int64_t along = 0;  // the axis of a concatenation
    for (const onnx::AttributeProto& attribute : node.attribute())
      if (attribute.name() == "axis") along = attribute.i();
    note_equal_extents(result_.graph, reader, values, broadcast ? std::nullopt : std::optional(along),
                       result_.decisions.equal);
  }

  /// Makes a document node the origin of a graph node.
  void own(NodeId id, int index) {
    if (result_.graph.node(id).origin >= 0) return;
    Node node = result_.graph.node(id);
    node.origin = index;
    result_.graph.replace_node(id, std::move(node));
  }

  Status add_declined(int index, const NodeContext& import, const CarriedTypes& carried) {
    if (import.ill_typed()) result_.ill_typed.push_back({document_.describe(index), import.declined()->reason});
    return add_opaque(index, *import.declined(), carried);
  }

  Status add_opaque(int index, const Refusal& refusal, const CarriedTypes& carried) {
    const std::vector<std::optional<TensorType>>& types = carried.types;
    const auto& proto = document_.node(index);
    NodeImport& record = result_.nodes[static_cast<std::size_t>(index)];
    record.kind = NodeImport::Kind::opaque;
    Node node;
    node.kind = NodeKind::opaque;
    node.op = (is_default_domain(proto.domain()) ? "" : proto.domain() + "::") + proto.op_type();
    // Names of tensors are unique; a node without named outputs is told apart by its place.
    const auto named =
        std::find_if(proto.output().begin(), proto.output().end(), [](const auto& o) { return !o.empty(); });
    node.name = "node:" + (named == proto.output().end() ? "#" + std::to_string(index) : *named);
    node.origin = index;
    auto read_name = [&](const std::string& name) {
      if (name.empty()) {
        record.inputs.emplace_back();
        return;
      }
      const Value value = value_of(document_.find(name));
      record.inputs.emplace_back(value);
      node.inputs.push_back(value);
    };
    for (const auto& name : proto.input()) read_name(name);
    for (const auto& name : document_.captures(index)) read_name(name);
    for (int port = 0; port < proto.output_size(); ++port) {
      const auto place = static_cast<std::size_t>(port);
      TensorType type{ElementType::other, {}, false};
      const auto hint = hints_.find(document_.find(proto.output(port)));
      if (place < types.size() && types[place] && is_reasonable(types[place]->shape))
        type = *types[place];
      else if (hint != hints_.end() && !proto.output(port).empty() && !counts_elements(proto.op_type()) &&
               !rounds_up(proto) && !differs_by_bodies(index, place, carried.shape))
        type = hint->second;
      node.outputs.push_back(std::move(type));
    }
    // Of equal nodes one is enough, whatever stands for extents.
    std::vector<TensorType> told = node.outputs;
    for (std::size_t port = 0; port < carried.shape.stated.size(); ++port)
      if (types[port]) told[port] = {ElementType::other, {}, false};
    if (const std::string text = text_of_function(index); !text.empty()) {
      const auto [place, added] = carried_functions_.emplace(text, index);
      if (!added && rename_equal(index, place->second, told)) return {};
    }
    result_.carried[index] = {refusal, estimated_flops(inputs_of(index), catalog_, node.outputs)};
    if (!free_extents_of(proto).empty()) {
      computed_types_[index] = std::move(told);
      free_extents(node, result_.graph.id_bound(), proto, carried.shape);
    }
    if (is_open(carried)) note_open_extents(node, proto, carried.shape);
    const NodeId id = result_.graph.add(std::move(node));
    for (int port = 0; port < proto.output_size(); ++port) {
      const Value value{id, static_cast<std::uint32_t>(port)};
      const int tensor = document_.find(proto.output(port));
      record.outputs.emplace_back(value);
      if (tensor >= 0) result_.values[static_cast<std::size_t>(tensor)] = value;
    }
    if (flow_.sizes() != NodeContext::Sizes::all) {
      result_.decisions.carried[id] =
          sizes_ == NodeContext::Sizes::all ? shape_of_numbers(result_.graph.node(id).outputs) : carried.shape;
      record_equal_extents(index, id);
      note_reading(NodeContext(document_, index, catalog_, result_.graph, read_inputs(proto)), record);
    }
    first_unowned_ = result_.graph.id_bound();
    return {};
  }

  /// Operators that always make as much as the elements say that they read: what a file says of their shapes is what
  /// they were once.
  static bool counts_elements(const std::string& op_type) {
    static const std::set<std::string> all = {"Compress", "NonMaxSuppression", "NonZero", "Unique"};
    return all.contains(op_type);
  }

  /// Pools that round up: a last window that lies in the padding runtimes leave out, and shape inference counts it.
  static bool rounds_up(const onnx::NodeProto& proto) {
    return std::ranges::any_of(proto.attribute(), [](const onnx::AttributeProto& attribute) {
      return attribute.name() == "ceil_mode" && attribute.i() != 0;
    });
  }

  /// Whether subgraphs make other extents of an output than those that the file says of it, which one of them made
  /// once.
  bool differs_by_bodies(int index, std::size_t port, const CarriedShape& shape) const {
    return has_body(index) && port < shape.stated.size() &&
           std::ranges::any_of(shape.stated[port], [](const StatedExtent& extent) { return extent.open(); });
  }

  /// Extents that depend on elements, of outputs that are of unknown shape because these are not free.
  void note_open_extents(const Node& node, const onnx::NodeProto& proto, const CarriedShape& shape) {
    for (std::size_t port = 0; port < shape.stated.size(); ++port) {
      const std::string& tensor = proto.output(static_cast<int>(port));
      if (tensor.empty() || node.outputs[port].known) continue;
      for (std::size_t axis = 0; axis < shape.stated[port].size(); ++axis)
        if (shape.stated[port][axis].open()) result_.decisions.open[tensor].insert(axis);
    }
  }

  /// What a carried node computes, and of what, in words: of equal ones one is enough. Exporters ask for one shape
  /// again and again. Empty if that does not say all: of operators of other domains, with subgraphs, that draw random
  /// numbers, or with tensors as attributes, which may be left in the file.
  std::string text_of_function(int index) {
    static const std::set<std::string_view> random = {"Bernoulli",        "Dropout",          "Multinomial",
                                                      "RandomNormal",     "RandomNormalLike", "RandomUniform",
                                                      "RandomUniformLike"};
    onnx::NodeProto node = document_.node(index);
    if (document_.opset() < 7 || !is_default_domain(node.domain()) || random.contains(node.op_type()) ||
        node.input_size() == 0 || std::ranges::any_of(node.attribute(), [](const onnx::AttributeProto& attribute) {
          return attribute.has_g() || attribute.graphs_size() > 0 || attribute.has_t() ||
                 attribute.tensors_size() > 0 || attribute.has_sparse_tensor() || attribute.has_ref_attr_name();
        }))
      return "";
    for (std::string& input : *node.mutable_input()) {
      const int tensor = document_.find(input);
      if (input.empty() || tensor < 0) continue;
      const std::optional<Value>& value = result_.values[static_cast<std::size_t>(tensor)];
      // Constants that follow from symbolic extents may be equal by chance.
      if (const auto constant = constant_of(tensor); constant && constant->has_data() && !flow_.reaches(tensor))
        input = "constant " + constant->identity().to_string();
      else
        input = value ? "value " + std::to_string(value->node) + " " + std::to_string(value->port) : "tensor " + input;
    }
    node.clear_name();
    node.clear_doc_string();
    node.clear_output();
    std::sort(node.mutable_attribute()->begin(), node.mutable_attribute()->end(),
              [](const auto& a, const auto& b) { return a.name() < b.name(); });
    return node.SerializeAsString();
  }

  /// Lets the outputs of a node be those of an equal one, if they are of these types.
  bool rename_equal(int index, int first, const std::vector<TensorType>& types) {
    const auto &node = document_.node(index), &equal = document_.node(first);
    const std::vector<std::optional<Value>>& outputs = result_.nodes[static_cast<std::size_t>(first)].outputs;
    for (int port = 0; port < node.output_size(); ++port) {
      const auto place = static_cast<std::size_t>(port);
      if (port >= equal.output_size() || (equal.output(port).empty() && !node.output(port).empty())) return false;
      const auto computed = computed_types_.find(first);
      if ((computed == computed_types_.end() ? result_.graph.type(*outputs[place]) : computed->second[place]) !=
          types[place])
        return false;
    }
    NodeImport& record = result_.nodes[static_cast<std::size_t>(index)];
    record.kind = NodeImport::Kind::alias;
    record.inputs.clear();
    record.inputs.resize(static_cast<std::size_t>(node.input_size()));
    for (int port = 0; port < node.output_size(); ++port) {
      record.outputs.push_back(outputs[static_cast<std::size_t>(port)]);
      const int tensor = document_.find(node.output(port)), source = document_.find(equal.output(port));
      if (tensor < 0) continue;
      result_.values[static_cast<std::size_t>(tensor)] = record.outputs.back();
      flow_.alias(source, tensor);
    }
    return true;
  }

  Status add_outputs() {
    for (const auto& output : document_.graph().output()) {
      const Value value = value_of(document_.find(output.name()));
      result_.graph.add_output(value);
      TASO_ASSIGN(TensorDeclaration declared, declaration(output, "graph output"));
      const TensorType& type = result_.graph.type(value);
      if (declared.element != ElementType::other && type.element != ElementType::other &&
          declared.element != type.element)
        return document_.error("graph output " + in_quotes(output.name()) + " is declared " +
                               to_string(declared.element) + ", but it is " + to_string(type.element));
      if (type.known && declared.has_shape && options_.input_shapes.empty()) {
        bool fits = declared.extents.size() == type.shape.size();
        for (std::size_t i = 0; fits && i < type.shape.size(); ++i)
          fits = !declared.extents[i].value || *declared.extents[i].value == type.shape[i];
        if (!fits)
          return document_.error("graph output " + in_quotes(output.name()) + " is declared with another shape than " +
                                 to_string(type) + ", which it has");
      }
      declared.type = type;
      result_.outputs.push_back(std::move(declared));
    }
    return {};
  }

  const Document& document_;
  const OperatorRegistry& catalog_;
  const ImportOptions& options_;
  ImportedModel result_;
  SymbolFlow flow_;
  NodeContext::Sizes sizes_ = NodeContext::Sizes::all;  ///< For the node that is read.
  std::vector<bool> follows_;                           ///< By graph node: it may follow from symbolic extents.
  std::vector<NodeId> own_constants_;                   ///< That the node which is read was the first to ask for.
  std::map<int, TensorType> hints_;
  NodeId first_unowned_ = 0;
  std::map<int, std::vector<TensorType>> computed_types_;  ///< Of nodes with free extents, by document node.
  std::map<std::string, int> carried_functions_;           ///< What carried nodes compute -> the first one that does.
};

}  // namespace

Expected<ImportedModel> import_document(const Document& document, const OperatorRegistry& registry,
                                        const ImportOptions& options) {
  return Importer(document, registry, options).run();
}

std::optional<Shape> declared_shape(const onnx::TypeProto& type) {
  if (!type.has_tensor_type() || !type.tensor_type().has_shape()) return std::nullopt;
  Shape shape;
  for (const auto& extent : type.tensor_type().shape().dim()) {
    if (!extent.has_dim_value() || extent.dim_value() < 0) return std::nullopt;
    shape.push_back(extent.dim_value());
  }
  return shape;
}

}  // namespace taso
