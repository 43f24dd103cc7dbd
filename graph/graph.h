/// The graph: a value with stable ids, cheap to copy and to edit.
///
/// Representation. `slots_` maps a NodeId to an immutable node that copies of the graph share; an erased
/// id is a null slot and is never used again within this graph and its copies' common history. Replacing
/// a value makes new nodes for its direct consumers only (same ids, other inputs). All edges point from
/// producer to consumer: the graph is acyclic, which replace_uses' callers guarantee (see graph/rewrite.h).
///
/// Equality of graphs is canonical: ids do not matter, the order of graph inputs and outputs does.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/attributes.h"
#include "graph/constant.h"
#include "graph/tensor_type.h"
#include "support/hash.h"
#include "support/status.h"

namespace taso {

using NodeId = std::uint32_t;

/// One output tensor of one node.
struct Value {
  NodeId node = 0;
  std::uint32_t port = 0;
  auto operator<=>(const Value&) const = default;
};

enum class NodeKind : std::uint8_t {
  input,     ///< A graph input; `name` is its name.
  constant,  ///< A constant tensor; `constant` holds it.
  op,        ///< An application of an operator that a specification defines.
  opaque,    ///< A piece of the user's model that is carried untouched; equal opaque nodes stay separate.
};

/// An immutable node.
struct Node {
  NodeKind kind = NodeKind::op;
  /// Operator name (kind op), "domain::OpType" (opaque), empty otherwise.
  std::string op;
  /// Complete attributes: defaults are filled in (OperatorCatalog::complete).
  Attributes attributes;
  std::vector<Value> inputs;
  std::vector<TensorType> outputs;
  std::shared_ptr<const ConstantData> constant;  ///< Kind constant only.
  std::string name;                              ///< Kind input: the input's name. Kind opaque: a unique key.
  /// Index of the user's original node that this one stands for, or -1. Not part of the graph's identity.
  std::int32_t origin = -1;
  /// In a graph for several devices the one that computes the node (partition/expand.h), so that equal nodes of two
  /// devices stay apart; else -1. Part of the graph's identity. What rules make has none: they are for one device.
  std::int32_t device = -1;
  /// Computed by Graph::add: a constant, or an op all of whose inputs are weight-only, but one that makes reals of
  /// integers and a scale: those stay as they are kept. Costs nothing at run time: it is folded at export.
  bool weight_only = false;
  /// Computed by Graph::add: hash of everything but inputs, origin and weight_only.
  Hash128 label;

  [[nodiscard]] bool is_op(std::string_view op_name) const { return kind == NodeKind::op && op == op_name; }
};

class Graph {
 public:
  /// Appends a node, computing `label` and `weight_only`. Its inputs must exist (TASO_CHECK).
  NodeId add(Node node);
  NodeId add_input(std::string name, TensorType type);
  NodeId add_constant(std::shared_ptr<const ConstantData> constant);
  /// Adds an output of the graph.
  void add_output(Value value) { outputs_.push_back(value); }
  void set_outputs(std::vector<Value> values) { outputs_ = std::move(values); }

  [[nodiscard]] bool contains(NodeId id) const { return id < slots_.size() && slots_[id] != nullptr; }
  [[nodiscard]] const Node& node(NodeId id) const {
    TASO_CHECK(contains(id), "no node " + std::to_string(id));
    return *slots_[id];
  }
  [[nodiscard]] const TensorType& type(Value value) const { return node(value.node).outputs.at(value.port); }
  /// One more than the largest id ever used.
  [[nodiscard]] NodeId id_bound() const { return static_cast<NodeId>(slots_.size()); }
  /// Number of live nodes.
  [[nodiscard]] std::size_t size() const;
  /// Graph inputs in the user's order; they stay even when nothing uses them.
  [[nodiscard]] const std::vector<NodeId>& inputs() const { return inputs_; }
  [[nodiscard]] const std::vector<Value>& outputs() const { return outputs_; }

