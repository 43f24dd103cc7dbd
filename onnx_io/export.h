/// Graph nodes to ONNX nodes. Internal to onnx_io: includes protobuf.
///
/// What moves elements several times in a row is joined first (onnx_io/joined_moves.h). Then the graph is covered from
/// its outputs backwards. A node whose expansion (onnx_io/import.h) is unchanged goes back as the original NodeProto; a
/// weight-only value becomes an initializer; any other node is lowered by its row of the export table. Only then are
/// names given: graph inputs and outputs and what subgraphs capture keep theirs, original nodes keep their outputs'
/// names, a new value takes the name that its original consumers know it by, or a fresh one.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "graph/graph.h"
#include "graph/size_arithmetic.h"
#include "onnx_io/builder.h"
#include "onnx_io/device_annotations.h"
#include "onnx_io/import.h"
#include "onnx_io/symbolic_constants.h"

namespace taso {

class MapWriter;  // onnx_io/mapped.h

/// The version of its operators at which a domain is imported that the model did not have.
inline constexpr std::int64_t version_of_new_domains = 1;

/// A tensor that a new ONNX node reads or writes, before it has a name.
struct TensorRef {
  enum class Kind : std::uint8_t {
    absent,     ///< An optional input that is not given.
    value,      ///< `value` of the graph.
    temporary,  ///< Temporary `index` of the graph node being lowered.
    constant,   ///< New small constant `index`.
  };
  Kind kind = Kind::absent;
  Value value;
  std::size_t index = 0;
};

/// An ONNX node to be written.
struct NewNode {
  std::string op_type;
  std::vector<TensorRef> inputs, outputs;
  std::vector<OnnxAttribute> attributes;
  NodeId from = 0;     ///< The graph node it stands for.
  std::string domain;  ///< Empty: ONNX's own.
};

/// Integers of a graph for all sizes: their arithmetic, and constants that hold such.
struct SymbolicIntegers {
  const SampledSizes* sizes = nullptr;
  SymbolicConstants* constants = nullptr;
};

/// What may read an output of a graph node that is to be written.
struct OutputUse {
  bool read = false;
  /// If its one reader is a reshape that only takes the first axis of extent 1 away: what that makes. The writer of the
  /// node may make it instead (LoweringContext::take_over).
  std::optional<Value> without_first_axis;
};

/// One graph node on its way to ONNX nodes: what the handlers of the export table see.
class LoweringContext {
 public:
  /// `symbolic`: what the graph's integers are; null: numbers.
  LoweringContext(const Graph& graph, NodeId id, std::int64_t opset, const MapWriter& maps,
                  const SymbolicIntegers* symbolic, std::vector<std::shared_ptr<const ConstantData>>& constants,
                  std::size_t& temporaries)
      : graph_(&graph),
        id_(id),
        opset_(opset),
        maps_(&maps),
        symbolic_(symbolic),
        constants_(&constants),
        temporaries_(&temporaries) {}

  [[nodiscard]] NodeId id() const { return id_; }
  [[nodiscard]] const Node& node() const { return graph_->node(id_); }
  [[nodiscard]] const Attributes& attributes() const { return node().attributes; }
  [[nodiscard]] std::int64_t opset() const { return opset_; }
  [[nodiscard]] const Shape& shape(std::size_t i) const { return graph_->type(node().inputs[i]).shape; }
  [[nodiscard]] const TensorType& type(Value value) const { return graph_->type(value); }
  /// The type of a value; of a graph for all sizes, its type at the first sample.
  [[nodiscard]] TensorType type_at_a_sample(Value value) const;
  /// Whether a value follows from constants alone, and its shape from no size.
  [[nodiscard]] bool is_constant(Value value) const {
    return graph_->node(value.node).weight_only && are_numbers(graph_->type(value).shape);
  }
  /// The number that a value is, if it is a constant of one real number.
  [[nodiscard]] std::optional<double> number(Value value) const;
  /// Whether input `i` is made to be `number` everywhere, by `fill`.
  [[nodiscard]] bool is_filled_with(std::size_t i, double number) const {
    const Node& producer = graph_->node(node().inputs[i].node);
    return producer.is_op("fill") && producer.attributes.real("value") == number;
  }
  [[nodiscard]] const Shape& result_shape() const { return node().outputs[0].shape; }
  [[nodiscard]] std::int64_t rank(std::size_t i) const { return static_cast<std::int64_t>(shape(i).size()); }
  /// An attribute axis, counted from the front of input `i`.
  [[nodiscard]] std::int64_t axis(std::size_t i) const { return attributes().integer("axis") + rank(i); }

