/// The model that a plan for several devices is of, as the plan speaks of it.
#pragma once

#include <string>

#include "graph/graph.h"
#include "onnx_io/model.h"
#include "operators/registry.h"
#include "partition/plan_document.h"
#include "support/status.h"

namespace taso::tools {

struct PlannedModel {
  Model model;  ///< At the sizes of the plan.
  Graph graph;  ///< Its graph in normal form, of whose operators the plan speaks.
};

/// The file of the model: `given`, or if that is empty the one that the plan names, in the folder of the plan's file.
[[nodiscard]] std::string model_path(const PlanDocument& document, const std::string& given);

/// Reads it. bad_input where it cannot be read or is another one than that of the plan; not_proved where it has other
/// symbolic extents than the plan. `absent_weights` as ImportOptions has it: who only looks at a plan needs none.
[[nodiscard]] Expected<PlannedModel> load_planned_model(const PlanDocument& document, const std::string& path,
                                                        const OperatorRegistry& registry, bool absent_weights);

}  // namespace taso::tools
