/// A plan for several devices of a graph (partition/planner.h), and what other plans would cost.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "onnx_io/model.h"
#include "operators/registry.h"
#include "optimizer/report.h"
#include "partition/mesh.h"
#include "partition/plan_document.h"
#include "partition/planner.h"
#include "session/plan_costs.h"
#include "support/status.h"
#include "support/stop_signal.h"

namespace taso {

/// How substitutions and plans are searched.
enum class PlanSearch : std::uint8_t {
  joint,       ///< Graphs by what their plans cost (session/plan_search.h).
  sequential,  ///< The best graph for one device, and then its plan.
  partition,   ///< The plan of the model as it is.
};
/// As --plan-search spells it.
[[nodiscard]] const char* to_string(PlanSearch search);
/// Fails (usage) where it spells nothing.
[[nodiscard]] Expected<PlanSearch> parse_plan_search(std::string_view text);

/// For which devices a plan is wanted, and which.
struct PlanRequest {
  PlanSearch search = PlanSearch::joint;
  Mesh mesh;
  std::string topology;                     ///< Its name.
  std::vector<std::string> strategy_files;  ///< Rules: strategies that are proved.
  PlanMethod method = PlanMethod::exact;
  PlanCost cost = PlanCost::roofline;
  /// Of PlanCost::time: between which ranks transfers are, as measured_transfers (session/transfer_costs.h) has it.
  std::string transport = "any";
  std::optional<double> memory;  ///< Bytes that a device has for what a plan keeps there; nothing: no limit.
  std::string take;              ///< The name of another plan that is to be the plan; empty: the best is.
  bool alternatives = false;     ///< Whether next best ways are looked for.
  bool expanded = false;         ///< Whether the plan is written out as one graph.
  /// So long planning takes at most, or a little longer: then what is found is the result. Nothing: no limit.
  std::optional<StopSignal::Clock::duration> time_limit;
  const std::atomic<bool>* interrupted = nullptr;  ///< Once true, what is found is the result. Null: never.
};

/// Another plan of the same graph on the same mesh, whatever memory it takes.
struct OtherPlan {
  std::string name;
  std::optional<PartitionPlan> plan;
  std::string missing;  ///< Why there is none.
};

struct DevicePlan {
  Graph graph;
  std::vector<std::string> node_names;  ///< Of the nodes of the file, by Node::origin.
  SymbolSizes sizes;                    ///< Of symbolic extents, for which the plan is.
  /// Those with which the file is read to give this graph (ImportOptions); none where it declares them.
  std::map<std::string, Shape> input_shapes;
  std::string topology;
  Mesh mesh;
  PlanMethod method = PlanMethod::exact;
  PlanCost cost = PlanCost::roofline;
  std::optional<double> memory;  ///< As in the request.
  PartitionPlan plan;
  std::vector<std::vector<CutPoints>> cuts;  ///< Of the plan's nodes, in their order.
  /// Where the search for a plan that keeps to the memory found worse, or none: the name of the other plan that this
  /// is.
  std::string taken_from;
  bool asked_for = false;              ///< It is, because the request says so.
  std::optional<PartitionPlan> exact;  ///< Beside a recursive one: the plan of all axes at once, if there was time.
  std::vector<OtherPlan> others;       ///< The baselines of partition/plan_baselines.h.
  std::vector<PlanAlternative> alternatives;  ///< Of an exact plan, if they were asked for.
  std::optional<PlanSearchReport> searched;   ///< What is beside it, where a result is planned.
  std::optional<Graph> expanded;              ///< The plan written out (partition/expand.h), if that was asked for.
};

/// Plans `graph`, whose nodes have these names in a file, by Node::origin. `times`: where costs are times of kernels
/// (piece_cost). With `fusing`, the rules by which ranks fuse their programs, also what a step of each plan takes
/// (session/step_time.h), where that is to be had. Fails with usage where the plan to take is none of the others; where
/// a file of strategies cannot be read, with not_proved where no plan keeps to the memory, or none was found to, and as
/// Planner::plan does.
[[nodiscard]] Expected<DevicePlan> plan_for_devices(Graph graph, std::vector<std::string> node_names,
                                                    const PlanRequest& request, const OperatorRegistry& registry,
                                                    PieceTimes* times = nullptr, const RuleIndex* fusing = nullptr);

/// What plans of many graphs would cost, for one request. What equal operators of them need is found out once. All are
/// referred to. Not for several threads at once.
class PlanPricer {
 public:
  /// Fails where a file of strategies cannot be read.
  [[nodiscard]] static Expected<std::unique_ptr<PlanPricer>> open(const PlanRequest& request, const StopSignal& stop,
                                                                  const OperatorRegistry& registry, PieceTimes* times);
  PlanPricer(const PlanPricer&) = delete;
  PlanPricer& operator=(const PlanPricer&) = delete;
  ~PlanPricer();

  /// The least cost on a mesh of one axis, of all devices and the slowest of the links; whatever memory it takes.
  [[nodiscard]] Expected<double> coarse(const Graph& graph);
  /// The cost of the plan that the request asks for; not_proved where none fits the memory.
  [[nodiscard]] Expected<double> exact(const Graph& graph);
  /// The cost on one device.
  [[nodiscard]] Expected<double> one_device(const Graph& graph);

 private:
  struct State;
  explicit PlanPricer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace taso
