#include "tools/device.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "optimizer/cost_database.h"
#include "runtime/stream_schedule.h"
#include "support/file.h"
#include "tools/common.h"

namespace taso::tools {
namespace {

Error usage(std::string message) { return {ErrorCode::usage, std::move(message), {}}; }

bool is_name(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
  });
}

}  // namespace

void add_device_options(CLI::App& app, DeviceOptions& options, const std::string& devices) {
  app.add_option("--device", options.device,
                 devices +
                     ", or a backend, whose module taso_NAME.so lies beside the program: cuda "
                     "(built, planned and tested on the host; not yet run on a device)")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--math", options.math,
                 "How a backend computes: fp32; tf32: products may round f32 operands; fp16, bf16: f32 tensors are "
                 "kept so")
      ->check(CLI::IsMember({"fp32", "tf32", "fp16", "bf16"}))
      ->capture_default_str();
  app.add_option("--engines", options.engines,
                 "Among which engines of its libraries a backend chooses by timing, once for each kernel: few, the "
                 "first that their heuristics name; all, also those that are compiled at run time")
      ->check(CLI::IsMember({"few", "all"}))
      ->capture_default_str();
  app.add_flag("--precompiled-kernels", options.precompiled,
               "Let a backend use the kernels that it comes with, where it would compile some for what is computed");
}

void add_streams_option(CLI::App& app, std::optional<std::size_t>& streams, const std::string& what) {
  app.add_option("--streams", streams,
                 fmt::format("{}, as many as are worth it by what kernels are known or believed to cost; 1: one after "
                             "the other (default: {})",
                             what, default_streams))
      ->check(whole_number(1, static_cast<int>(most_streams)))
      ->type_name("N");
}

Status check_streams(const std::optional<std::size_t>& streams, const DeviceOptions& options) {
  if (streams.value_or(1) == 1 || (options.device != "cpu" && options.device != "reference")) return {};
  return usage(fmt::format("--streams {}: --device {} runs one kernel at a time", *streams, options.device));
}

std::size_t streams_of(const std::optional<std::size_t>& streams, const Device& device) {
  return device.library.backend() ? streams.value_or(default_streams) : 1;
}

namespace {

/// Beside the database of costs, and called after it.
std::string kernel_folder(const std::string& costs) {
  const std::string database = costs.empty() ? default_cost_database_path() : costs;
  return database.empty() ? "" : database + ".kernels";
}

/// `backend`: what the options do not say.
Expected<Device> open(const DeviceOptions& options, const OperatorRegistry& registry, bool allow_reference,
                      BackendOptions backend) {
  if (options.device == "cpu" || (allow_reference && options.device == "reference")) {
    if (options.math != "fp32")
      return usage(fmt::format("--math {}: kernels of --device {} compute in fp32", options.math, options.device));
    if (!options.properties.empty())
      return usage(fmt::format("--device-properties: --device {} has none", options.device));
    return Device{KernelLibrary(registry, options.device == "cpu" ? KernelSet::cpu : KernelSet::reference)};
  }
  if (!is_name(options.device))
    return usage(fmt::format("--device {}: expected cpu{} or the name of a backend", options.device,
                             allow_reference ? ", reference" : ""));
  backend.all_engines = options.engines == "all";
  backend.generates_kernels = !options.precompiled;
  backend.math = options.math == "tf32" ? MathMode::tf32 : MathMode::strict;
  if (const char* folder = std::getenv("TASO_BACKENDS"); folder != nullptr) backend.module_folder = folder;
  if (!options.properties.empty()) {
    TASO_ASSIGN(backend.device_properties, read_file(options.properties));
  }
  TASO_ASSIGN(std::shared_ptr<Backend> opened, load_backend(options.device, backend));
  const ElementType storage = options.math == "fp16"   ? ElementType::f16
                              : options.math == "bf16" ? ElementType::bf16
                                                       : ElementType::f32;
  return Device{KernelLibrary(registry, std::move(opened)), storage};
}

}  // namespace

Expected<Device> open_device(const DeviceOptions& options, const OperatorRegistry& registry, bool allow_reference,
                             const std::string& costs) {
  BackendOptions backend;
  backend.kernel_folder = kernel_folder(costs);
  return open(options, registry, allow_reference, std::move(backend));
}

RemarksAtEnd::~RemarksAtEnd() {
  if (common_.verbosity == 0 || common_.quiet || !device_.library.backend()) return;
  if (const std::string remarks = device_.library.backend()->remarks(); !remarks.empty())
    fmt::print(stderr, "{}\n", remarks);
}

Expected<Device> open_device_of_rank(const DeviceOptions& options, const OperatorRegistry& registry, int rank_on_host,
                                     const std::string& costs) {
  BackendOptions backend;
  backend.kernel_folder = kernel_folder(costs);
  backend.device = rank_on_host;
  backend.counts_on = true;
  return open(options, registry, true, std::move(backend));
}

Tolerance tolerance_of(const std::string& math) {
  if (math == "tf32") return {2e-3, 5e-3};
  if (math == "fp16") return {1e-2, 2e-2};
  if (math == "bf16") return {8e-2, 1.6e-1};
  return {1e-5, 1e-4};
}

Tolerance tolerance_of(const std::string& math, const Graph& graph) {
  const std::optional<ElementType> narrowest = graph.narrowest_type();
  const Tolerance of_mode = tolerance_of(math);
  if (narrowest != ElementType::f16 && narrowest != ElementType::bf16) return of_mode;
  const Tolerance of_type = tolerance_of(std::string(narrowest == ElementType::f16 ? "fp16" : "bf16"));
  return {std::max(of_mode.l2, of_type.l2), std::max(of_mode.maximum, of_type.maximum)};
}

}  // namespace taso::tools
