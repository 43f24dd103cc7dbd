/// ONNX nodes to graph nodes. Internal to onnx_io: includes protobuf.
///
/// Each document node becomes one of: nothing (its outputs are other names for existing values), a constant, a few
/// graph nodes (its expansion), or one opaque node. The record of what each became is what lets save() put the original
/// nodes back (onnx_io/export.h).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "onnx_io/carried.h"
#include "onnx_io/document.h"
#include "onnx_io/size_decisions.h"
#include "operators/node_maps.h"

namespace taso {

/// What a document node became.
struct NodeImport {
  enum class Kind : std::uint8_t {
    alias,      ///< Outputs are inputs under other names (Identity, inference Dropout, reshape to the same shape).
    constant,   ///< The output is a constant (Constant, ConstantOfShape, integer arithmetic on constants).
    expansion,  ///< Graph nodes; outputs are ports of one of them, the root.
    opaque,     ///< One opaque graph node.
  };
  Kind kind = Kind::opaque;
  /// Per input of the node (for opaque nodes, captured names follow): its value, or nothing if it is absent or was read
  /// as a constant while importing.
  std::vector<std::optional<Value>> inputs;
  /// Per output: its value, or nothing if it is not computed.
  std::vector<std::optional<Value>> outputs;
};

/// A tensor of the document that is constant.
struct ConstantTensor {
  std::shared_ptr<const ConstantData> data;
  /// The initializer, Constant or ConstantOfShape itself, as opposed to a computed or renamed constant.
  bool original = false;
};

/// The document as a graph, with the correspondence of both.
struct ImportedModel {
  Graph graph;
  std::vector<NodeImport> nodes;                         ///< Per document node.
  std::vector<std::optional<Value>> values;              ///< Per document tensor, where it has one.
  std::vector<std::optional<ConstantTensor>> constants;  ///< Per document tensor.
  std::vector<TensorDeclaration> inputs, outputs;
  std::vector<Symbol> symbols;           ///< Of the inputs.
  std::map<int, CarriedRecord> carried;  ///< By document node; those that no output needs, too.
  std::vector<IllTypedNode> ill_typed;
  /// Outputs of carried nodes of which file and ONNX's schemas say different things, in words: neither is believed.
  std::vector<std::string> contradictions;
  SizeDecisions decisions;
};

[[nodiscard]] Expected<ImportedModel> import_document(const Document& document, const OperatorRegistry& registry,
                                                      const ImportOptions& options);

/// Extents of a declared shape that are numbers; nothing if one is not, or if no shape is declared.
[[nodiscard]] std::optional<Shape> declared_shape(const onnx::TypeProto& type);

/// One document node on its way into the graph: what the handlers of the table see.
///
/// The first problem sticks: after fail() (the file is wrong) or decline() (the node is carried) every further call
/// does nothing, so that handlers read straight through.
class NodeContext {
 public:
  /// One input: its type, its constant contents if they are known, and its value (made on demand).
  struct Input {
    bool present = false;
    TensorType type;
    std::shared_ptr<const ConstantData> constant;
    std::optional<Value> value;
    int tensor = -1;
    /// It is constant at the sizes given, and some of its elements, or its shape, follow from symbolic extents.
    bool from_symbols = false;
  };

  NodeContext(const Document& document, int node, const OperatorCatalog& catalog, Graph& graph,
              std::vector<Input> inputs, bool pieces = false)
      : document_(&document),
        node_(node),
        catalog_(&catalog),
        graph_(&graph),
        inputs_(std::move(inputs)),
        pieces_(pieces),
        outputs_(static_cast<std::size_t>(document.node(node).output_size())),
        read_as_value_(inputs_.size(), false) {}

  /// What is known of the sizes at which the model is imported.
  enum class Sizes : std::uint8_t {
    all,      ///< They are the model's own.
    some,     ///< Those of symbolic extents: what is done must be right at all sizes.
    rounded,  ///< Besides, extents that are not of a batch may have been rounded.
  };
  [[nodiscard]] bool symbolic() const { return sizes_ != Sizes::all; }
  /// Elements, or the shape, of something constant that it reads follow from symbolic extents.
  [[nodiscard]] bool reads_extents() const {
    return std::ranges::any_of(inputs_, [](const Input& input) { return input.from_symbols; });
  }
  [[nodiscard]] bool may_be_rounded() const { return sizes_ == Sizes::rounded; }
  void set_sizes(Sizes sizes) { sizes_ = sizes; }
  /// The same node with other inputs.
  [[nodiscard]] NodeContext with_inputs(std::vector<Input> inputs) const {
    return {*document_, node_, *catalog_, *graph_, std::move(inputs), pieces_};
  }
  /// As ImportOptions has it.
  [[nodiscard]] bool of_pieces() const { return pieces_; }
  /// Whether a tensor of this shape is not understood: it has no elements.
  [[nodiscard]] bool is_empty(const Shape& shape) const { return !pieces_ && volume(shape) == 0; }

