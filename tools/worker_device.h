/// Devices of taso-opt that are runtimes which a worker drives (targets/worker.h): "ort", "ort:CUDAExecutionProvider",
/// "openvino", "worker:PROGRAM".
#pragma once

#include <optional>
#include <string>

#include "support/status.h"
#include "targets/worker.h"

namespace CLI {
class App;
}  // namespace CLI

namespace taso::tools {

struct WorkerDeviceOptions {
  std::string python;    ///< --worker-python; empty: what scripts/setup --targets has made, else python3.
  double timeout = 300;  ///< --worker-timeout
};

/// Adds --worker-python and --worker-timeout.
void add_worker_options(CLI::App& app, WorkerDeviceOptions& options);

/// The names of the workers that are shipped: "openvino, ort".
[[nodiscard]] std::string worker_names();

/// The worker that a value of --device names: "NAME" or "NAME:PROVIDER" is the script NAME_worker.py of the workers
/// that are shipped (share/taso/workers beside the program's folder, or the source tree), "worker:PROGRAM" a program,
/// or a script of Python. Nothing if it is no worker. A usage error where the program is not there.
[[nodiscard]] Expected<std::optional<WorkerOptions>> worker_of(const std::string& device,
                                                               const WorkerDeviceOptions& options);

}  // namespace taso::tools
