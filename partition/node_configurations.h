/// The ways in which an operator may be spread over a mesh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "partition/mesh.h"
#include "partition/operator_piece.h"
#include "partition/placement.h"

namespace taso {

/// What the devices along one mesh axis do differently.
struct AxisUse {
  enum class Kind : std::uint8_t {
    repeat,   ///< Nothing: all compute the same.
    cut,      ///< Each takes a piece of the range of a variable.
    partial,  ///< Each computes the same of partial operands, and has a partial result.
  };
  Kind kind = Kind::repeat;
  std::string variable;             ///< Of a cut: PieceCut::name.
  std::vector<std::size_t> inputs;  ///< Of partial: those that are.
  std::string reducer;              ///< Of partial, and of a cut whose pieces are combined.
  auto operator<=>(const AxisUse&) const = default;
};

/// What every operator of a graph uses each mesh axis for.
using PlannedUses = std::map<NodeId, std::vector<AxisUse>>;

/// One way to spread a node: what each mesh axis is used for, and what follows.
struct NodeConfiguration {
  std::vector<AxisUse> axes;
  std::vector<Placement> reads;  ///< Per input: what devices need.
  std::vector<Placement> makes;  ///< Per output: what they have then.
  OperatorPiece largest;         ///< The piece of the device that has most to do.
  /// "b@-4 | repeat": per mesh axis.
  [[nodiscard]] std::string to_string() const;
};

struct ConfigurationOptions {
  /// More configurations of a node are not made: then those with passages of partial results are left out, and then
  /// the last ones.
  std::size_t most = 4096;
  /// What the first mesh axes are used for, where that is decided: only such configurations are made. They are uses of
  /// a configuration on those axes alone.
  std::vector<AxisUse> decided = {};
};

struct NodeConfigurations {
  std::vector<NodeConfiguration> list;
  bool complete = true;  ///< None was left out for their number.
};

/// The configurations of an operator node all of whose types are known; the first one repeats along every axis that is
/// not decided. Every piece
/// is reached by strategies of the table, whose conditions were checked. In a fixed order.
[[nodiscard]] NodeConfigurations configurations_of(const Graph& graph, NodeId id, const Mesh& mesh,
                                                   StrategyTable& strategies, const ConfigurationOptions& options = {});

/// The configuration of an operator node all of whose types are known (TASO_CHECK) whose mesh axes are used like this.
/// bad_input says why there is none: another number of axes than the mesh has, a variable that no strategy of the
/// table cuts or whose pieces are combined otherwise, partial operands that the operator does not pass on, results that
/// are partial in two ways, conditions that do not hold.
[[nodiscard]] Expected<NodeConfiguration> configuration_of(const Graph& graph, NodeId id, const Mesh& mesh,
                                                           const std::vector<AxisUse>& axes, StrategyTable& strategies);

/// A variable that a configuration cuts, and where: the points strictly between the ends of its range at which a piece
/// ends and the next one begins.
struct CutPoints {
  std::string variable;  ///< PieceCut::name.
  std::int64_t extent = 0;
  std::vector<std::int64_t> points;
  bool operator==(const CutPoints&) const = default;
};

/// Those of an operator node all of whose types are known (TASO_CHECK) whose mesh axes are used like this, by name of
/// the variable. What several mesh axes cut is cut into as many pieces as their product.
[[nodiscard]] std::vector<CutPoints> cut_points(const Graph& graph, NodeId id, const Mesh& mesh,
                                                const std::vector<AxisUse>& axes, StrategyTable& strategies);

/// The piece of every device of a node whose axes are used like this. Fails where a piece cannot be made.
[[nodiscard]] Expected<std::vector<OperatorPiece>> pieces_of(const Graph& graph, NodeId id, const Mesh& mesh,
                                                             const std::vector<AxisUse>& axes,
                                                             StrategyTable& strategies);

}  // namespace taso
