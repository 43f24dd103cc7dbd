#include "tools/worker_device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "tools/common.h"

namespace taso::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view program_prefix = "worker:";

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

/// Where the workers that are shipped lie.
fs::path workers_folder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path installed = program.parent_path().parent_path() / "share" / "taso" / "workers";
    if (fs::is_directory(installed, error)) return installed;
  }
  return TASO_SOURCE_DIR "/targets/workers";
}

std::string python_of(const WorkerDeviceOptions& options) {
  if (!options.python.empty()) return options.python;
  const fs::path made = TASO_SOURCE_DIR "/build/targets/bin/python";
  std::error_code error;
  return fs::exists(made, error) ? made.string() : "python3";
}

}  // namespace

void add_worker_options(CLI::App& app, WorkerDeviceOptions& options) {
  app.add_option(
         "--worker-python", options.python,
         "The Python that runs the worker of a runtime (default: build/targets of scripts/setup --targets, else "
         "python3)")
      ->type_name("PROGRAM");
  app.add_option("--worker-timeout", options.timeout,
                 "Seconds in which a worker must answer; then it is killed and started anew")
      ->check(real_number(0.1, 1e6))
      ->type_name("S")
      ->capture_default_str();
}

std::string worker_names() {
  std::vector<std::string> names;
  constexpr std::string_view end = "_worker.py";
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(workers_folder(), error)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(end) && name != "taso_worker.py") names.push_back(name.substr(0, name.size() - end.size()));
  }
  std::sort(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

Expected<std::optional<WorkerOptions>> worker_of(const std::string& device, const WorkerDeviceOptions& options) {
  WorkerOptions worker;
  worker.device = device;
  worker.timeout_s = options.timeout;
  if (const char* log = std::getenv("TASO_WORKER_LOG"); log != nullptr) worker.log = log;
  if (device.starts_with(program_prefix)) {
    const fs::path program = device.substr(program_prefix.size());
    if (!is_there(program))
      return Error{ErrorCode::usage, fmt::format("--device {}: there is no such file", device), {}};
    // A name without a folder would be looked for in $PATH.
    const std::string path = fs::absolute(program).string();
    worker.command = program.extension() == ".py" ? std::vector<std::string>{python_of(options), path}
                                                  : std::vector<std::string>{path};
    return std::optional(std::move(worker));
  }
  const std::size_t colon = device.find(':');
  const std::string name = device.substr(0, colon);
  if (name.empty() || name.find('/') != std::string::npos) return std::optional<WorkerOptions>();
  const fs::path script = workers_folder() / (name + "_worker.py");
  if (name == "taso" || !is_there(script)) return std::optional<WorkerOptions>();
  if (colon != std::string::npos) worker.provider = device.substr(colon + 1);
  worker.command = {python_of(options), script.string()};
  return std::optional(std::move(worker));
}

}  // namespace taso::tools
