/// taso-run --plan: a model run by several ranks as a plan says (docs/partitioning.md, "Running").
#pragma once

#include "operators/registry.h"
#include "runtime/transport.h"
#include "support/status.h"
#include "tools/device.h"
#include "tools/run_model.h"

namespace taso::tools {

/// The exit code of a run without errors. All ranks of a transport call it with the same command line; rank 0 says and
/// writes what there is to say and write, and all return its error.
[[nodiscard]] Expected<int> run_plan(RunOptions options, const OperatorRegistry& registry, const Device& device,
                                     Transport& transport);

/// The same with ranks that are threads of this process, as many as the plan has devices, each with a device of its own
/// (open_device_of_rank).
[[nodiscard]] Expected<int> run_plan_by_threads(const RunOptions& options, const OperatorRegistry& registry);

}  // namespace taso::tools
