/// The file of a plan for several devices (partition/plan_document.h, docs/partitioning.md).
#pragma once

#include <string>

#include "partition/plan_document.h"
#include "session/device_plan.h"
#include "support/file_identity.h"

namespace taso {

/// What it states. `model` is the file that the plan is of.
[[nodiscard]] PlanDocument document_of(const DevicePlan& plan, const FileIdentity& model);
/// Its text. Equal plans give equal bytes.
[[nodiscard]] std::string plan_json(const DevicePlan& plan, const FileIdentity& model);
/// The file of the plan beside a model: out.plan.json of out.onnx.
[[nodiscard]] std::string plan_path(const std::string& model);
/// The plan as one model, beside a model: out.expanded.onnx of out.onnx.
[[nodiscard]] std::string expanded_path(const std::string& model);

}  // namespace taso
