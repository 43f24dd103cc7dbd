/// The optimization of a model file from beginning to end: what taso-opt does once its command line is read.
///
/// Session::open reads the model, the rules and the recorded costs, optimize() makes the result, write() writes it with
/// its certificate and reports. Nothing is written before write(), but the database of measured costs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "certificate/certificate.h"
#include "certificate/symbolic_model.h"
#include "graph/tensor_type.h"
#include "onnx_io/model.h"
#include "operators/registry.h"
#include "optimizer/cost_model.h"
#include "optimizer/optimize.h"
#include "optimizer/report.h"
#include "optimizer/runtime_target.h"
#include "runtime/kernel.h"
#include "session/cost_files.h"
#include "session/device_plan.h"
#include "session/message.h"
#include "session/plan_export.h"
#include "session/rule_sets.h"
#include "support/status.h"
#include "targets/worker.h"

namespace taso {

/// The files that a session writes. No file is written whose name is empty.
struct SessionOutputs {
  std::string model;           ///< The result; may be the model itself. Never empty.
  bool external_data = false;  ///< Large weights go to "<model>.data" (SaveOptions::external_data).
  std::string certificate;     ///< Of the result (certificate/certificate.h); usually certificate_path(model).
  std::string costs;           ///< The costs that were used, as CostDatabase::open reads them. This file and
  std::string plan;            ///< The plan for several devices, where one is asked for; usually plan_path(model).
  std::string expanded;        ///< That plan as one model (partition/expand.h); usually expanded_path(model).
  /// That plan for other programs, each file or folder usually export_path(model).
  std::map<PlanExport, std::string> exports;
  std::string json, html;  ///< the reports (optimizer/report.h, html_report.h) may be "-": stdout.
};

/// What a session does. The defaults are those of taso-opt.
struct SessionOptions {
  std::string model;                          ///< The ONNX file.
  std::map<std::string, Shape> input_shapes;  ///< As in ImportOptions.
  SymbolSizes assumed;                        ///< Sizes of symbolic extents for which costs count.
  SymbolRanges ranges;                        ///< Sizes of symbolic extents for which the result is.
  RuleOptions rules;
  CostFormula cost = {{CostFormula::Weighted{}}};  ///< What is made small: time.
  CostFiles costs;
  int threads = 1;                               ///< With which the kernels run.
  ElementType float_storage = ElementType::f32;  ///< In which a device keeps what is f32 in the model.
  std::size_t streams = 1;                       ///< On so many of a device graphs are timed whole at most.
  /// The runtime that the result is for, instead of the library's kernels, which then run the check alone. The session
  /// sets its `threads`, `cancelled` and `report`.
  std::optional<WorkerOptions> worker;
  bool row_major = false;  ///< Layouts that are not chosen are row-major, as in the file.
  /// How it is searched, chosen and checked. The session sets `baseline_rules`, `writable`, `as_run`, `applicable`,
  /// `at_all_sizes`, and of the check `threads`, `float_storage` and `output_names`. `search.stop` ends measuring,
  /// too.
  OptimizeOptions optimize;
  /// Whether the result is planned for several devices. PlanRequest::expanded and SessionOutputs::exports need a model
  /// without symbolic extents, and where there is a check, the plan as one graph and programs of ranks are checked,
  /// too.
  std::optional<PlanRequest> devices;
  SessionOutputs outputs;
  /// When the work began, from where reports count seconds.
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

/// How a session reads its model.
[[nodiscard]] ImportOptions import_options(const SessionOptions& options);

/// The target on which pieces of operators are timed for a plan for several devices (PieceTimes). It is not
/// interrupted: planning asks for less once it is to end.
[[nodiscard]] RuntimeTargetOptions piece_target(const SessionOptions& options);

/// What a session has made of its model.
struct SessionResult {
  OptimizeResult optimized;
  std::vector<BodySteps> bodies;             ///< What was done in subgraphs, as certificates have it.
  std::vector<std::string> rules_in_bodies;  ///< The rules that were used there, by name, sorted.
  SizedGraph at_all_sizes;                   ///< The result, where symbolic extents are kept.
  /// Where several devices are asked for: a plan of the result as it is read from the file that is written. None if the
  /// user interrupted before there was one.
  std::optional<DevicePlan> plan;
  std::optional<Model> written;       ///< That model.
  std::vector<ExportedPlan> exports;  ///< That plan, in the forms of SessionOutputs::exports.
  std::size_t unwritable = 0;         ///< Rewrites left out as the model's opset has no form for their result.
};

/// What a session has written.
struct SessionFiles {
  SaveReport model;
  SaveReport expanded;                 ///< Of the plan as one model, where there is one.
  std::int64_t annotated_tensors = 0;  ///< Of the plan as sharding annotations.
  ReportContext context;               ///< For report_text() and its like.
};

/// One optimization of one model file. Not for several threads at once.
class Session {
 public:
  /// Reads rules, model and costs; `message` is told what a user may want to know of them. `registry` and `library`,
  /// which says where kernels run, must outlive the session. On a device that is only described nothing can be
  /// measured: then costs.recorded_only must be set. Fails as load_rule_sets, SizedModel::load and open_costs do.
  [[nodiscard]] static Expected<Session> open(SessionOptions options, const OperatorRegistry& registry,
                                              const KernelLibrary& library, const MessageSink& message = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  /// Optimizes the model. Fails as taso::optimize does.
  [[nodiscard]] Expected<SessionResult> optimize();
  /// Writes all outputs, once. Fails where a file cannot be written, and as Model::save does.
  [[nodiscard]] Expected<SessionFiles> write(const SessionResult& result);
  /// Writes what stands in the place of the JSON report where optimize() has failed.
  [[nodiscard]] Status write_error(const Error& error) const;

  /// The model, at the sizes for which costs count.
  [[nodiscard]] const Model& model() const;
  [[nodiscard]] const RuleSets& rules() const;
  /// How far optimize() and write() have come, in one line. Safe to ask from another thread.
  [[nodiscard]] std::string progress() const;

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace taso
