/// What the search minimises. Models are interchangeable: the search does not know which one it has.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "optimizer/cost_database.h"
#include "optimizer/target.h"
#include "support/status.h"

namespace taso {

/// Kernel times: from the database where recorded, measured on the target (and recorded) where not.
class MeasuredCosts {
 public:
  /// With `measure` false a missing cost is an error of code cost_missing that names the kernel.
  MeasuredCosts(Target& target, CostDatabase& database, bool measure)
      : target_(&target), database_(&database), measure_(measure) {}

  /// Seconds of one kernel of a plan. Not thread-safe.
  [[nodiscard]] Expected<double> seconds(const Graph& graph, const KernelPlan& plan, std::size_t index);
  /// Sum over the kernels of a plan.
  [[nodiscard]] Expected<double> seconds(const Graph& graph, const KernelPlan& plan);
  /// Seconds of whole graphs timed in turn in one run, recorded under their structural hashes.
  [[nodiscard]] Expected<GraphTimes> graph_seconds(const std::vector<const Graph*>& graphs);

  [[nodiscard]] Target& target() { return *target_; }
  /// Every cost handed out so far, ordered; written by --record.
  [[nodiscard]] std::vector<CostDatabase::Entry> used() const;
  /// Number of kernels measured in this run (not found in the database).
  [[nodiscard]] std::size_t measured() const { return measured_count_; }

 private:
  Target* target_;
  CostDatabase* database_;
  bool measure_;
  std::size_t measured_count_ = 0;
  std::map<std::pair<std::string, std::string>, double, std::less<>> used_;
};

class CostModel {
 public:
  virtual ~CostModel() = default;
  /// Cost of a graph whose plan is given; lower is better. Not thread-safe: may measure.
  [[nodiscard]] virtual Expected<double> cost(const Graph& graph, const KernelPlan& plan) = 0;
  /// Canonical spelling, as parse_cost_model accepts it.
  [[nodiscard]] virtual std::string name() const = 0;
  /// True if kernel times enter the cost: then the final choice is by timing whole graphs.
  [[nodiscard]] virtual bool uses_time() const = 0;
};

/// Parses "time", "flops", "bytes", "launches", "memory", or a weighted sum such as "time+0.1*bytes". In a sum
/// the terms have the units microseconds, MFLOP, MB (of traffic or peak intermediate memory) and launches.
[[nodiscard]] Expected<std::unique_ptr<CostModel>> parse_cost_model(std::string_view text, MeasuredCosts& measured);

}  // namespace taso
