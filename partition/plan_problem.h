/// The problem of a plan: decisions and costs of a graph on a mesh (partition/planner.h says which), and what a choice
/// of them means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "partition/mesh.h"
#include "partition/node_configurations.h"
#include "partition/partition_problem.h"
#include "partition/planner.h"

namespace taso {

/// What is the same of equal applications: configurations, and what their largest pieces cost.
struct PreparedNode {
  std::vector<NodeConfiguration> configurations;
  std::vector<double> costs;
  bool complete = true;  ///< All configurations were made.
};

/// Whether an operator of the graph runs, so that a plan says how.
[[nodiscard]] bool is_planned(const Node& node);

/// False where an operand that is supplied (a weight, an input of the graph) is read as a part of a sum, which it is
/// not.
[[nodiscard]] bool reads_what_there_is(const Graph& graph, NodeId id, const NodeConfiguration& configuration);

/// An operand that is a value.
struct ValueReader {
  NodeId node = 0;
  std::size_t input = 0;
};

/// A value of a known type that operators of the plan make, or that is kept from one run to the next.
struct PlannedValue {
  Value value;
  std::int64_t element_bytes = 0;
  bool made = true;                                ///< False: it is there before the first operator.
  bool output = false;                             ///< It is there after the last one.
  std::optional<PartitionProblem::Decision> kept;  ///< Where it is kept, if that is a decision of its own...
  std::vector<const Placement*> placements;        ///< ...and among which placements.
  std::vector<ValueReader> readers;                ///< In topological order.
};

/// A weight, or an input of the graph: a value that is where it is needed at no cost.
struct SuppliedValue {
  Value value;
  std::int64_t element_bytes = 0;
  bool weight = false;
  std::vector<ValueReader> readers;  ///< In topological order, at least one.
  /// Axes along which all elements are alike, because it is a broadcast: one of each is stored.
  std::vector<std::size_t> repeated;
};

class PlanProblem {
 public:
  using Choice = std::vector<std::uint32_t>;
  using Prepared = std::map<NodeId, std::shared_ptr<const PreparedNode>>;

  /// All are referred to. A node has the configurations for which `allowed` holds; if it holds for none, the first one.
  PlanProblem(const Graph& graph, const Mesh& mesh, const Prepared& prepared, const std::vector<StatePair>& state,
              const ConfigurationFilter& allowed);
  PlanProblem(const PlanProblem&) = delete;
  PlanProblem& operator=(const PlanProblem&) = delete;

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] const Mesh& mesh() const { return mesh_; }
  [[nodiscard]] const PartitionProblem& problem() const { return problem_; }
  /// The operators of the plan, in topological order, and the place of each in it.
  [[nodiscard]] const std::vector<NodeId>& order() const { return order_; }
  [[nodiscard]] std::size_t position(NodeId id) const { return nodes_[id].position; }
  [[nodiscard]] PartitionProblem::Decision decision(NodeId id) const { return nodes_[id].decision; }
  [[nodiscard]] std::uint32_t ways(NodeId id) const {
    return static_cast<std::uint32_t>(nodes_[id].configurations.size());
  }
  [[nodiscard]] const NodeConfiguration& configuration(NodeId id, std::uint32_t way) const;
  [[nodiscard]] double cost(NodeId id, std::uint32_t way) const;
  [[nodiscard]] const std::vector<PlannedValue>& values() const { return values_; }
  [[nodiscard]] const std::vector<SuppliedValue>& supplied() const { return supplied_; }
  /// The decision by which a value is where it is, as long as it is alive: of its own, or that of who makes it.
  [[nodiscard]] PartitionProblem::Decision holder(const PlannedValue& value) const {
    return value.kept ? *value.kept : decision(value.value.node);
  }
  [[nodiscard]] const Placement& held(const PlannedValue& value, std::uint32_t way) const;
  [[nodiscard]] const Placement& read(const ValueReader& reader, std::uint32_t way) const {
    return configuration(reader.node, way).reads[reader.input];
  }

  /// The choice in which every operator repeats on all devices, as far as it is allowed to.
  [[nodiscard]] Choice repeated() const;

  /// What a choice does and costs; all but what memory it takes, and how it was found.
  [[nodiscard]] PartitionPlan plan_of(const Choice& choice) const;

 private:
  using Placements = std::vector<const Placement*>;
  struct PlacedNode {
    std::size_t position = 0;
    PartitionProblem::Decision decision = 0;
    const PreparedNode* prepared = nullptr;
    std::vector<std::uint32_t> configurations;  ///< Those that are allowed.
  };
  void add_node(NodeId id, const PreparedNode& prepared, const ConfigurationFilter& allowed);
  void find_values(const std::vector<StatePair>& state);
  void add_state(const StatePair& pair);
  void add_value(PlannedValue value);
  void keep(PlannedValue& value, const Placements& candidates);
  [[nodiscard]] Placements made(Value value) const;
  [[nodiscard]] Placements read_by(const ValueReader& reader) const;
  [[nodiscard]] PartitionProblem::Table table(const Placements& have, const Placements& need,
                                              std::int64_t element_bytes);
  [[nodiscard]] KeptAs kept_as(const PlannedValue& value, const Choice& choice) const;
  void read_value(const PlannedValue& value, const Choice& choice, PartitionPlan& plan) const;

  const Graph& graph_;
  const Mesh& mesh_;
  PartitionProblem problem_;
  std::vector<NodeId> order_;
  std::vector<PlacedNode> nodes_;  ///< By number; of nodes that are planned.
  std::vector<PlannedValue> values_;
  std::vector<SuppliedValue> supplied_;
  std::map<Value, std::vector<ValueReader>> readers_;
  std::vector<std::unique_ptr<Placement>> whole_;
  std::map<std::tuple<Placements, Placements, std::int64_t>, PartitionProblem::Table> tables_;
};

}  // namespace taso