  [[nodiscard]] std::int64_t opset() const { return document_->opset(); }
  /// Version of the node's domain.
  [[nodiscard]] std::int64_t version() const { return document_->version(domain_of(proto())); }
  [[nodiscard]] std::size_t input_count() const { return inputs_.size(); }
  [[nodiscard]] bool has_input(std::size_t i) const { return i < inputs_.size() && inputs_[i].present; }
  [[nodiscard]] const TensorType& type(std::size_t i) const { return inputs_[i].type; }
  [[nodiscard]] const Shape& shape(std::size_t i) const { return inputs_[i].type.shape; }
  [[nodiscard]] std::int64_t rank(std::size_t i) const { return static_cast<std::int64_t>(shape(i).size()); }
  [[nodiscard]] bool is_constant(std::size_t i) const { return has_input(i) && inputs_[i].constant != nullptr; }
  /// The input is a constant of which only type and shape are known.
  [[nodiscard]] bool is_only_shape(std::size_t i) const;
  /// The number of an initializer's element type if ONNX, as known here, has no such type; else empty.
  [[nodiscard]] std::string unknown_type(std::size_t i) const;
  /// The graph value of an input.
  Value value(std::size_t i);
  /// Contents of a constant input of integers; declines if it is not constant, fails if it is of another type.
  std::vector<std::int64_t> integers(std::size_t i);
  /// The one element of a constant input of a real type; declines if it is not constant.
  double real(std::size_t i);
  /// All elements of a constant input of a real type; declines if it is not constant.
  std::vector<double> reals(std::size_t i);

  [[nodiscard]] std::size_t output_count() const { return outputs_.size(); }
  /// The output has a name: something may read it.
  [[nodiscard]] bool wants_output(std::size_t i) const {
    return i < outputs_.size() && !document_->node(node_).output(static_cast<int>(i)).empty();
  }
  /// The output is read by something.
  [[nodiscard]] bool uses_output(std::size_t i) const;

  [[nodiscard]] bool has_attribute(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise);
  double real(std::string_view name, float otherwise);
  std::string text(std::string_view name, const std::string& otherwise);
  std::vector<std::int64_t> integer_list(std::string_view name, std::vector<std::int64_t> otherwise);
  /// An attribute of type STRINGS; empty if it is absent.
  std::vector<std::string> text_list(std::string_view name);
  /// An attribute of type FLOATS; empty if it is absent.
  std::vector<double> real_list(std::string_view name);
  /// The attribute has no influence on the outputs that are used.
  void ignore(std::string_view name) { seen_.insert(std::string(name)); }

  /// Adds an operator node; its first output. Declines if it is ill-typed, which is a fault of the file or of the
  /// handler.
  Value op(std::string_view name, std::vector<Value> inputs, const Attributes& attributes = {});
  /// `value` under another shape of the same volume (itself if the shape is the same).
  Value reshape(Value value, const Shape& shape);
  /// `value` broadcast to a shape; leading extents of 1 of what follows from constants alone are stripped first. Fails
  /// if it does not broadcast.
  Value broadcast(Value value, const Shape& shape);
  Value constant(std::shared_ptr<const ConstantData> data) { return {graph_->add_constant(std::move(data)), 0}; }
  /// A constant of the node's real type.
  Value reals(const Shape& shape, std::span<const float> numbers);
  /// Whether a constant mask that a value follows from has elements that are infinite or NaN.
  [[nodiscard]] bool follows_from_infinity(Value value) const;
  /// Whether all elements of an input are zero, by what it is made of.
  [[nodiscard]] bool is_zero(std::size_t i) const;
  /// The real type in which the node computes: that of its first input of such; f32 without one.
  [[nodiscard]] ElementType real_type() const;
  /// A number repeated, in the real type. What that type does not have stays exact until weights are computed.
  Value splat(const Shape& shape, float number);
  [[nodiscard]] const Shape& shape_of(Value value) const { return graph_->type(value).shape; }
  [[nodiscard]] std::int64_t rank_of(Value value) const { return static_cast<std::int64_t>(shape_of(value).size()); }
  [[nodiscard]] const Graph& graph() const { return *graph_; }

