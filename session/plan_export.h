/// A plan for several devices in the form of other programs: what taso-opt --emit writes besides the plan as one model
/// (docs/partitioning.md, "Exports").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "onnx_io/device_annotations.h"
#include "onnx_io/model.h"
#include "operators/registry.h"
#include "partition/operator_piece.h"
#include "partition/planner.h"
#include "session/jax_script.h"
#include "support/status.h"

namespace taso {

enum class PlanExport : std::uint8_t {
  sharding,        ///< The model with the sharding annotations of ONNX.
  ort_ranks,       ///< A model per rank, with ONNX Runtime's collectives.
  tensorrt_ranks,  ///< A model per rank, with TensorRT's DistCollective.
  jax,             ///< A script for JAX.
};
/// As --emit spells it.
[[nodiscard]] std::string_view to_string(PlanExport form);
/// Nothing where it spells none.
[[nodiscard]] std::optional<PlanExport> parse_plan_export(std::string_view text);

/// A plan that can be written.
struct ExportedPlan {
  PlanExport form = PlanExport::sharding;
  std::vector<Graph> ranks;         ///< Of models per rank: what is written.
  std::optional<Graph> together;    ///< Of programs of ranks: how the first rank's outputs come about, for one device.
  Graph annotated;                  ///< Of sharding: the graph that was planned,
  DeviceAnnotations annotations;    ///< and its annotations.
  std::optional<JaxScript> script;  ///< Of jax.
  std::string remark;  ///< In one line, what of the plan it does not say, or says at another cost. May be empty.
};

/// Exports a plan of `graph`, which is that of `model` in normal form. Fails with bad_input, in one line, where the
/// form cannot say the plan.
[[nodiscard]] Expected<ExportedPlan> export_plan(PlanExport form, const Graph& graph, const PartitionPlan& plan,
                                                 const Model& model, StrategyTable& strategies);
/// The same in several forms, with the proved strategies of these files.
[[nodiscard]] Expected<std::vector<ExportedPlan>> export_plans(const std::vector<PlanExport>& forms, const Graph& graph,
                                                               const PartitionPlan& plan, const Model& model,
                                                               const std::vector<std::string>& strategy_files,
                                                               const OperatorRegistry& registry);

/// Where it goes, beside a model: out.sharding.onnx of out.onnx, or a folder for what is several files: out.ort,
/// out.tensorrt, out.jax.
[[nodiscard]] std::string export_path(PlanExport form, const std::string& model);
/// Whether it is a folder: of rank0.onnx and so on, or of program.py and its weights.
[[nodiscard]] bool is_folder(PlanExport form);

/// Writes it there: all of it, or on error nothing. `model` is the one that was planned. `external_data`: as in
/// SaveOptions. The number of tensors that were annotated, of sharding.
[[nodiscard]] Expected<std::int64_t> write_export(const ExportedPlan& plan, const Model& model, const std::string& path,
                                                  bool external_data);

}  // namespace taso
