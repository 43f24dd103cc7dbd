/// Plans of least cost for a graph on a mesh of devices: how each operator is cut, and where each value is kept.
///
/// The problem (partition/partition_problem.h). A decision per operator node: its configuration. A decision per value
/// with several readers: the placement in which it is kept, made from what its operator makes once, however many read
/// it. Costs: what the largest piece takes to compute; what moves from made to kept, and from kept to read (of a value
/// with one reader, from made to read). All are seconds, and are added: nothing overlaps. Inputs of the graph and what
/// depends on constants alone are where they are needed at no cost; nodes that are carried read and make everything
/// everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "partition/mesh.h"
#include "partition/node_configurations.h"
#include "partition/solve_exact.h"
#include "support/status.h"

namespace taso {

/// Seconds that a device takes for a piece.
using PieceCost = std::function<double(const OperatorPiece&)>;
/// By the rates of the device: arithmetic or traffic of memory, whichever takes longer.
[[nodiscard]] PieceCost roofline(const OperatorRegistry& registry, const DeviceRates& rates);

struct PlannerOptions {
  ConfigurationOptions configurations;
  ExactOptions solver;
  PieceCost cost;  ///< Empty: roofline.
  /// What the first mesh axes are used for, of nodes where that is decided (ConfigurationOptions::decided).
  std::map<NodeId, std::vector<AxisUse>> decided = {};
};

/// What the plan does with one operator.
struct PlannedNode {
  NodeId node = 0;
  NodeConfiguration configuration;
  double compute_seconds = 0;
};

/// One movement of a value.
struct PlannedTransfer {
  Value value;
  std::optional<NodeId> reader;  ///< Nothing: from where it is made to where it is kept.
  Transfer transfer;
};

struct PartitionPlan {
  Mesh mesh;
  std::vector<PlannedNode> nodes;          ///< In topological order.
  std::vector<PlannedTransfer> transfers;  ///< Those that move something, in the order of the nodes that make.
  std::map<Value, Placement> kept;         ///< Of values with several readers.
  double seconds = 0;                      ///< Of computing and moving.
  double compute_seconds = 0, transfer_seconds = 0;
  double transfer_bytes = 0;  ///< Payload received, all devices together.
  double weight_bytes = 0;    ///< Of the device that holds most of the weights.
  double lower_bound = 0;     ///< No plan takes less.
  bool exact = true;          ///< No plan of the configurations that were made takes less.
  bool complete = true;       ///< All configurations were made.
  EliminationOrder order;
  std::size_t decisions = 0, ways = 0;
};

/// A restriction of what a node may do; the first configuration (repeat) always may.
using ConfigurationFilter = std::function<bool(NodeId, const NodeConfiguration&)>;

/// A graph on a mesh, prepared for several plans.
class Planner {
 public:
  /// All are referred to.
  Planner(const Graph& graph, const Mesh& mesh, StrategyTable& strategies, PlannerOptions options);

  /// The plan of least cost among the configurations for which `allowed` holds (empty: all).
  [[nodiscard]] Expected<PartitionPlan> plan(const ConfigurationFilter& allowed = {});

  [[nodiscard]] const std::vector<NodeConfiguration>& configurations(NodeId id) const;

 private:
  struct Prepared;
  class Builder;
  const Graph& graph_;
  const Mesh& mesh_;
  StrategyTable& strategies_;
  PlannerOptions options_;
  std::map<NodeId, std::shared_ptr<const Prepared>> prepared_;
  bool complete_ = true;
};

/// Every operator repeats: as on one device.
[[nodiscard]] ConfigurationFilter only_repeat();
/// Every operator is cut along its first output's first axis by all mesh axes, or repeats, whichever takes less.
[[nodiscard]] ConfigurationFilter only_data_parallel(const Graph& graph);

}  // namespace taso