  void output(std::size_t i, Value value) {
    if (!stopped()) outputs_[i] = value;
  }

  /// `axis` counted from the front; fails if it is outside [-rank, rank).
  std::int64_t axis_from_front(std::int64_t axis, std::int64_t rank);
  /// The numpy broadcast of shapes; fails if there is none.
  Shape common_shape(const std::vector<Shape>& shapes);

  void fail(const std::string& message) {
    if (!stopped()) error_ = document_->error(document_->describe(node_) + ": " + message);
  }
  void decline(const std::string& reason, Obstacle obstacle = Obstacle::form) {
    if (!stopped()) refusal_ = Refusal{reason, obstacle};
  }
  /// Declines as the type of an input is not known.
  void decline_untyped() { decline("the shape of an input is not known before run time", Obstacle::unknown_type); }
  /// Declines as an input must be constant and is not. `what` names it: "its condition".
  void decline_not_constant(std::size_t i, const std::string& what) {
    if (!stopped())
      refusal_ = Refusal{what + (is_only_shape(i) ? " is only a shape: its data is not there" : " is not constant"),
                         Obstacle::not_constant, i};
  }
  void decline_not_constant(std::size_t i) { decline_not_constant(i, "input " + std::to_string(i)); }
  [[nodiscard]] bool stopped() const { return error_.has_value() || refusal_.has_value(); }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  [[nodiscard]] const std::optional<Refusal>& declined() const { return refusal_; }
  /// The node was declined because an operator node that a handler added is ill-typed.
  [[nodiscard]] bool ill_typed() const { return ill_typed_; }
  /// Declines if the node has an attribute that no handler asked for.
  void check_attributes();

  [[nodiscard]] const std::vector<Input>& inputs() const { return inputs_; }
  [[nodiscard]] const std::vector<std::optional<Value>>& outputs() const { return outputs_; }
  [[nodiscard]] bool read_as_value(std::size_t i) const { return read_as_value_[i]; }
  [[nodiscard]] const onnx::NodeProto& proto() const { return document_->node(node_); }

 private:
  const onnx::AttributeProto* attribute(std::string_view name, onnx::AttributeProto::AttributeType type);

  const Document* document_;
  int node_;
  const OperatorCatalog* catalog_;
  Graph* graph_;
  std::vector<Input> inputs_;
  bool pieces_ = false;
  std::vector<std::optional<Value>> outputs_;
  std::vector<bool> read_as_value_;
  Sizes sizes_ = Sizes::all;
  std::set<std::string> seen_;
  std::optional<Error> error_;
  std::optional<Refusal> refusal_;
  bool ill_typed_ = false;
};

/// A row of the table: how one ONNX operator of the default domain is imported.
struct ImportRow {
  const char* op_type;
  int min_inputs;
  int max_inputs;  ///< -1: any number.
  /// Inputs that must be known tensors of one real type; others are read by the handler as it needs. -1: all.
  int float_inputs;
  void (*handler)(NodeContext&);
  /// The operator moves elements without looking at them: a handler's shapes hold for every element type.
  bool moves_elements;
  const char* form;
  const char* conditions;
};

/// The row of an operator, or nullptr.
[[nodiscard]] const ImportRow* find_import_row(std::string_view op_type);
[[nodiscard]] const std::vector<ImportRow>& import_rows();

/// Whether a value is zero everywhere: constants of zeros that are moved.
[[nodiscard]] bool is_made_of_zeros(const Graph& graph, Value value);

/// Types of the outputs of a node that is carried, none or the first ones, and how their extents follow.
struct CarriedTypes {
  std::vector<std::optional<TensorType>> types;
  CarriedShape shape;
};
/// Those that follow from the types of its inputs.
[[nodiscard]] CarriedTypes carried_types(NodeContext& context);
/// Whether carried_types() knows the operator: it works element by element, or about so.
[[nodiscard]] bool has_carried_type(std::string_view op_type);

/// The constant that an operator on integer constants computes, if it is one of the shape arithmetic operators and the
/// result is small.
[[nodiscard]] std::shared_ptr<const ConstantData> fold_integers(NodeContext& context);
/// Whether it is one that compares, chooses or fills, which may read floats.
[[nodiscard]] bool makes_masks(std::string_view op_type);
/// Whether it is one of these operators.
[[nodiscard]] bool computes_constants(std::string_view op_type);
/// The flat index in a tensor of `shape` of the element that broadcasts to position `flat` of `target`.
[[nodiscard]] std::size_t broadcast_index(std::size_t flat, const Shape& target, const Shape& shape);

}  // namespace taso