  /// The sum of integers of the graph, which may be names of sizes; fails if it is no size.
  [[nodiscard]] std::int64_t sum(std::int64_t a, std::int64_t b);
  [[nodiscard]] bool is_number(std::int64_t size) const {
    return symbolic_ == nullptr || symbolic_->sizes->is_number(size);
  }
  [[nodiscard]] bool are_numbers(const Shape& list) const;

  /// The uses of the node's outputs; of an operator without a row that `asks_for_uses` in the export table: none.
  [[nodiscard]] const std::vector<OutputUse>& uses() const { return uses_; }
  void set_uses(std::vector<OutputUse> uses) { uses_ = std::move(uses); }
  /// A value of another node that an emitted node makes: that one is not written.
  [[nodiscard]] TensorRef take_over(Value value) {
    taken_over_.push_back(value.node);
    return of(value);
  }
  [[nodiscard]] const std::vector<NodeId>& taken_over() const { return taken_over_; }
  /// Whether input `i` is zero everywhere, by what it is made of.
  [[nodiscard]] bool is_zero(std::size_t i) const;

  [[nodiscard]] TensorRef in(std::size_t i) { return of(node().inputs[i]); }
  /// What input `i` is a reshape of, if it is one.
  [[nodiscard]] std::optional<Value> reshaped(std::size_t i) const {
    const Node& producer = graph_->node(node().inputs[i].node);
    return producer.is_op("reshape") ? std::optional<Value>(producer.inputs[0]) : std::nullopt;
  }
  /// A value of another node.
  [[nodiscard]] TensorRef read(Value value) const { return of(value); }
  /// Input `i` of an operator with numpy broadcasting: where the input is itself a broadcast, what it broadcasts,
  /// as long as the operands together still have the result's shape.
  [[nodiscard]] std::vector<TensorRef> broadcasting_operands();
  /// If input `i` is the transpose of a constant matrix: that constant.
  [[nodiscard]] std::optional<TensorRef> transposed_constant(std::size_t i);
  [[nodiscard]] TensorRef out(std::uint32_t port = 0) const { return {TensorRef::Kind::value, {id_, port}, 0}; }
  [[nodiscard]] TensorRef temporary() { return {TensorRef::Kind::temporary, {}, (*temporaries_)++}; }
  [[nodiscard]] TensorRef integers(const std::vector<std::int64_t>& values);
  /// A number in the real type of what the node makes; fails if it is beyond its range.
  [[nodiscard]] TensorRef scalar(float value) { return filled({}, value); }
  /// A constant of that shape, all of whose elements are `value`, of the same type.
  [[nodiscard]] TensorRef filled(const Shape& shape, float value);

  /// Appends a node.
  void emit(const std::string& op_type, std::vector<TensorRef> inputs, TensorRef output,
            std::vector<OnnxAttribute> attributes = {}) {
    nodes_.push_back({op_type, std::move(inputs), {output}, std::move(attributes), id_, {}});
  }
  void emit_all(const std::string& op_type, std::vector<TensorRef> inputs, std::vector<TensorRef> outputs,
                std::vector<OnnxAttribute> attributes = {}) {
    nodes_.push_back({op_type, std::move(inputs), std::move(outputs), std::move(attributes), id_, {}});
  }
  void emit(NewNode node) {
    node.from = id_;
    nodes_.push_back(std::move(node));
  }
  /// Applies a scalar function by name; fails if ONNX has none.
  void emit_function(const std::string& function, TensorRef input, TensorRef output);
  /// A node followed by the scalar function `act` of the attributes.
  void emit_activated(const std::string& op_type, std::vector<TensorRef> inputs, std::vector<OnnxAttribute> attributes);

