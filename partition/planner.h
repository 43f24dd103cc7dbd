/// Plans of least cost for a graph on a mesh of devices: how each operator is cut, and where each value is kept.
///
/// The problem (partition/partition_problem.h). A decision per operator node: its configuration. A decision per value
/// with several readers: the placement in which it is kept, made from what its operator makes once, however many read
/// it. Costs: what the largest piece takes to compute; what moves from made to kept, and from kept to read (of a value
/// with one reader, from made to read). All are seconds, and are added: nothing overlaps. Inputs of the graph and what
/// depends on constants alone are where they are needed at no cost; nodes that are carried read and make everything on
/// the first device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "partition/mesh.h"
#include "partition/node_configurations.h"
#include "partition/piece_costs.h"
#include "partition/solve_exact.h"
#include "support/status.h"
#include "support/stop_signal.h"

namespace taso {

/// An input of the graph, and the output that is its value in the next run: a weight and the updated one, a cache of
/// keys and values.
struct StatePair {
  Value input;   ///< Of an input or a constant of the graph.
  Value output;  ///< Made by an operator, of the same type.
};

struct PlannerOptions {
  ConfigurationOptions configurations;
  ExactOptions solver;
  PieceCost cost;                ///< Empty: roofline. In another unit than seconds, the mesh is that of in_unit().
  std::optional<double> memory;  ///< Bytes that a device has; nothing: plans do not keep to it.
  std::vector<StatePair> state;
  StopSignal stop;  ///< Once raised, what was not looked at repeats, and the plan that is found is the result.
  /// What the first mesh axes are used for, of nodes where that is decided (ConfigurationOptions::decided).
  std::map<NodeId, std::vector<AxisUse>> decided = {};
};

/// What the plan does with one operator.
struct PlannedNode {
  NodeId node = 0;
  NodeConfiguration configuration;
  double compute_seconds = 0;
  double memory = 0;  ///< Bytes that the device with most holds while it runs.
};

/// What devices store of a weight.
struct StoredWeight {
  Value value;
  std::vector<NodeId> readers;
  std::size_t parts = 0;  ///< In how many different ways it is cut by its readers.
  double bytes = 0;       ///< Of the device that stores most of it.
};

/// One movement of a value.
struct PlannedTransfer {
  Value value;
  std::optional<NodeId> reader;  ///< Nothing: from where it is made to where it is kept.
  Transfer transfer;
};

/// Which of the placements that its maker makes or its readers read a value with several readers is kept in.
struct KeptAs {
  enum class Kind : std::uint8_t {
    made,        ///< As its operator makes it.
    read,        ///< As an operator reads it.
    everywhere,  ///< All of it on every device.
  };
  Kind kind = Kind::made;
  NodeId reader = 0;        ///< Of read.
  std::size_t operand = 0;  ///< Of read.
  /// As that operator would make or read it, if it used the mesh like this; nothing: as the plan has it.
  std::optional<std::vector<AxisUse>> axes;
};

struct PartitionPlan {
  Mesh mesh;
  std::vector<PlannedNode> nodes;          ///< In topological order.
  std::vector<PlannedTransfer> transfers;  ///< Those that move something, in the order of the nodes that make.
  std::map<Value, Placement> kept;         ///< Of values with several readers.
  std::map<Value, KeptAs> kept_as;         ///< Of those that operators make.
  double seconds = 0;                      ///< Of computing and moving.
  double compute_seconds = 0, transfer_seconds = 0;
  std::optional<double> step_seconds = {};  ///< What ranks would take (session/step_time.h); nothing: it is not known.
  double transfer_bytes = 0;                ///< Payload received, all devices together.
  double weight_bytes = 0;                  ///< Of the device that holds most of the weights.
  std::vector<StoredWeight> weights;
  double memory = 0;  ///< Bytes of the device that holds most, while `memory_node` runs.
  NodeId memory_node = 0;
  double lower_bound = 0;                              ///< No plan (that keeps to the memory) takes less.
  bool exact = true;                                   ///< No plan of the configurations that were made takes less.
  bool complete = true;                                ///< All configurations were made.
  bool stopped = false;                                ///< By PlannerOptions::stop, somewhere on the way.
  std::vector<std::uint32_t> choice;                   ///< As the planner numbers decisions and ways.
  std::vector<std::pair<std::size_t, double>> prices;  ///< Of a byte while an operator (by its place) runs, as found.
  EliminationOrder order;
  std::size_t decisions = 0, ways = 0;
};

/// A restriction of what a node may do. A node for which nothing is allowed repeats.
using ConfigurationFilter = std::function<bool(NodeId, const NodeConfiguration&)>;

/// What else a node could do.
struct PlanAlternative {
  NodeId node = 0;
  std::size_t equal = 1;  ///< Nodes that apply the same operator to the same types and are cut as it is; the first one.
  /// The best plan in which it is spread in another way (at the prices of memory of the plan), without what memory that
  /// takes unless there is a limit; none if it has no other.
  std::optional<PartitionPlan> plan;
  NodeConfiguration configuration;  ///< Of the node in that plan.
};

struct PreparedNode;
class PlanProblem;

/// What planners of several graphs share: equal applications are prepared once. Of planners with the same mesh,
/// strategies and options. Not for several threads at once.
using PreparedNodes = std::map<std::string, std::shared_ptr<const PreparedNode>>;

/// A graph on a mesh, prepared for several plans.
class Planner {
 public:
  /// All are referred to. `shared`: what was prepared before is used, and what is prepared is added.
  Planner(const Graph& graph, const Mesh& mesh, StrategyTable& strategies, PlannerOptions options,
          PreparedNodes* shared = nullptr);
  ~Planner();

  /// The plan of least cost that keeps to the memory. not_proved where none was found to, with what is needed at least;
  /// bad_input where state is none; and what PieceCost fails with.
  [[nodiscard]] Expected<PartitionPlan> plan();
  /// The plan of least cost among the configurations for which `allowed` holds, whatever memory it takes. not_proved
  /// where none was found: what is allowed reads parts of sums that nobody is allowed to make. What PieceCost fails
  /// with.
  [[nodiscard]] Expected<PartitionPlan> plan(const ConfigurationFilter& allowed);
  /// What the next best ways would cost, of all nodes that are cut; as many as there is time for. `plan` is that of
  /// plan() just before.
  [[nodiscard]] std::vector<PlanAlternative> alternatives(const PartitionPlan& plan);

  [[nodiscard]] const std::vector<NodeConfiguration>& configurations(NodeId id) const;

 private:
  [[nodiscard]] Status prepare(NodeId id, PreparedNodes& equal);
  [[nodiscard]] std::optional<Error> unfit_state() const;
  [[nodiscard]] Error unfit(const std::string& need, bool proved, bool stopped) const;
  [[nodiscard]] ExactOptions solver_for(const PlanProblem& problem, bool& stopped) const;
  void describe(const PlanProblem& problem, const PartitionSolution& solution, PartitionPlan& plan) const;

  const Graph& graph_;
  const Mesh& mesh_;
  StrategyTable& strategies_;
  PlannerOptions options_;
  std::map<NodeId, std::shared_ptr<const PreparedNode>> prepared_;
  std::unique_ptr<PlanProblem> whole_;  ///< With all configurations; once made.
  std::optional<Error> problem_;        ///< Why there is no plan.
  bool complete_ = true, stopped_ = false;
};

}  // namespace taso