  /// Makes every consumer of `from`, and every graph output that is `from`, use `to`.
  void replace_uses(Value from, Value to);
  /// Several replacements at once: values named on the left are replaced simultaneously.
  void replace_uses(const std::vector<std::pair<Value, Value>>& replacements);
  /// Replaces a node in place (same id; number and types of outputs equal).
  void replace_node(NodeId id, Node node);
  /// Gives a node other inputs, which must fit its outputs; recomputes its `weight_only` (not that of its consumers).
  void set_inputs(NodeId id, std::vector<Value> inputs);
  /// Erases a node that nothing uses; the caller has made sure of that.
  void erase(NodeId id);
  /// Erases nodes from which no graph output and no opaque node can be reached. Graph inputs stay. An opaque
  /// node stays if it is reachable or `keep_opaque`.
  void remove_dead(bool keep_opaque = true);

  /// Live ids, producers before consumers, deterministic: depth first from the outputs (and then from
  /// opaque nodes), inputs in order; unreachable graph inputs first.
  [[nodiscard]] std::vector<NodeId> topological_order() const;
  /// consumers[id]: (consumer id, input position) of each output use, all ports together, in id order.
  [[nodiscard]] std::vector<std::vector<std::pair<NodeId, std::uint32_t>>> consumers() const;
  /// True if `to` can be reached from `from` along edges (or is it).
  [[nodiscard]] bool reaches(NodeId from, NodeId to) const;

  /// The graph with f32 in place of f16 and bf16, constants with the same numbers: as it is computed where 16 bits are
  /// a way of keeping values only. Ids are the same.
  [[nodiscard]] Graph in_working_types() const;
  /// The real type of fewest digits of any value; nothing where there are no real values.
  [[nodiscard]] std::optional<ElementType> narrowest_type() const;

  /// Canonical hash: of outputs by structure. Equal graphs have equal hashes on every machine.
  [[nodiscard]] Hash128 structural_hash() const;
  /// Exact canonical equality.
  [[nodiscard]] bool equals(const Graph& other) const;
  /// Checks all invariants (ids, types of edges, acyclicity); internal error if one is broken.
  [[nodiscard]] Status validate() const;

 private:
  /// Opaque nodes by name: they count in equality even when no output needs them.
  [[nodiscard]] std::vector<NodeId> opaque_nodes() const;

  std::vector<std::shared_ptr<const Node>> slots_;
  std::vector<NodeId> inputs_;
  std::vector<Value> outputs_;
};

/// The consumers of all nodes of a graph in one array, for many questions about one graph.
class Consumers {
 public:
  /// Of the empty graph.
  Consumers() = default;
  explicit Consumers(const Graph& graph);
  /// One more than the largest id of a node that the graph ever had.
  [[nodiscard]] NodeId id_bound() const { return bound_; }
  /// (consumer id, input position) of each use of an output, all ports together, ascending.
  [[nodiscard]] std::span<const std::pair<NodeId, std::uint32_t>> of(NodeId id) const {
    return {uses_.data() + begin_[id], uses_.data() + begin_[id + 1]};
  }
  /// Memory taken.
  [[nodiscard]] std::size_t bytes() const;

