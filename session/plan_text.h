/// Plans for several devices as text (docs/partitioning.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partition/plan_statement.h"
#include "session/device_plan.h"

namespace taso {

/// An amount of such costs: "2.352 ms", "34.21 us", "1.5 GFLOP", "12.00 MB".
[[nodiscard]] std::string amount_text(double amount, CostUnit unit);
/// The name of a node in the file, or else of its operator with its number in the graph.
[[nodiscard]] std::string planned_name(const DevicePlan& plan, NodeId id);

/// All plans, with their names: the plan itself, the exact one beside another one, and the others.
struct NamedPlan {
  std::string_view name;
  const PartitionPlan* plan = nullptr;
  std::string_view missing;  ///< Why there is none.
};
[[nodiscard]] std::vector<NamedPlan> all_plans(const DevicePlan& plan);
/// What is known of how good the plan is, a sentence a line.
[[nodiscard]] std::string plan_quality(const DevicePlan& plan);

/// What all devices cost that all compute everything, which is what one device takes; nothing: it is not known.
[[nodiscard]] std::optional<double> cost_of_repeating(const DevicePlan& plan);
/// "seconds", "flops", "bytes".
[[nodiscard]] std::string_view name_of_unit(CostUnit unit);
/// What the plan costs beside those of other ways to search, and beside one device, a sentence a line; empty: nothing
/// was looked at.
[[nodiscard]] std::string search_text(const DevicePlan& plan);

/// A table: per operator that is cut or for which something moves its use of the mesh, what computing and moving cost,
/// bytes in and out, and memory of the device that holds most; then the sums, beside those of other plans.
[[nodiscard]] std::string plan_text(const DevicePlan& plan);
/// Why operators are cut as they are: what the next best way of each would cost; of a recursive plan, where the exact
/// one does otherwise.
[[nodiscard]] std::string plan_reasons(const DevicePlan& plan);

}  // namespace taso
