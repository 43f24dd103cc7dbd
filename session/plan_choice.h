/// Which graph is planned for several devices, and which of its plans is the result: by what plans cost, or where they
/// are run whole, by that.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/rewrite.h"
#include "onnx_io/model.h"
#include "optimizer/optimize.h"
#include "optimizer/report.h"
#include "runtime/executor.h"
#include "runtime/kernel.h"
#include "session/device_plan.h"
#include "session/plan_costs.h"
#include "session/rule_sets.h"
#include "support/status.h"

namespace taso {

/// What a choice is made with; all is referred to.
struct PlanChoiceContext {
  const Model& model;  ///< Of which graphs are written.
  const RuleSets& rules;
  const RuleIndex& fusing_rules;  ///< Those by which a model that is read is fused before it runs.
  const KernelLibrary& library;
  const PlanRequest& request;
  const OptimizeOptions& with;  ///< Of the search for one device.
  const ExecutorOptions& executor;
  PieceTimes* times;  ///< Where costs are times of kernels.
};

struct PlanChoice {
  std::optional<ReachedGraph> graph;         ///< Nothing: the one that is best on one device.
  std::string fastest;                       ///< Where it is another plan than that of least cost: its name.
  std::optional<PlanSearchReport> searched;  ///< What is known of other choices, if anything was looked at.
};

/// Chooses among the graph that is best on one device, which is the first one, and those that the search of the request
/// finds. Fails as search_plans and plan_for_devices do.
[[nodiscard]] Expected<PlanChoice> choose_plan(const std::vector<ReachedGraph>& graphs,
                                               const PlanChoiceContext& context);

/// What is reported of a plan that came of a choice.
[[nodiscard]] PlanSearchReport report_of(const PlanChoice& choice, PlanSearch search, const DevicePlan& plan);

}  // namespace taso