 private:
  NodeId bound_ = 0;
  std::vector<std::uint32_t> begin_;  // Per node id, into `uses_`; one more at the end.
  std::vector<std::pair<NodeId, std::uint32_t>> uses_;
};

/// A readable listing, one node a line: "%3 = relu(%2) : f32[1, 64, 56, 56]".
[[nodiscard]] std::string to_string(const Graph& graph);

/// The kinds of attribute values, in the order of AttributeValue's alternatives.
enum class AttributeKind : std::uint8_t { integer, real, integers, symbol };

/// One declared attribute of an operator.
struct AttributeSignature {
  std::string name;
  AttributeKind kind = AttributeKind::integer;
  std::optional<AttributeValue> default_value;  ///< Empty if the attribute must be given.
};

/// The attributes by which an operator takes a tensor apart along one axis, as its law `coassociative` names them.
struct PieceAttributes {
  std::string sizes;  ///< The list of the extents of the pieces.
  std::string axis;   ///< The axis, counted from the end; empty where it is always the same one.
};

/// What can be said of an operator's applications before their inputs are known.
struct OperatorSignature {
  static constexpr std::size_t unlimited = static_cast<std::size_t>(-1);
  std::size_t min_inputs = 0;
  std::size_t max_inputs = 0;                  ///< `unlimited` for a variadic operator.
  std::vector<AttributeSignature> attributes;  ///< In declared order.
  /// Of an operator without inputs all of whose elements are one real attribute (`fill`): the attributes that are its
  /// shape and that number. A pattern of it matches constants, too. Else empty.
  std::string fill_shape, fill_value;
  bool copies = false;  ///< Every element of the outputs is one of the only input, which holds no indices.
};

/// What the graph layer needs to know of operators; implemented by OperatorRegistry (operators/registry.h).
class OperatorCatalog {
 public:
  virtual ~OperatorCatalog() = default;
  [[nodiscard]] virtual bool defines(std::string_view op) const = 0;
  /// Number of inputs and declared attributes; nullptr if the operator is not defined.
  [[nodiscard]] virtual const OperatorSignature* signature(std::string_view op) const = 0;
  /// `attributes` with defaults filled in and kinds checked; an error names operator and attribute.
  [[nodiscard]] virtual Expected<Attributes> complete(std::string_view op, const Attributes& attributes) const = 0;
  /// Output types, or the numbered constraint that fails. `attributes` are complete.
  [[nodiscard]] virtual Expected<std::vector<TensorType>> infer(std::string_view op, const Attributes& attributes,
                                                                std::span<const TensorType> inputs) const = 0;
  /// Number of outputs for complete attributes.
  [[nodiscard]] virtual std::size_t output_count(std::string_view op, const Attributes& attributes) const = 0;
  /// The law `f(x, y) = f(y, x)` is declared (and proved by taso-verify).
  [[nodiscard]] virtual bool is_commutative(std::string_view op) const = 0;
  /// The operator is a concatenation: `f(f(xs..), ys..) = f(xs.., ys..)` when the attributes are equal.
  [[nodiscard]] virtual bool is_associative(std::string_view op) const = 0;
  /// Of an operator that undoes a concatenation piece by piece (split), so that nested applications flatten: by which
  /// attributes. nullptr for any other.
  [[nodiscard]] virtual const PieceAttributes* pieces(std::string_view op) const = 0;
  /// `name` is a declared scalar function (relu, tanh, ...), usable as an attribute value.
  [[nodiscard]] virtual bool is_function(std::string_view name) const = 0;
  /// The same, and the definition shows that it has a value for every number (log has none for 0): what a variable of a
  /// rule may stand for.
  [[nodiscard]] virtual bool is_total_function(std::string_view name) const = 0;
};

/// What is said of a new operator node besides what it computes.
struct NodePlace {
  std::int32_t origin = -1;                ///< Node::origin.
  std::int32_t device = -1;                ///< Node::device.
  ElementType element = ElementType::f32;  ///< Of an operator without inputs: the real type of what it makes.
};

/// Completes attributes, infers types and adds an operator node.
[[nodiscard]] Expected<NodeId> add_op(Graph& graph, const OperatorCatalog& catalog, std::string_view op,
                                      const Attributes& attributes, std::vector<Value> inputs,
                                      const NodePlace& place = {});
/// The types that the catalog infers; of an operator without inputs, in the given real type.
[[nodiscard]] Expected<std::vector<TensorType>> infer_types(const OperatorCatalog& catalog, std::string_view op,
                                                            const Attributes& attributes,
                                                            std::span<const TensorType> inputs, ElementType element);

}  // namespace taso
