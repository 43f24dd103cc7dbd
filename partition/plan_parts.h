/// Parts of the values of a graph, and the pieces of its operators that a plan has devices compute. Private to the
/// folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "partition/mesh.h"
#include "partition/node_configurations.h"
#include "partition/operator_piece.h"
#include "support/status.h"

namespace taso {

/// Of a device, along some mesh axes.
using Place = std::vector<std::int64_t>;

/// A part of a value.
struct Part {
  Value value;
  IndexBox box;
  std::string reducer;            ///< Empty: all of it, else...
  std::vector<std::size_t> axes;  ///< ...the mesh axes, ascending, along which results are combined,
  std::set<Place> summands;       ///< and those that are in it, by their places along these axes.
  auto operator<=>(const Part&) const = default;
};

/// All of a value, whose box is empty if its type is not known.
[[nodiscard]] Part whole_part(const Graph& graph, Value value);

/// A part of a sum with all summands along more mesh axes named. `axes` are those of the part and others, ascending.
[[nodiscard]] Part spread(const Part& part, const std::vector<std::size_t>& axes, const Mesh& mesh);

/// The same part, without the axes along which all summands are there.
[[nodiscard]] Part simplified(Part part, const Mesh& mesh);

/// A piece of an operator, and which summand it makes.
struct Piece {
  NodeId node = 0;
  OperatorPiece piece;
  std::vector<std::size_t> operands;  ///< Those that are given: none without elements, of an associative operator.
  Place place;                        ///< Of a device that has it, along all mesh axes.
  const std::vector<AxisUse>* axes = nullptr;

  /// The mesh axes along which its results are combined.
  [[nodiscard]] std::vector<std::size_t> combined() const;
  /// How; empty if they are not.
  [[nodiscard]] std::string reducer() const;
  /// What it reads of an operand of the node, by its number.
  [[nodiscard]] Part reads(const Graph& graph, std::size_t operand) const;
  /// What it makes of an output of the node. A summand even where it is the only one (simplified).
  [[nodiscard]] Part makes(std::uint32_t output) const;
};

/// The pieces of all devices, of all operators that do not depend on weights alone: in topological order of the
/// operators, and of the devices from the first one on. They refer to `uses`. not_proved names the operator that
/// cannot be cut as the uses say, by proved strategies whose conditions hold at its shapes, or of which they say
/// nothing.
[[nodiscard]] Expected<std::vector<Piece>> plan_pieces(const Graph& graph, const Mesh& mesh, const PlannedUses& uses,
                                                       StrategyTable& strategies);

/// An operator with the types of what it reads, for messages: "relu(f32[4]) = 7".
[[nodiscard]] std::string describe(const Graph& graph, NodeId id);

}  // namespace taso
