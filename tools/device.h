/// The device of taso-opt and taso-run: the processor, or one whose backend is a module (runtime/backend.h).
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "graph/graph.h"
#include "graph/tensor_type.h"
#include "operators/registry.h"
#include "runtime/backend.h"
#include "runtime/kernel.h"
#include "support/status.h"
#include "tools/common.h"

namespace CLI {
class App;
}  // namespace CLI

namespace taso::tools {

struct DeviceOptions {
  std::string device = "cpu";   ///< --device: "cpu", "reference" or the name of a backend.
  std::string math = "fp32";    ///< --math.
  std::string properties;       ///< --device-properties: a file; empty: the device of this machine.
  std::string engines = "few";  ///< --engines.
  bool precompiled = false;     ///< --precompiled-kernels.
};

/// Adds --device, with a help text that begins with `devices`, --math, --engines and --precompiled-kernels.
void add_device_options(CLI::App& app, DeviceOptions& options, const std::string& devices);

/// The kernels that the options name and how floats are kept for them.
struct Device {
  KernelLibrary library;
  ElementType float_storage = ElementType::f32;
  /// The kernels run: not so on a device that is only described.
  [[nodiscard]] bool can_run() const { return !library.backend() || library.backend()->can_run(); }
};

/// Opens the device; the module of a backend lies in the folder that $TASO_BACKENDS names, else beside the program.
/// device_unavailable where it, its module or a library that it needs is absent; usage where options
/// do not go together. `allow_reference`: "reference" is a device too. `costs`: --costs; kernels that a backend
/// compiles are kept beside that database, or the default one.
[[nodiscard]] Expected<Device> open_device(const DeviceOptions& options, const OperatorRegistry& registry,
                                           bool allow_reference, const std::string& costs);
/// The device of one of several ranks of a machine: of a backend the one of that number, or if there are fewer, one
/// that it shares.
[[nodiscard]] Expected<Device> open_device_of_rank(const DeviceOptions& options, const OperatorRegistry& registry,
                                                   int rank_on_host, const std::string& costs);

/// Says at its end how the device's kernels were made (Backend::remarks), on stderr, to those who asked for more.
class RemarksAtEnd {
 public:
  RemarksAtEnd(const Device& device, const CommonOptions& common) : device_(device), common_(common) {}
  RemarksAtEnd(const RemarksAtEnd&) = delete;
  RemarksAtEnd& operator=(const RemarksAtEnd&) = delete;
  ~RemarksAtEnd();

 private:
  const Device& device_;
  const CommonOptions& common_;
};

/// Adds --streams: `what` says what is on them.
void add_streams_option(CLI::App& app, std::optional<std::size_t>& streams, const std::string& what);
/// usage where several streams are asked for of a device that runs one kernel at a time.
[[nodiscard]] Status check_streams(const std::optional<std::size_t>& streams, const DeviceOptions& options);
/// On how many streams of the device graphs are run at most: as the option says, by default default_streams where there
/// is a backend.
[[nodiscard]] std::size_t streams_of(const std::optional<std::size_t>& streams, const Device& device);

/// How far results in a math mode may be from float64: as an L2 norm relative to the reference's, and as the largest
/// difference relative to the largest magnitude.
struct Tolerance {
  double l2 = 0, maximum = 0;
};
[[nodiscard]] Tolerance tolerance_of(const std::string& math);
/// The same where a graph is computed: values that it keeps in 16 bits allow what the math mode of that type does.
[[nodiscard]] Tolerance tolerance_of(const std::string& math, const Graph& graph);

}  // namespace taso::tools
