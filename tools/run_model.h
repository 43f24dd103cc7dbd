/// What taso-run does with models, whether one process runs them or several ranks do.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/rewrite.h"
#include "onnx_io/model.h"
#include "onnx_io/original_names.h"
#include "operators/registry.h"
#include "runtime/executor.h"
#include "runtime/tensor.h"
#include "support/status.h"
#include "tools/common.h"
#include "tools/device.h"
#include "tools/files.h"

namespace taso::tools {

inline constexpr std::string_view program_name = "taso-run";

/// The command line.
struct RunOptions {
  CommonOptions common;
  FileOptions files;
  DeviceOptions device;
  std::string model, other, save_outputs, save_inputs, layouts = "chosen", costs;
  std::string plan, trace, measure_links, references;
  std::string messages = "auto";  ///< Of --plan.
  std::vector<std::string> inputs, input_shapes;
  int threads = 1;
  int repeat = 10;
  std::optional<std::size_t> streams;  ///< At most; none: as many as are worth it, up to default_streams.
  int ranks = 1;                       ///< Of --measure-links, as threads of this process.
  bool measure_collectives = false;
  std::string largest_message = "32MiB";  ///< Of --measure-collectives.
  bool profile = false, as_is = false, no_groups = false, check = false, print_device = false, print_graph = false,
       print_kernels = false, no_measure = false;
  std::optional<double> rtol;
  double atol = 1e-6;
  /// --check-rtol, or what the math mode and the types of the model allow.
  [[nodiscard]] double tolerance(const Graph& graph) const {
    return rtol.value_or(tolerance_of(device.math, graph).maximum);
  }
  /// Whether chains of operators that one kernel computes are fused first.
  [[nodiscard]] bool fuses() const { return !as_is && device.device != "reference"; }
};

/// A model made ready to run: its graph, cut at opaque nodes where it is only compared.
struct Subject {
  std::string path;
  Graph graph;
  std::vector<std::string> output_names;
  std::vector<OriginalNode> original_nodes;
  std::size_t own_outputs = 0;      ///< The outputs after these are compared only.
  std::size_t ill_typed_nodes = 0;  ///< Model::ill_typed_nodes().
  Coverage coverage;                ///< Model::coverage().
  std::optional<Executor> executor;
};

/// By the names of inputs.
using Tensors = std::map<std::string, HostTensor>;

/// The files of --input.
[[nodiscard]] Expected<Tensors> read_inputs(const RunOptions& options);

/// A model; what is given makes symbolic shapes concrete. Warnings go to stderr.
[[nodiscard]] Expected<Subject> load_subject(const std::string& path, const RunOptions& options,
                                             const OperatorRegistry& registry, const Tensors& given);

/// Of a model that has been read; warnings go to stderr.
[[nodiscard]] Subject subject_of(const std::string& path, const Model& model, const RunOptions& options);

/// The rules by which operators are fused before a model is run: those of taso-opt, as far as they are proved.
[[nodiscard]] Expected<RuleIndex> fusing_rules(const RunOptions& options, const OperatorRegistry& registry);

/// Folds and fuses as every runtime does before it runs a model. The file cannot say it: ONNX has no fused operators.
/// Errors name `path`.
[[nodiscard]] Status fuse(Graph& graph, const std::string& path, const RuleIndex& rules,
                          const OperatorRegistry& registry);

/// `inputs`, random ones of the graph, with those that are given in their places.
[[nodiscard]] Expected<std::vector<HostTensor>> inputs_for(const Subject& subject, std::vector<HostTensor> inputs,
                                                           const Tensors& given);

/// Writes tensors of these names to a folder.
[[nodiscard]] Status save_tensors(const std::string& folder, std::span<const std::string> names,
                                  std::span<const HostTensor> tensors);

/// Claims the external data of what is read.
[[nodiscard]] Status claim_external_data(RunOptions& options);

/// Claims what --save-outputs and --save-inputs will write for a model: its tensors have the names.
[[nodiscard]] Status claim_tensors(RunOptions& options, const Subject& subject);

/// A line per kernel, and one per operator.
[[nodiscard]] std::string profile_table(const std::vector<KernelProfile>& profile);

/// How many launches are planned, and on how many streams; with `each` also a line per kernel, and one per operator.
[[nodiscard]] std::string planned_text(const std::string& path, const PlannedRun& planned, bool each);
/// Each kernel of a planned run once, with how often there is one like it, and Kernel::code().
[[nodiscard]] std::string kernels_text(const std::string& path, const PlannedRun& planned);
[[nodiscard]] nlohmann::ordered_json planned_json(const std::string& path, const PlannedRun& planned);

/// Compares outputs with float64; true if the relative L2 norm of every difference is within the math mode's bound.
[[nodiscard]] Expected<bool> check_outputs(const Graph& as_imported, const Subject& subject,
                                           std::span<const HostTensor> inputs, std::span<const HostTensor> actual,
                                           const RunOptions& options, const OperatorRegistry& registry,
                                           std::string& text, nlohmann::ordered_json& json);

/// That nodes of a model cannot be executed: which, and why.
[[nodiscard]] std::string not_executable(const Coverage& coverage);

/// Says what of the first model is not executed; an error where it is not to be compared only.
[[nodiscard]] Status describe_carried(const Subject& subject, const RunOptions& options);

}  // namespace taso::tools