  void fail(const std::string& message) {
    if (!error_) error_ = internal_error("cannot write " + node().op + " as ONNX: " + message);
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  [[nodiscard]] const std::vector<NewNode>& nodes() const { return nodes_; }

 private:
  void emit_tanh_gelu(TensorRef input, TensorRef output);
  [[nodiscard]] static TensorRef of(Value value) { return {TensorRef::Kind::value, value, 0}; }

  const Graph* graph_;
  NodeId id_;
  std::int64_t opset_;
  const MapWriter* maps_;
  const SymbolicIntegers* symbolic_;
  std::vector<std::shared_ptr<const ConstantData>>* constants_;
  std::size_t* temporaries_;
  std::vector<NewNode> nodes_;
  std::vector<OutputUse> uses_;
  std::vector<NodeId> taken_over_;
  std::optional<Error> error_;
};

/// A row of the table: how one operator of ours is written.
struct ExportRow {
  const char* op;
  void (*handler)(LoweringContext&);
  bool asks_for_uses = false;  ///< The handler looks at LoweringContext::uses.
};
[[nodiscard]] const std::vector<ExportRow>& export_rows();
[[nodiscard]] const ExportRow* find_export_row(std::string_view op);

/// An initializer of the model to be written: one of the document, or new.
struct WrittenConstant {
  std::string name;
  int document_index = -1;                   ///< Position among the document's initializers, or -1.
  std::shared_ptr<const ConstantData> data;  ///< New constants only.
};

/// What save() writes into the graph.
struct ExportedGraph {
  std::vector<onnx::NodeProto> nodes;      ///< Producers first.
  std::vector<int> originals;              ///< Per node: the document node whose bytes it has, or -1.
  std::set<std::string> made;              ///< First outputs of nodes that are none of the document's, under any names.
  std::vector<WrittenConstant> constants;  ///< Document initializers first, in their order.
  std::map<std::string, TensorType> types;  ///< Types of the tensors that have names, for value_info.
  /// Of every computed weight, by name, a hash of what it is computed from: equal ones have equal contents.
  std::map<std::string, Hash128> weights;
  std::int64_t verbatim_nodes = 0;
  std::int64_t folded = 0;
  std::int64_t annotated_tensors = 0;
  std::vector<onnx::FunctionProto> functions;  ///< Besides those of the document (onnx_io/functions.h).
  /// Operators that are written by their own name alone, which other programs do not know, and why.
  std::map<std::string, std::string> without_function;
};

/// What is special about an export.
struct ExportMode {
  bool verbatim = true;  ///< See SaveOptions.
  /// False: weights are not computed, and missing from the constants: to see how a graph would be written.
  bool fold = true;
  /// Per node id, nodes that are weight-only, but others at other sizes of symbolic extents: they are not folded. May
  /// be empty.
  std::vector<bool> varying;
  /// Of a graph for all sizes: what its integers are. Null: numbers.
  const SymbolicIntegers* symbolic = nullptr;
  bool in_order_of_ids = false;                    ///< See SaveOptions.
  const DeviceAnnotations* annotations = nullptr;  ///< Null: there are none.
  /// Moves in a row are joined, where the graph is written verbatim and not to be read as it is.
  bool join_moves = true;
};

[[nodiscard]] Expected<ExportedGraph> export_graph(const Document& document, const ImportedModel& imported,
                                                   const Graph& graph, const OperatorRegistry& registry,
                                                   const ExportMode& mode);

/// Whether export_graph will find a form in ONNX for all of `graph`, given that only `nodes` and what they read can be
/// without one (see Model::can_save).
[[nodiscard]] bool can_export(const Document& document, const ImportedModel& imported, const Graph& graph,
                              const OperatorRegistry& registry, const std::vector<NodeId>& nodes);

}  // namespace taso
