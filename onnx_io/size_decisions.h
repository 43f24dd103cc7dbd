/// What an import at one size of the symbolic extents decided by sizes: whoever takes the model at all sizes must show
/// that it would have been decided alike at each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/attributes.h"
#include "graph/graph.h"

namespace taso {

/// An extent of what a carried node computes: a number, one of an input's, or one that depends on elements.
struct StatedExtent {
  std::optional<std::int64_t> number;
  std::optional<std::pair<std::size_t, std::size_t>> of_input;  ///< Position among the graph node's inputs, and axis.
  [[nodiscard]] bool open() const { return !number && !of_input; }
  bool operator==(const StatedExtent&) const = default;
};

/// How the extents of a carried node's first output (`stated`: of all of them) follow from those of its inputs, as far
/// as the importer knows.
struct CarriedShape {
  enum class Rule : std::uint8_t {
    unknown,     ///< Nothing is known but the numbers at these sizes.
    same,        ///< Those of input `input`, but at the axes `changed`, of which nothing is known.
    broadcast,   ///< Those that the inputs have in common.
    polynomial,  ///< Sums and products of extents of the inputs and of numbers, the same at all sizes.
    listed,      ///< Integers of the model, `extents`: as a list that it reads has them.
    expanded,    ///< Those that input `input` and the integers `extents` have in common.
    stated,      ///< What `stated` says of them, one by one.
    op           ///< Those of operator `op` with `attributes` on `operands`.
  };
  Rule rule = Rule::unknown;
  std::size_t input = 0;  ///< Position among the graph node's inputs.
  std::set<std::size_t> changed;
  std::string op;
  Attributes attributes;
  std::vector<std::pair<std::size_t, ElementType>> operands;  ///< Input, and the element type that stands for its own.
  std::vector<std::size_t> extents;                           ///< Positions among SizeDecisions::integers.
  std::vector<std::vector<StatedExtent>> stated = {};         ///< By output, and axis.

  /// Whether two samples of one node have the same rule, numbers apart.
  [[nodiscard]] bool alike(const CarriedShape& other) const {
    return rule == other.rule && input == other.input && changed == other.changed && op == other.op &&
           operands == other.operands && extents == other.extents && stated == other.stated;
  }
};

/// Extents, counted from the end (1 is the last), that are equal and more than 1 at these sizes: the model exists only
/// where they are equal or, if the ONNX operator that reads both broadcasts, one of them is 1.
struct EqualExtents {
  NodeId reader = 0;  ///< A node of what the operator became.
  Value a, b;
  std::optional<std::size_t> integer;  ///< Instead of an extent of b: a position among SizeDecisions::integers.
  std::size_t axis = 1;
  bool broadcast = false;
  bool operator==(const EqualExtents&) const = default;
};

/// An integer of the model that follows from extents: one of them, a number, or what is computed from earlier ones.
struct SymbolicInteger {
  enum class Kind : std::uint8_t { extent, number, add, subtract, multiply, divide };
  Kind kind = Kind::number;
  Value tensor;  ///< Kind extent: of its axis `axis`.
  std::size_t axis = 0;
  std::size_t a = 0, b = 0;  ///< Operands: positions among the integers.
  std::int64_t value = 0;    ///< At these sizes.
  /// Whether the file computes it, so that numbers of the graph may be made of it. Others only say what extents carried
  /// nodes have.
  bool computed = true;
  std::set<std::string> makers = {};  ///< First outputs of the nodes that compute it, or ask for it.
  /// Whether it is made in the same way as at other sizes.
  [[nodiscard]] bool alike(const SymbolicInteger& other) const {
    return kind == other.kind && tensor == other.tensor && axis == other.axis && a == other.a && b == other.b &&
           computed == other.computed && (kind != Kind::number || value == other.value);
  }
};

/// What the importer made of a node of the file, and all that this may depend on.
struct ReadNode {
  NodeId begin = 0, end = 0;           ///< Its graph nodes, and constants that it was the first to ask for; maybe none.
  std::vector<Value> values;           ///< What it reads, where its extents are known, and is no constant.
  std::vector<std::size_t> integers;   ///< Positions among SizeDecisions::integers, of those in lists that it reads.
  std::map<std::string, Value> makes;  ///< Its outputs, by name.
};

/// An extent that is a symbol of its own, as if a graph input had it (ImportOptions::free_extents).
struct FreeExtent {
  std::string symbol;  ///< Its name, which no other symbol has.
  std::string tensor;  ///< The output of a carried node that has it,
  Value value;         ///< which is this one,
  std::size_t axis = 0;
  std::int64_t more = 0;  ///< At these sizes: what was added to what the node gives it.
  /// It depends on elements, and there may be none. Others are at least 1 in models that have no such extents.
  bool open = false;
};

struct SizeDecisions {
  /// The graph with all that was imported, whether outputs need it or not: extents of integers are of its values. Null:
  /// the model's graph.
  std::shared_ptr<const Graph> imported;
  std::vector<SymbolicInteger> integers;  ///< Operands before what is computed from them.
  std::vector<std::size_t> lengths;       ///< Those of the integers that say how long a list is: not negative.
  std::vector<ReadNode> readings;         ///< In the order of their graph nodes.
  std::vector<FreeExtent> free;
  /// Extents that depend on elements and are not free (ImportOptions::free_extents): tensors that have such ones are of
  /// unknown shape.
  std::map<std::string, std::set<std::size_t>> open;
  std::map<NodeId, CarriedShape> carried;
  std::vector<EqualExtents> equal;
  /// Nodes that became another name of their input, maybe because of extents: positions among the readings.
  std::vector<std::size_t> renamed;
  /// Nodes that round extents as is right for the image that they read (pads, ceilings), from its third axis on.
  std::map<NodeId, Value> rounded;
  /// Slices that take every so many places along some axes: how many these are is known of extents that are numbers.
  std::map<NodeId, std::set<std::size_t>> strided;
  /// Nodes that do not exist where their windows do not fit into what they read.
  std::set<NodeId> windows;
  /// Reshapes that copy an extent where their list has 0.
  std::set<NodeId> copying;

  /// The reading that a graph node came of; null where none is known.
  [[nodiscard]] const ReadNode* reading_of(NodeId id) const;
};

/// The rule of a node from what its handler makes of stand-ins (`places`: which input each is): another name for one of
/// them, or one operator on them.
[[nodiscard]] CarriedShape shape_of_one_operator(const Graph& graph, const std::vector<std::optional<Value>>& outputs,
                                                 const std::map<NodeId, std::size_t>& places);
/// Notes the extents of what one operator reads that are equal: one that broadcasts, or concatenates along an axis.
void note_equal_extents(const Graph& graph, NodeId reader, const std::vector<Value>& values,
                        std::optional<std::int64_t> along, std::vector<EqualExtents>& equal);

}  // namespace taso
