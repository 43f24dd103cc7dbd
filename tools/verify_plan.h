/// taso-verify --plan: whether a plan for several devices is one of a model, follows from proved strategies, and costs
/// and takes what it states.
#pragma once

#include <string>

#include "operators/registry.h"
#include "support/status.h"
#include "tools/common.h"
#include "tools/files.h"

namespace taso::tools {

struct PlanArguments {
  std::string plan;      ///< out.plan.json; empty: none is checked.
  std::string model;     ///< That the plan is of; empty: the file that it names, in its folder.
  std::string expanded;  ///< The plan written out as one model; empty: none is checked.
};

/// The model of a plan: the one that is given, or else the one that it names, which is looked up in the plan's file.
/// Empty where that cannot be read.
[[nodiscard]] std::string model_of_plan(const PlanArguments& arguments);

/// Claims that model and the expanded one, with their external data.
[[nodiscard]] Status claim_models_of_plan(FileClaims& claims, const PlanArguments& arguments);

/// Checks all of it; a line for people that says what was checked. not_proved with the first wrong place and both
/// values; bad_input where a file cannot be read, or the model is not that of the plan.
[[nodiscard]] Expected<std::string> verify_plan(const PlanArguments& arguments, const CommonOptions& common,
                                                const OperatorRegistry& registry);

}  // namespace taso::tools
