/// A plan for several devices of a model as it is, not optimized: what taso-opt --plan-only does.
#pragma once

#include <string>
#include <vector>

#include "certificate/certificate.h"
#include "operators/registry.h"
#include "runtime/kernel.h"
#include "session/device_plan.h"
#include "session/message.h"
#include "session/session.h"
#include "support/status.h"

namespace taso {

struct ModelPlan {
  DevicePlan plan;
  FileIdentity model;  ///< The file that was read.
};

/// Reads the model of a session and plans it for `options.devices`, which must be set; rules and outputs are not looked
/// at. `library`: where kernels run, where costs are times of kernels (TASO_CHECK); else null. Weights whose data is
/// not there are only shapes (ImportOptions::absent_weights): planning needs no more. Symbolic extents have the sizes
/// for which costs count. `message` is told what a user may want to know of the model. Fails as SizedModel::load,
/// open_costs and plan_for_devices do.
[[nodiscard]] Expected<ModelPlan> plan_model(const SessionOptions& options, const OperatorRegistry& registry,
                                             const KernelLibrary* library, const MessageSink& message = {});

}  // namespace taso
