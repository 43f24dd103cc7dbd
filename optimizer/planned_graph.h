/// A graph with what its execution takes: its kernels, what they cost, and counts for people.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "graph/graph.h"
#include "optimizer/cost_model.h"
#include "optimizer/target.h"
#include "support/status.h"

namespace taso {

/// Counts that a person compares before and after.
struct GraphSummary {
  std::map<std::string, std::size_t> operators;  ///< Not weight-only, by name; opaque ones under their names.
  std::size_t operator_count = 0, opaque_count = 0, kernels = 0;
  double flops = 0, bytes = 0, peak_bytes = 0, cost = 0;
  std::optional<double> predicted_seconds;  ///< Sum of kernel times, where the cost model uses time.
  std::optional<double> measured_seconds;   ///< Timed whole.
  std::size_t conversions = 0;              ///< Kernels that change a layout.
  std::optional<double> rule_cost;          ///< Cost in the layouts of the runtime's rule; empty if not recorded.
  std::optional<double> least_cost;         ///< GraphPlanner::least_cost, where that was asked for.
};

/// A graph, planned and priced.
struct PlannedGraph {
  Graph graph;
  KernelPlan plan;                      ///< With its layouts, if they are chosen.
  double cost = 0;                      ///< By the cost model.
  std::optional<GraphSummary> summary;  ///< Where GraphPlanner::summarize has made it.
};

/// The graph as Target runs it whole.
[[nodiscard]] TimedGraph to_be_timed(const PlannedGraph& planned);

/// Counts of a planned graph; no times.
[[nodiscard]] Expected<GraphSummary> summary_of(const PlannedGraph& planned, const Target& target);

/// Plans and prices graphs, all of them in the same way. Not for several threads at once: may measure.
class GraphPlanner {
 public:
  /// `measured` and `model` must outlive the planner. Layouts are chosen by `model`, or follow the target's rule.
  GraphPlanner(MeasuredCosts& measured, CostModel& model, bool choose_layouts)
      : measured_(&measured), model_(&model), choose_layouts_(choose_layouts) {}

  /// The kernels of a graph and their cost. If that is not below `limit`, it is any number from `limit` up, and the
  /// layouts may be left open. Errors are those of Target::plan and CostModel::cost.
  [[nodiscard]] Expected<PlannedGraph> plan(Graph graph, double limit = MeasuredCosts::no_limit) const;
  /// Improves chosen layouts by moves (CostModel::improve); a summary is dropped if they change.
  [[nodiscard]] Status improve(PlannedGraph& planned) const;
  /// Makes the graph's summary, if it has none; `measured_seconds` is left empty. It may measure more kernels than
  /// planning does: those of the layouts by rule.
  [[nodiscard]] Status summarize(PlannedGraph& planned) const;

  /// CostModel::least, where layouts are chosen; nothing if the graph costs less, as prices that do not go together
  /// may have it.
  [[nodiscard]] Expected<std::optional<double>> least_cost(const PlannedGraph& planned) const;

  [[nodiscard]] MeasuredCosts& measured() const { return *measured_; }
  [[nodiscard]] CostModel& model() const { return *model_; }
  [[nodiscard]] const Target& target() const { return measured_->target(); }

 private:
  MeasuredCosts* measured_;
  CostModel* model_;
  bool choose_layouts_;
};

}  // namespace taso
